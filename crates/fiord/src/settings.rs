//! From the program's options to what the run is told.
//!
//! Invariant: defaults that depend on several options (`--minimal`, `--append-terse`, `--output-format`) are settled
//! here and nowhere else.

use std::time::Duration;

use fiord_options::program::ProgramOptions;
use fiord_options::value::{OutputFormat, OutputFormats, Seconds};
use fiord_report::{Format, TerseVersion};

use crate::live::Shown;

/// How the run is shown.
pub(crate) fn shown(options: &ProgramOptions) -> Shown {
    Shown {
        formats: formats(options),
        terse: TerseVersion::from_number(options.terse_version).unwrap_or(TerseVersion::V3),
        eta: options.eta,
        eta_interval: duration(&options.eta_interval),
        eta_newline: options.eta_newline.as_ref().map(duration),
        status_interval: options.status_interval.as_ref().map(duration),
        idle: options.idle_prof,
    }
}

fn formats(options: &ProgramOptions) -> Vec<Format> {
    let mut formats = formats_of(&options.output_format);
    if options.minimal.0 {
        formats = vec![Format::Terse];
    }
    if options.append_terse.0 && !formats.contains(&Format::Terse) {
        formats.push(Format::Terse);
    }
    formats
}

/// The formats of `--output-format`.
pub(crate) fn formats_of(wanted_formats: &OutputFormats) -> Vec<Format> {
    wanted_formats.0.iter().map(|format| wanted(*format)).collect()
}

fn wanted(format: OutputFormat) -> Format {
    match format {
        OutputFormat::Normal => Format::Normal,
        OutputFormat::Terse => Format::Terse,
        OutputFormat::Json => Format::Json,
        OutputFormat::JsonPlus => Format::JsonPlus,
    }
}

fn duration(time: &Seconds) -> Duration {
    Duration::from_micros(time.us)
}

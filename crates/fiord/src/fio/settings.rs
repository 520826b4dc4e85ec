//! From the program's options to how a run is shown.
//!
//! Invariant: formats, which depend on several options (`--minimal`, `--append-terse`, `--output-format`), are
//! resolved only here.

use std::time::Duration;

use fiord_options::Given;
use fiord_options::program::ProgramOptions;
use fiord_options::value::{OutputFormat, OutputFormats, Seconds};
use fiord_report::{Format, TerseVersion};

use super::presenter::LiveLineOptions;
use crate::live::LiveMode;

/// How the run is shown; `given` has the options in the order they were typed.
pub(crate) fn shown(options: &ProgramOptions, given: &Given<'_>, live: LiveMode) -> LiveLineOptions {
    LiveLineOptions {
        formats: formats(options, given),
        terse: TerseVersion::from_number(options.terse_version).unwrap_or(TerseVersion::V3),
        eta: options.eta,
        eta_interval: duration(&options.eta_interval),
        eta_newline: options.eta_newline.as_ref().map(duration),
        status_interval: options.status_interval.as_ref().map(duration),
        live,
    }
}

/// `--output-format` and `--minimal` replace the formats, `--append-terse` adds to those chosen so far; the last
/// option wins, as in fio.
fn formats(options: &ProgramOptions, given: &Given<'_>) -> Vec<Format> {
    let mut formats = vec![Format::Normal];
    for setting in given.iter() {
        let appends = setting.spec == ProgramOptions::append_terse && options.append_terse.0;
        if setting.spec == ProgramOptions::output_format {
            // With several, the last one replaces all.
            formats = formats_of(&options.output_format);
        } else if setting.spec == ProgramOptions::minimal {
            formats = vec![Format::Terse];
        } else if appends && !formats.contains(&Format::Terse) {
            formats.push(Format::Terse);
        }
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

#[cfg(test)]
mod tests {
    use fiord_options::cli;
    use fiord_options::environment::{Environment, KeywordValues};
    use fiord_options::resolve_program;

    use super::*;

    fn formats_of_line(line: &str) -> Vec<Format> {
        let environment = Environment {
            files: &|_: &std::ffi::OsStr| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
            variables: &|_| None,
            keywords: KeywordValues { cpus: 1, memory_mib: 1, page_bytes: 4096 },
            engines: &[],
        };
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let parsed = cli::read(&words, &environment).unwrap();
        let (options, given, problems) = resolve_program(&parsed.program);
        assert_eq!(problems, [], "{line}");
        shown(&options, &given, LiveMode::Never).formats
    }

    /// Each line was given to fio 3.33, and these are the formats it wrote.
    #[test]
    fn of_the_options_that_choose_a_format_the_last_wins() {
        use Format::{Json, JsonPlus, Normal, Terse};
        for (line, expected) in [
            ("", &[Normal][..]),
            ("--output-format=json --minimal", &[Terse]),
            ("--minimal --output-format=json", &[Json]),
            ("--append-terse --output-format=json", &[Json]),
            ("--output-format=json --append-terse", &[Json, Terse]),
            ("--append-terse", &[Normal, Terse]),
            ("--append-terse --minimal", &[Terse]),
            ("--minimal --append-terse", &[Terse]),
            ("--minimal --output-format=normal", &[Normal]),
            ("--append-terse --output-format=json+ --minimal", &[Terse]),
            ("--output-format=json --output-format=terse", &[Terse]),
            ("--output-format=json --minimal --output-format=json+", &[JsonPlus]),
            ("--output-format=json,normal --append-terse", &[Json, Normal, Terse]),
            ("--minimal --append-terse --output-format=json", &[Json]),
        ] {
            assert_eq!(formats_of_line(line), expected, "{line}");
        }
    }
}

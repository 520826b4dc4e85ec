//! From the program's options to what the run is told.
//!
//! Invariant: defaults that depend on several options (`--minimal`, `--append-terse`, `--output-format`) are settled
//! here and nowhere else.

use std::time::Duration;

use fiord_options::Given;
use fiord_options::program::ProgramOptions;
use fiord_options::value::{OutputFormat, OutputFormats, Seconds};
use fiord_report::{Format, TerseVersion};

use crate::live::Shown;

/// How the run is shown; `given` is the order in which the options stand.
pub(crate) fn shown(options: &ProgramOptions, given: &Given) -> Shown {
    Shown {
        formats: formats(options, given),
        terse: TerseVersion::from_number(options.terse_version).unwrap_or(TerseVersion::V3),
        eta: options.eta,
        eta_interval: duration(&options.eta_interval),
        eta_newline: options.eta_newline.as_ref().map(duration),
        status_interval: options.status_interval.as_ref().map(duration),
        idle: options.idle_prof,
    }
}

/// `--output-format` and `--minimal` say anew what is printed, `--append-terse` adds to what was said so far: the last
/// of them wins, as in fio.
fn formats(options: &ProgramOptions, given: &Given) -> Vec<Format> {
    let mut formats = vec![Format::Normal];
    for setting in given.iter() {
        match setting.spec.name {
            // The last one of several: what stands between them does not outlive it.
            "output-format" => formats = formats_of(&options.output_format),
            "minimal" => formats = vec![Format::Terse],
            "append-terse" if options.append_terse.0 && !formats.contains(&Format::Terse) => {
                formats.push(Format::Terse);
            }
            _ => {}
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
    use fiord_options::expand::{Environment, Machine};
    use fiord_options::program::resolve_program;

    use super::*;

    fn formats_of_line(line: &str) -> Vec<Format> {
        let environment = Environment {
            files: &|_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
            variables: &|_: &str| None,
            machine: Machine { cpus: 1, memory_mib: 1, page_bytes: 4096 },
        };
        let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
        let parsed = cli::read(&words, &environment).unwrap();
        let (options, given, problems) = resolve_program(&parsed.program);
        assert_eq!(problems, [], "{line}");
        shown(&options, &given).formats
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

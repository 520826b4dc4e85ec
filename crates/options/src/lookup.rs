//! From a name that was typed to the option meant, or to a problem that says what was meant instead.
//!
//! Invariant: an option is only found where fio would find it: engine options with their engine, abbreviations on
//! the command line alone.

use crate::engine;
use crate::expand::{self, Machine};
use crate::place::{Place, Problem, Source};
use crate::section::Setting;
use crate::spec::{Scope, Spec};
use crate::table::{self, Lookup};

/// The engine in force when a section says nothing.
pub(crate) const DEFAULT_ENGINE: &str = "psync";

/// The engine named last among the settings, the default engine when none names one.
pub(crate) fn engine_of<'a>(mut settings: impl DoubleEndedIterator<Item = &'a Setting>) -> &'a str {
    let named = settings.rfind(|setting| setting.spec.name == "ioengine");
    named
        .and_then(|setting| setting.value.as_deref())
        .map_or(DEFAULT_ENGINE, |value| engine::named(value.trim()))
}

/// Finds an option in a job file: the full name or an alias, of a job or of the engine.
pub(crate) fn in_job_file(name: &str, engine: &str, place: &Place) -> Result<&'static Spec, Problem> {
    match table::find_job_option(name, false, &[engine]) {
        Lookup::Found(spec) => Ok(spec),
        Lookup::Ambiguous(_) => Err(unknown(name, engine, place, None)),
        Lookup::Unknown { suggestion } => Err(habit_of_elsewhere(name, engine, place)
            .unwrap_or_else(|| unknown(name, engine, place, suggestion))),
    }
}

/// Finds an option of the command line: of the program, of a job or of the engine, abbreviated or not.
pub(crate) fn on_command_line(name: &str, engine: &str, place: &Place) -> Result<&'static Spec, Problem> {
    match table::find_command_line_option(name, &[engine]) {
        Lookup::Found(spec) => Ok(spec),
        Lookup::Ambiguous(several) => {
            let message = format!("\"{name}\" is the beginning of several options");
            Err(Problem::error(place.clone(), "", message, format!("write one of {}", several.join(", "))))
        }
        Lookup::Unknown { suggestion } => Err(unknown(name, engine, place, suggestion)),
    }
}

/// Recognises what is right on a command line but not in a job file.
fn habit_of_elsewhere(name: &str, engine: &str, place: &Place) -> Option<Problem> {
    let known = |name: &str| match table::find_job_option(name, true, &[engine]) {
        Lookup::Found(spec) => Some(spec),
        _ => None,
    };
    let problem = |message: String, remedy: String| Some(Problem::error(place.clone(), "", message, remedy));
    let undashed = name.trim_start_matches('-');
    if undashed != name && known(undashed).is_some() {
        let remedy = format!("write \"{undashed}\"");
        return problem(format!("\"{name}\": in a job file options stand without dashes"), remedy);
    }
    if let Some((word, value)) = name.split_once([' ', '\t', ':'])
        && let Some(spec) = known(word)
    {
        let remedy = format!("write \"{}={}\"", spec.name, value.trim_start());
        return problem(format!("no \"=\" between the option {} and its value", spec.name), remedy);
    }
    if let Some(spec) = known(name) {
        let remedy = format!("write \"{}\"; abbreviations work on the command line only", spec.name);
        return problem(format!("no option is called \"{name}\""), remedy);
    }
    if table::program_specs().iter().any(|spec| spec.names().any(|known| known == name)) {
        return problem(
            format!("\"{name}\" is an option of the command line, not of a job"),
            format!("take it out of the job file and give --{name} when starting fiord"),
        );
    }
    None
}

fn unknown(name: &str, engine: &str, place: &Place, suggestion: Option<&str>) -> Problem {
    let owners = owners(name);
    if !owners.is_empty() {
        let message =
            format!("\"{name}\" is an option of another engine ({}), not of {engine}", owners.join(", "));
        let remedy = match place.source {
            Source::CommandLine(_) => "set ioengine to one of these before the option, or take it out",
            Source::File(_) | Source::Derived => "set ioengine to one of these, or take it out",
        };
        return Problem::error(place.clone(), "", message, remedy);
    }
    if suggestion.is_none() && !engine_is_known(engine) {
        let message = format!("cannot tell whether the engine {engine:?} has an option \"{name}\"");
        return Problem::warning(place.clone(), "", message, "fiord does not have this engine");
    }
    let remedy = match suggestion {
        Some(suggestion) => format!("did you mean \"{suggestion}\"?"),
        None => "fiord --cmdhelp=all lists all options".to_string(),
    };
    Problem::error(place.clone(), "", format!("no option is called \"{name}\""), remedy)
}

/// The engines that have a private option of this name.
fn owners(name: &str) -> Vec<&'static str> {
    let having = table::engine_specs().filter(|spec| spec.names().any(|known| known == name));
    let mut engines: Vec<&'static str> = having
        .flat_map(|spec| match spec.scope {
            Scope::Engine(engines) => engines,
            Scope::Job | Scope::Program => &[],
        })
        .copied()
        .collect();
    engines.sort_unstable();
    engines.dedup();
    engines
}

fn engine_is_known(engine: &str) -> bool {
    match table::find_job_option("ioengine", false, &[]) {
        Lookup::Found(spec) => (spec.check)(Some(engine)).is_ok(),
        _ => false,
    }
}

/// The problem of an option that stands without the value it needs.
pub(crate) fn value_missing(spec: &Spec, place: &Place) -> Problem {
    let example = [spec.default, spec.choices.first().map_or("", |choice| choice.word)];
    let example = example.into_iter().find(|example| !example.is_empty());
    let remedy = example.map_or(String::new(), |example| format!("for example {}={example}", spec.name));
    Problem::error(place.clone(), spec.name, format!("needs a value ({})", spec.kind), remedy)
}

/// A value with its reserved keywords replaced, and the sums over them worked out where the option is a number.
///
/// fio works sums out in every value, so that `0-$ncpus` is a negative number to it; in texts, lists and words the
/// signs keep their own meaning here.
///
/// # Errors
/// The sum cannot be worked out.
pub fn with_keywords(
    spec: &Spec,
    value: Option<String>,
    machine: &Machine,
    place: &Place,
) -> Result<Option<String>, Problem> {
    let Some(value) = value else { return Ok(None) };
    let is_number = ["integer", "size", "boolean", "duration"].iter().any(|kind| spec.kind.starts_with(kind));
    match expand::keywords(&value, machine, is_number) {
        Ok(replaced) => Ok(Some(replaced)),
        // The sign may be that of a range (`4k-$pagesize`).
        Err(_) if spec.kind.contains("range") => Ok(expand::keywords(&value, machine, false).ok()),
        Err(why) => {
            let remedy = "only + - * / % ^, numbers and parentheses can stand beside a keyword";
            Err(Problem::error(place.clone(), spec.name, why, remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        match in_job_file(name, "psync", &Place::derived()) {
            Ok(spec) => format!("found {}", spec.name),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn habits_of_the_command_line_are_recognised_in_job_files() {
        assert_eq!(refusal("bs"), "found bs");
        assert!(refusal("--bs").contains("without dashes"));
        assert!(refusal("bs 4k").contains("write \"bs=4k\""));
        assert!(refusal("group_report").contains("write \"group_reporting\""));
        assert!(refusal("output").contains("an option of the command line"));
    }

    #[test]
    fn slips_get_a_suggestion_and_strangers_the_list() {
        assert!(refusal("iodpeth").contains("did you mean \"iodepth\"?"));
        assert!(refusal("xyzzyx").contains("--cmdhelp=all"));
    }

    #[test]
    fn options_of_other_engines_name_their_engines() {
        let message = refusal("sqthread_poll");
        assert!(message.contains("io_uring") && message.contains("psync"), "{message}");
        assert!(in_job_file("sqthread_poll", "io_uring", &Place::derived()).is_ok());
    }

    #[test]
    fn the_command_line_takes_abbreviations_unless_they_are_ambiguous() {
        let found = |name| on_command_line(name, "psync", &Place::derived());
        assert_eq!(found("group_r").map(|spec| spec.name), Ok("group_reporting"));
        let message = found("time").map(|spec| spec.name).map_err(|problem| problem.to_string());
        assert!(message.is_err_and(|message| message.contains("time_based")));
    }
}

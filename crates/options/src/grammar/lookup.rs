//! From a typed name to its option, or to a problem with a suggestion.
//!
//! Invariant: an option is only found where fio would find it: engine options with their engine, abbreviations on
//! the command line alone.

use std::ffi::OsString;

use fiord_stats::OrderBy;

use super::environment::KeywordValues;
use super::expand;
use crate::place::{Origin, Place};
use crate::problem::{Problem, ProblemKind};
use crate::section::Setting;
use crate::table::job::Queue;
use crate::table::{self, Lookup, Scope, Spec};
use crate::value::{EngineName, NamedEngine};

/// The engine named last among the settings, the default engine when none names one.
pub(crate) fn engine_of<'a>(mut settings: impl DoubleEndedIterator<Item = &'a Setting>) -> NamedEngine {
    let named = settings.rfind(|setting| setting.spec == Queue::ioengine);
    named
        .and_then(Setting::text)
        .map_or(NamedEngine::Known(EngineName::default()), |value| NamedEngine::of(value.trim()))
}

/// Finds an option in a job file: the full name or an alias, of a job or of the engine.
pub(crate) fn in_job_file(name: &str, engine: &NamedEngine, place: &Place) -> Result<&'static Spec, Problem> {
    match table::find_job_option(name, false, engine.known().as_slice()) {
        Lookup::Found(spec) => Ok(spec),
        Lookup::Ambiguous(_) => Err(unknown(name, engine, place, None)),
        Lookup::Unknown { suggestion } => Err(habit_of_elsewhere(name, engine, place)
            .unwrap_or_else(|| unknown(name, engine, place, suggestion))),
    }
}

/// Finds an option of the command line: of the program, of a job or of the engine, abbreviated or not.
pub(crate) fn on_command_line(
    name: &str,
    engine: &NamedEngine,
    place: &Place,
) -> Result<&'static Spec, Problem> {
    match table::find_command_line_option(name, engine.known().as_slice()) {
        Lookup::Found(spec) => Ok(spec),
        Lookup::Ambiguous(several) => {
            let message = format!("\"{name}\" is the beginning of several options");
            Err(Problem::error(
                ProblemKind::UnknownName,
                place.clone(),
                None,
                message,
                format!("write one of {}", several.join(", ")),
            ))
        }
        Lookup::Unknown { suggestion } => Err(unknown(name, engine, place, suggestion)),
    }
}

/// Recognises what is correct on a command line but not in a job file.
fn habit_of_elsewhere(name: &str, engine: &NamedEngine, place: &Place) -> Option<Problem> {
    let known = |name: &str| match table::find_job_option(name, true, engine.known().as_slice()) {
        Lookup::Found(spec) => Some(spec),
        _ => None,
    };
    let problem = |kind: ProblemKind, message: String, remedy: String| {
        Some(Problem::error(kind, place.clone(), None, message, remedy))
    };
    let undashed = name.trim_start_matches('-');
    if undashed != name && known(undashed).is_some() {
        let remedy = format!("write \"{undashed}\"");
        return problem(
            ProblemKind::Syntax,
            format!("\"{name}\": options in a job file have no dashes"),
            remedy,
        );
    }
    if let Some((word, value)) = name.split_once([' ', '\t', ':'])
        && let Some(spec) = known(word)
    {
        let remedy = format!("write \"{}={}\"", spec.name, value.trim_start());
        return problem(
            ProblemKind::Syntax,
            format!("no \"=\" between the option {} and its value", spec.name),
            remedy,
        );
    }
    if let Some(spec) = known(name) {
        let remedy = format!("write \"{}\"; abbreviations work on the command line only", spec.name);
        return problem(ProblemKind::UnknownName, format!("no option is called \"{name}\""), remedy);
    }
    if table::program_specs().any(|spec| spec.names().any(|known| known == name)) {
        return problem(
            ProblemKind::Misplaced,
            format!("\"{name}\" is an option of the command line, not of a job"),
            format!("take it out of the job file and give --{name} when starting fiord"),
        );
    }
    None
}

fn unknown(name: &str, engine: &NamedEngine, place: &Place, suggestion: Option<&str>) -> Problem {
    let owners = owners(name);
    if !owners.is_empty() {
        let message = format!(
            "\"{name}\" is an option of another engine ({}), not of {}",
            EngineName::join(&owners, ", "),
            engine.word()
        );
        let remedy = match place.source {
            Origin::CommandLine => "set ioengine to one of these before the option, or take it out",
            Origin::File(_) | Origin::Derived => "set ioengine to one of these, or take it out",
        };
        return Problem::error(ProblemKind::Misplaced, place.clone(), None, message, remedy);
    }
    if suggestion.is_none() && engine.known().is_none() {
        let message = format!("cannot tell whether the engine {:?} has an option \"{name}\"", engine.word());
        return Problem::error(
            ProblemKind::UnknownName,
            place.clone(),
            None,
            message,
            "fiord does not have this engine",
        )
        .as_warning();
    }
    let remedy = match suggestion {
        Some(suggestion) => format!("did you mean \"{suggestion}\"?"),
        None => "fiord --cmdhelp=all lists all options".to_string(),
    };
    Problem::error(
        ProblemKind::UnknownName,
        place.clone(),
        None,
        format!("no option is called \"{name}\""),
        remedy,
    )
}

/// The engines that have a private option of this name.
fn owners(name: &str) -> Vec<EngineName> {
    let having = table::engine_specs().filter(|spec| spec.names().any(|known| known == name));
    let mut engines: Vec<EngineName> = having
        .flat_map(|spec| match spec.scope {
            Scope::Engine(engines) => engines,
            Scope::Job | Scope::Program => &[],
        })
        .copied()
        .collect();
    engines.order_by_key(|engine| engine.word());
    engines.dedup();
    engines
}

/// The problem of an option that stands without the value it needs.
pub(crate) fn value_missing(spec: &'static Spec, place: &Place) -> Problem {
    let example = [spec.default, spec.choices.first().map_or("", |choice| choice.word)];
    let example = example.into_iter().find(|example| !example.is_empty());
    let remedy = example.map_or(String::new(), |example| format!("for example {}={example}", spec.name));
    Problem::error(
        ProblemKind::ValueCount,
        place.clone(),
        spec,
        format!("needs a value ({})", spec.kind),
        remedy,
    )
}

/// A value with its reserved keywords replaced, and sums with them computed if the option is a number.
///
/// fio computes sums in every value, so that it takes `0-$ncpus` for a negative number; here the signs keep their
/// meaning in texts, lists and words.
///
/// # Errors
/// The sum cannot be worked out.
pub fn with_keywords(
    spec: &'static Spec,
    value: Option<OsString>,
    values: &KeywordValues,
    place: &Place,
) -> Result<Option<OsString>, Problem> {
    let Some(value) = value else { return Ok(None) };
    match expand::keywords(&value, values, spec.kind.is_number()) {
        Ok(replaced) => Ok(Some(replaced)),
        // The sign may be that of a range (`4k-$pagesize`).
        Err(_) if spec.kind.has_ranges() => Ok(expand::keywords(&value, values, false).ok()),
        Err(why) => {
            let remedy = "only + - * / % ^, numbers and parentheses are allowed beside a keyword";
            Err(Problem::error(ProblemKind::InvalidValue, place.clone(), spec, why, remedy))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        match in_job_file(name, &NamedEngine::of("psync"), &Place::derived()) {
            Ok(spec) => format!("found {}", spec.name),
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn habits_of_the_command_line_are_recognised_in_job_files() {
        assert_eq!(refusal("bs"), "found bs");
        assert!(refusal("--bs").contains("have no dashes"));
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
        assert!(in_job_file("sqthread_poll", &NamedEngine::of("io_uring"), &Place::derived()).is_ok());
    }

    #[test]
    fn the_command_line_takes_abbreviations_unless_they_are_ambiguous() {
        let found = |name| on_command_line(name, &NamedEngine::of("psync"), &Place::derived());
        assert_eq!(found("group_r").map(|spec| spec.name), Ok("group_reporting"));
        let message = found("time").map(|spec| spec.name).map_err(|problem| problem.to_string());
        assert!(message.is_err_and(|message| message.contains("time_based")));
    }
}

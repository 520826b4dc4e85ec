//! From a name to its option: the whole table, and how names are looked up in it.
//!
//! Invariant: every name and every alias finds the option that declares it, and an abbreviation never finds one of two.

use fiord_stats::OrderBy;

use super::engine;
use super::job::JobOptions;
use super::program::ProgramOptions;
use super::set::OptionSet;
use super::spec::{Scope, Spec};
use crate::suggest;
use crate::value::EngineName;

/// The outcome of looking a name up.
#[derive(Debug, Clone)]
pub enum Lookup {
    /// The option of that name, alias or unambiguous abbreviation.
    Found(&'static Spec),
    /// An abbreviation of several options: their names, sorted.
    Ambiguous(Vec<&'static str>),
    /// No such option; perhaps the one meant.
    Unknown {
        /// The nearest name, when one is near.
        suggestion: Option<&'static str>,
    },
}

/// All job options, in the order of the reference page.
pub fn job_specs() -> impl Iterator<Item = &'static Spec> + Clone {
    JobOptions::TABLES.iter().copied().flatten().copied()
}

/// All command-line options of the program itself.
pub fn program_specs() -> impl Iterator<Item = &'static Spec> + Clone {
    ProgramOptions::TABLES.iter().copied().flatten().copied()
}

/// The private options of all engines; `Spec::scope` names the engines.
pub fn engine_specs() -> impl Iterator<Item = &'static Spec> + Clone {
    engine::sets().into_iter().flatten().copied().flatten().copied()
}

/// Looks up a job option, or one private to any of `engines`. With `abbreviations` (the command line), a prefix
/// that fits one option only will do.
pub fn find_job_option(name: &str, abbreviations: bool, engines: &[EngineName]) -> Lookup {
    find(name, abbreviations, job_specs().chain(private_specs(engines)))
}

/// Looks up any option of the command line as `getopt_long` does: program, job and engine options in one list, so
/// that an abbreviation must be unambiguous among all of them. `Spec::scope` is the kind that was found.
pub fn find_command_line_option(name: &str, engines: &[EngineName]) -> Lookup {
    find(name, true, program_specs().chain(job_specs()).chain(private_specs(engines)))
}

/// The options private to any of `engines`.
fn private_specs<'a>(engines: &'a [EngineName]) -> impl Iterator<Item = &'static Spec> + Clone + 'a {
    engine_specs().filter(move |spec| match spec.scope {
        Scope::Engine(names) => names.iter().any(|name| engines.contains(name)),
        Scope::Job | Scope::Program => false,
    })
}

fn find(name: &str, abbreviations: bool, specs: impl Iterator<Item = &'static Spec> + Clone) -> Lookup {
    if let Some(spec) = specs.clone().find(|spec| spec.names().any(|known| known == name)) {
        return Lookup::Found(spec);
    }
    if abbreviations && !name.is_empty() {
        let mut fitting: Vec<&'static Spec> =
            specs.clone().filter(|spec| spec.names().any(|known| known.starts_with(name))).collect();
        fitting.order_by_key(|spec| spec.name);
        fitting.dedup_by_key(|spec| spec.name);
        match fitting.as_slice() {
            [] => {}
            [only] => return Lookup::Found(only),
            several => return Lookup::Ambiguous(several.iter().map(|spec| spec.name).collect()),
        }
    }
    Lookup::Unknown { suggestion: suggest::nearest(name, specs.flat_map(Spec::names)) }
}

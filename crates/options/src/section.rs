//! What was typed, in order: the value between the grammars (job file, command line) and the table.
//!
//! Invariant: a section is text; nothing in it has been parsed as a value yet, and nothing in it is read by a grammar
//! again. Files that nobody typed are paths from the beginning.

use std::path::PathBuf;

use crate::place::Place;
use crate::spec::Spec;
use crate::table::{self, Lookup};

/// One `option=value` as typed, after `${VAR}` and keyword expansion.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The option it sets.
    pub spec: &'static Spec,
    /// The spelling the user chose (alias or abbreviation).
    pub spelling: String,
    /// The value; `None` for a bare flag. This is what fio echoes in JSON (`""` for `None`).
    pub value: Option<String>,
    /// Where the option's name starts.
    pub place: Place,
    /// Where the value starts; the same as `place` for a bare flag.
    pub value_place: Place,
}

/// One job section (or one `--name` on the command line): what applies to it from `[global]`, then its own.
#[derive(Debug, Clone)]
pub struct Section {
    /// The section's name (`[name]`) or the value of `--name`.
    pub name: String,
    /// Settings inherited from the globals in force where the section stands, in order.
    pub global: Vec<Setting>,
    /// The section's own settings, in order. On the command line `name` itself is among them.
    pub own: Vec<Setting>,
    /// Where the section's name stands.
    pub place: Place,
    /// The files the job works on, as paths to be used as they are. Where there are some, no option names files; where
    /// there are none, the options do.
    pub files: Vec<PathBuf>,
}

impl Setting {
    /// A setting that nobody typed.
    pub fn new(spec: &'static Spec, value: impl Into<String>) -> Setting {
        Setting {
            spec,
            spelling: spec.name.to_string(),
            value: Some(value.into()),
            place: Place::derived(),
            value_place: Place::derived(),
        }
    }

    /// The same of the job option of this name.
    ///
    /// # Panics
    /// When there is no such option: the name is written in the program, not typed.
    pub fn of(option: &str, value: impl Into<String>) -> Setting {
        match table::find_job_option(option, false, &[]) {
            Lookup::Found(spec) => Setting::new(spec, value),
            Lookup::Ambiguous(_) | Lookup::Unknown { .. } => {
                panic!("no option of a job is called {option:?}")
            }
        }
    }
}

impl Section {
    /// A section of this name that nobody typed, without settings.
    pub fn new(name: impl Into<String>) -> Section {
        let (name, place) = (name.into(), Place::derived());
        Section { name, global: Vec::new(), own: Vec::new(), place, files: Vec::new() }
    }

    /// With these settings behind its own.
    ///
    /// # Panics
    /// As [`Setting::of`].
    #[must_use]
    pub fn with<'a>(mut self, settings: impl IntoIterator<Item = (&'a str, String)>) -> Section {
        self.own.extend(settings.into_iter().map(|(option, value)| Setting::of(option, value)));
        self
    }

    /// Every setting: what it inherits, then its own.
    pub fn settings(&self) -> impl DoubleEndedIterator<Item = &Setting> {
        self.global.iter().chain(&self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_nobody_typed_are_those_of_the_table() {
        let section = Section::new("a").with([("rw", "randread".to_string()), ("bs", "4k".to_string())]);
        let (options, _, problems) = crate::job::resolve(&section);
        assert_eq!((options.rw.kind.word(), problems.len()), ("randread", 0));
        let wrong = Section::new("a").with([("rw", "raed".to_string())]);
        assert_eq!(crate::job::resolve(&wrong).2.len(), 1, "a value goes through its option's own parser");
    }

    #[test]
    #[should_panic(expected = "no option of a job is called \"rv\"")]
    fn a_name_that_is_none_does_not_pass() {
        let _ = Section::new("a").with([("rv", "read".to_string())]);
    }
}

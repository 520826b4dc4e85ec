//! The typed settings, in order: the value between the grammars (job file, command line) and the table.
//!
//! Invariant: a section is what was typed, byte for byte; nothing in it has been parsed as a value yet, and nothing in
//! it is parsed by a grammar again. Files that the user did not type are paths from the beginning.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::place::Place;
use crate::table::Spec;

/// One `option=value` as typed, after `${VAR}` and keyword expansion.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The option it sets.
    pub spec: &'static Spec,
    /// The spelling the user chose (alias or abbreviation).
    pub spelling: String,
    /// The value; `None` for a bare flag. This is what fio echoes in JSON (`""` for `None`).
    pub value: Option<OsString>,
    /// Where the option's name starts.
    pub place: Place,
    /// Where the value starts; the same as `place` for a bare flag.
    pub value_place: Place,
}

/// One job section (or one `--name` on the command line): what applies to it from `[global]`, then its own.
#[derive(Debug, Clone)]
pub struct Section {
    /// The section's name (`[name]`) or the value of `--name`.
    pub name: OsString,
    /// Settings inherited from the globals before the section, in order.
    pub global: Vec<Setting>,
    /// The section's own settings, in order. On the command line `name` itself is among them.
    pub own: Vec<Setting>,
    /// The place of the section's name.
    pub place: Place,
    /// The files the job works on, as paths to be used unchanged. If there are none, options name the files.
    pub files: Vec<PathBuf>,
}

impl Setting {
    /// The value as text: `None` for a bare flag, and for a path or free text that is not UTF-8.
    pub fn text(&self) -> Option<&str> {
        self.value.as_deref()?.to_str()
    }

    /// The value as it may be shown: masked if the option is secret.
    pub fn shown_value(&self) -> Option<OsString> {
        self.value.as_deref().map(|value| self.spec.shown_value(value))
    }

    /// A setting that the user did not type.
    pub fn new(spec: &'static Spec, value: impl Into<OsString>) -> Setting {
        Setting {
            spec,
            spelling: spec.name.to_string(),
            value: Some(value.into()),
            place: Place::derived(),
            value_place: Place::derived(),
        }
    }
}

impl Section {
    /// A section of this name that the user did not type, without settings.
    pub fn new(name: impl Into<OsString>) -> Section {
        let (name, place) = (name.into(), Place::derived());
        Section { name, global: Vec::new(), own: Vec::new(), place, files: Vec::new() }
    }

    /// With these settings after its own.
    #[must_use]
    pub fn with<V: Into<OsString>>(
        mut self,
        settings: impl IntoIterator<Item = (&'static Spec, V)>,
    ) -> Section {
        self.own.extend(settings.into_iter().map(|(option, value)| Setting::new(option, value)));
        self
    }

    /// Every setting: what it inherits, then its own.
    pub fn settings(&self) -> impl DoubleEndedIterator<Item = &Setting> {
        self.global.iter().chain(&self.own)
    }

    /// The setting in force for the option: the last one.
    pub fn last(&self, option: &Spec) -> Option<&Setting> {
        self.settings().rfind(|setting| setting.spec == option)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::table::job::{Access, Blocks, Files};

    #[test]
    fn settings_that_were_not_typed_are_those_of_the_table() {
        let section = Section::new("a").with([(Access::rw, "randread"), (Blocks::bs, "4k")]);
        let (options, _, problems) =
            crate::resolve::resolve_job(&section, &[crate::value::EngineName::Psync]);
        assert_eq!((options.access.rw.kind.word(), problems.len()), ("randread", 0));
        let wrong = Section::new("a").with([(Access::rw, "raed")]);
        assert_eq!(
            crate::resolve::resolve_job(&wrong, &[crate::value::EngineName::Psync]).2.len(),
            1,
            "a value goes through its option's own parser"
        );
    }

    #[test]
    fn the_text_of_a_setting_is_its_value_unless_that_is_not_utf_8() {
        let read = Setting::new(Access::rw, "read");
        assert_eq!(read.text(), Some("read"));
        assert_eq!(Setting::new(Files::filename, OsStr::from_bytes(b"/d/\xff")).text(), None);
        assert_eq!(Setting { value: None, ..read }.text(), None, "a bare flag");
    }

    #[test]
    fn the_last_setting_of_an_option_is_in_force() {
        let inherited = vec![Setting::new(Access::rw, "write"), Setting::new(Blocks::bs, "8k")];
        let section = Section { global: inherited, ..Section::new("a") };
        let section = section.with([(Access::rw, "read"), (Access::rw, "randread")]);
        let last = |option| section.last(option).and_then(Setting::text);
        assert_eq!(
            (last(Access::rw), last(Blocks::bs), last(Access::direct)),
            (Some("randread"), Some("8k"), None)
        );
    }
}

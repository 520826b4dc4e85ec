//! The typed settings, in order: the value between the grammars (job file, command line) and the table.
//!
//! Invariant: a section is what was typed, byte for byte; nothing in it has been parsed as a value yet, and nothing in
//! it is parsed by a grammar again. Files that the user did not type are paths from the beginning. Sections share what
//! they inherit, however many they are.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use crate::place::Place;
use crate::table::Spec;
use crate::table::job::General;

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
    pub global: Globals,
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

    /// As one argument of a command line.
    pub fn as_argument(&self) -> OsString {
        let mut argument = OsString::from(format!("--{}", self.spec.name));
        if let Some(value) = &self.value {
            argument.push("=");
            argument.push(value);
        }
        argument
    }

    /// As reports echo it: its name, and its value as programs read it.
    pub fn echoed(&self) -> (String, String) {
        (self.spec.name.to_string(), self.shown_value().map(crate::shown::text).unwrap_or_default())
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
        Section { name, global: Globals::default(), own: Vec::new(), place, files: Vec::new() }
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

/// What a section inherits, in order: the beginning of a list, up to where the section stands. The sections of a file, or
/// of the command line, have one list.
#[derive(Debug, Clone)]
pub struct Globals {
    list: Arc<[Setting]>,
    count: usize,
}

impl Globals {
    /// What jobs inherit of these settings: all but the name, which fio does not pass on.
    pub fn inheritable<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> Globals {
        settings.into_iter().filter(|setting| is_inheritable(setting)).cloned().collect()
    }

    /// The first `count` of them, in the same list.
    pub fn first(&self, count: usize) -> Globals {
        Globals { list: Arc::clone(&self.list), count: count.min(self.count) }
    }

    /// The settings behind those of `before`; `None` if these do not begin with those.
    pub fn since(&self, before: &Globals) -> Option<&[Setting]> {
        let begins_so = before.count == 0 || Arc::ptr_eq(&self.list, &before.list);
        self.get(before.count..).filter(|_| begins_so)
    }
}

/// How many of these settings jobs inherit.
pub(crate) fn count_inheritable(settings: &[Setting]) -> usize {
    settings.iter().filter(|setting| is_inheritable(setting)).count()
}

fn is_inheritable(setting: &Setting) -> bool {
    setting.spec != General::name
}

/// Makes of each setting of the sections, inherited or their own, what `change` makes of it; `None` removes it. What
/// they share stays shared.
pub fn change_settings(sections: &mut [Section], change: impl Fn(&Setting) -> Option<Setting>) {
    // The list of the section before: as it was, as it is, and how many are left of its beginnings.
    let mut last: Option<(Arc<[Setting]>, Globals, Vec<usize>)> = None;
    for section in sections {
        section.own = section.own.iter().filter_map(&change).collect();
        let Globals { list, count } = &section.global;
        let (_, changed, left) = match last.take().filter(|(before, ..)| Arc::ptr_eq(before, list)) {
            Some(same) => last.insert(same),
            None => {
                let (mut changed, mut left) = (Vec::with_capacity(list.len()), vec![0]);
                for setting in list.iter() {
                    changed.extend(change(setting));
                    left.push(changed.len());
                }
                last.insert((Arc::clone(list), Globals::from(changed), left))
            }
        };
        section.global = changed.first(left[*count]);
    }
}

impl Default for Globals {
    fn default() -> Globals {
        Globals::from(Vec::new())
    }
}

impl From<Vec<Setting>> for Globals {
    fn from(settings: Vec<Setting>) -> Globals {
        Globals { count: settings.len(), list: settings.into() }
    }
}

impl FromIterator<Setting> for Globals {
    fn from_iter<I: IntoIterator<Item = Setting>>(settings: I) -> Globals {
        Globals::from(settings.into_iter().collect::<Vec<Setting>>())
    }
}

impl Deref for Globals {
    type Target = [Setting];

    fn deref(&self) -> &[Setting] {
        &self.list[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::grammar::testing::{read_text, settings};
    use crate::table::job::{Access, Blocks, Files};

    const TEXT: &str = "[global]\nbs=4k\n[a]\n[global]\nrw=read\nbs=,8k\n[b]\nbs=1k\n[c]\n";

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
        let section = Section { global: inherited.into(), ..Section::new("a") };
        let section = section.with([(Access::rw, "read"), (Access::rw, "randread")]);
        let last = |option| section.last(option).and_then(Setting::text);
        assert_eq!(
            (last(Access::rw), last(Blocks::bs), last(Access::direct)),
            (Some("randread"), Some("8k"), None)
        );
    }

    #[test]
    fn jobs_of_one_file_share_one_list() {
        let sections = read_text(TEXT).unwrap().sections;
        let [a, b, c] = sections.as_slice() else { panic!("{sections:?}") };
        assert!(sections.iter().all(|section| Arc::ptr_eq(&section.global.list, &a.global.list)));
        assert_eq!(b.global.since(&a.global).map(settings).as_deref(), Some("rw=read bs=,8k"));
        assert_eq!(c.global.since(&b.global).map(settings).as_deref(), Some(""));
        assert!(a.global.since(&b.global).is_none(), "b's are more");
        let other = Globals::inheritable([&Setting::new(Blocks::bs, "4k")]);
        assert!(b.global.since(&other).is_none(), "equal settings of another list");
        assert_eq!(b.global.since(&Globals::default()).map(<[Setting]>::len), Some(3));
    }

    #[test]
    fn what_is_shared_stays_shared_when_it_changes() {
        let mut sections = read_text(TEXT).unwrap().sections;
        change_settings(&mut sections, |setting| match setting.spec == Blocks::bs {
            true => setting.text().is_some_and(|text| text.starts_with(',')).then(|| setting.clone()),
            false => Some(Setting::new(Access::rw, "write")),
        });
        let shown: Vec<String> = sections
            .iter()
            .map(|section| format!("{}|{}", settings(&section.global), settings(&section.own)))
            .collect();
        assert_eq!(shown, ["|", "rw=write bs=,8k|", "rw=write bs=,8k|"]);
        let list = &sections[0].global.list;
        assert!(sections.iter().all(|section| Arc::ptr_eq(&section.global.list, list)));
    }
}

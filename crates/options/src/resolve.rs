//! From settings to typed values: what is in force, and everything that is wrong with it.
//!
//! Invariant: every problem of the settings is reported, not the first; the last setting of an option wins.

use crate::place::{Problem, Source};
use crate::section::Setting;
use crate::spec::Status;
use crate::table::{Applied, OptionSet};
use crate::value::{KbBase, Reading, Value};

/// What was given, before resolving: each setting with its spelling, text and place.
#[derive(Debug, Clone, Default)]
pub struct Given {
    settings: Vec<Setting>,
}

impl Given {
    /// The setting in force for the option of this canonical name: the last one given.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.spec.name == name)
    }

    /// Every setting of the option of this canonical name, in order (`--section` may be repeated).
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.settings.iter().filter(move |setting| setting.spec.name == name)
    }

    /// Every setting, inherited ones first, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }
}

/// Applies settings in order on top of the defaults.
pub(crate) fn resolve_settings<T: OptionSet>(settings: Vec<Setting>) -> (T, Given, Vec<Problem>) {
    let mut set = T::default();
    let mut problems = Vec::new();
    let bases = kb_bases(&settings);
    for (index, (setting, kb_base)) in settings.iter().zip(bases).enumerate() {
        let mut reading = Reading { kb_base, ..Reading::default() };
        let overridden = settings[index + 1..].iter().any(|later| later.spec.is(setting.spec));
        match set.apply(setting, &mut reading) {
            Some(Err(why)) => problems.push(value_problem(setting, why)),
            Some(Ok(Applied::NotRead)) if !overridden => problems.extend(not_read_problem(setting)),
            // Options of an engine that is not built in belong to no set.
            None => {
                let checked = (setting.spec.check)(setting.value.as_deref());
                problems.extend(checked.err().map(|why| value_problem(setting, why)));
            }
            Some(Ok(_)) => {}
        }
        let place = &setting.value_place;
        let notes = reading.notes.into_iter();
        problems.extend(notes.map(|note| Problem::warning(place.clone(), setting.spec.name, note, "")));
    }
    (set, Given { settings }, problems)
}

/// A value that is not one of the option's.
fn value_problem(setting: &Setting, why: String) -> Problem {
    let allowed = match setting.spec.name {
        // Not the engines fio has elsewhere.
        "ioengine" => crate::engine::built().join(", "),
        _ => setting.spec.allowed(),
    };
    let remedy = match why.contains("did you mean") || allowed.is_empty() {
        true => String::new(),
        false => format!("allowed: {allowed}"),
    };
    Problem::error(setting.value_place.clone(), setting.spec.name, why, remedy)
}

/// An option that asks for something fiord does not do.
fn not_read_problem(setting: &Setting) -> Option<Problem> {
    let name = setting.spec.name;
    match setting.spec.status {
        Status::Pending(why) => {
            let message = format!("known to fio, not built into fiord yet: {why}");
            Some(Problem::error(setting.place.clone(), name, message, ""))
        }
        Status::Ignored(why) => {
            let message = format!("accepted without effect: {why}");
            Some(Problem::warning(setting.place.clone(), name, message, ""))
        }
        Status::Ready | Status::Dormant(_) => None,
    }
}

/// The meaning of suffixes each setting is read under. fio reads `kb_base` before the other options of a job file's
/// section; on the command line it counts from where it stands.
fn kb_bases(settings: &[Setting]) -> Vec<KbBase> {
    let given = |setting: &Setting| match setting.spec.name {
        "kb_base" => KbBase::parse(setting.value.as_deref()?, &mut Reading::default()).ok(),
        _ => None,
    };
    let mut base = KbBase::default();
    let mut bases = Vec::with_capacity(settings.len());
    for (index, setting) in settings.iter().enumerate() {
        let starts_file = matches!(setting.place.source, Source::File(_))
            && (index == 0 || settings[index - 1].place.source != setting.place.source);
        if starts_file {
            let same_file =
                settings[index..].iter().take_while(|later| later.place.source == setting.place.source);
            base = same_file.filter_map(given).last().unwrap_or(base);
        }
        base = given(setting).unwrap_or(base);
        bases.push(base);
    }
    bases
}

//! The job of a study with what the study adds to it: when it ends, where it runs, how it is reported.
//!
//! Invariant: settings the user typed are never overridden.

use std::collections::BTreeSet;
use std::time::Duration;

use fiord_engine::registry;
use fiord_lab::StudyTarget;
use fiord_lab::sweep::{Key, SweptJob};
use fiord_options::{Section, Setting, Spec, change_settings, job};
use fiord_report::path::shown;
use fiord_session::study::target;

use super::job_file::{FILES, as_typed};
use super::typed_job::TypedJob;

/// Options, beside `runtime`, that say when a job ends.
const ENDS: [&Spec; 5] = [
    job::Time::time_based,
    job::Amount::io_size,
    job::Access::number_ios,
    job::General::loops,
    job::Amount::fill_device,
];

/// A job as typed, and the settings added to it.
pub(crate) struct CompletedJob<'a> {
    typed: &'a TypedJob,
    keys: &'a [Key],
    /// The scratch file, if the job names no file.
    own_target: Option<&'a StudyTarget>,
    added: Vec<(&'static Spec, String)>,
}

impl<'a> CompletedJob<'a> {
    /// Completes a job whose points each run for `each` unless the job says when it ends, on a scratch file if it names
    /// no file.
    pub(crate) fn new(
        typed: &'a TypedJob,
        keys: &'a [Key],
        each: Duration,
        own_target: Option<&'a StudyTarget>,
    ) -> CompletedJob<'a> {
        let mut added = Vec::new();
        let mut add = |option: &'static Spec, value: String| {
            if !typed.is_given(option, keys) {
                added.push((option, value));
            }
        };
        if !ENDS.iter().any(|option| typed.is_given(option, keys)) {
            add(job::Time::runtime, runtime(each));
            add(job::Time::time_based, "1".to_string());
        }
        // Several jobs get a row each.
        if typed.sections.len() == 1 {
            add(job::Measure::group_reporting, "1".to_string());
        }
        if let Some(own_target) = own_target {
            add(job::Amount::size, own_target.size_bytes.to_string());
            if !typed.is_given(job::Access::buffered, keys) {
                add(job::Access::direct, u8::from(own_target.direct).to_string());
            }
        }
        // Synchronous engines ignore the depth.
        if keys.iter().any(|key| key.spec == job::Queue::iodepth) {
            add(job::Queue::ioengine, target::queued_engine().to_string());
        }
        CompletedJob { typed, keys, own_target, added }
    }

    /// The heading printed before the first run.
    pub(crate) fn heading(&self) -> Vec<(&'static str, String)> {
        let CompletedJob { typed, keys, own_target, added } = self;
        let mut heading = Vec::new();
        let names_target = |setting: &&Setting| setting.spec.is_one_of(&FILES);
        let mut targets: Vec<String> = typed.settings().filter(names_target).map(as_typed).collect();
        let mut seen = BTreeSet::new();
        targets.retain(|target| seen.insert(target.clone()));
        if own_target.is_none() && !targets.is_empty() {
            heading.push(("Target", targets.join(", ")));
        }
        let globals = typed.sections.first().map_or(&[][..], |first| &first.global);
        let job: Vec<String> =
            globals.iter().filter(|setting| is_kept(setting, keys)).map(as_typed).collect();
        let mut jobs: Vec<String> = if job.is_empty() { Vec::new() } else { vec![job.join(" ")] };
        for Section { name, own, .. } in &typed.sections {
            let own: Vec<String> =
                own.iter().filter(|setting| is_kept(setting, keys)).map(as_typed).collect();
            if typed.sections.len() > 1 || !own.is_empty() {
                jobs.push(format!("[{}] {}", shown(name), own.join(" ")).trim_end().to_string());
            }
        }
        let names = ["Job"].into_iter().chain(std::iter::repeat(""));
        heading.extend(names.zip(jobs));
        let settings: Vec<String> =
            added.iter().map(|(option, value)| format!("{}={value}", option.name)).collect();
        heading.push(("Added", settings.join(" ")));
        let cached = own_target.is_none()
            && ![job::Access::direct, job::Access::buffered]
                .iter()
                .any(|option| typed.is_given(option, keys));
        let is_cached = |engine| {
            let known = registry::ENGINES.find(engine);
            known.is_none_or(|known| known.touches_files() && !known.bypasses_cache())
        };
        if cached && typed.engines().into_iter().all(is_cached) {
            let note =
                "without direct=1 reads and writes go through the page cache, which the figures include";
            heading.push(("Note", note.to_string()));
        }
        heading
    }

    /// The job without the swept options, as settings that are not parsed again.
    pub(crate) fn job(&self) -> SweptJob {
        let CompletedJob { typed, keys, own_target, added } = self;
        let mut sections = typed.sections.clone();
        change_settings(&mut sections, |setting| is_kept(setting, keys).then(|| setting.clone()));
        for section in &mut sections {
            section.own.extend(added.iter().map(|(option, value)| Setting::new(option, value)));
            section.files = own_target.iter().map(|own_target| own_target.file.clone()).collect();
        }
        // In one job file with all runs, as a dry run prints it, each run waits for the one before.
        if let Some(first) = sections.first_mut().filter(|_| typed.value(job::Process::stonewall).is_none()) {
            first.own.push(Setting::new(job::Process::stonewall, "1"));
        }
        SweptJob { sections }
    }
}

/// Whether the job says when it ends, by time or otherwise.
pub(crate) fn says_when_it_ends(typed: &TypedJob, keys: &[Key]) -> bool {
    ENDS.iter().chain(&[job::Time::runtime]).any(|option| typed.is_given(option, keys))
}

/// Whether a setting stays in the job: not `name`, which is the section's, and not a swept option.
fn is_kept(setting: &Setting, keys: &[Key]) -> bool {
    setting.spec != job::General::name && keys.iter().all(|key| key.spec != setting.spec)
}

/// A duration as job files take it: in seconds if it is a whole number of them.
fn runtime(time: Duration) -> String {
    match time.subsec_nanos() {
        0 => time.as_secs().to_string(),
        _ => format!("{}ms", time.as_millis().max(1)),
    }
}

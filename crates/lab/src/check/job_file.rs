//! A profile's job file, cut into the stages that are run one after another.
//!
//! Invariant: a job file is parsed once and contains no path of the user's; a placed stage differs from it only in its
//! files, times, sizes, direct I/O and stonewall.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::{Section, Setting, Spec, change_settings, cli, job};
use fiord_report::path;

/// Where a profile is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProfileTarget {
    /// The directory for its files.
    pub directory: PathBuf,
    /// Whether direct I/O works there.
    pub direct: bool,
    /// The size of its large files, in bytes.
    pub size_bytes: u64,
}

/// The size of large files as job files give it.
const LARGE: &str = "1g";

/// Jobs that run concurrently.
#[derive(Debug)]
pub(super) struct Stage {
    /// Its first job.
    pub name: String,
    /// Its jobs, with what they inherit.
    sections: Vec<Section>,
    /// The most seconds it runs; 0 if it runs until everything is written.
    pub seconds: u64,
}

/// The stages, which begin at the sections with a `stonewall`.
pub(super) fn stages(job_file: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for section in read(job_file) {
        let seconds = text(&section, job::Time::runtime).and_then(|text| text.parse().ok()).unwrap_or(0);
        let begins = section.last(job::Process::stonewall).is_some();
        match stages.last_mut() {
            Some(stage) if !begins => {
                stage.sections.push(section);
                stage.seconds = stage.seconds.max(seconds);
            }
            _ => stages.push(Stage { name: path::text(&section.name), sections: vec![section], seconds }),
        }
    }
    stages
}

/// The sections of a built-in job file.
///
/// # Panics
/// It cannot be parsed; a test reads every profile.
#[expect(clippy::panic, reason = "documented; a test reads every profile")]
fn read(job_file: &str) -> Vec<Section> {
    let read_file = |_: &OsStr| Ok(job_file.as_bytes().to_vec());
    let environment = Environment {
        files: &read_file,
        variables: &|_| None,
        keywords: KeywordValues { cpus: 1, memory_mib: 1, page_bytes: 1 },
        engines: &[],
    };
    match cli::read(&["profile"], &environment) {
        Ok(parsed) => parsed.sections,
        Err(problems) => panic!("a built-in profile cannot be parsed: {problems:?}"),
    }
}

/// The value of an option in force.
fn text<'a>(section: &'a Section, option: &Spec) -> Option<&'a str> {
    section.last(option)?.text()
}

impl Stage {
    /// Its jobs with their files in this place and with this run time, after all earlier jobs.
    pub fn placed(&self, place: &ProfileTarget, time: Duration) -> Vec<Section> {
        let mut sections = self.sections.clone();
        for section in &mut sections {
            // The file of a job without `filename` has the job's name.
            let file = text(section, job::Files::filename).map_or(section.name.as_os_str(), OsStr::new);
            section.files = vec![place.directory.join(file)];
        }
        change_settings(&mut sections, |setting| placed(setting, place, time));
        if let Some(first) =
            sections.first_mut().filter(|first| first.last(job::Process::stonewall).is_none())
        {
            first.own.push(Setting::new(job::Process::stonewall, "1"));
        }
        sections
    }
}

/// A setting of a job in this place, with this run time; `None` for the name of a file elsewhere.
fn placed(setting: &Setting, place: &ProfileTarget, time: Duration) -> Option<Setting> {
    let is = |option, value| setting.spec == option && setting.text() == Some(value);
    let value = if setting.spec == job::Files::filename {
        return None;
    } else if is(job::Access::direct, "1") {
        u8::from(place.direct).to_string()
    } else if is(job::Amount::size, LARGE) {
        place.size_bytes.to_string()
    } else if setting.spec == job::Time::runtime {
        format!("{}ms", time.as_millis().max(1))
    } else {
        return Some(setting.clone());
    };
    Some(Setting { value: Some(value.into()), ..setting.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Step;
    use crate::testing::settings;

    const FILE: &str = "# Why\n[global]\nsize=1g\ndirect=1\n\n[a]\nruntime=3\n\n\
                        [b]\nstonewall=1\nruntime=4\nfilename=f\n[c]\nruntime=5\ndirect=0\n";

    fn text(sections: &[Section]) -> String {
        settings(&Step::prepare("", sections.to_vec()))
    }

    #[test]
    fn a_stage_ends_before_the_next_stonewall() {
        let stages = stages(FILE);
        let found: Vec<_> = stages.iter().map(|stage| (stage.name.as_str(), stage.seconds)).collect();
        assert_eq!(found, [("a", 3), ("b", 5)]);
        assert_eq!(text(&stages[0].sections), "[a] size=1g direct=1 runtime=3");
        assert_eq!(
            text(&stages[1].sections),
            "[b] size=1g direct=1 stonewall=1 runtime=4 filename=f\n[c] size=1g direct=1 runtime=5 direct=0"
        );
    }

    #[test]
    fn a_place_changes_only_files_size_direct_and_time() {
        let place =
            ProfileTarget { directory: PathBuf::from("/a:b;#$ncpus"), direct: false, size_bytes: 4096 };
        let placed = |stage: usize| stages(FILE)[stage].placed(&place, Duration::from_millis(1500));
        assert_eq!(text(&placed(0)), "[a] size=4096 direct=0 runtime=1500ms stonewall=1");
        assert_eq!(placed(0)[0].files, [PathBuf::from("/a:b;#$ncpus/a")]);
        assert_eq!(
            text(&placed(1)),
            "[b] size=4096 direct=0 stonewall=1 runtime=1500ms\n[c] size=4096 direct=0 runtime=1500ms direct=0"
        );
        assert_eq!(placed(1)[0].files, [PathBuf::from("/a:b;#$ncpus/f")]);
    }
}

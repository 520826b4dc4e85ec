//! A profile's job file, cut into the stages that are run one after another.
//!
//! Invariant: a job file is read as text once, without any path of the user's in it; a placed stage differs from what it
//! says in its files, its times, its sizes, whether it is direct and what it waits for, and in nothing else.

use std::path::PathBuf;
use std::time::Duration;

use fiord_options::expand::{Environment, Machine};
use fiord_options::{Section, Setting, cli};

/// Where a profile is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The directory for its files.
    pub directory: PathBuf,
    /// Whether direct I/O works there.
    pub direct: bool,
    /// How large its large files are, in bytes.
    pub size_bytes: u64,
}

/// What a job file gives as the size of its large files.
const LARGE: &str = "1g";

/// Jobs that are run side by side.
#[derive(Debug)]
pub(super) struct Stage {
    /// Its first job.
    pub name: String,
    /// Its jobs, with what they inherit.
    sections: Vec<Section>,
    /// How long it runs, at most; 0 for one that runs until all is written.
    pub seconds: u64,
}

/// The stages, which begin at the sections with a `stonewall`.
pub(super) fn stages(job_file: &str) -> Vec<Stage> {
    let mut stages: Vec<Stage> = Vec::new();
    for section in read(job_file) {
        let seconds = last(&section, "runtime").and_then(|text| text.parse().ok()).unwrap_or(0);
        let begins = section.settings().any(|setting| setting.spec.name == "stonewall");
        match stages.last_mut() {
            Some(stage) if !begins => {
                stage.sections.push(section);
                stage.seconds = stage.seconds.max(seconds);
            }
            _ => stages.push(Stage { name: section.name.clone(), sections: vec![section], seconds }),
        }
    }
    stages
}

/// The sections of a job file of fiord's own.
///
/// # Panics
/// When it is none; a test reads every profile.
fn read(job_file: &str) -> Vec<Section> {
    let text = |_: &str| Ok(job_file.as_bytes().to_vec());
    let environment = Environment {
        files: &text,
        variables: &|_| None,
        machine: Machine { cpus: 1, memory_mib: 1, page_bytes: 1 },
    };
    match cli::read(&["profile".to_string()], &environment) {
        Ok(parsed) => parsed.sections,
        Err(problems) => panic!("a profile of fiord's own is no job file: {problems:?}"),
    }
}

/// What an option is set to, the last time.
fn last<'a>(section: &'a Section, option: &str) -> Option<&'a str> {
    section.settings().rfind(|setting| setting.spec.name == option)?.value.as_deref()
}

impl Stage {
    /// Its jobs with their files in the place, in this time, after all that was run before them.
    pub fn placed(&self, place: &Place, time: Duration) -> Vec<Section> {
        let mut sections: Vec<Section> =
            self.sections.iter().map(|section| placed(section, place, time)).collect();
        if let Some(first) = sections.first_mut().filter(|first| last(first, "stonewall").is_none()) {
            first.own.push(Setting::of("stonewall", "1"));
        }
        sections
    }
}

fn placed(section: &Section, place: &Place, time: Duration) -> Section {
    let mut section = section.clone();
    // A job that names no file has one of its own name.
    let file = last(&section, "filename").unwrap_or(&section.name);
    section.files = vec![place.directory.join(file)];
    for settings in [&mut section.global, &mut section.own] {
        settings.retain(|setting| setting.spec.name != "filename");
        for setting in settings {
            match (setting.spec.name, setting.value.as_deref()) {
                ("direct", Some("1")) => setting.value = Some(u8::from(place.direct).to_string()),
                ("size", Some(LARGE)) => setting.value = Some(place.size_bytes.to_string()),
                ("runtime", _) => setting.value = Some(format!("{}ms", time.as_millis().max(1))),
                _ => {}
            }
        }
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::Step;
    use crate::testing::settings;

    const FILE: &str = "# Why\n[global]\nsize=1g\ndirect=1\n\n[a]\nruntime=3\n\n\
                        [b]\nstonewall=1\nruntime=4\nfilename=f\n[c]\nruntime=5\ndirect=0\n";

    fn text(sections: &[Section]) -> String {
        settings(&Step::prepare("", sections.to_vec()))
    }

    #[test]
    fn a_stage_is_what_stands_up_to_the_next_stonewall() {
        let stages = stages(FILE);
        let told: Vec<_> = stages.iter().map(|stage| (stage.name.as_str(), stage.seconds)).collect();
        assert_eq!(told, [("a", 3), ("b", 5)]);
        assert_eq!(text(&stages[0].sections), "[a] size=1g direct=1 runtime=3");
        assert_eq!(
            text(&stages[1].sections),
            "[b] size=1g direct=1 stonewall=1 runtime=4 filename=f\n[c] size=1g direct=1 runtime=5 direct=0"
        );
    }

    #[test]
    fn a_place_changes_files_size_direct_and_time_alone() {
        let place = Place { directory: PathBuf::from("/a:b;#$ncpus"), direct: false, size_bytes: 4096 };
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

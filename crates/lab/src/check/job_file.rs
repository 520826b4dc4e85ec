//! A profile's job file, cut into the stages that are run one after another.
//!
//! Invariant: the global section with the stages behind it is the job file; a placed stage differs from it in its
//! directory, its times, its sizes and whether it is direct, and in nothing else.

use std::time::Duration;

/// Where a profile is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The directory for its files, as job files write it.
    pub directory: String,
    /// Whether direct I/O works there.
    pub direct: bool,
    /// How large its large files are, in bytes.
    pub size_bytes: u64,
}

/// The line of a job file that says how large the large files are.
const LARGE: &str = "size=1g";

/// Jobs that are run side by side.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stage {
    /// Its first job.
    pub name: String,
    /// The global section and the stage's own.
    pub job: String,
    /// How long it runs, at most; 0 for one that runs until all is written.
    pub seconds: u64,
}

/// The stages, which begin at the sections with a `stonewall`.
pub(super) fn stages(job_file: &str) -> Vec<Stage> {
    let mut sections = job_file.split_inclusive('\n').fold(Vec::<String>::new(), |mut sections, line| {
        match sections.last_mut() {
            Some(section) if !line.starts_with('[') => section.push_str(line),
            _ => sections.push(line.to_string()),
        }
        sections
    });
    // What stands before the first section are comments.
    let global = sections.drain(..2).collect::<String>();
    let mut stages: Vec<Stage> = Vec::new();
    for section in sections {
        let seconds = seconds(&section).or_else(|| seconds(&global)).unwrap_or(0);
        match stages.last_mut() {
            Some(stage) if !section.lines().any(|line| line == "stonewall") => {
                stage.job.push_str(&section);
                stage.seconds = stage.seconds.max(seconds);
            }
            _ => {
                let name = section.lines().next().unwrap_or_default().trim_matches(['[', ']']).to_string();
                stages.push(Stage { name, job: global.clone() + &section, seconds });
            }
        }
    }
    stages
}

fn seconds(section: &str) -> Option<u64> {
    section.lines().find_map(|line| line.strip_prefix("runtime=")?.parse().ok())
}

/// The stage with its files in the place, in this time.
pub(super) fn placed(job: &str, place: &Place, time: Duration) -> String {
    let line = |line: &str| match line {
        "[global]" => format!("[global]\ndirectory={}\n", place.directory),
        "direct=1" => format!("direct={}\n", u8::from(place.direct)),
        LARGE => format!("size={}\n", place.size_bytes),
        _ if line.starts_with("runtime=") => format!("runtime={}ms\n", time.as_millis().max(1)),
        _ => format!("{line}\n"),
    };
    job.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "# Why\n[global]\nsize=1g\ndirect=1\n\n[a]\nruntime=3\n\n[b]\nstonewall\nruntime=4\n[c]\nruntime=5\n";

    #[test]
    fn a_stage_is_the_global_section_and_the_jobs_up_to_the_next_stonewall() {
        let global = "# Why\n[global]\nsize=1g\ndirect=1\n\n";
        let stage = |name: &str, sections: &str, seconds| Stage {
            name: name.to_string(),
            job: format!("{global}{sections}"),
            seconds,
        };
        assert_eq!(
            stages(FILE),
            [
                stage("a", "[a]\nruntime=3\n\n", 3),
                stage("b", "[b]\nstonewall\nruntime=4\n[c]\nruntime=5\n", 5)
            ]
        );
    }

    #[test]
    fn a_place_changes_directory_size_direct_and_time_alone() {
        let place = Place { directory: "/a\\:b".to_string(), direct: false, size_bytes: 4096 };
        assert_eq!(
            placed(&stages(FILE)[0].job, &place, Duration::from_millis(1500)),
            "# Why\n[global]\ndirectory=/a\\:b\nsize=4096\ndirect=0\n\n[a]\nruntime=1500ms\n\n"
        );
    }
}

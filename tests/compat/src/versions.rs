//! Known differences between versions of fio and the one fiord follows, and fiord's additions.
//!
//! Invariant: the only list of such differences. Each applies only to the versions it was observed in, so that other
//! versions are compared strictly.

use std::fmt;

/// A version of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The number before the dot.
    pub major: u32,
    /// The number after it.
    pub minor: u32,
}

/// The version fiord follows, and reports when it is called as fio.
pub const FOLLOWED: Version = Version { major: 3, minor: 42 };

/// Debian 12's.
const V3_33: Version = Version { major: 3, minor: 33 };

impl Version {
    /// Parses `fio-3.33`, with any suffix.
    pub fn parse(text: &str) -> Option<Version> {
        let (major, rest) = text.strip_prefix("fio-")?.split_once('.')?;
        let minor = rest.split(|char: char| !char.is_ascii_digit()).next()?;
        Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fio-{}.{}", self.major, self.minor)
    }
}

/// A difference from certain versions of fio that is not a defect of fiord.
pub struct Relaxation {
    versions: &'static [Version],
}

impl Relaxation {
    const fn seen_in(versions: &'static [Version]) -> Relaxation {
        Relaxation { versions }
    }

    /// Whether it applies to comparisons with this version.
    pub fn holds(&self, oracle: Version) -> bool {
        self.versions.contains(&oracle)
    }
}

/// It is the version that docs/divergences.md describes.
pub const ON_THE_PAGE: Relaxation = Relaxation::seen_in(&[V3_33]);

/// It has no engines for directories, GPUs, HTTP, iSCSI, NFS and page faults, or Debian did not build them.
pub const LACKS_ENGINES: Relaxation = Relaxation::seen_in(&[V3_33]);

/// The engines that it lacks.
pub const ADDED_ENGINES: &[&str] =
    &["dircreate", "dirstat", "dirdelete", "http", "libcufile", "libiscsi", "nfs", "page_fault"];

/// It times syncs other than fsync but does not count them, and counts them as short transfers instead.
pub const MISCOUNTS_SYNCS: Relaxation = Relaxation::seen_in(&[V3_33]);

/// It does not echo flags without a value, which 3.42 echoes as `""`.
pub const ECHOES_NO_BARE_FLAGS: Relaxation = Relaxation::seen_in(&[V3_33]);

/// It has headers with a pattern, but does not know `verify=pattern_hdr`.
pub const LACKS_PATTERN_HDR: Relaxation = Relaxation::seen_in(&[V3_33]);

/// It prints corrupted data of an interval, but fails the job only if that is the last interval of the block.
pub const FORGETS_INTERVALS: Relaxation = Relaxation::seen_in(&[V3_33]);

/// It calls the syncs of a range by a shorter name in normal text.
const NAMES_NO_SYNCFS: Relaxation = Relaxation::seen_in(&[V3_33]);

/// It lists `RENAMED_OPTIONS` by their old names.
pub const LISTS_OLD_NAMES: Relaxation = Relaxation::seen_in(&[V3_33]);

/// Options that 3.42 lists under another name; the old one is an alias.
pub const RENAMED_OPTIONS: &[&str] = &["allrandrepeat", "log_max_value", "log_unix_epoch"];

/// It lacks `ADDED_KEYS`.
pub const LACKS_ADDED_KEYS: Relaxation = Relaxation::seen_in(&[V3_33]);

/// A key that the version fiord follows adds to an object.
pub struct AddedKey {
    /// The object: names joined by `/`, `[]` for the elements of a list.
    pub object: &'static str,
    /// The key before it.
    pub after: &'static str,
    /// Its name. Its value is an integer in every case so far.
    pub key: &'static str,
}

/// Keys in the order in which they appear.
pub const ADDED_KEYS: &[AddedKey] = &[
    AddedKey { object: "jobs[]", after: "groupid", key: "job_start" },
    AddedKey { object: "jobs[]", after: "latency_target", key: "latency_target_ns" },
    AddedKey { object: "jobs[]", after: "latency_window", key: "latency_window_us" },
    AddedKey { object: "disk_util[]", after: "write_ios", key: "read_sectors" },
    AddedKey { object: "disk_util[]", after: "read_sectors", key: "write_sectors" },
];

/// Lists that fiord adds to a JSON document if they are not empty, compared with any version of fio.
pub const ADDED_LISTS: [&str; 2] = ["devices", "findings"];

/// The objects that fiord adds to a JSON document: of a run that is long enough to have a steady part, of every run, and of
/// one that was observed over time.
pub const ADDED_OBJECTS: [&str; 3] = ["steady_part", "fiord", "windows"];

/// What the names of logs that fiord adds for jobs with a rate contain: those of response latencies.
pub const ADDED_LOGS: [&str; 2] = ["_resp.", "_resp_hist."];

/// The objects that fiord adds to a job with a rate, to one that replays a trace, and to one of which it counts what fio does
/// not, as its last keys.
pub const ADDED_JOB_OBJECTS: [&str; 3] = ["response", "replay", "counts"];

/// The first words of the same in normal text, after fio's report, in their order.
pub const ADDED_TEXTS: [&str; 4] = [
    "\nResponse latency, from the start that the rate intended:\n",
    "\nReplay lateness, from the times in the trace:\n",
    "\nCounts:\n",
    "\nFindings:\n",
];

/// The common beginning of a line of normal text with this version of fio.
pub fn common_line(line: &str, oracle: Version) -> String {
    // fiord's jobs are threads, whether `thread` is given or not.
    if let Some(count) = line.strip_prefix("Starting ").and_then(|rest| rest.split(' ').next()) {
        return format!("Starting {count}");
    }
    if NAMES_NO_SYNCFS.holds(oracle) {
        return line.replace("sync_file_range/syncfs:", "sync_file_range:");
    }
    line.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_parsed_from_fios_output() {
        assert_eq!(Version::parse("fio-3.33\n"), Some(V3_33));
        assert_eq!(Version::parse("fio-3.42-12-g0123-dirty"), Some(FOLLOWED));
        assert_eq!(Version::parse("fiord 1.0"), None);
        assert_eq!(FOLLOWED.to_string(), "fio-3.42");
    }

    #[test]
    fn a_relaxation_applies_only_to_the_versions_it_was_observed_in() {
        assert!(MISCOUNTS_SYNCS.holds(V3_33));
        assert!(!MISCOUNTS_SYNCS.holds(FOLLOWED));
        let line = "    sync_file_range/syncfs: x";
        assert_eq!(common_line(line, V3_33), "    sync_file_range: x");
        assert_eq!(common_line(line, FOLLOWED), line);
        assert_eq!(common_line("Starting 2 processes", FOLLOWED), "Starting 2");
    }
}

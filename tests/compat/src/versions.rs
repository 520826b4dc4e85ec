//! What fio 3.42, which fiord follows, writes and Debian's 3.33 does not.
//!
//! Invariant: the one list of such differences; a comparison that needs another one adds it here, with its place.

/// A key that the newer version adds to an object.
pub struct AddedKey {
    /// The object: names joined by `/`, `[]` for the elements of a list.
    pub object: &'static str,
    /// The key it stands behind.
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

/// A list that fiord adds to a JSON document when there is something to say.
pub const ADDED_LIST: &str = "warnings";

/// Where the same begins in normal text, behind fio's report.
pub const ADDED_TEXT: &str = "\nWarnings:\n";

/// Options that 3.42 lists under another name; the old one is an alias.
pub const RENAMED_OPTIONS: &[&str] = &["allrandrepeat", "log_max_value", "log_unix_epoch"];

/// The version fiord answers with when it is called as fio.
pub const VERSION: &str = "fio-3.42";

/// 3.33 times syncs other than fsync but does not count them, and counts them as short transfers instead.
pub const MISCOUNTS_SYNCS: bool = true;

/// A line of normal text as 3.33 would begin it.
pub fn as_older(line: &str) -> String {
    // fiord's jobs are threads, whether `thread` is given or not.
    if let Some(count) = line.strip_prefix("Starting ").and_then(|rest| rest.split(' ').next()) {
        return format!("Starting {count}");
    }
    line.replace("sync_file_range/syncfs:", "sync_file_range:")
}

/// 3.42 echoes flags without a value as `""`; 3.33 leaves them out. So an option that only fiord echoes is in order
/// if its value is empty.
pub const ECHOES_BARE_FLAGS: bool = true;

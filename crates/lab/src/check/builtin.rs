//! The checks that fiord brings along: the files in `checks/`.
//!
//! Invariant: they are files like a user's, and nothing but their text is built in; a test reads every one.

use std::ffi::OsStr;
use std::sync::LazyLock;

use super::file;
use super::profile::Profile;

/// Declares the files of these names, in the order of the list.
macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../checks/", $name, ".toml")))),+];
    };
}

files![
    "etcd",
    "rocksdb",
    "oltp",
    "postgres",
    "mysql",
    "oracle",
    "kafka",
    "cassandra",
    "clickhouse",
    "ceph-osd",
    "minio",
    "vm-host",
    "kubernetes-node",
    "nvr",
    "ai-training",
    "ai-checkpoint",
];

/// The JSON schema of check files, for editors.
pub const SCHEMA: &str = include_str!("../../checks/check.schema.json");

/// All of them.
pub static PROFILES: LazyLock<Vec<Profile>> =
    LazyLock::new(|| FILES.iter().map(|(name, text)| read(name, text)).collect());

/// One of them.
///
/// # Panics
/// It has an error; a test reads every one.
#[expect(clippy::panic, reason = "documented; a test reads every check")]
fn read(name: &str, text: &str) -> Profile {
    match file::read(OsStr::new(name), name, text) {
        Ok(profile) => profile,
        Err(problems) => panic!("a built-in check has errors: {problems:?}"),
    }
}

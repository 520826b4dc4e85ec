//! How the blocks of one worker are verified.
//!
//! Invariant: complete; the worker reads no option.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fiord_options::{Spec, job};
use fiord_verify::BlockFormat;

/// The name of the file of a job's state, as by fio: behind a prefix, `local` or the address of its host. Each `/` in the
/// job's name is a dot.
pub fn state_file_name(prefix: &OsStr, job: &OsStr, number: u32) -> OsString {
    let job = job.as_bytes().iter().map(|byte| if *byte == b'/' { b'.' } else { *byte });
    let mut name = prefix.to_os_string();
    name.push("-");
    name.push(OsString::from_vec(job.collect()));
    name.push(format!("-{number}-verify.state"));
    name
}

/// Verification of one worker's blocks (`verify` and its kin).
#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    /// What blocks look like.
    pub format: BlockFormat,
    /// Whether what is read is compared: an engine that touches no file has nothing to compare.
    pub checks: bool,
    /// Whether what a job that only reads has read is compared: only if each read covers blocks as they were written.
    pub compares_reads: bool,
    /// Whether what was written is read back at the end of each pass (`do_verify`).
    pub reads_back: bool,
    /// Whether nothing is written, and what an earlier run of this job wrote is read back (`verify_only`).
    pub only: bool,
    /// Whether the device compares what was written: reading back then sends the contents of the blocks.
    pub by_device: bool,
    /// Whether each pass begins with new files, which hold nothing of the passes before (`unlink_each_loop`).
    pub has_new_files_each_pass: bool,
    /// Whether a header with another seed than the write had is a fault (`verify_header_seed`).
    pub checks_seed: bool,
    /// Whether a header with another number than the write had is a fault (`verify_write_sequence`).
    pub checks_number: bool,
    /// When blocks are read back before the end of a pass.
    pub backlog: Option<Backlog>,
    /// Which blocks are trimmed before they are read back.
    pub trims: Option<Trims>,
    /// Threads that check blocks beside the I/O; 0: the job checks them itself (`verify_async`).
    pub threads: u32,
    /// CPUs that they may run on; empty for those of the job (`verify_async_cpus`).
    pub thread_cpus: Vec<u32>,
    /// The directory where blocks that do not match are saved (`verify_dump`); empty for the working directory.
    pub dump_directory: Option<PathBuf>,
    /// The file in which a job that writes saves how far it came (`verify_state_save`).
    pub saved_state: Option<PathBuf>,
    /// The saved state of the run whose writes are verified (`verify_state_load`).
    pub loaded_state: Option<PathBuf>,
    /// Whether the saved state includes only writes that a sync followed (`verify_policy=fsynced`).
    pub only_synced: bool,
}

impl Verification {
    /// The option that has a job save how far it came.
    pub const SAVE_OPTION: &'static Spec = job::Verification::verify_state_save;
}

/// fio's `verify_backlog`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backlog {
    /// Writes after which blocks are read back, at least 1.
    pub every: u64,
    /// Blocks that are then read back, at least 1; the others wait.
    pub batch: u64,
}

/// fio's `trim_percentage`, and the options that add to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trims {
    /// Share of the blocks that are trimmed, 1 to 100.
    pub percent: u8,
    /// Writes after which blocks are trimmed; 0: only at the end of a pass.
    pub every: u64,
    /// Blocks that are then trimmed, at least 1; the others wait.
    pub batch: u64,
    /// Whether trimmed blocks are read back, and have to be zeroes.
    pub reads_zeroes: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_named_by_its_host_its_job_and_the_number_of_its_thread() {
        let name = |prefix: &str, job: &str| state_file_name(prefix.as_ref(), job.as_ref(), 2);
        assert_eq!(name("local", "a/b c/"), "local-a.b c.-2-verify.state");
        assert_eq!(name("127.0.0.1", "a"), "127.0.0.1-a-2-verify.state");
    }
}

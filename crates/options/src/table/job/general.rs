//! The job as a whole: its name, how often it runs, and what its units mean.
//!
//! Invariant: nothing here says what is read or written.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// The job as a whole, and its units.
    pub struct General, scope Scope::Job;

    "Job" {
        /// Name of the job.
        ///
        /// In a section it replaces the section's name in the report and the logs of the first worker only; the other
        /// workers and all files keep the section's name. On the command line it starts a new job.
        name: Text;
        /// Free text about the job.
        ///
        /// Printed in reports; it has no other effect.
        description: Text;
        /// Number of times the job runs.
        ///
        /// Each loop covers the files again. 0 is the same as 1.
        ///
        /// Example: `loops=3`.
        loops: u32 = 1, in 0..=U32;
        /// Number of workers that run this job.
        ///
        /// Each is a thread with its own files (unless `filename` is given) and its own report (unless
        /// `group_reporting` is set).
        ///
        /// Example: `numjobs=4` with `size=1g` works on four files of 1 GiB each.
        numjobs: u32 = 1, in 0..=U32;
        /// Run the jobs of one of fio's built-in profiles, `tiobench` or `act`.
        ///
        /// On the command line only, before any `--name`: in a job it has no effect. `tiobench` writes and reads four files, in order and at
        /// random. `act` is the load of Aerospike's certification tool: small reads and large writes at fixed rates, which
        /// overwrite the devices.
        ///
        /// Example: `profile=tiobench` with `threads=4` and `size=1024`, for files of 1 GiB together.
        profile: Text;
    }

    "Units" {
        /// What `k`, `m`, `g`, `t` and `p` mean, and the units of reports.
        ///
        /// With 1024, `4k` and `4ki` are 4096 and `4KiB` is 4000: fio's inversion of the standards, kept for old job
        /// files. With 1000, `4k` is 4000 and `4KiB` is 4096. In a job file it applies to the whole section; on the
        /// command line, to the options after it.
        kb_base: KbBase = 1024;
        /// Whether bandwidth is reported in bytes or bits.
        unit_base: UnitBase = 0;
    }
}

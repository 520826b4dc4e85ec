//! A workload to check a disk with: its job file, its space, and the figures that are judged.
//!
//! Invariant: a profile is data; what its figures mean is in its own file.

use fiord_report::RunReport;

use super::job_file;
use super::limit::Row;

/// A workload and its requirements.
#[derive(Debug)]
pub struct Profile {
    /// Its name on the command line: `etcd`.
    pub name: &'static str,
    /// Its runs in a few words.
    pub runs: &'static str,
    /// The workload that a disk with PASS is fast enough for.
    pub workload: &'static str,
    /// Its job file, which fio can run, too.
    pub job_file: &'static str,
    /// The figure shown in lists of runs, if any: a 99th percentile.
    pub headline: Option<&'static str>,
    /// How many times the whole workload is run, at least; its time is that of all of these rounds.
    pub rounds: usize,
    /// The space taken by its files.
    pub space: Space,
    /// Makes the rows of a round from the reports of its measured stages.
    pub(super) rows: fn(&Stages<'_>) -> Vec<Row>,
}

/// The space a profile's files take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A fixed number of bytes.
    Bytes(u64),
    /// This number of files, whose size the user may choose.
    Files(u64),
}

/// The report of each stage of a round that was run.
pub(super) type Stages<'a> = Vec<Option<&'a RunReport>>;

impl Profile {
    /// The space taken by its files, in bytes, if the large ones have `size_bytes`.
    pub fn space_bytes(&self, size_bytes: u64) -> u64 {
        match self.space {
            Space::Bytes(bytes) => bytes,
            Space::Files(count) => count.saturating_mul(size_bytes),
        }
    }

    /// The most seconds that all its rounds take.
    pub fn seconds(&self) -> u64 {
        let stages = job_file::stages(self.job_file);
        self.rounds as u64 * stages.iter().map(|stage| stage.seconds).sum::<u64>()
    }
}

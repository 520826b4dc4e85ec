//! The logs of `--bandwidth-log`: the bandwidth of all jobs together, interval by interval.
//!
//! Invariant: a line is in its file as soon as its interval has ended; a log that cannot be written does not disturb
//! the run and is reported at its end.

use fiord_sys::errno::error_text;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use fiord_plan::{Direction, Plan};
use fiord_worker::TargetOpener;

/// fio's file names for reads, writes and trims.
pub(crate) const NAMES: [&str; 3] = ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"];

/// The three files.
pub(crate) struct BandwidthLog {
    files: Vec<File>,
    used: [bool; 3],
    every: Duration,
    failed: Option<String>,
}

impl BandwidthLog {
    /// Creates or truncates the files in the current directory.
    ///
    /// # Errors
    /// Which file could not be created, and why.
    pub(crate) fn create(plan: &Plan) -> Result<BandwidthLog, String> {
        let opener = TargetOpener::default();
        let create = |name: &str| {
            let made = opener.create_named(Path::new(name), false);
            made.map_err(|refused| format!("fiord: --bandwidth-log: {name}: {}\n", refused.reason()))
        };
        let interval = plan.jobs.iter().map(|job| job.measure.bandwidth_interval_ms).min();
        let uses = |direction: Direction| plan.jobs.iter().any(|job| job.issues(direction));
        Ok(BandwidthLog {
            files: NAMES.into_iter().map(create).collect::<Result<_, _>>()?,
            used: Direction::ALL.map(uses),
            every: Duration::from_millis(interval.unwrap_or(500)),
            failed: None,
        })
    }

    /// Length of an interval: the shortest `bwavgtime` of the jobs.
    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    /// Adds a line to the log of each direction that any job uses.
    pub(crate) fn record(&mut self, at_ms: u64, kib_per_s: [u64; 3]) {
        for (direction, file) in
            self.files.iter_mut().enumerate().filter(|(direction, _)| self.used[*direction])
        {
            let line = format!("{at_ms}, {}, {direction}, 0, 0\n", kib_per_s[direction]);
            if let Err(error) = file.write_all(line.as_bytes()) {
                self.failed.get_or_insert_with(|| failure(NAMES[direction], &error));
            }
        }
    }

    /// The first line that could not be written, and why.
    pub(crate) fn failure(self) -> Option<String> {
        self.failed
    }
}

fn failure(name: &str, error: &io::Error) -> String {
    format!("fiord: --bandwidth-log: {name}: {}\n", error_text(error))
}

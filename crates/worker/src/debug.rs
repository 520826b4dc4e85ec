//! The lines of `--debug`.
//!
//! Invariant: without a log nothing is formatted, and nothing of this is in a loop: a source that prints is put around
//! the job's own only if one of its channels is printed.

use std::fmt;
use std::sync::Arc;

use fiord_plan::{DebugChannel, Job};
use fiord_sys::thread;
use fiord_workload::random_seeds;

use crate::alloc_guard::allow_alloc;

/// Where the lines of some channels go.
#[derive(Clone)]
pub struct DebugLog {
    channels: Arc<[DebugChannel]>,
    /// The one job whose lines are printed, from 1.
    only_job: Option<u32>,
    write: Arc<dyn Fn(&str) + Send + Sync>,
}

impl DebugLog {
    /// A log of these channels, and of one job only if it is given (from 1), whose lines go to `write`.
    pub fn new(
        channels: Vec<DebugChannel>,
        only_job: Option<u32>,
        write: impl Fn(&str) + Send + Sync + 'static,
    ) -> DebugLog {
        DebugLog { channels: channels.into(), only_job, write: Arc::new(write) }
    }

    /// Whether a channel is printed.
    pub fn has(&self, channel: DebugChannel) -> bool {
        self.channels.contains(&channel)
    }

    /// Prints a line of the calling thread, if its channel is printed.
    pub fn line(&self, channel: DebugChannel, text: fmt::Arguments<'_>) {
        if self.has(channel) {
            allow_alloc(|| (self.write)(&format!("{:<8} {:<5} {text}\n", channel.word(), thread::id())));
        }
    }

    /// Prints the seeds of a job's random numbers, as fio does before the run (`--debug=random`).
    pub(crate) fn seeds(&self, job: &Job) {
        if self.has(DebugChannel::Random) {
            let seeds: Vec<u64> = random_seeds(job.access.seed).collect();
            self.line(DebugChannel::Random, format_args!("FIO_RAND_NR_OFFS={}", seeds.len()));
            for (index, seed) in seeds.iter().enumerate() {
                self.line(DebugChannel::Random, format_args!("rand_seeds[{index}]={seed}"));
            }
        }
    }

    /// The log of a job, from 0; `None` if its lines are not wanted.
    pub fn of_job(&self, number: u32) -> Option<DebugLog> {
        self.only_job.is_none_or(|only| only == number + 1).then(|| self.clone())
    }
}

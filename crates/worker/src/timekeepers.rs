//! The threads that keep the time for jobs (`gtod_cpu`).
//!
//! Invariant: there is one for each CPU that a job names, for all jobs that name it.

use fiord_plan::{ClockSource, Job};
use fiord_sys::clock::keeper::{KeptClock, Timekeeper};

use crate::failure::Failure;

/// The threads of a run.
#[derive(Debug, Default)]
pub(crate) struct Timekeepers(Vec<(u32, Result<Timekeeper, Failure>)>);

impl Timekeepers {
    /// Starts those that these jobs need.
    pub(crate) fn of<'a>(jobs: impl IntoIterator<Item = &'a Job>) -> Timekeepers {
        let mut started = Timekeepers::default();
        for job in jobs {
            if let ClockSource::Kept(cpu) = job.measure.clock
                && !started.0.iter().any(|(other, _)| *other == cpu)
            {
                let keeper = Timekeeper::start(cpu).map_err(|error| {
                    Failure::system(&format!("keep the time on CPU {cpu} (gtod_cpu)"), &error)
                });
                started.0.push((cpu, keeper));
            }
        }
        started
    }

    /// The time kept on this CPU.
    ///
    /// # Errors
    /// Why it is not kept.
    pub(crate) fn clock(&self, cpu: u32) -> Result<KeptClock<'_>, Failure> {
        match self.0.iter().find(|(other, _)| *other == cpu) {
            Some((_, Ok(keeper))) => Ok(keeper.clock()),
            Some((_, Err(failure))) => Err(failure.clone()),
            None => Err(Failure::other(
                "gtod_cpu",
                format!("fiord has a bug: no thread keeps the time on CPU {cpu}"),
            )),
        }
    }

    /// Ends them, whether workers still use them or not.
    pub(crate) fn stop(&self) {
        self.0.iter().flat_map(|(_, keeper)| keeper).for_each(Timekeeper::stop);
    }
}

//! Records what a run does over time, from what its workers publish once a second and the use of the processors.
//!
//! Invariant: reads no file of its own; a run whose jobs publish nothing has no timeline.

use std::time::Duration;

use fiord_host::HostReading;
use fiord_stats::{DetailedProgress, MachineWindow, ProcessorShares, Timeline, TimelineRecorder};
use fiord_sys::clock;
use fiord_worker::WorkerReport;

/// Interval between two windows of a run that is not long.
pub(super) const EVERY: Duration = Duration::from_secs(1);

/// The timeline of a run in progress.
#[derive(Debug, Default)]
pub(super) struct RunTimeline {
    recorder: TimelineRecorder,
    /// When the first workers were released, on the monotonic clock; `None` before the first window.
    released_ns: Option<u64>,
    /// What the processors had done at the last reading.
    before: Option<HostReading>,
    /// Their shares until then.
    shares: Option<ProcessorShares>,
}

impl RunTimeline {
    /// All jobs together had done this at that time; `host` is the latest reading of the machine's counters.
    pub(super) fn take(&mut self, elapsed_ns: u64, so_far: &DetailedProgress, host: Option<&HostReading>) {
        self.released_ns.get_or_insert_with(|| clock::monotonic_ns().saturating_sub(elapsed_ns));
        let machine = host.map_or_else(MachineWindow::default, |now| self.machine(now));
        self.recorder.take(elapsed_ns / 1_000_000, so_far, machine);
    }

    /// The processors since the reading before, or at the same shares as then if there is no newer one.
    fn machine(&mut self, now: &HostReading) -> MachineWindow {
        if self.before.as_ref().is_none_or(|before| before.taken_ns < now.taken_ns) {
            let shares = self.before.as_ref().and_then(|before| shares(before, now));
            self.shares = shares.or(self.shares);
            self.before = Some(now.clone());
        }
        MachineWindow {
            processors: self.shares,
            temperature_celsius: now.temperature_celsius.and_then(|celsius| celsius.try_into().ok()),
        }
    }

    /// The timeline of the run that is over; `None` if it ended before there was a window.
    pub(super) fn finish(self, workers: &[WorkerReport]) -> Option<Timeline> {
        let released_ns = self.released_ns?;
        let mut all = DetailedProgress::default();
        workers.iter().for_each(|worker| all.add(&worker.stats));
        let elapsed_ns = clock::monotonic_ns().saturating_sub(released_ns);
        Some(self.recorder.finish(elapsed_ns / 1_000_000, &all))
    }
}

/// The use of the processors between two readings; `None` if no time passed or the kernel does not count it.
fn shares(before: &HostReading, now: &HostReading) -> Option<ProcessorShares> {
    let (from, to) = (&before.cpu, &now.cpu);
    let since = |from: u64, to: u64| to.saturating_sub(from);
    let parts = [
        since(from.user, to.user),
        since(from.system, to.system),
        since(from.io_wait, to.io_wait),
        since(from.steal, to.steal),
    ];
    let all = parts.iter().sum::<u64>() + since(from.idle, to.idle);
    let share = |part: u64| (part * 1000).checked_div(all).map(|share| share as u32);
    Some(ProcessorShares {
        user: share(parts[0])?,
        system: share(parts[1])?,
        io_wait: share(parts[2])?,
        steal: share(parts[3])?,
    })
}

#[cfg(test)]
mod tests {
    use fiord_sys::procfs::CpuTicks;

    use super::*;

    #[test]
    fn shares_are_of_all_processors_between_two_readings() {
        let reading = |taken_ns, user, idle| HostReading {
            taken_ns,
            cpu: CpuTicks { user, idle, system: 5, ..CpuTicks::default() },
            ..HostReading::default()
        };
        let expected = ProcessorShares { user: 250, ..ProcessorShares::default() };
        assert_eq!(shares(&reading(1, 100, 100), &reading(2, 150, 250)), Some(expected));
        assert_eq!(shares(&reading(1, 100, 100), &reading(2, 100, 100)), None);
    }
}

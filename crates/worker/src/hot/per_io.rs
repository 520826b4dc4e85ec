//! What is recorded of each I/O alone: its line in the logs, and its latency among those of its priority.
//!
//! Invariant: a job with neither has no `PerIo`, and pays one predictable branch for that.

use fiord_plan::{Direction, Job, Op, PerDirection};
use fiord_stats::{JobStats, Latency, PriorityLatency};

use super::logging::Logging;
use super::stamps::Stamps;

/// The latencies of a job by priority.
#[derive(Debug)]
pub(crate) struct PriorityTables {
    /// As the kernel packs them, by number.
    values: Vec<u16>,
    /// By number.
    latencies: PerDirection<Vec<Latency>>,
    /// Whether total latencies are recorded, and not completion latencies.
    is_total: bool,
}

impl PriorityTables {
    /// Tables with or without histograms for the directions a job uses; `None` if all its I/Os have the same priority.
    pub(crate) fn new(
        job: &Job,
        is_used: impl Fn(Direction) -> bool,
        is_total: bool,
        has_histogram: bool,
    ) -> Option<PriorityTables> {
        let values = job.io_priorities.values.clone();
        let empty = if has_histogram { Latency::with_histogram() } else { Latency::default() };
        let latencies = Direction::ALL
            .map(|direction| if is_used(direction) { vec![empty.clone(); values.len()] } else { Vec::new() });
        job.io_priorities.differ().then_some(PriorityTables { values, latencies, is_total })
    }

    fn record(&mut self, op: &Op, direction: Direction, stamps: &Stamps) {
        let latency_ns = if self.is_total { stamps.total_ns() } else { stamps.completion_ns() };
        if let Some(latency) = self.latencies[direction.index()].get_mut(usize::from(op.priority)) {
            latency.record(latency_ns);
        }
    }

    /// Clears them at the end of the ramp; keeps the allocations.
    pub(crate) fn reset(&mut self) {
        for latency in self.latencies.iter_mut().flatten() {
            latency.running = Default::default();
            latency.histogram.clear();
        }
    }

    /// Adds them to the statistics.
    pub(crate) fn publish(&self, stats: &mut JobStats) {
        for (direction, latencies) in stats.directions.iter_mut().zip(&self.latencies) {
            let used = self.values.iter().zip(latencies).filter(|(_, latency)| latency.running.count > 0);
            let entry = |(value, latency): (&u16, &Latency)| PriorityLatency {
                priority: *value,
                latency: latency.clone(),
            };
            direction.priorities = used.map(entry).collect();
        }
    }

    fn value(&self, op: &Op) -> Option<u16> {
        (op.priority > 0).then(|| self.values[usize::from(op.priority)])
    }
}

/// What is recorded of each I/O alone.
#[derive(Default)]
pub(crate) struct PerIo {
    pub logs: Option<Logging>,
    /// The response latency of the I/O that is recorded next, if it has one.
    pub response_ns: Option<u64>,
    pub priorities: Option<PriorityTables>,
}

impl PerIo {
    /// Records an I/O. Out of line, to keep the code of jobs without it small.
    #[cold]
    #[inline(never)]
    pub(crate) fn record(&mut self, op: &Op, direction: Direction, stamps: Stamps, queued: bool) {
        let (mut priority, response_ns) = (None, self.response_ns.take());
        if let Some(tables) = &mut self.priorities {
            tables.record(op, direction, &stamps);
            priority = tables.value(op);
        }
        if let Some(logs) = &mut self.logs {
            logs.log(&op.whole(), direction, stamps, queued, (priority, response_ns));
        }
    }
}

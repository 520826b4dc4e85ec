//! fiord's own cost per I/O: what a calibration measured on this machine, and what follows from it for a job.
//!
//! Invariant: what a job costs is a sum of measured parts; a part that was not measured counts as nothing, so that the sum
//! is a lower bound.

use fiord_plan::job::Fill;
use fiord_plan::{Direction, Job};
use fiord_stats::JobStats;

use crate::lint::known::detailed_logs;

/// What a calibration measured on the null engine, in nanoseconds of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnCost {
    /// A sequential read in the loop of the synchronous engines.
    pub sync_ns: f64,
    /// A sequential read in the loop of the queued engines.
    pub queued_ns: f64,
    /// What of these two lies between I/Os, and is in no latency.
    pub sync_own_ns: f64,
    /// The same of a queued one.
    pub queued_own_ns: f64,
    /// What a random offset adds.
    pub random_ns: f64,
    /// What a write adds: its buffer is changed a little before it.
    pub write_ns: f64,
    /// What a log with a line for each I/O adds.
    pub log_ns: f64,
    /// What new contents for each write add, per KiB.
    pub fill_ns_per_kib: f64,
    /// One reading of the clock that stamps I/Os.
    pub clock_ns: f64,
    /// What verification adds per KiB, by the names of the methods.
    pub verify_ns_per_kib: Vec<(String, f64)>,
}

/// Prefix of the names of verification's figures.
const VERIFY: &str = "verify_ns_per_kib.";

impl OwnCost {
    /// Every figure by its name.
    pub fn figures(&self) -> Vec<(String, f64)> {
        let OwnCost {
            sync_ns,
            queued_ns,
            sync_own_ns,
            queued_own_ns,
            random_ns,
            write_ns,
            log_ns,
            fill_ns_per_kib,
            clock_ns,
            verify_ns_per_kib,
        } = self;
        let named = [
            ("sync_ns", sync_ns),
            ("queued_ns", queued_ns),
            ("sync_own_ns", sync_own_ns),
            ("queued_own_ns", queued_own_ns),
            ("random_ns", random_ns),
            ("write_ns", write_ns),
            ("log_ns", log_ns),
            ("fill_ns_per_kib", fill_ns_per_kib),
            ("clock_ns", clock_ns),
        ];
        let named = named.map(|(name, ns)| (name.to_string(), *ns)).into_iter();
        named.chain(verify_ns_per_kib.iter().map(|(method, ns)| (format!("{VERIFY}{method}"), *ns))).collect()
    }

    /// The same from its figures; `None` if one is missing, or is not a duration.
    pub fn from_figures(figures: &[(String, f64)]) -> Option<OwnCost> {
        let sound = figures.iter().all(|(_, ns)| ns.is_finite() && *ns >= 0.0);
        let of = |name: &str| figures.iter().find(|(known, _)| known == name).map(|(_, ns)| *ns);
        let methods = figures.iter().filter_map(|(name, ns)| Some((name.strip_prefix(VERIFY)?, *ns)));
        let cost = OwnCost {
            sync_ns: of("sync_ns")?,
            queued_ns: of("queued_ns")?,
            sync_own_ns: of("sync_own_ns")?,
            queued_own_ns: of("queued_own_ns")?,
            random_ns: of("random_ns")?,
            write_ns: of("write_ns")?,
            log_ns: of("log_ns")?,
            fill_ns_per_kib: of("fill_ns_per_kib")?,
            clock_ns: of("clock_ns")?,
            verify_ns_per_kib: methods.map(|(method, ns)| (method.to_string(), ns)).collect(),
        };
        sound.then_some(cost)
    }

    /// What the I/Os that a job did cost, each of them on average.
    pub(crate) fn of(&self, job: &Job, stats: &JobStats) -> CostPerIo {
        let done = |direction: Direction| &stats.directions[direction.index()];
        let ios: u64 = stats.directions.iter().map(|direction| direction.ios).sum();
        let share = |ios_or_kib: f64| if ios > 0 { ios_or_kib / ios as f64 } else { 0.0 };
        let kib = |direction: Direction| share(done(direction).bytes as f64 / 1024.0);
        let writes = share(done(Direction::Write).ios as f64);
        let base_ns = if is_queued(job) { self.queued_ns } else { self.sync_ns };
        let random_ns = if job.access.random { self.random_ns } else { 0.0 };
        let log_ns = if detailed_logs(job).next().is_some() { self.log_ns } else { 0.0 };
        let verified_kib = self.verified_ns_per_kib(job);
        let fills = job.verification.is_some() || refills(&job.buffers.fill);
        let written_ns =
            if fills { self.fill_ns_per_kib * kib(Direction::Write) } else { self.write_ns * writes };
        let checked_kib = match &job.verification {
            Some(verification) if verification.checks => kib(Direction::Read),
            _ => 0.0,
        };
        CostPerIo {
            loop_ns: base_ns + random_ns,
            logs_ns: log_ns,
            contents_ns: written_ns,
            verification_ns: verified_kib * (checked_kib + kib(Direction::Write)),
        }
    }

    /// What verification adds per KiB to a job's own thread.
    fn verified_ns_per_kib(&self, job: &Job) -> f64 {
        let Some(verification) = job.verification.as_ref().filter(|verification| verification.threads == 0)
        else {
            return 0.0;
        };
        let name = verification.format.method.name();
        self.verify_ns_per_kib.iter().find(|(method, _)| method == name).map_or(0.0, |(_, ns)| *ns)
    }
}

/// Whether a job runs in the loop of the queued engines.
fn is_queued(job: &Job) -> bool {
    let descriptor = job.engine.descriptor;
    descriptor.queueing.is_queued() || (descriptor.can_queue() && job.depth.max > 1)
}

/// Whether each write gets new contents.
pub(crate) fn refills(fill: &Fill) -> bool {
    match fill {
        Fill::Random { refill, .. } | Fill::Compressible { refill, .. } => *refill,
        Fill::Zero | Fill::Pattern { .. } => false,
    }
}

/// What one I/O of a job costs on average, by what it is spent on, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CostPerIo {
    /// Generating the operation, its clock readings, its statistics.
    pub loop_ns: f64,
    /// Its entries of logs.
    pub logs_ns: f64,
    /// The contents of a write.
    pub contents_ns: f64,
    /// Verification.
    pub verification_ns: f64,
}

impl CostPerIo {
    /// All of it.
    pub(crate) fn all_ns(&self) -> f64 {
        self.loop_ns + self.logs_ns + self.contents_ns + self.verification_ns
    }

    /// The largest part, in words, and how to make it smaller.
    pub(crate) fn largest(&self) -> (&'static str, &'static str) {
        let parts = [
            (
                self.loop_ns,
                ("its loop", "larger blocks; compare such figures only with those of the same tool"),
            ),
            (self.logs_ns, ("the log of each I/O", "average the log: log_avg_msec=1000")),
            (self.contents_ns, ("the contents of writes", "leave out refill_buffers and verify")),
            (self.verification_ns, ("verification", "verify=crc32c, verify_async, or no verification")),
        ];
        let largest = parts.into_iter().max_by(|one, other| one.0.total_cmp(&other.0));
        largest.map_or(("", ""), |(_, words)| words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;

    pub(crate) fn cost() -> OwnCost {
        OwnCost {
            sync_ns: 10.0,
            queued_ns: 20.0,
            sync_own_ns: 2.0,
            queued_own_ns: 4.0,
            random_ns: 3.0,
            write_ns: 5.0,
            log_ns: 40.0,
            fill_ns_per_kib: 50.0,
            clock_ns: 8.0,
            verify_ns_per_kib: vec![("crc32c".to_string(), 60.0), ("sha512".to_string(), 2000.0)],
        }
    }

    /// The cost of an I/O of this job, which did this many reads and writes of 4 KiB.
    fn of(options: &[(&'static str, &str)], reads: u64, writes: u64) -> f64 {
        let mut stats = JobStats::default();
        (stats.directions[0].ios, stats.directions[0].bytes) = (reads, reads * 4096);
        (stats.directions[1].ios, stats.directions[1].bytes) = (writes, writes * 4096);
        cost().of(&plan(&[("a", options)]).jobs[0], &stats).all_ns()
    }

    #[test]
    fn the_cost_of_a_job_is_the_sum_of_its_parts() {
        assert_eq!(of(&[], 10, 0), 10.0);
        assert_eq!(of(&[("rw", "randread")], 10, 0), 13.0);
        assert_eq!(of(&[("rw", "randread"), ("iodepth", "8")], 10, 0), 23.0);
        assert_eq!(of(&[("rw", "randread"), ("ioengine", "libaio"), ("filename", "f")], 10, 0), 23.0);
        assert_eq!(of(&[("rw", "rw")], 10, 30), 10.0 + 5.0 * 0.75);
        assert_eq!(of(&[("rw", "write"), ("refill_buffers", "1")], 0, 10), 10.0 + 4.0 * 50.0);
        assert_eq!(of(&[("write_lat_log", "x")], 10, 0), 50.0);
        assert_eq!(of(&[("write_lat_log", "x"), ("log_avg_msec", "100")], 10, 0), 10.0);
        assert_eq!(of(&[("rw", "write")], 0, 0), 10.0, "nothing was done");
    }

    #[test]
    fn verification_costs_by_its_method_what_is_written_and_what_is_compared() {
        let file = ("filename", "f");
        let psync = ("ioengine", "psync");
        let of = |method: &str, reads, writes| {
            of(&[file, psync, ("rw", "write"), ("verify", method)], reads, writes)
        };
        assert_eq!(of("crc32c", 0, 10), 10.0 + 4.0 * (50.0 + 60.0));
        assert_eq!(of("crc32c", 10, 10), 10.0 + 0.5 * 4.0 * (50.0 + 60.0) + 0.5 * 4.0 * 60.0);
        assert_eq!(of("md5", 0, 10), 10.0 + 4.0 * 50.0, "not measured");
    }

    #[test]
    fn the_largest_part_is_named() {
        let parts = CostPerIo { loop_ns: 10.0, logs_ns: 40.0, contents_ns: 0.0, verification_ns: 39.0 };
        assert_eq!(parts.largest().0, "the log of each I/O");
    }

    #[test]
    fn figures_survive_and_damaged_ones_are_none() {
        let figures = cost().figures();
        assert_eq!(OwnCost::from_figures(&figures), Some(cost()));
        assert_eq!(OwnCost::from_figures(&figures[1..]), None, "one is missing");
        for wrong in [f64::NAN, -1.0, f64::INFINITY] {
            let mut damaged = figures.clone();
            damaged[0].1 = wrong;
            assert_eq!(OwnCost::from_figures(&damaged), None);
        }
    }
}

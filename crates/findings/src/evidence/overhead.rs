//! Whether fiord's own work is a considerable part of what was measured.
//!
//! Invariant: rests on a calibration on this machine; without one there is no finding. A job that is held back by a rate
//! or think time is judged by its latency alone.

use fiord_plan::{Direction, Job, Plan};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};
use fiord_stats::{Capped, JobStats};

use super::measured::{Ended, JobEvidence, Measurements};
use crate::own_cost::{CostPerIo, OwnCost, refills};
use crate::subject::{self, percent};

/// From this share of the latency or of the time of an I/O on, fiord's own part is no longer noise, in percent.
const SHARE_MIN: f64 = 5.0;

/// Shorter runs are not judged: their first I/Os cost more than others.
const RUN_MS_MIN: u64 = 500;

/// Fewer I/Os say nothing about a mean.
const IOS_MIN: u64 = 100;

/// An I/O that takes longer than this, and as much again for each KiB that is filled, verified or logged, cannot have a
/// considerable part of fiord's own: its loops take less than a microsecond, and a KiB less than three.
const LOOP_NS_MAX: f64 = 20_000.0;
const KIB_NS_MAX: f64 = 60_000.0;

/// Whether a job of this run did I/O so fast that fiord's own cost may matter. Only then is a calibration needed.
pub fn may_have_overhead(plan: &Plan, jobs: &[JobEvidence<'_>]) -> bool {
    judged(plan, jobs).any(|(job, known)| {
        let ios = ios(known) as f64;
        let kib: f64 = known.stats.directions.iter().map(|direction| direction.bytes as f64 / 1024.0).sum();
        let has_contents = job.verification.is_some() || refills(&job.buffers.fill);
        let ns_max = LOOP_NS_MAX + if has_contents { KIB_NS_MAX * kib / ios } else { 0.0 };
        measured_ns(job, known).into_iter().flatten().any(|ns| ns < ns_max)
    })
}

/// The first job of which fiord's own work is a considerable part.
pub(super) fn of_tool(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let own = measured.own_cost?;
    judged(plan, measured.jobs).find_map(|(job, known)| of_job(job, known, own))
}

fn judged<'a>(
    plan: &'a Plan,
    jobs: &'a [JobEvidence<'a>],
) -> impl Iterator<Item = (&'a Job, &'a JobEvidence<'a>)> {
    plan.jobs.iter().zip(jobs).filter(|(job, known)| {
        let ran = job.unplannable.is_none() && !job.files.create_only && known.ended != Ended::Failed;
        ran && known.elapsed_ms >= RUN_MS_MIN && ios(known) >= IOS_MIN
    })
}

fn ios(known: &JobEvidence<'_>) -> u64 {
    known.stats.directions.iter().map(|direction| direction.ios).sum()
}

/// The mean latency of an I/O, and the mean time of the job's thread for it, where they are known.
fn measured_ns(job: &Job, known: &JobEvidence<'_>) -> [Option<f64>; 2] {
    let thread_ns = known.elapsed_ms as f64 * 1e6 / ios(known).max(1) as f64;
    [mean_latency_ns(known.stats), (!subject::is_paced(job)).then_some(thread_ns)]
}

/// The mean latency of an I/O, if latencies were measured.
pub(super) fn mean_latency_ns(stats: &JobStats) -> Option<f64> {
    let latency = |of: &fiord_stats::DirectionStats| {
        let latency = if of.total.running.count > 0 { &of.total } else { &of.completion };
        (latency.running.count as f64, latency.running.count as f64 * latency.running.mean())
    };
    let directions = stats.directions.iter().map(latency);
    let (count, mut sum_ns) = directions.fold((0.0, 0.0), |(count, sum), (one, ns)| (count + one, sum + ns));
    // The caller of a write that is synced waits for both.
    if stats.syncs_each_write(1) {
        sum_ns += stats.sync.latency.running.sum as f64;
    }
    (count > 0.0).then(|| sum_ns / count)
}

fn of_job(job: &Job, known: &JobEvidence<'_>, own: &OwnCost) -> Option<Finding> {
    let parts = own.of(job, known.stats);
    let [latency_ns, thread_ns] = measured_ns(job, known);
    let in_latency_ns = within_latency_ns(job, known, &parts, own);
    let latency_percent = latency_ns.map(|ns| percent(in_latency_ns, ns).min(100.0));
    let thread_percent = thread_ns.map(|ns| percent(parts.all_ns(), ns).min(100.0));
    let worst = latency_percent.into_iter().chain(thread_percent).max_by(f64::total_cmp)?;
    if worst < SHARE_MIN {
        return None;
    }
    let latency = latency_ns.zip(latency_percent).map(|(ns, share)| {
        format!("{share:.0} % of its mean latency of {}", Cell::Latency(u64::capped(ns.round())).shown())
    });
    let thread = thread_percent.map(|share| format!("{share:.0} % of the time of its thread"));
    let shares: Vec<String> = latency.into_iter().chain(thread).collect();
    let (what, remedy) = parts.largest();
    let sentence = format!(
        "fiord itself takes {} of each I/O, most of it for {what}: {}",
        Cell::Latency(u64::capped(parts.all_ns().round())).shown(),
        shares.join(", ")
    );
    let number =
        |figure: Option<f64>, digits| figure.map_or(Cell::None, |figure| Cell::Number(figure, digits));
    let finding = Finding::new(Code::ToolOverhead, subject::job(job), sentence, remedy);
    Some(finding.based_on([
        ("own_ns", Cell::Number(parts.all_ns(), 1)),
        ("latency_percent", number(latency_percent, 1)),
        ("thread_percent", number(thread_percent, 1)),
        ("latency_ns", number(latency_ns, 1)),
        ("thread_ns", number(thread_ns, 1)),
    ]))
}

/// How much of fiord's own work a latency contains. Before a write the buffer is prepared and the clock is read again, so
/// that its latency has that reading and no more.
fn within_latency_ns(job: &Job, known: &JobEvidence<'_>, parts: &CostPerIo, own: &OwnCost) -> f64 {
    let writes = known.stats.directions[Direction::Write.index()].ios as f64 / ios(known).max(1) as f64;
    let is_prepared = if subject::is_paced(job) || job.verification.is_some() { 1.0 } else { writes };
    is_prepared * own.clock_ns + (1.0 - is_prepared) * (parts.loop_ns + parts.logs_ns)
}

#[cfg(test)]
mod tests {
    use fiord_stats::Latency;

    use crate::evidence::testing::{job, nothing};
    use crate::testing::plan;

    use super::*;

    fn own() -> OwnCost {
        OwnCost {
            sync_ns: 10.0,
            queued_ns: 30.0,
            clock_ns: 8.0,
            fill_ns_per_kib: 50.0,
            verify_ns_per_kib: vec![("sha512".to_string(), 2000.0)],
            ..OwnCost::default()
        }
    }

    /// What is found of a job that took `latency_ns` for each of its I/Os of 4 KiB, in one direction, one after the other.
    fn found(options: &[(&'static str, &str)], direction: usize, latency_ns: u64) -> Option<Finding> {
        let plan = plan(&[("a", options)]);
        let mut stats = JobStats::default();
        let ios = 10_000_000_000 / latency_ns;
        let of = &mut stats.directions[direction];
        (of.ios, of.bytes, of.total) = (ios, ios * 4096, Latency::with_histogram());
        of.total.record(latency_ns);
        let (jobs, own) = ([job(&stats)], own());
        let found = of_tool(&plan, &Measurements { jobs: &jobs, own_cost: Some(&own), ..nothing() });
        assert!(found.is_none() || may_have_overhead(&plan, &jobs), "a calibration would not be asked for");
        found
    }

    #[test]
    fn a_loop_that_takes_a_twentieth_of_the_latency_is_found() {
        let finding = found(&[], 0, 200).unwrap();
        assert_eq!(
            finding.sentence,
            "fiord itself takes 10ns of each I/O, most of it for its loop: 5 % of its mean latency of 200ns, 5 % of \
             the time of its thread"
        );
        assert_eq!(found(&[], 0, 201), None);
        assert!(
            found(&[], 0, 5).unwrap().sentence.contains("100 % of its mean latency"),
            "never more than all"
        );
    }

    #[test]
    fn a_latency_hides_what_is_done_between_ios_and_the_time_of_the_thread_does_not() {
        let disk = [("ioengine", "psync"), ("filename", "f"), ("rw", "write"), ("verify", "sha512")];
        let finding = found(&disk, 1, 100_000).unwrap();
        assert!(
            finding.sentence.contains("for verification: 0 % of its mean latency of 100us, 8 %"),
            "{finding:?}"
        );
        assert_eq!(found(&disk, 1, 200_000), None);
        // Held back, its thread has time for that.
        let paced = [disk.as_slice(), &[("rate_iops", "1000")]].concat();
        assert_eq!(found(&paced, 1, 100_000), None);
        assert!(
            found(&[("rate_iops", "1000")], 0, 100).is_some(),
            "and its latency has the reading of the clock"
        );
    }

    #[test]
    fn without_a_calibration_or_enough_ios_there_is_no_finding() {
        let plan = plan(&[("a", &[])]);
        let mut stats = JobStats::default();
        stats.directions[0].ios = 1_000_000_000;
        let own = own();
        let with = |jobs: &[JobEvidence<'_>], own| {
            of_tool(&plan, &Measurements { jobs, own_cost: own, ..nothing() }).is_some()
        };
        assert!(with(&[job(&stats)], Some(&own)));
        assert!(!with(&[job(&stats)], None));
        assert!(!with(&[JobEvidence { elapsed_ms: 499, ..job(&stats) }], Some(&own)));
        assert!(!with(&[JobEvidence { ended: Ended::Failed, ..job(&stats) }], Some(&own)));
        stats.directions[0].ios = 99;
        assert!(!with(&[job(&stats)], Some(&own)));
    }

    #[test]
    fn an_io_of_a_disk_needs_no_calibration() {
        let plan = plan(&[("a", &[("ioengine", "psync"), ("filename", "f")])]);
        let mut stats = JobStats::default();
        (stats.directions[0].ios, stats.directions[0].bytes) = (100_000, 100_000 * 4096);
        assert!(!may_have_overhead(&plan, &[job(&stats)]), "100 us each");
        stats.directions[0].ios = 1_000_000;
        assert!(may_have_overhead(&plan, &[job(&stats)]));
    }
}

//! Whether the latency of writes leaves out the sync that makes them durable.
//!
//! Invariant: where writes themselves are synchronous, or there is no sync, nothing is left out.

use fiord_options::{Spec, job};
use fiord_plan::{Direction, Job, SyncMode};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding};
use fiord_stats::{Capped, JobStats, Latency};

use crate::subject;

/// A sync that takes less than this many times as long as a write is of little matter.
const RATIO_MIN: f64 = 1.0;

/// The syncs of a job that writes, beside its writes.
pub(super) fn excluded(job: &Job, stats: &JobStats) -> Option<Finding> {
    let written = &stats.directions[Direction::Write.index()];
    let latency = [&written.completion, &written.total].into_iter().find(|known| known.running.count > 0)?;
    if job.files.sync != SyncMode::None {
        return None;
    }
    match syncs_of_writes(job) {
        Some((option, every)) => after_writes(job, option, every, latency, stats),
        None => at_the_end(job, latency),
    }
}

/// The option that syncs after writes, and after how many.
fn syncs_of_writes(job: &Job) -> Option<(&'static Spec, u32)> {
    let barriers = &job.access.barriers;
    let by_option = [
        (job::Access::fsync, barriers.fsync_every),
        (job::Access::fdatasync, barriers.fdatasync_every),
        (job::Access::sync_file_range, barriers.range_every),
    ];
    by_option.into_iter().find(|(_, every)| *every > 0)
}

fn after_writes(
    job: &Job,
    option: &'static Spec,
    every: u32,
    writes: &Latency,
    stats: &JobStats,
) -> Option<Finding> {
    let syncs = &stats.sync.latency.running;
    let (write_ns, sync_ns) = (writes.running.mean(), syncs.mean());
    (syncs.count > 0 && sync_ns >= RATIO_MIN * write_ns).then(|| {
        let [write, sync] = [write_ns, sync_ns].map(|ns| Cell::Latency(u64::capped(ns)).shown());
        let after = match every {
            1 => "the sync after it".to_string(),
            every => format!("the sync after {every} of them"),
        };
        let sentence = format!(
            "a write takes {write} on average and {after} {sync}: its latency does not include the sync"
        );
        let remedy = "read the latency of the syncs as well (`sync` in the report), or use sync=1";
        Finding::new(Code::SyncExcluded, subject::job(job), sentence, remedy).of_option(option).based_on([
            ("write_ms", Cell::Number(write_ns / 1e6, 3)),
            ("sync_ms", Cell::Number(sync_ns / 1e6, 3)),
            ("writes_per_sync", Cell::Count(u64::from(every))),
        ])
    })
}

/// Buffered writes whose only sync comes when all of them have been measured.
fn at_the_end(job: &Job, writes: &Latency) -> Option<Finding> {
    let files = &job.files;
    let by_option = [
        (job::Files::end_fsync, files.end_fsync),
        (job::Files::end_syncfs, files.end_syncfs),
        (job::Files::fsync_on_close, files.fsync_on_close),
    ];
    let (option, _) = by_option.into_iter().find(|(_, is_set)| *is_set)?;
    (!files.direct).then(|| {
        let median_ns = writes.percentiles(&[50.0]).first().copied();
        let (what, ns) = median_ns.map_or(("on average", u64::capped(writes.running.mean())), |ns| ("in the median", ns));
        let sentence = format!(
            "its writes end in the page cache, after {} {what}: their latency does not include the sync at the end",
            Cell::Latency(ns).shown()
        );
        let remedy = "sync=1 or fdatasync=1 if the latency of durable writes is to be measured";
        Finding::new(Code::SyncExcluded, subject::job(job), sentence, remedy)
            .of_option(option)
            .based_on([("write_ms", Cell::Number(ns as f64 / 1e6, 3))])
    })
}

#[cfg(test)]
mod tests {
    use crate::evidence::testing::moved;
    use crate::testing::plan;

    use super::*;

    /// A job with writes of 1 ms, and syncs that take this long.
    fn found(options: &[(&'static str, &str)], sync_ns: u64) -> Option<String> {
        let common = [("ioengine", "psync"), ("filename", "/data/f"), ("rw", "write")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let mut stats = moved(1, 1 << 22);
        if sync_ns > 0 {
            stats.sync.ios = 10;
            stats.sync.latency.record(sync_ns);
        }
        excluded(&plan(&[("a", &options)]).jobs[0], &stats).map(|finding| finding.sentence)
    }

    #[test]
    fn a_sync_after_each_write_is_not_in_the_latency_of_the_write() {
        let sentence =
            "a write takes 1ms on average and the sync after it 9ms: its latency does not include the sync";
        assert_eq!(found(&[("fdatasync", "1")], 9_000_000).as_deref(), Some(sentence));
        assert!(found(&[("fsync", "32")], 9_000_000).unwrap().contains("after 32 of them"));
        assert_eq!(found(&[("fsync", "1")], 900_000), None, "shorter than the write");
        assert_eq!(found(&[("fsync", "1")], 0), None, "none was measured");
        assert_eq!(found(&[("fsync", "1"), ("sync", "1")], 9_000_000), None, "the write includes it");
    }

    #[test]
    fn a_sync_at_the_end_is_not_one_of_each_write() {
        let sentence = found(&[("end_fsync", "1")], 0).unwrap();
        assert!(sentence.starts_with("its writes end in the page cache, after "), "{sentence}");
        assert!(found(&[("fsync_on_close", "1")], 0).is_some());
        assert_eq!(found(&[], 0), None, "it asks for no sync");
        assert_eq!(found(&[("end_fsync", "1"), ("direct", "1")], 0), None, "past the page cache");
        assert_eq!(found(&[("end_fsync", "1"), ("sync", "dsync")], 0), None);
    }
}

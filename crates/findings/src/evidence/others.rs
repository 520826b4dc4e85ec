//! I/O on the devices of a run that the run did not ask for; where no device is seen, others that wait for I/O.
//!
//! Invariant: what a file system and its journal write for the run's own writes is the run's own; so is what the page
//! cache reads ahead.

use fiord_host::{DeviceUse, HostReading};
use fiord_plan::{Direction, Plan};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};
use fiord_stats::Capped;

use super::measured::Measurements;
use super::traffic::Traffic;
use crate::subject::percent;

/// Less than this per second is the noise of any system: logs, and the journal of the file system.
const BYTES_PER_S_MIN: f64 = 1_048_576.0;

/// From this share of the run's own bytes on, in percent, there is a finding.
const CAUTION_MIN: f64 = 5.0;

/// From this share on, the figures are those of a shared device, in percent.
const VOID_MIN: f64 = 50.0;

/// From this share of the time on, in percent, it matters that others wait for I/O.
const WAITED_MIN: f64 = 10.0;

/// Shorter runs are not judged by what tasks wait for, in nanoseconds.
const RUN_MIN_NS: u64 = 500_000_000;

/// What a file system may write of its own metadata for each sync of the run.
pub(crate) const BOOKS_BYTES_PER_SYNC: u64 = 32 << 10;

/// What it may write in addition, per byte of the run.
pub(crate) const BOOKS_SHARE: f64 = 0.05;

/// In requests, where bytes are not counted: what is written for each sync, and how large a request of a disk is at least
/// that is a part of a larger I/O.
const BOOKS_REQUESTS_PER_SYNC: u64 = 4;
const REQUEST_BYTES: u64 = 128 << 10;

/// Fewer per second are the noise of any system.
const REQUESTS_PER_S_MIN: f64 = 20.0;

/// I/O of others on the disks below the files.
pub(super) fn foreign(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let bottoms = measured.devices.iter().filter(|used| used.below.is_empty());
    let elapsed_ns = bottoms.clone().map(|used| used.elapsed_ns).max()?;
    let (read, own_read) = reads(plan, measured)?;
    let (written, own_written) = writes(plan, measured)?;
    let trimmed: u64 =
        measured.working(plan).map(|(_, known)| known.stats.directions[Direction::Trim.index()].bytes).sum();
    let own = own_read + own_written + trimmed;
    let others = read.saturating_sub(own_read) + written.saturating_sub(own_written);
    let busiest = bottoms.max_by_key(|used| used.done().busy_ms).map_or_else(String::new, name);
    beside(Subject::Device(busiest), others, own, elapsed_ns)
}

/// The finding of a device on which others transferred this much beside the run.
pub(crate) fn beside(device: Subject, others: u64, own: u64, elapsed_ns: u64) -> Option<Finding> {
    let per_s = others as f64 / (elapsed_ns as f64 / 1e9).max(0.1);
    let share = percent(others as f64, own as f64);
    // If a run did no I/O on a device, others cannot have affected it.
    if own == 0 || per_s < BYTES_PER_S_MIN || share < CAUTION_MIN {
        return None;
    }
    let code = if share >= VOID_MIN { Code::DiskShared } else { Code::ForeignIo };
    let sentence = format!(
        "other programs transferred {} while this run transferred {} ({share:.0} %)",
        shown_bytes(others),
        shown_bytes(own)
    );
    let finding = Finding::new(code, device, sentence, "stop the other programs, and repeat the run");
    Some(finding.based_on([
        ("others_bytes", Cell::Bytes(others)),
        ("own_bytes", Cell::Bytes(own)),
        ("others_percent", Cell::Number(share, 1)),
    ]))
}

/// Requests of a disk in one direction beside the I/Os of a run, where no bytes are counted.
pub(crate) struct Requests {
    /// `read` or `write`.
    pub direction: &'static str,
    /// Completed by the disk.
    pub done: u64,
    /// Issued by the run.
    pub issued: u64,
    /// The mean size of these, in bytes.
    pub mean_bytes: u64,
    /// What a file system may add to them, per I/O.
    pub books_share: f64,
    /// The run's syncs, as far as they are known.
    pub syncs: u64,
}

impl Requests {
    /// How many more the disk did than the run can have asked for.
    fn excess(&self) -> u64 {
        let whole = self.issued.saturating_mul(self.mean_bytes.div_ceil(REQUEST_BYTES).max(1));
        let books =
            u64::capped(whole as f64 * self.books_share) + self.syncs.saturating_mul(BOOKS_REQUESTS_PER_SYNC);
        self.done.saturating_sub(whole).saturating_sub(books)
    }
}

/// The finding of a device that completed more requests than the run issued.
pub(crate) fn requests_beside(
    device: Subject,
    all: impl Iterator<Item = Requests>,
    elapsed_ns: u64,
) -> Option<Finding> {
    let of = all.max_by_key(Requests::excess)?;
    let per_s = of.excess() as f64 / (elapsed_ns as f64 / 1e9).max(0.1);
    if of.issued == 0
        || per_s < REQUESTS_PER_S_MIN
        || percent(of.excess() as f64, of.issued as f64) < CAUTION_MIN
    {
        return None;
    }
    let Requests { direction, done, issued, .. } = of;
    let more = percent(done.saturating_sub(issued) as f64, issued as f64);
    let sentence =
        format!("it completed {done} {direction}s where this run issued {issued} ({more:.0} % more)");
    let finding =
        Finding::new(Code::ForeignIo, device, sentence, "stop the other programs, and repeat the run");
    Some(finding.based_on([
        ("device_requests", Cell::Count(done)),
        ("own_requests", Cell::Count(issued)),
        ("others_percent", Cell::Number(more, 1)),
    ]))
}

/// The same finding where it is not known what else the run did.
pub(crate) fn or_uncounted(finding: Finding) -> Finding {
    let sentence = format!(
        "{}; or it did more than its report counts: a ramp, verification, syncs, the journal of a file system",
        finding.sentence
    );
    Finding { code: Code::ForeignIo, sentence, ..finding }
}

/// Others that waited for I/O, where no counter shows which device they used. What the kernel counts is when some task
/// waited, so that the time during which none of this run's own group did is that of others alone: the least of it.
pub(super) fn waited(measured: &Measurements<'_>) -> Option<Finding> {
    let (start, end) = measured.ends().filter(|_| measured.is_hidden)?;
    let elapsed_ns = end.taken_ns.saturating_sub(start.taken_ns);
    let since = |of: fn(&HostReading) -> Option<u64>| Some(of(end)?.saturating_sub(of(start)?));
    let all_us = since(|reading| reading.pressure.io_us)?;
    let own_us = since(|reading| reading.group_pressure.io_us)?;
    let share = percent(all_us.saturating_sub(own_us) as f64 * 1e3, elapsed_ns as f64).min(100.0);
    (elapsed_ns >= RUN_MIN_NS && share >= WAITED_MIN).then(|| {
        let sentence = format!(
            "programs outside its control group waited for I/O for at least {share:.0} % of the time, and no counter shows \
             on which device"
        );
        let remedy = "stop the other programs, or measure where the device can be seen";
        let finding = Finding::new(Code::IoPressure, Subject::Run, sentence, remedy);
        finding.based_on([("others_waited_percent", Cell::Number(share, 1))])
    })
}

fn name(used: &DeviceUse) -> String {
    used.device.name.clone()
}

/// Bytes that the disks read, and how many of them at most for this run.
fn reads(plan: &Plan, measured: &Measurements<'_>) -> Option<(u64, u64)> {
    let moved = Traffic::of(plan, measured, Direction::Read);
    // The account of the process has what was read ahead, and what was read to be changed; without it, buffered reads
    // cannot be distinguished from others'.
    let buffered = measured.working(plan).any(|(job, _)| !job.files.direct);
    let own = match moved.process_bytes {
        Some(bytes) => moved.jobs_bytes.max(bytes),
        None if buffered => return Some((0, moved.jobs_bytes)),
        None => moved.jobs_bytes,
    };
    Some((moved.bottom_bytes?, own))
}

/// Bytes that the disks wrote, and how many of them at most for this run.
fn writes(plan: &Plan, measured: &Measurements<'_>) -> Option<(u64, u64)> {
    let moved = Traffic::of(plan, measured, Direction::Write);
    let syncs: u64 = measured.working(plan).map(|(_, known)| known.stats.sync.ios).sum();
    let own = moved.jobs_bytes.max(moved.process_bytes.unwrap_or(0));
    // Each copy of a mirror is written for this run.
    let copies = measured.devices.iter().filter(|used| used.below.is_empty()).count().max(1) as u64;
    let books = u64::capped(own as f64 * BOOKS_SHARE) + syncs * BOOKS_BYTES_PER_SYNC;
    Some((moved.bottom_bytes?, copies * (own + books)))
}

#[cfg(test)]
mod tests {
    use fiord_host::{Pressure, ProcessIo};
    use fiord_stats::JobStats;

    use crate::evidence::testing::{accounted, device, job, moved, nothing};
    use crate::testing::plan;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn found(stats: &JobStats, devices: &[DeviceUse], process: Option<ProcessIo>) -> Option<Code> {
        let plan = plan(&[("a", &[("ioengine", "psync"), ("direct", "1"), ("filename", "/data/f")])]);
        let host = accounted(process);
        foreign(&plan, &Measurements { jobs: &[job(stats)], devices, host: &host, ..nothing() })
            .map(|finding| finding.code)
    }

    #[test]
    fn io_that_the_run_did_not_ask_for_is_found_by_its_share() {
        let own = moved(0, 200 * MIB);
        let found =
            |read_mib, written_mib| found(&own, &[device("sda", read_mib * MIB, written_mib * MIB)], None);
        assert_eq!(found(200, 0), None);
        assert_eq!(found(205, 4), None, "less than 5 %");
        assert_eq!(found(240, 0), Some(Code::ForeignIo));
        assert_eq!(found(200, 40), Some(Code::ForeignIo), "in the other direction, too");
        assert_eq!(found(300, 0), Some(Code::DiskShared));
    }

    #[test]
    fn little_in_a_long_time_is_not() {
        let own = moved(0, 4 * MIB);
        assert_eq!(found(&own, &[device("sda", 4 * MIB, 9 * MIB)], None), None);
        assert_eq!(found(&own, &[device("sda", 4 * MIB, 20 * MIB)], None), Some(Code::DiskShared));
        assert_eq!(
            found(&JobStats::default(), &[device("sda", 0, 500 * MIB)], None),
            None,
            "no I/O of its own"
        );
    }

    #[test]
    fn the_journal_and_read_ahead_are_the_runs_own() {
        let mut own = moved(1, 40 * MIB);
        own.sync.ios = 10_000;
        assert_eq!(found(&own, &[device("sda", 0, 160 * MIB)], None), None, "12 KiB for each sync");
        own.sync.ios = 0;
        assert_eq!(found(&own, &[device("sda", 0, 160 * MIB)], None), Some(Code::DiskShared));
        let read_ahead = ProcessIo { read_bytes: 400 * MIB, write_bytes: 0 };
        assert_eq!(found(&moved(0, 200 * MIB), &[device("sda", 400 * MIB, 0)], Some(read_ahead)), None);
    }

    #[test]
    fn a_run_that_trims_is_judged_by_what_it_trims() {
        let own = moved(Direction::Trim.index(), 200 * MIB);
        assert_eq!(found(&own, &[device("sda", 9 * MIB, 0)], Some(ProcessIo::default())), None);
        assert_eq!(found(&own, &[device("sda", 40 * MIB, 0)], None), Some(Code::ForeignIo));
    }

    #[test]
    fn a_mirror_writes_twice() {
        let own = moved(1, 100 * MIB);
        let over = DeviceUse { below: vec!["sda".into(), "sdb".into()], ..device("md0", 0, 100 * MIB) };
        let below = |name: &str| DeviceUse { holds_files: false, ..device(name, 0, 100 * MIB) };
        assert_eq!(found(&own, &[over, below("sda"), below("sdb")], None), None);
    }
    #[test]
    fn others_that_wait_for_io_are_found_where_no_device_is_seen() {
        let found = |all_us: u64, own_us: Option<u64>, is_hidden: bool| {
            let of = |io_us| Pressure { io_us, ..Pressure::default() };
            let start =
                HostReading { pressure: of(Some(7)), group_pressure: of(Some(0)), ..HostReading::default() };
            let end = HostReading {
                taken_ns: 10_000_000_000,
                pressure: of(Some(7 + all_us)),
                group_pressure: of(own_us),
                ..HostReading::default()
            };
            waited(&Measurements { host: &[start, end], is_hidden, ..nothing() }).map(|finding| finding.code)
        };
        assert_eq!(found(6_000_000, Some(1_000_000), true), Some(Code::IoPressure));
        assert_eq!(found(6_000_000, Some(5_500_000), true), None, "this run itself waited");
        assert_eq!(found(6_000_000, None, true), None, "its own part is not known");
        assert_eq!(found(6_000_000, Some(1_000_000), false), None, "the devices are seen");
    }
}

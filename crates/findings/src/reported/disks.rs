//! What the disks did against what the jobs issued: in bytes, or in requests where the report has no bytes of the disks.
//!
//! Invariant: what a disk transferred in requests of unknown size is never underestimated where a cache is looked for.

use fiord_import::{DirectionFigures, DirectionName, Report};
use fiord_report::{Finding, Subject};
use fiord_stats::Capped;

use super::checks::{Check, Judgement, Outcome};
use super::known::{self, Known};
use crate::evidence::cache;
use crate::evidence::others::{self, Requests};

/// fio reads the disks' counters several times per second: in shorter runs they may lack a large part.
const RUN_MS_MIN: u64 = 3000;

/// The page cache reads and writes whole pages …
const PAGE_BYTES: u64 = 4096;

/// … and in order, requests of up to this size.
const BUFFERED_REQUEST_BYTES: u64 = 1 << 20;

/// What a file system may write in addition, per I/O of a run of which the report does not show the options.
const UNSURE_BOOKS_SHARE: f64 = 0.2;

/// Options whose I/O the kernel counts and the job does not.
const UNCOUNTED: [&str; 7] =
    ["ramp_time", "ramp_size", "verify", "verify_only", "pre_read", "read_iolog", "write_iolog"];

/// What all jobs did in one direction.
#[derive(Clone, Copy, Default)]
struct Issued {
    bytes: u64,
    ios: u64,
}

impl Issued {
    fn mean_bytes(self) -> u64 {
        self.bytes.checked_div(self.ios).unwrap_or(0)
    }
}

/// The jobs and the disks of a report.
struct Disks<'r> {
    report: &'r Report,
    /// Reads and writes of all jobs.
    issued: [Issued; 2],
    /// Whether all I/O was direct; `None` if the report does not say.
    is_direct: Option<bool>,
    is_random: bool,
    /// Whether a job did I/O that its report does not count; `None` if the report does not say.
    is_uncounted: Option<bool>,
    syncs: u64,
    elapsed_ms: u64,
}

pub(super) fn judge(report: &Report, jobs: &[Known<'_>], judged: &mut Judgement) {
    let is_without_disks =
        |job: &Known<'_>| job.queue().is_some_and(|(engine, _)| engine == "null" || engine == "cpuio");
    let disks = match jobs.iter().all(is_without_disks) {
        true => Err("its engine uses no disk"),
        false => Disks::of(report, jobs),
    };
    match disks {
        Ok(disks) => {
            judged.add(Check::Caches, disks.cached());
            judged.add(Check::Caches, disks.unwritten());
            judged.add(Check::Others, disks.others());
        }
        Err(why) => {
            judged.add(Check::Caches, Err(why));
            judged.add(Check::Others, Err(why));
        }
    }
}

const DAMAGED: &str = "a figure of the disks is missing";

impl<'r> Disks<'r> {
    fn of(report: &'r Report, jobs: &[Known<'r>]) -> Result<Disks<'r>, &'static str> {
        if report.disks.is_empty() {
            return Err("the report has no counters of disks");
        }
        if report.disks.iter().any(|disk| disk.is_stacked) {
            return Err("a disk is made of others, which count its I/O again");
        }
        let elapsed_ms = jobs.iter().map(Known::runtime_ms).max().unwrap_or(0);
        if elapsed_ms == 0 {
            return Err(known::NO_RUNTIME);
        }
        if elapsed_ms < RUN_MS_MIN {
            return Err("a run shorter than 3 s");
        }
        let mut issued = [Issued::default(); 2];
        for of in jobs.iter().flat_map(Known::active) {
            let index = match of.name {
                DirectionName::Read => 0,
                DirectionName::Write => 1,
                DirectionName::Trim => continue,
                DirectionName::Mixed => return Err("reads and writes are reported as one"),
            };
            issued[index].bytes += of.bytes.ok_or("bytes of a job are missing")?;
            issued[index].ios += count(of)?;
        }
        let known = jobs.iter().all(Known::has_options);
        let is_random = jobs.iter().all(|job| {
            let of_heading = || job.job.heading.as_ref()?.rw.as_deref();
            job.option(&["rw", "readwrite"]).or_else(of_heading).is_some_and(|rw| rw.starts_with("rand"))
        });
        let uncounted = |job: &Known<'_>| UNCOUNTED.iter().any(|option| job.is_set(&[option]));
        Ok(Disks {
            report,
            issued,
            is_direct: known.then(|| jobs.iter().all(|job| job.is_set(&["direct"]))),
            is_random,
            is_uncounted: known.then(|| jobs.iter().any(uncounted)),
            syncs: report.jobs.iter().filter_map(|job| job.sync.ios).sum(),
            elapsed_ms,
        })
    }

    /// The sum of a counter over the disks, of reads or writes; `None` if one of them lacks it.
    fn sum(&self, of: impl Fn(&fiord_import::DiskFigures) -> [Option<u64>; 2], index: usize) -> Option<u64> {
        self.report.disks.iter().map(|disk| of(disk)[index]).sum()
    }

    /// The most that the disks can have transferred.
    fn bytes_max(&self, index: usize) -> Result<u64, &'static str> {
        if let Some(sectors) = self.sum(|disk| disk.sectors, index) {
            return Ok(sectors.saturating_mul(512));
        }
        let requests = self.sum(|disk| disk.ios, index).zip(self.sum(|disk| disk.merges, index));
        let (ios, merges) = requests.ok_or(DAMAGED)?;
        let mean_bytes = self.issued[index].mean_bytes();
        // A merged request was one of its own. Through the page cache random reads have the size of the jobs' own.
        let request_bytes = match (self.is_direct, self.is_random, index) {
            (Some(true), ..) => mean_bytes,
            (_, true, 0) => mean_bytes.next_multiple_of(PAGE_BYTES),
            _ => mean_bytes.max(BUFFERED_REQUEST_BYTES),
        };
        Ok(ios.saturating_add(merges).saturating_mul(request_bytes))
    }

    fn cached(&self) -> Outcome {
        Ok(cache::cached(self.issued[0].bytes, self.bytes_max(0)?, self.is_direct))
    }

    fn unwritten(&self) -> Outcome {
        Ok(cache::missing(self.issued[1].bytes, self.bytes_max(1)?))
    }

    /// I/O on the disks that the jobs did not issue.
    fn others(&self) -> Outcome {
        if self.is_direct == Some(false) || self.is_uncounted == Some(true) {
            return Err("the disks also count what the jobs do not: buffered I/O, a ramp, verification");
        }
        let disks = &self.report.disks;
        let busiest = disks.iter().max_by_key(|disk| disk.in_queue_ms).map(|disk| disk.name.clone());
        let device = Subject::Device(busiest.unwrap_or_default());
        let found = match self.sum(|disk| disk.sectors, 0).zip(self.sum(|disk| disk.sectors, 1)) {
            Some((read, written)) => {
                self.by_bytes(device, read.saturating_mul(512), written.saturating_mul(512))
            }
            None => self.by_requests(device)?,
        };
        Ok(found.map(|found| if self.is_direct.is_some() { found } else { others::or_uncounted(found) }))
    }

    fn by_bytes(&self, device: Subject, read: u64, written: u64) -> Option<Finding> {
        // Through the page cache a small read is that of a page.
        let own = |of: Issued| match self.is_direct {
            Some(true) => of.bytes,
            _ => of.bytes.max(of.ios.saturating_mul(PAGE_BYTES)),
        };
        let [own_read, own_written] = self.issued.map(own);
        let books = u64::capped(own_written as f64 * self.books_share())
            + self.syncs.saturating_mul(others::BOOKS_BYTES_PER_SYNC);
        let foreign =
            read.saturating_sub(own_read) + written.saturating_sub(own_written.saturating_add(books));
        others::beside(device, foreign, own_read + own_written, self.elapsed_ns())
    }

    fn by_requests(&self, device: Subject) -> Outcome {
        let requests = |index: usize, direction: &'static str| {
            Some(Requests {
                direction,
                done: self.sum(|disk| disk.ios, index)?,
                issued: self.issued[index].ios,
                mean_bytes: self.issued[index].mean_bytes(),
                books_share: self.books_share(),
                syncs: if index == 1 { self.syncs } else { 0 },
            })
        };
        let both = [requests(0, "read").ok_or(DAMAGED)?, requests(1, "write").ok_or(DAMAGED)?];
        Ok(others::requests_beside(device, both.into_iter(), self.elapsed_ns()))
    }

    /// What a file system may write in addition, per I/O.
    fn books_share(&self) -> f64 {
        if self.is_direct.is_some() { others::BOOKS_SHARE } else { UNSURE_BOOKS_SHARE }
    }

    fn elapsed_ns(&self) -> u64 {
        self.elapsed_ms.saturating_mul(1_000_000)
    }
}

/// I/Os of a direction.
fn count(of: &DirectionFigures) -> Result<u64, &'static str> {
    known::ios(of).map(u64::capped).ok_or("the number of I/Os of a job is missing")
}

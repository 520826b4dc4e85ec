//! Findings about a report that was read back: from its own figures alone, since nothing else is known of the run.
//!
//! Invariant: a finding needs every figure and option that it rests on; where a format lacks one, there is no finding.

use fiord_import::{DirectionFigures, DirectionName, JobFigures, LatencyFigures, NeverIssued, Report};
use fiord_options::value::{Reading, Seconds, Size, Value};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject, finding};

use crate::evidence::depth::Delay;
use crate::evidence::waits::{self, ComparedLatencies, Unserved};
use crate::evidence::{cache, depth, errors, length, others, processor};
use crate::lint::queue;
use crate::subject::percent;

/// What is known about engines by name.
#[derive(Clone, Copy)]
pub struct EngineFacts<'a> {
    /// Whether an engine of this name keeps several I/Os in flight; `None` if it is not known.
    pub can_queue: &'a dyn Fn(&str) -> Option<bool>,
}

/// Shorter runs say little about processors.
const RUN_MS_MIN: u64 = 500;

/// fio reads the disks' counters several times per second: in shorter runs they may lack a large part.
const DISKS_RUN_MS_MIN: u64 = 3000;

/// From this share of the latency on, I/Os are waited for while they are submitted, in percent.
const SUBMISSION_MIN: f64 = 50.0;

/// Options that hold a job back on purpose.
const PACED: [&str; 7] =
    ["rate", "rate_iops", "rate_min", "thinktime", "rate_process", "flow", "latency_target"];

/// Options whose I/O the kernel counts and the job does not.
const UNCOUNTED: [&str; 7] =
    ["ramp_time", "ramp_size", "verify", "verify_only", "pre_read", "read_iolog", "write_iolog"];

/// Everything that the figures of a report allow, the worst first.
pub fn of_report(report: &Report, engines: EngineFacts<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for job in &report.jobs {
        let known = Known { report, job };
        found.extend(known.errors());
        found.extend(known.depth(engines));
        found.extend(known.submission());
        found.extend(known.processor());
        found.extend(known.few_samples());
        found.extend(known.stopped_by_size());
        found.extend(known.hidden_waits());
        found.extend(known.never_issued());
    }
    found.extend(disks(report));
    let mut distinct: Vec<Finding> = Vec::new();
    for one in found {
        let same = |known: &Finding| known.code == one.code && known.subject == one.subject;
        if !distinct.iter().any(same) {
            distinct.push(one);
        }
    }
    finding::ordered(&mut distinct);
    distinct
}

/// A job and where its options are.
struct Known<'r> {
    report: &'r Report,
    job: &'r JobFigures,
}

impl<'r> Known<'r> {
    fn subject(&self) -> Subject {
        Subject::Job(self.job.name.clone())
    }

    /// Whether the report says how the job was set up.
    fn has_options(&self) -> bool {
        !self.job.options.is_empty() || !self.report.global_options.is_empty()
    }

    /// The text of an option, which has several names.
    fn option(&self, names: &[&str]) -> Option<&'r str> {
        let in_list = |options: &'r [(String, String)]| {
            let last = options.iter().rev().find(|(name, _)| names.contains(&name.as_str()));
            last.map(|(_, text)| text.as_str())
        };
        in_list(&self.job.options).or_else(|| in_list(&self.report.global_options))
    }

    fn is_set(&self, names: &[&str]) -> bool {
        self.option(names).is_some_and(|text| text != "0")
    }

    /// The engine and `iodepth`, from the options or from the heading of the job's section.
    fn queue(&self) -> Option<(String, u32)> {
        if self.has_options() {
            let engine = self.option(&["ioengine"]).unwrap_or("psync").to_string();
            let depth = self.option(&["iodepth"]).map_or(Some(1), |text| text.trim().parse().ok())?;
            return Some((engine, depth));
        }
        let heading = self.report.headings.iter().find(|heading| heading.name == self.job.name)?;
        Some((heading.ioengine.clone()?, heading.iodepth?))
    }

    fn active(&self) -> impl Iterator<Item = &'r DirectionFigures> + Clone {
        // Mixed is the sum of the others, where there are others.
        let separate = self.job.directions.iter().any(|of| of.name != DirectionName::Mixed);
        let counted =
            move |of: &&DirectionFigures| of.is_active() && (of.name != DirectionName::Mixed || !separate);
        self.job.directions.iter().filter(counted)
    }

    fn runtime_ms(&self) -> u64 {
        self.active().filter_map(|of| of.runtime_ms).max().unwrap_or(0)
    }

    /// I/Os and syncs in flight on average: their rate times their mean latency (Little's law).
    fn mean_depth(&self) -> Option<f64> {
        let in_flight = |of: &DirectionFigures| Some(ios(of)? * of.lat.as_ref()?.mean_ns?);
        let syncs = &self.job.sync;
        let of_syncs = || Some(syncs.ios? as f64 * syncs.lat.as_ref()?.mean_ns?);
        let sum = self.active().map(in_flight).sum::<Option<f64>>()? + of_syncs().unwrap_or(0.0);
        let runtime_ms = self.runtime_ms();
        (runtime_ms > 0).then(|| sum / (runtime_ms as f64 * 1e6))
    }

    fn errors(&self) -> Option<Finding> {
        errors::ignored(self.subject(), self.job.errors?.total)
    }

    fn depth(&self, engines: EngineFacts<'_>) -> Option<Finding> {
        let (engine, asked) = self.queue()?;
        let jobs = self.job.member_count.or_else(|| self.option(&["numjobs"])?.parse().ok()).unwrap_or(1);
        if asked <= 1 {
            return None;
        }
        if !(engines.can_queue)(&engine)? {
            return Some(queue::stays_at_one(self.subject(), &engine, asked));
        }
        // The null engine completes at once, and without options a rate cannot be ruled out.
        let held_back = !self.has_options() || PACED.iter().any(|option| self.is_set(&[option]));
        let count: f64 = self.active().filter_map(ios).sum();
        if held_back || engine == "null" || count < (depth::IOS_PER_DEPTH_MIN * u64::from(asked)) as f64 {
            return None;
        }
        let delay = if self.is_set(&["direct"]) { Delay::Unknown } else { Delay::Buffered };
        depth::below(self.subject(), asked, self.mean_depth()? / f64::from(jobs.max(1)), delay)
    }

    /// libaio that waits for its I/O when it submits it.
    fn submission(&self) -> Option<Finding> {
        let (engine, asked) = self.queue()?;
        if engine != "libaio" || asked <= 1 || self.is_set(&["direct"]) {
            return None;
        }
        let share =
            |of: &DirectionFigures| Some(percent(of.slat.as_ref()?.mean_ns?, of.lat.as_ref()?.mean_ns?));
        let worst = self.active().filter_map(share).max_by(f64::total_cmp)?;
        (worst >= SUBMISSION_MIN).then(|| {
            let sentence = format!("slat is {worst:.0} % of lat: each submission waits for its I/O");
            Finding::new(Code::BufferedAsync, self.subject(), sentence, "direct=1, or ioengine=io_uring")
                .based_on([
                    ("submission_percent", Cell::Number(worst, 1)),
                    ("iodepth", Cell::Count(u64::from(asked))),
                ])
        })
    }

    fn processor(&self) -> Option<Finding> {
        let (cpu, members) = (&self.job.cpu, self.job.member_count.unwrap_or(1));
        let used = cpu.user_percent? + cpu.system_percent?;
        let on_purpose = self.queue().is_some_and(|(engine, _)| engine == "null" || engine == "cpuio")
            || self.is_set(&["hipri", "thinktime_spin"])
            || self.option(&["iodepth_batch_complete_min", "iodepth_batch_complete"]) == Some("0");
        let is_judged = used >= processor::BOUND_MIN && self.runtime_ms() >= RUN_MS_MIN && !on_purpose;
        is_judged.then(|| processor::busy(self.subject(), used.min(100.0), members as usize))
    }

    fn few_samples(&self) -> Option<Finding> {
        let lacking = |of: &DirectionFigures| {
            let latency =
                [&of.clat, &of.lat].into_iter().flatten().find(|latency| !latency.percentiles.is_empty())?;
            let count = ios(of)? as u64;
            let percentiles = latency.percentiles.iter().map(|known| known.percent);
            Some((length::first_lacking(percentiles, count)?, count))
        };
        let worst = self.active().filter_map(lacking).min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(length::few(self.subject(), worst.0, worst.1))
    }

    /// Waits that the response latency has, and the latency from the issue at the same percentile leaves out.
    fn hidden_waits(&self) -> Option<Finding> {
        let compared = self.active().filter_map(|of| {
            let percentile = waits::percentile_of(ios(of)? as u64)?;
            let at = |latency: &LatencyFigures| latency.percentile_ns(percentile);
            let issue_ns = of.lat.as_ref().and_then(at).or_else(|| of.clat.as_ref().and_then(at))?;
            let response_ns = of.response.as_ref().and_then(at)?;
            Some(ComparedLatencies { direction: of.name.name(), percentile, issue_ns, response_ns })
        });
        waits::hidden(self.subject(), self.is_set(&["rate_iops"]), compared)
    }

    fn never_issued(&self) -> Option<Finding> {
        let unserved = self.active().filter_map(|of| {
            let NeverIssued { dropped, waiting } = of.never_issued?;
            Some(Unserved { direction: of.name.name(), dropped, waiting, ios: ios(of)? as u64 })
        });
        let depth = self.queue().map_or(1, |(_, depth)| u64::from(depth));
        waits::lost(self.subject(), depth, unserved)
    }

    /// Only if the job transferred as much as its `size`: it may have ended for other reasons.
    fn stopped_by_size(&self) -> Option<Finding> {
        let mut reading = Reading::default();
        let asked_s =
            Seconds::parse(self.option(&["runtime", "timeout"])?, &mut reading).ok()?.us as f64 / 1e6;
        let Size::Bytes(size) = Size::parse(self.option(&["size"])?, &mut reading).ok()? else { return None };
        let moved: u64 = self.active().filter_map(|of| of.bytes).sum();
        let jobs = u64::from(self.job.member_count.unwrap_or(1));
        let is_done =
            !self.is_set(&["time_based"]) && self.job.error == Some(0) && moved >= size.saturating_mul(jobs);
        if is_done { length::stopped(self.subject(), self.runtime_ms() as f64 / 1e3, asked_s) } else { None }
    }
}

/// I/Os of a direction; where they are not counted, those of its rate and its time.
fn ios(of: &DirectionFigures) -> Option<f64> {
    match of.ios {
        Some(ios) => Some(ios as f64),
        None => Some((of.iops? * of.runtime_ms? as f64 / 1000.0).round()),
    }
}

/// Bytes of the jobs against bytes of the disks.
fn disks(report: &Report) -> Vec<Finding> {
    let mut found = Vec::new();
    let jobs: Vec<Known<'_>> = report.jobs.iter().map(|job| Known { report, job }).collect();
    // A stacked disk counts what its members count again.
    let are_plain = !report.disks.is_empty() && report.disks.iter().all(|disk| !disk.is_stacked);
    let sum = |index: usize| report.disks.iter().map(|disk| disk.sectors[index]).sum::<Option<u64>>();
    let elapsed_ms = jobs.iter().map(Known::runtime_ms).max().unwrap_or(0);
    let is_judged = are_plain && elapsed_ms >= DISKS_RUN_MS_MIN;
    let (true, Some(read), Some(written)) = (is_judged, sum(0), sum(1)) else { return found };
    let (read, written) = (read.saturating_mul(512), written.saturating_mul(512));
    let own = |name: DirectionName| -> u64 {
        let all = jobs.iter().flat_map(Known::active).filter(|of| of.name == name);
        all.filter_map(|of| of.bytes).sum()
    };
    let (own_read, own_written) = (own(DirectionName::Read), own(DirectionName::Write));
    let is_direct = jobs.iter().all(|job| job.is_set(&["direct"]));
    found.extend(cache::cached(own_read, read, is_direct));
    found.extend(cache::missing(own_written, written));
    let uncounted =
        |job: &Known<'_>| !job.has_options() || UNCOUNTED.iter().any(|option| job.is_set(&[option]));
    if !is_direct || jobs.iter().any(uncounted) {
        return found;
    }
    let syncs: u64 = report.jobs.iter().filter_map(|job| job.sync.ios).sum();
    let books = (own_written as f64 * others::BOOKS_SHARE) as u64
        + syncs.saturating_mul(others::BOOKS_BYTES_PER_SYNC);
    let foreign = read.saturating_sub(own_read) + written.saturating_sub(own_written.saturating_add(books));
    let busiest = report.disks.iter().max_by_key(|disk| disk.in_queue_ms).map(|disk| disk.name.clone());
    let device = Subject::Device(busiest.unwrap_or_default());
    found.extend(others::beside(
        device,
        foreign,
        own_read + own_written,
        elapsed_ms.saturating_mul(1_000_000),
    ));
    found
}

#[cfg(test)]
mod tests {
    use fiord_import::{CpuFigures, DiskFigures, Heading, Percentile};

    use super::*;

    const MIB: u64 = 1 << 20;

    /// A job that did this many reads of 4 KiB and 1 ms in ten seconds.
    fn report(options: &[(&str, &str)], ios: u64) -> Report {
        let latency = |mean_ns| LatencyFigures { mean_ns: Some(mean_ns), ..LatencyFigures::default() };
        let read = DirectionFigures {
            name: DirectionName::Read,
            ios: Some(ios),
            bytes: Some(ios * 4096),
            runtime_ms: Some(10_000),
            slat: Some(latency(10_000.0)),
            clat: Some(latency(990_000.0)),
            lat: Some(latency(1_000_000.0)),
            ..DirectionFigures::default()
        };
        let options = options.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let job = JobFigures {
            name: "a".into(),
            error: Some(0),
            options,
            directions: vec![read],
            ..JobFigures::default()
        };
        Report { jobs: vec![job], ..Report::default() }
    }

    #[test]
    fn waits_that_the_latency_from_the_issue_leaves_out_are_found_in_a_report() {
        let found = |response_ns: u64, ios: u64| {
            let mut report = report(&[("rate_iops", "1000")], ios);
            let read = &mut report.jobs[0].directions[0];
            let at = |ns| LatencyFigures {
                percentiles: vec![Percentile { percent: 99.9, ns }],
                ..LatencyFigures::default()
            };
            (read.clat, read.response) = (Some(at(1_000_000)), Some(at(response_ns)));
            let found = of_report(&report, EngineFacts { can_queue: &|_| None });
            found.into_iter().find(|one| one.code == Code::OmittedWaits).map(|one| one.sentence)
        };
        let sentence = "p99.9 of reads is 1ms from the issue and 900ms from the start that the rate intended";
        assert_eq!(found(900_000_000, 20_000).as_deref(), Some(sentence));
        assert_eq!(found(1_900_000, 20_000), None, "less than twice");
        assert_eq!(found(900_000_000, 900), None, "its p99.9 is its maximum");
    }

    #[test]
    fn arrivals_that_were_never_issued_are_found_in_a_report() {
        let found = |waiting: u64| {
            let mut report = report(&[("rate_iops", "1000"), ("iodepth", "4")], 10_000);
            report.jobs[0].directions[0].never_issued = Some(NeverIssued { dropped: 0, waiting });
            codes(&report).contains(&Code::ArrivalsLost)
        };
        assert_eq!([found(0), found(4), found(5), found(500)], [false, false, false, true]);
    }

    fn codes(report: &Report) -> Vec<Code> {
        let can_queue = |name: &str| Some(name != "psync");
        of_report(report, EngineFacts { can_queue: &can_queue }).into_iter().map(|found| found.code).collect()
    }

    #[test]
    fn depths_are_judged_by_littles_law_unless_the_job_is_slowed_down() {
        let depth =
            |options: &[(&str, &str)], ios| codes(&report(&[&[("iodepth", "32")], options].concat(), ios));
        assert_eq!(depth(&[("ioengine", "io_uring")], 31_000), [Code::DepthNotReached]);
        assert_eq!(depth(&[("ioengine", "io_uring")], 200_000), [], "20 of 32");
        assert_eq!(depth(&[("ioengine", "io_uring"), ("rate_iops", "3100")], 31_000), []);
        assert_eq!(depth(&[("ioengine", "io_uring"), ("latency_target", "5ms")], 31_000), []);
        assert_eq!(
            depth(&[("ioengine", "io_uring"), ("numjobs", "4")], 200_000),
            [Code::DepthNotReached],
            "5 each"
        );
        assert_eq!(depth(&[], 31_000), [Code::SyncEngineDepth], "psync is the default");
        // A heading has no rate, so that one cannot be ruled out.
        let mut of_text = report(&[], 31_000);
        let heading = |engine: &str| Heading {
            name: "a".into(),
            ioengine: Some(engine.into()),
            iodepth: Some(32),
            ..Heading::default()
        };
        of_text.headings = vec![heading("io_uring")];
        assert_eq!(codes(&of_text), []);
        of_text.headings = vec![heading("psync")];
        assert_eq!(codes(&of_text), [Code::SyncEngineDepth]);
    }

    #[test]
    fn submission_that_waits_is_found() {
        let found = |direct: &str, slat_ns: f64| {
            let mut report = report(&[("ioengine", "libaio"), ("iodepth", "2"), ("direct", direct)], 20_000);
            report.jobs[0].directions[0].slat.as_mut().unwrap().mean_ns = Some(slat_ns);
            codes(&report)
        };
        assert_eq!(found("0", 900_000.0), [Code::BufferedAsync]);
        assert_eq!(found("0", 100_000.0), []);
        assert_eq!(found("1", 900_000.0), []);
    }

    #[test]
    fn processors_errors_and_counts_are_judged() {
        let mut bound = report(&[], 10_000);
        bound.jobs[0].cpu =
            CpuFigures { user_percent: Some(60.0), system_percent: Some(38.0), ..CpuFigures::default() };
        assert_eq!(codes(&bound), [Code::CpuBound]);
        bound.jobs[0].cpu.user_percent = Some(50.0);
        assert_eq!(codes(&bound), []);
        bound.jobs[0].errors = Some(fiord_import::model::ErrorFigures { total: 3, first: 5 });
        assert_eq!(codes(&bound), [Code::ErrorContinued]);
        let few = |ios| {
            let mut report = report(&[], ios);
            let percentile = fiord_import::model::Percentile { percent: 99.9, ns: 5 };
            report.jobs[0].directions[0].clat.as_mut().unwrap().percentiles = vec![percentile];
            codes(&report)
        };
        assert_eq!((few(9_999), few(10_000)), (vec![Code::FewSamples], vec![]));
    }

    #[test]
    fn a_job_that_ended_at_its_size_is_found() {
        let found = |options: &[(&str, &str)]| codes(&report(options, 256));
        assert_eq!(found(&[("runtime", "60"), ("size", "1m")]), [Code::StoppedBySize]);
        assert_eq!(found(&[("runtime", "10"), ("size", "1m")]), []);
        assert_eq!(found(&[("runtime", "60"), ("size", "2m")]), [], "something else ended it");
        assert_eq!(found(&[("runtime", "60"), ("size", "1m"), ("time_based", "1")]), []);
    }

    #[test]
    fn disks_are_compared_with_the_jobs() {
        let found = |options: &[(&str, &str)], read: u64, stacked| {
            let mut report = report(options, 100 * MIB / 4096);
            let sectors = [Some(read / 512), Some(0)];
            report.disks = vec![DiskFigures {
                name: "sda".into(),
                sectors,
                is_stacked: stacked,
                ..DiskFigures::default()
            }];
            codes(&report)
        };
        assert_eq!(found(&[("bs", "4k")], 8 * MIB, false), [Code::CacheServed]);
        assert_eq!(found(&[("bs", "4k")], 8 * MIB, true), [], "members count again");
        assert_eq!(found(&[("bs", "4k")], 200 * MIB, false), [], "read-ahead");
        assert_eq!(found(&[("direct", "1")], 120 * MIB, false), [Code::ForeignIo]);
        assert_eq!(found(&[("direct", "1")], 200 * MIB, false), [Code::DiskShared]);
        assert_eq!(found(&[("direct", "1"), ("verify", "md5")], 200 * MIB, false), []);
        let mut writes = report(&[], 100 * MIB / 4096);
        writes.jobs[0].directions[0].name = DirectionName::Write;
        writes.disks = vec![DiskFigures { sectors: [Some(0), Some(0)], ..DiskFigures::default() }];
        assert_eq!(codes(&writes), [Code::NotYetWritten]);
        writes.jobs[0].directions[0].runtime_ms = Some(2_000);
        assert_eq!(codes(&writes), [], "too short");
        writes.jobs[0].directions[0].runtime_ms = Some(10_000);
        writes.disks[0].sectors = [None, None];
        assert_eq!(codes(&writes), [], "fio 3.33 does not count bytes");
    }
}

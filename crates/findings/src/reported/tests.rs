//! The findings about made-up reports: those that must raise each, and their near neighbours.
//!
//! Invariant: the report that they begin with has none.

use fiord_import::{
    CpuFigures, DirectionFigures, DirectionName, DiskFigures, Heading, JobFigures, LatencyFigures,
    Percentile, SampleMoments,
};
use fiord_report::{Code, Finding};
use fiord_stats::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};

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
        found.findings.into_iter().find(|one| one.code == Code::OmittedWaits).map(|one| one.sentence)
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
        let counts = &mut report.jobs[0].directions[0].counts;
        counts.add(&DROPPED_ARRIVALS, 0);
        counts.add(&WAITING_ARRIVALS, waiting);
        codes(&report).contains(&Code::ArrivalsLost)
    };
    assert_eq!([found(0), found(4), found(5), found(500)], [false, false, false, true]);
}

fn judged(report: &Report) -> Judgement {
    let can_queue = |name: &str| Some(name != "psync");
    of_report(report, EngineFacts { can_queue: &can_queue })
}

/// As those of a run are.
#[test]
fn findings_of_several_jobs_are_merged() {
    let mut report = report(&[("ioengine", "io_uring"), ("iodepth", "32")], 31_000);
    report.jobs.push(JobFigures { name: "b".into(), ..report.jobs[0].clone() });
    let found = judged(&report).findings;
    let depth: Vec<&Finding> = found.iter().filter(|one| one.code == Code::DepthNotReached).collect();
    let [one] = depth.as_slice() else { panic!("{depth:?}") };
    assert_eq!(one.subject.to_string(), "job a");
    assert!(one.sentence.ends_with(" (and 1 more job)"), "{}", one.sentence);
}

fn codes(report: &Report) -> Vec<Code> {
    judged(report).findings.into_iter().map(|found| found.code).collect()
}

/// Whether a check could not be made.
fn is_open(report: &Report, check: Check) -> bool {
    let Judgement { checked, unchecked, .. } = judged(report);
    let is_open = unchecked.iter().any(|(known, _)| *known == check);
    assert_eq!(checked.contains(&check), !is_open, "{check:?}");
    is_open
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
    of_text.jobs[0].heading = Some(heading("io_uring"));
    assert_eq!(codes(&of_text), [Code::DepthNotReached]);
    assert!(
        judged(&of_text).findings[0].remedy.ends_with("a rate or think time, which the report does not show")
    );
    let samples =
        |stddev| SampleMoments { mean: Some(3100.0), stddev: Some(stddev), ..SampleMoments::default() };
    of_text.jobs[0].directions[0].iops_samples = Some(samples(3.0));
    assert_eq!(codes(&of_text), [], "so constant a rate was set");
    assert!(is_open(&of_text, Check::Depth));
    of_text.jobs[0].directions[0].iops_samples = Some(samples(300.0));
    assert_eq!(codes(&of_text), [Code::DepthNotReached]);
    of_text.jobs[0].heading = Some(heading("psync"));
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
        report.disks =
            vec![DiskFigures { name: "sda".into(), sectors, is_stacked: stacked, ..DiskFigures::default() }];
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

/// Samples of IOPS in a report of text, which has no options.
fn sampled(lowest: u64, highest: u64, mean: f64, stddev: f64) -> Report {
    let mut report = report(&[], 100_000);
    report.jobs[0].directions[0].iops_samples = Some(SampleMoments {
        min: Some(lowest),
        max: Some(highest),
        mean: Some(mean),
        stddev: Some(stddev),
        count: Some(20),
        ..SampleMoments::default()
    });
    report
}

#[test]
fn a_rate_that_swings_is_found_by_its_samples() {
    let swings = sampled(4, 67_130, 31_000.0, 19_220.0);
    assert_eq!(codes(&swings), [Code::NotSteady]);
    let sentence =
        "IOPS of reads were from 4 to 67130 in samples, with a standard deviation of 62 % of their mean";
    assert_eq!(judged(&swings).findings[0].sentence, sentence);
    assert_eq!(codes(&sampled(20_000, 40_000, 31_000.0, 6_200.0)), [], "20 %");
    let with = |change: fn(&mut JobFigures)| {
        let mut report = swings.clone();
        change(&mut report.jobs[0]);
        (codes(&report), is_open(&report, Check::Steadiness))
    };
    let of = |job: &'_ mut JobFigures| job.directions[0].iops_samples.clone();
    assert_eq!(with(|job| job.directions[0].runtime_ms = Some(9_000)), (vec![], true), "too short");
    assert_eq!(
        with(|job| job.options = vec![("thinktime".into(), "1s".into())]),
        (vec![], false),
        "on purpose"
    );
    assert_eq!(with(|job| job.directions[0].iops_samples = None), (vec![], true));
    let few = with(|job| job.directions[0].iops_samples.as_mut().unwrap().count = Some(3));
    assert_eq!(few, (vec![], true));
    // Older versions have samples of bandwidth alone, and do not say how many.
    let mut old = swings.clone();
    let samples = of(&mut old.jobs[0]).map(|samples| SampleMoments { count: None, ..samples });
    (old.jobs[0].directions[0].iops_samples, old.jobs[0].directions[0].bandwidth_samples) = (None, samples);
    assert!(judged(&old).findings[0].sentence.starts_with("bandwidth of reads was from 4B/s to 65.6KiB/s"));
}

#[test]
fn an_io_that_took_seconds_is_found() {
    let longest = |max_ms: u64| {
        let mut report = report(&[], 10_000);
        report.jobs[0].directions[0].lat.as_mut().unwrap().max_ns = Some(max_ms * 1_000_000);
        codes(&report)
    };
    assert_eq!((longest(2980), longest(990)), (vec![Code::SlowIo], vec![]));
    let mut only_clat = report(&[], 10_000);
    let of = &mut only_clat.jobs[0].directions[0];
    (of.lat, of.clat.as_mut().unwrap().max_ns) = (None, Some(6_120_400_000));
    assert_eq!(codes(&only_clat), [Code::SlowIo]);
    only_clat.jobs[0].directions[0].clat = None;
    assert!(is_open(&only_clat, Check::LongestIos));
}

/// A report of these many I/Os of 4 KiB in ten seconds, and of a disk that completed so many requests.
fn with_requests(direction: DirectionName, options: &[(&str, &str)], ios: u64, requests: [u64; 2]) -> Report {
    let mut report = report(options, ios);
    report.jobs[0].directions[0].name = direction;
    report.disks = vec![DiskFigures {
        name: "vdb".into(),
        ios: requests.map(Some),
        merges: [Some(0), Some(0)],
        ..DiskFigures::default()
    }];
    report
}

#[test]
fn requests_of_a_disk_are_compared_where_it_has_no_bytes() {
    let writes = |done: u64| with_requests(DirectionName::Write, &[], 13_731, [0, done]);
    assert_eq!(codes(&writes(48_482)), [Code::ForeignIo]);
    let finding = &judged(&writes(48_482)).findings[0];
    assert!(
        finding.sentence.starts_with(
            "it completed 48482 writes where this run issued 13731 (253 % more); or it did more"
        ),
        "{finding:?}"
    );
    assert_eq!(codes(&writes(16_400)), [], "a journal");
    let mut large = writes(48_482);
    large.jobs[0].directions[0].bytes = Some(13_731 << 20);
    assert_eq!(codes(&large), [], "blocks of 1 MiB are several requests");
    let mut synced = writes(48_482);
    synced.jobs[0].sync.ios = Some(13_731);
    assert_eq!(codes(&synced), [], "the journal of syncs");
    // Whose jobs are known to have done nothing else.
    let sure = with_requests(DirectionName::Write, &[("direct", "1")], 13_731, [0, 48_482]);
    assert!(!judged(&sure).findings[0].sentence.contains("; or it did"));
    let ramp = [("direct", "1"), ("ramp_time", "9")];
    assert_eq!(codes(&with_requests(DirectionName::Write, &ramp, 13_731, [0, 48_482])), []);
}

#[test]
fn reads_that_no_request_fetched_are_found() {
    let reads = |rw: &str, done: u64| {
        let mut report = with_requests(DirectionName::Read, &[], 1_000_000, [done, 0]);
        report.jobs[0].heading = Some(Heading { rw: Some(rw.into()), ..Heading::default() });
        codes(&report)
    };
    assert_eq!(reads("randread", 1_000), [Code::CacheServed], "a thousandth");
    assert_eq!(reads("read", 1_000), [Code::CacheServed], "even in requests of 1 MiB");
    assert_eq!(reads("read", 32_000), [], "read-ahead of 128 KiB");
    assert_eq!(reads("randread", 1_000_000), []);
    let sentence =
        judged(&with_requests(DirectionName::Read, &[], 1_000_000, [0, 0])).findings[0].sentence.clone();
    assert!(sentence.ends_with("but from a cache, or there was nothing to read"), "{sentence}");
}

/// Nothing is vouched for that a report does not show.
#[test]
fn what_a_report_does_not_show_is_not_checked() {
    let bare =
        Report { jobs: vec![JobFigures { name: "a".into(), ..JobFigures::default() }], ..Report::default() };
    let Judgement { checked, unchecked, .. } = judged(&bare);
    assert_eq!(
        (checked.len() + unchecked.len(), checked),
        (8, vec![Check::Steadiness, Check::LongestIos, Check::Percentiles])
    );
    let mut whole =
        with_requests(DirectionName::Read, &[("direct", "1"), ("ioengine", "libaio")], 10_000, [10_000, 0]);
    let samples = sampled(900, 1100, 1000.0, 10.0).jobs[0].directions[0].iops_samples.clone();
    whole.jobs[0].directions[0].iops_samples = samples;
    whole.jobs[0].directions[0].lat.as_mut().unwrap().max_ns = Some(5_000_000);
    let percentile = Percentile { percent: 99.0, ns: 5 };
    whole.jobs[0].directions[0].clat.as_mut().unwrap().percentiles = vec![percentile];
    whole.jobs[0].cpu =
        CpuFigures { user_percent: Some(6.0), system_percent: Some(3.0), ..CpuFigures::default() };
    let Judgement { findings, checked, unchecked } = judged(&whole);
    // Whether hosts ran together is no question of one machine.
    let all = Check::ALL.into_iter().filter(|check| *check != Check::Together).collect();
    assert_eq!((findings, checked, unchecked), (vec![], all, vec![]));
}

/// Two hosts that started so far apart and ran for ten seconds.
fn apart(start_ms: Option<u64>) -> Report {
    let one = report(&[], 1000);
    let job = |host: &str, start_ms| JobFigures { host: Some(host.into()), start_ms, ..one.jobs[0].clone() };
    let jobs = vec![job("db1", Some(5_000)), job("db2", start_ms.map(|ms| 5_000 + ms))];
    Report { jobs, hosts: vec!["db1".into(), "db2".into()], ..Report::default() }
}

#[test]
fn hosts_that_did_not_run_together_are_found() {
    let codes = |start_ms: u64| {
        let judgement = judged(&apart(Some(start_ms)));
        let of_hosts = [Code::NoCommonWindow, Code::NoOverlap];
        let found = judgement.findings.iter().map(|one| one.code).filter(|code| of_hosts.contains(code));
        (found.collect::<Vec<_>>(), judgement.checked.contains(&Check::Together))
    };
    assert_eq!(codes(900), (vec![], true));
    assert_eq!(codes(1100), (vec![Code::NoOverlap], true));
    assert_eq!(codes(5100), (vec![Code::NoCommonWindow, Code::NoOverlap], true));
    assert_eq!(codes(10_700), (vec![Code::NoCommonWindow, Code::NoOverlap], true));
    let unknown = judged(&apart(None));
    assert!(unknown.unchecked.iter().any(|(check, _)| *check == Check::Together));
}

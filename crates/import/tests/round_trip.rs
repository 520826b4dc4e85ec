//! What fiord renders is read back as the same figures, from every format.
//!
//! Invariant: JSON is exact, and every other format agrees with it as far as it prints.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

mod common;
#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;
#[path = "../../../fuzz/src/report.rs"]
mod fuzz_target;

use common::assert_agrees;
use fiord_device::{EnergyScope, EnergyUse};
use fiord_import::{
    DirectionName, LatencyFigures, RepeatedFigures, Report, ReportFormat, WindowFigures, best, read,
};
use fiord_report::{
    Code, Finding, Format as Rendered, RepeatedFigure, RunReport, Subject, TerseVersion, Unified, render,
};
use fiord_stats::Window;
use fiord_stats::count::{DROPPED_ARRIVALS, WAITING_ARRIVALS};
use proptest::prelude::*;

fn only(text: &str) -> Report {
    let mut reports = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(reports.len(), 1, "{text}");
    reports.remove(0)
}

fn p99(latency: &LatencyFigures) -> u64 {
    latency.percentiles.iter().find(|of| of.percent == 99.0).unwrap().ns
}

fn exact(run: &RunReport) -> Report {
    only(&render(run, &[Rendered::Json], TerseVersion::V3))
}

/// Every format of the run agrees with its JSON; returns the fewest figures that were compared in one.
#[track_caller]
fn assert_comes_back(run: &RunReport) -> usize {
    let exact = exact(run);
    let plus = only(&render(run, &[Rendered::JsonPlus], TerseVersion::V3));
    let mut fewest = assert_agrees(&exact, &plus);
    let normal = render(run, &[Rendered::Normal], TerseVersion::V3);
    fewest = fewest.min(assert_agrees(&exact, &only(&normal)));
    for number in 2..=5 {
        let version = TerseVersion::from_number(number).unwrap();
        let terse = only(&render(run, &[Rendered::Terse], version));
        assert_eq!(terse.format, ReportFormat::Terse(number));
        fewest = fewest.min(assert_agrees(&exact, &terse));
    }
    fewest
}

#[test]
fn lifetimes_of_blocks_are_not_taken_for_latencies() {
    let mut run = fixture::run();
    run.jobs[0].stats.blocks = Some(fixture::block_lifetimes());
    assert_comes_back(&run);
}

#[test]
fn json_has_the_figures_of_the_run() {
    let run = fixture::run();
    let report = exact(&run);
    assert_eq!(report.version.as_deref(), Some("fio-3.42"));
    assert_eq!(report.global_options, [("bs".to_string(), "4k".to_string())]);
    assert_eq!(report.disks.len(), 4);
    assert!(report.disks[0].is_stacked && !report.disks[1].is_stacked);
    let (job, known) = (&report.jobs[0], &run.jobs[0]);
    assert_eq!((job.errors.unwrap().total, job.errors.unwrap().first), (1, 28));
    assert_eq!(job.options.len(), 2);
    let (read, of) = (&job.directions[0], &known.stats.directions[0]);
    assert_eq!((read.ios, read.bytes, read.runtime_ms), (Some(of.ios), Some(of.bytes), Some(of.runtime_ms)));
    assert_eq!(read.ios_per_s(), Some(4000.0));
    let (clat, running) = (read.clat.as_ref().unwrap(), &of.completion.running);
    assert_eq!(
        (clat.min_ns, clat.max_ns, clat.count),
        (Some(running.min()), Some(running.max), Some(running.count))
    );
    assert_eq!(p99(clat), of.completion.percentiles(&[99.0])[0]);
    assert_eq!((job.sync.ios, report.jobs[1].error), (Some(50), Some(5)));
    assert!(!job.directions[2].is_active());
}

#[test]
fn every_format_agrees() {
    assert!(assert_comes_back(&fixture::run()) > 100);
    for unified in [Unified::Mixed, Unified::Both] {
        assert!(assert_comes_back(&fixture::run_unified(unified)) > 50);
    }
    let mixed = exact(&fixture::run_unified(Unified::Mixed));
    assert_eq!(mixed.jobs[0].directions[0].name, DirectionName::Mixed);
}

#[test]
fn normal_text_has_what_json_has_not() {
    let mut run = fixture::run();
    let finding =
        Finding::new(Code::FewSamples, Subject::Job("mix".into()), "p99: rests on little", "run longer");
    run.findings.push(finding);
    run.jobs[0].steady = Some(fixture::steady_state());
    let report = only(&render(&run, &[Rendered::Normal], TerseVersion::V3));
    assert_eq!(report.groups.len(), 2);
    assert_eq!(report.groups[0].directions[0].bytes.unwrap() / 1000, 4_096_000 / 1000);
    let found = &report.findings[0];
    let parts = [&found.severity, &found.subject, &found.code, &found.sentence, &found.remedy];
    assert_eq!(parts, ["note", "job mix", "few-samples", "p99: rests on little", "run longer"]);
    assert_eq!(exact(&run).findings, report.findings);
    assert!(report.jobs[0].steady.as_ref().unwrap().attained);
    // Each part names its line.
    let text = render(&run, &[Rendered::Normal], TerseVersion::V3);
    let at = |line: Option<u32>| text.lines().nth(line.unwrap() as usize - 1).unwrap();
    let read = &report.jobs[0].directions[0];
    assert!(at(read.line).starts_with("  read: IOPS="));
    assert!(at(read.slat.as_ref().unwrap().line).starts_with("    slat ("));
    assert!(at(report.disks[1].line).starts_with("  sda: ios="));
    assert!(at(report.jobs[1].line).starts_with("trim: (groupid=1"));
}

#[test]
fn several_formats_and_reports_in_one_file_are_distinguished() {
    let run = fixture::run();
    let all = [Rendered::Terse, Rendered::Json, Rendered::Normal];
    let text = format!("fio: a note\nJobs: 1 (f=1)\r{}", render(&run, &all, TerseVersion::V4));
    let reports = read(&text).unwrap();
    let formats: Vec<ReportFormat> = reports.iter().map(|report| report.format).collect();
    assert_eq!(formats, [ReportFormat::Terse(4), ReportFormat::Json, ReportFormat::Normal]);
    assert_eq!(reports[2].messages.len(), 1);
    assert_eq!(best(reports).unwrap().format, ReportFormat::Json);
    // Status intervals.
    let normal = render(&run, &[Rendered::Normal], TerseVersion::V3);
    assert_eq!(read(&format!("{normal}{normal}")).unwrap().len(), 2);
    let json = render(&run, &[Rendered::Json], TerseVersion::V3);
    let twice = read(&format!("{json}{json}fio: a note")).unwrap();
    assert_eq!(twice[1].line, json.lines().count() as u32 + 1);
}

#[test]
fn response_latencies_come_back_to_the_direction_they_are_of() {
    let mut run = fixture::run();
    let other = fixture::busy_job();
    // Jobs may have the same name, and names may have separators.
    let mut first = fixture::paced_job();
    (first.name, first.show.percentile_list) = ("a: read".to_string(), vec![50.0, 99.9]);
    let mut second = first.clone();
    second.stats.directions[0].response.record(7_000_000_000);
    run.jobs = vec![other, first, second];
    assert!(assert_comes_back(&run) > 100);
    let normal = only(&render(&run, &[Rendered::Normal], TerseVersion::V3));
    for report in [exact(&run), normal] {
        let read = |job: usize| &report.jobs[job].directions[0];
        assert_eq!((&read(0).response, read(0).counts.is_empty()), (&None, true));
        let of = |job: usize| read(job).response.as_ref().unwrap();
        let percents: Vec<f64> = of(1).percentiles.iter().map(|of| of.percent).collect();
        assert_eq!(percents, [50.0, 99.9], "percentile_list holds for them, too");
        assert_eq!((of(1).max_ns, of(2).max_ns), (Some(1_000_000_000), Some(7_000_000_000)));
        let counts = [&DROPPED_ARRIVALS, &WAITING_ARRIVALS].map(|count| read(1).counts.get(count));
        assert_eq!(counts, [Some(3), Some(40)]);
        assert!(report.jobs[1].directions[1].response.is_none(), "the writes have no rate");
    }
    let plus = only(&render(&run, &[Rendered::JsonPlus], TerseVersion::V3));
    let bins = &plus.jobs[1].directions[0].response.as_ref().unwrap().bins;
    let known = &run.jobs[1].stats.directions[0].response.running;
    assert_eq!(bins.iter().map(|(_, count)| count).sum::<u64>(), known.count);
}

#[test]
fn windows_and_repeated_figures_come_back() {
    let mut run = fixture::run();
    let window = |ios: u64| Window { length_ns: 500_000_000, ios: [ios, 0, 0], bytes: [ios * 4096, 0, 0] };
    run.windows = vec![window(10), window(0), window(20)];
    let (subject, figure, title) = ("a, read".to_string(), "p99_ns".to_string(), "P99".to_string());
    run.repeats = vec![RepeatedFigure { subject, figure, title, runs: vec![5.0, 7.5], left_out: 1 }];
    let report = exact(&run);
    let (iops, bandwidth) = (vec![20.0, 0.0, 40.0], vec![81_920.0, 0.0, 163_840.0]);
    let of_reads = WindowFigures { name: DirectionName::Read, window_s: 0.5, iops, bandwidth };
    assert_eq!(report.windows, [of_reads]);
    let (of, figure) = ("a, read".to_string(), "p99_ns".to_string());
    assert_eq!(report.repeats, [RepeatedFigures { of, figure, runs: vec![5.0, 7.5], left_out: 1 }]);
    assert!(fiord_import::read("{\"jobs\": [], \"windows\": {\"read_ios_per_s\": [\"x\"]}}").is_err());
}

#[test]
fn energy_comes_back_from_json() {
    let mut run = fixture::run();
    assert!(exact(&run).main_energy().is_none());
    let used = |source: &str, energy_uj| EnergyUse {
        source: source.to_string(),
        scope: EnergyScope::Processors,
        energy_uj,
        elapsed_ns: 2_000_000_000,
        idle_uw: Some(1_000_000),
    };
    run.energy = vec![used("package-0", 30_000_000), used("package-1", 10_000_000)];
    let report = exact(&run);
    assert_eq!(report.energy.len(), 3, "each package, and both");
    let sum = report.main_energy().unwrap();
    assert_eq!((sum.joules, sum.watts, sum.idle_watts), (Some(40.0), Some(20.0), Some(2.0)));
    assert!(sum.iops_per_watt > Some(0.0) && sum.bytes_per_joule > Some(0.0), "{sum:?}");
}

#[test]
fn sections_of_fiord_alone_are_not_taken_for_others() {
    let text = render(&fixture::run(), &[Rendered::Normal], TerseVersion::V3);
    let groups = text.split("\nDisk stats").next().unwrap();
    // A job may be called as a direction.
    let more = "\nResponse latency, from the start that the rate intended:\n  read: write\n    response (usec): min=1, max=2, \
                avg=1.50, stdev=0.50\n";
    let late = "\nReplay lateness, from the times in the trace:\n  read:\n    lateness (usec): min=1, max=2, avg=1.50, \
                stdev=0.50\n";
    let without = only(groups);
    for more in [more, late] {
        assert_eq!(only(&format!("{groups}{more}")), without, "{more}");
    }
}

#[test]
fn wrong_input_is_an_error_with_its_place() {
    let run = fixture::run();
    let json = render(&run, &[Rendered::Json], TerseVersion::V3);
    let problem = |text: &str| read(text).unwrap_err().to_string();
    let cut = &json[..json.len() / 2];
    assert!(problem(cut).contains("this is not JSON: EOF"), "{}", problem(cut));
    assert_eq!(read(cut).unwrap_err().line, cut.lines().count() as u32);
    let wrong = json.replace("\"ctx\" : 1234", "\"ctx\" : \"many\"");
    let line = wrong.lines().position(|line| line.contains("many")).unwrap() + 1;
    assert_eq!(
        problem(&wrong),
        format!("{line}:15: \"ctx\" is not a whole number of the range it has in reports")
    );
    assert!(problem("{\"a\" : 1}").starts_with("1:1: a JSON document, but not a report of fio"));
    assert!(problem("3;fio-3.42;a;0;0;1").starts_with("1:1: 6 fields do not make a terse line of version 3"));
    assert!(problem("").starts_with("1:1: there is no report of fio here"));
    assert!(problem("1000, 4096, 0, 0, 0\n").starts_with("1:1: there is no report of fio here"));
}

#[test]
fn names_and_descriptions_may_have_separators() {
    let mut run = fixture::run();
    run.jobs[0].name = "a;1;2: b".to_owned();
    run.jobs[0].description = Some("x;y, z".to_owned());
    for number in 2..=5 {
        let version = TerseVersion::from_number(number).unwrap();
        let job = &only(&render(&run, &[Rendered::Terse], version)).jobs[0];
        assert_eq!((job.name.as_str(), job.description.as_deref()), ("a;1;2: b", Some("x;y, z")), "{number}");
    }
}

#[test]
fn what_fio_2_printed_is_read() {
    let text = "\
w: (groupid=0, jobs=1): err= 0: pid=9: Sat Nov 21 01:16:52 2026
  write: io=1024.0KB, bw=512.0KB/s, iops=128, runt=  2000msec
    slat (usec): min=1, max=9, avg= 2.50, stdev= 1.00
    clat (usec): min=10, max=90, avg=20.00, stdev= 5.00
     lat (usec): min=11, max=99, avg=22.50, stdev= 5.00
    clat percentiles (usec):
     |  1.00th=[   10], 99.00th=[   89]
    bw (KB  /s): min=  500, max=  520, per=100.00%, avg=512.00, stdev= 4.00
    lat (usec) : 50=99.00%, 100=1.00%
  cpu          : usr=1.00%, sys=2.00%, ctx=300, majf=0, minf=7
  IO depths    : 1=100.0%, 2=0.0%, 4=0.0%, 8=0.0%, 16=0.0%, 32=0.0%, >=64=0.0%
     issued    : total=r=0/w=256/d=0, short=r=0/w=0/d=0, drop=r=0/w=0/d=0

Run status group 0 (all jobs):
  WRITE: io=1024KB, aggrb=512KB/s, minb=512KB/s, maxb=512KB/s, mint=2000msec, maxt=2000msec

Disk stats (read/write):
  sda: ios=0/256, merge=0/0, ticks=0/5, in_queue=5, util=0.25%
";
    let report = only(text);
    let write = &report.jobs[0].directions[0];
    assert_eq!((write.bytes, write.bandwidth, write.ios), (Some(1 << 20), Some(512 << 10), Some(256)));
    assert_eq!((write.runtime_ms, write.ios_per_s()), (Some(2000), Some(128.0)));
    assert_eq!(write.lat.as_ref().unwrap().mean_ns, Some(22_500.0));
    assert_eq!(p99(write.clat.as_ref().unwrap()), 89_000);
    assert_eq!(write.bandwidth_samples.as_ref().unwrap().mean, Some(524_288.0));
    assert_eq!(report.groups[0].directions[0].runtime_ms_max, Some(2000));
    assert_eq!(report.disks[0].util_percent, Some(0.25));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_figures_come_back(
        ios in 1u64..400, runtime_ms in 1u64..100_000, first_ns in 1u64..5_000_000_000, bits in any::<bool>(),
        decimal in any::<bool>(), digits in 4u32..10,
    ) {
        let mut run = fixture::run();
        run.jobs.truncate(1);
        let job = &mut run.jobs[0];
        job.stats.directions[1] = fixture::direction(ios, runtime_ms, first_ns);
        job.show.unit_base = if bits { 1 } else { 8 };
        job.show.kb_base = if decimal { 1000 } else { 1024 };
        job.show.significant_figures = digits;
        prop_assert!(assert_comes_back(&run) > 60);
    }

    #[test]
    fn no_text_makes_it_panic(at in 0usize..20_000, length in 0usize..40, by in ".{0,8}", format in 0usize..4) {
        let formats = [Rendered::Normal, Rendered::Terse, Rendered::Json, Rendered::JsonPlus];
        let mut text = render(&fixture::run(), &[formats[format]], TerseVersion::V5);
        let floor = |at: usize, text: &str| (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let from = floor(at, &text);
        let to = floor(from + length, &text).max(from);
        text.replace_range(from..to, &by);
        fuzz_target::report(text.as_bytes());
    }
}

//! Results of sweeps on synthetic reports.
//!
//! Invariant: no test depends on the look of a chart, only on its presence.

use fiord_options::{Spec, job};
use fiord_report::RunReport;

use super::*;
use crate::figures::READ;
use crate::ranges;
use crate::testing::{direction, report, settings, target};

fn number(text: &str) -> Option<f64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, suffix) = text.split_at(digits);
    let unit = ["", "k", "M"].iter().position(|known| *known == suffix)?;
    Some(count.parse::<f64>().ok()? * 1024f64.powi(unit as i32))
}

fn key(spec: &'static Spec, counted: Counted, list: &str) -> Key {
    Key { spec, counted, values: ranges::values(std::ffi::OsStr::new(list), Some(&number)).unwrap() }
}

fn threads(list: &str) -> Key {
    key(job::General::numjobs, Counted::Other, list)
}

fn sweep(keys: Vec<Key>) -> Sweep {
    sweep_of(vec![section("sweep", "randread")], keys)
}

fn section(name: &str, rw: &str) -> Section {
    Section::new(name).with([(job::Access::rw, rw.to_string())])
}

fn sweep_of(sections: Vec<Section>, keys: Vec<Key>) -> Sweep {
    let job = SweptJob { sections };
    let pictures = Pictures { colour: false, plot: Some("plot.svg".into()) };
    Sweep::new(keys, job, pictures, &|_| Duration::from_secs(5)).unwrap()
}

/// Reads of 4k only, with this many per second and this latency.
fn reads(step: usize, ios: u64, latency_us: u64) -> StepResult {
    StepResult { step, report: report(Some(direction(ios, 4096, latency_us * 1000)), None) }
}

/// A curve that saturates at its fourth point.
fn saturating() -> Vec<StepResult> {
    let points = [(100, 10), (200, 10), (400, 10), (790, 10), (800, 20), (795, 40)];
    points.iter().enumerate().map(|(step, (ios, latency))| reads(step, *ios, *latency)).collect()
}

#[test]
fn a_step_is_the_job_with_the_swept_options_set() {
    let sections =
        vec![Section::new("sweep").with([(job::Access::direct, "1".to_string())]), Section::new("other")];
    let keys = vec![
        key(job::Access::rw, Counted::Other, "read,write"),
        key(job::Blocks::bs, Counted::Bytes, "4k..8k"),
    ];
    let sweep = sweep_of(sections, keys);
    let names: Vec<&str> = sweep.steps().iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["rw=read bs=4k", "rw=read bs=8k", "rw=write bs=4k", "rw=write bs=8k"]);
    assert_eq!(settings(&sweep.steps()[3]), "[sweep] direct=1 rw=write bs=8k\n[other] rw=write bs=8k");
    assert_eq!(
        (sweep.time().as_secs(), sweep.purpose().as_str()),
        (20, "4 runs over rw=read,write x bs=4k,8k")
    );
}

#[test]
fn too_many_runs_are_refused() {
    let keys = vec![threads("1..500"); 5].into_iter().map(|mut key| {
        key.values = key.values.into_iter().cycle().take(100).collect();
        key
    });
    let refused = Sweep::new(keys.collect(), SweptJob::default(), Pictures::default(), &|_| Duration::ZERO);
    assert!(refused.is_err_and(|why| why.contains("fewer values")));
}

#[test]
fn the_columns_usual_in_shell_scripts_come_first() {
    let sweep = sweep(vec![threads("1..32")]);
    let result = sweep.result(&saturating(), 80);
    let lines: Vec<&str> = result.text.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert_eq!(words(lines[0]), ["RW", "Threads", "IOPS", "BW(MiB/s)", "AvgLat(ms)", "p99(ms)", "Util(%)"]);
    assert_eq!(words(lines[4]), ["randread", "8", "790", "3.09", "0.010", "0.010", "-", "<-", "knee"]);
    assert_eq!(result.text.matches("<- knee").count(), 1);
    assert!(result.text.contains("The knee is the smallest value that reaches 95 %"));
    assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
}

#[test]
fn the_conclusion_names_the_knee() {
    let conclusion = |results: &[StepResult]| sweep(vec![threads("1..32")]).result(results, 80).conclusion;
    assert_eq!(
        conclusion(&saturating()),
        "8 threads reach 99 % of the peak of 3.13 MiB/s, and beyond that only latency grows, from 0.010 to 0.040 ms \
         at 32 threads."
    );
    // Interrupted on the way up.
    assert_eq!(
        conclusion(&saturating()[..3]),
        "The knee is not reached within the range: throughput is still growing at 4 threads, where it is 1.56 MiB/s."
    );
    assert_eq!(
        conclusion(&saturating()[..1]),
        "1 thread gave 0.39 MiB/s; a curve needs at least two runs. No plot is written: it needs an option with two \
         numbers that were run."
    );
    assert_eq!(conclusion(&[]), "");
    let falling: Vec<StepResult> =
        [1000, 900, 500].iter().enumerate().map(|(step, ios)| reads(step, *ios, 9)).collect();
    assert_eq!(
        conclusion(&falling),
        "1 thread already reaches the peak of 3.91 MiB/s, and beyond that throughput falls, to 50 % of it at 4 \
         threads."
    );
    let flat: Vec<StepResult> = (0..3).map(|step| reads(step, 1000, 9)).collect();
    assert!(conclusion(&flat).ends_with("beyond that nothing is gained."), "{}", conclusion(&flat));
}

/// Five rounds over 1, 2, 4 and 8 threads, of which the runs with 4 threads gave this many reads per second.
fn repeated(with_four: [u64; 5]) -> StudyResult {
    let sweep = sweep(vec![threads("1..8")]).repeated(Rounds { min: 5, max: 5 });
    let round = |four: &u64| [reads(0, 100, 10), reads(1, 200, 10), reads(2, *four, 10), reads(3, 400, 10)];
    sweep.result(&with_four.iter().flat_map(round).collect::<Vec<_>>(), 80)
}

#[test]
fn no_knee_is_named_that_the_intervals_of_the_rounds_do_not_carry() {
    let named = repeated([390, 391, 389, 390, 390]);
    assert!(named.conclusion.starts_with("4 threads reach 98 % of the peak"), "{}", named.conclusion);
    assert!(named.text.contains("<- knee"), "{}", named.text);
    // The same median, and an interval of about ± 80.
    let hidden = repeated([300, 460, 390, 340, 430]);
    assert!(
        hidden.conclusion.starts_with(
            "Where throughput stops rising is uncertain, because the runs vary too much: it is somewhere from 4 \
             threads to beyond the range; the peak is 1.56 MiB/s"
        ),
        "{}",
        hidden.conclusion
    );
    assert!(!hidden.text.contains("<- knee"), "{}", hidden.text);
    let (key, knees) = &hidden.tables[0];
    assert_eq!((*key, &knees.rows[0][1], knees.rows[0][2].shown().as_str()), ("knees", &Cell::None, "4"));
}

#[test]
fn each_combination_of_the_others_has_a_knee_of_its_own() {
    let sweep = sweep(vec![threads("1..8"), key(job::Access::rw, Counted::Other, "read,write")]);
    let ios = [(100, 400), (200, 400), (400, 400), (400, 400)];
    let results = ios.iter().enumerate().flat_map(|(number, (first, second))| {
        [reads(2 * number, *first, 10), reads(2 * number + 1, *second, 10)]
    });
    let result = sweep.result(&results.collect::<Vec<_>>(), 80);
    let (key, knees) = &result.tables[0];
    assert_eq!((*key, knees.rows.len()), ("knees", 2));
    let knee = |row: usize| (knees.rows[row][0].shown(), knees.rows[row][1].shown());
    assert_eq!(knee(0), ("rw=read".to_string(), "4".to_string()));
    assert_eq!(knee(1), ("rw=write".to_string(), "1".to_string()));
    assert!(result.conclusion.starts_with("rw=read: 4 threads reach the peak of 1.56 MiB/s, "));
    assert!(result.conclusion.contains("; rw=write: 1 thread already reaches the peak"));
    let (path, svg) = &result.files[0];
    assert_eq!((path.to_str().unwrap(), svg.matches("<polyline").count()), ("plot.svg", 4));
}

#[test]
fn of_many_curves_only_the_best_run_is_described() {
    let sweep = sweep(vec![key(job::Queue::iodepth, Counted::Other, "1..8"), threads("1..32")]);
    let results: Vec<StepResult> = (0..24).map(|step| reads(step, 100 + step as u64, 10)).collect();
    let result = sweep.result(&results, 80);
    assert_eq!(result.conclusion, "Throughput is highest, 0.48 MiB/s, with iodepth=8 numjobs=32.");
    assert_eq!(result.tables[0].1.rows.len(), 4);
    assert!(result.text.contains("CURVE"), "{}", result.text);
}

#[test]
fn words_have_no_curve() {
    let sweep = sweep(vec![key(job::Queue::ioengine, Counted::Other, "psync,libaio")]);
    let result = sweep.result(&[reads(0, 100, 10), reads(1, 200, 5)], 80);
    assert_eq!(
        result.conclusion,
        "Throughput is highest, 0.78 MiB/s, with ioengine=libaio. No plot is written: it needs an option with two \
         numbers that were run."
    );
    assert!(result.files.is_empty() && !result.text.contains("knee"), "{}", result.text);
    assert_eq!(result.table.rows.len(), 2);
}

#[test]
fn mixed_runs_have_a_row_for_each_direction() {
    let sweep = sweep_of(vec![section("sweep", "randrw")], vec![threads("1,2")]);
    let both = report(Some(direction(70, 4096, 1000)), Some(direction(30, 4096, 3000)));
    let result = sweep.result(&[StepResult { step: 0, report: both }], 80);
    assert!(result.text.contains("randrw R ") && result.text.contains("randrw W "), "{}", result.text);
    let csv = result.table.csv();
    assert!(csv.starts_with("job,rw,numjobs,direction,iops,mib_per_s,mean_ns,"), "{csv}");
    assert!(csv.contains("\nsweep,randrw,1,read,70,") && csv.contains("\nsweep,randrw,1,write,30,"), "{csv}");
}

#[test]
fn a_preparing_step_is_not_a_point() {
    let sweep = sweep(vec![threads("1..32")]).prepared_by(target().fill());
    assert!(sweep.steps()[0].prepares);
    let later = saturating()
        .into_iter()
        .map(|results| StepResult { step: results.step + 1, ..results })
        .collect::<Vec<_>>();
    assert!(sweep.result(&later, 80).conclusion.starts_with("8 threads reach"));
}

#[test]
fn noise_comes_from_the_samples_of_the_run() {
    let mut results = saturating();
    // The last run is far above the others, and its samples vary widely.
    let mut last = direction(1100, 4096, 10_000);
    (0..8).for_each(|number| last.bandwidth.record(if number % 2 == 0 { 8000 } else { 800 }));
    results[5].report.jobs[0].stats.directions[READ] = last;
    assert!(figures::bandwidth_error_bytes_per_s(&results[5].report) > 0.0);
    let result = sweep(vec![threads("1..32")]).result(&results, 80);
    assert!(result.conclusion.starts_with("8 threads reach 72 % of the peak"), "{}", result.conclusion);
}

/// Each job of a run has rows of its own, under its name and what it does.
#[test]
fn jobs_have_rows_of_their_own() {
    let sections = || vec![section("a", "read"), section("b", "randwrite")];
    let mut run = report(Some(direction(70, 4096, 1000)), None);
    run.jobs[0].name = "a".to_string();
    let mut other = report(None, Some(direction(30, 4096, 3000)));
    other.jobs[0].name = "b".to_string();
    run.jobs.append(&mut other.jobs);
    let rows = |sweep: &Sweep, report: &RunReport| -> Vec<String> {
        let result = sweep.result(&[StepResult { step: 0, report: report.clone() }], 80);
        let csv = result.table.csv();
        let row = |row: &str| row.split(',').take(5).collect::<Vec<_>>().join(" ");
        assert!(result.text.starts_with("JOB"), "{}", result.text);
        csv.lines().skip(1).map(row).collect()
    };
    let sweep = sweep_of(sections(), vec![threads("1,2")]);
    assert_eq!(rows(&sweep, &run), ["a read 1 read 70", "b randwrite 1 write 30"]);
    // Where `rw` is swept, it is what all of them did.
    let swept =
        sweep_of(sections(), vec![key(job::Access::rw, Counted::Other, "read,write"), threads("1,2")]);
    assert_eq!(rows(&swept, &run), ["a read 1 read 70", "b read 1 write 30"]);
    // Reported as one, they have rows together, under both names.
    let mut merged = report(Some(direction(70, 4096, 1000)), Some(direction(30, 4096, 3000)));
    merged.jobs[0].name = "a".to_string();
    let result = sweep.result(&[StepResult { step: 0, report: merged }], 80);
    let csv = result.table.csv();
    assert!(csv.contains("\n\"a, b\",\"read, randwrite\",1,read,70,"), "{csv}");
    assert!(csv.contains(",1,write,30,"), "{csv}");
}

/// A figure has the same digits in the conclusion and in the table.
#[test]
fn sentence_and_table_show_the_same_figure() {
    let mut results = saturating();
    results.iter_mut().for_each(|run| {
        let stats = &mut run.report.jobs[0].stats.directions[READ];
        (stats.bytes, stats.runtime_ms) = (stats.ios << 20, 4321);
    });
    let result = sweep(vec![threads("1..32")]).result(&results, 80);
    let cells = |threads: &str| {
        let row = result.text.lines().find(|line| line.split_whitespace().nth(1) == Some(threads)).unwrap();
        row.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    let (peak, knee, last) = (cells("16"), cells("8"), cells("32"));
    assert!(result.conclusion.contains(&format!("the peak of {} MiB/s", peak[3])), "{result:?}");
    let grows = format!("from {} to {} ms", knee[4], last[4]);
    assert!(result.conclusion.contains(&grows), "{grows}: {}", result.conclusion);
    let knees = &result.tables[0].1;
    assert_eq!(knees.rows[0][4].shown(), knee[3]);
    assert!(matches!(knees.rows[0][1], Cell::Formatted(_, 8.0)), "{knees:?}");
}

//! Comparisons of synthetic results whose true difference is known.
//!
//! Invariant: noise is generated, so that how often it is called a difference can be counted.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_compare::compared::{Interval, Verdict};
use fiord_compare::{Aspect, Comparison, Decision, NamedRun, Settings, Side, compare, study_runs};
use fiord_import::{
    DirectionFigures, DirectionName, EnergyFigures, JobFigures, LatencyFigures, Percentile, Report,
    ReportFormat, ReportedFinding, WindowFigures,
};
use fiord_report::json::Writer;
use fiord_stats::Random;

/// A normal value around 0 with a deviation of 1, as the sum of twelve uniform ones.
fn noise(random: &mut Random) -> f64 {
    (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
}

/// How noisy a synthetic disk is: the share by which windows vary, how much of it lasts to the next, and the share by
/// which whole runs vary.
#[derive(Clone, Copy)]
struct Noise {
    windows: f64,
    kept: f64,
    runs: f64,
}

const QUIET: Noise = Noise { windows: 0.03, kept: 0.5, runs: 0.01 };
const NOISY: Noise = Noise { windows: 0.10, kept: 0.6, runs: 0.015 };

const DEPTH: f64 = 8.0;

/// A run of ten seconds of random reads at this rate.
fn run(random: &mut Random, iops: f64, with: Noise) -> Report {
    let of_run = iops * (1.0 + with.runs * noise(random));
    let mut off = 0.0;
    let mut bins: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    let mut rates = Vec::new();
    for _ in 0..40 {
        off = with.kept * off + (1.0 - with.kept * with.kept).sqrt() * with.windows * noise(random);
        let rate = (of_run * (1.0 + off)).max(1.0);
        rates.push(rate);
        // Latencies around depth / rate, with a tail.
        for _ in 0..60 {
            let mean_ns = DEPTH / rate * 1e9;
            let tail = if random.below(60) == 0 { 4.0 } else { 1.0 };
            let ns = (mean_ns * tail * (1.0 + 0.1 * noise(random)).max(0.1)) as u64;
            *bins.entry(ns >> 12 << 12).or_insert(0) += (rate / 240.0) as u64;
        }
    }
    let ios: u64 = bins.values().sum();
    let mean_ns = bins.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum::<f64>() / ios as f64;
    let mean_rate = rates.iter().sum::<f64>() / 40.0;
    let clat = LatencyFigures {
        min_ns: bins.keys().next().copied(),
        max_ns: bins.keys().next_back().copied(),
        mean_ns: Some(mean_ns),
        stddev_ns: Some(mean_ns / 2.0),
        count: Some(ios),
        bins: bins.into_iter().collect(),
        ..LatencyFigures::default()
    };
    let total = (mean_rate * 10.0) as u64;
    let read = DirectionFigures {
        name: DirectionName::Read,
        bytes: Some(total * 4096),
        ios: Some(total),
        runtime_ms: Some(10_000),
        clat: Some(clat),
        ..DirectionFigures::default()
    };
    let options =
        [("rw", "randread"), ("bs", "4k"), ("iodepth", "8"), ("ioengine", "io_uring"), ("direct", "1")];
    let windows = WindowFigures {
        name: DirectionName::Read,
        window_s: 0.25,
        bandwidth: rates.iter().map(|rate| rate * 4096.0).collect(),
        iops: rates,
    };
    Report {
        format: ReportFormat::JsonPlus,
        jobs: vec![JobFigures {
            name: "job".to_string(),
            directions: vec![read],
            options: options.map(|(name, value)| (name.to_string(), value.to_string())).to_vec(),
            ..JobFigures::default()
        }],
        windows: vec![windows],
        ..Report::default()
    }
}

fn side(name: &str, reports: Vec<Report>) -> Side {
    let runs = reports.into_iter().map(|report| NamedRun { name: String::new(), report }).collect();
    Side { name: name.to_string(), runs, ..Side::default() }
}

fn pair(one: Vec<Report>, other: Vec<Report>) -> Comparison {
    compare(&[side("before", one), side("after", other)], &Settings::default())
}

/// Whether any figure, and whether the rate, is called different.
fn called(comparison: &Comparison) -> (bool, bool) {
    let is_called = |verdict| matches!(verdict, Verdict::Better | Verdict::Worse);
    let verdict = |name: &str| {
        let row = &comparison.rows[0];
        let found = row.figures.iter().find(|figure| figure.figure.to_string() == name).unwrap();
        found.changes[0].unwrap().verdict
    };
    let all = comparison.rows[0].figures.iter().flat_map(|figure| &figure.changes);
    (all.flatten().any(|change| is_called(change.verdict)), verdict("read.iops") == Verdict::Worse)
}

/// How many of this many pairs are called different, and in how many the rate is called worse.
fn count(pairs: usize, runs: usize, with: Noise, slowed: f64) -> (usize, usize) {
    let mut random = Random::new(1000 * runs as u64 + pairs as u64);
    let mut counts = (0, 0);
    for _ in 0..pairs {
        let mut of = |iops: f64| (0..runs).map(|_| run(&mut random, iops, with)).collect();
        let (one, other) = (of(20_000.0), of(20_000.0 * slowed));
        let (any, worse) = called(&pair(one, other));
        counts.0 += usize::from(any);
        counts.1 += usize::from(worse);
    }
    counts
}

#[test]
fn ten_pairs_of_the_same_are_called_the_same_and_ten_with_a_tenth_less_are_called_worse() {
    for (runs, with) in [(1, QUIET), (3, QUIET), (5, NOISY)] {
        let (any, _) = count(10, runs, with, 1.0);
        assert!(any <= 1, "{runs} runs of the same: {any} of 10 called different");
        let (_, worse) = count(10, runs, with, 0.9);
        assert!(worse >= 9, "{runs} runs with a tenth less: {worse} of 10 called worse");
    }
}

#[test]
fn the_same_is_called_different_in_a_twentieth_of_all_pairs_at_most() {
    for (runs, with) in [(1, QUIET), (1, NOISY), (2, NOISY), (3, NOISY), (6, QUIET)] {
        let (any, _) = count(200, runs, with, 1.0);
        // Three standard errors of 200 pairs are 4.6 %.
        assert!(any <= 19, "{runs} runs: {any} of 200");
    }
}

/// The ends of an interval.
type Ends = (f64, f64);

/// The interval and the word of each line of the table of two results, and the intervals of the sentence.
fn printed(comparison: &Comparison) -> (Vec<(Ends, String)>, Vec<Ends>) {
    let ends = |text: &str, between: &str| {
        let (low, high) = text.split_once(between).unwrap();
        (low.parse::<f64>().unwrap(), high.parse::<f64>().unwrap())
    };
    let row = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let at = cells.iter().position(|cell| cell.contains("..")).unwrap();
        (ends(cells[at], ".."), cells[at + 1..].join(" "))
    };
    let table = comparison.table(80);
    let sentence = &comparison.sentences()[0];
    let named = sentence.split(" (").filter_map(|rest| rest.split_once(" %)"));
    let named = named.filter(|(inner, _)| inner.contains(" to ")).map(|(inner, _)| ends(inner, " to "));
    (table.lines().filter(|line| line.contains("..")).map(row).collect(), named.collect())
}

#[test]
fn no_word_contradicts_the_interval_beside_it() {
    let mut random = Random::new(2026);
    let (mut near, mut words) = (0, [0; 4]);
    for pair_number in 0..400 {
        let with = if pair_number % 2 == 0 { QUIET } else { NOISY };
        let runs = [1, 3][pair_number / 2 % 2];
        let slowed = 0.85 + random.below(300) as f64 / 1000.0;
        let mut of = |iops: f64| (0..runs).map(|_| run(&mut random, iops, with)).collect();
        let comparison = pair(of(20_000.0), of(20_000.0 * slowed));
        let (rows, named) = printed(&comparison);
        assert!(rows.len() >= 5 && !named.is_empty(), "{}", comparison.text(80));
        for (line, ((low, high), word)) in rows.iter().enumerate() {
            let is_rate = line < 2;
            // Two rates, mean, median, and two higher percentiles.
            let margin = if line < 4 { 10.0 } else { 25.0 };
            let expected = match (*low > 0.0, *high < 0.0) {
                (false, false) if *low >= -margin && *high <= margin => "same",
                (false, false) => "cannot tell",
                (is_more, _) if is_more == is_rate => "better",
                _ => "worse",
            };
            assert_eq!(word, expected, "{}", comparison.text(80));
            words[["same", "better", "worse", "cannot tell"]
                .iter()
                .position(|known| known == word)
                .unwrap()] += 1;
            near += usize::from(low.abs().min(high.abs()) < 0.5);
        }
        let is_in_table = |named: &Ends| rows.iter().any(|(ends, _)| ends == named);
        assert!(named.iter().all(is_in_table), "{}", comparison.text(80));
        // A change lies in the interval that is shown.
        for change in comparison.rows[0].figures.iter().flat_map(|figure| &figure.changes).flatten() {
            let interval = change.interval.unwrap();
            let shown: f64 = format!("{:.1}", change.percent).parse().unwrap();
            assert!((interval.low()..=interval.high()).contains(&shown), "{change:?}");
        }
    }
    assert!(near > 20 && words.iter().all(|count| *count > 50), "{near} near zero, {words:?}");
}

proptest::proptest! {
    /// Ends that are rounded towards zero would be shown as zero and judged as more.
    #[test]
    fn an_interval_is_judged_as_it_is_shown(low in -0.3..0.3, width in 0.0..0.3) {
        let interval = Interval::around(low, low + width);
        let [shown_low, shown_high] = [interval.low(), interval.high()]
            .map(|end| format!("{end:+.1}").parse::<f64>().unwrap());
        assert!(shown_low <= low && low + width <= shown_high);
        let verdict = interval.verdict(true, 0.2);
        let is_none = matches!(verdict, Verdict::Same | Verdict::CannotTell);
        assert_eq!(is_none, shown_low <= 0.0 && shown_high >= 0.0);
        assert_eq!(verdict == Verdict::Same, is_none && shown_low >= -0.2 && shown_high <= 0.2);
        assert_eq!(interval.verdict(false, 0.2) == verdict, is_none);
    }
}

#[test]
fn a_report_without_windows_has_changes_and_no_judgement() {
    let mut random = Random::new(5);
    let mut plain = |iops: f64| {
        let mut report = run(&mut random, iops, QUIET);
        report.windows.clear();
        vec![report]
    };
    let comparison = pair(plain(20_000.0), plain(10_000.0));
    let row = &comparison.rows[0];
    let verdicts: Vec<Verdict> =
        row.figures.iter().flat_map(|figure| &figure.changes).flatten().map(|one| one.verdict).collect();
    assert!(
        verdicts.len() >= 5 && verdicts.iter().all(|verdict| *verdict == Verdict::CannotTell),
        "{verdicts:?}"
    );
    let sentence = &comparison.sentences()[0];
    assert!(sentence.starts_with("Cannot tell whether after differs from before: "), "{sentence}");
    assert!(sentence.ends_with("a measure of noise: repeated runs, windows or samples."), "{sentence}");
    let text = comparison.text(80).replace('\n', " ");
    assert!(
        text.contains("only a change that is beyond any plausible noise of runs of that length"),
        "{text}"
    );
}

/// Energy of single runs is shown, and nothing is concluded from it; of three runs each it is judged like any figure.
#[test]
fn energy_is_compared_where_both_sides_have_it() {
    let mut random = Random::new(11);
    let mut with = |watts: &[f64]| -> Vec<Report> {
        let of = |watts: &f64| {
            let used = |source: &str, watts| EnergyFigures {
                source: source.to_string(),
                watts: Some(watts),
                iops_per_watt: Some(20_000.0 / watts),
                ..EnergyFigures::default()
            };
            let energy = vec![used("package-0", watts / 2.0), used(EnergyFigures::SUM, *watts)];
            Report { energy, ..run(&mut random, 20_000.0, QUIET) }
        };
        watts.iter().map(of).collect()
    };
    let single = pair(with(&[20.0]), with(&[10.0]));
    let plain = pair(vec![run(&mut Random::new(11), 20_000.0, QUIET)], with(&[10.0]));
    let several = pair(with(&[20.0, 20.2, 19.9]), with(&[10.0, 10.1, 9.9]));
    let figure = |comparison: &Comparison, name: &str| {
        let all = comparison.rows[0].figures.iter();
        let found = all.filter(|figure| figure.figure.to_string() == name).map(|figure| figure.changes[0]);
        found.collect::<Vec<_>>().first().copied()
    };
    let verdict = |comparison: &Comparison, name: &str| figure(comparison, name).unwrap().unwrap().verdict;
    assert_eq!(verdict(&single, "energy.watts"), Verdict::CannotTell);
    assert_eq!(figure(&single, "energy.iops_per_watt").unwrap().unwrap().percent.round(), 100.0);
    assert!(!single.sentences()[0].contains("energy"), "{}", single.text(80));
    let text = single.text(80);
    assert!(text.contains("20.0 W") && text.contains("three runs of each on"), "{text}");
    assert_eq!(figure(&plain, "energy.watts"), Some(None), "one side has none");
    assert_eq!(figure(&single, "energy.bytes_per_joule"), None, "neither has it");
    assert_eq!(verdict(&several, "energy.watts"), Verdict::Better);
    assert_eq!(verdict(&several, "energy.iops_per_watt"), Verdict::Better);
    // Of two jobs at the same time nothing shows which of them used it.
    let mut two = with(&[20.0]);
    let other = JobFigures { name: "other".to_string(), ..two[0].jobs[0].clone() };
    two[0].jobs.push(other);
    let beside = pair(two.clone(), two);
    assert!(beside.rows.len() == 2 && figure(&beside, "energy.watts").is_none(), "{}", beside.text(80));
}

/// A report as old text has it: counts, times and percentiles, and nothing of how the run varied.
fn old(ios: u64, runtime_ms: u64) -> Report {
    let ns = |share: f64| (runtime_ms as f64 * 1e6 / ios as f64 * share) as u64;
    let percentiles =
        [(50.0, 0.8), (99.0, 2.5)].map(|(percent, share)| Percentile { percent, ns: ns(share) });
    let clat = LatencyFigures {
        max_ns: Some(ns(5.0)),
        mean_ns: Some(ns(1.0) as f64),
        stddev_ns: Some(ns(0.5) as f64),
        percentiles: percentiles.to_vec(),
        ..LatencyFigures::default()
    };
    let read = DirectionFigures {
        ios: Some(ios),
        runtime_ms: Some(runtime_ms),
        clat: Some(clat),
        name: DirectionName::Read,
        ..DirectionFigures::default()
    };
    let job = JobFigures { name: "job".to_string(), directions: vec![read], ..JobFigures::default() };
    Report { jobs: vec![job], ..Report::default() }
}

#[test]
fn a_difference_beyond_any_plausible_noise_of_runs_of_that_length_is_one() {
    let rate = |from: (u64, u64), to: (u64, u64)| {
        let comparison = pair(vec![old(from.0, from.1)], vec![old(to.0, to.1)]);
        let figure = &comparison.rows[0].figures[0];
        assert_eq!(
            (figure.figure.to_string(), figure.estimates[0].unwrap().basis.words()),
            ("read.iops".into(), "the run time".into())
        );
        (figure.changes[0].unwrap().verdict, comparison.sentences().remove(0))
    };
    let (verdict, sentence) = rate((15_500, 100_000), (514_800, 100_000));
    assert_eq!(verdict, Verdict::Better, "{sentence}");
    assert!(sentence.starts_with("after is faster than before: read.iops "), "{sentence}");
    assert_eq!(rate((514_800, 100_000), (15_500, 100_000)).0, Verdict::Worse);
    // Twice as fast may be another day; and of a tenth of a second, or of a handful of I/Os, nothing is known.
    assert_eq!(rate((15_500, 100_000), (31_000, 100_000)).0, Verdict::CannotTell);
    assert_eq!(rate((155, 100), (5_148, 100)).0, Verdict::CannotTell);
    assert_eq!(rate((1, 100_000), (8, 100_000)).0, Verdict::CannotTell);
    // Nothing plausible makes two such runs the same.
    let (verdict, sentence) = rate((15_500, 100_000), (15_500, 100_000));
    assert_eq!(verdict, Verdict::CannotTell);
    assert!(sentence.starts_with("Cannot tell whether after differs from before"), "{sentence}");
}

/// Runs that differ by an order of magnitude show no difference, and no equality either.
#[test]
fn what_noise_may_hide_is_not_called_the_same() {
    let runs = |iops: [f64; 3]| -> Vec<Report> {
        iops.iter().map(|iops| run(&mut Random::new(*iops as u64), *iops, QUIET)).collect()
    };
    let comparison = pair(runs([200.0, 20_000.0, 9000.0]), runs([15_000.0, 900.0, 40_000.0]));
    let changes = || comparison.rows[0].figures.iter().flat_map(|figure| &figure.changes).flatten();
    assert!(changes().all(|change| change.verdict == Verdict::CannotTell), "{}", comparison.text(80));
    let sentence = &comparison.sentences()[0];
    assert!(sentence.contains("What is missing is precision: three runs or more"), "{sentence}");
    assert!(!comparison.text(80).contains("within noise"), "{}", comparison.text(80));
}

#[test]
fn the_margin_is_said_and_can_be_set() {
    let mut random = Random::new(9);
    let mut three = |iops: f64| (0..3).map(|_| run(&mut random, iops, QUIET)).collect();
    let sides = [side("before", three(20_000.0)), side("after", three(20_000.0))];
    let with =
        |margin: &str| compare(&sides, &Settings { margin: margin.parse().unwrap(), ..Settings::default() });
    let verdict = |comparison: &Comparison| comparison.rows[0].figures[0].changes[0].unwrap().verdict;
    let default = compare(&sides, &Settings::default());
    assert_eq!(verdict(&default), Verdict::Same, "{}", default.text(80));
    assert!(default.sentences()[0].contains("within ±10 % (±25 % above p75)"), "{}", default.text(80));
    assert_eq!(verdict(&with("0.1%")), Verdict::CannotTell);
    assert!(with("40%").text(80).contains("within ±40 %"), "{}", with("40%").text(80));
    for comparison in [default, with("0.1%"), with("40%")] {
        assert!(
            comparison.text(80).lines().all(|line| line.chars().count() <= 80),
            "{}",
            comparison.text(80)
        );
    }
}

#[test]
fn results_of_different_workloads_are_not_judged() {
    let report = || run(&mut Random::new(7), 20_000.0, QUIET);
    let option = |name: &'static str, value: &'static str| {
        move |side: &mut Side| {
            let options = &mut side.runs[0].report.jobs[0].options;
            options.retain(|(known, _)| known != name);
            options.push((name.to_string(), value.to_string()));
        }
    };
    type Changed = Box<dyn Fn(&mut Side)>;
    let cases: [(Aspect, &str, Changed); 9] = [
        (Aspect::Pattern, "the pattern differs (randread, read)", Box::new(option("rw", "read"))),
        (Aspect::Depth, "the depth differs (8, 16)", Box::new(option("iodepth", "16"))),
        (Aspect::Engine, "the engine differs (io_uring, libaio)", Box::new(option("ioengine", "libaio"))),
        (Aspect::Direct, "the access differs (direct, through the cache)", Box::new(option("direct", "0"))),
        (Aspect::Jobs, "the number of jobs differs (1, 4)", Box::new(option("numjobs", "4"))),
        (
            Aspect::BlockSize,
            "the block size differs (4KiB, 8KiB)",
            Box::new(|side| {
                let read = &mut side.runs[0].report.jobs[0].directions[0];
                read.bytes = read.bytes.map(|bytes| bytes * 2);
            }),
        ),
        (
            Aspect::Host,
            "the host differs (vole, mole)",
            Box::new(|side| side.host = Some("mole".to_string())),
        ),
        (
            Aspect::Kernel,
            "the kernel differs (6.1, 6.12)",
            Box::new(|side| side.kernel = Some("6.12".into())),
        ),
        (
            Aspect::Findings,
            "the figures of after are void (in-memory)",
            Box::new(|side| {
                side.runs[0].report.findings.push(ReportedFinding {
                    code: "in-memory".to_string(),
                    severity: "void".to_string(),
                    ..ReportedFinding::default()
                });
            }),
        ),
    ];
    for (aspect, why, change) in cases {
        let before = Side {
            host: Some("vole".to_string()),
            kernel: Some("6.1".to_string()),
            ..side("before", vec![report()])
        };
        let mut after = Side { name: "after".to_string(), ..before.clone() };
        change(&mut after);
        let sides = [before, after];
        let comparison = compare(&sides, &Settings::default());
        let sentence = format!("after is not comparable with before, because {why}.");
        assert_eq!(comparison.sentences(), [sentence]);
        let text = comparison.text(80);
        assert!(!text.contains("\n\n\n") && !comparison.markdown().contains("\n\n\n"), "{text}");
        let figures = || text.lines().filter(|line| line.contains(" %  ") && line.contains(".."));
        assert!(figures().count() > 0 && figures().all(|line| line.ends_with("  ?")), "{text}");
        assert!(
            text.replace('\n', " ").contains("? marks changes that are not judged; --across LIST "),
            "{text}"
        );
        let across = compare(&sides, &Settings { across: vec![aspect], ..Settings::default() });
        assert!(!across.sentences()[0].contains("not comparable"), "{:?}", across.sentences());
        assert_eq!(Aspect::from_name(aspect.name()), Some(aspect));
    }
}

#[test]
fn a_result_is_the_same_as_itself() {
    let report = || run(&mut Random::new(7), 20_000.0, QUIET);
    let same = pair(vec![report()], vec![report()]);
    assert!(
        same.sentences()[0].starts_with("after is the same as before within ±10 % (±25 % above p75)"),
        "{}",
        same.text(80)
    );
}

fn with_conditions(conditions: &[&str], slowed: f64) -> Comparison {
    let mut random = Random::new(11);
    let sides = [20_000.0, 20_000.0 * slowed].map(|iops| {
        side(if iops > 19_999.0 { "before" } else { "after" }, vec![run(&mut random, iops, QUIET)])
    });
    let conditions = conditions.iter().map(|text| text.parse().unwrap()).collect();
    compare(&sides, &Settings { conditions, ..Settings::default() })
}

#[test]
fn conditions_hold_only_beyond_noise() {
    let conditions = [
        "read.iops < -10%",
        "read.iops < -40%",
        "read.p50 > +10%",
        "read.p99.5 > 1ms",
        "read.iops < 100",
        "write.iops < 5",
        "other: read.iops < 5",
    ];
    let slow = with_conditions(&conditions, 0.7);
    let decisions: Vec<Decision> = slow.outcomes.iter().map(|outcome| outcome.decision).collect();
    use Decision::{Clear, Holds, Undecided};
    assert_eq!(decisions, [Holds, Clear, Holds, Holds, Clear, Undecided, Undecided], "{:#?}", slow.outcomes);
    assert_eq!(slow.decision(), Some(Holds));
    let same = with_conditions(&["read.iops < -0.01%", "read.iops > +0.01%"], 0.9999);
    let mut decisions: Vec<Decision> = same.outcomes.iter().map(|outcome| outcome.decision).collect();
    decisions.sort();
    assert_eq!(decisions, [Clear, Undecided], "{:#?}", same.outcomes);
}

#[test]
fn every_form_has_the_sentence_and_fits() {
    let comparison = with_conditions(&["read.iops < -10%", "job: read.p50 < 1ns"], 0.7);
    let text = comparison.text(80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.starts_with("A  before\nB  after\n\nFIGURE"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&comparison.json()).unwrap();
    assert_eq!(json["rows"][0]["figure"], "read.iops");
    assert_eq!(json["rows"][0]["verdict"], "worse");
    assert_eq!(json["rows"][0]["from_error"], "40 windows of a run");
    assert_eq!(json["conditions"][0]["decision"], "holds");
    assert!(json["sentences"][0].as_str().unwrap().starts_with("after is slower than before: read.iops"));
    let markdown = comparison.markdown();
    assert!(markdown.contains("| FIGURE | A | B | CHANGE | INTERVAL, % | VERDICT |\n"), "{markdown}");
    let junit = comparison.junit();
    assert!(junit.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{junit}");
    assert!(junit.contains("name=\"read.iops &lt; -10%\"><failure message="), "{junit}");
}

#[test]
fn rows_are_paired_by_name_or_else_by_place_and_others_are_named() {
    let study = |name: &str, rows: &[(&str, f64)]| {
        let mut random = Random::new(3);
        let runs = rows.iter().flat_map(|(row, iops)| {
            (0..3)
                .map(|_| NamedRun { name: (*row).to_string(), report: run(&mut random, *iops, QUIET) })
                .collect::<Vec<_>>()
        });
        Side { name: name.to_string(), runs: runs.collect(), ..Side::default() }
    };
    let rows = [("read 4k", 20_000.0), ("read 8k", 10_000.0), ("read 16k", 5000.0), ("read 1M", 100.0)];
    let slower = [("read 4k", 20_000.0), ("read 8k", 5_000.0), ("read 16k", 9000.0), ("read 2M", 50.0)];
    let comparison =
        compare(&[study("/a", &rows), study("/b", &slower), study("/c", &rows)], &Settings::default());
    let sentences = comparison.sentences();
    assert_eq!(
        sentences,
        [
            "Of 3 rows, /b is faster in 1 (read 16k), slower in 1 (read 8k), and the same within ±10 % (±25 % above \
             p75) in 1, compared with /a. Only /a has read 1M. Only /b has read 2M.",
            "Of 4 rows, /c is the same within ±10 % (±25 % above p75) in 4, compared with /a.",
        ]
    );
    assert!(comparison.text(80).lines().all(|line| line.chars().count() <= 80), "{}", comparison.text(80));
    let renamed = |name: &str| {
        let mut side = study(name, &[("", 20_000.0)]);
        side.runs.iter_mut().for_each(|run| run.report.jobs[0].name = name.to_string());
        side
    };
    let comparison = compare(&[renamed("x"), renamed("y")], &Settings::default());
    assert_eq!(comparison.rows.len(), 1);
    assert!(comparison.sentences()[0].starts_with("y is the same as x"), "{:?}", comparison.sentences());
}

/// The runs as the JSON document of a study has them, read back.
fn reread(runs: &[NamedRun]) -> Vec<NamedRun> {
    let document = Writer::document(|json| {
        json.string("study", "quick");
        study_runs::table(runs).write_json(json, study_runs::KEY);
    });
    let study = fiord_import::study::read(&document).unwrap().unwrap();
    study_runs::read(study.table(study_runs::KEY).unwrap())
}

#[test]
fn a_study_is_compared_by_its_document_as_by_its_runs() {
    let mut random = Random::new(21);
    for (runs, slowed) in [(1, 1.0), (1, 0.7), (3, 1.0), (3, 0.8)] {
        let mut study = |iops: f64| -> Vec<NamedRun> {
            let rows = ["random read", "random read, depth 32"].map(|name| vec![name; runs]).concat();
            let run =
                |name: &&str| NamedRun { name: (*name).to_string(), report: run(&mut random, iops, QUIET) };
            rows.iter().map(run).collect()
        };
        let sides = [("before", study(20_000.0)), ("after", study(20_000.0 * slowed))]
            .map(|(name, runs)| Side { name: name.to_string(), runs, ..Side::default() });
        let documents = sides.clone().map(|side| Side { runs: reread(&side.runs), ..side });
        let [direct, by_document] = [sides, documents].map(|sides| compare(&sides, &Settings::default()));
        assert_eq!(by_document.rows.len(), 2, "{}", by_document.text(80));
        for (row, other) in direct.rows.iter().zip(&by_document.rows) {
            assert_eq!((&row.name, row.figures.len()), (&other.name, other.figures.len()));
            for (figure, other) in row.figures.iter().zip(&other.figures) {
                let [change, other] = [figure, other].map(|figure| figure.changes[0].unwrap());
                assert!(
                    (change.percent - other.percent).abs() < 0.5,
                    "{}: {change:?} {other:?}",
                    figure.figure
                );
                // Between percentiles that are far apart the histogram knows more.
                let is_rate =
                    matches!(figure.figure.to_string().as_str(), "read.iops" | "read.bw" | "read.mean");
                assert!(
                    !is_rate || change.verdict == other.verdict,
                    "{}: {change:?} {other:?}",
                    figure.figure
                );
            }
        }
    }
}

#[test]
fn a_document_keeps_what_makes_its_runs_incomparable() {
    let named = |report: Report| vec![NamedRun { name: "read".to_string(), report }];
    let report = || run(&mut Random::new(3), 20_000.0, QUIET);
    let mut deeper = report();
    deeper.jobs[0].options.retain(|(name, _)| name != "iodepth");
    deeper.jobs[0].options.push(("iodepth".to_string(), "16".to_string()));
    let mut void = report();
    let finding =
        ReportedFinding { code: "in-memory".into(), severity: "void".into(), ..ReportedFinding::default() };
    void.findings.push(finding);
    let mut synced = report();
    synced.jobs[0].sync.ios = Some(9000);
    synced.jobs[0].sync.lat = synced.jobs[0].directions[0].clat.clone();
    let sentence = |other: Report| {
        let sides = [("before", report()), ("after", other)].map(|(name, report)| Side {
            name: name.to_string(),
            runs: reread(&named(report)),
            ..Side::default()
        });
        compare(&sides, &Settings::default()).sentences().remove(0)
    };
    assert!(sentence(deeper).contains("because the depth differs (8, 16)"));
    assert!(sentence(void).contains("because the figures of after are void (in-memory)"));
    assert_eq!(reread(&named(synced.clone()))[0].report.jobs[0].sync.ios, Some(9000));
    assert!(
        sentence(synced).starts_with("after is the same as before"),
        "what one alone has is not compared"
    );
}

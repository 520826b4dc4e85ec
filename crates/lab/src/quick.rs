//! `quick`: the profile of a disk in half a minute.
//!
//! Invariant: on a read-only target, no run writes.

use fiord_options::value::EngineName;
use fiord_options::{Spec, job};
use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, Column, Table};
use fiord_stats::{Capped, Summary};
use std::time::Duration;

use crate::bars::Bars;
use crate::figures::{Figures, READ, WRITE};
use crate::repeats;
use crate::rounds::{Repeat, Rounds};
use crate::steady;
use crate::step::{Step, StepResult};
use crate::step_runs;
use crate::study::{Study, StudyOutline, StudyResult, counted};
use crate::study_target::StudyTarget;
use crate::trust;
use crate::verdict::Verdict;

/// One row of the table.
struct Row {
    /// Its name in the table.
    name: &'static str,
    direction: usize,
    /// The options of its job, except engine and file.
    options: &'static [(&'static Spec, &'static str)],
    kind: Kind,
    /// The use it is typical of.
    typical: &'static str,
}

/// How a row issues its I/O.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Through a queue.
    Queued,
    /// One after another.
    Single,
    /// One after another to a growing file, each followed by fdatasync; their latency is that of both.
    Synced,
}

/// The rows, in the order they are run and shown.
const ROWS: [Row; 7] = [
    Row {
        name: "sequential read 1M",
        direction: READ,
        options: &[(job::Access::rw, "read"), (job::Blocks::bs, "1M"), (job::Queue::iodepth, "8")],
        kind: Kind::Queued,
        typical: "scans, backups, streaming",
    },
    Row {
        name: "sequential write 1M",
        direction: WRITE,
        options: &[(job::Access::rw, "write"), (job::Blocks::bs, "1M"), (job::Queue::iodepth, "8")],
        kind: Kind::Queued,
        typical: "restores, bulk loads",
    },
    Row {
        name: "random read 4k, depth 32",
        direction: READ,
        options: &[(job::Access::rw, "randread"), (job::Blocks::bs, "4k"), (job::Queue::iodepth, "32")],
        kind: Kind::Queued,
        typical: "databases, many clients",
    },
    Row {
        name: "random write 4k, depth 32",
        direction: WRITE,
        options: &[(job::Access::rw, "randwrite"), (job::Blocks::bs, "4k"), (job::Queue::iodepth, "32")],
        kind: Kind::Queued,
        typical: "checkpoints, many VMs",
    },
    Row {
        name: "random read 4k, depth 1",
        direction: READ,
        options: &[(job::Access::rw, "randread"), (job::Blocks::bs, "4k")],
        kind: Kind::Single,
        typical: "one query, program starts",
    },
    Row {
        name: "random write 4k, depth 1",
        direction: WRITE,
        options: &[(job::Access::rw, "randwrite"), (job::Blocks::bs, "4k")],
        kind: Kind::Single,
        typical: "one writer, page by page",
    },
    Row {
        name: "synced 4k appends",
        direction: WRITE,
        options: &[
            (job::Access::rw, "write"),
            (job::Blocks::bs, "4k"),
            (job::Access::fdatasync, "1"),
            (job::Files::fallocate, "none"),
            (job::Access::direct, "0"),
        ],
        kind: Kind::Synced,
        typical: "commits: databases, etcd",
    },
];

/// The study.
pub struct Quick {
    target: StudyTarget,
    /// The row of each step that is measured, with its number among the steps.
    rows: Vec<(usize, &'static Row)>,
    outline: StudyOutline,
}

impl Quick {
    /// At this target, in this total time for all rows and their repetitions.
    pub fn new(target: StudyTarget, time: Duration, repeat: Repeat) -> Quick {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| target.writable || row.direction == READ).collect();
        let all_rounds = time / u32::capped(rows.len());
        let rounds = Rounds::of(repeat, all_rounds);
        let each = rounds.each(all_rounds);
        let mut steps: Vec<Step> = target.writable.then(|| target.fill()).into_iter().collect();
        let first = steps.len();
        steps.extend(rows.iter().map(|row| step(row, &target, each)));
        let rows = rows.into_iter().enumerate().map(|(index, row)| (first + index, row)).collect();
        let outline = StudyOutline { percentile_max: 99.9, ..StudyOutline::of(steps, rounds) };
        Quick { target, rows, outline }
    }
}

fn step(row: &Row, target: &StudyTarget, time: Duration) -> Step {
    let engine = if row.kind == Kind::Queued { target.engine } else { EngineName::default() };
    let step = target.run(row.name, engine, row.options, time);
    // A device that is overwritten has no other file beside.
    if row.kind == Kind::Synced && target.identity.is_none() {
        step.on(target.beside("appends"))
    } else {
        step
    }
}

const COLUMNS: [Column; 9] = [
    Column::new("workload", "WORKLOAD"),
    Column::new("iops", "IOPS"),
    Column::new("mib_per_s", "MiB/s"),
    Column::new("mean_ns", "MEAN"),
    Column::new("p50_ns", "P50"),
    Column::new("p99_ns", "P99"),
    Column::new("p99_9_ns", "P99.9"),
    Column::new("latency_of", "LATENCY OF"),
    Column::new("typical_of", "TYPICAL OF"),
];

/// The columns of the text table; the others are shown below it.
const SHOWN: [&str; 7] = ["workload", "iops", "mib_per_s", "mean_ns", "p50_ns", "p99_ns", "p99_9_ns"];

/// The columns whose figures are compared over several rounds; in text, the first and the last.
const REPEATED: [&str; 6] = ["iops", "mib_per_s", "mean_ns", "p50_ns", "p99_9_ns", "p99_ns"];
const REPEATED_SHOWN: [&str; 2] = ["iops", "p99_ns"];

/// 0.1 to 10 000 MiB/s: from a slow card's commits to the fastest disks.
const BARS: Bars = Bars { from: -1, decades: 5, decade_width: 5 };

/// Columns taken by the bars with their typical uses.
const BARS_WIDTH: usize = 80;

/// A row with its figures.
type MeasuredRow = (&'static Row, Figures);

impl Study for Quick {
    fn name(&self) -> &'static str {
        "quick"
    }

    fn purpose(&self) -> String {
        let (target, times) = (self.target.shown(), self.outline.rounds.shown());
        match self.target.writable {
            true => format!("{} in {target}{times}", counted(self.rows.len(), "run")),
            false => format!("{} on {target}{times}", counted(self.rows.len(), "read-only run")),
        }
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let typical = step_runs::typical(results);
        let measured: Vec<MeasuredRow> = typical.iter().filter_map(|run| self.measured(run)).collect();
        let table = table(&measured);
        let figures = repeats::figures(results, &REPEATED, |run| {
            let row = self.measured(run);
            (
                row.as_ref().map_or_else(String::new, |(row, _)| row.name.to_string()),
                self::table(row.as_slice()),
            )
        });
        let conclusion = match self.conclusion(&measured, results) {
            text if text.is_empty() => text,
            text => text + &repeats::basis(results, self.outline.rounds, |step| self.outline.step_name(step)),
        };
        let result = StudyResult {
            text: table.select(&SHOWN).text(width) + &pictures(&measured, width),
            verdict: self.across_a_limit(results).map(|_| Verdict::Undecided),
            conclusion,
            latency_p99_ns: syncs(&measured)
                .map(|(row, figures)| (figures.p99_ns, row.latency_of().to_string())),
            table,
            ..StudyResult::default()
        };
        let result = repeats::beside(result, &figures, &REPEATED_SHOWN, Reported::Median, width);
        let result = steady::beside(result, &typical, |step| self.outline.step_name(step), width);
        trust::concluded(result, &typical, results)
    }
}

impl Quick {
    fn measured(&self, run: &StepResult) -> Option<MeasuredRow> {
        let (_, row) = self.rows.iter().find(|(step, _)| *step == run.step)?;
        Some((row, Figures::of(&run.report, row.direction)?))
    }
}

impl Row {
    fn latency_of(&self) -> &'static str {
        match (self.kind, self.direction) {
            (Kind::Synced, _) => "write + fdatasync",
            (_, READ) => "read",
            _ => "write",
        }
    }
}

fn table(measured: &[MeasuredRow]) -> Table {
    let mut table = Table::new(COLUMNS);
    table.rows = measured.iter().map(cells).collect();
    table
}

fn cells((row, figures): &MeasuredRow) -> Vec<Cell> {
    vec![
        Cell::Text(row.name.to_string()),
        figures.iops_cell(),
        figures.mib_per_s_cell(),
        Cell::Latency(figures.mean_ns),
        Cell::Latency(figures.p50_ns),
        p99(row, figures),
        Cell::Latency(figures.p999_ns),
        Cell::Text(row.latency_of().to_string()),
        Cell::Text(row.typical.to_string()),
    ]
}

/// The 99th percentile; that of synced appends is compared with etcd's limit.
fn p99(row: &Row, figures: &Figures) -> Cell {
    match row.kind {
        Kind::Synced => Cell::latency_beside(figures.p99_ns, ETCD_P99_NS),
        _ => Cell::Latency(figures.p99_ns),
    }
}

/// A bar for each row, and its typical use.
fn pictures(measured: &[MeasuredRow], width: usize) -> String {
    if measured.is_empty() {
        return String::new();
    }
    let names = ROWS.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |name: &str, bar: &str, typical: &str| {
        let typical = if width < BARS_WIDTH { "" } else { typical };
        format!("{name:<names$}  {bar:<0$}  {typical}", BARS.width()).trim_end().to_string() + "\n"
    };
    let mut text = String::new();
    if measured.iter().any(|(row, _)| row.kind == Kind::Synced) {
        text += "The latency of synced appends is that of write and fdatasync together.\n";
    }
    text += "\n";
    text += &line("MiB/s, log scale", &BARS.axis(), "TYPICAL OF");
    for (row, figures) in measured {
        text += &line(row.name, &BARS.bar(figures.mib_per_s()), row.typical);
    }
    text
}

/// Commits per second that etcd needs at least, and under heavy load, and the highest 99th percentile of their latency,
/// from etcd's guidance on hardware and disks.
const ETCD_LEAST: f64 = 50.0;
const ETCD_LOADED: f64 = 500.0;
const ETCD_P99_NS: u64 = 10_000_000;

impl Quick {
    fn conclusion(&self, measured: &[MeasuredRow], results: &[StepResult]) -> String {
        let found = |name: &str| measured.iter().find(|(row, _)| row.name == name);
        let (deep, single) = (found("random read 4k, depth 32"), found("random read 4k, depth 1"));
        let mut parts = Vec::new();
        if let (Some((_, deep)), Some((_, single))) = (deep, single) {
            let times = deep.iops / single.iops;
            parts.push(format!("serves {times:.1} times as many random reads at depth 32 as at depth 1"));
        }
        if let Some((row, syncs)) = syncs(measured).filter(|_| !self.target.in_memory) {
            let suits = match self.across_a_limit(results) {
                Some(across) => {
                    format!("whether that is fast enough for etcd is uncertain, because {across}")
                }
                None => suits(syncs).to_string(),
            };
            parts.push(format!(
                "completes {} synced 4k appends per second with a p99 of {}: {suits}",
                syncs.iops_cell().shown(),
                p99(row, syncs).shown(),
            ));
        } else if self.target.in_memory {
            parts.push("loses its contents when the machine stops".to_string());
        }
        if measured.is_empty() || parts.is_empty() {
            return String::new();
        }
        format!("{} {}.", self.target.subject(), parts.join(", and "))
    }

    /// That the interval of the commits contains a limit of etcd's, in the middle of a sentence.
    fn across_a_limit(&self, results: &[StepResult]) -> Option<String> {
        if self.target.in_memory {
            return None;
        }
        let (step, _) = self.rows.iter().find(|(_, row)| row.kind == Kind::Synced)?;
        let steps = step_runs::by_step(results);
        let runs = steps.iter().find(|runs| runs.runs.first().is_some_and(|run| run.step == *step))?;
        let of = |figure: fn(&Figures) -> f64| {
            runs.summary(|run| self.measured(run).map(|(_, figures)| figure(&figures)))
        };
        let across = |summary: Summary, limit: f64, name: &str, cell: fn(f64) -> Cell| {
            let half = summary.half_width.filter(|_| summary.crosses(limit))?;
            let [mean, half, limit] = [summary.mean, half, limit].map(|value| cell(value).shown());
            Some(format!("the mean {name} is {mean} ± {half} (95 %), across the limit of {limit}"))
        };
        let latency = |ns: f64| Cell::Latency(u64::capped(ns.round()));
        let count = |per_s: f64| Cell::Count(u64::capped(per_s.round()));
        let p99 = of(|figures| figures.p99_ns as f64);
        let rate = of(|figures| figures.iops);
        p99.and_then(|p99| across(p99, ETCD_P99_NS as f64, "p99", latency))
            .or_else(|| rate.and_then(|rate| across(rate, ETCD_LEAST, "rate", count)))
    }
}

/// The synced appends, if they were run.
fn syncs(measured: &[MeasuredRow]) -> Option<&MeasuredRow> {
    measured.iter().find(|(row, _)| row.kind == Kind::Synced)
}

/// Which load of etcd this rate of commits, rounded as shown, is fast enough for; if none, which figure falls short.
fn suits(syncs: &Figures) -> &'static str {
    let per_s = syncs.iops.round();
    match (per_s < ETCD_LEAST, syncs.p99_ns > ETCD_P99_NS) {
        (true, true) => "too slow for etcd, which needs 50 per second and a p99 within 10ms",
        (true, false) => "too slow for etcd, which needs 50 per second",
        (false, true) => "too slow for etcd, which needs a p99 within 10ms",
        _ if per_s < ETCD_LOADED => {
            "fast enough for a lightly loaded etcd (50 per second, p99 within 10ms), but not for a heavily loaded one (500)"
        }
        _ => "fast enough for a heavily loaded etcd (500 per second, p99 within 10ms)",
    }
}

#[cfg(test)]
mod tests {
    use fiord_report::RunReport;

    use super::*;
    use crate::testing::{direction, report, settings, synced, target};

    /// The report of a row for an average disk.
    fn synthetic(row: &Row) -> RunReport {
        let block_bytes = if row.name.contains("1M") { 1 << 20 } else { 4096 };
        let ios = match (row.kind, block_bytes) {
            (Kind::Synced, _) => 400,
            (Kind::Single, _) => 2_000,
            (_, 4096) => 20_000,
            _ => 500,
        };
        let done = direction(ios, block_bytes, 64_000);
        let made = if row.direction == READ { report(Some(done), None) } else { report(None, Some(done)) };
        if row.kind == Kind::Synced { synced(made, 400, 2_000_000) } else { made }
    }

    fn results(quick: &Quick, count: usize) -> Vec<StepResult> {
        quick
            .rows
            .iter()
            .take(count)
            .map(|(step, row)| StepResult { step: *step, report: synthetic(row) })
            .collect()
    }

    fn quick(target: StudyTarget) -> Quick {
        Quick::new(target, Duration::from_secs(28), Repeat::Times(1))
    }

    #[test]
    fn the_file_is_filled_first_and_time_is_shared_evenly() {
        let quick = quick(target());
        assert_eq!((quick.steps().len(), quick.time()), (8, Duration::from_secs(28)));
        let prepares: Vec<bool> = quick.steps().iter().map(|step| step.prepares).collect();
        assert_eq!(prepares.iter().position(|prepares| *prepares), Some(0));
        assert_eq!(prepares.iter().filter(|prepares| **prepares).count(), 1);
        assert!(quick.steps()[1..].iter().all(|step| settings(step).contains("runtime=4000ms")));
    }

    #[test]
    fn a_read_only_target_is_only_read() {
        let quick = quick(StudyTarget { writable: false, ..target() });
        assert_eq!(quick.steps().len(), 3);
        for step in quick.steps() {
            let settings = settings(step) + " ";
            assert!(settings.contains(" rw=read ") || settings.contains(" rw=randread "), "{settings}");
        }
    }

    #[test]
    fn appends_go_to_a_file_of_their_own_and_are_synced_one_by_one() {
        let quick = quick(target());
        let last = &quick.steps()[7];
        let settings = settings(last);
        assert!(settings.ends_with("rw=write bs=4k fdatasync=1 fallocate=none direct=0"), "{settings}");
        assert_eq!(last.sections[0].files, [std::path::PathBuf::from("/data/own:1/appends")]);
        let others = &quick.steps()[..7];
        assert!(others.iter().all(|step| step.sections[0].files == [quick.target.file.clone()]));
    }

    #[test]
    fn every_row_is_in_the_table_and_in_the_bars_and_fits() {
        let quick = quick(target());
        let result = quick.result(&results(&quick, 7), 80);
        assert_eq!(result.table.rows.len(), 7);
        for row in &ROWS {
            assert_eq!(result.text.matches(row.name).count(), 2, "{}", result.text);
            assert!(result.text.contains(row.typical));
        }
        assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
        assert!(result.text.contains("\nrandom read 4k, depth 32   20000   78.1    64us"), "{}", result.text);
        let narrow = quick.result(&results(&quick, 7), 70).text;
        assert!(narrow.lines().skip(9).all(|line| line.chars().count() <= 70), "{narrow}");
    }

    #[test]
    fn the_rate_of_appends_and_their_latency_include_their_syncs() {
        let quick = quick(target());
        let result = quick.result(&results(&quick, 7), 80);
        assert_eq!(result.latency_p99_ns, Some((2_064_000, "write + fdatasync".to_string())));
        let cell = |key: &str| {
            let column = result.table.columns.iter().position(|column| column.key == key).unwrap();
            result.table.rows[6][column].clone()
        };
        assert_eq!((cell("iops"), cell("mean_ns")), (Cell::Count(400), Cell::Latency(2_064_000)));
        assert_eq!(cell("latency_of"), Cell::Text("write + fdatasync".to_string()));
    }

    #[test]
    fn the_conclusion_compares_depths_and_rates_commits() {
        let quick = quick(target());
        assert_eq!(
            quick.result(&results(&quick, 7), 80).conclusion,
            "This disk serves 10.0 times as many random reads at depth 32 as at depth 1, and completes 400 synced 4k \
             appends per second with a p99 of 2.06ms: fast enough for a lightly loaded etcd (50 per second, p99 within \
             10ms), but not for a heavily loaded one (500). This is based on one run of each, so \
             the spread of runs is unknown."
        );
        assert_eq!(quick.result(&results(&quick, 2), 80).conclusion, "");
        assert_eq!(
            quick.result(&[], 80),
            StudyResult {
                table: Table::new(COLUMNS),
                tables: vec![("repeats", Table::default()), ("steady_parts", Table::default())],
                ..StudyResult::default()
            }
        );
    }

    /// Figures are rounded alike in the conclusion and the table, including halves and values just beyond a limit.
    #[test]
    fn sentence_and_table_show_the_same_figure() {
        let quick = quick(target());
        let mut results = results(&quick, 7);
        let appends = &mut results[6].report.jobs[0].stats;
        (appends.directions[WRITE].ios, appends.directions[WRITE].runtime_ms) = (1_017, 2000);
        appends.sync.latency = fiord_stats::Latency::with_histogram();
        (0..1017).for_each(|_| {
            appends.sync.latency.record(10_027_000);
        });
        let result = quick.result(&results, 80);
        let row = result.text.lines().find(|line| line.starts_with("synced 4k appends")).unwrap();
        let cells: Vec<&str> = row.split_whitespace().collect();
        let expected = format!(
            "completes {} synced 4k appends per second with a p99 of {}: too slow",
            cells[3], cells[7]
        );
        assert!(result.conclusion.contains(&expected), "{expected}: {}", result.conclusion);
        assert_ne!(cells[7], "10ms");
    }

    /// Of two rounds or four, no run has the mean of the middle two.
    #[test]
    fn a_row_shows_the_rate_that_is_called_the_median_of_its_runs() {
        for rates in [&[16_189, 26_647][..], &[1000, 3000, 2000], &[2100, 1000, 1900, 1800]] {
            let quick = Quick::new(target(), Duration::from_secs(28), Repeat::Times(rates.len()));
            let round = |ios: &u64| {
                let step = quick.rows.iter().find(|(_, row)| row.kind == Kind::Single).unwrap().0;
                StepResult { step, report: report(Some(direction(*ios, 4096, 64_000)), None) }
            };
            let result = quick.result(&rates.iter().map(round).collect::<Vec<_>>(), 80);
            let (_, repeats) = result.tables.iter().find(|(key, _)| *key == "repeats").unwrap();
            let of = |table: &Table, key: &str| table.select(&[key]).rows[0][0].figure();
            assert_eq!(of(&result.table, "iops"), of(repeats, "median"), "{rates:?}");
        }
    }

    #[test]
    fn one_run_is_not_called_runs() {
        let quick = |rows: usize| {
            let all = quick(StudyTarget { writable: false, ..target() });
            Quick { rows: all.rows.into_iter().take(rows).collect(), ..all }.purpose()
        };
        assert!(quick(1).starts_with("1 read-only run on ") && quick(3).starts_with("3 read-only runs on "));
    }

    /// Five rounds whose syncs have these 99th percentiles.
    fn rated(syncs_ms: [u64; 5]) -> StudyResult {
        let quick = Quick::new(target(), Duration::from_secs(28), Repeat::Times(5));
        let round = |ms: &u64| {
            let mut results = results(&quick, 7);
            results[6].report.jobs[0].stats.sync.latency = fiord_stats::Latency::with_histogram();
            (0..400).for_each(|_| {
                results[6].report.jobs[0].stats.sync.latency.record(ms * 1_000_000);
            });
            results
        };
        quick.result(&syncs_ms.iter().flat_map(round).collect::<Vec<_>>(), 80)
    }

    #[test]
    fn commits_are_not_rated_when_the_interval_of_their_p99_contains_the_limit() {
        let across = rated([8, 12, 9, 11, 9]);
        assert_eq!(across.verdict, Some(Verdict::Undecided));
        assert!(
            across.conclusion.contains("is uncertain, because the mean p99 is ")
                && across.conclusion.contains(", across the limit of 10ms"),
            "{}",
            across.conclusion
        );
        assert!(across.text.lines().all(|line| line.chars().count() <= 80), "{}", across.text);
        assert!(across.text.contains("\nsynced 4k appends          P99"), "{}", across.text);
        let clear = rated([2, 2, 3, 2, 2]);
        assert_eq!(clear.verdict, None);
        assert!(clear.conclusion.contains("fast enough for a lightly loaded etcd"), "{}", clear.conclusion);
        assert!(clear.conclusion.ends_with("This is based on 5 or more runs of each; the 95 % confidence interval of throughput is at most ±0.0 % (synced 4k appends)."), "{}", clear.conclusion);
    }

    #[test]
    fn memory_is_not_rated_for_commits() {
        let quick = quick(StudyTarget { in_memory: true, ..target() });
        assert_eq!(
            quick.result(&results(&quick, 7), 80).conclusion,
            "This target is memory, not a disk: it serves 10.0 times as many random reads at depth 32 as at depth 1, \
             and loses its contents when the machine stops. This is based on one run of each, so the spread of runs is unknown."
        );
        assert_eq!(quick.result(&[], 80).conclusion, "");
    }

    #[test]
    fn the_verdict_on_commits_follows_etcds_guidance() {
        let suits = |iops: f64, p99_ns: u64| suits(&Figures { iops, p99_ns, ..Figures::default() });
        assert!(suits(499.4, 10_000_000).starts_with("fast enough for a lightly loaded etcd"));
        assert!(suits(499.5, 10_000_000).starts_with("fast enough for a heavily loaded etcd"));
        // Exactly the figures that fall short are named.
        assert_eq!(suits(1058.0, 10_000_001), "too slow for etcd, which needs a p99 within 10ms");
        assert_eq!(suits(49.4, 10_000_000), "too slow for etcd, which needs 50 per second");
        assert_eq!(
            suits(49.4, 10_000_001),
            "too slow for etcd, which needs 50 per second and a p99 within 10ms"
        );
    }
}

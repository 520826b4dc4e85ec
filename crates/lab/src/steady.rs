//! Which part of each run of a study its figures are of, where that is not the whole run.
//!
//! Invariant: every run whose figures are of a part is named; runs that are steady throughout, or too short to judge, are
//! not.

use fiord_report::RunReport;
use fiord_report::table::{Cell, Column, Table, wrapped};
use fiord_stats::RunSteadiness;

use crate::figures::{job_parts, mib};
use crate::step::StepResult;
use crate::study::StudyResult;

/// The result with the steady parts of these runs: a table in JSON, a line for each in text. `name` is that of a step.
pub(crate) fn beside(
    result: StudyResult,
    runs: &[StepResult],
    name: impl Fn(usize) -> String,
    width: usize,
) -> StudyResult {
    let mut table = Table::new(
        ["of", "from_s", "to_s", "run_s", "mib_per_s", "latencies_from_s"].map(|key| Column::new(key, "")),
    );
    let mut text = String::new();
    for run in runs {
        let Some(steadiness) = &run.report.steadiness else { continue };
        let RunSteadiness { run_ms, part, .. } = steadiness;
        if part.is_some() && steadiness.proper_part().is_none() {
            continue;
        }
        let (name, run_s) = (name(run.step), *run_ms as f64 / 1000.0);
        let row = part.map(|part| {
            let bytes_per_s = part.bytes_per_s.iter().sum();
            (part.from_ms as f64 / 1000.0, mib(bytes_per_s))
        });
        let line = match row {
            Some((from_s, _)) => format!(
                "{name}: steady from {from_s:.1} s to {run_s:.1} s of {run_s:.1}; {}.",
                which_figures(&run.report)
            ),
            None => format!(
                "{name}: not steady at the end of its {run_s:.1} s; its figures are of the whole run."
            ),
        };
        text += &(wrapped(&line, width).join("\n") + "\n");
        let number = |value: Option<f64>| value.map_or(Cell::None, |value| Cell::Number(value, 1));
        table.rows.push(vec![
            Cell::Text(name),
            number(row.map(|(from_s, _)| from_s)),
            number(row.map(|_| run_s)),
            Cell::Number(run_s, 1),
            number(row.map(|(_, mib_per_s)| mib_per_s)),
            number(row.and(latencies_from_s(&run.report))),
        ]);
    }
    let mut tables = result.tables;
    tables.push(("steady_parts", if table.rows.is_empty() { Table::default() } else { table }));
    let with = |page: String| if text.is_empty() { page } else { format!("{page}\n{text}") };
    StudyResult { text: with(result.text), coloured: result.coloured.map(with), tables, ..result }
}

/// Where the latencies of the steady part begin, in seconds; `None` if they are not known.
fn latencies_from_s(report: &RunReport) -> Option<f64> {
    report.part_latencies.as_ref().map(|part| part.from_ms as f64 / 1000.0)
}

/// Which figures are of the steady part, and which of the whole run: those of single jobs, if only what all did together
/// is known of the part.
fn which_figures(report: &RunReport) -> String {
    let has_one_kind = report.jobs.windows(2).all(|pair| pair[0].name == pair[1].name);
    let is_known_of_all = has_one_kind || !job_parts(report).is_empty();
    let of_whom = if is_known_of_all { "" } else { " of all jobs together" };
    let others = if is_known_of_all { "" } else { ", figures of single jobs of the whole run" };
    match latencies_from_s(report) {
        Some(from_s) => {
            format!("IOPS and MiB/s{of_whom} are of this part, latencies of it from {from_s:.1} s on{others}")
        }
        None => format!(
            "IOPS and MiB/s{of_whom} are of this part, latencies of the whole run, because those of this part are not \
             known{others}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use fiord_stats::{JobPart, PartLatencies, RunLatencies, SteadyPart};

    use super::*;
    use crate::figures::{Figures, READ, WRITE, sync_latency_of};
    use crate::testing::{direction, report, synced};

    /// A run of 100 reads of 4 KiB per second, judged so.
    fn run(step: usize, part: Option<(u64, f64)>) -> StepResult {
        let mut report = report(Some(direction(100, 4096, 1000)), None);
        let part = part.map(|(from_ms, ios_per_s)| SteadyPart {
            from_ms,
            ios_per_s: [ios_per_s, 0.0, 0.0],
            bytes_per_s: [ios_per_s * 4096.0, 0.0, 0.0],
        });
        let (slope_share, excursion_share) = (-0.5, 0.5);
        report.steadiness = Some(RunSteadiness { run_ms: 60_000, slope_share, excursion_share, part });
        StepResult { step, report }
    }

    #[test]
    fn figures_are_of_the_steady_part_and_latencies_of_the_whole_run_where_they_are_not_known() {
        let of = |part| Figures::of(&run(0, part).report, READ).unwrap();
        let (settled, whole) = (of(Some((12_000, 64.0))), of(None));
        assert_eq!((settled.iops, settled.bytes_per_s), (64.0, 64.0 * 4096.0));
        assert_eq!(Figures { iops: whole.iops, bytes_per_s: whole.bytes_per_s, ..settled }, whole);
        assert_eq!(of(Some((0, 64.0))), whole, "steady throughout");
        let all = Figures::of_all(&run(0, Some((12_000, 64.0))).report).unwrap();
        assert_eq!((all.iops, Figures::of(&run(0, None).report, WRITE)), (64.0, None));
    }

    /// Latencies of the part, ten times those of the whole run.
    fn with_latencies(mut run: StepResult) -> StepResult {
        let mut latencies = RunLatencies::default();
        latencies.directions[READ] = direction(50, 4096, 10_000).completion;
        latencies.sync = direction(20, 4096, 30_000).completion;
        run.report.part_latencies = Some(PartLatencies { from_ms: 12_900, latencies });
        run.report = synced(run.report, 40, 3000);
        run
    }

    #[test]
    fn latencies_are_of_the_steady_part_where_they_are_known() {
        let settled = with_latencies(run(0, Some((12_000, 64.0)))).report;
        let expected = |latency_ns, ios| Figures {
            mean_ns: latency_ns,
            p50_ns: latency_ns,
            p99_ns: latency_ns,
            p999_ns: latency_ns,
            max_ns: latency_ns,
            ios,
            ..Figures::default()
        };
        let rates = Figures { iops: 64.0, bytes_per_s: 64.0 * 4096.0, ..expected(10_000, 50) };
        assert_eq!(Figures::of(&settled, READ), Some(rates));
        assert_eq!(Figures::of_all(&settled), Some(rates));
        let of_syncs = |report| sync_latency_of(report, None).running;
        assert_eq!((of_syncs(&settled).count, of_syncs(&settled).max), (20, 30_000));
        let whole = with_latencies(run(0, Some((0, 64.0)))).report;
        assert_eq!(Figures::of(&whole, READ).map(|figures| (figures.p99_ns, figures.ios)), Some((1000, 100)));
        assert_eq!((of_syncs(&whole).count, of_syncs(&whole).max), (40, 3000));
    }

    /// A run of two jobs of which the second does a quarter of all reads in the steady part, with latencies of its own.
    #[test]
    fn figures_of_single_jobs_are_of_the_steady_part_as_those_of_all_are() {
        let mut two = with_latencies(run(0, Some((12_000, 64.0)))).report;
        let mut other = two.jobs[0].clone();
        two.jobs[0].name = "one".to_string();
        other.name = "other".to_string();
        two.jobs.push(other);
        let part = |name: &str, ios_per_s: f64, latencies| JobPart {
            name: name.to_string(),
            ios_per_s: [ios_per_s, 0.0, 0.0],
            bytes_per_s: [ios_per_s * 4096.0, 0.0, 0.0],
            latencies,
        };
        let known = two.part_latencies.clone().map(|part| part.latencies);
        two.job_parts = vec![part("one", 48.0, None), part("other", 16.0, known)];
        let of = |report: &RunReport, name| {
            let Figures { iops, bytes_per_s, p99_ns, .. } = Figures::of_job(report, name, READ).unwrap();
            (iops, bytes_per_s / 4096.0, p99_ns)
        };
        assert_eq!(
            of(&two, "one"),
            (48.0, 48.0, 1000),
            "latencies of the whole run where they are not known"
        );
        assert_eq!(of(&two, "other"), (16.0, 16.0, 10_000));
        assert_eq!(Figures::of_job(&two, "other", WRITE), None);
        assert!(!which_figures(&two).contains("jobs"), "{}", which_figures(&two));
        // Reported as one, the jobs have only figures of the whole run.
        let merged = RunReport { jobs: two.jobs[..1].to_vec(), ..two.clone() };
        assert_eq!(of(&merged, "one").0, 100.0);
        // Steady throughout, they are of the whole run too.
        two.steadiness = run(0, Some((0, 64.0))).report.steadiness;
        assert_eq!(of(&two, "other"), (100.0, 100.0, 1000));
    }

    #[test]
    fn parts_are_named_in_text_and_in_the_table() {
        let known = with_latencies(run(3, Some((12_000, 64.0))));
        let runs = [run(0, Some((12_000, 64.0))), run(1, Some((0, 100.0))), run(2, None), known];
        let result = StudyResult { text: "page\n".to_string(), ..StudyResult::default() };
        let result = beside(result, &runs, |step| format!("row {step}"), 200);
        let lines: Vec<&str> = result.text.lines().collect();
        assert_eq!(
            lines[2..],
            [
                "row 0: steady from 12.0 s to 60.0 s of 60.0; IOPS and MiB/s are of this part, latencies of the whole run, because those of this part are not known.",
                "row 2: not steady at the end of its 60.0 s; its figures are of the whole run.",
                "row 3: steady from 12.0 s to 60.0 s of 60.0; IOPS and MiB/s are of this part, latencies of it from 12.9 s on."
            ]
        );
        let (key, table) = &result.tables[0];
        assert_eq!((*key, table.rows.len()), ("steady_parts", 3));
        assert_eq!(table.rows[1][1], Cell::None);
        let from_s = table.rows.iter().map(|row| row[5].clone());
        assert_eq!(from_s.collect::<Vec<_>>(), [Cell::None, Cell::None, Cell::Number(12.9, 1)]);
        let mut of_two = run(0, Some((12_000, 64.0)));
        of_two.report.jobs.push(fiord_report::JobReport { name: "other".to_string(), ..Default::default() });
        let result = beside(StudyResult::default(), &[of_two], |_| String::new(), 400);
        assert!(result.text.ends_with("are not known, figures of single jobs of the whole run.\n"));
        let unjudged = StepResult { step: 3, report: report(None, None) };
        let result = beside(StudyResult::default(), &[unjudged], |_| String::new(), 80);
        assert_eq!((result.text.as_str(), result.tables[0].1.rows.len()), ("", 0));
    }
}

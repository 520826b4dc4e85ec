//! What the runs of a step say together, if it was run several times.
//!
//! Invariant: runs whose figures are void are left out as long as at least half of the runs of the step remain.

use fiord_report::repeats::{RepeatedFigure, Reported, table, text};
use fiord_report::table::Table;
use fiord_stats::Capped;

use crate::rounds::Rounds;
use crate::step::StepResult;
use crate::step_runs::{StepRuns, by_step};
use crate::study::StudyResult;

/// What a conclusion from these runs rests on, as a further sentence; `name` is that of a step.
pub(crate) fn basis(results: &[StepResult], planned: Rounds, name: impl Fn(usize) -> String) -> String {
    let steps = by_step(results);
    if steps.is_empty() {
        return String::new();
    }
    let error = |step: &StepRuns<'_>| {
        let share = step.throughput().and_then(|summary| summary.error_share())?;
        Some((share, step.runs.first()?.step))
    };
    let errors: Option<Vec<(f64, usize)>> = steps.iter().map(error).collect();
    let worst = errors.and_then(|errors| errors.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)));
    let Some(fewest) = steps.iter().min_by_key(|step| step.used().len()) else { return String::new() };
    let (used, done) = (fewest.used().len(), fewest.done);
    // A study that was ended early has done less than it planned.
    let done_min = steps.iter().map(|step| step.done).min().unwrap_or(0);
    let planned =
        if done_min < planned.min { format!(", of {} planned", planned.min) } else { String::new() };
    let runs = match (used, done) {
        (used, done) if used < done => {
            format!(
                "at least {used} of the {done} runs of each{planned}, without those that were void or not steady yet"
            )
        }
        (1, _) => format!("one run of each{planned}"),
        (used, _) if worst.is_some() => format!("{used} or more runs of each{planned}"),
        (used, _) => format!("{used} runs of each{planned}"),
    };
    match worst {
        // The interval of the mean contains zero: the runs say nothing of the order of the figure.
        Some((share, step)) if share >= 1.0 => {
            format!(
                " This is based on {runs}, which differ too much to know throughput (95 % confidence; {}).",
                name(step)
            )
        }
        Some((share, step)) => {
            let (percent, name) = (100.0 * share, name(step));
            format!(
                " This is based on {runs}; the 95 % confidence interval of throughput is at most ±{percent:.1} % ({name})."
            )
        }
        None if used <= 1 => format!(" This is based on {runs}, so the spread of runs is unknown."),
        None => format!(" This is based on {runs}, too few to know their spread."),
    }
}

/// The figures in these columns, over the runs of each step; `table` makes the rows of one run, whose first cell is
/// their name.
pub(crate) fn figures(
    results: &[StepResult],
    columns: &[&str],
    table: impl Fn(&StepResult) -> (String, Table),
) -> Vec<RepeatedFigure> {
    let mut figures = Vec::new();
    for step in by_step(results) {
        let tables: Vec<(String, Table)> = step.runs.iter().map(|run| table(run)).collect();
        let Some((_, first)) = tables.first() else { continue };
        let rows = tables.iter().map(|(_, table)| table.rows.len()).min().unwrap_or(0);
        for row in 0..rows {
            for (index, column) in
                first.columns.iter().enumerate().filter(|(_, column)| columns.contains(&column.key))
            {
                let runs: Vec<f64> =
                    tables.iter().filter_map(|(_, table)| table.rows[row][index].figure()).collect();
                if runs.is_empty() {
                    continue;
                }
                figures.push(RepeatedFigure {
                    subject: tables[0].0.clone(),
                    figure: column.key.to_string(),
                    title: column.title.to_string(),
                    left_out: u32::capped(step.left_out.min(runs.len().saturating_sub(1))),
                    runs,
                });
            }
        }
    }
    figures
}

/// The result with the figures of its rounds: those with a key of `shown` in text, all in JSON.
pub(crate) fn beside(
    result: StudyResult,
    figures: &[RepeatedFigure],
    shown: &[&str],
    reported: Reported,
    width: usize,
) -> StudyResult {
    let in_text: Vec<RepeatedFigure> =
        figures.iter().filter(|one| shown.contains(&one.figure.as_str())).cloned().collect();
    let many = figures.iter().any(|one| one.runs.len() > 1);
    let all = if many { table(figures) } else { Table::default() };
    let text = text(&in_text, reported, width);
    let with = |page: String| if text.is_empty() { page } else { format!("{page}\n{text}") };
    let mut tables = result.tables;
    tables.push(("repeats", all));
    StudyResult { text: with(result.text), coloured: result.coloured.map(with), tables, ..result }
}

#[cfg(test)]
mod tests {
    use fiord_report::{Code, Finding, Subject};

    use super::*;
    use crate::testing::{direction, report};

    fn ran(step: usize, ios: u64) -> StepResult {
        StepResult { step, report: report(Some(direction(ios, 4096, 1000)), None) }
    }

    #[test]
    fn what_was_planned_done_and_used_is_said_alike() {
        let planned = Rounds { min: 3, max: 3 };
        let said = |ios: &[u64]| {
            let runs: Vec<StepResult> = ios.iter().map(|ios| ran(0, *ios)).collect();
            basis(&runs, planned, |_| "read".to_string())
        };
        assert_eq!(
            said(&[1000, 1000, 1000]),
            " This is based on 3 or more runs of each; the 95 % confidence interval of throughput is at most ±0.0 % (read)."
        );
        assert_eq!(
            said(&[100, 2000, 300]),
            " This is based on 3 or more runs of each, which differ too much to know throughput (95 % confidence; read)."
        );
        // Four were run and the first is left out, because throughput rose after it.
        assert_eq!(
            said(&[500, 1000, 1000, 1000]),
            " This is based on at least 3 of the 4 runs of each, without those that were void or not steady yet; \
             the 95 % confidence interval of throughput is at most ±0.0 % (read)."
        );
        let subject = Subject::Device("sda".to_string());
        let mut void = ran(0, 1000);
        void.report.findings = vec![Finding::new(Code::DiskShared, subject, "others", "")];
        assert_eq!(
            basis(&[void, ran(0, 1000), ran(0, 1000)], planned, |_| String::new()),
            " This is based on at least 2 of the 3 runs of each, without those that were void or not steady yet, too few \
             to know their spread."
        );
        assert_eq!(
            said(&[1000, 1000]),
            " This is based on 2 runs of each, of 3 planned, too few to know their spread."
        );
        assert_eq!(
            said(&[1000]),
            " This is based on one run of each, of 3 planned, so the spread of runs is unknown."
        );
        assert_eq!(said(&[]), "");
    }
}

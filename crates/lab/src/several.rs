//! A study of several targets: that of one target for each of them, step by step in turn, and what differs between them.
//!
//! Invariant: a step, or a part that must not be interrupted, is run on every target before the next is run on any, so that
//! a machine that changes meanwhile affects all targets alike.

use std::time::Duration;

use fiord_compare::{Comparison, NamedRun, Settings, Side, compare};
use fiord_report::table::{Cell, Column, Table, wrapped};
use fiord_stats::OrderBy;

use crate::disks;
use crate::rounds::{Rounds, without_round};
use crate::step::{Step, StepResult};
use crate::study::{Study, StudyOutline, StudyResult};
use crate::verdict::Verdict;

/// Why the same row may have two figures.
const MEANS: &str = "Conclusions have the figures of each target's median run, without rounds before throughput was steady; \
     the comparison has means of all runs.";

/// The name of a run on one of several targets, from that of the target and that of the run in its own study.
pub fn at_target(target: &str, run: &str) -> String {
    format!("{target}: {run}")
}

/// The study.
pub struct Several {
    /// The name of each target, and its study.
    studies: Vec<(String, Box<dyn Study>)>,
    outline: StudyOutline,
}

impl Several {
    /// Of these targets.
    ///
    /// # Errors
    /// Their studies differ, so that they cannot be compared step by step.
    pub fn new(studies: Vec<(String, Box<dyn Study>)>) -> Result<Several, String> {
        let lengths = |study: &dyn Study| (study.steps().len(), study.outline().rounds.max);
        let in_parts = has_parts(&studies);
        let mut lengths = studies.iter().map(|(name, study)| (name, lengths(study.as_ref())));
        let first = lengths.next().ok_or("name a target")?;
        if let Some((name, _)) = lengths.find(|(_, length)| !in_parts && *length != first.1) {
            return Err(format!(
                "{} and {name} allow different runs; name directories only, or files and devices only",
                first.0
            ));
        }
        let named = |name: &str, step: &Step| Step { name: at_target(name, &step.name), ..step.clone() };
        let of_all = studies
            .iter()
            .flat_map(|(name, study)| study.steps().iter().enumerate().map(move |step| (name, step)));
        let mut steps: Vec<_> = of_all.map(|(name, (number, step))| (number, named(name, step))).collect();
        if !in_parts {
            steps.order_by_key(|(number, _)| *number);
        }
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        let of_first = studies.first().map(|(_, study)| study.outline());
        let mut heading = of_first.map_or_else(Vec::new, |outline| outline.heading.clone());
        for (name, study) in studies.iter().skip(1) {
            let other = study.outline().heading.iter().filter(|line| !heading.contains(line));
            let of_target = |(label, text): &(&'static str, String)| (*label, at_target(name, text));
            let other: Vec<_> = other.map(of_target).collect();
            heading.extend(other);
        }
        let outline = StudyOutline {
            heading,
            is_time_at_most: studies.iter().any(|(_, study)| study.outline().is_time_at_most),
            is_of_users_options: studies.iter().any(|(_, study)| study.outline().is_of_users_options),
            ..StudyOutline::of(steps, of_first.map_or(Rounds::ONE, |outline| outline.rounds))
        };
        Ok(Several { studies, outline })
    }

    /// The results of one target, with the numbers that steps have in its own study.
    fn of_target(&self, target: usize, results: &[StepResult]) -> Vec<StepResult> {
        let count = self.studies.len();
        let own = results.iter().filter(|run| run.step % count == target);
        own.map(|run| StepResult { step: run.step / count, report: run.report.clone() }).collect()
    }

    /// Sentences about targets on the same disks.
    fn shared_disks(&self, results: &[StepResult]) -> Vec<String> {
        let of_target = |(target, (name, _)): (usize, &'_ (String, Box<dyn Study>))| {
            let own = results.iter().filter(|run| run.step % self.studies.len() == target);
            (name.clone(), disks::below(own.map(|run| &run.report)))
        };
        let targets: Vec<_> = self.studies.iter().enumerate().map(of_target).collect();
        disks::shared(targets.iter().map(|(name, disks)| (name.as_str(), disks.clone())))
    }

    fn compared(&self, results: &[StepResult]) -> Comparison {
        let side = |(target, (name, study)): (usize, &(String, Box<dyn Study>))| {
            let own = self.of_target(target, results);
            let runs = study
                .compared(&own)
                .into_iter()
                .filter_map(|(name, run)| NamedRun::of_run(without_round(&name), &run.report).ok());
            Side { name: name.clone(), runs: runs.collect(), ..Side::default() }
        };
        let sides: Vec<Side> = self.studies.iter().enumerate().map(side).collect();
        compare(&sides, &Settings::default())
    }
}

impl Study for Several {
    fn name(&self) -> &'static str {
        self.studies.first().map_or("", |(_, study)| study.name())
    }

    fn purpose(&self) -> String {
        let place = |(name, study): &(String, Box<dyn Study>)| study.place().unwrap_or_else(|| name.clone());
        let others: Vec<String> = self.studies.iter().skip(1).map(place).collect();
        let purpose = self.studies.first().map_or_else(String::new, |(_, study)| study.purpose());
        format!("{purpose}; the same on {}, in turn", others.join(" and "))
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn accepts(&self, verdict: Verdict) -> bool {
        self.studies.iter().all(|(_, study)| study.accepts(verdict))
    }

    fn is_decided(&self, results: &[StepResult]) -> bool {
        let decided = |target: usize| self.studies[target].1.is_decided(&self.of_target(target, results));
        (0..self.studies.len()).all(decided)
    }

    fn step(&self, number: usize, results: &[StepResult]) -> Option<Step> {
        // Of parts, what each target begins with is known before, and not when.
        let known = self.steps().get(number).filter(|_| !has_parts(&self.studies));
        known.cloned().or_else(|| self.next(results))
    }

    fn next(&self, results: &[StepResult]) -> Option<Step> {
        let count = self.studies.len();
        let of_part = |(target, (name, study)): (usize, &(String, Box<dyn Study>))| {
            let own = self.of_target(target, results);
            let (part, step) = (study.part(&own)?, study.next(&own)?);
            let name = at_target(name, &step.name);
            Some((part, Step { name, repeats: Some(own.len() * count + target), ..step }))
        };
        let first = self.studies.iter().enumerate().filter_map(of_part).min_by_key(|(part, _)| *part);
        if has_parts(&self.studies) {
            return first.map(|(_, step)| step);
        }
        self.outline.rounds.next(self.steps(), results, || self.is_decided(results))
    }

    fn runs_max(&self) -> usize {
        self.studies.iter().map(|(_, study)| study.runs_max()).sum()
    }

    fn time(&self) -> Duration {
        self.studies.iter().map(|(_, study)| study.time()).sum()
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let of = |target: usize| self.studies[target].1.result(&self.of_target(target, results), width);
        let own: Vec<StudyResult> = (0..self.studies.len()).map(of).collect();
        if own.iter().all(|result| result.table.rows.is_empty()) {
            return StudyResult::default();
        }
        let comparison = self.compared(results);
        let names: Vec<&str> = self.studies.iter().map(|(name, _)| name.as_str()).collect();
        let mut targets = Table::new([
            Column::new("target", "TARGET"),
            Column::new("conclusion", "CONCLUSION"),
            Column::new("verdict", "VERDICT"),
        ]);
        let row = |(name, result): (&&str, &StudyResult)| {
            vec![
                Cell::Text((*name).to_string()),
                Cell::text(Some(result.conclusion.clone()).filter(|text| !text.is_empty())),
                Cell::text(result.verdict.map(Verdict::word)),
            ]
        };
        targets.rows = names.iter().zip(&own).map(row).collect();
        let verdicts: Vec<Verdict> = own.iter().filter_map(|result| result.verdict).collect();
        let mut tables: Vec<(&'static str, Table)> =
            vec![("targets", targets.clone()), ("comparison", comparison.full())];
        let keys: Vec<&'static str> =
            own.first().into_iter().flat_map(|result| &result.tables).map(|(key, _)| *key).collect();
        for key in keys {
            let of_key = |result: &StudyResult| {
                result.tables.iter().find(|(known, _)| *known == key).map(|(_, table)| table.clone())
            };
            let all: Vec<Table> = own.iter().map(|result| of_key(result).unwrap_or_default()).collect();
            tables.push((key, joined(&names, &all)));
        }
        let rows: Vec<Table> = own.iter().map(|result| result.table.clone()).collect();
        let said = targets.select(&["target", "conclusion"]).text(width);
        let judged = judged(&names, &own, width);
        let mut sentences = comparison.sentences();
        sentences.extend(self.shared_disks(results));
        let is_repeated = results.len() > self.outline.steps.len();
        let means = if is_repeated { wrapped(MEANS, width).join("\n") + "\n\n" } else { String::new() };
        StudyResult {
            table: joined(&names, &rows),
            shown: Some(comparison.shown()),
            text: format!("{said}\n{judged}{means}{}\n{}", comparison.legend(width), comparison.table(width)),
            conclusion: verdicts_of(&names, &own) + &sentences.join(" "),
            verdict: verdicts.into_iter().max(),
            facts: own.into_iter().next().map_or_else(Vec::new, |first| first.facts),
            tables,
            ..StudyResult::default()
        }
    }
}

/// Whether these studies have parts that must not be interrupted.
fn has_parts(studies: &[(String, Box<dyn Study>)]) -> bool {
    studies.iter().any(|(_, study)| study.part(&[]).is_some())
}

/// The figures that verdicts are about, with their limits, of all targets; empty without limits.
fn judged(names: &[&str], own: &[StudyResult], width: usize) -> String {
    let tables: Vec<Table> = own.iter().map(|result| result.shown.clone().unwrap_or_default()).collect();
    let mut all = joined(names, &tables).select(&[
        "figure",
        "target",
        "measured",
        "pass_limit",
        "fail_limit",
        "verdict",
    ]);
    if !all.columns.iter().any(|column| column.key == "verdict") {
        return String::new();
    }
    // Figure by figure: the targets of each below each other.
    let figures: Vec<Cell> = all.rows.iter().map(|row| row[0].clone()).collect();
    all.rows.order_by_key(|row| figures.iter().position(|figure| *figure == row[0]));
    all.text(width) + "\n"
}

/// The verdict on each target, as sentences before others; empty without verdicts.
fn verdicts_of(names: &[&str], own: &[StudyResult]) -> String {
    let of = |(name, result): (&&str, &StudyResult)| Some(format!("{}: {name}.", result.verdict?.word()));
    let all: Vec<String> = names.iter().zip(own).filter_map(of).collect();
    if all.is_empty() { String::new() } else { all.join(" ") + " " }
}

/// The rows of the tables of all targets, with a column for the target.
fn joined(names: &[&str], tables: &[Table]) -> Table {
    // What is known of some targets only has a column that others lack.
    let widest = tables.iter().max_by_key(|table| table.columns.len());
    let columns = widest.map_or(&[][..], |table| &table.columns);
    if columns.is_empty() {
        return Table::default();
    }
    let mut all = Table::new([Column::new("target", "TARGET")].into_iter().chain(columns.iter().copied()));
    for (name, table) in names.iter().zip(tables) {
        let at = |column: &Column| table.columns.iter().position(|known| known.key == column.key);
        let at: Vec<Option<usize>> = columns.iter().map(at).collect();
        let row = |row: &Vec<Cell>| {
            let cells = at.iter().map(|at| at.map_or(Cell::None, |at| row[at].clone()));
            [Cell::Text((*name).to_string())].into_iter().chain(cells).collect()
        };
        all.rows.extend(table.rows.iter().map(row));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{BlockSize, Matrix};
    use crate::rounds::Repeat;
    use crate::study_target::StudyTarget;
    use crate::testing::{direction, report, target};

    fn study(path: &str, writable: bool) -> (String, Box<dyn Study>) {
        let target = StudyTarget { path: path.into(), writable, ..target() };
        let blocks =
            [("4k", 4096), ("64k", 65_536)].map(|(text, bytes)| BlockSize { text: text.to_string(), bytes });
        let patterns = ["randread".to_string(), "randwrite".to_string()];
        let time = Duration::from_secs(8);
        let matrix = Matrix::new(target, &blocks, &patterns, 4, time, Repeat::Times(3)).unwrap();
        (path.to_string(), Box::new(matrix))
    }

    /// Runs the study on disks that do this many I/Os per second.
    fn ran(several: &Several, rates: &[u64]) -> Vec<StepResult> {
        let mut results = Vec::new();
        let count = several.studies.len();
        let measure = |number: usize, results: &mut Vec<StepResult>| {
            let round = results.len() as u64 % 3;
            let ios = rates[number % count] + round;
            results.push(StepResult { step: number, report: report(Some(direction(ios, 4096, 5000)), None) });
        };
        for (number, step) in several.steps().iter().enumerate().filter(|(_, step)| !step.prepares) {
            assert!(step.name.starts_with(several.studies[number % count].0.as_str()), "{}", step.name);
            measure(number, &mut results);
        }
        while let Some(step) = several.next(&results) {
            measure(step.repeats.unwrap(), &mut results);
        }
        results
    }

    #[test]
    fn targets_are_measured_in_turn_and_compared() {
        let several = Several::new(vec![study("/a", true), study("/b", true)]).unwrap();
        let names: Vec<&str> = several.steps().iter().map(|step| step.name.as_str()).collect();
        assert_eq!(
            names[..6],
            [
                "/a: filling the test file",
                "/b: filling the test file",
                "/a: 4k randread",
                "/b: 4k randread",
                "/a: 4k randwrite",
                "/b: 4k randwrite"
            ]
        );
        let results = ran(&several, &[1000, 2000]);
        assert_eq!(results.len(), 3 * 8);
        let steps: Vec<usize> = results.iter().map(|run| run.step).collect();
        assert_eq!(steps[8..16], steps[..8], "rounds follow each other");
        let result = several.result(&results, 80);
        assert!(result.text.lines().all(|line| line.chars().count() <= 80), "{}", result.text);
        assert!(result.text.contains("the comparison has means of all runs."), "{}", result.text);
        assert!(!several.result(&results[..8], 80).text.contains("means of all runs"));
        assert!(
            result.conclusion.starts_with(
                "Of 4 rows, /b is faster in 4 (4k randread; 4k randwrite; 64k randread; and 1 more)"
            ),
            "{}",
            result.conclusion
        );
        assert_eq!(result.table.columns[0].key, "target");
        assert_eq!(result.table.rows.len(), 8);
        let keys: Vec<&str> = result.tables.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys[..2], ["targets", "comparison"]);
        assert_eq!(several.result(&[], 80), StudyResult::default());
        assert_eq!(several.time(), study("/a", true).1.time() * 2);
    }

    #[test]
    fn targets_that_allow_different_runs_are_refused() {
        let why = Several::new(vec![study("/a", true), study("/dev/b", false)]).err().unwrap();
        assert!(why.starts_with("/a and /dev/b allow different runs"), "{why}");
    }
}

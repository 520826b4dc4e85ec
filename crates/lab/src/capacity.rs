//! `capacity`: the highest rate at which a percentile of the response latency stays within a bound.
//!
//! Invariant: a rate meets the bound if most of its runs do. Targets are measured in turn and never together, so that they
//! do not disturb each other, and a machine that changes meanwhile affects all of them alike.

use std::path::PathBuf;
use std::time::Duration;

use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, Column, Table};
use fiord_report::{Code, Finding};
use fiord_stats::Capped;

use crate::chart::{self, Chart};
use crate::figures::Figures;
use crate::repeats;
use crate::rounds::Rounds;
use crate::steady;
use crate::step::{Step, StepResult};
use crate::study::{Study, StudyOutline, StudyResult, accounted_for};
use crate::study_target::StudyTarget;
use crate::verdict::Verdict;
use crate::{svg, trust};

mod comparison;
mod found;
mod load;
mod search;
mod trial;

use found::Found;
use search::{Outcome, Search};

pub use load::{Load, Workload};
pub use trial::Bound;

/// How a capacity is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The bound of the response latency.
    pub bound: Bound,
    /// Whether arrivals are evenly spaced, instead of at random.
    pub even: bool,
    /// Total time of all runs of one target.
    pub time: Duration,
    /// The file to draw the chart to.
    pub plot: Option<PathBuf>,
}

/// The study.
#[derive(Debug)]
pub struct Capacity {
    /// None if the job names its files itself.
    targets: Vec<StudyTarget>,
    load: Load,
    settings: Settings,
    /// Time of one run.
    each: Duration,
    outline: StudyOutline,
}

impl Capacity {
    /// Of this load on each of the targets, or on the files that the job names.
    ///
    /// # Errors
    /// A load whose rate cannot be searched, or that writes to a read-only target.
    pub fn new(targets: Vec<StudyTarget>, load: Load, settings: Settings) -> Result<Capacity, String> {
        load.check()?;
        if targets.is_empty() && matches!(load, Load::Pattern(_)) {
            return Err("name a target".to_string());
        }
        if let Some(target) = targets.iter().find(|target| load.modifies() && !target.writable) {
            return Err(format!(
                "{}: the target is read-only, and {} writes; name a directory",
                target.shown(),
                match &load {
                    Load::Pattern(workload) => workload.pattern.as_str(),
                    Load::Job(_) => "the job",
                }
            ));
        }
        let each = (settings.time / (u32::capped(search::RUNS_MAX) + 1)).max(Duration::from_millis(100));
        let outline = StudyOutline {
            is_of_users_options: matches!(load, Load::Job(_)),
            percentile_max: settings.bound.percentile,
            ..StudyOutline::of(Vec::new(), Rounds::ONE)
        };
        let mut capacity = Capacity { targets, load, settings, each, outline };
        let writable = || capacity.targets.iter().filter(|target| target.writable);
        let fills: Vec<Step> = writable().map(|target| capacity.named(target.fill(), target)).collect();
        let first = |number| {
            let name = capacity.step_name(number, "without a rate");
            capacity.load.unpaced(&name, capacity.targets.get(number), each)
        };
        capacity.outline.steps = fills.into_iter().chain((0..capacity.count()).map(first)).collect();
        Ok(capacity)
    }

    /// With further lines of its heading.
    #[must_use]
    pub fn headed(mut self, heading: Vec<(&'static str, String)>) -> Capacity {
        self.outline.heading = heading;
        self
    }

    /// How many targets there are; the files that a job names count as one.
    fn count(&self) -> usize {
        self.targets.len().max(1)
    }

    /// The name of a target, if there are several.
    fn name_of(&self, number: usize) -> String {
        match self.targets.get(number) {
            Some(target) if self.count() > 1 => target.shown(),
            _ => String::new(),
        }
    }

    fn step_name(&self, number: usize, what: &str) -> String {
        match self.name_of(number).as_str() {
            "" => what.to_string(),
            name => format!("{name}: {what}"),
        }
    }

    fn named(&self, step: Step, target: &StudyTarget) -> Step {
        let name = if self.count() > 1 { format!("{}: {}", target.shown(), step.name) } else { step.name };
        Step { name, ..step }
    }

    /// What the runs so far found for each target that was run without a rate.
    fn found<'r>(&self, results: &'r [StepResult]) -> Vec<Found<'r>> {
        let (first, others) = results.split_at(results.len().min(self.count()));
        let of = |(number, run): (usize, &'r StepResult)| Found {
            target: self.targets.get(number).map(StudyTarget::shown),
            name: self.name_of(number),
            subject: self.subject(number),
            unpaced: &run.report,
            search: Search::from(Figures::of_all(&run.report).map_or(0.0, |figures| figures.iops)),
            void: run.void_finding(),
        };
        let mut all: Vec<Found<'r>> = first.iter().enumerate().map(of).collect();
        for run in others {
            let Some((number, rate)) = next_of(&all) else { break };
            all[number].search.trials.push(self.settings.bound.judge(rate, &run.report));
            all[number].void = all[number].void.or_else(|| run.void_finding());
        }
        all
    }

    /// The subject of a sentence about a target.
    fn subject(&self, number: usize) -> String {
        match self.targets.get(number) {
            Some(_) if self.count() > 1 => self.name_of(number),
            Some(target) => target.subject().to_string(),
            None => "This job".to_string(),
        }
    }

    fn percentile_name(&self) -> String {
        format!("p{}", self.settings.bound.percentile)
    }

    fn limit_shown(&self) -> String {
        Cell::Latency(u64::capped(self.settings.bound.limit.as_nanos())).shown()
    }

    /// Every run, with its target if there are several.
    fn table(&self, all: &[Found<'_>]) -> Table {
        let several = (self.count() > 1).then(|| Column::new("target", "TARGET"));
        let mut table = Table::new(several.into_iter().chain(trial::COLUMNS));
        for found in all {
            let name = || several.map(|_| Cell::Text(found.name.clone()));
            let rows =
                found.trials().into_iter().map(|run| name().into_iter().chain(trial::row(run)).collect());
            table.rows.extend(rows);
        }
        table
    }

    fn chart(&self, all: &[Found<'_>]) -> Option<Chart> {
        let lines: Vec<_> = all.iter().map(Found::line).filter(|line| line.points.len() > 1).collect();
        (!lines.is_empty()).then(|| Chart {
            axis: "I/Os per second that arrive".to_string(),
            lines,
            latency_title: Some(format!("Response {}, ms", self.percentile_name())),
            mark_name: "capacity",
        })
    }

    /// The facts of one target; of several, each has its row in a table of its own.
    fn facts(&self, all: &[Found<'_>], is_over: bool) -> Vec<(&'static str, Cell)> {
        let only = all.first().filter(|_| self.count() == 1);
        let [capacity, min, max] =
            only.filter(|_| is_over).map_or([Cell::None, Cell::None, Cell::None], Found::rates);
        vec![
            ("bound_percentile", Cell::Number(self.settings.bound.percentile, 2)),
            ("bound_ns", Cell::Latency(u64::capped(self.settings.bound.limit.as_nanos()))),
            ("capacity_iops", capacity),
            ("capacity_iops_min", min),
            ("capacity_iops_max", max),
            ("limit", Cell::text(only.and_then(Found::limit))),
        ]
    }
}

/// The target that is measured next and its rate: of those whose search goes on, the one that was measured least.
fn next_of(all: &[Found<'_>]) -> Option<(usize, u64)> {
    let searching =
        all.iter().enumerate().filter_map(|(number, found)| Some((number, found.search.next_rate()?)));
    searching.min_by_key(|(number, _)| all[*number].search.trials.len())
}

impl Study for Capacity {
    fn name(&self) -> &'static str {
        "capacity"
    }

    fn purpose(&self) -> String {
        let (percentile, limit) = (self.percentile_name(), self.limit_shown());
        let several = match self.count() {
            1 => String::new(),
            count => format!(", {count} targets in turn"),
        };
        format!("{} with {percentile} within {limit}{several}", self.load.purpose())
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    /// Response latencies and lost arrivals are what it measures, and its rates go beyond what the target sustains.
    fn accounts_for(&self, finding: &Finding) -> bool {
        matches!(finding.code, Code::OmittedWaits | Code::ArrivalsLost) || accounted_for(self, finding)
    }

    fn next(&self, results: &[StepResult]) -> Option<Step> {
        let all = self.found(results);
        let (number, rate) = next_of(&all)?;
        let name = self.step_name(number, &format!("{rate} IOPS"));
        let (target, unpaced) = (self.targets.get(number), all[number].unpaced);
        Some(self.load.at(rate, (&name, self.settings.even), target, self.each, unpaced))
    }

    fn runs_max(&self) -> usize {
        (search::RUNS_MAX + 1) * self.count()
    }

    fn time(&self) -> Duration {
        self.each * u32::capped(self.runs_max())
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let all = self.found(results);
        let (percentile, limit) = (self.percentile_name(), self.limit_shown());
        let has_measured = all.iter().any(|found| Figures::of_all(found.unpaced).is_some());
        if !has_measured {
            return StudyResult::default();
        }
        let is_over = all.len() == self.count() && next_of(&all).is_none();
        let (table, summary) = (self.table(&all), comparison::table(&all, is_over));
        let (conclusion, verdict, most) = match all.as_slice() {
            _ if !is_over => (String::new(), None, None),
            [only] => {
                let verdict = match only.search.outcome() {
                    Outcome::Sustains(_) => None,
                    Outcome::Fails(_) => Some(Verdict::Fail),
                    Outcome::Unclear => Some(Verdict::Undecided),
                };
                (only.sentence(&percentile, &limit), verdict, None)
            }
            _ => {
                let compared = comparison::of(&all, &percentile, &limit);
                (compared.sentence, compared.verdict, compared.most)
            }
        };
        let several = self.count() > 1;
        let chart = self.chart(&all);
        let drawn = chart.as_ref().map(|chart| format!("\n{}", chart::terminal(chart, width, false)));
        let shown = if several { comparison::shown(&summary, &all) } else { table.clone() };
        let plot = self.settings.plot.iter().zip(&chart);
        let mut facts = self.facts(&all, is_over);
        facts.push(("carries_most", Cell::text(most.map(|number| all[number].name.clone()))));
        let result = StudyResult {
            text: shown.text(width) + &drawn.unwrap_or_default(),
            conclusion,
            facts,
            verdict,
            files: plot.map(|(path, chart)| (path.clone(), svg::draw(chart))).collect(),
            shown: several.then_some(shown),
            tables: vec![("targets", summary)],
            table,
            ..StudyResult::default()
        };
        let repeated: Vec<_> = all.iter().flat_map(Found::repeated).collect();
        let result = repeats::beside(result, &repeated, &["response_ns"], Reported::All, width);
        let name = |step: usize| self.outline.step_name(step);
        let result = steady::beside(result, results, name, width);
        // Of several targets, each has a conclusion of its own.
        if several { result } else { trust::concluded(result, results, results) }
    }
}

#[cfg(test)]
mod tests;

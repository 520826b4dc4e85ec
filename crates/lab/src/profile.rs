//! `profile`: where the time of a job goes, as it is or in several variants side by side.
//!
//! Invariant: there is one observation for each run that was measured, in the same order; the parts of a time add up to
//! the whole. A run that the page cache served is no reason not to conclude: what reached the disk is shown.

use std::cell::RefCell;
use std::time::Duration;

use fiord_options::Section;
use fiord_profile::Observation;
use fiord_report::Code;
use fiord_report::Severity;
use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, wrapped};

use crate::repeats;
use crate::rounds::Rounds;
use crate::steady;
use crate::step::{Step, StepResult};
use crate::step_runs;
use crate::study::{Study, StudyOutline, StudyResult};
use crate::sweep::{self, Key, SweptJob};
use crate::trust;
use crate::verdict::Verdict;

mod picture;
mod sections;
mod sentence;
mod tables;
mod variant;

pub use sections::{Screen, Section as PageSection, Shares};
pub use variant::VARIANTS_MAX;
use variant::Variant;

/// The study.
pub struct Profile {
    keys: Vec<Key>,
    outline: StudyOutline,
    /// Steps before the first variant.
    preparing: usize,
    observed: RefCell<Vec<Observation>>,
}

impl Profile {
    /// Of a job at all combinations of the keys' values; without keys, of the job as it is. `time` returns how long
    /// sections run.
    ///
    /// # Errors
    /// There are more variants than can be shown side by side.
    pub fn new(
        keys: Vec<Key>,
        job: &SweptJob,
        rounds: Rounds,
        time: &dyn Fn(&[Section]) -> Duration,
    ) -> Result<Profile, String> {
        let points = sweep::points(&keys)?;
        if points.len() > VARIANTS_MAX {
            return Err(format!(
                "{} variants; at most {VARIANTS_MAX} are shown side by side: vary fewer values, or use fiord sweep",
                points.len()
            ));
        }
        let named = |step: Step| match keys.is_empty() {
            true => Step { name: "the job".to_string(), ..step },
            false => step,
        };
        let steps = points.iter().map(|point| named(sweep::step(&keys, job, point, time))).collect();
        let outline = StudyOutline {
            is_of_users_options: true,
            percentile_max: 99.0,
            ..StudyOutline::of(steps, rounds)
        };
        Ok(Profile { keys, outline, preparing: 0, observed: RefCell::default() })
    }

    /// With a step before all others that prepares them.
    #[must_use]
    pub fn prepared_by(mut self, step: Step) -> Profile {
        self.outline.steps.insert(0, step);
        self.preparing += 1;
        self
    }

    /// With these heading lines, printed before it starts.
    #[must_use]
    pub fn headed(mut self, heading: Vec<(&'static str, String)>) -> Profile {
        self.outline.heading = heading;
        self
    }

    /// Keeps what was observed of the run that was measured last. Called once for each of them.
    pub fn observe(&self, observation: Observation) {
        self.observed.borrow_mut().push(observation);
    }

    /// The parts of its page.
    pub fn sections(&self, results: &[StepResult]) -> Vec<PageSection> {
        sections::of(&self.variants(results), &self.lacking())
    }

    fn variants(&self, results: &[StepResult]) -> Vec<Variant> {
        let observed = self.observed.borrow();
        let of =
            |run: &StepResult| results.iter().zip(observed.iter()).find(|(one, _)| std::ptr::eq(*one, run));
        let by_step = step_runs::by_step(results);
        let variants = by_step.iter().filter_map(|step| {
            let typical = of(step.typical()?)?;
            let runs: Vec<(&StepResult, &Observation)> =
                step.used().iter().filter_map(|run| of(run)).collect();
            Variant::of(self.outline.step_name(typical.0.step), typical, &runs)
        });
        variants.collect()
    }

    /// What could not be observed, each thing once.
    fn lacking(&self) -> Vec<String> {
        let mut lacking: Vec<String> = Vec::new();
        for sentence in self.observed.borrow().iter().flat_map(|observation| &observation.lacking) {
            if !lacking.contains(sentence) {
                lacking.push(sentence.clone());
            }
        }
        lacking
    }
}

/// The columns whose figures are compared over several rounds, and those of them in text.
const REPEATED: [&str; 3] = ["iops", "mib_per_s", "p99_ns"];
const REPEATED_SHOWN: [&str; 1] = ["mib_per_s"];

impl Study for Profile {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn purpose(&self) -> String {
        if self.keys.is_empty() {
            return format!("where the time of a job goes{}", self.outline.rounds.shown());
        }
        format!("where the time goes with {}{}", Key::list(&self.keys), self.outline.rounds.shown())
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let name = |step: usize| self.outline.step_name(step);
        let variants = self.variants(results);
        let lacking = self.lacking();
        let mut text = tables::text(&variants, width);
        for sentence in &lacking {
            text += &format!("\n{}\n", wrapped(&format!("Not observed: {sentence}."), width).join("\n"));
        }
        let void = results.iter().find_map(void_finding);
        let conclusion = match void {
            Some(why) if !variants.is_empty() => trust::cannot_tell(&why),
            _ => match sentence::conclusion(&variants) {
                conclusion if conclusion.is_empty() || self.outline.rounds.max == 1 => conclusion,
                conclusion => conclusion + &repeats::basis(results, self.outline.rounds, name),
            },
        };
        let verdict = results.iter().find_map(void_finding).map(|_| Verdict::Undecided);
        let figures = repeats::figures(results, &REPEATED, |run| {
            let observed = self.observed.borrow();
            let pair = results.iter().zip(observed.iter()).find(|(one, _)| std::ptr::eq(*one, run));
            let variant = pair.and_then(|pair| Variant::of(name(run.step), pair, &[pair]));
            (name(run.step), tables::variants(variant.as_slice()))
        });
        let result = StudyResult {
            table: tables::parts(&variants),
            shown: Some(tables::side_by_side(&variants)),
            text,
            tables: vec![
                ("variants", tables::variants(&variants)),
                ("seconds", tables::seconds(&variants)),
                ("requests", tables::requests(&variants)),
                ("stacks", tables::stacks(&variants)),
            ],
            conclusion,
            facts: vec![("lacking", Cell::List(lacking))],
            verdict,
            ..StudyResult::default()
        };
        let result = repeats::beside(result, &figures, &REPEATED_SHOWN, Reported::Median, width);
        steady::beside(result, &step_runs::typical(results), name, width)
    }
}

/// Why the figures of a run are void, unless it is that the page cache served it: that is what this study shows.
fn void_finding(run: &StepResult) -> Option<String> {
    let is_shown = |code| matches!(code, Code::CacheServed | Code::NotYetWritten);
    let mut void = run.report.findings.iter().filter(|one| one.severity() == Severity::Void);
    void.find(|finding| !is_shown(finding.code)).map(trust::because)
}

#[cfg(test)]
mod tests;

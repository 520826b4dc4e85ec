//! What every study is: steps to run, and a result made from their reports.
//!
//! Invariant: a result can be made from any number of the steps, in order from the first: an interrupted study reports what
//! it has. What follows from results uses the files of the last step that was known before.

use std::path::PathBuf;
use std::time::Duration;

use fiord_report::table::{Cell, Table};
use fiord_report::{Code, Finding};

use crate::rounds::Rounds;
use crate::step::{Step, StepResult};
use crate::step_runs;
use crate::verdict::Verdict;

/// What a study found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyResult {
    /// A row per measurement, in the columns for programs (JSON, CSV).
    pub table: Table,
    /// The rows for readers, used for Markdown, if `table` has columns meant only for programs.
    pub shown: Option<Table>,
    /// The table and its charts for the terminal, at most `width` columns wide. Block characters (`█` to `▏`) are treated as
    /// bars and coloured on a terminal.
    pub text: String,
    /// The same text with colours, if colours are enabled and used for more than bars.
    pub coloured: Option<String>,
    /// Further tables for JSON, each with its key.
    pub tables: Vec<(&'static str, Table)>,
    /// Requested files: path and contents.
    pub files: Vec<(PathBuf, String)>,
    /// The latency that the study is about, if any: its 99th percentile in nanoseconds, and the operation it belongs to.
    pub latency_p99_ns: Option<(u64, String)>,
    /// The conclusion in one sentence; empty if nothing was measured.
    pub conclusion: String,
    /// Further facts for JSON, each with its key: the knee, the verdict, the requirement.
    pub facts: Vec<(&'static str, Cell)>,
    /// The verdict, if the study gives one and all steps were run.
    pub verdict: Option<Verdict>,
}

/// What is known of a study before anything is run.
#[derive(Clone, Debug)]
pub struct StudyOutline {
    /// Further heading lines, printed below those of the target.
    pub heading: Vec<(&'static str, String)>,
    /// Whether its jobs contain options typed by the user, so that warnings about them are printed.
    pub is_of_users_options: bool,
    /// Whether it may end long before its time.
    pub is_time_at_most: bool,
    /// The highest percentile that it shows.
    pub percentile_max: f64,
    /// The runs that are known before any is carried out, in order.
    pub steps: Vec<Step>,
    /// How often its steps are run.
    pub rounds: Rounds,
}

impl StudyOutline {
    /// Of these steps, with options of the study's own and every percentile shown.
    pub(crate) fn of(steps: Vec<Step>, rounds: Rounds) -> StudyOutline {
        StudyOutline {
            heading: Vec::new(),
            is_of_users_options: false,
            is_time_at_most: false,
            percentile_max: 100.0,
            steps,
            rounds,
        }
    }

    /// The name of a step; empty for one that was not known before.
    pub(crate) fn step_name(&self, number: usize) -> String {
        self.steps.get(number).map_or_else(String::new, |step| step.name.clone())
    }
}

/// A study of runs.
pub trait Study {
    /// The subcommand, which is also its kind in the history: `quick`.
    fn name(&self) -> &'static str;

    /// What it will do: one line for the user, without a full stop.
    fn purpose(&self) -> String;

    /// What its runs use, if the name of the target does not say that: how much of which device.
    fn place(&self) -> Option<String> {
        None
    }

    /// What is known of it before anything is run.
    fn outline(&self) -> &StudyOutline;

    /// The runs that are known before any is carried out, in order.
    fn steps(&self) -> &[Step] {
        &self.outline().steps
    }

    /// Whether a finding about one of its runs says what the study shows in other ways, or is about what the study has
    /// chosen and does not show: the user could do nothing about it.
    fn accounts_for(&self, finding: &Finding) -> bool {
        accounted_for(self, finding)
    }

    /// Whether a verdict is acceptable to the user. If it is not, the exit status reports it.
    fn accepts(&self, verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Pass | Verdict::Marginal)
    }

    /// Whether another round would not change what can be said. It is asked once the fewest rounds are over.
    fn is_decided(&self, results: &[StepResult]) -> bool {
        step_runs::are_enough(results)
    }

    /// The run of this number, if so many were carried out: one that was known before, or that follows from the results so
    /// far; `None` ends the study.
    fn step(&self, number: usize, results: &[StepResult]) -> Option<Step> {
        self.steps().get(number).cloned().or_else(|| self.next(results))
    }

    /// The run that follows from the results so far, once those known before are over; `None` ends the study.
    fn next(&self, results: &[StepResult]) -> Option<Step> {
        self.outline().rounds.next(self.steps(), results, || self.is_decided(results))
    }

    /// The part of the study that follows from these results, by its number, if a part must not be interrupted by runs on
    /// other targets; `None`: targets are measured in turn, run by run.
    fn part(&self, _results: &[StepResult]) -> Option<usize> {
        None
    }

    /// The results that are compared with those of other targets, by the name of what they measured.
    fn compared<'r>(&'r self, results: &'r [StepResult]) -> Vec<(String, &'r StepResult)> {
        let named = |run: &'r StepResult| Some((self.steps().get(run.step)?.name.clone(), run));
        results.iter().filter_map(named).collect()
    }

    /// How many runs are measured, at most.
    fn runs_max(&self) -> usize {
        self.steps().iter().filter(|step| !step.prepares).count() * self.outline().rounds.max
    }

    /// The result of the steps run so far. `width`: columns available for text.
    fn result(&self, results: &[StepResult], width: usize) -> StudyResult;

    /// The total time of all rounds of the steps whose time is known.
    fn time(&self) -> Duration {
        let rounds = u32::try_from(self.outline().rounds.max).unwrap_or(u32::MAX);
        self.steps().iter().map(|step| step.time).sum::<Duration>().saturating_mul(rounds)
    }
}

/// `1 run`, `7 runs`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `1 h 5 min`, `200 ms`.
pub(crate) fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, _) if time < Duration::from_secs(1) => format!("{} ms", time.as_millis()),
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// What holds of every study: see [`Study::accounts_for`].
pub(crate) fn accounted_for(study: &(impl Study + ?Sized), finding: &Finding) -> bool {
    match finding.code {
        // Studies that write durably judge by the syncs.
        Code::StopsEarly | Code::StoppedBySize | Code::SyncExcluded => !study.outline().is_of_users_options,
        Code::FewSamples => finding.figures.iter().any(|figure| {
            let is_above =
                matches!(figure.value, Cell::Number(percentile, _) if percentile > study.outline().percentile_max);
            figure.name == "percentile" && is_above
        }),
        _ => false,
    }
}

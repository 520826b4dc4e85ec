//! What every study is: steps to run, and findings made of their reports.
//!
//! Invariant: findings can be made of any number of the steps, in order from the first: an interrupted study tells what
//! it has.

use std::path::PathBuf;
use std::time::Duration;

use fiord_options::Section;
use fiord_report::RunReport;
use fiord_report::table::{Cell, Table};

use crate::Verdict;

/// One run of a study.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it is called in progress and history: `random read 4k, depth 32`.
    pub name: String,
    /// The jobs: settings as they count, and the files they work on as paths.
    pub sections: Vec<Section>,
    /// How long it runs, laying out not counted; nothing where nobody can tell before.
    pub time: Duration,
    /// Whether it only makes ready for those after it: it is run, and not among what was [`Ran`].
    pub prepares: bool,
}

impl Step {
    /// A run that is measured for this time.
    pub fn measure(name: impl Into<String>, sections: Vec<Section>, time: Duration) -> Step {
        Step { name: name.into(), sections, time, prepares: false }
    }

    /// A run that makes ready for those after it, and takes as long as it takes.
    pub fn prepare(name: impl Into<String>, sections: Vec<Section>) -> Step {
        Step { name: name.into(), sections, time: Duration::ZERO, prepares: true }
    }

    /// With all its jobs on this file.
    #[must_use]
    pub fn on(mut self, file: PathBuf) -> Step {
        self.sections.iter_mut().for_each(|section| section.files = vec![file.clone()]);
        self
    }
}

/// A step that was run and measured.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its number among the study's steps, those that prepare included, from 0.
    pub step: usize,
    /// What came of it.
    pub report: RunReport,
}

/// What a study found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// A row for what was measured, in the columns that programs get (JSON, CSV).
    pub table: Table,
    /// The rows as people read them, for Markdown, where the other columns are for programs alone.
    pub shown: Option<Table>,
    /// The table and its pictures for people, at most `width` columns wide. Block characters (`█` to `▏`) are taken for
    /// bars, and coloured on a terminal.
    pub text: String,
    /// The same with colours, where they are wanted and something but bars has some.
    pub coloured: Option<String>,
    /// Further tables for JSON, each with its key.
    pub tables: Vec<(&'static str, Table)>,
    /// Files that were asked for: where to write them, and what.
    pub files: Vec<(PathBuf, String)>,
    /// The latency the study is about, where it is about one: its 99th percentile in nanoseconds, and what it is of.
    pub latency_p99_ns: Option<(u64, &'static str)>,
    /// What it comes to, in one plain sentence; empty when nothing was measured.
    pub conclusion: String,
    /// Further facts for JSON, each with its key: the knee, the verdict, the requirement.
    pub facts: Vec<(&'static str, Cell)>,
    /// Whether what was asked for holds, where a study judges that and everything was run.
    pub verdict: Option<Verdict>,
}

/// A study of runs.
pub trait Study {
    /// The subcommand, which is also its kind in the history: `quick`.
    fn name(&self) -> &'static str;

    /// What it is about to do, for people: a line without a full stop.
    fn purpose(&self) -> String;

    /// What else is to be known before it begins, line by line, below where it works.
    fn heading(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether its jobs hold options of the user's, so that warnings about them are worth telling.
    fn is_of_users_options(&self) -> bool {
        false
    }

    /// Whether a verdict is good enough for who asked. What is not, the exit status tells.
    fn accepts(&self, verdict: Verdict) -> bool {
        verdict != Verdict::Fail
    }

    /// The runs, in order.
    fn steps(&self) -> &[Step];

    /// What the steps run so far say. `width`: columns there are for text.
    fn findings(&self, ran: &[Ran], width: usize) -> Findings;

    /// How long all steps take whose time is known.
    fn time(&self) -> Duration {
        self.steps().iter().map(|step| step.time).sum()
    }
}

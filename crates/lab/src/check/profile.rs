//! A workload to check a disk with: its jobs, its space, and the figures that are judged.
//!
//! Invariant: a profile is data, read from a check file; nothing here knows a particular workload.

use fiord_report::{Code, RunReport};

use super::expression::{Expression, Stages};
use super::job_file::{Space, Stage};
use super::limit::{Better, Detail, Limit, Row, Unit};

/// A workload and its requirements.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name on the command line, `etcd`, or that of its file.
    pub name: String,
    /// Its runs in a few words.
    pub runs: String,
    /// The workload that a disk with PASS is fast enough for.
    pub workload: String,
    /// The check file.
    pub text: String,
    /// Its job file, which fio can run, too.
    pub job_file: String,
    /// The figure shown in lists of runs, if any: a 99th percentile.
    pub headline: Option<String>,
    /// How many times the whole workload is run, at least; its time is that of all of these rounds.
    pub rounds: usize,
    /// The space taken by its files.
    pub space: Space,
    /// Jobs that run at the same time.
    pub(super) stages: Vec<Stage>,
    /// What is measured, and its limits.
    pub(super) figures: Vec<FigureOfCheck>,
    /// Findings that no run may have.
    pub(super) forbidden: Vec<Code>,
}

/// A figure, and its limits.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FigureOfCheck {
    /// Its name in the results.
    pub title: String,
    pub of: Expression,
    /// `None`: it is reported without a verdict.
    pub limit: Option<Limit>,
    /// What to do if it is not within its limits.
    pub remedy: Option<String>,
    /// Figures that explain it, each with its name.
    pub details: Vec<(String, Expression)>,
}

impl Profile {
    /// The space taken by its files, in bytes, if the large ones have `size_bytes`.
    pub fn space_bytes(&self, size_bytes: u64) -> u64 {
        self.space.fixed_bytes.saturating_add(self.space.files.saturating_mul(size_bytes))
    }

    /// Whether it fails with certain findings, so that they must be looked for.
    pub fn forbids_findings(&self) -> bool {
        !self.forbidden.is_empty()
    }

    /// The most seconds that all its rounds take.
    pub fn seconds(&self) -> u64 {
        self.rounds as u64 * self.stages.iter().map(|stage| stage.seconds).sum::<u64>()
    }

    /// The rows of a round, from the reports of its measured stages.
    pub(super) fn rows(&self, stages: &Stages<'_>) -> Vec<Row> {
        let of_figures = self.figures.iter().filter_map(|figure| figure.row(stages));
        let of_findings = self.forbidden.iter().filter_map(|code| forbidden(*code, stages));
        of_figures.chain(of_findings).collect()
    }

    /// The first figure with a limit that these rows lack in one of so many rounds.
    pub(super) fn unmeasured(&self, rows: &[Row], rounds: usize) -> Option<&str> {
        let is_measured =
            |title: &str| rows.iter().any(|row| row.figure == title && row.rounds.len() >= rounds);
        let mut limited = self.figures.iter().filter(|figure| figure.limit.is_some());
        limited.find(|figure| !is_measured(&figure.title)).map(|figure| figure.title.as_str())
    }
}

impl FigureOfCheck {
    /// Of a round; `None` if it was not measured.
    fn row(&self, stages: &Stages<'_>) -> Option<Row> {
        let detail = |(name, of): &(String, Expression)| {
            Some(Detail { name: name.clone(), unit: of.unit(), value: of.of(stages)? })
        };
        Some(Row {
            figure: self.title.clone(),
            unit: self.of.unit(),
            rounds: vec![self.of.of(stages)?],
            limit: self.limit.clone(),
            remedy: self.remedy.clone(),
            details: self.details.iter().filter_map(detail).collect(),
        })
    }
}

/// How often a round has a finding that it must not have; `None` until all of its stages were run.
fn forbidden(code: Code, stages: &Stages<'_>) -> Option<Row> {
    let reports = stages.iter().copied().collect::<Option<Vec<&RunReport>>>()?;
    let found =
        reports.iter().flat_map(|report| &report.findings).filter(|finding| finding.code == code).count();
    let from = format!("the check forbids this finding; fiord explain --line {} says more", code.name());
    Some(Row {
        figure: format!("findings {}", code.name()),
        unit: Unit::Count,
        rounds: vec![found as f64],
        limit: Some(Limit { pass: 0.0, fail: Some(0.0), better: Better::Lower, from }),
        remedy: None,
        details: Vec::new(),
    })
}

//! `check`: whether a disk is fast enough for a known workload, by that workload's published limits.
//!
//! Invariant: a verdict is given only if all rounds were run and none of their figures is void, and is that of the worst
//! round; rounds on both sides of the limit beyond which a disk fails, or a confidence interval that contains it, give
//! none.

use std::time::Duration;

use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, Column, Table};
use fiord_report::{Finding, RepeatedFigure};

use crate::repeats;
use crate::rounds::{Repeat, Rounds};
use crate::steady;
use crate::step::{Step, StepResult};
use crate::step_runs;
use crate::study::{Study, StudyOutline, StudyResult};
use crate::study_target::StudyTarget;
use crate::trust;
use crate::verdict::Verdict;

mod etcd;
mod job_file;
mod limit;
mod oltp;
mod profile;
mod rocksdb;

use job_file::{ProfileTarget, Stage};
use limit::{Evidence, Row};
use profile::Stages;
pub use profile::{Profile, Space};

/// All profiles.
pub static PROFILES: [Profile; 3] = [etcd::PROFILE, rocksdb::PROFILE, oltp::PROFILE];

/// Most rounds, if noise hides the verdict.
const ROUNDS_MAX: usize = 10;

/// Sizes are multiples of this block size, which suits direct I/O on any device.
const BLOCK_BYTES: u64 = 4096;

/// The study.
#[derive(Debug)]
pub struct Check {
    profile: &'static Profile,
    target: StudyTarget,
    outline: StudyOutline,
    /// The time for all rounds.
    time: Duration,
    strict: bool,
}

impl Check {
    /// Of this profile, in about `time` instead of the profile's own. By default there are at least the profile's rounds,
    /// and further ones while noise hides the verdict and time is left.
    ///
    /// # Errors
    /// The target is not a directory.
    pub fn new(
        profile: &'static Profile,
        target: &StudyTarget,
        time: Option<Duration>,
        repeat: Repeat,
    ) -> Result<Check, String> {
        if !target.writable {
            return Err(format!(
                "{}: not a directory, and check writes to scratch files; name a directory",
                target.shown()
            ));
        }
        let size_bytes = match profile.space {
            Space::Bytes(bytes) => bytes,
            Space::Files(count) => target.size_bytes / count / BLOCK_BYTES * BLOCK_BYTES,
        };
        let place = ProfileTarget {
            directory: target.own_directory().to_path_buf(),
            direct: target.direct,
            size_bytes,
        };
        let stages = job_file::stages(profile.job_file);
        let time = time.unwrap_or(Duration::from_secs(profile.seconds()));
        let of_round: u64 = stages.iter().map(|stage| stage.seconds).sum();
        let all_rounds = |stage: &Stage| time.mul_f64(stage.seconds as f64 / of_round.max(1) as f64);
        let rounds =
            rounds(profile, repeat, stages.iter().filter(|stage| stage.seconds > 0).map(&all_rounds).min());
        let step = |stage: &Stage| {
            let each = all_rounds(stage) / rounds.min as u32;
            let name = stage.name.replace('-', " ");
            let jobs = stage.placed(&place, each);
            match stage.seconds {
                0 => Step::prepare(name, jobs),
                _ => Step::measure(name, jobs, each),
            }
        };
        let steps = stages.iter().map(step).collect();
        let outline = StudyOutline::of(steps, rounds);
        Ok(Check { profile, target: target.clone(), outline, time, strict: false })
    }

    /// With headroom required: only PASS is accepted.
    #[must_use]
    pub fn strict(self, strict: bool) -> Check {
        Check { strict, ..self }
    }

    /// The rows of all rounds: each has the figures of every round, and the details of the worst.
    fn rows(&self, results: &[StepResult]) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for round in results.chunks(self.measured().max(1)) {
            let mut stages: Stages<'_> = vec![None; self.measured()];
            stages.iter_mut().zip(round).for_each(|(stage, run)| *stage = Some(&run.report));
            for row in (self.profile.rows)(&stages) {
                match rows.iter_mut().find(|known| known.figure == row.figure) {
                    Some(known) => known.add_round(row),
                    None => rows.push(row),
                }
            }
        }
        rows
    }

    /// How long the runs so far took.
    fn spent(results: &[StepResult]) -> Duration {
        let runtime_ms = |run: &StepResult| {
            let stats = run.report.jobs.iter().flat_map(|job| &job.stats.directions);
            stats.map(|direction| direction.runtime_ms).max().unwrap_or(0)
        };
        Duration::from_millis(results.iter().map(runtime_ms).sum())
    }

    /// The number of steps that are measured.
    fn measured(&self) -> usize {
        self.steps().iter().filter(|step| !step.prepares).count()
    }
}

impl Study for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn purpose(&self) -> String {
        let rounds = match self.outline.rounds {
            Rounds { max: 1, .. } => String::new(),
            Rounds { min, max } if min == max => format!(", {min} rounds"),
            Rounds { min, .. } => format!(", {min} rounds or more"),
        };
        format!("{} in {}: {}{rounds}", self.profile.name, self.target.shown(), self.profile.runs)
    }

    fn accepts(&self, verdict: Verdict) -> bool {
        verdict == Verdict::Pass || (verdict == Verdict::Marginal && !self.strict)
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn is_decided(&self, results: &[StepResult]) -> bool {
        let rows = self.rows(results);
        let hidden =
            rows.iter().any(|row| row.noise_across_limit().or_else(|| row.noise_across_headroom()).is_some());
        let rounds = results.len().checked_div(self.measured()).unwrap_or(0).max(1) as u32;
        let next = Check::spent(results) / rounds;
        !hidden || Check::spent(results) + next > self.time
    }

    fn time(&self) -> Duration {
        self.time
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let rows = self.rows(results);
        let measured = self.measured();
        let complete =
            results.len() >= measured * self.outline.rounds.min && results.len().is_multiple_of(measured);
        let void = results.iter().find_map(StepResult::void_finding);
        let evidence = match void {
            _ if !complete => Evidence::Incomplete,
            Some(_) => Evidence::Void,
            None => Evidence::Sound,
        };
        let worst = rows.iter().filter_map(|row| row.verdict(evidence)).max();
        let shown = limit::shown(&rows, evidence);
        let result = StudyResult {
            text: text(&shown, &rows, width),
            conclusion: match worst {
                Some(Verdict::Undecided) => trust::cannot_tell(&undecided(&rows, void)),
                worst => conclusion(self.profile, worst, &rows),
            },
            facts: vec![("profile", Cell::Text(self.profile.name.to_string()))],
            verdict: worst,
            latency_p99_ns: self.profile.headline.and_then(|name| limit::worst_ns(&rows, name)),
            table: limit::table(&rows, evidence),
            tables: vec![("details", limit::details(&rows))],
            shown: Some(shown),
            ..StudyResult::default()
        };
        let figures: Vec<RepeatedFigure> = rows.iter().map(Row::repeated).collect();
        let result = repeats::beside(result, &figures, &[], Reported::Median, width);
        steady::beside(result, &step_runs::typical(results), |step| self.outline.step_name(step), width)
    }
}

/// How often a profile is run, if the shortest of its stages has this time in all rounds.
fn rounds(profile: &Profile, repeat: Repeat, shortest: Option<Duration>) -> Rounds {
    match (repeat, Rounds::of(repeat, shortest.unwrap_or_default())) {
        (Repeat::Times(_), rounds) => rounds,
        (Repeat::Auto, Rounds { min, .. }) => {
            let min = min.max(profile.rounds);
            Rounds { min, max: if min > 1 { ROUNDS_MAX } else { 1 } }
        }
    }
}

/// The sources of the limits, the details of each figure, and last the verdicts, which a terminal then still shows.
fn text(table: &Table, rows: &[Row], width: usize) -> String {
    let mut limits = Table::new([Column::new("limit", "LIMIT"), Column::new("from", "FROM")]);
    for row in rows {
        if let Some(limit) = &row.limit {
            limits.rows.push(vec![Cell::Text(row.figure.clone()), Cell::Text(limit.from.to_string())]);
        }
    }
    limits.rows.dedup_by(|later, earlier| later[1] == earlier[1]);
    let rounds = rows.iter().any(|row| row.rounds.len() > 1);
    let mut more =
        table.select(if rounds { &["figure", "rounds", "details"] } else { &["figure", "details"] });
    more.rows.retain(|row| row[1..].iter().any(|cell| *cell != Cell::None));
    let verdicts = table.select(&["figure", "measured", "pass_limit", "fail_limit", "verdict"]);
    let parts = [limits, more, verdicts].map(|part| part.text(width));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Why no verdict can be given although all rounds were run: the figures of one are void, or the rounds lie on both sides
/// of a limit.
fn undecided(rows: &[Row], void: Option<&Finding>) -> String {
    let across = || rows.iter().find_map(Row::noise_across_limit);
    void.map(trust::because).or_else(across).unwrap_or_default()
}

fn conclusion(profile: &Profile, verdict: Option<Verdict>, rows: &[Row]) -> String {
    let Some(verdict) = verdict else {
        return if rows.is_empty() {
            String::new()
        } else {
            "No verdict: not all rounds were run.".to_string()
        };
    };
    let workload = profile.workload;
    let decides = |row: &&Row| row.verdict(Evidence::Sound) == Some(verdict);
    let worst = rows.iter().find(decides).map(Row::summary).unwrap_or_default();
    match verdict {
        Verdict::Pass => {
            format!("PASS: this disk is fast enough for {workload}, with headroom: {worst}.{}", noise(rows))
        }
        Verdict::Marginal => {
            let noise = noise(rows);
            format!(
                "MARGINAL: this disk is fast enough for {workload}, but without headroom: {worst}.{noise}"
            )
        }
        Verdict::Fail => format!("FAIL: this disk is too slow for {workload}: {worst}."),
        // The reason is not in the rows alone.
        Verdict::Undecided => String::new(),
    }
}

/// That another check may say PASS instead of MARGINAL, or the other way round, as a further sentence; empty if that is not
/// to be expected.
fn noise(rows: &[Row]) -> String {
    let across: Vec<String> = rows.iter().filter_map(Row::noise_across_headroom).collect();
    match across.as_slice() {
        [] => String::new(),
        across => format!(" Another check may see more or less headroom: {}.", across.join("; ")),
    }
}

#[cfg(test)]
mod tests;

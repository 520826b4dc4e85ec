//! `check`: whether a disk is fast enough for a workload, by the limits of a check file.
//!
//! Invariant: a verdict is given only if all rounds were run, each figure with a limit was measured in each, and none is void, and is that of the worst
//! round; rounds on both sides of the limit beyond which a disk fails, or a confidence interval that contains it, give
//! none.

use std::time::Duration;

use fiord_report::RepeatedFigure;
use fiord_report::repeats::Reported;
use fiord_report::table::{Cell, Column, Table, shown_bytes};
use fiord_stats::Capped;

use crate::repeats;
use crate::rounds::{Repeat, Rounds};
use crate::steady;
use crate::step::{Step, StepResult};
use crate::step_runs;
use crate::study::{Study, StudyOutline, StudyResult};
use crate::study_target::StudyTarget;
use crate::trust;
use crate::verdict::Verdict;

mod builtin;
mod explained;
mod expression;
mod file;
mod job_file;
mod limit;
mod profile;
mod term;

pub use builtin::{PROFILES, SCHEMA};
use expression::Stages;
pub use file::read;
pub use job_file::Space;
use job_file::{ProfileTarget, Stage};
use limit::{Evidence, Row, Unit};
pub use profile::Profile;

/// Most rounds, if noise hides the verdict.
const ROUNDS_MAX: usize = 10;

/// Sizes are multiples of this block size, which suits direct I/O on any device.
const BLOCK_BYTES: u64 = 4096;

/// The study.
#[derive(Debug)]
pub struct Check {
    profile: Profile,
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
    /// The target is not a directory, or has too little space for the files of the check.
    pub fn new(
        profile: &Profile,
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
        let size_bytes = size_of_large_files(profile, target)?;
        let place = ProfileTarget {
            directory: target.own_directory().to_path_buf(),
            direct: target.direct,
            size_bytes,
        };
        let stages = &profile.stages;
        let time = time.unwrap_or(Duration::from_secs(profile.seconds()));
        let of_round: u64 = stages.iter().map(|stage| stage.seconds).sum();
        let all_rounds = |stage: &Stage| time.mul_f64(stage.seconds as f64 / of_round.max(1) as f64);
        let rounds =
            rounds(profile, repeat, stages.iter().filter(|stage| stage.seconds > 0).map(&all_rounds).min());
        let step = |stage: &Stage| {
            let each = all_rounds(stage) / u32::capped(rounds.min);
            let name = stage.name.replace('-', " ");
            let jobs = stage.placed(&place, each);
            match stage.seconds {
                0 => Step::prepare(name, jobs),
                _ => Step::measure(name, jobs, each),
            }
        };
        let steps = stages.iter().map(step).collect();
        let outline = StudyOutline::of(steps, rounds);
        Ok(Check { profile: profile.clone(), target: target.clone(), outline, time, strict: false })
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
            for row in self.profile.rows(&stages) {
                match rows.iter_mut().find(|known| known.figure == row.figure) {
                    Some(known) => known.add_round(row),
                    None => rows.push(row),
                }
            }
        }
        rows
    }

    /// Why the figures of runs so far decide nothing, if they do not: a finding voids one, or a figure was not measured.
    fn void(&self, results: &[StepResult], rows: &[Row], rounds: usize) -> Option<String> {
        let missing = || {
            let figure = self.profile.unmeasured(rows, rounds)?;
            Some(format!("{figure} was not measured in every round: no such I/O completed"))
        };
        results.iter().find_map(StepResult::void_finding).map(trust::because).or_else(missing)
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
        let rounds = u32::capped(results.len().checked_div(self.measured()).unwrap_or(0).max(1));
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
        let rounds = results.len().checked_div(measured).unwrap_or(0);
        let void = self.void(results, &rows, rounds);
        let evidence = match void {
            _ if !complete => Evidence::Incomplete,
            Some(_) => Evidence::Void,
            None => Evidence::Sound,
        };
        let worst = rows.iter().filter_map(|row| row.verdict(evidence)).max();
        // A check whose every figure is missing has no row to say so.
        let worst = worst.or(if evidence == Evidence::Void { Some(Verdict::Undecided) } else { None });
        let shown = limit::shown(&rows, evidence);
        let result = StudyResult {
            text: text(&shown, &rows, width),
            conclusion: match worst {
                Some(Verdict::Undecided) => trust::cannot_tell(&undecided(&rows, void.as_deref())),
                worst => conclusion(&self.profile, worst, &rows),
            },
            facts: vec![("profile", Cell::Text(self.profile.name.clone()))],
            verdict: worst,
            latency_p99_ns: self.profile.headline.as_ref().and_then(|name| limit::worst_ns(&rows, name)),
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

/// The size of each file whose size may be chosen, in bytes.
///
/// # Errors
/// The target has no space for them beside the others.
fn size_of_large_files(profile: &Profile, target: &StudyTarget) -> Result<u64, String> {
    let Space { fixed_bytes, files, block_bytes } = profile.space;
    let each = target.size_bytes.saturating_sub(fixed_bytes).checked_div(files);
    let each = each.map(|each| each / BLOCK_BYTES * BLOCK_BYTES);
    let (found, found_bytes) = match (target.free_bytes, each) {
        (Some(free_bytes), _) if free_bytes < fixed_bytes => ("are free", free_bytes),
        (_, Some(0)) => ("can be used", target.size_bytes),
        (_, Some(each)) if each < block_bytes => {
            return Err(format!(
                "{}: {} can be used, and each of the {files} files of {} needs at least {}; raise --size, free some space, or name \
                 another directory",
                target.shown(),
                shown_bytes(target.size_bytes),
                profile.name,
                shown_bytes(block_bytes)
            ));
        }
        (_, each) => return Ok(each.unwrap_or(0)),
    };
    Err(format!(
        "{}: {} {found}, and the files of {} whose size is fixed take {}; free some space, or name another directory",
        target.shown(),
        shown_bytes(found_bytes),
        profile.name,
        shown_bytes(fixed_bytes)
    ))
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
            limits.rows.push(vec![Cell::Text(row.figure.clone()), Cell::Text(limit.from.clone())]);
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
fn undecided(rows: &[Row], void: Option<&str>) -> String {
    let across = || rows.iter().find_map(Row::noise_across_limit);
    void.map(str::to_string).or_else(across).unwrap_or_default()
}

fn conclusion(profile: &Profile, verdict: Option<Verdict>, rows: &[Row]) -> String {
    let Some(verdict) = verdict else {
        return if rows.is_empty() {
            String::new()
        } else {
            "No verdict: not all rounds were run.".to_string()
        };
    };
    let workload = &profile.workload;
    let decides = |row: &&Row| row.verdict(Evidence::Sound) == Some(verdict);
    let deciding = rows.iter().find(decides);
    let worst = deciding.map(Row::summary).unwrap_or_default();
    let remedy =
        deciding.and_then(|row| row.remedy.as_ref()).map_or_else(String::new, |remedy| format!(" {remedy}"));
    let is_finding = deciding.is_some_and(|row| row.unit == Unit::Count);
    match verdict {
        Verdict::Pass => {
            format!("PASS: this disk is fast enough for {workload}, with headroom: {worst}.{}", noise(rows))
        }
        Verdict::Marginal => {
            let noise = noise(rows);
            format!(
                "MARGINAL: this disk is fast enough for {workload}, but without headroom: {worst}.{noise}{remedy}"
            )
        }
        Verdict::Fail if is_finding => format!("FAIL: this disk does not suit {workload}: {worst}.{remedy}"),
        Verdict::Fail => format!("FAIL: this disk is too slow for {workload}: {worst}.{remedy}"),
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

#[cfg(test)]
mod shipped_tests;

//! `qualify`: what a device does once it is no longer fresh, by SNIA's Performance Test Specification 2.0.
//!
//! Invariant: a test that did not become steady has no figures in the rows; what its rounds measured is in lists of their
//! own.

use fiord_stats::Capped;
use fiord_stats::OrderBy;

mod figures;
mod kept;
mod phase;
mod progress;
mod settings;
mod states;
mod tables;
#[cfg(test)]
mod tests;
pub mod window;

use std::time::Duration;

use fiord_report::table::{Cell, Column, Table, shown_bytes};
use fiord_report::{Code, Finding};

use crate::rounds::Rounds;
use crate::step::{Step, StepResult};
use crate::study::{Study, StudyOutline, StudyResult, accounted_for, counted, shown_time};
use crate::study_target::StudyTarget;
use crate::trust;
use crate::verdict::Verdict;
use phase::{End, Phase};
use progress::walk;
use window::WINDOW_ROUNDS;

pub use kept::{Earlier, FoundDevice, Kept};
pub use settings::{Class, Settings, Test};

/// The rate at which the time of preconditioning is estimated.
const ESTIMATE_BYTES_PER_S: u64 = 1 << 30;

/// The study.
#[derive(Clone)]
pub struct Qualify {
    target: StudyTarget,
    settings: Settings,
    phases: Vec<Phase>,
    /// The numbers of results before which the study was interrupted.
    breaks: Vec<usize>,
    outline: StudyOutline,
}

impl Qualify {
    /// On this target, which may be written.
    ///
    /// # Errors
    /// The target may not be written.
    pub fn new(target: StudyTarget, settings: Settings) -> Result<Qualify, String> {
        if !target.writable {
            let why = "qualification writes; name a device with --overwrite, or a directory";
            return Err(format!("{}: {why}", target.shown()));
        }
        settings.sprandom.map_or(Ok(()), |_| suits_sprandom(&target, &settings))?;
        let phases = phase::phases(&target, &settings);
        if phases.is_empty() {
            let why = "each of these tests writes where it wrote before, in any order, and zones here are written in sequence \
                       only; add iops, throughput, latency or saturation to --test";
            return Err(format!("{}: {why}", target.shown()));
        }
        let steps = phases.iter().take(1).flat_map(round_of).collect();
        let heading = heading(&target, &settings, &phases, &[]);
        let outline = StudyOutline { heading, is_time_at_most: true, ..StudyOutline::of(steps, Rounds::ONE) };
        Ok(Qualify { target, settings, phases, breaks: Vec::new(), outline })
    }

    /// The block sizes with which it preconditions.
    pub fn precondition_blocks(&self) -> Vec<u64> {
        let mut blocks: Vec<u64> = self.phases.iter().filter_map(Phase::precondition_block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks
    }

    /// The same study without the preconditioning that is kept; of each block size that, or which evidence is missing.
    #[must_use]
    pub fn keeping(mut self, found: &[(u64, Result<Kept, String>)]) -> Qualify {
        for phase in &mut self.phases {
            let block = phase.precondition_block();
            phase.kept = found.iter().find(|(known, _)| Some(*known) == block).cloned();
            if phase.has_kept().is_some() {
                phase.precondition = None;
            }
        }
        self.outline.steps = self.phases.iter().take(1).flat_map(round_of).collect();
        self.outline.heading = heading(&self.target, &self.settings, &self.phases, found);
        self
    }

    /// The same study with one round of every test known before: what a dry run shows.
    #[must_use]
    pub fn with_all_steps(mut self) -> Qualify {
        self.outline.steps = self.phases.iter().flat_map(round_of).collect();
        self
    }

    /// The same study beside those of other targets: with its first run alone known before.
    #[must_use]
    pub fn beside_others(mut self) -> Qualify {
        self.outline.steps.truncate(1);
        self
    }

    /// The same study after interruptions before these results, by their numbers.
    #[must_use]
    pub fn interrupted_before(mut self, breaks: Vec<usize>) -> Qualify {
        self.breaks = breaks;
        self
    }

    /// The name of the run that follows from these results, with interruptions before these of them; `None` if there is none.
    pub fn name_after(&self, results: &[StepResult], breaks: &[usize]) -> Option<String> {
        walk(&self.phases, results, breaks).1.map(|step| step.name)
    }

    /// How much of what it overwrites: by its identity, because another device may have the same name later.
    fn part_of_target(&self) -> String {
        let target = self.target.identity.clone().unwrap_or_else(|| self.target.shown());
        format!("{} of {target}", shown_bytes(self.target.size_bytes))
    }

    /// The runs whose preconditioning is kept, each with its block size.
    pub fn kept_runs(&self) -> Vec<(u64, i64)> {
        let kept = self.phases.iter().filter_map(|phase| phase.kept.as_ref());
        let mut runs: Vec<(u64, i64)> =
            kept.filter_map(|(block, kept)| Some((*block, kept.as_ref().ok()?.run))).collect();
        runs.order_by(Ord::cmp);
        runs.dedup();
        runs
    }
}

/// Whether one pass of `sprandom` can precondition this target for some of these tests.
fn suits_sprandom(target: &StudyTarget, settings: &Settings) -> Result<(), String> {
    if !settings.tests.iter().any(|test| test.is_random()) {
        return Err(
            "--sprandom: none of these tests begins with it; add iops or latency to --test".to_string()
        );
    }
    if target.zone_bytes.is_some() {
        return Err(format!(
            "--sprandom: {}: its zones are written in sequence only, in no other order; leave it out",
            target.shown()
        ));
    }
    rotating(target).map_or(Ok(()), |name| {
        Err(format!(
            "--sprandom: {}: {name} is reported as rotating, which has no flash to bring into an order; leave it out",
            target.shown()
        ))
    })
}

/// The name of a device of this target that is reported as rotating.
fn rotating(target: &StudyTarget) -> Option<String> {
    let at = |key: &str| target.devices.columns.iter().position(|column| column.key == key);
    let (name, rotational) = (at("name")?, at("rotational")?);
    let row = target.devices.rows.iter().find(|row| row[rotational] == Cell::Flag(true))?;
    Some(row[name].shown())
}

/// How much the preconditioning of a phase writes.
fn precondition_bytes(phase: &Phase, target: &StudyTarget, settings: &Settings) -> u64 {
    match (&phase.precondition, settings.sprandom) {
        (None, _) => 0,
        (Some(_), Some(share)) if phase.test.is_random() => {
            u64::capped(target.size_bytes as f64 * (1.0 + share))
        }
        (Some(_), _) => kept::FILLS * target.size_bytes,
    }
}

/// What one pass of `sprandom` is, and what it does not show.
fn sprandom_line(target: &StudyTarget, settings: &Settings, share: f64) -> String {
    let tests: Vec<&str> =
        settings.tests.iter().filter(|test| test.is_random()).map(|test| test.word()).collect();
    format!(
        "{}: one pass of random 4KiB writes over {}, {:.2} times as much, in the order of sprandom; right only on a device \
         that was purged before and has {:.0} % more flash than that. Rounds follow until they are steady, as ever",
        tests.join(" and "),
        shown_bytes(target.size_bytes),
        1.0 + share,
        100.0 * share
    )
}

/// The preparation of a phase, and its first round.
fn round_of(phase: &Phase) -> impl Iterator<Item = Step> {
    phase.precondition.iter().chain(phase.points.iter().map(|point| &point.step)).cloned()
}

/// What is left out of the tests on this target, and why.
fn left_out_line(target: &StudyTarget, settings: &Settings) -> Option<(&'static str, String)> {
    let of = |test: &Test| Some(format!("{}: {}", test.word(), phase::left_out(*test, target)?.what));
    let parts: Vec<String> = settings.tests.iter().filter_map(of).collect();
    let zone = shown_bytes(target.zone_bytes?);
    (!parts.is_empty()).then(|| {
        let (parts, name) = (parts.join("; "), target.shown());
        ("Left out", format!("{parts}. The zones of {name} ({zone}) are written in sequence only"))
    })
}

/// The same for programs.
fn left_out_table(target: &StudyTarget, settings: &Settings) -> Table {
    let mut table = Table::new(["test", "what", "why"].map(|key| Column::new(key, "")));
    let parts = settings.tests.iter().filter_map(|test| Some((test, phase::left_out(*test, target)?)));
    let row = |(test, left_out): (&Test, phase::LeftOut)| {
        [test.word(), left_out.what, "zones-in-sequence"].map(|text| Cell::Text(text.to_string())).to_vec()
    };
    table.rows = parts.map(row).collect();
    table
}

/// The results before the first that was interrupted, which is of a part of its time.
fn whole(results: &[StepResult]) -> &[StepResult] {
    let is_part =
        |run: &StepResult| run.report.findings.iter().any(|finding| finding.code == Code::Interrupted);
    &results[..results.iter().position(is_part).unwrap_or(results.len())]
}

/// How long the rounds of a phase take, at least and at most.
fn time_of(phase: &Phase) -> [Duration; 2] {
    let round: Duration = phase.points.iter().map(|point| point.step.time).sum();
    let least = match phase.end {
        End::Steady { rounds_max, .. } => WINDOW_ROUNDS.min(rounds_max),
        End::Written { .. } => 1,
        End::Rounds(rounds) => rounds,
    };
    [least, phase.end.rounds_max()]
        .map(|rounds| round.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)))
}

/// What a reader has to know before the figures: the state of the device, the time, and what is not by the specification;
/// `found` says what was looked for instead of preconditioning with blocks of each size.
fn heading(
    target: &StudyTarget,
    settings: &Settings,
    phases: &[Phase],
    found: &[(u64, Result<Kept, String>)],
) -> Vec<(&'static str, String)> {
    let [least, most] = [0, 1].map(|end| phases.iter().map(|phase| time_of(phase)[end]).sum::<Duration>());
    let written: u64 = phases.iter().map(|phase| precondition_bytes(phase, target, settings)).sum();
    let [least, most] = [least, most].map(shown_time);
    let range = if least == most { most } else { format!("{least} to {most}") };
    let mut time = format!("{range} of rounds");
    if written > 0 {
        let filling = shown_time(Duration::from_secs(written.div_ceil(ESTIMATE_BYTES_PER_S)));
        time += &format!(", and {} of preconditioning ({filling} at 1GiB/s)", shown_bytes(written));
    }
    let purge = "not done; the specification purges before each test (nvme format, or blkdiscard), and fiord writes \
                 twice the capacity instead";
    let mut lines = vec![("Purge", purge.to_string()), ("Time", time)];
    lines.extend(left_out_line(target, settings));
    lines.extend(rotating(target).map(|name| {
        let why = "the specification is about flash. Sequential I/O is that of its first tracks, the fastest; random I/O over a \
                   part of it seeks less than over all of it";
        ("Rotating", format!("{name} is reported so; {why}"))
    }));
    lines.extend(settings.sprandom.map(|share| ("Preconditioning", sprandom_line(target, settings, share))));
    let with =
        |block: &u64| if found.len() > 1 { format!("{}: ", shown_bytes(*block)) } else { String::new() };
    lines.extend(found.iter().map(|(block, found)| {
        let said = match found {
            Ok(kept) => kept.sentence(),
            Err(why) => format!("done: {why}"),
        };
        ("Preconditioning", with(block) + &said)
    }));
    let kept = found.iter().filter(|(_, found)| found.is_ok()).map(|(block, _)| shown_bytes(*block));
    let kept = kept.collect::<Vec<_>>().join(" and ");
    let mut differs = Vec::new();
    if !kept.is_empty() {
        differs.push(format!("preconditioning with blocks of {kept} is kept, not repeated before each test"));
    }
    if settings.sprandom.is_some() {
        let why = "random tests begin after one pass of sprandom instead of twice the capacity in sequence, so their \
                   figures cannot confirm a data sheet";
        differs.push(why.to_string());
    }
    let active_bytes = target.device_bytes / 100 * u64::from(settings.class.active_percent());
    if target.size_bytes < active_bytes >> 20 << 20 {
        let bytes = shown_bytes(target.size_bytes);
        differs.push(format!("only {bytes} of {} are used", shown_bytes(target.device_bytes)));
    }
    if settings.time != Settings::TIME {
        differs.push(format!("each measurement takes {} instead of 1 min", shown_time(settings.time)));
    }
    if settings.rounds_max != Settings::ROUNDS_MAX {
        differs.push(format!("at most {} instead of 25", counted(settings.rounds_max, "round")));
    }
    if settings.confirmed {
        differs.push("a test goes on after it is steady until its drift is confirmed".to_string());
    }
    if target.block_bytes > 512 {
        differs.push(format!(
            "blocks below {} are left out: the device cannot do them",
            shown_bytes(target.block_bytes)
        ));
    }
    if !target.direct {
        differs.push("no direct I/O".to_string());
    }
    if target.file_system.is_some() {
        differs.push("a file instead of a device".to_string());
    }
    if !differs.is_empty() {
        lines.push(("Not PTS", differs.join("; ")));
    }
    lines
}

impl Study for Qualify {
    fn name(&self) -> &'static str {
        "qualify"
    }

    fn purpose(&self) -> String {
        let Settings { tests, class, time, rounds_max, confirmed, sprandom } = &self.settings;
        let block_bytes = self.target.block_bytes;
        let tests: Vec<&str> = tests.iter().map(|test| test.word()).collect();
        let smallest =
            if block_bytes > 512 { format!(" from {}", shown_bytes(block_bytes)) } else { String::new() };
        let one_pass = sprandom.map_or_else(String::new, |share| format!(", sprandom with {share}"));
        format!(
            "{} ({}){smallest} in {}steady state on {}, {} for each measurement, {} at most{one_pass}",
            tests.join(", "),
            class.word(),
            if *confirmed { "confirmed " } else { "" },
            self.part_of_target(),
            shown_time(*time),
            counted(*rounds_max, "round")
        )
    }

    fn place(&self) -> Option<String> {
        Some(self.part_of_target())
    }

    fn outline(&self) -> &StudyOutline {
        &self.outline
    }

    fn accounts_for(&self, finding: &Finding) -> bool {
        // Its jobs write the same range at random.
        finding.code == Code::ConcurrentWriters || accounted_for(self, finding)
    }

    fn next(&self, results: &[StepResult]) -> Option<Step> {
        walk(&self.phases, results, &self.breaks).1
    }

    fn part(&self, results: &[StepResult]) -> Option<usize> {
        let (runs, _) = walk(&self.phases, results, &self.breaks);
        let over = runs.iter().filter(|runs| runs.is_over).count();
        // What is not prepared begins where the phase before ended, and a device that waits meanwhile would recover.
        let begins =
            |number: &usize| self.phases.get(*number).is_some_and(|phase| phase.precondition.is_some());
        Some((0..=over).rev().find(begins).unwrap_or(0))
    }

    fn compared<'r>(&'r self, results: &'r [StepResult]) -> Vec<(String, &'r StepResult)> {
        let (runs, _) = walk(&self.phases, whole(results), &self.breaks);
        runs.iter()
            .flat_map(tables::in_steady_windows)
            .map(|(point, run)| (point.step.name.clone(), run))
            .collect()
    }

    fn runs_max(&self) -> usize {
        let of = |phase: &Phase| {
            usize::from(phase.precondition.is_some()) + phase.points.len() * phase.end.rounds_max()
        };
        self.phases.iter().map(of).sum()
    }

    fn time(&self) -> Duration {
        self.phases.iter().map(|phase| time_of(phase)[1]).sum()
    }

    fn result(&self, results: &[StepResult], width: usize) -> StudyResult {
        let (runs, next) = walk(&self.phases, whole(results), &self.breaks);
        let is_unsteady = runs.iter().any(|runs| tables::is_not_steady(runs) || tables::is_unconfirmed(runs));
        let facts = vec![
            ("class", Cell::Text(self.settings.class.word().to_string())),
            ("device_bytes", Cell::Bytes(self.target.device_bytes)),
            ("measurement_s", Cell::Number(self.settings.time.as_secs_f64(), 3)),
            ("rounds_max", Cell::Count(self.settings.rounds_max as u64)),
            ("until_confirmed", Cell::Flag(self.settings.confirmed)),
            (
                "sprandom_spare_share",
                self.settings.sprandom.map_or(Cell::None, |share| Cell::Number(share, 6)),
            ),
        ];
        let result = StudyResult {
            table: tables::rows(&runs),
            text: tables::text(&runs, width),
            tables: vec![
                ("tests", tables::tests(&runs)),
                ("rounds", tables::rounds(&runs)),
                ("states", states::states(&runs)),
                ("left_out", left_out_table(&self.target, &self.settings)),
                // Rounds are no repetitions, and each counts as a whole.
                ("repeats", Table::default()),
                ("steady_parts", Table::default()),
            ],
            conclusion: tables::conclusion(&runs),
            facts,
            verdict: (is_unsteady && next.is_none()).then_some(Verdict::Undecided),
            ..StudyResult::default()
        };
        let judged: Vec<StepResult> =
            runs.iter().flat_map(tables::in_steady_windows).map(|(_, run)| run.clone()).collect();
        trust::concluded(result, &judged, results)
    }
}

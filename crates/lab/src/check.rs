//! `check`: whether a disk carries a known workload, against limits that somebody else set.
//!
//! Invariant: a verdict is given when all rounds were run, and rests on the worst of them.

use std::time::Duration;

use fiord_report::RunReport;
use fiord_report::table::{Cell, Column, Table};

use crate::site::Site;
use crate::study::{Findings, Ran, Step, Study};

mod etcd;
mod job_file;
mod oltp;
mod rocksdb;
mod verdict;

use job_file::Place;
use verdict::Row;
pub use verdict::Verdict;

/// A workload, and what it asks of a disk.
#[derive(Debug)]
pub struct Profile {
    /// As it is asked for: `etcd`.
    pub name: &'static str,
    /// What its runs are, in a few words.
    pub runs: &'static str,
    /// What a disk that passes carries.
    pub carries: &'static str,
    /// Its job file. fio runs it, too.
    pub job_file: &'static str,
    /// The figure that stands for all in a list: a 99th percentile, where one does.
    pub headline: Option<&'static str>,
    /// How often all of it is run.
    pub rounds: usize,
    /// The space its files take.
    pub space: Space,
    /// What the runs say. A stage that is measured has as many reports as it had rounds.
    rows: fn(&Stages<'_>) -> Vec<Row>,
}

/// The space a profile's files take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// So many bytes.
    Bytes(u64),
    /// As many files of a size that one may choose.
    Files(u64),
}

/// The profiles there are.
pub static PROFILES: [Profile; 3] = [etcd::PROFILE, rocksdb::PROFILE, oltp::PROFILE];

/// Sizes are whole blocks of this size, which direct I/O wants anywhere.
const BLOCK_BYTES: u64 = 4096;

/// The reports of each stage of a job file, round by round.
type Stages<'a> = Vec<Vec<&'a RunReport>>;

impl Profile {
    /// The space its files take when the large ones have `size_bytes`.
    pub fn space_bytes(&self, size_bytes: u64) -> u64 {
        match self.space {
            Space::Bytes(bytes) => bytes,
            Space::Files(count) => count.saturating_mul(size_bytes),
        }
    }

    /// Seconds that all its rounds take at most.
    pub fn seconds(&self) -> u64 {
        let stages = job_file::stages(self.job_file);
        self.rounds as u64 * stages.iter().map(|stage| stage.seconds).sum::<u64>()
    }
}

/// The study.
#[derive(Debug)]
pub struct Check {
    profile: &'static Profile,
    site: Site,
    steps: Vec<Step>,
    strict: bool,
}

impl Check {
    /// Of this profile, in about `time` instead of the profile's own.
    ///
    /// # Errors
    /// The site is no directory.
    pub fn new(profile: &'static Profile, site: &Site, time: Option<Duration>) -> Result<Check, String> {
        if !site.writable {
            return Err(format!(
                "{}: it is no directory, and check writes to files of its own; name a directory",
                site.shown()
            ));
        }
        let size_bytes = match profile.space {
            Space::Bytes(bytes) => bytes,
            Space::Files(count) => site.size_bytes / count / BLOCK_BYTES * BLOCK_BYTES,
        };
        let place = Place { directory: site.own_directory().to_path_buf(), direct: site.direct, size_bytes };
        let stages = job_file::stages(profile.job_file);
        let mut steps = Vec::new();
        for round in 1..=profile.rounds {
            for stage in &stages {
                let own = Duration::from_secs(stage.seconds);
                let share = own.as_secs_f64() / profile.seconds() as f64;
                let time = time.map_or(own, |time| time.mul_f64(share));
                let round = if profile.rounds > 1 { format!(", round {round}") } else { String::new() };
                let name = stage.name.replace('-', " ") + &round;
                let jobs = stage.placed(&place, time);
                steps.push(match stage.seconds {
                    0 => Step::prepare(name, jobs),
                    _ => Step::measure(name, jobs, time),
                });
            }
        }
        Ok(Check { profile, site: site.clone(), steps, strict: false })
    }

    /// With a reserve asked for, too: only PASS is accepted.
    #[must_use]
    pub fn strict(self, strict: bool) -> Check {
        Check { strict, ..self }
    }

    fn rows(&self, ran: &[Ran]) -> Vec<Row> {
        let per_round = self.measured() / self.profile.rounds;
        let mut stages: Stages<'_> = vec![Vec::new(); per_round];
        for (number, run) in ran.iter().enumerate() {
            stages[number % per_round].push(&run.report);
        }
        (self.profile.rows)(&stages)
    }

    /// Steps that are measured.
    fn measured(&self) -> usize {
        self.steps.iter().filter(|step| !step.prepares).count()
    }
}

impl Study for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn purpose(&self) -> String {
        let rounds =
            if self.profile.rounds > 1 { format!(", {} rounds", self.profile.rounds) } else { String::new() };
        format!("{} in {}: {}{rounds}", self.profile.name, self.site.shown(), self.profile.runs)
    }

    fn accepts(&self, verdict: Verdict) -> bool {
        verdict == Verdict::Pass || (verdict == Verdict::Marginal && !self.strict)
    }

    fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn findings(&self, ran: &[Ran], width: usize) -> Findings {
        let rows = self.rows(ran);
        let complete = ran.len() == self.measured();
        let verdict = rows.iter().filter_map(Row::verdict).max().filter(|_| complete);
        let shown = verdict::shown(&rows);
        Findings {
            text: text(&shown, &rows, width),
            conclusion: conclusion(self.profile, verdict, &rows),
            facts: vec![
                ("profile", Cell::Text(self.profile.name.to_string())),
                ("verdict", Cell::text(verdict.map(Verdict::word))),
            ],
            verdict,
            latency_p99_ns: self.profile.headline.and_then(|name| verdict::worst_ns(&rows, name)),
            table: verdict::table(&rows),
            tables: vec![("details", verdict::details(&rows))],
            shown: Some(shown),
            ..Findings::default()
        }
    }
}

/// Who set the limits, and what each figure rests on; the verdicts come last, where a terminal still shows them.
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

fn conclusion(profile: &Profile, verdict: Option<Verdict>, rows: &[Row]) -> String {
    let Some(verdict) = verdict else {
        return if rows.is_empty() {
            String::new()
        } else {
            "No verdict: not everything was run.".to_string()
        };
    };
    let carries = profile.carries;
    let worst = rows.iter().find(|row| row.verdict() == Some(verdict)).map(Row::said).unwrap_or_default();
    match verdict {
        Verdict::Pass => format!("PASS: this disk carries {carries}, with reserve."),
        Verdict::Marginal => format!("MARGINAL: this disk carries {carries}, but without reserve: {worst}."),
        Verdict::Fail => format!("FAIL: this disk does not carry {carries}: {worst}."),
    }
}

#[cfg(test)]
mod tests;

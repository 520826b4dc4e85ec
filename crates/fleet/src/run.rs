//! What became of one host: its fate, its facts, when it started, what it reported.
//!
//! Invariant: a host has exactly one fate, and a host without a report is never taken for one that did nothing.

use std::path::PathBuf;

use fiord_report::RunReport;
use serde::{Deserialize, Serialize};

use crate::clock::ClockFit;
use crate::hosts::Host;

/// What became of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    /// It ran to the end, and its report is complete.
    #[default]
    Complete,
    /// It ran, and jobs failed; its report is complete.
    Failed {
        /// What failed first, for people.
        cause: String,
    },
    /// It was told to stop before its end (Ctrl-C); its report is of what it did until then.
    Stopped,
    /// It never started.
    Missing {
        /// Why, for people.
        cause: String,
    },
    /// It started, and its report never came, or not whole.
    Lost {
        /// When it was last heard of, in milliseconds since the start.
        at_ms: u64,
        /// Why, for people.
        cause: String,
    },
}

impl Fate {
    /// In one word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            Fate::Complete => "complete",
            Fate::Failed { .. } => "failed",
            Fate::Stopped => "stopped",
            Fate::Missing { .. } => "missing",
            Fate::Lost { .. } => "lost",
        }
    }

    /// Whether it is in no sum, whatever it had measured.
    pub fn is_gone(&self) -> bool {
        matches!(self, Fate::Missing { .. } | Fate::Lost { .. })
    }

    /// Why it is so, for people; `None` if nothing is wrong.
    pub fn cause(&self) -> Option<&str> {
        match self {
            Fate::Complete | Fate::Stopped => None,
            Fate::Failed { cause } | Fate::Missing { cause } | Fate::Lost { cause, .. } => Some(cause),
        }
    }
}

/// What became of these hosts: more than three with one fate and one cause are said as one.
pub fn alike<'a>(hosts: Vec<(&'a Host, &'a Fate)>) -> Vec<(String, &'a Fate)> {
    let mut groups: Vec<(&Fate, Vec<&Host>)> = Vec::new();
    for (host, fate) in hosts {
        let is_same = |(known, _): &&mut (&Fate, Vec<&Host>)| {
            known.cause() == fate.cause() && known.word() == fate.word()
        };
        match groups.iter_mut().find(is_same) {
            Some((_, hosts)) => hosts.push(host),
            None => groups.push((fate, vec![host])),
        }
    }
    let mut said = Vec::new();
    for (fate, hosts) in groups {
        match hosts.as_slice() {
            [first, .., _, _, _] => said.push((format!("{} and {} more", first.name, hosts.len() - 1), fate)),
            few => said.extend(few.iter().map(|host| (host.name.clone(), fate))),
        }
    }
    said
}

/// When a host started a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageStart {
    /// The stage, from 0.
    pub stage: u32,
    /// The agreed time, on the controller's monotonic clock in nanoseconds.
    pub agreed_ns: i64,
    /// When the workers were really released, on the controller's clock; `None` if that was not told.
    pub started_ns: Option<i64>,
}

/// What an agent tells of its machine before the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// The name that the machine gives itself.
    pub hostname: String,
    /// The kernel's release.
    pub kernel: String,
    /// The architecture: `x86_64`.
    pub arch: String,
    /// The processor's model; empty if it is not known.
    pub cpu: String,
    /// Processors online.
    pub cpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// fiord's version.
    pub fiord_version: String,
    /// The machine's identity; empty if it has none.
    pub machine_id: String,
    /// The engines of the jobs, each once.
    pub engines: Vec<String>,
    /// What the jobs read and write.
    pub targets: Vec<TargetFacts>,
    /// Whether the kernel says that its wall clock follows none.
    pub clock_unsynchronised: bool,
}

/// One target of an agent's jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetFacts {
    /// Its path on the host.
    pub path: String,
    /// What is the same for two hosts that use one target: WWID, serial number, UUID of a shared file system with the path
    /// in it, export of a server. `None` if nothing says so.
    pub identity: Option<String>,
    /// The model of the disk below; empty if there is none, or several.
    pub model: String,
    /// The scheduler of that disk's queue; empty if it has none.
    pub scheduler: String,
    /// Its size, in bytes; 0 if it is not known yet.
    pub size_bytes: u64,
    /// Whether the jobs write it.
    pub is_written: bool,
}

/// The logs that a host has sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostLogs {
    /// How many files they are.
    pub files: u32,
    /// Those that are not whole, each with the reason.
    pub incomplete: Vec<(String, String)>,
}

impl HostLogs {
    /// Which are not whole, in a sentence; `None` if all are.
    pub fn sentence(&self) -> Option<String> {
        const NAMED_MAX: usize = 3;
        let count = self.incomplete.len();
        let named = self.incomplete.iter().take(NAMED_MAX).map(|(log, why)| format!("{log} ({why})"));
        let more = (count > NAMED_MAX).then(|| format!("{} more", count - NAMED_MAX));
        let names: Vec<String> = named.chain(more).collect();
        (count > 0).then(|| format!("{count} of {} logs incomplete: {}", self.files, names.join(", ")))
    }
}

/// One host's part of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRun {
    /// The host.
    pub host: Host,
    /// What became of it.
    pub fate: Fate,
    /// When its stages started, in their order.
    pub stages: Vec<StageStart>,
    /// Its clock; `None` if it never answered.
    pub clock: Option<ClockFit>,
    /// Its machine; `None` if it never told.
    pub facts: Option<HostFacts>,
    /// The files that its jobs read and write, as it calls them.
    pub files: Vec<PathBuf>,
    /// Its report: whole unless its fate says otherwise. Of several rounds that of the last.
    pub report: Option<RunReport>,
    /// Its reports of earlier rounds, in their order.
    pub earlier: Vec<RunReport>,
    /// Its logs.
    pub logs: HostLogs,
}

impl HostRun {
    /// Whether it is in the sums: its report is there, and is whole or, as all were told to stop, until then.
    pub fn is_counted(&self) -> bool {
        !self.fate.is_gone() && self.report.is_some()
    }

    /// Its reports of all rounds, in their order.
    pub fn rounds(&self) -> impl Iterator<Item = &RunReport> {
        self.earlier.iter().chain(&self.report)
    }

    /// What became of it in another round, from 1. One that is in no sum after a round is in none after the next.
    pub fn add_round(&mut self, next: HostRun, round: usize, is_interrupted: bool) {
        if !self.is_counted() {
            return;
        }
        match next.fate {
            // A part of a round is not like the others.
            Fate::Stopped => self.fate = Fate::Stopped,
            Fate::Missing { .. } if is_interrupted => self.fate = Fate::Stopped,
            Fate::Missing { cause } => self.fate = Fate::Failed { cause: format!("round {round}: {cause}") },
            Fate::Complete | Fate::Failed { .. } | Fate::Lost { .. } => {
                let mut earlier = std::mem::take(&mut self.earlier);
                earlier.extend(self.report.take());
                *self = HostRun { earlier, ..next };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{host, job};

    fn after(next: Fate, is_interrupted: bool) -> (Fate, usize, bool) {
        let of = |fate| HostRun { fate, ..host(0, 0, vec![job(&[1000; 10], 1000)]) };
        let mut run = of(Fate::Complete);
        run.add_round(of(next), 2, is_interrupted);
        (run.fate.clone(), run.rounds().count(), run.is_counted())
    }

    #[test]
    fn a_round_is_added_unless_it_was_not_run_to_its_end() {
        assert_eq!(after(Fate::Complete, false), (Fate::Complete, 2, true));
        assert_eq!(after(Fate::Complete, true), (Fate::Complete, 2, true));
        let failed = Fate::Failed { cause: "no space".to_string() };
        assert_eq!(after(failed.clone(), false), (failed, 2, true));
        assert_eq!(after(Fate::Stopped, true), (Fate::Stopped, 1, true));
        let missing = |cause: &str| Fate::Missing { cause: cause.to_string() };
        assert_eq!(after(missing("stopped"), true), (Fate::Stopped, 1, true));
        let failed = Fate::Failed { cause: "round 2: no answer".to_string() };
        assert_eq!(after(missing("no answer"), false), (failed, 1, true));
        let lost = Fate::Lost { at_ms: 7, cause: "cut".to_string() };
        assert!(!after(lost, false).2);
    }

    #[test]
    fn a_host_that_missed_a_round_is_in_no_later_one() {
        let mut run = HostRun { fate: Fate::Missing { cause: "gone".to_string() }, ..HostRun::default() };
        run.add_round(host(0, 0, vec![job(&[1000; 10], 1000)]), 2, false);
        assert_eq!((run.rounds().count(), run.is_counted()), (0, false));
    }

    #[test]
    fn hosts_with_one_fate_and_one_cause_are_one_if_they_are_many() {
        let missing = |cause: &str| Fate::Missing { cause: cause.to_string() };
        let runs: Vec<HostRun> = (0..9).map(|number| host(number, 0, Vec::new())).collect();
        let fate = |number: u32| missing(if number % 2 == 1 { "no answer" } else { "refused" });
        let fates: Vec<Fate> = (0..9).map(fate).collect();
        let said = |count: usize| -> Vec<String> {
            let hosts = runs.iter().map(|run| &run.host).zip(&fates).take(count);
            alike(hosts.collect())
                .into_iter()
                .map(|(name, fate)| format!("{name}: {}", fate.cause().unwrap()))
                .collect()
        };
        assert_eq!(said(3), ["db1: refused", "db3: refused", "db2: no answer"]);
        assert_eq!(said(9), ["db1 and 4 more: refused", "db2 and 3 more: no answer"]);
    }
}

//! One host, as the controller knows it: what others may ask of it.
//!
//! Invariant: nothing is changed here.

use fiord_fleet::{ClockFit, Fate, HostFacts, StageStart};

use super::{Phase, Remote, SILENT_NS};
use crate::message::{Hello, Prepare, Progress, Told};
use crate::pace::{Pace, Rates};

impl Remote {
    pub(super) fn new(prepare: Prepare, now_ns: i64) -> Remote {
        Remote {
            prepare: Some(Box::new(prepare)),
            phase: Phase::Connecting,
            hello: None,
            pings: Vec::new(),
            clock: None,
            stages: Vec::new(),
            ready: None,
            facts: None,
            files: Vec::new(),
            problems: Vec::new(),
            progress: Progress::default(),
            pace: Pace::default(),
            snapshot: Default::default(),
            laid_bytes: 0,
            began_ns: None,
            told_ns: None,
            heard_ns: now_ns,
            pinged_ns: now_ns,
            report: Vec::new(),
            has_asked_again: false,
            logs: None,
            credit_bytes: 0,
            logged_ns: 0,
        }
    }

    /// What became of it; `None` while that is open.
    pub fn fate(&self) -> Option<&Fate> {
        match &self.phase {
            Phase::Over(fate) => Some(fate),
            _ => None,
        }
    }

    /// Its facts, once it has planned.
    pub fn facts(&self) -> Option<&HostFacts> {
        self.facts.as_ref()
    }

    /// The paths of the files that its jobs read and write, as bytes, once it has planned.
    pub fn files(&self) -> &[Vec<u8>] {
        &self.files
    }

    /// Who its agent is, once it has answered.
    pub fn hello(&self) -> Option<&Hello> {
        self.hello.as_ref()
    }

    /// Its clock, from all pings.
    pub fn clock(&self) -> Option<ClockFit> {
        ClockFit::from_pings(&self.pings)
    }

    /// When its stages were to start, and did.
    pub fn stages(&self) -> &[StageStart] {
        &self.stages
    }

    /// Why it cannot run what it was told to.
    pub fn problems(&self) -> &[Told] {
        &self.problems
    }

    /// Its report, encoded; empty if none has come, or not whole.
    pub fn report(&self) -> &[u8] {
        match self.fate() {
            Some(Fate::Complete | Fate::Failed { .. } | Fate::Stopped) => &self.report,
            _ => &[],
        }
    }

    /// What it has done so far.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// What it does per second; nothing if nothing was heard of it for a while, or if it does not run.
    pub fn rates(&self, now_ns: i64) -> Rates {
        let is_known = self.is_running() && !self.is_silent(now_ns);
        if is_known { self.pace.rates() } else { Rates::default() }
    }

    /// How long it still takes by its last progress, in nanoseconds; `None` if that is not known.
    pub fn left_ns(&self, now_ns: i64) -> Option<i64> {
        self.pace.left_ns(self.started_ns()?, now_ns)
    }

    /// The report of what it had measured so far, encoded, and when it came; empty before there is one.
    pub fn snapshot(&self) -> (&[u8], i64) {
        (&self.snapshot.0, self.snapshot.1)
    }

    /// When its first stage was released, on the controller's clock.
    pub fn started_ns(&self) -> Option<i64> {
        self.stages.first().and_then(|start| start.started_ns)
    }

    /// How much it has laid out so far, in bytes.
    pub fn laid_bytes(&self) -> u64 {
        self.laid_bytes
    }

    /// For how long nothing was heard of it, in nanoseconds.
    pub fn silent_ns(&self, now_ns: i64) -> i64 {
        now_ns - self.heard_ns
    }

    /// Whether that is so long that it is shown as silent.
    pub fn is_silent(&self, now_ns: i64) -> bool {
        self.silent_ns(now_ns) > SILENT_NS
    }

    /// What it does, in a word.
    pub fn doing(&self) -> &'static str {
        match (&self.phase, self.ready) {
            (Phase::Connecting, _) => "connecting",
            (Phase::Clocked, _) => "comparing clocks",
            (Phase::Planning, _) => "planning",
            (Phase::Planned, _) => "waiting",
            (Phase::Running, Some(_)) => "ready",
            (Phase::Running, None) if self.stages.is_empty() => "laying out",
            (Phase::Running, None) => "running",
            (Phase::Commanded(_), _) => "running a command",
            (Phase::Over(_), _) => "over",
        }
    }

    /// Whether it was told to run, and has not ended.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}

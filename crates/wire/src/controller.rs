//! The controller's end: all hosts of a run, from the first word of their agents to the fate of each.
//!
//! Invariant: each host gets exactly one fate, whatever its agent does. Nothing starts before all hosts that are to run
//! have a plan, and no stage before all that still run are ready for it.

mod remote;

use std::collections::BTreeMap;

use fiord_fleet::{ClockFit, Fate, HostFacts, Ping, StageStart, start};

use crate::agent::{SNAPSHOT_BYTES_MAX, digest};
use crate::message::{
    self, End, Hello, KEEPS_STATES, LogPiece, Logs, Message, Prepare, Progress, SavedState, Told,
};
use crate::pace::Pace;

/// Pings before a host's clock is known.
const PINGS: usize = 8;

/// Time between two pings of a host, in nanoseconds.
const PING_EVERY_NS: i64 = 1_000_000_000;

/// After this time without a word a host is shown as silent, in nanoseconds.
const SILENT_NS: i64 = 5_000_000_000;

/// How long hosts may take to report once they were told to stop, in nanoseconds.
const STOP_NS_MAX: i64 = 10_000_000_000;

/// How long the command of a trigger may take on a host, in nanoseconds.
const COMMAND_NS_MAX: i64 = 60_000_000_000;

/// How much longer than the others a silent host may take, in nanoseconds.
const FROZEN_NS_MAX: i64 = 60_000_000_000;

/// How often a start is chosen again because a host was told too late.
const STARTS_MAX: u32 = 3;

/// The most pings that are kept of a host: those of half an hour.
const PINGS_MAX: usize = 2048;

/// The most bytes of logs that hosts have sent and that are not written yet, of all together, if they are not very many.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// How much of that a host may have.
const LOG_BYTES: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 20;

/// The most snapshots of all hosts together that come in a second, so that many hosts do not keep the controller busy.
const SNAPSHOTS_PER_S_MAX: u64 = 200;

/// The most logs of a host.
const LOGS_MAX: usize = 1 << 19;

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct ControllerSettings {
    /// How many hosts may be missing or lost.
    pub allow_missing: usize,
    /// How long an agent may take to answer, in nanoseconds.
    pub connect_ns: i64,
    /// How long a host may take to lay out its files, in nanoseconds; `None` is as long as it needs.
    pub layout_ns: Option<i64>,
    /// Each host alone, one after another (`--order=alone`).
    pub is_one_by_one: bool,
    /// Only facts are wanted: nothing is run.
    pub only_facts: bool,
    /// Hosts may write one target (`--shared`).
    pub may_share: bool,
    /// What each host is told before what it is to run: states of earlier runs. Empty if there is nothing for any.
    pub before: Vec<Vec<Message>>,
    /// Whether hosts run a command when a trigger has stopped them.
    pub has_command: bool,
}

/// Something that the controller is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerAction {
    /// Send this to the host of this number.
    Send(usize, Message),
    /// End the connection to it.
    Close(usize),
    /// Show this line of a host.
    Show(usize, String),
    /// The run of the host of this number will have these logs. Refuse it if they cannot be written.
    Logs(usize, Box<Logs>),
    /// Write this piece of a log of the host of this number, and say that it was written.
    Write(usize, LogPiece),
    /// Keep how far a job of the host of this number came.
    Keep(usize, SavedState),
    /// All hosts have their fates. Nothing comes after it.
    Done,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Its agent has not answered.
    Connecting,
    /// Its clock is being compared.
    Clocked,
    /// It makes its plan.
    Planning,
    /// It can be run.
    Planned,
    /// It runs, since this time.
    Running,
    /// It has reported, and runs the command of the trigger.
    Commanded(Fate),
    Over(Fate),
}

/// One host, as the controller knows it.
#[derive(Debug)]
pub struct Remote {
    prepare: Option<Box<Prepare>>,
    phase: Phase,
    hello: Option<Hello>,
    /// Messages there and back.
    pings: Vec<Ping>,
    clock: Option<ClockFit>,
    stages: Vec<StageStart>,
    /// The stage it waits to start.
    ready: Option<u32>,
    facts: Option<HostFacts>,
    /// The paths of the files of its jobs, as bytes.
    files: Vec<Vec<u8>>,
    problems: Vec<Told>,
    progress: Progress,
    pace: Pace,
    /// The report of what it had measured so far, encoded, and when it came; empty before there is one.
    snapshot: (Vec<u8>, i64),
    laid_bytes: u64,
    /// When its agent was started; `None` before.
    began_ns: Option<i64>,
    /// When it was told to run; `None` before.
    told_ns: Option<i64>,
    heard_ns: i64,
    pinged_ns: i64,
    report: Vec<u8>,
    has_asked_again: bool,
    /// How many logs it will send; `None` if it has not said.
    logs: Option<u32>,
    /// Bytes of logs that it may still send.
    credit_bytes: u64,
    /// When a piece of a log came last; 0 before.
    logged_ns: i64,
}

/// A start that was told, or is about to be.
#[derive(Clone, Copy, Debug)]
struct Armed {
    stage: u32,
    attempts: u32,
}

/// All hosts of a run.
#[derive(Debug)]
pub struct Controller {
    settings: ControllerSettings,
    here: Hello,
    remotes: Vec<Remote>,
    began_ns: i64,
    /// The hosts that run now, by their numbers from the first up to the last.
    turn: std::ops::Range<usize>,
    armed: Option<Armed>,
    first_start_ns: Option<i64>,
    last_end_ns: Option<i64>,
    stopped_ns: Option<i64>,
    has_fired: bool,
    /// How often hosts send snapshots, in milliseconds; 0 is never.
    watch_ms: u64,
    is_done: bool,
}

impl Controller {
    /// All hosts, of which each is to run this. The connections are being made.
    pub fn new(here: Hello, prepared: Vec<Prepare>, settings: ControllerSettings, now_ns: i64) -> Controller {
        let remotes: Vec<Remote> = prepared.into_iter().map(|prepare| Remote::new(prepare, now_ns)).collect();
        Controller {
            turn: 0..if settings.is_one_by_one { 0 } else { remotes.len() },
            settings,
            here,
            remotes,
            began_ns: now_ns,
            armed: None,
            first_start_ns: None,
            last_end_ns: None,
            stopped_ns: None,
            has_fired: false,
            watch_ms: 0,
            is_done: false,
        }
    }

    /// A snapshot of each host is wanted this often from now on, in milliseconds; 0 is never. Of many hosts they come less
    /// often.
    pub fn watch(&mut self, every_ms: u64) -> Vec<ControllerAction> {
        let least_ms = self.remotes.len() as u64 * 1000 / SNAPSHOTS_PER_S_MAX;
        let every_ms = if every_ms == 0 { 0 } else { every_ms.max(least_ms) };
        if std::mem::replace(&mut self.watch_ms, every_ms) == every_ms {
            return Vec::new();
        }
        let running = self.remotes.iter().enumerate().filter(|(_, remote)| remote.is_running());
        running.map(|(number, _)| ControllerAction::Send(number, Message::Watch(every_ms))).collect()
    }

    /// The hosts, in the order of the list.
    pub fn remotes(&self) -> &[Remote] {
        &self.remotes
    }

    /// When the first stage started, on the controller's clock.
    pub fn first_start_ns(&self) -> Option<i64> {
        self.first_start_ns
    }

    /// The agent of this host is being started.
    pub fn connecting(&mut self, number: usize, now_ns: i64) {
        if let Some(remote) = self.remotes.get_mut(number) {
            remote.began_ns = Some(now_ns);
        }
    }

    /// A message came of the host of this number.
    pub fn message(&mut self, number: usize, message: Message, now_ns: i64) -> Vec<ControllerAction> {
        let mut actions = Vec::new();
        let Some(remote) = self.remotes.get_mut(number) else { return actions };
        remote.heard_ns = now_ns;
        if remote.fate().is_some() {
            return actions;
        }
        // Most messages let nothing begin, and all hosts would be looked at for each.
        let is_news = !matches!(
            message,
            Message::Pong(_) | Message::Progress(_) | Message::Piece(_) | Message::Snapshot(_)
        );
        match message {
            Message::Hello(hello) => self.hello(number, hello, now_ns, &mut actions),
            Message::Pong(times) => self.pong(number, times, now_ns, &mut actions),
            Message::Facts(facts) if remote.phase == Phase::Planning => {
                remote.facts = Some(*facts);
                remote.phase = Phase::Planned;
            }
            Message::Files(files) if remote.phase == Phase::Planning => remote.files = files,
            Message::Logs(logs) if remote.phase == Phase::Planning && remote.logs.is_none() => {
                remote.logs = Some(u32::try_from(logs.list.len()).unwrap_or(u32::MAX));
                if logs.list.len() > LOGS_MAX {
                    let cause = format!("its jobs have more than {LOGS_MAX} logs");
                    self.close(number, Fate::Missing { cause }, now_ns, &mut actions);
                } else {
                    actions.push(ControllerAction::Logs(number, logs));
                }
            }
            Message::Piece(piece) if remote.is_running() => self.piece(number, piece, now_ns, &mut actions),
            Message::Problems(problems) if remote.phase == Phase::Planning => {
                return self.refuse(number, problems, now_ns);
            }
            Message::Laid(bytes) => remote.laid_bytes = bytes,
            Message::Ready(stage) if remote.is_running() => remote.ready = Some(stage),
            Message::Started((stage, at_ns)) if remote.is_running() => {
                let started_ns = remote.clock.map(|clock| clock.to_controller(at_ns));
                if let Some(known) = remote.stages.iter_mut().find(|known| known.stage == stage) {
                    known.started_ns = started_ns;
                }
                remote.ready = None;
                self.first_start_ns = self.first_start_ns.or(started_ns);
            }
            Message::Late((stage, _)) if remote.is_running() => self.late(stage, now_ns, &mut actions),
            Message::Progress(progress) => {
                remote.progress = progress;
                remote.pace.advance(progress, now_ns);
            }
            Message::Snapshot(report) if remote.is_running() && report.len() <= SNAPSHOT_BYTES_MAX => {
                remote.snapshot = (report, now_ns);
            }
            Message::State(state) if remote.is_running() => {
                actions.push(ControllerAction::Keep(number, state))
            }
            Message::Commanded(said) => {
                if let Phase::Commanded(fate) = &remote.phase {
                    let fate = fate.clone();
                    actions.extend((!said.is_empty()).then_some(ControllerAction::Show(number, said)));
                    self.close(number, fate, now_ns, &mut actions);
                }
            }
            Message::Line(line) => actions.push(ControllerAction::Show(number, line)),
            Message::Report(report) if remote.is_running() => remote.report = report,
            Message::End(end) if remote.is_running() => self.end(number, end, now_ns, &mut actions),
            // What an agent never says, or says at the wrong time.
            _ => {}
        }
        if is_news {
            self.go_on(now_ns, &mut actions);
        }
        actions
    }

    /// This host cannot run what it was told to, for these reasons.
    pub fn refuse(&mut self, number: usize, problems: Vec<Told>, now_ns: i64) -> Vec<ControllerAction> {
        let mut actions = Vec::new();
        let cause = problems.first().map_or_else(String::new, |told| told.text.clone());
        if let Some(remote) = self.remotes.get_mut(number).filter(|remote| remote.fate().is_none()) {
            remote.problems = problems;
            self.close(number, Fate::Missing { cause }, now_ns, &mut actions);
        }
        self.go_on(now_ns, &mut actions);
        actions
    }

    /// So many bytes of this host's logs are written, or thrown away.
    pub fn wrote(&mut self, number: usize, bytes: u64) -> Vec<ControllerAction> {
        let Some(remote) = self.remotes.get_mut(number).filter(|remote| remote.is_running()) else {
            return Vec::new();
        };
        remote.credit_bytes += bytes;
        vec![ControllerAction::Send(number, Message::Credit(bytes))]
    }

    /// This log of this host cannot be written.
    pub fn end_log(&self, number: usize, log: u32) -> Vec<ControllerAction> {
        let is_running = self.remotes.get(number).is_some_and(Remote::is_running);
        is_running.then_some(ControllerAction::Send(number, Message::EndLog(log))).into_iter().collect()
    }

    /// The connection to this host has ended, for this reason.
    pub fn closed(&mut self, number: usize, cause: &str, now_ns: i64) -> Vec<ControllerAction> {
        let mut actions = Vec::new();
        let Some(remote) = self.remotes.get(number).filter(|remote| remote.fate().is_none()) else {
            return actions;
        };
        let fate = self.lost(remote, cause);
        self.close(number, fate, now_ns, &mut actions);
        self.go_on(now_ns, &mut actions);
        actions
    }

    /// Time has passed.
    pub fn tick(&mut self, now_ns: i64) -> Vec<ControllerAction> {
        let mut actions = Vec::new();
        for number in 0..self.remotes.len() {
            let remote = &mut self.remotes[number];
            if remote.fate().is_some() {
                continue;
            }
            let has_answered = remote.hello.is_some();
            if has_answered && remote.clock.is_some() && now_ns - remote.pinged_ns >= PING_EVERY_NS {
                remote.pinged_ns = now_ns;
                actions.push(ControllerAction::Send(number, Message::Ping(now_ns)));
            }
            if let Some(cause) = self.overdue(number, now_ns) {
                let fate = self.lost(&self.remotes[number], &cause);
                self.close(number, fate, now_ns, &mut actions);
            }
        }
        self.go_on(now_ns, &mut actions);
        actions
    }

    /// All hosts are to stop: those that run report what they did until now.
    pub fn stop(&mut self, now_ns: i64) -> Vec<ControllerAction> {
        let mut actions = Vec::new();
        if self.stopped_ns.is_none() {
            self.stopped_ns = Some(now_ns);
            for number in 0..self.remotes.len() {
                match &self.remotes[number].phase {
                    Phase::Over(_) => {}
                    Phase::Running => actions.push(ControllerAction::Send(number, Message::Stop(()))),
                    Phase::Commanded(fate) => {
                        let fate = fate.clone();
                        self.close(number, fate, now_ns, &mut actions);
                    }
                    _ => {
                        let fate = Fate::Missing { cause: "stopped before it had started".to_string() };
                        self.close(number, fate, now_ns, &mut actions);
                    }
                }
            }
        }
        self.go_on(now_ns, &mut actions);
        actions
    }

    /// The trigger fires: hosts that run stop their jobs, and no other starts.
    pub fn fire(&mut self, now_ns: i64) -> Vec<ControllerAction> {
        let mut actions = Vec::new();
        self.has_fired = true;
        for number in 0..self.remotes.len() {
            match &self.remotes[number].phase {
                Phase::Over(_) | Phase::Commanded(_) => {}
                Phase::Running => actions.push(ControllerAction::Send(number, Message::Fire(()))),
                _ => {
                    let cause = "the trigger fired before it had started".to_string();
                    self.close(number, Fate::Missing { cause }, now_ns, &mut actions);
                }
            }
        }
        self.go_on(now_ns, &mut actions);
        actions
    }

    /// Why this host is not waited for any longer.
    fn overdue(&self, number: usize, now_ns: i64) -> Option<String> {
        let remote = &self.remotes[number];
        let in_s = |ns: i64| ns / 1_000_000_000;
        if matches!(remote.phase, Phase::Connecting | Phase::Clocked) {
            let is_late =
                remote.began_ns.is_some_and(|began_ns| now_ns - began_ns > self.settings.connect_ns);
            return is_late.then(|| format!("no answer within {} s", in_s(self.settings.connect_ns)));
        }
        if matches!(remote.phase, Phase::Commanded(_)) {
            let is_late = self.last_end_ns.is_some_and(|end_ns| now_ns - end_ns > COMMAND_NS_MAX);
            return is_late.then(String::new);
        }
        // A report comes after the logs.
        if let Some(stopped_ns) = self.stopped_ns
            && now_ns - stopped_ns.max(remote.logged_ns) > STOP_NS_MAX
        {
            return Some(format!("no report within {} s of being told to stop", in_s(STOP_NS_MAX)));
        }
        if let (Some(layout_ns), Some(told_ns)) = (self.settings.layout_ns, remote.told_ns)
            && remote.stages.is_empty()
            && remote.ready.is_none()
            && now_ns - told_ns > layout_ns
        {
            return Some(format!("its layout took longer than {} s", in_s(layout_ns)));
        }
        let mut running = self.remotes.iter().filter(|other| other.is_running());
        let waits = |other: &Remote| other.is_silent(now_ns) || other.ready.is_some();
        let mut is_alone = || running.all(waits);
        // What the others took once more, and a minute.
        let others_ns = self.last_end_ns.zip(self.first_start_ns).map_or(0, |(end, start)| end - start);
        let since_ns = self.last_end_ns.unwrap_or(self.began_ns).max(remote.heard_ns);
        let is_frozen =
            remote.is_silent(now_ns) && now_ns - since_ns > FROZEN_NS_MAX + others_ns && is_alone();
        is_frozen.then(|| format!("silent for {} s", in_s(remote.silent_ns(now_ns))))
    }

    fn hello(&mut self, number: usize, hello: Hello, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let remote = &mut self.remotes[number];
        if remote.phase != Phase::Connecting {
            return;
        }
        match message::agree(&self.here, &hello) {
            Ok(()) => {
                remote.hello = Some(hello);
                remote.phase = Phase::Clocked;
                actions.push(ControllerAction::Send(number, Message::Hello(self.here.clone())));
                actions.push(ControllerAction::Send(number, Message::Ping(now_ns)));
            }
            Err(cause) => self.close(number, Fate::Missing { cause }, now_ns, actions),
        }
    }

    /// The clock's pings go one after another, so that none waits behind another.
    fn pong(
        &mut self,
        number: usize,
        (t1, t2, t3): (i64, i64, i64),
        now_ns: i64,
        actions: &mut Vec<ControllerAction>,
    ) {
        let remote = &mut self.remotes[number];
        if remote.pings.len() < PINGS_MAX {
            remote.pings.push(Ping { t1, t2, t3, t4: now_ns });
        }
        if remote.phase != Phase::Clocked {
            return;
        }
        if remote.pings.len() < PINGS {
            actions.push(ControllerAction::Send(number, Message::Ping(now_ns)));
            return;
        }
        let Some(clock) = ClockFit::from_pings(&remote.pings) else {
            let cause = "its clock goes backwards".to_string();
            return self.close(number, Fate::Missing { cause }, now_ns, actions);
        };
        remote.clock = Some(clock);
        remote.pinged_ns = now_ns;
        remote.phase = Phase::Planning;
        let before = self.settings.before.get_mut(number).map(std::mem::take).unwrap_or_default();
        let knows = remote.hello.as_ref().is_some_and(|hello| hello.protocol.1 >= KEEPS_STATES);
        if !before.is_empty() && !knows {
            let cause =
                "its fiord takes no triggers and states of verification from here: use the same fiord there"
                    .to_string();
            return self.close(number, Fate::Missing { cause }, now_ns, actions);
        }
        actions.extend(before.into_iter().map(|message| ControllerAction::Send(number, message)));
        if let Some(prepare) = remote.prepare.take() {
            actions.push(ControllerAction::Send(number, Message::Prepare(prepare)));
        }
    }

    fn piece(&mut self, number: usize, piece: LogPiece, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let remote = &mut self.remotes[number];
        let left_bytes = remote.credit_bytes.checked_sub(piece.bytes.len() as u64);
        match left_bytes.filter(|_| remote.logs.is_some_and(|logs| piece.log < logs)) {
            Some(left_bytes) => {
                remote.credit_bytes = left_bytes;
                remote.logged_ns = now_ns;
                actions.push(ControllerAction::Write(number, piece));
            }
            None => {
                let fate = self.lost(&self.remotes[number], "it sends logs that it was not asked for");
                self.close(number, fate, now_ns, actions);
            }
        }
    }

    /// A host was told of the start too late: it is chosen again for all that have not started.
    fn late(&mut self, stage: u32, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let attempts = self.armed.filter(|armed| armed.stage == stage).map_or(0, |armed| armed.attempts);
        self.arm(stage, attempts + 1, now_ns, actions);
    }

    fn arm(&mut self, stage: u32, attempts: u32, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let waiting = |remote: &Remote| remote.is_running() && remote.ready == Some(stage);
        let round_trips = self.remotes.iter().filter(|remote| waiting(remote));
        let slowest_ns = round_trips.filter_map(|remote| Some(remote.clock()?.round_trip_ns)).max();
        let count = self.remotes.iter().filter(|remote| waiting(remote)).count();
        let at_ns = start::choose(now_ns, slowest_ns.unwrap_or(0), count);
        self.armed = Some(Armed { stage, attempts });
        for (number, remote) in self.remotes.iter_mut().enumerate() {
            let Some(clock) = remote.clock().filter(|_| waiting(remote)) else { continue };
            remote.clock = Some(clock);
            // After several attempts, at once: the skew is measured, and said.
            let there_ns = if attempts < STARTS_MAX { clock.to_agent(at_ns) } else { 0 };
            remote.stages.retain(|known| known.stage != stage);
            remote.stages.push(StageStart { stage, agreed_ns: at_ns, started_ns: None });
            actions.push(ControllerAction::Send(number, Message::Start((stage, there_ns))));
        }
    }

    fn end(&mut self, number: usize, end: End, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let remote = &mut self.remotes[number];
        if digest(&remote.report) != end.digest {
            if !std::mem::replace(&mut remote.has_asked_again, true) {
                actions.push(ControllerAction::Send(number, Message::Again(())));
                return;
            }
            let fate = self.lost(&self.remotes[number], "its report was damaged on its way, twice");
            return self.close(number, fate, now_ns, actions);
        }
        let fate = end.fate(self.stopped_ns.is_some());
        self.last_end_ns = Some(now_ns);
        actions.push(ControllerAction::Send(number, Message::Ack(())));
        if self.has_fired && self.settings.has_command && self.stopped_ns.is_none() {
            self.remotes[number].phase = Phase::Commanded(fate);
            return;
        }
        self.close(number, fate, now_ns, actions);
    }

    /// The fate of a host whose connection has ended.
    fn lost(&self, remote: &Remote, cause: &str) -> Fate {
        // A command that cuts the power ends the connection.
        if let Phase::Commanded(fate) = &remote.phase {
            return fate.clone();
        }
        let cause = cause.to_string();
        match (remote.phase == Phase::Running, self.first_start_ns) {
            (true, Some(start_ns)) => {
                let at_ms = u64::try_from(remote.heard_ns - start_ns).unwrap_or(0) / 1_000_000;
                Fate::Lost { at_ms, cause }
            }
            (true, None) => Fate::Lost { at_ms: 0, cause },
            (false, _) => Fate::Missing { cause },
        }
    }

    /// The host has its fate, and is told to leave.
    fn close(&mut self, number: usize, fate: Fate, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let remote = &mut self.remotes[number];
        if remote.fate().is_some() {
            return;
        }
        if remote.is_running() {
            self.last_end_ns = Some(now_ns);
        }
        remote.phase = Phase::Over(fate);
        remote.ready = None;
        actions.push(ControllerAction::Send(number, Message::Bye(())));
        actions.push(ControllerAction::Close(number));
    }

    /// What can happen now that could not before.
    fn go_on(&mut self, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        if self.is_done {
            return;
        }
        self.release(now_ns, actions);
        self.take_turns(now_ns, actions);
        let turn = &self.remotes[self.turn.clone()];
        let running = || turn.iter().filter(|remote| remote.is_running());
        let stage = running().map(|remote| remote.ready).min().flatten();
        let is_armed = self.armed.is_some_and(|armed| Some(armed.stage) == stage);
        if let Some(stage) = stage.filter(|_| !is_armed) {
            self.arm(stage, 0, now_ns, actions);
        }
        if self.remotes.iter().all(|remote| remote.fate().is_some()) {
            self.is_done = true;
            actions.push(ControllerAction::Done);
        }
    }

    /// Ends what cannot start, once every host has planned or has its fate.
    fn release(&mut self, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let is_open =
            |remote: &Remote| matches!(remote.phase, Phase::Connecting | Phase::Clocked | Phase::Planning);
        if self.remotes.iter().any(is_open) {
            return;
        }
        self.refuse_shared_writes();
        let planned = self.remotes.iter().any(|remote| remote.phase == Phase::Planned);
        let missing = |remote: &&Remote| matches!(remote.phase, Phase::Over(Fate::Missing { .. }));
        let missing_count = self.remotes.iter().filter(missing).count();
        let has_problems = self.remotes.iter().any(|remote| !remote.problems.is_empty());
        let is_too_few = missing_count > self.settings.allow_missing || has_problems;
        let has_begun = self.remotes.iter().any(Remote::is_running) || self.first_start_ns.is_some();
        if planned && (self.settings.only_facts || (is_too_few && !has_begun)) {
            let fate = match self.settings.only_facts {
                true => Fate::Complete,
                false => Fate::Missing { cause: "not started, because others cannot be".to_string() },
            };
            for number in 0..self.remotes.len() {
                if self.remotes[number].phase == Phase::Planned {
                    self.close(number, fate.clone(), now_ns, actions);
                }
            }
        }
    }

    /// Two hosts that write one target at once destroy each other's data.
    fn refuse_shared_writes(&mut self) {
        if self.settings.may_share || self.settings.only_facts || self.settings.is_one_by_one {
            return;
        }
        let mut writers: BTreeMap<String, (String, Vec<usize>)> = BTreeMap::new();
        for (number, remote) in self.remotes.iter().enumerate() {
            let facts = remote.facts.iter().filter(|_| remote.phase == Phase::Planned);
            for target in facts.flat_map(|facts| &facts.targets).filter(|target| target.is_written) {
                let Some(identity) = &target.identity else { continue };
                let (_, numbers) =
                    writers.entry(identity.clone()).or_insert_with(|| (target.path.clone(), Vec::new()));
                numbers.push(number);
            }
        }
        for (path, numbers) in writers.into_values().filter(|(_, numbers)| numbers.len() > 1) {
            let text = format!(
                "{path}: other hosts would write the same target\n  give each host its own, such as filename=$hostname, or \
                 say that it is meant: --shared"
            );
            for number in numbers {
                self.remotes[number].problems.push(Told { text: text.clone(), is_unsafe: true });
            }
        }
    }

    /// Lets the hosts run whose turn it is.
    fn take_turns(&mut self, now_ns: i64, actions: &mut Vec<ControllerAction>) {
        let is_open =
            |remote: &Remote| matches!(remote.phase, Phase::Connecting | Phase::Clocked | Phase::Planning);
        if self.remotes.iter().any(is_open) || self.stopped_ns.is_some() {
            return;
        }
        if self.settings.is_one_by_one
            && self.remotes[self.turn.clone()].iter().all(|one| one.fate().is_some())
        {
            let next =
                (self.turn.end..self.remotes.len()).find(|number| self.remotes[*number].fate().is_none());
            let Some(next) = next else { return };
            self.turn = next..next + 1;
            self.armed = None;
        }
        let credit_bytes = LOG_BYTES_MAX / self.remotes.len().max(1) as u64;
        let credit_bytes = credit_bytes.clamp(*LOG_BYTES.start(), *LOG_BYTES.end());
        for number in self.turn.clone() {
            let remote = &mut self.remotes[number];
            if remote.phase == Phase::Planned {
                remote.phase = Phase::Running;
                remote.told_ns = Some(now_ns);
                if remote.logs.is_some_and(|logs| logs > 0) {
                    remote.credit_bytes = credit_bytes;
                    actions.push(ControllerAction::Send(number, Message::Credit(credit_bytes)));
                }
                if self.watch_ms > 0 {
                    actions.push(ControllerAction::Send(number, Message::Watch(self.watch_ms)));
                }
                actions.push(ControllerAction::Send(number, Message::Run(())));
            }
        }
    }
}

//! The agent's end: what it does with what it is told, and what it tells.
//!
//! Invariant: a run does not outlive its controller unless it was told to (`--on-lost=finish`), and then no longer than it
//! would have run: without a message for [`SILENCE_NS_MAX`], or at the end of the stream, it is stopped.

use std::collections::{BTreeSet, VecDeque};

use fiord_checksum::Checksum;
use fiord_fleet::HostFacts;

use crate::message::{
    End, Hello, KEEPS_STATES, Kept, LogPiece, Message, Prepare, Progress, SavedState, TAKES_LOGS, Told,
};

/// How long the controller may be silent, in nanoseconds.
pub const SILENCE_NS_MAX: u64 = 30_000_000_000;

/// Something that happened to the agent.
#[derive(Clone, Debug)]
pub enum AgentEvent {
    /// A message came.
    Message(Message),
    /// The stream has ended, or is no stream of frames.
    Closed,
    /// Time has passed.
    Tick,
    /// The sections are planned, or why not.
    Planned(Result<Box<HostFacts>, Vec<Told>>),
    /// Something to be passed on: progress, lines, a stage that is ready or has started.
    Tell(Message),
    /// The run is over: its report, the exit status it would have here, and what failed.
    Ended {
        /// The report, encoded.
        report: Vec<u8>,
        /// The exit status.
        status: u8,
        /// What failed first, if anything did.
        cause: Option<String>,
    },
}

/// What holds of a run beside what is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// The controller takes logs.
    pub takes_logs: bool,
    /// The controller keeps states of verification.
    pub keeps_states: bool,
    /// Those that it has of earlier runs.
    pub states: Vec<SavedState>,
    /// A trigger will stop the jobs.
    pub has_trigger: bool,
    /// The command that is run then.
    pub command: Option<Vec<u8>>,
}

/// Something that the agent is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum AgentAction {
    /// Send this.
    Send(Message),
    /// Plan this, and say `Planned`.
    Plan(Box<Prepare>, Box<Beside>),
    /// So many more bytes of logs may be sent.
    Credit(u64),
    /// Nothing more of this log is sent.
    EndLog(u32),
    /// A snapshot is wanted this often, in milliseconds; 0 is never.
    Watch(u64),
    /// Nobody takes logs any more.
    EndLogs,
    /// Run what was planned.
    Run,
    /// Start this stage at this time of the agent's clock, in nanoseconds. It may come again, with another time.
    Start(u32, u64),
    /// End the run as by SIGTERM, wherever it is.
    Stop,
    /// Stop the jobs as a trigger does.
    Fire,
    /// Run this command of the trigger, and say `Commanded`.
    Command(Vec<u8>),
    /// Keep this: the controller is lost.
    Spool(Kept),
    /// End the process. Nothing comes after it.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Planning,
    Planned,
    Running,
    Reported,
    Left,
}

/// The agent.
#[derive(Debug)]
pub struct Agent {
    phase: Phase,
    heard_ns: u64,
    is_lost: bool,
    beside: Beside,
    has_fired: bool,
    finishes_when_lost: bool,
    /// The next stage that may be told to start; those before have started.
    stage: u32,
    /// The stage whose workers waited last for its start.
    ready: Option<u32>,
    report: Option<(Vec<u8>, End)>,
}

impl Agent {
    /// One that was started now. It says this first.
    pub fn new(now_ns: u64, hello: Hello) -> (Agent, AgentAction) {
        let agent = Agent {
            phase: Phase::Waiting,
            heard_ns: now_ns,
            is_lost: false,
            beside: Beside::default(),
            has_fired: false,
            finishes_when_lost: false,
            stage: 0,
            ready: None,
            report: None,
        };
        (agent, AgentAction::Send(Message::Hello(hello)))
    }

    /// What to do when this happens, at this time of the agent's monotonic clock.
    pub fn on(&mut self, event: AgentEvent, now_ns: u64) -> Vec<AgentAction> {
        match event {
            _ if self.phase == Phase::Left => Vec::new(),
            AgentEvent::Message(_) if self.is_lost => Vec::new(),
            AgentEvent::Message(message) => {
                self.heard_ns = now_ns;
                self.message(message, now_ns)
            }
            AgentEvent::Closed => self.lose(),
            AgentEvent::Tick if now_ns.saturating_sub(self.heard_ns) > SILENCE_NS_MAX => self.lose(),
            AgentEvent::Tick => Vec::new(),
            AgentEvent::Planned(Ok(facts)) => {
                self.phase = Phase::Planned;
                self.tell(Message::Facts(facts))
            }
            AgentEvent::Planned(Err(problems)) => {
                self.phase = Phase::Waiting;
                self.tell(Message::Problems(problems))
            }
            AgentEvent::Tell(message) => {
                match message {
                    Message::Started((stage, _)) => self.stage = stage + 1,
                    Message::Ready(stage) => self.ready = Some(stage),
                    _ => {}
                }
                if self.is_lost { self.start_alone() } else { self.tell(message) }
            }
            AgentEvent::Ended { report, status, cause } => self.ended(report, status, cause),
        }
    }

    /// Whether nobody listens any more.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn message(&mut self, message: Message, now_ns: u64) -> Vec<AgentAction> {
        match (message, self.phase) {
            (Message::Hello(hello), Phase::Waiting) => {
                self.beside.takes_logs = hello.protocol.1 >= TAKES_LOGS;
                self.beside.keeps_states = hello.protocol.1 >= KEEPS_STATES;
                Vec::new()
            }
            (Message::State(state), Phase::Waiting) => {
                self.beside.states.push(state);
                Vec::new()
            }
            (Message::Trigger(command), Phase::Waiting) => {
                (self.beside.has_trigger, self.beside.command) = (true, command);
                Vec::new()
            }
            (Message::Ping(sent_ns), _) => {
                let now_ns = i64::try_from(now_ns).unwrap_or(i64::MAX);
                vec![AgentAction::Send(Message::Pong((sent_ns, now_ns, now_ns)))]
            }
            (Message::Prepare(prepare), Phase::Waiting) => {
                self.phase = Phase::Planning;
                self.finishes_when_lost = prepare.finishes_when_lost;
                vec![AgentAction::Plan(prepare, Box::new(self.beside.clone()))]
            }
            (Message::Run(()), Phase::Planned) => {
                self.phase = Phase::Running;
                vec![AgentAction::Run]
            }
            (Message::Start((stage, at_ns)), Phase::Running) if stage == self.stage => {
                let at_ns = u64::try_from(at_ns).unwrap_or(0);
                // A start at 0 is at once: it was told too late too often.
                match now_ns.checked_sub(at_ns) {
                    Some(late_ns) if at_ns > 0 => self.tell(Message::Late((stage, late_ns))),
                    _ => vec![AgentAction::Start(stage, at_ns)],
                }
            }
            (Message::Credit(bytes), Phase::Planned | Phase::Running) => vec![AgentAction::Credit(bytes)],
            (Message::EndLog(log), Phase::Running) => vec![AgentAction::EndLog(log)],
            (Message::Watch(every_ms), _) => vec![AgentAction::Watch(every_ms)],
            (Message::Stop(()), Phase::Running) => vec![AgentAction::Stop],
            (Message::Fire(()), phase @ (Phase::Running | Phase::Reported)) => {
                self.has_fired = true;
                if phase == Phase::Running { vec![AgentAction::Fire] } else { Vec::new() }
            }
            (Message::Again(()), Phase::Reported) => self.send_report(),
            (Message::Ack(()), Phase::Reported) => {
                self.report = None;
                let command = self.beside.command.take().filter(|_| self.has_fired);
                command.map(AgentAction::Command).into_iter().collect()
            }
            (Message::Bye(()), Phase::Running) => self.lose(),
            (Message::Bye(()), _) => self.leave(),
            // What comes again, or too late.
            _ => Vec::new(),
        }
    }

    fn tell(&self, message: Message) -> Vec<AgentAction> {
        if self.is_lost { Vec::new() } else { vec![AgentAction::Send(message)] }
    }

    fn ended(&mut self, report: Vec<u8>, status: u8, cause: Option<String>) -> Vec<AgentAction> {
        self.phase = Phase::Reported;
        let digest = digest(&report);
        self.report = Some((report, End { digest, status, cause }));
        if self.is_lost { self.leave() } else { self.send_report() }
    }

    fn send_report(&self) -> Vec<AgentAction> {
        let Some((report, end)) = self.report.clone() else { return Vec::new() };
        vec![AgentAction::Send(Message::Report(report)), AgentAction::Send(Message::End(end))]
    }

    /// The controller is lost.
    fn lose(&mut self) -> Vec<AgentAction> {
        if std::mem::replace(&mut self.is_lost, true) {
            return Vec::new();
        }
        let then = match self.phase {
            // Before the first start nothing is left to be finished.
            Phase::Running if self.finishes_when_lost && self.stage > 0 => self.start_alone(),
            Phase::Running => vec![AgentAction::Stop],
            _ => return self.leave(),
        };
        [AgentAction::EndLogs].into_iter().chain(then).collect()
    }

    /// Without a controller a stage that waits starts at once, if the run is to be finished.
    fn start_alone(&self) -> Vec<AgentAction> {
        let waits = self.finishes_when_lost && self.stage > 0 && self.ready == Some(self.stage);
        waits.then_some(AgentAction::Start(self.stage, 0)).into_iter().collect()
    }

    fn leave(&mut self) -> Vec<AgentAction> {
        self.phase = Phase::Left;
        let spooled = self.report.take().map(|(report, end)| AgentAction::Spool(Kept { report, end }));
        spooled.into_iter().chain([AgentAction::Leave]).collect()
    }
}

/// SHA-256 of these bytes.
pub fn digest(bytes: &[u8]) -> Vec<u8> {
    Checksum::Sha256.of(bytes).as_bytes().to_vec()
}

/// The most bytes of logs that wait to be sent.
pub const LOG_BYTES_MAX: usize = 256 << 10;

/// The longest snapshot that is sent, in bytes.
pub const SNAPSHOT_BYTES_MAX: usize = 256 << 10;

/// What waits to be sent. Progress and snapshots that are not sent yet are replaced; logs come last, as far as there is credit
/// for them, so that nothing waits behind more than one piece or snapshot.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    progress: Option<Progress>,
    snapshot: Option<Vec<u8>>,
    pieces: VecDeque<LogPiece>,
    /// Bytes of these pieces.
    piece_bytes: usize,
    /// Bytes of logs that may be sent.
    credit_bytes: u64,
    /// Logs of which nothing more is sent.
    ended: BTreeSet<u32>,
    /// Whether nothing more is sent of any log.
    has_ended_logs: bool,
}

impl Outbox {
    /// Queues a message. Progress and snapshots wait until all else is sent; a snapshot that is too long is not sent.
    pub fn push(&mut self, message: &Message) {
        match message {
            Message::Progress(progress) => self.progress = Some(*progress),
            Message::Snapshot(report) if report.len() > SNAPSHOT_BYTES_MAX => {}
            Message::Snapshot(report) => self.snapshot = Some(report.clone()),
            message => message.write(&mut self.bytes),
        }
    }

    /// Queues the preface.
    pub fn preface(&mut self) {
        self.bytes.extend(crate::frame::PREFACE);
    }

    /// Queues a piece of a log. `false`: nobody takes logs any more.
    pub fn push_piece(&mut self, piece: LogPiece) -> bool {
        if !self.has_ended_logs && !self.ended.contains(&piece.log) {
            self.piece_bytes += piece.bytes.len();
            self.pieces.push_back(piece);
        }
        !self.has_ended_logs
    }

    /// Whether another piece may be queued; also if it would not be sent.
    pub fn has_room(&self) -> bool {
        self.has_ended_logs || self.piece_bytes < LOG_BYTES_MAX
    }

    /// Whether no piece waits.
    pub fn has_sent_logs(&self) -> bool {
        self.pieces.is_empty()
    }

    /// So many more bytes of logs may be sent.
    pub fn credit(&mut self, bytes: u64) {
        self.credit_bytes = self.credit_bytes.saturating_add(bytes);
    }

    /// Nothing more of this log is sent, or with `None` of any.
    pub fn end_logs(&mut self, log: Option<u32>) {
        self.has_ended_logs |= log.is_none();
        self.pieces.retain(|piece| log.is_some_and(|log| piece.log != log));
        self.piece_bytes = self.pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.ended.extend(log);
    }

    /// What is to be written next.
    pub fn bytes(&mut self) -> &[u8] {
        if !self.bytes.is_empty() {
            return &self.bytes;
        }
        if let Some(progress) = self.progress.take() {
            Message::Progress(progress).write(&mut self.bytes);
        } else if let Some(report) = self.snapshot.take() {
            Message::Snapshot(report).write(&mut self.bytes);
        } else if self.pieces.front().is_some_and(|piece| piece.bytes.len() as u64 <= self.credit_bytes)
            && let Some(piece) = self.pieces.pop_front()
        {
            self.credit_bytes -= piece.bytes.len() as u64;
            self.piece_bytes -= piece.bytes.len();
            Message::Piece(piece).write(&mut self.bytes);
        }
        &self.bytes
    }

    /// So many bytes of it were written.
    pub fn wrote(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Agent {
        let (mut agent, hello) = Agent::new(0, Hello::default());
        assert!(matches!(hello, AgentAction::Send(Message::Hello(_))));
        let prepare = AgentEvent::Message(Message::Prepare(Box::default()));
        assert!(matches!(agent.on(prepare, 1)[..], [AgentAction::Plan(..)]));
        let planned = agent.on(AgentEvent::Planned(Ok(Box::default())), 2);
        assert!(matches!(planned[..], [AgentAction::Send(Message::Facts(_))]));
        assert_eq!(agent.on(AgentEvent::Message(Message::Run(())), 3), [AgentAction::Run]);
        agent
    }

    fn ended() -> AgentEvent {
        AgentEvent::Ended { report: b"figures".to_vec(), status: 0, cause: None }
    }

    #[test]
    fn a_report_that_has_come_is_not_spooled() {
        let mut agent = running();
        assert_eq!(agent.on(AgentEvent::Message(Message::Start((0, 100))), 50), [AgentAction::Start(0, 100)]);
        let late = agent.on(AgentEvent::Message(Message::Start((0, 100))), 150);
        assert_eq!(late, [AgentAction::Send(Message::Late((0, 50)))]);
        assert_eq!(agent.on(AgentEvent::Message(Message::Start((0, 0))), 150), [AgentAction::Start(0, 0)]);
        let sent = agent.on(ended(), 200);
        assert!(matches!(
            sent[..],
            [AgentAction::Send(Message::Report(_)), AgentAction::Send(Message::End(_))]
        ));
        assert_eq!(agent.on(AgentEvent::Message(Message::Again(())), 201), sent);
        assert!(agent.on(AgentEvent::Message(Message::Ack(())), 202).is_empty());
        assert_eq!(agent.on(AgentEvent::Closed, 203), [AgentAction::Leave]);
    }

    #[test]
    fn a_lost_controller_ends_the_run_and_finds_its_report_later() {
        for lost in [AgentEvent::Closed, AgentEvent::Tick] {
            let mut agent = running();
            assert!(agent.on(AgentEvent::Tick, SILENCE_NS_MAX).is_empty());
            assert_eq!(agent.on(lost, SILENCE_NS_MAX + 4), [AgentAction::EndLogs, AgentAction::Stop]);
            assert!(agent.on(AgentEvent::Closed, SILENCE_NS_MAX + 5).is_empty());
            let kept = agent.on(ended(), SILENCE_NS_MAX + 6);
            let [AgentAction::Spool(kept), AgentAction::Leave] = &kept[..] else { panic!("{kept:?}") };
            assert_eq!((&kept.report[..], kept.end.status), (&b"figures"[..], 0));
        }
    }

    #[test]
    fn a_run_that_is_to_be_finished_goes_on_to_its_last_stage_without_a_controller() {
        let mut agent = running();
        agent.finishes_when_lost = true;
        let tell = |message| AgentEvent::Tell(message);
        agent.on(tell(Message::Ready(0)), 10);
        agent.on(tell(Message::Started((0, 20))), 20);
        assert_eq!(agent.on(AgentEvent::Closed, 30), [AgentAction::EndLogs]);
        assert_eq!(agent.on(tell(Message::Ready(1)), 40), [AgentAction::Start(1, 0)]);
        assert!(agent.on(tell(Message::Started((1, 50))), 50).is_empty());
        assert!(matches!(agent.on(ended(), 60)[..], [AgentAction::Spool(_), AgentAction::Leave]));

        let mut agent = running();
        agent.finishes_when_lost = true;
        agent.on(tell(Message::Started((0, 20))), 20);
        agent.on(tell(Message::Ready(1)), 30);
        let started = [AgentAction::EndLogs, AgentAction::Start(1, 0)];
        assert_eq!(agent.on(AgentEvent::Closed, 40), started, "it waited already");
    }

    #[test]
    fn without_a_run_a_lost_controller_ends_the_agent() {
        let (mut agent, _) = Agent::new(0, Hello::default());
        assert_eq!(agent.on(AgentEvent::Closed, 1), [AgentAction::Leave]);
        assert!(agent.on(AgentEvent::Closed, 2).is_empty());
    }

    #[test]
    fn progress_that_was_not_sent_is_replaced() {
        let mut outbox = Outbox::default();
        outbox.push(&Message::Ready(0));
        for ios in 1..1000 {
            outbox.push(&Message::Progress(Progress { ios: [ios, 0, 0], ..Progress::default() }));
        }
        let first = outbox.bytes().len();
        assert!(first < 20, "{first}");
        outbox.wrote(first);
        let progress = outbox.bytes().len();
        assert!((1..40).contains(&progress));
        outbox.wrote(progress);
        for length in [1, 700, 900, SNAPSHOT_BYTES_MAX + 1] {
            outbox.push(&Message::Snapshot(vec![0; length]));
        }
        let snapshot = outbox.bytes().len();
        assert!((900..950).contains(&snapshot), "the last that is not too long: {snapshot}");
        outbox.wrote(snapshot);
        assert!(outbox.bytes().is_empty());
    }

    #[test]
    fn logs_are_sent_as_far_as_there_is_credit_and_after_all_else() {
        let piece =
            |log: u32, length: usize| LogPiece { log, bytes: vec![b'x'; length], is_last: length == 0 };
        let mut outbox = Outbox::default();
        let sent = |outbox: &mut Outbox| {
            let count = outbox.bytes().len();
            outbox.wrote(count);
            count
        };
        assert!(outbox.push_piece(piece(0, 100)) && outbox.push_piece(piece(0, 0)));
        assert_eq!(sent(&mut outbox), 0, "without credit");
        outbox.credit(150);
        outbox.push(&Message::Ready(0));
        assert!(sent(&mut outbox) < 20, "not behind a piece");
        assert!(sent(&mut outbox) > 100 && sent(&mut outbox) > 0 && outbox.has_sent_logs());
        assert!(outbox.push_piece(piece(1, 51)));
        assert_eq!(sent(&mut outbox), 0, "50 are left");
        outbox.push_piece(piece(2, LOG_BYTES_MAX));
        assert!(!outbox.has_room());
        outbox.end_logs(Some(2));
        assert!(outbox.push_piece(piece(2, 9)) && outbox.has_room() && !outbox.has_sent_logs());
        outbox.end_logs(None);
        assert!(!outbox.push_piece(piece(1, 9)) && outbox.has_sent_logs() && outbox.has_room());
    }

    #[test]
    fn the_command_of_a_trigger_is_run_once_the_report_has_come() {
        let (mut agent, _) = Agent::new(0, Hello::default());
        let mut told = |message| agent.on(AgentEvent::Message(message), 1);
        told(Message::Trigger(Some(b"x".to_vec())));
        told(Message::Prepare(Box::default()));
        agent.on(AgentEvent::Planned(Ok(Box::default())), 1);
        let mut told = |message| agent.on(AgentEvent::Message(message), 1);
        told(Message::Run(()));
        assert_eq!(told(Message::Fire(())), [AgentAction::Fire]);
        let sent = agent.on(AgentEvent::Ended { report: vec![1], status: 0, cause: None }, 2);
        assert_eq!(sent.len(), 2);
        let acknowledged = agent.on(AgentEvent::Message(Message::Ack(())), 3);
        assert_eq!(acknowledged, [AgentAction::Command(b"x".to_vec())]);
    }

    #[test]
    fn logs_are_sent_to_controllers_that_take_them() {
        let beside = |takes_logs, keeps_states| Beside { takes_logs, keeps_states, ..Beside::default() };
        let all = [(0, beside(false, false)), (TAKES_LOGS, beside(true, false)), (9, beside(true, true))];
        for (minor, beside) in all {
            let (mut agent, _) = Agent::new(0, Hello::default());
            let hello = Hello { protocol: (1, minor), ..Hello::default() };
            agent.on(AgentEvent::Message(Message::Hello(hello)), 1);
            let planned = agent.on(AgentEvent::Message(Message::Prepare(Box::default())), 2);
            assert_eq!(planned, [AgentAction::Plan(Box::default(), Box::new(beside))]);
        }
    }
}

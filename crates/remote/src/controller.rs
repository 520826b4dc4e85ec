//! The controller: one thread over the streams of all agents.
//!
//! Invariant: what is done when is decided by `fiord_wire::Controller` alone; here are the processes and the bytes. Of each
//! host at most one message that is not whole, and `ERRORS_BYTES_MAX` of its standard error, are kept. When it ends, no
//! process that it started is left.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use fiord_fleet::{Fate, Host, HostLogs};
use fiord_plan::Trigger;
use fiord_stats::Capped;
use fiord_sys::poll::{self, Until};
use fiord_sys::{clock, process, signal};
use fiord_wire::agent::Outbox;
use fiord_wire::controller::Remote;
use fiord_wire::frame::Inbox;
use fiord_wire::{Controller, ControllerAction, ControllerSettings, Message, Prepare};
use fiord_worker::{TargetOpener, TriggerWatch};

use crate::hello::hello;
use crate::launch::{Launcher, Started};
use crate::logs::LogFiles;
use crate::ssh;
use crate::states::StateFiles;

/// How often time is looked at.
const TICK: Duration = Duration::from_millis(100);

/// How long processes may take to end once all is done.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// The most bytes of a host's standard error that are kept.
const ERRORS_BYTES_MAX: usize = 16 << 10;

/// A run on hosts.
#[derive(Debug)]
pub struct Job {
    /// The hosts, each with how it is reached and what it runs.
    pub hosts: Vec<(Host, Launcher, Prepare)>,
    /// What was asked for.
    pub settings: ControllerSettings,
    /// How many are connected to at a time.
    pub fan_out: usize,
    /// The program, which is sent where it is missing.
    pub program: Vec<u8>,
    /// What stops all jobs, and is run here then.
    pub trigger: Option<Trigger>,
    /// The files of the states of each host's jobs; none for a study.
    pub states: Vec<StateFiles>,
}

/// A run on hosts that is over.
#[derive(Debug)]
pub struct Finished {
    /// The hosts, as they were at the end.
    pub controller: Controller,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The logs of each host.
    pub logs: Vec<HostLogs>,
    /// States of verification that are not saved, with the reason.
    pub unsaved: Vec<String>,
    /// Whether the trigger has fired.
    pub has_fired: bool,
    /// What went wrong with its command here.
    pub trigger_warning: Option<String>,
}

/// Is told of a run on hosts, from the thread that carries it out.
pub trait Onlooker {
    /// Ten times a second: how it stands.
    fn look(&mut self, controller: &Controller);
    /// The host of this number says this line.
    fn said(&mut self, number: usize, line: &str);
    /// How often it wants a report of what each host has measured so far, from now on; `None` is never.
    fn snapshots_every(&self) -> Option<Duration> {
        None
    }
}

/// Nobody, who is told nothing.
impl Onlooker for () {
    fn look(&mut self, _: &Controller) {}
    fn said(&mut self, _: usize, _: &str) {}
}

/// One agent's process and its stream.
struct Connection {
    child: Child,
    stream: Option<io::Result<std::os::unix::net::UnixStream>>,
    errors: Option<std::os::unix::net::UnixStream>,
    inbox: Inbox,
    outbox: Outbox,
    /// What is left to be sent of the program.
    program: VecDeque<u8>,
    said: Vec<u8>,
    noise: Vec<u8>,
    has_answered: bool,
}

/// Runs a job on its hosts.
pub fn run(job: Job, onlooker: &mut dyn Onlooker) -> Finished {
    let Job { hosts, mut settings, fan_out, program, trigger, mut states } = job;
    settings.before.resize_with(hosts.len(), Vec::new);
    for (before, files) in settings.before.iter_mut().zip(&mut states) {
        before.extend(files.load().into_iter().map(Message::State));
    }
    let mut trigger = TriggerWatch::new(trigger.as_ref());
    // Without its handlers a signal ends the controller, and the agents find that out.
    let _ = signal::record_stop_requests();
    let now_ns = i64::capped(clock::monotonic_ns());
    let (places, prepared): (Vec<(Host, Launcher)>, Vec<Prepare>) =
        hosts.into_iter().map(|(host, launcher, prepare)| ((host, launcher), prepare)).unzip();
    // Each host has a stream, and may have files.
    let _ = process::raise_open_file_limit();
    let logs = LogFiles::of(&prepared);
    let controller = Controller::new(hello(), prepared, settings, now_ns);
    let connections = places.iter().map(|_| None).collect();
    let unsaved = Vec::new();
    let mut pump =
        Pump { controller, connections, next: 0, is_done: false, program, logs, states, unsaved, onlooker };
    let (mut signalled, mut ticked) = (None, None::<Instant>);
    while !pump.is_done {
        pump.connect(&places, fan_out);
        pump.exchange();
        if signalled.is_none()
            && let Some(number) = signal::stop_requested()
        {
            signalled = Some(number);
            let actions = pump.controller.stop(now());
            pump.act(actions);
        }
        if signal::is_stop_urgent() {
            pump.abandon();
        }
        // Not after each message: all hosts are looked at.
        if ticked.is_none_or(|ticked| ticked.elapsed() >= TICK) {
            ticked = Some(Instant::now());
            let every_ms = pump.onlooker.snapshots_every().map_or(0, |every| u64::capped(every.as_millis()));
            let mut actions = pump.controller.watch(every_ms);
            actions.extend(pump.controller.tick(now()));
            pump.act(actions);
            pump.onlooker.look(&pump.controller);
            if pump.fires(&mut trigger) {
                let actions = pump.controller.fire(now());
                pump.act(actions);
            }
        }
    }
    pump.leave();
    if trigger.has_fired() {
        pump.name_lost_states(&places);
    }
    // A run that was given up has no states that are worth a power cut.
    let trigger_warning = match signalled {
        None => trigger.run_command(&signal::is_stop_urgent),
        Some(_) => None,
    };
    let Pump { controller, logs, unsaved, .. } = pump;
    Finished {
        controller,
        signal: signalled,
        logs: logs.finish(),
        unsaved,
        has_fired: trigger.has_fired(),
        trigger_warning,
    }
}

fn now() -> i64 {
    i64::capped(clock::monotonic_ns())
}

struct Pump<'o> {
    controller: Controller,
    connections: Vec<Option<Connection>>,
    /// The first host that no agent was started for.
    next: usize,
    is_done: bool,
    program: Vec<u8>,
    logs: LogFiles,
    states: Vec<StateFiles>,
    unsaved: Vec<String>,
    onlooker: &'o mut dyn Onlooker,
}

impl Pump<'_> {
    /// Starts agents, as many at a time as are allowed.
    fn connect(&mut self, places: &[(Host, Launcher)], fan_out: usize) {
        let is_pending = |remote: &Remote| remote.hello().is_none() && remote.fate().is_none();
        let mut pending = self.controller.remotes()[..self.next].iter().filter(|one| is_pending(one)).count();
        while pending < fan_out.max(1) && self.next < places.len() && !self.is_done {
            let number = self.next;
            self.next += 1;
            if self.controller.remotes()[number].fate().is_some() {
                continue;
            }
            pending += 1;
            let (host, launcher) = &places[number];
            self.controller.connecting(number, now());
            match launcher.start(host) {
                Ok(started) => self.connections[number] = Some(Connection::new(started)),
                Err(why) => {
                    let actions = self.controller.closed(number, &why, now());
                    self.act(actions);
                }
            }
        }
    }

    /// Names the hosts that were lost when a trigger stopped the jobs: the command that is run then may be a power cut.
    fn name_lost_states(&mut self, places: &[(Host, Launcher)]) {
        let hosts = places.iter().zip(&self.states).zip(self.controller.remotes());
        let lost = hosts.filter(|((_, files), remote)| {
            files.are_saved && matches!(remote.fate(), Some(Fate::Lost { .. }))
        });
        self.unsaved.extend(lost.map(|(((host, _), _), _)| {
            let name = &host.name;
            format!(
                "{name}: lost: its writes can be verified after the trigger only as far as states have come"
            )
        }));
    }

    /// Whether the trigger fires now: not before a host has started.
    fn fires(&self, trigger: &mut TriggerWatch) -> bool {
        let Some(start_ns) = self.controller.first_start_ns() else { return false };
        let elapsed_ns = u64::try_from(now().saturating_sub(start_ns)).unwrap_or(0);
        !self.is_done && trigger.fires(elapsed_ns, false, &TargetOpener::default())
    }

    /// Waits until something can be read or written, and does it.
    fn exchange(&mut self) {
        let mut awaited: Vec<(BorrowedFd<'_>, Until)> = Vec::new();
        let mut whose = Vec::new();
        for (number, connection) in self.connections.iter_mut().enumerate() {
            let Some(connection) = connection else { continue };
            let wants = connection.wants_to_write();
            if let Some(Ok(stream)) = &connection.stream {
                awaited
                    .push((stream.as_fd(), if wants { Until::ReadableOrWritable } else { Until::Readable }));
                whose.push(number);
            }
            if let Some(errors) = &connection.errors {
                awaited.push((errors.as_fd(), Until::Readable));
                whose.push(number);
            }
        }
        awaited.extend(self.logs.woken().map(|woken| (woken, Until::Readable)));
        let ready = match poll::wait_for_any(&awaited, Some(TICK)) {
            Ok(ready) => ready,
            // A signal, which is looked at next.
            Err(_) => return,
        };
        let mut numbers: Vec<usize> =
            whose.into_iter().zip(ready).filter(|(_, ready)| *ready).map(|(number, _)| number).collect();
        numbers.dedup();
        self.give_credit();
        for number in numbers {
            self.serve(number);
        }
    }

    /// Lets hosts send more of their logs, as far as they are written.
    fn give_credit(&mut self) {
        for wrote in self.logs.wrote() {
            let mut actions = self.controller.wrote(wrote.host, wrote.bytes);
            actions.extend(wrote.failed.into_iter().flat_map(|log| self.controller.end_log(wrote.host, log)));
            self.act(actions);
        }
    }

    /// Reads and writes what can be.
    fn serve(&mut self, number: usize) {
        let Some(connection) = &mut self.connections[number] else { return };
        connection.read_errors();
        let ended = connection.read(&self.program).and_then(|is_open| {
            connection.write()?;
            Ok(is_open)
        });
        let mut messages = Vec::new();
        let read = loop {
            match connection.inbox.message() {
                Ok(None) => break Ok(()),
                Ok(Some((kind, payload))) => match Message::read(kind, &payload) {
                    Ok(message) => messages.extend(message),
                    Err(why) => break Err(why),
                },
                Err(why) => break Err(why.to_string()),
            }
        };
        if !messages.is_empty() && !std::mem::replace(&mut connection.has_answered, true) {
            // Not before: a shell there would take it for the program.
            connection.outbox.preface();
        }
        for message in messages {
            let actions = self.controller.message(number, message, now());
            self.act(actions);
        }
        let cause = match (read, ended) {
            (Err(why), _) => why,
            (Ok(()), Ok(true)) => return,
            (Ok(()), _) => self.connections[number].as_mut().map_or_else(String::new, Connection::why_ended),
        };
        if let Some(connection) = &mut self.connections[number] {
            connection.stream = None;
        }
        let actions = self.controller.closed(number, &cause, now());
        self.act(actions);
    }

    fn act(&mut self, actions: Vec<ControllerAction>) {
        for action in actions {
            match action {
                ControllerAction::Send(number, message) => {
                    if let Some(connection) = &mut self.connections[number]
                        && connection.has_answered
                    {
                        connection.outbox.push(&message);
                        let _ = connection.write();
                    }
                }
                ControllerAction::Close(number) => {
                    if let Some(connection) = &mut self.connections[number] {
                        connection.close();
                    }
                }
                ControllerAction::Show(number, line) => self.onlooker.said(number, &line),
                ControllerAction::Logs(number, logs) => {
                    if let Err(problems) = self.logs.plan(number, &logs) {
                        let actions = self.controller.refuse(number, problems, now());
                        self.act(actions);
                    }
                }
                ControllerAction::Write(number, piece) => self.logs.write(number, piece),
                ControllerAction::Keep(number, state) => {
                    let saved = self.states.get(number).map_or(Ok(()), |files| files.save(&state));
                    self.unsaved.extend(saved.err());
                }
                ControllerAction::Done => self.is_done = true,
            }
        }
    }

    /// Ends all connections at once.
    fn abandon(&mut self) {
        for number in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[number] {
                connection.stream = None;
            }
            let actions = self.controller.closed(number, "given up", now());
            self.act(actions);
        }
    }

    /// Waits for all processes, and ends those that stay.
    fn leave(&mut self) {
        let begun = Instant::now();
        for connection in self.connections.iter_mut().flatten() {
            connection.close();
        }
        while begun.elapsed() < LEAVE_MAX && !signal::is_stop_urgent() {
            let mut left = false;
            for connection in self.connections.iter_mut().flatten() {
                connection.read_errors();
                // What is still said is read, so that nobody waits for its pipe.
                let _ = connection.read(&[]);
                let _ = connection.write();
                connection.close();
                left |= matches!(connection.child.try_wait(), Ok(None));
            }
            if !left {
                return;
            }
            clock::sleep_until_ns(clock::monotonic_ns() + 2_000_000);
        }
        for connection in self.connections.iter_mut().flatten() {
            if matches!(connection.child.try_wait(), Ok(None)) {
                let _ = connection.child.kill();
                let _ = connection.child.wait();
            }
        }
    }
}

impl Connection {
    fn new(started: Started) -> Connection {
        let Started { child, stream, errors } = started;
        Connection {
            child,
            stream: Some(Ok(stream)),
            errors: Some(errors),
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            program: VecDeque::new(),
            said: Vec::new(),
            noise: Vec::new(),
            has_answered: false,
        }
    }

    fn wants_to_write(&mut self) -> bool {
        !self.program.is_empty() || !self.outbox.bytes().is_empty()
    }

    /// Reads what there is; whether more may come.
    fn read(&mut self, program: &[u8]) -> io::Result<bool> {
        let mut bytes = [0; 16 << 10];
        // Not without end: others wait.
        for _ in 0..16 {
            let Some(Ok(stream)) = &mut self.stream else { return Ok(false) };
            match stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.inbox.push(&bytes[..count]);
                    self.look_for_a_request(&bytes[..count], program);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Before the agent answers, the far end may ask for the program.
    fn look_for_a_request(&mut self, bytes: &[u8], program: &[u8]) {
        if self.has_answered || self.noise.len() > fiord_wire::frame::NOISE_BYTES_MAX {
            return;
        }
        self.noise.extend(bytes);
        if self.noise.windows(ssh::WANTED.len()).any(|window| window == ssh::WANTED) {
            self.noise.clear();
            self.program.extend(program);
        }
    }

    fn read_errors(&mut self) {
        let mut bytes = [0; 4096];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut bytes) {
                Ok(0) => self.errors = None,
                Ok(count) => {
                    self.said.extend(&bytes[..count]);
                    let over = self.said.len().saturating_sub(ERRORS_BYTES_MAX);
                    self.said.drain(..over);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.errors = None,
            }
        }
    }

    /// Writes what can be written.
    fn write(&mut self) -> io::Result<()> {
        let Some(Ok(stream)) = &mut self.stream else { return Ok(()) };
        loop {
            let is_program = !self.program.is_empty();
            let bytes = if is_program { self.program.as_slices().0 } else { self.outbox.bytes() };
            if bytes.is_empty() {
                return Ok(());
            }
            match stream.write(bytes) {
                Ok(count) if is_program => drop(self.program.drain(..count)),
                Ok(count) => self.outbox.wrote(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Says that nothing more is sent, once all is.
    fn close(&mut self) {
        let has_sent = self.write().is_err() || !self.wants_to_write();
        if let Some(Ok(stream)) = &self.stream
            && (has_sent || !self.has_answered)
        {
            let _ = stream.shutdown(std::net::Shutdown::Write);
        }
    }

    /// Why the stream has ended: what was said last, or the exit status.
    fn why_ended(&mut self) -> String {
        self.read_errors();
        let said = what_was_said(&String::from_utf8_lossy(&self.said));
        let before = if self.has_answered { String::new() } else { self.inbox.noise() };
        let noise = before.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_string);
        // It has closed its output, and is about to end.
        let deadline = Instant::now() + Duration::from_millis(200);
        let mut status = None;
        while status.is_none() && Instant::now() < deadline {
            status = self.child.try_wait().ok().flatten();
            clock::sleep_until_ns(clock::monotonic_ns() + 1_000_000);
        }
        self.read_errors();
        let ended = match status {
            Some(status) => match (status.code(), status.signal()) {
                (Some(0), _) => "the connection ended".to_string(),
                (Some(code), _) => format!("exit status {code}"),
                (None, Some(number)) => format!("ended by signal {number}"),
                (None, None) => "the connection ended".to_string(),
            },
            None => "the connection ended".to_string(),
        };
        match said.or_else(|| noise.map(|noise| format!("before the agent: {noise}"))) {
            Some(said) => format!("{said} ({ended})"),
            None => ended,
        }
    }
}

/// The line that says what is wrong: that of a wrong command line, which its usage follows, or else the last.
fn what_was_said(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_usage = |line: &str| line.starts_with("Usage:") || line.contains("try '--help'");
    let said = match text.lines().any(|line| is_usage(line.trim())) {
        true => lines.find(|line| line.starts_with("error:") || line.starts_with("fiord")),
        false => lines.next_back(),
    };
    said.map(str::to_string)
}

/// Whether nothing went wrong on any host.
pub fn are_all_complete(controller: &Controller) -> bool {
    controller.remotes().iter().all(|remote| matches!(remote.fate(), Some(Fate::Complete)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_and_not_the_usage_behind_it() {
        let usage = "Welcome\nfiord agent: unexpected argument '--x' found\n\nUsage: fiord agent [OPTIONS]\n\n\
                     For more information, try '--help'.\n";
        assert_eq!(what_was_said(usage).unwrap(), "fiord agent: unexpected argument '--x' found");
        assert_eq!(what_was_said("Welcome\nPermission denied\n\n").unwrap(), "Permission denied");
        assert_eq!(what_was_said("\n"), None);
    }
}

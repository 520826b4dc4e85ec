//! The agent: reads frames on standard input, answers on standard output, and runs what it is told to.
//!
//! Invariant: threads that carry messages touch no storage; the run is on the main thread, as without a controller. What is
//! done when is decided by `fiord_wire::Agent` alone.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use fiord_options::environment::KeywordValues;
use fiord_session::StopHandle;
use fiord_sys::channel::{self, Receiver};
use fiord_sys::errno::error_text;
use fiord_sys::poll::{self, Until};
use fiord_sys::spawn::spawn;
use fiord_sys::{clock, signal};
use fiord_wire::agent::{Agent, AgentEvent};
use fiord_wire::frame::{self, Inbox};
use fiord_wire::message::{Message, StudyCommand, Told};

use crate::agent_run::{self, Planned};
use crate::agent_study::StudyAgent;
use crate::hello::hello;
use crate::leftovers::{self, Task};
use crate::link::{Command, Link, locked};
use crate::server::Policy;
use crate::slurm;

/// Stack of the threads that carry messages, in bytes.
const STACK_BYTES: usize = 256 << 10;

/// How often the controller's silence is looked at.
const TICK: Duration = Duration::from_secs(1);

/// A kind of frame that means nothing, and is skipped.
const FILLER: u8 = 0x7f;

/// Carries out a study, and tells the agent of it. The error: why it cannot, and whether data would have been destroyed.
pub type CarryOut<'s> = &'s dyn Fn(&StudyCommand, &Rc<RefCell<StudyAgent>>) -> Result<(), Told>;

/// Runs the agent until its controller lets it go, or is lost. `remove`: its own file was put there for this, and is removed.
/// `policy`: what the controller may have it do, which holds from here on.
///
/// # Errors
/// The policy cannot be held, or its threads cannot be started.
#[allow(clippy::disallowed_methods, reason = "the program's own file, which its controller has put there")]
pub fn run(remove: bool, policy: Policy, carry_out: CarryOut<'_>) -> Result<(), String> {
    let hello = hello();
    if remove && let Ok(own) = std::env::current_exe() {
        // If it stays, it is found and used the next time.
        let _ = std::fs::remove_file(own);
    }
    policy.enforce()?;
    let (commands, received) = channel::channel();
    let (machine, first) = Agent::new(clock::monotonic_ns(), hello);
    let link = Arc::new(Link {
        machine: Mutex::new(machine),
        outbox: Mutex::default(),
        changed: Condvar::new(),
        commands,
        starts: Mutex::default(),
        started: Condvar::new(),
        stop: StopHandle::default(),
        fires: AtomicBool::new(false),
        run: Mutex::default(),
        watch_ms: AtomicU64::new(0),
        policy,
    });
    locked(&link.outbox).preface();
    link.act(first);
    let (reads, writes) = (Arc::clone(&link), Arc::clone(&link));
    let started = spawn("agent-reads", STACK_BYTES, move || read(&reads))
        .and_then(|_| spawn("agent-writes", STACK_BYTES, move || write(&writes)));
    started.map_err(|error| format!("a thread cannot be started: {}", error_text(&error)))?;
    obey(&link, &Rc::new(received), carry_out);
    Ok(())
}

/// The main thread: plans and runs.
fn obey(link: &Arc<Link>, commands: &Rc<Receiver<Command>>, carry_out: CarryOut<'_>) {
    let mut planned: Option<Planned> = None;
    while let Ok(command) = commands.recv() {
        match command {
            Command::Plan(prepare, _) if prepare.study.is_some() => {
                let Some(study) = &prepare.study else { continue };
                let keywords = agent_run::keywords_of(&prepare, KeywordValues::UNKNOWN);
                let agent = Rc::new(RefCell::new(StudyAgent::new(link, commands, keywords)));
                let carried_out = match Task::of(study) {
                    Some(task) => leftovers::carry_out(&mut agent.borrow_mut(), &task),
                    None => carry_out(study, &agent),
                };
                let mut agent = agent.borrow_mut();
                carried_out.unwrap_or_else(|told| agent.failed(told));
                if agent.has_left() {
                    return;
                }
            }
            Command::Plan(prepare, beside) => match agent_run::plan(&prepare, *beside, link) {
                Ok((plan, facts)) => {
                    if let Some(logs) = plan.logs() {
                        link.on(AgentEvent::Tell(Message::Logs(Box::new(logs))));
                    }
                    link.on(AgentEvent::Tell(Message::Files(plan.files())));
                    planned = Some(plan);
                    link.on(AgentEvent::Planned(Ok(Box::new(facts))));
                }
                Err(problems) => link.on(AgentEvent::Planned(Err(problems))),
            },
            Command::Run => {
                if let Some(planned) = planned.take() {
                    link.on(agent_run::run(&planned, link));
                }
            }
            Command::Trigger(command) => {
                let said = agent_run::run_command(&command);
                link.on(AgentEvent::Tell(Message::Commanded(said)));
            }
            Command::Leave => return,
        }
    }
}

/// Reads what the controller sends.
fn read(link: &Link) {
    signal::leave_to_other_threads();
    let mut stdin = io::stdin().lock();
    let (mut inbox, mut bytes) = (Inbox::default(), vec![0; 64 << 10]);
    loop {
        match poll::wait(io::stdin().as_fd(), Until::Readable, Some(TICK)) {
            Ok(true) => {}
            _ => {
                link.on(AgentEvent::Tick);
                continue;
            }
        }
        match stdin.read(&mut bytes) {
            Ok(count @ 1..) => inbox.push(&bytes[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => return link.on(AgentEvent::Closed),
        }
        loop {
            match inbox.message() {
                Ok(None) => break,
                Ok(Some((kind, payload))) => match Message::read(kind, &payload) {
                    Ok(Some(message)) => link.on(AgentEvent::Message(message)),
                    Ok(None) => {}
                    Err(_) => return link.on(AgentEvent::Closed),
                },
                Err(_) => return link.on(AgentEvent::Closed),
            }
        }
    }
}

/// Writes what the controller is told.
fn write(link: &Link) {
    signal::leave_to_other_threads();
    let is_by_lines = slurm::holds_lines_back();
    loop {
        let mut outbox = locked(&link.outbox);
        while outbox.bytes().is_empty() {
            outbox = link.changed.wait(outbox).unwrap_or_else(PoisonError::into_inner);
        }
        let mut bytes = outbox.bytes().to_vec();
        outbox.wrote(bytes.len());
        if is_by_lines {
            frame::write(FILLER, b"\n", &mut bytes);
        }
        drop(outbox);
        link.changed.notify_all();
        // Locked no longer than that: whoever ends the process takes the lock.
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(&bytes).and_then(|()| stdout.flush());
        drop(stdout);
        if written.is_err() {
            return link.on(AgentEvent::Closed);
        }
    }
}

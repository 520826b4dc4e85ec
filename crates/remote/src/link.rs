//! What the threads of an agent share: its state machine, what is to be sent, and what the main thread is told.
//!
//! Invariant: no lock is held while another is taken, or while the stream is read or written.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use fiord_session::StopHandle;
use fiord_sys::channel::Sender;
use fiord_sys::clock;
use fiord_wire::Sent;
use fiord_wire::agent::{Agent, AgentAction, AgentEvent, Beside, Outbox};
use fiord_wire::message::{LogPiece, Prepare};

use crate::server::Policy;
use crate::spool;

/// What the main thread is told to do.
pub(crate) enum Command {
    Plan(Box<Prepare>, Box<Beside>),
    Run,
    /// The command of the trigger.
    Trigger(Vec<u8>),
    Leave,
}

/// What the threads of an agent share.
pub(crate) struct Link {
    pub(crate) machine: Mutex<Agent>,
    pub(crate) outbox: Mutex<Outbox>,
    /// Something is to be written, or was.
    pub(crate) changed: Condvar,
    pub(crate) commands: Sender<Command>,
    pub(crate) starts: Mutex<Vec<(u32, u64)>>,
    pub(crate) started: Condvar,
    /// Ends the run.
    pub(crate) stop: StopHandle,
    /// Fires its trigger.
    pub(crate) fires: AtomicBool,
    pub(crate) run: Mutex<String>,
    /// How often the controller wants a snapshot, in milliseconds; 0 is never.
    pub(crate) watch_ms: AtomicU64,
    /// What the controller may have done here.
    pub(crate) policy: Policy,
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Something happened: what follows from it is done, or begun.
    pub(crate) fn on(&self, event: AgentEvent) {
        let actions = locked(&self.machine).on(event, clock::monotonic_ns());
        actions.into_iter().for_each(|action| self.act(action));
    }

    pub(crate) fn act(&self, action: AgentAction) {
        // A main thread that has gone needs no commands.
        let command = |command| drop(self.commands.send(command));
        match action {
            AgentAction::Send(message) => {
                self.change_outbox(|outbox| outbox.push(&message));
            }
            AgentAction::Plan(prepare, beside) => {
                locked(&self.run).clone_from(&prepare.run);
                command(Command::Plan(prepare, beside));
            }
            AgentAction::Credit(bytes) => self.change_outbox(|outbox| outbox.credit(bytes)),
            AgentAction::EndLog(log) => self.change_outbox(|outbox| outbox.end_logs(Some(log))),
            AgentAction::Watch(every_ms) => self.watch_ms.store(every_ms, Ordering::Relaxed),
            AgentAction::EndLogs => self.change_outbox(|outbox| outbox.end_logs(None)),
            AgentAction::Run => command(Command::Run),
            AgentAction::Start(stage, at_ns) => {
                locked(&self.starts).push((stage, at_ns));
                self.started.notify_all();
            }
            AgentAction::Stop => self.stop.stop(),
            AgentAction::Fire => self.fires.store(true, Ordering::Relaxed),
            AgentAction::Command(words) => command(Command::Trigger(words)),
            AgentAction::Spool(kept) => {
                // There is nobody left who could be told.
                let _ = spool::keep(&locked(&self.run), &kept.encode());
            }
            AgentAction::Leave => command(Command::Leave),
        }
    }

    fn change_outbox<T>(&self, change: impl FnOnce(&mut Outbox) -> T) -> T {
        let changed = change(&mut locked(&self.outbox));
        self.changed.notify_all();
        changed
    }

    /// Sends a piece of a log, when there is room for it. `false`: nobody takes logs any more.
    pub(crate) fn send_piece(&self, piece: LogPiece) -> bool {
        let full = self.changed.wait_while(locked(&self.outbox), |outbox| !outbox.has_room());
        let is_taken = full.unwrap_or_else(PoisonError::into_inner).push_piece(piece);
        self.changed.notify_all();
        is_taken
    }

    /// Waits until all pieces of logs are sent, or nobody takes them any more.
    pub(crate) fn finish_logs(&self) {
        drop(self.changed.wait_while(locked(&self.outbox), |outbox| !outbox.has_sent_logs()));
    }

    /// When this stage starts, on this machine's monotonic clock; waits up to `patience` for another time than it knows.
    pub(crate) fn start_of(&self, stage: u32, patience: Duration) -> Option<u64> {
        let newest = |starts: &[(u32, u64)]| {
            starts.iter().rev().find(|(known, _)| *known == stage).map(|(_, at_ns)| *at_ns)
        };
        let starts = locked(&self.starts);
        let known = newest(&starts);
        if patience.is_zero() {
            return known;
        }
        let waited = self.started.wait_timeout_while(starts, patience, |starts| newest(starts) == known);
        newest(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

//! rdma: the other end's memory, or messages, by RDMA (librdmacm, libibverbs), to and from fio's engine of this name or
//! fiord's.
//!
//! Invariant: an I/O is one request of the device, or, of an end whose memory the other uses, the wait for that end.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::io;
use std::time::{Duration, Instant};

use fiord_options::engine::Rdma as Options;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse,
    MissingSetting, Need, Op, Queueing, RateUnit, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::library::queue_pair::{RemotePart, Request, RequestResult};
use fiord_sys::library::rdma::is_available;
use fiord_sys::library::{HandOver, LibraryError};
use fiord_sys::signal;
use fiord_sys::width::to_usize;

use crate::boxed::BoxedQueued;
use crate::contract::{NamedTarget, Outcome};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::library_engine::{GRACE, LibraryEngine, Session, descriptor};
pub use crate::rdma_connection::Settings;
use crate::rdma_connection::{Buffers, Connection, Endpoint, Task, cause_of};
use crate::setup_error::SetupError;

/// The engine.
#[derive(Debug)]
pub struct Rdma;

const TESTS: &str = "tests/guest/cases/rdma.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_are_those_that_the_other_end_has"),
    counts: Tested::By(TESTS, "counts_are_those_of_fio_in_both_roles"),
    short: Tested::By(TESTS, "messages_shorter_than_a_block_are_continued"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "an_end_that_is_not_there_or_goes_away_is_an_error_with_its_reason"),
    gone: Tested::By(TESTS, "an_end_that_is_not_there_or_goes_away_is_an_error_with_its_reason"),
    stuck: Tested::By(TESTS, "every_wait_ends_when_the_run_is_interrupted"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

/// How long an end whose run time is over waits for the other to end: that one began later.
const OVERTIME: Duration = Duration::from_secs(5);

impl EngineDefinition for Rdma {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Connected(RateUnit::Bytes),
        // The library's descriptors are those of the process.
        shares_threads: true,
        settings: |options| EngineSettings::new(Settings::of(options)),
        missing: |settings| missing(settings.get()?),
        tests: Some(TESTED),
        example: Some(Example {
            text: "A job that writes to the memory of another, 16 blocks at a time; both are on this machine.",
            commands: "fiord --ioengine=rdma --port=8765 --bs=64k --size=16m --iodepth=16 --name=memory --rw=read \\\n  \
                       --name=writer --rw=write --verb=write --hostname=$(hostname -I | cut -d' ' -f1)",
            needs: &[Need {
                what: "an RDMA device at this machine's first address, for example one in software: \
                       modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0",
                check: "rdma link | grep \"netdev $(ip -o addr | grep -wF \"$(hostname -I | cut -d' ' -f1)\" | cut -d' ' -f2)\"",
            }],
        }),
        ..descriptor(
            EngineName::Rdma,
            "memory and messages over RDMA (librdmacm)",
            Queueing::Queued,
            |_, errno| explain(errno),
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        if let Err(unavailable) = is_available() {
            return visitor.queued::<BoxedQueued<'_>>(Err(unavailable.into()));
        }
        let buffers = Buffers {
            start: arena.pointer(0, 0, 0),
            stride_bytes: arena.stride_bytes(),
            count: arena.count(),
            block_bytes_max: u32::try_from(job.block_bytes_max).unwrap_or(u32::MAX),
        };
        let engine = Endpoint::new(settings, job.clone).map_err(not_listening).map(|endpoint| {
            let session = RdmaSession {
                endpoint,
                buffers,
                connection: None,
                lent: VecDeque::with_capacity(arena.count() as usize),
                started: 0,
                answered_at: None,
                woken_since: None,
                is_cancelled: false,
            };
            BoxedQueued::new(LibraryEngine::new(arena, Box::new(session), false))
        });
        visitor.queued(engine)
    }
}

/// What the engine cannot work without.
fn missing(settings: &Settings) -> Option<MissingSetting> {
    if settings.port.is_none() {
        let message = "the engine rdma needs a port";
        return Some(MissingSetting { option: Options::port, message, remedy: "for example port=8765" });
    }
    (!settings.waits && settings.host.is_none()).then_some(MissingSetting {
        option: Options::hostname,
        message: "a job that writes connects, and there is no host to connect to",
        remedy: "hostname=ADDRESS, or rw=read to wait for the other end",
    })
}

/// The usual cause of an I/O's error.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::ECONNRESET => {
            Some("the other end is closed: it ended, or its size or runtime is smaller than that of this job")
        }
        libc::ENOBUFS => Some(
            "the other end had no receive ready, and is a fio, to which nothing is sent again: it has ended, or needs a larger \
             iodepth than this end",
        ),
        libc::EMSGSIZE => {
            Some("a message is longer than the other end's blocks: use the same bs at both ends")
        }
        libc::EACCES => Some("the other end does not let its memory be used any more: it has ended"),
        libc::ETIMEDOUT => Some("the other end does not answer any more"),
        _ => None,
    }
}

/// An end that cannot be set up.
fn not_listening(error: LibraryError) -> SetupError {
    match error {
        LibraryError::Unavailable(unavailable) => unavailable.into(),
        LibraryError::Stopped(call) => SetupError {
            call,
            errno: Errno(libc::ECANCELED),
            cause: "the run was stopped",
            remedy: "begin it again",
        },
        LibraryError::Call(call, errno) => SetupError {
            call,
            errno,
            cause: cause_of(call, errno.0),
            remedy: "or use ioengine=net, which needs no RDMA",
        },
    }
}

/// The connection of a job, made again for each loop.
struct RdmaSession {
    // Dropped in this order.
    connection: Option<Connection>,
    endpoint: Endpoint,
    buffers: Buffers,
    /// I/Os that last while the other end uses this one's memory.
    lent: VecDeque<*mut c_void>,
    /// I/Os that were started.
    started: u64,
    /// How many were started when the last wait or look for completions began.
    answered_at: Option<u64>,
    /// When a signal first woke this end while nothing ended.
    woken_since: Option<Instant>,
    /// Whether this end has given up what is in flight.
    is_cancelled: bool,
}

/// The result of a request, as it is handed over: bytes, or a negative error number.
fn handed_over(result: RequestResult, task: Task, is_lost: bool, is_cancelled: bool) -> i64 {
    match result {
        Ok(bytes) => i64::from(bytes),
        Err(Errno(libc::ECONNRESET)) if is_cancelled => -i64::from(libc::EINTR),
        // The other end has sent all it had.
        Err(Errno(libc::ECONNRESET)) if is_lost && task == Task::Receive => 0,
        Err(Errno(errno)) => -i64::from(errno),
    }
}

impl RdmaSession {
    /// Takes what has ended, and hands it over.
    fn progress(&mut self) -> io::Result<()> {
        let RdmaSession { connection: Some(connection), lent, is_cancelled, woken_since, .. } = self else {
            return Ok(());
        };
        let task = connection.task();
        connection.take(|ticket, result, is_lost| {
            *woken_since = None;
            // SAFETY: the request was started with the ticket, and has ended.
            unsafe { HandOver::end(ticket, handed_over(result, task, is_lost, *is_cancelled)) };
        })?;
        let result = match (connection.is_over(), connection.is_lost(), *is_cancelled) {
            _ if task != Task::Lend => return Ok(()),
            (true, _, _) => 0,
            (false, _, true) => -i64::from(libc::EINTR),
            (false, true, false) => -i64::from(libc::ECONNRESET),
            (false, false, false) => return Ok(()),
        };
        // The buffers go back to the job.
        connection.pair().forbid_access();
        for ticket in lent.drain(..) {
            // SAFETY: the I/O was started with the ticket, and has ended.
            unsafe { HandOver::end(ticket, result) };
        }
        Ok(())
    }

    /// The end that waits introduces itself when its I/Os are there, so that receives are posted before the other end sends.
    fn answer(&mut self) -> io::Result<()> {
        match &mut self.connection {
            Some(connection) if self.started > 0 => connection.answer().map_err(io::Error::from),
            _ => Ok(()),
        }
    }

    /// Gives up what is in flight if this end was asked to stop some time ago, and the other does not end.
    fn give_up(&mut self) {
        let patience = if signal::stop_requested().is_some() { GRACE / 2 } else { OVERTIME };
        if self.woken_since.is_some_and(|since| since.elapsed() >= patience)
            && let Some(connection) = &mut self.connection
        {
            self.is_cancelled = true;
            connection.cancel();
        }
    }
}

impl Session for RdmaSession {
    fn open(&mut self, _file: FileIndex, _target: &NamedTarget<'_>) -> io::Result<()> {
        self.started = 0;
        self.answered_at = None;
        self.woken_since = None;
        // SAFETY: the engine keeps its buffers until the session is dropped, or for ever.
        self.connection = Some(unsafe { self.endpoint.open(&self.buffers) }?);
        Ok(())
    }

    fn close(&mut self, _file: FileIndex) {
        match self.connection.take() {
            Some(connection) if !self.is_cancelled => connection.close(),
            connection => drop(connection),
        }
    }

    unsafe fn start(&mut self, op: &Op, buffer: *mut u8, ticket: *mut c_void) -> Result<(), Errno> {
        let started = match (&mut self.connection, op.action) {
            (Some(connection), Action::Read | Action::Write) => {
                let remote = |connection: &mut Connection| {
                    let buffer = connection.next_remote();
                    buffer.map_or(RemotePart { address: 0, key: 0 }, |buffer| RemotePart {
                        address: buffer.address,
                        key: buffer.key,
                    })
                };
                let request = match connection.task() {
                    Task::Write => Some(Request::Write(remote(connection))),
                    Task::Read => Some(Request::Read(remote(connection))),
                    Task::Send => Some(Request::Send),
                    Task::Receive => Some(Request::Receive),
                    Task::Lend => None,
                };
                match request {
                    // SAFETY: the caller vouches for memory and ticket.
                    Some(request) => unsafe {
                        connection.pair().start(request, buffer, to_usize(op.length_bytes), ticket)
                    },
                    None => {
                        self.lent.push_back(ticket);
                        Ok(())
                    }
                }
            }
            (None, Action::Read | Action::Write) => Err(Errno(libc::ENOTCONN)),
            (
                _,
                Action::Trim | Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_),
            ) => Err(Errno(libc::EINVAL)),
        };
        match started {
            Ok(()) => self.started += 1,
            // SAFETY: the ticket was not used.
            Err(_) => unsafe { HandOver::cancel(ticket) },
        }
        started
    }

    fn outcome(&mut self, op: &Op, _part: &mut [u8], result: i64) -> Outcome {
        let task = self.connection.as_ref().map_or(Task::Lend, Connection::task);
        match (result, task) {
            // Completions of what was sent do not say how much that was.
            (0.., Task::Write | Task::Read | Task::Send) => Outcome::Done(op.length_bytes),
            _ => Outcome::from_result(result),
        }
    }

    fn wait(&mut self, ended: &HandOver, at_most: Duration) -> io::Result<bool> {
        self.answer()?;
        if let Some(connection) = &self.connection {
            connection.arm()?;
        }
        self.progress()?;
        if ended.has_ended() {
            return Ok(false);
        }
        let Some(connection) = &mut self.connection else { return Ok(false) };
        let was_woken = match connection.wait(at_most) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            waited => waited.map(|()| false)?,
        };
        if was_woken || signal::stop_requested().is_some() {
            self.woken_since.get_or_insert_with(Instant::now);
        }
        self.progress()?;
        if !ended.has_ended() {
            self.give_up();
        }
        Ok(was_woken)
    }

    fn poll(&mut self, _ended: &HandOver) -> io::Result<()> {
        // A job that never waits looks again without having started more.
        if self.answered_at.replace(self.started) == Some(self.started) {
            self.answer()?;
        }
        self.progress()
    }

    fn abandon(self: Box<Self>) {
        // Without its queue pair no request and no other end can reach the buffers.
        drop(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_receiver_takes_the_end_of_the_other_for_the_end_of_the_data() {
        let flushed = || Err(Errno(libc::ECONNRESET));
        assert_eq!(handed_over(flushed(), Task::Receive, true, false), 0);
        assert_eq!(handed_over(flushed(), Task::Receive, false, false), -i64::from(libc::ECONNRESET));
        assert_eq!(handed_over(flushed(), Task::Send, true, false), -i64::from(libc::ECONNRESET));
        assert_eq!(handed_over(flushed(), Task::Receive, true, true), -i64::from(libc::EINTR));
        assert_eq!(handed_over(Err(Errno(libc::ENOBUFS)), Task::Send, true, true), -i64::from(libc::ENOBUFS));
        assert_eq!(handed_over(Ok(4096), Task::Receive, false, false), 4096);
    }
}

//! nbd: network block devices, over TCP or a socket in the file system, with many requests in flight on one connection.
//!
//! Invariant: see `remote::nbd`. A job has one connection, whatever it calls its files: what it works on is the export
//! that `uri` names.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use fiord_nbd::{Address, Export};
use fiord_options::job::JobOptions;
use fiord_options::secret;
use fiord_options::value::SyncMode;
use fiord_plan::{
    EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse, Geometry, Need,
    NoGeometry, Op, Queueing, Tested,
};
use fiord_sys::errno::{Errno, error_text};

use crate::boxed::BoxedQueued;
use crate::contract::{
    Arena, ArenaAccess, Completion, Engine, NamedTarget, Outcome, QueuedEngine, Slot, Wait,
};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::local_completions::LocalCompletions;
use crate::remote::nbd::{self, Session};
use crate::remote::{Connection, Patience, Shared, reason};

/// Its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The address, as given.
    uri: Option<String>,
    /// Whether writes reach stable storage before they end.
    writes_through: bool,
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        Settings {
            uri: options.nbd.uri.as_ref().map(|uri| uri.0.clone()),
            writes_through: options.access.sync != SyncMode::None,
        }
    }

    /// Connects to the export.
    fn connect(&self) -> io::Result<(Connection, Export)> {
        let Some(uri) = &self.uri else {
            return Err(invalid("uri= is missing, such as uri=nbd://localhost:10809/EXPORT".to_string()));
        };
        let address = Address::parse(uri);
        let uri = secret::in_urls_of(uri);
        let address = address.map_err(|wrong| invalid(format!("uri={uri} {wrong}")))?;
        let (connection, export) = nbd::connect(&address).map_err(|error| {
            io::Error::other(format!("cannot use {} as {uri}: {}", address.host, reason(&error)))
        })?;
        if self.writes_through && !export.writes_through {
            return Err(invalid(format!(
                "the server of {uri} cannot write through its cache (FUA); leave sync= out"
            )));
        }
        Ok((connection, export))
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// The definition of the engine.
#[derive(Debug)]
pub struct Nbd;

/// Its tests, against nbdkit, whose plug-ins make the faults, and qemu-nbd.
const TESTS: &str = "tests/servers/cases/nbd.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_written_are_data_read_by_other_programs"),
    counts: Tested::By(TESTS, "counts_are_those_of_fio_and_of_the_log"),
    short: Tested::Never("a reply is whole, or an error"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "an_error_of_one_request_is_an_io_error_of_one_io"),
    gone: Tested::By(TESTS, "a_server_that_goes_away_ends_the_job_with_its_error"),
    stuck: Tested::By(TESTS, "a_server_that_does_not_answer_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "jobs_give_back_what_they_took"),
};

impl EngineDefinition for Nbd {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Named,
        geometry: Some(geometry),
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |_, errno| explain(errno),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random writes to a disk in the memory of nbdkit, which starts the command, and ends with it.",
            commands: "nbdkit -U - memory 64M --run '\n  \
                       fiord --name=example --ioengine=nbd --uri=\"$uri\" --rw=randwrite --bs=4k --iodepth=16 --size=16m'",
            needs: &[Need { what: "nbdkit (package nbdkit)", check: "nbdkit --version" }],
        }),
        ..EngineDescriptor::of(
            EngineName::Nbd,
            "network block devices (NBD), with or without TLS",
            Queueing::Queued,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let arena = setup.arena;
        let local = LocalCompletions::new(arena.count());
        let settings = settings.clone();
        let patience = Patience::default();
        let engine =
            NbdEngine { settings, session: Shared::default(), arena, local, unsubmitted: 0, patience };
        visitor.queued(Ok(BoxedQueued::new(engine)))
    }
}

/// What the server says of the export; the target's name means nothing to it.
fn geometry(settings: &EngineSettings, _target: &Path) -> Result<Geometry, NoGeometry> {
    let connected = settings.get::<Settings>().map(Settings::connect);
    match connected {
        Some(Ok((_, export))) => Ok(Geometry {
            size_bytes: Some(export.size_bytes),
            block_bytes: u64::from(export.block_bytes_min),
        }),
        Some(Err(error)) => {
            let is_misuse = error.kind() == io::ErrorKind::InvalidInput;
            let errno = if is_misuse { Errno::EINVAL } else { Errno(libc::EHOSTUNREACH) };
            Err(NoGeometry { errno, reason: error_text(&error) })
        }
        None => {
            Err(NoGeometry { errno: Errno::EINVAL, reason: "the settings are not this engine's".to_string() })
        }
    }
}

fn explain(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EINVAL => {
            "the server does not take requests of this size or alignment; nbdinfo shows its limits"
        }
        libc::EOPNOTSUPP => "the server does not offer this (trim, flush); nbdinfo shows what it does",
        libc::EROFS | libc::EPERM => "the server exports it read-only",
        libc::ECONNRESET | libc::EPIPE => "the server closed the connection; its log may say why",
        libc::ESHUTDOWN => "the server is shutting down",
        libc::EPROTO => "the server broke the protocol, and its connection is not used any more",
        libc::EINTR => "the server did not answer, and the job was asked to stop",
        _ => return None,
    })
}

/// The engine, set up.
#[derive(Debug)]
struct NbdEngine<'arena> {
    settings: Settings,
    /// Every target is the one export.
    session: Shared<Session>,
    arena: Arena<'arena>,
    local: LocalCompletions<'arena>,
    unsubmitted: u32,
    patience: Patience,
}

impl<'arena> Engine<'arena> for NbdEngine<'arena> {
    fn open(&mut self, _file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let NbdEngine { settings, session, arena, .. } = self;
        session.open(|| {
            let (connection, export) = settings.connect()?;
            if target.writable && export.read_only {
                return Err(io::Error::other("the server exports it read-only; use rw=read or rw=randread"));
            }
            Ok(Session::new(connection, export, settings.writes_through, arena.count()))
        })
    }

    fn detach(&mut self, _file: FileIndex) {
        self.session.close();
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> QueuedEngine<'arena> for NbdEngine<'arena> {
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        match self.session.get() {
            Some(session) => session.queue(op, slot, &mut self.local),
            None => self.local.push(slot, Outcome::Failed(Errno::EBADF)),
        }
        self.unsubmitted += 1;
        Ok(())
    }

    /// What the socket does not take now is sent by `reap`.
    fn submit(&mut self) -> io::Result<u32> {
        if let Some(session) = self.session.get() {
            session.push(&self.arena, &mut self.local);
        }
        Ok(std::mem::take(&mut self.unsubmitted))
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let NbdEngine { session, arena, local, patience, .. } = self;
        let Some(session) = session.get() else {
            local.drain(max, done);
            return Ok(());
        };
        let deadline = match wait {
            Wait::Poll | Wait::Block => None,
            Wait::For(time_ns) => Some(Instant::now() + Duration::from_nanos(time_ns)),
        };
        let wanted = min.min(max);
        session.advance(arena, local);
        let mut got = local.drain(max, done);
        while wait != Wait::Poll && got < wanted && session.in_flight() > 0 {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            match session.wait(left) {
                Ok(true) => patience.heard(),
                Ok(false) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => match patience.is_over() {
                    true => session.fail(Errno::EINTR, local),
                    false => return Ok(()),
                },
                Err(error) => return Err(error),
            }
            session.advance(arena, local);
            let ended = local.drain(max - got, done);
            if ended > 0 {
                patience.renew();
            }
            got += ended;
        }
        Ok(())
    }
}

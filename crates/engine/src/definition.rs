//! How an engine presents itself to the rest of the program: one descriptor, and how it is set up over an arena.
//!
//! Invariant: code that uses an engine is compiled for it by a [`Visitor`]; nothing here is consulted while a loop
//! runs.

use std::ffi::OsString;
use std::path::PathBuf;

use fiord_plan::files::Advice;
use fiord_plan::{Direction, EngineDescriptor, EngineSettings, Job, PlannedEngine};

use crate::contract::{Arena, QueuedEngine, SyncEngine};
use crate::setup_error::SetupError;

/// An engine, as the registry lists it.
pub trait EngineDefinition: 'static {
    /// Its own settings: those of a job that sets none by default.
    type Settings: Default + std::fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Its description.
    const DESCRIPTOR: &'static EngineDescriptor;

    /// Whether its operations depend on the position of an open file, which all threads share.
    const MOVES_FILE_POSITION: bool = false;

    /// Sets it up on the thread that will do the I/O, and passes it, or the error, to `visitor`.
    fn set_up<'a, V: Visitor<'a>>(settings: &Self::Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output;

    /// A job's choice of it, with these settings.
    fn planned(settings: Self::Settings) -> PlannedEngine {
        PlannedEngine { descriptor: Self::DESCRIPTOR, settings: EngineSettings::new(settings) }
    }
}

/// What an engine is set up for: a job, and the buffers that it uses.
#[derive(Debug)]
pub struct Setup<'job, 'arena> {
    /// The job.
    pub job: &'job JobOutline,
    /// Its buffers.
    pub arena: Arena<'arena>,
}

/// Code that runs on an engine once it is set up: a loop, a test.
pub trait Visitor<'arena> {
    /// Its result.
    type Output;

    /// Runs on an engine that ends each operation before it returns.
    fn synchronous<E: SyncEngine<'arena>>(self, engine: Result<E, SetupError>) -> Self::Output;

    /// Runs on an engine that keeps operations in flight.
    fn queued<E: QueuedEngine<'arena>>(self, engine: Result<E, SetupError>) -> Self::Output;
}

/// The properties of a job that an engine may depend on, in addition to its own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOutline {
    /// Its name.
    pub name: OsString,
    /// How long it runs, if time ends it.
    pub runtime_ns: Option<u64>,
    /// Files it may have open at once.
    pub files: usize,
    /// Whether its offsets are random.
    pub random: bool,
    /// The access pattern announced to the kernel.
    pub advice: Advice,
    /// Whether it bypasses the page cache.
    pub direct: bool,
    /// The priorities of its I/Os, as the kernel packs them, by their numbers.
    pub priorities: Vec<u16>,
    /// The name of its first file.
    pub target: PathBuf,
    /// Which clone of its section it is, from 0.
    pub clone: u32,
    /// Its number among all jobs of the run, from 0.
    pub number: u32,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it trims.
    pub trims: bool,
    /// Its largest block, in bytes.
    pub block_bytes_max: u64,
    /// Whether what it writes is verified.
    pub verifies: bool,
    /// Whether each write has contents of its own, apart from the small changes of `scramble_buffers`.
    pub renews_contents: bool,
}

impl JobOutline {
    /// Of a job.
    pub fn of(job: &Job) -> JobOutline {
        JobOutline {
            name: job.name.clone(),
            runtime_ns: job.limits.runtime_ns,
            files: job.files.list.len(),
            random: job.access.random,
            advice: job.files.advice,
            direct: job.files.direct,
            priorities: job.io_priorities.values.clone(),
            target: job.files.list.first().map(|file| file.path.clone()).unwrap_or_default(),
            clone: job.clone,
            number: job.number,
            reads: job.access.pattern.includes(Direction::Read),
            trims: job.issues(Direction::Trim),
            block_bytes_max: job.buffers.bytes,
            verifies: job.verification.is_some(),
            renews_contents: job.buffers.dedupe.is_some() || job.buffers.fill.is_renewed(),
        }
    }

    /// Of a job with this many files and default settings.
    pub fn plain(files: usize) -> JobOutline {
        JobOutline {
            name: OsString::new(),
            runtime_ns: None,
            files,
            random: false,
            advice: Advice::None,
            direct: false,
            priorities: vec![0],
            target: PathBuf::new(),
            clone: 0,
            number: 0,
            reads: false,
            trims: false,
            block_bytes_max: 0,
            verifies: false,
            renews_contents: false,
        }
    }
}

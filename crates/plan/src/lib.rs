//! Settings and host facts to an immutable `Plan`: jobs expanded, every default and conflict resolved, or every
//! error at once.
//!
//! Invariant: no system call happens here; what a plan needs to know of the machine it is given as `Facts`.

pub mod access;
mod build;
pub mod engine;
pub mod facts;
pub mod files;
pub mod job;
pub mod logs;
pub mod op;
pub mod pace;
pub mod presentation;
mod rules;
mod seed;
pub mod touch;

pub use access::{Access, Barriers, BlockSizes, Direction, FileService, Pattern, PerDirection, Sequencer};
pub use build::{Refusal, build, forbidden_by_readonly, needs};
pub use engine::{Depth, EngineSettings, IoUring, Libaio, Mmap, Pvsync2};
pub use facts::{Facts, Needs, PathFacts, RunSettings};
pub use files::{FileKind, FilePlan, Files, SyncMode};
pub use job::{ClockSource, ExitWhat, Job, Plan, Unplannable};
pub use logs::{LogFile, LogKind, Logs, PriorityColumn, WindowValue};
pub use op::{Action, FileIndex, Op};
pub use pace::{Pace, Think};
pub use presentation::{Presentation, RateUnit, Unified};
pub use touch::{Deed, Touch};

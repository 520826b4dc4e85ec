//! Settings and host facts to an immutable `Plan`: jobs expanded, every default and conflict resolved, or every
//! error at once.
//!
//! Invariant: no system call happens here; what a plan needs to know of the machine it is given as `Facts`.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod access;
mod build;
pub mod engine;
pub mod engine_tests;
pub mod example;
pub mod facts;
pub mod files;
pub mod job;
pub mod logs;
pub mod op;
pub mod pace;
pub mod path_change;
mod placement;
pub mod presentation;
pub mod priority;
pub mod replay;
mod seed;
pub mod steady;
#[cfg(test)]
mod testing;
mod trigger;
mod trim_ranges;
pub mod verification;
pub mod zoned;

pub use fiord_options::{Spec, shown};

pub use access::{
    Access, AccessZone, Barriers, BlockSizes, Direction, FileService, Pattern, PerDirection,
    RandomDistribution, Sequencer, Sprandom, StridedZones, ZoneSize,
};
pub use build::{Refusal, build, forbidden_by_readonly, log_path, merges, needs, with_ancestors};
pub use fiord_options::value::{DebugChannel, EngineName};

pub use engine::{
    AskGeometry, Cycle, Depth, EngineDescriptor, EngineOutput, EngineSettings, Engines, FileUse, Geometry,
    MissingSetting, NameCall, NamePurpose, NoGeometry, PlannedEngine, Queueing,
};
pub use engine_tests::{EngineTest, EngineTests, Tested};
pub use example::{Example, Need};
pub use facts::{Facts, GeometryNeed, Needs, PathFacts, RunSettings};
pub use files::{FileKind, FileLock, FilePlan, Files, SyncMode};
pub use job::{ClockSource, ExitWhat, Job, Plan, Unplannable};
pub use logs::{LogFile, LogKind, Logs, WindowValue};
pub use op::{Action, FileIndex, Op, Purpose, PurposeRules};
pub use pace::{Flow, LatencyTarget, Pace, Think};
pub use path_change::{ChangeKind, Hook, PathChange};
pub use placement::{PlacementChoice, PlacementKind, PlacementUse};
pub use presentation::{Presentation, RateUnit, Unified};
pub use priority::{IoPriorities, PriorityRequest, PriorityRequests, PriorityShare};
pub use replay::{Replay, TraceFacts, TraceNeed, TracePart};
pub use seed::draw;
pub use steady::{Steady, SteadyCriterion, SteadyLimit, SteadyMeasure};
pub use trigger::Trigger;
pub use trim_ranges::TrimRange;
pub use verification::{Backlog, Trims, Verification, state_file_name};
pub use zoned::{ZoneSkip, ZonedAccess};

//! The kinds of values options take: each a type that parses what fio parses and prints what fio would read.
//!
//! Invariant: for every value `v`, parsing `v.print()` returns `v`, and no number has a special meaning.

mod choice;
mod contract;
mod debug;
mod direction;
mod engine_name;
mod errors;
pub(crate) mod expression;
mod file_service;
mod floats;
mod kind;
mod memory;
mod metrics;
mod mode;
mod number;
mod number_set;
mod nvme_writes;
mod output;
mod pattern;
mod priority_split;
mod protection_checks;
mod random_distribution;
mod replay_skip;
mod scan;
mod size;
mod skew;
mod split;
mod steady_state;
mod text;
mod time;

#[cfg(test)]
mod tests;

pub use choice::*;
pub use contract::{Choice, KbBase, Note, Reading, Takes, Value};
pub use debug::{DebugChannel, DebugSetting, DebugSettings};
pub use direction::PerDirection;
pub use engine_name::{EngineName, NamedEngine, Refusal};
pub use errors::IgnoreErrors;
pub use file_service::FileService;
pub use floats::FloatList;
pub use kind::ValueKind;
pub use memory::{Memory, MemoryKind, SyncFileRange};
pub use metrics::MetricsDestination;
pub use mode::RwMode;
pub use number::Bytes;
pub(crate) use number::behind_empty_first;
pub use number_set::{ColonList, NumaNodes, NumaPolicy, NumberSet};
pub use nvme_writes::NvmeWrites;
pub use output::{OutputFormat, OutputFormats};
pub use pattern::{BufferPattern, PatternPart, VerifyPattern};
pub use priority_split::{PriorityEntry, PrioritySplit};
pub use protection_checks::ProtectionChecks;
pub use random_distribution::{RandomDistribution, RandomDistributions, ZoneBytes, ZoneShare};
pub use replay_skip::ReplaySkip;
pub use size::{BlockRange, Size, SizeRange};
pub use skew::Skew;
pub use split::{BlockSplit, SplitEntry};
pub use steady_state::{SteadyCriterion, SteadyLimit, SteadyMeasure, steady_word};
pub use text::{Flag, OptionalText, Switch, Text, Utf8Text};
pub use time::{Micros, Period, Seconds, StartDelay};

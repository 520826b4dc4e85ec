//! Results side by side: the change of each figure, how sure it is, and what follows from it in a sentence.
//!
//! Invariant: pure. Nothing is called different that noise explains, nor the same that noise may hide a difference of; results of different workloads are shown beside each other and not judged.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod aspect;
pub mod compared;
pub mod comparison;
pub mod condition;
mod estimate;
pub mod figure;
pub mod gate;
pub mod hosts_condition;
pub mod margin;
pub mod outcome;
pub mod page;
mod sentence;
pub mod side;
pub mod study_runs;

pub use aspect::Aspect;
pub use compared::Comparison;
pub use comparison::{Settings, compare};
pub use condition::Condition;
pub use figure::Figure;
pub use hosts_condition::HostsCondition;
pub use margin::Margin;
pub use outcome::{Decision, Outcome};
pub use side::{NamedRun, Side};

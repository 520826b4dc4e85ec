//! The one table of options, and their declarations.
//!
//! Invariant: this file declares and re-exports; the options are declared in `job/`, `program.rs` and `engine/`.

pub mod engine;
mod find;
pub mod job;
pub mod program;
pub(crate) mod set;
mod spec;

pub use find::{Lookup, engine_specs, find_command_line_option, find_job_option, job_specs, program_specs};
pub use set::{Applied, NotRead, OptionSet};
pub use spec::{Scope, Spec, Status};

//! Text to settings: fio's command line and job files, and the one table of options both are read by.
//!
//! Invariant: nothing here touches a file system, a clock or a thread; what a reader needs from outside (the text
//! of an included file, an environment variable, the number of CPUs) it is given as a value or a function.

pub mod cli;
pub mod engine;
pub mod expand;
pub mod job;
pub mod jobfile;
pub mod lookup;
pub mod place;
pub mod program;
pub mod reference;
pub mod resolve;
pub mod section;
pub mod showcmd;
pub mod spec;
pub mod suggest;
pub mod table;
#[cfg(test)]
mod testing;
pub mod value;
pub mod write;

pub use place::{Place, Problem, Severity, Source};
pub use resolve::Given;
pub use section::{Section, Setting};
pub use spec::{Choice, Scope, Spec, Status, Takes};
pub use table::Lookup;

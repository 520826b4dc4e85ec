//! Text to settings: fio's command line and job files, and the one table of options both are read by.
//!
//! Invariant: nothing here touches a file system, a clock or a thread; what a reader needs from outside (the text
//! of an included file, an environment variable, the number of CPUs) it is given as a value or a function.

pub mod place;
pub mod section;
pub mod spec;

pub use place::{Place, Problem, Severity, Source};
pub use section::{Section, Setting};
pub use spec::{Scope, Spec, Status, Takes};

//! Text to settings: fio's command line and job files, and the one table of options for both.
//!
//! Invariant: nothing here touches a file system, a clock or a thread; what is needed from outside (the text of an
//! included file, an environment variable, the number of CPUs) is passed in as a value or a function.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod bytes;
pub mod config;
pub mod grammar;
pub mod place;
pub mod problem;
pub mod reference;
pub mod resolve;
pub mod secret;
pub mod section;
pub mod shown;
pub mod suggest;
pub mod table;
pub mod toml;
pub mod value;

mod arithmetic;

pub use grammar::{cli, clients, environment, expand, lookup, masked, showcmd, write};
pub use place::{Origin, Place};
pub use problem::{Problem, ProblemKind, ProblemLevel, without_repeats};
pub use resolve::{Given, Resolver, resolve_job, resolve_program};
pub use section::{Globals, Section, Setting, change_settings};
pub use table::{Lookup, Scope, Spec, Status, engine, job, program};
pub use value::{Choice, Takes};

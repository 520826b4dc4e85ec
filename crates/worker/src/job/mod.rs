//! One job on its own thread, from setup to its report.
//!
//! Invariant: everything here affects only the calling thread and its own job.

pub(crate) mod assembly;
pub(crate) mod command;
pub(crate) mod debug_source;
pub(crate) mod engines;
pub(crate) mod locked;
mod privileges;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod timer;
pub(crate) mod verify_files;
mod verify_threads;
pub(crate) mod worker;

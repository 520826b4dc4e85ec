//! The private options of the engines: one file per family, the same shape in each.
//!
//! Invariant: an option stands here only if it means something to the engines named by its scope and to no other.

use crate::spec::Spec;

/// The options of all engines, one slice per set.
pub fn sets() -> &'static [&'static [Spec]] {
    &[IoUring::SPECS]
}

use crate::spec::Scope;
use crate::table::options;
use crate::value::Flag;

options! {
    /// Options of `io_uring`.
    pub struct IoUring, scope Scope::Engine(&["io_uring", "io_uring_cmd"]);

    "Engine" {
        /// Register the I/O buffers with the kernel once.
        fixedbufs: Flag;
    }
}

//! A file system with one file whose reads take as long as the test says, or that stands still once.
//!
//! Invariant: a read takes at least as long as given; the server is one thread, so that everything else waits as well.

use std::time::{Duration, Instant};

use super::Dir;
use super::fuse::{Fuse, Kind, Reply};

/// The mounted file system; its file is `stalling/data`.
pub struct Stalling {
    _mount: Fuse,
}

/// A file system that stands still once.
#[derive(Clone, Copy)]
pub struct Stall {
    /// Size of the file.
    pub bytes: u64,
    /// The read that takes long, counted from 0.
    pub at_read: u64,
    /// How long.
    pub lasts: Duration,
}

impl Stalling {
    /// Mounts it in a directory. Needs root and the kernel's FUSE.
    pub fn mount(directory: &Dir, stall: Stall) -> Result<Stalling, String> {
        let mut reads = 0;
        let wait = move |_| {
            reads += 1;
            if reads == stall.at_read + 1 { stall.lasts } else { Duration::ZERO }
        };
        Stalling::waiting(directory, stall.bytes, wait)
    }

    /// Mounts one whose reads take as long as `wait` says, which is given the time since the first read.
    pub fn waiting(
        directory: &Dir,
        bytes: u64,
        mut wait: impl FnMut(Duration) -> Duration + Send + 'static,
    ) -> Result<Stalling, String> {
        let mut begun = None;
        let mount = Fuse::mount(directory, "stalling", bytes, false, move |asked| match asked.kind {
            Kind::Read => Reply::After(wait(begun.get_or_insert_with(Instant::now).elapsed())),
            Kind::Write | Kind::Allocate | Kind::Resize => Reply::Whole,
        })?;
        Ok(Stalling { _mount: mount })
    }
}

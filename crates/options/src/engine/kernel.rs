//! Private options of the engines on Linux's older interfaces.
//!
//! Invariant: one struct per engine, named after it.

use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

options! {
    /// Options of `libaio`.
    pub struct Libaio, scope Scope::Engine(&["libaio"]);

    "Engine libaio" {
        /// Take completions from the ring in memory, without a system call.
        #[ignored("completions are always taken from the ring in memory, where the kernel has one")]
        userspace_reap: Flag;
        /// Fail with EAGAIN instead of waiting.
        nowait: bool, in 0..=1;
        /// Use the vectored commands.
        libaio_vectored: bool, in 0..=1;
        /// Share of I/Os with a high priority, in percent.
        #[pending("priorities are set per worker, not per I/O")]
        cmdprio_percentage: PerDirection<u32> = 0, in 0..=100;
        /// Priority class of those I/Os.
        #[dormant("cmdprio_*")]
        cmdprio_class: PerDirection<u32>, in 1..=3;
        /// Priority hint of those I/Os.
        #[dormant("cmdprio_*")]
        cmdprio_hint: PerDirection<u32>, in 0..=1023;
        /// Priority of those I/Os within their class.
        #[dormant("cmdprio_*")]
        cmdprio: PerDirection<u32>, in 0..=7;
        /// Share of I/Os with a high priority, by block size.
        #[pending("priorities are set per worker, not per I/O")]
        cmdprio_bssplit: Text;
    }
}

options! {
    /// Options of `pvsync2`.
    pub struct Pvsync2, scope Scope::Engine(&["pvsync2"]);

    "Engine pvsync2" {
        /// Poll for completions instead of waiting for interrupts.
        hipri: Flag;
        /// Share of I/Os that `hipri` counts for, in percent.
        hipri_percentage: u32 = 100, in 0..=100;
        /// Drop pages from the page cache when the I/O is done.
        uncached: u32;
        /// Fail with EAGAIN instead of waiting.
        nowait: bool, in 0..=1;
    }
}

options! {
    /// Options of `mmap`.
    pub struct Mmap, scope Scope::Engine(&["mmap"]);

    "Engine mmap" {
        /// Ask for transparent huge pages.
        thp: u32;
    }
}

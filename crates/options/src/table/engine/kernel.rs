//! Private options of the engines on Linux's older interfaces.
//!
//! Invariant: one struct per engine, named after it; options that engines share are a struct named after their subject.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `libaio`.
    pub struct Libaio, scope Scope::Engine(&[EngineName::Libaio]);

    "Engine libaio" {
        /// Take completions from the ring in memory, without a system call.
        #[ignored("completions are always taken from the ring in memory, where the kernel has one")]
        userspace_reap: Flag;
        /// Fail with EAGAIN instead of blocking.
        nowait: bool, in 0..=1;
        /// Use the vectored commands.
        libaio_vectored: bool, in 0..=1;
    }
}

options! {
    /// Priorities of single I/Os, the same for all engines that have them.
    pub struct IoPriorities, scope Scope::Engine(&[EngineName::IoUring, EngineName::IoUringCmd, EngineName::Libaio]);

    "Engines io_uring and libaio" {
        /// Share of the reads and writes that have a priority of their own, in percent.
        ///
        /// One for both, or one each. Latencies are reported for each priority. The device must support priorities,
        /// and the real-time class needs the rights of root.
        ///
        /// Example: `cmdprio_percentage=20,0` gives a fifth of the reads the highest priority.
        cmdprio_percentage: PerDirection<u32> = 0, in 0..=100;
        /// Priority class of those I/Os; the real-time class by default.
        cmdprio_class: PerDirection<u32>, in 1..=3;
        /// Priority hint of those I/Os, for devices that support command duration limits (Linux 6.5).
        cmdprio_hint: PerDirection<u32>, in 0..=1023;
        /// Priority of those I/Os within their class; 0, the highest, by default.
        cmdprio: PerDirection<u32>, in 0..=7;
        /// Shares of the I/Os of each block size that have a priority of their own, instead of `cmdprio_percentage`.
        ///
        /// `SIZE/PERCENT`, or `SIZE/PERCENT/CLASS/LEVEL` and optionally `/HINT`, separated by colons; one list for reads
        /// and writes, or one each.
        ///
        /// Example: `cmdprio_bssplit=4k/100:64k/10/2/7`.
        cmdprio_bssplit: PerDirection<PrioritySplit>;
    }
}

options! {
    /// Options of `pvsync2`.
    pub struct Pvsync2, scope Scope::Engine(&[EngineName::Pvsync2]);

    "Engine pvsync2" {
        /// Poll for completions instead of waiting for interrupts.
        hipri: Flag;
        /// Share of I/Os that `hipri` applies to, in percent.
        hipri_percentage: u32 = 100, in 0..=100;
        /// Drop pages from the page cache when the I/O is done.
        uncached: u32;
        /// Fail with EAGAIN instead of blocking.
        nowait: bool, in 0..=1;
    }
}

options! {
    /// Options of `mmap`.
    pub struct Mmap, scope Scope::Engine(&[EngineName::Mmap]);

    "Engine mmap" {
        /// Ask for transparent huge pages.
        thp: u32;
    }
}

//! The generic timer of 64-bit ARM: one counter of the whole system, at a rate that it states.
//!
//! Invariant: a reading is behind everything that the program's flow has depended on before it.
//!
//! The architecture demands that the counter runs at a constant rate in all states of the processors and that all of them
//! see the same one, so there is nothing to ask the kernel. Where a processor has an erratum of its counter, or the kernel
//! keeps it for itself, the instruction traps, and the kernel reads it instead.

use std::arch::asm;

use super::contract::{Counter, CounterRefusal};

/// The virtual counter (`CNTVCT_EL0`), which the kernel's monotonic clock counts by as well.
pub(in crate::clock) struct GenericTimer;

impl Counter for GenericTimer {
    const NAME: &'static str = "generic timer";

    /// A processor may read the counter before instructions that precede it in the program, which `isb` prevents.
    /// `CNTVCTSS_EL0` needs none, but newer processors alone have it, so that each reading would have to choose.
    #[inline]
    fn ticks() -> u64 {
        let ticks: u64;
        // SAFETY: Linux lets user space read the counter, or reads it when the instruction traps; nothing is written but the
        // register of the result.
        unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
        ticks
    }

    #[inline]
    fn wait_for_loads() {
        // SAFETY: a barrier, which every processor has.
        unsafe { asm!("dsb ishld", options(nostack, preserves_flags)) };
    }

    fn warranted() -> Result<(), CounterRefusal> {
        Ok(())
    }

    /// 0 is what firmware leaves that has not set it.
    fn stated_hz() -> Option<u64> {
        let hz: u64;
        // SAFETY: user space may read the register wherever it may read the counter; only that of the result is written.
        unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
        (hz > 0).then_some(hz)
    }
}

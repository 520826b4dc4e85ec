//! The time stamp counter of x86-64.
//!
//! Invariant: warranted only if the processor guarantees a constant rate in all its states and the kernel has not marked it
//! unstable.
//!
//! That the counters of all processors agree is the kernel's finding: it tests each processor against another when it
//! brings it up, watches the counter ever after, and no longer offers it as a clock source when it fails.

use std::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

use super::contract::{Counter, CounterRefusal};

/// One counter per processor.
pub(in crate::clock) struct TimeStampCounter;

impl Counter for TimeStampCounter {
    const NAME: &'static str = "time stamp counter";

    #[inline]
    fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has the instruction; Linux leaves it to user space unless a thread forbids it to
        // itself (PR_SET_TSC), which nothing here does.
        unsafe { _rdtsc() }
    }

    #[inline]
    fn wait_for_loads() {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _mm_lfence() }
    }

    fn warranted() -> Result<(), CounterRefusal> {
        if !invariant() {
            return Err(CounterRefusal::NotInvariant(Self::NAME));
        }
        const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
        match std::fs::read_to_string(SOURCES) {
            Ok(sources) if !sources.split_whitespace().any(|source| source == "tsc") => {
                Err(CounterRefusal::DistrustedByKernel(Self::NAME))
            }
            // A container may hide the file; then the processor's guarantee and the calibration suffice.
            _ => Ok(()),
        }
    }

    fn stated_hz() -> Option<u64> {
        // Hypervisors and firmware often leave the leaf of the rate empty, or state the nominal one.
        None
    }
}

/// Whether the processor guarantees a constant rate in all its states.
#[allow(unused_unsafe, reason = "the oldest Rust that compiles this has the function as unsafe")]
fn invariant() -> bool {
    const HIGHEST: u32 = 0x8000_0000;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |number| unsafe { __cpuid(number) };
    leaf(HIGHEST).eax >= POWER_MANAGEMENT && leaf(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

//! What a processor's counter must offer to be a clock, and why one is none.
//!
//! Invariant: an implementation reads and says what its processor states; whether that is to be believed is decided above it.

use std::fmt;

/// The counter of a kind of processor.
pub(in crate::clock) trait Counter {
    /// What its manual calls it.
    const NAME: &'static str;

    /// Its value. No reading is before one that the same thread took earlier.
    fn ticks() -> u64;

    /// Keeps the next reading behind all loads before this.
    fn wait_for_loads();

    /// Whether processor and kernel warrant a constant rate.
    fn warranted() -> Result<(), CounterRefusal>;

    /// Its rate in Hz, where the processor states one.
    fn stated_hz() -> Option<u64>;
}

/// Why the counter cannot be used as a clock here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterRefusal {
    /// fiord reads no counter of processors of this architecture.
    #[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    NoCounter,
    /// The processor does not guarantee a constant rate.
    NotInvariant(&'static str),
    /// The kernel does not offer it as a clock source: it has found it unstable.
    DistrustedByKernel(&'static str),
    /// Two calibrations differed.
    Unsteady {
        /// The name of the counter.
        counter: &'static str,
        /// The difference in parts per million.
        apart_ppm: u64,
    },
}

impl fmt::Display for CounterRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            #[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
            CounterRefusal::NoCounter => {
                write!(f, "fiord knows no counter of {} processors", std::env::consts::ARCH)
            }
            CounterRefusal::NotInvariant(counter) => write!(f, "the processor's {counter} is not invariant"),
            CounterRefusal::DistrustedByKernel(counter) => {
                write!(f, "the kernel does not offer the {counter} as a clock source")
            }
            CounterRefusal::Unsteady { counter, apart_ppm } => {
                write!(f, "the {counter}'s rate varied by {apart_ppm} ppm while it was measured")
            }
        }
    }
}

impl std::error::Error for CounterRefusal {}

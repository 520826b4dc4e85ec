//! The processor's time stamp counter as a clock: one instruction, one multiplication and one shift a reading.
//!
//! Invariant: a `TscClock` exists only if the processor guarantees a constant rate in all its states, the kernel has not
//! marked the counter unstable, and two calibrations against the monotonic clock agreed.
//!
//! The rate is measured once per process by pairs of readings of both clocks, each taken as close together as the
//! machine allows. They are taken during setup before the first I/O (`TscClock::note`), so that the time between them is
//! spent on work. The uncertainty of the rate follows from how close together the readings were: only if setup was too
//! short for the required precision does the calibration wait for the rest, a fraction of a millisecond.
//!
//! That the counters of all processors agree is the kernel's finding: it tests each processor against another when it
//! brings it up, watches the counter ever after, and no longer offers it as a clock source when it fails. On top of that
//! each worker compares the counter where it starts with the monotonic clock (`TscClock::agrees_here`).

use super::{Clock, monotonic_ns};
use std::fmt;
use std::sync::OnceLock;

/// Nanoseconds per tick are kept as a whole number of these fractions.
const SHIFT: u32 = 32;

/// How far the rates of the two halves may differ, in parts per million, before the counter is distrusted.
const TOLERANCE_PPM: u64 = 500;

/// The permitted uncertainty of the rate of one half: two halves of a steady counter are then within the tolerance.
const HALF_OPEN_PPM: u64 = TOLERANCE_PPM / 2;

/// The permitted uncertainty of the rate: the worst case, several times the typical one.
const OPEN_PPM: u64 = 100;

/// Where the monotonic clock takes microseconds to read, readings are as good as they get after this long.
const CALIBRATION_NS_MAX: u64 = 5_000_000;

/// The permitted difference between the counters of two processors.
const APART_NS_MAX: u64 = 1000;

/// The first readings of this process, in the order they were taken.
static NOTED: [OnceLock<Pair>; 2] = [const { OnceLock::new() }; 2];

/// The counter, with what turns it into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct TscClock {
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds per tick, times 2^SHIFT.
    mult: u64,
}

impl Clock for TscClock {
    const RUNNING: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        self.ns_of(ticks())
    }
}

/// Why the counter cannot be used as a clock here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TscRefusal {
    /// Not supported on this architecture.
    NoCounter,
    /// The processor does not guarantee a constant rate (`invariant TSC`).
    NotInvariant,
    /// The kernel does not offer it as a clock source: it has found it unstable.
    DistrustedByKernel,
    /// Two calibrations differed by this many parts per million.
    Unsteady {
        /// The difference.
        apart_ppm: u64,
    },
}

impl fmt::Display for TscRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TscRefusal::NoCounter => f.write_str("this processor has no time stamp counter"),
            TscRefusal::NotInvariant => f.write_str("the processor's time stamp counter is not invariant"),
            TscRefusal::DistrustedByKernel => {
                f.write_str("the kernel does not offer the time stamp counter as a clock source")
            }
            TscRefusal::Unsteady { apart_ppm } => {
                write!(f, "the time stamp counter's rate varied by {apart_ppm} ppm while it was measured")
            }
        }
    }
}

impl std::error::Error for TscRefusal {}

impl TscClock {
    /// Takes a reading for the calibration, in a microsecond: first at the start of the process, then before `shared`,
    /// which otherwise takes the readings itself.
    pub fn note() {
        if let Some(next) = NOTED.iter().find(|noted| noted.get().is_none()) {
            let _ = next.set(Pair::read());
        }
    }

    /// This process's clock. The first call completes the calibration; its result is kept.
    pub fn shared() -> Result<TscClock, TscRefusal> {
        static CLOCK: OnceLock<Result<TscClock, TscRefusal>> = OnceLock::new();
        *CLOCK.get_or_init(|| {
            supported()?;
            let start = *NOTED[0].get_or_init(Pair::read);
            let middle = *NOTED[1].get_or_init(|| Pair::middle(start));
            // This thread may have been preempted at the wrong moment.
            from_pairs(start, middle, Pair::end(start, middle)).or_else(|_| {
                let start = Pair::read();
                let middle = Pair::middle(start);
                from_pairs(start, middle, Pair::end(start, middle))
            })
        })
    }

    /// Whether the counter of the processor that this thread runs on agrees with the monotonic clock, and by that with
    /// the counter that was calibrated. Takes a microsecond.
    pub fn agrees_here(&self) -> bool {
        self.agrees(Pair::read())
    }

    fn agrees(&self, here: Pair) -> bool {
        let since_ns = here.ns.saturating_sub(self.base_ns);
        let drift_ns = (u128::from(since_ns) * u128::from(TOLERANCE_PPM) / 1_000_000) as u64;
        let width_ns = ((u128::from(here.width) * u128::from(self.mult)) >> SHIFT) as u64;
        here.ticks >= self.base_ticks
            && self.ns_of(here.ticks).abs_diff(here.ns) <= APART_NS_MAX + width_ns + drift_ns
    }

    /// The counter's rate in kHz.
    pub fn frequency_khz(&self) -> u64 {
        ((1_000_000_u128 << SHIFT) / u128::from(self.mult)) as u64
    }

    #[inline]
    fn ns_of(&self, ticks: u64) -> u64 {
        let since = u128::from(ticks.wrapping_sub(self.base_ticks));
        self.base_ns + ((since * u128::from(self.mult)) >> SHIFT) as u64
    }
}

/// Both clocks, read as one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    ns: u64,
    /// Ticks during which the other clock was read: the error of `ticks` is at most half of them.
    width: u64,
}

impl Pair {
    /// The closest of several readings: the one during which the counter moved least.
    fn read() -> Pair {
        const TRIES: usize = 24;
        let mut best = Pair { ticks: 0, ns: 0, width: u64::MAX };
        for _ in 0..TRIES {
            let before = ticks();
            let ns = monotonic_ns();
            let width = ticks().wrapping_sub(before);
            if width < best.width {
                best = Pair { ticks: before.wrapping_add(width / 2), ns, width };
            }
        }
        best
    }

    /// A reading far enough after `start` to be the middle of a calibration.
    fn middle(start: Pair) -> Pair {
        Pair::read_until(start, |pair| open_ppm(start, pair) <= HALF_OPEN_PPM)
    }

    /// A reading far enough after `start` and `middle` to be the end of a calibration.
    fn end(start: Pair, middle: Pair) -> Pair {
        Pair::read_until(middle, |pair| {
            open_ppm(middle, pair) <= HALF_OPEN_PPM && open_ppm(start, pair) <= OPEN_PPM
        })
    }

    fn read_until(since: Pair, is_good: impl Fn(Pair) -> bool) -> Pair {
        loop {
            let pair = Pair::read();
            if is_good(pair) || pair.ns.saturating_sub(since.ns) >= CALIBRATION_NS_MAX {
                return pair;
            }
        }
    }
}

/// The maximum error of the rate between two readings, in parts per million.
fn open_ppm(from: Pair, to: Pair) -> u64 {
    let open = (from.width / 2).saturating_add(to.width / 2).saturating_mul(1_000_000);
    open.checked_div(to.ticks.wrapping_sub(from.ticks)).unwrap_or(u64::MAX)
}

fn from_pairs(start: Pair, middle: Pair, end: Pair) -> Result<TscClock, TscRefusal> {
    let (first, second) = (mult_between(start, middle), mult_between(middle, end));
    let apart_ppm = first.abs_diff(second).saturating_mul(1_000_000) / first.min(second).max(1);
    if apart_ppm > TOLERANCE_PPM {
        return Err(TscRefusal::Unsteady { apart_ppm });
    }
    Ok(TscClock { base_ticks: end.ticks, base_ns: end.ns, mult: mult_between(start, end) })
}

/// Nanoseconds per tick between two readings, times 2^SHIFT; 0 where the counter did not move.
fn mult_between(from: Pair, to: Pair) -> u64 {
    let ns = u128::from(to.ns - from.ns) << SHIFT;
    let ticks = u128::from(to.ticks.wrapping_sub(from.ticks));
    ns.checked_div(ticks).map_or(0, |mult| mult as u64)
}

fn supported() -> Result<(), TscRefusal> {
    if !cfg!(target_arch = "x86_64") {
        return Err(TscRefusal::NoCounter);
    }
    if !invariant() {
        return Err(TscRefusal::NotInvariant);
    }
    const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    match std::fs::read_to_string(SOURCES) {
        Ok(sources) if !sources.split_whitespace().any(|source| source == "tsc") => {
            Err(TscRefusal::DistrustedByKernel)
        }
        // A container may hide the file; then the processor's guarantee and the calibration suffice.
        _ => Ok(()),
    }
}

/// Whether the processor guarantees a constant rate in all its states.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "the oldest Rust that compiles this has the function as unsafe")]
fn invariant() -> bool {
    use std::arch::x86_64::__cpuid;
    const HIGHEST: u32 = 0x8000_0000;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    // SAFETY: every x86-64 processor has the instruction.
    let leaf = |number| unsafe { __cpuid(number) };
    leaf(HIGHEST).eax >= POWER_MANAGEMENT && leaf(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn invariant() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; Linux leaves it to user space unless a thread forbids it to
    // itself (PR_SET_TSC), which nothing here does.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_turned_into_nanoseconds_exactly() {
        // 2 GHz: half a nanosecond a tick.
        let clock = TscClock { base_ticks: 1000, base_ns: 5_000_000_000, mult: 1 << (SHIFT - 1) };
        assert_eq!(clock.ns_of(1000), 5_000_000_000);
        assert_eq!(clock.ns_of(3000), 5_000_001_000);
        let year_ticks = 365 * 86_400 * 2_000_000_000;
        assert_eq!(
            clock.ns_of(1000 + year_ticks),
            5_000_000_000 + year_ticks / 2,
            "a year does not overflow"
        );
        assert_eq!(clock.frequency_khz(), 2_000_000);
    }

    #[test]
    fn halves_that_disagree_are_refused() {
        let pair = |ticks, ns| Pair { ticks, ns, width: 0 };
        let steady = from_pairs(pair(0, 0), pair(2_000_000, 1_000_000), pair(4_000_000, 2_000_000)).unwrap();
        assert_eq!(steady.frequency_khz(), 2_000_000);
        let jumped = from_pairs(pair(0, 0), pair(2_000_000, 1_000_000), pair(4_100_000, 2_000_000));
        assert!(
            matches!(jumped, Err(TscRefusal::Unsteady { apart_ppm }) if apart_ppm > 40_000),
            "{jumped:?}"
        );
        let stopped = from_pairs(pair(7, 0), pair(7, 1_000_000), pair(2_000_000, 2_000_000));
        assert!(stopped.is_err(), "{stopped:?}");
    }

    #[test]
    fn readings_are_good_once_they_are_far_enough_apart_for_their_width() {
        let pair = |ticks, width| Pair { ticks, ns: 0, width };
        assert_eq!(open_ppm(pair(0, 100), pair(1_000_000, 100)), 100);
        assert_eq!(open_ppm(pair(0, 100), pair(1_000_000, 300)), 200);
        assert_eq!(
            open_ppm(pair(5, 100), pair(5, 100)),
            u64::MAX,
            "a counter that stands still says nothing"
        );
    }

    #[test]
    fn a_processor_with_a_different_counter_is_detected() {
        // 2 GHz.
        let clock = TscClock { base_ticks: 10_000_000, base_ns: 50_000_000, mult: 1 << (SHIFT - 1) };
        let here = |ticks| Pair { ticks, ns: 51_000_000, width: 80 };
        assert!(clock.agrees(here(12_000_000)));
        let allowed_ticks = 2 * (APART_NS_MAX + 40 + 500);
        assert!(clock.agrees(here(12_000_000 + allowed_ticks)));
        assert!(!clock.agrees(here(12_000_000 + allowed_ticks + 2)), "ahead");
        assert!(!clock.agrees(here(12_000_000 - allowed_ticks - 2)), "behind");
        assert!(!clock.agrees(here(9_999_999)), "behind the reading that time is counted from");
    }

    #[test]
    fn every_processor_agrees_with_a_counter_the_kernel_trusts() {
        let clock = fiord_testing::need!(TscClock::shared());
        for cpu in crate::thread::affinity().unwrap() {
            let agrees = || {
                crate::thread::set_affinity(&[cpu]).unwrap();
                clock.agrees_here()
            };
            assert!(std::thread::scope(|scope| scope.spawn(agrees).join()).unwrap(), "processor {cpu}");
        }
    }

    #[test]
    fn where_it_is_offered_it_follows_the_monotonic_clock() {
        let clock = fiord_testing::need!(TscClock::shared());
        let mut last_ns = 0;
        for _ in 0..1000 {
            let (before_ns, now_ns, after_ns) = (monotonic_ns(), clock.now_ns(), monotonic_ns());
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
            // Calibration error over the time this process has run: far below a millisecond.
            assert!(now_ns + 1_000_000 > before_ns && now_ns < after_ns + 1_000_000);
        }
    }
}

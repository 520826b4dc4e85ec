//! The processor's counter as a clock: one instruction, one multiplication and one shift a reading.
//!
//! Invariant: a `CounterClock` exists only if processor and kernel warrant the counter's constant rate, and two calibrations
//! against the monotonic clock agreed.
//!
//! The rate is measured once per process by pairs of readings of both clocks, each taken as close together as the
//! machine allows. They are taken during setup before the first I/O (`CounterClock::note`), so that the time between them is
//! spent on work. The uncertainty of the rate follows from how close together the readings were: only if setup was too
//! short for the required precision does the calibration wait for the rest, a fraction of a millisecond. A rate that the
//! processor states, and that the measured one agrees with, is exact and taken instead.
//!
//! What is said of a kind of processor is in a file of its own, `counter/`. Each worker compares the counter where it starts
//! with the monotonic clock (`CounterClock::agrees_here`).

use super::{Clock, monotonic_ns};
use contract::Counter;
use std::sync::OnceLock;

mod contract;
#[cfg(target_arch = "aarch64")]
mod generic_timer;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod none;
#[cfg(target_arch = "x86_64")]
mod tsc;

pub use contract::CounterRefusal;

#[cfg(target_arch = "aarch64")]
use generic_timer::GenericTimer as Processor;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use none::NoCounter as Processor;
#[cfg(target_arch = "x86_64")]
use tsc::TimeStampCounter as Processor;

/// Nanoseconds per tick are kept as a whole number of these fractions.
const SHIFT: u32 = 32;

/// How far the rates of the two halves may differ, in parts per million, before the counter is distrusted.
const TOLERANCE_PPM: u64 = 500;

/// The permitted uncertainty of the rate of one half: two halves of a steady counter are then within the tolerance.
const HALF_OPEN_PPM: u64 = TOLERANCE_PPM / 2;

/// The permitted uncertainty of the rate: the worst case, several times the typical one.
const OPEN_PPM: u64 = 100;

/// The permitted uncertainty of a rate that is only to confirm a stated one: wrong ones differ by far more.
const STATED_OPEN_PPM: u64 = 10_000;

/// Where the monotonic clock takes microseconds to read, readings are as good as they get after this long.
const CALIBRATION_NS_MAX: u64 = 5_000_000;

/// The permitted difference between the counters of two processors.
const APART_NS_MAX: u64 = 1000;

/// The first readings of this process, in the order they were taken.
static NOTED: [OnceLock<Pair>; 2] = [const { OnceLock::new() }; 2];

/// The counter, with what turns it into nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct CounterClock {
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds per tick, times 2^SHIFT.
    mult: u64,
}

impl Clock for CounterClock {
    const RUNNING: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        self.ns_of(Processor::ticks())
    }
}

impl CounterClock {
    /// Takes a reading for the calibration, in a microsecond: first at the start of the process, then before `shared`,
    /// which otherwise takes the readings itself.
    pub fn note() {
        if let Some(next) = NOTED.iter().find(|noted| noted.get().is_none()) {
            let _ = next.set(Pair::read());
        }
    }

    /// This process's clock. The first call completes the calibration; its result is kept.
    pub fn shared() -> Result<CounterClock, CounterRefusal> {
        static CLOCK: OnceLock<Result<CounterClock, CounterRefusal>> = OnceLock::new();
        *CLOCK.get_or_init(|| {
            Processor::warranted()?;
            let start = *NOTED[0].get_or_init(Pair::read);
            let middle = *NOTED[1].get_or_init(|| Pair::middle(start));
            let calibrated =
                |start, middle| from_pairs(start, middle, Pair::end(start, middle), Processor::stated_hz());
            // This thread may have been preempted at the wrong moment.
            calibrated(start, middle).or_else(|_| {
                let start = Pair::read();
                calibrated(start, Pair::middle(start))
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
        let drift_ns = nearest(u128::from(since_ns) * u128::from(TOLERANCE_PPM) / 1_000_000);
        let width_ns = nearest((u128::from(here.width) * u128::from(self.mult)) >> SHIFT);
        here.ticks >= self.base_ticks
            && self.ns_of(here.ticks).abs_diff(here.ns)
                <= APART_NS_MAX.saturating_add(width_ns).saturating_add(drift_ns)
    }

    /// The counter's rate in kHz.
    pub fn frequency_khz(&self) -> u64 {
        nearest((1_000_000_u128 << SHIFT) / u128::from(self.mult))
    }

    /// The time between two values of the counter, in nanoseconds, if it is longer than one, to which latencies are kept: then
    /// no latency is known better.
    pub fn coarse_step_ns(&self) -> Option<f64> {
        let step_ns = self.mult as f64 / (1_u64 << SHIFT) as f64;
        (step_ns >= 1.5).then_some(step_ns)
    }

    /// What the counter is called.
    pub fn name(&self) -> &'static str {
        Processor::NAME
    }

    #[inline]
    fn ns_of(&self, ticks: u64) -> u64 {
        let since = u128::from(ticks.wrapping_sub(self.base_ticks));
        self.base_ns + (((since * u128::from(self.mult)) >> SHIFT) & 0xffff_ffff_ffff_ffff) as u64
    }
}

/// Keeps the next reading of the counter behind all loads before this.
#[inline]
pub(super) fn wait_for_loads() {
    Processor::wait_for_loads();
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
    /// The closest of several readings: the one during which the counter moved least. A counter that did not move counts in
    /// steps that are longer than a reading takes, of which the shortest one seen is the error.
    fn read() -> Pair {
        const TRIES: usize = 24;
        let mut best = Pair { ticks: 0, ns: 0, width: u64::MAX };
        let (mut step, mut last) = (u64::MAX, Processor::ticks());
        for _ in 0..TRIES {
            let before = Processor::ticks();
            let ns = monotonic_ns();
            let after = Processor::ticks();
            let width = after.wrapping_sub(before);
            if width < best.width {
                best = Pair { ticks: before.wrapping_add(width / 2), ns, width };
            }
            let moves = [before.wrapping_sub(last), width].into_iter().filter(|ticks| *ticks > 0);
            step = moves.fold(step, u64::min);
            last = after;
        }
        if best.width == 0 && step < u64::MAX {
            best.width = step;
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

fn from_pairs(
    start: Pair,
    middle: Pair,
    end: Pair,
    stated_hz: Option<u64>,
) -> Result<CounterClock, CounterRefusal> {
    if let Some(mult) = stated_hz.and_then(|hz| stated_rate(hz, start, end)) {
        return Ok(CounterClock { base_ticks: end.ticks, base_ns: end.ns, mult });
    }
    let (first, second) = (mult_between(start, middle), mult_between(middle, end));
    let apart_ppm = apart_ppm(first, second);
    if apart_ppm > TOLERANCE_PPM {
        return Err(CounterRefusal::Unsteady { counter: Processor::NAME, apart_ppm });
    }
    Ok(CounterClock { base_ticks: end.ticks, base_ns: end.ns, mult: mult_between(start, end) })
}

/// The stated rate, as nanoseconds per tick, if the measured one agrees with it as far as it is known: firmware may state a
/// wrong one.
fn stated_rate(hz: u64, start: Pair, end: Pair) -> Option<u64> {
    let stated = (1_000_000_000_u64 << SHIFT).checked_div(hz)?;
    let open_ppm = open_ppm(start, end);
    let apart_ppm = apart_ppm(stated, mult_between(start, end));
    (open_ppm <= STATED_OPEN_PPM && apart_ppm <= TOLERANCE_PPM + open_ppm).then_some(stated)
}

/// How far two rates differ, in parts per million of the smaller.
fn apart_ppm(one: u64, other: u64) -> u64 {
    one.abs_diff(other).saturating_mul(1_000_000) / one.min(other).max(1)
}

/// Nanoseconds per tick between two readings, times 2^SHIFT; 0 where the counter did not move.
fn mult_between(from: Pair, to: Pair) -> u64 {
    let ns = u128::from(to.ns - from.ns) << SHIFT;
    let ticks = u128::from(to.ticks.wrapping_sub(from.ticks));
    ns.checked_div(ticks).map_or(0, nearest)
}

/// A number that fits, or the largest one that does: a rate that far off is not believed.
fn nearest(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_turned_into_nanoseconds_exactly() {
        // 2 GHz: half a nanosecond a tick.
        let clock = CounterClock { base_ticks: 1000, base_ns: 5_000_000_000, mult: 1 << (SHIFT - 1) };
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
        let steady =
            from_pairs(pair(0, 0), pair(2_000_000, 1_000_000), pair(4_000_000, 2_000_000), None).unwrap();
        assert_eq!(steady.frequency_khz(), 2_000_000);
        let jumped = from_pairs(pair(0, 0), pair(2_000_000, 1_000_000), pair(4_100_000, 2_000_000), None);
        assert!(
            matches!(jumped, Err(CounterRefusal::Unsteady { apart_ppm, .. }) if apart_ppm > 40_000),
            "{jumped:?}"
        );
        let stopped = from_pairs(pair(7, 0), pair(7, 1_000_000), pair(2_000_000, 2_000_000), None);
        assert!(stopped.is_err(), "{stopped:?}");
    }

    #[test]
    fn a_stated_rate_is_taken_where_the_measured_one_agrees_with_it() {
        let mult_of = |hz: u64| (1_000_000_000 << SHIFT) / hz;
        // What is measured of 24 MHz differs by 10 ppm.
        let pair = |ticks, ns, width| Pair { ticks, ns, width };
        let (start, end) = (pair(0, 0, 2), pair(24_000_240, 1_000_000_000, 2));
        assert_eq!(stated_rate(24_000_000, start, end), Some(mult_of(24_000_000)));
        assert_eq!(stated_rate(25_000_000, start, end), None, "firmware states a wrong one");
        assert_eq!(stated_rate(0, start, end), None);
        // As far apart as the readings are wide, and wider than anything could be said of.
        let wide = |width| pair(24_240_000, 1_000_000_000, width);
        assert!(stated_rate(24_000_000, pair(0, 0, 240_000), wide(240_000)).is_some());
        assert_eq!(stated_rate(24_000_000, pair(0, 0, 200_000), wide(200_000)), None);
        assert_eq!(stated_rate(24_000_000, pair(0, 0, 250_000), wide(250_000)), None);
        let clock = |mult| CounterClock { base_ticks: 0, base_ns: 0, mult };
        assert_eq!(clock(mult_of(24_000_000)).frequency_khz(), 24_000);
        assert!((clock(mult_of(24_000_000)).coarse_step_ns().unwrap() - 41.667).abs() < 0.001);
        assert_eq!(clock(mult_of(1_000_000_000)).coarse_step_ns(), None);
    }

    #[test]
    fn refusals_name_the_counter_of_the_processor() {
        let unsteady = CounterRefusal::Unsteady { counter: "generic timer", apart_ppm: 900 };
        assert_eq!(unsteady.to_string(), "the generic timer's rate varied by 900 ppm while it was measured");
        let missing = CounterRefusal::NoCounter.to_string();
        assert_eq!(missing, format!("fiord knows no counter of {} processors", std::env::consts::ARCH));
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
        let clock = CounterClock { base_ticks: 10_000_000, base_ns: 50_000_000, mult: 1 << (SHIFT - 1) };
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
        let clock = fiord_testing::need!(CounterClock::shared());
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
        let clock = fiord_testing::need!(CounterClock::shared());
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

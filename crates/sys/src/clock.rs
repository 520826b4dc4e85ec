//! Clocks a hot loop can afford: the operating system's, in nanoseconds or microseconds, the processor's counter, and none.
//!
//! Invariant: every running clock counts nanoseconds from the same origin as `monotonic_ns`, so that a reading of one
//! can be compared with a deadline taken from another (the counter drifts from it by a few parts in a million).

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use std::time::Duration;

mod counter;
pub mod cross_core;
pub mod keeper;

pub use counter::{CounterClock, CounterRefusal};

/// A source of time, a type parameter of the hot loops.
pub trait Clock: Copy {
    /// Whether time passes at all. If not, a loop need not read it.
    const RUNNING: bool;

    /// Nanoseconds since the origin of `monotonic_ns`.
    fn now_ns(&self) -> u64;

    /// Sleeps for this long, or until a signal arrives. A test's clock is advanced instead.
    fn sleep_ns(&self, ns: u64) {
        sleep_until_ns(monotonic_ns() + ns);
    }

    /// Polls for this long. A test's clock is advanced instead.
    fn poll_ns(&self, ns: u64) {
        let until_ns = self.now_ns() + ns;
        while self.now_ns() < until_ns {
            std::hint::spin_loop();
        }
    }
}

/// The operating system's monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsClock;

impl Clock for OsClock {
    const RUNNING: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// The operating system's monotonic clock in microseconds: what `gettimeofday` shows of it, but for the steps that the time of
/// day makes when it is set.
#[derive(Clone, Copy, Debug, Default)]
pub struct MicrosecondClock;

impl Clock for MicrosecondClock {
    const RUNNING: bool = true;

    #[inline]
    fn now_ns(&self) -> u64 {
        monotonic_ns() / 1000 * 1000
    }
}

/// No clock: for runs that count I/Os and nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClock;

impl Clock for NoClock {
    const RUNNING: bool = false;

    #[inline]
    fn now_ns(&self) -> u64 {
        0
    }

    fn poll_ns(&self, ns: u64) {
        OsClock.poll_ns(ns);
    }
}

/// Processor time of this process, all its threads together, in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    ns_of(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    ns_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds since some fixed moment, usually boot.
#[inline]
pub fn monotonic_ns() -> u64 {
    ns_of(libc::CLOCK_MONOTONIC)
}

/// The monotonic clock that goes on while the machine sleeps (`CLOCK_BOOTTIME`), in nanoseconds.
pub fn boot_ns() -> u64 {
    ns_of(libc::CLOCK_BOOTTIME)
}

/// The time of day, in nanoseconds since 1970.
pub fn realtime_ns() -> u64 {
    ns_of(libc::CLOCK_REALTIME)
}

/// The time of day, in milliseconds since 1970.
pub fn realtime_ms() -> u64 {
    realtime_ns() / 1_000_000
}

/// The time of the kernel's clock with this number, in milliseconds; 0 if there is no such clock.
pub fn read_ms(clock_id: u32) -> u64 {
    libc::clockid_t::try_from(clock_id).map_or(0, |clock| ns_of(clock) / 1_000_000)
}

/// Local time minus UTC, in seconds, at this moment.
pub fn utc_offset_s() -> i32 {
    let now = read(libc::CLOCK_REALTIME).tv_sec;
    // SAFETY: an all-zero `tm` is a valid value, and localtime_r writes one from a valid pointer to a time.
    unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut local).is_null() {
            0
        } else {
            i32::try_from(local.tm_gmtoff).unwrap_or(0)
        }
    }
}

#[inline]
#[expect(clippy::cast_sign_loss, reason = "no clock is below zero, and loops read them")]
fn ns_of(clock: libc::clockid_t) -> u64 {
    let time = read(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[inline]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec; with a valid pointer the call fails only for a clock
    // that does not exist, and then leaves the zeros.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time
}

/// Sleeps until `monotonic_ns` reaches `deadline_ns`; returns at once if it has. Returns whether the deadline was
/// reached: a signal that this thread handles ends the sleep early.
pub fn sleep_until_ns(deadline_ns: u64) -> bool {
    let deadline = timespec(Duration::from_nanos(deadline_ns));
    clock_nanosleep_absolute(ClockId::Monotonic, &deadline).is_ok()
}

/// A duration as the kernel's structure, saturated at its maximum.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// The same for functions of the C library, of which some have 32 bits for the seconds.
pub(crate) fn c_timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: time.subsec_nanos() as libc::c_long,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never_goes_back(clock: impl Clock) {
        let mut last_ns = clock.now_ns();
        for _ in 0..1000 {
            let now_ns = clock.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
        }
    }

    // divergence: `clocksource=gettimeofday`
    #[test]
    fn running_clocks_share_an_origin_that_no_step_of_the_time_of_day_moves() {
        let before_ns = monotonic_ns();
        let (os_ns, rounded_ns) = (OsClock.now_ns(), MicrosecondClock.now_ns());
        let after_ns = monotonic_ns();
        assert!((before_ns..=after_ns).contains(&os_ns));
        assert!((before_ns - 999..=after_ns).contains(&rounded_ns) && rounded_ns % 1000 == 0);
        never_goes_back(OsClock);
        never_goes_back(MicrosecondClock);
    }

    #[test]
    fn no_clock_stands_still() {
        assert_eq!(NoClock.now_ns(), NoClock.now_ns());
        const { assert!(!NoClock::RUNNING) };
    }

    #[test]
    fn processor_time_is_that_of_the_thread_alone() {
        let before_ns = thread_cpu_ns();
        let work = std::thread::spawn(|| {
            while thread_cpu_ns() < 10_000_000 {}
            thread_cpu_ns()
        });
        let of_the_other_ns = work.join().unwrap();
        let own_ns = thread_cpu_ns() - before_ns;
        assert!(own_ns > 0 && own_ns < of_the_other_ns, "{own_ns} {of_the_other_ns}");
    }

    #[test]
    fn a_deadline_in_the_past_is_reached_at_once() {
        assert!(sleep_until_ns(0));
        assert!(sleep_until_ns(monotonic_ns() + 1000));
    }

    #[test]
    fn the_time_of_day_is_after_this_was_written() {
        let realtime_s = || realtime_ns() / 1_000_000_000;
        assert!(realtime_s() > 1_700_000_000);
        let (s, ms, later_s) = (realtime_s(), realtime_ms(), realtime_s());
        assert!((s..=later_s).contains(&(ms / 1000)));
    }
}

//! Whether a clock runs forward when it is read on one processor after another.
//!
//! Invariant: a step back is counted only if the later reading certainly was later: its thread had already seen the
//! earlier one.

use super::Clock;
use super::counter::wait_for_loads;
use crate::thread;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

/// The result of the check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CrossCore {
    /// Processors that took part.
    pub cpus: usize,
    /// Readings taken, over all of them.
    pub readings: u64,
    /// Readings that were before one already taken on another processor.
    pub backward_steps: u64,
    /// The largest step back, in nanoseconds.
    pub backward_ns_max: u64,
}

/// Reads `clock` `readings_per_cpu` times on each processor this process may run on, all at the same time.
pub fn check(clock: impl Clock + Send + Sync, readings_per_cpu: u64) -> io::Result<CrossCore> {
    let cpus = thread::affinity()?;
    let latest_ns = AtomicU64::new(0);
    let start = Barrier::new(cpus.len());
    let parts: io::Result<Vec<CrossCore>> = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                let (latest_ns, start) = (&latest_ns, &start);
                scope.spawn(move || {
                    let pinned = thread::set_affinity(&[cpu]);
                    start.wait();
                    pinned.map(|()| read_on_this_cpu(clock, readings_per_cpu, latest_ns))
                })
            })
            .collect();
        let panicked = |_| io::Error::other("a thread of the clock check panicked");
        threads.into_iter().map(|thread| thread.join().map_err(panicked)?).collect()
    });
    Ok(parts?.into_iter().fold(CrossCore::default(), |sum, part| CrossCore {
        cpus: sum.cpus + 1,
        readings: sum.readings + part.readings,
        backward_steps: sum.backward_steps + part.backward_steps,
        backward_ns_max: sum.backward_ns_max.max(part.backward_ns_max),
    }))
}

fn read_on_this_cpu(clock: impl Clock, readings: u64, latest_ns: &AtomicU64) -> CrossCore {
    let mut found = CrossCore { readings, ..CrossCore::default() };
    for _ in 0..readings {
        let seen_ns = latest_ns.load(Ordering::SeqCst);
        // The counter may be read early.
        wait_for_loads();
        let now_ns = clock.now_ns();
        if now_ns < seen_ns {
            found.backward_steps += 1;
            found.backward_ns_max = found.backward_ns_max.max(seen_ns - now_ns);
        }
        latest_ns.fetch_max(now_ns, Ordering::SeqCst);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::OsClock;
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn the_monotonic_clock_passes() {
        let found = check(OsClock, 2000).unwrap();
        assert_eq!(found.backward_steps, 0);
        assert_eq!(found.readings, 2000 * found.cpus as u64);
    }

    #[derive(Clone, Copy)]
    struct Backwards<'a>(&'a AtomicU32);

    impl Clock for Backwards<'_> {
        const RUNNING: bool = true;

        fn now_ns(&self) -> u64 {
            u64::from(1_000_000 - self.0.fetch_add(10, Ordering::SeqCst))
        }
    }

    // divergence: `--cpuclock-test`
    #[test]
    fn a_clock_that_runs_backwards_is_detected() {
        let counter = AtomicU32::new(0);
        let latest_ns = AtomicU64::new(0);
        let found = read_on_this_cpu(Backwards(&counter), 5, &latest_ns);
        assert_eq!((found.backward_steps, found.backward_ns_max), (4, 40));
    }
}

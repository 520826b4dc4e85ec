//! Idleness of the processors during a run, and the speed of each.
//!
//! Invariant: nothing runs beside the jobs: idleness comes from the kernel's counters, and the unit of work is
//! measured before the first job starts.

use fiord_options::value::IdleProf;
use fiord_report::{Idleness, UnitWork};
use fiord_sys::procfs::{self, CpuTicks};
use fiord_sys::{clock, thread};

/// Steps in one unit of work: some microseconds.
const STEPS: u64 = 10_000;

/// Units measured on each processor.
const UNITS: u32 = 64;

/// Watches the processors from one moment on.
pub(crate) struct IdleWatch {
    each: bool,
    unit: UnitWork,
    start: Vec<(u32, CpuTicks)>,
}

impl IdleWatch {
    /// Starts watching; `unit` is the result of `calibrate`.
    pub(crate) fn start(mode: IdleProf, unit: UnitWork) -> IdleWatch {
        // Without /proc/stat no idleness can be reported.
        IdleWatch {
            each: mode == IdleProf::Percpu,
            unit,
            start: procfs::each_cpu_ticks().unwrap_or_default(),
        }
    }

    /// Idleness since the start.
    pub(crate) fn so_far(&self) -> Idleness {
        let now = procfs::each_cpu_ticks().unwrap_or_default();
        let cpus = idle_shares(&self.start, &now);
        let sum: f64 = cpus.iter().map(|(_, percent)| percent).sum();
        Idleness {
            system_percent: sum / cpus.len().max(1) as f64,
            cpus: if self.each { cpus } else { Vec::new() },
            unit: self.unit,
        }
    }
}

/// The idle share, in percent, of each processor present at both times. Waiting for I/O counts as idle.
fn idle_shares(start: &[(u32, CpuTicks)], now: &[(u32, CpuTicks)]) -> Vec<(u32, f64)> {
    let share = |(cpu, now): &(u32, CpuTicks)| {
        let (_, then) = start.iter().find(|(number, _)| number == cpu)?;
        let ticks = now.since(then);
        let percent = match ticks.all() {
            0 => 100.0,
            all => 100.0 * ticks.unused() as f64 / all as f64,
        };
        Some((*cpu, percent))
    };
    now.iter().filter_map(share).collect()
}

/// Times units of work on each processor this process may use.
pub fn calibrate() -> UnitWork {
    let cpus = thread::affinity().unwrap_or_default();
    let on = |cpu: u32| {
        let worker = std::thread::spawn(move || thread::set_affinity(&[cpu]).ok().map(|()| unit_us()));
        worker.join().ok().flatten()
    };
    spread(&cpus.into_iter().filter_map(on).collect::<Vec<f64>>())
}

/// The mean time of a unit on this processor, in microseconds.
fn unit_us() -> f64 {
    let unit = || {
        let mut state = 1_u64;
        for step in 0..STEPS {
            state = std::hint::black_box(state.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step);
        }
    };
    unit();
    let start_ns = clock::monotonic_ns();
    (0..UNITS).for_each(|_| unit());
    (clock::monotonic_ns() - start_ns) as f64 / f64::from(UNITS) / 1000.0
}

fn spread(units_us: &[f64]) -> UnitWork {
    if units_us.is_empty() {
        return UnitWork::default();
    }
    let count = units_us.len() as f64;
    let mean_us = units_us.iter().sum::<f64>() / count;
    let squares: f64 = units_us.iter().map(|unit| (unit - mean_us).powi(2)).sum();
    UnitWork { mean_us, stddev_us: (squares / count).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idleness_is_the_share_not_used() {
        let start = CpuTicks { user: 10, idle: 100, ..CpuTicks::default() };
        let now = CpuTicks { user: 30, system: 5, idle: 170, io_wait: 5, ..CpuTicks::default() };
        let shares = idle_shares(&[(0, start), (1, start)], &[(0, now), (1, start), (2, now)]);
        assert_eq!(shares, [(0, 75.0), (1, 100.0)]);
    }

    #[test]
    fn the_unit_of_work_takes_time_on_every_processor() {
        let unit = calibrate();
        assert!(unit.mean_us > 0.0 && unit.stddev_us >= 0.0, "{unit:?}");
    }

    #[test]
    fn units_have_a_mean_and_a_deviation() {
        let unit = spread(&[10.0, 14.0]);
        assert_eq!((unit.mean_us, unit.stddev_us), (12.0, 2.0));
        assert_eq!(spread(&[]), UnitWork::default());
    }
}

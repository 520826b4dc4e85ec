//! What each host did over time, on one clock: the picture of hosts.
//!
//! Invariant: made of samples alone; a run that was taken for even shows nothing over time.

use crate::run::HostRun;
use crate::window::Series;

/// The most windows of a host, and the most figures of all hosts together.
const WINDOWS_MAX: i64 = 300;
const FIGURES_MAX: i64 = 60_000;

/// The shortest window: hosts are sampled once a second.
const WINDOW_NS_MIN: i64 = 1_000_000_000;

/// What hosts did in windows of equal length that follow each other from the first start on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// The length of a window, in nanoseconds.
    pub window_ns: u64,
    /// I/Os per second in each window, of each host by its name.
    pub hosts: Vec<(String, Vec<f64>)>,
}

impl OverTime {
    /// Of these hosts; `None` of fewer than two, or if one did not tell what it did when.
    pub fn of(runs: &[&HostRun], series: &[Series]) -> Option<OverTime> {
        if series.len() < 2 || runs.len() != series.len() || !series.iter().all(|one| one.is_sampled) {
            return None;
        }
        let from_ns = series.iter().map(|one| one.start_ns).min()?;
        let whole_ns = series.iter().map(Series::end_ns).max()?.saturating_sub(from_ns);
        let count = (FIGURES_MAX / i64::try_from(series.len()).ok()?).clamp(10, WINDOWS_MAX);
        let window_ns = (whole_ns / count + 1).max(WINDOW_NS_MIN);
        // What is left at the end of half a window or less is a part of the last one.
        let windows = ((whole_ns + window_ns / 2) / window_ns).max(1);
        let rates = |one: &Series| {
            let rate = |window: i64| {
                let begin_ns = from_ns.saturating_add(window * window_ns);
                let is_last = window + 1 == windows;
                let length_ns = if is_last { (whole_ns - window * window_ns).max(1) } else { window_ns };
                let done = one.between(begin_ns, begin_ns.saturating_add(length_ns));
                done.ios.iter().sum::<f64>() * 1e9 / length_ns as f64
            };
            (0..windows).map(rate).collect::<Vec<f64>>()
        };
        let hosts = runs.iter().zip(series).map(|(run, one)| (run.host.name.clone(), rates(one)));
        Some(OverTime { window_ns: u64::try_from(window_ns).ok()?, hosts: hosts.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::host;
    use crate::window::Done;

    fn series(start_s: i64, ios: &[f64]) -> Series {
        let sample = |(at, ios): (usize, &f64)| {
            ((at as u64 + 1) * 1_000_000_000, Done { ios: [*ios, 0.0, 0.0], bytes: [0.0; 3] })
        };
        let samples = ios.iter().enumerate().map(sample).collect();
        Series { start_ns: start_s * 1_000_000_000, samples, is_sampled: true }
    }

    #[test]
    fn hosts_stand_on_one_clock() {
        let runs = [host(0, 0, Vec::new()), host(1, 0, Vec::new())];
        let runs: Vec<&HostRun> = runs.iter().collect();
        let all = [series(5, &[10.0, 20.0]), series(6, &[7.0, 8.0])];
        let shown = OverTime::of(&runs, &all).unwrap();
        assert_eq!(shown.window_ns, 1_000_000_000);
        let of = |name: &str, rates: [f64; 3]| (name.to_string(), rates.to_vec());
        assert_eq!(shown.hosts, [of("db1", [10.0, 20.0, 0.0]), of("db2", [0.0, 7.0, 8.0])]);
        assert_eq!(OverTime::of(&runs[..1], &all[..1]), None);
        let even = Series { is_sampled: false, ..all[0].clone() };
        assert_eq!(OverTime::of(&runs, &[even, all[1].clone()]), None);
    }

    #[test]
    fn long_runs_of_many_hosts_have_longer_windows() {
        let run = host(0, 0, Vec::new());
        let day = Series { samples: vec![(86_400_000_000_000, Done::default())], ..series(0, &[]) };
        let shown = OverTime::of(&[&run; 1000], &vec![day; 1000]).unwrap();
        assert_eq!((shown.hosts.len(), shown.hosts[0].1.len()), (1000, 60));
    }
}

//! What each host did over time, on one clock: the picture of hosts.
//!
//! Invariant: made of samples alone; a run that was taken for even shows nothing over time, nor does a host while it had none.

use crate::run::HostRun;
use crate::window::{SAMPLE_NS, Series};

/// The most windows of a host, and the most figures of all hosts together.
const WINDOWS_MAX: i64 = 300;
const FIGURES_MAX: i64 = 60_000;

/// What hosts did in windows of equal length that follow each other from the first start on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// The length of a window, in nanoseconds.
    pub window_ns: u64,
    /// I/Os per second in each window, of each host by its name; `None` where it is not known what it did then.
    pub hosts: Vec<(String, Vec<Option<f64>>)>,
}

impl OverTime {
    /// Of these hosts; `None` of fewer than two, or if none told what it did when.
    pub fn of(runs: &[&HostRun], series: &[Series]) -> Option<OverTime> {
        if series.len() < 2 || runs.len() != series.len() || !series.iter().any(|one| one.is_sampled) {
            return None;
        }
        let from_ns = series.iter().map(|one| one.start_ns).min()?;
        let whole_ns = series.iter().map(Series::end_ns).max()?.saturating_sub(from_ns);
        let count = (FIGURES_MAX / i64::try_from(series.len()).ok()?).clamp(10, WINDOWS_MAX);
        let window_ns = (whole_ns / count + 1).max(i64::try_from(SAMPLE_NS).ok()?);
        // What is left at the end of half a window or less is a part of the last one.
        let windows = ((whole_ns + window_ns / 2) / window_ns).max(1);
        let rates = |one: &Series| {
            let gaps = one.gaps();
            let rate = |window: i64| {
                let begin_ns = from_ns.saturating_add(window * window_ns);
                let is_last = window + 1 == windows;
                let length_ns = if is_last { (whole_ns - window * window_ns).max(1) } else { window_ns };
                let end_ns = begin_ns.saturating_add(length_ns);
                let is_known = !gaps.iter().any(|(from_ns, to_ns)| *from_ns < end_ns && *to_ns > begin_ns);
                let rate = || one.between(begin_ns, end_ns).ios.iter().sum::<f64>() * 1e9 / length_ns as f64;
                is_known.then(rate)
            };
            (0..windows).map(rate).collect::<Vec<_>>()
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
        let of = |name: &str, rates: [f64; 3]| (name.to_string(), rates.map(Some).to_vec());
        assert_eq!(shown.hosts, [of("db1", [10.0, 20.0, 0.0]), of("db2", [0.0, 7.0, 8.0])]);
        assert_eq!(OverTime::of(&runs[..1], &all[..1]), None);
        let [even, other] = all.map(|one| Series { is_sampled: false, ..one });
        let with_even = OverTime::of(&runs, &[even.clone(), series(6, &[7.0, 8.0])]).unwrap();
        assert_eq!(with_even.hosts[0].1, [None, None, Some(0.0)], "it is not known when it did what");
        assert_eq!(with_even.hosts[1], shown.hosts[1]);
        assert_eq!(OverTime::of(&runs, &[even, other]), None);
    }

    #[test]
    fn a_stretch_without_samples_is_no_rate_and_no_zero() {
        let runs = [host(0, 0, Vec::new()), host(1, 0, Vec::new())];
        let mut frozen = series(0, &[5.0, 5.0, 5.0, 5.0]);
        frozen.samples[2].0 = 4_100_000_000;
        frozen.samples[3].0 = 6_000_000_000;
        let all = [series(0, &[10.0; 6]), frozen];
        let shown = OverTime::of(&runs.iter().collect::<Vec<_>>(), &all).unwrap();
        let known = |host: usize| shown.hosts[host].1.iter().map(Option::is_some).collect::<Vec<_>>();
        assert_eq!([known(0), known(1)], [vec![true; 6], vec![true, true, false, false, false, true]]);
    }

    #[test]
    fn long_runs_of_many_hosts_have_longer_windows() {
        let run = host(0, 0, Vec::new());
        let day = Series { samples: vec![(86_400_000_000_000, Done::default())], ..series(0, &[]) };
        let shown = OverTime::of(&[&run; 1000], &vec![day; 1000]).unwrap();
        assert_eq!((shown.hosts.len(), shown.hosts[0].1.len()), (1000, 60));
    }
}

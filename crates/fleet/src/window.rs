//! When all hosts ran together, and what they did then.
//!
//! Invariant: a part of a sample that reaches out of the window counts by its share of the sample's time, and nothing counts
//! twice.

use fiord_report::RunReport;

use crate::run::HostRun;

/// How often hosts that do not run for long are sampled, in nanoseconds.
pub(crate) const SAMPLE_NS: u64 = 1_000_000_000;

/// What was done in a time, in I/Os and bytes: reads, writes, trims.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// I/Os completed.
    pub ios: [f64; 3],
    /// Bytes transferred.
    pub bytes: [f64; 3],
}

impl Done {
    fn add(&mut self, other: &Done, share: f64) {
        for direction in 0..3 {
            self.ios[direction] += other.ios[direction] * share;
            self.bytes[direction] += other.bytes[direction] * share;
        }
    }

    /// All directions together: I/Os and bytes.
    #[cfg(test)]
    fn all(&self) -> (f64, f64) {
        (self.ios.iter().sum(), self.bytes.iter().sum())
    }
}

/// What one host did over time, on the controller's clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// When it started, in nanoseconds.
    pub start_ns: i64,
    /// Each sample's end in nanoseconds since the start, and what was done in it. The first begins at the start.
    pub samples: Vec<(u64, Done)>,
    /// Whether it is made of samples, and not of the sums of the run alone.
    pub is_sampled: bool,
}

impl Series {
    /// Of a host that told when it started and what it did.
    pub fn of(run: &HostRun) -> Option<Series> {
        let start_ns = run.stages.first()?.started_ns?;
        let report = run.report.as_ref()?;
        let timeline = report.timeline.as_ref().filter(|timeline| !timeline.windows.is_empty());
        let (samples, is_sampled) = match timeline {
            Some(timeline) => {
                let of = |window: &fiord_stats::TimelineWindow| {
                    let done = &window.done.directions;
                    let ios = std::array::from_fn(|direction| done[direction].ios as f64);
                    let bytes = std::array::from_fn(|direction| done[direction].bytes as f64);
                    (window.end_ms.saturating_mul(1_000_000), Done { ios, bytes })
                };
                let mut samples = timeline.windows.iter().map(of).collect();
                whole(report).into_iter().for_each(|(ran_ns, _)| end_at(&mut samples, ran_ns));
                (samples, true)
            }
            None => (vec![whole(report)?], false),
        };
        Some(Series { start_ns, samples, is_sampled })
    }

    /// When it ended, in nanoseconds.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add(self.length_ns())
    }

    fn length_ns(&self) -> i64 {
        self.samples.last().map_or(0, |(end_ns, _)| i64::try_from(*end_ns).unwrap_or(i64::MAX))
    }

    /// Stretches without figures, on the controller's clock: what was done in one is known as a sum, and not when. The host, or
    /// its agent, was frozen.
    pub fn gaps(&self) -> Vec<(i64, i64)> {
        if !self.is_sampled {
            return vec![(self.start_ns, self.end_ns())];
        }
        let mut begin_ns = 0;
        let samples =
            self.samples.iter().map(|(end_ns, _)| (std::mem::replace(&mut begin_ns, *end_ns), *end_ns));
        let samples: Vec<(u64, u64)> = samples.collect();
        let mut lengths: Vec<u64> =
            samples.iter().map(|(begin_ns, end_ns)| end_ns.saturating_sub(*begin_ns)).collect();
        lengths.sort_unstable();
        // However long one is: a run has a sample a second, or more than 512 of them.
        let longest_ns = SAMPLE_NS.max(begin_ns / 512);
        let usual_ns =
            lengths.get(lengths.len() / 2).map_or(longest_ns, |usual_ns| longest_ns.min(*usual_ns));
        let is_gap =
            |(begin_ns, end_ns): &(u64, u64)| end_ns.saturating_sub(*begin_ns) > 2 * usual_ns.max(SAMPLE_NS);
        let here = |ns: u64| self.start_ns.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX));
        samples.into_iter().filter(is_gap).map(|(begin_ns, end_ns)| (here(begin_ns), here(end_ns))).collect()
    }

    /// Whether it is known what was done until this time.
    fn is_known_at(&self, at_ns: i64) -> bool {
        !self.gaps().iter().any(|(from_ns, to_ns)| (from_ns + 1..*to_ns).contains(&at_ns))
    }

    /// What was done between two times of the controller's clock.
    pub fn between(&self, from_ns: i64, to_ns: i64) -> Done {
        let mut sum = Done::default();
        let mut begin_ns = self.start_ns;
        for (end_ns, done) in &self.samples {
            let end_ns = self.start_ns.saturating_add(i64::try_from(*end_ns).unwrap_or(i64::MAX));
            let inside_ns = end_ns.min(to_ns).saturating_sub(begin_ns.max(from_ns));
            if inside_ns > 0 && end_ns > begin_ns {
                sum.add(done, inside_ns as f64 / end_ns.saturating_sub(begin_ns) as f64);
            }
            begin_ns = end_ns;
        }
        sum
    }
}

/// The last sample ends when the program has put everything away. What was done in it was done until the jobs ended, unless
/// that is said to be before it began: runtimes leave ramps out.
fn end_at(samples: &mut Vec<(u64, Done)>, ran_ns: u64) {
    let Some((end_ns, done)) = samples.pop() else { return };
    match samples.last_mut() {
        Some(before) if before.0 >= ran_ns => before.1.add(&done, 1.0),
        _ => samples.push((end_ns.min(ran_ns), done)),
    }
}

/// The run as one sample: from the first job's start to the last one's end.
fn whole(report: &RunReport) -> Option<(u64, Done)> {
    let first_ms = report.jobs.iter().map(|job| job.start_ms).min()?;
    let mut done = Done::default();
    let mut end_ms = 0;
    for job in &report.jobs {
        for (direction, stats) in job.stats.directions.iter().enumerate() {
            done.ios[direction] += stats.ios as f64;
            done.bytes[direction] += stats.bytes as f64;
            end_ms = end_ms.max((job.start_ms - first_ms).saturating_add(stats.runtime_ms));
        }
    }
    (end_ms > 0).then(|| (end_ms.saturating_mul(1_000_000), done))
}

/// When a host was done, and what all had done by then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Finish {
    /// Its place among the hosts of the window.
    pub host: usize,
    /// When, in nanoseconds after the first start.
    pub at_ns: u64,
    /// What all hosts had done.
    pub done: Done,
}

impl Finish {
    /// A count of it as a rate per second; 0 if it took no time.
    pub fn per_second(&self, count: f64) -> f64 {
        if self.at_ns == 0 { 0.0 } else { count * 1e9 / self.at_ns as f64 }
    }
}

/// The time in which all hosts ran, and what they did in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommonWindow {
    /// When the last host started, in nanoseconds after the first.
    pub from_ns: u64,
    /// How long it is: until the first host ended, in nanoseconds. 0 if some host ended before another started.
    pub length_ns: u64,
    /// The shortest run of a host, in nanoseconds.
    pub shortest_run_ns: u64,
    /// From the first start to the last end, in nanoseconds.
    pub whole_ns: u64,
    /// What all hosts did in the window.
    pub done: Done,
    /// Whether every host's part is from samples over time; else some are the share of a run, or of a stretch without samples
    /// at an edge of the window, that was taken for even.
    pub is_sampled: bool,
    /// Hosts in it.
    pub hosts: usize,
    /// The host that was done first.
    pub first_done: Finish,
    /// The host that was done last.
    pub last_done: Finish,
}

impl CommonWindow {
    /// Of these hosts; `None` without any.
    pub fn of(all: &[Series]) -> Option<CommonWindow> {
        let first_ns = all.iter().map(|series| series.start_ns).min()?;
        let from_ns = all.iter().map(|series| series.start_ns).max()?;
        let to_ns = all.iter().map(Series::end_ns).min()?;
        let last_ns = all.iter().map(Series::end_ns).max()?;
        let between = |from_ns: i64, to_ns: i64| {
            let mut done = Done::default();
            all.iter().for_each(|series| done.add(&series.between(from_ns, to_ns), 1.0));
            done
        };
        let length = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let finish = |at_ns: i64| Finish {
            host: all.iter().position(|series| series.end_ns() == at_ns).unwrap_or(0),
            at_ns: length(first_ns, at_ns),
            done: between(first_ns, at_ns),
        };
        Some(CommonWindow {
            from_ns: length(first_ns, from_ns),
            length_ns: length(from_ns, to_ns),
            shortest_run_ns: all.iter().map(|series| length(0, series.length_ns())).min()?,
            whole_ns: length(first_ns, last_ns),
            done: between(from_ns, to_ns),
            first_done: finish(to_ns),
            last_done: finish(last_ns),
            is_sampled: all.iter().all(|one| one.is_known_at(from_ns) && one.is_known_at(to_ns)),
            hosts: all.len(),
        })
    }

    /// Its share of the shortest run, from 0 to 1.
    pub fn share(&self) -> f64 {
        match self.shortest_run_ns {
            0 => 0.0,
            run_ns => self.length_ns as f64 / run_ns as f64,
        }
    }

    /// A count in it as a rate per second; 0 if it is empty.
    pub fn per_second(&self, count: f64) -> f64 {
        match self.length_ns {
            0 => 0.0,
            length_ns => count * 1e9 / length_ns as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;

    fn series(start_ms: i64, each_ms: u64, ios: &[u64]) -> Series {
        let done = |ios: u64| Done { ios: [ios as f64, 0.0, 0.0], bytes: [ios as f64 * 4096.0, 0.0, 0.0] };
        let sample = |(index, ios): (usize, &u64)| ((index as u64 + 1) * each_ms * MS as u64, done(*ios));
        Series {
            start_ns: start_ms * MS,
            samples: ios.iter().enumerate().map(sample).collect(),
            is_sampled: true,
        }
    }

    #[test]
    fn the_window_is_from_the_last_start_to_the_first_end() {
        let all = [series(0, 250, &[100; 8]), series(500, 250, &[10; 8])];
        let window = CommonWindow::of(&all).unwrap();
        assert_eq!((window.from_ns, window.length_ns), (500_000_000, 1_500_000_000));
        assert_eq!(window.done.all().0, 600.0 + 60.0);
        assert_eq!(window.per_second(window.done.all().0), 440.0);
        assert_eq!((window.share(), window.whole_ns), (0.75, 2_500_000_000));
        let (first, last) = (window.first_done, window.last_done);
        assert_eq!((first.host, first.at_ns, first.done.all().0), (0, 2_000_000_000, 800.0 + 60.0));
        assert_eq!((last.host, last.at_ns, last.done.all().0), (1, 2_500_000_000, 800.0 + 80.0));
        assert_eq!(last.per_second(last.done.all().0), 352.0);
    }

    #[test]
    fn hosts_that_never_ran_together_have_an_empty_window() {
        let window = CommonWindow::of(&[series(0, 1000, &[5; 3]), series(10_700, 1000, &[5; 3])]).unwrap();
        assert_eq!((window.length_ns, window.share(), window.per_second(5.0)), (0, 0.0, 0.0));
        assert_eq!(window.done, Done::default());
        assert_eq!(CommonWindow::of(&[]), None);
    }

    #[test]
    fn the_last_sample_ends_with_the_jobs() {
        let ended = |ran_ms: u64| {
            let mut samples = series(0, 1000, &[10, 20, 5]).samples;
            end_at(&mut samples, ran_ms * MS as u64);
            samples.iter().map(|(end_ns, done)| (end_ns / MS as u64, done.all().0)).collect::<Vec<_>>()
        };
        assert_eq!(ended(2400), [(1000, 10.0), (2000, 20.0), (2400, 5.0)]);
        assert_eq!(ended(9000), [(1000, 10.0), (2000, 20.0), (3000, 5.0)]);
        assert_eq!(ended(1500), [(1000, 10.0), (2000, 25.0)], "with a ramp");
    }

    #[test]
    fn a_sample_at_the_edge_counts_by_its_share() {
        let done = series(0, 1000, &[1000, 2000]).between(500 * MS, 1250 * MS);
        assert_eq!(done.ios[0], 500.0 + 500.0);
    }

    #[test]
    fn a_frozen_host_has_a_gap_which_leaves_the_edge_of_the_window_open() {
        let frozen = |ends_s: &[u64]| {
            let samples = ends_s.iter().map(|end_s| (end_s * 1000 * MS as u64, Done::default()));
            Series { start_ns: 500 * MS, samples: samples.collect(), is_sampled: true }
        };
        let gap = |from_s: i64, to_s: i64| (500 * MS + from_s * 1000 * MS, 500 * MS + to_s * 1000 * MS);
        assert_eq!(frozen(&[1, 2, 3, 5]).gaps(), [], "late, and no more");
        assert_eq!(frozen(&[1, 2, 12, 13]).gaps(), [gap(2, 12)]);
        assert_eq!(frozen(&[9]).gaps(), [gap(0, 9)], "nothing says that its samples are so long");
        let long: Vec<u64> = (1..=900).map(|at| at * 4).collect();
        assert_eq!(frozen(&long).gaps(), []);
        let is_sampled =
            |other: Series| CommonWindow::of(&[other, frozen(&[1, 2, 12, 13])]).unwrap().is_sampled;
        assert!(is_sampled(series(0, 1000, &[1; 14])));
        assert!(!is_sampled(series(0, 1000, &[1; 9])), "the other ends while it is frozen");
    }

    proptest! {
        #[test]
        fn the_sums_of_the_window_are_those_of_the_samples(
            hosts in proptest::collection::vec(
                (0..5_i64, proptest::collection::vec(0..1000_u64, 1..12)), 1..6),
        ) {
            // On one grid of samples, the window consists of whole ones: they are added up one by one.
            let all: Vec<Series> = hosts.iter().map(|(start, ios)| series(start * 250, 250, ios)).collect();
            let from = hosts.iter().map(|(start, _)| *start).max().unwrap();
            let to = hosts.iter().map(|(start, ios)| start + ios.len() as i64).min().unwrap();
            let expected: u64 = hosts
                .iter()
                .flat_map(|(start, ios)| ios.iter().enumerate().map(move |(index, ios)| (start + index as i64, *ios)))
                .filter(|(at, _)| (from..to).contains(at))
                .map(|(_, ios)| ios)
                .sum();
            let window = CommonWindow::of(&all).unwrap();
            prop_assert!((window.done.all().0 - expected as f64).abs() < 1e-6);
        }
    }
}

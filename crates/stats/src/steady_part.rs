//! The steady part of a run: the longest part at its end that keeps within the limits of SNIA's Performance Test
//! Specification.
//!
//! Invariant: a part is judged by five rounds of equal length, as the specification does, and only if each round is long
//! enough and has enough I/Os for its throughput not to be a matter of chance.

use serde::{Deserialize, Serialize};

use crate::steady::Steadiness;

/// The rounds that a part is divided into: the measurement window of the specification.
const ROUNDS: usize = 5;

/// A round is at least this long, and covers at least this many samples.
const ROUND_NS_MIN: u64 = 500_000_000;
const ROUND_SAMPLES_MIN: usize = 2;

/// I/Os of a round on average: with fewer, chance alone varies its throughput by a tenth.
const ROUND_IOS_MIN: u64 = 100;

/// What a run had done at one moment at which all its jobs were running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressSample {
    /// Time since the run began, in nanoseconds.
    pub at_ns: u64,
    /// I/Os completed so far: reads, writes, trims.
    pub ios: [u64; 3],
    /// Bytes transferred so far: reads, writes, trims.
    pub bytes: [u64; 3],
}

impl ProgressSample {
    /// I/Os of all directions.
    pub fn all_ios(&self) -> u64 {
        self.ios.iter().sum()
    }

    fn all_bytes(&self) -> u64 {
        self.bytes.iter().sum()
    }
}

/// How steady a run was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSteadiness {
    /// The time that was judged, in milliseconds: while all jobs were running.
    pub run_ms: u64,
    /// What the line through the rounds of the whole run rises, as a share of the mean; negative if it falls.
    pub slope_share: f64,
    /// The highest round of the whole run less the lowest, as a share of the mean.
    pub excursion_share: f64,
    /// The longest part at its end that is steady, if there is one; it may be the whole run.
    pub part: Option<SteadyPart>,
}

/// A part of a run, up to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyPart {
    /// Where it begins, in milliseconds of the time that was judged; 0 if it is the whole run.
    pub from_ms: u64,
    /// I/Os per second in it: reads, writes, trims.
    pub ios_per_s: [f64; 3],
    /// Bytes per second in it: reads, writes, trims.
    pub bytes_per_s: [f64; 3],
}

impl SteadyPart {
    /// The same part of other samples that were taken at the same times: of some of the jobs.
    pub fn of_others(&self, samples: &[ProgressSample]) -> Option<SteadyPart> {
        let begin = samples.first()?;
        let from = samples.iter().position(|sample| ms_between(begin, sample) >= self.from_ms)?;
        Some(part(&samples[from..], begin))
    }
}

impl RunSteadiness {
    /// Of these samples; `None` if the run is too short to judge, or did too few I/Os.
    pub fn of(samples: &[ProgressSample]) -> Option<RunSteadiness> {
        let (first, last) = (samples.first()?, samples.last()?);
        let whole = judged(samples)?;
        let ends = (0..samples.len()).map(|from| &samples[from..]).map_while(|end| Some((end, judged(end)?)));
        let part =
            ends.filter(|(_, steadiness)| steadiness.is_steady()).map(|(end, _)| part(end, first)).next();
        let run_ms = ms_between(first, last);
        let Steadiness { slope_share, excursion_share } = whole;
        Some(RunSteadiness { run_ms, slope_share, excursion_share, part })
    }

    /// The part that figures are to be taken from instead of the whole run: one that is steady while the whole is not.
    pub fn proper_part(&self) -> Option<&SteadyPart> {
        self.part.as_ref().filter(|part| part.from_ms > 0)
    }
}

/// How steady these samples are; `None` if they are too few to say.
fn judged(samples: &[ProgressSample]) -> Option<Steadiness> {
    let (first, last) = (samples.first()?, samples.last()?);
    let (lasted_ns, ios) = (last.at_ns - first.at_ns, last.all_ios() - first.all_ios());
    let is_long = lasted_ns >= ROUNDS as u64 * ROUND_NS_MIN && samples.len() > ROUNDS * ROUND_SAMPLES_MIN;
    if !is_long || ios < ROUNDS as u64 * ROUND_IOS_MIN {
        return None;
    }
    let end = samples.len() - 1;
    let rounds: [f64; ROUNDS] = std::array::from_fn(|round| {
        let (from, to) = (samples[round * end / ROUNDS], samples[(round + 1) * end / ROUNDS]);
        per_s(to.all_bytes() - from.all_bytes(), to.at_ns - from.at_ns)
    });
    Steadiness::of(&rounds)
}

fn part(samples: &[ProgressSample], begin: &ProgressSample) -> SteadyPart {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return SteadyPart::default() };
    let rates = |from: [u64; 3], to: [u64; 3]| {
        std::array::from_fn(|index| per_s(to[index] - from[index], last.at_ns - first.at_ns))
    };
    SteadyPart {
        from_ms: ms_between(begin, first),
        ios_per_s: rates(first.ios, last.ios),
        bytes_per_s: rates(first.bytes, last.bytes),
    }
}

fn ms_between(begin: &ProgressSample, sample: &ProgressSample) -> u64 {
    (sample.at_ns - begin.at_ns) / 1_000_000
}

fn per_s(count: u64, ns: u64) -> f64 {
    count as f64 / (ns.max(1) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples every quarter of a second of a run with these reads of 4 KiB in each quarter.
    fn samples(per_quarter: impl IntoIterator<Item = u64>) -> Vec<ProgressSample> {
        let mut all = vec![ProgressSample { at_ns: 3_000_000_000, ..ProgressSample::default() }];
        for count in per_quarter {
            let last = all[all.len() - 1];
            let ios = last.ios[0] + count;
            all.push(ProgressSample {
                at_ns: last.at_ns + 250_000_000,
                ios: [ios, 0, 0],
                bytes: [ios * 4096, 0, 0],
            });
        }
        all
    }

    /// This many quarters of a second at this rate.
    fn at(quarters: usize, count: u64) -> impl Iterator<Item = u64> {
        std::iter::repeat_n(count, quarters)
    }

    #[test]
    fn a_run_that_settles_has_a_steady_part_with_its_own_rates() {
        // A burst into a cache of five seconds, then the disk.
        let run = RunSteadiness::of(&samples(at(20, 1000).chain(at(60, 250)))).unwrap();
        assert_eq!(run.run_ms, 20_000);
        assert!(run.excursion_share > 0.2 && run.slope_share < -0.1, "{run:?}");
        let part = run.proper_part().unwrap();
        // A little of the burst is within the limits.
        assert!((4000..=5000).contains(&part.from_ms), "{part:?}");
        assert!((part.ios_per_s[0] - 1000.0).abs() < 60.0, "{part:?}");
        assert!((part.bytes_per_s[0] / part.ios_per_s[0] - 4096.0).abs() < 1e-6);
        assert_eq!((part.ios_per_s[1], part.bytes_per_s[2]), (0.0, 0.0));
    }

    #[test]
    fn the_part_of_one_job_begins_where_that_of_all_does() {
        let all = samples(at(20, 1000).chain(at(60, 250)));
        let part = RunSteadiness::of(&all).and_then(|run| run.part).unwrap();
        // A job with a fifth of the I/Os, whose own rate changes later than that of all.
        let own = part.of_others(&samples(at(40, 200).chain(at(40, 50)))).unwrap();
        assert_eq!(own.from_ms, part.from_ms);
        let (early_s, all_s) = (10.0 - part.from_ms as f64 / 1000.0, 20.0 - part.from_ms as f64 / 1000.0);
        let expected = (800.0 * early_s + 200.0 * 10.0) / all_s;
        assert!((own.ios_per_s[0] - expected).abs() < 1e-6, "{own:?} {expected}");
        assert_eq!(part.of_others(&[]), None);
        assert_eq!(part.of_others(&all[..4]), None, "they end before the part begins");
    }

    #[test]
    fn a_run_that_is_steady_throughout_is_its_own_part() {
        let run = RunSteadiness::of(&samples((0..40).map(|quarter| 1000 + quarter % 3))).unwrap();
        assert_eq!(run.part.map(|part| part.from_ms), Some(0));
        assert_eq!(run.proper_part(), None);
    }

    #[test]
    fn a_run_that_keeps_changing_has_no_steady_part() {
        let falling = RunSteadiness::of(&samples((0..80).map(|quarter| 4000 - 48 * quarter))).unwrap();
        assert_eq!(falling.part, None, "the last 2.5 s still fall by a quarter");
        // Five seconds fast, five slow: whatever is long enough has both, but for the last.
        let settled = RunSteadiness::of(&samples(at(20, 1000).chain(at(9, 250)))).unwrap();
        assert_eq!(settled.part, None, "2.25 s are too short to say");
    }

    #[test]
    fn short_runs_and_few_ios_are_not_judged() {
        assert_eq!(RunSteadiness::of(&[]), None);
        assert_eq!(RunSteadiness::of(&samples(at(9, 1000))), None);
        assert!(RunSteadiness::of(&samples(at(10, 1000))).is_some());
        assert_eq!(RunSteadiness::of(&samples(at(40, 12))), None, "96 I/Os a round");
        assert!(RunSteadiness::of(&samples(at(40, 13))).is_some());
        assert_eq!(RunSteadiness::of(&samples(at(40, 0))), None);
    }
}

//! Whether throughput was held at a limit between the job and the device, as that of a cloud's volume is.
//!
//! Invariant: flat throughput alone is no limit: it is at a number that limits have, and the device can do more.

use fiord_plan::Plan;
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::{Capped, ProgressSample};

use super::measured::Measurements;
use super::steady;

/// The first third of a run is not judged: volumes have bursts. The rest has at least so many parts of this length.
const PART_NS: u64 = 1_000_000_000;
const PARTS_MIN: usize = 8;

/// From the least to the most, parts differ by at most this share of their mean; that of a single I/O is less.
const SPREAD_MAX: f64 = 0.01;
const PER_PART_MIN: f64 = 200.0;

/// Some I/O took at most this share of the mean latency.
const FASTEST_MAX: f64 = 0.25;

/// The numbers that limits have, times a power of ten, and how far throughput may be from one.
const LIMITS: [f64; 14] = [1.0, 1.2, 1.25, 1.5, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 6.4, 7.5, 8.0];
const WITHIN: f64 = 0.005;

/// What a limit is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    IosPerS(f64),
    MibPerS(f64),
    /// Of 1000 kB.
    MbPerS(f64),
}

/// The finding of a run whose throughput stayed at a limit.
pub(super) fn at_limit(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let limit = limit_of(measured.samples).filter(|_| steady::is_judged(plan))?;
    let latencies = measured.working(plan).flat_map(|(_, known)| &known.stats.directions);
    let latencies = latencies.map(|direction| &direction.total.running).filter(|known| known.count > 0);
    let (count, sum_ns, min_ns) = latencies.fold((0, 0.0, u64::MAX), |(count, sum_ns, min_ns), known| {
        (count + known.count, sum_ns + known.count as f64 * known.mean(), min_ns.min(known.min()))
    });
    let mean_ns = sum_ns / count.max(1) as f64;
    (count > 0 && min_ns as f64 <= FASTEST_MAX * mean_ns).then(|| {
        let (number, unit) = match limit {
            Limit::IosPerS(number) => (number, "I/Os"),
            Limit::MibPerS(number) => (number, "MiB"),
            Limit::MbPerS(number) => (number, "MB"),
        };
        let [fastest, mean] = [min_ns, u64::capped(mean_ns)].map(|ns| Cell::Latency(ns).shown());
        let sentence = format!(
            "throughput stayed at {number} {unit} per second, as a limit makes it: an I/O took {fastest} at least and {mean} \
             on average"
        );
        let remedy = "look for a limit of the volume, the instance or the hypervisor: it may be what was measured";
        let finding = Finding::new(Code::FlatAtLimit, Subject::Run, sentence, remedy);
        finding.based_on([
            ("limit", Cell::Number(number, 0)),
            ("unit_per_s", Cell::Text(unit.to_string())),
            ("fastest_ms", Cell::Number(min_ns as f64 / 1e6, 3)),
            ("mean_ms", Cell::Number(mean_ns / 1e6, 3)),
        ])
    })
}

/// The limit that the last two thirds of a run stayed at.
fn limit_of(samples: &[ProgressSample]) -> Option<Limit> {
    let (first, last) = (samples.first()?, samples.last()?);
    let judged_from_ns = first.at_ns + (last.at_ns - first.at_ns) / 3;
    let mut ends = samples.iter().skip_while(|sample| sample.at_ns < judged_from_ns);
    let mut since = ends.next()?;
    let mut parts: Vec<(f64, f64)> = Vec::new();
    for end in ends {
        let length_ns = end.at_ns - since.at_ns;
        if length_ns >= PART_NS {
            let per_s = |done: u64| done as f64 * 1e9 / length_ns as f64;
            let bytes = |sample: &ProgressSample| sample.bytes.iter().sum::<u64>();
            parts.push((per_s(end.all_ios() - since.all_ios()), per_s(bytes(end) - bytes(since))));
            since = end;
        }
    }
    let ios_per_s = flat(parts.iter().map(|part| part.0)).filter(|rate| *rate >= PER_PART_MIN)?;
    let bytes_per_s = flat(parts.iter().map(|part| part.1))?;
    let (mib_per_s, mb_per_s) = (bytes_per_s / f64::from(1 << 20), bytes_per_s / 1e6);
    round(ios_per_s)
        .map(Limit::IosPerS)
        .or_else(|| round(mib_per_s).map(Limit::MibPerS))
        .or_else(|| round(mb_per_s).map(Limit::MbPerS))
        .filter(|_| parts.len() >= PARTS_MIN)
}

/// The mean, if none differs much.
fn flat(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let mean = values.clone().sum::<f64>() / values.clone().count().max(1) as f64;
    let spread = values.clone().fold(0.0, f64::max) - values.fold(f64::MAX, f64::min);
    (mean > 0.0 && spread <= SPREAD_MAX * mean).then_some(mean)
}

/// The limit that a rate is at, if it is at one.
fn round(rate: f64) -> Option<f64> {
    let power = 10_f64.powf(rate.log10().floor());
    // 998 is below the next power of ten.
    let limits = LIMITS.iter().flat_map(|limit| [limit * power, limit * power * 10.0]);
    limits.into_iter().find(|limit| rate >= 10.0 && (rate - limit).abs() <= WITHIN * limit)
}

#[cfg(test)]
mod tests {
    use fiord_stats::{JobStats, Latency};

    use crate::evidence::testing::{job, nothing};
    use crate::testing::plan;

    use super::*;

    /// The finding of a run of this many I/Os of 4 KiB in each second, of which the fastest and the mean took this long.
    fn found(per_s: &[u64], fastest_ns: u64, mean_ns: u64, option: (&'static str, &str)) -> Option<String> {
        let plan = plan(&[("a", &[("ioengine", "libaio"), ("filename", "/data/f"), option])]);
        let mut samples = vec![ProgressSample::default()];
        for (second, ios) in per_s.iter().enumerate() {
            let ios = samples[second].ios[0] + ios;
            let at_ns = (second as u64 + 1) * 1_000_000_000;
            samples.push(ProgressSample { at_ns, ios: [ios, 0, 0], bytes: [ios * 4096, 0, 0] });
        }
        let mut stats = JobStats::default();
        stats.directions[0].total = Latency::default();
        stats.directions[0].total.record(fastest_ns);
        stats.directions[0].total.record(2 * mean_ns - fastest_ns);
        let measured = Measurements { jobs: &[job(&stats)], samples: &samples, ..nothing() };
        at_limit(&plan, &measured).map(|finding| finding.sentence)
    }

    const PLAIN: (&str, &str) = ("iodepth", "32");

    #[test]
    fn throughput_at_a_limit_is_found() {
        let (fast, slow) = (400_000, 10_600_000);
        let flat = [3000, 3001, 2999, 3000, 3002, 3000, 2998, 3000, 3000, 3001, 3000, 3000];
        let sentence = "throughput stayed at 3000 I/Os per second, as a limit makes it: an I/O took 400us at least and \
                        10.6ms on average";
        assert_eq!(found(&flat, fast, slow, PLAIN).as_deref(), Some(sentence));
        let bursts: Vec<u64> = [12_000; 4].into_iter().chain(flat).collect();
        assert_eq!(found(&bursts, fast, slow, PLAIN).as_deref(), Some(sentence), "a burst at first");
        assert!(
            found(&[32_001; 13], fast, slow, PLAIN).unwrap().contains(" 125 MiB per second"),
            "4 KiB each"
        );
    }

    #[test]
    fn what_a_device_does_is_no_limit() {
        let (fast, slow) = (400_000, 10_600_000);
        assert_eq!(found(&[3000; 12], 9_000_000, slow, PLAIN), None, "it is no faster");
        assert_eq!(found(&[3140; 12], fast, slow, PLAIN), None, "no number that a limit has");
        let varied = [3000, 2960, 3020, 3000, 2990, 3040, 3000, 2970, 3010, 3000, 3000, 3030];
        assert_eq!(found(&varied, fast, slow, PLAIN), None, "it varies");
        assert_eq!(found(&[3000; 11], fast, slow, PLAIN), None, "too short");
        assert_eq!(found(&[20; 30], fast, slow, PLAIN), None, "too few");
        assert_eq!(found(&[3000; 12], fast, slow, ("rate_iops", "3000")), None, "held there on purpose");
    }

    #[test]
    fn rates_near_a_limit_are_at_it() {
        assert_eq!(
            [round(16_050.0), round(998.0), round(124.6)],
            [Some(16_000.0), Some(1000.0), Some(125.0)]
        );
        assert_eq!([round(16_200.0), round(9.99), round(0.0)], [None; 3]);
    }
}

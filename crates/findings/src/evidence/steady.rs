//! Whether throughput was steady, by the rules of SNIA's Performance Test Specification, and whether it ever stood still.
//!
//! Invariant: a job that is held back on purpose, or a run whose jobs come and go, is not judged.

use fiord_options::job;
use fiord_plan::Plan;
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};
use fiord_stats::steady::SLOPE_SHARE_MAX;
use fiord_stats::{ProgressSample, RunSteadiness};

use crate::subject::{self, percent};

/// Shorter runs have no finding: in a few seconds throughput varies for many reasons.
pub(crate) const RUN_MS_MIN: u64 = 10_000;

/// Where only the moments of samples are known: fewer say nothing …
pub(crate) const SAMPLES_MIN: u64 = 10;

/// … and from this standard deviation on, in percent of the mean, their rate was not steady.
const DEVIATION_MIN: f64 = 30.0;

/// No I/O for so long is a stall.
const STALL_NS: u64 = 900_000_000;

pub(super) fn of(
    plan: &Plan,
    samples: &[ProgressSample],
    steadiness: Option<&RunSteadiness>,
) -> Vec<Finding> {
    if !is_judged(plan) {
        return Vec::new();
    }
    stalled(samples).into_iter().chain(steadiness.and_then(unsteady)).collect()
}

/// Whether the jobs do I/O as fast as they can.
pub(super) fn is_judged(plan: &Plan) -> bool {
    plan.jobs.iter().any(subject::does_io) && !plan.jobs.iter().any(subject::is_paced)
}

fn stalled(samples: &[ProgressSample]) -> Option<Finding> {
    let mut longest: Option<(u64, u64)> = None;
    let mut since = samples.first()?;
    for sample in samples {
        if sample.all_ios() > since.all_ios() {
            since = sample;
            continue;
        }
        let lasted_ns = sample.at_ns - since.at_ns;
        if lasted_ns >= STALL_NS && longest.is_none_or(|(known_ns, _)| lasted_ns > known_ns) {
            longest = Some((lasted_ns, since.at_ns));
        }
    }
    let (lasted_ns, at_ns) = longest?;
    let (lasted_s, at_s) = (lasted_ns as f64 / 1e9, at_ns as f64 / 1e9);
    let sentence = format!("no I/O completed for {lasted_s:.1} s, beginning {at_s:.0} s after its start");
    let remedy = "look in the kernel's log at that time";
    let finding = Finding::new(Code::Stalled, Subject::Run, sentence, remedy);
    Some(finding.based_on([("stalled_s", Cell::Number(lasted_s, 1)), ("at_s", Cell::Number(at_s, 1))]))
}

/// Samples of a rate in one direction.
pub(crate) struct SampledRate {
    /// `read`, `write` or `trim`.
    pub direction: &'static str,
    /// They are of bytes, and not of I/Os.
    pub is_bandwidth: bool,
    pub lowest: u64,
    pub highest: u64,
    pub mean: f64,
    pub stddev: f64,
}

/// The finding about the least steady of these rates, where nothing but the moments of samples is known.
pub(crate) fn by_samples(subject: Subject, rates: impl Iterator<Item = SampledRate>) -> Option<Finding> {
    let deviation = |rate: &SampledRate| percent(rate.stddev, rate.mean);
    let worst = rates
        .filter(|rate| deviation(rate) >= DEVIATION_MIN)
        .max_by(|one, other| deviation(one).total_cmp(&deviation(other)))?;
    let SampledRate { direction, is_bandwidth, lowest, highest, .. } = worst;
    let shown = |rate: u64| if is_bandwidth { format!("{}/s", shown_bytes(rate)) } else { rate.to_string() };
    let (what, were) = if is_bandwidth { ("bandwidth", "was") } else { ("IOPS", "were") };
    let deviation = deviation(&worst);
    let sentence = format!(
        "{what} of {direction}s {were} from {} to {} in samples, with a standard deviation of {deviation:.0} % of their mean",
        shown(lowest),
        shown(highest)
    );
    let remedy =
        "write_iops_log shows when; run until it is steady, and leave out the part before with ramp_time";
    let finding = Finding::new(Code::NotSteady, subject, sentence, remedy).of_option(job::Time::ramp_time);
    Some(finding.based_on([("deviation_percent", Cell::Number(deviation, 1))]))
}

fn unsteady(steadiness: &RunSteadiness) -> Option<Finding> {
    let RunSteadiness { run_ms, slope_share, excursion_share, part } = *steadiness;
    if run_ms < RUN_MS_MIN || part.is_some_and(|part| part.from_ms == 0) {
        return None;
    }
    let (change_percent, excursion_percent) = (100.0 * slope_share, 100.0 * excursion_share);
    let how = if slope_share.abs() > SLOPE_SHARE_MAX {
        // A fall cannot exceed what there was.
        let (way, higher_end) = if slope_share < 0.0 { ("fell", "first") } else { ("rose", "last") };
        let share = slope_share.abs() / (1.0 + slope_share.abs() / 2.0);
        format!(
            "throughput {way} over the run, by {:.0} % of what it was at {higher_end}",
            100.0 * share.min(1.0)
        )
    } else {
        format!("throughput varied between parts of the run, by {excursion_percent:.0} % of its mean")
    };
    let seconds = |ms: u64| ms as f64 / 1000.0;
    let mut figures = vec![
        ("change_percent", Cell::Number(change_percent, 1)),
        ("excursion_percent", Cell::Number(excursion_percent, 1)),
    ];
    let sentence = match part {
        Some(part) => {
            let (from_s, run_s) = (seconds(part.from_ms), seconds(run_ms));
            let mib_per_s = part.bytes_per_s.iter().sum::<f64>() / f64::from(1 << 20);
            figures.push(("steady_from_s", Cell::Number(from_s, 1)));
            figures.push(("steady_mib_per_s", Cell::Number(mib_per_s, 1)));
            format!(
                "{how}; it was steady from {from_s:.1} s to {run_s:.1} s of {run_s:.1}, at {mib_per_s:.1} MiB/s"
            )
        }
        None => format!("{how}, and it was not steady at the end of the run either"),
    };
    let remedy = "leave out the part before with ramp_time, or run longer";
    let finding =
        Finding::new(Code::NotSteady, Subject::Run, sentence, remedy).of_option(job::Time::ramp_time);
    Some(finding.based_on(figures))
}

#[cfg(test)]
mod tests {
    use crate::testing::plan;

    use super::*;

    /// The findings of a run with these I/Os in each second.
    fn found(options: &[(&'static str, &str)], per_s: &[u64]) -> Vec<String> {
        let common = [("ioengine", "psync"), ("filename", "/data/f")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let mut samples = vec![ProgressSample::default()];
        for (second, ios) in per_s.iter().enumerate() {
            let ios = samples[second].ios[0] + ios;
            let at_ns = (second as u64 + 1) * 1_000_000_000;
            samples.push(ProgressSample { at_ns, ios: [ios, 0, 0], bytes: [ios * 4096, 0, 0] });
        }
        let plan = plan(&[("a", &options)]);
        let steadiness = crate::steadiness(&plan, &samples);
        of(&plan, &samples, steadiness.as_ref()).into_iter().map(|finding| finding.sentence).collect()
    }

    // divergence: throughput that changes during a run
    #[test]
    fn throughput_that_falls_or_varies_is_found() {
        let falling: Vec<u64> = (0..10).map(|second| 1000 - 40 * second).collect();
        let found_falling = found(&[], &falling);
        assert_eq!(
            found_falling,
            [
                "throughput fell over the run, by 33 % of what it was at first, and it was not steady at the end of the run either"
            ]
        );
        let bump = [1000, 1000, 1000, 1000, 1300, 1300, 1000, 1000, 1000, 1000];
        let sentence = "throughput varied between parts of the run, by 28 % of its mean, and it was not steady at the end of the run either";
        assert_eq!(found(&[], &bump), [sentence]);
        let settling: Vec<u64> = [4000; 5].into_iter().chain([1000; 15]).collect();
        let sentence = "throughput fell over the run, by 87 % of what it was at first; it was steady from 5.0 s to 20.0 s of 20.0, at 3.9 MiB/s";
        assert_eq!(found(&[], &settling), [sentence]);
        let steady = [1000, 1020, 990, 1010, 1000, 980, 1005, 1015, 995, 1000];
        assert_eq!(found(&[], &steady), [""; 0]);
        assert_eq!(found(&[], &falling[..9]), [""; 0], "too short to say");
        assert_eq!(found(&[("rate_iops", "1000")], &falling), [""; 0], "held back on purpose");
    }

    #[test]
    fn a_second_without_any_io_is_found() {
        let sentence = "no I/O completed for 2.0 s, beginning 2 s after its start";
        assert_eq!(found(&[], &[10, 10, 0, 0, 10]), [sentence]);
        assert_eq!(found(&[], &[10, 10, 1, 10]), [""; 0]);
        assert_eq!(found(&[("thinktime", "2s")], &[10, 0, 10]), [""; 0]);
    }
}

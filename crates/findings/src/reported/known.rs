//! What is known of one job of a report, and what follows from it alone.
//!
//! Invariant: a check that lacks a figure says which.

use fiord_import::{DirectionFigures, DirectionName, JobFigures, LatencyFigures, Report, SampleMoments};
use fiord_options::value::{Reading, Seconds, Size, Value};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};
use fiord_stats::Capped;

use super::checks::Outcome;
use crate::evidence::depth::Delay;
use crate::evidence::slow::{self, LongestIo};
use crate::evidence::steady::{self, SampledRate};
use crate::evidence::waits::{self, ComparedLatencies, Unserved};
use crate::evidence::{depth, errors, length, processor};
use crate::lint::queue;
use crate::subject::percent;

/// What is known about engines by name.
#[derive(Clone, Copy)]
pub struct EngineFacts<'a> {
    /// Whether an engine of this name keeps several I/Os in flight; `None` if it is not known.
    pub can_queue: &'a dyn Fn(&str) -> Option<bool>,
}

/// Shorter runs say little about processors.
const RUN_MS_MIN: u64 = 500;

/// From this share of the latency on, I/Os are waited for while they are submitted, in percent.
const SUBMISSION_MIN: f64 = 50.0;

/// Samples that vary by less than this, in percent of their mean, are those of a rate that something holds constant.
const CONSTANT_MAX: f64 = 0.5;

/// Options that hold a job back on purpose.
const PACED: [&str; 7] =
    ["rate", "rate_iops", "rate_min", "thinktime", "rate_process", "flow", "latency_target"];

/// Why checks cannot be made.
const NO_SETUP: &str = "the report does not show how its jobs were set up";
pub(super) const NO_RUNTIME: &str = "the run time of a job is missing";
const NO_LATENCY: &str = "latencies are missing";

/// A job and where its options are.
pub(super) struct Known<'r> {
    pub report: &'r Report,
    pub job: &'r JobFigures,
}

impl<'r> Known<'r> {
    pub fn subject(&self) -> Subject {
        Subject::Job(self.report.name_of(self.job).into_owned())
    }

    /// Whether the report says how the job was set up.
    pub fn has_options(&self) -> bool {
        !self.job.options.is_empty() || !self.report.global_options.is_empty()
    }

    /// The text of an option, which has several names.
    pub fn option(&self, names: &[&str]) -> Option<&'r str> {
        let in_list = |options: &'r [(String, String)]| {
            let last = options.iter().rev().find(|(name, _)| names.contains(&name.as_str()));
            last.map(|(_, text)| text.as_str())
        };
        in_list(&self.job.options).or_else(|| in_list(&self.report.global_options))
    }

    pub fn is_set(&self, names: &[&str]) -> bool {
        self.option(names).is_some_and(|text| text != "0")
    }

    /// The engine and `iodepth`, from the options or from the heading of the job's section.
    pub fn queue(&self) -> Option<(String, u32)> {
        if self.has_options() {
            let engine = self.option(&["ioengine"]).unwrap_or("psync").to_string();
            let depth = self.option(&["iodepth"]).map_or(Some(1), |text| text.trim().parse().ok())?;
            return Some((engine, depth));
        }
        let heading = self.job.heading.as_ref()?;
        Some((heading.ioengine.clone()?, heading.iodepth?))
    }

    pub fn active(&self) -> impl Iterator<Item = &'r DirectionFigures> + Clone {
        // Mixed is the sum of the others, where there are others.
        let separate = self.job.directions.iter().any(|of| of.name != DirectionName::Mixed);
        let counted =
            move |of: &&DirectionFigures| of.is_active() && (of.name != DirectionName::Mixed || !separate);
        self.job.directions.iter().filter(counted)
    }

    pub fn runtime_ms(&self) -> u64 {
        self.active().filter_map(|of| of.runtime_ms).max().unwrap_or(0)
    }

    /// I/Os and syncs in flight on average: their rate times their mean latency (Little's law).
    pub fn mean_depth(&self) -> Option<f64> {
        let in_flight = |of: &DirectionFigures| Some(ios(of)? * of.lat.as_ref()?.mean_ns?);
        let syncs = &self.job.sync;
        let of_syncs = || Some(syncs.ios? as f64 * syncs.lat.as_ref()?.mean_ns?);
        let sum = self.active().map(in_flight).sum::<Option<f64>>()? + of_syncs().unwrap_or(0.0);
        let runtime_ms = self.runtime_ms();
        (runtime_ms > 0).then(|| sum / (runtime_ms as f64 * 1e6))
    }

    /// Whether an option holds it back on purpose; a report without options does not say.
    pub fn is_paced(&self) -> bool {
        PACED.iter().any(|option| self.is_set(&[option]))
    }

    /// Whether its rate is so constant that something must hold it.
    pub fn is_constant(&self) -> bool {
        let deviation = |samples: &SampleMoments| Some(percent(samples.stddev?, samples.mean?));
        let constant = |of: &DirectionFigures| {
            let samples = of.iops_samples.as_ref().or(of.bandwidth_samples.as_ref());
            samples.and_then(deviation).is_some_and(|deviation| deviation < CONSTANT_MAX)
        };
        self.active().all(constant)
    }

    pub fn errors(&self) -> Outcome {
        self.job.error.ok_or("the error number of a job is missing")?;
        Ok(self.job.errors.and_then(|errors| errors::ignored(self.subject(), errors.total)))
    }

    pub fn depth(&self, engines: EngineFacts<'_>) -> Outcome {
        let (engine, asked) = self.queue().ok_or(NO_SETUP)?;
        let jobs = self.job.member_count.or_else(|| self.option(&["numjobs"])?.parse().ok()).unwrap_or(1);
        // The null engine completes at once.
        if asked <= 1 || engine == "null" || self.is_paced() {
            return Ok(None);
        }
        if !(engines.can_queue)(&engine).ok_or("fiord does not know the engine")? {
            return Ok(Some(queue::stays_at_one(self.subject(), &engine, asked)));
        }
        let count: f64 = self.active().filter_map(ios).sum();
        if count < (depth::IOS_PER_DEPTH_MIN * u64::from(asked)) as f64 {
            return Err("too few I/Os for a mean depth");
        }
        if !self.has_options() && self.is_constant() {
            return Err(
                "the rate is so constant that an option, which the report does not show, may hold it",
            );
        }
        let mean = self.mean_depth().ok_or(NO_LATENCY)? / f64::from(jobs.max(1));
        let is_buffered = self.has_options() && !self.is_set(&["direct"]);
        let delay = if is_buffered { Delay::Buffered } else { Delay::Unknown };
        Ok(depth::below(self.subject(), asked, mean, delay).map(|found| match self.has_options() {
            true => found,
            false => Finding {
                remedy: format!("{}, or a rate or think time, which the report does not show", found.remedy)
                    .into(),
                ..found
            },
        }))
    }

    /// By the samples of its rate.
    pub fn steadiness(&self) -> Outcome {
        if self.is_paced() || self.active().next().is_none() {
            return Ok(None);
        }
        match self.runtime_ms() {
            0 => return Err(NO_RUNTIME),
            1..steady::RUN_MS_MIN => return Err("a run shorter than 10 s"),
            _ => {}
        }
        let rates = self.active().filter_map(|of| {
            let samples =
                of.iops_samples.as_ref().filter(|samples| samples.mean.is_some_and(|mean| mean > 0.0));
            let is_bandwidth = samples.is_none();
            let samples = samples.or(of.bandwidth_samples.as_ref())?;
            Some(SampledRate {
                direction: of.name.name(),
                is_bandwidth,
                lowest: samples.min?,
                highest: samples.max?,
                mean: samples.mean.filter(|mean| *mean > 0.0)?,
                stddev: samples
                    .stddev
                    .filter(|_| samples.count.is_none_or(|count| count >= steady::SAMPLES_MIN))?,
            })
        });
        let rates: Vec<SampledRate> = rates.collect();
        if rates.len() < self.active().count() {
            return Err("too few samples, or none");
        }
        Ok(steady::by_samples(self.subject(), rates.into_iter()))
    }

    pub fn longest(&self) -> Outcome {
        let longest = self.active().map(|of| {
            let latency =
                [&of.lat, &of.clat].into_iter().flatten().find(|latency| latency.max_ns.is_some())?;
            Some(LongestIo {
                direction: of.name.name(),
                longest_ns: latency.max_ns?,
                mean_ns: latency.mean_ns?,
            })
        });
        let longest: Option<Vec<LongestIo>> = longest.collect();
        Ok(slow::longest_of(self.subject(), longest.ok_or(NO_LATENCY)?.into_iter()))
    }

    /// libaio that waits for its I/O when it submits it.
    pub fn submission(&self) -> Option<Finding> {
        let (engine, asked) = self.queue()?;
        if engine != "libaio" || asked <= 1 || self.is_set(&["direct"]) {
            return None;
        }
        let share =
            |of: &DirectionFigures| Some(percent(of.slat.as_ref()?.mean_ns?, of.lat.as_ref()?.mean_ns?));
        let worst = self.active().filter_map(share).max_by(f64::total_cmp)?;
        (worst >= SUBMISSION_MIN).then(|| {
            let sentence = format!("slat is {worst:.0} % of lat: each submission waits for its I/O");
            Finding::new(Code::BufferedAsync, self.subject(), sentence, "direct=1, or ioengine=io_uring")
                .based_on([
                    ("submission_percent", Cell::Number(worst, 1)),
                    ("iodepth", Cell::Count(u64::from(asked))),
                ])
        })
    }

    pub fn processor(&self) -> Outcome {
        let (cpu, members) = (&self.job.cpu, self.job.member_count.unwrap_or(1));
        let (user, system) = cpu.user_percent.zip(cpu.system_percent).ok_or("their use is missing")?;
        let used = user + system;
        match self.runtime_ms() {
            0 => return Err(NO_RUNTIME),
            1..RUN_MS_MIN => return Err("a run shorter than 0.5 s"),
            _ => {}
        }
        let on_purpose = self.queue().is_some_and(|(engine, _)| engine == "null" || engine == "cpuio")
            || self.is_set(&["hipri", "thinktime_spin"])
            || self.option(&["iodepth_batch_complete_min", "iodepth_batch_complete"]) == Some("0");
        let is_bound = used >= processor::BOUND_MIN && !on_purpose;
        Ok(is_bound.then(|| processor::busy(self.subject(), used.min(100.0), members as usize)))
    }

    pub fn few_samples(&self) -> Outcome {
        let has_percentiles = |of: &DirectionFigures| {
            [&of.clat, &of.lat].into_iter().flatten().any(|latency| !latency.percentiles.is_empty())
        };
        if !self.active().all(has_percentiles) {
            return Err("the report has no percentiles");
        }
        let lacking = |of: &DirectionFigures| {
            let latency =
                [&of.clat, &of.lat].into_iter().flatten().find(|latency| !latency.percentiles.is_empty())?;
            let count = u64::capped(ios(of)?);
            let percentiles = latency.percentiles.iter().map(|known| known.percent);
            Some((length::first_lacking(percentiles, count)?, count))
        };
        let worst = self.active().filter_map(lacking).min_by(|one, other| one.0.total_cmp(&other.0));
        Ok(worst.map(|(percentile, count)| length::few(self.subject(), percentile, count)))
    }

    /// Waits that the response latency has, and the latency from the issue at the same percentile leaves out.
    pub fn hidden_waits(&self) -> Option<Finding> {
        let compared = self.active().filter_map(|of| {
            let percentile = waits::percentile_of(u64::capped(ios(of)?))?;
            let at = |latency: &LatencyFigures| latency.percentile_ns(percentile);
            let issue_ns = of.lat.as_ref().and_then(at).or_else(|| of.clat.as_ref().and_then(at))?;
            let response_ns = of.response.as_ref().and_then(at)?;
            Some(ComparedLatencies { direction: of.name.name(), percentile, issue_ns, response_ns })
        });
        waits::hidden(self.subject(), self.is_set(&["rate_iops"]), compared)
    }

    pub fn never_issued(&self) -> Option<Finding> {
        let unserved =
            self.active().filter_map(|of| Unserved::of(of.name.name(), &of.counts, u64::capped(ios(of)?)));
        let depth = self.queue().map_or(1, |(_, depth)| u64::from(depth));
        waits::lost(self.subject(), depth, unserved)
    }

    /// Only if the job transferred as much as its `size`: it may have ended for other reasons.
    pub fn stopped_by_size(&self) -> Option<Finding> {
        let mut reading = Reading::default();
        let asked_s =
            Seconds::parse(self.option(&["runtime", "timeout"])?, &mut reading).ok()?.us as f64 / 1e6;
        let Size::Bytes(size) = Size::parse(self.option(&["size"])?, &mut reading).ok()? else { return None };
        let moved: u64 = self.active().filter_map(|of| of.bytes).sum();
        let jobs = u64::from(self.job.member_count.unwrap_or(1));
        let is_done =
            !self.is_set(&["time_based"]) && self.job.error == Some(0) && moved >= size.saturating_mul(jobs);
        if is_done { length::stopped(self.subject(), self.runtime_ms() as f64 / 1e3, asked_s) } else { None }
    }
}

/// I/Os of a direction; where they are not counted, those of its rate and its time.
pub(super) fn ios(of: &DirectionFigures) -> Option<f64> {
    match of.ios {
        Some(ios) => Some(ios as f64),
        None => Some((of.iops? * of.runtime_ms? as f64 / 1000.0).round()),
    }
}

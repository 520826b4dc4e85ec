//! Whether the figures are limited by processors and not by the device.
//!
//! Invariant: shares are of the processors that this process may use, over the time between two readings.

use fiord_host::HostReading;
use fiord_plan::{Job, Plan};
use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject};

use super::measured::{JobEvidence, Measurements};
use crate::subject::{self, percent};

/// A worker that uses more of a processor than this is limited by it, in percent.
pub(crate) const BOUND_MIN: f64 = 95.0;

/// Shorter runs are not judged: the kernel counts in ticks of 10 ms, and the first I/Os cost more than others.
const RUN_MIN_NS: u64 = 500_000_000;

/// With less idle time than this, in percent, no processor was free.
const IDLE_MAX: f64 = 5.0;

/// What others must have used, in percent, to be the reason.
const OTHERS_MIN: f64 = 25.0;

/// If tasks waited for a processor for less than this, in percent, there were enough of them.
const WAITED_MIN: f64 = 5.0;

/// A shorter part of a run is not worth a finding, in seconds and in percent of the run.
const PART_MIN_S: f64 = 1.5;
const PART_MIN: f64 = 5.0;

/// If the highest frequency falls to less than this share of what it was, it was lowered on purpose, in percent.
const FREQUENCY_MIN: f64 = 95.0;

/// From these shares on, time taken away matters, in percent.
const STOLEN_MIN: f64 = 5.0;
const THROTTLED_MIN: f64 = 2.0;

/// How the time of the processors was used between two readings, in percent.
struct Shares {
    idle: f64,
    stolen: f64,
    own: f64,
    others: f64,
    /// The share of the time in which some task of the machine waited for a processor; `None` if the kernel does not
    /// count it.
    waited: Option<f64>,
}

impl Shares {
    /// `None` if the kernel counted no time.
    fn between(start: &HostReading, end: &HostReading) -> Option<Shares> {
        let ticks = end.cpu.since(&start.cpu);
        let share = |part: u64| percent(part as f64, ticks.all() as f64);
        let elapsed_ns = end.taken_ns.saturating_sub(start.taken_ns) as f64;
        let own_ns = end.own_cpu_ns.saturating_sub(start.own_cpu_ns) as f64;
        let own = percent(own_ns, elapsed_ns * end.cpus.max(1) as f64);
        let waited_us = end.pressure.cpu_us.zip(start.pressure.cpu_us);
        let waited_us = waited_us.map(|(end, start)| end.saturating_sub(start) as f64);
        (ticks.all() > 0).then(|| Shares {
            idle: share(ticks.unused()),
            stolen: share(ticks.steal),
            own,
            others: (share(ticks.user + ticks.system) - own).max(0.0),
            waited: waited_us.map(|waited_us| percent(waited_us * 1e3, elapsed_ns).min(100.0)),
        })
    }

    /// Whether tasks had to wait for a processor because of other programs.
    fn contended(&self) -> bool {
        let had_to_wait = self.waited.is_none_or(|waited| waited >= WAITED_MIN);
        self.idle < IDLE_MAX && self.others >= OTHERS_MIN && had_to_wait
    }
}

/// Time that others took: programs, the hypervisor, control groups.
pub(super) fn of_host(measured: &Measurements<'_>) -> Vec<Finding> {
    let Some((start, end)) = measured.ends() else { return Vec::new() };
    if end.taken_ns.saturating_sub(start.taken_ns) < RUN_MIN_NS {
        return Vec::new();
    }
    let shares = Shares::between(start, end);
    let contended = shares.as_ref().and_then(contended).or_else(|| contended_at_times(measured));
    let findings = contended.into_iter().chain(shares.as_ref().and_then(stolen));
    findings.chain(throttled(start, end)).chain(slowed(start, end)).collect()
}

fn contended(shares: &Shares) -> Option<Finding> {
    shares.contended().then(|| {
        let sentence = format!(
            "other programs kept the processors busy: they used {:.0} %, this run {:.0} %",
            shares.others, shares.own
        );
        let remedy = "stop the other programs, and repeat the run";
        let finding = Finding::new(Code::CpuContended, Subject::Machine, sentence, remedy).based_on([
            ("others_percent", Cell::Number(shares.others, 1)),
            ("own_percent", Cell::Number(shares.own, 1)),
            ("idle_percent", Cell::Number(shares.idle, 1)),
        ]);
        finding.based_on(shares.waited.map(|waited| ("waited_percent", Cell::Number(waited, 1))))
    })
}

/// Contended during a part of the run alone, by its readings about once per second.
fn contended_at_times(measured: &Measurements<'_>) -> Option<Finding> {
    let is_contended = |earlier: &HostReading, later: &HostReading| {
        Shares::between(earlier, later).is_some_and(|shares| shares.contended())
    };
    let (busy_s, all_s) = measured.seconds_when(is_contended);
    (busy_s >= PART_MIN_S && percent(busy_s, all_s) >= PART_MIN).then(|| {
        let sentence = format!("other programs kept the processors busy for {busy_s:.0} of {all_s:.0} s");
        let remedy = "stop the other programs, and repeat the run";
        let finding = Finding::new(Code::ForeignCpu, Subject::Machine, sentence, remedy);
        finding.based_on([("contended_s", Cell::Number(busy_s, 0)), ("judged_s", Cell::Number(all_s, 0))])
    })
}

fn stolen(shares: &Shares) -> Option<Finding> {
    (shares.stolen >= STOLEN_MIN).then(|| {
        let sentence = format!(
            "the hypervisor gave {:.0} % of the processors' time to other virtual machines",
            shares.stolen
        );
        let remedy = "repeat the run when the host is idle";
        let finding = Finding::new(Code::StolenCpu, Subject::Machine, sentence, remedy);
        finding.based_on([("stolen_percent", Cell::Number(shares.stolen, 1))])
    })
}

/// A limit of a control group on processor time.
fn throttled(start: &HostReading, end: &HostReading) -> Option<Finding> {
    let of = |reading: &HostReading| reading.totals.as_ref()?.throttled_us;
    let throttled_us = of(end)?.saturating_sub(of(start)?);
    let elapsed_ns = end.taken_ns.saturating_sub(start.taken_ns) as f64;
    let share = percent(throttled_us as f64 * 1e3, elapsed_ns);
    (share >= THROTTLED_MIN).then(|| {
        let sentence = format!(
            "a control group's limit on processor time stopped this run for {} ms",
            throttled_us / 1000
        );
        let remedy = "raise cpu.max, or run outside the group";
        Finding::new(Code::CpuThrottled, Subject::Machine, sentence, remedy).based_on([
            ("throttled_us", Cell::Count(throttled_us)),
            ("throttled_percent", Cell::Number(share, 1)),
        ])
    })
}

/// A limit on the frequency of processors that was lowered during the run: for their power, or by hand.
fn slowed(start: &HostReading, end: &HostReading) -> Option<Finding> {
    let mhz = |reading: &HostReading| Some(reading.totals.as_ref()?.frequency_khz_max? / 1000);
    let (before_mhz, after_mhz) = (mhz(start)?, mhz(end)?);
    (percent(after_mhz as f64, before_mhz as f64) < FREQUENCY_MIN).then(|| {
        let sentence = format!(
            "the highest frequency of the processors was lowered from {before_mhz} to {after_mhz} MHz during the run"
        );
        let remedy = "look for a limit on their power or temperature, and repeat the run";
        Finding::new(Code::HostLimits, Subject::Machine, sentence, remedy).based_on([
            ("allowed_mhz_before", Cell::Count(before_mhz)),
            ("allowed_mhz_after", Cell::Count(after_mhz)),
        ])
    })
}

/// Workers that used a whole processor each and could not do more I/O.
pub(super) fn bound(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let share = |known: &JobEvidence<'_>| {
        let usage = &known.stats.usage;
        percent((usage.user_us + usage.system_us) as f64 / 1e3, usage.elapsed_ms as f64)
    };
    let judged = |(job, known): &(&Job, &JobEvidence<'_>)| {
        !spins(job) && known.stats.usage.elapsed_ms * 1_000_000 >= RUN_MIN_NS && share(known) >= BOUND_MIN
    };
    let bound: Vec<_> = measured.working(plan).filter(judged).collect();
    let (job, known) = bound.first()?;
    Some(busy(subject::job(job), share(known).min(100.0), bound.len()))
}

/// The finding of this many jobs that used so much of a processor each.
pub(crate) fn busy(subject: Subject, percent: f64, count: usize) -> Finding {
    let sentence = match count {
        1 => format!("its thread used {percent:.0} % of a processor: the host limits it, not the device"),
        _ => format!(
            "it and {} more used {percent:.0} % of a processor each: the host limits them, not the device",
            count - 1
        ),
    };
    let remedy = "more jobs, larger blocks, or an engine with a lower cost per I/O";
    let finding = Finding::new(Code::CpuBound, subject, sentence, remedy);
    finding.based_on([("cpu_percent", Cell::Number(percent, 1)), ("jobs", Cell::Count(count as u64))])
}

/// Whether it uses a processor on purpose: it polls, or spins during its think time.
fn spins(job: &Job) -> bool {
    let thinks = job.pace.think.is_some_and(|think| think.spin_us > 0 || think.cycles > 0);
    thinks || (job.engine.descriptor.can_queue() && job.depth.complete_min == 0)
}

#[cfg(test)]
mod tests {
    use fiord_host::{CpuTicks, HostTotals, Pressure};
    use fiord_stats::{JobStats, Usage};

    use crate::evidence::testing::{job, nothing};
    use crate::testing::plan;

    use super::*;

    /// Two processors after this many seconds: ticks of 10 ms used by all, idle and stolen; seconds of this process.
    fn at(at_s: u64, busy: u64, idle: u64, steal: u64, own_s: u64) -> HostReading {
        HostReading {
            taken_ns: at_s * 1_000_000_000,
            cpu: CpuTicks { user: busy, idle, steal, ..CpuTicks::default() },
            cpus: 2,
            own_cpu_ns: own_s * 1_000_000_000,
            ..HostReading::default()
        }
    }

    fn codes(host: &[HostReading]) -> Vec<Code> {
        let found = of_host(&Measurements { host, ..nothing() });
        found.into_iter().map(|finding| finding.code).collect()
    }

    /// Ten seconds, during which limits of control groups stopped the run for some of the time.
    fn host(busy: u64, idle: u64, steal: u64, own_s: u64, throttled_us: u64) -> Vec<Code> {
        let with = |reading: HostReading, throttled_us| HostReading {
            totals: Some(HostTotals { throttled_us: Some(throttled_us), ..HostTotals::default() }),
            ..reading
        };
        codes(&[with(at(0, 0, 0, 0, 0), 0), with(at(10, busy, idle, steal, own_s), throttled_us)])
    }

    #[test]
    fn processors_that_others_keep_busy_are_found() {
        assert_eq!(host(1990, 10, 0, 2, 0), [Code::CpuContended]);
        assert_eq!(host(1990, 10, 0, 19, 0), [], "by this run itself");
        assert_eq!(host(1700, 300, 0, 2, 0), [], "one could be had");
        assert_eq!(host(0, 0, 0, 0, 0), [], "nothing is known");
    }

    /// The kernel counts for how long tasks waited for a processor.
    #[test]
    fn busy_processors_for_which_nobody_waited_are_not_contended() {
        let waited = |waited_us: u64| {
            let with = |reading: HostReading, cpu_us| HostReading {
                pressure: Pressure { cpu_us: Some(cpu_us), ..Pressure::default() },
                ..reading
            };
            codes(&[with(at(0, 0, 0, 0, 0), 9), with(at(10, 2000, 0, 0, 10), 9 + waited_us)])
        };
        assert_eq!(waited(600_000), [Code::CpuContended]);
        assert_eq!(waited(400_000), [], "each had a processor of its own");
    }

    #[test]
    fn processors_that_others_keep_busy_for_a_part_of_the_run_are_found() {
        // Busy from the second on up to this one, of ten.
        let busy_until = |last_s: u64| {
            let host: Vec<HostReading> = (0..=10)
                .map(|at_s| {
                    let busy_s = at_s.clamp(1, last_s) - 1;
                    at(at_s, 200 * busy_s, 200 * (at_s - busy_s), 0, 0)
                })
                .collect();
            codes(&host)
        };
        assert_eq!(busy_until(1), []);
        assert_eq!(busy_until(2), [], "a second is not worth it");
        assert_eq!(busy_until(4), [Code::ForeignCpu]);
    }

    #[test]
    fn a_frequency_that_is_lowered_during_the_run_is_found() {
        let found = |before_khz: Option<u64>, after_khz: Option<u64>| {
            let with = |at_s, khz| HostReading {
                totals: Some(HostTotals { frequency_khz_max: khz, ..HostTotals::default() }),
                ..at(at_s, 0, 200 * at_s, 0, 0)
            };
            codes(&[with(0, before_khz), with(10, after_khz)])
        };
        assert_eq!(found(Some(3_600_000), Some(1_200_000)), [Code::HostLimits]);
        assert_eq!(found(Some(3_600_000), Some(3_500_000)), []);
        assert_eq!(found(Some(1_200_000), Some(3_600_000)), []);
        assert_eq!(found(None, Some(3_600_000)), []);
    }

    #[test]
    fn time_taken_by_the_hypervisor_or_a_limit_is_found() {
        assert_eq!(host(800, 1000, 200, 5, 0), [Code::StolenCpu]);
        assert_eq!(host(800, 1120, 80, 5, 0), []);
        assert_eq!(host(800, 1200, 0, 5, 300_000), [Code::CpuThrottled]);
        assert_eq!(host(800, 1200, 0, 5, 100_000), []);
    }

    fn bound_at(options: &[(&'static str, &str)], user_ms: u64, elapsed_ms: u64) -> Option<String> {
        let common = [("ioengine", "psync"), ("filename", "/data/f")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let plan = plan(&[("a", &options), ("b", &options)]);
        let usage = Usage { user_us: user_ms * 1000, elapsed_ms, ..Usage::default() };
        let stats = JobStats { usage, ..JobStats::default() };
        let jobs = [job(&stats), job(&stats)];
        bound(&plan, &Measurements { jobs: &jobs, ..nothing() }).map(|finding| finding.sentence)
    }

    #[test]
    fn workers_at_the_limit_of_a_processor_are_found_once() {
        let sentence = bound_at(&[], 9700, 10_000).unwrap();
        assert!(sentence.starts_with("it and 1 more used 97 % of a processor each"), "{sentence}");
        assert_eq!(bound_at(&[], 9400, 10_000), None);
        assert_eq!(bound_at(&[], 300, 300), None, "too short");
        assert_eq!(bound_at(&[("ioengine", "null")], 9900, 10_000), None, "there is no device");
        let polls = [("ioengine", "libaio"), ("iodepth", "4"), ("iodepth_batch_complete_min", "0")];
        assert_eq!(bound_at(&polls, 9900, 10_000), None, "it polls");
    }
}

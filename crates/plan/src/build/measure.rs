//! What is measured, what errors do, and how the job is shown.
//!
//! Invariant: `gtod_reduce` switches off exactly what needs a clock: the latencies. Throughput samples cost a worker
//! nothing, and fio takes them under `gtod_reduce` too.

use fiord_errno::Errno;
use fiord_options::Spec;
use fiord_options::job;
use fiord_options::job::JobOptions;
use fiord_options::shown;
use fiord_options::value::{self, ContinueOnError, KbBase, UnifiedRwReporting, UnitBase};

use super::section::ResolvedSection;
use crate::access::{Access, PerDirection};
use crate::engine::EngineDescriptor;
use crate::job::{ClockSource, ErrorPolicy, Measure};
use crate::pace::LatencyTarget;
use crate::presentation::{Presentation, RateUnit, Unified};

const NS_PER_US: u64 = 1000;

/// What `continue_on_error` ignores: EIO and EILSEQ. Any other error would occur at every I/O.
const USUALLY_PASSED_OVER: [i32; 2] = [5, 84];

/// What is recorded of a worker.
pub(crate) fn measure(section: &ResolvedSection<'_>) -> Measure {
    let options = section.options;
    let reduced = options.time.gtod_reduce;
    let recorded = |disabled: bool| !disabled && !reduced;
    let calls_names = section.engine().is_some_and(|engine| engine.name_call().is_some());
    let (submission, completion, total) = (
        recorded(options.measure.disable_slat),
        recorded(options.measure.disable_clat),
        // A call on a name has no submission that a total could begin with: as in fio, it has one latency.
        recorded(options.measure.disable_lat) && !calls_names,
    );
    Measure {
        clock: match options.time.clocksource {
            _ if reduced => ClockSource::None,
            _ if options.time.gtod_cpu.is_some() => ClockSource::Kept(options.time.gtod_cpu.unwrap_or(0)),
            None => ClockSource::Best,
            Some(value::ClockSource::GetTimeOfDay) => ClockSource::Microseconds,
            Some(value::ClockSource::ClockGetTime) => ClockSource::Monotonic,
            Some(value::ClockSource::Cpu) => ClockSource::Counter,
        },
        submission,
        completion,
        total,
        bandwidth: !options.measure.disable_bw_measurement,
        submission_percentiles: options.measure.slat_percentiles && submission,
        completion_percentiles: options.measure.clat_percentiles && completion,
        total_percentiles: options.measure.lat_percentiles && total,
        bandwidth_interval_ms: sample_interval_ms(
            section,
            job::Measure::bwavgtime,
            options.measure.bwavgtime,
            job::Measure::write_bw_log,
        ),
        iops_interval_ms: sample_interval_ms(
            section,
            job::Measure::iopsavgtime,
            options.measure.iopsavgtime,
            job::Measure::write_iops_log,
        ),
        reported: options.measure.stats,
        disk_stats: options.measure.disk_util,
        block_lifetimes: options.measure.block_error_percentiles,
        start_clock_id: options.time.job_start_clock_id,
    }
}

/// The length of a throughput sample: `option`, or the window of the log of the same figures where only that was given:
/// the log then has the lines it was asked for, and the samples are those of its lines, as in fio.
fn sample_interval_ms(section: &ResolvedSection<'_>, option: &Spec, length_ms: u32, log: &Spec) -> u64 {
    let window_ms = section.options.measure.log_avg_msec;
    let logged = section.is_given(log) && window_ms > 0;
    u64::from(if logged && !section.is_given(option) { window_ms } else { length_ms.max(1) })
}

/// What errors do to a worker.
pub(crate) fn errors(options: &JobOptions, target: Option<LatencyTarget>) -> ErrorPolicy {
    let in_verification =
        matches!(options.measure.continue_on_error, ContinueOnError::Verify | ContinueOnError::All);
    let (reads, writes) = match options.measure.continue_on_error {
        ContinueOnError::None | ContinueOnError::Verify => (false, false),
        ContinueOnError::Read => (true, false),
        ContinueOnError::Write => (false, true),
        ContinueOnError::Io | ContinueOnError::All => (true, true),
    };
    // A list given by the user replaces the errors that are ignored by default.
    let passed_over = |goes_on: bool, list: &[Errno]| match list {
        [] if goes_on => USUALLY_PASSED_OVER.to_vec(),
        list => list.iter().map(|code| code.0).collect(),
    };
    let latency = &options.pace.max_latency;
    let of_writes = passed_over(writes, &options.measure.ignore_error.write);
    ErrorPolicy {
        // A trim changes the target, and is treated as a write here.
        passed_over: [passed_over(reads, &options.measure.ignore_error.read), of_writes.clone(), of_writes],
        passed_over_in_verification: match options.verify.verify_fatal {
            true => Vec::new(),
            false => passed_over(in_verification, &options.measure.ignore_error.verify),
        },
        dump: options.measure.error_dump,
        latency_ns_max: [latency.read, latency.write, latency.trim].map(|limit| {
            let limit = limit.filter(|limit| limit.us > 0).map(|limit| limit.us.saturating_mul(NS_PER_US));
            // A target that every I/O has to meet acts as a limit, as in fio.
            limit.or(target.filter(|target| target.percentile >= 100.0).map(|target| target.target_ns))
        }),
    }
}

/// How a worker is shown.
pub(crate) fn presentation(section: &ResolvedSection<'_>, access: &Access) -> Presentation {
    let options = section.options;
    let mut percentiles = options.measure.percentile_list.0.clone();
    percentiles.sort_unstable_by(f64::total_cmp);
    let sizes: PerDirection<(u64, u64)> =
        [0, 1, 2].map(|index| (access.block_sizes[index].min(), access.block_sizes[index].max()));
    Presentation {
        mode: options.access.rw.kind.word().to_string(),
        block_bytes: sizes,
        requested_iodepth: options.queue.iodepth,
        percentiles,
        significant_figures: options.measure.significant_figures,
        kb_base: match options.general.kb_base {
            KbBase::Binary => 1024,
            KbBase::Decimal => 1000,
        },
        rate_unit: match options.general.unit_base {
            UnitBase::Bits => RateUnit::Bits,
            UnitBase::Bytes => RateUnit::Bytes,
            UnitBase::Automatic => {
                section.engine().and_then(EngineDescriptor::connects).unwrap_or(RateUnit::Bytes)
            }
        },
        unified: match options.access.unified_rw_reporting {
            UnifiedRwReporting::None => Unified::None,
            UnifiedRwReporting::Mixed => Unified::Mixed,
            UnifiedRwReporting::Both => Unified::Both,
        },
        group_reporting: options.measure.group_reporting.0,
        options: echoed(section),
    }
}

/// The section's own settings, as they are echoed; paths that were handed over as a file name would tell them.
fn echoed(section: &ResolvedSection<'_>) -> Vec<(String, String)> {
    let text = |setting: &fiord_options::Setting| {
        (setting.spec.name.to_string(), setting.shown_value().map(shown::text).unwrap_or_default())
    };
    let path = |path: &std::path::PathBuf| (job::Files::filename.name.to_string(), shown::text(path));
    section.parsed.files.iter().map(path).chain(section.parsed.own.iter().map(text)).collect()
}

//! What is measured, what errors do, and how the job is shown.
//!
//! Invariant: `gtod_reduce` switches off exactly what needs a clock: the latencies. Throughput samples cost a worker
//! nothing, and fio takes them under `gtod_reduce` too.

use fiord_options::job::JobOptions;
use fiord_options::value::{self, ContinueOnError, ErrorCode, KbBase, UnifiedRwReporting, UnitBase};

use super::source::Source;
use crate::access::{Access, PerDirection};
use crate::job::{ClockSource, ErrorPolicy, Measure};
use crate::presentation::{Presentation, RateUnit, Unified};

const NS_PER_US: u64 = 1000;

/// What `continue_on_error` passes over: EIO and EILSEQ. Any other error would come again and again.
const USUALLY_PASSED_OVER: [i32; 2] = [5, 84];

/// What is recorded of a worker.
pub(crate) fn measure(source: &Source<'_>) -> Measure {
    let options = source.options;
    let reduced = options.gtod_reduce;
    let recorded = |disabled: bool| !disabled && !reduced;
    let (submission, completion, total) =
        (recorded(options.disable_slat), recorded(options.disable_clat), recorded(options.disable_lat));
    Measure {
        clock: match options.clocksource {
            _ if reduced => ClockSource::None,
            None => ClockSource::Best,
            Some(value::ClockSource::GetTimeOfDay) => ClockSource::TimeOfDay,
            Some(value::ClockSource::ClockGetTime) => ClockSource::Monotonic,
            Some(value::ClockSource::Cpu) => ClockSource::Tsc,
        },
        submission,
        completion,
        total,
        bandwidth: !options.disable_bw_measurement,
        submission_percentiles: options.slat_percentiles && submission,
        completion_percentiles: options.clat_percentiles && completion,
        total_percentiles: options.lat_percentiles && total,
        bandwidth_interval_ms: sample_interval_ms(source, "bwavgtime", options.bwavgtime, "write_bw_log"),
        iops_interval_ms: sample_interval_ms(source, "iopsavgtime", options.iopsavgtime, "write_iops_log"),
        reported: options.stats,
        disk_stats: options.disk_util,
    }
}

/// The length of a throughput sample: `option`, or the window of the log of the same figures where only that was given:
/// the log then has the lines it was asked for, and the samples are those of its lines, as in fio.
fn sample_interval_ms(source: &Source<'_>, option: &str, length_ms: u32, log: &str) -> u64 {
    let window_ms = source.options.log_avg_msec;
    let logged = source.is_given(log) && window_ms > 0;
    u64::from(if logged && !source.is_given(option) { window_ms } else { length_ms.max(1) })
}

/// What errors do to a worker.
pub(crate) fn errors(options: &JobOptions) -> ErrorPolicy {
    let (reads, writes) = match options.continue_on_error {
        ContinueOnError::None | ContinueOnError::Verify => (false, false),
        ContinueOnError::Read => (true, false),
        ContinueOnError::Write => (false, true),
        ContinueOnError::Io | ContinueOnError::All => (true, true),
    };
    // A list of one's own takes the place of what is usually passed over.
    let passed_over = |goes_on: bool, list: &[ErrorCode]| match list {
        [] if goes_on => USUALLY_PASSED_OVER.to_vec(),
        list => list.iter().map(|code| code.0).collect(),
    };
    let latency = &options.max_latency;
    let of_writes = passed_over(writes, &options.ignore_error.write);
    ErrorPolicy {
        // A trim changes the target, and is treated as a write here.
        passed_over: [passed_over(reads, &options.ignore_error.read), of_writes.clone(), of_writes],
        dump: options.error_dump,
        latency_ns_max: [latency.read, latency.write, latency.trim]
            .map(|limit| limit.filter(|limit| limit.us > 0).map(|limit| limit.us.saturating_mul(NS_PER_US))),
    }
}

/// How a worker is shown.
pub(crate) fn presentation(source: &Source<'_>, access: &Access) -> Presentation {
    let options = source.options;
    let mut percentiles = options.percentile_list.0.clone();
    percentiles.sort_by(f64::total_cmp);
    let sizes: PerDirection<(u64, u64)> =
        [0, 1, 2].map(|index| (access.block_sizes[index].min(), access.block_sizes[index].max()));
    Presentation {
        mode: options.rw.kind.word().to_string(),
        block_bytes: sizes,
        requested_iodepth: options.iodepth,
        percentiles,
        significant_figures: options.significant_figures,
        kb_base: match options.kb_base {
            KbBase::Binary => 1024,
            KbBase::Decimal => 1000,
        },
        rate_unit: match options.unit_base {
            UnitBase::Bits => RateUnit::Bits,
            UnitBase::Bytes | UnitBase::Automatic => RateUnit::Bytes,
        },
        unified: match options.unified_rw_reporting {
            UnifiedRwReporting::None => Unified::None,
            UnifiedRwReporting::Mixed => Unified::Mixed,
            UnifiedRwReporting::Both => Unified::Both,
        },
        group_reporting: options.group_reporting.0,
        options: echoed(source),
    }
}

/// The section's own settings, as they are echoed; paths that were handed over as a file name would tell them.
fn echoed(source: &Source<'_>) -> Vec<(String, String)> {
    let text = |setting: &fiord_options::Setting| {
        (setting.spec.name.to_string(), setting.value.clone().unwrap_or_default())
    };
    let path = |path: &std::path::PathBuf| ("filename".to_string(), path.display().to_string());
    source.section.files.iter().map(path).chain(source.section.own.iter().map(text)).collect()
}

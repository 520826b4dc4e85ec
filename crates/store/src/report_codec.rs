//! The encoding of reports: the fields of each structure, in the order of their bytes.
//!
//! Invariant: the order of fields never changes; a new field comes at the end, with the version that added it,
//! and reports of every earlier version can still be read.

use fiord_device::{CounterSample, Device, DeviceUse, DiskCounters, DiskUse, RequestQueue};
use fiord_report::model::RunReport;
use fiord_report::{Idleness, JobReport, LatencyTarget, RepeatedFigure, Show, Unified, UnitWork};
use fiord_stats::histogram::BINS;
use fiord_stats::series::Sums;
use fiord_stats::{
    BatchMap, BlockLifetimes, CoarseHistogram, DepthMap, DetailedProgress, DirectionProgress, DirectionStats,
    DirectionTotals, Histogram, JobPart, JobStats, JobTimeline, JobTotals, Latency, LatencyDistribution,
    MachineWindow, Moments, OpenArrivals, PartLatencies, PriorityLatency, ProcessorShares, RunLatencies,
    RunSteadiness, Samples, SteadyMeasure, SteadyPart, SteadyRule, SteadySample, SteadyState, SyncStats,
    Timeline, TimelineWindow, Usage, Window,
};

use crate::codec;
use crate::codec::{Codec, Damaged, Decoder, Encoder};
use crate::error::Cause;
use crate::finding_codec;

/// The version written. Earlier ones can be read.
const VERSION: u32 = 19;

/// The report as bytes, which start with their version and end with their [`codec::checksum`]: SQLite does not notice
/// when a disk returns other bytes, and figures that were never measured must not be shown.
pub fn encode(report: &RunReport) -> Vec<u8> {
    let mut out = Encoder::default();
    VERSION.encode(&mut out);
    report.encode(&mut out);
    let mut bytes = out.into_bytes();
    bytes.extend(codec::checksum(&bytes));
    bytes
}

/// The report of these bytes.
///
/// # Errors
/// They are of a later version, or damaged.
pub fn decode(bytes: &[u8]) -> Result<RunReport, Cause> {
    let version = u32::decode(&mut Decoder::new(bytes, VERSION))?;
    if version > VERSION {
        return Err(Cause::NewerReport { found: version, known: VERSION });
    }
    let (bytes, sum) = bytes.split_last_chunk().ok_or(Damaged)?;
    if codec::checksum(bytes) != *sum {
        return Err(Cause::Damaged);
    }
    let mut from = Decoder::new(bytes, version);
    u32::decode(&mut from)?;
    let report = RunReport::decode(&mut from)?;
    from.end()?;
    Ok(report)
}

/// Up to version 3 there were warnings, and whether the text had them, in the place of findings.
impl Codec for RunReport {
    fn encode(&self, out: &mut Encoder) {
        let RunReport {
            version,
            fiord_version,
            timestamp_ms,
            utc_offset_s,
            global_options,
            jobs,
            disks,
            devices,
            idleness,
            findings,
            repeats,
            steadiness,
            timeline,
            windows,
            part_latencies,
            job_parts,
        } = self;
        version.encode(out);
        timestamp_ms.encode(out);
        utc_offset_s.encode(out);
        global_options.encode(out);
        jobs.encode(out);
        disks.encode(out);
        idleness.encode(out);
        findings.encode(out);
        devices.encode(out);
        repeats.encode(out);
        steadiness.encode(out);
        fiord_version.encode(out);
        timeline.encode(out);
        windows.encode(out);
        part_latencies.encode(out);
        job_parts.encode(out);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        Ok(RunReport {
            version: Codec::decode(from)?,
            timestamp_ms: Codec::decode(from)?,
            utc_offset_s: Codec::decode(from)?,
            global_options: Codec::decode(from)?,
            jobs: Codec::decode(from)?,
            disks: Codec::decode(from)?,
            idleness: Codec::decode(from)?,
            findings: if from.version() >= 4 { Codec::decode(from)? } else { finding_codec::warnings(from)? },
            devices: if from.version() >= 3 { Codec::decode(from)? } else { Vec::new() },
            repeats: if from.version() >= 12 { Codec::decode(from)? } else { Vec::new() },
            steadiness: if from.version() >= 14 { Codec::decode(from)? } else { None },
            fiord_version: if from.version() >= 15 { Codec::decode(from)? } else { None },
            timeline: if from.version() >= 16 { Codec::decode(from)? } else { None },
            windows: if from.version() >= 17 { Codec::decode(from)? } else { Vec::new() },
            part_latencies: if from.version() >= 18 { Codec::decode(from)? } else { None },
            job_parts: if from.version() >= 19 { Codec::decode(from)? } else { Vec::new() },
        })
    }
}

codec!(RepeatedFigure { subject, figure, title, runs, left_out });
codec!(RunSteadiness { run_ms, slope_share, excursion_share, part });
codec!(SteadyPart { from_ms, ios_per_s, bytes_per_s });
codec!(PartLatencies { from_ms, latencies });
codec!(RunLatencies { directions, sync });
codec!(JobPart { name, ios_per_s, bytes_per_s, latencies });
codec!(Timeline { windows } since 19 { jobs });
codec!(JobTimeline { name, windows });
codec!(JobTotals { directions });
codec!(sparse DirectionTotals { ios, bytes, latency_ns });
codec!(TimelineWindow { end_ms, done, machine });
codec!(DetailedProgress { directions });
codec!(sparse DirectionProgress { ios, bytes, latency_ns, latencies });
codec!(sparse MachineWindow { processors, temperature_celsius });
codec!(sparse ProcessorShares { user, system, io_wait, steal });
codec!(Window { length_ns, ios, bytes });
codec!(Idleness { system_percent, cpus, unit });
codec!(UnitWork { mean_us, stddev_us });
codec! {
    JobReport {
        name, description, group_id, member_count, pid, error, error_text, start_ms, elapsed_s, eta_s,
        options, stats, show, continue_on_error, latency_target
    }
    since 2 { unstarted }
    since 5 { steady }
}
codec!(SteadyState { rule, attained, criterion, max_deviation, slope, window, samples });
codec!(SteadyRule { measure, is_slope, is_percent, limit, duration_s });
codec!(SteadySample { iops, bytes_per_s, latency_ns });
codec!(LatencyTarget { target_ns, window_us, percentile, depth });
codec! {
    sparse Show {
        slat, clat, lat, slat_percentiles, clat_percentiles, lat_percentiles, percentile_list,
        significant_figures, kb_base, unit_base, unified, group_reporting
    }
}
codec!(DeviceUse { device, holds_files, below, start, end, elapsed_ns } since 11 { samples });
codec!(CounterSample { elapsed_ns, counters } since 18 { temperature_celsius });
codec!(Device { name, kind, transport, model, backing_file, size_bytes, read_only, numa_node, queue });
codec! {
    RequestQueue {
        logical_block_bytes, physical_block_bytes, minimum_io_bytes, optimal_io_bytes, max_request_bytes,
        dma_alignment_bytes, discard_granularity_bytes, discard_max_bytes, rotational, requests,
        hardware_queues, device_depth, read_ahead_bytes, scheduler, schedulers, write_back_cache,
        forced_unit_access, zoned, polls
    }
}
codec! {
    DiskCounters {
        read_ios, read_merges, read_sectors, read_ms, write_ios, write_merges, write_sectors, write_ms,
        in_flight, busy_ms, in_queue_ms, discard_ios, discard_sectors, flush_ios
    }
}

/// Up to version 2 there were nine counters, in another order, which included the busy share.
impl Codec for DiskUse {
    fn encode(&self, out: &mut Encoder) {
        let DiskUse { name, done, util_percent, members } = self;
        name.encode(out);
        done.encode(out);
        util_percent.encode(out);
        members.encode(out);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let name = String::decode(from)?;
        let done = if from.version() >= 3 { DiskCounters::decode(from)? } else { nine_counters(from)? };
        Ok(DiskUse { name, done, util_percent: f64::decode(from)?, members: Vec::decode(from)? })
    }
}

fn nine_counters(from: &mut Decoder<'_>) -> Result<DiskCounters, Damaged> {
    let mut next = || u64::decode(from);
    Ok(DiskCounters {
        read_ios: next()?,
        write_ios: next()?,
        read_sectors: next()?,
        write_sectors: next()?,
        read_merges: next()?,
        write_merges: next()?,
        read_ms: next()?,
        write_ms: next()?,
        in_queue_ms: next()?,
        ..DiskCounters::default()
    })
}

codec! {
    JobStats {
        directions, sync, distribution, depth, submit, complete, usage, errors_total, first_error
    }
    since 7 { zone_resets }
    since 10 { blocks }
    since 13 { replay_lateness }
}
codec!(BlockLifetimes { trims, states });
codec! {
    sparse DirectionStats {
        ios, bytes, short_ios, dropped_ios, runtime_ms, submission, completion, total, bandwidth, iops
    }
    since 6 { response }
    since 8 { open_arrivals }
    since 9 { priority, priorities }
}
codec!(OpenArrivals { dropped, waiting });
codec!(sparse PriorityLatency { priority, latency });
codec!(sparse SyncStats { ios, latency });
codec!(Usage { user_us, system_us, context_switches, major_faults, minor_faults, elapsed_ms });
codec!(sparse Latency { running, histogram });
codec!(sparse Moments { count, sum, sum_squares, min, max });
codec!(sparse Sums { count, min, max, mean_fixed, squared_deviation_fixed });

impl Codec for Samples {
    fn encode(&self, out: &mut Encoder) {
        let (own, merged) = self.parts();
        own.encode(out);
        merged.encode(out);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        Ok(Samples::from_parts(Moments::decode(from)?, Sums::decode(from)?))
    }
}

impl Codec for Histogram {
    fn encode(&self, out: &mut Encoder) {
        self.is_allocated().encode(out);
        if self.is_allocated() {
            out.sparse(self.bins());
        }
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        if !bool::decode(from)? {
            return Ok(Histogram::default());
        }
        let mut bins = vec![0; BINS];
        from.sparse(&mut bins)?;
        Histogram::from_bins(bins).ok_or(Damaged)
    }
}

impl Codec for CoarseHistogram {
    fn encode(&self, out: &mut Encoder) {
        out.sparse(&self.counts);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let mut histogram = CoarseHistogram::default();
        from.sparse(&mut histogram.counts)?;
        Ok(histogram)
    }
}

impl Codec for LatencyDistribution {
    fn encode(&self, out: &mut Encoder) {
        out.sparse(self.counts());
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let mut counts = [0; fiord_stats::latency_distribution::BUCKETS];
        from.sparse(&mut counts)?;
        Ok(LatencyDistribution::from_counts(counts))
    }
}

/// Counts of I/Os by depth or batch.
macro_rules! map {
    ($($type:ident)+) => {$(
        impl Codec for $type {
            fn encode(&self, out: &mut Encoder) {
                let $type { counts } = self;
                out.sparse(counts);
            }

            fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
                let mut map = $type::default();
                from.sparse(&mut map.counts)?;
                Ok(map)
            }
        }
    )+};
}

map!(DepthMap BatchMap);

impl Codec for SteadyMeasure {
    fn encode(&self, out: &mut Encoder) {
        let number: u32 = match self {
            SteadyMeasure::Iops => 0,
            SteadyMeasure::Bandwidth => 1,
            SteadyMeasure::Latency => 2,
        };
        number.encode(out);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        match u32::decode(from)? {
            0 => Ok(SteadyMeasure::Iops),
            1 => Ok(SteadyMeasure::Bandwidth),
            2 => Ok(SteadyMeasure::Latency),
            _ => Err(Damaged),
        }
    }
}

impl Codec for Unified {
    fn encode(&self, out: &mut Encoder) {
        let number: u32 = match self {
            Unified::Separate => 0,
            Unified::Mixed => 1,
            Unified::Both => 2,
        };
        number.encode(out);
    }

    fn decode(from: &mut Decoder<'_>) -> Result<Self, Damaged> {
        match u32::decode(from)? {
            0 => Ok(Unified::Separate),
            1 => Ok(Unified::Mixed),
            2 => Ok(Unified::Both),
            _ => Err(Damaged),
        }
    }
}

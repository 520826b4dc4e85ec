//! How a report is kept: the fields of each of its structures, in the order of their bytes.
//!
//! Invariant: the order of fields never changes; what is added comes at the end with the form that brought it, and
//! what was kept by every earlier form still reads.

use fiord_report::model::RunReport;
use fiord_report::{
    DiskFigures, DiskReport, Idleness, JobReport, LatencyTarget, Show, Unified, UnitWork, Warning,
};
use fiord_stats::histogram::BINS;
use fiord_stats::series::Sums;
use fiord_stats::{
    BatchMap, DepthMap, DirectionStats, Distribution, Histogram, JobStats, Latency, Running, Samples,
    SyncStats, Usage,
};

use crate::error::Trouble;
use crate::form;
use crate::form::{Damaged, Form, Reader, Writer};

/// The form that is written. Those before it are read as well.
pub const FORM: u32 = 2;

/// The report as bytes, which start with their form and end with their [`form::sum`]: SQLite does not notice when a disk
/// hands back other bytes, and a figure that nobody measured must not be shown.
pub fn encode(report: &RunReport) -> Vec<u8> {
    let mut out = Writer::default();
    FORM.put(&mut out);
    report.put(&mut out);
    let mut bytes = out.into_bytes();
    bytes.extend(form::sum(&bytes));
    bytes
}

/// The report of these bytes.
///
/// # Errors
/// They were written by a later form, or are damaged.
pub fn decode(bytes: &[u8]) -> Result<RunReport, Trouble> {
    let form = u32::take(&mut Reader::new(bytes, FORM))?;
    if form > FORM {
        return Err(Trouble::NewerReport { found: form, known: FORM });
    }
    let (bytes, sum) = bytes.split_last_chunk().ok_or(Damaged)?;
    if form::sum(bytes) != *sum {
        return Err(Trouble::Damaged);
    }
    let mut from = Reader::new(bytes, form);
    u32::take(&mut from)?;
    let report = RunReport::take(&mut from)?;
    from.end()?;
    Ok(report)
}

form!(RunReport {
    version,
    timestamp_ms,
    utc_offset_s,
    global_options,
    jobs,
    disks,
    idleness,
    warnings,
    tells_warnings
});
form!(Idleness { system_percent, cpus, unit });
form!(UnitWork { mean_us, stddev_us });
form!(Warning { code, place, message });
form!(JobReport {
    name,
    description,
    group_id,
    member_count,
    pid,
    error,
    error_text,
    start_ms,
    elapsed_s,
    eta_s,
    options,
    stats,
    show,
    continue_on_error,
    latency_target
} since 2 {
    unstarted
});
form!(LatencyTarget { target_ns, window_us, percentile, depth });
form!(sparse Show {
    slat,
    clat,
    lat,
    slat_percentiles,
    clat_percentiles,
    lat_percentiles,
    percentile_list,
    significant_figures,
    kb_base,
    unit_base,
    unified,
    group_reporting
});
form!(DiskReport { name, figures, members });
form!(DiskFigures {
    read_ios,
    write_ios,
    read_sectors,
    write_sectors,
    read_merges,
    write_merges,
    read_ticks_ms,
    write_ticks_ms,
    in_queue_ms,
    util_percent
});

form!(JobStats { directions, sync, distribution, depth, submit, complete, usage, errors_total, first_error });
form!(sparse DirectionStats {
    ios,
    bytes,
    short_ios,
    dropped_ios,
    runtime_ms,
    submission,
    completion,
    total,
    bandwidth,
    iops
});
form!(sparse SyncStats { ios, latency });
form!(Usage { user_us, system_us, context_switches, major_faults, minor_faults, elapsed_ms });
form!(sparse Latency { running, histogram });
form!(sparse Running { count, sum, sum_squares, min, max });
form!(sparse Sums { count, min, max, mean_fixed, squared_deviation_fixed });

impl Form for Samples {
    fn put(&self, out: &mut Writer) {
        let (own, merged) = self.parts();
        own.put(out);
        merged.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Samples::from_parts(Running::take(from)?, Sums::take(from)?))
    }
}

impl Form for Histogram {
    fn put(&self, out: &mut Writer) {
        self.is_allocated().put(out);
        if self.is_allocated() {
            out.sparse(self.bins());
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        if !bool::take(from)? {
            return Ok(Histogram::default());
        }
        let mut bins = vec![0; BINS];
        from.sparse(&mut bins)?;
        Histogram::from_bins(bins).ok_or(Damaged)
    }
}

impl Form for Distribution {
    fn put(&self, out: &mut Writer) {
        out.sparse(self.counts());
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut counts = [0; fiord_stats::distribution::BUCKETS];
        from.sparse(&mut counts)?;
        Ok(Distribution::from_counts(counts))
    }
}

/// Counts of I/Os by depth or batch.
macro_rules! map {
    ($($type:ident)+) => {$(
        impl Form for $type {
            fn put(&self, out: &mut Writer) {
                let $type { counts } = self;
                out.sparse(counts);
            }

            fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
                let mut map = $type::default();
                from.sparse(&mut map.counts)?;
                Ok(map)
            }
        }
    )+};
}

map!(DepthMap BatchMap);

impl Form for Unified {
    fn put(&self, out: &mut Writer) {
        let number: u32 = match self {
            Unified::Separate => 0,
            Unified::Mixed => 1,
            Unified::Both => 2,
        };
        number.put(out);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        match u32::take(from)? {
            0 => Ok(Unified::Separate),
            1 => Ok(Unified::Mixed),
            2 => Ok(Unified::Both),
            _ => Err(Damaged),
        }
    }
}

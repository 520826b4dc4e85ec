//! fio's normal text: a block for each job, the groups, the disks.
//!
//! Invariant: the text starts with the empty line that separates it from earlier output, and each line keeps the words
//! and columns that scrapers search for (`IOPS=`, `   READ: bw=`, `     issued rwts: total=`).

use std::fmt::Write;

use fiord_device::{DiskCounters, DiskUse};
use fiord_options::value::steady_word;
use fiord_stats::count::ZONE_RESETS;
use fiord_stats::latency_distribution::{MS_BOUNDS, NS_BOUNDS, US_BOUNDS};
use fiord_stats::{
    BatchMap, BlockLifetimes, BlockState, Capped, Counts, DepthMap, JobStats, Latency, Moments, SteadyState,
};

use crate::energy;
use crate::figures::{self, Shown};
use crate::finding::Finding;
use crate::model::{GroupReport, Idleness, JobReport, RateGroup, RunReport, Unified, UnitWork};
use crate::number::{Units, shortened_count};
use crate::repeats::{self, Reported};

/// Writes a formatted line; writing to a String cannot fail.
macro_rules! line {
    ($out:expr, $($argument:tt)*) => {{ let _ = writeln!($out, $($argument)*); }};
}

/// Columns of tables; no other line of the report depends on the terminal either.
const TABLE_WIDTH: usize = 80;

/// The whole report.
pub fn normal(run: &RunReport) -> String {
    let groups = run.groups();
    let mut out = String::from("\n");
    blocks(&mut out, run, &groups);
    for report in &groups {
        group(&mut out, report);
    }
    disks(&mut out, &run.disks);
    if let Some(idleness) = &run.idleness {
        out += &idle(idleness);
    }
    responses(&mut out, run, &groups);
    replays(&mut out, run);
    counts(&mut out, run, &groups);
    if !run.energy.is_empty() {
        out += "\nEnergy:\n";
        out += &energy::table(run).text(TABLE_WIDTH);
    }
    findings(&mut out, &run.findings);
    if !run.repeats.is_empty() {
        out += "\nRepeats:\n";
        out += &repeats::text(&run.repeats, Reported::Last, TABLE_WIDTH);
    }
    out
}

/// The block of each job alone: what fio prints of all clients together.
pub fn blocks_alone(run: &RunReport) -> String {
    let mut out = String::new();
    blocks(&mut out, run, &run.groups());
    out
}

fn blocks(out: &mut String, run: &RunReport, groups: &[GroupReport]) {
    let date = figures::date(run);
    run.jobs.iter().for_each(|report| job(out, report, groups, &date));
}

/// The findings as they stand at the end of a report; nothing if there are none.
pub fn findings_alone(found: &[Finding]) -> String {
    let mut out = String::new();
    findings(&mut out, found);
    out
}

/// Latencies from the intended starts of I/Os, of jobs with a rate. After everything that fio prints, like findings.
fn responses(out: &mut String, run: &RunReport, groups: &[GroupReport]) {
    let mut is_first = true;
    for job in &run.jobs {
        let list = figures::response_percentiles(job);
        for shown in figures::shown(job, groups).iter().filter(|shown| shown.stats.response.running.count > 0)
        {
            if std::mem::take(&mut is_first) {
                line!(out, "\nResponse latency, from the start that the rate intended:");
            }
            line!(out, "  {}: {}", job.name, shown.name);
            moments(out, "response", &shown.stats.response.running);
            percentiles(out, "response", &shown.stats.response, &list);
        }
    }
}

/// What only fiord counts: a line for each job, and for each direction of it.
fn counts(out: &mut String, run: &RunReport, groups: &[GroupReport]) {
    let mut lines = Vec::new();
    for job in &run.jobs {
        lines.extend(counted(&job.name, &job.stats.counts));
        let directions = figures::shown(job, groups);
        lines.extend(
            directions
                .iter()
                .filter_map(|of| counted(&format!("{}: {}", job.name, of.name), &of.stats.counts)),
        );
    }
    if !lines.is_empty() {
        line!(out, "\nCounts:\n{}", lines.join("\n"));
    }
}

fn counted(of: &str, counts: &Counts) -> Option<String> {
    let each: Vec<String> =
        counts.iter().map(|(count, number)| format!("{}={number}", count.name())).collect();
    (!each.is_empty()).then(|| format!("  {of}: {}", each.join(", ")))
}

/// How late the operations of traces were issued. Beside the response latencies, for the same reason.
fn replays(out: &mut String, run: &RunReport) {
    let late =
        |job: &'_ JobReport| job.stats.replay_lateness.as_ref().is_some_and(|late| late.running.count > 0);
    if run.jobs.iter().any(late) {
        line!(out, "\nReplay lateness, from the times in the trace:");
    }
    for job in run.jobs.iter().filter(|job| late(job)) {
        let Some(lateness) = &job.stats.replay_lateness else { continue };
        line!(out, "  {}:", job.name);
        moments(out, "lateness", &lateness.running);
        percentiles(out, "lateness", lateness, &figures::percentile_list(job));
    }
}

/// How idle the processors were.
fn idle(idleness: &Idleness) -> String {
    let mut out = String::from("\nCPU idleness:\n");
    line!(out, "  system: {:.2}%", idleness.system_percent);
    let cpus: Vec<String> = idleness.cpus.iter().map(|(_, percent)| format!("{percent:.2}%")).collect();
    if !cpus.is_empty() {
        line!(out, "  percpu: {}", cpus.join(", "));
    }
    unit_work(&mut out, &idleness.unit);
    out
}

/// The output of `--idle-prof=calibrate`.
pub fn calibration(unit: &UnitWork) -> String {
    let mut out = String::from("CPU idleness:\n");
    unit_work(&mut out, unit);
    out
}

fn unit_work(out: &mut String, unit: &UnitWork) {
    line!(out, "  unit work: mean={:.2}us, stddev={:.2}", unit.mean_us, unit.stddev_us);
}

/// After everything that fio prints, so that scripts that cut fio's text at its end still work.
fn findings(out: &mut String, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    line!(out, "\nFindings:");
    for finding in findings {
        line!(out, "  {}", finding.text(4));
    }
}

fn job(out: &mut String, job: &JobReport, groups: &[GroupReport], date: &str) {
    let (name, members, pid, error) = (&job.name, job.member_count, job.pid, job.error);
    let cause = match (error, job.error_text.as_str()) {
        (0, _) => String::new(),
        (_, "") => format!(" (error={})", figures::error_name(error)),
        (_, text) => format!(" ({text})"),
    };
    line!(out, "{name}: (groupid={}, jobs={members}): err={error:2}{cause}: pid={pid}: {date}", job.group_id);
    if let Some(description) = &job.description {
        line!(out, "  Description  : [{description}]");
    }
    let units = Units::new(job.show.significant_figures, job.show.kb_base, job.show.unit_base);
    for shown in figures::shown(job, groups) {
        if shown.is_active() {
            direction(out, job, &shown, &units);
        }
    }
    distribution(out, &job.stats);
    sync(out, job);
    usage(out, &job.stats);
    depths(out, &job.stats);
    issued(out, job);
    if job.continue_on_error {
        let (total, first) = (job.stats.errors_total, job.stats.first_error);
        line!(out, "     errors    : total={total}, first_error={first}/<{}>", figures::error_name(first));
    }
    let target = &job.latency_target;
    let (depth, percentile) = (target.depth, target.percentile);
    let (latency, window) = (duration(target.target_ns), duration(target.window_us.saturating_mul(1000)));
    line!(
        out,
        "     latency   : target={latency}, window={window}, percentile={percentile:.2}%, depth={depth}"
    );
    if let Some(blocks) = &job.stats.blocks {
        block_lifetimes(out, blocks, &job.show.percentile_list);
    }
    if let Some(steady) = &job.steady {
        steady_state(out, steady, &units);
    }
}

/// How many trims blocks lasted: entries as long as a line of 79 columns holds them, as in fio.
fn block_lifetimes(out: &mut String, blocks: &BlockLifetimes, list: &[f64]) {
    const COLUMNS: usize = 79;
    line!(out, "  block lifetime percentiles :");
    let mut row = String::new();
    for (percent, trims) in list.iter().zip(blocks.percentiles(list)) {
        let entry = format!("{percent:.2}th={trims}");
        // With the blank before it and the comma after it.
        if !row.is_empty() && row.len() + entry.len() + 2 > COLUMNS {
            line!(out, "{row}");
            row.clear();
        }
        row += if row.is_empty() { "   | " } else { " " };
        row += &entry;
        row.push(',');
    }
    if let Some(last) = row.strip_suffix(',') {
        line!(out, "{last}");
    }
    let states = BlockState::ALL.iter().zip(blocks.states);
    let states: Vec<String> = states.map(|(state, count)| format!("{}={count}", state.name())).collect();
    line!(out, "        states               : {}", states.join(", "));
}

fn steady_state(out: &mut String, steady: &SteadyState, units: &Units) {
    let rule = &steady.rule;
    let measure = steady_word(rule.measure, false);
    let bandwidth = steady.mean(|sample| sample.bytes_per_s);
    line!(
        out,
        "  steadystate  : attained={}, bw={} ({}), iops={}, {measure} {}={:.3}{}",
        if steady.attained { "yes" } else { "no" },
        units.rate(bandwidth),
        units.rate_other(bandwidth),
        units.count(steady.mean(|sample| sample.iops)),
        if rule.is_slope { "slope" } else { "mean dev" },
        steady.criterion,
        if rule.is_percent { "%" } else { "" }
    );
}

/// What fio adds to the writes of a job on zones.
fn zone_resets(job: &JobReport, shown: &Shown) -> String {
    match job.stats.counts.get(&ZONE_RESETS) {
        Some(resets) if shown.name == "write" => format!("; {resets} zone resets"),
        _ => String::new(),
    }
}

fn direction(out: &mut String, job: &JobReport, shown: &Shown, units: &Units) {
    let stats = &shown.stats;
    let rate = shown.bandwidth();
    line!(
        out,
        "  {}: IOPS={}, BW={} ({})({}/{}msec){}",
        shown.name,
        units.count(u64::capped(shown.iops())),
        units.rate(rate),
        units.rate_other(rate),
        units.bytes(stats.bytes),
        stats.runtime_ms,
        zone_resets(job, shown)
    );
    let show = &job.show;
    let kinds = [
        ("slat", show.slat, show.slat_percentiles, &stats.submission),
        ("clat", show.clat, show.clat_percentiles, &stats.completion),
        (" lat", show.lat, show.lat_percentiles, &stats.total),
    ];
    for (name, wanted, _, latency) in &kinds {
        if *wanted {
            moments(out, name, &latency.running);
        }
    }
    let priorities = figures::priorities(job, shown);
    for (name, latency, _) in &priorities {
        moments(out, name, &latency.running);
    }
    let list = figures::percentile_list(job);
    for (name, wanted, percentiles_wanted, latency) in &kinds {
        if *wanted && *percentiles_wanted {
            percentiles(out, name.trim(), latency, &list);
        }
    }
    for (name, latency, percent) in &priorities {
        if figures::has_priority_percentiles(job, shown) {
            percentiles(out, &format!("{name} ({percent:.2}% of IOs)"), latency, &list);
        }
    }
    samples(out, shown, show.kb_base);
}

/// A line of moments, in the largest unit that keeps the smallest value readable.
fn moments(out: &mut String, name: &str, running: &Moments) {
    if running.count == 0 {
        return;
    }
    let (mut min, mut max, mut mean, mut stddev) =
        (running.min(), running.max, running.mean(), running.stddev());
    let mut unit = "nsec";
    for larger in ["usec", "msec"] {
        if min <= 2000 || max <= 99_999 || stddev <= 1000.0 {
            break;
        }
        (min, max, mean, stddev, unit) = (min / 1000, max / 1000, mean / 1000.0, stddev / 1000.0, larger);
    }
    let (min, max) = (shortened_count(min, 6), shortened_count(max, 6));
    line!(out, "    {name} ({unit}): min={min}, max={max}, avg={mean:5.2}, stdev={stddev:5.2}");
}

/// The table of percentiles: as many to a line as fit in 80 columns.
fn percentiles(out: &mut String, name: &str, latency: &Latency, list: &[f64]) {
    if list.is_empty() || latency.histogram.count() == 0 {
        return;
    }
    let mut values = latency.percentiles(list);
    let (least, most) = (values[0], values[values.len() - 1]);
    let (unit, divisor) = match (least, most) {
        (2_000_001.., 100_000_000..) => ("msec", 1_000_000),
        (2_001.., 100_000..) => ("usec", 1000),
        _ => ("nsec", 1),
    };
    // Rounded up as in fio, but not above the maximum that the line of moments shows (rounded down).
    let max = latency.running.max / divisor;
    values.iter_mut().for_each(|value| *value = value.div_ceil(divisor).min(max));
    let width = values[values.len() - 1].to_string().len().max(5);
    let precision = list.iter().map(|percent| decimals(*percent)).max().unwrap_or(0);
    let label = precision + 3;
    let per_line = (73 / (precision + width + 10)).max(1);
    line!(out, "    {name} percentiles ({unit}):");
    let entries: Vec<String> = list
        .iter()
        .zip(values)
        .map(|(percent, value)| format!("{percent:label$.precision$}th=[{value:width$}]"))
        .collect();
    let lines: Vec<String> = entries.chunks(per_line).map(|entries| entries.join(", ")).collect();
    line!(out, "     | {}", lines.join(",\n     | "));
}

/// Decimals needed to write `percent`: 0 for 50, 2 for 99.95.
fn decimals(percent: f64) -> usize {
    percent.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

fn samples(out: &mut String, shown: &Shown, kb_base: u32) {
    let bandwidth = shown.stats.bandwidth.figures();
    if bandwidth.count > 0 {
        let (unit, divisor) = sample_unit(bandwidth.mean, kb_base);
        let scaled = |value: u64| if divisor == 1.0 { value } else { u64::capped(value as f64 / divisor) };
        line!(
            out,
            "   bw ({unit:>7}): min={:5}, max={:5}, per={:.2}%, avg={:5.2}, stdev={:5.2}, samples={}",
            scaled(bandwidth.min),
            scaled(bandwidth.max),
            shown.percent_of_group(&bandwidth),
            bandwidth.mean / divisor,
            bandwidth.stddev / divisor,
            bandwidth.count
        );
    }
    let iops = shown.stats.iops.figures();
    if iops.count > 0 {
        line!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            iops.min,
            iops.max,
            iops.mean,
            iops.stddev,
            iops.count
        );
    }
}

/// The unit for samples with this mean (KiB/s), and how many KiB/s it is.
fn sample_unit(mean_kib: f64, kb_base: u32) -> (&'static str, f64) {
    match (kb_base == 1000, mean_kib > 1024.0 * 1024.0) {
        (false, false) => ("KiB/s", 1.0),
        (false, true) => ("MiB/s", 1024.0),
        (true, false) => ("kB/s", 1000.0 / 1024.0),
        (true, true) => ("MB/s", 1_000_000.0 / 1024.0),
    }
}

fn distribution(out: &mut String, stats: &JobStats) {
    let percents = figures::latency_percents(&stats.distribution, figures::total_ios(stats));
    let ms_labels = MS_BOUNDS.iter().map(u32::to_string).chain([">=2000".to_owned()]);
    buckets(out, "nsec", NS_BOUNDS.iter().map(u32::to_string), &percents.ns);
    buckets(out, "usec", US_BOUNDS.iter().map(u32::to_string), &percents.us);
    buckets(out, "msec", ms_labels, &percents.ms);
}

/// The occupied buckets, five to a line.
fn buckets(out: &mut String, unit: &str, labels: impl Iterator<Item = String>, percents: &[f64]) {
    let occupied: Vec<String> = labels
        .zip(percents)
        .filter(|(_, percent)| **percent > 0.0)
        .map(|(label, percent)| format!("{label}={percent:.2}%"))
        .collect();
    for entries in occupied.chunks(5) {
        line!(out, "  lat ({unit})   : {}", entries.join(", "));
    }
}

fn sync(out: &mut String, job: &JobReport) {
    let latency = &job.stats.sync.latency;
    if latency.running.count == 0 {
        return;
    }
    line!(out, "  fsync/fdatasync/sync_file_range/syncfs:");
    moments(out, "sync", &latency.running);
    percentiles(out, "sync", latency, &figures::percentile_list(job));
}

fn usage(out: &mut String, stats: &JobStats) {
    let (user, system) = figures::cpu_percents(stats);
    let usage = &stats.usage;
    let (switches, major, minor) = (usage.context_switches, usage.major_faults, usage.minor_faults);
    line!(
        out,
        "  cpu          : usr={user:.2}%, sys={system:.2}%, ctx={switches}, majf={major}, minf={minor}"
    );
}

fn depths(out: &mut String, stats: &JobStats) {
    let row = |labels: &[&str], percents: [f64; 7]| {
        let entries: Vec<String> =
            labels.iter().zip(percents).map(|(label, percent)| format!("{label}={percent:.1}%")).collect();
        entries.join(", ")
    };
    line!(out, "  IO depths    : {}", row(&DepthMap::LABELS, figures::depth_percents(stats)));
    line!(out, "     submit    : {}", row(&BatchMap::LABELS, figures::batch_percents(&stats.submit)));
    line!(out, "     complete  : {}", row(&BatchMap::LABELS, figures::batch_percents(&stats.complete)));
}

fn issued(out: &mut String, job: &JobReport) {
    let mixed;
    let idle = fiord_stats::DirectionStats::default();
    let [read, write, trim] = match job.show.unified {
        Unified::Mixed => {
            mixed = job.stats.mixed();
            [&mixed, &idle, &idle]
        }
        Unified::Separate | Unified::Both => job.stats.directions.each_ref(),
    };
    line!(
        out,
        "     issued rwts: total={},{},{},{} short={},{},{},0 dropped={},{},{},0",
        read.ios,
        write.ios,
        trim.ios,
        job.stats.sync.ios,
        read.short_ios,
        write.short_ios,
        trim.short_ios,
        read.dropped_ios,
        write.dropped_ios,
        trim.dropped_ios
    );
}

/// A duration in its natural unit: `0.00ns`, `500.00us`.
fn duration(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns}.00ns"),
        1_000..1_000_000 => format!("{:.2}us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2}ms", ns as f64 / 1e6),
        _ => format!("{:.2}s", ns as f64 / 1e9),
    }
}

fn group(out: &mut String, group: &GroupReport) {
    line!(out, "\nRun status group {} (all jobs):", group.group_id);
    let units = Units::new(group.significant_figures, group.kb_base, group.unit_base);
    let [read, write, trim] = &group.directions;
    for (name, rates) in [("READ", read), ("WRITE", write), ("TRIM", trim), ("MIXED", &group.mixed)] {
        if rates.is_active() {
            rate_line(out, name, rates, &units);
        }
    }
}

fn rate_line(out: &mut String, name: &str, rates: &RateGroup, units: &Units) {
    let RateGroup { bytes, bandwidth_min, bandwidth_max, bandwidth, runtime_ms_min, runtime_ms_max } = *rates;
    line!(
        out,
        "{name:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={runtime_ms_min}-{runtime_ms_max}msec",
        units.rate(bandwidth),
        units.rate_other(bandwidth),
        units.rate(bandwidth_min),
        units.rate(bandwidth_max),
        units.rate_other(bandwidth_min),
        units.rate_other(bandwidth_max),
        units.bytes(bytes),
        units.bytes_other(bytes)
    );
}

fn disks(out: &mut String, disks: &[DiskUse]) {
    if disks.is_empty() {
        return;
    }
    line!(out, "\nDisk stats (read/write):");
    for disk in disks {
        let own = disk_figures("", &disk.done, disk.util_percent);
        // A stacked device is indented two columns more than its members.
        match disk.aggregate() {
            None => line!(out, "  {}: {own}", disk.name),
            Some((mean, busiest_percent)) => {
                line!(out, "    {}: {own}, {}", disk.name, disk_figures("aggr", &mean, busiest_percent));
            }
        }
        for member in &disk.members {
            line!(out, "  {}: {}", member.name, disk_figures("", &member.done, member.util_percent));
        }
    }
}

/// The figures fio prints of a disk.
fn disk_figures(prefix: &str, done: &DiskCounters, util_percent: f64) -> String {
    let DiskCounters { read_ios, write_ios, read_sectors, write_sectors, .. } = done;
    let DiskCounters { read_merges, write_merges, read_ms, write_ms, in_queue_ms, .. } = done;
    format!(
        "{prefix}ios={read_ios}/{write_ios}, {prefix}sectors={read_sectors}/{write_sectors}, \
         {prefix}merge={read_merges}/{write_merges}, {prefix}ticks={read_ms}/{write_ms}, \
         {prefix}in_queue={in_queue_ms}, {prefix}util={util_percent:.2}%"
    )
}

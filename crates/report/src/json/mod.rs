//! JSON and JSON+ documents.
//!
//! Invariant: keys, their order and their types are those of fio 3.42, whatever was measured: a parser of one document
//! parses all.

pub mod clients;
mod devices;
pub mod findings;
mod latency;
mod steady;
mod windows;
mod writer;

use fiord_device::{DiskCounters, DiskUse};
use fiord_stats::latency_distribution::{MS_BOUNDS, NS_BOUNDS, US_BOUNDS};
use fiord_stats::{BatchMap, BlockLifetimes, BlockState, Counts, DepthMap, JobStats};

use crate::energy;
use crate::figures::{self, Shown};
use crate::model::{GroupReport, Idleness, JobReport, LatencyTarget, RunReport, Unified};
use crate::repeats;
pub use latency::Detail;
use latency::latency;
pub use writer::Writer;

/// One document, from its `{` in column 0 to a line feed after its `}`.
pub fn json(run: &RunReport, detail: Detail) -> String {
    let groups = run.groups();
    Writer::document(|json| {
        json.string("fio version", &run.version);
        json.integer("timestamp", run.timestamp_ms / 1000);
        json.integer("timestamp_ms", run.timestamp_ms);
        json.string("time", &figures::date(run));
        if !run.global_options.is_empty() {
            json.object("global options", |json| options(json, &run.global_options));
        }
        json.list("jobs", |json| {
            for report in &run.jobs {
                json.item(|json| job(json, report, &groups, detail, None));
            }
        });
        if !run.disks.is_empty() {
            json.list("disk_util", |json| {
                for disk in run.disks.iter().flat_map(with_members) {
                    json.item(|json| disk_util(json, disk));
                }
            });
        }
        if let Some(idleness) = &run.idleness {
            json.object("cpu_idleness", |json| idle(json, idleness));
        }
        if !run.devices.is_empty() {
            json.list("devices", |json| {
                for used in &run.devices {
                    json.item(|json| devices::write(json, used));
                }
            });
        }
        if !run.energy.is_empty() {
            energy::table(run).write_json(json, "energy");
        }
        if !run.findings.is_empty() {
            findings::write(json, &run.findings);
        }
        if !run.repeats.is_empty() {
            repeats::table(&run.repeats).write_json(json, "repeats");
        }
        if let Some(steadiness) = &run.steadiness {
            let latencies = run.part_latencies.as_ref();
            json.object("steady_part", |json| steady::write_part(json, steadiness, latencies, detail));
        }
        if !run.windows.is_empty() {
            json.object("windows", |json| windows::write(json, &run.windows));
        }
        // In an object, because readers of fio's document take a scalar here for a figure.
        if let Some(version) = &run.fiord_version {
            json.object("fiord", |json| json.string("version", version));
        }
    })
}

fn options(json: &mut Writer, options: &[(String, String)]) {
    for (name, text) in options {
        json.string(name, text);
    }
}

/// A job; of a client as fio writes those: without the times that are left, and with the client's address and port.
fn job(
    json: &mut Writer,
    job: &JobReport,
    groups: &[GroupReport],
    detail: Detail,
    client: Option<(&str, u16)>,
) {
    let stats = &job.stats;
    json.string("jobname", &job.name);
    json.integer("groupid", job.group_id);
    json.integer("job_start", job.start_ms);
    json.integer("error", job.error);
    if client.is_none() {
        json.integer("eta", job.eta_s);
        json.integer("elapsed", job.elapsed_s);
    }
    if !job.options.is_empty() {
        json.object("job options", |json| options(json, &job.options));
    }
    let percentiles = figures::percentile_list(job);
    let mut shown = figures::shown(job, groups);
    let mixed = if job.show.unified == Unified::Separate { None } else { shown.pop() };
    for direction in &shown {
        json.object(direction.name, |json| direction_body(json, job, direction, &percentiles, detail));
    }
    // fio has no `sync` beside a mixed direction alone.
    if job.show.unified != Unified::Mixed {
        json.object("sync", |json| {
            json.integer("total_ios", stats.sync.ios);
            // As in fio, whose text has them in any case.
            let is_listed = job.show.clat_percentiles || job.show.lat_percentiles;
            let percentiles = if is_listed { percentiles.as_slice() } else { &[] };
            latency(json, "lat_ns", &stats.sync.latency, percentiles, detail);
        });
    }
    if let Some(mixed) = &mixed {
        json.object(mixed.name, |json| direction_body(json, job, mixed, &percentiles, detail));
    }
    usage(json, stats);
    shares(json, stats);
    if job.continue_on_error {
        json.integer("total_err", stats.errors_total);
        json.integer("first_error", stats.first_error);
    }
    // As in fio, a job that did no I/O has no depth.
    if !job.unstarted {
        latency_target(json, &job.latency_target);
    }
    if let Some(description) = &job.description {
        json.string("desc", description);
    }
    if let Some(blocks) = &stats.blocks {
        json.object("block", |json| block_lifetimes(json, blocks, &job.show.percentile_list));
    }
    if let Some(steady) = &job.steady {
        json.object("steadystate", |json| steady::write(json, steady));
    }
    own_latencies(json, job, shown.iter().chain(&mixed), &percentiles, detail);
    counts(json, stats, shown.iter().chain(&mixed));
    if let Some((hostname, port)) = client {
        json.string("hostname", hostname);
        json.integer("port", port);
    }
}

/// Latencies that only fiord measures.
fn own_latencies<'s>(
    json: &mut Writer,
    job: &JobReport,
    all: impl Iterator<Item = &'s Shown<'s>>,
    percentiles: &[f64],
    detail: Detail,
) {
    let responses: Vec<&Shown<'_>> = all.filter(|direction| direction.has_response()).collect();
    if !responses.is_empty() {
        json.object("response", |json| responses.iter().for_each(|shown| response(json, job, shown, detail)));
    }
    if let Some(lateness) = &job.stats.replay_lateness {
        json.object("replay", |json| latency(json, "lateness_ns", lateness, percentiles, detail));
    }
}

/// What only fiord counts.
fn counts<'s>(json: &mut Writer, stats: &JobStats, all: impl Iterator<Item = &'s Shown<'s>>) {
    let each = |json: &mut Writer, counts: &Counts| {
        counts.iter().for_each(|(count, number)| json.integer(count.key, number));
    };
    let counting: Vec<&Shown<'_>> = all.filter(|direction| !direction.stats.counts.is_empty()).collect();
    if !counting.is_empty() || !stats.counts.is_empty() {
        json.object("counts", |json| {
            each(json, &stats.counts);
            counting.iter().for_each(|of| json.object(of.name, |json| each(json, &of.stats.counts)));
        });
    }
}

fn block_lifetimes(json: &mut Writer, blocks: &BlockLifetimes, list: &[f64]) {
    json.object("percentiles", |json| {
        for (percent, trims) in list.iter().zip(blocks.percentiles(list)) {
            json.integer(&format!("{percent:.6}"), trims);
        }
    });
    json.object("states", |json| {
        for (state, count) in BlockState::ALL.iter().zip(blocks.states) {
            json.integer(state.name(), count);
        }
    });
}

fn latency_target(json: &mut Writer, target: &LatencyTarget) {
    json.integer("latency_depth", target.depth);
    json.integer("latency_target", target.target_ns);
    json.integer("latency_target_ns", target.target_ns);
    json.float("latency_percentile", target.percentile);
    json.integer("latency_window", target.window_us);
    json.integer("latency_window_us", target.window_us);
}

fn direction_body(json: &mut Writer, job: &JobReport, shown: &Shown, percentiles: &[f64], detail: Detail) {
    let stats = &shown.stats;
    json.integer("io_bytes", stats.bytes);
    json.integer("io_kbytes", stats.bytes / 1024);
    json.integer("bw_bytes", shown.bandwidth());
    json.integer("bw", shown.bandwidth() / 1024);
    json.float("iops", shown.iops());
    json.integer("runtime", stats.runtime_ms);
    json.integer("total_ios", stats.ios);
    json.integer("short_ios", stats.short_ios);
    json.integer("drop_ios", stats.dropped_ios);
    let when = |wanted| if wanted { percentiles } else { &[] };
    latency(json, "slat_ns", &stats.submission, when(job.show.slat_percentiles), detail);
    latency(json, "clat_ns", &stats.completion, when(job.show.clat_percentiles), detail);
    latency(json, "lat_ns", &stats.total, when(job.show.lat_percentiles), detail);
    priorities(json, job, shown, percentiles, detail);
    let bandwidth = stats.bandwidth.figures();
    json.integer("bw_min", bandwidth.min);
    json.integer("bw_max", bandwidth.max);
    json.float("bw_agg", shown.percent_of_group(&bandwidth));
    json.float("bw_mean", bandwidth.mean);
    json.float("bw_dev", bandwidth.stddev);
    json.integer("bw_samples", bandwidth.count);
    let iops = stats.iops.figures();
    json.integer("iops_min", iops.min);
    json.integer("iops_max", iops.max);
    json.float("iops_mean", iops.mean);
    json.float("iops_stddev", iops.stddev);
    json.integer("iops_samples", iops.count);
}

/// From the intended starts of I/Os.
fn response(json: &mut Writer, job: &JobReport, shown: &Shown, detail: Detail) {
    let percentiles = figures::response_percentiles(job);
    json.object(shown.name, |json| {
        latency(json, "lat_ns", &shown.stats.response, &percentiles, detail);
    });
}

/// The latencies by priority, if the I/Os have several.
fn priorities(json: &mut Writer, job: &JobReport, shown: &Shown, percentiles: &[f64], detail: Detail) {
    let listed = figures::priorities_listed(job, shown);
    if listed.is_empty() {
        return;
    }
    let key = if shown.stats.is_total_by_priority() { "lat_ns" } else { "clat_ns" };
    let percentiles = if figures::has_priority_percentiles(job, shown) { percentiles } else { &[] };
    json.list("prios", |json| {
        for each in listed {
            let (class, level, hint) = each.parts();
            json.item(|json| {
                json.integer("prioclass", class);
                json.integer("prio", level);
                json.integer("priohint", hint);
                latency(json, key, &each.latency, percentiles, detail);
            });
        }
    });
}

fn usage(json: &mut Writer, stats: &JobStats) {
    let (user, system) = figures::cpu_percents(stats);
    json.integer("job_runtime", stats.usage.elapsed_ms);
    json.float("usr_cpu", user);
    json.float("sys_cpu", system);
    json.integer("ctx", stats.usage.context_switches);
    json.integer("majf", stats.usage.major_faults);
    json.integer("minf", stats.usage.minor_faults);
}

fn shares(json: &mut Writer, stats: &JobStats) {
    labelled(json, "iodepth_level", &DepthMap::LABELS, &figures::depth_percents(stats));
    labelled(json, "iodepth_submit", &BatchMap::LABELS, &figures::batch_percents(&stats.submit));
    labelled(json, "iodepth_complete", &BatchMap::LABELS, &figures::batch_percents(&stats.complete));
    let percents = figures::latency_percents(&stats.distribution, figures::total_ios(stats));
    let labels = |bounds: &[u32]| bounds.iter().map(u32::to_string).collect::<Vec<_>>();
    labelled(json, "latency_ns", &labels(&NS_BOUNDS), &percents.ns);
    labelled(json, "latency_us", &labels(&US_BOUNDS), &percents.us);
    let mut of_ms = labels(&MS_BOUNDS);
    of_ms.push(">=2000".to_owned());
    labelled(json, "latency_ms", &of_ms, &percents.ms);
}

fn labelled(json: &mut Writer, key: &str, labels: &[impl AsRef<str>], percents: &[f64]) {
    json.object(key, |json| {
        for (label, percent) in labels.iter().zip(percents) {
            json.float(label.as_ref(), *percent);
        }
    });
}

fn idle(json: &mut Writer, idleness: &Idleness) {
    json.float("system", idleness.system_percent);
    for (cpu, percent) in &idleness.cpus {
        json.float(&format!("cpu-{cpu}"), *percent);
    }
    json.float("unit_mean", idleness.unit.mean_us);
    json.float("unit_stddev", idleness.unit.stddev_us);
}

fn with_members(disk: &DiskUse) -> impl Iterator<Item = &DiskUse> {
    std::iter::once(disk).chain(&disk.members)
}

fn disk_util(json: &mut Writer, disk: &DiskUse) {
    json.string("name", &disk.name);
    disk_figures(json, "", &disk.done, disk.util_percent);
    if let Some((mean, busiest_percent)) = disk.aggregate() {
        disk_figures(json, "aggr_", &mean, busiest_percent);
    }
}

/// The figures fio prints of a disk.
fn disk_figures(json: &mut Writer, prefix: &str, done: &DiskCounters, util_percent: f64) {
    let key = |name: &str| format!("{prefix}{name}");
    // fio's own spelling: the aggregate of merged writes lacks its plural.
    let write_merges = if prefix.is_empty() { "write_merges" } else { "write_merge" };
    json.integer(&key("read_ios"), done.read_ios);
    json.integer(&key("write_ios"), done.write_ios);
    json.integer(&key("read_sectors"), done.read_sectors);
    json.integer(&key("write_sectors"), done.write_sectors);
    json.integer(&key("read_merges"), done.read_merges);
    json.integer(&key(write_merges), done.write_merges);
    json.integer(&key("read_ticks"), done.read_ms);
    json.integer(&key("write_ticks"), done.write_ms);
    json.integer(&key("in_queue"), done.in_queue_ms);
    json.float(&key("util"), util_percent);
}

//! Which figures of a report, and of watched devices, are metrics, and how they are called.
//!
//! Invariant: counters are those of the run so far, so that rates can be taken over any part of it; labels tell jobs
//! apart even if their names are equal.

use fiord_device::DiskCounters;
use fiord_report::{JobReport, RunReport};
use fiord_stats::job::DIRECTIONS;
use fiord_stats::{Count, DirectionStats, Latency};
use fiord_watch::{Observation, WatchedDevice};

use crate::family::{Family, Kind, Labels, LatencyHistogram, Sample, Value};

/// Bytes of a sector in the kernel's counters.
const SECTOR_BYTES: u64 = 512;

/// All metrics of a report, of a run in progress or one that ended. Families without a sample are left out.
pub fn families(report: &RunReport) -> Vec<Family> {
    let devices: Vec<Counted> =
        report.devices.iter().map(|used| (used.device.name.as_str(), used.done())).collect();
    with_samples([
        of_run(report),
        of_directions(report),
        of_jobs(report),
        of_counts(report),
        of_devices(&devices),
    ])
}

/// What is exported of a host.
#[derive(Clone, Copy, Debug)]
pub struct HostFigures<'r> {
    /// Its name.
    pub host: &'r str,
    /// How it is with it now, in a word.
    pub state: &'static str,
    /// What it has measured so far; `None` if that is not known, or not any more.
    pub report: Option<&'r RunReport>,
}

/// All metrics of hosts, each with a label for its host, and of all their jobs as one (`all`, of so many hosts). The sum has
/// the number of its hosts as a label: without a host it is another sum, and not the same one that has fallen.
pub fn of_hosts(hosts: &[HostFigures], all: Option<(&JobReport, usize)>) -> Vec<Family> {
    let sum = RunReport { jobs: all.iter().map(|(job, _)| (*job).clone()).collect(), ..RunReport::default() };
    let mut merged = with_samples([of_states(hosts), of_directions(&sum), of_jobs(&sum)]);
    if let Some((_, count)) = all {
        let samples = merged.iter_mut().skip(1).flat_map(|family| &mut family.samples);
        samples.for_each(|sample| sample.labels.insert(0, ("hosts", count.to_string())));
    }
    for (host, report) in hosts.iter().filter_map(|one| Some((one.host, one.report?))) {
        for mut family in families(report) {
            family.samples.iter_mut().for_each(|sample| sample.labels.insert(0, ("host", host.to_string())));
            match merged.iter_mut().find(|known| known.name == family.name) {
                Some(known) => known.samples.extend(family.samples),
                None => merged.push(family),
            }
        }
    }
    merged
}

fn of_states(hosts: &[HostFigures]) -> Vec<Family> {
    let state = |one: &HostFigures| {
        sample(vec![("host", one.host.to_string()), ("state", one.state.to_string())], 1.0)
    };
    let help = "How it is with a host; the value is always 1. One that was lost has no other figures.";
    vec![gauge("fiord_host_state", help, hosts.iter().map(state).collect())]
}

/// All metrics of devices that are watched. Families without a sample are left out.
pub fn watched(observation: &Observation) -> Vec<Family> {
    let devices = observation.devices.iter();
    let counted: Vec<Counted> = devices.map(|device| (device.name.as_str(), device.counters)).collect();
    with_samples([of_devices(&counted), of_requests(observation)])
}

fn with_samples<const N: usize>(of: [Vec<Family>; N]) -> Vec<Family> {
    of.into_iter().flatten().filter(|family| !family.samples.is_empty()).collect()
}

/// A device, and what its counters counted.
type Counted<'a> = (&'a str, DiskCounters);

fn of_run(report: &RunReport) -> Vec<Family> {
    let info = sample(vec![("version", report.version.clone())], 1.0);
    let findings = report.findings.iter();
    let finding = |code: &'static str, severity: &'static str, count: usize| {
        sample(vec![("code", code.to_string()), ("severity", severity.to_string())], count as f64)
    };
    let mut counts: Vec<(&'static str, &'static str, usize)> = Vec::new();
    for found in findings {
        let (code, severity) = (found.code.name(), found.code.severity().name());
        match counts.iter_mut().find(|(counted, _, _)| *counted == code) {
            Some((_, _, count)) => *count += 1,
            None => counts.push((code, severity, 1)),
        }
    }
    vec![
        gauge("fiord_run_info", "The program that measures; the value is always 1.", vec![info]),
        gauge(
            "fiord_findings",
            "Reasons why figures of the run may not mean what their reader thinks, by code.",
            counts.into_iter().map(|(code, severity, count)| finding(code, severity, count)).collect(),
        ),
        counter(
            "fiord_energy_joules_total",
            "Energy that the machine used since the run began, by its own counters and sensors.",
            report
                .energy
                .iter()
                .map(|used| sample(vec![("source", used.source.clone())], used.joules()))
                .collect(),
        ),
    ]
}

fn of_directions(report: &RunReport) -> Vec<Family> {
    let each = |value: &dyn Fn(&DirectionStats) -> f64| {
        directions(report).map(|(labels, stats)| sample(labels, value(stats))).collect()
    };
    let mut latencies = Vec::new();
    for (labels, stats) in directions(report) {
        let kinds = [
            ("submission", &stats.submission),
            ("completion", &stats.completion),
            ("total", &stats.total),
            ("response", &stats.response),
        ];
        latencies.extend(kinds.into_iter().filter_map(|(kind, latency)| {
            let mut labels = labels.clone();
            labels.push(("kind", kind.to_string()));
            histogram(labels, latency)
        }));
    }
    vec![
        counter("fiord_ios_total", "I/Os completed.", each(&|stats| stats.ios as f64)),
        counter("fiord_transferred_bytes_total", "Bytes transferred.", each(&|stats| stats.bytes as f64)),
        counter(
            "fiord_short_ios_total",
            "I/Os that transferred less than requested.",
            each(&|stats| stats.short_ios as f64),
        ),
        Family {
            name: "fiord_latency_seconds",
            help: "Latency of I/Os: submission (slat), completion (clat), total (lat), or response, which begins at \
                   the start that the rate intended.",
            kind: Kind::Histogram,
            samples: latencies,
        },
    ]
}

fn of_jobs(report: &RunReport) -> Vec<Family> {
    let each = |value: &dyn Fn(&JobReport) -> f64| {
        jobs(report).map(|(labels, job)| sample(labels, value(job))).collect()
    };
    let modes = |names: [&'static str; 2], name: &'static str, value: &dyn Fn(&JobReport) -> [f64; 2]| {
        let mut samples = Vec::new();
        for (labels, job) in jobs(report) {
            for (mode, value) in names.into_iter().zip(value(job)) {
                samples.push(sample([labels.clone(), vec![(name, mode.to_string())]].concat(), value));
            }
        }
        samples
    };
    let cpu =
        |job: &JobReport| [job.stats.usage.user_us as f64 / 1e6, job.stats.usage.system_us as f64 / 1e6];
    let faults = |job: &JobReport| [job.stats.usage.major_faults as f64, job.stats.usage.minor_faults as f64];
    let synced = jobs(report).filter(|(_, job)| job.stats.sync.ios > 0);
    let syncs = synced.clone().map(|(labels, job)| sample(labels, job.stats.sync.ios as f64)).collect();
    let sync_latencies =
        synced.filter_map(|(labels, job)| histogram(labels, &job.stats.sync.latency)).collect();
    vec![
        counter("fiord_syncs_total", "fsync, fdatasync and sync_file_range calls.", syncs),
        Family {
            name: "fiord_sync_latency_seconds",
            help: "Latency of syncing calls.",
            kind: Kind::Histogram,
            samples: sync_latencies,
        },
        counter(
            "fiord_io_errors_total",
            "I/Os that failed and did not end the job.",
            each(&|job| job.stats.errors_total as f64),
        ),
        gauge(
            "fiord_job_errno",
            "The error that ended the job; 0 if none did.",
            each(&|job| f64::from(job.error)),
        ),
        counter(
            "fiord_cpu_seconds_total",
            "CPU time of the job's threads.",
            modes(["user", "system"], "mode", &cpu),
        ),
        counter(
            "fiord_context_switches_total",
            "Context switches, voluntary and not.",
            each(&|job| job.stats.usage.context_switches as f64),
        ),
        counter(
            "fiord_page_faults_total",
            "Page faults: major ones needed I/O.",
            modes(["major", "minor"], "type", &faults),
        ),
    ]
}

/// What only fiord counts, each a family.
fn of_counts(report: &RunReport) -> Vec<Family> {
    let of = |count: &'static Count| {
        let of_jobs = jobs(report).map(|(labels, job)| (labels, &job.stats.counts));
        let of_directions = directions(report).map(|(labels, stats)| (labels, &stats.counts));
        let all = of_jobs.chain(of_directions);
        all.filter_map(|(labels, counts)| Some(sample(labels, counts.get(count)? as f64))).collect()
    };
    Count::ALL.iter().map(|count| counter(count.metric, count.meaning, of(count))).collect()
}

fn of_devices(devices: &[Counted]) -> Vec<Family> {
    let per_device = |value: &dyn Fn(&DiskCounters) -> f64| {
        devices.iter().map(|(name, done)| sample(device(name), value(done))).collect()
    };
    let per_direction = |values: &dyn Fn(&DiskCounters) -> [u64; 3]| {
        let mut samples = Vec::new();
        for (name, done) in devices {
            for (direction, value) in DIRECTIONS.into_iter().zip(values(done)) {
                let labels = [device(name), vec![("direction", direction.to_string())]].concat();
                samples.push(sample(labels, value as f64));
            }
        }
        samples
    };
    let bytes = |sectors: u64| sectors * SECTOR_BYTES;
    vec![
        counter(
            "fiord_device_ios_total",
            "Requests that the device completed since fiord began, those of other programs included.",
            per_direction(&|done| [done.read_ios, done.write_ios, done.discard_ios]),
        ),
        counter(
            "fiord_device_transferred_bytes_total",
            "Bytes that the device transferred since fiord began, those of other programs included.",
            per_direction(&|done| {
                [bytes(done.read_sectors), bytes(done.write_sectors), bytes(done.discard_sectors)]
            }),
        ),
        counter(
            "fiord_device_busy_seconds_total",
            "Time during which the device had I/O in flight since fiord began.",
            per_device(&|done| done.busy_ms as f64 / 1e3),
        ),
        counter(
            "fiord_device_flushes_total",
            "Flushes that the device completed since fiord began.",
            per_device(&|done| done.flush_ios as f64),
        ),
    ]
}

/// What the kernel's tracepoints tell of single requests.
fn of_requests(observation: &Observation) -> Vec<Family> {
    let mut samples = Vec::new();
    let mut is_traced = false;
    for WatchedDevice { name, figures, probe, .. } in &observation.devices {
        is_traced |= figures.is_some();
        let operations = figures.iter().flat_map(|figures| &figures.operations);
        let of_probe = probe.as_ref().map(|probe| ("probe", probe.reads()));
        let operations = operations.map(|(operation, of)| (operation.name(), of));
        for (operation, of) in operations.chain(of_probe.as_ref().map(|(name, reads)| (*name, reads))) {
            for (kind, latency) in [("queue", &of.queue), ("device", &of.device)] {
                let more = [("operation", operation.to_string()), ("kind", kind.to_string())];
                samples.extend(histogram([device(name), more.to_vec()].concat(), latency));
            }
        }
    }
    let lost = is_traced.then(|| sample(Vec::new(), observation.lost as f64));
    vec![
        Family {
            name: "fiord_device_latency_seconds",
            help: "Time of requests in the queue, and at the device from when the driver got them, by the kernel's \
                   tracepoints.",
            kind: Kind::Histogram,
            samples,
        },
        counter(
            "fiord_lost_events_total",
            "Events of tracepoints for which the kernel had no room: their requests are in no latency.",
            lost.into_iter().collect(),
        ),
    ]
}

fn device(name: &str) -> Labels {
    vec![("device", name.to_string())]
}

/// The jobs of a report, with labels that tell them apart. `job` alone is a label that Prometheus sets itself.
fn jobs(report: &RunReport) -> impl Iterator<Item = (Labels, &JobReport)> + Clone {
    report.jobs.iter().enumerate().map(|(number, job)| {
        let labels = vec![("job_name", job.name.clone()), ("job_number", (number + 1).to_string())];
        (labels, job)
    })
}

/// Directions in which something was done.
fn directions(report: &RunReport) -> impl Iterator<Item = (Labels, &DirectionStats)> {
    jobs(report).flat_map(|(labels, job)| {
        let named = DIRECTIONS.into_iter().zip(&job.stats.directions).filter(|(_, stats)| stats.ios > 0);
        named.map(move |(name, stats)| {
            ([labels.clone(), vec![("direction", name.to_string())]].concat(), stats)
        })
    })
}

fn sample(labels: Labels, value: f64) -> Sample {
    Sample { labels, value: Value::Number(value) }
}

/// The sample of a latency; `None` if it has no histogram, or nothing was counted.
fn histogram(labels: Labels, latency: &Latency) -> Option<Sample> {
    let counted = LatencyHistogram::of(latency);
    (counted.count > 0).then_some(Sample { labels, value: Value::Latencies(counted) })
}

fn counter(name: &'static str, help: &'static str, samples: Vec<Sample>) -> Family {
    Family { name, help, kind: Kind::Counter, samples }
}

fn gauge(name: &'static str, help: &'static str, samples: Vec<Sample>) -> Family {
    Family { name, help, kind: Kind::Gauge, samples }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// What no panel shows: the version is the same all the time.
    const NOT_SHOWN: [&str; 1] = ["fiord_run_info"];

    /// The names of metrics in expressions, those of the parts of a histogram as the histogram's.
    fn metrics(expression: &str) -> impl Iterator<Item = &str> {
        let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names = words.filter(|word| word.starts_with("fiord_"));
        names.map(|name| name.strip_suffix("_bucket").unwrap_or(name))
    }

    #[test]
    fn hosts_have_a_label_and_their_sum_has_none() {
        let report = |iops: u64| {
            let mut job = JobReport { name: "j".to_string(), ..JobReport::default() };
            job.stats.directions[0].ios = iops;
            RunReport { jobs: vec![job], ..RunReport::default() }
        };
        let (one, other, all) = (report(3), report(4), report(7));
        let of = |host, state, report| HostFigures { host, state, report };
        let hosts = [of("a", "running", Some(&one)), of("b", "running", Some(&other)), of("c", "lost", None)];
        let families = of_hosts(&hosts, Some((&all.jobs[0], 2)));
        let ios = families.iter().find(|family| family.name == "fiord_ios_total").unwrap();
        let host = |sample: &Sample| {
            sample.labels.iter().find(|(name, _)| *name == "host").map(|(_, host)| host.clone())
        };
        let told: Vec<_> = ios.samples.iter().map(|sample| (host(sample), sample.value.clone())).collect();
        let of = |host: Option<&str>, ios| (host.map(str::to_string), super::Value::Number(ios));
        assert_eq!(told, [of(None, 7.0), of(Some("a"), 3.0), of(Some("b"), 4.0)]);
        assert_eq!(ios.samples[0].labels[0], ("hosts", "2".to_string()));
        let of_lost: Vec<_> = families
            .iter()
            .flat_map(|family| &family.samples)
            .filter(|sample| host(sample).as_deref() == Some("c"))
            .map(|sample| sample.labels[1].1.as_str())
            .collect();
        assert_eq!(of_lost, ["lost"], "its state alone");
        let names: BTreeSet<&str> = families.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), families.len(), "a name has one family");
    }

    #[test]
    fn the_dashboard_and_its_page_show_every_family_and_no_other() {
        let empty = RunReport::default();
        let of_watch = of_requests(&Observation::default());
        let of_empty = [of_run(&empty), of_directions(&empty), of_jobs(&empty), of_devices(&[])];
        let all = of_empty.into_iter().chain([of_watch, of_states(&[])]);
        let all: Vec<Family> = all.flatten().collect();
        let page = include_str!("../../../docs/metrics.md");
        for family in &all {
            assert!(
                page.contains(&format!("`{}`", family.name)),
                "{} is not in docs/metrics.md",
                family.name
            );
        }
        let dashboard: Value = serde_json::from_str(include_str!("../../../packaging/grafana.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let expressions = targets.map(|target| target["expr"].as_str().unwrap());
        let shown: BTreeSet<&str> = expressions.flat_map(metrics).chain(NOT_SHOWN).collect();
        let known: BTreeSet<&str> = all.iter().map(|family| family.name).collect();
        assert_eq!(shown, known, "packaging/grafana.json");
    }
}

//! JSON: fio's document of client mode, then `findings` and one object, `fleet`.
//!
//! Invariant: at the top level fiord adds objects and lists alone, so that no reader takes one for a figure.

use fiord_report::json::clients::{self, Client};
use fiord_report::json::{Detail, Writer, findings};
use fiord_report::repeats;
use fiord_report::table::Cell;
use fiord_stats::job::DIRECTIONS;

use super::all_clients::all_clients;
use super::table::{COLUMNS, row, table};
use crate::interval::{Interval, Part};
use crate::member::Member;
use crate::model::{FleetReport, Group, Starts};
use crate::outliers::Outlier;
use crate::run::{HostFacts, HostLogs, HostRun};
use crate::window::Finish;

/// The document.
pub(super) fn document(fleet: &FleetReport, detail: Detail) -> String {
    let of = |run: &'_ HostRun| run.host.port.unwrap_or(0);
    let clients: Vec<Client<'_>> = fleet
        .counted()
        .filter_map(|(run, _)| {
            Some(Client { hostname: hostname(run), port: of(run), report: run.report.as_ref()? })
        })
        .collect();
    let all = all_clients(fleet);
    let all = all.as_ref().and_then(|all| all.jobs.first());
    Writer::document(|json| {
        clients::write(json, &clients, all, detail);
        if !fleet.findings.is_empty() {
            findings::write(json, &fleet.findings);
        }
        if !fleet.repeats.is_empty() {
            repeats::table(&fleet.repeats).write_json(json, "repeats");
        }
        json.object("fleet", |json| own(json, fleet));
        let version = clients.last().and_then(|client| client.report.fiord_version.as_ref());
        if let Some(version) = version {
            json.object("fiord", |json| json.string("version", version));
        }
    })
}

/// The address as it was typed: the name of a host has its port where several have one address. Of a socket its path, as fio's.
fn hostname(run: &HostRun) -> &str {
    let host = &run.host;
    let typed = match host.name.strip_prefix(host.address.as_str()) {
        Some(_) => &host.address,
        None => &host.name,
    };
    typed.strip_prefix("sock:").unwrap_or(typed)
}

fn own(json: &mut Writer, fleet: &FleetReport) {
    json.string("order", fleet.settings.order.word());
    let rows = table(fleet);
    json.list("hosts", |json| {
        for (run, row) in fleet.hosts.iter().zip(&rows.rows) {
            json.item(|json| {
                rows.columns.iter().zip(row).for_each(|(column, cell)| cell.write(json, column.key));
                Cell::text(run.fate.cause()).write(json, "cause");
                Cell::text(run.host.role.as_deref()).write(json, "role");
                if run.logs.files > 0 {
                    json.object("logs", |json| of_logs(json, &run.logs));
                }
                if let Some(facts) = &run.facts {
                    json.object("facts", |json| of_machine(json, facts));
                }
            });
        }
    });
    if let Some(window) = &fleet.window {
        json.object("window", |json| {
            json.integer("hosts", window.hosts);
            json.integer("from_ns", window.from_ns);
            json.integer("length_ns", window.length_ns);
            json.integer("shortest_run_ns", window.shortest_run_ns);
            json.integer("whole_ns", window.whole_ns);
            json.float("share", window.share());
            json.boolean("sampled", window.is_sampled);
            for (key, finish) in [("first_done", &window.first_done), ("last_done", &window.last_done)] {
                json.object(key, |json| finished(json, fleet, finish));
            }
        });
    }
    if let Some(key) = fleet.settings.group_by {
        json.string("group_by", key);
        json.list("groups", |json| fleet.groups.iter().for_each(|group| of_group(json, group)));
    }
    if let Some(starts) = &fleet.starts {
        json.object("starts", |json| starts_of(json, starts));
    }
    clocks(json, fleet);
    json.list("totals", |json| totals(json, fleet));
    if let Some(over_time) = &fleet.over_time {
        json.object("over_time", |json| {
            json.integer("window_ns", over_time.window_ns);
            json.list("hosts", |json| {
                for (name, iops) in &over_time.hosts {
                    json.item(|json| {
                        json.string("host", name);
                        // Three digits or more are enough for a picture.
                        let whole = |rate: f64| if rate < 100.0 { rate } else { rate.round() };
                        json.numbers_known("iops", iops.iter().map(|rate| rate.map(whole)));
                    });
                }
            });
        });
    }
    if !fleet.intervals.is_empty() {
        json.list("intervals", |json| fleet.intervals.iter().for_each(|each| interval(json, each)));
    }
    json.list("outliers", |json| fleet.outliers.iter().for_each(|each| outlier(json, fleet, each)));
}

/// When a host was done, and the rates of all until then.
fn finished(json: &mut Writer, fleet: &FleetReport, finish: &Finish) {
    let name = fleet.counted().nth(finish.host).map(|(run, _)| run.host.name.as_str());
    Cell::text(name).write(json, "host");
    json.integer("at_ns", finish.at_ns);
    json.float("iops", finish.per_second(finish.done.ios.iter().sum()));
    json.float("bytes_per_s", finish.per_second(finish.done.bytes.iter().sum()));
}

/// The figures of hosts as one, with the keys of a host.
fn of_group(json: &mut Writer, group: &Group) {
    json.item(|json| {
        json.string("value", &group.value);
        json.integer("hosts", group.hosts);
        figures(json, &group.figures);
    });
}

/// The figures of a host, without its name, start and fate.
fn figures(json: &mut Writer, figures: &Member) {
    let row = row(String::new(), Cell::None, Some(figures), "");
    let figures = COLUMNS.iter().zip(&row).filter(|(_, cell)| cell.figure().is_some());
    figures.for_each(|(column, cell)| cell.write(json, column.key));
}

fn interval(json: &mut Writer, interval: &Interval) {
    let part = |json: &mut Writer, part: &Part| {
        json.integer("runtime_ms", part.runtime_ms);
        json.integer("ios", part.ios);
        json.integer("bytes", part.bytes);
        figures(json, &part.figures);
    };
    json.item(|json| {
        json.integer("at_ms", interval.at_ms);
        json.object("all", |json| part(json, &interval.all));
        json.list("hosts", |json| {
            for (name, of) in &interval.hosts {
                json.item(|json| {
                    json.string("host", name);
                    part(json, of);
                });
            }
        });
    });
}

/// How exactly hosts started together.
pub fn starts_of(json: &mut Writer, starts: &Starts) {
    json.integer("hosts", starts.hosts);
    json.integer("skew_ns", starts.skew_ns);
    json.integer("clock_error_ns", starts.clock_error_ns);
    json.integer("accepted_ns", starts.accepted_ns);
}

fn of_logs(json: &mut Writer, logs: &HostLogs) {
    json.integer("files", logs.files);
    json.list("incomplete", |json| {
        for (log, cause) in &logs.incomplete {
            json.item(|json| {
                json.string("log", log);
                json.string("cause", cause);
            });
        }
    });
}

fn of_machine(json: &mut Writer, facts: &HostFacts) {
    json.string("hostname", &facts.hostname);
    json.string("kernel", &facts.kernel);
    json.string("arch", &facts.arch);
    json.string("cpu", &facts.cpu);
    json.integer("cpus", facts.cpus);
    json.integer("memory_bytes", facts.memory_bytes);
    json.string("fiord_version", &facts.fiord_version);
    json.string("machine_id", &facts.machine_id);
    json.boolean("clock_unsynchronised", facts.clock_unsynchronised);
    json.strings("engines", &facts.engines);
    json.list("targets", |json| {
        for target in &facts.targets {
            json.item(|json| {
                json.string("path", &target.path);
                Cell::text(target.identity.as_deref()).write(json, "identity");
                json.string("model", &target.model);
                json.string("scheduler", &target.scheduler);
                json.integer("size_bytes", target.size_bytes);
                json.boolean("written", target.is_written);
            });
        }
    });
}

fn clocks(json: &mut Writer, fleet: &FleetReport) {
    json.list("clocks", |json| {
        for (run, clock) in fleet.hosts.iter().filter_map(|run| Some((run, run.clock?))) {
            json.item(|json| {
                json.string("host", &run.host.name);
                json.integer("offset_ns", clock.offset_ns);
                json.integer("error_ns", clock.error_ns);
                json.integer("drift_ppb", clock.drift_ppb);
                json.integer("round_trip_ns", clock.round_trip_ns);
                json.integer("round_trip_ns_max", clock.round_trip_ns_max);
            });
        }
    });
}

/// Each direction in the common window, and over whole runs as fio adds them.
fn totals(json: &mut Writer, fleet: &FleetReport) {
    let Some(all) = &fleet.all else { return };
    let window = fleet.window.as_ref().filter(|window| window.length_ns > 0);
    for (direction, stats) in all.stats.directions.iter().enumerate().filter(|(_, stats)| stats.ios > 0) {
        let per_second = |count: u64| count as f64 * 1000.0 / stats.runtime_ms.max(1) as f64;
        let together = |of: fn(&crate::window::Done) -> &[f64; 3]| {
            window
                .map_or(Cell::None, |window| Cell::Number(window.per_second(of(&window.done)[direction]), 0))
        };
        json.item(|json| {
            json.string("direction", DIRECTIONS[direction]);
            together(|done| &done.ios).write(json, "window_iops");
            together(|done| &done.bytes).write(json, "window_bytes_per_s");
            json.float("sum_iops", per_second(stats.ios));
            json.float("sum_bytes_per_s", per_second(stats.bytes));
        });
    }
}

fn outlier(json: &mut Writer, fleet: &FleetReport, outlier: &Outlier) {
    json.item(|json| {
        json.string("host", fleet.hosts.get(outlier.host).map_or("", |run| run.host.name.as_str()));
        json.string("figure", outlier.measure.key());
        json.float("value", outlier.value);
        json.float("median", outlier.median);
        // Where the others are all alike it is infinite, for which JSON has no number.
        let z = if outlier.z.is_finite() { Cell::Number(outlier.z, 2) } else { Cell::None };
        z.write(json, "z");
    });
}

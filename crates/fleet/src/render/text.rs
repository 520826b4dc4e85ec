//! Normal text: fio's of each host and of all clients; after it how they started, the common window, the table, findings.
//!
//! Invariant: what fio prints comes first and as fio prints it, so that scripts that cut it still work.

use std::fmt::Write;

use fiord_report::normal::{blocks_alone, findings_alone, normal as normal_of};
use fiord_report::number::Units;
use fiord_report::repeats::{self, Reported};
use fiord_report::{RepeatedFigure, RunReport, Show};
use fiord_stats::{Capped, job::DIRECTIONS};

use super::all_clients::all_clients;
use super::table;
use crate::model::{FleetReport, Starts};
use crate::run::{HostFacts, HostRun, alike};
use crate::window::{CommonWindow, Finish};

/// Columns of the table.
const WIDTH: usize = 80;

/// The whole text.
pub(super) fn normal(fleet: &FleetReport) -> String {
    let mut out = String::new();
    let servers = fleet.counted().filter(|_| fleet.settings.are_clients);
    out.extend(servers.filter_map(|(run, _)| introduced(run)));
    for (run, _) in fleet.counted() {
        // What is said of the hosts' runs stands at the end, once for all.
        let without = |report| RunReport { findings: Vec::new(), repeats: Vec::new(), ..report };
        let own = run.report.clone().map(without);
        if let Some(report) = own {
            let _ = write!(out, "<{}> {}", run.host.name, normal_of(&report));
        }
    }
    if let Some(all) = all_clients(fleet) {
        out += &blocks_alone(&all);
    }
    out += "\nHosts:\n";
    let sentences = [started(fleet.starts), together(fleet), finished(fleet), in_rounds(fleet)];
    for sentence in sentences.into_iter().flatten() {
        let _ = writeln!(out, "  {sentence}");
    }
    totals(&mut out, fleet);
    let shown = table::shown(fleet);
    let named = |one: &&RepeatedFigure| shown.iter().any(|at| fleet.hosts[*at].host.name == one.subject);
    let repeats: Vec<RepeatedFigure> = fleet.repeats.iter().filter(named).cloned().collect();
    let repeats = repeats::text(&repeats, Reported::All, WIDTH - 2);
    for line in table::text(fleet, &shown, WIDTH - 2).lines().chain(repeats.lines()) {
        let _ = writeln!(out, "  {line}");
    }
    let gone = fleet.hosts.iter().filter(|run| !run.is_counted());
    for (name, fate) in alike(gone.map(|run| (&run.host, &run.fate)).collect()) {
        let _ = writeln!(out, "  {name}: {}: {}", fate.word(), fate.cause().unwrap_or("no report"));
    }
    let incomplete = |run: &HostRun| Some(format!("{}: {}", run.host.name, run.logs.sentence()?));
    for sentence in fleet.hosts.iter().filter_map(incomplete) {
        let _ = writeln!(out, "  {sentence}");
    }
    out + &findings_alone(&fleet.findings)
}

/// The line by which fio's client introduces a server; `None` of one that told nothing of itself.
fn introduced(run: &HostRun) -> Option<String> {
    let (facts, report) = (run.facts.as_ref()?, run.report.as_ref()?);
    let HostFacts { hostname, arch, .. } = facts;
    let is_big_endian = u8::from(arch == "s390x");
    let bits = if arch.starts_with("arm") || arch == "i686" { 32 } else { 64 };
    let (arch, version) = (arch.replace('_', "-"), &report.version);
    Some(format!(
        "hostname={hostname}, be={is_big_endian}, {bits}-bit, os=Linux, arch={arch}, fio={version}, flags=1\n"
    ))
}

/// `12 hosts started within 1.8 ms (clocks known to 0.2 ms)`; `None` if that is not known, or of one host.
pub fn started(starts: Option<Starts>) -> Option<String> {
    let starts = starts.filter(|starts| starts.hosts > 1)?;
    let ms = |ns: u64| ns as f64 / 1e6;
    Some(format!(
        "{} hosts started within {:.1} ms (clocks known to {:.1} ms)",
        starts.hosts,
        ms(starts.skew_ns),
        // Rounded up: what is known is never better than that.
        (ms(starts.clock_error_ns) * 10.0).ceil() / 10.0
    ))
}

/// How long all ran together; `None` if they did not run together, or of one host.
pub fn together(fleet: &FleetReport) -> Option<String> {
    let window = fleet.window.as_ref().filter(|window| window.hosts > 1)?;
    let how = if window.is_sampled { "" } else { ", of rates taken for even" };
    Some(format!(
        "they ran together for {:.1} s, {:.0} % of the shortest run{how}",
        window.length_ns as f64 / 1e9,
        window.share() * 100.0
    ))
}

/// What the figures are of, if hosts ran in rounds.
fn in_rounds(fleet: &FleetReport) -> Option<String> {
    let rounds = fleet.hosts.iter().map(|run| run.rounds().count()).max()?;
    (fleet.settings.order.rounds() > 1).then(|| {
        format!(
            "each ran alone in {rounds} of {} rounds: rows are medians, sums of the last round",
            fleet.settings.order.rounds()
        )
    })
}

/// When the first and the last were done, if that differs by more than a hundredth of the run.
fn finished(fleet: &FleetReport) -> Option<String> {
    let CommonWindow { first_done, last_done, .. } = fleet.window.as_ref()?;
    let name =
        |finish: &Finish| fleet.counted().nth(finish.host).map_or("", |(run, _)| run.host.name.as_str());
    let differs = last_done.at_ns - first_done.at_ns > last_done.at_ns / 100;
    let of = |finish: &Finish| format!("{} after {:.1} s", name(finish), finish.at_ns as f64 / 1e9);
    differs.then(|| format!("first done: {}; last done: {}", of(first_done), of(last_done)))
}

/// What all did in the common window, and beside it the sum over whole runs.
fn totals(out: &mut String, fleet: &FleetReport) {
    let Some(all) = &fleet.all else { return };
    let Show { significant_figures, kb_base, unit_base, .. } = all.show;
    let units = Units::new(significant_figures, kb_base, unit_base);
    let rates = |iops: f64, bytes: f64| {
        format!("{} IOPS, {}", units.count(u64::capped(iops)), units.rate(u64::capped(bytes)))
    };
    for (direction, stats) in all.stats.directions.iter().enumerate().filter(|(_, stats)| stats.ios > 0) {
        let per_second = |count: u64| count as f64 * 1000.0 / stats.runtime_ms.max(1) as f64;
        let sum = rates(per_second(stats.ios), per_second(stats.bytes));
        let name = DIRECTIONS[direction];
        let window = fleet.window.as_ref().filter(|window| window.hosts > 1 && window.length_ns > 0);
        let _ = match window {
            Some(window) => {
                let done = &window.done;
                let together =
                    rates(window.per_second(done.ios[direction]), window.per_second(done.bytes[direction]));
                writeln!(out, "  {name}: {together} together; as fio adds: {sum}")
            }
            None => writeln!(out, "  {name}: as fio adds: {sum}"),
        };
    }
}

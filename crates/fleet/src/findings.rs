//! What a reader of figures of several hosts has to know.
//!
//! Invariant: a finding rests on what hosts told. Whatever makes a sum one that was not reached is among them, or the sum is one.

use std::collections::BTreeMap;

use fiord_report::table::Cell;
use fiord_report::{Code, Finding, Subject, finding};
use fiord_stats::Capped;
use fiord_stats::OrderBy;

use crate::model::FleetReport;
use crate::order::Order;
use crate::outliers::{Measure, Outlier};
use crate::run::{Fate, HostRun};

/// Everything, the worst first.
pub(crate) fn of(fleet: &FleetReport) -> Vec<Finding> {
    let mut found = fates(fleet);
    if fleet.settings.order == Order::Together {
        found.extend(window(fleet));
        found.extend(starts(fleet));
    }
    found.extend(shared_targets(fleet));
    found.extend(stragglers(fleet));
    found.extend(mixed(fleet));
    found.extend(of_hosts(fleet));
    finding::ordered(&mut found);
    found
}

/// Names, or how many there are.
pub(crate) fn names<'a>(runs: impl IntoIterator<Item = &'a HostRun>) -> String {
    let names: Vec<&str> = runs.into_iter().map(|run| run.host.name.as_str()).collect();
    match names.as_slice() {
        [] => "no host".to_string(),
        [one] => (*one).to_string(),
        [all @ .., last] if names.len() <= 3 => format!("{} and {last}", all.join(", ")),
        [first, ..] => format!("{} hosts, {first} the first", names.len()),
    }
}

/// Hosts that are in no figure.
fn fates(fleet: &FleetReport) -> Vec<Finding> {
    let gone: Vec<&HostRun> = fleet.hosts.iter().filter(|run| !run.is_counted()).collect();
    let figures = |count: usize| {
        [("hosts", Cell::Count(fleet.hosts.len() as u64)), ("hosts_gone", Cell::Count(count as u64))]
    };
    if gone.len() <= fleet.settings.allow_missing as usize {
        let of = |gone: &[&HostRun]| {
            let sentence = format!(
                "the figures are of {} of {} hosts, without {}",
                fleet.hosts.len() - gone.len(),
                fleet.hosts.len(),
                names(gone.iter().copied())
            );
            let remedy = "quote them with the number of hosts they are of";
            Finding::new(Code::FewerHosts, Subject::Run, sentence, remedy).based_on(figures(gone.len()))
        };
        return if gone.is_empty() { Vec::new() } else { vec![of(&gone)] };
    }
    let never_started = |run: &&HostRun| matches!(run.fate, Fate::Missing { .. });
    let (missing, lost): (Vec<&HostRun>, Vec<&HostRun>) = gone.into_iter().partition(never_started);
    let causes = |runs: &[&HostRun]| {
        let first = runs.first().and_then(|run| run.fate.cause());
        first.map_or_else(String::new, |cause| format!(": {cause}"))
    };
    let mut found = Vec::new();
    if !missing.is_empty() {
        let sentence = format!("{} never started{}", names(missing.iter().copied()), causes(&missing));
        let remedy = "make them reachable, leave them out, or allow it with --allow-missing";
        let finding = Finding::new(Code::HostMissing, Subject::Run, sentence, remedy);
        found.push(finding.based_on(figures(missing.len())));
    }
    if !lost.is_empty() {
        let when = match lost.first().map(|run| &run.fate) {
            Some(Fate::Lost { at_ms, .. }) => format!(" at {:.1} s", *at_ms as f64 / 1000.0),
            _ => String::new(),
        };
        let sentence = format!("{} went lost{when}{}", names(lost.iter().copied()), causes(&lost));
        let remedy = "its load was part of the run and is in no figure; run again";
        let finding = Finding::new(Code::HostLost, Subject::Run, sentence, remedy);
        found.push(finding.based_on(figures(lost.len())));
    }
    found
}

fn window(fleet: &FleetReport) -> Vec<Finding> {
    let counted: Vec<&HostRun> = fleet.counted().map(|(run, _)| run).collect();
    if counted.len() < 2 {
        return Vec::new();
    }
    let Some(window) = &fleet.window else {
        let silent = counted.iter().copied().filter(|run| crate::window::Series::of(run).is_none());
        let sentence = format!("when {} ran is not known, so that no common window is", names(silent));
        let remedy = "use one version of fiord on all hosts, or repeat the run if its controller was lost";
        return vec![Finding::new(Code::ClockUnsure, Subject::Run, sentence, remedy)];
    };
    let seconds = |ns: u64| ns as f64 / 1e9;
    finding::of_hosts_together(window.hosts, seconds(window.length_ns), seconds(window.shortest_run_ns))
}

fn starts(fleet: &FleetReport) -> Vec<Finding> {
    let Some(starts) = fleet.starts.filter(|starts| starts.hosts > 1) else { return Vec::new() };
    let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
    let mut found = Vec::new();
    if starts.skew_ns > starts.accepted_ns {
        let sentence = format!(
            "the hosts started within {}, and {} are accepted",
            ms(starts.skew_ns),
            ms(starts.accepted_ns)
        );
        let remedy = "look for hosts whose processors are busy, or run longer";
        let figures =
            [("skew_ns", Cell::Latency(starts.skew_ns)), ("accepted_ns", Cell::Latency(starts.accepted_ns))];
        found.push(Finding::new(Code::StartSkew, Subject::Run, sentence, remedy).based_on(figures));
    }
    if starts.clock_error_ns > starts.accepted_ns {
        let sentence = format!(
            "the hosts' clocks are known to {}, and starts within {} are accepted",
            ms(starts.clock_error_ns),
            ms(starts.accepted_ns)
        );
        let figures = [
            ("clock_error_ns", Cell::Latency(starts.clock_error_ns)),
            ("accepted_ns", Cell::Latency(starts.accepted_ns)),
        ];
        let remedy = "use a quicker way to the hosts, or run longer";
        found.push(Finding::new(Code::ClockUnsure, Subject::Run, sentence, remedy).based_on(figures));
    }
    found
}

/// Targets that several hosts used.
fn shared_targets(fleet: &FleetReport) -> Vec<Finding> {
    if fleet.settings.shared || fleet.settings.order != Order::Together {
        return Vec::new();
    }
    let mut by_identity: BTreeMap<&str, Vec<&HostRun>> = BTreeMap::new();
    for (run, _) in fleet.counted() {
        let targets = run.facts.iter().flat_map(|facts| &facts.targets);
        for identity in targets.filter_map(|target| target.identity.as_deref()) {
            let users = by_identity.entry(identity).or_default();
            if users.last().is_none_or(|last| last.host.number != run.host.number) {
                users.push(run);
            }
        }
    }
    let of = |(identity, users): (&str, Vec<&HostRun>)| {
        let count = users.len();
        (count > 1).then(|| {
            let sentence = format!("{} used one target, {identity}", names(users));
            let remedy = "give each host its own, or say that it is meant: --shared";
            let figures = [("hosts", Cell::Count(count as u64))];
            Finding::new(Code::SharedTarget, Subject::Run, sentence, remedy).based_on(figures)
        })
    };
    by_identity.into_iter().filter_map(of).collect()
}

/// What hosts may differ in, for people, and the value of a host; empty if it is not known.
pub(crate) fn traits(run: &HostRun) -> Vec<(&'static str, String)> {
    let Some(facts) = &run.facts else { return Vec::new() };
    let mut models: Vec<&str> = facts.targets.iter().map(|target| target.model.as_str()).collect();
    models.order_by(Ord::cmp);
    models.dedup();
    vec![
        ("role", run.host.role.clone().unwrap_or_default()),
        ("kernel", facts.kernel.clone()),
        ("processor", facts.cpu.clone()),
        ("architecture", facts.arch.clone()),
        ("disk", models.join("+")),
        ("fiord", facts.fiord_version.clone()),
    ]
}

/// The hosts that have each value of each trait.
type ByTrait<'r> = BTreeMap<&'static str, BTreeMap<String, Vec<&'r HostRun>>>;

fn by_trait<'r>(runs: &[&'r HostRun]) -> ByTrait<'r> {
    let mut by_trait = ByTrait::new();
    for run in runs {
        for (name, value) in traits(run).into_iter().filter(|(_, value)| !value.is_empty()) {
            by_trait.entry(name).or_default().entry(value).or_default().push(run);
        }
    }
    by_trait
}

fn mixed(fleet: &FleetReport) -> Option<Finding> {
    let mut by_trait = by_trait(&fleet.counted().map(|(run, _)| run).collect::<Vec<_>>());
    // Roles differ because the user says so.
    by_trait.remove("role");
    by_trait.retain(|_, values| values.len() > 1);
    if by_trait.is_empty() {
        return None;
    }
    let of = |(name, values): (&&'static str, &BTreeMap<String, Vec<&HostRun>>)| {
        let each =
            |(value, runs): (&String, &Vec<&HostRun>)| format!("{value} ({})", names(runs.iter().copied()));
        format!("{name} {}", values.iter().map(each).collect::<Vec<_>>().join(", "))
    };
    let all = by_trait.iter().map(of).collect::<Vec<_>>().join("; ");
    let remedy = "compare like with like, or group the hosts by what differs";
    Some(Finding::new(Code::MixedHosts, Subject::Run, format!("the hosts differ: {all}"), remedy))
}

fn stragglers(fleet: &FleetReport) -> Vec<Finding> {
    let of = |measure: Measure| {
        let found: Vec<&Outlier> =
            fleet.outliers.iter().filter(|outlier| outlier.measure == measure).collect();
        let worst = found.first()?;
        let runs: Vec<&HostRun> = found.iter().filter_map(|outlier| fleet.hosts.get(outlier.host)).collect();
        let what = match measure {
            Measure::Iops => format!("{:.0} IOPS (the median is {:.0})", worst.value, worst.median),
            Measure::P99 => format!(
                "a p99 of {} (the median is {})",
                Cell::Latency(u64::capped(worst.value)).shown(),
                Cell::Latency(u64::capped(worst.median)).shown()
            ),
        };
        let name = fleet.hosts.get(worst.host).map_or("", |run| run.host.name.as_str());
        let who = match runs.len() {
            1 => format!("{name} has"),
            _ => format!("{} are far from the others, {name} most with", names(runs.iter().copied())),
        };
        let sentence = format!("{who} {what}{}{}", cost(fleet, &found), common(fleet, &runs));
        let remedy = "compare its disk, kernel and load with those of the others, and run on it alone";
        let figures = [
            ("value", Cell::Number(worst.value, 0)),
            ("median", Cell::Number(worst.median, 0)),
            ("hosts", Cell::Count(found.len() as u64)),
        ];
        let subject = Subject::Host(name.to_string());
        Some(Finding::new(Code::Straggler, subject, sentence, remedy).based_on(figures))
    };
    [Measure::Iops, Measure::P99].into_iter().filter_map(of).collect()
}

/// What slow hosts cost: how much more all would do if these were like the median.
fn cost(fleet: &FleetReport, slow: &[&Outlier]) -> String {
    let all: f64 = fleet.counted().map(|(_, member)| member.iops).sum();
    let more: f64 = slow
        .iter()
        .filter(|outlier| outlier.measure == Measure::Iops)
        .map(|outlier| outlier.median - outlier.value)
        .sum();
    match all > 0.0 && more > 0.0 {
        true => format!(": all would do {:.1} % more if these were like the median", more / all * 100.0),
        false => String::new(),
    }
}

/// What most of the slow hosts have and few of the others.
fn common(fleet: &FleetReport, slow: &[&HostRun]) -> String {
    if slow.len() < 2 {
        return String::new();
    }
    let all: Vec<&HostRun> = fleet.counted().map(|(run, _)| run).collect();
    let (of_all, of_slow) = (by_trait(&all), by_trait(slow));
    let having = |runs: &ByTrait<'_>, (name, value): &(&'static str, String)| {
        runs.get(name).and_then(|values| values.get(value)).map_or(0, Vec::len)
    };
    let is_theirs = |which: &(&'static str, String)| {
        let slow_ones = having(&of_slow, which);
        let others = having(&of_all, which) - slow_ones;
        slow_ones * 3 >= slow.len() * 2 && others * 3 <= all.len() - slow.len()
    };
    let first = slow.iter().flat_map(|run| traits(run)).find(|which| !which.1.is_empty() && is_theirs(which));
    first.map_or_else(String::new, |which| {
        format!("; {} of the {} slow ones have {} {}", having(&of_slow, &which), slow.len(), which.0, which.1)
    })
}

/// What the hosts' own reports say, each once.
fn of_hosts(fleet: &FleetReport) -> Vec<Finding> {
    let mut all: Vec<(&Finding, Vec<&HostRun>)> = Vec::new();
    for (run, _) in fleet.counted() {
        for finding in run.rounds().flat_map(|report| &report.findings) {
            let is_same = |(known, _): &&mut (&Finding, Vec<&HostRun>)| {
                known.code == finding.code && known.option == finding.option
            };
            match all.iter_mut().find(is_same) {
                Some((_, runs)) if runs.last().is_some_and(|last| last.host.number == run.host.number) => {}
                Some((_, runs)) => runs.push(run),
                None => all.push((finding, vec![run])),
            }
        }
    }
    let of = |(finding, runs): (&Finding, Vec<&HostRun>)| {
        let hosts = match runs.len() {
            1..=3 => names(runs),
            count => format!("{count} hosts"),
        };
        Finding { sentence: format!("{} ({hosts})", finding.sentence), ..finding.clone() }
    };
    all.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FleetSettings;
    use crate::run::{HostFacts, TargetFacts};
    use crate::testing::{host, job};

    fn lines(hosts: Vec<HostRun>, settings: FleetSettings) -> Vec<String> {
        FleetReport::of(hosts, settings).findings.iter().map(Finding::line).collect()
    }

    fn hosts(count: u32) -> Vec<HostRun> {
        (0..count).map(|number| host(number, i64::from(number), vec![job(&[1000; 100], 1000)])).collect()
    }

    #[test]
    fn equal_hosts_that_start_together_have_none() {
        assert_eq!(lines(hosts(6), FleetSettings::default()), [""; 0]);
    }

    #[test]
    fn hosts_apart_are_cautioned_of_and_void_the_sum() {
        let apart = |start_ms| {
            let second = host(1, start_ms, vec![job(&[1000; 100], 1000)]);
            lines(vec![host(0, 0, vec![job(&[1000; 100], 1000)]), second], FleetSettings::default())
        };
        assert_eq!(apart(9), [""; 0]);
        assert!(
            apart(50)[0]
                .starts_with("caution: this run: start-skew: the hosts started within 50.0 ms, and 10.0 ms")
        );
        let some = apart(200);
        assert!(
            some[0].contains(
                "no-overlap: the 2 hosts ran together for 0.8 s of the shortest run, which took 1.0 s (80 %)"
            ),
            "{some:?}"
        );
        let none = apart(1000);
        assert!(none[0].starts_with("void: this run: no-common-window: "), "{none:?}");
        let within = FleetSettings { start_within_ns: Some(1_000_000_000), ..FleetSettings::default() };
        let both = vec![host(0, 0, vec![job(&[1; 9], 1000)]), host(1, 50, vec![job(&[1; 9], 1000)])];
        assert_eq!(lines(both, within), [""; 0]);
    }

    #[test]
    fn hosts_that_are_gone_void_the_figures_unless_allowed() {
        let mut runs = hosts(3);
        runs[1].fate = Fate::Lost { at_ms: 12_300, cause: "the pipe ended".to_string() };
        runs[2].fate = Fate::Missing { cause: "connection refused".to_string() };
        runs[2].report = None;
        let found = lines(runs.clone(), FleetSettings::default());
        assert_eq!(
            found,
            [
                "void: this run: host-missing: db3 never started: connection refused",
                "void: this run: host-lost: db2 went lost at 12.3 s: the pipe ended",
            ]
        );
        let allowed = FleetSettings { allow_missing: 2, ..FleetSettings::default() };
        let found = lines(runs, allowed);
        assert_eq!(
            found,
            ["caution: this run: fewer-hosts: the figures are of 1 of 3 hosts, without db2 and db3"]
        );
    }

    #[test]
    fn clocks_that_are_known_badly_and_starts_that_are_not_known_are_said() {
        let mut runs = hosts(2);
        runs[1].clock = Some(crate::ClockFit { error_ns: 30_000_000, ..Default::default() });
        let found = lines(runs.clone(), FleetSettings::default());
        assert_eq!(
            found,
            [
                "caution: this run: clock-unsure: the hosts' clocks are known to 30.0 ms, and starts within 10.0 ms are accepted"
            ]
        );
        runs[1].stages.clear();
        let found = lines(runs, FleetSettings::default());
        assert!(found[0].contains("clock-unsure: when db2 ran is not known"), "{found:?}");
    }

    fn with_target(run: &mut HostRun, identity: &str, kernel: &str) {
        let target = TargetFacts { identity: Some(identity.to_string()), ..TargetFacts::default() };
        let kernel = kernel.to_string();
        run.facts = Some(HostFacts { kernel, targets: vec![target], ..HostFacts::default() });
    }

    #[test]
    fn one_target_of_two_hosts_is_found_unless_it_is_meant() {
        let mut runs = hosts(3);
        for (run, identity) in runs.iter_mut().zip(["naa.1", "naa.2", "naa.1"]) {
            with_target(run, identity, "6.1");
        }
        let shared = FleetSettings { shared: true, ..FleetSettings::default() };
        assert_eq!(lines(runs.clone(), shared), [""; 0]);
        assert_eq!(
            lines(runs, FleetSettings::default()),
            ["caution: this run: shared-target: db1 and db3 used one target, naa.1"]
        );
    }

    #[test]
    fn a_straggler_has_its_cost_and_what_it_has_in_common() {
        let mut runs = hosts(8);
        for (number, run) in runs.iter_mut().enumerate() {
            with_target(run, &format!("naa.{number}"), "6.1");
        }
        for number in [6, 7] {
            runs[number] = host(number as u32, 0, vec![job(&[1000; 50], 1000)]);
            with_target(&mut runs[number], &format!("naa.{number}"), "5.15");
        }
        let found = lines(runs, FleetSettings::default());
        assert_eq!(
            found,
            [
                "caution: host db7: straggler: db7 and db8 are far from the others, db7 most with 50 IOPS (the median is \
                 100): all would do 14.3 % more if these were like the median; 2 of the 2 slow ones have kernel 5.15",
                "note: this run: mixed-hosts: the hosts differ: kernel 5.15 (db7 and db8), 6.1 (6 hosts, db1 the first)",
            ]
        );
    }

    #[test]
    fn the_hosts_own_findings_are_said_once_with_their_hosts() {
        let mut runs = hosts(5);
        let of = |code, job: &str| Finding::new(code, Subject::Job(job.to_string()), "as it was said", "");
        for run in &mut runs {
            let findings = vec![of(Code::CachedIo, "a"), of(Code::CachedIo, "b")];
            run.report.as_mut().unwrap().findings = findings;
        }
        runs[3].report.as_mut().unwrap().findings.push(of(Code::SlowIo, "a"));
        assert_eq!(
            lines(runs, FleetSettings::default()),
            [
                "caution: job a: cached-io: as it was said (5 hosts)",
                "caution: job a: slow-io: as it was said (db4)",
            ]
        );
    }
}

//! Reports of fio's client mode: whose each entry is, the sum over all hosts, entries of earlier status reports.
//!
//! Invariant: a figure is counted once: the sum is beside the jobs and not among them, and of the reports of one job over time
//! there is the last.

use std::collections::{HashMap, HashSet};

use crate::model::{DirectionFigures, JobFigures, LatencyFigures, Report};

/// What the sum over all hosts is called.
pub(crate) const ALL: &str = "All clients";

/// Where an entry was run, until it is known how much of it names the host.
pub(crate) fn host_and_port(hostname: Option<String>, port: Option<u64>) -> Option<String> {
    Some(format!("{}:{}", hostname?, port.unwrap_or(0)))
}

/// Takes a report's entries apart.
pub(crate) fn settle(report: &mut Report) {
    let is_sum = |job: &JobFigures| job.name == ALL;
    if report.jobs.iter().all(|job| job.host.is_none()) && !report.jobs.last().is_some_and(is_sum) {
        return;
    }
    let mut jobs = std::mem::take(&mut report.jobs);
    // Each status report had one; it is at the end only if the last report of every host was complete by then.
    if jobs.len() > 1 && jobs.last().is_some_and(is_sum) {
        report.all_hosts = jobs.pop().map(Box::new);
    }
    let count = jobs.len();
    if jobs.iter().any(|job| job.host.is_some()) {
        jobs.retain(|job| !is_sum(job));
        jobs = without_earlier(&report.global_options, jobs);
    }
    report.superseded = count - jobs.len();
    shorten_hosts(&mut jobs);
    let mut known = HashSet::new();
    let hosts = jobs.iter().filter_map(|job| job.host.as_deref()).filter(|host| known.insert(*host));
    report.hosts = hosts.map(str::to_string).collect();
    if let Some(all) = &mut report.all_hosts {
        all.host = None;
    }
    report.jobs = jobs;
}

/// `127.0.0.5` instead of `127.0.0.5:8765` unless several hosts have one address.
fn shorten_hosts(jobs: &mut [JobFigures]) {
    let mut of_address: HashMap<String, Option<String>> = HashMap::new();
    for host in jobs.iter().filter_map(|job| job.host.as_ref()) {
        let address = host.rsplit_once(':').map_or(host.as_str(), |(address, _)| address);
        let known = of_address.entry(address.to_string()).or_insert_with(|| Some(host.clone()));
        if known.as_ref() != Some(host) {
            *known = None;
        }
    }
    for host in jobs.iter_mut().filter_map(|job| job.host.as_mut()) {
        if let Some((address, _)) = host.rsplit_once(':')
            && of_address.get(address).is_some_and(Option::is_some)
        {
            *host = address.to_string();
        }
    }
}

/// With `--status-interval`, one document has an entry for each job at each interval and at the end, one behind the other. An
/// entry that goes on where an earlier one of the same job stood replaces it.
fn without_earlier(globals: &[(String, String)], jobs: Vec<JobFigures>) -> Vec<JobFigures> {
    let mut places: HashMap<(String, Option<u32>, Option<String>), Vec<usize>> = HashMap::new();
    for (at, job) in jobs.iter().enumerate() {
        places.entry((job.name.clone(), job.group_id, job.host.clone())).or_default().push(at);
    }
    let mut is_earlier = vec![false; jobs.len()];
    for places in places.values() {
        // Clones have one name, too. Where it is not known how many there are, nothing is left out.
        let Some(clones) = places.first().and_then(|at| clones(globals, &jobs[*at])) else { continue };
        if places.len() % clones != 0 {
            continue;
        }
        let goes_on =
            (clones..places.len()).all(|at| continues(&jobs[places[at - clones]], &jobs[places[at]]));
        if goes_on {
            places[..places.len() - clones].iter().for_each(|at| is_earlier[*at] = true);
        }
    }
    let mut is_earlier = is_earlier.into_iter();
    jobs.into_iter().filter(|_| !is_earlier.next().unwrap_or(false)).collect()
}

/// How many entries one report has of this job; `None` if its options are not known.
fn clones(globals: &[(String, String)], job: &JobFigures) -> Option<usize> {
    let option = |name: &str| {
        let all = globals.iter().chain(&job.options);
        all.rev().find(|(known, _)| known == name).map(|(_, text)| text.trim())
    };
    if globals.is_empty() && job.options.is_empty() {
        return None;
    }
    match (option("group_reporting"), option("numjobs")) {
        (Some("" | "1"), _) | (None | Some(_), None) => Some(1),
        (_, Some(text)) => text.parse().ok().filter(|count| *count > 0),
    }
}

/// Whether an entry can be the same job later: it started at the same time, and nothing that only grows has shrunk.
fn continues(before: &JobFigures, now: &JobFigures) -> bool {
    let grows = |one: Option<u64>, other: Option<u64>| one.unwrap_or(0) <= other.unwrap_or(0);
    let latency = |one: &Option<LatencyFigures>, other: &Option<LatencyFigures>| match (one, other) {
        (Some(one), Some(other)) if one.is_measured() => {
            grows(one.count, other.count)
                && grows(one.max_ns, other.max_ns)
                && grows(other.min_ns, one.min_ns)
        }
        _ => true,
    };
    let direction = |(one, other): (&DirectionFigures, &DirectionFigures)| {
        one.name == other.name
            && grows(one.ios, other.ios)
            && grows(one.bytes, other.bytes)
            && grows(one.runtime_ms, other.runtime_ms)
            && latency(&one.clat, &other.clat)
    };
    before.start_ms == now.start_ms
        && grows(before.job_runtime_ms, now.job_runtime_ms)
        && before.directions.len() == now.directions.len()
        && before.directions.iter().zip(&now.directions).all(direction)
}

/// The terse lines of one run are printed as hosts end, with empty lines between: those before the sum are part of it if their
/// bytes add up to its.
pub(crate) fn join_terse(reports: &mut Vec<Report>) {
    let moved = |jobs: &[JobFigures]| -> u64 {
        jobs.iter().flat_map(|job| &job.directions).filter_map(|of| of.bytes).sum()
    };
    let mut at = 0;
    while at < reports.len() {
        let Some(sum) = reports[at].all_hosts.as_ref().map(|all| moved(std::slice::from_ref(all.as_ref())))
        else {
            at += 1;
            continue;
        };
        let mut from = at;
        let mut so_far = moved(&reports[at].jobs);
        let is_like = |one: &Report, other: &Report| one.format == other.format && one.all_hosts.is_none();
        while so_far < sum && from > 0 && is_like(&reports[from - 1], &reports[at]) {
            from -= 1;
            so_far += moved(&reports[from].jobs);
        }
        if so_far == sum && from < at {
            let mut jobs: Vec<JobFigures> =
                reports[from..at].iter_mut().flat_map(|one| std::mem::take(&mut one.jobs)).collect();
            jobs.append(&mut reports[at].jobs);
            reports[at].jobs = jobs;
            reports[at].line = reports[from].line;
            reports.drain(from..at);
            at = from;
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DirectionName;

    fn entry(name: &str, host: &str, start_ms: u64, ios: u64, runtime_ms: u64) -> JobFigures {
        JobFigures {
            name: name.to_string(),
            host: Some(host.to_string()),
            start_ms: Some(start_ms),
            job_runtime_ms: Some(runtime_ms),
            directions: vec![DirectionFigures {
                name: DirectionName::Read,
                ios: Some(ios),
                bytes: Some(ios * 4096),
                runtime_ms: Some(runtime_ms),
                ..DirectionFigures::default()
            }],
            ..JobFigures::default()
        }
    }

    fn settled(options: &[(&str, &str)], jobs: Vec<JobFigures>) -> Report {
        let global_options =
            options.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let mut report = Report { global_options, jobs, ..Report::default() };
        settle(&mut report);
        report
    }

    fn ios(report: &Report) -> Vec<(String, u64)> {
        let of = |job: &JobFigures| (job.host.clone().unwrap_or_default(), job.directions[0].ios.unwrap());
        report.jobs.iter().map(of).collect()
    }

    #[test]
    fn of_the_reports_of_a_job_over_time_the_last_counts() {
        let all =
            |ios, runtime| JobFigures { host: Some("h:1".into()), ..entry(ALL, "h:1", 0, ios, runtime) };
        let jobs = vec![
            entry("a", "g:1", 100, 10, 900),
            entry("a", "h:1", 105, 11, 905),
            all(21, 1805),
            entry("a", "h:1", 105, 25, 1905),
            entry("a", "g:1", 100, 24, 1900),
            entry("a", "g:1", 100, 30, 2000),
            entry("a", "h:1", 105, 31, 2001),
        ];
        let report = settled(&[("rw", "read")], jobs);
        assert_eq!(ios(&report), [("g".to_string(), 30), ("h".to_string(), 31)]);
        assert_eq!((report.all_hosts, report.superseded), (None, 5));
        assert_eq!(report.hosts, ["g", "h"]);
    }

    #[test]
    fn clones_and_other_jobs_of_one_name_are_kept() {
        let two = || vec![entry("a", "h:1", 5, 10, 900), entry("a", "h:1", 5, 25, 901)];
        let kept = |options: &[(&str, &str)], jobs| settled(options, jobs).jobs.len();
        assert_eq!(kept(&[("numjobs", "2")], two()), 2);
        assert_eq!(kept(&[("numjobs", "2"), ("group_reporting", "")], two()), 1);
        assert_eq!(kept(&[("rw", "read")], two()), 1);
        assert_eq!(kept(&[], two()), 2, "nothing is known of its options");
        assert_eq!(kept(&[("numjobs", "$x")], two()), 2);
        let mut apart = two();
        apart[1].start_ms = Some(6);
        assert_eq!(kept(&[("rw", "read")], apart), 2);
        let mut shrunk = two();
        shrunk.swap(0, 1);
        assert_eq!(kept(&[("rw", "read")], shrunk), 2);
    }

    #[test]
    fn the_sum_is_beside_the_jobs_and_ports_are_named_where_they_tell_hosts_apart() {
        let jobs = vec![
            entry("a", "127.0.0.1:1", 5, 10, 900),
            entry("a", "127.0.0.1:2", 5, 11, 900),
            entry("a", "::1:3", 5, 12, 900),
            entry(ALL, "::1:3", 0, 33, 900),
        ];
        let report = settled(&[("rw", "read")], jobs);
        assert_eq!(report.hosts, ["127.0.0.1:1", "127.0.0.1:2", "::1"]);
        assert_eq!(report.all_hosts.unwrap().directions[0].ios, Some(33));
        let alone = settled(&[], vec![JobFigures { host: None, ..entry(ALL, "", 0, 1, 1) }]);
        assert_eq!(alone.jobs.len(), 1, "a job may be called so");
    }
}

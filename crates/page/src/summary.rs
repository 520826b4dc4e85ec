//! The conclusion in a sentence, and the tables of figures.
//!
//! Invariant: every figure is the report's own; nothing is computed but rates from counts and times, as reports do.

use fiord_import::{CpuFigures, DirectionFigures, DirectionName, JobFigures, LatencyFigures};

use crate::figures::{self, Figure};
use crate::percentiles::measured;
use crate::run_view::{RunView, letter};

/// The columns of the summary.
pub(crate) const COLUMNS: [(&str, &str); 9] = [
    ("iops", "IOPS"),
    ("bandwidth", "Throughput"),
    ("mean", "Mean"),
    ("p50", "50 %"),
    ("p99", "99 %"),
    ("p999", "99.9 %"),
    ("max", "Longest"),
    ("ios", "I/Os"),
    ("bytes", "Moved"),
];

/// One row: a job and direction.
pub(crate) struct Row {
    pub run: String,
    pub job: String,
    pub direction: &'static str,
    pub figures: Vec<Figure>,
}

fn percentile(latency: Option<&LatencyFigures>, percent: f64) -> Figure {
    Figure::time(latency.and_then(|latency| latency.percentile_ns(percent)).map(|ns| ns as f64))
}

/// The rows of all runs.
pub(crate) fn rows(runs: &[RunView]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for (name, job) in run.named_jobs() {
            for direction in job.directions.iter().filter(|direction| direction.is_active()) {
                let run = if runs.len() > 1 { letter(number).to_string() } else { String::new() };
                rows.push(Row {
                    run,
                    job: name.clone(),
                    direction: direction.name.name(),
                    figures: figures_of(direction),
                });
            }
        }
    }
    rows
}

fn figures_of(direction: &DirectionFigures) -> Vec<Figure> {
    let latency = measured(direction).map(|(_, latency)| latency);
    vec![
        Figure::rate(direction.iops),
        Figure::bandwidth(direction.bandwidth),
        Figure::time(latency.and_then(|latency| latency.mean_ns)),
        percentile(latency, 50.0),
        percentile(latency, 99.0),
        percentile(latency, 99.9),
        Figure::time(latency.and_then(|latency| latency.max_ns).map(|ns| ns as f64)),
        Figure::count(direction.ios),
        Figure::bytes(direction.bytes),
    ]
}

/// The conclusion: a sentence for each job and direction.
pub(crate) fn sentences(run: &RunView) -> Vec<String> {
    let mut sentences = Vec::new();
    for (name, job) in run.named_jobs().into_iter().take(6) {
        if job.error.unwrap_or(0) != 0 {
            let text = job.error_text.as_deref().filter(|text| !text.is_empty()).unwrap_or("an error");
            sentences.push(format!("{name} ended with an error: {text}."));
        }
        let active = job.directions.iter().filter(|direction| direction.is_active());
        sentences.extend(active.filter_map(|direction| sentence(run, &name, job, direction)));
    }
    if sentences.is_empty() {
        sentences.push("No job did any I/O.".to_string());
    }
    sentences
}

fn sentence(run: &RunView, name: &str, job: &JobFigures, direction: &DirectionFigures) -> Option<String> {
    let what = match direction.name.name() {
        "mixed" => "I/Os".to_string(),
        name => format!("{name}s"),
    };
    let who = if run.report.jobs.len() > 1 { format!("{name}: ") } else { String::new() };
    let rate = figures::count(direction.ios_per_s()?);
    let bandwidth =
        direction.bandwidth.map_or_else(String::new, |bytes| format!(" ({}/s)", figures::size(bytes as f64)));
    let synced = job.synced_writes().filter(|_| direction.name == DirectionName::Write);
    let with_sync = if synced.is_some() { " with their syncs" } else { "" };
    let latency = synced.as_ref().or_else(|| measured(direction).map(|(_, latency)| latency));
    let at = |percent| {
        latency.and_then(|latency| latency.percentile_ns(percent)).map(|ns| figures::time(ns as f64))
    };
    let took = match (at(50.0), at(99.0)) {
        (Some(median), Some(most)) => {
            format!("; half took at most {median}{with_sync}, 99 % at most {most}")
        }
        _ => String::new(),
    };
    Some(format!("{who}{rate} {what} per second{bandwidth}{took}."))
}

/// What the findings mean for the figures: never better than what was checked.
pub(crate) fn verdict(run: &RunView) -> (&'static str, String) {
    let count = |severity: &str| run.findings.iter().filter(|finding| finding.severity == severity).count();
    let plural = |count: usize| if count == 1 { "finding" } else { "findings" };
    let failed = run.report.jobs.iter().filter(|job| job.error.is_some_and(|error| error != 0)).count();
    let (mood, findings) = match (count("void"), count("caution")) {
        (0, 0) if failed > 0 => {
            let jobs = if failed == 1 { "job" } else { "jobs" };
            (
                "void",
                Some(format!(
                    "{failed} {jobs} ended with an error: the figures are those of the time before."
                )),
            )
        }
        (0, 0) if run.checks.are_complete() && run.report.damage.is_empty() => ("good", None),
        (0, 0) => ("open", None),
        (0, cautions) => {
            ("caution", Some(format!("{cautions} {} to read before quoting a figure.", plural(cautions))))
        }
        (voids, _) => {
            let text = "the figures do not measure what the job specifies.";
            ("void", Some(format!("{voids} {}: {text}", plural(voids))))
        }
    };
    let checks = run.checks.sentences(!run.findings.is_empty());
    (mood, findings.into_iter().chain(checks).collect::<Vec<_>>().join(" "))
}

/// Facts about each job: (name, [(label, figure)]).
pub(crate) fn jobs(run: &RunView) -> Vec<(String, Vec<(&'static str, Figure)>)> {
    let of = |(name, job): (String, &JobFigures)| {
        let CpuFigures { user_percent, system_percent, context_switches, major_faults, .. } = job.cpu;
        let syncs = job.sync.lat.as_ref().filter(|latency| latency.is_measured());
        let rows = [
            ("jobs reported as this one", Figure::count(job.member_count.map(u64::from))),
            (
                "error",
                Figure::count(job.error.filter(|error| *error != 0).map(|error| error.unsigned_abs().into())),
            ),
            ("run time", Figure::time(job.elapsed_s.map(|elapsed_s| elapsed_s as f64 * 1e9))),
            ("processor time in programs", Figure::percent(user_percent)),
            ("processor time in the kernel", Figure::percent(system_percent)),
            ("context switches", Figure::count(context_switches)),
            ("page faults with I/O", Figure::count(major_faults)),
            ("syncs", Figure::count(job.sync.ios.filter(|ios| *ios > 0))),
            ("mean of a sync", Figure::time(syncs.and_then(|latency| latency.mean_ns))),
            (
                "99 % of syncs within",
                syncs.map_or_else(Figure::none, |latency| percentile(Some(latency), 99.0)),
            ),
        ];
        (name, rows.into_iter().filter(|(_, figure)| !figure.exact.is_empty()).collect())
    };
    run.named_jobs().into_iter().map(of).collect()
}

/// The hosts that a section of the job file names, if it is not that of all.
const HOSTS_NAMED_MAX: usize = 8;

/// The options of a report as a job file. The jobs that `numjobs` makes of a section are that section. What all hosts ran is
/// there once; where they differ, a line says whose a section is.
pub(crate) fn job_file(run: &RunView) -> String {
    let report = &run.report;
    let lines = |options: &[(String, String)]| {
        let line = |(name, value): &(String, String)| match value.as_str() {
            "" => format!("{name}\n"),
            value => format!("{name}={value}\n"),
        };
        options.iter().filter(|(name, _)| name != "name").map(line).collect::<String>()
    };
    let mut text = String::new();
    if !report.global_options.is_empty() {
        text += &format!("[global]\n{}\n", lines(&report.global_options));
    }
    let is_shown = |job: &JobFigures| !job.options.is_empty() || !report.global_options.is_empty();
    let hosts = || report.jobs.chunk_by(|one, other| one.host == other.host);
    // In the place of each section: what it is, and whose.
    let mut places: Vec<Vec<(String, Vec<&str>)>> = Vec::new();
    for jobs in hosts() {
        let sections = sections(jobs, &report.global_options).into_iter().filter(|job| is_shown(job));
        for (at, job) in sections.enumerate() {
            let section = format!("[{}]\n{}\n", job.name, lines(&job.options));
            let host = job.host.as_deref().unwrap_or_default();
            places.resize_with(places.len().max(at + 1), Vec::new);
            match places[at].iter_mut().find(|(known, _)| *known == section) {
                Some((_, hosts)) => hosts.push(host),
                None => places[at].push((section, vec![host])),
            }
        }
    }
    let of_all = hosts().count();
    for (section, hosts) in places.iter().flatten() {
        if hosts.len() < of_all {
            let more = hosts.len().saturating_sub(HOSTS_NAMED_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text += &format!("# on {}{more}\n", hosts[..hosts.len().min(HOSTS_NAMED_MAX)].join(", "));
        }
        text += section;
    }
    text.trim_end().to_string()
}

/// The first job of each section.
fn sections<'j>(mut jobs: &'j [JobFigures], globals: &[(String, String)]) -> Vec<&'j JobFigures> {
    let numjobs = |options: &[(String, String)]| {
        let (_, value) = options.iter().rev().find(|(name, _)| name == "numjobs")?;
        value.trim().parse::<usize>().ok()
    };
    let mut sections = Vec::new();
    while let [job, others @ ..] = jobs {
        let is_clone = |other: &&JobFigures| other.name == job.name && other.options == job.options;
        let clones = others.iter().take_while(is_clone).count();
        let made = numjobs(&job.options).or_else(|| numjobs(globals)).unwrap_or(1);
        jobs = &others[clones.min(made.saturating_sub(1))..];
        sections.push(job);
    }
    sections
}

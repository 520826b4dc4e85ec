//! What a run on hosts shows while it lasts: a line or the view on a terminal, status reports, metrics.
//!
//! Invariant: all of it is made of what the agents tell anyway, and of reports of what they have measured so far, which they send
//! only while somebody wants them. Off a terminal nothing is written but what was asked for.

use std::cell::LazyCell;
use std::time::{Duration, Instant};

use fiord_fleet::render::render;
use fiord_fleet::report::merged;
use fiord_fleet::{Fate, FleetReport, FleetSettings, Host, HostRun, Interval, interval};
use fiord_metrics::{HostFigures, of_hosts};
use fiord_options::value::EtaWhen;
use fiord_remote::Onlooker;
use fiord_report::{Format, RunReport};
use fiord_stats::{Capped, JobStats};
use fiord_sys::{clock, signal};
use fiord_wire::Controller;
use fiord_wire::controller::Remote;

use super::presenter::LiveLineOptions;
use crate::hosts::{Progress, Standing, counted};
use crate::live::{Live, latencies_of, passed};
use crate::metrics::{EXPORT_EVERY, MetricsExporter};
use crate::output::Output;

/// How long after it is due a status report waits for what hosts measured until then, at most.
const PATIENCE: Duration = Duration::from_millis(400);

/// The shortest interval of status reports: hosts send what they measured no more often.
const STATUS_EVERY_MIN: Duration = Duration::from_millis(500);

/// Interval between two looks at the latencies of all hosts, for the view.
const LATENCIES_EVERY: Duration = Duration::from_secs(1);

/// Where a run on hosts is shown.
pub(super) struct Shows<'a> {
    pub options: &'a LiveLineOptions,
    pub output: &'a mut Output,
    pub metrics: Option<&'a mut MetricsExporter>,
}

/// Shows a run on hosts.
pub(super) struct HostsPresenter<'a> {
    hosts: &'a [Host],
    settings: FleetSettings,
    shows: Shows<'a>,
    title: String,
    progress: Progress<'a>,
    live: Live,
    /// What each host had measured, and when that came.
    reports: Vec<(i64, Option<RunReport>)>,
    has_started: bool,
    is_stopping: bool,
    published: Option<Instant>,
    measured: Option<Instant>,
    /// The number of the status report that is due next, from 1.
    next: u32,
    intervals: Vec<Interval>,
    rows: usize,
    /// What goes to standard output once the view is closed.
    held: String,
}

impl<'a> HostsPresenter<'a> {
    /// Of these hosts, which run this job.
    pub(super) fn new(
        hosts: &'a [Host],
        job: &str,
        settings: FleetSettings,
        shows: Shows<'a>,
    ) -> HostsPresenter<'a> {
        HostsPresenter {
            hosts,
            settings,
            title: format!("fiord {job} on {}", counted(hosts.len())),
            progress: Progress::of(hosts, shows.options.eta != EtaWhen::Never),
            live: Live::new(shows.options.live),
            shows,
            reports: vec![(0, None); hosts.len()],
            has_started: false,
            is_stopping: false,
            published: None,
            measured: None,
            next: 1,
            intervals: Vec::new(),
            rows: 0,
            held: String::new(),
        }
    }

    /// Another round of the same jobs begins.
    pub(super) fn begin_round(&mut self) {
        self.reports.fill((0, None));
        (self.has_started, self.next) = (false, 1);
    }

    /// Nothing more is shown; what was measured until times of the run.
    pub(super) fn finish(mut self) -> Vec<Interval> {
        self.close_view();
        self.progress.clear();
        self.intervals
    }

    fn close_view(&mut self) {
        self.live.close();
        self.flush();
    }

    fn flush(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.shows.output.write(&held);
    }

    fn status_every(&self) -> Option<Duration> {
        self.shows.options.status_interval.map(|every| every.max(STATUS_EVERY_MIN))
    }

    /// Reads what hosts have sent since.
    fn read(&mut self, controller: &Controller) {
        for (known, remote) in self.reports.iter_mut().zip(controller.remotes()) {
            let (bytes, at_ns) = match remote.report() {
                [] => remote.snapshot(),
                whole => (whole, i64::MAX),
            };
            if known.0 != at_ns {
                // One that cannot be read is like one that has not come: the report at the end says so.
                *known = (at_ns, fiord_store::decode(bytes).ok());
            }
        }
    }

    /// The hosts with what they had measured.
    fn runs(&self, controller: &Controller) -> Vec<HostRun> {
        let of = |((host, remote), (_, report)): ((&Host, &Remote), &(i64, Option<RunReport>))| HostRun {
            host: host.clone(),
            // One that was lost is in no sum any more, as at the end.
            fate: remote.fate().cloned().unwrap_or_default(),
            stages: remote.stages().to_vec(),
            facts: remote.facts().cloned(),
            // What a silent host had done is not what it has done by now.
            report: report.as_ref().filter(|_| remote.fate().is_some() || !remote.is_silent(now())).cloned(),
            ..HostRun::default()
        };
        self.hosts.iter().zip(controller.remotes()).zip(&self.reports).map(of).collect()
    }

    fn publish(&mut self, controller: &Controller) {
        if self.shows.metrics.is_none() || !is_due(&mut self.published, EXPORT_EVERY) {
            return;
        }
        self.read(controller);
        let hosts = self.hosts.iter().zip(controller.remotes()).zip(&self.reports);
        let hosts: Vec<HostFigures> = hosts
            .map(|((host, remote), (_, report))| HostFigures {
                host: &host.name,
                state: state(remote, now()),
                report: report.as_ref().filter(|_| !remote.fate().is_some_and(Fate::is_gone)),
            })
            .collect();
        let all = merged(hosts.iter().filter_map(|one| one.report).flat_map(|report| &report.jobs));
        let there = controller.remotes().iter().filter(|one| !one.fate().is_some_and(Fate::is_gone)).count();
        let families = of_hosts(&hosts, all.as_ref().map(|all| (all, there)));
        if let Some(metrics) = &mut self.shows.metrics {
            metrics.publish(families);
        }
    }

    /// Prints or keeps what was measured until a time that has come.
    fn report_status(&mut self, controller: &Controller, started_ns: i64) {
        let Some(every) = self.status_every() else { return };
        let at = every * self.next;
        let passed_ns = u64::try_from(now().saturating_sub(started_ns)).unwrap_or(0);
        if Duration::from_nanos(passed_ns) < at + PATIENCE.min(every / 2) {
            return;
        }
        // Those that nobody could look at are left out.
        self.next = u32::capped(passed_ns / u64::capped(every.as_nanos()).max(1)).saturating_add(1);
        self.read(controller);
        let runs = self.runs(controller);
        if !runs.iter().any(HostRun::is_counted) {
            return;
        }
        let formats = &self.shows.options.formats;
        if formats.iter().any(|format| matches!(format, Format::Json | Format::JsonPlus)) {
            let mut interval = Interval::of(u64::capped(at.as_millis()), &runs);
            self.rows += interval.hosts.len();
            if self.rows > interval::ROWS_MAX {
                interval.hosts.clear();
            }
            self.intervals.push(interval);
        }
        let formats: Vec<Format> = formats
            .iter()
            .copied()
            .filter(|format| matches!(format, Format::Normal | Format::Terse))
            .collect();
        if formats.is_empty() {
            return;
        }
        let fleet = FleetReport {
            // What they say is of whole runs.
            findings: Vec::new(),
            window: None,
            starts: None,
            outliers: Vec::new(),
            ..FleetReport::of(runs, self.settings.clone())
        };
        let text = render(&fleet, &formats, self.shows.options.terse);
        if self.live.is_shown() && self.shows.output.is_stdout() {
            self.held += &text;
        } else {
            self.progress.clear();
            self.shows.output.write(&text);
        }
    }

    /// Shows the view if it is wanted; whether it is on the screen.
    fn show(&mut self, controller: &Controller) -> bool {
        if self.live.is_shown() && is_due(&mut self.measured, LATENCIES_EVERY) {
            self.read(controller);
            let of = |report: &RunReport| {
                let jobs: Vec<&JobStats> = report.jobs.iter().map(|job| &job.stats).collect();
                latencies_of(jobs)
            };
            self.live.latencies(self.reports.iter().map(|(_, report)| report.as_ref().map(of)).collect());
        }
        // All hosts are looked at only if something is drawn.
        let (hosts, title) = (self.hosts, &self.title);
        let standing = LazyCell::new(|| Standing::of(controller, hosts, now()));
        self.live.show(
            |figures| figures.read_hosts(&standing.rates, standing.rows.clone()),
            || (title.clone(), passed(standing.elapsed_s, standing.left_s)),
        )
    }
}

impl Onlooker for HostsPresenter<'_> {
    fn look(&mut self, controller: &Controller) {
        let started_ns = controller.remotes().iter().filter_map(Remote::started_ns).min();
        if let Some(started_ns) = started_ns {
            if !std::mem::replace(&mut self.has_started, true) {
                self.progress.clear();
                self.live.started();
            }
            self.publish(controller);
            self.report_status(controller, started_ns);
        }
        if signal::stop_requested().is_some() && !std::mem::replace(&mut self.is_stopping, true) {
            self.close_view();
        }
        if self.has_started && !self.is_stopping && self.live.is_wanted() && self.show(controller) {
            return;
        }
        if !self.held.is_empty() {
            self.flush();
        }
        self.progress.look(controller);
    }

    fn said(&mut self, number: usize, line: &str) {
        match self.live.is_shown() {
            true => self.live.remark(&self.progress.line_of(number, line)),
            false => self.progress.said(number, line),
        }
    }

    fn snapshots_every(&self) -> Option<Duration> {
        let exported = self.shows.metrics.as_ref().map(|_| EXPORT_EVERY);
        let shown = self.live.is_shown().then_some(LATENCIES_EVERY);
        self.status_every().into_iter().chain(exported).chain(shown).min()
    }
}

/// Exports the figures of the whole run; why not for each destination that did not get them.
pub(super) fn finish_metrics(mut metrics: MetricsExporter, fleet: &FleetReport) -> Vec<String> {
    let hosts: Vec<HostFigures> = fleet
        .hosts
        .iter()
        .map(|run| HostFigures {
            host: &run.host.name,
            state: run.fate.word(),
            report: run.report.as_ref().filter(|_| run.is_counted()),
        })
        .collect();
    metrics.publish(of_hosts(&hosts, fleet.all.as_ref().map(|all| (all, fleet.counted().count()))));
    metrics.finish().iter().map(|why| format!("fiord: {why}\n")).collect()
}

/// How it is with a host, in a word.
fn state(remote: &Remote, now_ns: i64) -> &'static str {
    match remote.fate() {
        Some(fate) => fate.word(),
        None if remote.is_silent(now_ns) => "silent",
        None => remote.doing(),
    }
}

fn now() -> i64 {
    i64::capped(clock::monotonic_ns())
}

/// Whether this long has passed since `last`, which is then now.
fn is_due(last: &mut Option<Instant>, every: Duration) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= every);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

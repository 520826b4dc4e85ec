//! The driver: carries out a plan, both for runs as fio and for studies.
//!
//! Invariant: the only caller of the worker; everything a run yields (report, warnings of workers, ignored errors,
//! failures, a signal) is in its `RunOutcome`. A presenter shows the run and decides nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fiord_options::Problem;
use fiord_options::value::{IdleProf, Trust};
use fiord_plan::{DebugChannel, Job, Plan};
use fiord_report::finding::any_void;
use fiord_report::{RepeatedFigure, RunReport};
use fiord_sys::{process, signal};
use fiord_worker::{DebugLog, LogSink, Moment, Observer, PublishedProgress, View, Watcher, WorkerReport};

use super::assemble::{self, Frame};
use super::attended;
use super::logs::LogWriters;
use super::meters::Meters;
use super::metrics::{EXPORT_EVERY, MetricsExporter};
use super::recording::{PROGRESS_EVERY, SAMPLE_EVERY};
use super::repeats;
use super::trust::Witness;
use crate::live::{self, Live};
use crate::status;

/// A run to be carried out.
pub(crate) struct Run<'a> {
    pub plan: &'a Arc<Plan>,
    /// Settings of `[global]` sections, which the report echoes.
    pub global_options: Vec<(String, String)>,
    /// Warnings about options, as typed or as planned.
    pub warnings: &'a [Problem],
    /// How idleness of processors is reported, if at all.
    pub idle: Option<IdleProf>,
    /// Whether findings are made, and what they do to the exit status.
    pub trust: Trust,
    /// The lines of `--debug`, if any are printed.
    pub debug: Option<DebugLog>,
    /// Exports the figures as metrics, if wanted.
    pub metrics: Option<&'a mut MetricsExporter>,
    /// The figures of the runs before it, if it is one of several.
    pub repeats: Option<Vec<RepeatedFigure>>,
    /// Whether something may be kept in the state directory for later runs.
    pub keeps: bool,
}

/// The outcome of a run.
pub(crate) struct RunOutcome {
    pub report: RunReport,
    /// Lines for standard error: ignored errors, failures, logs that could not be written.
    pub errors: Vec<String>,
    /// Number of jobs that failed or were not started.
    pub failed_jobs: usize,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// The resulting exit status.
    pub status: u8,
}

/// Shows a run and its reports. All calls come from the thread that called `drive`.
pub(crate) trait Presenter: Observer {
    /// The run is about to begin: from here on a signal stops the run, not the process; no target has been opened.
    fn begin(&mut self) {}
    /// The report of what has been measured so far.
    fn snapshot(&mut self, report: &RunReport) {
        let _ = report;
    }
    /// The live view, if it may be shown.
    fn live(&mut self) -> Option<&mut Live> {
        None
    }
    /// The run is over. The rest of the log files is written after this.
    fn ended(&mut self, report: &RunReport, workers: &[WorkerReport]);
}

/// Carries a plan out, to its end or to that of a signal.
pub(crate) fn drive(run: Run<'_>, presenter: &mut dyn Presenter) -> RunOutcome {
    let Run { plan, global_options, warnings, idle, trust, debug, metrics, repeats, keeps } = run;
    // Without its handlers a run still runs; a signal then ends it unreported.
    let _ = signal::record_stop_requests();
    presenter.begin();
    attended::begin();
    // Ten thousand jobs open ten thousand files; a limit that stays low shows as EMFILE in a job.
    let _ = process::raise_open_file_limit();
    let frame = Frame { plan, global_options };
    let witness = (trust != Trust::Off).then(|| Witness::before(plan, keeps));
    let logs = LogWriters::start(plan, debug.as_ref());
    let metrics = metrics.map(|exporter| Metrics { exporter, last_shown: Instant::now() });
    let mut watched = Watched {
        frame: &frame,
        meters: Meters::prepare(idle),
        witness,
        logs,
        presenter,
        metrics,
        debug,
        warnings,
    };
    attended::end();
    let mut result = fiord_worker::run(plan, fiord_worker::ENGINES, &mut watched);
    watched.print_devices();
    let moment = Moment { elapsed_ms: result.elapsed_ms, left_s: Some(0.0), is_requested: false };
    let problems = warnings.iter().chain(plan.unplannable());
    // Before the statistics move into the report.
    let devices = watched.meters.devices();
    let findings = watched
        .witness
        .as_mut()
        .map_or_else(Vec::new, |witness| witness.findings(plan, &result.workers, &devices, problems));
    let recorded = watched.witness.as_mut().map(|witness| witness.recording.finish(&result.workers));
    let (timeline, windows) = recorded.unwrap_or_default();
    let part = watched.witness.as_ref().map(|witness| witness.steady_part(plan, &result.workers));
    let (part_latencies, job_parts) = part.unwrap_or_default();
    let report = assemble::report(&frame, &watched.meters, &mut result.workers, moment);
    let repeats = repeats.map_or_else(Vec::new, |mut figures| {
        repeats::add_run(&mut figures, &report);
        figures
    });
    let steadiness = watched.witness.as_ref().and_then(|witness| witness.steadiness(plan));
    let report =
        RunReport { findings, repeats, steadiness, part_latencies, job_parts, timeline, windows, ..report };
    watched.presenter.ended(&report, &result.workers);
    if let Some(metrics) = &mut watched.metrics {
        metrics.exporter.publish(&report);
    }
    let mut errors = assemble::failures(plan, &result.workers);
    let mut unwritten = assemble::lost_outputs(plan, &result.workers);
    unwritten.extend(watched.logs.finish());
    let failed_jobs = assemble::failed_count(&result.workers);
    let status = match result.signal {
        Some(signal) => status::of_signal(signal),
        None if assemble::any_unsafe_target(&result.workers) => status::REFUSED,
        None if failed_jobs > 0 || !unwritten.is_empty() => status::FAILED,
        None if trust == Trust::Strict && any_void(&report.findings) => status::VOID,
        None => status::SUCCESS,
    };
    errors.extend(unwritten);
    errors.extend(result.trigger_warning.map(|warning| format!("fiord: warning: {warning}\n")));
    RunOutcome { report, errors, failed_jobs, signal: result.signal, status }
}

/// Reads the meters and makes reports of the workers' statistics.
struct Watched<'a> {
    frame: &'a Frame<'a>,
    meters: Meters,
    /// The facts that findings are based on, if findings are wanted.
    witness: Option<Witness>,
    logs: LogWriters,
    presenter: &'a mut dyn Presenter,
    metrics: Option<Metrics<'a>>,
    debug: Option<DebugLog>,
    warnings: &'a [Problem],
}

/// Exports snapshots more often than they are shown.
struct Metrics<'a> {
    exporter: &'a mut MetricsExporter,
    /// When a snapshot was last shown, or the run began.
    last_shown: Instant,
}

impl Metrics<'_> {
    /// Whether a snapshot is to be shown, too.
    fn is_shown(&mut self, moment: Moment, every: Option<Duration>) -> bool {
        // One that comes a little early is not put off by a whole period.
        let is_due = every.is_some_and(|every| self.last_shown.elapsed() + EXPORT_EVERY / 2 >= every);
        if is_due {
            self.last_shown = Instant::now();
        }
        is_due || moment.is_requested
    }
}

impl Watched<'_> {
    /// Prints the kernel's counters of the devices since the run began (`--debug=diskutil`).
    fn print_devices(&self) {
        let Some(debug) = self.debug.as_ref().filter(|debug| debug.has(DebugChannel::Diskutil)) else {
            return;
        };
        for used in self.meters.devices() {
            let counters = used.end.named().map(|(name, value)| format!("{name}={value}"));
            let counters: Vec<String> = counters.collect();
            let name = &used.device.name;
            let line = format_args!("/sys/class/block/{name}/stat: {}", counters.join(" "));
            debug.line(DebugChannel::Diskutil, line);
        }
    }
}

impl Watcher for Watched<'_> {
    fn observer(&mut self) -> &mut dyn Observer {
        self.presenter
    }

    fn log_sink(&mut self, job: &Job) -> Option<Box<dyn LogSink>> {
        self.logs.sink(job)
    }

    fn debug_log(&self) -> Option<DebugLog> {
        self.debug.clone()
    }

    fn starting(&mut self) {
        attended::during(|| self.meters.start(self.frame.plan));
        if let Some(debug) = self.debug.as_ref().filter(|debug| debug.has(DebugChannel::Diskutil)) {
            for used in self.meters.devices() {
                debug.line(DebugChannel::Diskutil, format_args!("add {} to list", used.device.name));
            }
        }
        self.print_devices();
        if let Some(witness) = &mut self.witness {
            witness.start(self.frame.plan);
        }
    }

    fn sample_every(&self) -> Option<Duration> {
        self.witness.as_ref().map(|_| SAMPLE_EVERY)
    }

    fn sample(&mut self, view: &View<'_>) {
        if let Some(witness) = &mut self.witness
            && witness.recording.sample(view)
        {
            self.meters.sample();
        }
    }

    fn snapshot_every(&mut self) -> Option<Duration> {
        let shown = self.presenter.snapshot_every();
        let exported = self.metrics.as_ref().map(|_| EXPORT_EVERY);
        shown.into_iter().chain(exported).min()
    }

    fn statistics_every(&mut self) -> Option<Duration> {
        self.presenter.live().filter(|live| live.is_shown()).map(|_| live::EVERY)
    }

    fn statistics(&mut self, reports: &[WorkerReport]) {
        let Some(live) = self.presenter.live() else { return };
        live.statistics(reports);
        if let Some(witness) = &self.witness
            && live.wants_findings()
        {
            live.found(witness.findings_so_far(
                self.frame.plan,
                reports,
                &self.meters.devices(),
                self.warnings,
            ));
        }
    }

    fn progress_every(&self) -> Option<Duration> {
        self.witness.as_ref().map(|_| PROGRESS_EVERY)
    }

    fn progressed(&mut self, elapsed_ns: u64, published: &PublishedProgress<'_>) {
        if let Some(witness) = &mut self.witness {
            witness.recording.progressed(elapsed_ns, published);
        }
    }

    fn snapshot(&mut self, mut reports: Vec<WorkerReport>, moment: Moment) {
        let report = assemble::report(self.frame, &self.meters, &mut reports, moment);
        let every = self.presenter.snapshot_every();
        let is_shown = self.metrics.as_mut().is_none_or(|metrics| metrics.is_shown(moment, every));
        if is_shown {
            self.presenter.snapshot(&report);
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.exporter.publish(&report);
        }
    }
}

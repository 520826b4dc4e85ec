//! The driver: carries out a plan, both for runs as fio and for studies.
//!
//! Invariant: the only caller of the worker; everything a run yields (report, warnings of workers, ignored errors,
//! failures, a signal) is in its `RunOutcome`. A presenter is told of the run and decides nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fiord_options::Problem;
use fiord_options::value::{IdleProf, Trust};
use fiord_plan::{DebugChannel, Job, PerDirection, Plan};
use fiord_report::finding::any_void;
use fiord_report::{RepeatedFigure, RunReport};
use fiord_sys::{process, signal};
use fiord_worker::{DebugLog, Gate, LogSink, Moment, PublishedProgress, States, View, Watcher, WorkerReport};

use super::assemble::{self, Frame};
use super::attended;
use super::logs::{LogReceiver, LogWriters};
use super::meters::Meters;
use super::recording::{PROGRESS_EVERY, SAMPLE_EVERY};
use super::repeats;
use super::trust::Witness;
use crate::ending::Ending;
use crate::event::{Event, Presenter};
use crate::stop::StopHandle;

/// What others decide of a run: each stage is held until they are ready for it as well.
pub trait StageGate {
    /// When the workers of this stage may be released; see [`Watcher::gate`].
    fn gate(&mut self, stage: usize, patience: Duration) -> Gate;
    /// They were released, at this time of the monotonic clock in nanoseconds.
    fn released(&mut self, stage: usize, at_ns: u64);
    /// Whether the trigger of the run fires, if it has one.
    fn is_trigger_requested(&self) -> bool {
        false
    }
    /// Where states of verification are kept, if that is not in files.
    fn states(&self) -> Option<Arc<dyn States>> {
        None
    }
}

/// A run to be carried out.
pub struct Run<'a> {
    /// What is to be run.
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
    /// The figures of the runs before it, if it is one of several.
    pub repeats: Option<Vec<RepeatedFigure>>,
    /// Whether something may be kept in the state directory for later runs.
    pub keeps: bool,
    /// Ends it early.
    pub stop: StopHandle,
    /// Holds its stages, if it does not start on its own.
    pub gate: Option<&'a mut dyn StageGate>,
    /// Takes the logs that are sent.
    pub logs: Option<&'a dyn LogReceiver>,
}

impl<'a> Run<'a> {
    /// A run of this plan and nothing more, with findings.
    pub fn of(plan: &'a Arc<Plan>, warnings: &'a [Problem]) -> Run<'a> {
        Run {
            plan,
            global_options: Vec::new(),
            warnings,
            idle: None,
            trust: Trust::On,
            debug: None,
            repeats: None,
            keeps: false,
            stop: StopHandle::default(),
            gate: None,
            logs: None,
        }
    }
}

/// The outcome of a run.
pub struct RunOutcome {
    /// What was measured.
    pub report: RunReport,
    /// Lines about ignored errors, failures, and logs that could not be written.
    pub errors: Vec<String>,
    /// Number of jobs that failed or were not started.
    pub failed_jobs: usize,
    /// How it ended.
    pub ending: Ending,
}

/// Carries a plan out, to its end or to that of a signal.
pub fn drive(run: Run<'_>, presenter: &mut dyn Presenter) -> RunOutcome {
    let Run { plan, global_options, warnings, idle, trust, debug, repeats, keeps, stop, gate, logs } = run;
    // Without its handlers a run still runs; a signal then ends it unreported.
    let _ = signal::record_stop_requests();
    presenter.event(&Event::Planned { plan, warnings });
    attended::begin();
    // Ten thousand jobs open ten thousand files; a limit that stays low shows as EMFILE in a job.
    let _ = process::raise_open_file_limit();
    let frame = Frame { plan, global_options };
    let witness = (trust != Trust::Off).then(|| Witness::before(plan, keeps));
    let logs = LogWriters::start(plan, debug.as_ref(), logs);
    let mut watched = Watched {
        frame: &frame,
        meters: Meters::prepare(idle, trust != Trust::Off),
        witness,
        logs,
        presenter,
        last_findings: None,
        stop,
        gate,
        debug,
        warnings,
    };
    attended::end();
    let mut result = fiord_worker::run(plan, fiord_worker::ENGINES, &mut watched);
    watched.meters.sample_energy();
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
    let mut report = assemble::report(&frame, &watched.meters, &mut result.workers, moment);
    if let Some(witness) = &watched.witness {
        witness.add_own_figures(&mut report.devices);
    }
    let repeats = repeats.map_or_else(Vec::new, |mut figures| {
        repeats::add_run(&mut figures, &report);
        figures
    });
    let steadiness = watched.witness.as_ref().and_then(|witness| witness.steadiness(plan));
    let report =
        RunReport { findings, repeats, steadiness, part_latencies, job_parts, timeline, windows, ..report };
    watched.presenter.event(&Event::Report { report: &report, workers: &result.workers });
    let mut errors = assemble::failures(plan, &result.workers);
    let mut unwritten = assemble::lost_outputs(plan, &result.workers);
    unwritten.extend(watched.logs.finish());
    let failed_jobs = assemble::failed_count(&result.workers);
    let ending = match result.signal {
        Some(signal) => Ending::Signal(signal),
        None if assemble::any_unsafe_target(&result.workers) => Ending::Refused,
        None if failed_jobs > 0 || !unwritten.is_empty() => Ending::Failed,
        None if trust == Trust::Strict && any_void(&report.findings) => Ending::Void,
        None => Ending::Complete,
    };
    errors.extend(unwritten);
    errors.extend(result.trigger_warning.map(|warning| format!("fiord: warning: {warning}\n")));
    RunOutcome { report, errors, failed_jobs, ending }
}

/// Reads the meters and makes reports of the workers' statistics.
struct Watched<'a, 'g> {
    frame: &'a Frame<'a>,
    meters: Meters,
    /// The facts that findings are based on, if findings are wanted.
    witness: Option<Witness>,
    logs: LogWriters,
    presenter: &'a mut dyn Presenter,
    /// When the presenter was last told the findings, since it wants statistics.
    last_findings: Option<Instant>,
    stop: StopHandle,
    gate: Option<&'g mut dyn StageGate>,
    debug: Option<DebugLog>,
    warnings: &'a [Problem],
}

impl Watched<'_, '_> {
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

impl Watcher for Watched<'_, '_> {
    fn laying_out(&mut self, job: &Job, files: usize, bytes: u64) {
        self.presenter.event(&Event::LayingOut { job, files, bytes });
    }

    fn laid_out(&mut self, bytes: u64) {
        self.presenter.event(&Event::LaidOut(bytes));
    }

    fn started(&mut self) {
        self.presenter.event(&Event::Started);
    }

    fn gate(&mut self, stage: usize, patience: Duration) -> Gate {
        self.gate.as_mut().map_or(Gate::Open, |gate| gate.gate(stage, patience))
    }

    fn released(&mut self, stage: usize, at_ns: u64) {
        if let Some(gate) = &mut self.gate {
            gate.released(stage, at_ns);
        }
    }

    fn look_every(&self) -> Option<Duration> {
        self.presenter.intervals().tick
    }

    fn look(&mut self, view: &View<'_>) {
        self.presenter.event(&Event::Tick(view));
    }

    fn snapshot_every(&self) -> Option<Duration> {
        self.presenter.intervals().snapshot
    }

    fn is_stop_requested(&self) -> bool {
        self.stop.is_used()
    }

    fn is_trigger_requested(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.is_trigger_requested())
    }

    fn states(&self) -> Option<Arc<dyn States>> {
        self.gate.as_ref()?.states()
    }

    fn stop_requested(&mut self, signal: i32) {
        self.presenter.event(&Event::StopRequested(signal));
    }

    fn waiting_for(&mut self, jobs: &[&Job]) {
        self.presenter.event(&Event::WaitingFor(jobs));
    }

    fn bandwidth_every(&self) -> Option<Duration> {
        self.presenter.intervals().bandwidth
    }

    fn bandwidth(&mut self, at_ms: u64, kib_per_s: PerDirection<u64>) {
        self.presenter.event(&Event::Bandwidth { at_ms, kib_per_s });
    }

    fn looks_at_caches(&self) -> bool {
        self.witness.is_some()
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

    fn statistics_every(&mut self) -> Option<Duration> {
        let every = self.presenter.intervals().statistics;
        self.last_findings = self.last_findings.filter(|_| every.is_some());
        every
    }

    fn statistics(&mut self, reports: &[WorkerReport]) {
        self.presenter.event(&Event::Statistics(reports));
        let (Some(every), Some(witness)) = (self.presenter.intervals().findings, &self.witness) else {
            return;
        };
        // Those that come a little early are not put off by a whole interval of the statistics.
        if self.last_findings.is_none_or(|last| last.elapsed() + every / 10 >= every) {
            self.last_findings = Some(Instant::now());
            let devices = self.meters.devices();
            let findings = witness.findings_so_far(self.frame.plan, reports, &devices, self.warnings);
            self.presenter.event(&Event::Findings(&findings));
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
        self.presenter.event(&Event::Snapshot { report: &report, is_requested: moment.is_requested });
    }
}

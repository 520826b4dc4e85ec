//! The progress line of a study.
//!
//! Invariant: drawn on standard error only if that is a terminal, and erased before anything else is written.

use std::time::Duration;

use fiord_lab::{Figures, Step};
use fiord_report::RunReport;
use fiord_report::columns::{cut, left_aligned};
use fiord_report::table::Cell;
use fiord_session::Ending;
use fiord_session::event::{Event, Intervals, Presenter};
use fiord_stats::DirectionStats;
use fiord_stats::job::DIRECTIONS;
use fiord_sys::{signal, tty};
use fiord_worker::{State, View};

use crate::layout::duration;
use crate::live::{KEYS_EVERY, Live, LiveMode};
use crate::status_line::StatusLine;

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(250);

/// Progress over all steps.
pub(super) struct Progress {
    steps: Vec<Step>,
    /// How long all steps take, those that follow from results included, at most.
    time: Duration,
    /// Whether steps may follow from results.
    may_go_on: bool,
    /// Whether later steps follow from results, so that their number is not known.
    is_search: bool,
    step: usize,
    on_terminal: bool,
    live: Live,
    line: StatusLine,
    laid_out_bytes: u64,
    to_lay_out_bytes: u64,
}

impl Progress {
    /// Over these steps and, in a search, those that follow from their results; all take `time` at most.
    pub(super) fn new(steps: &[Step], time: Duration, live: LiveMode) -> Progress {
        let known: Duration = steps.iter().map(|step| step.time).sum();
        Progress {
            steps: steps.to_vec(),
            time,
            may_go_on: time > known,
            is_search: false,
            step: 0,
            on_terminal: tty::stderr_is_terminal(),
            live: Live::new(live),
            line: StatusLine::default(),
            laid_out_bytes: 0,
            to_lay_out_bytes: 0,
        }
    }

    /// Starts a step, which may follow those known before. Of a study that goes on from an earlier process, it stands for
    /// the runs of that as well.
    fn begin(&mut self, number: usize, step: &Step) {
        while number >= self.steps.len() {
            self.steps.push(step.clone());
            self.is_search = true;
        }
        self.step = number;
        self.draw(&self.left(None));
    }

    /// Erases the line, and closes the view.
    pub(super) fn clear(&mut self) {
        self.live.close();
        self.line.clear();
    }

    /// Shows the row of a step that was measured, on a terminal: the table follows when all are.
    fn measured(&mut self, report: &RunReport) {
        if !self.live.is_shown() {
            self.line.clear();
        }
        let row = row(&self.title(), report);
        self.live.remark(&row);
    }

    /// Shows the step with this suffix.
    fn draw(&mut self, doing: &str) {
        if self.on_terminal && !self.live.is_shown() {
            self.line.draw(&format!("{}{doing}", self.title()));
        }
    }

    /// `[2/7] random read 4k, depth 32`; a preparing step has no number, and a search no last one.
    fn title(&self) -> String {
        let step = &self.steps[self.step];
        if step.prepares {
            return step.name.clone();
        }
        let measured = |steps: &[Step]| steps.iter().filter(|step| !step.prepares).count();
        let number = measured(&self.steps[..=self.step]);
        match self.is_search {
            true => format!("[{number}] {}", step.name),
            false => format!("[{number}/{}] {}", measured(&self.steps), step.name),
        }
    }

    /// `, 17 s left`: the time left of this step, as planned unless known better, and of those to come; of a search, which may
    /// end earlier, `, up to 17 s left`. Empty for a preparing step of unknown duration.
    fn left(&self, of_step: Option<Duration>) -> String {
        let step = &self.steps[self.step];
        let begun: Duration = self.steps[..=self.step].iter().map(|step| step.time).sum();
        let (later, at_most) = (self.time.saturating_sub(begun), if self.may_go_on { "up to " } else { "" });
        match of_step.or((!step.prepares).then_some(step.time)) {
            Some(of_step) => format!(", {at_most}{} left", duration(of_step + later)),
            None => String::new(),
        }
    }

    fn started(&mut self) {
        self.draw(&self.left(None));
        if self.steps[self.step].prepares {
            return;
        }
        self.line.clear();
        self.live.started();
    }

    fn look(&mut self, view: &View<'_>) {
        let title = self.title();
        if self.live.look(view, || title) {
            return;
        }
        if signal::stop_requested().is_some() {
            return self.draw(": stopping; a third Ctrl-C leaves the test files behind");
        }
        let moved = if self.steps[self.step].prepares { moved(view) } else { String::new() };
        let left = self.left(view.left_s().and_then(|left_s| Duration::try_from_secs_f64(left_s).ok()));
        self.draw(&format!("{moved}{left}"));
    }
}

impl Presenter for Progress {
    fn intervals(&self) -> Intervals {
        Intervals { tick: self.on_terminal.then_some(EVERY.min(KEYS_EVERY)), ..self.live.intervals() }
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Step { number, step } => self.begin(number, step),
            Event::LayingOut { bytes, .. } => (self.laid_out_bytes, self.to_lay_out_bytes) = (0, bytes),
            Event::LaidOut(bytes) => {
                self.laid_out_bytes += bytes;
                let (done, all) = (self.laid_out_bytes >> 20, self.to_lay_out_bytes >> 20);
                self.draw(&format!(": laying out, {done} of {all} MiB"));
            }
            Event::Started => self.started(),
            Event::Tick(view) => self.look(view),
            Event::Statistics(workers) => self.live.statistics(workers),
            Event::Findings(findings) => self.live.found(findings),
            Event::StopRequested(_) => self.clear(),
            Event::Report { .. } => self.line.clear(),
            // A run that was interrupted is in the table alone.
            Event::StepDone { step, report, ending, .. } => {
                if !step.prepares && !matches!(ending, Ending::Signal(_)) {
                    self.measured(report);
                }
            }
            Event::Planned { .. }
            | Event::Bandwidth { .. }
            | Event::Snapshot { .. }
            | Event::WaitingFor(_) => {}
        }
    }
}

/// `[2/7] random read 4k     84173 IOPS   328.8 MiB/s  p99 383us`: each direction that did I/O.
fn row(title: &str, report: &RunReport) -> String {
    let has_ios = |direction: usize| report.jobs.iter().any(|job| job.stats.directions[direction].ios > 0);
    let is_alone = (0..DIRECTIONS.len()).filter(|direction| has_ios(*direction)).count() == 1;
    let mut text = String::new();
    for (direction, name) in DIRECTIONS.iter().enumerate() {
        let of_jobs = || report.jobs.iter().map(|job| &job.stats.directions[direction]);
        let per_s = |of: fn(&DirectionStats) -> u64| -> f64 {
            of_jobs().map(|stats| of(stats) as f64 * 1e3 / stats.runtime_ms.max(1) as f64).sum()
        };
        if !has_ios(direction) {
            continue;
        }
        let p99 = match Figures::of(report, direction) {
            Some(figures) if figures.p99_ns > 0 => Cell::Latency(figures.p99_ns).shown(),
            _ => "-".to_string(),
        };
        let label = if is_alone { title.to_string() } else { format!("{title}: {name}") };
        let (iops, mib) = (per_s(|stats| stats.ios), per_s(|stats| stats.bytes) / f64::from(1 << 20));
        text +=
            &format!("{} {iops:>8.0} IOPS {mib:>8.1} MiB/s  p99 {p99}\n", left_aligned(cut(&label, 36), 36));
    }
    text
}

/// The progress of jobs of a given size: `: 512 of 1024 MiB`.
fn moved(view: &View<'_>) -> String {
    let done: u64 = view.workers.iter().map(|worker| worker.counters.bytes.iter().sum::<u64>()).sum();
    let all: u64 = view.workers.iter().map(|worker| worker.job.limits.loop_bytes).sum();
    if view.workers.iter().any(|worker| worker.state == State::Syncing) {
        return ": syncing to disk".to_string();
    }
    format!(": {} of {} MiB", done >> 20, all >> 20)
}

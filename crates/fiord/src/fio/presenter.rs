//! What a run as fio prints: headings, layout messages, the live line, status reports, the report.
//!
//! Invariant: on a terminal the live line is drawn on standard error and erased before anything else is written; into
//! a pipe it goes only with `--eta=always`, and then to standard output: never into the file of `--output`, and never
//! into a stream that holds a JSON document or terse lines.

use std::time::{Duration, Instant};

use fiord_metrics::families;
use fiord_options::Problem;
use fiord_options::value::EtaWhen;
use fiord_plan::{Direction, Job, Pattern, Plan};
use fiord_report::live::{self, LiveLine, LiveProgress};
use fiord_report::number::Units;
use fiord_report::path::{self, shown};
use fiord_report::{
    Format, RunReport, TerseVersion, allows_messages, holds_documents, render, start, wants_headings,
};
use fiord_session::event::{Event, Intervals, Presenter};
use fiord_session::run::assemble::{self, headings};
use fiord_stats::Capped;
use fiord_sys::{signal, tty};
use fiord_worker::{State, View, WorkerReport, WorkerView};

use super::bandwidth::BandwidthLog;
use crate::live::{KEYS_EVERY, Live, LiveMode};
use crate::metrics::{EXPORT_EVERY, MetricsExporter};
use crate::output::{Output, remark, say};
use crate::status_line::StatusLine;

/// Layouts that take longer than this show their progress.
const QUIET_LAYOUT: Duration = Duration::from_secs(2);

/// How the run is shown, from the command line.
#[derive(Debug, Clone)]
pub(crate) struct LiveLineOptions {
    pub formats: Vec<Format>,
    pub terse: TerseVersion,
    pub eta: EtaWhen,
    pub eta_interval: Duration,
    pub eta_newline: Option<Duration>,
    pub status_interval: Option<Duration>,
    pub live: LiveMode,
}

/// Where the live line goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Screen {
    Nowhere,
    /// Standard error, a terminal.
    Terminal,
    /// Standard output, whatever that is.
    Stream,
}

/// What standard output and standard error are.
#[derive(Debug, Clone, Copy)]
struct Streams {
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// JSON or terse lines, which programs parse, go to standard output.
    stdout_is_for_programs: bool,
}

impl Screen {
    fn of(eta: EtaWhen, streams: Streams) -> Screen {
        let Streams { stdout_is_terminal, stderr_is_terminal, stdout_is_for_programs } = streams;
        let asked_for_in_a_pipe = eta == EtaWhen::Always && !(stdout_is_terminal && stderr_is_terminal);
        match eta {
            EtaWhen::Never => Screen::Nowhere,
            _ if asked_for_in_a_pipe && !stdout_is_for_programs => Screen::Stream,
            _ if stderr_is_terminal => Screen::Terminal,
            _ => Screen::Nowhere,
        }
    }
}

/// Shows one run.
pub(super) struct RunPresenter<'a> {
    output: &'a mut Output,
    plan: &'a Plan,
    shown: &'a LiveLineOptions,
    log: Option<&'a mut BandwidthLog>,
    metrics: Option<&'a mut MetricsExporter>,
    screen: Screen,
    /// Standard output, for the live line: the report may go elsewhere.
    stream: Output,
    line: StatusLine,
    last_newline: Instant,
    /// When the line is due.
    next_line: Instant,
    /// When a snapshot was last due, or the run began.
    last_snapshot: Instant,
    live: Live,
    /// What goes to standard output once the view is closed.
    held: String,
    last: Option<(u64, [u64; 3], [u64; 3])>,
    layout: Layout,
    round: Round,
    /// Whether the report was printed: after the last round, or after one that failed or was interrupted.
    has_reported: bool,
}

/// Which of several runs of the same jobs is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    pub is_first: bool,
    pub is_last: bool,
}

struct Layout {
    since: Instant,
    done_bytes: u64,
    total_bytes: u64,
    shown: Instant,
}

impl<'a> RunPresenter<'a> {
    pub(super) fn new(
        output: &'a mut Output,
        plan: &'a Plan,
        shown: &'a LiveLineOptions,
        log: Option<&'a mut BandwidthLog>,
        metrics: Option<&'a mut MetricsExporter>,
        round: Round,
    ) -> RunPresenter<'a> {
        let streams = Streams {
            stdout_is_terminal: tty::stdout_is_terminal(),
            stderr_is_terminal: tty::stderr_is_terminal(),
            stdout_is_for_programs: output.is_stdout() && holds_documents(&shown.formats),
        };
        let now = Instant::now();
        let layout = Layout { since: now, done_bytes: 0, total_bytes: 0, shown: now };
        RunPresenter {
            output,
            plan,
            shown,
            log,
            metrics,
            screen: Screen::of(shown.eta, streams),
            stream: Output::stdout(),
            line: StatusLine::default(),
            last_newline: now,
            next_line: now,
            last_snapshot: now,
            live: Live::new(shown.live),
            held: String::new(),
            last: None,
            layout,
            round,
            has_reported: false,
        }
    }

    /// Whether the report was printed, so that no further round follows.
    pub(super) fn has_reported(&self) -> bool {
        self.has_reported
    }

    /// Erases the live line, so that other text can follow.
    fn clear(&mut self) {
        if self.live.is_shown() {
            return;
        }
        match self.screen {
            Screen::Terminal => self.line.clear(),
            Screen::Stream if self.line.take() => self.stream.write("\n"),
            Screen::Stream | Screen::Nowhere => {}
        }
    }

    /// Writes a part of the report; while the view is shown, which it would disturb, it waits.
    fn write(&mut self, text: &str) {
        if self.live.is_shown() && self.output.is_stdout() {
            self.held += text;
        } else {
            self.output.write(text);
        }
    }

    /// Closes the view for good, before what the user has to see.
    fn close_view(&mut self) {
        self.live.close();
        let held = std::mem::take(&mut self.held);
        self.output.write(&held);
    }

    fn draw(&mut self, text: &str) {
        match self.screen {
            Screen::Terminal => self.line.draw(text),
            Screen::Stream => self.stream.write(&(self.line.next(text) + "\r")),
            Screen::Nowhere => return,
        }
        if let Some(period) = self.shown.eta_newline
            && self.last_newline.elapsed() >= period
        {
            self.last_newline = Instant::now();
            self.line.take();
            match self.screen {
                Screen::Terminal => say("\n"),
                _ => self.stream.write("\n"),
            }
        }
    }

    fn begin(&mut self, plan: &Plan, warnings: &[Problem]) {
        if !self.round.is_first {
            return;
        }
        remark_all(warnings);
        assemble::unplannable(plan).iter().for_each(|line| say(line));
        if wants_headings(&self.shown.formats) {
            self.output.write(&headings(plan));
        }
    }

    fn laying_out(&mut self, job: &Job, files: usize, bytes: u64) {
        self.clear();
        let now = Instant::now();
        self.layout = Layout { since: now, done_bytes: 0, total_bytes: bytes, shown: now };
        if wants_headings(&self.shown.formats) {
            self.output.write(&start::laying_out(&path::text(&job.name), files as u64, bytes));
        }
    }

    fn laid_out(&mut self, bytes: u64) {
        let layout = &mut self.layout;
        layout.done_bytes += bytes;
        let too_early =
            layout.since.elapsed() < QUIET_LAYOUT || layout.shown.elapsed() < Duration::from_millis(250);
        if self.screen != Screen::Terminal || too_early {
            return;
        }
        layout.shown = Instant::now();
        let elapsed_s = layout.since.elapsed().as_secs_f64();
        let share = layout.done_bytes as f64 / layout.total_bytes.max(1) as f64;
        let left_s = elapsed_s / share.max(1e-9) - elapsed_s;
        let (done, total) = (layout.done_bytes >> 20, layout.total_bytes >> 20);
        self.draw(&format!("Laying out: {done} of {total} MiB [{:.1}%][eta {left_s:.0}s]", share * 100.0));
    }

    fn look(&mut self, view: &View<'_>) {
        let plan = self.plan;
        if self.live.look(view, || title(plan)) {
            return;
        }
        let held = std::mem::take(&mut self.held);
        self.output.write(&held);
        // Keys are looked at more often than the line is drawn.
        let now = Instant::now();
        if self.screen == Screen::Nowhere || self.live.is_wanted() && now < self.next_line {
            return;
        }
        self.next_line = now + self.shown.eta_interval.saturating_sub(KEYS_EVERY / 2);
        let live = summary(view, &mut self.last);
        self.draw(&live::line(&live));
    }

    fn stop_requested(&mut self, signal: i32) {
        self.close_view();
        self.clear();
        if allows_messages(&self.shown.formats) {
            self.output.write(&start::terminating(signal));
        }
    }

    /// Prints a snapshot if one is due or requested: they come more often if they are exported, too.
    fn snapshot(&mut self, report: &RunReport, is_requested: bool) {
        // One that comes a little early is not put off by a whole period.
        let every = self.shown.status_interval;
        let is_due = every.is_some_and(|every| self.last_snapshot.elapsed() + EXPORT_EVERY / 2 >= every);
        if is_due {
            self.last_snapshot = Instant::now();
        }
        if is_due || is_requested {
            self.clear();
            self.write(&render(report, &self.shown.formats, self.shown.terse));
        }
    }

    fn ended(&mut self, report: &RunReport, workers: &[WorkerReport]) {
        self.close_view();
        self.clear();
        let goes_on = signal::stop_requested().is_none() && assemble::failed_count(workers) == 0;
        if !self.round.is_last && goes_on {
            return;
        }
        self.has_reported = true;
        // Only the normal text has room for them.
        if !self.shown.formats.contains(&Format::Normal) {
            report.findings.iter().for_each(|finding| remark(&format!("{}\n", finding.text(4))));
        }
        // fio prints these lines as well, but not into the file of `--output`.
        if self.output.is_stdout() && allows_messages(&self.shown.formats) {
            assemble::fios_failures(self.plan, workers).iter().for_each(|line| self.output.write(line));
        }
        self.output.write(&render(report, &self.shown.formats, self.shown.terse));
    }

    fn publish(&mut self, report: &RunReport) {
        if let Some(metrics) = &mut self.metrics {
            metrics.publish(families(report));
        }
    }
}

impl Presenter for RunPresenter<'_> {
    fn intervals(&self) -> Intervals {
        let line = (self.screen != Screen::Nowhere).then_some(self.shown.eta_interval);
        let keys = self.live.is_wanted().then_some(KEYS_EVERY);
        let exported = self.metrics.as_ref().map(|_| EXPORT_EVERY);
        Intervals {
            tick: line.into_iter().chain(keys).min(),
            snapshot: self.shown.status_interval.into_iter().chain(exported).min(),
            bandwidth: self.log.as_ref().map(|log| log.every()),
            ..self.live.intervals()
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Planned { plan, warnings } => self.begin(plan, warnings),
            Event::LayingOut { job, files, bytes } => self.laying_out(job, files, bytes),
            Event::LaidOut(bytes) => self.laid_out(bytes),
            Event::Started => {
                self.clear();
                self.live.started();
            }
            Event::Tick(view) => self.look(view),
            Event::Bandwidth { at_ms, kib_per_s } => {
                if let Some(log) = &mut self.log {
                    log.record(at_ms, kib_per_s);
                }
            }
            Event::Statistics(workers) => self.live.statistics(workers),
            Event::Findings(findings) => self.live.found(findings),
            Event::Snapshot { report, is_requested } => {
                self.snapshot(report, is_requested);
                self.publish(report);
            }
            Event::StopRequested(signal) => self.stop_requested(signal),
            Event::WaitingFor(jobs) => {
                self.clear();
                self.live.remark(&waiting(jobs));
            }
            // A run as fio is not a step of a study.
            Event::Step { .. } | Event::StepDone { .. } => {}
            Event::Report { report, workers } => {
                self.ended(report, workers);
                self.publish(report);
            }
        }
    }
}

/// Prints warnings about options if standard error is a terminal.
pub(super) fn remark_all(problems: &[Problem]) {
    problems.iter().for_each(|problem| remark(&format!("{problem}\n")));
}

/// What runs, for the live view: `randread`, or `first and 3 more`.
fn title(plan: &Plan) -> String {
    let first = plan.jobs.first().map_or_else(String::new, |job| shown(&job.name));
    match plan.jobs.len() {
        0 | 1 => format!("fiord {first}"),
        count => format!("fiord {first} and {} more", count - 1),
    }
}

/// The message when jobs do not stop.
fn waiting(jobs: &[&Job]) -> String {
    const NAMED: usize = 3;
    let names: Vec<String> = jobs.iter().take(NAMED).map(|job| shown(&job.name)).collect();
    let more = if jobs.len() > NAMED { format!(" and {} more", jobs.len() - NAMED) } else { String::new() };
    format!(
        "fiord: waiting for {}{more} to stop; a second Ctrl-C reports without waiting, a third exits without a report\n",
        names.join(", ")
    )
}

/// The live line's value; `last` is the previous look: time in ns, bytes, I/Os.
fn summary(view: &View<'_>, last: &mut Option<(u64, [u64; 3], [u64; 3])>) -> LiveLine {
    let total = |of: fn(&WorkerView<'_>) -> [u64; 3]| {
        view.workers.iter().map(of).fold([0; 3], |sum, part| [0, 1, 2].map(|d: usize| sum[d] + part[d]))
    };
    let (bytes, ios) = (total(|worker| worker.counters.bytes), total(|worker| worker.counters.ios));
    let (then_ns, then_bytes, then_ios) = last.unwrap_or((0, [0; 3], [0; 3]));
    let elapsed_ns = view.elapsed_ns.saturating_sub(then_ns).max(1);
    let per_second = |now: [u64; 3], then: [u64; 3]| {
        [0, 1, 2].map(|d: usize| {
            u64::capped(u128::from(now[d] - then[d]) * 1_000_000_000 / u128::from(elapsed_ns))
        })
    };
    let progress = LiveProgress {
        states: view.workers.iter().map(letter).collect(),
        done_percent: view.done().map(|share| share * 100.0),
        rates: per_second(bytes, then_bytes),
        iops: per_second(ios, then_ios),
        left_s: view.left_s().map_or(0, |seconds| u64::capped(seconds.ceil())),
    };
    *last = Some((view.elapsed_ns, bytes, ios));
    let running = view.workers.iter().filter(|worker| worker.state.does_io());
    LiveLine {
        running: u32::capped(running.clone().count()),
        open_files: running.map(|worker| worker.files_open).sum(),
        rate_range: limits(view, |job| (&job.pace.min_bytes_per_s, &job.pace.bytes_per_s)),
        iops_range: limits(view, |job| (&job.pace.min_ios_per_s, &job.pace.ios_per_s)),
        progress: Some(progress),
        units: view.workers.first().map_or_else(Units::default, |worker| units(worker.job)),
    }
}

fn units(job: &Job) -> Units {
    let presentation = &job.presentation;
    let unit_base = match presentation.rate_unit {
        fiord_plan::presentation::RateUnit::Bytes => 8,
        fiord_plan::presentation::RateUnit::Bits => 1,
    };
    Units::new(presentation.significant_figures, presentation.kb_base, unit_base)
}

/// The sums of the running jobs' minimum and maximum rates.
fn limits(
    view: &View<'_>,
    of: impl for<'j> Fn(&'j Job) -> (&'j [Option<u64>; 3], &'j [Option<u64>; 3]),
) -> Option<(u64, u64)> {
    let running = view.workers.iter().filter(|worker| worker.state == State::Running);
    let (least, most) = running.fold((0, 0), |sum, worker| {
        let used = |direction: &&Direction| worker.job.issues(**direction);
        let add = |all: &[Option<u64>; 3]| -> u64 {
            Direction::ALL.iter().filter(used).filter_map(|direction| all[direction.index()]).sum()
        };
        let (least, most) = of(worker.job);
        (sum.0 + add(least), sum.1 + add(most))
    });
    (most > 0).then_some((least, most))
}

/// fio's letter for a worker.
fn letter(worker: &WorkerView<'_>) -> char {
    let random = worker.job.access.random;
    let pick = |sequential: char, drawn: char| if random { drawn } else { sequential };
    match worker.state {
        State::Waiting => 'P',
        State::SettingUp => 'C',
        State::Ready => 'I',
        State::PreReading => 'p',
        State::Ramping => '/',
        State::Running => match worker.job.access.pattern {
            Pattern::Only(Direction::Read) => pick('R', 'r'),
            Pattern::Only(Direction::Write) => pick('W', 'w'),
            Pattern::Only(Direction::Trim) | Pattern::TrimThenWrite => pick('D', 'd'),
            Pattern::Mixed => pick('M', 'm'),
        },
        State::Syncing => 'F',
        State::Finishing => 'f',
        State::Ended => '_',
        State::Failed => 'X',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// fio writes the line to standard output for `--eta=always`, unless that is where JSON or terse lines go.
    #[test]
    fn the_line_never_goes_into_output_for_programs() {
        let screen = |eta, stdout_is_terminal, stderr_is_terminal, stdout_is_for_programs| {
            Screen::of(eta, Streams { stdout_is_terminal, stderr_is_terminal, stdout_is_for_programs })
        };
        for documents in [false, true] {
            for stdout in [false, true] {
                for stderr in [false, true] {
                    assert_eq!(screen(EtaWhen::Never, stdout, stderr, documents), Screen::Nowhere);
                    let on_terminal = if stderr { Screen::Terminal } else { Screen::Nowhere };
                    assert_eq!(screen(EtaWhen::Auto, stdout, stderr, documents), on_terminal);
                    let always = match (documents, stdout && stderr) {
                        (false, false) => Screen::Stream,
                        _ => on_terminal,
                    };
                    assert_eq!(screen(EtaWhen::Always, stdout, stderr, documents), always);
                }
            }
        }
    }
}

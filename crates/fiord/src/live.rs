//! Who looks on while a run goes on: the live line, layout messages, and status reports.
//!
//! Invariant: on a terminal the live line is drawn on standard error and gone before anything else is written; into a
//! pipe it goes only when `--eta=always` asks for it, and then to standard output: never into the file of `--output`,
//! and never onto a stream that holds a JSON document or terse lines.

use std::time::{Duration, Instant};

use fiord_options::value::{EtaWhen, IdleProf};
use fiord_plan::{Direction, Job, Pattern};
use fiord_report::live::{self, Live, Progress};
use fiord_report::number::Units;
use fiord_report::{
    Format, TerseVersion, UnitWork, bears_remarks, holds_documents, render, start, wants_headings,
};
use fiord_sys::tty;
use fiord_worker::{Moment, State, View, Watcher, WorkerReport, WorkerView};

use crate::assemble::{self, Frame, Meters};
use crate::bandwidth::BandwidthLog;
use crate::idle::{self, IdleWatch};
use crate::output::{Output, remark, say};

/// Layouts that take longer than this show how far they are.
const PATIENCE: Duration = Duration::from_secs(2);

/// How the run is shown, from the command line.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub formats: Vec<Format>,
    pub terse: TerseVersion,
    pub eta: EtaWhen,
    pub eta_interval: Duration,
    pub eta_newline: Option<Duration>,
    pub status_interval: Option<Duration>,
    pub idle: Option<IdleProf>,
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
    /// Programs read what is on standard output: JSON or terse lines go there.
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

/// The watcher of a run.
pub(crate) struct Onlooker<'a> {
    output: &'a mut Output,
    frame: &'a Frame<'a>,
    shown: &'a Shown,
    log: Option<&'a mut BandwidthLog>,
    unit: UnitWork,
    meters: Meters,
    screen: Screen,
    /// Where the live line goes that goes to standard output: the report may go elsewhere.
    stream: Output,
    drawn: usize,
    last_newline: Instant,
    last: Option<(u64, [u64; 3], [u64; 3])>,
    layout: Layout,
}

struct Layout {
    since: Instant,
    done_bytes: u64,
    total_bytes: u64,
    told: Instant,
}

impl<'a> Onlooker<'a> {
    pub(crate) fn new(
        output: &'a mut Output,
        frame: &'a Frame<'a>,
        shown: &'a Shown,
        log: Option<&'a mut BandwidthLog>,
    ) -> Onlooker<'a> {
        let streams = Streams {
            stdout_is_terminal: tty::stdout_is_terminal(),
            stderr_is_terminal: tty::stderr_is_terminal(),
            stdout_is_for_programs: output.is_stdout() && holds_documents(&shown.formats),
        };
        let now = Instant::now();
        let layout = Layout { since: now, done_bytes: 0, total_bytes: 0, told: now };
        Onlooker {
            output,
            frame,
            shown,
            log,
            // Measured while nothing else runs.
            unit: shown.idle.map_or_else(UnitWork::default, |_| idle::calibrate()),
            meters: Meters::default(),
            screen: Screen::of(shown.eta, streams),
            stream: Output::stdout(),
            drawn: 0,
            last_newline: now,
            last: None,
            layout,
        }
    }

    /// The run is over: takes the live line away, and hands over what was watched beside the workers.
    pub(crate) fn finish(mut self) -> Meters {
        self.clear();
        self.meters
    }

    /// Takes the live line away, so that other text can follow.
    fn clear(&mut self) {
        if self.drawn > 0 {
            match self.screen {
                Screen::Terminal => say(&format!("\r{:1$}\r", "", self.drawn)),
                Screen::Stream => self.stream.write("\n"),
                Screen::Nowhere => {}
            }
            self.drawn = 0;
        }
    }

    fn draw(&mut self, line: &str) {
        let columns = tty::columns(std::io::stderr()).map_or(usize::MAX, usize::from);
        let line: String = line.chars().take(columns.saturating_sub(1)).collect();
        let covering = live::covering(&line, self.drawn);
        match self.screen {
            Screen::Terminal => say(&format!("\r{covering}")),
            Screen::Stream => self.stream.write(&format!("{covering}\r")),
            Screen::Nowhere => return,
        }
        self.drawn = line.chars().count();
        if let Some(period) = self.shown.eta_newline
            && self.last_newline.elapsed() >= period
        {
            self.last_newline = Instant::now();
            self.drawn = 0;
            match self.screen {
                Screen::Terminal => say("\n"),
                _ => self.stream.write("\n"),
            }
        }
    }
}

impl Watcher for Onlooker<'_> {
    fn laying_out(&mut self, job: &Job, files: usize, bytes: u64) {
        self.clear();
        let now = Instant::now();
        self.layout = Layout { since: now, done_bytes: 0, total_bytes: bytes, told: now };
        if wants_headings(&self.shown.formats) {
            self.output.write(&start::laying_out(&job.name, files as u64, bytes));
        }
    }

    fn laid_out(&mut self, bytes: u64) {
        let layout = &mut self.layout;
        layout.done_bytes += bytes;
        let patient = layout.since.elapsed() < PATIENCE || layout.told.elapsed() < Duration::from_millis(250);
        if self.screen != Screen::Terminal || patient {
            return;
        }
        layout.told = Instant::now();
        let elapsed_s = layout.since.elapsed().as_secs_f64();
        let share = layout.done_bytes as f64 / layout.total_bytes.max(1) as f64;
        let left_s = elapsed_s / share.max(1e-9) - elapsed_s;
        let (done, total) = (layout.done_bytes >> 20, layout.total_bytes >> 20);
        self.draw(&format!("Laying out: {done} of {total} MiB [{:.1}%][eta {left_s:.0}s]", share * 100.0));
    }

    fn started(&mut self) {
        self.meters = Meters {
            disks: assemble::disks(self.frame.plan),
            cpus: self.shown.idle.map(|mode| IdleWatch::start(mode, self.unit)),
        };
    }

    fn look_every(&self) -> Option<Duration> {
        (self.screen != Screen::Nowhere).then_some(self.shown.eta_interval)
    }

    fn look(&mut self, view: &View<'_>) {
        let live = summary(view, &mut self.last);
        self.draw(&live::line(&live));
    }

    fn snapshot_every(&self) -> Option<Duration> {
        self.shown.status_interval
    }

    fn snapshot(&mut self, mut reports: Vec<WorkerReport>, moment: Moment) {
        self.clear();
        let report = assemble::report(self.frame, &self.meters, &mut reports, moment);
        self.output.write(&render(&report, &self.shown.formats, self.shown.terse));
    }

    fn told_to_stop(&mut self, signal: i32) {
        self.clear();
        if bears_remarks(&self.shown.formats) {
            self.output.write(&start::terminating(signal));
        }
    }

    fn waiting_for(&mut self, jobs: &[&Job]) {
        self.clear();
        remark(&waiting(jobs));
    }

    fn bandwidth_every(&self) -> Option<Duration> {
        self.log.as_ref().map(|log| log.every())
    }

    fn bandwidth(&mut self, at_ms: u64, kib_per_s: [u64; 3]) {
        if let Some(log) = &mut self.log {
            log.record(at_ms, kib_per_s);
        }
    }
}

/// What is said when jobs do not stop.
fn waiting(jobs: &[&Job]) -> String {
    const NAMED: usize = 3;
    let names: Vec<&str> = jobs.iter().take(NAMED).map(|job| job.name.as_str()).collect();
    let more = if jobs.len() > NAMED { format!(" and {} more", jobs.len() - NAMED) } else { String::new() };
    format!(
        "fiord: waiting for {}{more} to stop; another Ctrl-C reports without what does not, a third ends without a \
         report\n",
        names.join(", ")
    )
}

/// The live line's value; `last` is what was seen before: time in ns, bytes, I/Os.
fn summary(view: &View<'_>, last: &mut Option<(u64, [u64; 3], [u64; 3])>) -> Live {
    let total = |of: fn(&WorkerView<'_>) -> [u64; 3]| {
        view.workers.iter().map(of).fold([0; 3], |sum, part| [0, 1, 2].map(|d: usize| sum[d] + part[d]))
    };
    let (bytes, ios) = (total(|worker| worker.counters.bytes), total(|worker| worker.counters.ios));
    let (then_ns, then_bytes, then_ios) = last.unwrap_or((0, [0; 3], [0; 3]));
    let elapsed_ns = view.elapsed_ns.saturating_sub(then_ns).max(1);
    let per_second = |now: [u64; 3], then: [u64; 3]| {
        [0, 1, 2]
            .map(|d: usize| (u128::from(now[d] - then[d]) * 1_000_000_000 / u128::from(elapsed_ns)) as u64)
    };
    let progress = Progress {
        states: view.workers.iter().map(letter).collect(),
        done_percent: view.done().map(|share| share * 100.0),
        rates: per_second(bytes, then_bytes),
        iops: per_second(ios, then_ios),
        left_s: view.left_s().map_or(0, |seconds| seconds.ceil() as u64),
    };
    *last = Some((view.elapsed_ns, bytes, ios));
    let running =
        view.workers.iter().filter(|worker| matches!(worker.state, State::Running | State::Ramping));
    Live {
        running: running.clone().count() as u32,
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

/// The sums of the running jobs' least and most rates.
fn limits(
    view: &View<'_>,
    of: impl for<'j> Fn(&'j Job) -> (&'j [Option<u64>; 3], &'j [Option<u64>; 3]),
) -> Option<(u64, u64)> {
    let running = view.workers.iter().filter(|worker| worker.state == State::Running);
    let (least, most) = running.fold((0, 0), |sum, worker| {
        let used = |direction: &&Direction| worker.job.access.pattern.includes(**direction);
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
    fn the_line_goes_where_nobody_parses() {
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

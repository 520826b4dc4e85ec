//! The live view (`--live`): reads what a run and the machine count, and shows it on the whole terminal.
//!
//! Invariant: only looks. Figures come from the counters of the workers, from the statistics they publish on request and
//! from the kernel; a run is the same with the view and without. The terminal is restored whatever ends the view.

mod figures;
mod screen;

use std::time::{Duration, Instant};

use fiord_live::{Model, draw};
use fiord_report::Finding;
use fiord_session::event::Intervals;
use fiord_stats::Latency;
use fiord_sys::tty;
use fiord_worker::{View, WorkerReport};

pub(crate) use self::figures::{Figures, latencies_of};
pub(crate) use self::screen::Screen;
use crate::layout::{is_dumb, may_use_colours};
use crate::output::remark;

/// Interval between two frames, and between two readings of what they show.
const EVERY: Duration = Duration::from_secs(1);

/// How often keys and the size of the terminal are looked at.
pub(crate) const KEYS_EVERY: Duration = Duration::from_millis(250);

/// Interval between two looks for findings.
const FINDINGS_EVERY: Duration = Duration::from_secs(5);

/// Whether and when the view is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LiveMode {
    /// Never; the keyboard is left alone.
    Never,
    /// When `l` is typed.
    ByKey,
    /// From the beginning.
    Always,
}

impl LiveMode {
    /// What can be done on this terminal. `asked`: by `--live`; `has_line`: there is a progress line on it.
    ///
    /// # Errors
    /// The view was asked for, and there is no terminal for it: why, and what to do.
    pub(crate) fn of(asked: bool, has_line: bool) -> Result<LiveMode, String> {
        let missing = match (tty::stderr_is_terminal(), tty::has_keyboard()) {
            (false, _) => "standard error is not a terminal",
            (_, false) => "standard input is not a terminal, or fiord runs in its background",
            _ if is_dumb() => "the terminal only writes lines (TERM=dumb)",
            _ if asked => return Ok(LiveMode::Always),
            _ => return Ok(if has_line { LiveMode::ByKey } else { LiveMode::Never }),
        };
        match asked {
            true => Err(format!(
                "--live: {missing}; leave --live out: the report is the same, and over ssh `ssh -t` provides a terminal"
            )),
            false => Ok(LiveMode::Never),
        }
    }
}

/// The view, and the keys that show and hide it.
pub(crate) struct Live {
    mode: LiveMode,
    screen: Option<Screen>,
    figures: Figures,
    findings: Vec<Finding>,
    drawn: Option<Instant>,
    /// Text that waits until the view is closed.
    held: String,
}

impl Live {
    pub(crate) fn new(mode: LiveMode) -> Live {
        Live {
            mode,
            screen: None,
            figures: Figures::default(),
            findings: Vec::new(),
            drawn: None,
            held: String::new(),
        }
    }

    /// The first jobs of a run are about to start: keys are read from now on.
    pub(crate) fn started(&mut self) {
        self.findings.clear();
        if self.mode == LiveMode::Never || tty::open_keyboard().is_err() {
            return;
        }
        self.drawn = None;
        if self.mode == LiveMode::Always && !self.is_shown() {
            self.open();
        }
        self.figures.begin(true);
    }

    /// Whether keys have to be looked at.
    pub(crate) fn is_wanted(&self) -> bool {
        self.mode != LiveMode::Never
    }

    /// Whether the view is on the screen.
    pub(crate) fn is_shown(&self) -> bool {
        self.screen.is_some() && tty::has_screen()
    }

    /// What the view needs, while it is shown.
    pub(crate) fn intervals(&self) -> Intervals {
        let of_shown = |every| self.is_shown().then_some(every);
        Intervals { statistics: of_shown(EVERY), findings: of_shown(FINDINGS_EVERY), ..Intervals::default() }
    }

    /// Acts on keys and draws a frame if one is due. Returns whether the view is shown.
    pub(crate) fn look(&mut self, view: &View<'_>, title: impl FnOnce() -> String) -> bool {
        self.show(|figures| figures.read(view), || (title(), progress(view)))
    }

    /// The same of anything: what reads its figures, and its title and progress.
    pub(crate) fn show(
        &mut self,
        read: impl FnOnce(&mut Figures),
        heading: impl FnOnce() -> (String, String),
    ) -> bool {
        for key in if self.is_wanted() { tty::typed() } else { Vec::new() } {
            match key {
                b'l' if !self.is_shown() => self.open(),
                b'q' | b'l' if self.is_shown() => self.hide(),
                _ => {}
            }
        }
        if !self.is_shown() {
            return false;
        }
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() + KEYS_EVERY / 2 >= EVERY);
        let is_resized = self.screen.as_ref().is_some_and(Screen::is_resized);
        if is_due {
            read(&mut self.figures);
            self.drawn = Some(Instant::now());
        }
        if is_due || is_resized {
            let (title, progress) = heading();
            let model = Model {
                title,
                progress,
                findings: self.findings.iter().map(shown).collect(),
                is_coloured: may_use_colours(),
                ..self.figures.model()
            };
            if let Some(screen) = &mut self.screen {
                screen.draw(|area, buffer| draw(&model, area, buffer));
            }
        }
        true
    }

    /// The statistics of all workers, about once a second.
    pub(crate) fn statistics(&mut self, reports: &[WorkerReport]) {
        self.figures.statistics(reports);
    }

    /// Takes the latencies so far of hosts.
    pub(crate) fn latencies(&mut self, of_hosts: Vec<Option<[Latency; 4]>>) {
        self.figures.set_latencies(of_hosts);
    }

    /// The findings so far.
    pub(crate) fn found(&mut self, findings: &[Finding]) {
        self.findings = findings.to_vec();
    }

    /// Prints to a terminal; while the view is shown, the text waits until it is closed.
    pub(crate) fn remark(&mut self, text: &str) {
        match self.is_shown() {
            true => self.held += text,
            false => remark(text),
        }
    }

    /// Hides the view; the run goes on with its progress line.
    pub(crate) fn hide(&mut self) {
        self.screen = None;
        // A run that follows begins with the progress line, too.
        if self.mode == LiveMode::Always {
            self.mode = LiveMode::ByKey;
        }
        remark(&std::mem::take(&mut self.held));
    }

    /// Hides the view until the next run begins, and leaves the keyboard as it was found.
    pub(crate) fn close(&mut self) {
        let mode = self.mode;
        self.hide();
        self.mode = mode;
        tty::restore();
    }

    fn open(&mut self) {
        self.figures.begin(false);
        self.drawn = None;
        self.screen = Some(Screen::open());
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.close();
    }
}

fn shown(finding: &Finding) -> (fiord_report::Severity, String) {
    (
        finding.severity(),
        format!("{} {}: {}", finding.severity().name(), finding.code.name(), finding.sentence),
    )
}

/// `12 s, 18 s left`.
fn progress(view: &View<'_>) -> String {
    passed(view.elapsed_ns as f64 / 1e9, view.left_s())
}

/// So many seconds have passed, and so many are left.
pub(crate) fn passed(elapsed_s: f64, left_s: Option<f64>) -> String {
    let words =
        |seconds: f64| Duration::try_from_secs_f64(seconds).map_or(String::new(), crate::layout::duration);
    let elapsed = words(elapsed_s);
    match left_s {
        Some(left_s) => format!("{elapsed}, {} left", words(left_s)),
        None => elapsed,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Set in the process that panics while the view is shown.
    const PANICS: &str = "FIORD_TEST_PANICS";

    #[test]
    fn the_message_of_a_panic_is_on_the_screen_that_stays() {
        if std::env::var_os(PANICS).is_some() {
            let mut live = Live::new(LiveMode::Always);
            live.open();
            panic!("on purpose");
        }
        let name = "live::tests::the_message_of_a_panic_is_on_the_screen_that_stays";
        let line = format!("'{}' --exact {name} --nocapture", std::env::current_exe().unwrap().display());
        // script(1) gives it a terminal.
        let mut script = Command::new("script");
        let ran = script.args(["-q", "-e", "-c", &line, "/dev/null"]).env(PANICS, "1").output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is not in {text:?}"));
        assert!(!ran.status.success());
        assert!(at("\u{1b}[?1049h") < at("\u{1b}[?1049l"), "{text:?}");
        assert!(at("\u{1b}[?1049l") < at("on purpose"), "{text:?}");
    }
}

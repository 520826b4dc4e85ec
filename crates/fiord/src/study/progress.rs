//! The line that shows how far a study is.
//!
//! Invariant: drawn on standard error when that is a terminal, and taken away before anything else is written.

use std::time::Duration;

use fiord_lab::Step;
use fiord_plan::Job;
use fiord_sys::{signal, tty};
use fiord_worker::{Moment, State, View, Watcher, WorkerReport};

use super::run::Looker;
use crate::assemble::Meters;
use crate::output::say;

/// How often the line is drawn.
const EVERY: Duration = Duration::from_millis(250);

/// Progress over all steps.
pub(super) struct Progress<'a> {
    steps: &'a [Step],
    step: usize,
    meters: Meters,
    on_terminal: bool,
    /// Characters on the line.
    drawn: usize,
    laid_out_bytes: u64,
    to_lay_out_bytes: u64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(steps: &'a [Step]) -> Progress<'a> {
        Progress {
            steps,
            step: 0,
            meters: Meters::default(),
            on_terminal: tty::stderr_is_terminal(),
            drawn: 0,
            laid_out_bytes: 0,
            to_lay_out_bytes: 0,
        }
    }

    /// This step is next.
    pub(super) fn begin(&mut self, step: usize) {
        self.step = step;
        self.meters = Meters::default();
        self.draw(&self.left(None));
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if self.drawn > 0 {
            say(&format!("\r{:1$}\r", "", self.drawn));
            self.drawn = 0;
        }
    }

    /// Shows what the step is at.
    fn draw(&mut self, doing: &str) {
        if !self.on_terminal {
            return;
        }
        let columns = tty::columns(std::io::stderr()).map_or(80, usize::from);
        let line: String =
            format!("{}{doing}", self.title()).chars().take(columns.saturating_sub(1)).collect();
        say(&format!("\r{line:0$}", self.drawn));
        self.drawn = line.chars().count();
    }

    /// `[2/7] random read 4k, depth 32`; what only prepares has no number.
    fn title(&self) -> String {
        let step = &self.steps[self.step];
        if step.prepares {
            return step.name.clone();
        }
        let measured = |steps: &[Step]| steps.iter().filter(|step| !step.prepares).count();
        format!("[{}/{}] {}", measured(&self.steps[..=self.step]), measured(self.steps), step.name)
    }

    /// `, 17 s left`: of this step, as planned unless it is known better, and of those to come. Nothing where this step
    /// prepares and it is not known.
    fn left(&self, of_step: Option<Duration>) -> String {
        let step = &self.steps[self.step];
        let later: Duration = self.steps[self.step + 1..].iter().map(|step| step.time).sum();
        match of_step.or((!step.prepares).then_some(step.time)) {
            Some(of_step) => format!(", {} left", duration(of_step + later)),
            None => String::new(),
        }
    }
}

impl Watcher for Progress<'_> {
    fn laying_out(&mut self, _job: &Job, _files: usize, bytes: u64) {
        (self.laid_out_bytes, self.to_lay_out_bytes) = (0, bytes);
    }

    fn laid_out(&mut self, bytes: u64) {
        self.laid_out_bytes += bytes;
        let (done, all) = (self.laid_out_bytes >> 20, self.to_lay_out_bytes >> 20);
        self.draw(&format!(": laying out, {done} of {all} MiB"));
    }

    fn started(&mut self) {
        self.draw(&self.left(None));
    }

    fn look_every(&self) -> Option<Duration> {
        self.on_terminal.then_some(EVERY)
    }

    fn look(&mut self, view: &View<'_>) {
        if signal::stop_requested().is_some() {
            return self.draw(": stopping; a third Ctrl-C leaves the test files behind");
        }
        let moved = if self.steps[self.step].prepares { moved(view) } else { String::new() };
        let left = self.left(view.left_s().and_then(|left_s| Duration::try_from_secs_f64(left_s).ok()));
        self.draw(&format!("{moved}{left}"));
    }

    fn snapshot_every(&self) -> Option<Duration> {
        None
    }

    fn snapshot(&mut self, _reports: Vec<WorkerReport>, _moment: Moment) {}
}

impl Looker for Progress<'_> {
    fn meters(&mut self) -> &mut Meters {
        &mut self.meters
    }
}

/// How far jobs of a given size are: `: 512 of 1024 MiB`.
fn moved(view: &View<'_>) -> String {
    let done: u64 = view.workers.iter().map(|worker| worker.counters.bytes.iter().sum::<u64>()).sum();
    let all: u64 = view.workers.iter().map(|worker| worker.job.limits.loop_bytes).sum();
    if view.workers.iter().any(|worker| worker.state == State::Syncing) {
        return ": waiting for the disk to have it all".to_string();
    }
    format!(": {} of {} MiB", done >> 20, all >> 20)
}

/// A time as people say it, to a whole second: `45 s`, `2 min 30 s`. What is not nothing is a second at least.
pub(crate) fn duration(time: Duration) -> String {
    let rounded = (time + Duration::from_millis(500)).as_secs();
    let seconds = if time.is_zero() { 0 } else { rounded.max(1) };
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_said_as_people_say_them() {
        let told = [0, 1, 1499, 1500, 45_000, 60_000, 150_000].map(Duration::from_millis).map(duration);
        assert_eq!(told, ["0 s", "1 s", "1 s", "2 s", "45 s", "1 min", "2 min 30 s"]);
    }
}

//! What a run tells while it lasts, and how it is ended from outside.
//!
//! Invariant: a stream of events is the same whoever is told.

use std::sync::Arc;
use std::time::Duration;

use fiord_options::cli;
use fiord_plan::Plan;
use fiord_plan::facts::RunSettings;
use fiord_session::event::{Event, Intervals, Presenter};
use fiord_session::run::drive::{Run, RunOutcome, drive};
use fiord_session::run::{environment, facts};
use fiord_session::{Ending, StopHandle};
use fiord_sys::signal;

/// Notes the names of events, each once, and ends the run when it has seen those it waits for.
#[derive(Default)]
struct Names {
    seen: Vec<&'static str>,
    awaited: &'static [&'static str],
    stop: StopHandle,
}

impl Presenter for Names {
    fn intervals(&self) -> Intervals {
        let often = Some(Duration::from_millis(1));
        Intervals { tick: often, snapshot: often, bandwidth: None, statistics: often, findings: often }
    }

    fn event(&mut self, event: &Event<'_>) {
        let name = match event {
            Event::Step { .. } => "step",
            Event::Planned { .. } => "planned",
            Event::LayingOut { .. } => "laying out",
            Event::LaidOut(_) => "laid out",
            Event::Started => "started",
            Event::Tick(_) => "tick",
            Event::Bandwidth { .. } => "bandwidth",
            Event::Statistics(workers)
                if workers.iter().all(|worker| worker.stats.directions[0].ios == 0) =>
            {
                "statistics of no I/O"
            }
            Event::Statistics(_) => "statistics",
            Event::Findings(_) => "findings",
            Event::Snapshot { .. } => "snapshot",
            Event::StopRequested(_) => "stop requested",
            Event::WaitingFor(_) => "waiting for",
            Event::Report { .. } => "report",
            Event::StepDone { .. } => "step done",
        };
        if !self.seen.contains(&name) {
            self.seen.push(name);
        }
        if !self.awaited.is_empty() && self.awaited.iter().all(|name| self.seen.contains(name)) {
            self.stop.stop();
        }
    }
}

fn planned(line: &str) -> Result<Arc<Plan>, String> {
    let machine = environment::machine()?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let parsed = cli::read(&words, &environment::of(&machine)).map_err(|problems| format!("{problems:?}"))?;
    let planned = facts::plan(&parsed.sections, &parsed.waiting, &machine, &RunSettings::default());
    planned.map(|(plan, _)| Arc::new(plan)).map_err(|refusal| format!("{:?}", refusal.problems))
}

fn ios(outcome: &RunOutcome) -> u64 {
    outcome.report.jobs.iter().map(|job| job.stats.directions[0].ios).sum()
}

#[test]
fn a_run_is_told_in_order_and_ends_by_its_handle_with_what_was_measured() {
    let endless = planned("--name=a --ioengine=null --time_based=1 --runtime=1h --size=1m").unwrap();
    let awaited = &["started", "tick", "statistics", "findings", "snapshot"];
    let stop = StopHandle::default();
    let mut names = Names { awaited, stop: stop.clone(), ..Names::default() };
    let outcome = drive(Run { stop, ..Run::of(&endless, &[]) }, &mut names);
    assert_eq!(outcome.ending, Ending::Signal(signal::TERMINATE), "{:?}", outcome.errors);
    assert!(ios(&outcome) > 0);
    assert_eq!((names.seen.first(), names.seen.last()), (Some(&"planned"), Some(&"report")));
    assert!(names.seen.contains(&"stop requested"), "{:?}", names.seen);
    assert!(!names.seen.contains(&"bandwidth"), "nobody asked for it: {:?}", names.seen);
    // The next run is another.
    let short = planned("--name=a --ioengine=null --size=1m").unwrap();
    let outcome = drive(Run::of(&short, &[]), &mut Names::default());
    assert_eq!((outcome.ending, ios(&outcome)), (Ending::Complete, 256));
}

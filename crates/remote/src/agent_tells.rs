//! What a run on an agent says to its controller, and waits for: progress, lines, and the start of each stage.
//!
//! Invariant: stages are numbered through all runs of an agent, so that the hosts of a study meet at each.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fiord_session::event::{Event, Intervals, Presenter};
use fiord_session::run::drive::StageGate;
use fiord_stats::Capped;
use fiord_wire::agent::AgentEvent;
use fiord_wire::message::{Message, Progress};
use fiord_worker::{Gate, States, View};

use crate::link::Link;

/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// How often a snapshot is sent at most.
const SNAPSHOT_EVERY_MIN: Duration = Duration::from_millis(500);

/// Tells the controller of the run.
pub(crate) struct Teller {
    link: Arc<Link>,
    laid_bytes: u64,
    told: Instant,
}

impl Teller {
    pub(crate) fn new(link: &Arc<Link>) -> Teller {
        Teller { link: Arc::clone(link), laid_bytes: 0, told: Instant::now() }
    }
}

impl Presenter for Teller {
    fn intervals(&self) -> Intervals {
        let every_ms = self.link.watch_ms.load(Ordering::Relaxed);
        // No controller makes it busy.
        let snapshot = (every_ms > 0).then(|| Duration::from_millis(every_ms).max(SNAPSHOT_EVERY_MIN));
        Intervals { tick: Some(PROGRESS_EVERY), snapshot, ..Intervals::default() }
    }

    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Planned { warnings, .. } => {
                for warning in *warnings {
                    self.link.on(AgentEvent::Tell(Message::Line(warning.to_string())));
                }
            }
            Event::LaidOut(bytes) => {
                self.laid_bytes += bytes;
                if self.told.elapsed() >= PROGRESS_EVERY {
                    self.told = Instant::now();
                    self.link.on(AgentEvent::Tell(Message::Laid(self.laid_bytes)));
                }
            }
            Event::StepDone { errors, .. } => {
                for line in *errors {
                    self.link.on(AgentEvent::Tell(Message::Line(line.trim_end().to_string())));
                }
            }
            Event::Tick(view) => self.link.on(AgentEvent::Tell(Message::Progress(progress(view)))),
            // A status request by a signal is nobody's here.
            Event::Snapshot { report, .. } if self.intervals().snapshot.is_some() => {
                // It is not missed: another one follows.
                if let Ok(bytes) = fiord_store::encode(report) {
                    self.link.on(AgentEvent::Tell(Message::Snapshot(bytes)));
                }
            }
            _ => {}
        }
    }
}

fn progress(view: &View<'_>) -> Progress {
    let mut progress = Progress::default();
    for worker in &view.workers {
        for direction in 0..3 {
            progress.ios[direction] += worker.counters.ios[direction];
            progress.bytes[direction] += worker.counters.bytes[direction];
        }
    }
    progress.done_permille = view.done().map(|done| u16::capped(done * 1000.0));
    progress
}

/// Holds each stage until the controller has told when it starts.
pub(crate) struct Stages {
    link: Arc<Link>,
    /// The number of the first stage of this run.
    first: u32,
    /// The stage that was said to be ready last.
    ready: Option<u32>,
    /// The stage that was started last.
    started: Option<u32>,
    /// Keeps states of verification, if they are not files.
    pub(crate) states: Option<Arc<dyn States>>,
}

impl Stages {
    pub(crate) fn new(link: &Arc<Link>) -> Stages {
        Stages { link: Arc::clone(link), first: 0, ready: None, started: None, states: None }
    }

    /// The number of a stage of this run. When the first one comes again, it is that of the next run.
    fn number(&mut self, stage: usize) -> u32 {
        if let Some(started) = self.started.filter(|started| stage == 0 && *started >= self.first) {
            self.first = started + 1;
        }
        self.first + u32::capped(stage)
    }
}

impl StageGate for Stages {
    fn gate(&mut self, stage: usize, patience: Duration) -> Gate {
        let number = self.number(stage);
        if self.ready != Some(number) {
            self.ready = Some(number);
            self.link.on(AgentEvent::Tell(Message::Ready(number)));
        }
        match self.link.start_of(number, patience) {
            None => Gate::Closed,
            Some(0) => Gate::Open,
            Some(at_ns) => Gate::OpensAt(at_ns),
        }
    }

    fn released(&mut self, stage: usize, at_ns: u64) {
        let number = self.first + u32::capped(stage);
        self.started = Some(number);
        self.link.on(AgentEvent::Tell(Message::Started((number, i64::capped(at_ns)))));
    }

    fn is_trigger_requested(&self) -> bool {
        self.link.fires.load(Ordering::Relaxed)
    }

    fn states(&self) -> Option<Arc<dyn States>> {
        self.states.clone()
    }
}

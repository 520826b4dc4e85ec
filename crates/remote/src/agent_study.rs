//! A study that an agent carries out: when it is planned, when it may run, and what it has found.
//!
//! Invariant: what a study is is not known here; whoever carries it out asks this for its starts, and tells it its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use fiord_host::Machine;
use fiord_session::event::Presenter;
use fiord_session::run::drive::StageGate;
use fiord_session::{Ending, StopHandle};
use fiord_sys::channel::Receiver;
use fiord_wire::Sent;
use fiord_wire::agent::AgentEvent;
use fiord_wire::message::Told;

use crate::agent_facts;
use crate::agent_run::status;
use crate::agent_tells::{Stages, Teller};
use crate::keywords::HostKeywords;
use crate::link::{Command, Link};

/// The controller, as a study on one of its hosts sees it.
pub struct StudyAgent {
    link: Arc<Link>,
    commands: Rc<Receiver<Command>>,
    stages: Stages,
    keywords: HostKeywords,
    /// Whether the controller was told that the study can run, or why not.
    has_planned: bool,
    has_left: bool,
}

impl std::fmt::Debug for StudyAgent {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StudyAgent").field("has_planned", &self.has_planned).finish_non_exhaustive()
    }
}

impl StudyAgent {
    pub(crate) fn new(
        link: &Arc<Link>,
        commands: &Rc<Receiver<Command>>,
        keywords: HostKeywords,
    ) -> StudyAgent {
        let (stages, commands) = (Stages::new(link), Rc::clone(commands));
        StudyAgent { link: Arc::clone(link), commands, stages, keywords, has_planned: false, has_left: false }
    }

    /// What the keywords of jobs stand for here.
    pub fn keywords(&self) -> &HostKeywords {
        &self.keywords
    }

    /// The study can run, on these targets (whether each is written). Waits until it may; `false`: it must not.
    pub fn planned(&mut self, machine: &Machine, targets: &BTreeMap<PathBuf, bool>) -> bool {
        self.has_planned = true;
        let facts = agent_facts::of(machine, targets);
        self.link.on(AgentEvent::Planned(Ok(Box::new(facts))));
        let may_run = matches!(self.commands.recv(), Ok(Command::Run));
        self.has_left = !may_run;
        may_run
    }

    /// Ends the study early when the controller says so, or is lost.
    pub fn stop(&self) -> StopHandle {
        self.link.stop.clone()
    }

    /// Who tells the controller what the study does.
    pub fn presenter(&self) -> impl Presenter + use<> {
        Teller::new(&self.link)
    }

    /// What holds the stages of the study's runs.
    pub fn stages(&mut self) -> &mut dyn StageGate {
        &mut self.stages
    }

    /// The study is over, as it has ended; `why_early`: why before its end.
    pub fn ended(&mut self, report: &impl Sent, ending: Ending, why_early: Option<&str>) {
        let (status, cause) = (status(ending), why_early.map(str::to_string));
        self.link.on(AgentEvent::Ended { report: report.encode(), status, cause });
    }

    /// The study could not go on, for this reason. Before it was planned, nothing starts on any host.
    pub(crate) fn failed(&mut self, told: Told) {
        if self.has_left {
            return;
        }
        self.link.on(match self.has_planned {
            false => AgentEvent::Planned(Err(vec![told])),
            true => AgentEvent::Ended { report: Vec::new(), status: 1, cause: Some(told.text) },
        });
    }

    /// Whether the controller has let it go while it waited.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left
    }
}

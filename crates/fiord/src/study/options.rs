//! The options of all studies.
//!
//! Invariant: no particular study is known here.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::rc::Rc;

use fiord_compare::Condition;
use fiord_host::Machine;
use fiord_lab::Repeat;
use fiord_options::Problem;
use fiord_options::cli::Parsed;
use fiord_options::value::{Trust, Undecided};
use fiord_remote::StudyAgent;
use fiord_store::KeptRun;

use super::resume::Resumed;
use super::sources::{Reader, Sources};
use crate::arguments::{Forms, Invocation};
use crate::gate;
use crate::reach::Reach;

/// The controller of a study on hosts, as it is known on one of them.
pub(crate) type OnAgent = Rc<RefCell<StudyAgent>>;

/// The options of all studies.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Options {
    #[command(flatten)]
    pub forms: Forms,
    /// Print the runs as a job file, which fio can run as well
    #[arg(long)]
    pub dry_run: bool,
    /// Whether to print findings: off, on, or strict
    /// (exit status 3 if one voids the figures)
    #[arg(long, default_value = "on", value_parser = trust)]
    pub trust: Trust,
    /// Run everything N times; auto: as often as the noise
    /// needs within the time (docs/repeats.md)
    #[arg(long, default_value = "auto", value_name = "N", value_parser = repeat)]
    pub repeat: Repeat,
    /// Exit with status 8 if this holds, such as
    /// 'read.p99 > 2ms' (may be repeated; docs/compare.md)
    #[arg(long, value_name = "CONDITION", value_parser = fiord_compare::gate::condition)]
    pub fail_if: Vec<Condition>,
    /// What a verdict or condition is that cannot be decided:
    /// tell (status 6), pass, or fail
    #[arg(long, default_value = "tell", value_parser = gate::undecided)]
    pub undecided: Undecided,
    /// Do not record the study in the history
    #[arg(long)]
    pub no_history: bool,
    /// Show the runs on the whole terminal (docs/live.md)
    #[arg(long)]
    pub live: bool,
    /// A name for the study in the history
    #[arg(long, value_name = "NAME", value_parser = tag, conflicts_with = "no_history")]
    pub tag: Option<String>,
    /// Run the study on these hosts, from one start: db[1-12],
    /// user@host:port, or a file (docs/hosts.md)
    #[arg(long, value_name = "LIST", verbatim_doc_comment)]
    pub hosts: Option<OsString>,
    #[command(flatten)]
    pub reach: Reach,
    /// How many hosts may be missing or lost
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub allow_missing: u32,
    /// What the history has of the study, if it goes on from there
    #[arg(skip)]
    pub resumed: Option<Rc<Resumed>>,
    /// The earlier runs whose preconditioning it keeps, to be recorded with it.
    #[arg(skip)]
    pub kept_runs: Vec<KeptRun>,
    /// The controller, on one of these hosts
    #[arg(skip)]
    pub agent: Option<OnAgent>,
    /// Files that the study's arguments name, for the hosts
    #[arg(skip)]
    pub sources: Sources,
}

fn tag(text: &str) -> Result<String, String> {
    fiord_store::check_tag(text).map(|()| text.to_string())
}

fn trust(text: &str) -> Result<Trust, String> {
    Trust::from_word(text).ok_or_else(|| format!("{text:?} is not one of off, on, strict"))
}

/// Most times a study is repeated.
const REPEATS_MAX: usize = 1000;

fn repeat(text: &str) -> Result<Repeat, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Repeat::Auto),
        (_, Ok(times @ 1..=REPEATS_MAX)) => Ok(Repeat::Times(times)),
        _ => Err(format!("write auto, or a number from 1 to {REPEATS_MAX}")),
    }
}

impl Options {
    /// Whether it is to run on hosts: those that are named, or the nodes of an allocation.
    pub fn is_on_hosts(&self) -> bool {
        self.hosts.is_some() || self.reach.has_nodes()
    }

    /// Reads a command line of fio's, and its job files.
    ///
    /// # Errors
    /// What is wrong with it, with places.
    pub(super) fn parsed<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        machine: &Machine,
    ) -> Result<Parsed, Vec<Problem>> {
        let reader = match (&self.agent, self.is_on_hosts()) {
            (Some(agent), _) => Reader::Host(agent.borrow().keywords().clone()),
            (None, true) => Reader::Controller,
            (None, false) => Reader::Alone,
        };
        self.sources.parsed(arguments, machine, reader)
    }
}

/// A study that can run on hosts.
pub(crate) trait OnHosts: Invocation {
    /// The options that it has in common with others.
    fn options(&mut self) -> &mut Options;
}

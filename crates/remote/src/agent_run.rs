//! What an agent runs: sections in, a plan, a run that waits for its starts, a report out.
//!
//! Invariant: planned with the facts of this machine, run by the one driver of all runs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

use fiord_fleet::HostFacts;
use fiord_host::Machine;
use fiord_options::environment::KeywordValues;
use fiord_options::value::Trust;
use fiord_options::{Problem, ProblemLevel, Section, Setting, cli};
use fiord_plan::facts::RunSettings;
use fiord_plan::{Job, Plan, Trigger, state_file_name};
use fiord_report::path::shown;
use fiord_report::{Code, Finding, Subject};
use fiord_session::Ending;
use fiord_session::run::drive::{Run, drive};
use fiord_session::run::files::files;
use fiord_session::run::{environment, facts};
use fiord_sys::clock;
use fiord_sys::errno::error_text;
use fiord_sys::signal;
use fiord_wire::agent::{AgentEvent, Beside};
use fiord_wire::message::{Logs, Message, Prepare, SavedState, Told};
use fiord_worker::{States, TargetOpener, TriggerWatch};

use crate::agent_facts;
use crate::agent_logs::{self, SentLogs};
use crate::agent_tells::{Stages, Teller};
use crate::keywords::{self, HostKeywords};
use crate::link::{Link, locked};
use crate::server::Policy;

/// What can be run.
pub(crate) struct Planned {
    plan: Arc<Plan>,
    warnings: Vec<Problem>,
    global_options: Vec<(String, String)>,
    trust: Trust,
    keywords: KeywordValues,
    sends_logs: bool,
    states: Option<Arc<dyn States>>,
}

impl Planned {
    /// The paths of the files of its jobs, with links followed where there are files; not of thousands.
    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        let whole =
            |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_default();
        let files = files(&self.plan).into_iter().take(agent_facts::TARGETS_MAX);
        files.map(|path| whole(path).into_os_string().into_vec()).collect()
    }

    /// The logs that are sent; `None` without any.
    pub(crate) fn logs(&self) -> Option<Logs> {
        let logs = agent_logs::of(&self.plan, &self.keywords);
        (self.sends_logs && !logs.list.is_empty()).then_some(logs)
    }
}

/// Plans what is to be run here.
pub(crate) fn plan(
    prepare: &Prepare,
    beside: Beside,
    link: &Arc<Link>,
) -> Result<(Planned, HostFacts), Vec<Told>> {
    let policy = &link.policy;
    if policy.no_exec
        && let Some(command) = &beside.command
    {
        let command = shown(OsStr::from_bytes(command));
        let text = format!("--trigger-remote={command}: clients of this server run no commands");
        return Err(vec![Told { text, is_unsafe: false }]);
    }
    let mut planned = plan_freely(prepare, &beside, policy);
    if let Err(told) = &mut planned {
        let rules = policy.explains(told.iter().map(|one| &one.text));
        told.extend(rules.map(|text| Told { text, is_unsafe: false }));
    }
    let (planned, facts) = planned?;
    if let Some(text) = policy.refusal(&planned.plan) {
        return Err(vec![Told { text, is_unsafe: false }]);
    }
    let file_of = |state: &SavedState| file_of(OsStr::from_bytes(&state.job), state.number);
    let known = beside.states.into_iter().map(|state| (file_of(&state), state.bytes)).collect();
    let states: Arc<dyn States> = Arc::new(StatesThere { link: Arc::clone(link), known });
    Ok((Planned { states: Some(states).filter(|_| beside.keeps_states), ..planned }, facts))
}

fn plan_freely(
    prepare: &Prepare,
    beside: &Beside,
    policy: &Policy,
) -> Result<(Planned, HostFacts), Vec<Told>> {
    let told = |text: String| vec![Told { text, is_unsafe: false }];
    let machine = environment::machine().map_err(told)?;
    let (mut sections, waiting, global_options) = match &prepare.remote_config {
        Some(path) => own_job_file(OsStr::from_bytes(path), &machine)?,
        None => {
            let sections = prepare.sections.read().map_err(told)?;
            (sections, prepare.sections.waiting.clone(), prepare.global_options.clone())
        }
    };
    let keywords = keywords_of(prepare, of(&machine));
    keywords::expand(&mut sections, &keywords).map_err(|problems| of_problems(&problems, false))?;
    let settings = RunSettings {
        readonly: prepare.is_readonly || policy.readonly,
        max_jobs: prepare.max_jobs,
        entropy: clock::realtime_ns(),
        sends_logs: beside.takes_logs,
        trigger: beside.has_trigger.then_some(Trigger { file: None, after_ns: None, command: None }),
        ..RunSettings::default()
    };
    let planned = facts::plan(&sections, &waiting, &machine, &settings);
    let (plan, warnings) =
        planned.map_err(|refusal| of_problems(&refusal.problems, refusal.unsafe_target))?;
    // One of many hosts: a job that cannot run there is known before any of them starts.
    if plan.unplannable().next().is_some() {
        let problems: Vec<Problem> = plan.unplannable().cloned().collect();
        return Err(of_problems(&problems, false));
    }
    let facts = agent_facts::of_plan(&machine, &plan);
    let trust = if prepare.has_findings { Trust::On } else { Trust::Off };
    let (plan, keywords) = (Arc::new(plan), keywords.machine);
    let sends_logs = beside.takes_logs;
    let planned = Planned { plan, warnings, global_options, trust, keywords, sends_logs, states: None };
    Ok((planned, facts))
}

/// States of verification that the controller keeps.
pub(crate) struct StatesThere {
    link: Arc<Link>,
    /// Those that it has, by the names of their files without that of a host.
    known: BTreeMap<OsString, Vec<u8>>,
}

impl std::fmt::Debug for StatesThere {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StatesThere").field("known", &self.known.len()).finish_non_exhaustive()
    }
}

/// The name of the file of a job's state, without that of a host.
fn file_of(job: &OsStr, number: u32) -> OsString {
    state_file_name(OsStr::new(""), job, number)
}

impl States for StatesThere {
    fn save(&self, job: &Job, state: &[u8]) -> bool {
        let is_heard = !locked(&self.link.machine).is_lost();
        let state =
            SavedState { job: job.name.as_bytes().to_vec(), number: job.number, bytes: state.to_vec() };
        self.link.on(AgentEvent::Tell(Message::State(state)));
        is_heard
    }

    fn load(&self, job: &Job) -> Option<Vec<u8>> {
        self.known.get(&file_of(&job.name, job.number)).cloned()
    }
}

/// Runs the command of a trigger; what is to be said of it.
pub(crate) fn run_command(command: &[u8]) -> String {
    let command = Some(OsStr::from_bytes(command).to_os_string());
    let mut watch = TriggerWatch::new(Some(&Trigger { file: None, after_ns: None, command }));
    watch.fires(0, true, &TargetOpener::default());
    let warning = watch.run_command(&signal::is_stop_urgent);
    warning.map_or_else(String::new, |warning| format!("warning: {warning}"))
}

/// The sections of a job file of this host, which of them wait for all before, and its global options.
type OwnFile = (Vec<Section>, Vec<usize>, Vec<(String, String)>);

fn own_job_file(path: &OsStr, machine: &Machine) -> Result<OwnFile, Vec<Told>> {
    let environment = environment::of(machine);
    (environment.files)(path).map_err(|error| {
        let text = format!("--remote-config: {}: {}", shown(path), error_text(&error));
        vec![Told { text, is_unsafe: false }]
    })?;
    let parsed = cli::read(&[OsStr::new("--"), path], &environment);
    let parsed = parsed.map_err(|problems| of_problems(&problems, false))?;
    let global_options = parsed.globals.iter().map(Setting::echoed).collect();
    Ok((parsed.sections, parsed.waiting, global_options))
}

/// The keywords of this host.
pub(crate) fn keywords_of(prepare: &Prepare, machine: KeywordValues) -> HostKeywords {
    HostKeywords { machine, name: prepare.name.clone(), number: prepare.number, hosts: prepare.hosts }
}

/// The keywords of this machine.
pub fn of(machine: &Machine) -> KeywordValues {
    environment::of(machine).keywords
}

fn of_problems(problems: &[Problem], is_unsafe: bool) -> Vec<Told> {
    let is_error = |problem: &&Problem| problem.level == ProblemLevel::Error;
    // What stops a job may be a warning to the others.
    let all = !problems.iter().any(|problem| is_error(&problem));
    problems
        .iter()
        .filter(|problem| all || is_error(problem))
        .map(|problem| Told { text: problem.to_string(), is_unsafe })
        .collect()
}

/// Runs it; how it ended.
pub(crate) fn run(planned: &Planned, link: &Arc<Link>) -> AgentEvent {
    let mut teller = Teller::new(link);
    let mut gate = Stages::new(link);
    gate.states.clone_from(&planned.states);
    let logs = SentLogs::new(&planned.plan, link);
    let run = Run {
        global_options: planned.global_options.clone(),
        trust: planned.trust,
        stop: link.stop.clone(),
        gate: Some(&mut gate),
        logs: Some(&logs),
        ..Run::of(&planned.plan, &planned.warnings)
    };
    let mut outcome = drive(run, &mut teller);
    if link.policy.for_anyone && planned.trust != Trust::Off {
        let sentence = "the server asks for no secret: others may have run jobs there as well";
        let remedy = "give it one, or have it listen at a socket";
        outcome.report.findings.push(Finding::new(Code::OpenServer, Subject::Run, sentence, remedy));
    }
    link.finish_logs();
    outcome
        .errors
        .iter()
        .for_each(|line| link.on(AgentEvent::Tell(Message::Line(line.trim_end().to_string()))));
    if let Some(rules) = link.policy.explains(outcome.errors.iter()) {
        link.on(AgentEvent::Tell(Message::Line(rules)));
    }
    let cause = outcome.errors.first().map(|line| line.trim_end().to_string());
    let status = status(outcome.ending);
    match fiord_store::encode(&outcome.report) {
        Ok(report) => AgentEvent::Ended { report, status, cause },
        Err(why) => {
            let cause = Some(format!("the report cannot be sent: {why}"));
            AgentEvent::Ended { report: Vec::new(), status: status.max(1), cause }
        }
    }
}

/// The exit status of a run or a study that has ended so.
pub(crate) fn status(ending: Ending) -> u8 {
    match ending {
        Ending::Complete | Ending::Void => 0,
        Ending::Failed => 1,
        Ending::Refused => 2,
        Ending::Signal(number) => 128_u8.saturating_add(u8::try_from(number).unwrap_or(0)),
    }
}

//! `--hosts` and `--client`: the jobs of this command line on hosts, from one start.
//!
//! Invariant: nothing is planned here: sections go to the hosts as typed, with the keywords that are facts of a machine. The
//! exit status is 0 only if every host did all it was asked for, but for those that `--allow-missing` lets be.

use std::ffi::{OsStr, OsString};
use std::net::ToSocketAddrs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fiord_fleet::render::render;
use fiord_fleet::{Fate, FleetReport, FleetSettings, Host, HostLogs, HostRun, Interval, Order};
use fiord_options::cli::Parsed;
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::program::ProgramOptions;
use fiord_options::table::job;
use fiord_options::value::{HostOrder, OnLost, Push as PushOption, Text, Trust};
use fiord_options::{Given, Place, Problem, ProblemKind, Section, Setting, Spec, clients};
use fiord_plan::Trigger;
use fiord_remote::keywords::{self, HostKeywords};
use fiord_remote::kube::{self, Pods};
use fiord_remote::launch::{self, Launcher};
use fiord_remote::states::StateFiles;
use fiord_remote::{Finished, Job, slurm};
use fiord_report::path::{shown, text};
use fiord_report::{Format, RunReport, TerseVersion};
use fiord_session::run::repeats;
use fiord_stats::Capped;
use fiord_store::{Conclusion, Headline};
use fiord_sys::clock;
use fiord_wire::controller::Remote;
use fiord_wire::{ControllerSettings, Message, Prepare, Sections};

use super::hosts_presenter::{HostsPresenter, Shows};
use crate::hosts::{grouped_problems, lines_of_fates, received, status_of};
use crate::{pods, status};

/// Whether these arguments name hosts, so that keywords stay as typed.
pub(super) fn are_named(arguments: &[OsString]) -> bool {
    let words: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let is_given = |at: usize, name: &str, only: Option<&str>| {
        let typed = words[at].trim_start_matches('-');
        let (known, value) = match typed.split_once('=') {
            Some((known, value)) => (known, Some(value)),
            None => (typed, words.get(at + 1).map(AsRef::as_ref)),
        };
        words[at].starts_with('-') && known == name && only.is_none_or(|only| value == Some(only))
    };
    let is_any = |at| ["hosts", "client", "C"].iter().any(|name| is_given(at, name, None));
    (0..words.len())
        .any(|at| is_any(at) || [slurm::VIA, kube::VIA].iter().any(|via| is_given(at, "via", Some(via))))
}

/// Without a list, the hosts of `--via=slurm` are the nodes of the allocation.
///
/// # Errors
/// There is none.
pub(super) fn add_allocation(options: &mut ProgramOptions, given: &Given<'_>) -> Result<(), Vec<Problem>> {
    let is_by_slurm = options.via.as_ref().is_some_and(|via| via.0 == slurm::VIA);
    if let Some(setting) = given.get(ProgramOptions::via).filter(|_| is_by_slurm && options.hosts.is_none()) {
        let problem = |why| {
            let (kind, place) = (ProblemKind::InvalidValue, setting.value_place.clone());
            vec![Problem::error(kind, place, ProgramOptions::via, why, "")]
        };
        options.hosts = Some(Text(slurm::nodes().map_err(problem)?));
    }
    Ok(())
}

/// Options of what this machine alone does with a run.
const OF_ONE_MACHINE: [&Spec; 5] = [
    ProgramOptions::bandwidth_log,
    ProgramOptions::debug,
    ProgramOptions::idle_prof,
    ProgramOptions::merge_blktrace_only,
    ProgramOptions::repeat,
];

/// A problem for each option that runs on hosts do not have yet, rather than no effect without a word.
pub(super) fn of_one_machine(parsed: &Parsed) -> Vec<Problem> {
    let options = parsed.program.iter().filter(|setting| setting.spec.is_one_of(&OF_ONE_MACHINE));
    let refusal = |setting: &Setting| {
        let remedy = "leave it out, or run fiord on each host and `fiord compare` the results";
        Problem::error(
            ProblemKind::NotBuilt,
            setting.place.clone(),
            setting.spec,
            "does not work with --hosts yet",
            remedy,
        )
    };
    options.chain(&parsed.profile).map(refusal).collect()
}

/// Options that cannot be given together, or not alone.
pub(super) fn contradictions(options: &ProgramOptions, given: &Given<'_>, has_jobs: bool) -> Vec<Problem> {
    let is_client = options.client.is_some();
    let wrong = |spec: &'static Spec, kind, message: &str, remedy: &str| {
        let place = given.get(spec).map_or_else(Place::derived, |setting| setting.place.clone());
        Problem::error(kind, place, spec, message, remedy)
    };
    let mut problems = Vec::new();
    if is_client && (options.hosts.is_some() || options.via.is_some()) {
        let (message, remedy) = ("names hosts as well", "give --client alone, or --hosts with --via=server");
        problems.push(wrong(ProgramOptions::client, ProblemKind::Conflict, message, remedy));
    }
    if options.remote_config.is_some() && !is_client {
        let (message, remedy) = ("is the job file of a server", "give --client as well");
        problems.push(wrong(ProgramOptions::remote_config, ProblemKind::Misplaced, message, remedy));
    }
    let names_none = !is_client && options.hosts.is_none() && options.via.is_none();
    if options.trigger_remote.is_some() && names_none {
        let (message, remedy) =
            ("is run by hosts", "give --client or --hosts as well; --trigger is run here");
        problems.push(wrong(ProgramOptions::trigger_remote, ProblemKind::Misplaced, message, remedy));
    }
    if options.server.is_some() && (is_client || options.hosts.is_some()) {
        let (message, remedy) = ("serves clients, and is none", "leave out --client and --hosts");
        problems.push(wrong(ProgramOptions::server, ProblemKind::Conflict, message, remedy));
    }
    if options.server.is_some() && has_jobs {
        let (message, remedy) = ("runs what its clients send", "leave out the jobs");
        problems.push(wrong(ProgramOptions::server, ProblemKind::Conflict, message, remedy));
    }
    let via = options.via.as_ref().map_or_else(String::new, |via| shown(&via.0));
    let names_hosts = options.hosts.is_some() || is_client;
    if let Some(why) = pods::misplaced(&pods::of_run(options), &via, names_hosts) {
        let spec = if via == kube::VIA { ProgramOptions::via } else { ProgramOptions::pods };
        problems.push(wrong(spec, ProblemKind::Conflict, why, ""));
    }
    problems
}

/// What the grammars need, without the facts of this machine.
pub(super) fn environment(here: Environment<'static>) -> Environment<'static> {
    Environment { keywords: KeywordValues::UNKNOWN, variables: &keywords::variable, ..here }
}

/// The same command line as a host like this machine would read it: to find wrong values before any host is reached.
pub(super) fn as_read_here(parsed: &Parsed, machine: KeywordValues) -> Result<Parsed, Vec<Problem>> {
    let mut parsed = parsed.clone();
    keywords::expand(&mut parsed.sections, &HostKeywords::of_any_host(machine))?;
    Ok(parsed)
}

/// A run on hosts, as it was asked for.
pub(super) struct OnHosts<'a> {
    pub parsed: &'a Parsed,
    pub options: &'a ProgramOptions,
    pub global_options: Vec<(String, String)>,
    pub environment: Environment<'static>,
    pub trigger: Option<Trigger>,
}

/// What came of it.
pub(super) struct Outcome {
    pub fleet: FleetReport,
    /// The exit status.
    pub status: u8,
    /// Lines about what went wrong.
    pub errors: Vec<String>,
}

impl OnHosts<'_> {
    /// Runs the jobs on all hosts.
    ///
    /// # Errors
    /// What is wrong with the list of hosts, or with how they are reached: nothing was started.
    pub fn run(&self, shows: Shows<'_>) -> Result<Outcome, Vec<String>> {
        if let Some(path) = self.options.aux_path.as_ref().filter(|path| !Path::new(&path.0).is_dir()) {
            let why = "it is no directory, and states of jobs that verify are kept there: make it";
            return Err(vec![format!("fiord: --aux-path={}: {why}\n", shown(&path.0))]);
        }
        let (hosts, _pods) = self.hosts()?;
        let order = self.order();
        let (mut runs, mut errors, mut round) = (Vec::new(), Vec::new(), 1);
        let mut presenter = HostsPresenter::new(&hosts, &self.title(), self.settings(), shows);
        loop {
            let job = self.job(&hosts, round).map_err(|why| vec![format!("fiord: {why}\n")])?;
            presenter.begin_round();
            let finished = fiord_remote::run(job, &mut presenter);
            errors.extend(grouped_problems(finished.controller.remotes()));
            errors.extend(finished.unsaved.iter().map(|why| format!("fiord: {why}\n")));
            errors.extend(finished.trigger_warning.iter().map(|why| format!("fiord: warning: {why}\n")));
            let of_round = hosts.iter().zip(finished.controller.remotes()).zip(&finished.logs);
            let of_round = of_round.map(|((host, remote), logs)| of(host.clone(), remote, logs));
            if round == 1 {
                runs = of_round.collect();
            } else {
                let is_interrupted = finished.signal.is_some();
                runs.iter_mut().zip(of_round).for_each(|(run, next): (&mut HostRun, _)| {
                    run.add_round(next, round, is_interrupted);
                });
            }
            let status = self.status(&finished, &runs);
            if round == order.rounds() || status != status::SUCCESS || finished.has_fired {
                runs.iter_mut().filter(|_| order.rounds() > 1).for_each(add_repeats);
                return Ok(self.outcome(runs, presenter.finish(), status, errors));
            }
            round += 1;
        }
    }

    fn order(&self) -> Order {
        match self.options.order {
            HostOrder::Together => Order::Together,
            HostOrder::Alone => Order::Alone,
            HostOrder::Interleaved => Order::Interleaved,
        }
    }

    /// The hosts; by `--via=kube` with their pods, which are removed with the second.
    fn hosts(&self) -> Result<(Vec<Host>, Option<Pods>), Vec<String>> {
        let given = Given::of(&self.parsed.program);
        let lines = |problems: Vec<Problem>| problems.iter().map(|problem| format!("{problem}\n")).collect();
        let clients: Vec<_> = given
            .all(ProgramOptions::client)
            .filter_map(|setting| Some((setting.value.as_deref()?, &setting.value_place)))
            .collect();
        if !clients.is_empty() {
            return fiord_fleet::hosts::read_clients(&clients, &self.environment)
                .map(|hosts| (hosts, None))
                .map_err(lines);
        }
        if self.options.hosts.is_none() {
            let pods = pods::start(&pods::of_run(self.options));
            let pods = pods.map_err(|why| vec![format!("fiord: {why}\n")])?;
            return Ok((pods.hosts(), Some(pods)));
        }
        let setting = given.get(ProgramOptions::hosts).or_else(|| given.get(ProgramOptions::via));
        let (Some(list), Some(setting)) = (&self.options.hosts, setting) else { return Err(Vec::new()) };
        let place: &Place = &setting.value_place;
        let hosts = fiord_fleet::hosts::read(&list.0, place, &self.environment).map_err(lines)?;
        Ok((hosts, None))
    }

    fn job(&self, hosts: &[Host], round: usize) -> Result<Job, String> {
        let options = self.options;
        let parts = clients::parts(self.parsed);
        let without = if parts.is_empty() { "ssh" } else { launch::SERVER };
        let via = options.via.as_ref().map_or_else(|| without.to_string(), |via| shown(&via.0));
        let sends = hosts.iter().any(|host| Launcher::sends_program(host.via.as_deref().unwrap_or(&via)));
        let push = match options.push {
            PushOption::Auto => launch::Push::Auto,
            PushOption::Never => launch::Push::Never,
            PushOption::Always => launch::Push::Always,
        };
        let program = if sends { launch::program(push)? } else { launch::Program::default() };
        let connect_s = options.connect_timeout.us.div_ceil(1_000_000);
        let ssh = program.settings(options.keep_agent.0, options.sudo.0, connect_s);
        let run = format!("{}-{}", clock::realtime_ms(), std::process::id());
        let pods = pods::of_run(options);
        let mut states = self.state_files(hosts);
        let of = |host: &Host| -> Result<(Host, Launcher, Prepare), String> {
            let launcher = Launcher::of(host.via.as_deref().unwrap_or(&via), ssh.clone(), &pods)
                .map_err(|why| format!("--via: {why}"))?;
            let part = parts.get(host.client);
            let mut sections = host.sections(part.map_or(&self.parsed.sections, |part| &part.sections));
            if part.is_some() {
                clients::name_files(&mut sections, &host.address);
            }
            if let Some(files) = states.get_mut(host.number as usize) {
                files.are_loaded = is_given(&sections, job::Verification::verify_state_load)
                    || part.is_some_and(|part| part.remote_config.is_some());
            }
            let waiting = part.map_or(&self.parsed.waiting, |part| &part.waiting);
            let prepare = Prepare {
                run: format!("{run}-{}", host.name),
                number: host.number,
                hosts: u32::capped(hosts.len()),
                name: host.name.clone(),
                sections: Sections::of(&sections, waiting),
                global_options: part.map_or_else(
                    || self.global_options.clone(),
                    |part| part.globals.iter().map(Setting::echoed).collect(),
                ),
                is_readonly: options.readonly.0,
                max_jobs: Given::of(&self.parsed.program)
                    .get(ProgramOptions::max_jobs)
                    .map(|_| options.max_jobs),
                has_findings: options.trust != Trust::Off,
                finishes_when_lost: options.on_lost == OnLost::Finish,
                study: None,
                remote_config: part
                    .and_then(|part| part.remote_config.as_ref())
                    .map(|path| path.as_encoded_bytes().to_vec()),
            };
            Ok((host.clone(), launcher, prepare))
        };
        Ok(Job {
            hosts: hosts.iter().map(of).collect::<Result<_, _>>()?,
            settings: self.controller_settings(hosts.len(), round),
            fan_out: options.fan_out as usize,
            program: program.bytes,
            trigger: self.trigger.clone(),
            states,
        })
    }

    fn controller_settings(&self, hosts: usize, round: usize) -> ControllerSettings {
        let options = self.options;
        let command = options.trigger_remote.as_ref().map(|command| command.0.as_encoded_bytes().to_vec());
        let trigger = self.trigger.as_ref().map(|_| Message::Trigger(command.clone()));
        ControllerSettings {
            // Those that miss a later round do not keep the others from it.
            allow_missing: if round > 1 { hosts } else { options.allow_missing as usize },
            connect_ns: i64::try_from(options.connect_timeout.us.saturating_mul(1000)).unwrap_or(i64::MAX),
            layout_ns: options
                .layout_timeout
                .as_ref()
                .map(|time| i64::try_from(time.us.saturating_mul(1000)).unwrap_or(i64::MAX)),
            is_one_by_one: options.order != HostOrder::Together,
            only_facts: false,
            may_share: options.shared.0,
            before: vec![trigger.into_iter().collect(); hosts],
            has_command: command.is_some(),
        }
    }

    /// The files of the states of each host's jobs. As by fio's client, the names of those of a server begin with its numeric
    /// address, or with `sock`.
    fn state_files(&self, hosts: &[Host]) -> Vec<StateFiles> {
        let verifies = is_given(&self.parsed.sections, job::Verification::verify);
        let name = |host: &Host| match host.address.strip_prefix("sock:") {
            Some(_) => "sock".to_string(),
            // Names are looked up only if there can be states.
            None if self.options.client.is_some() && verifies => {
                let found = (host.address.as_str(), 0).to_socket_addrs().ok().and_then(|mut all| all.next());
                found.map_or_else(|| host.address.clone(), |found| found.ip().to_string())
            }
            None => host.name.clone(),
        };
        let names: Vec<String> = hosts.iter().map(name).collect();
        let directory =
            self.options.aux_path.as_ref().map_or_else(PathBuf::new, |path| PathBuf::from(&path.0));
        let files = |(host, name): (&Host, &String)| {
            let is_unique = names.iter().filter(|other| *other == name).count() == 1;
            let prefix = if is_unique { name } else { &host.name };
            let prefix = prefix.replace('/', ".").into();
            StateFiles { directory: directory.clone(), prefix, are_loaded: false, are_saved: verifies }
        };
        hosts.iter().zip(&names).map(files).collect()
    }

    /// The exit status after these rounds.
    fn status(&self, finished: &Finished, runs: &[HostRun]) -> u8 {
        let has_figures = runs.iter().any(HostRun::is_counted);
        let fates = runs.iter().map(|run| &run.fate);
        let status = status_of(finished, fates, self.options.allow_missing, has_figures);
        let lacks_logs = runs.iter().any(|run| run.is_counted() && !run.logs.incomplete.is_empty());
        if status == status::SUCCESS && (lacks_logs || !finished.unsaved.is_empty()) {
            status::FAILED
        } else {
            status
        }
    }

    fn outcome(
        &self,
        runs: Vec<HostRun>,
        intervals: Vec<Interval>,
        status: u8,
        mut errors: Vec<String>,
    ) -> Outcome {
        errors.extend(lines_of_fates(runs.iter().map(|run| (&run.host, &run.fate))));
        let incomplete =
            |run: &HostRun| Some(format!("fiord: {}: {}\n", run.host.name, run.logs.sentence()?));
        errors.extend(runs.iter().filter_map(incomplete));
        let fleet = FleetReport { intervals, ..FleetReport::of(runs, self.settings()) };
        Outcome { fleet, status, errors }
    }

    fn settings(&self) -> FleetSettings {
        let options = self.options;
        FleetSettings {
            order: self.order(),
            shared: options.shared.0,
            allow_missing: options.allow_missing,
            group_by: options.group_by.map(|by| by.word()),
            are_clients: options.client.is_some(),
            start_within_ns: options.start_within.as_ref().map(|time| time.us.saturating_mul(1000)),
        }
    }

    /// The jobs, for the view: `randread`, or `first and 3 more`.
    fn title(&self) -> String {
        let sections = &self.parsed.sections;
        match (sections.first(), sections.len()) {
            (None, _) => String::new(),
            (Some(only), 1) => text(&only.name),
            (Some(first), count) => format!("{} and {} more", text(&first.name), count - 1),
        }
    }
}

/// Whether one of these sections has this option.
fn is_given(sections: &[Section], option: &Spec) -> bool {
    sections.iter().any(|section| section.last(option).is_some())
}

/// The figures of a host's jobs in all of its rounds, in the report of the last.
fn add_repeats(run: &mut HostRun) {
    let mut figures = Vec::new();
    run.rounds().for_each(|report| repeats::add_run(&mut figures, report));
    run.report.iter_mut().for_each(|report| report.repeats = std::mem::take(&mut figures));
}

/// A run on hosts as the history has it.
pub(super) fn conclusion(fleet: &FleetReport) -> Conclusion {
    let of = |format| render(fleet, &[format], TerseVersion::default());
    let jobs = fleet.all.iter().cloned().collect();
    let report = RunReport { jobs, findings: fleet.findings.clone(), ..RunReport::default() };
    Conclusion { json: of(Format::Json), text: of(Format::Normal), headline: Headline::of(&report) }
}

/// One host's part of the run.
fn of(host: Host, remote: &Remote, logs: &HostLogs) -> HostRun {
    let (fate, report) = received(remote, fiord_store::decode);
    // One that never started has none.
    let logs = if matches!(fate, Fate::Missing { .. }) { HostLogs::default() } else { logs.clone() };
    HostRun {
        host,
        fate,
        stages: remote.stages().to_vec(),
        clock: remote.clock(),
        facts: remote.facts().cloned(),
        files: remote.files().iter().map(|path| OsStr::from_bytes(path).into()).collect(),
        report,
        logs,
        earlier: Vec::new(),
    }
}

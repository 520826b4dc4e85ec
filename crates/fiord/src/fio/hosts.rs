//! `--hosts`: the jobs of this command line on hosts, from one start.
//!
//! Invariant: nothing is planned here: sections go to the hosts as typed, with the keywords that are facts of a machine. The
//! exit status is 0 only if every host did all it was asked for, but for those that `--allow-missing` lets be.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use fiord_fleet::{Fate, FleetReport, FleetSettings, Host, HostRun, Order};
use fiord_options::cli::Parsed;
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::program::ProgramOptions;
use fiord_options::value::{HostOrder, OnLost, Push as PushOption, Trust};
use fiord_options::{Given, Place, Problem, ProblemKind, Setting, Spec};
use fiord_remote::keywords::{self, HOST_KEYWORDS, HostKeywords};
use fiord_remote::launch::{self, Launcher};
use fiord_remote::{Finished, Job};
use fiord_report::columns;
use fiord_report::path::shown;
use fiord_sys::{clock, tty};
use fiord_wire::controller::{Remote, SILENT_NS};
use fiord_wire::{Controller, ControllerSettings, Prepare, Sections, Told};

use crate::output::say;
use crate::status;
use crate::status_line::StatusLine;

/// Whether these arguments name hosts, so that keywords stay as typed.
pub(super) fn are_named(arguments: &[OsString]) -> bool {
    let names = |argument: &OsString| {
        let text = argument.to_string_lossy();
        let name = text.trim_start_matches('-');
        text.starts_with('-') && (name == "hosts" || name.starts_with("hosts="))
    };
    arguments.iter().any(names)
}

/// Options of what this machine alone does with a run.
const OF_ONE_MACHINE: [&Spec; 14] = [
    ProgramOptions::aux_path,
    ProgramOptions::bandwidth_log,
    ProgramOptions::debug,
    ProgramOptions::fail_if,
    ProgramOptions::idle_prof,
    ProgramOptions::live,
    ProgramOptions::merge_blktrace_only,
    ProgramOptions::metrics,
    ProgramOptions::repeat,
    ProgramOptions::status_interval,
    ProgramOptions::tag,
    ProgramOptions::trigger,
    ProgramOptions::trigger_file,
    ProgramOptions::trigger_timeout,
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

/// What the grammars need, without the facts of this machine.
pub(super) fn environment(here: Environment<'static>) -> Environment<'static> {
    let variables = &|name: &OsStr| {
        // `${hostnum}` is `$hostnum`, which the host replaces.
        let keyword = HOST_KEYWORDS.iter().find(|keyword| name == **keyword);
        std::env::var_os(name).or_else(|| keyword.map(|keyword| OsString::from(format!("${keyword}"))))
    };
    Environment { keywords: KeywordValues::UNKNOWN, variables, ..here }
}

/// The same command line as a host like this machine would read it: to find wrong values before any host is reached.
pub(super) fn as_read_here(parsed: &Parsed, machine: KeywordValues) -> Result<Parsed, Vec<Problem>> {
    let mut parsed = parsed.clone();
    let keywords = HostKeywords { machine, name: "host".to_string(), number: 0, hosts: 1 };
    keywords::expand(&mut parsed.sections, &keywords)?;
    Ok(parsed)
}

/// A run on hosts, as it was asked for.
pub(super) struct OnHosts<'a> {
    pub parsed: &'a Parsed,
    pub options: &'a ProgramOptions,
    pub global_options: Vec<(String, String)>,
    pub environment: Environment<'static>,
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
    pub fn run(&self) -> Result<Outcome, Vec<String>> {
        let hosts = self.hosts()?;
        let job = self.job(&hosts).map_err(|why| vec![format!("fiord: {why}\n")])?;
        let mut line = Progress { hosts: &hosts, line: StatusLine::default() };
        let finished = fiord_remote::run(job, &mut |controller, said| line.show(controller, said));
        line.line.clear();
        Ok(self.outcome(hosts, &finished))
    }

    fn hosts(&self) -> Result<Vec<Host>, Vec<String>> {
        let given = Given::of(&self.parsed.program);
        let setting = given.get(ProgramOptions::hosts);
        let (Some(list), Some(setting)) = (&self.options.hosts, setting) else { return Err(Vec::new()) };
        let place: &Place = &setting.value_place;
        let lines = |problems: Vec<Problem>| problems.iter().map(|problem| format!("{problem}\n")).collect();
        fiord_fleet::hosts::read(&list.0, place, &self.environment).map_err(lines)
    }

    fn job(&self, hosts: &[Host]) -> Result<Job, String> {
        let options = self.options;
        let via = options.via.as_ref().map_or_else(|| "ssh".to_string(), |via| shown(&via.0));
        let uses_ssh = hosts.iter().any(|host| host.via.as_deref().unwrap_or(&via) == "ssh");
        let push = match options.push {
            PushOption::Auto => launch::Push::Auto,
            PushOption::Never => launch::Push::Never,
            PushOption::Always => launch::Push::Always,
        };
        let program = if uses_ssh { launch::program(push)? } else { launch::Program::default() };
        let connect_s = options.connect_timeout.us.div_ceil(1_000_000);
        let ssh = program.settings(options.keep_agent.0, connect_s);
        let run = format!("{}-{}", clock::realtime_ms(), std::process::id());
        let of = |host: &Host| -> Result<(Host, Launcher, Prepare), String> {
            let launcher = Launcher::of(host.via.as_deref().unwrap_or(&via), ssh.clone())
                .map_err(|why| format!("--via: {why}"))?;
            let sections = host.sections(&self.parsed.sections);
            let prepare = Prepare {
                run: format!("{run}-{}", host.name),
                number: host.number,
                hosts: hosts.len() as u32,
                name: host.name.clone(),
                sections: Sections::of(&sections, &self.parsed.waiting),
                global_options: self.global_options.clone(),
                is_readonly: options.readonly.0,
                max_jobs: Given::of(&self.parsed.program)
                    .get(ProgramOptions::max_jobs)
                    .map(|_| options.max_jobs),
                has_findings: options.trust != Trust::Off,
                finishes_when_lost: options.on_lost == OnLost::Finish,
            };
            Ok((host.clone(), launcher, prepare))
        };
        Ok(Job {
            hosts: hosts.iter().map(of).collect::<Result<_, _>>()?,
            settings: ControllerSettings {
                allow_missing: options.allow_missing as usize,
                connect_ns: i64::try_from(options.connect_timeout.us.saturating_mul(1000))
                    .unwrap_or(i64::MAX),
                is_one_by_one: options.order == HostOrder::Alone,
                only_facts: false,
                may_share: options.shared.0,
            },
            fan_out: options.fan_out as usize,
            program: program.bytes,
        })
    }

    fn outcome(&self, hosts: Vec<Host>, finished: &Finished) -> Outcome {
        let options = self.options;
        let mut errors = grouped_problems(finished.controller.remotes());
        let runs: Vec<HostRun> = hosts
            .into_iter()
            .zip(finished.controller.remotes())
            .map(|(host, remote)| of(host, remote))
            .collect();
        errors.extend(fates(&runs));
        let order = if options.order == HostOrder::Alone { Order::Alone } else { Order::Together };
        let settings = FleetSettings {
            order,
            shared: options.shared.0,
            allow_missing: options.allow_missing,
            start_within_ns: options.start_within.as_ref().map(|time| time.us.saturating_mul(1000)),
        };
        let absent = |run: &&HostRun| matches!(run.fate, Fate::Missing { .. } | Fate::Lost { .. });
        let has_failed = runs.iter().any(|run| matches!(run.fate, Fate::Failed { .. }));
        let is_unsafe =
            finished.controller.remotes().iter().flat_map(Remote::problems).any(|told| told.is_unsafe);
        let is_too_few = runs.iter().filter(absent).count() > options.allow_missing as usize;
        let status = match finished.signal {
            Some(number) => status::of_signal(number),
            None if is_unsafe => status::REFUSED,
            None if has_failed || is_too_few || !runs.iter().any(HostRun::is_counted) => status::FAILED,
            None => status::SUCCESS,
        };
        Outcome { fleet: FleetReport::of(runs, settings), status, errors }
    }
}

/// One host's part of the run.
fn of(host: Host, remote: &Remote) -> HostRun {
    let mut fate = remote.fate().cloned().unwrap_or_default();
    let bytes = remote.report();
    let report = match (bytes.is_empty(), fiord_store::decode(bytes)) {
        (true, _) => None,
        (false, Ok(report)) => Some(report),
        (false, Err(why)) => {
            fate = Fate::Lost { at_ms: 0, cause: format!("its report cannot be read: {why}") };
            None
        }
    };
    HostRun {
        host,
        fate,
        stages: remote.stages().to_vec(),
        clock: remote.clock(),
        facts: remote.facts().cloned(),
        report,
    }
}

/// What is wrong with the jobs, each with how many hosts say so.
fn grouped_problems(remotes: &[Remote]) -> Vec<String> {
    let mut by_text: BTreeMap<&Told, usize> = BTreeMap::new();
    remotes.iter().flat_map(Remote::problems).for_each(|told| *by_text.entry(told).or_default() += 1);
    let line = |(told, count): (&Told, usize)| format!("fiord: {}: {}\n", columns_of(count), told.text);
    by_text.into_iter().map(line).collect()
}

fn columns_of(count: usize) -> String {
    if count == 1 { "1 host".to_string() } else { format!("{count} hosts") }
}

/// A line for each host that did not do what it was asked for.
fn fates(runs: &[HostRun]) -> Vec<String> {
    let line = |run: &HostRun| {
        let cause = run.fate.cause()?;
        let when = match run.fate {
            Fate::Lost { at_ms, .. } => format!(" at {:.1} s", at_ms as f64 / 1000.0),
            _ => String::new(),
        };
        let cause = cause.trim_end().trim_start_matches("fiord: ");
        Some(format!("fiord: {}: {}{when}: {cause}\n", run.host.name, run.fate.word()))
    };
    runs.iter().filter_map(line).collect()
}

/// The line on a terminal, and what hosts say.
struct Progress<'h> {
    hosts: &'h [Host],
    line: StatusLine,
}

impl Progress<'_> {
    fn show(&mut self, controller: &Controller, said: Option<(usize, &str)>) {
        if let Some((number, text)) = said {
            self.line.clear();
            let name = self.hosts.get(number).map_or("?", |host| host.name.as_str());
            return say(&format!("<{name}> {text}\n"));
        }
        if tty::stderr_is_terminal() {
            self.line.draw(&progress(controller, self.hosts));
        }
    }
}

fn progress(controller: &Controller, hosts: &[Host]) -> String {
    let now_ns = clock::monotonic_ns() as i64;
    let remotes = controller.remotes();
    let mut doing: BTreeMap<&'static str, usize> = BTreeMap::new();
    remotes.iter().for_each(|remote| *doing.entry(remote.doing()).or_default() += 1);
    let mut parts: Vec<String> = doing.iter().map(|(word, count)| format!("{count} {word}")).collect();
    let bytes: u64 = remotes.iter().flat_map(|remote| remote.progress().bytes).sum();
    let laid_bytes: u64 = remotes.iter().map(Remote::laid_bytes).sum();
    match (bytes, laid_bytes) {
        (0, 0) => {}
        (0, laid_bytes) => parts.push(format!("{} MiB laid out", laid_bytes >> 20)),
        (bytes, _) => parts.push(format!("{} MiB", bytes >> 20)),
    }
    let silent = |(remote, host): (&Remote, &Host)| {
        let silent_ns = remote.silent_ns(now_ns);
        let is_silent = remote.fate().is_none() && remote.hello().is_some() && silent_ns > SILENT_NS;
        is_silent.then(|| format!("{}: silent {} s", host.name, silent_ns / 1_000_000_000))
    };
    parts.extend(remotes.iter().zip(hosts).filter_map(silent).take(3));
    let text = format!("{}: {}", columns_of(hosts.len()), parts.join(", "));
    columns::cut(&text, 200).to_string()
}

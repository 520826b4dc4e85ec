//! The program as fio: reads the command line and the job files, plans, runs, reports.
//!
//! Invariant: nothing is opened for writing before the whole plan has been checked.

use fiord_sys::errno::error_text;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use fiord_compare::{Condition, HostsCondition, NamedRun, Side};
use fiord_engine::registry;
use fiord_host::{Machine, Prober};
use fiord_options::cli::{self, Parsed};
use fiord_options::program::ProgramOptions;
use fiord_options::value::{EtaWhen, IdleProf, Trust};
use fiord_options::{
    Given, Place, Problem, ProblemKind, ProblemLevel, Setting, Spec, resolve_program, showcmd,
};
use fiord_plan::facts::RunSettings;
use fiord_plan::path_change::{self, PathRefusal};
use fiord_plan::{ChangeKind, Plan, Refusal, Trigger};
use fiord_remote::kube;
use fiord_report::finding::any_void;
use fiord_report::normal;
use fiord_report::path::{self, shown};
use fiord_session::Ending;
use fiord_session::claims;
use fiord_session::run::drive::{Run, RunOutcome, drive};
use fiord_session::run::{environment, facts, idle, traces};
use fiord_sys::clock::CounterClock;
use fiord_worker::DebugLog;

use super::bandwidth::{BandwidthLog, NAMES as BANDWIDTH_LOGS};
use super::presenter::{LiveLineOptions, Round, RunPresenter, remark_all};
use super::{
    clocktest, crctest, debug, help, hosts, hosts_gate, hosts_presenter, inflate, memcpytest, server,
    settings,
};
use crate::arguments::CommandError;
use crate::config;
use crate::gate;
use crate::keep::Keeper;
use crate::live::LiveMode;
use crate::metrics::MetricsExporter;
use crate::output::{self, Output, say};
use crate::pods;
use crate::status;
use crate::subcommand::Subcommands;

/// The error of a command line without jobs.
const NO_JOBS: &str = "fiord: no jobs: name a job file, or give --name and the options of a job; `fiord quick` needs neither \
                       (see fiord --help)\n";

/// Runs the program; `arguments[0]` is its name. Runs under fio's name are not recorded in the history: a caller of
/// fio does not expect it to write a file.
pub(crate) fn run(arguments: &[OsString], subcommands: &'static Subcommands) -> ExitCode {
    let own = (!is_called_by(arguments)).then_some(subcommands);
    let arguments = arguments.get(1..).unwrap_or_default();
    if let (Some(own), Some(word)) = (own, arguments.first())
        && is_help_of_a_word(word, &arguments[1..])
    {
        say(&format!("fiord: {}\n", own.unknown(word)));
        return ExitCode::from(status::FAILED);
    }
    match Session::read(arguments) {
        Ok(mut session) => {
            session.own = own;
            if own.is_some() {
                config::complete(&mut session.options, &Given::of(&session.parsed.program));
            }
            let kept = own.is_some() && !session.options.no_history.0;
            session.keeper = kept.then(|| Keeper::new(arguments, &session.machine, session.tag().as_deref()));
            session.go()
        }
        Err(problems) => {
            print_all(&problems);
            if let Some(meant) = arguments.first().and_then(|word| own?.meant(word)) {
                say(&format!("fiord: or did you mean `{meant}`?\n"));
            }
            ExitCode::from(status::FAILED)
        }
    }
}

/// Whether the help of something is asked for that is neither an option nor a job file.
fn is_help_of_a_word(word: &OsStr, others: &[OsString]) -> bool {
    let is_option = word.as_encoded_bytes().starts_with(b"-");
    let asks = matches!(others, [only] if *only == "--help" || *only == "-h");
    asks && !is_option && !Path::new(word).exists()
}

/// Whether the program was called by fio's name, and so must do nothing that fio does not.
pub(crate) fn is_called_by(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|path| Path::new(path).file_name());
    name.is_some_and(|name| name == "fio")
}

/// Where a run is shown.
struct Shows<'a> {
    options: &'a LiveLineOptions,
    output: &'a mut Output,
    log: Option<&'a mut BandwidthLog>,
    metrics: Option<&'a mut MetricsExporter>,
    debug: Option<&'a DebugLog>,
}

/// Everything on the command line.
struct Session {
    machine: Machine,
    parsed: Parsed,
    options: ProgramOptions,
    warnings: Vec<Problem>,
    /// fiord's own subcommands; `None` under fio's name, where help and exit statuses are fio's as well.
    own: Option<&'static Subcommands>,
    /// Records the run in the history, unless disabled.
    keeper: Option<Keeper>,
    /// Those of `--fail-if`.
    conditions: Vec<Condition>,
    /// Those of them that are about how hosts differ.
    of_hosts: Vec<HostsCondition>,
}

impl Session {
    fn read(arguments: &[OsString]) -> Result<Session, Vec<Problem>> {
        let machine = Machine::read().map_err(|error| {
            let message = format!("the processors cannot be found out: {}", error_text(&error));
            vec![Problem::error(ProblemKind::Unreadable, Place::derived(), None, message, "")]
        })?;
        let mut environment = environment::of(&machine);
        if hosts::are_named(arguments) {
            environment = hosts::environment(environment);
        }
        let mut parsed = cli::read(arguments, &environment)?;
        let (mut options, given, _) = resolve_program(&parsed.program);
        hosts::add_allocation(&mut options, &given)?;
        let warnings = std::mem::take(&mut parsed.warnings);
        let (conditions, of_hosts) = (Vec::new(), Vec::new());
        Ok(Session { machine, parsed, options, warnings, own: None, keeper: None, conditions, of_hosts })
    }

    /// The program's options in force, in the order they were typed.
    fn given(&self) -> Given<'_> {
        Given::of(&self.parsed.program)
    }

    /// Whether hosts run the jobs, and not this process.
    fn is_on_hosts(&self) -> bool {
        let is_by_kube = self.options.via.as_ref().is_some_and(|via| via.0 == kube::VIA);
        self.options.hosts.is_some() || self.options.client.is_some() || is_by_kube
    }

    fn go(mut self) -> ExitCode {
        // First, because a requested page ends the command line: an error must come before it.
        if let Err(problems) = self.check() {
            return failed(&problems);
        }
        let mut stdout = Output::stdout();
        if let Some(status) = self.side_program(&mut stdout) {
            return printed(stdout, status);
        }
        if self.options.showcmd.0
            && let Err(status) = self.show_command()
        {
            return status;
        }
        if let Some(settings) = &self.options.debug {
            debug::announce(settings, &self.parsed);
        }
        if self.options.parse_only.0 || self.options.showcmd.0 {
            remark_all(&self.warnings);
            return ExitCode::SUCCESS;
        }
        if self.options.server.is_some() {
            print_all(&self.warnings);
            return server::run(&self.options, &self.parsed.program);
        }
        let is_elsewhere = self.options.remote_config.is_some();
        if self.parsed.sections.is_empty() && !is_elsewhere {
            print_all(&self.warnings);
            return finished(Err(NO_JOBS.to_string()));
        }
        if self.options.merge_blktrace_only.0 {
            return self.merge_only();
        }
        if self.is_on_hosts() {
            return self.run_on_hosts();
        }
        match self.plan() {
            Ok(plan) => self.carry_out(&Arc::new(plan)),
            Err(refusal) => refused(&refusal),
        }
    }

    /// Prints the jobs as command lines, which runs nothing.
    fn show_command(&self) -> Result<(), ExitCode> {
        let needs = fiord_plan::needs(&self.parsed.sections, registry::ENGINES, &self.run_settings());
        needs.paths.iter().for_each(|path| claims::tests(path));
        self.refuse_outputs().map_err(|refusal| refused(&refusal))?;
        let mut output = self.open_output().map_err(|why| finished(Err(why)))?;
        output.write_bytes(&showcmd::print(&self.parsed));
        let unwritten = |error: std::io::Error| {
            finished(Err(format!("fiord: {}: {}\n", self.destination(), error_text(&error))))
        };
        output.finish().map_err(unwritten)
    }

    /// What an option asks for instead of jobs, done: a page, a list, or a test of this machine.
    fn side_program(&self, stdout: &mut Output) -> Option<ExitCode> {
        if let Some(text) = help::asked_for(&self.options, self.own) {
            let text = text.map(|text| stdout.write(&text));
            return Some(finished(text.map_err(|why| format!("fiord: {why}\n"))));
        }
        if let Some(channels) = self.options.debug.as_ref().and_then(debug::help) {
            stdout.write(&channels);
            return Some(ExitCode::SUCCESS);
        }
        if let Some(names) = &self.options.crctest {
            return Some(crctest::run(names.0.as_ref().map(path::text).as_deref(), stdout));
        }
        if let Some(names) = &self.options.memcpytest {
            return Some(memcpytest::run(names.0.as_ref().map(path::text).as_deref(), stdout));
        }
        if let Some(log) = &self.options.inflate_log {
            return Some(inflate::run(Path::new(&log.0), stdout));
        }
        if self.options.cpuclock_test.0 {
            return Some(clocktest::run(stdout));
        }
        if self.options.idle_prof == Some(IdleProf::Calibrate) {
            stdout.write(&normal::calibration(&idle::calibrate()));
            return Some(ExitCode::SUCCESS);
        }
        None
    }

    /// Checks every value, whether it is used or not.
    fn check(&mut self) -> Result<(), Vec<Problem>> {
        let here = environment::of(&self.machine).keywords;
        let as_read_here = self.is_on_hosts().then(|| hosts::as_read_here(&self.parsed, here)).transpose()?;
        let mut problems = cli::check(as_read_here.as_ref().unwrap_or(&self.parsed), registry::NAMES);
        if self.options.readonly.0 {
            problems.extend(fiord_plan::forbidden_by_readonly(&self.parsed.sections));
        }
        problems.extend(self.trigger_that_never_fires());
        problems.extend(self.unusable_tag());
        problems.extend(self.read_conditions());
        if self.is_on_hosts() {
            problems.extend(hosts::of_one_machine(&self.parsed));
        }
        let has_jobs = !self.parsed.sections.is_empty();
        problems.extend(hosts::contradictions(&self.options, &self.given(), has_jobs));
        problems.extend(server::without_server(&self.options, &self.given()));
        self.warnings.append(&mut problems);
        if help::asked_for(&self.options, self.own).is_some() {
            // A page may explain options that are not built in.
            self.warnings.retain(|problem| problem.kind != ProblemKind::NotBuilt);
        }
        cli::sort_by_place(&mut self.warnings);
        match self.warnings.iter().any(|problem| self.is_fatal(problem)) {
            true => Err(std::mem::take(&mut self.warnings)),
            false => Ok(()),
        }
    }

    /// Whether a problem stops the run: `--warnings-fatal` covers the warnings that fio has, `--strict` all.
    fn is_fatal(&self, problem: &Problem) -> bool {
        match problem.level {
            ProblemLevel::Error => true,
            ProblemLevel::FiosWarning => self.options.warnings_fatal.0 || self.options.strict.0,
            ProblemLevel::Warning => self.options.strict.0,
        }
    }

    fn plan(&mut self) -> Result<Plan, Refusal> {
        // About halfway to the first I/O.
        CounterClock::note();
        let (sections, settings) = (&self.parsed.sections, self.run_settings());
        let (plan, mut warnings) = facts::plan(sections, &self.parsed.waiting, &self.machine, &settings)?;
        self.refuse_outputs()?;
        if warnings.iter().any(|warning| self.is_fatal(warning)) {
            return Err(Refusal { problems: warnings, unsafe_target: false });
        }
        self.warnings.append(&mut warnings);
        Ok(plan)
    }

    fn run_settings(&self) -> RunSettings {
        RunSettings {
            readonly: self.options.readonly.0,
            // fiord has no limit of its own.
            max_jobs: self.given().get(ProgramOptions::max_jobs).map(|_| self.options.max_jobs),
            entropy: fiord_sys::clock::realtime_ns(),
            aux_path: self.options.aux_path.as_ref().map_or_else(PathBuf::new, |path| PathBuf::from(&path.0)),
            trigger: self.trigger(),
            ..RunSettings::default()
        }
    }

    /// The trigger, which stops all jobs and saves their state. A command without a condition never runs.
    fn trigger(&self) -> Option<Trigger> {
        let options = &self.options;
        let file = options.trigger_file.as_ref().map(|path| PathBuf::from(&path.0));
        let after_ns = Some(options.trigger_timeout.us * 1000).filter(|after_ns| *after_ns > 0);
        let command = options.trigger.as_ref().map(|command| OsString::from(&command.0));
        (file.is_some() || after_ns.is_some()).then_some(Trigger { file, after_ns, command })
    }

    fn trigger_that_never_fires(&self) -> Option<Problem> {
        let given = self.given();
        let setting =
            given.get(ProgramOptions::trigger).or_else(|| given.get(ProgramOptions::trigger_remote));
        let setting = setting.filter(|_| self.trigger().is_none())?;
        let message = "it is never run";
        let remedy = "give --trigger-file or --trigger-timeout as well";
        let place = setting.value_place.clone();
        Some(Problem::error(ProblemKind::NoEffect, place, setting.spec, message, remedy).as_warning())
    }

    /// The name for the run in the history.
    fn tag(&self) -> Option<String> {
        self.options.tag.as_ref().map(|tag| tag.0.to_string_lossy().into_owned())
    }

    /// A name that cannot be one, or that is given where nothing is recorded.
    fn unusable_tag(&self) -> Option<Problem> {
        let setting = self.given().get(ProgramOptions::tag)?;
        let place = setting.value_place.clone();
        let (kind, message) = match (self.own, fiord_store::check_tag(&self.tag()?)) {
            (None, _) => (ProblemKind::Misplaced, "runs under the name fio are not recorded".to_string()),
            (Some(_), _) if self.options.no_history.0 => {
                (ProblemKind::Conflict, "--no-history keeps the run out of the history".to_string())
            }
            (Some(_), Err(why)) => (ProblemKind::InvalidValue, why),
            (Some(_), Ok(())) => return None,
        };
        let remedy = "leave it out, or run fiord by its own name, with a name of letters and digits";
        Some(Problem::error(kind, place, Some(ProgramOptions::tag), message, remedy))
    }

    /// Reads the conditions of `--fail-if`; what is wrong with them is returned.
    fn read_conditions(&mut self) -> Vec<Problem> {
        let (mut conditions, mut of_hosts, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        for setting in self.given().all(ProgramOptions::fail_if) {
            let text = setting.text().unwrap_or_default();
            let read = match self.is_on_hosts() && HostsCondition::is_meant(text) {
                true => text.parse().map(|condition| of_hosts.push(condition)),
                false => fiord_compare::gate::condition(text).map(|condition| conditions.push(condition)),
            };
            if let Err(why) = read {
                let (kind, place) = (ProblemKind::InvalidValue, setting.value_place.clone());
                problems.push(Problem::error(kind, place, ProgramOptions::fail_if, why, ""));
            }
        }
        (self.conditions, self.of_hosts) = (conditions, of_hosts);
        problems
    }

    /// Merges traces; the devices they are of need not exist here.
    fn merge_only(&self) -> ExitCode {
        print_all(&self.warnings);
        match fiord_plan::merges(&self.parsed.sections, registry::ENGINES) {
            Ok(needs) => finished(traces::merge_only(&needs)),
            Err(problems) => failed(&problems),
        }
    }

    /// Refuses output files that must not be overwritten, or removed, before the run.
    fn refuse_outputs(&self) -> Result<(), Refusal> {
        let prober = Prober::default();
        for (option, path) in self.outputs() {
            // A path that cannot be probed cannot be opened either, which is reported then.
            let found = prober.probe(path).ok();
            let refused = found.and_then(|found| {
                path_change::refusal(path, ChangeKind::Output, &facts::path_facts(&found), false)
            });
            let claimed = |why: String| PathRefusal {
                message: format!("{} {why}", shown(path)),
                remedy: claims::REMEDY.to_string(),
                unsafe_target: true,
            };
            let claim = || claims::output(&format!("--{}", option.name), path).err().map(claimed);
            let Some(refused) = refused.or_else(claim) else { continue };
            let kind = if refused.unsafe_target { ProblemKind::InUse } else { ProblemKind::Target };
            let given = self.given().get(option);
            let place = given.map_or_else(Place::derived, |setting| setting.value_place.clone());
            let problem = Problem::error(kind, place, option, refused.message, refused.remedy);
            return Err(Refusal { problems: vec![problem], unsafe_target: refused.unsafe_target });
        }
        Ok(())
    }

    /// The files that the program itself writes, or removes.
    fn outputs(&self) -> impl Iterator<Item = (&'static Spec, &Path)> {
        let named = [
            (ProgramOptions::output, &self.options.output),
            (ProgramOptions::trigger_file, &self.options.trigger_file),
        ];
        let named =
            named.into_iter().filter_map(|(option, path)| Some((option, Path::new(&path.as_ref()?.0))));
        let logs = BANDWIDTH_LOGS.into_iter().filter(|_| self.options.bandwidth_log.0);
        named.chain(logs.map(|name| (ProgramOptions::bandwidth_log, Path::new(name))))
    }

    fn carry_out(mut self, plan: &Arc<Plan>) -> ExitCode {
        let (shown, mut metrics) = match self.shown() {
            Ok(shown) => shown,
            Err(why) => return finished(Err(why)),
        };
        let opened = traces::merge_planned(plan).map_err(CommandError::from).and_then(|()| self.open(plan));
        let (mut output, mut log) = match opened {
            Ok(opened) => opened,
            Err(why) => return finished(Err(why)),
        };
        let settings = self.options.debug.as_ref();
        let debug = match settings.map(|settings| debug::log(settings, &output)).transpose() {
            Ok(debug) => debug,
            Err(error) => {
                let why = error_text(&error);
                return finished(Err(format!(
                    "fiord: --debug: the thread that prints its lines cannot be started: {why}\n"
                )));
            }
        };
        let shows = Shows {
            options: &shown,
            output: &mut output,
            log: log.as_mut(),
            metrics: metrics.as_mut(),
            debug: debug.as_ref(),
        };
        let (plan, mut outcome, runs) = match self.run_repeatedly(Arc::clone(plan), shows) {
            Ok(ran) => ran,
            Err(refusal) => return refused(&refusal),
        };
        let unsent = metrics.map_or_else(Vec::new, MetricsExporter::finish);
        if !unsent.is_empty() && outcome.ending == Ending::Complete {
            outcome.ending = Ending::Failed;
        }
        outcome.errors.extend(unsent.iter().map(|why| format!("fiord: {why}\n")));
        let mut status = self.conclude(&outcome, log.and_then(BandwidthLog::failure).as_deref(), output);
        if status == status::SUCCESS {
            let side = Side { name: "this run".to_string(), runs, ..Side::default() };
            status = gate::conclude(&gate::outcomes(side, &self.conditions), self.options.undecided);
        }
        if let Some(keeper) = self.keeper.take() {
            keeper.keep(&plan, &outcome.report, status);
        }
        ExitCode::from(status)
    }

    /// Runs the jobs as often as `--repeat` says, or until a run fails; the outcome is that of the last run, with the
    /// first ending that is not as planned. Later runs are planned again: the first one may have created files.
    fn run_repeatedly(
        &mut self,
        mut plan: Arc<Plan>,
        shows: Shows<'_>,
    ) -> Result<(Arc<Plan>, RunOutcome, Vec<NamedRun>), Refusal> {
        let Shows { options: shown, output, mut log, mut metrics, debug } = shows;
        let times = self.options.repeat;
        let mut runs = Vec::new();
        let mut repeats = Vec::new();
        let mut ending = Ending::Complete;
        let mut number = 1;
        loop {
            let round = Round { is_first: number == 1, is_last: number == times };
            let run = Run {
                global_options: self.global_options(),
                idle: self.options.idle_prof,
                trust: self.options.trust,
                debug: debug.cloned(),
                keeps: self.keeper.is_some(),
                repeats: (times > 1).then(|| std::mem::take(&mut repeats)),
                ..Run::of(&plan, &self.warnings)
            };
            let log = log.as_deref_mut().filter(|_| round.is_last);
            let metrics = metrics.as_deref_mut();
            let mut presenter = RunPresenter::new(output, &plan, shown, log, metrics, round);
            let mut outcome = drive(run, &mut presenter);
            let has_reported = presenter.has_reported();
            if !self.conditions.is_empty() {
                runs.extend(NamedRun::of_run("", &outcome.report));
            }
            if ending == Ending::Complete {
                ending = outcome.ending;
            }
            if has_reported {
                outcome.ending = ending;
                return Ok((plan, outcome, runs));
            }
            outcome.errors.iter().for_each(|line| say(line));
            repeats = outcome.report.repeats;
            let known = self.warnings.len();
            plan = Arc::new(self.plan()?);
            self.warnings.truncate(known);
            number += 1;
        }
    }

    /// How a run is shown, and who exports its metrics.
    fn shown(&self) -> Result<(LiveLineOptions, Option<MetricsExporter>), CommandError> {
        // The keyboard of a caller of fio is left alone, unless the view is asked for.
        let has_line = self.own.is_some() && self.options.eta != EtaWhen::Never;
        let live = LiveMode::of(self.options.live.0, has_line).map_err(|why| format!("fiord: {why}\n"))?;
        Ok((settings::shown(&self.options, &self.given(), live), self.metrics_exporter()?))
    }

    /// Runs the jobs on the hosts of `--hosts` or `--client`.
    fn run_on_hosts(mut self) -> ExitCode {
        print_all(&self.warnings);
        if self.options.print_manifest.0 {
            let manifest = pods::of_run(&self.options).manifest().map_err(|why| format!("fiord: {why}\n"));
            return finished(manifest.and_then(|manifest| output::print(manifest.as_bytes())));
        }
        if let Err(refusal) = self.refuse_outputs() {
            return refused(&refusal);
        }
        let mut output = match self.open_output() {
            Ok(output) => output,
            Err(why) => return finished(Err(why)),
        };
        let (shown, mut metrics) = match self.shown() {
            Ok(shown) => shown,
            Err(why) => return finished(Err(why)),
        };
        let shows =
            hosts_presenter::Shows { options: &shown, output: &mut output, metrics: metrics.as_mut() };
        let on_hosts = hosts::OnHosts {
            parsed: &self.parsed,
            options: &self.options,
            global_options: self.global_options(),
            environment: config::with_lists(hosts::environment(environment::of(&self.machine))),
            trigger: self.trigger(),
        };
        let hosts::Outcome { fleet, mut status, mut errors } = match on_hosts.run(shows) {
            Ok(outcome) => outcome,
            Err(lines) => {
                lines.iter().for_each(|line| say(line));
                return ExitCode::from(pods::status_without());
            }
        };
        if status == status::SUCCESS && self.options.trust == Trust::Strict && any_void(&fleet.findings) {
            status = status::VOID;
        }
        let unsent =
            metrics.map_or_else(Vec::new, |metrics| hosts_presenter::finish_metrics(metrics, &fleet));
        if !unsent.is_empty() && status == status::SUCCESS {
            status = status::FAILED;
        }
        errors.extend(unsent);
        if fleet.hosts.iter().any(|run| run.report.is_some()) {
            output.write(&fiord_fleet::render::render(&fleet, &shown.formats, shown.terse));
        }
        errors.iter().for_each(|line| say(line));
        if status == status::SUCCESS {
            let outcomes = hosts_gate::outcomes(&fleet, &self.conditions, &self.of_hosts);
            status = gate::conclude(&outcomes, self.options.undecided);
        }
        if let Err(error) = output.finish() {
            say(&format!("fiord: {}: {}\n", self.destination(), error_text(&error)));
            status = status::FAILED;
        }
        if let Some(keeper) = self.keeper.take()
            && fleet.counted().next().is_some()
        {
            keeper.keep_on_hosts(&fleet, status, &hosts::conclusion(&fleet));
        }
        ExitCode::from(status)
    }

    /// Prints the remaining errors and returns the exit status.
    fn conclude(&self, outcome: &RunOutcome, log_failure: Option<&str>, output: Output) -> u8 {
        outcome.errors.iter().map(String::as_str).chain(log_failure).for_each(say);
        let written = output.finish();
        if let Err(error) = &written {
            say(&format!(
                "fiord: the report could not be written to {}: {}\n",
                self.destination(),
                error_text(error)
            ));
        }
        match outcome.ending {
            // fio's status is the count modulo 256, so that 256 failed jobs look like none.
            Ending::Failed if self.own.is_none() && outcome.failed_jobs > 0 => {
                u8::try_from(outcome.failed_jobs).unwrap_or(u8::MAX)
            }
            Ending::Complete if written.is_err() || log_failure.is_some() => status::FAILED,
            ending => status::of_ending(ending),
        }
    }

    /// Opens what is written during the run: the report, and the bandwidth log of all jobs.
    fn open(&self, plan: &Plan) -> Result<(Output, Option<BandwidthLog>), CommandError> {
        let output = self.open_output()?;
        let log = self.options.bandwidth_log.0.then(|| BandwidthLog::create(plan)).transpose()?;
        Ok((output, log))
    }

    /// Exports metrics to every destination of `--metrics`.
    fn metrics_exporter(&self) -> Result<Option<MetricsExporter>, CommandError> {
        let given = self.given();
        let values = given.all(ProgramOptions::metrics).filter_map(|setting| setting.value.as_ref());
        let started = MetricsExporter::start(values.map(AsRef::as_ref), &self.machine.hostname);
        started.map_err(|error| CommandError { why: format!("fiord: {}\n", error.why), ..error })
    }

    /// Where the report goes, as the user typed it.
    fn destination(&self) -> String {
        self.options.output.as_ref().map_or("standard output".to_string(), |path| shown(&path.0))
    }

    fn open_output(&self) -> Result<Output, CommandError> {
        let Some(path) = &self.options.output else { return Ok(Output::stdout()) };
        Output::file(Path::new(&path.0)).map_err(|refused| CommandError {
            why: format!("fiord: --output={}: {}\n", shown(&path.0), refused.reason()),
            ..CommandError::from(refused)
        })
    }

    fn global_options(&self) -> Vec<(String, String)> {
        self.parsed.globals.iter().map(Setting::echoed).collect()
    }
}

/// The exit status of something that succeeded or failed with these lines, which it prints.
fn finished(result: Result<(), impl Into<CommandError>>) -> ExitCode {
    match result.map_err(Into::into) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandError { why, status }) => {
            say(&why);
            ExitCode::from(status)
        }
    }
}

/// The exit status of what has printed to standard output and ends with `status`.
fn printed(stdout: Output, status: ExitCode) -> ExitCode {
    match stdout.finish() {
        Ok(()) => status,
        Err(error) => finished(Err(format!("fiord: standard output: {}\n", error_text(&error)))),
    }
}

/// The exit status of a command line with these errors, which it prints.
fn failed(problems: &[Problem]) -> ExitCode {
    print_all(problems);
    ExitCode::from(status::FAILED)
}

/// The exit status of a plan that was refused for these reasons, which it prints.
fn refused(refusal: &Refusal) -> ExitCode {
    print_all(&refusal.problems);
    ExitCode::from(if refusal.unsafe_target { status::REFUSED } else { status::FAILED })
}

fn print_all(problems: &[Problem]) {
    problems.iter().for_each(|problem| say(&format!("{problem}\n")));
}

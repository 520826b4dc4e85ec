//! The program as fio: reads the command line and the job files, plans, runs, reports.
//!
//! Invariant: nothing is opened for writing before the whole plan has been checked.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use fiord_host::{Machine, Prober};
use fiord_options::cli::{self, Parsed};
use fiord_options::expand::Environment;
use fiord_options::program::{self, ProgramOptions};
use fiord_options::value::IdleProf;
use fiord_options::{Given, Place, Problem, Severity, showcmd};
use fiord_plan::facts::RunSettings;
use fiord_plan::{Deed, Plan, Refusal, touch};
use fiord_report::start::{self, Heading};
use fiord_report::{Warning, bears_remarks, normal, render, wants_headings};
use fiord_sys::clock::TscClock;
use fiord_sys::{signal, tty};
use fiord_worker::{Moment, RunResult};

use crate::assemble::{self, Frame};
use crate::bandwidth::{BandwidthLog, NAMES as BANDWIDTH_LOGS};
use crate::keep::Keeper;
use crate::live::Onlooker;
use crate::output::{Output, remark, say};
use crate::version::FIO_VERSION;
use crate::{
    clocktest, crctest, environment, facts, help, idle, logs, settings, status, subcommand, subcommands,
};

/// Runs the program; `arguments[0]` is its name. Runs under fio's own name are not kept in the history: whoever calls fio
/// expects no file from it.
pub(crate) fn run(arguments: &[OsString], called_as_fio: bool) -> ExitCode {
    let texts = (1..)
        .zip(arguments.get(1..).unwrap_or_default())
        .map(|(number, argument)| environment::text(number, argument));
    let arguments: Vec<String> = match texts.collect() {
        Ok(arguments) => arguments,
        Err(why) => {
            say(&format!("fiord: {why}\n"));
            return ExitCode::from(status::FAILED);
        }
    };
    match Session::read(&arguments) {
        Ok(mut session) => {
            session.called_as_fio = called_as_fio;
            let kept = !called_as_fio && !session.options.no_history.0;
            session.keeper = kept.then(|| Keeper::new(&arguments, &session.machine.hostname));
            session.go()
        }
        Err(problems) => {
            tell(&problems);
            let meant = arguments.first().and_then(|word| subcommands::nearest(word));
            if let Some(name) = meant.filter(|_| !called_as_fio) {
                say(&format!("fiord: or did you mean `fiord {name}`?\n"));
            }
            ExitCode::from(status::FAILED)
        }
    }
}

/// Everything the command line said.
struct Session {
    machine: Machine,
    parsed: Parsed,
    options: ProgramOptions,
    /// The program's options as they were typed, in order.
    given: Given,
    warnings: Vec<Problem>,
    /// Under fio's own name some things are told as fio tells them.
    called_as_fio: bool,
    /// Keeps the run in the history, unless that is not wanted.
    keeper: Option<Keeper>,
}

impl Session {
    fn read(arguments: &[String]) -> Result<Session, Vec<Problem>> {
        let machine = Machine::read().map_err(|error| {
            let message = format!("/proc and /sys cannot be read: {error}");
            vec![Problem::error(Place::derived(), "", message, "mount them")]
        })?;
        let environment = Environment {
            files: &environment::read_file,
            variables: &environment::variable,
            machine: environment::keywords(&machine),
        };
        let mut parsed = cli::read(arguments, &environment)?;
        let (options, given, _) = program::resolve_program(&parsed.program);
        let warnings = std::mem::take(&mut parsed.warnings);
        Ok(Session { machine, parsed, options, given, warnings, called_as_fio: false, keeper: None })
    }

    fn go(mut self) -> ExitCode {
        if let Some(text) = help::asked_for(&self.options, self.called_as_fio) {
            return subcommand::print(text);
        }
        if let Some(names) = &self.options.crctest {
            return crctest::run(names.0.as_deref());
        }
        if self.options.cpuclock_test.0 {
            return clocktest::run();
        }
        if self.options.idle_prof == Some(IdleProf::Calibrate) {
            Output::stdout().write(&normal::calibration(&idle::calibrate()));
            return ExitCode::SUCCESS;
        }
        if let Err(problems) = self.check() {
            tell(&problems);
            return ExitCode::from(status::FAILED);
        }
        if self.options.showcmd.0 {
            match self.open_output() {
                Ok(mut output) => output.write(&showcmd::print(&self.parsed)),
                Err(message) => {
                    say(&message);
                    return ExitCode::from(status::FAILED);
                }
            }
        }
        if self.options.parse_only.0 || self.options.showcmd.0 {
            remark_all(&self.warnings);
            return ExitCode::SUCCESS;
        }
        if self.parsed.sections.is_empty() {
            say(
                "fiord: no jobs: name a job file, or give --name and the job's options; `fiord quick` needs neither \
                 (see fiord --help)\n",
            );
            return ExitCode::from(status::FAILED);
        }
        match self.plan() {
            Ok(plan) => self.carry_out(&Arc::new(plan)),
            Err(refusal) => {
                tell(&refusal.problems);
                ExitCode::from(if refusal.unsafe_target { status::REFUSED } else { status::FAILED })
            }
        }
    }

    /// Checks every value, used or not.
    fn check(&mut self) -> Result<(), Vec<Problem>> {
        let mut problems = cli::check(&self.parsed);
        if self.options.readonly.0 {
            problems.extend(fiord_plan::forbidden_by_readonly(&self.parsed.sections));
        }
        if self.warnings.iter().chain(&problems).any(|problem| self.is_fatal(problem)) {
            let mut all = std::mem::take(&mut self.warnings);
            all.append(&mut problems);
            return Err(all);
        }
        self.warnings.append(&mut problems);
        Ok(())
    }

    /// Whether a problem stops the run: `--warnings-fatal` knows what fio warns of, `--strict` everything.
    fn is_fatal(&self, problem: &Problem) -> bool {
        match problem.severity {
            Severity::Error => true,
            Severity::FiosWarning => self.options.warnings_fatal.0 || self.options.strict.0,
            Severity::Warning => self.options.strict.0,
        }
    }

    fn plan(&mut self) -> Result<Plan, Refusal> {
        // About half-way to the first I/O.
        TscClock::note();
        let run = RunSettings {
            readonly: self.options.readonly.0,
            // There is no limit of fiord's own.
            max_jobs: self.given.get("max-jobs").map(|_| self.options.max_jobs),
            entropy: fiord_sys::clock::realtime_ns(),
        };
        let facts = facts::gather(&fiord_plan::needs(&self.parsed.sections), &self.machine);
        let (plan, mut warnings) =
            fiord_plan::build(&self.parsed.sections, &self.parsed.waiting, &facts, &run)?;
        self.refuse_outputs()?;
        if warnings.iter().any(|warning| self.is_fatal(warning)) {
            return Err(Refusal { problems: warnings, unsafe_target: false });
        }
        self.warnings.append(&mut warnings);
        Ok(plan)
    }

    /// Refuses to write over what must not be written over, before the run whose report goes there.
    fn refuse_outputs(&self) -> Result<(), Refusal> {
        let output = self.options.output.iter().map(|path| ("output", path.as_str()));
        let logs = BANDWIDTH_LOGS.into_iter().filter(|_| self.options.bandwidth_log.0);
        let prober = Prober::default();
        for (option, path) in output.chain(logs.map(|name| ("bandwidth-log", name))) {
            let path = Path::new(path);
            // What cannot be looked at cannot be opened either, which is told then.
            let Ok(found) = prober.probe(path) else { continue };
            let Some(refused) = touch::refusal(path, Deed::Output, &facts::told(&found), false) else {
                continue;
            };
            let given = self.given.get(option);
            let place = given.map_or_else(Place::derived, |setting| setting.value_place.clone());
            let problem = Problem::error(place, option, refused.message, refused.remedy);
            return Err(Refusal { problems: vec![problem], unsafe_target: refused.endangers });
        }
        Ok(())
    }

    fn carry_out(mut self, plan: &Arc<Plan>) -> ExitCode {
        let shown = settings::shown(&self.options, &self.given);
        let (mut output, mut log) = match self.open(plan) {
            Ok(opened) => opened,
            Err(message) => {
                say(&message);
                return ExitCode::from(status::FAILED);
            }
        };
        // From here on there is something to lose: the file of `--output` is there, and empty. Without its handlers a
        // run still runs; a signal then ends it unreported.
        let _ = signal::record_stop_requests();
        remark_all(&self.warnings);
        assemble::unplannable(plan).iter().for_each(|line| say(line));
        let headings = headings(plan);
        if wants_headings(&shown.formats) {
            output.write(&headings);
        }
        // Ten thousand jobs open ten thousand files; a limit that stays low shows as EMFILE in a job.
        let _ = fiord_sys::process::raise_open_file_limit();
        let frame = Frame { plan, global_options: self.global_options() };
        let mut onlooker = Onlooker::new(&mut output, &frame, &shown, log.as_mut());
        let mut result = fiord_worker::run(plan, &mut onlooker);
        let meters = onlooker.finish();
        let moment = Moment { elapsed_ms: result.elapsed_ms, left_s: Some(0.0) };
        let mut report = assemble::report(&frame, &meters, &mut result.workers, moment);
        let remarks = assemble::remarks(plan, &result.workers);
        remarks
            .iter()
            .for_each(|Warning { code, place, message }| remark(&format!("{place}: {code}: {message}\n")));
        let problems = self.warnings.iter().chain(plan.unplannable());
        report.warnings = problems.map(assemble::warning).chain(remarks).collect();
        report.tells_warnings = !tty::stderr_is_terminal();
        // fio says it as well, but not into the file of `--output`.
        if output.is_stdout() && bears_remarks(&shown.formats) {
            assemble::fios_failures(plan, &result.workers).iter().for_each(|line| output.write(line));
        }
        output.write(&render(&report, &shown.formats, shown.terse));
        let mut unwritten = logs::write(plan, &result.workers);
        unwritten.extend(log.and_then(BandwidthLog::failure));
        let status = self.conclude(plan, &result, &unwritten, output);
        if let Some(keeper) = self.keeper.take() {
            keeper.keep(plan, &headings, &report, status);
        }
        ExitCode::from(status)
    }

    /// What is left to say, and the exit status.
    fn conclude(&self, plan: &Plan, result: &RunResult, unwritten: &[String], output: Output) -> u8 {
        for line in assemble::failures(plan, &result.workers).iter().chain(unwritten) {
            say(line);
        }
        let written = output.finish();
        if let Err(error) = &written {
            say(&format!("fiord: the report could not be written to {}: {error}\n", self.destination()));
        }
        match (result.signal, assemble::failed_count(&result.workers)) {
            (Some(signal), _) => status::of_signal(signal),
            (None, _) if assemble::endangered(&result.workers) => status::REFUSED,
            // fio's is the count modulo 256: then 256 jobs that failed look like none.
            (None, failed) if failed > 0 && self.called_as_fio => u8::try_from(failed).unwrap_or(u8::MAX),
            (None, failed) if failed > 0 || written.is_err() || !unwritten.is_empty() => status::FAILED,
            (None, _) => status::WELL,
        }
    }

    /// What is written while the run goes on: the report, and the log of all jobs together.
    fn open(&self, plan: &Plan) -> Result<(Output, Option<BandwidthLog>), String> {
        let output = self.open_output()?;
        let log = self.options.bandwidth_log.0.then(|| BandwidthLog::create(plan)).transpose()?;
        Ok((output, log))
    }

    /// Where the report goes, in the user's words.
    fn destination(&self) -> &str {
        self.options.output.as_ref().map_or("standard output", |path| path.as_str())
    }

    fn open_output(&self) -> Result<Output, String> {
        let Some(path) = &self.options.output else { return Ok(Output::stdout()) };
        let path = path.as_str();
        Output::file(Path::new(path))
            .map_err(|refused| format!("fiord: --output={path}: {}\n", refused.reason()))
    }

    fn global_options(&self) -> Vec<(String, String)> {
        let echoed = |setting: &fiord_options::Setting| {
            (setting.spec.name.to_string(), setting.value.clone().unwrap_or_default())
        };
        self.parsed.globals.iter().map(echoed).collect()
    }
}

/// The lines before the run: one for each section, the version, how many start.
pub(crate) fn headings(plan: &Plan) -> String {
    let mut text = String::new();
    for job in plan.jobs.iter().filter(|job| job.clone == 0) {
        let clones = plan.jobs.iter().filter(|other| other.section == job.section).count() as u32;
        let presentation = &job.presentation;
        text += &start::heading(&Heading {
            name: &job.name,
            group_id: job.group_id,
            mode: &presentation.mode,
            blocks: presentation.block_bytes,
            blocks_by_order: job.access.sizes_by_order,
            engine: job.engine.name(),
            iodepth: presentation.requested_iodepth,
            clones,
            significant_figures: presentation.significant_figures,
            kb_base: presentation.kb_base,
        });
    }
    format!("{text}{FIO_VERSION}\n{}", start::starting(plan.jobs.len() as u32, 0))
}

fn tell(problems: &[Problem]) {
    problems.iter().for_each(|problem| say(&format!("{problem}\n")));
}

fn remark_all(problems: &[Problem]) {
    problems.iter().for_each(|problem| remark(&format!("{problem}\n")));
}

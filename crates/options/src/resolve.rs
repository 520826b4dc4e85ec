//! From settings to typed values: what is in force, and everything that is wrong with it.
//!
//! Invariant: every problem of the settings is reported, not the first; the last setting of an option wins.

use crate::place::Origin;
use crate::problem::{Problem, ProblemKind};
use crate::section::{Section, Setting};
use crate::table::job::{General, JobOptions, Queue};
use crate::table::program::ProgramOptions;
use crate::table::{Applied, OptionSet, Scope, Spec, Status};
use crate::value::{EngineName, KbBase, Note, Reading, Value};

/// What was given, before resolving: each setting with its spelling, text and place.
#[derive(Debug, Clone, Default)]
pub struct Given {
    settings: Vec<Setting>,
}

impl Given {
    /// The setting in force for the option: the last one given.
    pub fn get(&self, option: &Spec) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.spec == option)
    }

    /// Which of these options was given last.
    pub fn last_of(&self, options: &[&'static Spec]) -> Option<&'static Spec> {
        self.settings.iter().rev().map(|setting| setting.spec).find(|spec| spec.is_one_of(options))
    }

    /// Every setting of the option, in order (`--section` may be repeated).
    pub fn all<'a>(&'a self, option: &'a Spec) -> impl Iterator<Item = &'a Setting> {
        self.settings.iter().filter(move |setting| setting.spec == option)
    }

    /// Every setting, inherited ones first, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }
}

/// Resolves a section: applies what it inherits, then its own settings, on top of the defaults.
///
/// Problems come in the order of the settings; those of inherited settings are the same for every section that
/// inherits them.
///
/// `engines` are the names of those built into this program.
pub fn resolve_job(section: &Section, engines: &[EngineName]) -> (JobOptions, Given, Vec<Problem>) {
    let settings: Vec<Setting> = section.global.iter().chain(&section.own).cloned().collect();
    let (job, given, mut problems) = resolve_settings::<JobOptions>(settings, engines);
    let engine = job.queue.ioengine;
    problems.extend(section.own.iter().filter_map(|setting| foreign(setting, engine)));
    if let Some(setting) = given.get(Queue::ioengine).filter(|_| !engines.contains(&engine)) {
        let (kind, reason, remedy) = missing(engine, engines);
        let message = format!("engine {engine} not loadable: {reason}");
        problems.push(Problem::error(kind, setting.value_place.clone(), Queue::ioengine, message, remedy));
    }
    (job, given, problems)
}

/// Why an engine is not among those built in, and what to do.
fn missing(engine: EngineName, engines: &[EngineName]) -> (ProblemKind, &'static str, String) {
    match engine.refusal() {
        Some(refusal) => (ProblemKind::Unsupported, refusal.reason, refusal.instead.to_string()),
        None => (
            ProblemKind::NotBuilt,
            "known to fio, not built into fiord yet",
            format!("allowed: {}", EngineName::join(engines, ", ")),
        ),
    }
}

/// A private option of another engine than the job's. Inherited ones are ignored, as the global section may have
/// an engine of its own.
fn foreign(setting: &Setting, engine: EngineName) -> Option<Problem> {
    match setting.spec.scope {
        Scope::Engine(engines) if !engines.contains(&engine) => {
            let message = format!(
                "an option of {}, and the job's engine is {engine}",
                EngineName::join(engines, " and ")
            );
            Some(Problem::error(ProblemKind::Misplaced, setting.place.clone(), setting.spec, message, ""))
        }
        _ => None,
    }
}

/// Shortest time between two updates of the progress line.
const MIN_ETA_INTERVAL_US: u64 = 250_000;

/// Resolves the program's options in the order they were given.
pub fn resolve_program(settings: &[Setting]) -> (ProgramOptions, Given, Vec<Problem>) {
    let (program, given, mut problems) = resolve_settings::<ProgramOptions>(settings.to_vec(), &[]);
    let mut too_short = |option: &'static Spec, shortest: &str| {
        if let Some(setting) = given.get(option) {
            let message = format!("the time is too short, at least {shortest} is needed");
            problems.push(Problem::error(
                ProblemKind::InvalidValue,
                setting.value_place.clone(),
                option,
                message,
                "",
            ));
        }
    };
    if program.eta_interval.us < MIN_ETA_INTERVAL_US {
        too_short(ProgramOptions::eta_interval, "250ms");
    }
    if program.status_interval.is_some_and(|interval| interval.us == 0) {
        too_short(ProgramOptions::status_interval, "1ms");
    }
    (program, given, problems)
}

/// Applies settings in order on top of the defaults, where these engines are built in.
fn resolve_settings<T: OptionSet>(
    settings: Vec<Setting>,
    engines: &[EngineName],
) -> (T, Given, Vec<Problem>) {
    let mut set = T::default();
    let mut problems = Vec::new();
    let bases = kb_bases(&settings);
    for (index, (setting, kb_base)) in settings.iter().zip(bases).enumerate() {
        let mut reading = Reading { kb_base, ..Reading::default() };
        let overridden = settings[index + 1..].iter().any(|later| later.spec == setting.spec);
        match set.apply(setting.spec, setting.value.as_deref(), &mut reading) {
            Some(Err(why)) => problems.push(value_problem(setting, why, &reading, engines)),
            Some(Ok(Applied::NotRead)) if !overridden => {
                problems.extend(not_read_problem(setting, &settings))
            }
            // Options of an engine that is not built in belong to no set.
            None => {
                let checked = (setting.spec.parse)(setting.value.as_deref(), &mut reading);
                problems.extend(checked.err().map(|why| value_problem(setting, why, &reading, engines)));
            }
            Some(Ok(_)) => {}
        }
        let place = &setting.value_place;
        let notes = reading.notes.into_iter();
        problems.extend(notes.map(|Note { sentence, is_decimal_unit }| {
            match is_decimal_unit {
                true => {
                    let remedy = "write k, m or g for powers of 1024";
                    Problem::error(ProblemKind::DecimalUnit, place.clone(), setting.spec, sentence, remedy)
                        .as_warning()
                }
                false => {
                    Problem::error(ProblemKind::ReadDifferently, place.clone(), setting.spec, sentence, "")
                        .as_warning()
                }
            }
        }));
    }
    (set, Given { settings }, problems)
}

/// A value that the option does not accept.
fn value_problem(setting: &Setting, why: String, reading: &Reading, engines: &[EngineName]) -> Problem {
    // Not the engines that fio has on other systems.
    let allowed = match setting.spec == Queue::ioengine {
        true => EngineName::join(engines, ", "),
        false => setting.spec.allowed(),
    };
    let remedy = match reading.suggestion.is_some() {
        true => String::new(),
        false if allowed.is_empty() => format!("expected: {}", setting.spec.kind),
        false => format!("allowed: {allowed}"),
    };
    let message = reading.with_suggestion(why);
    Problem::error(ProblemKind::InvalidValue, setting.value_place.clone(), setting.spec, message, remedy)
}

/// An option that fiord does not carry out.
fn not_read_problem(setting: &Setting, settings: &[Setting]) -> Option<Problem> {
    let spec = setting.spec;
    match spec.status {
        Status::Pending(why) => {
            let message = format!("known to fio, not built into fiord yet: {why}");
            Some(Problem::error(ProblemKind::NotBuilt, setting.place.clone(), spec, message, ""))
        }
        Status::Ignored(why) => {
            let message = format!("accepted without effect: {why}");
            Some(Problem::error(ProblemKind::NoEffect, setting.place.clone(), spec, message, "").as_warning())
        }
        // If the other one is given, that one is refused.
        Status::Dormant(other) if settings.iter().any(|given| given.spec == other) => None,
        Status::Dormant(other) => {
            let (name, other) = (spec.name, other.name);
            let message =
                format!("accepted without effect: {name} only modifies {other}, which is not given");
            Some(Problem::error(ProblemKind::NoEffect, setting.place.clone(), spec, message, "").as_warning())
        }
        // An engine that is not built in is refused where it is chosen.
        Status::Unbuilt | Status::Ready => None,
    }
}

/// The meaning of suffixes each setting is read under. fio reads `kb_base` before the other options of a job file's
/// section; on the command line it applies to the options after it.
fn kb_bases(settings: &[Setting]) -> Vec<KbBase> {
    let given = |setting: &Setting| match setting.spec == General::kb_base {
        true => KbBase::parse(setting.text()?, &mut Reading::default()).ok(),
        false => None,
    };
    let mut base = KbBase::default();
    let mut bases = Vec::with_capacity(settings.len());
    for (index, setting) in settings.iter().enumerate() {
        let starts_file = matches!(setting.place.source, Origin::File(_))
            && (index == 0 || settings[index - 1].place.source != setting.place.source);
        if starts_file {
            let same_file =
                settings[index..].iter().take_while(|later| later.place.source == setting.place.source);
            base = same_file.filter_map(given).last().unwrap_or(base);
        }
        base = given(setting).unwrap_or(base);
        bases.push(base);
    }
    bases
}

#[cfg(test)]
mod tests {
    use super::{resolve_job, resolve_program};
    use crate::grammar::testing::{ENGINES, read_text, read_with, texts};
    use crate::table::job::JobOptions;
    use crate::table::program::ProgramOptions;
    use crate::value::{Bytes, EngineName, PerDirection, Seconds, Size};

    /// The last section of a job file: its options and the problems as text.
    fn last_section(text: &str) -> (JobOptions, String) {
        let parsed = read_text(text).expect(text);
        let (job, _, problems) = resolve_job(parsed.sections.last().expect("a section"), &ENGINES);
        (job, texts(&problems))
    }

    fn all(bytes: u64) -> PerDirection<Bytes> {
        PerDirection { read: Some(Bytes(bytes)), write: Some(Bytes(bytes)), trim: Some(Bytes(bytes)) }
    }

    #[test]
    fn own_settings_come_on_top_of_inherited_ones() {
        let (job, problems) = last_section("[global]\nbs=16k\niodepth=8\n[j]\nbs=,8k\nruntime=5m\n");
        assert_eq!(problems, "");
        assert_eq!((job.queue.iodepth, job.time.runtime), (8, Seconds { us: 300_000_000 }));
        assert_eq!(job.blocks.bs, PerDirection { read: Some(Bytes(16384)), ..all(8192) });
        let (job, _) = last_section("[j]\n");
        assert_eq!(job, JobOptions::default());
    }

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let (_, problems) = last_section("[j]\nbs=x\nrwmixread=101\nrw=raed\nioengine=rbd\n");
        let expected = "\
j.fio:2:4: error: bs: \"x\" is not a number
  allowed: 1 or more
j.fio:3:11: error: rwmixread: 101 is above 100
  allowed: 0 to 100
j.fio:4:4: error: rw: \"raed\" is not one of the allowed values; did you mean \"read\"?
j.fio:5:10: error: ioengine: engine rbd not loadable: known to fio, not built into fiord yet
  allowed: psync, pvsync2, mmap, libaio, io_uring, null";
        assert_eq!(problems, expected);
    }

    #[test]
    fn an_engine_that_fiord_will_not_have_is_refused_with_the_reason_and_the_nearest_one() {
        let (_, problems) = last_section("[j]\nioengine=windowsaio\n");
        assert_eq!(
            problems,
            "j.fio:2:10: error: ioengine: engine windowsaio not loadable: it is an interface of Windows\n  \
             use ioengine=libaio or io_uring, with direct=1"
        );
        let (_, problems) = last_section("[j]\nioengine=external:/opt/engine.so\n");
        assert!(problems.contains("structures inside fio"), "{problems}");
    }

    #[test]
    fn a_value_is_not_taken_for_a_suggestion() {
        let problems = last_section("[j]\nrw=did you mean\n").1;
        assert!(problems.contains("\n  allowed: read, write"), "{problems}");
    }

    #[test]
    fn options_that_are_not_built_may_ask_for_nothing() {
        let neutral = "verify=0\nexperimental_verify=0\nlatency_run=0\nverify_only=0\nflow=0\n";
        assert_eq!(last_section(&format!("[j]\n{neutral}")).1, "");
        assert_eq!(last_section("[global]\nioengine=io_uring\ncdb_len=6\n[j]\ncdb_len=0\n").1, "");
        assert!(
            last_section("[j]\nioengine=io_uring\ncdb_len=6\n")
                .1
                .contains("cdb_len: known to fio, not built into fiord yet")
        );
        assert!(
            last_section("[j]\nverifysort=0\n").1.contains("warning: verifysort: accepted without effect")
        );
    }

    #[test]
    fn what_fio_reads_otherwise_than_it_seems_is_a_warning() {
        let (job, problems) = last_section("[j]\nbs=4KiB\nsize=1.5g\nruntime=10min\n");
        assert_eq!(job.blocks.bs, all(4000));
        assert_eq!(problems.matches("warning:").count(), 3, "{problems}");
        assert!(!problems.contains("error:"), "{problems}");
    }

    #[test]
    fn kb_base_holds_for_a_section_but_on_the_command_line_from_where_it_stands() {
        assert_eq!(last_section("[j]\nbs=8k\nkb_base=1000\n").0.blocks.bs, all(8000));
        assert_eq!(last_section("[global]\nkb_base=1000\n[j]\nbs=8k\n").0.blocks.bs, all(8000));
        let of_arguments = |args: &[&str]| {
            let parsed = read_with(args, &[]).expect("a job");
            resolve_job(parsed.sections.last().expect("a section"), &ENGINES).0.blocks.bs
        };
        assert_eq!(of_arguments(&["--name=j", "--bs=4k", "--kb_base=1000"]), all(4096));
        assert_eq!(of_arguments(&["--name=j", "--kb_base=1000", "--bs=4k"]), all(4000));
    }

    #[test]
    fn a_first_value_left_out_changes_nothing() {
        let (job, problems) = last_section(
            "[j]\nruntime=5\nruntime=,3\nnumjobs=,3\nthread=1\nthread=,0\ndirect=,1\nsize=,64k\nbs=,8k\n",
        );
        assert_eq!((job.time.runtime, job.general.numjobs), (Seconds { us: 5_000_000 }, 1));
        assert!(job.process.thread.0 && !job.access.direct);
        assert_eq!(job.amount.size, Some(Size::Bytes(65_536)), "of a size the last value counts");
        assert_eq!(job.blocks.bs.read.zip(job.blocks.bs.write), Some((Bytes(4096), Bytes(8192))));
        assert_eq!(
            problems.matches("only the first value is used, and it is empty").count(),
            4,
            "{problems}"
        );
        for wrong in ["direct=,3", "iodepth=,0", "nice=,30", "numjobs=,x", "numjobs=,"] {
            assert!(last_section(&format!("[j]\n{wrong}\n")).1.contains("error:"), "{wrong}");
        }
    }

    #[test]
    fn an_option_that_only_modifies_another_is_a_warning() {
        let alone = last_section("[j]\nthreads=1\ndir=d\nblock=4096\n").1;
        assert_eq!(alone.matches("warning:").count(), 2, "what is the default asks for nothing: {alone}");
        assert!(alone.contains("threads: accepted without effect: threads only modifies profile"), "{alone}");
    }

    #[test]
    fn what_turns_on_or_needs_something_that_is_not_built_is_refused_by_name() {
        let said = last_section("[j]\nioengine=io_uring\nread_mode=verify\n").1;
        assert!(said.contains("error: read_mode: known to fio, not built into fiord yet"), "{said}");
        assert!(last_section("[j]\nverify_offset=4\n").1.contains("4 is below 48"));
        assert_eq!(last_section("[j]\nverify=0\nverify_fatal=0\n").1, "");
    }

    #[test]
    fn engines_go_by_the_names_that_fio_takes() {
        for name in ["aio", "aiox", "linuxaio", "linuxaio_2", "libaio:x"] {
            let (job, problems) = last_section(&format!("[j]\nioengine={name}\nlibaio_vectored=1\n"));
            assert_eq!((job.queue.ioengine, problems.as_str()), (EngineName::Libaio, ""), "{name}");
        }
        for name in ["nosuch", "libaiox", "cpp_null", "libcufile", "psync,x"] {
            let said = last_section(&format!("[j]\nioengine={name}\n")).1;
            assert!(said.contains(&format!("engine {name} not loadable")), "{name}: {said}");
        }
    }

    #[test]
    fn private_options_reach_their_engine() {
        let (job, problems) = last_section("[global]\nioengine=io_uring\nfixedbufs\n[j]\nforce_async=3\n");
        assert_eq!(problems, "");
        assert!(job.io_uring.fixedbufs.is_some_and(|flag| flag.0));
        assert_eq!(job.io_uring.force_async, Some(3));
        // Inherited ones of another engine are ignored, as in fio.
        assert_eq!(last_section("[global]\nioengine=libaio\nnowait=1\n[j]\nioengine=null\n").1, "");
        // The options of an engine that is not built in are checked, and the engine refused.
        let (_, problems) = last_section("[j]\nioengine=net\nport=70000\nhostname=h\n");
        assert!(problems.contains("port: 70000 is above 65535"), "{problems}");
        assert_eq!(problems.matches("error:").count(), 2, "{problems}");
    }

    #[test]
    fn the_program_has_options_of_its_own() {
        let parsed = read_with(&["--section=a", "--section=b", "--eta-interval=200ms", "--name=j"], &[]);
        let settings = parsed.expect("a job").program;
        let (program, given, problems) = resolve_program(&settings);
        assert_eq!(given.all(ProgramOptions::section).count(), 2);
        assert_eq!(program.terse_version, 3);
        assert!(texts(&problems).contains("eta-interval: the time is too short, at least 250ms is needed"));
    }
}

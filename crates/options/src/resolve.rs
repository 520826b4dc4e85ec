//! From settings to typed values: what is in force, and everything that is wrong with it.
//!
//! Invariant: every problem of the settings is reported, not the first; the last setting of an option wins.

use crate::problem::{Problem, ProblemKind};
use crate::section::{Globals, Section, Setting};
use crate::table::job::{Files, General, JobOptions, Queue};
use crate::table::program::ProgramOptions;
use crate::table::{Applied, OptionSet, Scope, Spec, Status};
use crate::value::{EngineName, KbBase, Note, Reading, Value};

/// What was given, before resolving: the settings in force, each with its spelling, text and place.
#[derive(Debug, Clone, Default)]
pub struct Given<'a> {
    /// In the order they were given: of each option the last one, of those that add up all.
    settings: Vec<&'a Setting>,
}

/// Options of which all values count.
const ADD_UP: [&Spec; 5] = [
    Files::filename,
    ProgramOptions::client,
    ProgramOptions::fail_if,
    ProgramOptions::metrics,
    ProgramOptions::section,
];

impl<'a> Given<'a> {
    /// What is in force of these settings.
    pub fn of(settings: &'a [Setting]) -> Given<'a> {
        let mut given = Given::default();
        settings.iter().for_each(|setting| given.add(setting));
        given
    }

    fn add(&mut self, setting: &'a Setting) {
        if !setting.spec.is_one_of(&ADD_UP) {
            self.settings.retain(|earlier| earlier.spec != setting.spec);
        }
        self.settings.push(setting);
    }

    /// The setting in force for the option: the last one given.
    pub fn get(&self, option: &Spec) -> Option<&'a Setting> {
        self.settings.iter().rev().find(|setting| setting.spec == option).copied()
    }

    /// Which of these options was given last.
    pub fn last_of(&self, options: &[&'static Spec]) -> Option<&'static Spec> {
        self.settings.iter().rev().map(|setting| setting.spec).find(|spec| spec.is_one_of(options))
    }

    /// Every setting in force of the option, in order (`--section` may be repeated).
    pub fn all<'b>(&'b self, option: &'b Spec) -> impl Iterator<Item = &'a Setting> + 'b {
        self.iter().filter(move |setting| setting.spec == option)
    }

    /// Every setting in force, inherited ones first, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a Setting> {
        self.settings.iter().copied()
    }
}

/// Resolves sections, one after the other. What several of them inherit is resolved once.
#[derive(Debug)]
pub struct Resolver<'a> {
    /// The names of the engines built into this program.
    engines: Vec<EngineName>,
    /// What the section before inherits, resolved.
    globals: Globals,
    inherited: Resolution<'a, JobOptions>,
}

impl<'a> Resolver<'a> {
    /// A resolver of sections in a program with these engines.
    pub fn new(engines: &[EngineName]) -> Resolver<'a> {
        Resolver { engines: engines.to_vec(), globals: Globals::default(), inherited: Resolution::default() }
    }

    /// Resolves a section: applies what it inherits, then its own settings, on top of the defaults.
    ///
    /// Problems of values come in the order of the settings. Those of inherited values are reported for the first of the
    /// sections that inherit them.
    pub fn job(&mut self, section: &'a Section) -> (JobOptions, Given<'a>, Vec<Problem>) {
        let engines = self.engines.as_slice();
        let added = section.global.since(&self.globals).unwrap_or_else(|| {
            self.inherited = Resolution::default();
            &section.global
        });
        added.iter().for_each(|setting| self.inherited.apply(setting, engines));
        self.globals = section.global.clone();
        let problems = std::mem::take(&mut self.inherited.problems);
        let mut resolution = Resolution { problems, ..self.inherited.clone() };
        section.own.iter().for_each(|setting| resolution.apply(setting, engines));
        let (job, given, mut problems) = resolution.finish();
        let engine = job.queue.ioengine;
        problems.extend(section.own.iter().filter_map(|setting| foreign(setting, engine)));
        if let Some(setting) = given.get(Queue::ioengine).filter(|_| !engines.contains(&engine)) {
            let (kind, reason, remedy) = missing(engine, engines);
            let message = format!("engine {engine} not loadable: {reason}");
            let place = setting.value_place.clone();
            problems.push(Problem::error(kind, place, Queue::ioengine, message, remedy));
        }
        (job, given, problems)
    }
}

/// Resolves one section; see [`Resolver::job`].
pub fn resolve_job<'a>(
    section: &'a Section,
    engines: &[EngineName],
) -> (JobOptions, Given<'a>, Vec<Problem>) {
    Resolver::new(engines).job(section)
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
pub fn resolve_program(settings: &[Setting]) -> (ProgramOptions, Given<'_>, Vec<Problem>) {
    let mut resolution = Resolution::<ProgramOptions>::default();
    settings.iter().for_each(|setting| resolution.apply(setting, &[]));
    let (program, given, mut problems) = resolution.finish();
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

/// Options while settings are applied to them, on top of the defaults.
#[derive(Debug, Clone, Default)]
struct Resolution<'a, T> {
    set: T,
    given: Given<'a>,
    /// The options that are not carried out, and whose value in force is not the default.
    not_read: Vec<&'static Spec>,
    /// The meaning of suffixes from here on. In a job file `kb_base` comes before the other options of its section, as
    /// fio reads it there.
    kb_base: KbBase,
    problems: Vec<Problem>,
}

impl<'a, T: OptionSet> Resolution<'a, T> {
    /// Applies one more setting, where these engines are built in.
    fn apply(&mut self, setting: &'a Setting, engines: &[EngineName]) {
        let spec = setting.spec;
        self.given.add(setting);
        self.not_read.retain(|earlier| *earlier != spec);
        let mut reading = Reading { kb_base: self.kb_base, ..Reading::default() };
        // Options of an engine that is not built in belong to no set.
        let applied = self.set.apply(spec, setting.value.as_deref(), &mut reading).unwrap_or_else(|| {
            (spec.parse)(setting.value.as_deref(), &mut reading).map(|()| Applied::Neutral)
        });
        match applied {
            Err(why) => self.problems.push(value_problem(setting, why, &reading, engines)),
            Ok(Applied::NotRead) => self.not_read.push(spec),
            Ok(Applied::Set | Applied::Neutral) => {}
        }
        self.problems.extend(reading.notes.into_iter().map(|note| of_note(setting, note)));
        if spec == General::kb_base
            && let Some(Ok(base)) = setting.text().map(|text| KbBase::parse(text, &mut Reading::default()))
        {
            self.kb_base = base;
        }
    }

    /// What the settings come to.
    fn finish(mut self) -> (T, Given<'a>, Vec<Problem>) {
        let not_read = self.not_read.iter().filter_map(|option| self.given.get(option));
        self.problems.extend(not_read.filter_map(|setting| not_read_problem(setting, &self.given)));
        (self.set, self.given, self.problems)
    }
}

/// A value that is read otherwise than it seems.
fn of_note(setting: &Setting, note: Note) -> Problem {
    let (kind, remedy) = match note.is_decimal_unit {
        true => (ProblemKind::DecimalUnit, "write k, m or g for powers of 1024"),
        false => (ProblemKind::ReadDifferently, ""),
    };
    Problem::error(kind, setting.value_place.clone(), setting.spec, note.sentence, remedy).as_warning()
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
fn not_read_problem(setting: &Setting, given: &Given<'_>) -> Option<Problem> {
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
        Status::Dormant(other) if given.get(other).is_some() => None,
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

#[cfg(test)]
mod tests {
    use super::{Given, Resolver, resolve_job, resolve_program};
    use crate::grammar::testing::{ENGINES, read_text, read_with, texts};
    use crate::section::Setting;
    use crate::table::job::{Blocks, Files, JobOptions};
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

    /// As if each section was the only one.
    #[test]
    fn what_sections_share_is_resolved_once_and_to_the_same() {
        let text = "[global]\nbs=4k\nioengine=io_uring\nverifysort=0\niodepth=x\n[a]\nbs=,8k\nverifysort=1\n[b]\nrw=raed\n\
                    [global]\nbs=,,16k\nrw=write\nkb_base=1000\nfilename=f\n[c]\nbs=1k\n[d]\nfilename=g\nioengine=rbd\n";
        let mut parsed = read_text(text).expect(text);
        // Sections of another list, and then of the first one again.
        let others = read_text("[global]\nbs=2k\niodepth=4\n[e]\n").expect("a job").sections;
        parsed.sections.splice(2..2, others);
        let mut resolver = Resolver::new(&ENGINES);
        let mut said = Vec::new();
        for section in &parsed.sections {
            let (alone, given_alone, all) = resolve_job(section, &ENGINES);
            let (together, given, problems) = resolver.job(section);
            assert_eq!(together, alone, "{:?}", section.name);
            let places =
                |given: &Given<'_>| given.iter().map(|setting| setting.place.clone()).collect::<Vec<_>>();
            assert_eq!(places(&given), places(&given_alone), "{:?}", section.name);
            assert!(problems.iter().all(|problem| all.contains(problem)), "{problems:?}");
            said.extend(problems);
            assert!(all.iter().all(|problem| said.contains(problem)), "{all:?}");
        }
        let inherited = texts(&said).matches("\"x\" is not a number").count();
        assert_eq!(inherited, 2, "once for each list it was resolved in");
        assert_eq!(texts(&said).matches("verifysort: accepted").count(), 3, "not where it is the default");
    }

    #[test]
    fn settings_that_were_superseded_are_not_given_but_for_those_that_add_up() {
        let text = "[global]\nfilename=f\nbs=4k\nrw=read\n[j]\nbs=,8k\nfilename=g\n";
        let parsed = read_text(text).expect(text);
        let given = resolve_job(&parsed.sections[0], &ENGINES).1;
        let shown: Vec<&str> = given.iter().filter_map(Setting::text).collect();
        assert_eq!(shown, ["read", "f", ",8k", "g"]);
        assert_eq!(given.all(Files::filename).count(), 2);
        assert_eq!(given.last_of(&[Blocks::bs, Files::filename]), Some(Files::filename));
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
        // What a section before has set is read already.
        assert_eq!(last_section("[global]\nbs=8k\n[j]\nkb_base=1000\n").0.blocks.bs, all(8192));
        assert_eq!(last_section("[global]\nbs=8k\n[global]\nkb_base=1000\n[j]\n").0.blocks.bs, all(8192));
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
        for name in ["nosuch", "libaiox", "cpp_null", "libhipfile", "psync,x"] {
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

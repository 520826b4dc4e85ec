//! From settings to typed values: what is in force, and everything that is wrong with it.
//!
//! Invariant: every problem of the settings is reported, not the first; the last setting of an option wins.

use crate::place::{Problem, Source};
use crate::section::Setting;
use crate::spec::Status;
use crate::table::{Applied, OptionSet};
use crate::value::{KbBase, Reading, Value};

/// What was given, before resolving: each setting with its spelling, text and place.
#[derive(Debug, Clone, Default)]
pub struct Given {
    settings: Vec<Setting>,
}

impl Given {
    /// The setting in force for the option of this canonical name: the last one given.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().rev().find(|setting| setting.spec.name == name)
    }

    /// Every setting of the option of this canonical name, in order (`--section` may be repeated).
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Setting> {
        self.settings.iter().filter(move |setting| setting.spec.name == name)
    }

    /// Every setting, inherited ones first, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter()
    }
}

/// Applies settings in order on top of the defaults.
pub(crate) fn resolve_settings<T: OptionSet>(settings: Vec<Setting>) -> (T, Given, Vec<Problem>) {
    let mut set = T::default();
    let mut problems = Vec::new();
    let bases = kb_bases(&settings);
    for (index, (setting, kb_base)) in settings.iter().zip(bases).enumerate() {
        let mut reading = Reading { kb_base, ..Reading::default() };
        let overridden = settings[index + 1..].iter().any(|later| later.spec.is(setting.spec));
        match set.apply(setting, &mut reading) {
            Some(Err(why)) => problems.push(value_problem(setting, why)),
            Some(Ok(Applied::NotRead)) if !overridden => {
                problems.extend(not_read_problem(setting, &settings))
            }
            // Options of an engine that is not built in belong to no set.
            None => {
                let checked = (setting.spec.check)(setting.value.as_deref());
                problems.extend(checked.err().map(|why| value_problem(setting, why)));
            }
            Some(Ok(_)) => {}
        }
        let place = &setting.value_place;
        let notes = reading.notes.into_iter();
        problems.extend(notes.map(|note| Problem::warning(place.clone(), setting.spec.name, note, "")));
    }
    (set, Given { settings }, problems)
}

/// A value that is not one of the option's.
fn value_problem(setting: &Setting, why: String) -> Problem {
    let allowed = match setting.spec.name {
        // Not the engines fio has elsewhere.
        "ioengine" => crate::engine::built().join(", "),
        _ => setting.spec.allowed(),
    };
    let remedy = match why.contains("did you mean") || allowed.is_empty() {
        true => String::new(),
        false => format!("allowed: {allowed}"),
    };
    Problem::error(setting.value_place.clone(), setting.spec.name, why, remedy)
}

/// An option that asks for something fiord does not do.
fn not_read_problem(setting: &Setting, settings: &[Setting]) -> Option<Problem> {
    let name = setting.spec.name;
    match setting.spec.status {
        Status::Pending(why) => {
            let message = format!("known to fio, not built into fiord yet: {why}");
            Some(Problem::error(setting.place.clone(), name, message, ""))
        }
        Status::Ignored(why) => {
            let message = format!("accepted without effect: {why}");
            Some(Problem::warning(setting.place.clone(), name, message, ""))
        }
        // Where the other one is given, that one is refused; an engine is refused where it is chosen.
        Status::Dormant(other) if other == "ioengine" || settings.iter().any(|given| fits(given, other)) => {
            None
        }
        Status::Dormant(other) => {
            let message = format!("accepted without effect: {name} only adds to {other}, which is not given");
            Some(Problem::warning(setting.place.clone(), name, message, ""))
        }
        Status::Ready => None,
    }
}

/// Whether a setting is of the option called `name`, in which `*` stands for any text.
fn fits(setting: &Setting, name: &str) -> bool {
    let given = setting.spec.name;
    let adds = matches!(setting.spec.status, Status::Dormant(other) if other == name);
    match name.split_once('*') {
        Some((prefix, suffix)) => given.starts_with(prefix) && given.ends_with(suffix) && !adds,
        None => given == name,
    }
}

/// The meaning of suffixes each setting is read under. fio reads `kb_base` before the other options of a job file's
/// section; on the command line it counts from where it stands.
fn kb_bases(settings: &[Setting]) -> Vec<KbBase> {
    let given = |setting: &Setting| match setting.spec.name {
        "kb_base" => KbBase::parse(setting.value.as_deref()?, &mut Reading::default()).ok(),
        _ => None,
    };
    let mut base = KbBase::default();
    let mut bases = Vec::with_capacity(settings.len());
    for (index, setting) in settings.iter().enumerate() {
        let starts_file = matches!(setting.place.source, Source::File(_))
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
    use crate::job::{JobOptions, resolve};
    use crate::program::resolve_program;
    use crate::testing::{read_text, read_with, texts};
    use crate::value::{Bytes, PerDirection, Seconds, Size};

    /// The last section of a job file: its options and the problems as text.
    fn last_section(text: &str) -> (JobOptions, String) {
        let parsed = read_text(text).expect(text);
        let (job, _, problems) = resolve(parsed.sections.last().expect("a section"));
        (job, texts(&problems))
    }

    fn all(bytes: u64) -> PerDirection<Bytes> {
        PerDirection { read: Some(Bytes(bytes)), write: Some(Bytes(bytes)), trim: Some(Bytes(bytes)) }
    }

    #[test]
    fn own_settings_come_on_top_of_inherited_ones() {
        let (job, problems) = last_section("[global]\nbs=16k\niodepth=8\n[j]\nbs=,8k\nruntime=5m\n");
        assert_eq!(problems, "");
        assert_eq!((job.iodepth, job.runtime), (8, Seconds { us: 300_000_000 }));
        assert_eq!(job.bs, PerDirection { read: Some(Bytes(16384)), ..all(8192) });
        let (job, _) = last_section("[j]\n");
        assert_eq!(job, JobOptions::default());
    }

    #[test]
    fn every_problem_is_reported_with_its_place() {
        let (_, problems) = last_section("[j]\nbs=x\nrwmixread=101\nrw=raed\nverify=md5\nioengine=rbd\n");
        let expected = "\
j.fio:2:4: error: bs: \"x\" is not a number
  allowed: 1 or more
j.fio:3:11: error: rwmixread: 101 is above 100
  allowed: 0 to 100
j.fio:4:4: error: rw: \"raed\" is not one of the values allowed; did you mean \"read\"?
j.fio:5:1: error: verify: known to fio, not built into fiord yet: data is not verified yet
j.fio:6:10: error: ioengine: engine rbd not loadable: known to fio, not built into fiord yet
  allowed: sync, psync, vsync, pvsync, pvsync2, mmap, libaio, io_uring, null";
        assert_eq!(problems, expected);
    }

    #[test]
    fn options_that_are_not_built_may_ask_for_nothing() {
        let neutral =
            "verify=0\nexperimental_verify=0\nzonemode=none\nlatency_run=0\nverify_only=0\nflow=0\n";
        assert_eq!(last_section(&format!("[j]\n{neutral}")).1, "");
        assert_eq!(last_section("[global]\nverify=md5\n[j]\nverify=0\n").1, "");
        assert!(last_section("[j]\nverify_only\n").1.contains("verify_only: known to fio"));
        assert!(
            last_section("[j]\nverifysort=0\n").1.contains("warning: verifysort: accepted without effect")
        );
    }

    #[test]
    fn what_fio_reads_otherwise_than_it_seems_is_a_warning() {
        let (job, problems) = last_section("[j]\nbs=4KiB\nsize=1.5g\nruntime=10min\n");
        assert_eq!(job.bs, all(4000));
        assert_eq!(problems.matches("warning:").count(), 3, "{problems}");
        assert!(!problems.contains("error:"), "{problems}");
    }

    #[test]
    fn kb_base_holds_for_a_section_but_on_the_command_line_from_where_it_stands() {
        assert_eq!(last_section("[j]\nbs=8k\nkb_base=1000\n").0.bs, all(8000));
        assert_eq!(last_section("[global]\nkb_base=1000\n[j]\nbs=8k\n").0.bs, all(8000));
        let of_arguments = |args: &[&str]| {
            let parsed = read_with(args, &[]).expect("a job");
            resolve(parsed.sections.last().expect("a section")).0.bs
        };
        assert_eq!(of_arguments(&["--name=j", "--bs=4k", "--kb_base=1000"]), all(4096));
        assert_eq!(of_arguments(&["--name=j", "--kb_base=1000", "--bs=4k"]), all(4000));
    }

    #[test]
    fn a_first_value_left_out_changes_nothing() {
        let (job, problems) = last_section(
            "[j]\nruntime=5\nruntime=,3\nnumjobs=,3\nthread=1\nthread=,0\ndirect=,1\nsize=,64k\nbs=,8k\n",
        );
        assert_eq!((job.runtime, job.numjobs), (Seconds { us: 5_000_000 }, 1));
        assert!(job.thread.0 && !job.direct);
        assert_eq!(job.size, Some(Size::Bytes(65_536)), "of a size the last value counts");
        assert_eq!(job.bs.read.zip(job.bs.write), Some((Bytes(4096), Bytes(8192))));
        assert_eq!(problems.matches("the first value is taken, and it is left out").count(), 4, "{problems}");
        for wrong in ["direct=,3", "iodepth=,0", "nice=,30", "numjobs=,x", "numjobs=,"] {
            assert!(last_section(&format!("[j]\n{wrong}\n")).1.contains("error:"), "{wrong}");
        }
    }

    #[test]
    fn an_option_that_only_adds_to_another_says_so() {
        let alone = last_section("[j]\nreplay_no_stall=1\nthreads=1\nzoneskip=4k\n").1;
        assert_eq!(alone.matches("warning:").count(), 3, "{alone}");
        assert!(alone.contains("threads: accepted without effect: threads only adds to profile"), "{alone}");
        assert_eq!(
            last_section("[j]\nreplay_no_stall=0\nzoneskip=0\n").1,
            "",
            "what is the default asks for nothing"
        );
        let both = last_section("[j]\nread_iolog=x\nreplay_no_stall=1\n").1;
        assert!(both.contains("error: read_iolog") && !both.contains("replay_no_stall"), "{both}");
        let many = last_section("[j]\nioengine=libaio\ncmdprio_percentage=5\ncmdprio=3\n").1;
        assert!(many.contains("error: cmdprio_percentage") && !many.contains("cmdprio:"), "{many}");
        let one = last_section("[j]\nioengine=libaio\ncmdprio=3\n").1;
        assert!(one.contains("cmdprio: accepted without effect"), "{one}");
    }

    #[test]
    fn what_turns_on_or_needs_something_that_is_not_built_is_refused_by_name() {
        let refused = [
            "verify=md5",
            "verify_pattern=0xff",
            "do_verify=0",
            "verify_fatal=1",
            "verify_interval=512",
            "verify_offset=48",
            "verify_backlog=4",
            "verify_async=2",
            "verify_dump=1",
            "verify_state_load=1",
            "verify_state_save=0",
            "verify_header_seed=0",
            "experimental_verify=1",
            "zonesize=4k",
        ];
        for setting in refused {
            let (name, _) = setting.split_once('=').expect("a value");
            let said = last_section(&format!("[j]\n{setting}\n")).1;
            assert!(said.contains(&format!("error: {name}: known to fio, not built")), "{setting}: {said}");
        }
        assert!(last_section("[j]\nverify_offset=4\n").1.contains("4 is below 48"));
        assert_eq!(last_section("[j]\nverify=0\nverify_fatal=0\nzonesize=0\n").1, "");
    }

    #[test]
    fn engines_go_by_the_names_that_fio_takes() {
        for name in ["aio", "aiox", "linuxaio", "linuxaio_2", "libaio:x"] {
            let (job, problems) = last_section(&format!("[j]\nioengine={name}\nlibaio_vectored=1\n"));
            assert_eq!((job.ioengine.0, problems.as_str()), ("libaio", ""), "{name}");
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
        // Inherited ones of another engine are passed over, as fio does.
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
        assert_eq!(given.all("section").count(), 2);
        assert_eq!(program.terse_version, 3);
        assert!(texts(&problems).contains("eta-interval: the time is too short, at least 250ms is needed"));
    }
}

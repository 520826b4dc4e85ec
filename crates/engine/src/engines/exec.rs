//! exec: a program of the user's in place of I/O; what is counted is the time that passes meanwhile.
//!
//! Invariant: the program is given its arguments as they are, never through a shell, and is gone when the engine is.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fiord_options::engine;
use fiord_options::job::JobOptions;
use fiord_plan::{
    Cycle, EngineDescriptor, EngineName, EngineOutput, EngineSettings, EngineTests, Example, FileIndex,
    FileUse, MissingSetting, Op, Tested,
};
use fiord_sys::process::Program;
use fiord_sys::{clock, signal};

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, Executed, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, JobOutline, Setup, Visitor};

/// The time that one I/O stands for, as in fio.
const TICK_NS: u64 = 100_000_000;

/// Interval between two looks at the program.
const LOOK_NS: u64 = 5_000_000;

/// The longest grace period after a signal that requests the end of the run.
const GRACE_NS_AFTER_SIGNAL: u64 = 1_000_000_000;

/// The engine.
#[derive(Debug)]
pub struct Exec;

/// Its settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    program: OsString,
    arguments: OsString,
    grace_ns: u64,
    redirects: bool,
}

impl Settings {
    fn of(options: &JobOptions) -> Settings {
        let own = &options.exec;
        let text = |text: &Option<fiord_options::value::Text>| {
            text.as_ref().map(|text| text.0.clone()).unwrap_or_default()
        };
        Settings {
            program: text(&own.program),
            arguments: text(&own.arguments),
            grace_ns: u64::from(own.grace_time) * 1_000_000_000,
            redirects: own.std_redirect,
        }
    }

    fn missing(&self) -> Option<MissingSetting> {
        self.program.is_empty().then_some(MissingSetting {
            option: engine::Exec::program,
            message: "ioengine=exec needs a program to run",
            remedy: "for example program=/usr/bin/stress-ng",
        })
    }

    fn outputs(&self, job: &OsStr) -> Vec<EngineOutput> {
        let of = |suffix: &str| {
            let mut path = job.to_os_string();
            path.push(suffix);
            let option = engine::Exec::std_redirect;
            EngineOutput { path: PathBuf::from(path), option, is_kept: false, is_given: false }
        };
        if self.redirects { vec![of(".stdout"), of(".stderr")] } else { Vec::new() }
    }
}

/// Its tests, with programs that end, fail, and do not end when they are asked to.
const TESTS: &str = "crates/fiord/tests/engine_calls.rs";

const TESTED: EngineTests = EngineTests {
    error: Tested::By(TESTS, "a_program_that_cannot_be_started_fails_its_job"),
    gone: Tested::Never("it has no target; the end of its program is the end of its job"),
    stuck: Tested::By(TESTS, "an_interrupted_run_leaves_no_program_behind"),
    ..EngineTests::without_io(Tested::By(
        TESTS,
        "a_program_is_given_its_arguments_as_they_are_and_ends_its_job",
    ))
};

impl EngineDefinition for Exec {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Untouched,
        settings: |options| EngineSettings::new(Settings::of(options)),
        cycle: Some(|_| Cycle::default()),
        missing: |settings| settings.get::<Settings>()?.missing(),
        outputs: |settings, job| {
            settings.get::<Settings>().map(|settings| settings.outputs(job)).unwrap_or_default()
        },
        explain: |_, errno| match errno {
            libc::ENOENT => Some("program= is a path, or a name that is found in PATH"),
            libc::EACCES => Some("the file that program= names must be executable (chmod +x)"),
            libc::ENOEXEC => Some(
                "the file that program= names is not a program, or a script without #! in its first line",
            ),
            _ => None,
        },
        tests: Some(TESTED),
        example: Some(Example::plain(
            "A program that runs beside reads, and is asked to end after a second.",
            "fiord --name=beside --ioengine=exec --program=sleep --arguments=60 --runtime=1s \\\n  \
             --name=reads --ioengine=psync --rw=randread --bs=4k --size=16m --runtime=1s --time_based",
        )),
        ..EngineDescriptor::synchronous(EngineName::Exec, "a program of the user's, no I/O of its own")
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        visitor.synchronous(Ok(BoxedSync::new(ExecEngine {
            arguments: arguments(&settings.arguments, job),
            settings: settings.clone(),
            is_timed: job.runtime_ns.is_some(),
            outputs: [None, None],
            running: None,
            arena,
        })))
    }
}

/// The arguments, separated by blanks, with `%r` and `%n` replaced.
fn arguments(text: &OsStr, job: &JobOutline) -> Vec<OsString> {
    let seconds = (job.runtime_ns.unwrap_or(0) / 1_000_000_000).to_string();
    let words = text.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let replaced = words.map(|word| {
        let mut bytes = Vec::with_capacity(word.len());
        let mut rest = word;
        while let Some((first, after)) = rest.split_first() {
            let value = match (first, after.first()) {
                (b'%', Some(b'r')) => Some(seconds.as_bytes()),
                (b'%', Some(b'n')) => Some(job.name.as_bytes()),
                _ => None,
            };
            match value {
                Some(value) => bytes.extend_from_slice(value),
                None => bytes.push(*first),
            }
            rest = if value.is_some() { &after[1..] } else { after };
        }
        OsString::from_vec(bytes)
    });
    replaced.collect()
}

/// The engine, set up.
#[derive(Debug)]
struct ExecEngine<'arena> {
    settings: Settings,
    arguments: Vec<OsString>,
    /// Whether time ends the job: it then lasts that long, whenever the program ends.
    is_timed: bool,
    outputs: [Option<File>; 2],
    running: Option<Program>,
    arena: Arena<'arena>,
}

impl ExecEngine<'_> {
    /// Whether the program has ended.
    fn has_ended(&mut self) -> bool {
        self.running.as_mut().is_none_or(|program| program.ended().is_ok_and(|status| status.is_some()))
    }

    /// Waits until this time for the end of the program, or of the run. `true`: the program has ended.
    fn wait_until_ns(&mut self, end_ns: u64, heeds_signals: bool) -> bool {
        loop {
            let now_ns = clock::monotonic_ns();
            let is_over = now_ns >= end_ns || (heeds_signals && signal::is_stop_pending());
            if self.has_ended() || is_over {
                return self.has_ended();
            }
            clock::sleep_until_ns(end_ns.min(now_ns + LOOK_NS));
        }
    }

    /// Asks the program to end, and kills it after its grace period.
    fn end(&mut self) {
        if self.has_ended() {
            self.running = None;
            return;
        }
        let limit_ns = if signal::is_stop_pending() { GRACE_NS_AFTER_SIGNAL } else { u64::MAX };
        let grace_ns = self.settings.grace_ns.min(limit_ns);
        if let Some(program) = &self.running {
            // An error means that it has ended.
            let _ = program.terminate();
        }
        self.wait_until_ns(clock::monotonic_ns().saturating_add(grace_ns), false);
        if let Some(program) = self.running.take() {
            let _ = program.kill();
        }
    }
}

impl<'arena> Engine<'arena> for ExecEngine<'arena> {
    fn attach(&mut self, _file: FileIndex, _fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn open(&mut self, _file: FileIndex, _target: &NamedTarget<'_>) -> io::Result<()> {
        let [output, error] = std::mem::take(&mut self.outputs);
        self.running = Some(Program::start(&self.settings.program, &self.arguments, output, error)?);
        Ok(())
    }

    fn detach(&mut self, _file: FileIndex) {
        self.end();
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }

    fn take_output(&mut self, number: usize, file: File) {
        self.outputs[number] = Some(file);
    }

    fn executed(&self) -> Executed {
        if self.running.is_none() && !self.is_timed { Executed::Last } else { Executed::Io }
    }
}

impl<'arena> SyncEngine<'arena> for ExecEngine<'arena> {
    fn execute(&mut self, op: Op, _slot: &mut Slot<'arena>) -> Outcome {
        let end_ns = clock::monotonic_ns() + TICK_NS;
        if self.running.is_some() && self.wait_until_ns(end_ns, true) {
            self.running = None;
        }
        if self.is_timed && !signal::is_stop_pending() {
            clock::sleep_until_ns(end_ns);
        }
        Outcome::whole(&op)
    }
}

impl Drop for ExecEngine<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_separated_by_blanks_and_two_words_are_replaced() {
        let job = JobOutline {
            name: OsString::from("job"),
            runtime_ns: Some(2_500_000_000),
            ..JobOutline::plain(1)
        };
        let of = |text: &str| arguments(OsStr::new(text), &job);
        assert_eq!(
            of("a  %n-%r %% \"x y\" $HOME;ls %z %"),
            ["a", "job-2", "%%", "\"x", "y\"", "$HOME;ls", "%z", "%"]
        );
        assert_eq!(of(" "), Vec::<OsString>::new());
    }
}

//! `fiord record`: the calls of an application on files, by the kernel's tracepoints.
//!
//! Invariant: the application is neither stopped nor changed, and what the kernel was told to record is taken back at the end.
//! Contents are not seen.

mod events;
mod kept;
mod sink;
mod tracker;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::Duration;

use fiord_model::{LeftOut, RecordingEnd, RecordingHead};
use fiord_profile::tracepoints::Page;
use fiord_report::path::shown;
use fiord_stats::OrderBy;
use fiord_sys::channel;
use fiord_sys::descriptors::{self, Opened};
use fiord_sys::errno::error_text;
use fiord_sys::open_names::OpenNames;
use fiord_sys::tracefs::{TraceError, TraceInstance, TracePages};
use fiord_sys::{clock, process, processes, signal, thread};

use self::events::{CALLS, Event, Formats, Kind, TASKS, end_filter, named_call};
use self::sink::Sink;
use self::tracker::{Processes, Tracker};
use crate::arguments::CommandError;

pub(crate) use self::kept::Totals;
pub(crate) use self::sink::{Form, words};

/// Room for events on each processor: some two hundred thousand.
const BUFFER_BYTES: u64 = 12 << 20;
/// Events that are younger than this when pages are taken may have others before them that are not in the pages yet.
const YOUNG_NS: u64 = 1_000_000;
/// The longest pause between two takings: buffers do not fill in it.
const PAUSE_MAX_NS: u64 = 20_000_000;
/// Where the kernel does not tell names, files that were opened are asked for at once, and these pauses, of so many parts of
/// the time that one spends on events, are between two takings.
const PAUSE_MIN_NS: u64 = 100_000;
const PAUSE_PARTS: u64 = 6;
/// How long nothing happens before the ends of processes are looked for.
const IDLE: Duration = Duration::from_millis(50);

/// Whose calls are recorded.
pub(crate) enum Source {
    /// Of processes that run, and of what they start.
    Processes(Vec<i32>),
    /// Of a command, from its first instruction on.
    Command(Vec<OsString>),
}

/// How it is recorded.
pub(crate) struct Settings {
    /// How long at most.
    pub(crate) time: Option<Duration>,
    /// The form of the output.
    pub(crate) form: Form,
    /// What the output says first.
    pub(crate) head: RecordingHead,
}

/// What was recorded.
pub(crate) struct Outcome {
    pub(crate) totals: Totals,
    pub(crate) end: RecordingEnd,
    pub(crate) status: Option<ExitStatus>,
    /// Why the rest could not be written. What was until then is a recording without an end.
    pub(crate) failure: Option<std::io::Error>,
}

/// The processes of this machine.
struct Proc;

impl Processes for Proc {
    fn opened(&self, thread: i32, descriptor: i32) -> Option<Opened> {
        descriptors::opened(thread, descriptor).ok()
    }

    fn all_opened(&self, process: i32) -> Vec<(i32, Opened)> {
        descriptors::all_opened(process).unwrap_or_default()
    }

    fn named(&self, path: &Path) -> Opened {
        descriptors::named(path)
    }

    fn directory(&self, thread: i32, descriptor: Option<i32>) -> Option<PathBuf> {
        match descriptor {
            Some(descriptor) => descriptors::directory_opened(thread, descriptor).ok(),
            None => descriptors::directory(thread).ok(),
        }
    }

    fn thread(&self, thread: i32) -> Option<(i32, String)> {
        processes::of_thread(thread).ok().map(|facts| (facts.process, facts.name))
    }
}

/// What the kernel records.
pub(crate) struct Tracing {
    /// Closed before the instance is removed, which is in use while they are open.
    pages: TracePages,
    instance: TraceInstance,
    formats: Formats,
    /// `None`: this kernel cannot tell the names of files.
    names: Option<OpenNames>,
}

impl Tracing {
    /// Prepares everything, without recording yet.
    ///
    /// # Errors
    /// What is lacking, and what to do.
    pub(crate) fn prepare() -> Result<Tracing, String> {
        let prepare = || {
            let instance = TraceInstance::create(BUFFER_BYTES)?;
            let mut formats = Formats::default();
            let mut named = Vec::new();
            let mut add = |system: &str, event: &str, kind: Kind, filter: &str| {
                formats.add(kind, &instance.format(system, event)?).map_err(|field| {
                    let why = format!("this kernel's {event} has no field {field}");
                    (format!("events/{system}/{event}/format").into(), std::io::Error::other(why))
                })?;
                instance.enable(system, event, filter)
            };
            for (system, event, kind) in TASKS {
                add(system, event, kind, "0")?;
            }
            for traced in CALLS {
                let begin = format!("sys_enter_{}", traced.name);
                let is_needed = traced.name == "read";
                if !is_needed && !instance.has("syscalls", &begin) {
                    continue;
                }
                add("syscalls", &begin, Kind::Begin(traced.call), traced.filter)?;
                named.extend(named_call(traced.call, &instance.format("syscalls", &begin)?));
                if traced.has_end {
                    let end = format!("sys_exit_{}", traced.name);
                    add("syscalls", &end, Kind::End(traced.call), end_filter(traced.call))?;
                }
            }
            let pages = instance.pages()?;
            Ok(Tracing { instance, pages, formats, names: OpenNames::of(&named).ok() })
        };
        prepare().map_err(|error| lacking(&error))
    }

    fn follow(&self, threads: &[i32]) -> Result<(), String> {
        self.instance.follow(threads).map_err(|error| lacking(&error))
    }

    fn start(&self) -> Result<(), String> {
        self.instance.start().map_err(|error| lacking(&error))
    }
}

/// Calls, which cannot be recorded, and what to do.
fn lacking((path, error): &TraceError) -> String {
    let remedy = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "run as root; in a container, run on the host with --pid",
        _ => "a kernel with CONFIG_FTRACE_SYSCALLS is needed; blktrace and fiord model need none",
    };
    format!("calls cannot be recorded: {}: {}\n  {remedy}", shown(path), error_text(error))
}

/// A command that is started once its thread is told to.
struct Starter {
    thread_id: i32,
    go: channel::Sender<()>,
    thread: JoinHandle<std::io::Result<Child>>,
}

impl Starter {
    fn new(command: Vec<OsString>) -> Result<Starter, String> {
        let (tell_id, id) = channel::channel();
        let (go, told) = channel::channel::<()>();
        let start = move || {
            let _ = tell_id.send(thread::id());
            if told.recv().is_err() {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let [program, arguments @ ..] = command.as_slice() else {
                return Err(std::io::ErrorKind::InvalidInput.into());
            };
            let mut command = Command::new(program);
            process::in_ordinary_state(command.args(arguments)).spawn()
        };
        let spawned = std::thread::Builder::new().name("starter".to_string()).spawn(start);
        let failed = |error: &std::io::Error| format!("no thread can be started: {}", error_text(error));
        let thread = spawned.map_err(|error| failed(&error))?;
        let thread_id = id.recv().map_err(|_| "the thread that starts the command has ended".to_string())?;
        Ok(Starter { thread_id, go, thread })
    }

    fn start(self) -> std::io::Result<Child> {
        let _ = self.go.send(());
        self.thread.join().unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()))
    }
}

/// Records, until the command or the processes have ended, the time is over, or a signal asks to stop. `progress` is told how
/// many calls were recorded, and `begun` that the output has its head.
///
/// # Errors
/// What is lacking, or cannot be done, and what to do.
pub(crate) fn record(
    mut tracing: Tracing,
    source: Source,
    settings: &Settings,
    output: File,
    begun: impl FnOnce() -> Result<(), CommandError>,
    mut progress: impl FnMut(u64),
    not_written: &dyn Fn(&std::io::Error) -> CommandError,
) -> Result<Outcome, CommandError> {
    let began_cpu_ns = clock::process_cpu_ns();
    let mut sink = Sink::new(settings.form, output, &settings.head).map_err(|error| not_written(&error))?;
    let mut running = Running::start(&tracing, source)?;
    let began_ns = running.began_ns;
    sink.began(began_ns).map_err(|error| not_written(&error))?;
    begun()?;
    let end_ns = settings
        .time
        .map_or(u64::MAX, |time| began_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    let mut events = Events::default();
    let (mut is_last, mut failure) = (false, None);
    while !is_last && failure.is_none() {
        is_last = clock::monotonic_ns() >= end_ns || running.is_to_stop();
        let ready_ns = clock::monotonic_ns().saturating_sub(YOUNG_NS);
        if is_last {
            tracing.instance.stop().map_err(|error| lacking(&error))?;
        }
        let spent =
            events.take(&mut tracing, &mut running.tracker, if is_last { u64::MAX } else { ready_ns })?;
        running.tracker.settle();
        let horizon_ns = if is_last { u64::MAX } else { running.tracker.horizon_ns() };
        let added = running.tracker.due(horizon_ns).try_for_each(|done| sink.add(&done));
        failure = added.and_then(|()| sink.save_old(spent)).err();
        if !is_last && failure.is_none() {
            progress(sink.calls);
            let now_ns = clock::monotonic_ns();
            let pause_ns = match tracing.names {
                Some(_) => PAUSE_MAX_NS,
                None if running.tracker.opens => 0,
                None => (now_ns.saturating_sub(spent) * PAUSE_PARTS).clamp(PAUSE_MIN_NS, PAUSE_MAX_NS),
            };
            clock::sleep_until_ns(now_ns + pause_ns);
            tracing.pages.wait(IDLE);
        }
    }
    let length_ns = clock::monotonic_ns().saturating_sub(began_ns);
    let left_out = sink.left_out(running.tracker.left_out);
    if failure.is_some() {
        tracing.instance.stop().map_err(|error| lacking(&error))?;
        running.let_end();
    }
    let status = running.finish()?;
    let exit_status = status.map(|status| status.code().unwrap_or(-1).cast_unsigned());
    let own_cpu_ns = clock::process_cpu_ns().saturating_sub(began_cpu_ns);
    let end = RecordingEnd { length_ns, lost_events: events.lost, own_cpu_ns, left_out, exit_status };
    let failure = failure.or_else(|| sink.finish(&end).err());
    Ok(Outcome { totals: sink.totals(), end, status, failure })
}

/// Events that were taken, those that are too young included.
#[derive(Default)]
struct Events {
    events: Vec<Event>,
    lost: u64,
}

impl Events {
    /// Takes what was recorded, and gives the tracker all up to this time. Returns when it began.
    fn take(
        &mut self,
        tracing: &mut Tracing,
        tracker: &mut Tracker<Proc>,
        ready_ns: u64,
    ) -> Result<u64, String> {
        let began_ns = clock::monotonic_ns();
        let Tracing { pages, formats, names, .. } = tracing;
        let lost_before = self.lost;
        let mut newest_ns = BTreeMap::new();
        let read = pages.take(|processor, bytes| {
            let page = Page(bytes);
            self.events.extend(page.records().filter_map(|(at_ns, record)| formats.event(at_ns, record)));
            self.lost += page.lost();
            newest_ns.insert(processor, self.events.last().map_or(0, |event| event.at_ns));
        });
        let are_all =
            read.map_err(|error| format!("calls cannot be read from the kernel: {}", error_text(&error)))?;
        if let Some(names) = names {
            names.take(|told| self.events.extend(Event::of_name(told)));
        }
        // What is left of one processor may be older than what was taken of another.
        let complete_ns = newest_ns.into_values().min().filter(|_| !are_all).unwrap_or(u64::MAX);
        let ready_ns = ready_ns.min(complete_ns);
        if self.lost > lost_before {
            tracker.lost();
        }
        self.events.order_by_key(|event| event.at_ns);
        tracker.expect(&self.events);
        let ready = self.events.partition_point(|event| event.at_ns <= ready_ns);
        self.events.drain(..ready).for_each(|event| tracker.take(&event));
        Ok(began_ns)
    }
}

/// Has the kernel follow the threads of these processes and of those that descend from them.
fn follow_all(tracing: &Tracing, processes: &[i32]) -> Result<Vec<i32>, String> {
    let mut threads = Vec::new();
    loop {
        // Those that were made before the kernel followed their makers are found the next time.
        let found = descriptors::threads_with_descendants(processes);
        let before = threads.len();
        threads.extend(found);
        threads.sort_unstable();
        threads.dedup();
        if threads.is_empty() {
            return Err("the processes have ended".to_string());
        }
        if threads.len() == before {
            return Ok(threads);
        }
        tracing.follow(&threads)?;
    }
}

/// What is recorded, while it runs.
struct Running {
    tracker: Tracker<Proc>,
    child: Option<Child>,
    status: Option<ExitStatus>,
    processes: Vec<i32>,
    began_ns: u64,
    was_interrupted: bool,
}

impl Running {
    fn start(tracing: &Tracing, source: Source) -> Result<Running, String> {
        let running = |tracker, child, processes, began_ns| Running {
            tracker,
            child,
            status: None,
            processes,
            began_ns,
            was_interrupted: false,
        };
        match source {
            Source::Processes(processes) => {
                let threads = follow_all(tracing, &processes)?;
                tracing.start()?;
                let tracker = Tracker::of_threads(Proc, &threads, clock::monotonic_ns());
                Ok(running(tracker, None, processes, clock::monotonic_ns()))
            }
            Source::Command(command) => {
                let program = command.first().cloned().unwrap_or_default();
                let starter = Starter::new(command)?;
                let this = std::process::id().cast_signed();
                let tracker = Tracker::of_started(Proc, starter.thread_id, this);
                tracing.follow(&[starter.thread_id])?;
                tracing.start()?;
                let began_ns = clock::monotonic_ns();
                let child = starter.start().map_err(|error| {
                    format!("{}: {}", shown(std::path::Path::new(&program)), error_text(&error))
                })?;
                Ok(running(tracker, Some(child), Vec::new(), began_ns))
            }
        }
    }

    /// Whether it has ended, or a signal asks to stop. A command is asked to end, and recorded until it has.
    fn is_to_stop(&mut self) -> bool {
        let stop = signal::stop_requested().is_some();
        let Some(child) = &mut self.child else {
            let runs = |process: &i32| processes::of_thread(*process).is_ok();
            return stop || !self.processes.iter().any(runs);
        };
        if let Ok(Some(status)) = child.try_wait() {
            self.status = Some(status);
            return true;
        }
        if stop && !self.was_interrupted {
            self.was_interrupted = true;
            let _ = process::interrupt(child);
        }
        stop && signal::is_stop_urgent()
    }

    /// Lets a command go on until it has ended.
    fn let_end(&mut self) {
        while self.child.is_some() && !self.is_to_stop() {
            clock::sleep_until_ns(clock::monotonic_ns() + PAUSE_MAX_NS);
        }
    }

    /// Waits for the command.
    fn finish(self) -> Result<Option<ExitStatus>, String> {
        match (self.child, self.status) {
            (_, Some(status)) => Ok(Some(status)),
            (Some(_), None) if signal::is_stop_urgent() => Ok(None),
            (Some(mut child), None) => {
                child.wait().map(Some).map_err(|error| format!("the command: {}", error_text(&error)))
            }
            (None, None) => Ok(None),
        }
    }
}

/// What is not in the recording, in sentences.
pub(crate) fn missing(end: &RecordingEnd, unnamed_files: u64) -> Vec<String> {
    let LeftOut { io_uring, libaio, mappings, copies, unknown } = end.left_out;
    let block = "record the block level with blktrace";
    let all = [
        (
            end.lost_events,
            "events were lost: the kernel had no room for them; the figures are too low".to_string(),
        ),
        (io_uring, format!("requests of io_uring are not in it: {block}")),
        (libaio, format!("requests of io_submit are not in it: {block}")),
        (mappings, format!("files were mapped into memory, and what was done there is not in it: {block}")),
        (copies, "calls of copy_file_range or sendfile are not in it".to_string()),
        (unknown, format!("calls are not in it, on more than {} files", 1 << 18)),
        (
            unnamed_files,
            "files were closed before their names could be read, and are called unnamed-N".to_string(),
        ),
    ];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}.")).collect()
}

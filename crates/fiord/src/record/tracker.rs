//! From events to calls on files: which file each descriptor is, and where `read` and `write` are in it.
//!
//! Invariant: a call is counted once: as an I/O, or as one that is left out. Memory grows with open files and threads, not
//! with calls; calls that wait for earlier ones are at most [`WAITING_MAX`].

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fiord_model::{CallKind, EntryKind, LeftOut, OpenFlags};
use fiord_stats::OrderBy;
use fiord_sys::descriptors::{Opened, OpenedHow};

use super::events::{Call, Event, What, int};

/// Calls that have ended and wait for those that began before, at most.
const WAITING_MAX: usize = 1 << 16;
/// Flags of `clone`.
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
/// The number of the directory that a thread is in.
const AT_FDCWD: i32 = -100;
const CLONE_THREAD: u64 = 0x1_0000;
/// Flags of `pwritev2`.
const RWF_DSYNC: u64 = 2;
const RWF_SYNC: u64 = 4;
const RWF_APPEND: u64 = 0x10;
/// A mode of `fallocate`.
const PUNCH_HOLE: u64 = 2;
/// Commands of `fcntl`.
const F_SETFD: u64 = 2;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// A flag of `close_range`, which does not close.
const CLOSE_RANGE_CLOEXEC: u64 = 4;

/// What is asked about processes.
pub(super) trait Processes {
    /// The open file of a thread, which may have a table of its own, that has this number.
    fn opened(&self, thread: i32, descriptor: i32) -> Option<Opened>;
    /// All open files of a process.
    fn all_opened(&self, process: i32) -> Vec<(i32, Opened)>;
    /// What is known of a file that was opened by this path and is closed.
    fn named(&self, path: &Path) -> Opened;
    /// The directory that a thread has open by this number, or the one that it is in.
    fn directory(&self, thread: i32, descriptor: Option<i32>) -> Option<PathBuf>;
    /// The process of a thread, and the thread's name.
    fn thread(&self, thread: i32) -> Option<(i32, String)>;
}

/// A thread or process.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) process: i32,
    pub(super) thread: i32,
    /// What its process executed, or the name of its first thread.
    pub(super) name: Rc<str>,
    /// Whoever writes recordings numbers it.
    pub(super) number: Cell<Option<u32>>,
}

type Table = BTreeMap<i32, Descriptor>;

#[derive(Clone, Debug)]
struct Descriptor {
    /// `None`: it is no file of which I/O is recorded.
    open: Option<Rc<OpenFile>>,
    closes_on_exec: bool,
}

/// An open file, which several descriptors and processes may share.
#[derive(Debug)]
pub(super) struct OpenFile {
    position_bytes: Cell<u64>,
    flags: Cell<OpenFlags>,
    /// The path by which it was opened, where the kernel tells.
    name: Option<PathBuf>,
    pub(super) identity: RefCell<Identity>,
    /// Whoever writes recordings numbers it.
    pub(super) number: Cell<Option<u32>>,
}

/// Which file it is.
#[derive(Clone, Debug)]
pub(super) enum Identity {
    /// Not known yet.
    New,
    /// It was closed before that could be asked.
    Unnamed,
    /// This one.
    Known(Box<Opened>),
    /// None that is recorded.
    Other,
}

struct State {
    task: Rc<Task>,
    table: Rc<RefCell<Table>>,
    under_way: Option<(Call, [u64; 6], u64)>,
    /// The name of the file that it is about to open, or of the directory that it enters.
    names: Option<PathBuf>,
    /// The directory that it is in, once that was asked.
    directory: Rc<RefCell<Option<PathBuf>>>,
    /// The command has not been executed yet.
    is_waiting: bool,
}

/// Where a call works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At this byte.
    At(u64),
    /// At the end of the file.
    End,
    /// It shortens or enlarges the file to its length.
    Resize,
}

/// A call that has ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) begin_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) task: Rc<Task>,
    pub(super) open: Rc<OpenFile>,
    pub(super) call: CallKind,
    pub(super) flags: OpenFlags,
    pub(super) place: Place,
    pub(super) length_bytes: u64,
}

/// Follows the threads of an application.
pub(super) struct Tracker<P> {
    processes: P,
    states: BTreeMap<i32, State>,
    /// The thread that starts the command, and what it passes on to it.
    starter: Option<(i32, Table)>,
    /// Calls that ended before are not recorded.
    began_ns: u64,
    /// Files that were opened since the last `settle`.
    unnamed: Vec<(i32, i32, Rc<OpenFile>)>,
    /// Calls in the order in which they ended.
    waiting: Vec<Done>,
    /// Numbers by which files were opened, in events that were not taken yet: what is open by them now is not what was.
    made: BTreeSet<i32>,
    /// What was seen and is not recorded.
    pub(super) left_out: LeftOut,
    /// Whether opens were seen since the last `settle`.
    pub(super) opens: bool,
}

fn flags(how: OpenedHow) -> OpenFlags {
    let of = |is_set: bool, flag: OpenFlags| if is_set { flag } else { OpenFlags::default() };
    of(how.direct, OpenFlags::DIRECT)
        .with(of(how.sync, OpenFlags::SYNC))
        .with(of(how.dsync, OpenFlags::DSYNC))
        .with(of(how.append, OpenFlags::APPEND))
}

fn descriptor(opened: Opened) -> Descriptor {
    let closes_on_exec = opened.how.closes_on_exec;
    let is_file = opened.path.is_some() && !opened.how.without_io;
    let open = OpenFile {
        position_bytes: Cell::new(opened.position_bytes),
        flags: Cell::new(flags(opened.how)),
        name: None,
        identity: RefCell::new(Identity::Known(Box::new(opened))),
        number: Cell::new(None),
    };
    Descriptor { open: is_file.then(|| Rc::new(open)), closes_on_exec }
}

impl<P: Processes> Tracker<P> {
    /// Follows threads that run already, whose calls are recorded if they end after this moment.
    pub(super) fn of_threads(processes: P, threads: &[i32], began_ns: u64) -> Tracker<P> {
        let mut tracker = Tracker::new(processes, None, began_ns);
        for thread in threads {
            tracker.adopt(*thread);
        }
        tracker
    }

    /// Follows what this thread starts, which inherits open files of this process.
    pub(super) fn of_started(processes: P, starter: i32, this_process: i32) -> Tracker<P> {
        let mut inherited = Table::new();
        for (number, opened) in processes.all_opened(this_process) {
            if !opened.how.closes_on_exec {
                inherited.insert(number, descriptor(opened));
            }
        }
        Tracker::new(processes, Some((starter, inherited)), 0)
    }

    fn new(processes: P, starter: Option<(i32, Table)>, began_ns: u64) -> Tracker<P> {
        Tracker {
            processes,
            states: BTreeMap::new(),
            starter,
            began_ns,
            unnamed: Vec::new(),
            waiting: Vec::new(),
            made: BTreeSet::new(),
            left_out: LeftOut::default(),
            opens: false,
        }
    }

    /// Follows a thread that runs already, from what its process has open now.
    fn adopt(&mut self, thread: i32) -> Option<&mut State> {
        let (process, name) = self.processes.thread(thread)?;
        let known = self.states.values().find(|state| state.task.process == process);
        let table = match known {
            Some(state) => Rc::clone(&state.table),
            None => {
                let all = self.processes.all_opened(process).into_iter();
                Rc::new(RefCell::new(all.map(|(number, opened)| (number, descriptor(opened))).collect()))
            }
        };
        let directory = known.map(|state| Rc::clone(&state.directory)).unwrap_or_default();
        let task = Rc::new(Task { process, thread, name: name.into(), number: Cell::new(None) });
        let state = State { task, table, under_way: None, names: None, directory, is_waiting: false };
        self.states.insert(thread, state);
        self.states.get_mut(&thread)
    }

    /// Events were lost: what is open where is asked anew.
    pub(super) fn lost(&mut self) {
        self.unnamed.clear();
        for thread in std::mem::take(&mut self.states).into_keys() {
            self.adopt(thread);
        }
    }

    /// These events are taken next, or soon.
    pub(super) fn expect(&mut self, events: &[Event]) {
        let opened = events.iter().filter_map(|event| match event.what {
            What::End(call, result) if call.has_name() && call != Call::Directory => {
                Some(int(result.cast_unsigned()))
            }
            _ => None,
        });
        self.made.clear();
        self.made.extend(opened);
    }

    /// Takes the next event, in the order of time.
    pub(super) fn take(&mut self, event: &Event) {
        let thread = event.thread;
        if let What::NewTask { task, flags } = event.what {
            return self.made(thread, task, flags);
        }
        if self.starter.as_ref().is_some_and(|(starter, _)| *starter == thread) {
            return;
        }
        match &event.what {
            What::Executed { before, program } => self.executed(*before, thread, program),
            What::Ended => drop(self.states.remove(&thread)),
            What::Names(name) => {
                if let Some(state) = self.states.get_mut(&thread) {
                    state.names = Some(name.clone());
                }
            }
            What::Begin(call, arguments) => {
                if !self.states.contains_key(&thread) {
                    self.adopt(thread);
                }
                let Some(state) = self.states.get(&thread).filter(|state| !state.is_waiting) else { return };
                let table = Rc::clone(&state.table);
                // One on a connection may wait for hours, and nothing may wait for it.
                let matters = match call {
                    Call::Io(_) => self.find(thread, int(arguments[0]), &mut table.borrow_mut()).is_some(),
                    _ => true,
                };
                if let Some(state) = self.states.get_mut(&thread) {
                    state.under_way = matters.then_some((*call, *arguments, event.at_ns));
                }
                self.begun(*call, arguments, &mut table.borrow_mut());
            }
            What::End(call, result) => {
                let Some(state) = self.states.get_mut(&thread) else { return };
                let names = if call.has_name() { state.names.take() } else { None };
                let Some((begun, arguments, begin_ns)) = state.under_way.take() else { return };
                if begun == Call::Unshare && *result == 0 {
                    let own = state.table.borrow().clone();
                    state.table = Rc::new(RefCell::new(own));
                }
                if begun == *call && *result >= 0 && event.at_ns >= self.began_ns {
                    let (task, table) = (Rc::clone(&state.task), Rc::clone(&state.table));
                    let call = Ended {
                        name: names.and_then(|name| self.resolved(thread, &arguments, begun, name)),
                        task,
                        arguments,
                        result: result.cast_unsigned(),
                        begin_ns,
                        end_ns: event.at_ns,
                    };
                    self.ended(begun, call, &mut table.borrow_mut());
                }
            }
            What::NewTask { .. } => {}
        }
    }

    fn made(&mut self, parent: i32, thread: i32, flags: u64) {
        let is_thread = flags & CLONE_THREAD != 0;
        if let Some((starter, inherited)) = &self.starter
            && *starter == parent
        {
            let task = Task { process: thread, thread, name: "".into(), number: Cell::new(None) };
            let table = Rc::new(RefCell::new(inherited.clone()));
            let directory = Rc::new(RefCell::new(std::env::current_dir().ok()));
            let state = State {
                task: Rc::new(task),
                table,
                under_way: None,
                names: None,
                directory,
                is_waiting: true,
            };
            self.states.insert(thread, state);
            return;
        }
        let Some(state) = self.states.get(&parent) else { return };
        let table = match flags & CLONE_FILES {
            0 => Rc::new(RefCell::new(state.table.borrow().clone())),
            _ => Rc::clone(&state.table),
        };
        let directory = match flags & CLONE_FS {
            0 => Rc::new(RefCell::new(state.directory.borrow().clone())),
            _ => Rc::clone(&state.directory),
        };
        let process = if is_thread { state.task.process } else { thread };
        let task = Task { process, thread, name: Rc::clone(&state.task.name), number: Cell::new(None) };
        let is_waiting = state.is_waiting;
        self.states.insert(
            thread,
            State { task: Rc::new(task), table, under_way: None, names: None, directory, is_waiting },
        );
    }

    fn executed(&mut self, before: i32, thread: i32, program: &str) {
        let Some(state) = self.states.remove(&before) else { return };
        let kept = state
            .table
            .borrow()
            .iter()
            .filter(|(_, one)| !one.closes_on_exec)
            .map(|(number, one)| (*number, one.clone()))
            .collect();
        let name = program.rsplit('/').next().unwrap_or(program).into();
        let task = Task { process: thread, thread, name, number: Cell::new(None) };
        let table = Rc::new(RefCell::new(kept));
        let directory = Rc::new(RefCell::new(state.directory.borrow().clone()));
        self.states.insert(
            thread,
            State { task: Rc::new(task), table, under_way: None, names: None, directory, is_waiting: false },
        );
    }

    /// What has its effect when it begins: another thread may have the number of a closed file before the call ends.
    fn begun(&mut self, call: Call, arguments: &[u64; 6], table: &mut Table) {
        let number = int(arguments[0]);
        match call {
            Call::Close => drop(table.remove(&number)),
            Call::CloseRange => {
                let range = int(arguments[0]).cast_unsigned()..=int(arguments[1]).cast_unsigned();
                let is_in = |number: &i32| range.contains(&number.cast_unsigned());
                match arguments[2] & CLOSE_RANGE_CLOEXEC {
                    0 => table.retain(|number, _| !is_in(number)),
                    _ => table
                        .iter_mut()
                        .filter(|(number, _)| is_in(number))
                        .for_each(|(_, one)| one.closes_on_exec = true),
                }
            }
            Call::Control if arguments[1] == F_SETFD => {
                if let Some(one) = table.get_mut(&number) {
                    one.closes_on_exec = arguments[2] & 1 != 0;
                }
            }
            Call::Map => {
                let mapped = table.get(&int(arguments[4])).and_then(|one| one.open.as_ref());
                self.left_out.mappings += u64::from(mapped.is_some());
            }
            _ => {}
        }
    }

    fn ended(&mut self, call: Call, ended: Ended, table: &mut Table) {
        let Ended { ref task, arguments, result, .. } = ended;
        let made = int(result);
        let number = int(arguments[0]);
        match call {
            Call::Io(kind) => self.io(kind, ended, table),
            Call::Open => self.opened(made, OpenedHow::of(int(arguments[1])), ended, table),
            Call::OpenAt => self.opened(made, OpenedHow::of(int(arguments[2])), ended, table),
            // Its flags are in the memory of the program.
            Call::OpenAt2 => {
                table.remove(&made);
                self.made.remove(&made);
                if let Some(open) = self.find(task.thread, made, table) {
                    // It began there, wherever it is by now.
                    open.position_bytes.set(0);
                }
            }
            Call::Create => self.opened(made, OpenedHow::created(), ended, table),
            Call::Directory => {
                if let Some(state) = self.states.get(&task.thread) {
                    state.directory.replace(ended.name);
                }
            }
            Call::Seek => {
                if let Some(open) = self.find(task.thread, number, table) {
                    open.position_bytes.set(result);
                }
            }
            Call::Duplicate => duplicate(number, made, false, table),
            Call::DuplicateTo => duplicate(number, made, arguments[2] & 0o2_000_000 != 0, table),
            Call::Control if arguments[1] != F_SETFD => {
                duplicate(number, made, arguments[1] == F_DUPFD_CLOEXEC, table);
            }
            Call::Truncate => {
                if let Some(open) = self.find(task.thread, number, table) {
                    let flags = OpenFlags::default();
                    self.wait(ended, open, CallKind::PunchHole, flags, Place::Resize, arguments[1]);
                }
            }
            Call::CopyRange | Call::SendFile => {
                let other = int(if call == Call::CopyRange { arguments[2] } else { arguments[1] });
                let is_file = [number, other].iter().any(|one| self.find(task.thread, *one, table).is_some());
                self.left_out.copies += u64::from(is_file);
            }
            Call::UringEnter => self.left_out.io_uring += result,
            Call::Submit => self.left_out.libaio += result,
            Call::Close | Call::CloseRange | Call::Control | Call::Map | Call::Unshare => {}
        }
    }

    fn opened(&mut self, number: i32, how: OpenedHow, ended: Ended, table: &mut Table) {
        let thread = ended.task.thread;
        let identity = if how.without_io { Identity::Other } else { Identity::New };
        let open = Rc::new(OpenFile {
            position_bytes: Cell::new(0),
            flags: Cell::new(flags(how)),
            name: ended.name,
            identity: RefCell::new(identity),
            number: Cell::new(None),
        });
        self.opens = true;
        if !how.without_io {
            self.unnamed.push((thread, number, Rc::clone(&open)));
        }
        table.insert(number, Descriptor { open: Some(open), closes_on_exec: how.closes_on_exec });
    }

    /// The path of a file that is opened, from the directory that the call names or its thread is in.
    fn resolved(&self, thread: i32, arguments: &[u64; 6], call: Call, name: PathBuf) -> Option<PathBuf> {
        if name.is_absolute() {
            return Some(name);
        }
        let state = self.states.get(&thread)?;
        let number = if matches!(call, Call::OpenAt | Call::OpenAt2) { int(arguments[0]) } else { AT_FDCWD };
        if number != AT_FDCWD {
            let table = state.table.borrow();
            let known = table.get(&number).and_then(|one| one.open.as_ref()?.name.clone());
            return Some(known.or_else(|| self.processes.directory(thread, Some(number)))?.join(name));
        }
        let mut directory = state.directory.borrow_mut();
        if directory.is_none() {
            *directory = self.processes.directory(thread, None);
        }
        Some(directory.as_ref()?.join(name))
    }

    /// The open file of a number; one that is not known is looked at, once.
    fn find(&self, thread: i32, number: i32, table: &mut Table) -> Option<Rc<OpenFile>> {
        let one = table.entry(number).or_insert_with(|| {
            // A pipe or connection of which nothing was seen, if a file is opened by its number later.
            let asked =
                if self.made.contains(&number) { None } else { self.processes.opened(thread, number) };
            asked.map_or(Descriptor { open: None, closes_on_exec: false }, descriptor)
        });
        one.open.clone()
    }

    fn io(&mut self, kind: CallKind, ended: Ended, table: &mut Table) {
        use CallKind as C;
        let Ended { arguments, result, .. } = ended;
        let Some(open) = self.find(ended.task.thread, int(arguments[0]), table) else { return };
        let mut flags = open.flags.get();
        let by_position = || {
            let at = open.position_bytes.get();
            open.position_bytes.set(at.saturating_add(result));
            at
        };
        let (offset_bytes, length_bytes) = match kind {
            C::Read | C::Write | C::Readv | C::Writev => (by_position(), result),
            C::Pread | C::Pwrite | C::Preadv | C::Pwritev => (arguments[3], result),
            C::Preadv2 | C::Pwritev2 => {
                for (bit, flag) in [
                    (RWF_DSYNC, OpenFlags::DSYNC),
                    (RWF_SYNC, OpenFlags::SYNC),
                    (RWF_APPEND, OpenFlags::APPEND),
                ] {
                    flags = if arguments[5] & bit != 0 { flags.with(flag) } else { flags };
                }
                (if arguments[3] == u64::MAX { by_position() } else { arguments[3] }, result)
            }
            C::Fsync | C::Fdatasync => (0, 0),
            C::SyncFileRange => (arguments[1], arguments[2]),
            C::PunchHole if arguments[1] & PUNCH_HOLE != 0 => (arguments[2], arguments[3]),
            C::PunchHole => return,
        };
        let entry = kind.entry_kind();
        if entry.has_range() && length_bytes == 0 {
            return;
        }
        let appends = entry == EntryKind::Write && flags.has(OpenFlags::APPEND);
        let place = if appends { Place::End } else { Place::At(offset_bytes) };
        self.wait(ended, open, kind, flags, place, length_bytes);
    }

    fn wait(
        &mut self,
        ended: Ended,
        open: Rc<OpenFile>,
        call: CallKind,
        flags: OpenFlags,
        place: Place,
        length_bytes: u64,
    ) {
        let Ended { begin_ns, end_ns, task, .. } = ended;
        let duration_ns = end_ns.saturating_sub(begin_ns);
        self.waiting.push(Done { begin_ns, duration_ns, task, open, call, flags, place, length_bytes });
    }

    /// Asks which files were opened, of those that are still open, after all events up to now were taken.
    pub(super) fn settle(&mut self) {
        self.opens = false;
        for (thread, number, open) in std::mem::take(&mut self.unnamed) {
            let found = self
                .holder(thread, number, &open)
                .and_then(|(thread, number)| self.processes.opened(thread, number))
                .or_else(|| open.name.as_deref().map(|name| self.processes.named(name)));
            open.identity.replace(match found {
                Some(mut opened) if opened.path.is_some() => {
                    // What was appended before it was looked at comes after the size that it had.
                    opened.size_bytes = opened.size_bytes.saturating_sub(self.appended_bytes(&open));
                    Identity::Known(Box::new(opened))
                }
                Some(_) => Identity::Other,
                None => Identity::Unnamed,
            });
        }
    }

    /// Who has a file open, and by which number: that by which it was opened, or a duplicate, as shells make them.
    fn holder(&self, thread: i32, number: i32, open: &Rc<OpenFile>) -> Option<(i32, i32)> {
        let is_it = |one: &Descriptor| one.open.as_ref().is_some_and(|one| Rc::ptr_eq(one, open));
        let state = self.states.get(&thread);
        if state.is_some_and(|state| state.table.borrow().get(&number).is_some_and(is_it)) {
            return Some((thread, number));
        }
        self.states.values().find_map(|state| {
            let table = state.table.borrow();
            let (number, _) = table.iter().find(|(_, one)| is_it(one))?;
            Some((state.task.thread, *number))
        })
    }

    /// Bytes of the calls that wait and appended to this open file.
    fn appended_bytes(&self, open: &Rc<OpenFile>) -> u64 {
        if !open.flags.get().has(OpenFlags::APPEND) {
            return 0;
        }
        self.waiting
            .iter()
            .filter(|done| {
                let is_same = open.name.is_some() && done.open.name == open.name;
                done.place == Place::End && (is_same || Rc::ptr_eq(&done.open, open))
            })
            .map(|done| done.length_bytes)
            .sum()
    }

    /// When the earliest call began that is under way.
    pub(super) fn horizon_ns(&self) -> u64 {
        let under_way = self.states.values().filter_map(|state| state.under_way);
        under_way.map(|(.., at_ns)| at_ns).min().unwrap_or(u64::MAX)
    }

    /// The calls that began by this time, in the order in which they began.
    pub(super) fn due(&mut self, horizon_ns: u64) -> impl Iterator<Item = Done> {
        // Most began in the order in which they ended.
        self.waiting.order_by_key(|done| done.begin_ns);
        let due = self.waiting.partition_point(|done| done.begin_ns <= horizon_ns);
        self.waiting.drain(..due.max(self.waiting.len().saturating_sub(WAITING_MAX)))
    }
}

/// A call that has ended without an error.
struct Ended {
    task: Rc<Task>,
    /// The path of the file that it opened.
    name: Option<PathBuf>,
    arguments: [u64; 6],
    result: u64,
    begin_ns: u64,
    end_ns: u64,
}

fn duplicate(number: i32, made: i32, closes_on_exec: bool, table: &mut Table) {
    match table.get(&number).and_then(|one| one.open.clone()) {
        Some(open) => drop(table.insert(made, Descriptor { open: Some(open), closes_on_exec })),
        None => drop(table.remove(&made)),
    }
}

#[cfg(test)]
mod tests;

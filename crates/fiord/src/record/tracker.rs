//! From events to calls on files: which file each descriptor is, and where `read` and `write` are in it.
//!
//! Invariant: a call is counted once: as an I/O, or as one that is left out. Memory grows with open files and threads, not
//! with calls; calls that wait for earlier ones are at most [`WAITING_MAX`].

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use fiord_model::{CallKind, EntryKind, LeftOut, OpenFlags};
use fiord_sys::descriptors::{Opened, OpenedHow};

use super::events::{Call, Event, What};
use super::waiting::Waiting;

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

type Table = HashMap<i32, Descriptor>;

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
    states: HashMap<i32, State>,
    /// The thread that starts the command, and what it passes on to it.
    starter: Option<(i32, Table)>,
    /// Calls that ended before are not recorded.
    began_ns: u64,
    /// Files that were opened since the last `settle`.
    unnamed: Vec<(i32, i32, Rc<OpenFile>)>,
    waiting: BinaryHeap<Reverse<Waiting<Done>>>,
    sequence: u64,
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
            states: HashMap::new(),
            starter,
            began_ns,
            unnamed: Vec::new(),
            waiting: BinaryHeap::new(),
            sequence: 0,
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
        Some(self.states.entry(thread).insert_entry(state).into_mut())
    }

    /// Events were lost: what is open where is asked anew.
    pub(super) fn lost(&mut self) {
        let threads: Vec<i32> = self.states.drain().map(|(thread, _)| thread).collect();
        self.unnamed.clear();
        for thread in threads {
            self.adopt(thread);
        }
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
                    Call::Io(_) => self.find(thread, arguments[0] as i32, &mut table.borrow_mut()).is_some(),
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
        let number = arguments[0] as i32;
        match call {
            Call::Close => drop(table.remove(&number)),
            Call::CloseRange => {
                let range = arguments[0] as u32..=arguments[1] as u32;
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
                let mapped = table.get(&(arguments[4] as i32)).and_then(|one| one.open.as_ref());
                self.left_out.mappings += u64::from(mapped.is_some());
            }
            _ => {}
        }
    }

    fn ended(&mut self, call: Call, ended: Ended, table: &mut Table) {
        let Ended { ref task, arguments, result, .. } = ended;
        let made = result as i32;
        let number = arguments[0] as i32;
        match call {
            Call::Io(kind) => self.io(kind, ended, table),
            Call::Open => self.opened(made, OpenedHow::of(arguments[1] as i32), ended, table),
            Call::OpenAt => self.opened(made, OpenedHow::of(arguments[2] as i32), ended, table),
            // Its flags are in the memory of the program.
            Call::OpenAt2 => {
                table.remove(&made);
                self.find(task.thread, made, table);
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
                let other = if call == Call::CopyRange { arguments[2] } else { arguments[1] } as i32;
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
        let number =
            if matches!(call, Call::OpenAt | Call::OpenAt2) { arguments[0] as i32 } else { AT_FDCWD };
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
        let one = table.entry(number).or_insert_with(|| match self.processes.opened(thread, number) {
            Some(opened) => descriptor(opened),
            None => Descriptor { open: None, closes_on_exec: false },
        });
        one.open.clone()
    }

    fn io(&mut self, kind: CallKind, ended: Ended, table: &mut Table) {
        use CallKind as C;
        let Ended { arguments, result, .. } = ended;
        let Some(open) = self.find(ended.task.thread, arguments[0] as i32, table) else { return };
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
        self.sequence += 1;
        let done = Done { begin_ns, duration_ns, task, open, call, flags, place, length_bytes };
        self.waiting.push(Reverse(Waiting { order: (begin_ns, self.sequence), done }));
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
        let calls = self.waiting.iter().map(|Reverse(waiting)| &waiting.done);
        calls
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

    /// The next call that began by this time, in the order in which they began.
    pub(super) fn next(&mut self, horizon_ns: u64) -> Option<Done> {
        let Reverse(first) = self.waiting.peek()?;
        let is_due = first.order.0 <= horizon_ns || self.waiting.len() > WAITING_MAX;
        if is_due { self.waiting.pop().map(|Reverse(waiting)| waiting.done) } else { None }
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
mod tests {
    use super::*;

    const PROCESS: i32 = 100;

    /// A machine where every process has one file open, `/old` as number 5 at byte 1000, and opens `/new` as 3 and a pipe as 4.
    struct Machine;

    impl Processes for Machine {
        fn opened(&self, _: i32, descriptor: i32) -> Option<Opened> {
            let name = match descriptor {
                3 => "/new",
                5 => "/old",
                4 => return Some(Opened { path: None, ..Opened::without_name("".into()) }),
                _ => return None,
            };
            let (position_bytes, size_bytes) = if descriptor == 5 { (1000, 5000) } else { (0, 300) };
            Some(Opened { position_bytes, size_bytes, ..Opened::without_name(name.into()) })
        }

        fn all_opened(&self, process: i32) -> Vec<(i32, Opened)> {
            vec![(5, self.opened(process, 5).unwrap())]
        }

        fn named(&self, path: &Path) -> Opened {
            Opened::without_name(path.to_path_buf())
        }

        fn directory(&self, _: i32, descriptor: Option<i32>) -> Option<PathBuf> {
            Some(if descriptor == Some(9) { "/nine" } else { "/home" }.into())
        }

        fn thread(&self, thread: i32) -> Option<(i32, String)> {
            Some((if thread < 200 { PROCESS } else { thread }, "db".to_string()))
        }
    }

    fn call(
        tracker: &mut Tracker<Machine>,
        at_ns: u64,
        thread: i32,
        call: Call,
        arguments: [u64; 6],
        result: i64,
    ) {
        tracker.take(&Event { at_ns, thread, what: What::Begin(call, arguments) });
        tracker.take(&Event { at_ns: at_ns + 5, thread, what: What::End(call, result) });
    }

    /// Calls that came out: path, kind, place, bytes.
    fn found(tracker: &mut Tracker<Machine>) -> Vec<(String, CallKind, Place, u64)> {
        tracker.settle();
        let done = std::iter::from_fn(|| tracker.next(u64::MAX));
        let found = done.map(|done| {
            let path = match &*done.open.identity.borrow() {
                Identity::Known(opened) => opened.path.clone().unwrap_or_default().display().to_string(),
                other => format!("{other:?}"),
            };
            (path, done.call, done.place, done.length_bytes)
        });
        found.collect()
    }

    fn tracker() -> Tracker<Machine> {
        Tracker::of_threads(Machine, &[PROCESS], 0)
    }

    const READ: Call = Call::Io(CallKind::Read);
    const WRITE: Call = Call::Io(CallKind::Write);

    #[test]
    fn positions_follow_reads_and_seeks_and_what_was_returned_counts() {
        let mut tracker = tracker();
        call(&mut tracker, 10, PROCESS, READ, [5, 0, 4096, 0, 0, 0], 100);
        call(&mut tracker, 20, PROCESS, READ, [5, 0, 4096, 0, 0, 0], 4096);
        call(&mut tracker, 30, PROCESS, Call::Seek, [5, 64, 0, 0, 0, 0], 64);
        call(&mut tracker, 40, PROCESS, WRITE, [5, 0, 10, 0, 0, 0], 10);
        call(&mut tracker, 50, PROCESS, READ, [5, 0, 10, 0, 0, 0], -5);
        call(&mut tracker, 60, PROCESS, READ, [5, 0, 10, 0, 0, 0], 0);
        call(&mut tracker, 70, PROCESS, Call::Io(CallKind::Pread), [5, 0, 10, 7, 0, 0], 10);
        call(&mut tracker, 80, PROCESS, WRITE, [4, 0, 10, 0, 0, 0], 10);
        let old = |kind, at, bytes| ("/old".to_string(), kind, Place::At(at), bytes);
        let expected = [
            old(CallKind::Read, 1000, 100),
            old(CallKind::Read, 1100, 4096),
            old(CallKind::Write, 64, 10),
            old(CallKind::Pread, 7, 10),
        ];
        assert_eq!(found(&mut tracker), expected);
    }

    #[test]
    fn forks_copy_descriptors_and_threads_share_them() {
        let mut tracker = tracker();
        let made = |task, flags| Event { at_ns: 1, thread: PROCESS, what: What::NewTask { task, flags } };
        tracker.take(&made(101, CLONE_FILES | CLONE_THREAD));
        tracker.take(&made(300, 0));
        // The thread closes it for the process, and not for the child, which shares the position.
        call(&mut tracker, 10, 300, READ, [5, 0, 8, 0, 0, 0], 8);
        tracker.take(&Event { at_ns: 20, thread: 101, what: What::Begin(Call::Close, [5, 0, 0, 0, 0, 0]) });
        call(&mut tracker, 30, 101, Call::Duplicate, [4, 0, 0, 0, 0, 0], 5);
        tracker.take(&made(102, CLONE_FILES | CLONE_THREAD));
        call(&mut tracker, 35, 102, Call::Unshare, [CLONE_FILES, 0, 0, 0, 0, 0], 0);
        call(&mut tracker, 36, 102, Call::OpenAt, [0; 6], 3);
        call(&mut tracker, 38, PROCESS, Call::Io(CallKind::Pread), [3, 0, 8, 0, 0, 0], -9);
        call(&mut tracker, 40, PROCESS, Call::Io(CallKind::Fsync), [6, 0, 0, 0, 0, 0], 0);
        call(&mut tracker, 50, 300, READ, [5, 0, 8, 0, 0, 0], 8);
        let places: Vec<Place> = found(&mut tracker).into_iter().map(|(.., place, _)| place).collect();
        assert_eq!(places, [Place::At(1000), Place::At(1008)]);
    }

    #[test]
    fn what_closed_before_it_was_looked_at_has_no_name_and_appends_have_no_place_yet() {
        const O_APPEND: u64 = 0o2000;
        let mut tracker = tracker();
        for at_ns in [10, 50] {
            call(&mut tracker, at_ns, PROCESS, Call::OpenAt, [0, 0, O_APPEND, 0, 0, 0], 3);
            call(&mut tracker, at_ns + 10, PROCESS, WRITE, [3, 0, 100, 0, 0, 0], 100);
            if at_ns == 10 {
                let close = What::Begin(Call::Close, [3, 0, 0, 0, 0, 0]);
                tracker.take(&Event { at_ns: 30, thread: PROCESS, what: close });
            }
        }
        tracker.settle();
        let first = tracker.next(u64::MAX).unwrap();
        assert!(matches!(*first.open.identity.borrow(), Identity::Unnamed) && first.place == Place::End);
        let second = tracker.next(u64::MAX).unwrap();
        let Identity::Known(opened) = &*second.open.identity.borrow() else { panic!("{second:?}") };
        assert_eq!(opened.size_bytes, 200, "300 less what was appended");
    }

    #[test]
    fn what_closed_before_it_was_looked_at_has_the_name_by_which_it_was_opened() {
        let mut tracker = tracker();
        let names = |name: &str| What::Names(name.into());
        let cases = [("/a", AT_FDCWD, "/a"), ("b", AT_FDCWD, "/home/b"), ("c", 9, "/nine/c")];
        for (at, (name, directory, _)) in cases.iter().enumerate() {
            let at_ns = 100 * (at as u64 + 1);
            // One that fails has no effect on the next.
            tracker.take(&Event { at_ns, thread: PROCESS, what: names("failed") });
            call(&mut tracker, at_ns, PROCESS, Call::OpenAt, [0; 6], -2);
            tracker.take(&Event { at_ns, thread: PROCESS, what: names(name) });
            let from = u64::from(directory.cast_unsigned());
            call(&mut tracker, at_ns + 10, PROCESS, Call::OpenAt, [from, 0, 0, 0, 0, 0], 30);
            call(&mut tracker, at_ns + 20, PROCESS, WRITE, [30, 0, 100, 0, 0, 0], 100);
            let close = What::Begin(Call::Close, [30, 0, 0, 0, 0, 0]);
            tracker.take(&Event { at_ns: at_ns + 30, thread: PROCESS, what: close });
        }
        let paths: Vec<String> = found(&mut tracker).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, cases.map(|(.., path)| path));
    }

    #[test]
    fn a_command_counts_from_its_execution_on() {
        let mut tracker = Tracker::of_started(Machine, 50, 1);
        let event = |at_ns, thread, what| Event { at_ns, thread, what };
        tracker.take(&event(1, 50, What::NewTask { task: 300, flags: 0 }));
        call(&mut tracker, 10, 50, READ, [5, 0, 8, 0, 0, 0], 8);
        call(&mut tracker, 20, 300, READ, [5, 0, 8, 0, 0, 0], 8);
        tracker.take(&event(30, 300, What::Executed { before: 300, program: "/bin/dd".to_string() }));
        call(&mut tracker, 40, 300, READ, [5, 0, 16, 0, 0, 0], 16);
        tracker.take(&event(50, 300, What::Ended));
        assert_eq!(found(&mut tracker), [("/old".to_string(), CallKind::Read, Place::At(1000), 16)]);
    }

    #[test]
    fn calls_come_in_the_order_in_which_they_began() {
        let mut tracker = tracker();
        tracker.take(&Event { at_ns: 1, thread: PROCESS, what: What::Begin(READ, [5, 0, 8, 0, 0, 0]) });
        call(&mut tracker, 10, 101, Call::Io(CallKind::Fsync), [5, 0, 0, 0, 0, 0], 0);
        assert!(tracker.next(tracker.horizon_ns()).is_none(), "the read began before");
        tracker.take(&Event { at_ns: 30, thread: PROCESS, what: What::End(READ, 8) });
        let kinds: Vec<CallKind> = found(&mut tracker).into_iter().map(|(_, kind, ..)| kind).collect();
        assert_eq!(kinds, [CallKind::Read, CallKind::Fsync]);
    }

    #[test]
    fn what_is_not_recorded_is_counted() {
        let mut tracker = tracker();
        call(&mut tracker, 10, PROCESS, Call::UringEnter, [7, 8, 0, 0, 0, 0], 8);
        call(&mut tracker, 20, PROCESS, Call::Submit, [7, 8, 0, 0, 0, 0], 4);
        call(&mut tracker, 30, PROCESS, Call::CopyRange, [5, 0, 9, 0, 0, 0], 10);
        call(&mut tracker, 40, PROCESS, Call::Map, [0, 0, 1, 1, 5, 0], 0);
        let LeftOut { io_uring, libaio, mappings, copies, unknown } = tracker.left_out;
        assert_eq!([io_uring, libaio, mappings, copies, unknown], [8, 4, 1, 1, 0]);
        assert_eq!(found(&mut tracker), []);
    }
}

//! Events of a machine that is made up, and the calls that come out.
//!
//! Invariant: nothing of the real machine is asked.

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
    let found = tracker.due(u64::MAX).map(|done| {
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
fn what_is_opened_later_is_not_what_was_read_before() {
    let mut tracker = tracker();
    let event = |at_ns, what| Event { at_ns, thread: PROCESS, what };
    let read =
        |at_ns| [event(at_ns, What::Begin(READ, [3, 0, 8, 0, 0, 0])), event(at_ns + 1, What::End(READ, 8))];
    let open = [event(20, What::Begin(Call::OpenAt, [0; 6])), event(21, What::End(Call::OpenAt, 3))];
    // A pipe of which nothing was seen, which was closed before its number was asked for.
    let close = [event(15, What::Begin(Call::Close, [3, 0, 0, 0, 0, 0]))];
    let events: Vec<Event> = read(10).into_iter().chain(close).chain(open).chain(read(30)).collect();
    tracker.expect(&events);
    events.iter().for_each(|event| tracker.take(event));
    assert_eq!(found(&mut tracker), [("/new".to_string(), CallKind::Read, Place::At(0), 8)]);
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
    let done: Vec<Done> = tracker.due(u64::MAX).collect();
    let [first, second] = &*done else { panic!("{done:?}") };
    assert!(matches!(*first.open.identity.borrow(), Identity::Unnamed) && first.place == Place::End);
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
    let horizon_ns = tracker.horizon_ns();
    assert_eq!(tracker.due(horizon_ns).count(), 0, "the read began before");
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

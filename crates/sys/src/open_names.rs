//! Names of files that are opened: a program for the kernel that copies them from the caller's memory into a ring.
//!
//! Invariant: the program only reads. It and the ring end with the process, however that ends, and nothing else of the kernel
//! is changed.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::map::{Mapping, Protection, Sharing, page_bytes};
use crate::width::{to_c_int, to_u32};

/// Bytes that the kernel copies of a name at most, its zero included; what is longer is cut.
pub const NAME_BYTES_MAX: usize = 500;
/// A record: when, the thread, the bytes of the name with its zero (negative if it could not be read), the name.
const RECORD_BYTES: usize = 16 + NAME_BYTES_MAX + 4;
/// Room for names: some four thousand.
const RING_BYTES: usize = 2 << 20;

/// An instruction of BPF: code, registers (destination, and source by 16), offset, value.
type Instruction = (u8, u8, i16, i32);

/// What the kernel expects of `BPF_PROG_LOAD`.
#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    instructions: u32,
    instructions_at: u64,
    licence_at: u64,
    log_level: u32,
    log_bytes: u32,
    log_at: u64,
    kernel_version: u32,
    flags: u32,
}

/// What the kernel expects of `BPF_MAP_CREATE`, of its first version.
#[repr(C)]
#[derive(Default)]
struct Map {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// What the kernel expects of `perf_event_open`, of its first version.
#[repr(C)]
#[derive(Default)]
struct PerfEvent {
    kind: u32,
    bytes: u32,
    event: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    breakpoint_at: u64,
}

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_PROG_LOAD: libc::c_int = 5;
const MAP_OF_RING: u32 = 27;
const PROGRAM_OF_TRACEPOINT: u32 = 5;
const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const PERF_EVENT_IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

/// A tracepoint of a call whose argument is the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCall {
    /// The tracepoint's number.
    pub event: u16,
    /// Where its record has the address of the name.
    pub name_at: u16,
}

/// Names are told as long as this is there.
#[derive(Debug)]
pub struct OpenNames {
    ring: Ring,
    _attached: Vec<OwnedFd>,
}

/// The name of a file that a thread is about to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenName<'a> {
    /// When, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The thread.
    pub thread: i32,
    /// The name as the thread gives it. `None` if it is too long, or could not be read.
    pub name: Option<&'a [u8]>,
}

impl OpenNames {
    /// Has the kernel tell the name before each of these calls, of any thread.
    ///
    /// # Errors
    /// The kernel's: without BPF, before Linux 5.8, or without permission.
    pub fn of(calls: &[NamedCall]) -> io::Result<OpenNames> {
        let ring = Ring::new()?;
        let attached = calls.iter().map(|call| {
            let program = load(&instructions(call.name_at, ring.map.as_raw_fd()))?;
            attach(call.event, &program)
        });
        Ok(OpenNames { _attached: attached.collect::<io::Result<Vec<OwnedFd>>>()?, ring })
    }

    /// Takes the names that were told since the last call.
    pub fn take(&mut self, mut told: impl FnMut(OpenName<'_>)) {
        self.ring.take(|record| {
            let number = |at: usize| record.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
            let at_ns = record.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
            let (Some(at_ns), Some(thread), Some(bytes)) = (at_ns, number(8), number(12)) else { return };
            let is_whole = (2..to_c_int(NAME_BYTES_MAX)).contains(&bytes.cast_signed());
            let name = record.get(16..15 + bytes as usize).filter(|_| is_whole);
            told(OpenName { at_ns, thread: thread.cast_signed(), name });
        });
    }
}

/// A ring that the kernel writes records into.
#[derive(Debug)]
struct Ring {
    map: OwnedFd,
    /// How far records were taken.
    taken: Mapping,
    /// How far they were made, and from the second page on the records, twice: none is cut by the end.
    made: Mapping,
}

/// Bits of the head of a record: it is not whole yet; it is to be left out; the others are its length.
const BUSY: u32 = 1 << 31;
const LEFT_OUT: u32 = 1 << 30;
/// Bytes of a head.
const HEAD_BYTES: usize = 8;

impl Ring {
    fn new() -> io::Result<Ring> {
        let wanted = Map { kind: MAP_OF_RING, entries: to_u32(RING_BYTES), ..Map::default() };
        // SAFETY: the kernel reads `wanted`, of the given length, until it returns.
        let made =
            unsafe { libc::syscall(libc::SYS_bpf, BPF_MAP_CREATE, &raw const wanted, size_of::<Map>()) };
        let map = descriptor(made)?;
        let page = page_bytes();
        let mapped = |at: usize, bytes, protection| {
            Mapping::of_file(map.as_fd(), at as u64, bytes, protection, Sharing::Shared)
        };
        let taken = mapped(0, page, Protection::ReadWrite)?;
        let made = mapped(page, page + 2 * RING_BYTES, Protection::Read)?;
        Ok(Ring { map, taken, made })
    }

    fn take(&mut self, mut record: impl FnMut(&[u8])) {
        // SAFETY: both pages begin with a position, an aligned number that the kernel reads and writes atomically, and stay
        // mapped as long as `self` is borrowed.
        let (taken, made) = unsafe {
            (
                AtomicUsize::from_ptr(self.taken.as_ptr().cast()),
                AtomicUsize::from_ptr(self.made.as_ptr().cast()),
            )
        };
        let mut at = taken.load(Ordering::Relaxed);
        while at != made.load(Ordering::Acquire) {
            // SAFETY: positions are multiples of eight, and the place of one is below `RING_BYTES`, behind the first page.
            let head = unsafe { self.made.as_ptr().add(page_bytes() + at % RING_BYTES) };
            // SAFETY: a record begins there, with its aligned head, which the kernel writes atomically.
            let state = unsafe { AtomicU32::from_ptr(head.cast()) }.load(Ordering::Acquire);
            let bytes = (state & !(BUSY | LEFT_OUT)) as usize;
            if state & BUSY != 0 || bytes > RING_BYTES - HEAD_BYTES {
                break;
            }
            if state & LEFT_OUT == 0 {
                // SAFETY: the record is whole, as it is not busy, ends before the second copy of the ring does, and is not
                // written again before the position that was taken is behind it.
                record(unsafe { std::slice::from_raw_parts(head.add(HEAD_BYTES), bytes) });
            }
            at = at.wrapping_add((HEAD_BYTES + bytes).next_multiple_of(8));
            taken.store(at, Ordering::Release);
        }
    }
}

/// Writes the text whose address is there in the record of the tracepoint into the ring.
fn instructions(name_at: u16, ring: i32) -> [Instruction; 23] {
    [
        // r6 is the address of the name; the record's is in r1.
        (0x79, 0x16, name_at.cast_signed(), 0),
        // r7 = bpf_ringbuf_reserve(r1: ring, r2: bytes, r3: no flags).
        (0x18, 0x11, 0, ring),
        (0, 0, 0, 0),
        (0xb7, 2, 0, to_c_int(RECORD_BYTES)),
        (0xb7, 3, 0, 0),
        (0x85, 0, 0, 131),
        // Without room the name is not told.
        (0x15, 0, 14, 0),
        (0xbf, 0x07, 0, 0),
        // bpf_ktime_get_ns(), bpf_get_current_pid_tgid(), whose lower half is the thread.
        (0x85, 0, 0, 5),
        (0x7b, 0x07, 0, 0),
        (0x85, 0, 0, 14),
        (0x63, 0x07, 8, 0),
        // bpf_probe_read_user_str(r1: to, r2: bytes at most, r3: from).
        (0xbf, 0x71, 0, 0),
        (0x07, 1, 0, 16),
        (0xb7, 2, 0, to_c_int(NAME_BYTES_MAX)),
        (0xbf, 0x63, 0, 0),
        (0x85, 0, 0, 114),
        (0x63, 0x07, 12, 0),
        // bpf_ringbuf_submit(r1: record, r2: nobody is woken).
        (0xbf, 0x71, 0, 0),
        (0xb7, 2, 0, 1),
        (0x85, 0, 0, 132),
        (0xb7, 0, 0, 0),
        (0x95, 0, 0, 0),
    ]
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let code: Vec<u8> = instructions
        .iter()
        .flat_map(|(code, registers, offset, value)| {
            let registers = if cfg!(target_endian = "big") { registers.rotate_left(4) } else { *registers };
            let ([a, b], [c, d, e, f]) = (offset.to_ne_bytes(), value.to_ne_bytes());
            [*code, registers, a, b, c, d, e, f]
        })
        .collect();
    let load = Load {
        kind: PROGRAM_OF_TRACEPOINT,
        instructions: to_u32(instructions.len()),
        instructions_at: code.as_ptr() as u64,
        licence_at: c"GPL".as_ptr() as u64,
        ..Load::default()
    };
    // SAFETY: the kernel reads `load`, of the given length, and the code and the licence that it points to, all of which live
    // until it returns.
    descriptor(unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const load, size_of::<Load>()) })
}

fn attach(event: u16, program: &OwnedFd) -> io::Result<OwnedFd> {
    let wanted = PerfEvent {
        kind: PERF_TYPE_TRACEPOINT,
        bytes: to_u32(size_of::<PerfEvent>()),
        event: event.into(),
        period: 1,
        ..PerfEvent::default()
    };
    // The program is run on all processors, whichever the event is of.
    let (every_process, processor, no_group) = (-1, 0, -1);
    // SAFETY: the kernel reads `wanted`, whose length is in it, and keeps no pointer to it.
    let opened = descriptor(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const wanted,
            every_process,
            processor,
            no_group,
            PERF_FLAG_FD_CLOEXEC,
        )
    })?;
    // SAFETY: both descriptors are open, and the call takes no pointer.
    let set = unsafe { libc::ioctl(opened.as_raw_fd(), PERF_EVENT_IOC_SET_BPF as _, program.as_raw_fd()) };
    if set == 0 { Ok(opened) } else { Err(io::Error::last_os_error()) }
}

fn descriptor(returned: libc::c_long) -> io::Result<OwnedFd> {
    match RawFd::try_from(returned) {
        // SAFETY: the kernel has just returned it, and nobody else has it.
        Ok(number @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::TraceInstance;

    #[test]
    fn the_names_of_opened_files_are_told_in_their_order() {
        let instance = match TraceInstance::create(64 << 10) {
            Ok(instance) => instance,
            Err((path, error)) => fiord_testing::skip!("{}: {error}", path.display()),
        };
        let format = instance.format("syscalls", "sys_enter_openat").unwrap();
        let number = |line: &str, key: &str| {
            let behind = line.split_once(key).unwrap().1;
            behind.trim().split(';').next().unwrap().trim().parse::<u16>().unwrap()
        };
        let line = |part: &str| format.lines().find(|line| line.contains(part)).unwrap();
        let call =
            NamedCall { event: number(line("ID:"), "ID:"), name_at: number(line(" filename;"), "offset:") };
        let mut names = match OpenNames::of(&[call]) {
            Ok(names) => names,
            Err(error) => fiord_testing::skip!("the kernel tells no names: {error}"),
        };
        let began_ns = crate::clock::monotonic_ns();
        let long = format!("/nowhere/{}", "x".repeat(NAME_BYTES_MAX));
        let (mut found, mut rounds) = (0, 0);
        // Until the ring has been written more than twice over. Others open files meanwhile, and take some of the room.
        while found < 3 * RING_BYTES / RECORD_BYTES {
            rounds += 1;
            assert!(rounds < 2000, "{found} names were told");
            for number in 0..100 {
                let _ = std::fs::File::open(format!("/nowhere/{number}"));
            }
            let _ = std::fs::File::open(&long);
            let mut expected =
                (0..100).map(|number| Some(format!("/nowhere/{number}").into_bytes())).chain([None]);
            names.take(|told| {
                if told.thread == crate::thread::id() {
                    let name = told.name.map(<[u8]>::to_vec);
                    assert!(told.at_ns >= began_ns && expected.any(|one| one == name), "{told:?}");
                    found += 1;
                }
            });
        }
    }
}

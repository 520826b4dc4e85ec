//! Names of files that are opened, in the kernel's trace: a program for the kernel that copies them from the caller's memory.
//!
//! Invariant: the program only reads, and ends with the process. The trace of others is as it was.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use crate::clock;

/// What comes before a name.
pub const NAME_MARK: &str = "fiord open ";
/// The longest name; the kernel cuts what is longer.
pub const NAME_BYTES_MAX: usize = 500;
/// As the program prints a name: the mark, and a text in the caller's memory.
const PRINTED: [u8; 16] = *b"fiord open %pus\0";
/// How long the kernel's own trace stays off before it is believed, and how long that is waited for at most.
const STAYS_OFF_NS: u64 = 20_000_000;
const WAIT_NS: u64 = 500_000_000;

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

const BPF_PROG_LOAD: libc::c_int = 5;
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

/// Names are in the trace as long as this is there.
#[derive(Debug)]
pub struct OpenNames {
    attached: Vec<OwnedFd>,
    /// The file by which the kernel's own trace has these events, where nobody else had switched them on.
    switch: Option<PathBuf>,
}

impl OpenNames {
    /// Has the kernel print the name before each of these calls, as an event `bpf_trace_printk`. `enabled` is the file by which
    /// the kernel's own trace has these events: some time after such a program is loaded the kernel switches them on there, and
    /// they are switched off again if they were.
    ///
    /// # Errors
    /// The kernel's: without BPF, or without permission.
    pub fn print(calls: &[NamedCall], enabled: &Path) -> io::Result<OpenNames> {
        let switch = if is_on(enabled)? { None } else { Some(enabled.to_path_buf()) };
        let mut names = OpenNames { attached: Vec::new(), switch };
        let programs = calls.iter().map(|call| load(&instructions(call.name_at)));
        let programs = programs.collect::<io::Result<Vec<OwnedFd>>>()?;
        names.switch_off()?;
        for (call, program) in calls.iter().zip(&programs) {
            names.attached.push(attach(call.event, program)?);
        }
        Ok(names)
    }

    /// Switches the events off in the kernel's own trace until they stay off.
    fn switch_off(&self) -> io::Result<()> {
        let Some(switch) = &self.switch else { return Ok(()) };
        let end_ns = clock::monotonic_ns() + WAIT_NS;
        // It is switched on once at least.
        let mut believed_ns = end_ns;
        while clock::monotonic_ns() < believed_ns.min(end_ns) {
            if is_on(switch)? {
                fs::write(switch, "0")?;
                believed_ns = clock::monotonic_ns() + STAYS_OFF_NS;
            }
            clock::sleep_until_ns(clock::monotonic_ns() + 200_000);
        }
        Ok(())
    }
}

impl Drop for OpenNames {
    fn drop(&mut self) {
        self.attached.clear();
        if let Some(switch) = &self.switch
            && is_on(switch).unwrap_or(false)
        {
            let _ = fs::write(switch, "0");
        }
    }
}

fn is_on(switch: &Path) -> io::Result<bool> {
    Ok(fs::read_to_string(switch)?.starts_with('1'))
}

/// Prints the text whose address is there in the record.
fn instructions(name_at: u16) -> [Instruction; 13] {
    let half =
        |at: usize| i32::from_le_bytes([PRINTED[at], PRINTED[at + 1], PRINTED[at + 2], PRINTED[at + 3]]);
    [
        // r3 is the address of the name; the record's is in r1.
        (0x79, 0x13, name_at.cast_signed(), 0),
        // What is printed goes to the stack, which r10 is the end of.
        (0x18, 1, 0, half(0)),
        (0, 0, 0, half(4)),
        (0x7b, 0x1a, -16, 0),
        (0x18, 1, 0, half(8)),
        (0, 0, 0, half(12)),
        (0x7b, 0x1a, -8, 0),
        // bpf_trace_printk(r1: text, r2: its bytes, r3).
        (0xbf, 0xa1, 0, 0),
        (0x07, 1, 0, -16),
        (0xb7, 2, 0, PRINTED.len() as i32),
        (0x85, 0, 0, 6),
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
        instructions: instructions.len() as u32,
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
        bytes: size_of::<PerfEvent>() as u32,
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
    if returned < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(returned as i32) })
}

//! A file system with one file whose reads take as long as the test says, or that stands still once: the test is its
//! server (FUSE).
//!
//! Invariant: a read takes at least as long as given; the server is one thread, so that everything else waits as well.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Dir, Mount, root};

/// Numbers of requests (`include/uapi/linux/fuse.h`).
mod request {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const RELEASEDIR: u32 = 29;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
}

/// Length of a request's header and of the longest request.
const HEADER_BYTES: usize = 40;
const REQUEST_BYTES_MAX: usize = 1 << 18;

const ROOT: u64 = 1;
const FILE: u64 = 2;
const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;

/// Reads go to the server even if they are buffered.
const FOPEN_DIRECT_IO: u32 = 1;

/// The mounted file system; its file is `stalling/data`.
pub struct Stalling {
    _mount: Mount,
}

/// A file system that stands still once.
#[derive(Clone, Copy)]
pub struct Stall {
    /// Size of the file.
    pub bytes: u64,
    /// The read that takes long, counted from 0.
    pub at_read: u64,
    /// How long.
    pub lasts: Duration,
}

impl Stalling {
    /// Mounts it in a directory. Needs root and the kernel's FUSE.
    pub fn mount(directory: &Dir, stall: Stall) -> Result<Stalling, String> {
        let mut reads = 0;
        let wait = move |_| {
            reads += 1;
            if reads == stall.at_read + 1 { stall.lasts } else { Duration::ZERO }
        };
        Stalling::waiting(directory, stall.bytes, wait)
    }

    /// Mounts one whose reads take as long as `wait` says, which is given the time since the first read.
    pub fn waiting(
        directory: &Dir,
        bytes: u64,
        wait: impl FnMut(Duration) -> Duration + Send + 'static,
    ) -> Result<Stalling, String> {
        root()?;
        let said = |what: &str, error: std::io::Error| format!("{what}: {error}");
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| said("/dev/fuse", error))?;
        let path = directory.join("stalling");
        std::fs::create_dir(&path).map_err(|error| said("mkdir", error))?;
        // The kernel is given the descriptor by its number in `mount`.
        let options = "fd=0,rootmode=40000,user_id=0,group_id=0";
        let mut command = Command::new("mount");
        command.args(["-i", "-t", "fuse", "-o", options, "fiord-test"]).arg(&path);
        let connection = device.try_clone().map_err(|error| said("/dev/fuse", error))?;
        let output = command.stdin(Stdio::from(connection)).output().map_err(|error| said("mount", error))?;
        if !output.status.success() {
            return Err(format!("mount: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        thread::spawn(move || serve(device, bytes, wait));
        Ok(Stalling { _mount: Mount { path } })
    }
}

/// Answers requests until the file system is unmounted.
fn serve(mut device: File, bytes: u64, mut wait: impl FnMut(Duration) -> Duration) {
    let mut asked = vec![0; REQUEST_BYTES_MAX];
    let mut begun = None;
    while let Ok(length) = device.read(&mut asked) {
        let (header, body) = asked[..length].split_at(HEADER_BYTES);
        let (opcode, node) = (number(header, 4, 4) as u32, number(header, 16, 8));
        if opcode == request::READ {
            thread::sleep(wait(begun.get_or_insert_with(Instant::now).elapsed()));
        }
        let Some(answer) = answer(opcode, node, body, bytes) else { continue };
        let (error, data) = answer.map_or_else(|errno| (-errno, Vec::new()), |data| (0, data));
        let mut reply = ((16 + data.len()) as u32).to_le_bytes().to_vec();
        reply.extend(error.to_le_bytes());
        reply.extend(&header[8..16]);
        reply.extend(data);
        // Fails if whoever asked has gone.
        let _ = device.write(&reply);
    }
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let mut word = [0; 8];
    word[..length].copy_from_slice(&bytes[at..at + length]);
    u64::from_le_bytes(word)
}

/// The answer to one request; `None` if it has none.
fn answer(opcode: u32, node: u64, body: &[u8], bytes: u64) -> Option<Result<Vec<u8>, i32>> {
    Some(match opcode {
        request::FORGET | request::BATCH_FORGET | request::INTERRUPT => return None,
        // Version 7.31, no read-ahead, no flags, 128 KiB per write.
        request::INIT => Ok(words(&[7, 31, 0, 0, 0, 1 << 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        request::LOOKUP if body == b"data\0" => {
            let entry = [FILE, 0, 0, 0, 0];
            Ok(entry.iter().flat_map(|word| word.to_le_bytes()).chain(attributes(FILE, bytes)).collect())
        }
        request::LOOKUP => Err(ENOENT),
        request::GETATTR => Ok([vec![0; 16], attributes(node, bytes)].concat()),
        request::OPEN | request::OPENDIR => Ok(words(&[0, 0, FOPEN_DIRECT_IO, 0])),
        request::READ => {
            let (offset, length) = (number(body, 8, 8), number(body, 16, 4));
            Ok(vec![7; length.min(bytes.saturating_sub(offset)) as usize])
        }
        request::STATFS => Ok(vec![0; 80]),
        request::RELEASE | request::RELEASEDIR | request::FLUSH => Ok(Vec::new()),
        _ => Err(ENOSYS),
    })
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The 88 bytes of a file's attributes.
fn attributes(node: u64, bytes: u64) -> Vec<u8> {
    let (mode, size) = if node == ROOT { (0o040_755, 0) } else { (0o100_644, bytes) };
    let numbers = [node, size, size / 512, 0, 0, 0];
    let mut all: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    // Parts of a second of three times; mode, links, user, group, device, block size, flags.
    all.extend(words(&[0, 0, 0, mode, 1, 0, 0, 0, 4096, 0]));
    all
}

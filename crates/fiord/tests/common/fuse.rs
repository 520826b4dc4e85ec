//! A file system with one file (FUSE), whose server is the test: it decides how each request for data is answered.
//!
//! Invariant: the server is one thread, so that everything else waits while a request is not answered. Bytes that were not
//! written are `UNWRITTEN`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use super::{Dir, Mount, root};

/// Numbers of requests (`include/uapi/linux/fuse.h`).
mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const RELEASEDIR: u32 = 29;
    pub const INTERRUPT: u32 = 36;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
}

/// Length of a request's header and of the longest request.
const HEADER_BYTES: usize = 40;
const REQUEST_BYTES_MAX: usize = 1 << 18;

/// Where the data of a write begins.
const WRITE_BYTES: usize = 40;

const ROOT: u64 = 1;
const FILE: u64 = 2;
const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;

/// Requests go to the server even if they are buffered.
const FOPEN_DIRECT_IO: u32 = 1;

/// A change of a file's attributes is one of its size.
const FATTR_SIZE: u64 = 1 << 3;

/// A byte that was never written.
pub const UNWRITTEN: u8 = 7;

const PAGE_BYTES: u64 = 4096;

/// What a request for data does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    /// `fallocate`.
    Allocate,
    /// `ftruncate`.
    Resize,
}

/// A request for data.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub kind: Kind,
    /// Its number among these, from 0.
    pub number: u64,
    pub offset: u64,
    pub length: u64,
}

/// How a request is answered.
#[derive(Debug, Clone, Copy)]
pub enum Reply {
    /// As it should be.
    Whole,
    /// With half of the bytes.
    Half,
    /// As it should be, later.
    After(Duration),
    /// With this errno.
    Error(i32),
    /// The server ends, as a device that is taken away.
    Vanish,
    /// Not at all, nor any later one, until the file system is dropped.
    Never,
}

/// The file.
struct Store {
    bytes: u64,
    pages: BTreeMap<u64, Vec<u8>>,
    requests: u64,
    requests_of_any_kind: u64,
}

impl Store {
    fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        let end = (offset + length).min(self.bytes);
        let (mut at, mut data) = (offset, Vec::new());
        while at < end {
            let within = (at % PAGE_BYTES) as usize;
            let count = (PAGE_BYTES - at % PAGE_BYTES).min(end - at) as usize;
            match self.pages.get(&(at / PAGE_BYTES)) {
                Some(page) => data.extend_from_slice(&page[within..within + count]),
                None => data.resize(data.len() + count, UNWRITTEN),
            }
            at += count as u64;
        }
        data
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        let (mut at, mut left) = (offset, data);
        while !left.is_empty() {
            let within = (at % PAGE_BYTES) as usize;
            let (part, rest) = left.split_at(left.len().min(PAGE_BYTES as usize - within));
            let page = self.pages.entry(at / PAGE_BYTES);
            let page = page.or_insert_with(|| vec![UNWRITTEN; PAGE_BYTES as usize]);
            page[within..within + part.len()].copy_from_slice(part);
            (at, left) = (at + part.len() as u64, rest);
        }
        self.bytes = self.bytes.max(offset + data.len() as u64);
    }
}

/// The mounted file system; its file is `NAME/data`.
pub struct Fuse {
    pub path: PathBuf,
    store: Arc<Mutex<Store>>,
    stopped: Arc<AtomicBool>,
    /// Dropped first, so that a server that answers no more ends, and with it what the kernel waits for.
    _release: Sender<()>,
    _mount: Mount,
}

impl Fuse {
    /// Mounts one in a directory under a name. If it is `cached`, the kernel keeps pages of the file. Needs root and the
    /// kernel's FUSE.
    pub fn mount(
        directory: &Dir,
        name: &str,
        bytes: u64,
        cached: bool,
        answer: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Result<Fuse, String> {
        root()?;
        let said = |what: &str, error: std::io::Error| format!("{what}: {error}");
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| said("/dev/fuse", error))?;
        let path = directory.join(name);
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
        let store = Arc::new(Mutex::new(Store {
            bytes,
            pages: BTreeMap::new(),
            requests: 0,
            requests_of_any_kind: 0,
        }));
        let (release, released) = mpsc::channel();
        let stopped = Arc::new(AtomicBool::new(false));
        let server = Server {
            device,
            store: Arc::clone(&store),
            stopped: Arc::clone(&stopped),
            released,
            cached,
            answer: Box::new(answer),
        };
        thread::spawn(move || server.serve());
        Ok(Fuse { store, stopped, _release: release, _mount: Mount { path: path.clone() }, path })
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap()
    }

    /// The bytes of the file, as the server has them.
    pub fn bytes(&self) -> Vec<u8> {
        let store = self.store();
        store.read(0, store.bytes)
    }

    /// Makes the server answer no request any more, of whatever kind, until the file system is dropped.
    pub fn stop_answering(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    /// Requests for data so far.
    pub fn requests(&self) -> u64 {
        self.store().requests
    }

    /// All requests so far.
    pub fn requests_of_any_kind(&self) -> u64 {
        self.store().requests_of_any_kind
    }
}

struct Server {
    device: File,
    store: Arc<Mutex<Store>>,
    stopped: Arc<AtomicBool>,
    released: Receiver<()>,
    cached: bool,
    answer: Box<dyn FnMut(&Asked) -> Reply + Send>,
}

impl Server {
    /// Answers requests until the file system is unmounted.
    fn serve(mut self) {
        let mut request = vec![0; REQUEST_BYTES_MAX];
        while let Ok(length) = self.device.read(&mut request) {
            if self.stopped.load(Ordering::SeqCst) {
                let _ = self.released.recv();
                return;
            }
            self.store.lock().unwrap().requests_of_any_kind += 1;
            let (header, body) = request[..length].split_at(HEADER_BYTES);
            let (opcode, node) = (number(header, 4, 4) as u32, number(header, 16, 8));
            if [opcode::FORGET, opcode::BATCH_FORGET, opcode::INTERRUPT].contains(&opcode) {
                continue;
            }
            let answered = match self.asked(opcode, body) {
                None => self.answer_to(opcode, node, body),
                Some(asked) => match (self.answer)(&asked) {
                    Reply::Whole => Ok(self.transfer(&asked, body)),
                    Reply::Half => Ok(self.transfer(&Asked { length: asked.length / 2, ..asked }, body)),
                    Reply::After(time) => {
                        thread::sleep(time);
                        Ok(self.transfer(&asked, body))
                    }
                    Reply::Error(errno) => Err(errno),
                    Reply::Vanish => return,
                    Reply::Never => {
                        let _ = self.released.recv();
                        return;
                    }
                },
            };
            let (error, data) = answered.map_or_else(|errno| (-errno, Vec::new()), |data| (0, data));
            let mut reply = ((16 + data.len()) as u32).to_le_bytes().to_vec();
            reply.extend(error.to_le_bytes());
            reply.extend(&header[8..16]);
            reply.extend(data);
            // Fails if whoever asked has gone.
            let _ = self.device.write(&reply);
        }
    }

    /// The request for data that this is, if it is one; it is counted.
    fn asked(&self, opcode: u32, body: &[u8]) -> Option<Asked> {
        let (kind, offset, length) = match opcode {
            opcode::READ => (Kind::Read, number(body, 8, 8), number(body, 16, 4)),
            opcode::WRITE => (Kind::Write, number(body, 8, 8), number(body, 16, 4)),
            opcode::FALLOCATE => (Kind::Allocate, number(body, 8, 8), number(body, 16, 8)),
            opcode::SETATTR if number(body, 0, 4) & FATTR_SIZE != 0 => (Kind::Resize, number(body, 16, 8), 0),
            _ => return None,
        };
        let mut store = self.store.lock().unwrap();
        store.requests += 1;
        Some(Asked { kind, number: store.requests - 1, offset, length })
    }

    /// Executes a request for data; returns the body of its answer.
    fn transfer(&self, asked: &Asked, body: &[u8]) -> Vec<u8> {
        let mut store = self.store.lock().unwrap();
        match asked.kind {
            Kind::Read => store.read(asked.offset, asked.length),
            Kind::Write => {
                store.write(asked.offset, &body[WRITE_BYTES..WRITE_BYTES + asked.length as usize]);
                words(&[asked.length as u32, 0])
            }
            Kind::Allocate => {
                store.bytes = store.bytes.max(asked.offset + asked.length);
                Vec::new()
            }
            Kind::Resize => {
                store.bytes = asked.offset;
                [vec![0; 16], attributes(FILE, store.bytes)].concat()
            }
        }
    }

    /// The answer to any other request.
    fn answer_to(&self, opcode: u32, node: u64, body: &[u8]) -> Result<Vec<u8>, i32> {
        let bytes = self.store.lock().unwrap().bytes;
        match opcode {
            // Version 7.31, no read-ahead, no flags, 128 KiB per write.
            opcode::INIT => Ok(words(&[7, 31, 0, 0, 0, 1 << 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            opcode::LOOKUP if body == b"data\0" => {
                let entry = [FILE, 0, 0, 0, 0];
                Ok(entry.iter().flat_map(|word| word.to_le_bytes()).chain(attributes(FILE, bytes)).collect())
            }
            opcode::LOOKUP => Err(ENOENT),
            opcode::GETATTR | opcode::SETATTR => Ok([vec![0; 16], attributes(node, bytes)].concat()),
            opcode::OPEN | opcode::OPENDIR => {
                Ok(words(&[0, 0, if self.cached { 0 } else { FOPEN_DIRECT_IO }, 0]))
            }
            opcode::STATFS => Ok(vec![0; 80]),
            opcode::RELEASE | opcode::RELEASEDIR | opcode::FLUSH => Ok(Vec::new()),
            _ => Err(ENOSYS),
        }
    }
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let mut word = [0; 8];
    word[..length].copy_from_slice(&bytes[at..at + length]);
    u64::from_le_bytes(word)
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

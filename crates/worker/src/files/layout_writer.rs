//! Writes the contents of a file that is laid out: a large one past the page cache, several writes at once.
//!
//! Invariant: when it succeeds every byte of the file was written; a buffer is refilled only after its write has ended.
//! Buffers are used again for the next file: to have new ones takes about as long as to fill them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::thread;

use fiord_stats::Capped;
use fiord_sys::channel::{self, Receiver, Sender};
use fiord_sys::errno::Errno;
use fiord_workload::Filler;

/// Bytes per write.
pub(super) const CHUNK_BYTES: u64 = 1 << 20;

/// Writes in flight.
const WRITERS: usize = 4;

/// What a write past the page cache is aligned to in memory: a page.
const ALIGN_BYTES: usize = 4096;

/// The bytes of one write.
struct Chunk {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Chunk {
    fn new(length: usize, filler: &mut Filler) -> Chunk {
        let memory = vec![0; length + ALIGN_BYTES];
        let start = memory.as_ptr().align_offset(ALIGN_BYTES);
        let mut chunk = Chunk { memory, start, length };
        filler.prime(chunk.bytes(length));
        chunk
    }

    fn bytes(&mut self, length: usize) -> &mut [u8] {
        &mut self.memory[self.start..self.start + length.min(self.length)]
    }
}

/// What files are filled with, and the buffers that no write uses.
pub(super) struct Contents {
    filler: Filler,
    spare: Vec<Chunk>,
}

impl Contents {
    pub(super) fn new(filler: Filler) -> Contents {
        Contents { filler, spare: Vec::new() }
    }

    /// A buffer for writes of so many bytes.
    fn chunk(&mut self, length: usize) -> Chunk {
        let spare = self.spare.pop().filter(|spare| spare.length >= length);
        spare.unwrap_or_else(|| Chunk::new(length, &mut self.filler))
    }
}

/// Where a write begins, and its bytes, which come back with what became of it.
type Order = (Chunk, u64);
type Written = (Chunk, io::Result<()>);

/// Writes a file of this many bytes, through `direct` as far as possible, if there is that; passes the bytes done to
/// `progress`, which returns whether to continue.
pub(super) fn write(
    (open, direct): (&File, Option<&File>),
    bytes: u64,
    contents: &mut Contents,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<()> {
    let mut done = match direct {
        Some(direct) => write_direct(direct, bytes, contents, progress)?,
        None => 0,
    };
    if done == bytes {
        return Ok(());
    }
    let mut chunk = contents.chunk(usize::capped(CHUNK_BYTES.min(bytes - done)));
    while done < bytes {
        let length = usize::capped(CHUNK_BYTES.min(bytes - done));
        contents.filler.before_write(0, chunk.bytes(length), done);
        open.write_all_at(chunk.bytes(length), done)?;
        done += length as u64;
        count(length as u64, progress)?;
    }
    contents.spare.push(chunk);
    Ok(())
}

fn count(bytes: u64, progress: &mut dyn FnMut(u64) -> bool) -> io::Result<()> {
    if progress(bytes) { Ok(()) } else { Err(Errno::EINTR.into()) }
}

/// Writes whole chunks past the page cache; returns how many bytes, which is none where the file system refuses it.
fn write_direct(
    direct: &File,
    bytes: u64,
    contents: &mut Contents,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<u64> {
    let mut first = contents.chunk(usize::capped(CHUNK_BYTES));
    contents.filler.before_write(0, first.bytes(first.length), 0);
    match direct.write_all_at(first.bytes(first.length), 0) {
        Err(error) if Errno::of(&error) == Some(Errno::EINVAL) => return Ok(0),
        written => written?,
    }
    contents.spare.push(first);
    count(CHUNK_BYTES, progress)?;
    let (orders, to_write) = channel::channel();
    let (ended, written) = channel::channel();
    let to_write = Mutex::new(to_write);
    thread::scope(|scope| {
        // Dropped at the end, which ends the threads.
        let orders = orders;
        let start = |_: &usize| {
            let (to_write, ended) = (&to_write, ended.clone());
            let writer = thread::Builder::new().name("layout".to_string());
            writer.spawn_scoped(scope, move || write_all_ordered(direct, to_write, &ended)).is_ok()
        };
        match (0..WRITERS).filter(start).count() {
            0 => Ok(CHUNK_BYTES),
            _ => order_all(bytes, (&orders, &written), contents, progress),
        }
    })
}

/// Has all whole chunks but the first written.
fn order_all(
    bytes: u64,
    (orders, written): (&Sender<Order>, &Receiver<Written>),
    contents: &mut Contents,
    progress: &mut dyn FnMut(u64) -> bool,
) -> io::Result<u64> {
    let (mut next, end) = (CHUNK_BYTES, bytes / CHUNK_BYTES * CHUNK_BYTES);
    let (mut in_flight, mut done) = (0, CHUNK_BYTES);
    while done < end {
        let mut chunk = if in_flight <= WRITERS && next < end {
            contents.chunk(usize::capped(CHUNK_BYTES))
        } else {
            let (chunk, result) = written.recv().map_err(io::Error::other)?;
            result?;
            (in_flight, done) = (in_flight - 1, done + CHUNK_BYTES);
            count(CHUNK_BYTES, progress)?;
            chunk
        };
        if next < end {
            contents.filler.before_write(0, chunk.bytes(usize::capped(CHUNK_BYTES)), next);
            orders.send((chunk, next)).map_err(|_| io::Error::other("the writers have ended"))?;
            (in_flight, next) = (in_flight + 1, next + CHUNK_BYTES);
        } else {
            contents.spare.push(chunk);
        }
    }
    Ok(done)
}

/// One of the writers.
fn write_all_ordered(direct: &File, orders: &Mutex<Receiver<Order>>, ended: &Sender<Written>) {
    let next = || orders.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok((mut chunk, offset_bytes)) = next() {
        let length = chunk.length;
        let result = direct.write_all_at(chunk.bytes(length), offset_bytes);
        if ended.send((chunk, result)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::job::Fill;
    use fiord_sys::file::{self, OpenHow};

    /// The contents that were written, by whether the page cache was bypassed, and the bytes that were counted.
    fn written(bytes: u64, bypasses: bool) -> (Vec<u8>, u64) {
        let path = std::env::temp_dir().join(format!("fiord-layout-{}-{bypasses}", std::process::id()));
        let fill = Fill::Pattern { bytes: (0..251).collect(), offset_at: vec![0] };
        let open = File::create(&path).unwrap();
        let direct = file::open(&path, &OpenHow { direct: true, ..OpenHow::WRITE }).ok();
        let (mut contents, mut counted) = (Contents::new(Filler::new(&fill, 1)), 0);
        let mut progress = |bytes| {
            counted += bytes;
            true
        };
        let direct = direct.as_ref().filter(|_| bypasses);
        write((&open, direct), bytes, &mut contents, &mut progress).unwrap();
        let found = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (found, counted)
    }

    #[test]
    fn the_contents_do_not_depend_on_the_way_they_are_written() {
        let bytes = 12 * CHUNK_BYTES + 777;
        let (cached, direct) = (written(bytes, false), written(bytes, true));
        assert_eq!((cached.0.len() as u64, cached.1, direct.1), (bytes, bytes, bytes));
        assert!(cached.0 == direct.0, "contents differ");
    }

    #[test]
    fn a_buffer_of_the_file_before_makes_no_difference() {
        let path = std::env::temp_dir().join(format!("fiord-layout-{}-again", std::process::id()));
        let fill = Fill::Pattern { bytes: (0..251).collect(), offset_at: vec![0] };
        let made = |contents: &mut Contents, bytes: u64| {
            let open = File::create(&path).unwrap();
            write((&open, None), bytes, contents, &mut |_| true).unwrap();
            std::fs::read(&path).unwrap()
        };
        let mut again = Contents::new(Filler::new(&fill, 1));
        for bytes in [5000, CHUNK_BYTES + 777, 4096, 2 * CHUNK_BYTES] {
            let new = made(&mut Contents::new(Filler::new(&fill, 1)), bytes);
            assert!(made(&mut again, bytes) == new && new.len() as u64 == bytes, "{bytes}");
            assert_eq!(again.spare.len(), 1, "{bytes}");
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn it_ends_where_progress_says_so() {
        let path = std::env::temp_dir().join(format!("fiord-layout-{}-ends", std::process::id()));
        let open = File::create(&path).unwrap();
        for direct in [None, Some(&open)] {
            let mut left = 5;
            let mut progress = |_| {
                left -= 1;
                left > 0
            };
            let mut contents = Contents::new(Filler::new(&Fill::Zero, 1));
            let ended = write((&open, direct), 64 * CHUNK_BYTES, &mut contents, &mut progress);
            assert_eq!(ended.unwrap_err().raw_os_error(), Some(Errno::EINTR.0));
        }
        std::fs::remove_file(&path).unwrap();
    }
}

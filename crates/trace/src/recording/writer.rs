//! Writes a recording.
//!
//! Invariant: memory grows with files, threads and streams, not with I/Os.

use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::layout::{
    CallKind, END, FILE, IO, IO_CONTINUES, IO_IN_SECTORS, IO_SAME_LENGTH, IO_SAME_STREAM, MAGIC,
    NAME_BYTES_MAX, OpenFlags, RecordedIo, RecordingEnd, RecordingHead, SECTOR_SHIFT, STREAM, THREAD, Thread,
    VERSION,
};

/// The beginning of every recording, by which a file is known as one that fiord wrote.
pub const RECORDING_MARK: &str = "fiord recording\n";

/// Calls of one thread, of one kind, on one file that is open in one way.
#[derive(Debug, Default)]
struct StreamState {
    end_bytes: u64,
    length_bytes: u64,
}

type StreamKey = (u32, u32, CallKind, OpenFlags);

/// Writes a recording as a stream.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    output: W,
    record: Vec<u8>,
    numbers: HashMap<StreamKey, u32>,
    streams: Vec<StreamState>,
    last_stream: Option<u32>,
    last_begin_ns: u64,
}

impl<W: Write> RecordingWriter<W> {
    /// Begins a recording.
    ///
    /// # Errors
    /// What the output returns.
    pub fn new(mut output: W, head: &RecordingHead) -> io::Result<RecordingWriter<W>> {
        let mut record = MAGIC.to_vec();
        record.push(VERSION);
        for text in [&head.made_by, &head.host, &head.kernel, &head.command] {
            name(&mut record, text.as_bytes());
        }
        number(&mut record, head.began_s);
        record.push(u8::from(head.is_anonymous));
        output.write_all(&record)?;
        let (numbers, streams) = (HashMap::new(), Vec::new());
        Ok(RecordingWriter { output, record, numbers, streams, last_stream: None, last_begin_ns: 0 })
    }

    /// Names the next file.
    ///
    /// # Errors
    /// What the output returns.
    pub fn file(&mut self, path: &Path) -> io::Result<()> {
        self.record.clear();
        self.record.push(FILE);
        name(&mut self.record, path.as_os_str().as_bytes());
        self.output.write_all(&self.record)
    }

    /// Names the next thread.
    ///
    /// # Errors
    /// What the output returns.
    pub fn thread(&mut self, thread: &Thread) -> io::Result<()> {
        self.record.clear();
        self.record.push(THREAD);
        number(&mut self.record, thread.process.into());
        number(&mut self.record, thread.thread.into());
        name(&mut self.record, thread.name.as_bytes());
        self.output.write_all(&self.record)
    }

    /// Writes an I/O, whose file and thread were named. They come best in the order in which they began.
    ///
    /// # Errors
    /// What the output returns.
    pub fn io(&mut self, io: &RecordedIo) -> io::Result<()> {
        self.record.clear();
        let stream = self.stream(io);
        let state = &mut self.streams[stream as usize];
        let (offset_bytes, length_bytes) = (io.offset_bytes, io.length_bytes);
        let distance = offset_bytes.wrapping_sub(state.end_bytes).cast_signed();
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let is_same = self.last_stream == Some(stream);
        let (continues, same_length) = (distance == 0, length_bytes == state.length_bytes);
        let low = (if continues { 0 } else { distance.cast_unsigned() })
            | (if same_length { 0 } else { length_bytes });
        let in_sectors = low != 0 && low.trailing_zeros() >= SECTOR_SHIFT;
        self.record.push(
            IO | flag(is_same, IO_SAME_STREAM)
                | flag(continues, IO_CONTINUES)
                | flag(same_length, IO_SAME_LENGTH)
                | flag(in_sectors, IO_IN_SECTORS),
        );
        let shift = if in_sectors { SECTOR_SHIFT } else { 0 };
        if !is_same {
            number(&mut self.record, stream.into());
        }
        if !continues {
            number(&mut self.record, zigzag(distance >> shift));
        }
        if !same_length {
            number(&mut self.record, length_bytes >> shift);
        }
        number(&mut self.record, zigzag(io.begin_ns.wrapping_sub(self.last_begin_ns).cast_signed()));
        number(&mut self.record, io.duration_ns);
        *state = StreamState { end_bytes: offset_bytes.wrapping_add(length_bytes), length_bytes };
        (self.last_stream, self.last_begin_ns) = (Some(stream), io.begin_ns);
        self.output.write_all(&self.record)
    }

    /// The number of an I/O's stream, which is written before its first.
    fn stream(&mut self, io: &RecordedIo) -> u32 {
        let next = u32::try_from(self.streams.len()).unwrap_or(u32::MAX);
        let key = (io.thread, io.file, io.call, io.flags);
        let found = *self.numbers.entry(key).or_insert(next);
        if found == next {
            self.streams.push(StreamState::default());
            self.record.push(STREAM);
            number(&mut self.record, io.thread.into());
            number(&mut self.record, io.file.into());
            self.record.extend([io.call as u8, io.flags.0]);
        }
        found
    }

    /// Where it is written.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }

    /// Writes the end.
    ///
    /// # Errors
    /// What the output returns.
    pub fn finish(&mut self, end: &RecordingEnd) -> io::Result<()> {
        self.record.clear();
        self.record.push(END);
        let left = &end.left_out;
        let figures = [
            end.length_ns,
            end.lost_events,
            end.own_cpu_ns,
            left.io_uring,
            left.libaio,
            left.mappings,
            left.copies,
            left.unknown,
            end.exit_status.map_or(0, |status| u64::from(status) + 1),
        ];
        figures.into_iter().for_each(|figure| number(&mut self.record, figure));
        self.output.write_all(&self.record)
    }
}

/// Seven bits in each byte, the lowest first; all but the last have their highest bit set.
fn number(record: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        record.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    record.push((number & 0x7f) as u8);
}

/// Small numbers of either sign as small ones without.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn name(record: &mut Vec<u8>, name: &[u8]) {
    let name = &name[..name.len().min(NAME_BYTES_MAX)];
    number(record, name.len() as u64);
    record.extend_from_slice(name);
}

//! Reads a recording.
//!
//! Invariant: no bytes are a panic, and memory grows no faster than what was read. A recording without its end is an error,
//! because what was lost is not known, unless the caller has said that it tells so.

use std::ffi::OsString;
use std::io::{self, BufRead, ErrorKind};
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::layout::{
    CallKind, END, FILE, IO, IO_CONTINUES, IO_IN_SECTORS, IO_SAME_LENGTH, IO_SAME_STREAM, IO_UNUSED, LeftOut,
    MAGIC, NAME_BYTES_MAX, OpenFlags, RecordedIo, RecordingEnd, RecordingHead, SECTOR_SHIFT, STREAM, THREAD,
    Thread, VERSION,
};
use crate::error::TraceError;
use crate::{Entry, EntryKind, FileName, TRANSFER_BYTES_MAX};

/// Whether a file that begins with these bytes is a recording.
pub(crate) fn is_magic(first_bytes: &[u8]) -> bool {
    first_bytes.starts_with(MAGIC)
}

/// What a recording tells besides its entries, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorded {
    /// Its head.
    pub head: RecordingHead,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Its end, once that was read.
    pub end: Option<RecordingEnd>,
    /// Where it stops, if it has no end: the byte after its last whole record.
    pub cut_at_byte: Option<u64>,
}

#[derive(Debug)]
struct Stream {
    thread: u32,
    file: u32,
    call: CallKind,
    flags: OpenFlags,
    end_bytes: u64,
    length_bytes: u64,
}

/// Reads the records of a recording.
#[derive(Debug)]
pub(crate) struct Records<R> {
    input: R,
    at_byte: u64,
    /// Where the record that is read begins.
    record_at: u64,
    told: Recorded,
    streams: Vec<Stream>,
    last_stream: Option<usize>,
    last_begin_ns: u64,
    last: Option<RecordedIo>,
    now_ns: u64,
    accepts_cut: bool,
    /// The input ended within a record, or before the end.
    is_cut: bool,
}

impl<R: BufRead> Records<R> {
    /// Reads the head.
    pub fn new(input: R) -> Result<Records<R>, TraceError> {
        let mut records = Records {
            input,
            at_byte: 0,
            record_at: 0,
            told: Recorded::default(),
            streams: Vec::new(),
            last_stream: None,
            last_begin_ns: 0,
            last: None,
            now_ns: 0,
            accepts_cut: false,
            is_cut: false,
        };
        let mut magic = [0; MAGIC.len()];
        records.fill(&mut magic)?;
        let version = records.byte()?;
        if version != VERSION {
            return Err(records.error(format!(
                "it is a recording of version {version}, and this fiord reads version {VERSION}; use the fiord that wrote it"
            )));
        }
        let [made_by, host, kernel, command] =
            [records.text()?, records.text()?, records.text()?, records.text()?];
        let began_s = records.number()?;
        let is_anonymous = records.byte()? != 0;
        records.told.head = RecordingHead { made_by, host, kernel, command, began_s, is_anonymous };
        Ok(records)
    }

    /// Reads a recording that has no end up to its last whole record.
    pub fn accept_cut(&mut self) {
        self.accepts_cut = true;
    }

    /// The next I/O; files that are named go to `files`.
    pub fn next(&mut self, files: &mut Vec<FileName>) -> Result<Option<Entry>, TraceError> {
        if self.is_cut {
            return Ok(None);
        }
        match self.record(files) {
            Err(_) if self.is_cut && self.accepts_cut => {
                self.told.cut_at_byte = Some(self.record_at);
                Ok(None)
            }
            read => read,
        }
    }

    fn record(&mut self, files: &mut Vec<FileName>) -> Result<Option<Entry>, TraceError> {
        while self.told.end.is_none() {
            self.record_at = self.at_byte;
            match self.byte()? {
                END => self.told.end = Some(self.end()?),
                FILE => files.push(FileName::Path(PathBuf::from(OsString::from_vec(self.name()?)))),
                THREAD => {
                    let (process, thread) = (self.small()?, self.small()?);
                    let name = self.text()?;
                    self.told.threads.push(Thread { process, thread, name });
                }
                STREAM => {
                    let stream = self.stream(files)?;
                    self.streams.push(stream);
                }
                tag if tag >= IO && tag & IO_UNUSED == 0 => return self.io(tag).map(Some),
                tag => return Err(self.error(format!("there is no record of kind {tag}"))),
            }
        }
        Ok(None)
    }

    /// What it tells besides its entries.
    pub fn told(&self) -> &Recorded {
        &self.told
    }

    /// The last I/O that was read.
    pub fn last(&self) -> Option<&RecordedIo> {
        self.last.as_ref()
    }

    /// When the last I/O began; at the end, how long the recording is.
    pub fn now_ns(&self) -> u64 {
        self.told.end.map_or(self.now_ns, |end| end.length_ns.max(self.now_ns))
    }

    fn end(&mut self) -> Result<RecordingEnd, TraceError> {
        let mut figures = [0; 9];
        for figure in &mut figures {
            *figure = self.number()?;
        }
        let [length_ns, lost_events, own_cpu_ns, io_uring, libaio, mappings, copies, unknown, status] =
            figures;
        let exit_status = match status {
            0 => None,
            status => Some(u32::try_from(status - 1).map_err(|_| self.error("no status is so high"))?),
        };
        let left_out = LeftOut { io_uring, libaio, mappings, copies, unknown };
        Ok(RecordingEnd { length_ns, lost_events, own_cpu_ns, left_out, exit_status })
    }

    fn stream(&mut self, files: &[FileName]) -> Result<Stream, TraceError> {
        let (thread, file) = (self.small()?, self.small()?);
        let (call, flags) = (self.byte()?, self.byte()?);
        if thread as usize >= self.told.threads.len() || file as usize >= files.len() {
            return Err(self.error("a thread or file that was not named before"));
        }
        let call = CallKind::ALL.get(usize::from(call)).copied();
        let call = call.ok_or_else(|| self.error("there is no call of this number"))?;
        let flags = OpenFlags(flags);
        if !OpenFlags::ALL.has(flags) {
            return Err(self.error("there are no such flags"));
        }
        Ok(Stream { thread, file, call, flags, end_bytes: 0, length_bytes: 0 })
    }

    fn io(&mut self, tag: u8) -> Result<Entry, TraceError> {
        let at = match tag & IO_SAME_STREAM != 0 {
            true => self.last_stream,
            false => usize::try_from(self.number()?).ok(),
        };
        let Some((at, stream)) = at.and_then(|at| Some((at, self.streams.get(at)?))) else {
            return Err(self.error("an I/O of a stream that was not named before"));
        };
        let Stream { thread, file, call, flags, end_bytes, length_bytes } = *stream;
        let kind = call.entry_kind();
        let shift = if tag & IO_IN_SECTORS != 0 { SECTOR_SHIFT } else { 0 };
        let distance = if tag & IO_CONTINUES != 0 { 0 } else { unzigzag(self.number()?) };
        let length_bytes = match tag & IO_SAME_LENGTH != 0 {
            true => Some(length_bytes),
            false => self.number()?.checked_mul(1 << shift),
        };
        let offset_bytes = distance.checked_mul(1 << shift).and_then(|by| end_bytes.checked_add_signed(by));
        let begin_ns = self.last_begin_ns.checked_add_signed(unzigzag(self.number()?));
        let duration_ns = self.number()?;
        let (Some(offset_bytes), Some(length_bytes), Some(begin_ns)) = (offset_bytes, length_bytes, begin_ns)
        else {
            return Err(self.error("a time, an offset or a length that is too large"));
        };
        let end_bytes = offset_bytes.checked_add(length_bytes).filter(|end| *end <= i64::MAX as u64);
        let end_bytes = end_bytes.ok_or_else(|| self.error("the I/O ends beyond the largest file size"))?;
        if kind.has_range() && length_bytes == 0 {
            return Err(self.error(format!("a {} of no bytes", kind.word())));
        }
        if matches!(kind, EntryKind::Sync | EntryKind::DataSync) && end_bytes > 0 {
            return Err(self.error(format!("a {} of a range, and it is of a whole file", kind.word())));
        }
        if kind.transfers() && length_bytes > TRANSFER_BYTES_MAX {
            return Err(
                self.error(format!("a {} of {length_bytes} bytes, more than a call transfers", kind.word()))
            );
        }
        let stream = &mut self.streams[at];
        (stream.end_bytes, stream.length_bytes) = (end_bytes, length_bytes);
        (self.last_stream, self.last_begin_ns) = (Some(at), begin_ns);
        // Those that began long before others ended may be slightly out of order; time does not go back.
        self.now_ns = self.now_ns.max(begin_ns);
        let io = RecordedIo { thread, file, call, flags, offset_bytes, length_bytes, begin_ns, duration_ns };
        self.last = Some(io);
        Ok(Entry { at_ns: self.now_ns, file, kind, offset_bytes, length_bytes })
    }

    fn error(&self, message: impl Into<String>) -> TraceError {
        TraceError::byte(self.record_at, message)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), TraceError> {
        if let Err(error) = io::Read::read_exact(&mut self.input, bytes) {
            self.is_cut = error.kind() == ErrorKind::UnexpectedEof;
            return Err(match self.is_cut {
                true => self.error(
                    "the recording has no end: it is cut off, or was not finished; \
                     fiord model takes what is there, or record again",
                ),
                false => self.error(format!("it cannot be read: {}", fiord_errno::error_text(&error))),
            });
        }
        self.at_byte += bytes.len() as u64;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, TraceError> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    fn number(&mut self) -> Result<u64, TraceError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number of more than 64 bits"))
    }

    fn small(&mut self) -> Result<u32, TraceError> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| self.error("a number of more than 32 bits"))
    }

    fn name(&mut self) -> Result<Vec<u8>, TraceError> {
        let length = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if length > NAME_BYTES_MAX {
            return Err(self.error(format!("a name of {length} bytes; {NAME_BYTES_MAX} is the most")));
        }
        let mut name = vec![0; length];
        self.fill(&mut name)?;
        Ok(name)
    }

    fn text(&mut self) -> Result<String, TraceError> {
        Ok(String::from_utf8_lossy(&self.name()?).into_owned())
    }
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

//! Binary traces of blktrace, as `blkparse -d` writes them: fixed records, each followed by data of its own.
//!
//! Invariant: of a request's many events only its queueing is an I/O. Source of the layout: linux/blktrace_api.h.

use fiord_errno::error_text;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Seek};

use crate::error::TraceError;
use crate::{Entry, EntryKind, FileName};

/// The fixed part of an event.
pub(crate) const EVENT_BYTES: usize = 48;
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 0x07;
const SECTOR_BYTES: u64 = 512;

/// Categories, the upper half of `action`.
const CATEGORY_SHIFT: u32 = 16;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASSTHROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
/// The action proper, the lower half without the mark of events from a control group.
const ACTION_MASK: u32 = 0xff;
const QUEUED: u32 = 1;
const COMPLETED: u32 = 8;
/// Requests without a completion that are remembered, at most: where so many are, completions are missing.
const IN_FLIGHT_MAX: usize = 1 << 16;
/// Bits of the minor number in the kernel's device numbers.
const MINOR_BITS: u32 = 20;

/// Whether a file that begins with these bytes is a binary trace, in either byte order.
pub(crate) fn is_magic(first_bytes: &[u8]) -> bool {
    let Some(bytes) = first_bytes.first_chunk::<4>() else { return false };
    [u32::from_le_bytes(*bytes), u32::from_be_bytes(*bytes)].iter().any(|word| word >> 8 == MAGIC >> 8)
}

/// Lengths of the fields of an event, in order.
const FIELDS: [usize; 11] = [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2];
/// Where the action is.
const ACTION_AT: usize = 28;
/// Where the time is.
const TIME_AT: usize = 8;
/// Where the number of the process is.
const PROCESS_AT: usize = 32;
/// Where the number of the device is.
const DEVICE_AT: usize = 36;
/// Where the length of the data after the event is.
const DATA_BYTES_AT: usize = 46;

/// Changes the time of an event in the byte order of [`Events::event`].
pub(crate) fn set_time(event: &mut [u8; EVENT_BYTES], at_ns: u64) {
    event[TIME_AT..TIME_AT + 8].copy_from_slice(&at_ns.to_le_bytes());
}

/// Reads the events of a binary trace.
#[derive(Debug)]
pub(crate) struct Events<R> {
    input: R,
    swapped: bool,
    at_byte: u64,
    began_ns: Option<u64>,
    now_ns: u64,
    last_file: u32,
    /// The last I/O, as it was read.
    queued: [u8; EVENT_BYTES],
    /// Device and first sector of the requests that were queued and are not completed. A tracer misses completions when
    /// it begins, so that requests count only from the first one on.
    in_flight: BTreeSet<(u32, u64)>,
    has_completions: bool,
}

impl<R: BufRead> Events<R> {
    /// Events of an input whose first bytes are these.
    pub fn new(input: R, first_bytes: &[u8]) -> Events<R> {
        let native =
            first_bytes.first_chunk().is_some_and(|bytes| u32::from_le_bytes(*bytes) >> 8 == MAGIC >> 8);
        Events {
            input,
            swapped: !native,
            at_byte: 0,
            began_ns: None,
            now_ns: 0,
            last_file: 0,
            queued: [0; EVENT_BYTES],
            in_flight: BTreeSet::new(),
            has_completions: false,
        }
    }

    /// The next I/O; devices that occur for the first time go to `files`.
    pub fn next(&mut self, files: &mut Vec<FileName>) -> Result<Option<Entry>, TraceError> {
        loop {
            let mut event = [0; EVENT_BYTES];
            if !self.read(&mut event)? {
                return Ok(None);
            }
            let entry = self.parse(&event, files)?;
            let data_bytes = u64::from(self.u16(&event, DATA_BYTES_AT));
            let skipped = io::copy(&mut io::Read::take(&mut self.input, data_bytes), &mut io::sink());
            if skipped.map_err(|error| self.error(format!("it cannot be read: {}", error_text(&error))))?
                < data_bytes
            {
                return Err(self.error("the trace ends within an event"));
            }
            self.at_byte += EVENT_BYTES as u64 + data_bytes;
            if let Some(entry) = entry {
                self.queued = event;
                return Ok(Some(entry));
            }
        }
    }

    /// The time of the last event.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The process that queued the last I/O.
    pub fn process(&self) -> u32 {
        self.u32(&self.queued, PROCESS_AT)
    }

    /// Requests in flight after the last I/O, itself included; `None` as long as no completion was seen.
    pub fn in_flight(&self) -> Option<u32> {
        self.has_completions.then_some(u32::try_from(self.in_flight.len()).unwrap_or(u32::MAX))
    }

    /// The event of the last I/O in little-endian order, without its data.
    pub fn event(&self) -> [u8; EVENT_BYTES] {
        let mut event = self.queued;
        let mut at = 0;
        for bytes in FIELDS.into_iter().filter(|_| self.swapped) {
            event[at..at + bytes].reverse();
            at += bytes;
        }
        event[DATA_BYTES_AT..].fill(0);
        // The mark that the data begins with the control group.
        event[ACTION_AT + 1] = 0;
        event
    }

    fn error(&self, message: impl Into<String>) -> TraceError {
        TraceError::byte(self.at_byte, message)
    }

    /// Fills the buffer; `false` if nothing is left.
    fn read(&mut self, buffer: &mut [u8]) -> Result<bool, TraceError> {
        let at_end = self.input.fill_buf().map(<[u8]>::is_empty);
        if at_end.map_err(|error| self.error(format!("it cannot be read: {}", error_text(&error))))? {
            return Ok(false);
        }
        match self.input.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(self.error("the trace ends within an event"))
            }
            Err(error) => Err(self.error(format!("it cannot be read: {}", error_text(&error)))),
        }
    }

    fn parse(
        &mut self,
        event: &[u8; EVENT_BYTES],
        files: &mut Vec<FileName>,
    ) -> Result<Option<Entry>, TraceError> {
        let magic = self.u32(event, 0);
        if magic >> 8 != MAGIC >> 8 {
            return Err(self.error(format!("an event begins with {magic:#x} instead of {MAGIC:#x}")));
        }
        if magic & 0xff != VERSION {
            let version = magic & 0xff;
            return Err(self.error(format!("events of version {version}; only {VERSION} is known")));
        }
        let action = self.u32(event, ACTION_AT);
        let category = action >> CATEGORY_SHIFT;
        if category & (NOTIFY | PASSTHROUGH) != 0 {
            return Ok(None);
        }
        self.follow(event, action & ACTION_MASK);
        if action & ACTION_MASK != QUEUED {
            return Ok(None);
        }
        let time_ns = self.u64(event, TIME_AT);
        let began_ns = *self.began_ns.get_or_insert(time_ns);
        // Events of several processors may be slightly out of order; time does not go back.
        self.now_ns = self.now_ns.max(time_ns.saturating_sub(began_ns));
        let length_bytes = u64::from(self.u32(event, 24));
        let kind = match length_bytes {
            0 if category & FLUSH != 0 => EntryKind::Sync,
            0 => return Ok(None),
            _ if category & DISCARD != 0 => EntryKind::Trim,
            _ if category & WRITE != 0 => EntryKind::Write,
            _ => EntryKind::Read,
        };
        let offset_bytes =
            if kind.has_range() { self.u64(event, 16).checked_mul(SECTOR_BYTES) } else { Some(0) };
        let offset_bytes = offset_bytes
            .filter(|offset| offset.checked_add(length_bytes).is_some_and(|end| end <= i64::MAX as u64));
        let offset_bytes =
            offset_bytes.ok_or_else(|| self.error("the event ends beyond the largest device size"))?;
        let file = self.file(self.u32(event, DEVICE_AT), files);
        Ok(Some(Entry { at_ns: self.now_ns, file, kind, offset_bytes, length_bytes }))
    }

    /// Keeps track of what is in flight. A request that others became part of completes all of them: they lie within it.
    fn follow(&mut self, event: &[u8; EVENT_BYTES], action: u32) {
        let (device, sector) = (self.u32(event, DEVICE_AT), self.u64(event, 16));
        match action {
            QUEUED => {
                if self.in_flight.len() == IN_FLIGHT_MAX {
                    self.in_flight.clear();
                }
                self.in_flight.insert((device, sector));
            }
            COMPLETED if !self.has_completions => {
                self.has_completions = true;
                self.in_flight.clear();
            }
            COMPLETED => {
                let sectors = (u64::from(self.u32(event, 24)) / SECTOR_BYTES).max(1);
                let completed = (device, sector)..(device, sector.saturating_add(sectors));
                let ended: Vec<(u32, u64)> = self.in_flight.range(completed).copied().collect();
                ended.iter().for_each(|request| {
                    self.in_flight.remove(request);
                });
            }
            _ => {}
        }
    }

    /// The number of a device.
    fn file(&mut self, device: u32, files: &mut Vec<FileName>) -> u32 {
        let name = FileName::Device { major: device >> MINOR_BITS, minor: device & ((1 << MINOR_BITS) - 1) };
        if files.get(self.last_file as usize) != Some(&name) {
            let known = files.iter().position(|file| *file == name);
            self.last_file = u32::try_from(known.unwrap_or(files.len())).unwrap_or(u32::MAX);
            if known.is_none() {
                files.push(name);
            }
        }
        self.last_file
    }

    fn u16(&self, event: &[u8], at: usize) -> u16 {
        u16::from_le_bytes(self.field(event, at))
    }

    fn u32(&self, event: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(self.field(event, at))
    }

    fn u64(&self, event: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(self.field(event, at))
    }

    /// The bytes of a field in little-endian order.
    fn field<const N: usize>(&self, event: &[u8], at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&event[at..at + N]);
        if self.swapped {
            bytes.reverse();
        }
        bytes
    }
}

impl<R: BufRead + Seek> Events<R> {
    /// Begins again with the first event.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.input.rewind()?;
        (self.at_byte, self.began_ns, self.now_ns) = (0, None, 0);
        self.in_flight.clear();
        Ok(())
    }
}

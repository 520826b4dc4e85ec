//! The binary form of log entries in compressed logs (`log_store_compressed`), as fio 3.33 writes and reads it.
//!
//! Invariant: decoding what was encoded gives the line of the text form; bytes that are not a whole entry are kept for
//! the next call, and none is taken for an entry that is not one.

use std::fmt::Write;

/// Bytes of an entry, without and with its offset.
const BYTES: usize = 32;
const BYTES_WITH_OFFSET: usize = 40;
/// Flags above the direction.
const HAS_OFFSET: u32 = 1 << 31;
const HAS_PRIORITY: u32 = 1 << 30;
const REAL_TIME: u16 = 1;

/// One entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogEntry {
    pub time_ms: u64,
    /// Of a bandwidth log in bytes per second, although text has KiB/s.
    pub value: u64,
    pub direction: u8,
    /// Class and level as the kernel packs them.
    pub priority: u16,
    pub length_bytes: u64,
    /// Of a log with offsets.
    pub offset_bytes: Option<u64>,
}

impl LogEntry {
    /// Appends the entry; `shows_priority` is `log_prio`.
    pub(super) fn encode(&self, shows_priority: bool, bytes: &mut Vec<u8>) {
        let offset = if self.offset_bytes.is_some() { HAS_OFFSET } else { 0 };
        let priority = if shows_priority { HAS_PRIORITY } else { 0 };
        bytes.extend(self.time_ms.to_le_bytes());
        bytes.extend(self.value.to_le_bytes());
        bytes.extend((u32::from(self.direction) | offset | priority).to_le_bytes());
        bytes.extend(self.priority.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.length_bytes.to_le_bytes());
        bytes.extend(self.offset_bytes.iter().flat_map(|offset| offset.to_le_bytes()));
    }
}

/// Turns the bytes of a decompressed log into text.
#[derive(Debug, Default)]
pub struct LogDecoder {
    rest: Vec<u8>,
}

impl LogDecoder {
    /// Appends the lines of the next bytes.
    pub fn decode(&mut self, bytes: &[u8], text: &mut String) {
        self.rest.extend(bytes);
        let mut done = 0;
        while let Some(length) = line(&self.rest[done..], text) {
            done += length;
        }
        self.rest.drain(..done);
    }

    /// Whether the bytes so far end with an entry.
    pub fn is_complete(&self) -> bool {
        self.rest.is_empty()
    }
}

/// Appends the line of the first entry; returns its bytes. `None`: it is not complete.
fn line(bytes: &[u8], text: &mut String) -> Option<usize> {
    let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let (time_ms, value, packed, length_bytes) = (number(0)?, number(8)?, number(16)?, number(24)?);
    let (flags, priority) = ((packed & 0xffff_ffff) as u32, (packed >> 32 & 0xffff) as u16);
    let direction = flags & !(HAS_OFFSET | HAS_PRIORITY);
    let offset = if flags & HAS_OFFSET != 0 { Some(number(BYTES)?) } else { None };
    // Writing to a String cannot fail.
    let _ = write!(text, "{time_ms}, {value}, {direction}, {length_bytes}");
    if let Some(offset) = offset {
        let _ = write!(text, ", {offset}");
    }
    let _ = match flags & HAS_PRIORITY {
        0 => writeln!(text, ", {}", u8::from(priority >> 13 == REAL_TIME)),
        _ => writeln!(text, ", 0x{priority:04x}"),
    };
    Some(if offset.is_some() { BYTES_WITH_OFFSET } else { BYTES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_bytes_of_fio_3_33() {
        // From a log of fio with log_offset and log_prio, and one without.
        let with = "00000000000000003a00000000000000010000c0034000000010000000000000 00b0000000000000";
        let sample = LogEntry {
            time_ms: 0,
            value: 58,
            direction: 1,
            priority: 0x4003,
            length_bytes: 4096,
            offset_bytes: Some(45056),
        };
        let hex = |sample: &LogEntry, shows: bool| {
            let mut bytes = Vec::new();
            sample.encode(shows, &mut bytes);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(hex(&sample, true), with.replace(' ', ""));
        let plain = LogEntry { direction: 0, value: 0x69, priority: 0, offset_bytes: None, ..sample };
        assert_eq!(hex(&plain, false), "0000000000000000690000000000000000000000000000000010000000000000");
    }

    #[test]
    fn bytes_are_decoded_however_they_are_cut() {
        let sample = LogEntry {
            time_ms: 7,
            value: 9,
            direction: 2,
            priority: 0x2004,
            length_bytes: 512,
            offset_bytes: None,
        };
        let mut bytes = Vec::new();
        sample.encode(false, &mut bytes);
        LogEntry { offset_bytes: Some(1024), ..sample }.encode(true, &mut bytes);
        for cut in 0..=bytes.len() {
            let (mut decoder, mut text) = (LogDecoder::default(), String::new());
            decoder.decode(&bytes[..cut], &mut text);
            assert_eq!(decoder.is_complete(), [0, BYTES, bytes.len()].contains(&cut), "{cut}");
            decoder.decode(&bytes[cut..], &mut text);
            assert_eq!(text, "7, 9, 2, 512, 1\n7, 9, 2, 512, 1024, 0x2004\n", "{cut}");
            assert!(decoder.is_complete());
        }
    }
}

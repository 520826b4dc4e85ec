//! Records of the block layer's tracepoints as events.
//!
//! Invariant: where a field is in a record is what the kernel's `format` file says; nothing is assumed of its version.

use super::format::{Field, id, id_of};
use super::ring::{half, word};

/// Where a request got to, in the order of its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It was made for whoever runs (`block_getrq`).
    #[default]
    Made,
    /// It was given to the driver (`block_rq_issue`).
    Issued,
    /// The device completed it (`block_rq_complete`).
    Completed,
}

impl Step {
    /// Every step, in the order of a request.
    pub const ALL: [Step; 3] = [Step::Made, Step::Issued, Step::Completed];

    /// The tracepoint, of the system `block`.
    pub fn tracepoint(self) -> &'static str {
        match self {
            Step::Made => "block_getrq",
            Step::Issued => "block_rq_issue",
            Step::Completed => "block_rq_complete",
        }
    }
}

/// What a request asks of the device, in the order of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Read.
    #[default]
    Read,
    /// Write.
    Write,
    /// Make what was written durable.
    Flush,
    /// Discard, or erase.
    Discard,
}

impl Operation {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
        }
    }

    /// Of the kernel's letters: `RA`, `WS`, `FF`, `FWFS`, `DS`. A write with a flush before it is a write if it moves data.
    fn of(letters: &[u8], sectors: u32) -> Option<Operation> {
        match letters.strip_prefix(b"F").unwrap_or(letters).first()? {
            b'R' => Some(Operation::Read),
            b'W' if sectors == 0 => Some(Operation::Flush),
            b'W' => Some(Operation::Write),
            b'D' | b'E' => Some(Operation::Discard),
            b'F' => Some(Operation::Flush),
            _ => None,
        }
    }
}

/// A request at one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, in nanoseconds of the trace's clock.
    pub at_ns: u64,
    /// The step.
    pub step: Step,
    /// The device, as the kernel numbers it: major number from bit 20.
    pub device: u32,
    /// The first sector of 512 bytes; 0 of a flush.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// What it asks.
    pub operation: Operation,
    /// The thread that ran: the one that made it at its first step, anyone at the others.
    pub thread: i32,
    /// The name of that thread, as the kernel has it: up to the first zero.
    pub thread_name: [u8; 16],
}

/// Puts events in the order of time; those of one moment in the order of a request's steps.
pub fn put_in_order(events: &mut [BlockEvent]) {
    events.sort_unstable_by_key(|event| (event.at_ns, event.step));
}

/// The name of a thread as text; empty if the tracepoint does not tell.
pub fn name_text(name: [u8; 16]) -> String {
    String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

/// Where the fields of a tracepoint are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EventFormat {
    step: Step,
    id: u16,
    thread: Field,
    device: Field,
    sector: Field,
    sectors: Field,
    letters: Field,
    thread_name: Option<Field>,
}

/// Where the fields of all tracepoints are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFormats(Vec<EventFormat>);

impl EventFormats {
    /// Adds the tracepoint of a step by its `format` file. The error is the field that it lacks.
    ///
    /// # Errors
    /// The name of a field that is not there.
    pub fn add(&mut self, step: Step, text: &str) -> Result<(), &'static str> {
        let needed = |name: &'static str| Field::named(text, name).ok_or(name);
        self.0.push(EventFormat {
            step,
            id: id(text).ok_or("ID")?,
            thread: needed("common_pid")?,
            device: needed("dev")?,
            sector: needed("sector")?,
            sectors: needed("nr_sector")?,
            letters: needed("rwbs")?,
            thread_name: Field::named(text, "comm"),
        });
        Ok(())
    }

    /// A record as an event; `None` for that of another tracepoint, or of a request that moves no data.
    pub fn event(&self, at_ns: u64, record: &[u8]) -> Option<BlockEvent> {
        let id = id_of(record)?;
        let format = self.0.iter().find(|format| format.id == id)?;
        let bytes = |field: Field| record.get(field.at..)?.get(..field.bytes);
        let sectors = half(record, format.sectors.at)?;
        let operation = Operation::of(bytes(format.letters)?, sectors)?;
        let sector = word(record, format.sector.at)?;
        let name = format.thread_name.and_then(bytes).and_then(|name| name.try_into().ok());
        Some(BlockEvent {
            at_ns,
            step: format.step,
            device: half(record, format.device.at)?,
            // A flush has no place, which the kernel writes as 0 or as the highest.
            sector: if operation == Operation::Flush { 0 } else { sector },
            sectors,
            operation,
            thread: half(record, format.thread.at)?.cast_signed(),
            thread_name: name.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 prints it.
    const GETRQ: &str = "\
name: block_getrq
ID: 2096
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;
\tfield:char comm[16];\toffset:38;\tsize:16;\tsigned:0;

print fmt: \"%d,%d %s %llu + %u [%s]\"
";

    fn record(letters: &[u8]) -> Vec<u8> {
        let mut record = vec![0; 56];
        record[..2].copy_from_slice(&2096u16.to_ne_bytes());
        record[4..8].copy_from_slice(&77i32.to_ne_bytes());
        record[8..12].copy_from_slice(&(254u32 << 20).to_ne_bytes());
        record[16..24].copy_from_slice(&4096u64.to_ne_bytes());
        record[24..28].copy_from_slice(&8u32.to_ne_bytes());
        record[28..28 + letters.len()].copy_from_slice(letters);
        record[38..42].copy_from_slice(b"dd\0x");
        record
    }

    fn formats() -> EventFormats {
        let mut formats = EventFormats::default();
        formats.add(Step::Made, GETRQ).unwrap();
        formats
    }

    #[test]
    fn a_record_is_read_as_its_format_says() {
        let expected = BlockEvent {
            at_ns: 5,
            step: Step::Made,
            device: 254 << 20,
            sector: 4096,
            sectors: 8,
            operation: Operation::Write,
            thread: 77,
            thread_name: *b"dd\0x\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        assert_eq!(name_text(expected.thread_name), "dd");
        assert_eq!(formats().event(5, &record(b"WS")), Some(expected));
        assert_eq!(formats().event(5, &record(b"WS")[..30]), None);
        assert_eq!(formats().event(5, &record(b"N")), None, "no data");
        let mut other = record(b"WS");
        other[0] = 0;
        assert_eq!(formats().event(5, &other), None);
        assert_eq!(EventFormats::default().add(Step::Made, &GETRQ.replace("rwbs", "x")), Err("rwbs"));
    }

    #[test]
    fn letters_say_what_is_asked() {
        let of = |letters: &[u8]| formats().event(0, &record(letters)).map(|event| event.operation);
        for (letters, expected) in [
            (&b"RA"[..], Operation::Read),
            (b"WFS", Operation::Write),
            (b"FWFS", Operation::Write),
            (b"FF", Operation::Flush),
            (b"DS", Operation::Discard),
        ] {
            assert_eq!(of(letters), Some(expected), "{letters:?}");
        }
        assert_eq!(formats().event(0, &record(b"FF")).map(|event| event.sector), Some(0));
        let mut empty = record(b"FWS");
        empty[24..28].fill(0);
        assert_eq!(
            formats().event(0, &empty).map(|event| event.operation),
            Some(Operation::Flush),
            "of fsync"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_format_and_no_record_is_a_panic(text in ".*", at in 0usize..900, bytes in proptest::collection::vec(0u8.., 0..80)) {
            let _ = EventFormats::default().add(Step::Issued, &text);
            let cut: String = GETRQ.chars().take(at).collect();
            let mut formats = EventFormats::default();
            if formats.add(Step::Issued, &cut.replace("offset:1", "offset:18446744073709551615")).is_ok() {
                formats.event(0, &bytes);
            }
            self::formats().event(0, &bytes);
        }
    }
}

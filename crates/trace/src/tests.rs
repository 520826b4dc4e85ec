//! Tests of whole traces, in both forms.
//!
//! Invariant: what is written is read back; what is not a trace is an error at its place.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use crate::{
    Entry, EntryKind, FileName, IologEvent, IologWriter, Reader, TraceError, TracePosition, Transform,
    summarize,
};

/// All entries of a trace, and its files.
fn read(trace: &[u8], transform: Transform) -> Result<(Vec<Entry>, Vec<FileName>), TraceError> {
    let mut reader = Reader::new(trace, transform)?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok((entries, reader.files().to_vec()))
}

fn entry(at_us: u64, kind: EntryKind, offset_bytes: u64, length_bytes: u64) -> Entry {
    Entry { at_ns: at_us * 1000, file: 0, kind, offset_bytes, length_bytes }
}

#[test]
fn an_iolog_of_version_3_has_a_time_on_each_line() {
    let trace =
        b"fio version 3 iolog\n15 data add\n115 data open\n120 data read 61440 4096\n132 data write 32768 \
        4096\n140 data sync 61440 0\n150 data trim 0 512\n152 data close\n";
    let (entries, files) = read(trace, Transform::default()).unwrap();
    assert_eq!(files, [FileName::Path("data".into())]);
    let expected = [
        entry(120, EntryKind::Read, 61440, 4096),
        entry(132, EntryKind::Write, 32768, 4096),
        entry(140, EntryKind::Sync, 0, 0),
        entry(150, EntryKind::Trim, 0, 512),
    ];
    assert_eq!(entries, expected);
    assert_eq!(summarize(&trace[..], Transform::default()).unwrap().length_ns, 152_000);
}

#[test]
fn the_pauses_of_version_2_add_up_and_short_ones_are_ignored() {
    let trace = b"fio version 2 iolog\na add\na open\na wait 200 0\na read 0 1\na wait 99 0\na read 1 1\na wait 300 0\n\
        a datasync 0 0\na close\n";
    let (entries, _) = read(trace, Transform::default()).unwrap();
    let expected = [
        entry(200, EntryKind::Read, 0, 1),
        entry(200, EntryKind::Read, 1, 1),
        entry(500, EntryKind::DataSync, 0, 0),
    ];
    assert_eq!(entries, expected);
}

// divergence: a malformed line
#[test]
fn errors_state_their_line() {
    let cases: [(&str, u64, &str); 10] = [
        ("", 1, "neither an iolog"),
        ("0, 4096, 4096\n", 1, "neither an iolog"),
        ("fio version 3 iolog\nx data add\n", 2, "begin with a time"),
        ("fio version 3 iolog\n1 d read 0 1\n", 2, "\"d\" was not added"),
        ("fio version 3 iolog\n1 d add\n\n2 d bogus 0 1\n", 4, "no action \"bogus\""),
        ("fio version 3 iolog\n1 d add\n2 d read 0\n", 3, "neither"),
        ("fio version 3 iolog\n1 d add\n2 d wait 100 0\n", 3, "version 2"),
        ("fio version 2 iolog\nd add\nd read 0 0\n", 3, "a read of no bytes"),
        ("fio version 2 iolog\nd add\nd read 18446744073709551615 1\n", 3, "beyond the largest file size"),
        ("fio version 2 iolog\nd add\nd write 0 4294967296\n", 3, "no call of Linux transfers more"),
    ];
    for (trace, line, message) in cases {
        let error = read(trace.as_bytes(), Transform::default()).unwrap_err();
        assert_eq!(error.place, TracePosition::Line(line), "{trace:?}: {error}");
        assert!(error.message.contains(message), "{trace:?}: {error}");
    }
    let endless = [b"fio version 2 iolog\n".to_vec(), vec![b'x'; 1 << 20]].concat();
    assert!(read(&endless, Transform::default()).unwrap_err().message.contains("longer than"));
}

#[test]
fn a_summary_knows_files_ends_alignment_and_the_longest_transfer() {
    let trace =
        b"fio version 2 iolog\na add\nb add\nc add\na read 4096 512\na write 65536 1024\nb trim 0 8192\n";
    let summary = summarize(&trace[..], Transform::default()).unwrap();
    let facts: Vec<_> =
        summary.files.iter().map(|file| (file.read_end_bytes, file.end_bytes, file.align_bytes)).collect();
    assert_eq!(facts, [(4608, 66560, 512), (0, 8192, 8192), (0, 0, 1 << 63)]);
    // A trim needs no buffer.
    assert_eq!((summary.length_bytes_max, summary.bytes), (1024, 9728));
    assert_eq!(EntryKind::ALL.map(|kind| summary.entries(kind)), [1, 1, 1, 0, 0, 0]);
    let skip = [EntryKind::Trim].into_iter().collect();
    let without = summarize(&trace[..], Transform { skip, ..Transform::default() }).unwrap();
    assert_eq!((without.length_bytes_max, without.files[1].end_bytes), (1024, 0));
}

/// One event of the device 7:`minor` in little-endian order; `action` holds the category, too.
pub(crate) fn blktrace_event(
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    minor: u32,
    data: &[u8],
) -> Vec<u8> {
    let mut event = event(false, time_ns, sector, bytes, action, data);
    event[36..40].copy_from_slice(&(7 << 20 | minor).to_le_bytes());
    event
}

#[test]
fn requests_are_in_flight_until_they_or_what_they_became_part_of_are_completed() {
    const QUEUED: u32 = 1 << 16 | 1;
    const COMPLETED: u32 = 1 << 16 | 8;
    let request = |sector, bytes, action| blktrace_event(0, sector, bytes, action, 0, b"");
    let events = [
        // Lost: the tracer began after it was issued.
        request(900, 512, QUEUED),
        request(0, 4096, QUEUED),
        request(0, 4096, COMPLETED),
        // The second and the third are merged.
        request(100, 512, QUEUED),
        request(8, 4096, QUEUED),
        request(16, 4096, QUEUED),
        request(8, 8192, COMPLETED),
        request(200, 512, QUEUED),
    ];
    let bytes = events.concat();
    let mut reader = Reader::new(&bytes[..], Transform::default()).unwrap();
    let mut depths = Vec::new();
    while reader.next_entry().unwrap().is_some() {
        depths.push(reader.in_flight());
    }
    assert_eq!(depths, [None, None, Some(1), Some(2), Some(3), Some(2)]);
    assert!(reader.process().is_some());
}

/// One event of blktrace in native or swapped byte order.
fn event(swapped: bool, time_ns: u64, sector: u64, bytes: u32, action: u32, data: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    let mut put = |field: &[u8]| {
        let mut field = field.to_vec();
        if swapped {
            field.reverse();
        }
        event.extend(field);
    };
    put(&0x6561_7407_u32.to_le_bytes());
    put(&1_u32.to_le_bytes());
    put(&time_ns.to_le_bytes());
    put(&sector.to_le_bytes());
    for word in [bytes, action, 77, 7 << 20 | 3, 0] {
        put(&word.to_le_bytes());
    }
    put(&0_u16.to_le_bytes());
    put(&(data.len() as u16).to_le_bytes());
    event.extend(data);
    event
}

const READ: u32 = 1 << 16;
const WRITE: u32 = 2 << 16;
const FLUSH: u32 = 4 << 16;
const NOTIFY: u32 = 1 << 26;
const DISCARD: u32 = 1 << 29;
const QUEUED: u32 = 1;
const ISSUED: u32 = 7;

#[test]
fn the_queued_requests_of_a_blktrace_are_its_entries() {
    for swapped in [false, true] {
        let trace: Vec<u8> = [
            event(swapped, 5_000, 0, 0, NOTIFY, b"dd"),
            event(swapped, 5_000, 8, 4096, READ | QUEUED, b""),
            event(swapped, 5_500, 8, 4096, READ | ISSUED, b"pdu"),
            event(swapped, 6_000, 16, 512, WRITE | QUEUED | 1 << 8, b"cgroupid"),
            event(swapped, 5_900, 0, 0, FLUSH | QUEUED, b""),
            event(swapped, 7_000, 32, 8192, WRITE | DISCARD | QUEUED, b""),
        ]
        .concat();
        let (entries, files) = read(&trace, Transform::default()).unwrap();
        assert_eq!(files, [FileName::Device { major: 7, minor: 3 }]);
        let expected = [
            (0, EntryKind::Read, 4096, 4096),
            (1_000, EntryKind::Write, 8192, 512),
            (1_000, EntryKind::Sync, 0, 0),
            (2_000, EntryKind::Trim, 16384, 8192),
        ];
        let found: Vec<_> = entries
            .iter()
            .map(|entry| (entry.at_ns, entry.kind, entry.offset_bytes, entry.length_bytes))
            .collect();
        assert_eq!(found, expected, "swapped: {swapped}");
        for cut in [1, 47, trace.len() - 1] {
            let error = read(&trace[..cut], Transform::default()).unwrap_err();
            assert!(matches!(error.place, TracePosition::Byte(_)) || cut < 4, "{error}");
        }
    }
}

fn file_names() -> impl Strategy<Value = PathBuf> {
    // Whatever a name may hold but the ends of lines, and no blanks at its own ends.
    prop::collection::vec(any::<u8>().prop_filter("not in names", |byte| !b"\n\0".contains(byte)), 1..20)
        .prop_map(|bytes| [b"/".to_vec(), bytes, b"x".to_vec()].concat())
        .prop_map(|bytes| PathBuf::from(OsString::from_vec(bytes)))
}

fn entries(files: u32) -> impl Strategy<Value = Vec<Entry>> {
    let kinds = prop::sample::select(EntryKind::ALL.to_vec());
    let one = (0..5_000_u64, 0..files, kinds, 0..1_u64 << 40, 1..1_u64 << 30);
    prop::collection::vec(one, 0..50).prop_map(|list| {
        let mut at_ns = 0;
        let entry = |(pause_us, file, kind, offset_bytes, length_bytes): (u64, u32, EntryKind, u64, u64)| {
            at_ns += pause_us * 1000;
            let is_whole = matches!(kind, EntryKind::Sync | EntryKind::DataSync);
            let (offset_bytes, length_bytes) = if is_whole { (0, 0) } else { (offset_bytes, length_bytes) };
            Entry { at_ns, file, kind, offset_bytes, length_bytes }
        };
        list.into_iter().map(entry).collect()
    })
}

fn written(files: &[PathBuf], entries: &[Entry]) -> Vec<u8> {
    let mut trace = Vec::new();
    let mut writer = IologWriter::new(&mut trace, true).unwrap();
    let path = |entry: &Entry| -> &Path { &files[entry.file as usize] };
    for file in files {
        writer.write(0, file, IologEvent::Add).unwrap();
        writer.write(0, file, IologEvent::Open).unwrap();
    }
    for entry in entries {
        let Entry { kind, offset_bytes, length_bytes, .. } = *entry;
        writer.write(entry.at_ns, path(entry), IologEvent::Io { kind, offset_bytes, length_bytes }).unwrap();
    }
    let end_ns = entries.last().map_or(0, |entry| entry.at_ns);
    files.iter().for_each(|file| writer.write(end_ns, file, IologEvent::Close).unwrap());
    writer.flush().unwrap();
    trace
}

/// The same as an iolog of version 2, whose pauses are lines of their own. It has none below 100 us.
fn written_as_version_2(files: &[PathBuf], entries: &[Entry]) -> Vec<u8> {
    let mut trace = b"fio version 2 iolog\n".to_vec();
    let mut line = |file: &Path, rest: &str| {
        trace.extend_from_slice(file.as_os_str().as_bytes());
        trace.extend_from_slice(format!(" {rest}\n").as_bytes());
    };
    files.iter().for_each(|file| line(file, "add"));
    files.iter().for_each(|file| line(file, "open"));
    let mut now_ns = 0;
    for entry in entries {
        let file = &files[entry.file as usize];
        if entry.at_ns > now_ns {
            line(file, &format!("wait {} 0", (entry.at_ns - now_ns) / 1000));
            now_ns = entry.at_ns;
        }
        line(file, &format!("{} {} {}", entry.kind.word(), entry.offset_bytes, entry.length_bytes));
    }
    files.iter().for_each(|file| line(file, "close"));
    trace
}

/// The entries with pauses of at least 100 us, or none.
fn without_short_pauses(entries: &[Entry]) -> Vec<Entry> {
    let (mut before_ns, mut now_ns) = (0, 0);
    let longer = |entry: &Entry| {
        let pause_ns = entry.at_ns - before_ns;
        before_ns = entry.at_ns;
        now_ns += if pause_ns < 100_000 { 0 } else { pause_ns };
        Entry { at_ns: now_ns, ..*entry }
    };
    entries.iter().map(longer).collect()
}

proptest! {
    #[test]
    fn what_is_written_as_version_2_is_read_back(
        files in prop::collection::hash_set(file_names(), 3),
        entries in entries(3),
    ) {
        let files: Vec<PathBuf> = files.into_iter().collect();
        let entries = without_short_pauses(&entries);
        let (found, names) = read(&written_as_version_2(&files, &entries), Transform::default()).unwrap();
        prop_assert_eq!(found, entries);
        prop_assert_eq!(names, files.into_iter().map(FileName::Path).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_written_is_read_back(
        files in prop::collection::hash_set(file_names(), 3),
        entries in entries(3),
    ) {
        let files: Vec<PathBuf> = files.into_iter().collect();
        let (found, names) = read(&written(&files, &entries), Transform::default()).unwrap();
        prop_assert_eq!(found, entries);
        prop_assert_eq!(names, files.into_iter().map(FileName::Path).collect::<Vec<_>>());
    }

    #[test]
    fn no_bytes_make_a_reader_panic(heading in 0..3_usize, mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let heading: &[u8] = [b"fio version 3 iolog\n", b"fio version 2 iolog\n", &[7, 0x74, 0x61, 0x65][..]][heading];
        bytes.splice(0..0, heading.iter().copied());
        let _ = read(&bytes, Transform::default());
        let mut log = b"fio version 2 iolog\na add\n".to_vec();
        log.write_all(&bytes).unwrap();
        let _ = summarize(&log[..], Transform { divisor: 3, align_bytes: 512, ..Transform::default() });
    }
}

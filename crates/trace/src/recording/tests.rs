//! Recordings there and back, and what is wrong with those that are not whole.
//!
//! Invariant: cases are made of values, never of bytes that the writer happens to write.

use proptest::prelude::*;

use super::*;
use crate::{Entry, FileName, Reader, TraceError, Transform};

fn head() -> RecordingHead {
    RecordingHead {
        made_by: "fiord 1".to_string(),
        host: "db1".to_string(),
        kernel: "6.1".to_string(),
        command: "sqlite3 a.db".to_string(),
        began_s: 1_700_000_000,
        is_anonymous: false,
    }
}

fn end() -> RecordingEnd {
    let left_out = LeftOut { io_uring: 1234, libaio: 1, mappings: 2, copies: 3, unknown: 4 };
    RecordingEnd { length_ns: 1 << 40, lost_events: 7, own_cpu_ns: 8, left_out, exit_status: Some(0) }
}

/// A recording of these calls, by two threads on two files.
fn written(ios: &[RecordedIo]) -> Vec<u8> {
    let mut bytes = Vec::new();
    begun(&mut bytes, ios).finish(&end()).unwrap();
    bytes
}

/// The same without its end.
fn begun<'a>(bytes: &'a mut Vec<u8>, ios: &[RecordedIo]) -> RecordingWriter<&'a mut Vec<u8>> {
    let mut writer = RecordingWriter::new(bytes, &head()).unwrap();
    for name in ["/data/a b", "/dev/sda"] {
        writer.file(name.as_ref()).unwrap();
        writer.thread(&Thread { process: 7, thread: 8, name: name.to_string() }).unwrap();
    }
    ios.iter().for_each(|io| writer.io(io).unwrap());
    writer
}

fn read(bytes: &[u8]) -> Result<(Vec<(Entry, RecordedIo)>, Recorded), TraceError> {
    let mut reader = Reader::new(bytes, Transform::default())?;
    let mut found = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        found.push((entry, *reader.recorded_io().unwrap()));
    }
    assert!(reader.files().is_empty() || reader.files()[0] == FileName::Path("/data/a b".into()));
    Ok((found, reader.recorded().unwrap().clone()))
}

fn io(call: CallKind, offset_bytes: u64, length_bytes: u64, begin_ns: u64) -> RecordedIo {
    let flags = OpenFlags::DIRECT.with(OpenFlags::APPEND);
    RecordedIo { thread: 1, file: 0, call, flags, offset_bytes, length_bytes, begin_ns, duration_ns: 900 }
}

#[test]
fn sequential_calls_take_a_few_bytes() {
    let ios: Vec<RecordedIo> = (0..1000).map(|at| io(CallKind::Write, at * 4096, 4096, at * 5000)).collect();
    let bytes = written(&ios).len() - written(&[]).len();
    assert!(bytes < 5 * 1000 + 20, "{bytes}");
    let (found, told) = read(&written(&ios)).unwrap();
    assert_eq!(found.len(), 1000);
    assert_eq!((told.head, told.end, told.threads.len()), (head(), Some(end()), 2));
}

#[test]
fn a_recording_of_another_version_is_refused() {
    let mut bytes = written(&[]);
    bytes[RECORDING_MARK.len()] = 9;
    let why = read(&bytes).unwrap_err().to_string();
    assert!(why.contains("version 9") && why.contains("reads version 1"), "{why}");
}

#[test]
fn what_is_cut_off_is_said_with_its_place() {
    let bytes = written(&[io(CallKind::Pread, 8192, 512, 5), io(CallKind::Fsync, 0, 0, 6)]);
    for length in RECORDING_MARK.len()..bytes.len() {
        let why = read(&bytes[..length]).unwrap_err().to_string();
        assert!(why.starts_with("byte ") && why.contains("has no end"), "{length}: {why}");
    }
}

#[test]
fn what_is_whole_of_one_that_is_cut_off_is_read_where_that_is_told() {
    let ios = [io(CallKind::Pread, 8192, 512, 5), io(CallKind::Fsync, 0, 0, 6)];
    let ends = [0, 1, 2].map(|count| {
        let mut bytes = Vec::new();
        begun(&mut bytes, &ios[..count]);
        bytes.len()
    });
    let bytes = written(&ios);
    for length in ends[0]..bytes.len() {
        let mut reader = Reader::new(&bytes[..length], Transform::default()).unwrap().accepting_cut();
        let mut entries = 0;
        while reader.next_entry().unwrap().is_some() {
            entries += 1;
        }
        assert_eq!(reader.next_entry().unwrap(), None);
        assert_eq!(entries, ends.iter().filter(|end| **end <= length).count() - 1, "{length}");
        let told = reader.recorded().unwrap();
        // What names a stream may be whole where its call is not.
        assert!(told.end.is_none() && told.cut_at_byte.is_some_and(|at| at <= length as u64), "{told:?}");
        assert!(told.cut_at_byte.is_some_and(|at| at >= ends[entries] as u64), "{told:?}");
    }
    let mut whole = Reader::new(&bytes[..], Transform::default()).unwrap().accepting_cut();
    while whole.next_entry().unwrap().is_some() {}
    assert_eq!(whole.recorded().unwrap().cut_at_byte, None);
    // Bytes that are wrong are not a cut.
    let mut wrong = bytes[..ends[0]].to_vec();
    wrong.push(9);
    let mut reader = Reader::new(&wrong[..], Transform::default()).unwrap().accepting_cut();
    assert!(reader.next_entry().is_err());
}

#[test]
fn a_sync_of_a_range_is_refused() {
    for (offset_bytes, length_bytes) in [(64, 0), (0, 784)] {
        let why = read(&written(&[io(CallKind::Fsync, offset_bytes, length_bytes, 6)])).unwrap_err();
        assert!(why.to_string().contains("of a whole file"), "{why}");
    }
}

fn any_io() -> impl Strategy<Value = RecordedIo> {
    let place = (0..1_u64 << 40, 1..1_u64 << 30, any::<bool>());
    let times = (0..1_u64 << 40, any::<u64>());
    (0_u32..2, 0_u32..2, 0..CallKind::ALL.len(), 0_u8..16, place, times).prop_map(
        |(thread, file, call, flags, (offset_bytes, length_bytes, in_sectors), (begin_ns, duration_ns))| {
            let call = CallKind::ALL[call];
            let shift = if in_sectors { 9 } else { 0 };
            let whole = matches!(call, CallKind::Fsync | CallKind::Fdatasync);
            let place = |bytes: u64| if whole { 0 } else { bytes };
            let (offset_bytes, length_bytes) =
                (place(offset_bytes << shift), place((length_bytes << shift).min(1 << 30)));
            let flags = layout::OpenFlags(flags);
            RecordedIo { thread, file, call, flags, offset_bytes, length_bytes, begin_ns, duration_ns }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(ios in proptest::collection::vec(any_io(), 0..60)) {
        let (found, told) = read(&written(&ios)).unwrap();
        let calls: Vec<RecordedIo> = found.iter().map(|(_, io)| *io).collect();
        prop_assert_eq!(&calls, &ios);
        prop_assert!(found.is_sorted_by_key(|(entry, _)| entry.at_ns));
        prop_assert_eq!(told.end, Some(end()));
    }

    #[test]
    fn no_bytes_are_a_panic(ios in proptest::collection::vec(any_io(), 0..9), changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..9)) {
        let mut bytes = written(&ios);
        for (at, to) in changes {
            let at = RECORDING_MARK.len() + usize::from(at) % (bytes.len() - RECORDING_MARK.len());
            bytes[at] = to;
        }
        let mut reader = match Reader::new(&bytes[..], Transform::default()) {
            Ok(reader) => reader,
            Err(_) => return Ok(()),
        };
        while let Ok(Some(entry)) = reader.next_entry() {
            prop_assert!((entry.file as usize) < reader.files().len());
        }
    }
}

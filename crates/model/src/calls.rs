//! Options that only a recording of fiord tells: by which calls, and how files were open.
//!
//! Invariant: nothing here is a guess.

use std::collections::BTreeSet;

use fiord_stats::Gather;
use fiord_trace::{CallKind, OpenFlags, Recorded, Thread};

use crate::jobfile::Chosen;
use crate::stream::{Stream, Told};

/// Engines, what their calls are called, and which these are.
const ENGINES: [(&str, &str, &[CallKind]); 5] = [
    ("psync", "pread or pwrite", &[CallKind::Pread, CallKind::Pwrite]),
    ("sync", "read or write", &[CallKind::Read, CallKind::Write]),
    ("vsync", "readv or writev", &[CallKind::Readv, CallKind::Writev]),
    ("pvsync", "preadv or pwritev", &[CallKind::Preadv, CallKind::Pwritev]),
    ("pvsync2", "preadv2 or pwritev2", &[CallKind::Preadv2, CallKind::Pwritev2]),
];

/// The engine of a stream, and how it opens its file. Nothing of a trace that does not tell.
pub(crate) fn add(stream: &Stream, add: &mut dyn FnMut(&'static str, String, String)) {
    let Some(flags) = stream.identity.flags else { return };
    let counted = |kinds: &[CallKind]| kinds.iter().map(|kind| stream.calls[*kind as usize]).sum::<u64>();
    let all: u64 = ENGINES.iter().map(|(.., kinds)| counted(kinds)).sum();
    // Of two that are as frequent, the first.
    let most = ENGINES.iter().rev().max_by_key(|(.., kinds)| counted(kinds));
    if let Some((engine, calls, kinds)) = most.filter(|_| all > 0) {
        add("ioengine", (*engine).to_string(), format!("{} of {all} calls are {calls}", counted(kinds)));
    }
    let direct = flags.has(OpenFlags::DIRECT);
    let why = if direct { "the file was open with O_DIRECT" } else { "the file was open without O_DIRECT" };
    add("direct", u8::from(direct).to_string(), why.to_string());
    for (flag, name, value) in [(OpenFlags::SYNC, "O_SYNC", "sync"), (OpenFlags::DSYNC, "O_DSYNC", "dsync")] {
        if flags.has(flag) {
            add("sync", value.to_string(), format!("the file was open with {name}"));
        }
    }
}

/// Options of all sections of a recording.
pub(crate) fn global(recorded: &Recorded) -> Vec<Chosen> {
    let distinct =
        |number: fn(&Thread) -> u32| recorded.threads.iter().map(number).gather::<BTreeSet<u32>>().len();
    let (processes, threads) = (distinct(|thread| thread.process), distinct(|thread| thread.thread));
    let why = format!("its calls came from {threads} threads of one process");
    let is_one = processes == 1 && threads > 1;
    is_one.then(|| Chosen { name: "thread", value: "1".to_string(), why }).into_iter().collect()
}

/// What a recording is of, and what is not in it, in sentences.
pub(crate) fn about(recorded: &Recorded) -> Vec<String> {
    let Recorded { head, end, .. } = recorded;
    let mut about = vec![format!(
        "Recorded of \"{}\" on {}, Linux {}. Engines, O_DIRECT, O_SYNC and threads are those of its calls.",
        head.command, head.host, head.kernel,
    )];
    let Some(end) = end else { return about };
    let left = &end.left_out;
    let missing = [
        (end.lost_events, "events were lost"),
        (left.io_uring, "requests of io_uring"),
        (left.libaio, "requests of io_submit"),
        (left.mappings, "mappings of files"),
        (left.copies, "calls of copy_file_range or sendfile"),
        (left.unknown, "calls on files that could not be told"),
    ];
    let missing = missing.iter().filter(|(count, _)| *count > 0);
    let missing: Vec<String> = missing.map(|(count, what)| format!("{count} {what}")).collect();
    if !missing.is_empty() {
        about.push(format!("Not in the recording, and so not in here: {}.", missing.join(", ")));
    }
    about
}

/// Where a recording without an end stops, and what is missing, in a sentence.
pub fn cut(recorded: &Recorded, length_ns: u64) -> Option<String> {
    let byte = recorded.cut_at_byte?;
    Some(format!(
        "The recording is cut off: it has no end, and its last whole record ends at byte {byte}, {:.3} s after it began. \
         What came after is missing, and whether events were lost, or calls left out, before it is not known.",
        length_ns as f64 / 1e9,
    ))
}

/// What a reader tells of the entry that it has just read.
pub fn told<R: std::io::BufRead>(reader: &fiord_trace::Reader<R>) -> Told {
    Told {
        process: reader.process(),
        in_flight: reader.in_flight(),
        call: reader.recorded_io().map(|io| (io.call, io.flags)),
        duration_ns: reader.recorded_io().map_or(0, |io| io.duration_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Identity;

    fn chosen(flags: OpenFlags, calls: &[(CallKind, u64)]) -> Vec<(&'static str, String)> {
        let mut stream = Stream::new(Identity { file: 0, process: Some(1), flags: Some(flags) });
        calls.iter().for_each(|(kind, count)| stream.calls[*kind as usize] = *count);
        let mut options = Vec::new();
        add(&stream, &mut |name, value, _| options.push((name, value)));
        options
    }

    #[test]
    fn the_most_frequent_calls_choose_the_engine_and_flags_the_rest() {
        let direct = OpenFlags::DIRECT.with(OpenFlags::DSYNC);
        let found = chosen(direct, &[(CallKind::Pwritev, 9), (CallKind::Write, 3), (CallKind::Fsync, 99)]);
        let expected = [("ioengine", "pvsync"), ("direct", "1"), ("sync", "dsync")];
        assert_eq!(found, expected.map(|(name, value)| (name, value.to_string())));
        assert_eq!(chosen(OpenFlags::default(), &[(CallKind::Fsync, 1)]), [("direct", "0".to_string())]);
    }

    #[test]
    fn threads_of_one_process_are_threads() {
        let thread = |process, thread| Thread { process, thread, name: String::new() };
        let global =
            |threads: &[Thread]| global(&Recorded { threads: threads.to_vec(), ..Recorded::default() }).len();
        assert_eq!(global(&[thread(1, 1), thread(1, 2)]), 1);
        assert_eq!(global(&[thread(1, 1), thread(1, 1)]), 0, "before and after it executed another program");
        assert_eq!(global(&[thread(1, 1), thread(2, 2)]), 0);
    }
}

//! Replays a trace: another thread reads its entries, which become operations that are due at the recorded times.
//!
//! Invariant: the loop never waits for the disk that the trace is on; until entries have been read, it sleeps and
//! checks for requests. Batches circulate between the two threads, so that memory does not depend on the length of the
//! trace.

use std::fs::File;
use std::io::BufReader;
use std::sync::{Arc, OnceLock};

use fiord_plan::shown::shown;
use fiord_plan::{Action, DebugChannel, FileIndex, Job, Op, Purpose, Replay};
use fiord_stats::Capped;
use fiord_stats::Latency;
use fiord_sys::channel::{Receiver, Sender, TryRecvError, bounded};
use fiord_sys::spawn;
use fiord_trace::{Entry, EntryKind, Reader};
use fiord_workload::{OperationSource, Supply};

use crate::alloc_guard::allow_alloc;
use crate::debug::DebugLog;
use crate::failure::Failure;

/// `SYNC_FILE_RANGE_WRITE`: what a job begins to write back in the middle of its writes.
const RANGE_SYNC_FLAGS: u8 = 2;
/// Entries of one batch.
const BATCH: usize = 1024;
/// Batches that are read ahead.
const BATCHES: usize = 16;
/// Interval between two checks for a batch that has not been read yet.
const LOOK_NS: u64 = 20_000;
/// Enough for reading lines.
const STACK_BYTES: usize = 256 << 10;
const READ_BYTES: usize = 1 << 18;

/// The operations of a trace.
pub(crate) struct ReplaySource {
    filled: Receiver<Vec<Op>>,
    spare: Sender<Vec<Op>>,
    batch: Vec<Op>,
    next: usize,
    /// How reading ended: at the end of the trace, or why before; unset while it goes on, and if its thread panicked.
    end: Arc<OnceLock<Result<(), String>>>,
    /// How long the trace is.
    length_ns: u64,
    files: Vec<FileIndex>,
    /// `None` if all are due at once (`replay_no_stall`).
    lateness: Option<Latency>,
}

impl ReplaySource {
    /// Begins to read the trace of a job.
    pub fn new(job: &Job, replay: &Replay, debug: Option<&DebugLog>) -> Result<ReplaySource, Failure> {
        let trace = &replay.trace;
        let opened = File::open(replay.read_from());
        let opened = opened.map_err(|error| Failure::file("open", &trace.path, &error))?;
        let (fill, filled) = bounded(BATCHES);
        let (spare, spares) = bounded(BATCHES);
        for _ in 0..BATCHES {
            // There is room for all of them.
            let _ = spare.try_send(Vec::with_capacity(BATCH));
        }
        let end = Arc::new(OnceLock::new());
        let (ended, transform, redirected) = (Arc::clone(&end), trace.transform, replay.redirected);
        let path = shown(&trace.path);
        let debug = debug.filter(|debug| debug.has(DebugChannel::Blktrace)).cloned();
        if let Some(debug) = &debug {
            for file in &job.files.list {
                debug.line(DebugChannel::Blktrace, format_args!("add devices {}", shown(&file.path)));
            }
        }
        let read = move || {
            let reader = Reader::new(BufReader::with_capacity(READ_BYTES, opened), transform);
            let read = reader.and_then(|reader| {
                let stores = debug.filter(|_| reader.is_blktrace()).map(PrintedEntries::new);
                read_all(reader, redirected, stores, &spares, &fill)
            });
            ended.get_or_init(|| read.map_err(|why| format!("{path} cannot be replayed any further: {why}")));
        };
        // The thread ends when the source is dropped, because sending then fails.
        let reader = spawn::spawn("fiord-trace", STACK_BYTES, read);
        drop(reader.map_err(|error| Failure::system("start a thread", &error))?);
        // Waits for the first batch, so that the first operation is not late. Without any batch, `end` has the
        // reason.
        let batch = filled.recv().unwrap_or_default();
        Ok(ReplaySource {
            filled,
            spare,
            batch,
            next: 0,
            end,
            length_ns: replay.length_ns,
            files: (0..FileIndex::capped(job.files.list.len())).collect(),
            lateness: (!trace.transform.no_stall).then(Latency::with_histogram),
        })
    }

    /// Takes the next batch that was read.
    fn advance(&mut self, now_ns: u64) -> Option<Supply> {
        match self.filled.try_recv() {
            Ok(batch) => {
                // There is room for all of them. If the reader has ended, the batch is not needed.
                let _ = self.spare.try_send(std::mem::replace(&mut self.batch, batch));
                self.next = 0;
                None
            }
            Err(TryRecvError::Empty) => Some(Supply::NotBefore(now_ns + LOOK_NS)),
            Err(TryRecvError::Disconnected) => Some(match self.end.get() {
                Some(Ok(())) if now_ns < self.length_ns => Supply::NotBefore(self.length_ns),
                Some(Ok(())) => Supply::Ended,
                Some(Err(_)) | None => Supply::Failed,
            }),
        }
    }
}

impl OperationSource for ReplaySource {
    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, now_ns: u64) -> Supply {
        while self.next == self.batch.len() {
            // Waking the reader may allocate.
            if let Some(supply) = allow_alloc(|| self.advance(now_ns)) {
                return supply;
            }
        }
        let end = self.batch.len().min(self.next + room);
        ops.extend_from_slice(&self.batch[self.next..end]);
        self.next = end;
        Supply::Ready
    }

    fn issued(&mut self, op: &Op, at_ns: u64) {
        if let Some(lateness) = &mut self.lateness {
            lateness.record(at_ns.saturating_sub(op.due_ns));
        }
    }

    fn lateness(&self) -> Option<&Latency> {
        self.lateness.as_ref()
    }

    fn failure(&self) -> String {
        let panicked = || "fiord has a bug: the thread that reads the trace panicked".to_string();
        self.end.get().map_or_else(panicked, |end| end.clone().err().unwrap_or_default())
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.files.iter().copied().for_each(show);
    }
}

/// Prints the entries of a binary trace (`--debug=blktrace`).
struct PrintedEntries {
    log: DebugLog,
    /// When the last one is due.
    last_ns: u64,
}

impl PrintedEntries {
    fn new(log: DebugLog) -> PrintedEntries {
        PrintedEntries { log, last_ns: 0 }
    }

    fn print(&mut self, entry: &Entry) {
        let delay_us = (entry.at_ns - self.last_ns) / 1000;
        self.last_ns = entry.at_ns;
        let (offset, length) = (entry.offset_bytes, entry.length_bytes);
        let transfer = |ddir: u8| format!("ddir={ddir}, off={offset}, len={length}, delay={delay_us}");
        let stored = match entry.kind {
            EntryKind::Read => transfer(0),
            EntryKind::Write => transfer(1),
            EntryKind::Trim => format!("discard, off={offset}, len={length}, delay={delay_us}"),
            EntryKind::Sync | EntryKind::DataSync | EntryKind::RangeSync => format!("flush delay={delay_us}"),
        };
        self.log.line(DebugChannel::Blktrace, format_args!("store {stored}"));
    }
}

/// Reads the entries to the end, or until nobody takes them.
fn read_all(
    mut reader: Reader<BufReader<File>>,
    redirected: bool,
    mut printed: Option<PrintedEntries>,
    spares: &Receiver<Vec<Op>>,
    fill: &Sender<Vec<Op>>,
) -> Result<(), fiord_trace::TraceError> {
    while let Ok(mut batch) = spares.recv() {
        batch.clear();
        while batch.len() < BATCH {
            match reader.next_entry()? {
                Some(entry) => {
                    if let Some(printed) = &mut printed {
                        printed.print(&entry);
                    }
                    batch.push(operation(entry, redirected));
                }
                None => {
                    let _ = fill.send(batch);
                    return Ok(());
                }
            }
        }
        if fill.send(batch).is_err() {
            break;
        }
    }
    Ok(())
}

fn operation(entry: Entry, redirected: bool) -> Op {
    let action = match entry.kind {
        EntryKind::Read => Action::Read,
        EntryKind::Write => Action::Write,
        EntryKind::Trim => Action::Trim,
        EntryKind::Sync => Action::Sync,
        EntryKind::DataSync => Action::DataSync,
        // Its flags are not in the trace.
        EntryKind::RangeSync => Action::RangeSync(RANGE_SYNC_FLAGS),
    };
    let file = if redirected { 0 } else { entry.file };
    Op {
        purpose: Purpose::Replay,
        due_ns: entry.at_ns,
        ..Op::new(action, file, entry.offset_bytes, entry.length_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its length does not matter: what was not read was not replayed.
    #[test]
    fn a_trace_whose_reader_panicked_has_no_end() {
        for (end, supply) in [
            (None, Supply::Failed),
            (Some(Err("damaged".to_string())), Supply::Failed),
            (Some(Ok(())), Supply::Ended),
        ] {
            let ((_, filled), (spare, _)) = (bounded(1), bounded(1));
            let mut source = ReplaySource {
                filled,
                spare,
                batch: Vec::new(),
                next: 0,
                end: Arc::new(end.clone().map_or_else(OnceLock::new, OnceLock::from)),
                length_ns: 0,
                files: Vec::new(),
                lateness: None,
            };
            assert_eq!(source.fill(&mut Vec::new(), 1, 1), supply, "{end:?}");
            let why = if end.is_none() { "panicked" } else { "damaged" };
            assert!(supply == Supply::Ended || source.failure().contains(why), "{}", source.failure());
        }
    }
}

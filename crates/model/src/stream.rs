//! One stream of a trace: the I/Os to one file, or of one process to one device, and what they have in common.
//!
//! Invariant: bounded memory but for the blocks that were touched, which `touched` bounds for all streams together.

use fiord_trace::{CallKind, Entry, EntryKind, OpenFlags};

use crate::arrivals::Arrivals;
use crate::counted::{Counted, octave_part};
use crate::touched::{Sampling, Touched};
use crate::track::Track;

/// Kinds that have a range of bytes: reads, writes, trims.
pub const KINDS: [EntryKind; 3] = [EntryKind::Read, EntryKind::Write, EntryKind::Trim];

/// Kinds that synchronize.
pub const SYNCS: [EntryKind; 3] = [EntryKind::Sync, EntryKind::DataSync, EntryKind::RangeSync];

/// Kinds of operations: those of [`KINDS`], then those of [`SYNCS`].
const ALL_KINDS: usize = KINDS.len() + SYNCS.len();
/// Durations are known to a 32nd of an octave.
const DURATION_PARTS_LOG2: u32 = 5;

/// How far the number of synchronizations may be from that of the trace, where most of them come after as many writes.
const NEAR_SHARE: f64 = 0.03;

/// Synchronizations of one kind.
#[derive(Debug, Clone, Default)]
pub struct Syncs {
    /// How many.
    pub count: u64,
    /// Writes from one to the next, where there were any.
    pub every: Counted,
    writes_before: u64,
}

impl Syncs {
    fn add(&mut self, writes: u64) {
        self.count += 1;
        if writes > self.writes_before {
            self.every.add(writes - self.writes_before);
        }
        self.writes_before = writes;
    }

    /// After how many of so many writes one comes: as most have it, if there are then as many of them, or else as makes their
    /// number nearest; and whether most have it. `None` without any, and without writes.
    pub fn writes(&self, writes: u64) -> Option<(u64, bool)> {
        if self.count == 0 || writes == 0 {
            return None;
        }
        let off = |every: u64| (writes as f64 / every as f64 - self.count as f64).abs();
        let is_near = |every: u64| off(every) <= (self.count as f64 * NEAR_SHARE).max(1.0);
        let usual = self.every.mode().filter(|(every, share)| *share >= 0.5 && is_near(*every));
        let below = (writes / self.count).max(1);
        let nearest = if off(below) <= off(below + 1) { below } else { below + 1 };
        Some(usual.map_or((nearest, false), |(every, _)| (every, true)))
    }

    /// Adds those that another thread makes of the same file.
    pub(crate) fn absorb(&mut self, other: &Syncs) {
        self.count += other.count;
        self.every.absorb(&other.every);
    }
}

/// Whose I/Os a stream has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Number of the file in the trace.
    pub file: u32,
    /// The process, or in a recording of fiord the thread, where the trace tells it.
    pub process: Option<u32>,
    /// How the file was open, in a recording of fiord.
    pub flags: Option<OpenFlags>,
}

/// What some traces tell of an entry besides itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// The process or thread that issued it.
    pub process: Option<u32>,
    /// Requests in flight after it.
    pub in_flight: Option<u32>,
    /// By which call, and how its file was open.
    pub call: Option<(CallKind, OpenFlags)>,
    /// How long the call took; 0 where the trace does not tell.
    pub duration_ns: u64,
}

/// What a stream does.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Whose I/Os these are.
    pub identity: Identity,
    /// How many files it has: one, unless streams were put together.
    pub files: u64,
    /// Bytes of the files that were put together with it, up to the end of what was touched.
    pub other_files_bytes: u64,
    /// Reads, writes, trims.
    pub tracks: [Track; 3],
    /// Synchronizations, in the order of [`SYNCS`].
    pub syncs: [Syncs; 3],
    /// When reads, writes and trims arrive.
    pub arrivals: [Arrivals; 3],
    /// When I/Os of any kind arrive.
    pub all_arrivals: Arrivals,
    /// Where they go.
    pub touched: Touched,
    /// Changes from reads to writes and back.
    pub switches: u64,
    /// Writes of just what was trimmed before.
    pub rewritten_trims: u64,
    /// Requests in flight after each I/O, where the trace tells it.
    pub depths: Counted,
    /// Time in calls, where the trace tells it.
    pub busy_ns: u64,
    /// How long its operations took in nanoseconds, where the trace tells it: of [`KINDS`], then of [`SYNCS`].
    pub durations: [Counted; ALL_KINDS],
    /// Calls of each kind, in the order of [`CallKind::ALL`], where the trace tells it.
    pub calls: [u64; CallKind::ALL.len()],
    last_transfer: Option<EntryKind>,
    last_trim: Option<(u64, u64)>,
}

impl Stream {
    /// A stream without I/Os.
    pub fn new(identity: Identity) -> Stream {
        Stream {
            identity,
            files: 1,
            other_files_bytes: 0,
            tracks: Default::default(),
            syncs: Default::default(),
            arrivals: Default::default(),
            all_arrivals: Arrivals::default(),
            touched: Touched::default(),
            switches: 0,
            rewritten_trims: 0,
            depths: Counted::default(),
            busy_ns: 0,
            durations: Default::default(),
            calls: [0; CallKind::ALL.len()],
            last_transfer: None,
            last_trim: None,
        }
    }

    /// Adds operation `number` of the trace, with what is told of it.
    pub(crate) fn add(&mut self, number: u64, entry: &Entry, told: &Told, sampling: &mut Sampling) {
        if let Some((call, _)) = told.call {
            self.calls[call as usize] += 1;
            self.busy_ns = self.busy_ns.saturating_add(told.duration_ns);
            if let Some(kind) = KINDS.iter().chain(&SYNCS).position(|kind| *kind == entry.kind) {
                self.durations[kind].add(octave_part(told.duration_ns, DURATION_PARTS_LOG2));
            }
        }
        if let Some(sync) = SYNCS.iter().position(|kind| *kind == entry.kind) {
            let writes = self.tracks[1].ios;
            self.syncs[sync].add(writes);
            return;
        }
        let Some(kind) = KINDS.iter().position(|kind| *kind == entry.kind) else { return };
        let Entry { at_ns, offset_bytes, length_bytes, .. } = *entry;
        let is_jump = self.tracks[kind].add(number, offset_bytes, length_bytes);
        self.arrivals[kind].add(at_ns);
        self.all_arrivals.add(at_ns);
        if let Some(depth) = told.in_flight {
            self.depths.add(depth.into());
        }
        let is_rewrite =
            entry.kind == EntryKind::Write && self.last_trim == Some((offset_bytes, length_bytes));
        self.rewritten_trims += u64::from(is_rewrite);
        // A block that is trimmed and written at once is touched once.
        if !is_rewrite {
            self.touched.add(offset_bytes, is_jump, sampling);
        }
        self.last_trim = (entry.kind == EntryKind::Trim).then_some((offset_bytes, length_bytes));
        if entry.kind.transfers() {
            let switches = self.last_transfer.is_some_and(|last| last != entry.kind);
            self.switches += u64::from(switches);
            self.last_transfer = Some(entry.kind);
        }
    }

    /// Reads, writes and trims of all.
    pub fn ios(&self) -> u64 {
        self.tracks.iter().map(|track| track.ios).sum()
    }

    /// End of what was touched.
    pub fn end_bytes(&self) -> u64 {
        self.tracks.iter().map(|track| track.end_bytes).max().unwrap_or(0)
    }

    /// How much of its time one thread spent in its calls, 0 to 1; `None` where the trace does not tell.
    pub fn busy_share(&self) -> Option<f64> {
        let is_one = self.identity.flags.is_some() && self.files == 1;
        is_one.then(|| (self.busy_ns as f64 / self.all_arrivals.span_ns().max(1) as f64).min(1.0))
    }

    /// The mean time from one of its I/Os to the next that its thread was not in a call; `None` where the trace does not tell.
    pub fn idle_ns(&self) -> Option<f64> {
        Some(self.all_arrivals.mean_ns() * (1.0 - self.busy_share()?))
    }

    /// The first and the last operation of the trace among its I/Os.
    pub fn numbers(&self) -> (u64, u64) {
        let used = || self.tracks.iter().filter(|track| track.ios > 0);
        let first = used().map(|track| track.first).min().unwrap_or(0);
        (first, used().map(|track| track.last).max().unwrap_or(0))
    }

    /// Puts a stream of another file with this one. Blocks and depths stay those of the one with more I/Os.
    pub(crate) fn absorb(&mut self, other: Stream) {
        if other.ios() > self.ios() {
            let smaller = std::mem::replace(self, other);
            return self.absorb(smaller);
        }
        self.files += other.files;
        self.other_files_bytes =
            self.other_files_bytes.saturating_add(other.end_bytes()).saturating_add(other.other_files_bytes);
        for kind in 0..KINDS.len() {
            self.tracks[kind].absorb(&other.tracks[kind]);
            self.syncs[kind].absorb(&other.syncs[kind]);
            self.arrivals[kind].absorb(&other.arrivals[kind]);
        }
        self.all_arrivals.absorb(&other.all_arrivals);
        self.durations.iter_mut().zip(&other.durations).for_each(|(mine, other)| mine.absorb(other));
        self.calls.iter_mut().zip(other.calls).for_each(|(sum, calls)| *sum += calls);
        self.switches += other.switches;
        self.rewritten_trims += other.rewritten_trims;
    }
}

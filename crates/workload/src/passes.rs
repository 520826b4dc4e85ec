//! How much a job issues: bytes, operations, and passes over its files.
//!
//! Invariant: a pass that issued nothing is the last one, so a stream over regions too small for a block ends.
//!
//! fio's arithmetic, derived from its operation logs. `loops` multiplies the bytes and operations of the whole job. A
//! pass ends when all files are done, never by bytes: a loop that ends in the middle of a file continues there. The
//! job ends with the first operation that reaches the bytes (it may exceed them), or after `loops` passes; only an
//! `io_size` of its own causes more passes, until less than a block is left. A trim and its write count once.

use fiord_plan::job::Limits;

/// Compares issued operations with the job's limits.
#[derive(Debug, Clone)]
pub(crate) struct Passes {
    limits: Limits,
    /// The shortest operation: no pass begins for less than this.
    shortest_bytes: u64,
    /// Bytes at which the job ends.
    bytes_max: u64,
    /// Operations at which the job ends.
    ios_max: u64,
    issued_bytes: u64,
    issued_ios: u64,
    /// `issued_ios` when this pass began.
    before_pass_ios: u64,
    begun: u64,
    ended: bool,
    /// Operations that count as one: 2 when each trim is followed by its write.
    per_counted: u64,
}

impl Passes {
    pub(crate) fn new(limits: Limits, trims_then_writes: bool, shortest_bytes: u64) -> Passes {
        let loops = limits.loops.max(1);
        let bytes_max = if limits.time_based { u64::MAX } else { limits.loop_bytes.saturating_mul(loops) };
        Passes {
            limits,
            shortest_bytes: shortest_bytes.max(1),
            bytes_max,
            ios_max: limits.number_ios.map_or(u64::MAX, |ios| ios.saturating_mul(loops)),
            issued_bytes: 0,
            issued_ios: 0,
            before_pass_ios: 0,
            begun: 1,
            ended: false,
            per_counted: if trims_then_writes { 2 } else { 1 },
        }
    }

    /// Whether the job has issued everything.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.issued_bytes >= self.bytes_max || self.issued_ios >= self.ios_max
    }

    /// Whether the stream has ended.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The number of operations of `length_bytes` that the job still issues, if its files have space for them.
    #[inline]
    pub(crate) fn ops_left(&self, length_bytes: u64) -> u64 {
        let by_bytes = self.bytes_max.saturating_sub(self.issued_bytes).div_ceil(length_bytes);
        by_bytes.min(self.ios_max.saturating_sub(self.issued_ios))
    }

    /// Counts `ios` operations of `bytes` in all.
    #[inline]
    pub(crate) fn count(&mut self, ios: u64, bytes: u64) {
        self.issued_ios += ios;
        self.issued_bytes += bytes;
    }

    /// Begins the next pass after the files are done; `false`, from then on, if the job is.
    pub(crate) fn begin_next(&mut self) -> bool {
        let Limits { pass_bytes, loop_bytes, repeats_passes, loops, time_based, .. } = self.limits;
        let done_bytes = self.issued_bytes.saturating_mul(self.per_counted);
        let has_own_bytes = repeats_passes || loop_bytes > pass_bytes;
        let has_bytes_left = loop_bytes.saturating_sub(done_bytes) >= self.shortest_bytes;
        let goes_on = time_based || self.begun < loops || has_own_bytes && has_bytes_left;
        if self.is_full() || self.issued_ios == self.before_pass_ios || !goes_on {
            self.ended = true;
            return false;
        }
        self.before_pass_ios = self.issued_ios;
        self.begun += 1;
        true
    }

    /// Passes begun, from 1.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }
}

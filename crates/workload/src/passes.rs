//! How much a job issues: bytes and operations of each pass, and whether another pass follows.
//!
//! Invariant: a pass that issued nothing is the last, so a stream over regions too small for a block ends.
//!
//! fio's arithmetic, read off its operation logs: a pass goes on while it has issued less than its bytes, so the
//! last operation may reach beyond; `loops` and `io_size` each ask for passes, and whichever asks for more wins;
//! operations (`number_ios`) are counted per loop; of a trim and its write, only one counts for a pass and both
//! for `io_size`.

use fiord_plan::job::Limits;

/// Counts what is issued against the job's limits.
#[derive(Debug, Clone)]
pub(crate) struct Passes {
    limits: Limits,
    /// How often each byte of a pass is operated on: 2 when each trim is followed by its write.
    weight: u64,
    /// The shortest operation: less than this left over is not worth a pass.
    shortest_bytes: u64,
    loops_left: u64,
    /// Where this pass ends.
    target_bytes: u64,
    pass_bytes: u64,
    issued_bytes: u64,
    loop_ios: u64,
    begun: u64,
    ended: bool,
}

impl Passes {
    pub(crate) fn new(limits: Limits, trims_then_writes: bool, shortest_bytes: u64) -> Passes {
        let weight = if trims_then_writes { 2 } else { 1 };
        Passes {
            limits,
            weight,
            shortest_bytes: shortest_bytes.max(1),
            loops_left: limits.loops.max(1),
            target_bytes: limits.pass_bytes.min(limits.loop_bytes).saturating_mul(weight),
            pass_bytes: 0,
            issued_bytes: 0,
            loop_ios: 0,
            begun: 1,
            ended: false,
        }
    }

    /// Whether this pass has issued all it should.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.pass_bytes >= self.target_bytes || self.ios_left() == 0
    }

    /// Whether nothing follows any more.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// How many operations of `length_bytes` this pass still issues, if the files have room for them.
    #[inline]
    pub(crate) fn ops_left(&self, length_bytes: u64) -> u64 {
        self.target_bytes.saturating_sub(self.pass_bytes).div_ceil(length_bytes).min(self.ios_left())
    }

    /// Counts `ops` operations of `bytes` in all; a trim and its write are one with the bytes of both.
    #[inline]
    pub(crate) fn count(&mut self, ops: u64, bytes: u64) {
        self.loop_ios += ops;
        self.pass_bytes += bytes;
        self.issued_bytes += bytes;
    }

    /// Ends this pass: begins the next and returns true, or returns false for good.
    pub(crate) fn begin_next(&mut self) -> bool {
        let usual_bytes = self.limits.pass_bytes.min(self.limits.loop_bytes);
        let left_bytes = self.limits.loop_bytes.saturating_sub(self.issued_bytes);
        let wanted_bytes = if self.ended || self.pass_bytes == 0 {
            None
        } else if self.limits.time_based {
            self.loop_ios = 0;
            Some(usual_bytes)
        } else if self.loops_left > 1 {
            self.loops_left -= 1;
            self.loop_ios = 0;
            Some(usual_bytes)
        } else if self.ios_left() > 0 && left_bytes >= self.shortest_bytes {
            Some(self.limits.pass_bytes.min(left_bytes))
        } else {
            None
        };
        match wanted_bytes {
            Some(bytes) => {
                self.target_bytes = bytes.saturating_mul(self.weight);
                self.pass_bytes = 0;
                self.begun += 1;
            }
            None => self.ended = true,
        }
        wanted_bytes.is_some()
    }

    /// Passes begun, from 1.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Bytes issued over all passes.
    pub(crate) fn issued_bytes(&self) -> u64 {
        self.issued_bytes
    }

    /// Bytes over all passes if the files have room for them; `None` without an end by size.
    pub(crate) fn total_bytes(&self) -> Option<u64> {
        let Limits { pass_bytes, loop_bytes, loops, .. } = self.limits;
        let by_loops = pass_bytes.min(loop_bytes).saturating_mul(loops.max(1)).saturating_mul(self.weight);
        (!self.limits.time_based).then(|| by_loops.max(loop_bytes))
    }

    /// Operations left in this loop.
    #[inline]
    fn ios_left(&self) -> u64 {
        self.limits.number_ios.map_or(u64::MAX, |ios| ios.saturating_sub(self.loop_ios))
    }
}

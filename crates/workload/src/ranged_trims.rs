//! Trims of several ranges: each operation is as many trims of the access pattern as the job says (`num_range`).
//!
//! Invariant: the ranges of an operation are of one file, and are those that the job would trim one by one, in their order.
//! They are kept until the operation is issued, which is before the next ones are made.

use fiord_plan::job::Limits;
use fiord_plan::{Access, FileIndex, FileService, Files, Op, TrimRange};
use fiord_stats::Capped;

use crate::error::WorkloadError;
use crate::source::{OperationSource, Supply};
use crate::stream::Stream;

/// Operations that are made at once.
const BATCH: usize = 64;

/// The trims of a job with `num_range`.
pub struct RangedTrims {
    stream: Stream,
    /// Ranges of a whole operation.
    each: usize,
    /// Those of the operations made last, `each` for each.
    ranges: Vec<TrimRange>,
    /// Taken from the stream for one operation.
    taken: Vec<Op>,
}

impl RangedTrims {
    /// The trims over the files of a job.
    ///
    /// # Errors
    /// Why the job has no operations.
    pub fn new(access: &Access, files: &Files, limits: &Limits) -> Result<RangedTrims, WorkloadError> {
        let each = access.trim_ranges.max(1) as usize;
        // An operation counts once.
        let number_ios = limits.number_ios.map(|ios| ios.saturating_mul(each as u64));
        let access = Access { service: turns_of(access.service, u32::capped(each)), ..access.clone() };
        let stream = Stream::new(&access, files, &Limits { number_ios, ..*limits })?;
        let none = TrimRange { offset_bytes: 0, length_bytes: 0 };
        Ok(RangedTrims { stream, each, ranges: vec![none; each * BATCH], taken: Vec::with_capacity(each) })
    }

    /// Takes the trims of the next operation from the stream; those of another file stay for the one after.
    fn take(&mut self) {
        while self.taken.len() < self.each {
            let before = self.taken.len();
            if self.stream.fill(&mut self.taken, self.each - before) == 0 {
                return;
            }
            if self.taken.iter().any(|op| op.file != self.taken[0].file) {
                return;
            }
        }
    }
}

/// Turns that are as many operations long as before, each of this many ranges.
fn turns_of(service: FileService, each: u32) -> FileService {
    match service {
        FileService::RoundRobin { every } => FileService::RoundRobin { every: every.saturating_mul(each) },
        FileService::Random { every } => FileService::Random { every: every.saturating_mul(each) },
        FileService::Sequential
        | FileService::Zipf { .. }
        | FileService::Pareto { .. }
        | FileService::Normal { .. } => service,
    }
}

impl OperationSource for RangedTrims {
    crate::wraps!(stream);

    fn fill(&mut self, ops: &mut Vec<Op>, room: usize, _now_ns: u64) -> Supply {
        let before = ops.len();
        for number in 0..room.min(BATCH) {
            self.take();
            let Some(first) = self.taken.first().copied() else { break };
            let count = self.taken.iter().take_while(|op| op.file == first.file).count();
            let places = self.ranges[number * self.each..][..self.each].iter_mut();
            let mut length_bytes = 0;
            let taken = self.taken.drain(..count);
            let ranges =
                taken.map(|op| TrimRange { offset_bytes: op.offset_bytes, length_bytes: op.length_bytes });
            let end = TrimRange { offset_bytes: 0, length_bytes: 0 };
            for (place, range) in places.zip(ranges.chain(std::iter::repeat(end))) {
                length_bytes += range.length_bytes;
                *place = range;
            }
            ops.push(Op { length_bytes, sequence: number as u64, ..first });
        }
        if ops.len() > before { Supply::Ready } else { Supply::Ended }
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        self.stream.open_files().for_each(show);
    }

    fn sends_buffer(&self, _op: &Op) -> bool {
        true
    }

    fn prepare(&mut self, op: &Op, buffer: &mut [u8]) {
        let ranges = &self.ranges[usize::capped(op.sequence) * self.each..][..self.each];
        TrimRange::store(ranges.iter().copied().take_while(|range| range.length_bytes > 0), buffer);
    }
}

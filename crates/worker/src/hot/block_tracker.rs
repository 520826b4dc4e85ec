//! Counts how many trims each block of a job's files lasts (`block_error_percentiles`).
//!
//! Invariant: a block keeps its first failure, and the number of trims that succeeded before it.

use fiord_plan::{Direction, FilePlan, Job, Op};
use fiord_stats::{BlockLifetimes, BlockState, Capped};
use fiord_sys::errno::Errno;

use crate::failure::Failure;

/// Bits of a block's trims; its state is in those above.
const TRIM_BITS: u32 = 29;
const TRIMS_MAX: u32 = (1 << TRIM_BITS) - 1;

/// The blocks of the part of a file that the job uses.
#[derive(Debug)]
struct FileBlocks {
    /// Number of the first of them, from the start of the file.
    first: u64,
    blocks: Vec<u32>,
}

/// The blocks of a job's files. A block is as long as the shortest trim.
#[derive(Debug)]
pub(crate) struct BlockTracker {
    block_bytes: u64,
    files: Vec<FileBlocks>,
}

impl BlockTracker {
    /// `None` if the job does not trim, or does not record it.
    ///
    /// # Errors
    /// If there is no memory for 4 bytes for each block.
    pub(crate) fn of(job: &Job) -> Result<Option<Box<BlockTracker>>, Failure> {
        let trims = job.issues(Direction::Trim);
        if !job.measure.block_lifetimes || !trims {
            return Ok(None);
        }
        let block_bytes = job.access.block_sizes[Direction::Trim.index()].min().max(1);
        let files: Result<Vec<FileBlocks>, Failure> =
            job.files.list.iter().map(|file| FileBlocks::of(file, block_bytes)).collect();
        Ok(Some(Box::new(BlockTracker { block_bytes, files: files? })))
    }

    /// An I/O succeeded.
    pub(crate) fn completed(&mut self, op: &Op) {
        match op.action.direction() {
            Some(Direction::Trim) => self.change(op, |_, trims| (BlockState::Trimmed, trims + 1)),
            Some(Direction::Write) => self.change(op, |_, trims| (BlockState::Written, trims)),
            Some(Direction::Read) | None => {}
        }
    }

    /// An I/O failed.
    pub(crate) fn failed(&mut self, op: &Op) {
        match op.action.direction() {
            Some(Direction::Trim) => self.change(op, |_, trims| (BlockState::TrimFailure, trims)),
            Some(Direction::Write) => self.change(op, |_, trims| (BlockState::WriteFailure, trims)),
            Some(Direction::Read) | None => {}
        }
    }

    /// Forgets what happened, at the end of the ramp.
    pub(crate) fn reset(&mut self) {
        self.files.iter_mut().for_each(|file| file.blocks.fill(0));
    }

    /// What happened so far.
    pub(crate) fn lifetimes(&self) -> BlockLifetimes {
        BlockLifetimes::of(self.files.iter().flat_map(|file| &file.blocks).map(|block| unpack(*block)))
    }

    /// Changes state and trims of the blocks of `op` that have not failed.
    fn change(&mut self, op: &Op, change: impl Fn(BlockState, u32) -> (BlockState, u32)) {
        let Some(file) = self.files.get_mut(op.file as usize) else { return };
        let end = (op.offset_bytes + op.length_bytes).div_ceil(self.block_bytes);
        for number in op.offset_bytes / self.block_bytes..end {
            let place = number.checked_sub(file.first).and_then(|place| usize::try_from(place).ok());
            let Some(block) = place.and_then(|place| file.blocks.get_mut(place)) else { continue };
            let (state, trims) = unpack(*block);
            if !state.is_failure() {
                let (state, trims) = change(state, u32::capped(trims));
                *block = (state as u32) << TRIM_BITS | trims.min(TRIMS_MAX);
            }
        }
    }
}

impl FileBlocks {
    fn of(file: &FilePlan, block_bytes: u64) -> Result<FileBlocks, Failure> {
        let first = file.offset_bytes / block_bytes;
        let end = (file.offset_bytes + file.length_bytes).div_ceil(block_bytes);
        let count = usize::try_from(end - first).unwrap_or(usize::MAX);
        if Vec::<u32>::new().try_reserve_exact(count).is_err() {
            let need = count.saturating_mul(size_of::<u32>());
            let explanation = format!(
                "no memory for {need} bytes, 4 for each of {count} blocks (ENOMEM): use a larger bs, a smaller size, or \
                 leave out block_error_percentiles"
            );
            let errno = Some(Errno::ENOMEM);
            return Err(Failure { errno, ..Failure::other("record the lifetimes of blocks", explanation) });
        }
        // Zeroed memory from the kernel takes no time until it is used.
        Ok(FileBlocks { first, blocks: vec![0; count] })
    }
}

fn unpack(block: u32) -> (BlockState, u64) {
    let state = BlockState::ALL.get((block >> TRIM_BITS) as usize).copied();
    debug_assert!(state.is_some(), "only states are packed: {block:#x}");
    (state.unwrap_or_default(), u64::from(block & TRIMS_MAX))
}

#[cfg(test)]
mod tests {
    use fiord_plan::Action;

    use super::*;

    /// Blocks 2 to 5 of 4096 bytes.
    fn tracker() -> BlockTracker {
        BlockTracker { block_bytes: 4096, files: vec![FileBlocks { first: 2, blocks: vec![0; 4] }] }
    }

    fn op(action: Action, block: u64, blocks: u64) -> Op {
        Op::new(action, 0, block * 4096, blocks * 4096)
    }

    // divergence: `block_error_percentiles`, states
    #[test]
    fn a_block_keeps_its_first_failure_and_the_trims_before_it() {
        let mut tracker = tracker();
        for _ in 0..3 {
            tracker.completed(&op(Action::Trim, 2, 1));
        }
        tracker.failed(&op(Action::Write, 2, 1));
        tracker.completed(&op(Action::Trim, 2, 1));
        tracker.failed(&op(Action::Trim, 2, 1));
        let states = [3, 0, 0, 0, 1];
        assert_eq!(tracker.lifetimes(), BlockLifetimes { trims: vec![(3, 1)], states });
        tracker.reset();
        assert_eq!(tracker.lifetimes(), BlockLifetimes { trims: vec![], states: [4, 0, 0, 0, 0] });
    }

    #[test]
    fn an_io_changes_every_block_that_it_touches() {
        let mut tracker = tracker();
        tracker.completed(&op(Action::Trim, 2, 3));
        // Within block 4, and from the middle of it into 5.
        tracker.completed(&Op::new(Action::Write, 0, 4 * 4096 + 512, 512));
        tracker.failed(&Op::new(Action::Trim, 0, 5 * 4096 + 2048, 4096));
        tracker.completed(&op(Action::Read, 3, 1));
        // Beyond the job's part of the file, and of another file.
        tracker.completed(&op(Action::Trim, 6, 2));
        tracker.completed(&Op { file: 1, ..op(Action::Trim, 3, 1) });
        let states = [0, 2, 1, 1, 0];
        assert_eq!(tracker.lifetimes(), BlockLifetimes { trims: vec![(0, 1), (1, 3)], states });
    }
}

//! The progress of a job's writes, for its saved state, and that of the job whose state was loaded.
//!
//! Invariant: a write counts as written only if it has completed, and under `verify_policy=fsynced` only if a sync of
//! its file followed. Nothing is allocated between `new` and `state`.

use std::collections::VecDeque;

use fiord_plan::{Action, Op};
use fiord_stats::Capped;
use fiord_verify::{HeaderFormat, VerifyState};

/// The syncs of one file.
#[derive(Debug, Clone, Copy, Default)]
struct Synced {
    /// Writes with smaller numbers are on the disk.
    until: u64,
    /// The same, once the sync in flight has completed.
    next_until: u64,
    in_flight: u32,
    /// Number of the last write, plus 1.
    written: u64,
}

/// How far a job has written.
#[derive(Debug)]
pub(super) struct WriteProgress {
    depth: usize,
    /// Writes issued.
    numbers: u64,
    /// Numbers of those that are in flight or failed.
    open: Vec<u64>,
    /// Writes from this number on do not count: more have failed than can be listed.
    cut: u64,
    /// The last writes that completed, newest first: file and offset in bytes.
    completions: VecDeque<(u64, u64)>,
    files: Box<[Synced]>,
    only_synced: bool,
    seed: u64,
}

impl WriteProgress {
    /// Of a job with this queue depth and so many files, whose operations follow from `seed`.
    pub(super) fn new(depth: u32, files: usize, seed: u64, only_synced: bool) -> WriteProgress {
        let depth = depth as usize;
        WriteProgress {
            depth,
            numbers: 0,
            open: Vec::with_capacity(depth * 2 + 1),
            cut: u64::MAX,
            completions: VecDeque::with_capacity(depth + 1),
            files: vec![Synced::default(); files].into_boxed_slice(),
            only_synced,
            seed,
        }
    }

    /// `op` is issued.
    pub(super) fn issued(&mut self, op: &Op) {
        let oldest = self.open.iter().copied().min().unwrap_or(self.numbers);
        let Some(file) = self.files.get_mut(op.file as usize) else { return };
        match op.action {
            // An operation that is issued again has been counted.
            Action::Write if op.sequence > self.numbers => {
                (self.numbers, file.written) = (op.sequence, op.sequence);
                self.open.push(op.sequence - 1);
            }
            Action::Sync | Action::DataSync => {
                if file.in_flight == 0 {
                    file.next_until = oldest;
                }
                file.in_flight += 1;
            }
            Action::Write | Action::Read | Action::Trim | Action::ResetZone | Action::RangeSync(_) => {}
        }
    }

    /// `op` has completed, or failed.
    pub(super) fn ended(&mut self, op: &Op, has_failed: bool) {
        match op.action {
            Action::Write => {
                let number = op.sequence - 1;
                let is_listed = has_failed && self.open.len() <= self.depth;
                if !is_listed && let Some(index) = self.open.iter().position(|open| *open == number) {
                    self.open.swap_remove(index);
                }
                if has_failed {
                    self.cut = if is_listed { self.cut } else { self.cut.min(number) };
                    return;
                }
                self.completions.truncate(self.depth.saturating_sub(1));
                self.completions.push_front((u64::from(op.file), op.offset_bytes));
            }
            Action::Sync | Action::DataSync => {
                let Some(file) = self.files.get_mut(op.file as usize) else { return };
                file.in_flight = file.in_flight.saturating_sub(1);
                if !has_failed {
                    file.until = file.until.max(file.next_until);
                }
            }
            Action::Read | Action::Trim | Action::ResetZone | Action::RangeSync(_) => {}
        }
    }

    /// Number of writes that count as written, ignoring those in flight.
    fn written(&self) -> u64 {
        let mut written = self.numbers.min(self.cut);
        if self.only_synced {
            let unsynced = self.files.iter().filter(|file| file.written > file.until);
            written = unsynced.map(|file| file.until).fold(written, u64::min);
        }
        written
    }

    /// What is saved, with headers of this format.
    pub(super) fn state(&self, format: HeaderFormat) -> VerifyState {
        let mut in_flight = self.open.clone();
        in_flight.sort_unstable();
        let mut numbers = self.written();
        let listed = match format {
            HeaderFormat::V3_42 => self.depth,
            // This format lists the last completions instead: a write that is not among them is too old to be listed.
            HeaderFormat::V3_33 => {
                in_flight.iter().filter(|number| **number + self.depth as u64 >= numbers).count()
            }
        };
        if format == HeaderFormat::V3_33 && in_flight.len() > listed {
            numbers = numbers.min(in_flight[0]);
        }
        if let Some(first) = in_flight.get(listed) {
            numbers = numbers.min(*first);
        }
        in_flight.retain(|number| *number < numbers);
        let is_whole = numbers == self.numbers;
        VerifyState {
            name: Vec::new(),
            depth: u32::capped(self.depth),
            files: u32::capped(self.files.len()),
            numbers,
            // The completions of later writes would displace those of the writes that count.
            completions: if is_whole { self.completions.iter().copied().collect() } else { Vec::new() },
            in_flight,
            seed: Some(self.seed),
        }
    }
}

/// What an earlier job had written, followed while its operations are generated again.
#[derive(Debug)]
pub(super) struct Earlier {
    state: VerifyState,
    /// Operations generated so far.
    seen: u64,
}

impl Earlier {
    /// From its saved state.
    pub(super) fn new(state: &VerifyState) -> Earlier {
        Earlier { state: state.clone(), seen: 0 }
    }

    /// Whether the next operation was completed by the earlier job; `None` if it was not issued.
    pub(super) fn next(&mut self, op: &Op) -> Option<bool> {
        let (number, state) = (self.seen, &self.state);
        if number >= state.numbers {
            return None;
        }
        self.seen += 1;
        let is_recent = number + u64::from(state.depth) >= state.numbers && !state.completions.is_empty();
        let place = (u64::from(op.file), op.offset_bytes);
        let is_complete = !is_recent || state.completions.contains(&place);
        Some(is_complete && !state.in_flight.contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(number: u64) -> Op {
        Op { sequence: number + 1, ..Op::new(Action::Write, 0, number * 4096, 4096) }
    }

    fn sync() -> Op {
        Op::new(Action::Sync, 0, 0, 0)
    }

    fn progress(depth: u32, only_synced: bool) -> WriteProgress {
        WriteProgress::new(depth, 1, 7, only_synced)
    }

    #[test]
    fn what_is_in_flight_is_listed() {
        let mut progress = progress(4, false);
        (0..4).for_each(|number| progress.issued(&write(number)));
        [3, 0].into_iter().for_each(|number| progress.ended(&write(number), false));
        let state = progress.state(HeaderFormat::V3_42);
        assert_eq!((state.numbers, state.in_flight, state.seed), (4, vec![1, 2], Some(7)));
        let state = progress.state(HeaderFormat::V3_33);
        assert_eq!((state.numbers, &state.completions[..]), (4, &[(0, 0), (0, 3 * 4096)][..]));
        let mut earlier = Earlier::new(&VerifyState { depth: 4, ..state });
        let complete: Vec<Option<bool>> = (0..5).map(|number| earlier.next(&write(number))).collect();
        assert_eq!(complete, [Some(true), Some(false), Some(false), Some(true), None]);
    }

    #[test]
    fn failed_writes_are_never_written() {
        let mut progress = progress(2, false);
        for number in 0..6 {
            progress.issued(&write(number));
            progress.ended(&write(number), number % 2 == 1);
        }
        let state = progress.state(HeaderFormat::V3_42);
        assert_eq!((state.numbers, state.in_flight), (5, vec![1, 3]), "there is room for two of the three");
        assert_eq!(progress.state(HeaderFormat::V3_33).numbers, 1, "this file lists only the last");
    }

    #[test]
    fn only_what_a_sync_followed_counts() {
        let mut progress = progress(4, true);
        (0..3).for_each(|number| progress.issued(&write(number)));
        progress.ended(&write(1), false);
        progress.issued(&sync());
        progress.ended(&sync(), false);
        assert_eq!(progress.state(HeaderFormat::V3_42).numbers, 0, "write 0 was in flight");
        [0, 2].into_iter().for_each(|number| progress.ended(&write(number), false));
        progress.issued(&sync());
        progress.issued(&write(3));
        assert_eq!(progress.state(HeaderFormat::V3_42).numbers, 0);
        progress.ended(&sync(), true);
        assert_eq!(progress.state(HeaderFormat::V3_42).numbers, 0, "the sync failed");
        progress.issued(&sync());
        progress.ended(&sync(), false);
        assert_eq!(progress.state(HeaderFormat::V3_42).numbers, 3);
        progress.ended(&write(3), false);
        progress.issued(&sync());
        progress.ended(&sync(), false);
        assert_eq!(progress.state(HeaderFormat::V3_42).numbers, 4);
    }
}

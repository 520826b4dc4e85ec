//! Synchronisations between writes.
//!
//! Invariant: a synchronisation becomes due with a write and is for that write's file; of several due at once only
//! the strongest is issued.
//!
//! It is issued before the operation that follows, so a job whose last write makes one due ends without it, as in fio.

// A new action has to be handled wherever actions are distinguished: no wildcard arm may cover it.
#![deny(clippy::wildcard_enum_match_arm)]

use fiord_plan::{Action, Barriers, FileIndex, Op};

/// Counts writes towards the next synchronisations.
#[derive(Debug, Clone)]
pub(crate) struct BarrierCounter {
    sync: Every,
    data_sync: Every,
    range_sync: Every,
    range_flags: u8,
    /// Per file, the bytes written since its last range synchronisation: from the first to the end of the last.
    written: Vec<(u64, u64)>,
    due: Option<Op>,
    /// Whether the job has any.
    is_used: bool,
}

/// Due every `every` ticks; never, if that is 0.
#[derive(Debug, Clone, Copy)]
struct Every {
    every: u32,
    left: u32,
}

impl Every {
    fn new(every: u32) -> Every {
        Every { every, left: every }
    }

    #[inline]
    fn tick(&mut self) -> bool {
        if self.every == 0 {
            return false;
        }
        self.left -= 1;
        if self.left > 0 {
            return false;
        }
        self.left = self.every;
        true
    }
}

/// No bytes: the first write sets it.
const NOTHING_WRITTEN: (u64, u64) = (u64::MAX, 0);

impl BarrierCounter {
    pub(crate) fn new(barriers: Barriers, file_count: usize) -> BarrierCounter {
        let tracked = if barriers.range_every > 0 { file_count } else { 0 };
        BarrierCounter {
            sync: Every::new(barriers.fsync_every),
            data_sync: Every::new(barriers.fdatasync_every),
            range_sync: Every::new(barriers.range_every),
            range_flags: barriers.range_flags,
            written: vec![NOTHING_WRITTEN; tracked],
            due: None,
            is_used: [barriers.fsync_every, barriers.fdatasync_every, barriers.range_every] != [0; 3],
        }
    }

    /// Whether any synchronisation is ever due.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Counts an operation that is issued.
    #[inline]
    pub(crate) fn count(&mut self, op: &Op) {
        match op.action {
            Action::Write if self.is_used => self.count_write(op),
            Action::Write
            | Action::Read
            | Action::Trim
            | Action::ResetZone
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_) => {}
        }
    }

    fn count_write(&mut self, op: &Op) {
        if let Some((first, end)) = self.written.get_mut(op.file as usize) {
            *first = (*first).min(op.offset_bytes);
            *end = (*end).max(op.offset_bytes + op.length_bytes);
        }
        let [sync, data_sync, range_sync] = [self.sync.tick(), self.data_sync.tick(), self.range_sync.tick()];
        self.due = if sync {
            Some(whole_file(Action::Sync, op.file))
        } else if data_sync {
            Some(whole_file(Action::DataSync, op.file))
        } else if range_sync {
            let written = std::mem::replace(&mut self.written[op.file as usize], NOTHING_WRITTEN);
            let action = Action::RangeSync(self.range_flags);
            Some(Op {
                offset_bytes: written.0,
                length_bytes: written.1 - written.0,
                ..whole_file(action, op.file)
            })
        } else {
            None
        };
    }

    /// The synchronisation to issue before anything else.
    #[inline]
    pub(crate) fn take_due(&mut self) -> Option<Op> {
        self.due.take()
    }
}

fn whole_file(action: Action, file: FileIndex) -> Op {
    Op::new(action, file, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: FileIndex, offset_bytes: u64) -> Op {
        Op::new(Action::Write, file, offset_bytes, 10)
    }

    /// What is due after each of `count` consecutive writes of 10 bytes.
    fn due_after(barriers: Barriers, count: u64) -> Vec<Option<Action>> {
        let mut counter = BarrierCounter::new(barriers, 1);
        (0..count)
            .map(|index| {
                counter.count(&write(0, index * 10));
                counter.take_due().map(|op| op.action)
            })
            .collect()
    }

    #[test]
    fn only_the_strongest_is_issued() {
        let barriers = Barriers { fsync_every: 3, fdatasync_every: 2, ..Barriers::default() };
        let (none, data, all) = (None, Some(Action::DataSync), Some(Action::Sync));
        assert_eq!(due_after(barriers, 7), [none, data, all, data, none, all, none]);
    }

    #[test]
    fn a_range_covers_the_writes_since_the_last_one() {
        let barriers = Barriers { range_every: 3, range_flags: 2, ..Barriers::default() };
        let mut counter = BarrierCounter::new(barriers, 2);
        for op in [write(1, 50), write(0, 500), write(1, 20)] {
            assert_eq!(counter.take_due(), None);
            counter.count(&op);
        }
        let due = counter.take_due().unwrap();
        assert_eq!((due.action, due.file), (Action::RangeSync(2), 1));
        assert_eq!((due.offset_bytes, due.length_bytes), (20, 40));
        [write(1, 100), write(1, 110), write(1, 120)].iter().for_each(|op| counter.count(op));
        assert_eq!(counter.take_due().map(|op| (op.offset_bytes, op.length_bytes)), Some((100, 30)));
    }

    #[test]
    fn only_writes_count() {
        let mut counter = BarrierCounter::new(Barriers { fsync_every: 1, ..Barriers::default() }, 1);
        for action in [Action::Read, Action::Trim] {
            counter.count(&Op { action, ..write(0, 0) });
            assert_eq!(counter.take_due(), None);
        }
        assert!(counter.is_used() && !BarrierCounter::new(Barriers::default(), 1).is_used());
    }
}

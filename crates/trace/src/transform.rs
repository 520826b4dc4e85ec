//! How a trace is changed while it is replayed.
//!
//! Invariant: the order of entries never changes.

use crate::{Entry, EntryKind};

/// A set of kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Kinds {
    bits: u8,
}

impl Kinds {
    /// Adds a kind.
    pub fn insert(&mut self, kind: EntryKind) {
        self.bits |= 1 << kind as u8;
    }

    /// Whether the kind is in the set.
    pub fn contains(self, kind: EntryKind) -> bool {
        self.bits & (1 << kind as u8) != 0
    }
}

impl FromIterator<EntryKind> for Kinds {
    fn from_iter<I: IntoIterator<Item = EntryKind>>(kinds: I) -> Kinds {
        let mut set = Kinds::default();
        kinds.into_iter().for_each(|kind| set.insert(kind));
        set
    }
}

/// fio's `replay_*` options that change entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Transform {
    /// Speed in percent (`replay_time_scale`): 200 replays in half the time. At least 1.
    pub speed_percent: u32,
    /// No pauses: every entry is due at once (`replay_no_stall`).
    pub no_stall: bool,
    /// Offsets are divided by this (`replay_scale`). At least 1.
    pub divisor: u64,
    /// Offsets are rounded down to multiples of this (`replay_align`). At least 1.
    pub align_bytes: u64,
    /// Kinds that are left out (`replay_skip`).
    pub skip: Kinds,
}

impl Default for Transform {
    /// The trace as recorded.
    fn default() -> Transform {
        Transform { speed_percent: 100, no_stall: false, divisor: 1, align_bytes: 1, skip: Kinds::default() }
    }
}

impl Transform {
    /// The entry as it is replayed; `None` if it is left out.
    pub fn apply(&self, entry: Entry) -> Option<Entry> {
        if self.skip.contains(entry.kind) {
            return None;
        }
        let scaled = entry.offset_bytes / self.divisor.max(1);
        let align = self.align_bytes.max(1);
        Some(Entry { at_ns: self.due_ns(entry.at_ns), offset_bytes: scaled - scaled % align, ..entry })
    }

    /// When something recorded at `at_ns` is due.
    pub fn due_ns(&self, at_ns: u64) -> u64 {
        if self.no_stall {
            return 0;
        }
        let scaled = u128::from(at_ns) * 100 / u128::from(self.speed_percent.max(1));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry =
        Entry { at_ns: 1_000, file: 0, kind: EntryKind::Read, offset_bytes: 10_000, length_bytes: 4096 };

    #[test]
    fn offsets_are_divided_then_aligned() {
        let transform = Transform { divisor: 2, align_bytes: 4096, ..Transform::default() };
        assert_eq!(transform.apply(ENTRY).unwrap().offset_bytes, 4096);
        assert_eq!(Transform::default().apply(ENTRY), Some(ENTRY));
    }

    #[test]
    fn half_the_speed_takes_twice_the_time_and_no_stall_takes_none() {
        let due_ns = |transform: Transform| transform.apply(ENTRY).unwrap().at_ns;
        assert_eq!(due_ns(Transform { speed_percent: 50, ..Transform::default() }), 2_000);
        assert_eq!(due_ns(Transform { speed_percent: 200, ..Transform::default() }), 500);
        assert_eq!(due_ns(Transform { no_stall: true, ..Transform::default() }), 0);
        let slowest = Transform { speed_percent: 1, ..Transform::default() };
        assert_eq!(slowest.due_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn kinds_that_are_skipped_are_left_out_and_no_others() {
        let skip: Kinds = [EntryKind::Read, EntryKind::Sync].into_iter().collect();
        let transform = Transform { skip, ..Transform::default() };
        let left: Vec<EntryKind> = EntryKind::ALL
            .into_iter()
            .filter(|kind| transform.apply(Entry { kind: *kind, ..ENTRY }).is_some())
            .collect();
        assert_eq!(left, [EntryKind::Write, EntryKind::Trim, EntryKind::DataSync, EntryKind::RangeSync]);
    }
}

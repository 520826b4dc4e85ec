//! After how many writes a section synchronizes, so that its job makes as many synchronizations of each kind as were seen.
//!
//! Invariant: counted as jobs do it: of several that are due after one write only the strongest is made, and none after the
//! last operation but that of `end_fsync`.

use crate::pattern::{Mix, READ, WRITE};
use crate::stream::Stream;
use crate::track::divisor;

/// Options and their calls, the strongest first.
const OPTIONS: [(&str, &str); 3] =
    [("fsync", "fsync"), ("fdatasync", "fdatasync"), ("sync_file_range", "sync_file_range")];
/// A deviation of one in so many is none.
const NEAR_PART: u64 = 20;
/// Values that are tried for each option.
const TRIED: u64 = 5;

/// What the three options and `end_fsync` are set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    /// After how many writes each kind comes; 0 for never.
    every: [u64; 3],
    /// Synchronizations of `end_fsync`, one for each file at the end of each pass; 0 without it.
    at_end: u64,
}

impl Choice {
    /// The synchronizations of each kind that a job makes in which so many writes are followed by another operation.
    fn made(&self, followed: u64) -> [u64; 3] {
        let times = |every: u64| followed.checked_div(every).unwrap_or(0);
        let [sync, data, range] = self.every;
        let (sync_data, sync_range, data_range) =
            (common(sync, data), common(sync, range), common(data, range));
        let all = common(sync_data, range);
        [
            times(sync).saturating_add(self.at_end),
            times(data) - times(sync_data),
            times(range) + times(all) - times(sync_range) - times(data_range),
        ]
    }

    /// How far these are from those that were seen: in all, and kind by kind.
    fn error(&self, followed: u64, seen: [u64; 3]) -> (u64, u64) {
        let (mut made_all, mut seen_all, mut each) = (0_u64, 0_u64, 0_u64);
        for (made, seen) in self.made(followed).into_iter().zip(seen) {
            made_all = made_all.saturating_add(made);
            seen_all = seen_all.saturating_add(seen);
            each = each.saturating_add(off(made, seen));
        }
        (off(made_all, seen_all), each)
    }

    /// The one with the least error. What is usual comes first, and stays if no other is better.
    fn of(writes: u64, followed: u64, at_ends: u64, seen: [u64; 3], usual: [u64; 3]) -> Choice {
        let is_last = seen[0] == 1 && usual[0] == writes;
        let mut best = Choice { every: usual, at_end: 0 };
        let mut least = (u64::MAX, u64::MAX);
        for number in 0..2 * TRIED.pow(3) {
            let has_end = (number >= TRIED.pow(3)) != is_last;
            let mut choice = Choice { every: [0; 3], at_end: if has_end { at_ends } else { 0 } };
            let mut digits = number;
            for kind in [2, 1, 0] {
                let Some(mean) = writes.checked_div(seen[kind]) else { continue };
                choice.every[kind] = match digits % TRIED {
                    0 if kind == 0 && is_last => 0,
                    0 => usual[kind],
                    4 => 0,
                    other => (mean + other).saturating_sub(2),
                };
                digits /= TRIED;
            }
            let error = choice.error(followed, seen);
            if error < least {
                (best, least) = (choice, error);
            }
        }
        for every in &mut best.every {
            // An option that has no effect would only mislead.
            if *every > followed {
                *every = 0;
            }
        }
        best
    }
}

/// What a deviation counts for.
fn off(made: u64, seen: u64) -> u64 {
    let off = made.abs_diff(seen);
    if off > seen / NEAR_PART { off } else { 0 }
}

/// After how many writes both come; 0 for never.
fn common(left: u64, right: u64) -> u64 {
    if left == 0 || right == 0 { 0 } else { (left / divisor(left, right)).saturating_mul(right) }
}

/// Adds the options by which a section synchronizes that goes through its files so many times.
pub(crate) fn add(stream: &Stream, mix: Mix, passes: u64, add: &mut dyn FnMut(&'static str, String, String)) {
    let (reads, writes) = (&stream.tracks[READ], stream.tracks[WRITE].ios);
    let seen = stream.syncs.each_ref().map(|syncs| syncs.count);
    if !mix.kinds().contains(&WRITE) || writes == 0 || seen == [0; 3] {
        return;
    }
    let ends_reading = mix == Mix::ReadsAndWrites && reads.last > stream.tracks[WRITE].last;
    let followed = if ends_reading { writes } else { writes - 1 };
    let told = stream.syncs.each_ref().map(|syncs| syncs.writes(writes).unwrap_or((0, true)));
    let at_ends = stream.files.saturating_mul(passes);
    let chosen = Choice::of(writes, followed, at_ends, seen, told.map(|(every, _)| every));
    let each = OPTIONS.into_iter().zip(seen).zip(told).zip(chosen.every);
    for ((((name, call), count), (usual, is_most)), every) in each.filter(|(_, every)| *every > 0) {
        let how = match every == usual {
            true if is_most => "most often",
            true => "on the average, not evenly:",
            false => "of which a job makes one at a time, and none after its last write:",
        };
        let value = if name == "sync_file_range" { format!("write:{every}") } else { every.to_string() };
        let after = if every == 1 { "each write".to_string() } else { format!("{every} writes") };
        add(name, value, format!("{count} calls of {call}, {how} after {after}"));
    }
    if chosen.at_end > 0 {
        let why = match seen[0] {
            0 => "in place of the last call of another kind, after which nothing is written",
            1 => "one fsync, after the last write",
            _ => "the last of them, after which nothing is written",
        };
        add("end_fsync", "1".to_string(), why.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(writes: u64, seen: [u64; 3]) -> Choice {
        Choice::of(writes, writes - 1, 1, seen, seen.map(|seen| writes.checked_div(seen).unwrap_or(0)))
    }

    #[test]
    fn kinds_that_meet_at_one_write_are_moved_apart() {
        let both = chosen(100, [0, 50, 50]);
        let [syncs, data, range] = both.made(99);
        assert_eq!(syncs + data + range, 99, "after each write but the last: {both:?}");
        assert!(data.abs_diff(range) <= 2, "{both:?}");
        // A near neighbour that has room stays as it is.
        assert_eq!(chosen(100, [0, 50, 0]), Choice { every: [0, 2, 0], at_end: 0 });
    }

    #[test]
    fn the_last_call_of_a_small_file_is_not_lost() {
        assert_eq!(chosen(1, [0, 1, 0]), Choice { every: [0, 0, 0], at_end: 1 });
        assert_eq!(chosen(1, [1, 0, 0]), Choice { every: [0, 0, 0], at_end: 1 });
        assert_eq!(chosen(8, [1, 0, 0]), Choice { every: [0, 0, 0], at_end: 1 });
        assert_eq!(chosen(8, [0, 1, 0]), Choice { every: [0, 7, 0], at_end: 0 });
        assert_eq!(chosen(2, [2, 0, 0]), Choice { every: [1, 0, 0], at_end: 1 });
        assert_eq!(chosen(2, [0, 1, 1]).made(1).iter().sum::<u64>(), 2);
    }

    #[test]
    fn what_is_counted_is_what_a_job_makes() {
        for every in [[0, 0, 0], [3, 2, 0], [2, 3, 5], [4, 2, 1], [1, 1, 1], [0, 4, 6]] {
            let mut made = [0; 3];
            for write in 1..=200 {
                let due = every.iter().position(|every| *every > 0 && write % every == 0);
                due.into_iter().for_each(|kind| made[kind] += 1);
            }
            assert_eq!(Choice { every, at_end: 0 }.made(200), made, "{every:?}");
        }
        let huge = Choice { every: [u64::MAX, u64::MAX - 1, 3], at_end: 0 };
        assert_eq!(huge.made(9), [0, 0, 3]);
    }
}

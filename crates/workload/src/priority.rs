//! Which I/Os have a priority of their own.
//!
//! Invariant: an operation gets a priority at most once; one that none applies to keeps the job's own.

use fiord_plan::{IoPriorities, Op, PerDirection, PriorityShare};
use fiord_stats::Random;

use crate::substream::Substream;

/// Draws the priorities of a job's I/Os.
#[derive(Debug)]
pub struct PriorityDraw {
    random: Random,
    shares: PerDirection<Vec<PriorityShare>>,
}

impl PriorityDraw {
    /// `None` if all I/Os have the job's own priority.
    pub fn new(priorities: &IoPriorities, seed: u64) -> Option<PriorityDraw> {
        let shares = priorities.shares.clone();
        let random = Substream::Priorities.of(seed);
        shares.iter().any(|shares| !shares.is_empty()).then_some(PriorityDraw { random, shares })
    }

    /// Gives these operations their priorities.
    pub fn draw(&mut self, ops: &mut [Op]) {
        for op in ops {
            let Some(direction) = op.action.direction() else { continue };
            let shares = &self.shares[direction.index()];
            if shares.is_empty() {
                continue;
            }
            let mut drawn = self.random.below(100);
            for share in shares {
                if share.length_bytes.is_some_and(|length_bytes| length_bytes != op.length_bytes) {
                    continue;
                }
                if drawn < u64::from(share.percent) {
                    op.priority = share.priority;
                    break;
                }
                drawn -= u64::from(share.percent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::Action;

    #[test]
    fn priorities_have_their_shares_of_each_block_size() {
        let share = |length_bytes, percent, priority| PriorityShare { length_bytes, percent, priority };
        let priorities = IoPriorities {
            values: vec![0, 1, 2, 3],
            shares: [
                vec![share(None, 30, 1)],
                vec![share(Some(512), 20, 2), share(Some(512), 50, 3), share(Some(1024), 100, 1)],
                Vec::new(),
            ],
        };
        let mut draw = PriorityDraw::new(&priorities, 1).unwrap();
        // The share of each priority in percent. A count of 100,000 has a deviation of 160 at most.
        let mut percents = |action: Action, length_bytes: u64| {
            let mut counts = [0_u64; 4];
            let mut ops = vec![Op::new(action, 0, 0, length_bytes); 100_000];
            draw.draw(&mut ops);
            ops.iter().for_each(|op| counts[usize::from(op.priority)] += 1);
            counts.map(|count| (count + 500) / 1000)
        };
        assert_eq!(percents(Action::Read, 512), [70, 30, 0, 0]);
        assert_eq!(percents(Action::Write, 512), [30, 0, 20, 50]);
        assert_eq!(percents(Action::Write, 1024), [0, 100, 0, 0]);
        assert_eq!(percents(Action::Write, 2048), [100, 0, 0, 0]);
        assert_eq!(percents(Action::Trim, 512), [100, 0, 0, 0]);
        assert_eq!(percents(Action::Sync, 0), [100, 0, 0, 0]);
        assert!(PriorityDraw::new(&IoPriorities::default(), 1).is_none());
    }
}

//! Which contents a write has where a share of all writes repeats others (`dedupe_percentage`).
//!
//! Invariant: contents are identified by a number, so that nothing that was written has to be stored.

use fiord_plan::job::Dedupe;
use fiord_stats::{Capped, Random};

use crate::substream::Substream;

/// Chooses the contents of each write.
#[derive(Debug, Clone)]
pub(crate) struct Duplicates {
    percent: u8,
    /// The contents that are repeated, and the bases of all workers that share theirs; without any, the last new
    /// contents are repeated.
    working_set: Option<(u64, Box<[u64]>)>,
    own_base: u64,
    /// New contents so far.
    new: u64,
    random: Random,
}

impl Duplicates {
    /// For a worker with this seed.
    pub(crate) fn new(dedupe: &Dedupe, seed: u64) -> Duplicates {
        let working_set = dedupe
            .working_set
            .as_ref()
            .map(|set| (set.contents.max(1), set.seeds.iter().map(|seed| base(*seed)).collect()));
        Duplicates {
            percent: dedupe.percent,
            working_set,
            own_base: base(seed),
            new: 0,
            random: Substream::Duplicates.of(seed),
        }
    }

    /// The seed of the random bytes of the next write: the same for the same contents.
    pub(crate) fn next(&mut self) -> u64 {
        if self.new == 0 || self.random.percent() >= u32::from(self.percent) {
            self.new += 1;
            return contents(self.own_base, self.new - 1);
        }
        let Some((size, bases)) = &self.working_set else { return contents(self.own_base, self.new - 1) };
        let base = match bases.len() {
            0 => self.own_base,
            workers => bases[usize::capped(self.random.below(workers as u64))],
        };
        // The other workers begin at the same time, and are taken to have written as many.
        contents(base, self.random.below(self.new.min(*size)))
    }
}

/// A number for a worker, far from those of all others.
fn base(seed: u64) -> u64 {
    Substream::OwnContents.of(seed).next_u64()
}

/// The seed of the random bytes of a worker's new contents with this number.
fn contents(base: u64, number: u64) -> u64 {
    Random::new(base.wrapping_add(number)).next_u64()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use fiord_plan::job::WorkingSet;

    use super::*;

    const WRITES: usize = 20_000;

    fn written(percent: u8, working_set: Option<WorkingSet>, seed: u64) -> Vec<u64> {
        let mut duplicates = Duplicates::new(&Dedupe { percent, working_set }, seed);
        (0..WRITES).map(|_| duplicates.next()).collect()
    }

    fn share_of_new(written: &[u64]) -> f64 {
        written.iter().collect::<BTreeSet<_>>().len() as f64 / written.len() as f64
    }

    #[test]
    fn the_share_of_duplicates_is_as_requested() {
        let set = |contents| Some(WorkingSet { contents, seeds: Vec::new() });
        for percent in [1, 30, 50, 99] {
            for working_set in [None, set(20), set(2000)] {
                let share = share_of_new(&written(percent, working_set.clone(), 5));
                let wanted = 1.0 - f64::from(percent) / 100.0;
                assert!((share - wanted).abs() < 0.015, "{percent} % of {working_set:?}: {share}");
            }
        }
        assert_eq!(share_of_new(&written(100, None, 5)) * WRITES as f64, 1.0);
    }

    #[test]
    fn repeating_repeats_the_last_new_contents() {
        // fio with dedupe_percentage=50: 2048 writes, 1054 of them new, 994 equal to the one before.
        let written = written(50, None, 6);
        let new = written.iter().collect::<BTreeSet<_>>().len();
        let equal = written.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert_eq!(new + equal, WRITES);
    }

    #[test]
    fn a_working_set_is_what_was_written_first() {
        let working_set = Some(WorkingSet { contents: 20, seeds: Vec::new() });
        let written = written(80, working_set, 7);
        let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
        written.iter().for_each(|contents| *counts.entry(*contents).or_default() += 1);
        let repeated: BTreeSet<u64> =
            counts.iter().filter(|(_, count)| **count > 1).map(|(key, _)| *key).collect();
        let mut first: Vec<u64> = Vec::new();
        written.iter().for_each(|contents| {
            if !first.contains(contents) && first.len() < 20 {
                first.push(*contents)
            }
        });
        assert_eq!(repeated, first.into_iter().collect());
    }

    #[test]
    fn workers_share_a_global_working_set() {
        let set = |is_shared| {
            Some(WorkingSet { contents: 100, seeds: if is_shared { vec![1, 2] } else { Vec::new() } })
        };
        let common = |is_shared| {
            let [one, two] =
                [1, 2].map(|seed| written(50, set(is_shared), seed).into_iter().collect::<BTreeSet<_>>());
            one.intersection(&two).count()
        };
        assert_eq!((common(false), common(true)), (0, 200));
    }
}

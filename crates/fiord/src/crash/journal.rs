//! The journal of a crash test: which rounds were begun and which were synced. It is stored where the power cut cannot
//! affect it.
//!
//! Invariant: a round is in the journal before its first write, and counts as synced only after the device has
//! confirmed the sync.

use std::collections::BTreeMap;

use fiord_stats::random::Random;

const HEAD: &str = "fiord-crash-test 1";

/// The writes of a test: rounds of `per_sync` writes, each ended by a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writes {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Blocks of the target that are written.
    pub blocks: u64,
    /// Length of a block.
    pub block_bytes: u64,
    /// Writes between two syncs.
    pub per_sync: u64,
}

impl Writes {
    /// The writes of a round, from 1: block and number, from 1, of each.
    pub(crate) fn of_round(self, round: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut random = Random::substream(self.seed, round);
        let first = (round - 1) * self.per_sync + 1;
        (0..self.per_sync).map(move |index| (random.below(self.blocks), first + index))
    }

    /// The first lines of a journal.
    pub(crate) fn head(self) -> String {
        let Writes { seed, blocks, block_bytes, per_sync } = self;
        format!("{HEAD}\nseed {seed}\nblocks {blocks}\nblock_bytes {block_bytes}\nper_sync {per_sync}\n")
    }
}

/// A journal that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Journal {
    pub writes: Writes,
    /// Rounds whose writes may have been issued.
    pub begun: u64,
    /// Rounds whose sync has completed.
    pub synced: u64,
}

impl Journal {
    /// Reads a journal. A last line without its end was cut off, and does not count.
    ///
    /// # Errors
    /// Number of the line, and what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Journal, String> {
        let mut values = BTreeMap::new();
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        let mut lines = whole.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(HEAD) {
            return Err(format!(
                "line 1: this is not a journal of `fiord crash-test`, which begins with \"{HEAD}\""
            ));
        }
        for (index, line) in lines {
            let number =
                line.split_once(' ').and_then(|(key, value)| Some((key, value.parse::<u64>().ok()?)));
            let Some((key, value)) = number else {
                return Err(format!("line {}: \"{line}\" is not a journal entry", index + 1));
            };
            values.insert(key.to_string(), value);
        }
        let of = |key: &str| values.get(key).copied().unwrap_or(0);
        let writes = Writes {
            seed: of("seed"),
            blocks: of("blocks"),
            block_bytes: of("block_bytes"),
            per_sync: of("per_sync"),
        };
        let is_block = writes.block_bytes >= 512 && writes.block_bytes.is_multiple_of(512);
        if writes.blocks == 0 || writes.per_sync == 0 || !is_block {
            return Err("its first lines are incomplete".to_string());
        }
        Ok(Journal { writes, begun: of("begin").max(of("synced")), synced: of("synced") })
    }

    /// For each block that was synced, the writes it may be of: the last one that was synced, then those of rounds that
    /// were begun and not synced.
    pub(crate) fn expected(&self) -> BTreeMap<u64, Vec<u64>> {
        let mut expected = BTreeMap::new();
        for (block, number) in (1..=self.synced).flat_map(|round| self.writes.of_round(round)) {
            expected.insert(block, vec![number]);
        }
        for (block, number) in (self.synced + 1..=self.begun).flat_map(|round| self.writes.of_round(round)) {
            if let Some(numbers) = expected.get_mut(&block) {
                numbers.push(number);
            }
        }
        expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: Writes = Writes { seed: 9, blocks: 4, block_bytes: 4096, per_sync: 3 };

    #[test]
    fn what_may_be_in_a_block_follows_from_the_journal() {
        let text = WRITES.head() + "begin 1\nsynced 1\nbegin 2\nsynced 2\nbegin 3\nsynced 3";
        let journal = Journal::parse(&text).unwrap();
        assert_eq!(journal, Journal { writes: WRITES, begun: 3, synced: 2 }, "the last line was cut off");
        let expected = journal.expected();
        let mut last = BTreeMap::new();
        (1..=2).flat_map(|round| WRITES.of_round(round)).for_each(|(block, number)| {
            last.insert(block, number);
        });
        assert_eq!(expected.keys().collect::<Vec<_>>(), last.keys().collect::<Vec<_>>());
        for (block, numbers) in &expected {
            assert_eq!(numbers[0], last[block]);
            let in_flight: Vec<u64> = WRITES
                .of_round(3)
                .filter(|(written, _)| written == block)
                .map(|(_, number)| number)
                .collect();
            assert_eq!(numbers[1..], in_flight);
        }
        assert_eq!(WRITES.of_round(2).map(|(_, number)| number).collect::<Vec<_>>(), [4, 5, 6]);
    }

    #[test]
    fn what_is_no_journal_is_refused_with_its_line() {
        assert!(Journal::parse("").unwrap_err().contains("line 1"));
        assert!(Journal::parse(&(WRITES.head() + "begin x\n")).unwrap_err().contains("line 6: \"begin x\""));
        assert!(Journal::parse("fiord-crash-test 1\nseed 1\n").unwrap_err().contains("incomplete"));
    }
}

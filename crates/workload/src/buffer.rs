//! The contents of write buffers.
//!
//! Invariant: random blocks that are refilled or scrambled differ from all others of their worker, so a target that
//! deduplicates finds no equal blocks but those requested (`dedupe_percentage`); and compressible contents have no more random bytes than requested.

use fiord_plan::job::{Dedupe, Fill};
use fiord_verify::Words;

use crate::dedupe::Duplicates;
use crate::substream::Substream;

/// Block size at which targets deduplicate; each block gets a unique mark when scrambled.
const SCRAMBLED_BYTES: usize = 512;

/// Lines of the processor's cache in such a block, and words in a line.
const LINES: usize = 8;
const WORDS_PER_LINE: usize = 8;

/// Bytes after which lines have the same places in a first-level cache again.
const PAGE_BYTES: usize = 4096;

/// Fills buffers: once before the run, and again before each write if the job requests it.
#[derive(Debug, Clone)]
pub struct Filler {
    content: Content,
    change: Change,
    words: Words,
    /// Chooses the contents of each refill, if some are to be equal.
    duplicates: Option<Duplicates>,
}

#[derive(Debug, Clone)]
enum Content {
    Zero,
    Random,
    /// Each chunk starts with random bytes, and the rest repeats the pattern. A chunk of 0 is the whole buffer.
    Compressible {
        percent: usize,
        chunk_bytes: usize,
        pattern: Vec<u8>,
    },
    Pattern {
        bytes: Vec<u8>,
        offset_at: Vec<usize>,
    },
}

/// What is done to a buffer before a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    Refill,
    Scramble,
    Offset,
}

impl Filler {
    /// For the buffers of a worker with this seed.
    pub fn new(fill: &Fill, seed: u64) -> Filler {
        let by_flags = |refill: bool, scramble: bool| match (refill, scramble) {
            (true, _) => Change::Refill,
            (false, true) => Change::Scramble,
            (false, false) => Change::Nothing,
        };
        let (content, change) = match fill {
            Fill::Zero => (Content::Zero, Change::Nothing),
            Fill::Random { refill, scramble } => (Content::Random, by_flags(*refill, *scramble)),
            // It has no random part, so nothing has to change.
            Fill::Compressible { percent: 100.., pattern, .. } => (repeated(pattern, &[]), Change::Nothing),
            Fill::Compressible { percent, chunk_bytes, pattern, refill, scramble } => {
                let chunk_bytes = usize::try_from(*chunk_bytes).unwrap_or(0);
                let percent = usize::from(*percent);
                let content = Content::Compressible { percent, chunk_bytes, pattern: pattern.clone() };
                (content, by_flags(*refill, *scramble))
            }
            Fill::Pattern { bytes, offset_at } => {
                let change = if offset_at.is_empty() { Change::Nothing } else { Change::Offset };
                (repeated(bytes, offset_at), change)
            }
        };
        Filler { content, change, words: words(seed), duplicates: None }
    }

    /// The same for a worker that repeats the contents of a share of its writes.
    pub fn with_duplicates(self, dedupe: Option<&Dedupe>, seed: u64) -> Filler {
        Filler { duplicates: dedupe.map(|dedupe| Duplicates::new(dedupe, seed)), ..self }
    }

    /// Gives a buffer its first contents.
    pub fn prime(&mut self, buffer: &mut [u8]) {
        match &self.content {
            Content::Zero => buffer.fill(0),
            Content::Random => self.words.fill(buffer),
            Content::Compressible { percent, chunk_bytes, pattern } => {
                for chunk in chunks(buffer, *chunk_bytes) {
                    let (random, rest) = chunk.split_at_mut(random_bytes(*percent, chunk.len()));
                    self.words.fill(random);
                    repeat(pattern, rest);
                }
            }
            Content::Pattern { bytes, .. } => repeat(bytes, buffer),
        }
    }

    /// Whether `before_write` does anything: a loop whose buffers never change need not call it.
    #[inline]
    pub fn needs_refill(&self) -> bool {
        self.change != Change::Nothing
    }

    /// Prepares the bytes of a write to this offset of its file, in the buffer of this number.
    #[inline]
    pub fn before_write(&mut self, number: usize, buffer: &mut [u8], offset_bytes: u64) {
        match self.change {
            Change::Nothing => {}
            Change::Refill => {
                if let Some(duplicates) = &mut self.duplicates {
                    self.words = Words::from_seed(duplicates.next());
                }
                self.prime(buffer);
            }
            Change::Scramble => self.scramble(number, buffer),
            Change::Offset => self.put_offset(buffer, offset_bytes),
        }
    }

    /// One store per block. Marks are unique within the run, so no two blocks are ever equal.
    ///
    /// Marks at the same place in all blocks would share an eighth of a cache, so their line changes from page to page and
    /// from buffer to buffer.
    fn scramble(&mut self, number: usize, buffer: &mut [u8]) {
        if let Content::Compressible { percent, chunk_bytes, .. } = self.content {
            return self.scramble_chunks(buffer, percent, chunk_bytes);
        }
        let (pages, rest) = buffer.as_chunks_mut::<PAGE_BYTES>();
        for (page, bytes) in pages.iter_mut().enumerate() {
            let word = number.wrapping_add(page) % LINES * WORDS_PER_LINE;
            for block in bytes.as_chunks_mut::<SCRAMBLED_BYTES>().0 {
                block.as_chunks_mut().0[word] = self.words.unique().to_le_bytes();
            }
        }
        rest.chunks_mut(SCRAMBLED_BYTES).for_each(|block| self.mark(block));
    }

    /// The same for compressible contents: the random part of a chunk begins with the mark, and the rest is left as it is.
    fn scramble_chunks(&mut self, buffer: &mut [u8], percent: usize, chunk_bytes: usize) {
        let chunk_bytes = if chunk_bytes == 0 { buffer.len() } else { chunk_bytes };
        if random_bytes(percent, chunk_bytes.min(buffer.len())) >= size_of::<u64>() {
            chunks(buffer, chunk_bytes.max(SCRAMBLED_BYTES)).for_each(|chunk| self.mark(chunk));
        }
    }

    /// Puts a mark at the beginning of a block, if there is room for one.
    #[inline]
    fn mark(&mut self, block: &mut [u8]) {
        if let Some(mark) = block.first_chunk_mut() {
            *mark = self.words.unique().to_le_bytes();
        }
    }

    fn put_offset(&self, buffer: &mut [u8], offset_bytes: u64) {
        let Content::Pattern { bytes, offset_at } = &self.content else { return };
        for repetition in buffer.chunks_mut(bytes.len().max(1)) {
            for at in offset_at {
                let room = repetition.len().saturating_sub(*at).min(size_of::<u64>());
                if let Some(place) = repetition.get_mut(*at..*at + room) {
                    place.copy_from_slice(&offset_bytes.to_le_bytes()[..room]);
                }
            }
        }
    }
}

/// The words of a worker with this seed.
fn words(seed: u64) -> Words {
    Words::from_seed(Substream::Contents.of(seed).next_u64())
}

/// A pattern over the whole buffer; an empty one is zeros.
fn repeated(bytes: &[u8], offset_at: &[usize]) -> Content {
    if bytes.is_empty() {
        return Content::Zero;
    }
    Content::Pattern { bytes: bytes.to_vec(), offset_at: offset_at.to_vec() }
}

/// The chunks of a buffer; 0 is one chunk.
fn chunks(buffer: &mut [u8], chunk_bytes: usize) -> std::slice::ChunksMut<'_, u8> {
    let whole = buffer.len().max(1);
    buffer.chunks_mut(if chunk_bytes == 0 { whole } else { chunk_bytes })
}

/// The random bytes of a chunk; a last chunk that is cut short has the shares of a whole one, as in fio.
fn random_bytes(percent: usize, chunk_bytes: usize) -> usize {
    chunk_bytes * (100 - percent) / 100
}

/// Repeats the pattern; zeros if it is empty.
fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    if pattern.is_empty() {
        return buffer.fill(0);
    }
    for repetition in buffer.chunks_mut(pattern.len()) {
        repetition.copy_from_slice(&pattern[..repetition.len()]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const KIB: usize = 1024;

    /// A buffer as it is written the first and the second time.
    fn two_writes(fill: &Fill, length: usize) -> [Vec<u8>; 2] {
        let mut filler = Filler::new(fill, 9);
        let mut buffer = vec![0xaa; length];
        filler.prime(&mut buffer);
        filler.before_write(0, &mut buffer, 4096);
        let first = buffer.clone();
        filler.before_write(0, &mut buffer, 8192);
        [first, buffer]
    }

    /// Bits of information per byte, by how often each byte value occurs: 8 at most.
    fn entropy_bits(bytes: &[u8]) -> f64 {
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let share = |count: &u32| f64::from(*count) / bytes.len() as f64;
        counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
    }

    /// The share of aligned 8-byte words that occurred before: the redundancy that dictionary coders use.
    fn repeated_words(bytes: &[u8]) -> f64 {
        let words = bytes.as_chunks::<8>().0;
        1.0 - words.iter().collect::<BTreeSet<_>>().len() as f64 / words.len() as f64
    }

    fn random(refill: bool, scramble: bool) -> Fill {
        Fill::Random { refill, scramble }
    }

    fn compressible(percent: u8, chunk_bytes: u64, pattern: &[u8]) -> Fill {
        Fill::Compressible { percent, chunk_bytes, pattern: pattern.to_vec(), refill: true, scramble: true }
    }

    #[test]
    fn as_many_writes_are_equal_as_requested() {
        for fill in [random(true, false), compressible(50, 512, &[])] {
            let dedupe = Dedupe { percent: 40, working_set: None };
            let mut filler = Filler::new(&fill, 9).with_duplicates(Some(&dedupe), 9);
            let mut buffer = vec![0; 4 * KIB];
            let mut write = |number: u64| {
                filler.before_write(0, &mut buffer, number * 4096);
                buffer.clone()
            };
            let different: BTreeSet<Vec<u8>> = (0..1000).map(&mut write).collect();
            assert!((550..650).contains(&different.len()), "{}", different.len());
        }
    }

    #[test]
    fn random_bytes_cannot_be_compressed() {
        let [first, second] = two_writes(&random(true, true), 256 * KIB + 3);
        for bytes in [&first, &second] {
            assert!(entropy_bits(bytes) > 7.99, "{}", entropy_bits(bytes));
            assert_eq!(repeated_words(bytes), 0.0);
        }
        let both: Vec<u8> = first[..256 * KIB].iter().chain(&second).copied().collect();
        assert_eq!(repeated_words(&both), 0.0);
    }

    #[test]
    fn scrambling_changes_a_few_bytes_of_every_block() {
        // A last block that is shorter is changed as well.
        for (number, length) in [(0, 64 * KIB), (1, 64 * KIB), (7, 4 * KIB + 1000), (usize::MAX, 100)] {
            let mut filler = Filler::new(&random(false, true), 9);
            let mut buffer = vec![0; length];
            filler.prime(&mut buffer);
            let mut blocks = BTreeSet::new();
            for _ in 0..2 {
                let before = buffer.clone();
                filler.before_write(number, &mut buffer, 4096);
                for (before, after) in before.chunks(SCRAMBLED_BYTES).zip(buffer.chunks(SCRAMBLED_BYTES)) {
                    assert!(blocks.insert(after.to_vec()), "a repeated block");
                    let changed = before.iter().zip(after).filter(|(before, after)| before != after).count();
                    assert!((1..=8).contains(&changed), "{changed} bytes of {}", before.len());
                }
            }
        }
    }

    #[test]
    fn marks_lie_in_all_parts_of_a_cache() {
        // The sets of a cache of 4 KiB a way: the marks of a long buffer, and those of many short ones.
        for (buffers, length) in [(1, 64 * KIB), (16, 4 * KIB)] {
            let mut sets = BTreeSet::new();
            for number in 0..buffers {
                let mut buffer = vec![0; length];
                Filler::new(&random(false, true), 9).before_write(number, &mut buffer, 0);
                let marks =
                    buffer.chunks(64).enumerate().filter(|(_, line)| line.iter().any(|byte| *byte != 0));
                sets.extend(marks.map(|(line, _)| line % 64));
            }
            assert_eq!(sets.len(), 64, "{buffers} buffers of {length} bytes");
        }
    }

    #[test]
    fn contents_that_need_no_change_are_not_changed() {
        for fill in [Fill::Zero, random(false, false), compressible(100, 512, b"ab")] {
            assert!(!Filler::new(&fill, 1).needs_refill());
            let [first, second] = two_writes(&fill, 4 * KIB);
            assert_eq!(first, second);
        }
        assert!(two_writes(&Fill::Zero, 4 * KIB)[0].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn compressible_bytes_compress_by_their_share() {
        for (percent, chunk_bytes) in
            [(0, 512), (30, 4096), (50, 512), (50, 0), (75, 1000), (100, 512), (50, 50_000), (50, 100_000)]
        {
            let [bytes, _] = two_writes(&compressible(percent, chunk_bytes, &[]), 64 * KIB);
            let zeros = bytes.iter().filter(|byte| **byte == 0).count() as f64 / bytes.len() as f64;
            let expected = f64::from(percent) / 100.0;
            assert!((zeros - expected).abs() < 0.02, "{percent} % in {chunk_bytes}: {zeros}");
        }
    }

    #[test]
    fn the_compressible_part_repeats_the_pattern() {
        // As fio does with 30 % of 4 KiB: 2867 random bytes, then the pattern from its first byte.
        let [bytes, _] = two_writes(&compressible(30, 4096, &[0xde, 0xad]), 8 * KIB);
        for chunk in bytes.chunks(4096) {
            assert_eq!(chunk[2867..2871], [0xde, 0xad, 0xde, 0xad]);
            assert!(entropy_bits(&chunk[..2867]) > 7.5);
        }
    }

    #[test]
    fn scrambling_does_not_change_the_compressible_part() {
        let fill = |percent| Fill::Compressible {
            percent,
            chunk_bytes: 4096,
            pattern: Vec::new(),
            refill: false,
            scramble: true,
        };
        let [first, second] = two_writes(&fill(50), 64 * KIB);
        assert_ne!(first, second);
        assert!(second.chunks(4096).all(|chunk| chunk[2048..].iter().all(|byte| *byte == 0)));
    }

    #[test]
    fn a_pattern_contains_the_offset_of_its_write() {
        let fill = Fill::Pattern { bytes: b"ab\0\0\0\0\0\0\0\0".to_vec(), offset_at: vec![2] };
        let [first, second] = two_writes(&fill, 25);
        assert_eq!(first[..12], *b"ab\x00\x10\0\0\0\0\0\0ab");
        assert_eq!(second[10..], *b"ab\x00\x20\0\0\0\0\0\0ab\x00\x20\0");
        let plain = Fill::Pattern { bytes: vec![1, 2, 3], offset_at: Vec::new() };
        assert_eq!(two_writes(&plain, 7)[0], [1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn same_seed_same_bytes() {
        let bytes = |seed| {
            let mut buffer = vec![0; KIB];
            Filler::new(&random(true, false), seed).prime(&mut buffer);
            buffer
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }
}

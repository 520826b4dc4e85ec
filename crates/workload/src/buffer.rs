//! What the buffers of writes hold.
//!
//! Invariant: random blocks that are refilled or scrambled differ from all others of their worker, so a target that
//! folds equal blocks finds none; and what is asked to be compressible holds no more random bytes than that.

use fiord_plan::job::Fill;

/// What the bytes of buffers are told apart by from other draws.
const PURPOSE: u64 = 5;

/// Blocks that targets compare when they look for equal ones; each gets a mark of its own when scrambled.
const SCRAMBLED_BYTES: usize = 512;

/// Fills buffers: once before the run, and again before a write where the job asks for it.
#[derive(Debug, Clone)]
pub struct Filler {
    content: Content,
    change: Change,
    words: Words,
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

/// What happens before a write.
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
            // Nothing of it is random, so there is nothing to change either.
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
        Filler { content, change, words: Words::new(seed) }
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

    /// Whether `before_write` does anything: a loop whose buffers stay as they are need not call it.
    #[inline]
    pub fn needs_refill(&self) -> bool {
        self.change != Change::Nothing
    }

    /// Prepares the bytes of a write that goes to this offset of its file.
    #[inline]
    pub fn before_write(&mut self, buffer: &mut [u8], offset_bytes: u64) {
        match self.change {
            Change::Nothing => {}
            Change::Refill => self.prime(buffer),
            Change::Scramble => self.scramble(buffer),
            Change::Offset => self.put_offset(buffer, offset_bytes),
        }
    }

    /// One store a block. Marks are unique over the run, so no two blocks are ever equal.
    fn scramble(&mut self, buffer: &mut [u8]) {
        // The compressible part of a chunk stays as it is: marks go to where its random part starts.
        let step_bytes = match &self.content {
            Content::Compressible { percent, chunk_bytes, .. } => {
                let chunk_bytes = if *chunk_bytes == 0 { buffer.len() } else { *chunk_bytes };
                if random_bytes(*percent, chunk_bytes.min(buffer.len())) < size_of::<u64>() {
                    return;
                }
                chunk_bytes.max(SCRAMBLED_BYTES)
            }
            _ => SCRAMBLED_BYTES,
        };
        for block in buffer.chunks_mut(step_bytes.max(1)) {
            if let Some(mark) = block.first_chunk_mut() {
                *mark = self.words.unique().to_le_bytes();
            }
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

/// How much of a chunk is random; a last chunk that is cut short keeps the shares of a whole one, as in fio.
fn random_bytes(percent: usize, chunk_bytes: usize) -> usize {
    chunk_bytes * (100 - percent) / 100
}

/// Writes the pattern again and again; zeros, when it is empty.
fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    if pattern.is_empty() {
        return buffer.fill(0);
    }
    for repetition in buffer.chunks_mut(pattern.len()) {
        repetition.copy_from_slice(&pattern[..repetition.len()]);
    }
}

/// Random words for buffers, made like wyrand's: a counter with an odd step, and a product folded in half. One step
/// does not wait for the one before it, so a processor makes them about as fast as it stores them.
#[derive(Debug, Clone)]
struct Words {
    counter: u64,
}

impl Words {
    const STEP: u64 = 0xa076_1d64_78bd_642f;
    const MIX: u64 = 0xe703_7ed1_a0b4_28db;

    fn new(seed: u64) -> Words {
        Words { counter: fiord_stats::random::Random::for_purpose(seed, PURPOSE).next_u64() }
    }

    /// A word that comes once.
    #[inline]
    fn unique(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(Self::STEP);
        self.counter
    }

    /// A word of which every bit is random.
    #[inline]
    fn next(&mut self) -> u64 {
        let counter = self.unique();
        let product = u128::from(counter) * u128::from(counter ^ Self::MIX);
        (product as u64) ^ (product >> 64) as u64
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut();
        for word in words {
            *word = self.next().to_le_bytes();
        }
        let length = rest.len();
        rest.copy_from_slice(&self.next().to_le_bytes()[..length]);
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
        filler.before_write(&mut buffer, 4096);
        let first = buffer.clone();
        filler.before_write(&mut buffer, 8192);
        [first, buffer]
    }

    /// Bits of information per byte, by how often each byte value occurs: 8 at most.
    fn entropy_bits(bytes: &[u8]) -> f64 {
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let share = |count: &u32| f64::from(*count) / bytes.len() as f64;
        counts.iter().filter(|count| **count > 0).map(share).map(|share| -share * share.log2()).sum()
    }

    /// The share of aligned 8-byte words that occurred before: what a dictionary coder lives on.
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
    fn each_bit_is_set_half_of_the_time_and_changes_so_too() {
        let mut words = Words::new(1);
        let drawn: Vec<u64> = (0..10_000).map(|_| words.next()).collect();
        for bit in 0..64 {
            let is_set = |word: u64| (word >> bit) & 1 == 1;
            let set = drawn.iter().filter(|word| is_set(**word)).count();
            let changed = drawn.windows(2).filter(|pair| is_set(pair[0] ^ pair[1])).count();
            // 5,000 each, with a deviation of 50.
            assert!(set.abs_diff(5000) < 300 && changed.abs_diff(5000) < 300, "bit {bit}: {set} {changed}");
        }
    }

    #[test]
    fn scrambling_changes_every_block_and_little_of_it() {
        let [first, second] = two_writes(&random(false, true), 64 * KIB);
        let mut blocks = BTreeSet::new();
        for (before, after) in first.chunks(SCRAMBLED_BYTES).zip(second.chunks(SCRAMBLED_BYTES)) {
            assert!(blocks.insert(before) && blocks.insert(after), "a block came twice");
            assert_eq!(before[8..], after[8..]);
        }
    }

    #[test]
    fn what_needs_no_change_gets_none() {
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
    fn scrambling_leaves_the_compressible_part_alone() {
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
    fn a_pattern_takes_the_offset_of_its_write() {
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

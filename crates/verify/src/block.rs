//! Writes the headers of a block and checks a block that was read.
//!
//! Invariant: `check` accepts every block that `write` made, and nothing is allocated.

use fiord_checksum::Checksum;

use crate::content::Contents;
use crate::corruption::{Corruption, CorruptionKind, Fault};
use crate::field::Field;
use crate::header::{HEADER_BYTES_MAX, Header, HeaderFormat, NoHeader, TimeFields};
use crate::method::Method;

/// What disks write at once: a torn write is torn between two of them.
const SECTOR_BYTES: usize = 512;

/// How the blocks of a job are written and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFormat {
    /// What they are verified by.
    pub method: Method,
    /// The layout of headers that are written; both are read.
    pub header: HeaderFormat,
    /// Offset of the header in a piece (`verify_offset`): the header is swapped with the data there.
    pub header_at_bytes: usize,
    /// Bytes covered by one header (`verify_interval`); 0 for the whole block.
    pub piece_bytes: usize,
    /// The contents after the headers.
    pub contents: Contents,
}

/// One write, as its headers record it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Where the block is in its file, in bytes.
    pub offset_bytes: u64,
    /// Seed of the contents.
    pub seed: u64,
    /// Number of the write.
    pub number: u64,
    /// Number of the worker.
    pub thread: u16,
    /// When, in nanoseconds since the job began.
    pub at_ns: u64,
}

/// What is known of a block that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Where the block is in its file, in bytes.
    pub offset_bytes: u64,
    /// Seed of the write, if known.
    pub seed: Option<u64>,
    /// Whether a header with another seed is a fault (`verify_header_seed`).
    pub checks_seed: bool,
    /// Number of the write, if known.
    pub number: Option<u64>,
    /// Whether a header with another number is a fault (`verify_write_sequence`).
    pub checks_number: bool,
    /// Whether it was trimmed.
    pub trimmed: Trimmed,
}

/// What is known of a block that may have been trimmed after it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trimmed {
    /// It was not.
    #[default]
    No,
    /// It was: only zeroes are correct.
    Yes,
    /// Not known: zeroes are as correct as the block.
    Perhaps,
}

impl Expected {
    /// A block at this offset, about which nothing else is known.
    pub fn at(offset_bytes: u64) -> Expected {
        Expected {
            offset_bytes,
            seed: None,
            checks_seed: false,
            number: None,
            checks_number: false,
            trimmed: Trimmed::No,
        }
    }
}

/// Room for a check, as long as two blocks.
#[derive(Debug, Clone, Default)]
pub struct CheckBuffer(Vec<u8>);

impl CheckBuffer {
    /// For blocks of at most this length.
    pub fn for_blocks_of(bytes: usize) -> CheckBuffer {
        CheckBuffer(vec![0; bytes * 2])
    }
}

impl BlockFormat {
    /// Makes what checksums need, so that no block has to allocate it.
    pub fn prepare(&self) {
        self.method.field(&[], self.header);
    }

    /// Bytes of a header with its checksum field.
    pub fn header_bytes(&self, format: HeaderFormat) -> usize {
        if self.method.has_header() { format.header_bytes() + self.method.field_bytes() } else { 0 }
    }

    /// The pieces of a block of this length: the start and length of each. The remainder has no header.
    fn pieces(&self, block_bytes: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let length = if self.piece_bytes == 0 { block_bytes } else { self.piece_bytes.min(block_bytes) };
        (0..block_bytes / length.max(1)).map(move |index| (index * length, length))
    }

    /// Fills a block and writes its headers.
    pub fn write(&self, block: &mut [u8], stamp: &Stamp) {
        self.contents.fill(block, stamp.offset_bytes, stamp.seed);
        if !self.method.has_header() {
            return;
        }
        for (at, length) in self.pieces(block.len()) {
            self.write_piece(&mut block[at..at + length], at, stamp);
        }
    }

    fn write_piece(&self, piece: &mut [u8], at: usize, stamp: &Stamp) {
        let header_bytes = self.header_bytes(self.header);
        if piece.len() < header_bytes {
            return;
        }
        let (place, data) = piece.split_at_mut(header_bytes);
        let time = match self.method.needs_digest_in_time(self.header) {
            true => TimeFields::digest(Checksum::Sha512.of(data).as_bytes()),
            false => TimeFields::At {
                seconds: ((stamp.at_ns / 1_000_000_000) & 0xffff_ffff) as u32,
                nanoseconds: (stamp.at_ns % 1_000_000_000) as u32,
            },
        };
        let header = Header {
            method_code: self.method.code(),
            length_bytes: piece_length(place.len() + data.len()),
            seed: stamp.seed,
            offset_bytes: stamp.offset_bytes + at as u64,
            time,
            number: stamp.number,
            thread: stamp.thread,
        };
        if self.header_at_bytes > 0 {
            // Data that will change places with the header must survive it.
            return self.write_inside(piece, &header);
        }
        header.write(self.header, place);
        let field = self.method.field(data, self.header);
        place[self.header.header_bytes()..].copy_from_slice(field.as_bytes());
    }

    /// Writes a header at the start of a piece, and swaps it with the data at `header_at_bytes`.
    fn write_inside(&self, piece: &mut [u8], header: &Header) {
        let header_bytes = self.header_bytes(self.header);
        header.write(self.header, piece);
        let field = self.method.field(&piece[header_bytes..], self.header);
        piece[self.header.header_bytes()..header_bytes].copy_from_slice(field.as_bytes());
        swap(piece, self.header_at_bytes, header_bytes);
    }

    /// Checks a block that was read.
    ///
    /// # Errors
    /// The first fault, with a guess at its cause. Boxed by callers that keep it: it is large.
    #[allow(clippy::result_large_err, reason = "a box would allocate, which a loop must not")]
    pub fn check(
        &self,
        block: &[u8],
        expected: &Expected,
        scratch: &mut CheckBuffer,
    ) -> Result<(), Corruption> {
        if self.method == Method::Null {
            return Ok(());
        }
        match expected.trimmed {
            Trimmed::No => {}
            Trimmed::Yes => return self.check_zeroes(block, expected),
            Trimmed::Perhaps if is_zeroes(block) => return Ok(()),
            Trimmed::Perhaps => {}
        }
        if self.method == Method::Pattern {
            return self.check_pattern(block, 0, expected, scratch);
        }
        self.pieces(block.len())
            .try_for_each(|(at, length)| self.check_piece(block, at, length, expected, scratch))
    }

    /// Compares a trimmed block with zeroes.
    #[allow(clippy::result_large_err, reason = "a box would allocate, which a loop must not")]
    fn check_zeroes(&self, block: &[u8], expected: &Expected) -> Result<(), Corruption> {
        if is_zeroes(block) {
            return Ok(());
        }
        let mut difference = Difference::none();
        block.iter().enumerate().for_each(|(at, byte)| difference.add(at, *byte, 0));
        Err(self.describe(Fault::NotTrimmed, None, Some(difference), (block, 0), expected))
    }

    #[allow(clippy::result_large_err, reason = "a box would allocate, which a loop must not")]
    fn check_piece(
        &self,
        block: &[u8],
        at: usize,
        length: usize,
        expected: &Expected,
        scratch: &mut CheckBuffer,
    ) -> Result<(), Corruption> {
        let stored = &block[at..at + length];
        let header_at = self.header_at_bytes.min(length);
        let parsed = Header::parse(&stored[header_at..]);
        let format = parsed.map_or(self.header, |(_, format, _)| format);
        let header_bytes = self.header_bytes(format);
        let mut piece = stored;
        let room = &mut scratch.0;
        if header_at > 0 && header_at + header_bytes <= length && room.len() >= length * 2 {
            room[..length].copy_from_slice(stored);
            swap(&mut room[..length], header_at, header_bytes);
            piece = &room[..length];
        }
        let offset_bytes = expected.offset_bytes + at as u64;
        let found = match parsed {
            Ok(found) if header_bytes <= length => self.fault(&found, piece, offset_bytes, expected),
            Ok(_) => Some(Fault::Length { found: 0, wanted: piece_length(length) }),
            Err(NoHeader::Magic { found }) => Some(Fault::Magic { found }),
            Err(NoHeader::Checksum { found, computed }) => Some(Fault::HeaderChecksum { found, computed }),
        };
        if let Some(fault) = found {
            let header = parsed.ok().map(|(header, ..)| header);
            return Err(self.corruption(fault, header, format, (piece, at), expected));
        }
        match self.method {
            Method::PatternWithHeader => self.check_pattern_behind(piece, header_bytes, at, expected),
            _ => Ok(()),
        }
    }

    /// The first thing that is wrong with a header or the checksum in it, in fio's order.
    fn fault(
        &self,
        (header, format, damage): &(Header, HeaderFormat, Option<NoHeader>),
        piece: &[u8],
        offset_bytes: u64,
        expected: &Expected,
    ) -> Option<Fault> {
        let wanted_length = piece_length(piece.len());
        if header.length_bytes != wanted_length {
            return Some(Fault::Length { found: header.length_bytes, wanted: wanted_length });
        }
        if let Some(wanted) = expected.seed.filter(|seed| expected.checks_seed && *seed != header.seed)
            && damage.is_none()
            && expected.number.is_none_or(|number| format.stored_number(number) == header.number)
        {
            return Some(Fault::Seed { found: header.seed, wanted });
        }
        if header.offset_bytes != offset_bytes {
            return Some(Fault::Offset { found: header.offset_bytes, wanted: offset_bytes });
        }
        if let Some(NoHeader::Checksum { found, computed }) = *damage {
            return Some(Fault::HeaderChecksum { found, computed });
        }
        if let Some(wanted) = expected.number.map(|number| format.stored_number(number))
            && expected.checks_number
            && header.number != wanted
        {
            return Some(Fault::Number { found: header.number, wanted });
        }
        // `meta` compares what all headers have, whichever method wrote them.
        if header.method_code != self.method.code() && self.method != Method::Meta {
            return Some(Fault::Method { found: header.method_code, wanted: self.method.code() });
        }
        let header_bytes = self.header_bytes(*format);
        let data = &piece[header_bytes..];
        let received = self.method.field(data, *format);
        let stored = Field::new(&piece[format.header_bytes()..header_bytes]);
        if stored != received {
            return Some(Fault::Checksum { expected: stored, received });
        }
        match header.time {
            TimeFields::Digest(_) if self.method.needs_digest_in_time(*format) => {
                let digest = Checksum::Sha512.of(data);
                let fault = Fault::Checksum { expected: stored, received: Field::new(digest.as_bytes()) };
                (header.time != TimeFields::digest(digest.as_bytes())).then_some(fault)
            }
            TimeFields::Digest(_) | TimeFields::At { .. } => None,
        }
    }

    /// Compares a whole block with the pattern.
    #[allow(clippy::result_large_err, reason = "a box would allocate, which a loop must not")]
    fn check_pattern(
        &self,
        block: &[u8],
        at: usize,
        expected: &Expected,
        scratch: &mut CheckBuffer,
    ) -> Result<(), Corruption> {
        let Some(wanted) = scratch.0.get_mut(..block.len()) else { return Ok(()) };
        self.contents.fill(wanted, expected.offset_bytes, 0);
        if wanted == block {
            return Ok(());
        }
        let difference = Difference::between(block, wanted, 0);
        Err(self.describe(Fault::Pattern, None, Some(difference), (block, at), expected))
    }

    /// Compares the contents after a header with the pattern.
    #[allow(clippy::result_large_err, reason = "a box would allocate, which a loop must not")]
    fn check_pattern_behind(
        &self,
        piece: &[u8],
        header_bytes: usize,
        at: usize,
        expected: &Expected,
    ) -> Result<(), Corruption> {
        let difference = self.difference(piece, at, header_bytes, expected.offset_bytes, 0);
        match difference.filter(|difference| difference.count > 0) {
            Some(difference) => {
                Err(self.describe(Fault::Pattern, None, Some(difference), (piece, at), expected))
            }
            None => Ok(()),
        }
    }

    /// The piece of `block` that `corruption` is in, as it was written; `None` if it cannot be derived from its header.
    /// Allocates.
    pub fn restored(
        &self,
        block: &[u8],
        block_offset_bytes: u64,
        corruption: &Corruption,
    ) -> Option<Vec<u8>> {
        let at = usize::try_from(corruption.piece_offset_bytes.checked_sub(block_offset_bytes)?).ok()?;
        let range = at..at.checked_add(usize::try_from(corruption.piece_bytes).ok()?)?;
        let stored = block.get(range.clone())?;
        if corruption.fault == Fault::NotTrimmed {
            return Some(vec![0; stored.len()]);
        }
        if !self.contents.is_known() {
            return None;
        }
        let header_at = self.header_at_bytes.min(stored.len());
        let header = stored.get(header_at..).and_then(|bytes| Header::parse(bytes).ok());
        let header = header.filter(|_| self.method.has_header());
        let seed = header.map_or(0, |(header, ..)| header.seed);
        if header.is_none() && self.method.has_header() {
            return None;
        }
        let mut whole = vec![0; block.len()];
        self.contents.fill(&mut whole, block_offset_bytes, seed);
        let mut piece = whole.get(range)?.to_vec();
        if let Some((_, format, _)) = header {
            let header_bytes = self.header_bytes(format);
            let found = stored.get(header_at..header_at + header_bytes)?;
            piece.get_mut(..header_bytes)?.copy_from_slice(found);
            // What fio wrote cannot be derived from the seed.
            if self.method != Method::PatternWithHeader {
                let field = self.method.field(&piece[header_bytes..], format);
                let is_known = *field.as_bytes() == found[format.header_bytes()..];
                is_known.then_some(())?;
            }
            swap(&mut piece, header_at, header_bytes);
        }
        Some(piece)
    }

    /// A fault, with its diagnosis.
    fn corruption(
        &self,
        fault: Fault,
        header: Option<Header>,
        format: HeaderFormat,
        (piece, at): (&[u8], usize),
        expected: &Expected,
    ) -> Corruption {
        let seed = expected.seed.or(header.map(|header| header.seed));
        let header_bytes = self.header_bytes(format);
        let difference =
            seed.and_then(|seed| self.difference(piece, at, header_bytes, expected.offset_bytes, seed));
        self.describe(fault, header, difference, (piece, at), expected)
    }

    fn describe(
        &self,
        fault: Fault,
        header: Option<Header>,
        difference: Option<Difference>,
        (piece, at): (&[u8], usize),
        expected: &Expected,
    ) -> Corruption {
        let piece_offset_bytes = expected.offset_bytes + at as u64;
        // The first difference is meaningless in data that this program did not write: almost all of it differs.
        let is_foreign = |count: usize| expected.seed.is_none() && count * 8 > piece.len() * 7;
        let known = difference.filter(|difference| difference.count > 0 && !is_foreign(difference.count));
        Corruption {
            kind: self.guess(&fault, header.as_ref(), known.as_ref(), piece),
            fault,
            method: self.method,
            piece_offset_bytes,
            piece_bytes: piece.len() as u64,
            first_difference_bytes: known.map(|difference| piece_offset_bytes + difference.first as u64),
            differing_bytes: known.map(|difference| difference.count as u64),
            expected_number: expected.number,
            found_number: header.map(|header| header.number),
        }
    }

    /// The cause of the damage to a piece, judged by what differs.
    fn guess(
        &self,
        fault: &Fault,
        header: Option<&Header>,
        difference: Option<&Difference>,
        piece: &[u8],
    ) -> CorruptionKind {
        if *fault == Fault::NotTrimmed {
            return CorruptionKind::NotTrimmed;
        }
        if is_zeroes(piece) {
            return CorruptionKind::Zeroes;
        }
        let is_intact = || header.is_some_and(|header| self.is_intact(header, piece));
        match fault {
            Fault::Offset { .. } if is_intact() => return CorruptionKind::Misplaced,
            Fault::Seed { .. } | Fault::Number { .. } if is_intact() => return CorruptionKind::Stale,
            _ => {}
        }
        let Some(difference) = difference else {
            let is_of_header = !matches!(fault, Fault::Checksum { .. } | Fault::Pattern);
            return if is_of_header && is_one_bit_off(piece) {
                CorruptionKind::BitFlip
            } else {
                CorruptionKind::Garbled
            };
        };
        match difference {
            Difference { bits: 1, .. } => CorruptionKind::BitFlip,
            difference if difference.is_zeroes => CorruptionKind::Zeroes,
            difference if difference.is_by_sectors(piece.len()) => CorruptionKind::Torn,
            _ => CorruptionKind::Garbled,
        }
    }

    /// Whether the data fits the header, wherever it belongs.
    fn is_intact(&self, header: &Header, piece: &[u8]) -> bool {
        let Ok((_, format, None)) = Header::parse(piece) else { return false };
        let expected = Expected::at(header.offset_bytes);
        self.fault(&(*header, format, None), piece, header.offset_bytes, &expected).is_none()
    }

    /// How the data of a piece differs from what was written with this seed; `None` if that is unknown.
    fn difference(
        &self,
        piece: &[u8],
        at: usize,
        header_bytes: usize,
        block_offset_bytes: u64,
        seed: u64,
    ) -> Option<Difference> {
        if !self.contents.is_known() {
            return None;
        }
        let data = piece.get(header_bytes..)?;
        let mut difference = Difference::none();
        let mut known = [0; SECTOR_BYTES];
        let mut filled = None;
        for (index, byte) in data.iter().enumerate() {
            let place = at + header_bytes + index;
            let sector = place / SECTOR_BYTES;
            if filled != Some(sector) {
                self.contents.fill_part(&mut known, sector * SECTOR_BYTES, block_offset_bytes, seed);
                filled = Some(sector);
            }
            difference.add(header_bytes + index, *byte, known[place % SECTOR_BYTES]);
        }
        Some(difference)
    }
}

/// How data differs from what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Difference {
    /// Place of the first differing byte in its piece.
    first: usize,
    /// Place of the last.
    last: usize,
    /// Differing bytes.
    count: usize,
    /// Differing bits.
    bits: u32,
    /// Whether every differing byte is zero.
    is_zeroes: bool,
}

impl Difference {
    fn none() -> Difference {
        Difference { first: usize::MAX, last: 0, count: 0, bits: 0, is_zeroes: true }
    }

    fn between(found: &[u8], wanted: &[u8], at: usize) -> Difference {
        let mut difference = Difference::none();
        for (index, (found, wanted)) in found.iter().zip(wanted).enumerate() {
            difference.add(at + index, *found, *wanted);
        }
        difference
    }

    fn add(&mut self, at: usize, found: u8, wanted: u8) {
        if found == wanted {
            return;
        }
        self.first = self.first.min(at);
        self.last = at;
        self.count += 1;
        self.bits += (found ^ wanted).count_ones();
        self.is_zeroes &= found == 0;
    }

    /// Whether it begins or ends between two sectors inside a piece of this length, and almost all between is
    /// different: random data agrees in one byte of 256.
    fn is_by_sectors(&self, piece_bytes: usize) -> bool {
        let margin = 16;
        let is_at_boundary = |at: usize| at % SECTOR_BYTES < margin && at >= SECTOR_BYTES;
        let ends_at = self.last + 1;
        let ends_early = piece_bytes - ends_at >= SECTOR_BYTES - margin
            && ends_at.next_multiple_of(SECTOR_BYTES) - ends_at < margin;
        let is_dense = self.count * 8 >= (ends_at - self.first) * 7;
        is_dense && self.count > 1 && (is_at_boundary(self.first) || ends_early)
    }
}

/// Whether the bytes are a header with one bit inverted.
fn is_one_bit_off(piece: &[u8]) -> bool {
    let mut header = [0; HEADER_BYTES_MAX];
    let Some(bytes) = piece.get(..HEADER_BYTES_MAX) else { return false };
    header.copy_from_slice(bytes);
    let is_right = |header: &[u8]| matches!(Header::parse(header), Ok((_, _, None)));
    // A bit that the header's checksum does not cover explains nothing.
    !is_right(&header)
        && (0..HEADER_BYTES_MAX * 8).any(|bit| {
            header[bit / 8] ^= 1 << (bit % 8);
            let becomes_right = is_right(&header);
            header[bit / 8] ^= 1 << (bit % 8);
            becomes_right
        })
}

fn is_zeroes(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

fn piece_length(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// Swaps the first `length` bytes of a piece with those at `at`, which is after them.
fn swap(piece: &mut [u8], at: usize, length: usize) {
    if at < length || at + length > piece.len() {
        return;
    }
    let (front, back) = piece.split_at_mut(at);
    front[..length].swap_with_slice(&mut back[..length]);
}

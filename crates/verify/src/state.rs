//! The saved state of a verification: how far a job had written, in fio's file `local-NAME-N-verify.state`.
//!
//! Invariant: `parse` of what `encode` made is the same state; any bytes are parsed or refused, never more memory taken
//! than they are long.

use std::fmt;

use fiord_checksum::Checksum;

use crate::header::HeaderFormat;

/// Bytes of the file's own header: version, length of the rest, checksum of the rest.
const FRAME_BYTES: usize = 24;

/// Bytes of the name, ended by a zero.
const NAME_BYTES: usize = 64;

/// Of each version: its number, where the name begins after the frame, and where the list of writes does.
const LAYOUTS: [(HeaderFormat, u64, usize, usize); 2] =
    [(HeaderFormat::V3_33, 3, 88, 152), (HeaderFormat::V3_42, 7, 80, 144)];

/// Bytes before the name that hold the state of fio's random generator; of these it uses the first 12 here.
const RANDOM_BYTES: usize = 48;

/// Where in these bytes, and by which mark, a state of fiord is recognised; its seed follows.
const MARK: (usize, &[u8; 8]) = (16, b"fiord\0\0\0");

/// An empty place in 3.42's list of writes in flight.
const NO_WRITE: u64 = u64::MAX;

/// The progress of a job's writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyState {
    /// The job's name, at most 63 bytes.
    pub name: Vec<u8>,
    /// Queue depth.
    pub depth: u32,
    /// Files.
    pub files: u32,
    /// Writes issued.
    pub numbers: u64,
    /// The last writes that completed, newest first: file and offset in bytes; at most one per slot of the queue. Only
    /// 3.33's file has them.
    pub completions: Vec<(u64, u64)>,
    /// Numbers of writes that had not completed; only 3.42's file has them.
    pub in_flight: Vec<u64>,
    /// The seed that the order of the writes follows from; `None` in a file of fio's, which has other generators.
    pub seed: Option<u64>,
}

impl VerifyState {
    /// The file, in the version that belongs to headers of this format.
    pub fn encode(&self, format: HeaderFormat) -> Vec<u8> {
        let [old, new] = LAYOUTS;
        let (_, version, name_at, list_at) = if format == HeaderFormat::V3_33 { old } else { new };
        let mut rest = vec![0; list_at];
        let mut put = |at: usize, bytes: &[u8]| rest[at..at + bytes.len()].copy_from_slice(bytes);
        match format {
            HeaderFormat::V3_33 => {
                put(0, &(self.completions.len() as u64).to_le_bytes());
                put(8, &self.depth.to_le_bytes());
                put(12, &self.files.to_le_bytes());
                put(16, &self.numbers.to_le_bytes());
            }
            HeaderFormat::V3_42 => {
                put(0, &self.depth.to_le_bytes());
                put(8, &self.numbers.to_le_bytes());
            }
        }
        if let Some(seed) = self.seed {
            let random_at = name_at - RANDOM_BYTES;
            // fio takes its own generator up from here: none of its three words may be small.
            (0..3).for_each(|word| {
                put(random_at + word * 4, &((seed >> (word * 8) & 0xffff_ffff) as u32 | 0x100).to_le_bytes())
            });
            put(random_at + MARK.0, MARK.1);
            put(random_at + MARK.0 + MARK.1.len(), &seed.to_le_bytes());
        }
        put(name_at, &self.name[..self.name.len().min(NAME_BYTES - 1)]);
        for index in 0..self.depth as usize {
            match format {
                HeaderFormat::V3_33 => {
                    let (file, offset_bytes) = self.completions.get(index).copied().unwrap_or_default();
                    rest.extend(file.to_le_bytes().into_iter().chain(offset_bytes.to_le_bytes()));
                }
                HeaderFormat::V3_42 => {
                    rest.extend(self.in_flight.get(index).copied().unwrap_or(NO_WRITE).to_le_bytes());
                }
            }
        }
        let mut file = Vec::with_capacity(FRAME_BYTES + rest.len());
        file.extend(version.to_le_bytes());
        file.extend((rest.len() as u64).to_le_bytes());
        file.extend(u64::from(checksum(&rest)).to_le_bytes());
        file.extend(rest);
        file
    }

    /// Parses a file of either version.
    ///
    /// # Errors
    /// Why the bytes are not a state.
    pub fn parse(file: &[u8]) -> Result<VerifyState, StateError> {
        let short = |needed_bytes| StateError::Short { length_bytes: file.len(), needed_bytes };
        let (frame, rest) = file.split_at_checked(FRAME_BYTES).ok_or(short(FRAME_BYTES))?;
        // The upper half of the checksum's place is not used.
        let (version, stored) = (word(frame, 0), (word(frame, 16) & 0xffff_ffff) as u32);
        let layout = LAYOUTS.into_iter().find(|layout| layout.1 == version);
        let (format, _, name_at, list_at) = layout.ok_or(StateError::Version(version))?;
        let length_bytes = usize::try_from(word(frame, 8)).unwrap_or(usize::MAX);
        let rest = rest.get(..length_bytes).filter(|rest| rest.len() >= list_at);
        let rest = rest.ok_or(short(FRAME_BYTES.saturating_add(length_bytes.max(list_at))))?;
        let computed = checksum(rest);
        if computed != stored {
            return Err(StateError::Checksum { stored, computed });
        }
        // The last byte is the terminator, whatever its value.
        let name = &rest[name_at..name_at + NAME_BYTES - 1];
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let marked = &rest[name_at - RANDOM_BYTES + MARK.0..name_at];
        let seed = marked.starts_with(MARK.1).then(|| word(marked, MARK.1.len()));
        let list = &rest[list_at..];
        let state = match format {
            HeaderFormat::V3_33 => {
                let count = usize::try_from(word(rest, 0)).unwrap_or(usize::MAX);
                let completions = list.as_chunks::<16>().0.iter().take(count);
                VerifyState {
                    depth: (word(rest, 8) & 0xffff_ffff) as u32,
                    files: (word(rest, 8) >> 32) as u32,
                    numbers: word(rest, 16),
                    completions: completions.map(|entry| (word(entry, 0), word(entry, 8))).collect(),
                    ..VerifyState::default()
                }
            }
            HeaderFormat::V3_42 => {
                let numbers = list.as_chunks::<8>().0.iter().map(|entry| u64::from_le_bytes(*entry));
                VerifyState {
                    depth: (word(rest, 0) & 0xffff_ffff) as u32,
                    files: 1,
                    numbers: word(rest, 8),
                    in_flight: numbers.filter(|number| *number != NO_WRITE).collect(),
                    ..VerifyState::default()
                }
            }
        };
        Ok(VerifyState { name, seed, ..state })
    }
}

/// The 64-bit little-endian number at this place; 0 beyond the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

fn checksum(bytes: &[u8]) -> u32 {
    Checksum::Crc32c.of(bytes).as_bytes().first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Why bytes are not a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateError {
    /// They end too early.
    Short {
        /// Bytes that are there.
        length_bytes: usize,
        /// Bytes that would be needed.
        needed_bytes: usize,
    },
    /// Their version is unknown.
    Version(u64),
    /// Their checksum is wrong.
    Checksum {
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
}

impl fmt::Display for StateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateError::Short { length_bytes, needed_bytes } => {
                write!(out, "it has {length_bytes} bytes, and {needed_bytes} are needed")
            }
            StateError::Version(version) => write!(out, "version {version} is unknown; 3 and 7 are read"),
            StateError::Checksum { stored, computed } => {
                write!(out, "its checksum is {stored:08x} where {computed:08x} was computed: it is damaged")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fio 3.42 saved after 16 writes at depth 1.
    fn of_fio_3_42() -> Vec<u8> {
        let mut file = vec![0; 176];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &[7]);
        put(8, &[0x98]);
        put(16, &[0x41, 0x53, 0xc1, 0x8b]);
        put(24, &[1]);
        put(32, &[0x10]);
        put(0x38, &[0x5b, 0xcb, 0xa8, 0xa4, 0x9a, 0xaa, 0x2c, 0xeb, 0x30, 0xe2, 0x5e, 0x48]);
        put(0x68, b"v");
        put(0xa8, &[0xff; 8]);
        file
    }

    /// What fio 3.33 saved after 3 writes at depth 4.
    fn of_fio_3_33() -> Vec<u8> {
        let mut file = vec![0; 240];
        let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &[3]);
        put(8, &[0xd8]);
        put(16, &[0xde, 0xd4, 0x23, 0xfa]);
        put(24, &[3]);
        put(32, &[4, 0, 0, 0, 1]);
        put(40, &[3]);
        put(0x40, &[0x4e, 0x6f, 0xc2, 0x23, 0x97, 0x89, 0x7f, 0x32, 0xaf, 0x3c, 0x67, 0xc6]);
        put(0x70, b"v");
        put(0xb0, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0x30]);
        put(0xc0, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0x20]);
        file
    }

    #[test]
    fn what_either_fio_saved_is_read() {
        let state = VerifyState::parse(&of_fio_3_42()).unwrap();
        assert_eq!((state.name.as_slice(), state.depth, state.numbers), (b"v".as_slice(), 1, 16));
        assert_eq!(state.in_flight, [0; 0]);
        let state = VerifyState::parse(&of_fio_3_33()).unwrap();
        assert_eq!(
            (state.name.as_slice(), state.depth, state.files, state.numbers),
            (b"v".as_slice(), 4, 1, 3)
        );
        assert_eq!(state.completions, [(0, 0x3000), (0, 0x2000), (0, 0)]);
    }

    #[test]
    fn a_state_is_read_back_in_both_versions() {
        let (name, depth) = (b"job".to_vec(), 3);
        let old = VerifyState {
            completions: vec![(0, 4096), (1, 0)],
            files: 2,
            seed: Some(u64::MAX - 1),
            ..VerifyState::default()
        };
        let old = VerifyState { name: name.clone(), depth, numbers: 70_000, ..old };
        assert_eq!(VerifyState::parse(&old.encode(HeaderFormat::V3_33)), Ok(old));
        let new = VerifyState {
            name,
            depth,
            files: 1,
            numbers: 9,
            in_flight: vec![7, 8],
            ..VerifyState::default()
        };
        assert_eq!(VerifyState::parse(&new.encode(HeaderFormat::V3_42)), Ok(new));
    }

    #[test]
    fn a_name_without_its_zero_ends_with_its_field() {
        for format in [HeaderFormat::V3_33, HeaderFormat::V3_42] {
            let full = VerifyState { name: vec![b'n'; NAME_BYTES], ..VerifyState::default() };
            let mut file = full.encode(format);
            let last = file.windows(NAME_BYTES - 1).position(|bytes| bytes == &full.name[1..]).unwrap() + 63;
            file[last] = b'n';
            let sum = u64::from(checksum(&file[FRAME_BYTES..]));
            file[16..24].copy_from_slice(&sum.to_le_bytes());
            let read = VerifyState::parse(&file).unwrap();
            assert_eq!(read.name.len(), NAME_BYTES - 1);
            assert_eq!(VerifyState::parse(&read.encode(format)), Ok(read));
        }
    }

    #[test]
    fn what_is_cut_or_damaged_is_refused() {
        let whole = of_fio_3_33();
        for length in 0..whole.len() {
            assert!(VerifyState::parse(&whole[..length]).is_err(), "{length}");
        }
        for byte in 16..whole.len() {
            let mut damaged = whole.clone();
            damaged[byte] ^= 4;
            // The upper half of the checksum's place is not used.
            assert_eq!(VerifyState::parse(&damaged).is_ok(), (20..24).contains(&byte), "{byte}");
        }
        let mut other = whole;
        other[0] = 9;
        assert_eq!(VerifyState::parse(&other), Err(StateError::Version(9)));
    }
}

//! Frames: a stream of bytes as messages.
//!
//! `PREFACE`, then frames: length of kind and payload (u32, little endian) | kind (u8) | payload | CRC-32C of kind and
//! payload (u32, little endian). A message longer than [`PART_BYTES`] is sent in parts: all but the last have the bit
//! `MORE` in their kind.
//!
//! Invariant: a stream that is not in this form is an error and never a message. At most [`MESSAGE_BYTES_MAX`] bytes of a
//! message, and [`NOISE_BYTES_MAX`] before the preface, are kept.

use std::fmt;

/// What either end sends first.
pub const PREFACE: [u8; 8] = *b"fiord\0\x01\n";

/// The most bytes before the preface: what a shell's start-up file prints.
pub const NOISE_BYTES_MAX: usize = 64 << 10;

/// The longest frame, kind and payload, in bytes.
pub const FRAME_BYTES_MAX: usize = 1 << 20;

/// The longest message, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// The length of the parts that a long message is sent in, in bytes.
pub const PART_BYTES: usize = 64 << 10;

/// Of the kind of a frame: more of the message follows in the next frame.
const MORE: u8 = 0x80;

/// Why a stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Too much came before the preface, or all that came was something else.
    NoPreface,
    /// A frame is empty or longer than [`FRAME_BYTES_MAX`].
    Length(u32),
    /// A frame is damaged.
    Checksum,
    /// The parts of a message are of different kinds, or longer than [`MESSAGE_BYTES_MAX`] together.
    Parts,
}

impl fmt::Display for FrameError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::NoPreface => out.write_str("what answers there is not fiord's agent"),
            FrameError::Length(bytes) => write!(out, "a frame of {bytes} bytes cannot be one"),
            FrameError::Checksum => out.write_str("a frame was damaged on its way"),
            FrameError::Parts => out.write_str("the parts of a message do not belong together"),
        }
    }
}

/// Appends a message of this kind (below 0x80) to `out`.
pub fn write(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    let mut rest = payload;
    loop {
        let (part, after) = rest.split_at(rest.len().min(PART_BYTES));
        let marked = if after.is_empty() { kind } else { kind | MORE };
        // At most `PART_BYTES`, and the kind.
        out.extend(u32::try_from(part.len() + 1).unwrap_or(u32::MAX).to_le_bytes());
        out.push(marked);
        out.extend(part);
        out.extend(checksum(marked, part).to_le_bytes());
        rest = after;
        if rest.is_empty() {
            return;
        }
    }
}

fn checksum(kind: u8, part: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[kind]), part)
}

/// What has come from the other end and is not read yet.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    has_preface: bool,
    noise: Vec<u8>,
    /// The parts so far of a message, and its kind.
    parts: Option<(u8, Vec<u8>)>,
}

impl Inbox {
    /// These bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// What came before the preface, as text.
    pub fn noise(&self) -> String {
        let before = if self.has_preface { &self.noise } else { &self.bytes };
        String::from_utf8_lossy(before).into_owned()
    }

    /// The next whole message, kind and payload; `None` before there is one.
    ///
    /// # Errors
    /// The stream is not one of frames; nothing of it is to be read any more.
    pub fn message(&mut self) -> Result<Option<(u8, Vec<u8>)>, FrameError> {
        if !self.has_preface && !self.skip_noise()? {
            return Ok(None);
        }
        while let Some((kind, part)) = self.frame()? {
            let (known, mut message) = self.parts.take().unwrap_or((kind & !MORE, Vec::new()));
            if known != kind & !MORE || message.len() + part.len() > MESSAGE_BYTES_MAX {
                return Err(FrameError::Parts);
            }
            message.extend(part);
            if kind & MORE == 0 {
                return Ok(Some((known, message)));
            }
            self.parts = Some((known, message));
        }
        Ok(None)
    }

    /// Whether the preface has come; what is before it is noise.
    fn skip_noise(&mut self) -> Result<bool, FrameError> {
        let found = self.bytes.windows(PREFACE.len()).position(|window| window == PREFACE);
        let before = found.unwrap_or(self.bytes.len().saturating_sub(PREFACE.len()));
        if before > NOISE_BYTES_MAX {
            return Err(FrameError::NoPreface);
        }
        let Some(before) = found else { return Ok(false) };
        self.noise = self.bytes[..before].to_vec();
        self.bytes.drain(..before + PREFACE.len());
        self.has_preface = true;
        Ok(true)
    }

    /// The next frame, its kind and its part.
    fn frame(&mut self) -> Result<Option<(u8, Vec<u8>)>, FrameError> {
        let Some((length, rest)) = self.bytes.split_first_chunk() else { return Ok(None) };
        let length_bytes = u32::from_le_bytes(*length);
        let length = length_bytes as usize;
        if length == 0 || length > FRAME_BYTES_MAX {
            return Err(FrameError::Length(length_bytes));
        }
        let Some((framed, after)) = rest.split_at_checked(length) else { return Ok(None) };
        let Some((sum, after)) = after.split_first_chunk() else { return Ok(None) };
        if crc32c::crc32c(framed) != u32::from_le_bytes(*sum) {
            return Err(FrameError::Checksum);
        }
        let frame = (framed[0], framed[1..].to_vec());
        let used = self.bytes.len() - after.len();
        self.bytes.drain(..used);
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Messages = Vec<(u8, Vec<u8>)>;

    fn read_all(bytes: &[u8], step: usize) -> (Inbox, Result<Messages, FrameError>) {
        let mut inbox = Inbox::default();
        let mut messages = Vec::new();
        for some in bytes.chunks(step.max(1)) {
            inbox.push(some);
            loop {
                match inbox.message() {
                    Ok(Some(message)) => messages.push(message),
                    Ok(None) => break,
                    Err(error) => return (inbox, Err(error)),
                }
            }
        }
        (inbox, Ok(messages))
    }

    #[test]
    fn what_a_shell_prints_before_is_kept_apart() {
        let mut bytes = b"Welcome to db3\nfiord is fun\n".to_vec();
        bytes.extend(PREFACE);
        write(3, b"hello", &mut bytes);
        let (inbox, read) = read_all(&bytes, 5);
        assert_eq!(read, Ok(vec![(3, b"hello".to_vec())]));
        assert_eq!(inbox.noise(), "Welcome to db3\nfiord is fun\n");
    }

    #[test]
    fn what_is_no_stream_of_frames_is_an_error() {
        assert_eq!(read_all(&vec![b'x'; NOISE_BYTES_MAX + 9], 1000).1, Err(FrameError::NoPreface));
        let framed = |frame: &[u8]| read_all(&[&PREFACE, frame].concat(), 1 << 20).1;
        assert_eq!(framed(&[0; 8]), Err(FrameError::Length(0)));
        assert_eq!(framed(&[0xff; 8]), Err(FrameError::Length(u32::MAX)));
        let mut frame = Vec::new();
        write(1, b"abc", &mut frame);
        frame[6] ^= 1;
        assert_eq!(framed(&frame), Err(FrameError::Checksum));
        let mut parts = Vec::new();
        write(1, &vec![0; PART_BYTES + 1], &mut parts);
        parts.truncate(4 + 1 + PART_BYTES + 4);
        write(2, b"", &mut parts);
        assert_eq!(framed(&parts), Err(FrameError::Parts));
    }

    proptest! {
        #[test]
        fn messages_come_out_as_they_went_in(
            sent in proptest::collection::vec((0..0x80_u8, proptest::collection::vec(any::<u8>(), 0..300)), 0..9),
            long in 0..200_000_usize,
            step in 1..9000_usize,
        ) {
            let mut sent = sent;
            sent.push((7, vec![5; long]));
            let mut bytes = PREFACE.to_vec();
            sent.iter().for_each(|(kind, payload)| write(*kind, payload, &mut bytes));
            prop_assert_eq!(read_all(&bytes, step).1, Ok(sent));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1..50_usize) {
            let _ = read_all(&bytes, step);
            let _ = read_all(&[&PREFACE[..], &bytes].concat(), step);
        }
    }
}

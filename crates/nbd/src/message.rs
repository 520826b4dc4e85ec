//! Requests and simple replies, as bytes.
//!
//! Invariant: nothing here allocates; a reply that is none is an error, after which the connection is of no use.

use std::fmt;

/// Bytes of a request; the data of a write follow it.
pub const REQUEST_BYTES: usize = 28;

/// Bytes of a simple reply; the data of a read that succeeded follow it.
pub const REPLY_BYTES: usize = 16;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// Ends when the data have reached stable storage.
const FLAG_FUA: u16 = 1;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Data from the server.
    Read,
    /// Data to the server.
    Write {
        /// Whether they reach stable storage before the reply.
        through_cache: bool,
    },
    /// Everything that was written and acknowledged reaches stable storage.
    Flush,
    /// The server may discard the data.
    Trim,
}

impl Command {
    /// Its flags and its number.
    fn code(self) -> (u16, u16) {
        match self {
            Command::Read => (0, 0),
            Command::Write { through_cache } => (if through_cache { FLAG_FUA } else { 0 }, 1),
            Command::Flush => (0, 3),
            Command::Trim => (0, 4),
        }
    }
}

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What it asks for.
    pub command: Command,
    /// What its reply repeats.
    pub cookie: u64,
    /// Where on the export; 0 for a flush.
    pub offset_bytes: u64,
    /// How much; 0 for a flush.
    pub length_bytes: u32,
}

impl Request {
    /// As it is sent.
    #[inline]
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let (flags, number) = self.command.code();
        header(flags, number, self.cookie, self.offset_bytes, self.length_bytes)
    }
}

/// The request that ends a connection, which has no reply.
pub fn disconnect() -> [u8; REQUEST_BYTES] {
    header(0, 2, 0, 0, 0)
}

fn header(flags: u16, number: u16, cookie: u64, offset_bytes: u64, length_bytes: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    bytes[0..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&number.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset_bytes.to_be_bytes());
    bytes[24..28].copy_from_slice(&length_bytes.to_be_bytes());
    bytes
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// That of the request.
    pub cookie: u64,
    /// 0, or the errno: the numbers of the protocol are Linux's.
    pub errno: u32,
}

impl Reply {
    /// From the bytes received.
    ///
    /// # Errors
    /// If they are not a simple reply.
    #[inline]
    pub fn decode(bytes: &[u8; REPLY_BYTES]) -> Result<Reply, ReplyError> {
        let [m0, m1, m2, m3, e0, e1, e2, e3, c0, c1, c2, c3, c4, c5, c6, c7] = *bytes;
        match u32::from_be_bytes([m0, m1, m2, m3]) {
            REPLY_MAGIC => Ok(Reply {
                cookie: u64::from_be_bytes([c0, c1, c2, c3, c4, c5, c6, c7]),
                errno: u32::from_be_bytes([e0, e1, e2, e3]),
            }),
            found => Err(ReplyError { found }),
        }
    }
}

/// Bytes that are not a simple reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyError {
    /// What stands where the magic number of a reply should be.
    pub found: u32,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the NBD server sent {:#010x} where a reply should begin ({REPLY_MAGIC:#010x})", self.found)
    }
}

impl std::error::Error for ReplyError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_layout_of_the_protocol() {
        let command = Command::Write { through_cache: true };
        let write = Request { command, cookie: 7, offset_bytes: 0x0102_0304_0506, length_bytes: 4096 };
        let expected = [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0x10, 0,
        ];
        assert_eq!(write.encode(), expected);
        let number = |command| {
            let request = Request { command, cookie: 0, offset_bytes: 0, length_bytes: 0 };
            u16::from_be_bytes([request.encode()[6], request.encode()[7]])
        };
        let commands =
            [Command::Read, Command::Write { through_cache: false }, Command::Flush, Command::Trim];
        assert_eq!(commands.map(number), [0, 1, 3, 4]);
        assert_eq!(disconnect()[7], 2);
    }

    #[test]
    fn replies_are_recognised_by_their_magic_number() {
        let mut bytes = [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2];
        assert_eq!(Reply::decode(&bytes), Ok(Reply { cookie: 258, errno: 5 }));
        bytes[3] = 0x99;
        let error = Reply::decode(&bytes).unwrap_err();
        assert!(error.to_string().contains("0x67446699"), "{error}");
    }
}

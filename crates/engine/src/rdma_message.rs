//! The message by which the two ends of an RDMA connection introduce themselves, and the one that connects says that it is
//! done.
//!
//! Invariant: a message is what fio 3.33 sends, byte for byte. It was found by recording the requests that fio posts, with
//! their memory, in all its roles.
//!
//! A message has `MESSAGE_BYTES`, whatever is in it, and all its numbers begin with their most significant byte:
//!
//! | bytes | what |
//! | --- | --- |
//! | 0 to 3 | what the end that connects does: 1 writes, 2 reads, 3 sends, 4 receives; of the end that waits 0 |
//! | 4 to 7 | how many buffers follow: the queue depth |
//! | 8 to 11 | the largest block, in bytes |
//! | 12 to 15 | nothing |
//! | from 16 on | 16 bytes for each buffer: its address (8), the key of its memory (4), its length (4); zeros after the last |
//!
//! A connection goes like this. No private data are passed with the requests of the connection manager.
//!
//! 1. The end that connects sends its message when the connection is made, and the other one answers with its own.
//! 2. fio waits for half a second, since the other end, if it is to receive, posts its receives after its answer.
//! 3. The end that connects writes to the buffers of the other, reads them, in any order, or sends messages of one block each.
//! 4. If it wrote or read, it sends its own message again when it is done: nothing else tells the other end.
//! 5. It disconnects.

use fiord_options::value::RdmaVerb;
use fiord_sys::width::to_u32;

/// The most buffers that a message has room for.
const BUFFERS_MAX: usize = 512;

const HEADER_BYTES: usize = 16;
const BUFFER_BYTES: usize = 16;

/// The length of every message.
pub(crate) const MESSAGE_BYTES: usize = HEADER_BYTES + BUFFERS_MAX * BUFFER_BYTES;

/// A buffer of one end, as the other uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// Its address there.
    pub(crate) address: u64,
    /// The key of its memory.
    pub(crate) key: u32,
    /// Its length.
    pub(crate) length_bytes: u32,
}

/// What an end says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// What it does; of the end that connects.
    pub(crate) verb: Option<RdmaVerb>,
    /// Its largest block.
    pub(crate) block_bytes_max: u32,
    /// Its buffers.
    pub(crate) buffers: Vec<Buffer>,
}

impl Introduction {
    /// The message. Buffers that it has no room for are left out: the other end uses the others.
    pub(crate) fn message(&self) -> Vec<u8> {
        let verb = match self.verb {
            None => 0,
            Some(RdmaVerb::Write) => 1,
            Some(RdmaVerb::Read) => 2,
            Some(RdmaVerb::Send) => 3,
            Some(RdmaVerb::Recv) => 4,
        };
        let buffers = &self.buffers[..self.buffers.len().min(BUFFERS_MAX)];
        let mut message = Vec::with_capacity(MESSAGE_BYTES);
        for number in [verb, to_u32(buffers.len()), self.block_bytes_max, 0] {
            message.extend(number.to_be_bytes());
        }
        for Buffer { address, key, length_bytes } in buffers {
            message.extend(address.to_be_bytes());
            message.extend(key.to_be_bytes());
            message.extend(length_bytes.to_be_bytes());
        }
        message.resize(MESSAGE_BYTES, 0);
        message
    }

    /// What a message says; `None` if it is none.
    pub(crate) fn of(message: &[u8]) -> Option<Introduction> {
        let (header, buffers) = message.split_at_checked(HEADER_BYTES)?;
        let verb = match number(header, 0)? {
            0 => None,
            1 => Some(RdmaVerb::Write),
            2 => Some(RdmaVerb::Read),
            3 => Some(RdmaVerb::Send),
            4 => Some(RdmaVerb::Recv),
            _ => return None,
        };
        let count = number(header, 4)? as usize;
        let (buffers, _) = buffers.split_at_checked(count.checked_mul(BUFFER_BYTES)?)?;
        let buffer = |bytes: &[u8]| {
            let (high, low) = (number(bytes, 0)?, number(bytes, 4)?);
            let address = u64::from(high) << 32 | u64::from(low);
            Some(Buffer { address, key: number(bytes, 8)?, length_bytes: number(bytes, 12)? })
        };
        let buffers = buffers.chunks_exact(BUFFER_BYTES).map(buffer).collect::<Option<Vec<Buffer>>>()?;
        Some(Introduction { verb, block_bytes_max: number(header, 8)?, buffers })
    }
}

/// The number at this place.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a message of `fio --ioengine=rdma --verb=write --rw=write --bs=4k --iodepth=2`.
    const OF_FIO: [u8; 48] = [
        0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0x10, 0, 0, 0, 0, 0, // header
        0, 0, 0x56, 0x35, 0xf9, 0x9d, 0x57, 0xd0, 0, 0, 0x04, 0x4c, 0, 0, 0x10, 0, // first buffer
        0, 0, 0x56, 0x35, 0xf9, 0x9d, 0x67, 0xd0, 0, 0, 0x05, 0x04, 0, 0, 0x10, 0, // second buffer
    ];

    fn of_fio() -> Introduction {
        let buffer = |address, key| Buffer { address, key, length_bytes: 4096 };
        let buffers = vec![buffer(0x5635_f99d_57d0, 0x44c), buffer(0x5635_f99d_67d0, 0x504)];
        Introduction { verb: Some(RdmaVerb::Write), block_bytes_max: 4096, buffers }
    }

    #[test]
    fn messages_are_those_of_fio() {
        let mut message = OF_FIO.to_vec();
        message.resize(8208, 0);
        assert_eq!(Introduction::of(&message), Some(of_fio()));
        assert_eq!(of_fio().message(), message);
    }

    #[test]
    fn messages_that_are_cut_or_unknown_are_refused() {
        let message = of_fio().message();
        assert_eq!(Introduction::of(&message[..40]), None);
        assert_eq!(Introduction::of(&message[..15]), None);
        for (at, value) in [(3, 5), (4, 0xff)] {
            let mut wrong = message.clone();
            wrong[at] = value;
            assert_eq!(Introduction::of(&wrong), None, "byte {at}");
        }
    }

    #[test]
    fn a_message_has_room_for_512_buffers() {
        let buffer = Buffer { address: 1, key: 2, length_bytes: 3 };
        let many = Introduction { verb: None, block_bytes_max: 3, buffers: vec![buffer; 600] };
        let message = many.message();
        assert_eq!(message.len(), MESSAGE_BYTES);
        assert_eq!(Introduction::of(&message).unwrap().buffers.len(), 512);
    }
}

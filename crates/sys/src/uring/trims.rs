//! Discards of block devices as commands of a ring (Linux 6.12).
//!
//! Invariant: asking whether discards are queued changes nothing on the device.

use std::os::fd::{AsFd, AsRawFd};

use io_uring::{opcode, types};

use super::{Ring, RingOptions};

/// The command: `BLOCK_URING_CMD_DISCARD` of the kernel's `linux/blkdev.h`, `_IO(0x12, 0)`. Its offset is the entry's
/// address.
pub const DISCARD: u32 = 0x1200;

/// The data of the command: the length of the range.
pub fn discard_data(length_bytes: u64) -> [u8; 16] {
    let mut data = [0; 16];
    data[..8].copy_from_slice(&length_bytes.to_ne_bytes());
    data
}

/// Whether the kernel queues discards of this block device, which is open for writing. A device that takes none is one
/// whose discards are not queued.
///
/// Linux from 6.17 on reads the entry of a discard again where the device has no free request: the ring has to keep it.
pub fn queues_discards(device: impl AsFd) -> bool {
    // Of an empty range: a kernel that knows the command says that there is nothing to discard.
    let entry = opcode::UringCmd16::new(types::Fd(device.as_fd().as_raw_fd()), DISCARD)
        .addr(Some(0))
        .cmd(discard_data(0))
        .build();
    let answer = <Ring>::build(&RingOptions { entries: 1, ..RingOptions::default() }).and_then(|mut ring| {
        // SAFETY: the entry names no memory.
        unsafe { ring.submission().push(&entry) }.map_err(std::io::Error::other)?;
        ring.submit_and_reap(1)?;
        Ok(ring.completion().next().map(|completion| completion.result()))
    });
    answer.is_ok_and(|result| result == Some(-libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_has_the_kernels_number_and_layout() {
        assert_eq!(DISCARD, libc::_IO(0x12, 0) as u32);
        assert_eq!(u64::from_ne_bytes(discard_data(4096)[..8].try_into().unwrap()), 4096);
    }

    #[test]
    fn a_regular_file_takes_no_discards() {
        assert!(!queues_discards(std::fs::File::open("/proc/self/exe").unwrap()));
    }
}

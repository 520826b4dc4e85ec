//! Discards of block devices as commands of a ring (Linux 6.12 to 6.16).
//!
//! Invariant: asking whether discards are queued changes nothing on the device.

use std::os::fd::{AsFd, AsRawFd};

use io_uring::{opcode, types};

use super::{Ring, RingOptions};
use crate::system;

/// The command: `BLOCK_URING_CMD_DISCARD` of the kernel's `linux/blkdev.h`, `_IO(0x12, 0)`. Its offset is the entry's
/// address.
pub const DISCARD: u32 = 0x1200;

/// The data of the command: the length of the range.
pub fn discard_data(length_bytes: u64) -> [u8; 16] {
    let mut data = [0; 16];
    data[..8].copy_from_slice(&length_bytes.to_ne_bytes());
    data
}

/// The first Linux on which some queued discards do not happen although they are reported as done, seen on 6.18 (loop
/// devices, a depth of 8): the kernel no longer copies each command when it is submitted, and a discard that it has to
/// repeat finds the entry of a later one in its place.
const UNRELIABLE_SINCE: (u32, u32) = (6, 17);

/// Whether the kernel queues discards of this block device, which is open for writing, and does all of them. A device that
/// takes none is one whose discards are not queued.
pub fn queues_discards(device: impl AsFd) -> bool {
    let release = system::names().kernel_release;
    version(&release).is_some_and(|version| version < UNRELIABLE_SINCE) && knows_discards(device)
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|other: char| !other.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn knows_discards(device: impl AsFd) -> bool {
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
        assert!(!knows_discards(std::fs::File::open("/proc/self/exe").unwrap()));
    }

    #[test]
    fn kernels_that_lose_discards_are_recognised() {
        assert_eq!(version("6.12.117+deb12-amd64"), Some((6, 12)));
        assert!(version("6.18.44-fc").is_some_and(|version| version >= UNRELIABLE_SINCE));
        assert!(version("7.0.0").is_some_and(|version| version >= UNRELIABLE_SINCE));
        assert_eq!(version("unknown"), None);
    }
}

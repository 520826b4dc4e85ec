//! SCSI commands for the operations of a job on one disk.
//!
//! Invariant: a command covers whole blocks of the disk, or is not made; it has the short form wherever that has room.

use fiord_options::value::ScsiWrite;
use fiord_plan::{Action, Op};
use fiord_sys::errno::Errno;

/// Operation codes, in the form of ten bytes and in that of sixteen.
const READ: [u8; 2] = [0x28, 0x88];
const WRITE: [u8; 2] = [0x2a, 0x8a];
const WRITE_AND_VERIFY: [u8; 2] = [0x2e, 0x8e];
const WRITE_SAME: [u8; 2] = [0x41, 0x93];
const VERIFY: [u8; 2] = [0x2f, 0x8f];
const SYNCHRONIZE_CACHE: u8 = 0x35;
const UNMAP: u8 = 0x42;
const WRITE_STREAM: u8 = 0x9a;

/// Bits of byte 1: force unit access; no data of WRITE SAME; how VERIFY compares.
const FORCE_UNIT_ACCESS: u8 = 1 << 3;
const NO_DATA: u8 = 1;
const COMPARES_ALL: u8 = 1 << 1;
const COMPARES_ONE: u8 = 3 << 1;

/// The parameters of UNMAP: a header, and this for each range.
pub(crate) const UNMAP_HEADER_BYTES: usize = 8;
pub(crate) const UNMAP_RANGE_BYTES: usize = 16;

/// What a job sets of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandUse {
    /// The command of writes.
    pub write: ScsiWrite,
    /// Force unit access of reads, and of writes.
    pub force_unit_access: [bool; 2],
}

/// The data that a command transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// None.
    None,
    /// From the disk, all of the operation's part of the buffer.
    FromDisk,
    /// To the disk.
    ToDisk,
    /// To the disk, the first block of it.
    FirstToDisk,
}

/// A command: its bytes, how many they are, and the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScsiCommand {
    pub bytes: [u8; 16],
    pub length: usize,
    pub transfer: Transfer,
}

/// Why no command can be made of an operation.
pub(crate) fn refuses(op: &Op, block_bytes: u64, write: ScsiWrite) -> Option<Errno> {
    let is_whole = op.offset_bytes.is_multiple_of(block_bytes)
        && op.length_bytes.is_multiple_of(block_bytes)
        && op.length_bytes > 0;
    let blocks = op.length_bytes / block_bytes;
    // The field of WRITE STREAM is shorter.
    let is_short = op.action == Action::Write && write == ScsiWrite::WriteStream;
    let blocks_max = if is_short { u64::from(u16::MAX) } else { u64::from(u32::MAX) };
    // The driver is told the length of the data in 32 bits.
    let is_without_data =
        op.action == Action::Write && matches!(write, ScsiWrite::WriteSameNoData | ScsiWrite::Verify);
    match op.action {
        Action::Sync | Action::DataSync | Action::RangeSync(_) => None,
        Action::ResetZone => Some(Errno(libc::EOPNOTSUPP)),
        Action::Read | Action::Write | Action::Trim if !is_whole => Some(Errno(libc::EINVAL)),
        Action::Read | Action::Write if !is_without_data && op.length_bytes > u64::from(u32::MAX) => {
            Some(Errno(libc::EFBIG))
        }
        Action::Read | Action::Write | Action::Trim => (blocks > blocks_max).then_some(Errno(libc::EFBIG)),
    }
}

/// The command of a read, a write or a synchronisation that is not refused; `stream` is that of WRITE STREAM.
pub(crate) fn command(op: &Op, block_bytes: u64, settings: &CommandUse, stream: u16) -> ScsiCommand {
    let (first, blocks) = (op.offset_bytes / block_bytes, op.length_bytes / block_bytes);
    let [read_forced, write_forced] =
        settings.force_unit_access.map(|forced| if forced { FORCE_UNIT_ACCESS } else { 0 });
    let of_blocks =
        |codes: [u8; 2], flags: u8, transfer: Transfer| on_blocks(codes, flags, first, blocks, transfer);
    match op.action {
        Action::Read => of_blocks(READ, read_forced, Transfer::FromDisk),
        Action::Write => match settings.write {
            ScsiWrite::Write => of_blocks(WRITE, write_forced, Transfer::ToDisk),
            ScsiWrite::WriteAndVerify => of_blocks(WRITE_AND_VERIFY, 0, Transfer::ToDisk),
            ScsiWrite::WriteSame => of_blocks(WRITE_SAME, 0, Transfer::FirstToDisk),
            // The short form has no such bit.
            ScsiWrite::WriteSameNoData => long(WRITE_SAME[1], NO_DATA, first, blocks, Transfer::None),
            ScsiWrite::Verify => of_blocks(VERIFY, 0, Transfer::None),
            ScsiWrite::VerifyData => of_blocks(VERIFY, COMPARES_ALL, Transfer::ToDisk),
            ScsiWrite::VerifySame => of_blocks(VERIFY, COMPARES_ONE, Transfer::FirstToDisk),
            ScsiWrite::WriteStream => {
                let mut command = long(WRITE_STREAM, write_forced, first, 0, Transfer::ToDisk);
                [command.bytes[10], command.bytes[11]] = stream.to_be_bytes();
                command.bytes[12..14].copy_from_slice(&blocks.to_be_bytes()[6..]);
                command
            }
        },
        Action::Sync | Action::DataSync | Action::RangeSync(_) => {
            let mut bytes = [0; 16];
            bytes[0] = SYNCHRONIZE_CACHE;
            ScsiCommand { bytes, length: 10, transfer: Transfer::None }
        }
        Action::Trim | Action::ResetZone => unreachable!("trims are gathered, and resets refused"),
    }
}

fn on_blocks(codes: [u8; 2], flags: u8, first: u64, blocks: u64, transfer: Transfer) -> ScsiCommand {
    let (Ok(start), Ok(count)) = (u32::try_from(first), u16::try_from(blocks)) else {
        return long(codes[1], flags, first, blocks, transfer);
    };
    let mut bytes = [0; 16];
    (bytes[0], bytes[1]) = (codes[0], flags);
    bytes[2..6].copy_from_slice(&start.to_be_bytes());
    bytes[7..9].copy_from_slice(&count.to_be_bytes());
    ScsiCommand { bytes, length: 10, transfer }
}

/// The form of sixteen bytes.
fn long(code: u8, flags: u8, first: u64, blocks: u64, transfer: Transfer) -> ScsiCommand {
    let mut bytes = [0; 16];
    (bytes[0], bytes[1]) = (code, flags);
    bytes[2..10].copy_from_slice(&first.to_be_bytes());
    bytes[10..14].copy_from_slice(&blocks.to_be_bytes()[4..]);
    ScsiCommand { bytes, length: 16, transfer }
}

/// UNMAP of this many ranges.
pub(crate) fn unmap(ranges: usize) -> ScsiCommand {
    let mut bytes = [0; 16];
    bytes[0] = UNMAP;
    bytes[7..9].copy_from_slice(&unmap_bytes(ranges).to_be_bytes());
    ScsiCommand { bytes, length: 10, transfer: Transfer::ToDisk }
}

/// The length of the parameters of UNMAP.
fn unmap_bytes(ranges: usize) -> u16 {
    u16::try_from(UNMAP_HEADER_BYTES + ranges * UNMAP_RANGE_BYTES).unwrap_or(u16::MAX)
}

/// The header of the parameters of UNMAP.
pub(crate) fn unmap_header(ranges: usize) -> [u8; UNMAP_HEADER_BYTES] {
    let mut header = [0; UNMAP_HEADER_BYTES];
    // Without the field itself, and without the header.
    header[..2].copy_from_slice(&(unmap_bytes(ranges) - 2).to_be_bytes());
    header[2..4].copy_from_slice(&(unmap_bytes(ranges) - unmap_bytes(0)).to_be_bytes());
    header
}

/// A range of UNMAP.
pub(crate) fn unmap_range(op: &Op, block_bytes: u64) -> [u8; UNMAP_RANGE_BYTES] {
    let mut range = [0; UNMAP_RANGE_BYTES];
    range[..8].copy_from_slice(&(op.offset_bytes / block_bytes).to_be_bytes());
    range[8..12].copy_from_slice(&(op.length_bytes / block_bytes).to_be_bytes()[4..]);
    range
}

/// What an errno of these commands means.
pub(crate) fn explain(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EINVAL => {
            "the I/O is not a whole number of blocks, or longer than one request of the host adapter; use another bs="
        }
        libc::EREMOTEIO => {
            "the disk refused the command: it does not have it (sg_write_mode=), or the blocks are beyond its end"
        }
        libc::EIO => {
            "the disk could not read or write its medium, or the host adapter did not deliver the command"
        }
        libc::EILSEQ => {
            "the data on the disk are others (a VERIFY with comparison, or protection information)"
        }
        libc::EROFS => "the disk is write-protected",
        libc::EBUSY => {
            "another host has reserved the disk, or the driver has no request left; use a smaller iodepth="
        }
        libc::ETIMEDOUT => "the disk did not answer in time, and the command was aborted",
        libc::ENXIO => "the disk is not ready",
        libc::EPERM => "this command needs root (CAP_SYS_RAWIO), or the device opened for writing",
        libc::ENOMEM => "the driver has no memory for a request of this length; use a smaller bs=",
        libc::EOPNOTSUPP => {
            "the engine sg does not reset zones; use ioengine=libaio or io_uring on the block device"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: CommandUse = CommandUse { write: ScsiWrite::Write, force_unit_access: [false; 2] };

    fn op(action: Action, first: u64, blocks: u64) -> Op {
        Op::new(action, 0, first * 512, blocks * 512)
    }

    fn write_as(write: ScsiWrite, first: u64, blocks: u64) -> ScsiCommand {
        command(&op(Action::Write, first, blocks), 512, &CommandUse { write, ..PLAIN }, 0x0102)
    }

    #[test]
    fn commands_have_the_bytes_of_the_standard() {
        let read = command(&op(Action::Read, 0x0102_0304, 8), 512, &PLAIN, 0);
        assert_eq!(read.bytes[..10], [0x28, 0, 1, 2, 3, 4, 0, 0, 8, 0]);
        assert_eq!((read.length, read.transfer), (10, Transfer::FromDisk));
        let far = write_as(ScsiWrite::Write, 1 << 32, 8);
        assert_eq!(far.bytes, [0x8a, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]);
        assert_eq!(far.length, 16);
        assert_eq!(write_as(ScsiWrite::Write, 0, 65536).length, 16);
        let forced = CommandUse { force_unit_access: [true, true], ..PLAIN };
        assert_eq!(command(&op(Action::Read, 1, 1), 512, &forced, 0).bytes[1], 8);
        let sync = command(&op(Action::Sync, 0, 0), 512, &forced, 0);
        assert_eq!((sync.bytes[..2].to_vec(), sync.transfer), (vec![0x35, 0], Transfer::None));
    }

    #[test]
    fn each_kind_of_write_is_its_own_command() {
        let seen = |write| {
            let command = write_as(write, 1, 2);
            (command.bytes[0], command.bytes[1], command.transfer)
        };
        assert_eq!(seen(ScsiWrite::WriteAndVerify), (0x2e, 0, Transfer::ToDisk));
        assert_eq!(seen(ScsiWrite::WriteSame), (0x41, 0, Transfer::FirstToDisk));
        assert_eq!(seen(ScsiWrite::WriteSameNoData), (0x93, 1, Transfer::None));
        assert_eq!(seen(ScsiWrite::Verify), (0x2f, 0, Transfer::None));
        assert_eq!(seen(ScsiWrite::VerifyData), (0x2f, 2, Transfer::ToDisk));
        assert_eq!(seen(ScsiWrite::VerifySame), (0x2f, 6, Transfer::FirstToDisk));
        let stream = write_as(ScsiWrite::WriteStream, 1, 2);
        assert_eq!(stream.bytes[..14], [0x9a, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 2]);
    }

    #[test]
    fn trims_are_ranges_of_one_command() {
        assert_eq!(unmap(2).bytes[..9], [0x42, 0, 0, 0, 0, 0, 0, 0, 40]);
        assert_eq!(unmap_header(2), [0, 38, 0, 32, 0, 0, 0, 0]);
        let range = unmap_range(&op(Action::Trim, 3, 4), 512);
        assert_eq!((range[7], range[11], range[12..].to_vec()), (3, 4, vec![0; 4]));
    }

    #[test]
    fn parts_of_blocks_are_refused() {
        let write = ScsiWrite::Write;
        assert_eq!(refuses(&Op::new(Action::Read, 0, 100, 512), 512, write), Some(Errno(libc::EINVAL)));
        assert_eq!(refuses(&op(Action::Read, 1, 1), 512, write), None);
        let huge = |action| Op::new(action, 0, 0, 1 << 32);
        assert_eq!(refuses(&huge(Action::Read), 512, write), Some(Errno(libc::EFBIG)));
        assert_eq!(refuses(&huge(Action::Write), 512, ScsiWrite::Write), Some(Errno(libc::EFBIG)));
        assert_eq!(refuses(&huge(Action::Write), 512, ScsiWrite::WriteSameNoData), None);
        assert_eq!(refuses(&Op::new(Action::Sync, 0, 100, 0), 512, write), None);
        let long = op(Action::Write, 0, 65536);
        assert_eq!(refuses(&long, 512, ScsiWrite::WriteStream), Some(Errno(libc::EFBIG)));
    }
}

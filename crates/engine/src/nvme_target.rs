//! NVMe commands for the operations of a job on one namespace.
//!
//! Invariant: a command covers whole blocks of the namespace, or is not made; the same settings make the same command.

use fiord_options::value::{NvmeVerify, NvmeWrite};
use fiord_plan::{Action, Op, Purpose, TrimRange};
use fiord_sys::errno::Errno;
use fiord_sys::nvme::{NvmeCommand, NvmeNamespace, NvmeZones};
use fiord_sys::width::low_u32;

/// Commands of the NVM command set and of the zoned command set.
mod opcode {
    pub(super) const FLUSH: u8 = 0x00;
    pub(super) const WRITE: u8 = 0x01;
    pub(super) const READ: u8 = 0x02;
    pub(super) const WRITE_UNCORRECTABLE: u8 = 0x04;
    pub(super) const COMPARE: u8 = 0x05;
    pub(super) const WRITE_ZEROES: u8 = 0x08;
    pub(super) const DATASET_MANAGEMENT: u8 = 0x09;
    pub(super) const VERIFY: u8 = 0x0c;
    pub(super) const ZONE_MANAGEMENT_SEND: u8 = 0x79;
    pub(super) const ZONE_APPEND: u8 = 0x7d;
}

/// Bits of word 12: force unit access; deallocate, of Write Zeroes.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
const DEALLOCATE_ZEROED: u32 = 1 << 25;
/// Word 11 of Dataset Management: deallocate.
const DEALLOCATE: u32 = 1 << 2;
/// Word 13 of Zone Management Send: reset the zone.
const RESET_ZONE: u32 = 4;

/// The most blocks of one command.
const BLOCKS_MAX: u64 = 1 << 16;

/// Length of a range of Dataset Management.
pub(crate) const RANGE_BYTES: usize = 16;

/// The most ranges of a command.
pub(crate) const RANGES_MAX: u32 = 256;

/// What a job sets of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandUse {
    /// The command of writes.
    pub write: NvmeWrite,
    /// The command that reads back what was written.
    pub verify: NvmeVerify,
    /// Force unit access of reads, and of writes.
    pub force_unit_access: [bool; 2],
    /// Write Zeroes deallocates.
    pub deallocate: bool,
    /// Ranges of a trim, at least 1.
    pub trim_ranges: u32,
    /// Bytes of metadata that each I/O has room for.
    pub metadata_bytes: u64,
    /// The controller inserts and removes protection information.
    pub controller_protects: bool,
    /// The checks that the controller makes: guard, application tag, reference tag.
    pub checks: [bool; 3],
    /// The application tag, and the bits of it that are checked.
    pub application_tag: [u16; 2],
}

/// One namespace, as a job uses it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NvmeTarget {
    /// What it is.
    pub namespace: NvmeNamespace,
    /// Bytes of the buffer that a block takes: its data, and metadata that follow them.
    pub unit_bytes: u64,
    /// Bytes of the buffer for metadata that a block takes.
    pub separate_bytes: u64,
    /// The zones that writes are appended to.
    zones: Option<NvmeZones>,
    settings: CommandUse,
}

impl NvmeTarget {
    pub(crate) fn new(namespace: NvmeNamespace, settings: &CommandUse) -> NvmeTarget {
        let NvmeNamespace { block_bytes, metadata_bytes, metadata_in_data, protection, .. } = namespace;
        let is_all = protection.is_some_and(|protection| protection.bytes() == metadata_bytes);
        // The controller inserts and removes all of the metadata.
        let transferred = if settings.controller_protects && is_all { 0 } else { u64::from(metadata_bytes) };
        let in_data = if metadata_in_data { transferred } else { 0 };
        NvmeTarget {
            namespace,
            unit_bytes: u64::from(block_bytes) + in_data,
            separate_bytes: transferred - in_data,
            zones: None,
            settings: *settings,
        }
    }

    /// The same, whose writes are this command.
    pub(crate) fn writing_by(self, write: NvmeWrite) -> NvmeTarget {
        NvmeTarget { settings: CommandUse { write, ..self.settings }, ..self }
    }

    /// The same, whose writes may be appended to these zones.
    pub(crate) fn appending_to(self, zones: NvmeZones) -> NvmeTarget {
        NvmeTarget { zones: Some(zones), ..self }
    }

    /// Whether writes are appended to zones.
    pub(crate) fn appends(&self) -> bool {
        self.zones.is_some()
    }

    /// The first block of the zone of an operation.
    fn zone_start(&self, op: &Op) -> u64 {
        let (first, _) = self.blocks(op);
        self.zones.map_or(first, |zones| first - first % zones.blocks)
    }

    /// Where an append went, by the number of its first block as the controller said it; `None` if that is not its zone.
    pub(crate) fn appended_bytes(&self, op: &Op, block: u64) -> Option<u64> {
        let (_, blocks) = self.blocks(op);
        let within = block.checked_sub(self.zone_start(op))?;
        (within.checked_add(blocks)? <= self.zones?.blocks).then(|| block * self.unit_bytes)
    }

    /// The first block of an operation, and how many.
    pub(crate) fn blocks(&self, op: &Op) -> (u64, u64) {
        (op.offset_bytes / self.unit_bytes, op.length_bytes / self.unit_bytes)
    }

    /// Why no command can be made of an operation.
    pub(crate) fn refuses(&self, op: &Op) -> Option<Errno> {
        let is_transfer = op.action.transfers();
        let is_whole = op.offset_bytes.is_multiple_of(self.unit_bytes)
            && op.length_bytes.is_multiple_of(self.unit_bytes)
            && op.length_bytes > 0;
        let (_, blocks) = self.blocks(op);
        match op.action {
            Action::Sync | Action::DataSync | Action::RangeSync(_) => None,
            Action::Read | Action::Write | Action::Trim | Action::ResetZone if !is_whole => {
                Some(Errno(libc::EINVAL))
            }
            // The kernel is told the length of the data in 32 bits.
            Action::Read | Action::Write
                if blocks > BLOCKS_MAX || u32::try_from(op.length_bytes).is_err() =>
            {
                Some(Errno(libc::EFBIG))
            }
            Action::Write if self.exceeds_append(op) => Some(Errno(libc::EFBIG)),
            Action::Trim if blocks > u64::from(u32::MAX) => Some(Errno(libc::EFBIG)),
            Action::Read | Action::Write | Action::Trim | Action::ResetZone => {
                let needed = blocks * self.separate_bytes;
                (is_transfer && self.sends_data(op) && needed > self.settings.metadata_bytes)
                    .then_some(Errno(libc::EMSGSIZE))
            }
        }
    }

    /// Whether a write is longer than the controller appends at once.
    fn exceeds_append(&self, op: &Op) -> bool {
        let limit_bytes = self.zones.and_then(|zones| zones.append_bytes_max);
        self.settings.write == NvmeWrite::ZoneAppend && limit_bytes.is_some_and(|most| op.length_bytes > most)
    }

    /// Whether the command of an operation sends data that the controller compares.
    pub(crate) fn compares(&self, op: &Op) -> bool {
        op.purpose == Purpose::VerifyRead && self.settings.verify == NvmeVerify::Compare
    }

    /// Whether the command of an operation transfers the job's buffer.
    pub(crate) fn sends_data(&self, op: &Op) -> bool {
        match op.action {
            Action::Read => true,
            Action::Write => match self.settings.write {
                NvmeWrite::Write | NvmeWrite::ZoneAppend => true,
                NvmeWrite::Uncorrectable | NvmeWrite::Zeroes | NvmeWrite::Verify => false,
            },
            Action::Trim | Action::ResetZone | Action::Sync | Action::DataSync | Action::RangeSync(_) => {
                false
            }
        }
    }

    /// The command of an operation that is not refused, without addresses.
    pub(crate) fn command(&self, op: &Op) -> NvmeCommand {
        let (first, blocks) = self.blocks(op);
        let [low, high] = [low_u32(first), low_u32(first >> 32)];
        let count = low_u32(blocks.max(1) - 1);
        let (code, words) = match op.action {
            Action::Read if self.compares(op) => (opcode::COMPARE, self.transfer_words(first, count, 0)),
            Action::Read => (opcode::READ, self.transfer_words(first, count, 0)),
            Action::Write => match self.settings.write {
                NvmeWrite::Write => (opcode::WRITE, self.transfer_words(first, count, 1)),
                NvmeWrite::Uncorrectable => (opcode::WRITE_UNCORRECTABLE, [low, high, count, 0, 0, 0]),
                NvmeWrite::Zeroes => {
                    let mut words = self.transfer_words(first, count, 1);
                    words[2] |= if self.settings.deallocate { DEALLOCATE_ZEROED } else { 0 };
                    (opcode::WRITE_ZEROES, words)
                }
                NvmeWrite::Verify => (opcode::VERIFY, self.transfer_words(first, count, 1)),
                NvmeWrite::ZoneAppend => {
                    (opcode::ZONE_APPEND, self.transfer_words(self.zone_start(op), count, 1))
                }
            },
            Action::Trim => (opcode::DATASET_MANAGEMENT, [0, DEALLOCATE, 0, 0, 0, 0]),
            Action::ResetZone => (opcode::ZONE_MANAGEMENT_SEND, [low, high, 0, RESET_ZONE, 0, 0]),
            Action::Sync | Action::DataSync | Action::RangeSync(_) => (opcode::FLUSH, [0; 6]),
        };
        NvmeCommand::new(code, self.namespace.id, words)
    }

    /// Words 10 to 15 of a command on blocks: where, how many, force unit access, and protection information.
    fn transfer_words(&self, first: u64, count: u32, direction: usize) -> [u32; 6] {
        let settings = &self.settings;
        let force = if settings.force_unit_access[direction] { FORCE_UNIT_ACCESS } else { 0 };
        let mut words = [low_u32(first), low_u32(first >> 32), count | force, 0, 0, 0];
        if let Some(protection) = self.namespace.protection {
            let [guard, application, reference] = settings.checks.map(u32::from);
            let act = u32::from(settings.controller_protects);
            // Type 3 has no reference tag that the controller could check.
            let reference = if protection.kind == 3 { 0 } else { reference };
            words[2] |= (act << 3 | guard << 2 | application << 1 | reference) << 26;
            words[4] = words[0];
            let [tag, mask] = settings.application_tag.map(u32::from);
            words[5] = mask << 16 | tag;
        }
        words
    }

    /// A range of a trim; `None` if it is not a whole number of blocks, or too long.
    pub(crate) fn range(&self, range: TrimRange) -> Option<[u8; RANGE_BYTES]> {
        let TrimRange { offset_bytes, length_bytes } = range;
        let is_whole =
            offset_bytes.is_multiple_of(self.unit_bytes) && length_bytes.is_multiple_of(self.unit_bytes);
        let blocks = u32::try_from(length_bytes / self.unit_bytes).ok().filter(|_| is_whole)?;
        let mut range = [0; RANGE_BYTES];
        range[4..8].copy_from_slice(&blocks.to_le_bytes());
        range[8..].copy_from_slice(&(offset_bytes / self.unit_bytes).to_le_bytes());
        Some(range)
    }
}

/// The errno for a status of a controller: that which the kernel has for the same status of a block device, where it has one.
pub(crate) fn errno_of(status: u32) -> Errno {
    Errno(match status & 0x7ff {
        0x001 => libc::EOPNOTSUPP,
        // Invalid Field.
        0x002 => libc::EINVAL,
        // Invalid Namespace or Format.
        0x00b => libc::ENODEV,
        // Namespace is Write Protected, Zone Is Read Only, Attempted Write to Read Only Range.
        0x020 | 0x1ba | 0x182 => libc::EROFS,
        // LBA Out of Range.
        0x080 => libc::EREMOTEIO,
        // Capacity Exceeded.
        0x081 => libc::ENOSPC,
        // Conflicting Attributes, Invalid Protection Information.
        0x180 | 0x181 => libc::EINVAL,
        // Zone Boundary Error, Zone Is Full, Zone Is Offline, Zone Invalid Write.
        0x1b8 | 0x1b9 | 0x1bb | 0x1bc => libc::EREMOTEIO,
        // Too Many Active Zones, Too Many Open Zones.
        0x1bd => libc::EOVERFLOW,
        0x1be => libc::ETOOMANYREFS,
        // Write Fault, Unrecovered Read Error, Deallocated or Unwritten Logical Block.
        0x280 | 0x281 | 0x287 => libc::ENODATA,
        // Guard, application tag and reference tag do not match, and Compare Failure.
        0x282..=0x285 => libc::EILSEQ,
        // Access Denied.
        0x286 => libc::EACCES,
        _ => libc::EIO,
    })
}

/// What an errno of these commands means.
pub(crate) fn explain(errno: i32) -> Option<&'static str> {
    Some(match errno {
        libc::EINVAL => {
            "the I/O is not a whole number of blocks (with their metadata), or the controller refused a field of the command"
        }
        libc::EMSGSIZE => {
            "md_per_io_size= is smaller than the metadata of the blocks of an I/O, which this namespace keeps apart"
        }
        libc::EFBIG => {
            "a command has at most 65536 blocks, and Zone Append at most the zone append size limit of the controller (`nvme zns \
             id-ctrl`: 4096 bytes times 2 to the power of zasl, or of mdts); use a smaller bs="
        }
        libc::EREMOTEIO => {
            "the controller refused the blocks: beyond the end of the namespace or of a zone, not where the zone is written \
             to, or the zone is full or offline"
        }
        libc::EROFS => "the namespace or the zone is read-only",
        libc::EPROTO => "the controller says that it has appended the data elsewhere than to their zone",
        libc::ENODATA => "the controller could not read the medium (unrecovered read error), or not write it",
        libc::EILSEQ => {
            "the controller found that the data differ (verify_mode=compare), or that the protection information does not \
             match the data, the tags or the number of the block"
        }
        libc::EOPNOTSUPP => {
            "the controller does not have this command, or hipri=1 has no polled queue (nvme.poll_queues=N)"
        }
        libc::EOVERFLOW => "the namespace has no more active zones; use max_open_zones=",
        libc::ETOOMANYREFS => "the namespace has no more open zones; use max_open_zones=",
        libc::EACCES => {
            "commands that write need the namespace open for writing, or CAP_SYS_ADMIN before Linux 6.2"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_sys::nvme::{NvmeGuard, NvmeProtection};

    const PLAIN: CommandUse = CommandUse {
        write: NvmeWrite::Write,
        verify: NvmeVerify::Compare,
        force_unit_access: [false, true],
        deallocate: true,
        trim_ranges: 1,
        metadata_bytes: 64,
        controller_protects: true,
        checks: [true, false, true],
        application_tag: [0x1234, 0xffff],
    };

    fn namespace(metadata_bytes: u32, metadata_in_data: bool, protected: bool) -> NvmeNamespace {
        let protection = NvmeProtection { kind: 1, guard: NvmeGuard::Crc16, is_first: true };
        let protection = protected.then_some(protection);
        NvmeNamespace {
            id: 3,
            blocks: 1 << 40,
            block_bytes: 512,
            metadata_bytes,
            metadata_in_data,
            protection,
        }
    }

    fn op(action: Action, first: u64, blocks: u64, unit: u64) -> Op {
        Op::new(action, 0, first * unit, blocks * unit)
    }

    #[test]
    fn commands_have_the_words_of_the_specification() {
        let target = NvmeTarget::new(namespace(0, false, false), &PLAIN);
        let words = |op: &Op| {
            let command = target.command(op);
            (command.opcode, command.words_10_15)
        };
        let read = op(Action::Read, 1 << 33, 8, 512);
        assert_eq!(words(&read), (0x02, [0, 2, 7, 0, 0, 0]));
        let read_back = Op { purpose: Purpose::VerifyRead, ..read };
        assert_eq!(words(&read_back), (0x05, [0, 2, 7, 0, 0, 0]));
        assert_eq!(words(&op(Action::Write, 5, 1, 512)), (0x01, [5, 0, 1 << 30, 0, 0, 0]));
        assert_eq!(words(&op(Action::Sync, 0, 0, 512)), (0x00, [0; 6]));
        assert_eq!(words(&op(Action::ResetZone, 16, 16, 512)), (0x79, [16, 0, 0, 4, 0, 0]));
        assert_eq!(words(&op(Action::Trim, 9, 2, 512)), (0x09, [0, 4, 0, 0, 0, 0]));
        let range = |offset_bytes, length_bytes| target.range(TrimRange { offset_bytes, length_bytes });
        assert_eq!(range(9 * 512, 1024).map(|range| range[8] << 4 | range[4]), Some(0x92));
        assert_eq!((range(9, 512), range(512, 9), range(0, 1 << 42)), (None, None, None));
        let zeroes = CommandUse { write: NvmeWrite::Zeroes, ..PLAIN };
        let zeroes = NvmeTarget::new(namespace(0, false, false), &zeroes);
        let write = op(Action::Write, 5, 1, 512);
        let command = zeroes.command(&write);
        assert_eq!((command.opcode, command.words_10_15[2]), (0x08, 1 << 30 | 1 << 25));
        assert!(!zeroes.sends_data(&write) && target.sends_data(&write));
    }

    #[test]
    fn appends_name_their_zone_and_have_a_limit() {
        let settings = CommandUse { write: NvmeWrite::ZoneAppend, ..PLAIN };
        let zones = NvmeZones { blocks: 16, append_bytes_max: Some(4096) };
        let target = NvmeTarget::new(namespace(0, false, false), &settings).appending_to(zones);
        let write = op(Action::Write, 37, 3, 512);
        let command = target.command(&write);
        assert_eq!((command.opcode, command.words_10_15), (0x7d, [32, 0, 1 << 30 | 2, 0, 0, 0]));
        assert!(target.sends_data(&write));
        assert_eq!(target.command(&op(Action::Read, 37, 3, 512)).words_10_15[0], 37);
        let place = |block| target.appended_bytes(&write, block);
        assert_eq!((place(32), place(45)), (Some(32 * 512), Some(45 * 512)));
        assert_eq!((place(31), place(46), place(u64::MAX)), (None, None, None));
        assert_eq!(target.refuses(&op(Action::Write, 32, 8, 512)), None);
        assert_eq!(target.refuses(&op(Action::Write, 32, 9, 512)), Some(Errno(libc::EFBIG)));
        assert_eq!(target.refuses(&op(Action::Read, 32, 9, 512)), None);
        let writes = target.writing_by(NvmeWrite::Write);
        assert_eq!(writes.refuses(&op(Action::Write, 32, 9, 512)), None);
    }

    #[test]
    fn metadata_are_counted_where_they_are_transferred() {
        let units = |namespace: NvmeNamespace, settings: CommandUse| {
            let target = NvmeTarget::new(namespace, &settings);
            (target.unit_bytes, target.separate_bytes)
        };
        let own = CommandUse { controller_protects: false, ..PLAIN };
        assert_eq!(units(namespace(8, true, true), PLAIN), (512, 0), "inserted by the controller");
        assert_eq!(units(namespace(8, true, true), own), (520, 0));
        assert_eq!(units(namespace(16, true, true), PLAIN), (528, 0), "more than protection information");
        assert_eq!(units(namespace(8, false, true), own), (512, 8));
        assert_eq!(units(namespace(8, false, false), PLAIN), (512, 8));
        let target = NvmeTarget::new(namespace(8, false, true), &own);
        assert_eq!(target.refuses(&op(Action::Read, 0, 8, 512)), None);
        assert_eq!(target.refuses(&op(Action::Read, 0, 9, 512)), Some(Errno(libc::EMSGSIZE)));
        assert_eq!(target.refuses(&Op::new(Action::Read, 0, 100, 512)), Some(Errno(libc::EINVAL)));
        assert_eq!(target.refuses(&Op::new(Action::Sync, 0, 100, 0)), None);
        let words = target.command(&op(Action::Read, 7, 1, 512)).words_10_15;
        assert_eq!(words[2] >> 26, 0b0101);
        assert_eq!((words[4], words[5]), (7, 0xffff_1234));
    }

    #[test]
    fn statuses_are_explained() {
        for status in [0x2, 0x80, 0x281, 0x282, 0x1bd, 0x4281, 0x4001] {
            assert!(explain(errno_of(status).0).is_some(), "{status:x}");
        }
        assert_eq!(errno_of(0x4281), Errno(libc::ENODATA));
        assert_eq!(errno_of(0x7ff), Errno(libc::EIO));
    }
}

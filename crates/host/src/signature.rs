//! Signatures on a device: file systems, swap, partition tables, members of volumes, in its first and last blocks.
//!
//! Invariant: a device is opened for reading; only contents that are certain are reported.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// As far as the furthest signature in the head.
const HEAD_BYTES: usize = 68 * 1024;

/// Length and alignment of a label of ZFS, of which a device has two in the beginning and two at its end.
const ZFS_LABEL_BYTES: u64 = 256 << 10;

/// Where the uberblocks of a label begin, which reach to its end, and their smallest distance.
const ZFS_RING: u64 = 128 << 10;
const ZFS_RING_BYTES: usize = 128 << 10;
const ZFS_SLOT_BYTES: usize = 1 << 10;

/// The first bytes of an uberblock, of a machine of either kind.
const ZFS_UBERBLOCKS: [[u8; 8]; 2] = [0x00ba_b10c_u64.to_le_bytes(), 0x00ba_b10c_u64.to_be_bytes()];

/// The meaning of the signatures that members of RAIDs have wherever their version puts them.
const RAID: &str = "Linux RAID member";

/// The superblock of a member of a Linux RAID, of versions 1.0 and 0.90.
const RAID_MAGIC: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();

/// What the first blocks of a device say of its contents, `ext2/3/4 file system`; `None` if that is nothing known. That much
/// is read for any run on a device; more would be I/O that nobody asked for.
///
/// # Errors
/// The kernel's: what is on the device is not known.
pub fn of_head(path: &Path) -> io::Result<Option<&'static str>> {
    Ok(in_head(&read(&File::open(path)?, 0, HEAD_BYTES)?))
}

/// The same of the whole device, before all of it is overwritten: its last blocks and the labels of ZFS are read as well.
///
/// # Errors
/// The kernel's: what is on the device is not known.
pub fn of_device(path: &Path) -> io::Result<Option<&'static str>> {
    let mut file = File::open(path)?;
    if let Some(what) = in_head(&read(&file, 0, HEAD_BYTES)?) {
        return Ok(Some(what));
    }
    let size_bytes = file.seek(SeekFrom::End(0))?;
    if let Some(what) = at_end(&file, size_bytes)? {
        return Ok(Some(what));
    }
    let end = size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
    for label in [
        Some(0),
        Some(ZFS_LABEL_BYTES),
        end.checked_sub(2 * ZFS_LABEL_BYTES),
        end.checked_sub(ZFS_LABEL_BYTES),
    ] {
        let Some(at) = label else { continue };
        if has_uberblock(&read(&file, at + ZFS_RING, ZFS_RING_BYTES)?) {
            return Ok(Some("ZFS pool member"));
        }
    }
    Ok(None)
}

/// Up to so many bytes from this offset: fewer at the end of the device.
fn read(file: &File, offset: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut data = vec![0u8; bytes];
    let mut len = 0;
    while len < bytes {
        match file.read_at(&mut data[len..], offset + len as u64) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    data.truncate(len);
    Ok(data)
}

/// The same for the first bytes of a device.
fn in_head(head: &[u8]) -> Option<&'static str> {
    let found = |row: &&(usize, &[u8], &str)| head.get(row.0..row.0 + row.1.len()) == Some(row.1);
    SIGNATURES.iter().find(found).map(|row| row.2)
}

/// What the last blocks of a device of this size say.
fn at_end(file: &File, size_bytes: u64) -> io::Result<Option<&'static str>> {
    for (at, bytes, meaning) in end_signatures(size_bytes) {
        let Some(at) = at else { continue };
        if read(file, at, bytes.len())? == bytes {
            return Ok(Some(meaning));
        }
    }
    Ok(None)
}

/// Whether an uberblock is in this label.
fn has_uberblock(ring: &[u8]) -> bool {
    ring.chunks(ZFS_SLOT_BYTES).any(|slot| ZFS_UBERBLOCKS.iter().any(|magic| slot.starts_with(magic)))
}

/// Offset, bytes, meaning of what lies at the end of a device of this size; no offset if it is too small for that.
fn end_signatures(size_bytes: u64) -> [(Option<u64>, &'static [u8], &'static str); 7] {
    let before_end = |bytes: u64| size_bytes.checked_sub(bytes);
    [
        // Version 0.90 is in the last whole 64 KiB before the last; 1.0 at least 8 KiB before the end.
        ((size_bytes & !0xffff).checked_sub(1 << 16), &RAID_MAGIC, RAID),
        (before_end(8 << 10).map(|at| at & !0xfff), &RAID_MAGIC, RAID),
        (before_end(1024), b"Intel Raid ISM Cfg Sig. ", "Intel RAID member"),
        (before_end(512), &[0xde, 0x11, 0xde, 0x11], "DDF RAID member"),
        (before_end(512), b"EFI PART", "GPT partition table"),
        (before_end(4096), b"EFI PART", "GPT partition table"),
        (before_end(4096), &[0xde, 0x11, 0xde, 0x11], "DDF RAID member"),
    ]
}

/// Offset, bytes, meaning; from the formats' own descriptions. The boot sector's two bytes come last, because some of
/// the others end in them too.
#[rustfmt::skip]
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (1080, &[0x53, 0xef], "ext2/3/4 file system"),
    (0, b"XFSB", "XFS file system"),
    (65_600, b"_BHRfS_M", "btrfs file system"),
    (1024, &[0x10, 0x20, 0xf5, 0xf2], "F2FS file system"),
    (4120, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca], "bcache or bcachefs member"),
    (4086, b"SWAPSPACE2", "swap area"),
    (0, b"LUKS\xba\xbe", "LUKS encrypted volume"),
    (512, b"LABELONE", "LVM physical volume"),
    (536, b"LVM2 001", "LVM physical volume"),
    (0, &RAID_MAGIC, RAID),
    (4096, &RAID_MAGIC, RAID),
    (3, b"NTFS    ", "NTFS file system"),
    (3, b"EXFAT   ", "exFAT file system"),
    (54, b"FAT1", "FAT file system"),
    (82, b"FAT32", "FAT file system"),
    (0, b"hsqs", "squashfs file system"),
    (1024, &[0xe2, 0xe1, 0xf5, 0xe0], "EROFS file system"),
    (32_769, b"CD001", "ISO 9660 file system"),
    (0, b"bluestore block device", "Ceph BlueStore device"),
    (512, b"EFI PART", "GPT partition table"),
    (4096, b"EFI PART", "GPT partition table"),
    (510, &[0x55, 0xaa], "MBR partition table"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::process::Command;

    #[test]
    fn every_signature_is_within_reach_and_found_alone() {
        for &(offset, bytes, meaning) in SIGNATURES {
            assert!(offset + bytes.len() <= HEAD_BYTES, "{meaning}");
            let mut head = vec![0u8; HEAD_BYTES];
            head[offset..offset + bytes.len()].copy_from_slice(bytes);
            assert_eq!(in_head(&head), Some(meaning));
        }
    }

    #[test]
    fn nothing_is_found_in_zeros_or_in_a_stub() {
        assert_eq!(in_head(&[0; HEAD_BYTES]), None);
        assert_eq!(in_head(b"XFS"), None);
        assert_eq!(in_head(&[]), None);
    }

    #[test]
    fn a_boot_sector_with_a_file_system_is_the_file_system() {
        let mut head = vec![0u8; 1024];
        head[82..87].copy_from_slice(b"FAT32");
        head[510..512].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(in_head(&head), Some("FAT file system"));
    }

    #[test]
    fn real_formats_are_recognised() {
        let dir = TempDir::new("signature");
        for (program, size_bytes, meaning) in
            [("mkfs.ext4", 8 << 20, "ext2/3/4 file system"), ("mkswap", 8 << 20, "swap area")]
        {
            let path = dir.path.join(program);
            std::fs::File::create(&path).unwrap().set_len(size_bytes).unwrap();
            match Command::new(program).arg(&path).output() {
                Ok(output) if output.status.success() => {
                    assert_eq!(of_device(&path).unwrap(), Some(meaning));
                }
                other => fiord_testing::skipped(format_args!("{program}: {other:?}")),
            }
        }
    }

    #[test]
    fn members_are_known_by_their_ends_and_by_the_labels_of_zfs() {
        let dir = TempDir::new("ends");
        let path = dir.path.join("device");
        let size_bytes = (4 << 20) + 12_345;
        let holding = |at: u64, bytes: &[u8]| {
            let file = std::fs::File::create(&path).unwrap();
            file.set_len(size_bytes).unwrap();
            file.write_all_at(bytes, at).unwrap();
            of_device(&path).unwrap()
        };
        for (at, bytes, meaning) in end_signatures(size_bytes) {
            assert_eq!(holding(at.unwrap(), bytes), Some(meaning));
        }
        let end = size_bytes / ZFS_LABEL_BYTES * ZFS_LABEL_BYTES;
        for label in [0, ZFS_LABEL_BYTES, end - 2 * ZFS_LABEL_BYTES, end - ZFS_LABEL_BYTES] {
            let slot = label + ZFS_RING + 5 * ZFS_SLOT_BYTES as u64;
            assert_eq!(holding(slot, &ZFS_UBERBLOCKS[0]), Some("ZFS pool member"));
            assert_eq!(holding(slot, &ZFS_UBERBLOCKS[1]), Some("ZFS pool member"));
        }
        assert_eq!(of_head(&path).unwrap(), None, "the head says nothing of the end");
        assert_eq!(holding(1 << 20, b"EFI PART"), None, "data is no signature");
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(of_device(&path).unwrap(), None);
        assert!(of_device(&dir.path).is_err(), "what cannot be read is not nothing");
    }
}

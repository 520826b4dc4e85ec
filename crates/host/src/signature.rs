//! Signatures in the first blocks of a device: file systems, swap, partition tables, members of volumes.
//!
//! Invariant: a device is opened for reading and only its first 68 KiB are read; only contents that are certain are
//! reported.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// As far as the furthest signature below.
const LOOK_BYTES: usize = 68 * 1024;

/// The contents of a device, `ext2/3/4 file system`; `None` if nothing known is found.
pub fn of_device(path: &Path) -> io::Result<Option<&'static str>> {
    let file = File::open(path)?;
    let mut head = vec![0u8; LOOK_BYTES];
    let mut len = 0;
    while len < LOOK_BYTES {
        match file.read_at(&mut head[len..], len as u64) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(in_head(&head[..len]))
}

/// The same for the first bytes of a device.
fn in_head(head: &[u8]) -> Option<&'static str> {
    let found = |row: &&(usize, &[u8], &str)| head.get(row.0..row.0 + row.1.len()) == Some(row.1);
    SIGNATURES.iter().find(found).map(|row| row.2)
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
    (0, &[0xfc, 0x4e, 0x2b, 0xa9], "Linux RAID member"),
    (4096, &[0xfc, 0x4e, 0x2b, 0xa9], "Linux RAID member"),
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
            assert!(offset + bytes.len() <= LOOK_BYTES, "{meaning}");
            let mut head = vec![0u8; LOOK_BYTES];
            head[offset..offset + bytes.len()].copy_from_slice(bytes);
            assert_eq!(in_head(&head), Some(meaning));
        }
    }

    #[test]
    fn nothing_is_found_in_zeros_or_in_a_stub() {
        assert_eq!(in_head(&[0; LOOK_BYTES]), None);
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
}

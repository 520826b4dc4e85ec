//! Extents of files: which bytes have a place on the device and were never written, and exchanges of them.
//!
//! Invariant: nothing is flushed. Data that is not on the device yet is no reason to call an extent written or not.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use crate::errno::{check, check_long};
use crate::stat;
use crate::width::to_u32;

/// From the kernel's `linux/fiemap.h` and `linux/fs.h`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
const FIEMAP_EXTENT_LAST: u32 = 0x1;
const FIEMAP_EXTENT_UNWRITTEN: u32 = 0x800;

/// The number of `cachestat(2)` on all architectures that Rust's standard library has for Linux.
const SYS_CACHESTAT: libc::c_long = 451;

/// Extents that are asked for at once, and how often: a file of more pieces is too large to be looked through.
const EXTENTS: usize = 256;
const CALLS_MAX: usize = 64;

/// `EXT4_IOC_MOVE_EXT`, of ext4's own header.
const MOVE_EXTENTS: libc::Ioctl = libc::_IOWR::<Move>(b'f' as u32, 15);

/// `struct move_extent`; all but the descriptor in blocks.
#[repr(C)]
struct Move {
    reserved: u32,
    donor: u32,
    start: u64,
    donor_start: u64,
    wanted: u64,
    moved: u64,
}

/// `struct fiemap_extent`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    more: [u32; 3],
}

/// `struct fiemap` with room for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS],
}

/// `struct cachestat_range` and `struct cachestat`.
#[repr(C)]
struct CacheRange {
    offset: u64,
    length: u64,
}

#[derive(Default)]
#[repr(C)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes below `size_bytes` that are allocated on the device and were never written; `None` of a file in too many pieces.
///
/// # Errors
/// `EOPNOTSUPP` on a file system that does not say where its files are.
pub fn unwritten_bytes(file: impl AsFd, size_bytes: u64) -> io::Result<Option<u64>> {
    let mut unwritten = 0;
    let mut start = 0;
    for _ in 0..CALLS_MAX {
        let mut request = Request {
            start,
            length: size_bytes.saturating_sub(start),
            flags: 0,
            mapped: 0,
            count: to_u32(EXTENTS),
            reserved: 0,
            extents: [Extent::default(); EXTENTS],
        };
        if request.length == 0 {
            return Ok(Some(unwritten));
        }
        // SAFETY: the call reads the head of the structure and writes at most `count` extents, for which there is room.
        check(unsafe { libc::ioctl(file.as_fd().as_raw_fd(), FS_IOC_FIEMAP, &raw mut request) })?;
        let found = &request.extents[..EXTENTS.min(request.mapped as usize)];
        for extent in found {
            let end = extent.logical.saturating_add(extent.length).min(size_bytes);
            if extent.flags & FIEMAP_EXTENT_UNWRITTEN != 0 {
                unwritten += end.saturating_sub(extent.logical.max(start));
            }
        }
        match found.last() {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 => {
                start = last.logical.saturating_add(last.length)
            }
            _ => return Ok(Some(unwritten)),
        }
    }
    Ok(None)
}

/// Whether the page cache has data of a file that has not been written to the device yet.
///
/// # Errors
/// `ENOSYS` before Linux 6.5; `EOPNOTSUPP` on a file system without a page cache.
pub fn has_unflushed_pages(file: impl AsFd) -> io::Result<bool> {
    // Kernels (6.12 for one) take what they have in the place of pages of such a file for evicted pages, and crash.
    if stat::is_dax(&file).unwrap_or(false) {
        return Ok(false);
    }
    Ok(cached_pages(file)?.unwritten > 0)
}

/// Pages of a file in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedPages {
    /// All of them.
    pub cached: u64,
    /// Those that have not been written to the device yet.
    pub unwritten: u64,
}

/// What the page cache has of a file, without asking its file system. Not for a file of a file system mounted with DAX
/// ([`stat::is_dax`]).
///
/// # Errors
/// As those of [`has_unflushed_pages`].
pub fn cached_pages(file: impl AsFd) -> io::Result<CachedPages> {
    // A length of 0 means up to the end.
    let range = CacheRange { offset: 0, length: 0 };
    let mut pages = CacheStat::default();
    // SAFETY: the call reads one range and writes one structure of counts; its last argument has to be 0.
    check_long(unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_fd().as_raw_fd(), &raw const range, &raw mut pages, 0)
    })?;
    Ok(CachedPages { cached: pages.cached, unwritten: pages.dirty + pages.writeback })
}

/// Exchanges the blocks of a range of a file on ext4 with those of the same range of another, without a change of the
/// first one's data; returns how many blocks were exchanged. Both ranges must be allocated. A hot loop keeps descriptors in
/// tables: a closed one is `EBADF`.
///
/// # Errors
/// `EBUSY`: pages of the range are in use. `ENOTTY`, `EOPNOTSUPP`: the file system is not ext4. `EINVAL`: the other file is
/// on another one, or is the same.
pub fn exchange_blocks(file: RawFd, donor: RawFd, start_block: u64, blocks: u64) -> io::Result<u64> {
    let mut request = Move {
        reserved: 0,
        donor: donor.cast_unsigned(),
        start: start_block,
        donor_start: start_block,
        wanted: blocks,
        moved: 0,
    };
    // SAFETY: the kernel reads and writes one `move_extent`, which lives during the call; a bad descriptor is an error.
    check(unsafe { libc::ioctl(file, MOVE_EXTENTS, &raw mut request) })?;
    Ok(request.moved)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    use super::*;
    use crate::testing::TempFile;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_was_allocated_and_never_written_is_counted() {
        let temp = TempFile::new("extents");
        let found = || unwritten_bytes(&temp.file, 4 * MIB);
        if let Err(error) = found() {
            fiord_testing::skip!("the file system for temporary files: {error}");
        }
        let status = Command::new("fallocate").args(["-l", "5m"]).arg(&temp.path).status();
        fiord_testing::need!(status.map_err(|error| format!("fallocate: {error}")));
        if found().unwrap() == Some(0) {
            fiord_testing::skip!("the file system for temporary files writes what it allocates");
        }
        assert_eq!(found().unwrap(), Some(4 * MIB), "what lies beyond the size does not count");
        // Every second block of 16 KiB, so that there are more extents than one call returns.
        let block = [7; 16 << 10];
        for number in 0..128 {
            temp.file.write_all_at(&block, number * (32 << 10)).unwrap();
        }
        temp.file.sync_all().unwrap();
        assert_eq!(found().unwrap(), Some(2 * MIB));
        assert_eq!(unwritten_bytes(&temp.file, 0).unwrap(), Some(0));
    }

    #[test]
    fn blocks_are_exchanged_and_the_data_stays() {
        let (temp, donor) = (TempFile::new("exchanged"), TempFile::new("donor"));
        temp.file.write_all_at(&[7; 65_536], 0).unwrap();
        temp.file.sync_all().unwrap();
        let exchange = |donor: &TempFile, blocks| {
            exchange_blocks(temp.file.as_raw_fd(), donor.file.as_raw_fd(), 0, blocks)
        };
        let status = Command::new("fallocate").args(["-l", "64k"]).arg(&donor.path).status();
        fiord_testing::need!(status.map_err(|error| format!("fallocate: {error}")));
        match exchange(&donor, 1) {
            Ok(moved) => assert_eq!(moved, 1),
            Err(error) => fiord_testing::skip!("the file system for temporary files: {error}"),
        }
        let mut bytes = vec![0; 65_536];
        temp.file.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().all(|byte| *byte == 7));
        assert_eq!(exchange(&temp, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL), "with itself");
        let closed = exchange_blocks(-1, donor.file.as_raw_fd(), 0, 1);
        assert_eq!(closed.unwrap_err().raw_os_error(), Some(libc::EBADF));
    }

    #[test]
    fn pages_that_are_not_on_the_device_yet_are_seen() {
        let temp = TempFile::new("dirty");
        let flushed = match has_unflushed_pages(&temp.file) {
            Ok(unflushed) => !unflushed,
            Err(error) => fiord_testing::skip!("cachestat: {error}"),
        };
        assert!(flushed);
        temp.file.write_all_at(&[7; 4096], 0).unwrap();
        temp.file.sync_all().unwrap();
        assert!(!has_unflushed_pages(&temp.file).unwrap());
    }
}

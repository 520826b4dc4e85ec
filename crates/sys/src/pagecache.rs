//! The cached pages of a file or a device: dropping them, so that the next read comes from the medium, and counting them.
//!
//! Invariant: dirty pages are never lost; what has not been written back stays cached.

use crate::blkdev;
use crate::errno::check;
use crate::file::{self, Advice};
use crate::map::{Mapping, Protection, Sharing, page_bytes};
use crate::stat::{self, InodeKind};
use std::io;
use std::os::fd::AsFd;

/// Of a long range this many parts of this length are looked at, which takes less than a millisecond.
const PARTS: usize = 64;
const PART_BYTES: usize = 1 << 20;

/// No page of memory is smaller.
const PAGE_BYTES_MIN: usize = 4096;

/// Drops the cached pages of `len_bytes` from `offset_bytes` (0 bytes: to the end). For a device all pages are dropped
/// if that is permitted; otherwise it is treated like a file: the kernel drops clean pages that are not mapped.
pub fn drop_cached(target: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let target = target.as_fd();
    if stat::fstat(target)?.kind == InodeKind::Block && blkdev::flush_buffers(target).is_ok() {
        return Ok(());
    }
    file::advise(target, Advice::DontNeed, offset_bytes, len_bytes)
}

/// A look at parts of a range of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachedParts {
    /// The length of the parts.
    pub looked_bytes: u64,
    /// What was in the page cache of them.
    pub cached_bytes: u64,
}

/// Looks at parts of a range, which are spread over it, or at all of a short one. It asks through a mapping, unlike
/// `cachestat(2)`: on every kernel, and for a file of an overlay the cache of the file below. A process that neither owns
/// the file nor may write to it is told that all is cached. The file system may be asked about the file: one that does not
/// answer holds up the caller.
///
/// # Errors
/// `EACCES` of a file that is not open for reading; `ENODEV` on a file system without mappings.
pub fn cached_parts(file: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<CachedParts> {
    let page = page_bytes();
    let start = offset_bytes - offset_bytes % page as u64;
    let pages = (offset_bytes.saturating_add(len_bytes) - start).div_ceil(page as u64);
    let bytes = usize::try_from(pages).ok().and_then(|pages| pages.checked_mul(page));
    let bytes = bytes.ok_or(io::ErrorKind::FileTooLarge)?;
    let mapping = Mapping::of_file(file.as_fd(), start, bytes, Protection::Read, Sharing::Private)?;
    let stride = (bytes / PARTS / page * page).max(PART_BYTES);
    let mut found = CachedParts::default();
    for at in (0..bytes).step_by(stride) {
        let part = PART_BYTES.min(bytes - at);
        let mut is_cached = [0_u8; PART_BYTES / PAGE_BYTES_MIN];
        // SAFETY: the part is in the mapping, and the array has a byte for each of its pages.
        check(unsafe { libc::mincore(mapping.as_ptr().add(at).cast(), part, is_cached.as_mut_ptr()) })?;
        let cached = is_cached.iter().filter(|flags| **flags & 1 == 1).count();
        found.looked_bytes += part as u64;
        found.cached_bytes += (cached * page) as u64;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;

    #[test]
    fn written_pages_leave_the_cache() {
        let temp = TempFile::new("drop");
        let len_bytes = page_bytes() * 16;
        std::fs::write(&temp.path, vec![3u8; len_bytes]).unwrap();
        file::fsync(&temp.file).unwrap();
        let name = stat::file_system_of(&temp.file).unwrap().type_name();
        if matches!(name, Some("tmpfs" | "ramfs")) {
            fiord_testing::skip!("the page cache is all there is of a {name:?} file");
        }
        drop_cached(&temp.file, 0, 0).unwrap();
        let cached = || cached_parts(&temp.file, 1, len_bytes as u64 - 1).unwrap();
        assert_eq!(cached(), CachedParts { looked_bytes: len_bytes as u64, cached_bytes: 0 });
        assert_eq!(std::fs::read(&temp.path).unwrap(), vec![3u8; len_bytes]);
        assert_eq!(cached().cached_bytes, len_bytes as u64);
        let parts = cached_parts(&temp.file, 0, 1 << 36).unwrap();
        let looked_bytes = (PARTS * PART_BYTES) as u64;
        assert_eq!(
            parts,
            CachedParts { looked_bytes, cached_bytes: len_bytes as u64 },
            "mostly beyond its end"
        );
        let written_only = std::fs::File::options().write(true).open(&temp.path).unwrap();
        assert_eq!(cached_parts(&written_only, 0, 4096).unwrap_err().raw_os_error(), Some(libc::EACCES));
        assert!(cached_parts(&temp.file, 0, u64::MAX).is_err());
    }
}

//! Dropping the cached pages of a file or a device, so that the next read comes from the medium.
//!
//! Invariant: dirty pages are never lost; what has not been written back stays cached.

use crate::blkdev;
use crate::file::{self, Advice};
use crate::stat::{self, InodeKind};
use std::io;
use std::os::fd::AsFd;

/// Drops the cached pages of `len_bytes` from `offset_bytes` (0 bytes: to the end). For a device all pages are dropped
/// if that is permitted; otherwise it is treated like a file: the kernel drops clean pages that are not mapped.
pub fn drop_cached(target: impl AsFd, offset_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let target = target.as_fd();
    if stat::fstat(target)?.kind == InodeKind::Block && blkdev::flush_buffers(target).is_ok() {
        return Ok(());
    }
    file::advise(target, Advice::DontNeed, offset_bytes, len_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::{Mapping, Protection, Sharing, page_bytes};
    use crate::testing::TempFile;

    fn cached_pages(mapping: &Mapping) -> usize {
        let mut pages = vec![0u8; mapping.len_bytes() / page_bytes()];
        // SAFETY: the vector has one byte for each page of the mapping.
        unsafe { libc::mincore(mapping.as_ptr().cast(), mapping.len_bytes(), pages.as_mut_ptr()) };
        pages.iter().filter(|&&page| page & 1 == 1).count()
    }

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
        let fd = temp.file.as_fd();
        let mapping = Mapping::of_file(fd, 0, len_bytes, Protection::Read, Sharing::Shared).unwrap();
        assert_eq!(cached_pages(&mapping), 0);
        assert_eq!(std::fs::read(&temp.path).unwrap(), vec![3u8; len_bytes]);
        assert_eq!(cached_pages(&mapping), 16);
    }
}

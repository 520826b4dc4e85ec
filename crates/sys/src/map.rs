//! Mappings of memory and files, unmapped when dropped.
//!
//! Invariant: a `Mapping` owns exactly the pages of one `mmap`, and unmaps exactly those.

use crate::width::{to_u64, to_usize};
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

/// Who sees what is written into a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only this process.
    Private,
    /// The file, and everyone who maps it.
    Shared,
}

impl Sharing {
    fn flag(self) -> MapFlags {
        match self {
            Sharing::Private => MapFlags::PRIVATE,
            Sharing::Shared => MapFlags::SHARED,
        }
    }
}

/// The permitted access to a mapping's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Reading.
    Read,
    /// Both.
    ReadWrite,
}

/// Huge pages for an anonymous mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugePages {
    /// Page size, a power of two; `None` takes the system's default size.
    pub page_bytes: Option<u64>,
}

impl HugePages {
    /// The size as `mmap` and `shmget` encode it: log2 in the flags' upper bits.
    pub(crate) fn size_flag(self) -> libc::c_int {
        match self.page_bytes {
            Some(bytes) if bytes.is_power_of_two() => {
                bytes.trailing_zeros().cast_signed() << libc::MAP_HUGE_SHIFT
            }
            _ => 0,
        }
    }
}

/// The expected access to mapped pages (`madvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAdvice {
    /// No particular pattern.
    Normal,
    /// Accessed in random order.
    Random,
    /// Accessed in sequential order.
    Sequential,
    /// Use huge pages where it can (`MADV_HUGEPAGE`).
    HugePage,
}

/// Pages mapped into this process.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the mapping is plain memory owned by this value; access to it is the responsibility of the users of `as_ptr`.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives access to the address and the length alone.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len_bytes` of an open file from `offset_bytes`, a multiple of the page size.
    pub fn of_file(
        file: BorrowedFd<'_>,
        offset_bytes: u64,
        len_bytes: usize,
        protection: Protection,
        sharing: Sharing,
    ) -> io::Result<Mapping> {
        Mapping::of_file_with(file, offset_bytes, len_bytes, protection, sharing.flag())
    }

    /// The same with other flags; `MAP_FIXED` is none of them.
    pub(crate) fn of_file_with(
        file: BorrowedFd<'_>,
        offset_bytes: u64,
        len_bytes: usize,
        protection: Protection,
        flags: MapFlags,
    ) -> io::Result<Mapping> {
        let protection = match protection {
            Protection::Read => ProtFlags::READ,
            Protection::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        };
        // SAFETY: no address is requested and MAP_FIXED is never set, so no existing mapping is touched.
        let start =
            unsafe { rustix::mm::mmap(null_mut(), len_bytes, protection, flags, file, offset_bytes) }?;
        Mapping::at_address(start, len_bytes)
    }

    /// Maps `len_bytes` of zeroed memory for reading and writing, in huge pages if requested (the caller then rounds
    /// the length up to whole pages).
    pub fn anonymous(len_bytes: usize, sharing: Sharing, huge: Option<HugePages>) -> io::Result<Mapping> {
        let huge = huge.map_or(MapFlags::empty(), |pages| {
            MapFlags::HUGETLB | MapFlags::from_bits_retain(pages.size_flag().cast_unsigned())
        });
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `of_file`.
        let start =
            unsafe { rustix::mm::mmap_anonymous(null_mut(), len_bytes, protection, sharing.flag() | huge) }?;
        Mapping::at_address(start, len_bytes)
    }

    fn at_address(start: *mut c_void, len_bytes: usize) -> io::Result<Mapping> {
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Mapping { start, len_bytes })
    }

    /// Its first byte. Access through it is limited by the protection; pages of a file beyond its end raise `SIGBUS`.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Its length in bytes.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Advises about the pages of a range of the mapping, `offset_bytes` a multiple of the page size. `DontNeed` and
    /// `Remove` may change what private and shared pages hold, so no reference into the range may be live.
    pub fn advise(&self, advice: MapAdvice, offset_bytes: usize, len_bytes: usize) -> io::Result<()> {
        use rustix::mm::Advice;
        let advice = match advice {
            MapAdvice::Normal => Advice::Normal,
            MapAdvice::Random => Advice::Random,
            MapAdvice::Sequential => Advice::Sequential,
            MapAdvice::HugePage => Advice::LinuxHugepage,
        };
        let start = self.at(offset_bytes, len_bytes)?;
        // SAFETY: `at` checked that the range lies inside this mapping.
        Ok(unsafe { rustix::mm::madvise(start, len_bytes, advice) }?)
    }

    /// Writes a range's dirty pages to the file and waits for them (`MS_SYNC`). `offset_bytes` is a multiple of the
    /// page size.
    #[inline]
    pub fn sync(&self, offset_bytes: usize, len_bytes: usize) -> io::Result<()> {
        let start = self.at(offset_bytes, len_bytes)?;
        // SAFETY: `at` checked that the range lies inside this mapping.
        Ok(unsafe { rustix::mm::msync(start, len_bytes, MsyncFlags::SYNC) }?)
    }

    fn at(&self, offset_bytes: usize, len_bytes: usize) -> io::Result<*mut c_void> {
        match offset_bytes.checked_add(len_bytes) {
            Some(end) if end <= self.len_bytes => Ok(self.start.as_ptr().wrapping_add(offset_bytes).cast()),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the pages and is going away. With a range that was mapped the call cannot fail.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len_bytes) };
    }
}

/// The size of a page of memory, in bytes.
pub fn page_bytes() -> usize {
    // SAFETY: it reads a constant. `rustix` would read the auxiliary vector, and does not survive valgrind's.
    to_usize(to_u64(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;
    use std::os::fd::AsFd;

    #[test]
    fn a_shared_mapping_writes_the_file() {
        let temp = TempFile::new("map");
        crate::file::truncate(&temp.file, 8192).unwrap();
        let fd = temp.file.as_fd();
        let mapping = Mapping::of_file(fd, 0, 8192, Protection::ReadWrite, Sharing::Shared).unwrap();
        // SAFETY: byte 4096 is inside the mapping and the file, and nothing else uses it.
        unsafe { mapping.as_ptr().add(4096).write(9) };
        mapping.sync(4096, 4096).unwrap();
        mapping.advise(MapAdvice::Random, 0, 8192).unwrap();
        mapping.advise(MapAdvice::Sequential, 0, 8192).unwrap();
        assert_eq!(std::fs::read(&temp.path).unwrap()[4096], 9);
    }

    #[test]
    fn anonymous_memory_is_zeroed() {
        let mapping = Mapping::anonymous(page_bytes(), Sharing::Private, None).unwrap();
        // SAFETY: the first byte of the mapping.
        assert_eq!(unsafe { mapping.as_ptr().read() }, 0);
    }

    #[test]
    fn a_range_outside_is_refused() {
        let mapping = Mapping::anonymous(4096, Sharing::Private, None).unwrap();
        assert_eq!(mapping.sync(4096, 1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(mapping.sync(usize::MAX, 2).unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn huge_page_sizes_are_encoded_as_logarithms() {
        assert_eq!(HugePages { page_bytes: Some(2 << 20) }.size_flag(), libc::MAP_HUGE_2MB);
        assert_eq!(HugePages { page_bytes: None }.size_flag(), 0);
    }
}

//! Mappings of memory and files, unmapped when dropped.
//!
//! Invariant: a `Mapping` owns exactly the pages it was given by one `mmap`, and gives exactly those back.

use crate::errno::{check, check_posix};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Who sees what is written into a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only this process.
    Private,
    /// The file, and everyone who maps it.
    Shared,
}

/// What may be done with a mapping's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Reading.
    Read,
    /// Writing (the kernel lets most processors read too).
    Write,
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
                (bytes.trailing_zeros() as libc::c_int) << libc::MAP_HUGE_SHIFT
            }
            _ => 0,
        }
    }
}

/// What is about to happen to mapped pages (`madvise`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapAdvice {
    /// Nothing special.
    Normal,
    /// Touched in no order.
    Random,
    /// Touched in order.
    Sequential,
    /// Needed soon.
    WillNeed,
    /// Not needed: the pages may go. Private pages lose their contents.
    DontNeed,
    /// Give the blocks behind a shared mapping back too (`MADV_REMOVE`).
    Remove,
    /// Use huge pages where it can (`MADV_HUGEPAGE`).
    HugePage,
}

/// Pages mapped into this process.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the mapping is plain memory owned by this value; who may touch it when is for the users of `as_ptr` to say.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference only the address and the length can be had.
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
        let flags = match sharing {
            Sharing::Private => libc::MAP_PRIVATE,
            Sharing::Shared => libc::MAP_SHARED,
        };
        Mapping::map(len_bytes, protection, flags, file.as_raw_fd(), offset_bytes)
    }

    /// Maps `len_bytes` of zeroed memory for reading and writing, in huge pages if asked for (then the length is
    /// rounded up to whole ones by the caller).
    pub fn anonymous(len_bytes: usize, sharing: Sharing, huge: Option<HugePages>) -> io::Result<Mapping> {
        let sharing = match sharing {
            Sharing::Private => libc::MAP_PRIVATE,
            Sharing::Shared => libc::MAP_SHARED,
        };
        let huge = huge.map_or(0, |pages| libc::MAP_HUGETLB | pages.size_flag());
        Mapping::map(len_bytes, Protection::ReadWrite, sharing | libc::MAP_ANONYMOUS | huge, -1, 0)
    }

    fn map(
        len_bytes: usize,
        protection: Protection,
        flags: libc::c_int,
        fd: libc::c_int,
        offset_bytes: u64,
    ) -> io::Result<Mapping> {
        let protection = match protection {
            Protection::Read => libc::PROT_READ,
            Protection::Write => libc::PROT_WRITE,
            Protection::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        let offset = offset_bytes as libc::off64_t;
        // SAFETY: no address is asked for and MAP_FIXED is never set, so no existing mapping is touched.
        let start = unsafe { libc::mmap64(std::ptr::null_mut(), len_bytes, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Mapping { start, len_bytes })
    }

    /// Its first byte. What may be read or written through it is as the protection says; pages of a file beyond its
    /// end raise `SIGBUS`.
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
        let advice = match advice {
            MapAdvice::Normal => libc::MADV_NORMAL,
            MapAdvice::Random => libc::MADV_RANDOM,
            MapAdvice::Sequential => libc::MADV_SEQUENTIAL,
            MapAdvice::WillNeed => libc::MADV_WILLNEED,
            MapAdvice::DontNeed => libc::MADV_DONTNEED,
            MapAdvice::Remove => libc::MADV_REMOVE,
            MapAdvice::HugePage => libc::MADV_HUGEPAGE,
        };
        let start = self.at(offset_bytes, len_bytes)?;
        // SAFETY: `at` checked that the range lies inside this mapping.
        check(unsafe { libc::madvise(start, len_bytes, advice) }).map(drop)
    }

    /// Advises as POSIX has it: the same, less the two that change contents, and `DontNeed` only lets go of them.
    pub fn advise_posix(&self, advice: MapAdvice, offset_bytes: usize, len_bytes: usize) -> io::Result<()> {
        let advice = match advice {
            MapAdvice::Normal => libc::POSIX_MADV_NORMAL,
            MapAdvice::Random => libc::POSIX_MADV_RANDOM,
            MapAdvice::Sequential => libc::POSIX_MADV_SEQUENTIAL,
            MapAdvice::WillNeed => libc::POSIX_MADV_WILLNEED,
            MapAdvice::DontNeed => libc::POSIX_MADV_DONTNEED,
            MapAdvice::Remove | MapAdvice::HugePage => {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
        };
        let start = self.at(offset_bytes, len_bytes)?;
        // SAFETY: `at` checked that the range lies inside this mapping.
        check_posix(unsafe { libc::posix_madvise(start, len_bytes, advice) })
    }

    /// Writes a range's dirty pages to the file and waits for them (`MS_SYNC`). `offset_bytes` is a multiple of the
    /// page size.
    #[inline]
    pub fn sync(&self, offset_bytes: usize, len_bytes: usize) -> io::Result<()> {
        let start = self.at(offset_bytes, len_bytes)?;
        // SAFETY: `at` checked that the range lies inside this mapping.
        check(unsafe { libc::msync(start, len_bytes, libc::MS_SYNC) }).map(drop)
    }

    fn at(&self, offset_bytes: usize, len_bytes: usize) -> io::Result<*mut libc::c_void> {
        match offset_bytes.checked_add(len_bytes) {
            Some(end) if end <= self.len_bytes => {
                // SAFETY: the offset is within the mapping.
                Ok(unsafe { self.start.as_ptr().add(offset_bytes) }.cast())
            }
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the pages and is going away.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len_bytes) };
    }
}

/// The size of a page of memory, in bytes.
pub fn page_bytes() -> usize {
    // SAFETY: no memory is passed.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
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
        mapping.advise_posix(MapAdvice::DontNeed, 0, 8192).unwrap();
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
    fn huge_page_sizes_are_logarithms() {
        assert_eq!(HugePages { page_bytes: Some(2 << 20) }.size_flag(), libc::MAP_HUGE_2MB);
        assert_eq!(HugePages { page_bytes: None }.size_flag(), 0);
    }
}

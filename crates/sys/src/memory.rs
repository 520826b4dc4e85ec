//! Memory for I/O buffers, from each source that a benchmark can choose.
//!
//! Invariant: a `Region` has at least the requested length and alignment, reads as zeros (unless it maps a file with
//! other contents), and is returned to its source when dropped.

use crate::errno::{Errno, check, error_text};
use crate::file::{self, Allocate};
use crate::map::{HugePages, Mapping, Protection, Sharing, page_bytes};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::Arc;

/// The source of a region.
#[derive(Clone, Debug)]
pub enum MemorySource {
    /// The allocator.
    Malloc,
    /// An anonymous mapping, private to this process.
    Mmap,
    /// An anonymous mapping that other processes could share.
    MmapShared,
    /// A mapping of this file, extended if necessary.
    MmapFile {
        /// Its path.
        path: PathBuf,
        /// The file, open for reading and writing. Its opener has checked what it is.
        file: Arc<File>,
        /// Whether what is written reaches the file.
        sharing: Sharing,
    },
    /// An anonymous mapping in huge pages.
    MmapHuge(HugePages),
    /// System V shared memory.
    Shm,
    /// System V shared memory in huge pages.
    ShmHuge(HugePages),
}

impl fmt::Display for MemorySource {
    /// The call as in a manual's index: `mmap(MAP_HUGETLB)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemorySource::Malloc => f.write_str("malloc"),
            MemorySource::Mmap => f.write_str("mmap(MAP_PRIVATE|MAP_ANONYMOUS)"),
            MemorySource::MmapShared => f.write_str("mmap(MAP_SHARED|MAP_ANONYMOUS)"),
            MemorySource::MmapFile { path, .. } => write!(f, "mmap of {}", path.display()),
            MemorySource::MmapHuge(_) => f.write_str("mmap(MAP_HUGETLB)"),
            MemorySource::Shm => f.write_str("shmget"),
            MemorySource::ShmHuge(_) => f.write_str("shmget(SHM_HUGETLB)"),
        }
    }
}

/// A failed allocation: what was tried, why it failed, and what would help.
#[derive(Debug)]
pub struct MemoryError {
    /// The source that was tried.
    pub origin: MemorySource,
    /// The size in bytes.
    pub len_bytes: usize,
    /// The kernel's error.
    pub error: io::Error,
}

impl MemoryError {
    /// What a user can do about it, if known.
    pub fn remedy(&self) -> Option<&'static str> {
        let errno = Errno::of(&self.error)?.0;
        match (&self.origin, errno) {
            (MemorySource::MmapHuge(_) | MemorySource::ShmHuge(_), libc::ENOMEM) => {
                Some("reserve huge pages: echo N > /proc/sys/vm/nr_hugepages")
            }
            (MemorySource::MmapHuge(_) | MemorySource::ShmHuge(_), libc::EINVAL) => {
                Some("the kernel has no huge pages of this size: see /sys/kernel/mm/hugepages")
            }
            (MemorySource::ShmHuge(_), libc::EPERM) => {
                Some("run as root or join the group in /proc/sys/vm/hugetlb_shm_group")
            }
            (MemorySource::Shm | MemorySource::ShmHuge(_), libc::EINVAL | libc::ENOSPC) => {
                Some("raise the limits in /proc/sys/kernel/shmmax, shmall and shmmni")
            }
            (MemorySource::MmapFile { .. }, libc::ENOSPC | libc::EDQUOT) => {
                Some("free space there, or ask for fewer or smaller buffers (iodepth, bs, numjobs)")
            }
            (_, libc::ENOMEM) => Some("ask for fewer or smaller buffers (iodepth, bs, numjobs)"),
            _ => None,
        }
    }
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes failed: ", self.origin, self.len_bytes)?;
        write!(f, "{}", error_text(&self.error))?;
        match self.remedy() {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for MemoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// An owned piece of memory.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    len_bytes: usize,
    owner: Owner,
}

/// What frees the memory; `start` may lie inside it, rounded up to the alignment.
#[derive(Debug)]
enum Owner {
    Allocator(NonNull<libc::c_void>),
    Mapped { _mapping: Mapping },
    Shared(NonNull<libc::c_void>),
}

// SAFETY: a region is plain memory with one owner, and none of its sources is tied to a thread.
unsafe impl Send for Region {}
// SAFETY: through a shared reference only the address, the length and reads can be had.
unsafe impl Sync for Region {}

impl Region {
    /// Allocates `len_bytes` (at least one) aligned to `align_bytes`, a power of two.
    pub fn allocate(
        source: &MemorySource,
        len_bytes: usize,
        align_bytes: usize,
    ) -> Result<Region, MemoryError> {
        let result = match source {
            _ if len_bytes == 0 || !align_bytes.is_power_of_two() => {
                Err(io::Error::from_raw_os_error(libc::EINVAL))
            }
            MemorySource::Malloc => Region::from_allocator(len_bytes, align_bytes),
            MemorySource::Shm => Region::from_shm(len_bytes, align_bytes, None),
            MemorySource::ShmHuge(pages) => Region::from_shm(len_bytes, align_bytes, Some(*pages)),
            mapped => map_source(mapped, slack(len_bytes, align_bytes))
                .and_then(|mapping| Region::from_mapping(mapping, len_bytes, align_bytes)),
        };
        result.map_err(|error| MemoryError { origin: source.clone(), len_bytes, error })
    }

    /// By `calloc`, which does not touch large blocks because fresh pages are zeroed already. Rust's own function for
    /// aligned, zeroed memory writes all of it.
    fn from_allocator(len_bytes: usize, align_bytes: usize) -> io::Result<Region> {
        let no_memory = || io::Error::from_raw_os_error(libc::ENOMEM);
        let whole_bytes = len_bytes.checked_add(align_bytes).ok_or_else(no_memory)?;
        // SAFETY: no memory is passed.
        let whole = NonNull::new(unsafe { libc::calloc(1, whole_bytes) }).ok_or_else(no_memory)?;
        let start = aligned(whole.as_ptr().cast(), whole_bytes, len_bytes, align_bytes)?;
        Ok(Region { start, len_bytes, owner: Owner::Allocator(whole) })
    }

    fn from_mapping(mapping: Mapping, len_bytes: usize, align_bytes: usize) -> io::Result<Region> {
        let start = aligned(mapping.as_ptr(), mapping.len_bytes(), len_bytes, align_bytes)?;
        Ok(Region { start, len_bytes, owner: Owner::Mapped { _mapping: mapping } })
    }

    fn from_shm(len_bytes: usize, align_bytes: usize, huge: Option<HugePages>) -> io::Result<Region> {
        const MODE: libc::c_int = 0o600;
        let whole_bytes = round_up(slack(len_bytes, align_bytes), page_size(huge))?;
        let flags = huge.map_or(0, |pages| libc::SHM_HUGETLB | pages.size_flag());
        // SAFETY: no memory is passed.
        let id =
            check(unsafe { libc::shmget(libc::IPC_PRIVATE, whole_bytes, libc::IPC_CREAT | MODE | flags) })?;
        // SAFETY: no address is requested, so no existing mapping is touched.
        let attached = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        let failure = (attached as isize == -1).then(io::Error::last_os_error);
        // Marked for removal at once: the kernel keeps it while it is attached, and frees it even if this process is
        // killed.
        // SAFETY: IPC_RMID reads no memory.
        unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        if let Some(error) = failure {
            return Err(error);
        }
        let attached = NonNull::new(attached).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let start = aligned(attached.as_ptr().cast(), whole_bytes, len_bytes, align_bytes)?;
        Ok(Region { start, len_bytes, owner: Owner::Shared(attached) })
    }

    /// Its first byte: valid for reads and writes of `len_bytes` while the region lives.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Keeps its pages in memory (`mlock`) until it is dropped.
    pub fn lock(&self) -> io::Result<()> {
        // SAFETY: the range is this region's.
        Ok(unsafe { rustix::mm::mlock(self.start.as_ptr().cast(), self.len_bytes) }?)
    }

    /// Its length in bytes, as requested.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match &self.owner {
            // SAFETY: it came from the allocator and goes away now.
            Owner::Allocator(whole) => unsafe { libc::free(whole.as_ptr()) },
            Owner::Mapped { .. } => {}
            // SAFETY: attached by this region, which goes away now.
            Owner::Shared(attached) => unsafe {
                libc::shmdt(attached.as_ptr());
            },
        }
    }
}

/// Allocates `len_bytes` of memory and locks it, so that less is left for everything else.
pub fn pin(len_bytes: usize) -> Result<Region, MemoryError> {
    let region = Region::allocate(&MemorySource::Mmap, len_bytes, page_bytes())?;
    match region.lock() {
        Ok(()) => Ok(region),
        Err(error) => Err(MemoryError { origin: MemorySource::Mmap, len_bytes, error }),
    }
}

fn map_source(source: &MemorySource, len_bytes: usize) -> io::Result<Mapping> {
    match source {
        MemorySource::MmapFile { file, sharing, .. } => map_file(file, len_bytes, *sharing),
        MemorySource::MmapShared => Mapping::anonymous(len_bytes, Sharing::Shared, None),
        MemorySource::MmapHuge(pages) => {
            let whole_bytes = round_up(len_bytes, page_size(Some(*pages)))?;
            Mapping::anonymous(whole_bytes, Sharing::Private, Some(*pages))
        }
        _ => Mapping::anonymous(len_bytes, Sharing::Private, None),
    }
}

/// Maps the start of a file, grown to fit. On a huge page file system the length has to be whole pages of its size,
/// which the file system reports as its block size.
fn map_file(file: &File, len_bytes: usize, sharing: Sharing) -> io::Result<Mapping> {
    let block_bytes = usize::try_from(crate::stat::file_system_of(file)?.block_bytes).unwrap_or(1);
    let whole_bytes = round_up(len_bytes, block_bytes.max(page_bytes()))?;
    let found = file.metadata()?;
    if found.len() < whole_bytes as u64 {
        file::truncate(file, whole_bytes as u64)?;
    }
    if found.is_file() {
        // A page of a full file system ends the process when it is touched. Not every file system can reserve space.
        match file::allocate(file, Allocate::Posix, 0, whole_bytes as u64) {
            Err(error) if Errno::of(&error).is_some_and(Errno::is_no_space) => return Err(error),
            _ => {}
        }
    }
    Mapping::of_file(file.as_fd(), 0, whole_bytes, Protection::ReadWrite, sharing)
}

/// Mappings are aligned to pages; for more, the mapping is larger and the region starts inside it.
fn slack(len_bytes: usize, align_bytes: usize) -> usize {
    if align_bytes <= page_bytes() { len_bytes } else { len_bytes.saturating_add(align_bytes) }
}

fn aligned(
    start: *mut u8,
    whole_bytes: usize,
    len_bytes: usize,
    align_bytes: usize,
) -> io::Result<NonNull<u8>> {
    let skip_bytes = start.align_offset(align_bytes);
    assert!(skip_bytes <= whole_bytes && whole_bytes - skip_bytes >= len_bytes, "slack was not enough");
    NonNull::new(start.wrapping_add(skip_bytes)).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

fn page_size(huge: Option<HugePages>) -> usize {
    const COMMON_HUGE_BYTES: usize = 2 << 20;
    match huge {
        None => page_bytes(),
        Some(HugePages { page_bytes: Some(bytes) }) => usize::try_from(bytes).unwrap_or(COMMON_HUGE_BYTES),
        Some(HugePages { page_bytes: None }) => default_huge_page_bytes().unwrap_or(COMMON_HUGE_BYTES),
    }
}

fn default_huge_page_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kib| kib * 1024)
}

fn round_up(len_bytes: usize, unit_bytes: usize) -> io::Result<usize> {
    len_bytes.checked_next_multiple_of(unit_bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempFile;

    fn fill_and_check(source: &MemorySource) -> Result<(), MemoryError> {
        for (len_bytes, align_bytes) in [(1, 1), (4096, 512), (10_000, 4096), (1 << 16, 1 << 16)] {
            let region = Region::allocate(source, len_bytes, align_bytes)?;
            assert_eq!(region.len_bytes(), len_bytes);
            assert_eq!(region.as_ptr() as usize % align_bytes, 0, "{source} is not aligned to {align_bytes}");
            // SAFETY: the region has this length, and no other code has its address.
            let bytes = unsafe { std::slice::from_raw_parts_mut(region.as_ptr(), len_bytes) };
            assert!(bytes.iter().all(|&byte| byte == 0), "{source} is not zeroed");
            bytes.fill(0xa5);
        }
        Ok(())
    }

    #[test]
    fn every_ordinary_source_is_aligned_zeroed_and_writable() {
        for source in [MemorySource::Malloc, MemorySource::Mmap, MemorySource::MmapShared, MemorySource::Shm]
        {
            fill_and_check(&source).unwrap();
        }
    }

    #[test]
    fn memory_is_allocated_and_not_touched() {
        for source in [MemorySource::Malloc, MemorySource::Mmap, MemorySource::MmapShared] {
            let region = Region::allocate(&source, 64 << 20, 4096).unwrap();
            let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let end = region.as_ptr() as usize + region.len_bytes();
            let mut lines = text.lines().skip_while(|line| {
                let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                let hex = |text: &str| usize::from_str_radix(text, 16).ok();
                !range.is_some_and(|(low, high)| hex(low) < Some(end) && Some(end) <= hex(high))
            });
            let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
            let kib: u64 = resident.split_whitespace().next().unwrap().parse().unwrap();
            // The kernel may have merged the mapping with those of other tests.
            assert!(kib < 32 << 10, "{source}: {kib} KiB are resident");
        }
    }

    #[test]
    fn a_private_mapping_does_not_change_its_file() {
        let temp = TempFile::new("region");
        let file = Arc::new(temp.file.try_clone().unwrap());
        let source = MemorySource::MmapFile { path: temp.path.clone(), file, sharing: Sharing::Private };
        fill_and_check(&source).unwrap();
        let bytes = std::fs::read(&temp.path).unwrap();
        assert!(bytes.len() >= 1 << 16 && bytes.iter().all(|&byte| byte == 0));
    }

    #[test]
    fn huge_pages_work_or_the_error_names_a_remedy() {
        let pages = HugePages { page_bytes: None };
        for source in [MemorySource::MmapHuge(pages), MemorySource::ShmHuge(pages)] {
            if let Err(error) = fill_and_check(&source) {
                let text = error.to_string();
                assert!(text.starts_with(&source.to_string()), "{text}");
                assert!(error.remedy().is_some(), "no remedy for: {text}");
                fiord_testing::skipped(format_args!("no huge pages here: {text}"));
            }
        }
    }

    #[test]
    fn invalid_sizes_are_refused() {
        assert!(Region::allocate(&MemorySource::Malloc, 0, 512).is_err());
        assert!(Region::allocate(&MemorySource::Mmap, 512, 3).is_err());
        let error = Region::allocate(&MemorySource::Mmap, usize::MAX / 2, 4096).unwrap_err();
        assert!(error.to_string().contains("ENOMEM"), "{error}");
    }

    #[test]
    fn a_little_memory_can_be_pinned() {
        match pin(4096) {
            Ok(region) => assert_eq!(region.len_bytes(), 4096),
            Err(error) => fiord_testing::skipped(format_args!("no memory may be locked: {error}")),
        }
    }
}

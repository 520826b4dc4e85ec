//! Pages of a mapped file can become inaccessible: the file shrank, or the disk failed. The kernel then sends `SIGBUS`,
//! which would end the process; here it becomes an error.
//!
//! Invariant: the handler acts only on an address inside the range that the faulting thread has announced, and then
//! only maps zeros there. Any other `SIGBUS` goes to the previous handler.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

use fiord_sys::map::page_bytes;

/// The range a thread is accessing, the size of what is mapped in the place of what is inaccessible, and whether it faulted.
/// Atomics because a signal handler reads and writes them between any two instructions of the thread; no other thread does.
struct Watch {
    start: AtomicUsize,
    end: AtomicUsize,
    /// 0 stands for a page.
    unit_bytes: AtomicUsize,
    hit: AtomicBool,
}

thread_local! {
    // Constant and without a destructor, so that the handler finds it without initialising anything.
    static WATCH: Watch = const {
        Watch {
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            unit_bytes: AtomicUsize::new(0),
            hit: AtomicBool::new(false),
        }
    };
}

static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// The previous handler.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the handler, once per process.
///
/// # Errors
/// The kernel's.
pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED.get_or_init(install_now).map_err(io::Error::from_raw_os_error)
}

fn install_now() -> Result<(), i32> {
    let last_errno = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
    PAGE_BYTES.store(page_bytes(), Ordering::Relaxed);
    // SAFETY: all zeros is a valid `sigaction`; the calls read and write exactly one each. The previous action is
    // stored before the handler can run.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut previous) != 0 {
            return Err(last_errno());
        }
        let _ = PREVIOUS.set(previous);
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = on_sigbus as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        if libc::sigaction(libc::SIGBUS, &raw const ours, std::ptr::null_mut()) != 0 {
            return Err(last_errno());
        }
    }
    Ok(())
}

/// Runs `touch`, which may read and write `length_bytes` from `start`; returns whether all of it was accessible.
/// Otherwise zeros were read and writes are lost; the mapping is then no longer that of the file, and has to be mapped
/// again.
#[inline]
pub(crate) fn all_there(start: *const u8, length_bytes: usize, touch: impl FnOnce()) -> bool {
    WATCH.with(|watch| {
        watch.start.store(start as usize, Ordering::Relaxed);
        watch.end.store(start as usize + length_bytes, Ordering::Relaxed);
        // The handler runs on this thread, so only the compiler must not reorder these.
        compiler_fence(Ordering::SeqCst);
        touch();
        compiler_fence(Ordering::SeqCst);
        watch.end.store(0, Ordering::Relaxed);
        !watch.hit.load(Ordering::Relaxed) || !watch.hit.swap(false, Ordering::Relaxed)
    })
}

/// The same in a mapping of which only multiples of `unit_bytes`, a power of two, can be replaced, and which consists of
/// them.
pub(crate) fn all_there_in(
    unit_bytes: usize,
    start: *const u8,
    length_bytes: usize,
    touch: impl FnOnce(),
) -> bool {
    WATCH.with(|watch| watch.unit_bytes.store(unit_bytes, Ordering::Relaxed));
    let all_there = all_there(start, length_bytes, touch);
    WATCH.with(|watch| watch.unit_bytes.store(0, Ordering::Relaxed));
    all_there
}

/// Calls only async-signal-safe functions, and preserves `errno`.
extern "C" fn on_sigbus(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info`, and `si_addr` is set for SIGBUS; `errno` is this thread's own.
    let (address, errno_place) = unsafe { ((*info).si_addr() as usize, libc::__errno_location()) };
    // SAFETY: as above.
    let errno = unsafe { *errno_place };
    let handled = WATCH.try_with(|watch| cover(watch, address)).unwrap_or(false);
    if !handled {
        pass_on(signal);
    }
    // SAFETY: as above.
    unsafe { *errno_place = errno };
}

/// Maps zeros where the thread faulted, if that is in the announced range.
fn cover(watch: &Watch, address: usize) -> bool {
    let (start, end) = (watch.start.load(Ordering::Relaxed), watch.end.load(Ordering::Relaxed));
    if address < start || address >= end {
        return false;
    }
    watch.hit.store(true, Ordering::Relaxed);
    let unit_bytes = match watch.unit_bytes.load(Ordering::Relaxed) {
        0 => PAGE_BYTES.load(Ordering::Relaxed),
        unit_bytes => unit_bytes,
    };
    let unit = (address & !(unit_bytes - 1)) as *mut libc::c_void;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the unit is part of a file mapping that this thread owns and is touching now.
    let covered = unsafe { libc::mmap64(unit, unit_bytes, protection, flags, -1, 0) };
    covered != libc::MAP_FAILED
}

/// Restores the previous handler: the instruction faults again on return.
fn pass_on(signal: libc::c_int) {
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: it is the value that `sigaction` returned.
        unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    use fiord_sys::map::{Mapping, Protection, Sharing};

    /// Two pages mapped from a file that was then truncated to zero.
    fn vanished() -> Mapping {
        // SAFETY: the name is a C string; the new descriptor is owned right away.
        let file = unsafe {
            use std::os::fd::FromRawFd;
            std::fs::File::from_raw_fd(libc::memfd_create(c"fiord-engine-sigbus".as_ptr(), libc::MFD_CLOEXEC))
        };
        file.set_len(2 * page_bytes() as u64).unwrap();
        let (access, sharing) = (Protection::ReadWrite, Sharing::Shared);
        let mapping = Mapping::of_file(file.as_fd(), 0, 2 * page_bytes(), access, sharing).unwrap();
        file.set_len(0).unwrap();
        mapping
    }

    #[test]
    fn inaccessible_memory_reads_as_zeros_and_is_reported() {
        install().unwrap();
        let mapping = vanished();
        let length = mapping.len_bytes();
        let mut copy = vec![7_u8; length];
        // SAFETY: both are `length` bytes long and do not overlap.
        let copied = all_there(mapping.as_ptr(), length, || unsafe {
            std::ptr::copy_nonoverlapping(mapping.as_ptr(), copy.as_mut_ptr(), length);
        });
        assert!(!copied && copy.iter().all(|&byte| byte == 0));
        // The next access is checked separately.
        assert!(all_there(copy.as_ptr(), length, || copy.fill(1)));
    }

    #[test]
    fn a_fault_elsewhere_still_ends_the_process() {
        install().unwrap();
        let mapping = vanished();
        // SAFETY: the child touches memory and makes system calls, nothing that needs a lock of another thread.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: as above; the read is of mapped memory, and meant to fault.
            unsafe {
                libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
                mapping.as_ptr().read_volatile();
                libc::_exit(0);
            }
        }
        let mut status = 0;
        // SAFETY: the kernel writes one status.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGBUS, "status {status:#x}");
    }
}

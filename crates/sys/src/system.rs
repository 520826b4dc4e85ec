//! What system calls tell of the machine, where `/proc` may be missing: its name, its kernel, its memory.
//!
//! Invariant: one system call each, which cannot fail with a valid pointer.

use std::ffi::CStr;

use crate::procfs::{self, MemoryInfo};

/// The name that programs see, and the kernel's release, `6.12.1-amd64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// This machine's name.
    pub host: String,
    /// The kernel's release.
    pub kernel_release: String,
}

/// `uname`.
pub fn names() -> Names {
    // SAFETY: an all-zero `utsname` is a valid value, and the kernel writes one, whose texts end with NUL.
    let (host, release) = unsafe {
        let mut names: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut names);
        let text = |text: &[libc::c_char]| CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
        (text(&names.nodename), text(&names.release))
    };
    Names { host, kernel_release: release }
}

/// Memory, from `/proc/meminfo`; without it, what `sysinfo` tells, which does not count the page cache as available.
pub fn memory() -> MemoryInfo {
    procfs::memory().unwrap_or_else(|_| {
        // SAFETY: an all-zero `sysinfo` is a valid value, and the kernel writes one.
        let found = unsafe {
            let mut found: libc::sysinfo = std::mem::zeroed();
            libc::sysinfo(&raw mut found);
            found
        };
        #[allow(clippy::unnecessary_cast, reason = "it is one where a long has eight bytes")]
        let bytes = |units: libc::c_ulong| units as u64 * u64::from(found.mem_unit);
        MemoryInfo {
            total_bytes: bytes(found.totalram),
            free_bytes: bytes(found.freeram),
            available_bytes: bytes(found.freeram + found.bufferram),
            ..MemoryInfo::default()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sources_agree() {
        let names = names();
        let line = |path: &str| std::fs::read_to_string(path).unwrap().trim_end().to_string();
        assert_eq!(names.host, line("/proc/sys/kernel/hostname"));
        assert_eq!(names.kernel_release, line("/proc/sys/kernel/osrelease"));
        let memory = memory();
        assert!(memory.total_bytes >= memory.available_bytes && memory.available_bytes > 0, "{memory:?}");
    }
}

//! Disk quotas: the space that a user, a group or a project may take on a file system.
//!
//! Invariant: only limits that the kernel tells are told; whether they are enforced is for the caller to find out.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

use crate::errno::{check, check_long};

/// Who a quota is of, with the kernel's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum QuotaOf {
    /// `USRQUOTA`: the owner of the files.
    User = 0,
    /// `GRPQUOTA`: their group.
    Group = 1,
    /// `PRJQUOTA`: the project of their directory.
    Project = 2,
}

impl QuotaOf {
    /// `user`, `group`, `project`.
    pub fn word(self) -> &'static str {
        match self {
            QuotaOf::User => "user",
            QuotaOf::Group => "group",
            QuotaOf::Project => "project",
        }
    }
}

/// A limit of space, and how much of it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most bytes that may be taken (the hard limit).
    pub limit_bytes: u64,
    /// Bytes taken.
    pub used_bytes: u64,
}

/// The number of `quotactl_fd(2)` on all architectures that Rust's standard library has for Linux.
const SYS_QUOTACTL_FD: libc::c_long = 443;
const Q_GETQUOTA: u32 = 0x80_0007;
/// Limits are in such blocks.
const BLOCK_BYTES: u64 = 1024;

/// `struct if_dqblk`.
#[derive(Default)]
#[repr(C)]
struct Record {
    hard_blocks: u64,
    soft_blocks: u64,
    used_bytes: u64,
    hard_inodes: u64,
    soft_inodes: u64,
    used_inodes: u64,
    block_time: u64,
    inode_time: u64,
    valid: u32,
}

/// The limit of space of one user, group or project on the file system of an open file; `None` if there is none.
///
/// # Errors
/// `ESRCH` where such quotas are off, `EPERM` for somebody else's, `ENOSYS` before Linux 5.14.
pub fn limit(file: impl AsFd, of: QuotaOf, id: u32) -> io::Result<Option<Limit>> {
    let mut record = Record::default();
    let command = (Q_GETQUOTA << 8) | of as u32;
    // SAFETY: the kernel writes one record, which lives until the call has returned.
    let done = unsafe {
        libc::syscall(SYS_QUOTACTL_FD, file.as_fd().as_raw_fd(), command, id, std::ptr::from_mut(&mut record))
    };
    check_long(done)?;
    let limit_bytes = record.hard_blocks.saturating_mul(BLOCK_BYTES);
    Ok((limit_bytes > 0).then_some(Limit { limit_bytes, used_bytes: record.used_bytes }))
}

/// `struct fsxattr`.
#[derive(Default)]
#[repr(C)]
struct Attributes {
    flags: u32,
    extent_bytes: u32,
    extents: u32,
    project: u32,
    shared_extent_bytes: u32,
    padding: [u8; 8],
}

const FS_IOC_FSGETXATTR: libc::Ioctl = libc::_IOR::<Attributes>(b'X' as u32, 31);
const FS_XFLAG_PROJINHERIT: u32 = 0x200;

/// Who pays for what is written into a file, or for files that this process creates in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payers {
    /// The owner.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// The project, if the file system has any; 0 is the kernel's word for none.
    pub project: u32,
}

/// Who pays for an open file or directory.
///
/// # Errors
/// The kernel's.
pub fn payers(file: &File) -> io::Result<Payers> {
    let found = file.metadata()?;
    let mut attributes = Attributes::default();
    // SAFETY: the kernel writes one structure, which lives until the call has returned.
    let read =
        unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FSGETXATTR, std::ptr::from_mut(&mut attributes)) };
    let applies = !found.is_dir() || attributes.flags & FS_XFLAG_PROJINHERIT != 0;
    let project = if check(read).is_ok() && applies { attributes.project } else { 0 };
    if !found.is_dir() {
        return Ok(Payers { user: found.uid(), group: found.gid(), project });
    }
    let passes_group_on = found.mode() & libc::S_ISGID != 0;
    let own_group = rustix::process::getegid().as_raw();
    let group = if passes_group_on { found.gid() } else { own_group };
    Ok(Payers { user: rustix::process::geteuid().as_raw(), group, project })
}

/// Whether this process may exceed limits where the file system lets privileged ones (`CAP_SYS_RESOURCE`).
pub fn may_exceed() -> bool {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    effective.is_none_or(|effective| effective & CAP_SYS_RESOURCE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_pays_is_told_of_files_and_directories() {
        let directory = File::open(std::env::temp_dir()).unwrap();
        let me = rustix::process::geteuid().as_raw();
        assert_eq!(payers(&directory).unwrap().user, me);
        let own = File::open(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(payers(&own).unwrap().user, own.metadata().unwrap().uid());
    }

    #[test]
    fn a_file_system_without_quotas_has_no_limit() {
        let proc = File::open("/proc/self/status").unwrap();
        for of in [QuotaOf::User, QuotaOf::Group, QuotaOf::Project] {
            assert!(limit(&proc, of, 0).is_err(), "{}", of.word());
        }
    }
}

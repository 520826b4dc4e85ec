//! Landlock: what this process, and all that it starts, may do with files from now on.
//!
//! Invariant: a fence can only be made narrower. What is open already stays open. Numbers are those of `linux/landlock.h`.

use std::fs::File;
use std::io;
use std::ops::BitOr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::errno::{check, check_long};

/// The calls' numbers, which are the same on all processors.
const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;

/// Things that are done with files: a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(u64);

impl Access {
    /// Nothing.
    pub const NONE: Access = Access(0);
    /// Running them.
    pub const EXECUTE: Access = Access(1);
    /// Reading files and directories.
    pub const READ: Access = Access(0b1100);
    /// Writing and truncating them, making and removing all but devices, and commands to devices.
    pub const WRITE: Access = Access(0b1111_0111_1011_0010);
    /// Making devices.
    const MAKE_DEVICES: Access = Access(1 << 6 | 1 << 11);
    /// Moving files between directories, which every fence forbids that does not allow it. A part of writing.
    pub const MOVE: Access = Access(1 << 13);
    /// What applies to a file that is no directory.
    const OF_FILES: Access = Access(0b1100_0000_0000_0111);

    /// What both sets have.
    fn and(self, other: Access) -> Access {
        Access(self.0 & other.0)
    }
}

impl BitOr for Access {
    type Output = Access;

    fn bitor(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// A fence that is being made; it holds once it is closed.
#[derive(Debug)]
pub struct Fence {
    rules: OwnedFd,
    handled: Access,
}

/// Arguments of the kernel.
#[repr(C)]
struct Handled {
    access: u64,
}

#[repr(C, packed)]
struct Beneath {
    access: u64,
    directory: i32,
}

/// The kernel's version of Landlock.
///
/// # Errors
/// `ENOSYS`, `EOPNOTSUPP`: it has none, or has it switched off.
pub fn version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the kernel reads no argument.
    let found = unsafe { libc::syscall(CREATE_RULESET, std::ptr::null::<Handled>(), 0, VERSION) };
    check_long(found).map(|version| u32::try_from(version).unwrap_or(0))
}

/// What this version of Landlock knows.
fn known(version: u32) -> Access {
    let bits = match version {
        0 | 1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    Access((1 << bits) - 1)
}

impl Fence {
    /// A fence around these: none of them is allowed, but for what [`Fence::allow`] lets through. Whoever may not write may
    /// not make devices either, and nobody moves files between directories ([`Access::MOVE`]).
    ///
    /// # Errors
    /// Those of [`version`].
    pub fn around(access: Access) -> io::Result<Fence> {
        let devices =
            if access.and(Access::WRITE) == Access::NONE { Access::NONE } else { Access::MAKE_DEVICES };
        let handled = (access | devices | Access::MOVE).and(known(version()?));
        let attributes = Handled { access: handled.0 };
        // SAFETY: a structure of this length, which lives during the call.
        let fd = check_long(unsafe {
            libc::syscall(CREATE_RULESET, &raw const attributes, size_of::<Handled>(), 0)
        })?;
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just opened it, for nobody else.
        Ok(Fence { rules: unsafe { OwnedFd::from_raw_fd(fd) }, handled })
    }

    /// Lets this through for a path and all below it.
    ///
    /// # Errors
    /// The path cannot be opened.
    #[allow(clippy::disallowed_methods, reason = "opened as a place alone: O_PATH reads and changes nothing")]
    pub fn allow(&self, path: &Path, access: Access) -> io::Result<()> {
        let place = File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path)?;
        let of_kind = if place.metadata()?.is_dir() { access } else { access.and(Access::OF_FILES) };
        let allowed = of_kind.and(self.handled);
        if allowed == Access::NONE {
            return Ok(());
        }
        let rule = Beneath { access: allowed.0, directory: place.as_raw_fd() };
        const PATH_BENEATH: u32 = 1;
        // SAFETY: a structure of the kind that the number names, which lives during the call, as the descriptor in it does.
        let added =
            unsafe { libc::syscall(ADD_RULE, self.rules.as_raw_fd(), PATH_BENEATH, &raw const rule, 0) };
        check_long(added).map(drop)
    }

    /// Holds from now on for this thread and all that it starts, which also gain no privileges by running others' programs.
    ///
    /// # Errors
    /// The kernel's.
    pub fn close(self) -> io::Result<()> {
        // SAFETY: numbers alone.
        check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
        // SAFETY: a descriptor that is open, and no flags.
        check_long(unsafe { libc::syscall(RESTRICT_SELF, self.rules.as_raw_fd(), 0) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_behind_a_fence_writes_below_the_directory_alone_and_runs_nothing() {
        if let Err(error) = version() {
            fiord_testing::skip!("this kernel has no Landlock: {error}");
        }
        let directory = std::env::temp_dir().join(format!("fiord-fence-{}", std::process::id()));
        let (inside, outside) = (directory.join("in"), directory.join("out"));
        let there = outside.clone();
        [&inside, &outside].iter().for_each(|path| std::fs::create_dir_all(path).unwrap());
        std::fs::write(outside.join("there"), "x").unwrap();
        let fenced = std::thread::spawn(move || {
            let fence = Fence::around(Access::EXECUTE | Access::READ | Access::WRITE).unwrap();
            fence.allow(&inside, Access::READ | Access::WRITE).unwrap();
            fence.allow(Path::new("/dev/null"), Access::WRITE).unwrap();
            fence.close().unwrap();
            std::fs::write(inside.join("new"), "y").unwrap();
            std::fs::read(inside.join("new")).unwrap();
            std::fs::remove_file(inside.join("new")).unwrap();
            std::fs::write("/dev/null", "z").unwrap();
            std::os::unix::fs::symlink(outside.join("there"), inside.join("link")).unwrap();
            let denied =
                |result: io::Result<()>| result.unwrap_err().kind() == io::ErrorKind::PermissionDenied;
            assert!(denied(std::fs::write(outside.join("new"), "y")));
            assert!(denied(std::fs::read(outside.join("there")).map(drop)));
            assert!(denied(std::fs::read(inside.join("link")).map(drop)), "links lead nowhere else");
            assert!(denied(std::fs::read_dir("/").map(drop)));
            assert!(denied(std::process::Command::new("/bin/true").status().map(drop)));
        });
        fenced.join().unwrap();
        std::fs::write(there.join("new"), "y").unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

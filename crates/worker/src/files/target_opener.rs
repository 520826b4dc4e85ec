//! The target opener: every file that opening, creating or removing may change goes through it.
//!
//! Invariant: an opened file is of the planned kind and not in use when it is opened; a device stays claimed for as
//! long as it is written to. The checks that planning made before the run are repeated here.

#![allow(clippy::disallowed_methods, reason = "this is the opener of targets")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fiord_host::{Claim, Users};
use fiord_plan::{FileKind, FilePlan, Job, Plan};
use fiord_sys::clock;
use fiord_sys::errno::Errno;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::stat::{self, DeviceNumber, Identity, InodeKind, Stat};
use fiord_sys::sysfs::{BlockBehind, Sysfs};

use super::claim::{Claims, Held};
use crate::failure::Failure;
use crate::states::States;

/// How long a reading of which files are in use stays valid.
const BELIEVED_NS: u64 = 100_000_000;

/// Opens files and checks them.
#[derive(Debug, Default)]
pub struct TargetOpener {
    claims: Claims,
    /// Disks written to as a whole: a job on one of their partitions claims the disk, since both cannot be claimed.
    disks: BTreeSet<DeviceNumber>,
    seen: Mutex<Option<Arc<Seen>>>,
    /// Held during a reading, which may hang if a file system does.
    looking: Mutex<()>,
    /// Where states of verification are kept, if not in files.
    pub(crate) states: Option<Arc<dyn States>>,
}

/// A recent reading of which files are in use.
#[derive(Debug)]
struct Seen {
    at_ns: u64,
    users: Users,
    files: Vec<(Identity, Claim)>,
}

/// A file beside the one that it is to replace, which it does once it is kept.
#[derive(Debug)]
pub struct Replacement {
    /// The file, open for writing.
    pub file: File,
    path: PathBuf,
    beside: PathBuf,
    target: PathBuf,
    is_kept: bool,
}

impl Replacement {
    /// Stores what was written so far, and puts the file in its place. More may be written to it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn keep(&mut self) -> Result<(), Failure> {
        let kept = self.file.sync_all().and_then(|()| std::fs::rename(&self.beside, &self.target));
        kept.map_err(|error| Failure::file("write", &self.path, &error))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

impl TargetOpener {
    /// The opener for a run of this plan.
    pub(crate) fn of(plan: &Plan) -> TargetOpener {
        let written = plan.jobs.iter().filter(|job| job.files.writable).flat_map(|job| &job.files.list);
        let numbers = written.flat_map(claimable).map(|(_, number)| number);
        TargetOpener { disks: numbers.collect(), ..TargetOpener::default() }
    }

    /// Discards the last reading, since a user's command has run or time has passed. Never waits for a reading.
    pub(crate) fn invalidate(&self) {
        *lock(&self.seen) = None;
    }

    fn seen(&self) -> Arc<Seen> {
        self.users_besides(&[])
    }

    /// The users of files other than this run, which has claimed these devices. Concurrent callers share one reading.
    fn users_besides(&self, claimed: &[DeviceNumber]) -> Arc<Seen> {
        let holds = |seen: &Arc<Seen>| claimed.iter().all(|number| seen.users.ours().contains(number));
        let is_new = |seen: &Arc<Seen>| clock::monotonic_ns().saturating_sub(seen.at_ns) < BELIEVED_NS;
        let known = || lock(&self.seen).clone().filter(is_new).filter(holds);
        if let Some(known) = known() {
            return known;
        }
        let _looking = lock(&self.looking);
        if let Some(known) = known() {
            return known;
        }
        let users = Users::beside(self.claims.held());
        let new = Arc::new(Seen { files: users.files(), users, at_ns: clock::monotonic_ns() });
        *lock(&self.seen) = Some(Arc::clone(&new));
        new
    }

    /// Claims the block devices that the job writes to, until the result is dropped.
    ///
    /// # Errors
    /// The current user of one of them, or the kernel's error.
    pub(crate) fn claim(&self, job: &Job) -> Result<Option<Held>, Failure> {
        let files = &job.files;
        if !files.writable || files.allow_in_use {
            return Ok(None);
        }
        let mut devices: Vec<(PathBuf, DeviceNumber)> = Vec::new();
        for (path, number) in files.list.iter().flat_map(claimable) {
            let unit = self.unit(&path, number);
            if !devices.contains(&unit) {
                devices.push(unit);
            }
        }
        let is_storage = |plan: &&FilePlan| plan.kind == FileKind::Block || !behind(plan).is_empty();
        if devices.is_empty() && !files.list.iter().any(|plan| is_storage(&plan)) {
            return Ok(None);
        }
        let held = self.claims.take(&devices).map_err(|(path, error)| self.not_claimed(&path, &error))?;
        // Uses that the kernel does not treat as a claim: loop devices on it, and its backing file.
        let claimed: Vec<DeviceNumber> = devices.iter().map(|(_, number)| *number).collect();
        let seen = self.users_besides(&claimed);
        for plan in files.list.iter().filter(is_storage) {
            let found =
                stat::stat(&plan.path).map_err(|error| Failure::file("look at", &plan.path, &error))?;
            if let Some(claim) = seen.users.on(&plan.path, &found).first() {
                return Err(in_use("claim", &plan.path, claim));
            }
        }
        Ok(held)
    }

    /// The device to claim: itself, or the disk it is a partition of if the run writes to that as well.
    fn unit(&self, path: &Path, number: DeviceNumber) -> (PathBuf, DeviceNumber) {
        let disk = Sysfs::default().block_device_of(number).ok().map(|device| device.disk());
        let whole = disk.and_then(|disk| Some((disk.path(), disk.number()?)));
        let whole = whole.filter(|(_, disk)| *disk != number && self.disks.contains(disk));
        whole.unwrap_or_else(|| (path.to_owned(), number))
    }

    fn not_claimed(&self, path: &Path, error: &io::Error) -> Failure {
        if error.kind() != io::ErrorKind::ResourceBusy {
            return Failure::file("claim", path, error);
        }
        let users = Users::beside(self.claims.held());
        let claims = stat::stat(path).map(|found| users.on(path, &found)).unwrap_or_default();
        in_use("claim", path, claims.first().unwrap_or(&Claim::Exclusive))
    }

    /// Opens a file of a job. `guarded`: it must not be in use.
    ///
    /// # Errors
    /// The kernel's; or the file is not of the planned kind, or is in use.
    pub(crate) fn open(&self, plan: &FilePlan, how: &OpenHow, guarded: bool) -> Result<File, Failure> {
        self.open_and_look(plan, how, guarded).map(|(open, _)| open)
    }

    /// The same, with what was found when it was open.
    ///
    /// # Errors
    /// As `open`.
    pub(crate) fn open_and_look(
        &self,
        plan: &FilePlan,
        how: &OpenHow,
        guarded: bool,
    ) -> Result<(File, Stat), Failure> {
        match how.create && how.exclusive {
            // Nothing that is there is opened, and no link is followed: what matters is where it is made.
            true => self.look_at_place(&plan.path)?,
            false => self.look_before(plan, how.create)?,
        }
        let open = file::open(&plan.path, how).map_err(|error| Failure::file("open", &plan.path, &error))?;
        let found = stat::fstat(&open).map_err(|error| Failure::file("look at", &plan.path, &error))?;
        self.check(plan, &found, how.write && guarded)?;
        Ok((open, found))
    }

    /// Checks by path first, because opening may have side effects or block.
    fn look_before(&self, plan: &FilePlan, create: bool) -> Result<(), Failure> {
        match stat::stat(&plan.path) {
            Ok(found) => as_planned(plan, &found),
            Err(_) if create && self.seen().users.would_stand_among_devices(&plan.path) => {
                Err(among_devices("open", &plan.path))
            }
            Err(_) => Ok(()),
        }
    }

    /// Checks that what is made at this path, and is no link, does not lie among devices.
    fn look_at_place(&self, path: &Path) -> Result<(), Failure> {
        match self.seen().users.is_place_among_devices(path) {
            true => Err(among_devices("open", path)),
            false => Ok(()),
        }
    }

    fn check(&self, plan: &FilePlan, found: &Stat, guarded: bool) -> Result<(), Failure> {
        as_planned(plan, found)?;
        match self.user_of(found).filter(|_| guarded) {
            Some(claim) => Err(in_use("open", &plan.path, &claim)),
            None => Ok(()),
        }
    }

    /// The user of a regular file.
    fn user_of(&self, found: &Stat) -> Option<Claim> {
        if found.kind != InodeKind::Regular {
            return None;
        }
        let known = found.identity();
        self.confirmed(|seen| {
            seen.files.iter().find(|(used, _)| *used == known).map(|(_, claim)| claim.clone())
        })
    }

    /// A user that the last reading has, if a new reading has it as well: it may have gone in the meantime, and a file that
    /// is new now have the inode of the one that it used.
    fn confirmed(&self, user: impl Fn(&Seen) -> Option<Claim>) -> Option<Claim> {
        user(&self.seen())?;
        self.invalidate();
        user(&self.seen())
    }

    /// Removes a file of a job by its planned name. A file that does not exist is no error.
    ///
    /// # Errors
    /// If it is no longer a regular file, or is in use.
    pub(crate) fn remove(&self, plan: &FilePlan, guarded: bool) -> Result<(), Failure> {
        if self.may_remove(plan, guarded)? {
            // Another worker may have removed it meanwhile.
            let _ = std::fs::remove_file(&plan.path);
        }
        Ok(())
    }

    /// Checks whether a file of a job may be removed by its planned name. `false`: it does not exist.
    ///
    /// # Errors
    /// If it is no longer a regular file, or is in use.
    pub(crate) fn may_remove(&self, plan: &FilePlan, guarded: bool) -> Result<bool, Failure> {
        let Ok(found) = stat::stat(&plan.path) else { return Ok(false) };
        self.check(plan, &found, guarded)?;
        Ok(true)
    }

    /// Removes a directory of a job by its planned name, if it is empty. One that does not exist is no error.
    ///
    /// # Errors
    /// The kernel's; another kind of file, or a directory that is not empty.
    pub(crate) fn remove_directory(&self, path: &Path) -> Result<(), Failure> {
        match std::fs::remove_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::file("remove the directory", path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether the engine may create a file or directory by its planned name.
    ///
    /// # Errors
    /// If something else has the name by now, or it would lie among devices.
    pub(crate) fn may_create(&self, plan: &FilePlan, directory: bool) -> Result<(), Failure> {
        match stat::stat(&plan.path) {
            Err(_) if self.seen().users.would_stand_among_devices(&plan.path) => {
                Err(among_devices("create", &plan.path))
            }
            Ok(found) if !directory => as_planned(plan, &found),
            // A directory that is there is an error of the operation that would make it.
            _ => Ok(()),
        }
    }

    /// Checks whether fiord itself may create a path or write to it.
    ///
    /// # Errors
    /// If it is a block device, lies among devices, or is in use.
    pub fn may_write(&self, path: &Path) -> Result<(), Failure> {
        match stat::stat(path) {
            Ok(found) if found.kind == InodeKind::Block => Err(overwritten(path)),
            Ok(found) => self.user_of(&found).map_or(Ok(()), |claim| Err(in_use("write", path, &claim))),
            Err(_) if self.seen().users.would_stand_among_devices(path) => Err(among_devices("create", path)),
            Err(_) => Ok(()),
        }
    }

    /// Opens an output file of fiord's own, truncated, or at its end with `append`.
    ///
    /// # Errors
    /// The kernel's, or those of `may_write`.
    pub fn create(&self, path: &Path, append: bool) -> Result<File, Failure> {
        self.output(path, append, std::fs::OpenOptions::new().write(true))
    }

    /// The same under a name that fiord made up. No one asked for what a link of that name leads to.
    ///
    /// # Errors
    /// Those of `create`; or the path is a symbolic link, and not one to a device or pipe.
    pub fn create_named(&self, path: &Path, append: bool) -> Result<File, Failure> {
        if TargetOpener::is_link_to_file(path) {
            let explanation = "it is a symbolic link, and would be written through it; remove the link";
            return Err(Failure {
                path: Some(path.to_path_buf()),
                ..Failure::unsafe_target("open", explanation)
            });
        }
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        // It may be another link by now.
        let flags = if is_link { 0 } else { file::NO_FOLLOW };
        self.output(path, append, std::fs::OpenOptions::new().write(true).custom_flags(flags))
    }

    /// Whether a path is a symbolic link to a file, or to where one would be made. A link to a device or pipe is none.
    pub fn is_link_to_file(path: &Path) -> bool {
        let is_stream =
            |found: Stat| matches!(found.kind, InodeKind::Char | InodeKind::Fifo | InodeKind::Other);
        std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
            && !stat::stat(path).is_ok_and(is_stream)
    }

    fn output(&self, path: &Path, append: bool, how: &mut std::fs::OpenOptions) -> Result<File, Failure> {
        let open = self.open_output(path, || how.append(append).create(true).open(path))?;
        let failed = |error: io::Error| Failure::file("write", path, &error);
        if !append && open.metadata().map_err(failed)?.is_file() {
            open.set_len(0).map_err(failed)?;
        }
        Ok(open)
    }

    /// A file that is to replace a regular file of fiord's own, or to be it: whoever reads the path sees the old contents until
    /// the new ones are kept.
    ///
    /// # Errors
    /// The kernel's, or those of `may_write`; or the path is neither a regular file nor free.
    pub fn replacement(&self, path: &Path) -> Result<Replacement, Failure> {
        self.may_write(path)?;
        // The file that a link leads to is replaced, not the link.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        if stat::stat(&target).is_ok_and(|found| found.kind != InodeKind::Regular) {
            let explanation = "it is not a regular file; name another";
            return Err(Failure { path: Some(path.to_path_buf()), ..Failure::other("write", explanation) });
        }
        let mut beside = OsString::from(".");
        beside.push(target.file_name().unwrap_or_default());
        beside.push(format!(".{}", std::process::id()));
        let beside = target.with_file_name(beside);
        let path = path.to_path_buf();
        match self.create(&beside, false) {
            Ok(file) => Ok(Replacement { file, path, beside, target, is_kept: false }),
            Err(why) => {
                let _ = std::fs::remove_file(&beside);
                Err(Failure { path: Some(path), ..why })
            }
        }
    }

    /// Checks whether a test of fiord's own may overwrite a path: a new file, or a block device.
    ///
    /// # Errors
    /// If the device is in use; of other paths, those of `may_write`.
    pub fn may_overwrite(&self, path: &Path) -> Result<(), Failure> {
        let Some(found) = block_device(path) else { return self.may_write(path) };
        let user = self.confirmed(|seen| seen.users.on(path, &found).first().cloned());
        user.map_or(Ok(()), |claim| Err(in_use("open", path, &claim)))
    }

    /// Opens what a test of fiord's own overwrites: a new file, or a block device, which stays claimed as long as it is
    /// open.
    ///
    /// # Errors
    /// The kernel's; or the file is there already, or the device is in use.
    pub fn overwrite(&self, path: &Path) -> Result<File, Failure> {
        self.may_overwrite(path)?;
        let create = block_device(path).is_none();
        let how = OpenHow { create, exclusive: true, ..OpenHow::READ_WRITE };
        file::open(path, &how).map_err(|error| Failure::file("open", path, &error))
    }

    /// Opens a file that buffers are mapped from.
    ///
    /// # Errors
    /// As `create`'s.
    pub(crate) fn buffer_file(&self, path: &Path) -> Result<File, Failure> {
        let how = OpenHow { create: true, ..OpenHow::READ_WRITE };
        self.open_output(path, || file::open(path, &how))
    }

    /// Removes a file that `buffer_file` created, unless it is in use now. Another worker may have removed it.
    pub(crate) fn remove_buffer_file(&self, path: &Path) {
        if self.may_write(path).is_ok() {
            let _ = std::fs::remove_file(path);
        }
    }

    /// Removes the file that has fired a trigger, unless it is in use or not a regular file.
    pub(crate) fn remove_trigger_file(&self, path: &Path) {
        let is_regular = stat::stat(path).is_ok_and(|found| found.kind == InodeKind::Regular);
        if is_regular && self.may_write(path).is_ok() {
            let _ = std::fs::remove_file(path);
        }
    }

    fn open_output(&self, path: &Path, open: impl FnOnce() -> io::Result<File>) -> Result<File, Failure> {
        self.may_write(path)?;
        let failed = |error: io::Error| Failure::file("open", path, &error);
        let open = open().map_err(failed)?;
        let found = stat::fstat(&open).map_err(failed)?;
        match self.user_of(&found) {
            _ if found.kind == InodeKind::Block => Err(overwritten(path)),
            Some(claim) => Err(in_use("open", path, &claim)),
            None => Ok(open),
        }
    }
}

/// Locks; after a panic of another holder the data is still consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is known of this path, if it is a block device.
fn block_device(path: &Path) -> Option<Stat> {
    stat::stat(path).ok().filter(|found| found.kind == InodeKind::Block)
}

/// The number of a block device, from the plan.
fn number_of(plan: &FilePlan) -> Option<DeviceNumber> {
    plan.device.filter(|_| plan.kind == FileKind::Block).map(|(major, minor)| DeviceNumber { major, minor })
}

/// The block devices with the contents of a target that is a character device.
fn behind(plan: &FilePlan) -> Vec<BlockBehind> {
    if plan.kind != FileKind::Char {
        return Vec::new();
    }
    let number = stat::stat(&plan.path).map(|found| found.special);
    let device = number.and_then(|number| Sysfs::default().char_device_of(number));
    device.map(|device| device.blocks_behind()).unwrap_or_default()
}

/// The block devices to claim before a target is written to: itself, or those behind a character device.
fn claimable(plan: &FilePlan) -> Vec<(PathBuf, DeviceNumber)> {
    let itself = number_of(plan).map(|number| (plan.path.clone(), number));
    let behind = behind(plan).into_iter().filter(|block| block.is_present);
    itself.into_iter().chain(behind.map(|block| (block.path, block.number))).collect()
}

/// The block device that a target is, or the one behind a character device, as a target of its own.
pub(super) fn as_block(plan: &FilePlan) -> Option<FilePlan> {
    let (path, DeviceNumber { major, minor }) = claimable(plan).into_iter().next()?;
    Some(FilePlan { path, kind: FileKind::Block, device: Some((major, minor)), ..plan.clone() })
}

/// Checks that the file found is the one planned.
fn as_planned(plan: &FilePlan, found: &Stat) -> Result<(), Failure> {
    let kind = match found.kind {
        InodeKind::Regular => Some(FileKind::Regular),
        InodeKind::Block => Some(FileKind::Block),
        InodeKind::Char => Some(FileKind::Char),
        InodeKind::Fifo | InodeKind::Other => Some(FileKind::Pipe),
        InodeKind::Directory => None,
    };
    let now = match kind {
        Some(kind) if kind == plan.kind => {
            match number_of(plan).filter(|planned| *planned != found.special) {
                None => return Ok(()),
                Some(planned) => {
                    format!("another device than planned ({} instead of {planned})", found.special)
                }
            }
        }
        Some(kind) => kind.words().to_string(),
        None => "a directory".to_string(),
    };
    let explanation = format!("it was {} when the run was planned, and is {now} now", plan.kind.words());
    Err(Failure { path: Some(plan.path.clone()), ..Failure::unsafe_target("open", explanation) })
}

fn in_use(operation: &str, path: &Path, claim: &Claim) -> Failure {
    let explanation = format!("it is in use by now: {claim}; it is not written to");
    Failure {
        path: Some(path.to_path_buf()),
        errno: Some(Errno::EBUSY),
        ..Failure::unsafe_target(operation, explanation)
    }
}

fn overwritten(path: &Path) -> Failure {
    let explanation = "it is a block device, and would be overwritten; name a file";
    Failure { path: Some(path.to_path_buf()), ..Failure::unsafe_target("write", explanation) }
}

fn among_devices(operation: &str, path: &Path) -> Failure {
    let explanation = "there is no such device, and fiord creates no file in a directory of devices";
    Failure { path: Some(path.to_path_buf()), ..Failure::other(operation, explanation) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

    use super::*;

    /// An opener that has just seen this file in use.
    fn has_seen(used: Identity) -> TargetOpener {
        let opener = TargetOpener::default();
        let seen = Seen {
            at_ns: clock::monotonic_ns(),
            users: Users::beside(opener.claims.held()),
            files: vec![(used, Claim::Exclusive)],
        };
        *lock(&opener.seen) = Some(Arc::new(seen));
        opener
    }

    #[test]
    fn a_file_with_the_inode_of_one_that_was_in_use_is_not_in_use() {
        let path = std::env::temp_dir().join(format!("fiord-opener-{}", std::process::id()));
        File::create(&path).unwrap();
        let found = stat::stat(&path).unwrap();
        let opener = has_seen(found.identity());
        let written = opener.may_write(&path);
        std::fs::remove_file(&path).unwrap();
        written.unwrap();
    }
}

//! The door to files: where everything is opened, made or removed that may be changed thereby.
//!
//! Invariant: what is opened is of the kind that was planned, and nobody uses it at the moment it is opened; a device
//! stays claimed for as long as it is written to. What the plan checked before the run is checked again here.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fiord_host::{Claim, Users};
use fiord_plan::{FileKind, FilePlan, Job, Plan};
use fiord_sys::clock;
use fiord_sys::errno::Errno;
use fiord_sys::file::{self, OpenHow};
use fiord_sys::stat::{self, DeviceNumber, Identity, Kind, Stat};
use fiord_sys::sysfs::Sysfs;

use crate::claim::{Claims, Held};
use crate::failure::Failure;

/// How long what was seen of others' use of files is believed.
const BELIEVED_NS: u64 = 100_000_000;

/// Opens files, and looks at what it opens.
#[derive(Debug, Default)]
pub struct Door {
    claims: Claims,
    /// Disks that are written to as a whole: a job on a partition of one claims the disk, since both cannot be claimed.
    disks: BTreeSet<DeviceNumber>,
    seen: Mutex<Option<Arc<Seen>>>,
    /// Held while somebody looks, which may hang where a file system does.
    looking: Mutex<()>,
}

/// Who uses what, as it was a moment ago.
#[derive(Debug)]
struct Seen {
    at_ns: u64,
    users: Users,
    files: Vec<(Identity, Claim)>,
}

impl Door {
    /// For the run of this plan.
    pub(crate) fn of(plan: &Plan) -> Door {
        let written = plan.jobs.iter().filter(|job| job.files.writable).flat_map(|job| &job.files.list);
        Door { disks: written.filter_map(number_of).collect(), ..Door::default() }
    }

    /// Whatever was seen may have changed: a command of the user's has run, or time has passed. Never waits for a look.
    pub(crate) fn forget(&self) {
        *lock(&self.seen) = None;
    }

    fn seen(&self) -> Arc<Seen> {
        self.seen_beside(&[])
    }

    /// What is seen by who has claimed these devices. Of many who want to know one looks.
    fn seen_beside(&self, claimed: &[DeviceNumber]) -> Arc<Seen> {
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

    /// Claims the block devices that the job writes to, until the answer is dropped.
    ///
    /// # Errors
    /// Who has one of them, or what else is in the way.
    pub(crate) fn claim(&self, job: &Job) -> Result<Option<Held>, Failure> {
        let files = &job.files;
        if !files.writable || files.allow_in_use {
            return Ok(None);
        }
        let mut devices: Vec<(PathBuf, DeviceNumber)> = Vec::new();
        for plan in &files.list {
            let Some(number) = number_of(plan) else { continue };
            let unit = self.unit(&plan.path, number);
            if !devices.contains(&unit) {
                devices.push(unit);
            }
        }
        if devices.is_empty() {
            return Ok(None);
        }
        let held = self.claims.take(&devices).map_err(|(path, error)| self.not_claimed(&path, &error))?;
        // What the kernel does not count as a claim: loop devices made of it, and the file it is made of.
        let claimed: Vec<DeviceNumber> = devices.iter().map(|(_, number)| *number).collect();
        let seen = self.seen_beside(&claimed);
        for plan in files.list.iter().filter(|plan| plan.kind == FileKind::Block) {
            let found =
                stat::stat(&plan.path).map_err(|error| Failure::file("look at", &plan.path, &error))?;
            if let Some(claim) = seen.users.on(&plan.path, &found).first() {
                return Err(in_use("claim", &plan.path, claim));
            }
        }
        Ok(held)
    }

    /// What is claimed for a device: itself, or the disk that it is a part of if the run writes to that as well.
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

    /// Opens a file of a job. `guarded`: it must be nobody else's.
    ///
    /// # Errors
    /// The kernel's; or that it is not what was planned, or that somebody uses it.
    pub(crate) fn open(&self, plan: &FilePlan, how: &OpenHow, guarded: bool) -> Result<File, Failure> {
        self.look_before(plan, how.create)?;
        let open = file::open(&plan.path, how).map_err(|error| Failure::file("open", &plan.path, &error))?;
        let found = stat::fstat(&open).map_err(|error| Failure::file("look at", &plan.path, &error))?;
        self.check(plan, &found, how.write && guarded)?;
        Ok(open)
    }

    /// What would change something by being opened, or never be opened at all, is looked at first.
    fn look_before(&self, plan: &FilePlan, create: bool) -> Result<(), Failure> {
        match stat::stat(&plan.path) {
            Ok(found) => as_planned(plan, &found),
            Err(_) if create && self.seen().users.would_stand_among_devices(&plan.path) => {
                Err(among_devices("open", &plan.path))
            }
            Err(_) => Ok(()),
        }
    }

    fn check(&self, plan: &FilePlan, found: &Stat, guarded: bool) -> Result<(), Failure> {
        as_planned(plan, found)?;
        match self.user_of(found).filter(|_| guarded) {
            Some(claim) => Err(in_use("open", &plan.path, &claim)),
            None => Ok(()),
        }
    }

    /// Who uses a regular file.
    fn user_of(&self, found: &Stat) -> Option<Claim> {
        if found.kind != Kind::Regular {
            return None;
        }
        let known = found.identity();
        self.seen().files.iter().find(|(used, _)| *used == known).map(|(_, claim)| claim.clone())
    }

    /// Removes a file of a job, by the name it was planned under. One that is gone already is as good.
    ///
    /// # Errors
    /// That it is no regular file any more, or that somebody uses it.
    pub(crate) fn remove(&self, plan: &FilePlan, guarded: bool) -> Result<(), Failure> {
        let Ok(found) = stat::stat(&plan.path) else { return Ok(()) };
        self.check(plan, &found, guarded)?;
        // Another worker may have removed it meanwhile.
        let _ = std::fs::remove_file(&plan.path);
        Ok(())
    }

    /// Looks whether a path may be written to, or made, by fiord itself.
    ///
    /// # Errors
    /// That it is a block device or among devices, or that somebody uses it.
    pub fn may_write(&self, path: &Path) -> Result<(), Failure> {
        match stat::stat(path) {
            Ok(found) if found.kind == Kind::Block => Err(overwritten(path)),
            Ok(found) => self.user_of(&found).map_or(Ok(()), |claim| Err(in_use("write", path, &claim))),
            Err(_) if self.seen().users.would_stand_among_devices(path) => Err(among_devices("create", path)),
            Err(_) => Ok(()),
        }
    }

    /// Opens a file for what fiord itself has to say, made anew, or to go on behind what is in it with `append`.
    ///
    /// # Errors
    /// The kernel's, or what `may_write` says.
    pub fn create(&self, path: &Path, append: bool) -> Result<File, Failure> {
        let how =
            |options: &mut std::fs::OpenOptions| options.write(true).append(append).create(true).open(path);
        let open = self.open_output(path, how)?;
        let failed = |error: io::Error| Failure::file("write", path, &error);
        if !append && open.metadata().map_err(failed)?.is_file() {
            open.set_len(0).map_err(failed)?;
        }
        Ok(open)
    }

    /// Opens a file that buffers are to be a mapping of.
    ///
    /// # Errors
    /// As `create`'s.
    pub(crate) fn buffer_file(&self, path: &Path) -> Result<File, Failure> {
        let how = OpenHow { create: true, ..OpenHow::READ_WRITE };
        self.open_output(path, |_| file::open(path, &how))
    }

    fn open_output(
        &self,
        path: &Path,
        open: impl FnOnce(&mut std::fs::OpenOptions) -> io::Result<File>,
    ) -> Result<File, Failure> {
        self.may_write(path)?;
        let failed = |error: io::Error| Failure::file("open", path, &error);
        let open = open(&mut std::fs::OpenOptions::new()).map_err(failed)?;
        let found = stat::fstat(&open).map_err(failed)?;
        match self.user_of(&found) {
            _ if found.kind == Kind::Block => Err(overwritten(path)),
            Some(claim) => Err(in_use("open", path, &claim)),
            None => Ok(open),
        }
    }
}

/// Whoever panicked meanwhile left it whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of a block device that the plan has seen.
fn number_of(plan: &FilePlan) -> Option<DeviceNumber> {
    plan.device.filter(|_| plan.kind == FileKind::Block).map(|(major, minor)| DeviceNumber { major, minor })
}

/// Whether what was found is what the plan is about.
fn as_planned(plan: &FilePlan, found: &Stat) -> Result<(), Failure> {
    let kind = match found.kind {
        Kind::Regular => Some(FileKind::Regular),
        Kind::Block => Some(FileKind::Block),
        Kind::Char => Some(FileKind::Char),
        Kind::Fifo | Kind::Other => Some(FileKind::Pipe),
        Kind::Directory => None,
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
    Err(Failure { path: Some(plan.path.clone()), ..Failure::endangering("open", explanation) })
}

fn in_use(operation: &str, path: &Path, claim: &Claim) -> Failure {
    const EBUSY: i32 = 16;
    let explanation = format!("it is in use by now: {claim}; it is not written to");
    Failure {
        path: Some(path.to_path_buf()),
        errno: Some(Errno(EBUSY)),
        ..Failure::endangering(operation, explanation)
    }
}

fn overwritten(path: &Path) -> Failure {
    let explanation = "it is a block device, and would be overwritten; name a file";
    Failure { path: Some(path.to_path_buf()), ..Failure::endangering("write", explanation) }
}

fn among_devices(operation: &str, path: &Path) -> Failure {
    let explanation = "there is no such device, and no file is made among devices";
    Failure { path: Some(path.to_path_buf()), ..Failure::other(operation, explanation) }
}

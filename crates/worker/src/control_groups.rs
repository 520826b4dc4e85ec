//! The control groups of a run's jobs (`cgroup`).
//!
//! Invariant: a group exists, with its weight, before the first worker joins it, and is removed after the last one has
//! ended, unless it was there before or is to stay.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Mutex;

use fiord_plan::Job;
use fiord_sys::io_group::{GroupError, Hierarchy, IoGroup, Version};

use crate::failure::Failure;

/// A group of a run, by its name.
struct Named {
    name: std::ffi::OsString,
    stays: bool,
    group: Result<IoGroup, Failure>,
}

/// The groups of a run.
#[derive(Default)]
pub(crate) struct ControlGroups(Mutex<Vec<Named>>);

impl ControlGroups {
    /// Makes the groups that these jobs name, and gives them their weights.
    pub(crate) fn of(jobs: &[Job]) -> ControlGroups {
        let mut groups: Vec<Named> = Vec::new();
        for wanted in jobs.iter().filter_map(|job| job.process.control_group.as_ref()) {
            match groups.iter_mut().find(|group| group.name == wanted.name) {
                Some(group) => group.stays |= wanted.stays,
                None => groups.push(Named {
                    name: wanted.name.clone(),
                    stays: wanted.stays,
                    group: make(&wanted.name, jobs),
                }),
            }
        }
        ControlGroups(Mutex::new(groups))
    }

    /// Moves the calling thread into the group of this job, if it has one. Before it gives up the rights to do so.
    ///
    /// # Errors
    /// Why the group could not be made, or cannot be joined.
    pub(crate) fn join(&self, job: &Job) -> Result<(), Failure> {
        let Some(wanted) = &job.process.control_group else { return Ok(()) };
        let groups = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match groups.iter().find(|group| group.name == wanted.name).map(|named| &named.group) {
            Some(Ok(group)) => group.join_thread().map_err(|error| failure(&error)),
            Some(Err(failure)) => Err(failure.clone()),
            None => Ok(()),
        }
    }

    /// Removes the groups that were made, when all workers have ended. Returns why one remains.
    pub(crate) fn remove(&self) -> Vec<String> {
        let groups = std::mem::take(&mut *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let remove = |named: Named| match (named.stays, named.group) {
            (false, Ok(group)) => group.remove().err().map(|error| failure(&error).to_string()),
            (true, _) | (_, Err(_)) => None,
        };
        groups.into_iter().filter_map(remove).collect()
    }
}

/// Makes a group for those of these jobs that name it.
fn make(name: &OsStr, jobs: &[Job]) -> Result<IoGroup, Failure> {
    let hierarchy = Hierarchy::find().map_err(|error| Failure::system("find control groups", &error))?;
    let Some(hierarchy) = hierarchy else {
        let why = "no control groups are mounted: mount -t cgroup2 none /sys/fs/cgroup, or, of version 1, mount -t cgroup \
                   -o blkio none /cgroup";
        return Err(Failure::other("find control groups", why));
    };
    let named = |job: &Job| job.process.control_group.as_ref().is_some_and(|group| group.name == name);
    if hierarchy.version == Version::Two && !jobs.iter().all(named) {
        let why = "version 2 of control groups, which this machine has, keeps the threads of a process together, and the \
                   jobs of a run are threads: give all jobs the same cgroup, or run fiord once for each group";
        return Err(Failure::other("join the control group", why));
    }
    let mut group = hierarchy.make(Path::new(name)).map_err(|error| failure(&error))?;
    // As each job of fio sets it: the last one that says so.
    let mut weights =
        jobs.iter().filter(|job| named(job)).filter_map(|job| job.process.control_group.as_ref()?.weight);
    let prepared = match weights.next_back() {
        Some(weight) => group.set_weight(weight),
        None => Ok(()),
    };
    let prepared =
        prepared.and_then(|()| if hierarchy.version == Version::Two { group.join() } else { Ok(()) });
    match prepared {
        Ok(()) => Ok(group),
        Err(error) => {
            let failure = failure(&error);
            // The first failure is the one reported.
            let _ = group.remove();
            Err(failure)
        }
    }
}

/// What a group's error means.
fn failure(error: &GroupError) -> Failure {
    let mut failure = Failure::file(error.action, &error.path, &error.error);
    let kind = error.error.kind();
    if kind == std::io::ErrorKind::PermissionDenied {
        failure.explanation = "control groups belong to root: run as root, or leave out cgroup".to_string();
    } else if kind == std::io::ErrorKind::NotFound && error.action.contains("weight") {
        failure.explanation =
            "the kernel has no weights there: it needs the scheduler bfq, or, in version 2, the controller io in \
             cgroup.subtree_control of the groups above"
                .to_string();
    }
    failure
}

//! The processes whose requests are told apart from those of all others.
//!
//! Invariant: who cannot be looked at any more is never taken for one of the others.

use std::path::{Path, PathBuf};

use fiord_report::path::shown;
use fiord_sys::cgroup;
use fiord_sys::processes::{self, ThreadFacts};
use fiord_watch::Party;

/// The processes of one side.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    /// These, and those that they started.
    Processes(Vec<ThreadFacts>),
    /// Those of a control group and of the groups below it.
    Group(PathBuf),
}

impl Chosen {
    /// Processes by their numbers, or those of their threads.
    ///
    /// # Errors
    /// One does not run, and what to do.
    pub(crate) fn processes(pids: &[i32]) -> Result<Chosen, String> {
        let found = |pid: &i32| {
            processes::of_thread(*pid).map_err(|_| {
                format!("--pid {pid}: there is no such process\n  name one that runs; pgrep NAME finds it")
            })
        };
        Ok(Chosen::Processes(pids.iter().map(found).collect::<Result<_, _>>()?))
    }

    /// A control group by its name or its directory.
    ///
    /// # Errors
    /// It does not exist, and what to do.
    pub(crate) fn group(path: &Path) -> Result<Chosen, String> {
        cgroup::named(path).map(Chosen::Group).ok_or_else(|| {
            format!(
                "--cgroup {}: there is no such control group\n  name one as /proc/PID/cgroup does, or its directory \
                 below /sys/fs/cgroup; systemd-cgls lists them",
                shown(path)
            )
        })
    }

    /// The control group of a container by its identifier, or how that begins.
    ///
    /// # Errors
    /// There is none, or several, and what to do.
    pub(crate) fn container(id: &str) -> Result<Chosen, String> {
        let mut groups = cgroup::of_container(id);
        match (groups.pop(), groups.is_empty()) {
            (Some(group), true) => Ok(Chosen::Group(group)),
            (Some(_), false) => Err(format!(
                "--container {id}: several control groups are called so\n  write more digits of the identifier, or name one \
                 with --cgroup"
            )),
            (None, _) => Err(format!(
                "--container {id}: no control group is called so\n  write at least 8 digits of the identifier that docker ps \
                 or podman ps prints, or name the group with --cgroup"
            )),
        }
    }

    /// Whose requests of this thread are.
    pub(super) fn party(&self, thread: &ThreadFacts) -> Party {
        let is_chosen = match self {
            Chosen::Processes(all) => {
                let pids: Vec<i32> = all.iter().map(|one| one.process).collect();
                processes::descends_from(thread.process, &pids)
            }
            Chosen::Group(group) => processes::is_in_group(thread.process, group),
        };
        match (is_chosen, thread.is_kernel) {
            (true, _) => Party::Chosen,
            (false, true) => Party::Kernel,
            (false, false) => Party::Others,
        }
    }

    /// What they are called in a sentence.
    pub(super) fn words(&self) -> String {
        match self {
            Chosen::Processes(all) => {
                let named: Vec<String> =
                    all.iter().map(|one| format!("{} ({})", one.process, one.name)).collect();
                format!("process{} {}", if all.len() > 1 { "es" } else { "" }, named.join(" and "))
            }
            Chosen::Group(group) => match group.to_str().and_then(cgroup::container_of) {
                Some(id) => format!("container {id}"),
                None => format!("control group {}", shown(group)),
            },
        }
    }
}

//! Who has requests made: a process, or a part of the kernel that works for others.
//!
//! Invariant: work of the kernel is called by what it is, and never blamed on a process that happened to run.

use fiord_profile::tracepoints::Operation;

/// Who has requests made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issuer {
    /// The name of the process, or of the kernel's thread.
    pub name: String,
    /// The process; the thread if it has ended before it was looked at.
    pub pid: i32,
    /// The control group of the process (version 2), as the kernel names it; `None` if it is not known.
    pub cgroup: Option<String>,
    /// The beginning of the identifier of the container that it is in, if it is in one.
    pub container: Option<String>,
    /// Whether it is a thread of the kernel.
    pub is_kernel: bool,
    /// Whose its requests are; `None` if nobody was chosen.
    pub party: Option<Party>,
}

/// Whose requests are, seen from processes that were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// The chosen processes themselves.
    Chosen,
    /// Other processes.
    Others,
    /// Threads of the kernel: for whom is not known.
    Kernel,
    /// Processes that ended before they could be looked at: any of them may have been one of the chosen.
    Ended,
}

impl Party {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Party::Chosen => "chosen",
            Party::Others => "others",
            Party::Kernel => "kernel",
            Party::Ended => "ended",
        }
    }

    /// What it is called in a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Party::Ended => "processes that ended",
            Party::Kernel => "the kernel",
            other => other.name(),
        }
    }
}

/// What kind of work it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssuerKind {
    /// A process.
    Process,
    /// The kernel writes back what processes left in the page cache.
    Writeback,
    /// The journal or log of a file system.
    Journal,
    /// The kernel makes room in memory.
    Reclaim,
    /// Resynchronisation or check of an array.
    Resync,
    /// An array's thread, which passes on what it is asked for, and writes what it resynchronises.
    Array,
    /// The kernel's workers, for a device above or a file system: loop, dm-crypt, btrfs.
    Worker,
}

impl IssuerKind {
    /// What all of it is called, whichever worker does it.
    pub(crate) const WRITEBACK: &str = "writeback";
}

/// Beginnings of the names of the kernel's threads.
const KERNEL_THREADS: [(&str, IssuerKind); 9] = [
    ("jbd2/", IssuerKind::Journal),
    ("xfsaild", IssuerKind::Journal),
    ("xfs-", IssuerKind::Journal),
    ("xfs_", IssuerKind::Journal),
    ("f2fs_", IssuerKind::Journal),
    ("kswapd", IssuerKind::Reclaim),
    ("kcompactd", IssuerKind::Reclaim),
    ("md", IssuerKind::Resync),
    ("flush-", IssuerKind::Writeback),
];

impl Issuer {
    /// What kind of work its requests of this operation are.
    pub fn kind(&self, operation: Operation) -> IssuerKind {
        if !self.is_kernel {
            return IssuerKind::Process;
        }
        let known = KERNEL_THREADS.iter().find(|(begin, _)| self.name.starts_with(begin));
        match known {
            Some((_, IssuerKind::Resync)) if self.name.contains("_raid") => IssuerKind::Array,
            Some((_, IssuerKind::Resync)) if !self.name.ends_with("sync") => IssuerKind::Worker,
            Some((_, kind)) => *kind,
            None if self.name.starts_with("kworker") && operation == Operation::Write => {
                IssuerKind::Writeback
            }
            None => IssuerKind::Worker,
        }
    }

    /// What people call it: `postgres`, `writeback`, `journal (jbd2/vda-8)`.
    pub fn shown(&self, operation: Operation) -> String {
        let kind = match self.kind(operation) {
            IssuerKind::Process => return self.name.clone(),
            // Any worker may do it.
            IssuerKind::Writeback => return IssuerKind::WRITEBACK.to_string(),
            IssuerKind::Journal => "journal",
            IssuerKind::Reclaim => "memory reclaim",
            IssuerKind::Resync => "array resync",
            IssuerKind::Array => "array",
            IssuerKind::Worker => "kernel",
        };
        format!("{kind} ({})", self.name)
    }

    /// Where it runs: `container 3f4a9c0d11e2`, or its control group; `None` of the kernel's, and of those in no group.
    pub(crate) fn home(&self) -> Option<String> {
        let group = self.cgroup.as_ref().filter(|group| !self.is_kernel && *group != "/");
        let container = self.container.as_ref().map(|id| format!("container {id}"));
        container.or_else(|| group.cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_work_is_called_by_what_it_is() {
        let kind = |name: &str, is_kernel, operation| {
            Issuer { name: name.to_string(), is_kernel, ..Issuer::default() }.kind(operation)
        };
        assert_eq!(kind("kworker/u8:2", true, Operation::Write), IssuerKind::Writeback);
        assert_eq!(kind("kworker/u8:2", true, Operation::Read), IssuerKind::Worker);
        assert_eq!(
            kind("kworker/u8:2", false, Operation::Write),
            IssuerKind::Process,
            "anyone may be called so"
        );
        assert_eq!(kind("jbd2/vda-8", true, Operation::Write), IssuerKind::Journal);
        assert_eq!(kind("kswapd0", true, Operation::Write), IssuerKind::Reclaim);
        assert_eq!(kind("md0_resync", true, Operation::Read), IssuerKind::Resync);
        assert_eq!(kind("md0_raid1", true, Operation::Write), IssuerKind::Array);
        assert_eq!(kind("md_misc", true, Operation::Write), IssuerKind::Worker);
        let journal = Issuer { name: "jbd2/vda-8".to_string(), is_kernel: true, ..Issuer::default() };
        assert_eq!(journal.shown(Operation::Write), "journal (jbd2/vda-8)");
    }
}

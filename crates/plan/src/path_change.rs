//! The paths that a run writes to, creates, extends or removes, and which of these changes are refused.
//!
//! Invariant: every such path of a job is among its `path_changes`, and `refusal` is the only rule about them. What a
//! path is, and who uses it, are facts from the host.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use fiord_options::shown::shown;
use fiord_options::{Spec, job};

use crate::facts::PathFacts;
use crate::files::{FileKind, as_file_name};
use crate::job::{Job, Memory};
use crate::replay::Replay;
use crate::verification::Verification;

/// How a path is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The job writes or trims.
    Write,
    /// The job only reads, and the file is created or extended for it.
    LayOut,
    /// The file is removed at the end.
    Remove,
    /// Buffers are a mapping of it.
    Buffers,
    /// fiord writes its own output there: a report, a log, a chart.
    Output,
}

/// A path that a job changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The path.
    pub path: PathBuf,
    /// How it is changed.
    pub kind: ChangeKind,
    /// The option that causes it.
    pub option: &'static Spec,
    /// Whether the user gave the path, rather than fiord making it of a prefix or the job's name.
    pub is_given: bool,
}

/// Why a path must not be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRefusal {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// Data would have been destroyed.
    pub unsafe_target: bool,
}

/// Every path that the job changes, one entry for each file.
pub fn path_changes(job: &Job) -> Vec<PathChange> {
    let files = &job.files;
    let removed = files.unlink || files.unlink_each_loop;
    let to_file = |file: &crate::files::FilePlan| {
        let is_file = file.kind == FileKind::Regular;
        let (kind, option) = match file.kind {
            FileKind::None => return None,
            _ if files.writable => (ChangeKind::Write, job::Files::filename),
            _ if is_file && file.lay_out_bytes.is_some() => (ChangeKind::LayOut, job::Files::filename),
            _ if is_file && removed => (ChangeKind::Remove, job::Files::unlink),
            _ => return None,
        };
        Some(PathChange { path: file.path.clone(), kind, option, is_given: true })
    };
    let mut path_changes: Vec<PathChange> = files.list.iter().filter_map(to_file).collect();
    if let Some(path) = buffer_file(&job.buffers.memory) {
        let option = job::Buffers::mem;
        path_changes.push(PathChange {
            path: path.to_path_buf(),
            kind: ChangeKind::Buffers,
            option,
            is_given: true,
        });
    }
    let mut output = |path: &Path, option: &'static Spec, is_given: bool| {
        path_changes.push(PathChange {
            path: path.to_path_buf(),
            kind: ChangeKind::Output,
            option,
            is_given,
        });
    };
    let logs = job.logs.iter().filter(|logs| !logs.are_sent).flat_map(|logs| &logs.files);
    logs.for_each(|log| output(&log.path, log.kind.option(), false));
    job.record.iter().for_each(|path| output(path, job::Replay::write_iolog, true));
    let merged = job.replay.as_ref().and_then(Replay::merged);
    merged.into_iter().for_each(|path| output(path, job::Replay::merge_blktrace_file, true));
    let state = job.verification.as_ref().and_then(|verification| verification.saved_state.as_ref());
    state.into_iter().for_each(|path| output(path, Verification::SAVE_OPTION, false));
    let of_engine = job.engine.outputs(&job.name);
    of_engine.iter().for_each(|of_engine| output(&of_engine.path, of_engine.option, of_engine.is_given));
    let commands = [&job.process.exec_prerun, &job.process.exec_postrun];
    for (hook, _) in Hook::ALL.into_iter().zip(commands).filter(|(_, command)| command.is_some()) {
        output(&hook.log(&job.name), hook.option(), false);
    }
    path_changes
}

/// A command that the user runs before or after a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// `exec_prerun`: before the job.
    Prerun,
    /// `exec_postrun`: after it.
    Postrun,
}

impl Hook {
    /// Both, in the order they run.
    pub const ALL: [Hook; 2] = [Hook::Prerun, Hook::Postrun];

    /// The option that sets it.
    pub fn option(self) -> &'static Spec {
        match self {
            Hook::Prerun => job::Process::exec_prerun,
            Hook::Postrun => job::Process::exec_postrun,
        }
    }

    /// The file its output goes to, for a job of this name.
    pub fn log(self, name: &OsStr) -> PathBuf {
        let mut log = as_file_name(name);
        log.push(match self {
            Hook::Prerun => ".prerun.txt",
            Hook::Postrun => ".postrun.txt",
        });
        PathBuf::from(log)
    }
}

/// The file that buffers map, if they map one.
pub fn buffer_file(memory: &Memory) -> Option<&Path> {
    match memory {
        Memory::Mmap(file) | Memory::MmapHuge(file) | Memory::MmapShared(file) => file.as_deref(),
        Memory::Malloc | Memory::Shm | Memory::ShmHuge | Memory::Gpu => None,
    }
}

/// Why the path must not be changed in this way; `None` if it may. `allowed`: the user allows targets in use to be
/// written to.
pub fn refusal(path: &Path, kind: ChangeKind, known: &PathFacts, allowed: bool) -> Option<PathRefusal> {
    let shown = shown(path);
    if let Some(refused) = no_such_device(path, known) {
        return Some(refused);
    }
    if known.kind == FileKind::Block
        && known.exists
        && matches!(kind, ChangeKind::Output | ChangeKind::Buffers)
    {
        let message = match kind {
            ChangeKind::Buffers => format!("{shown} is a block device, and buffers in it would overwrite it"),
            _ => format!("{shown} is a block device, and would be overwritten"),
        };
        return Some(PathRefusal { message, remedy: "name a file".to_string(), unsafe_target: true });
    }
    // allow_mounted_write= is about targets, not about reports and logs.
    let allowed = allowed && !matches!(kind, ChangeKind::Output | ChangeKind::Buffers);
    if known.in_use.is_empty() || allowed {
        return None;
    }
    let remedy = match kind {
        ChangeKind::Write => "writing would destroy it; allow_mounted_write=1 if that is what you want",
        ChangeKind::LayOut => {
            "laying it out to its size= would write to it; allow_mounted_write=1 if that is what you want"
        }
        ChangeKind::Remove => "unlink=1 would remove it; allow_mounted_write=1 if that is what you want",
        ChangeKind::Buffers | ChangeKind::Output => "name another file",
    };
    let message = format!("{shown} is in use: {}", known.in_use.join("; "));
    Some(PathRefusal { message, remedy: remedy.to_string(), unsafe_target: true })
}

/// A path that does not exist among the device nodes is a missing device, never a file to be created.
pub fn no_such_device(path: &Path, known: &PathFacts) -> Option<PathRefusal> {
    if known.exists || !known.among_devices {
        return None;
    }
    let remedy = match &known.similar {
        Some(similar) => format!("did you mean {}?", shown(similar)),
        None => "see lsblk; a file would be made among the devices".to_string(),
    };
    Some(PathRefusal { message: format!("there is no device {}", shown(path)), remedy, unsafe_target: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ChangeKind; 5] =
        [ChangeKind::Write, ChangeKind::LayOut, ChangeKind::Remove, ChangeKind::Buffers, ChangeKind::Output];

    fn is_refused(kind: ChangeKind, known: &PathFacts, allowed: bool) -> bool {
        refusal(Path::new("/x"), kind, known, allowed).is_some_and(|refused| refused.unsafe_target)
    }

    #[test]
    fn what_is_in_use_is_refused_whatever_is_done_to_it() {
        for known in [PathFacts::regular(1), PathFacts::block(512, 512)] {
            let used = PathFacts { in_use: vec!["mounted".to_string()], ..known };
            for kind in KINDS {
                assert!(is_refused(kind, &used, false), "{kind:?}");
            }
        }
    }

    #[test]
    fn targets_in_use_may_be_allowed_and_outputs_never() {
        let used = PathFacts { in_use: vec!["mounted".to_string()], ..PathFacts::regular(1) };
        let refused = KINDS.map(|kind| is_refused(kind, &used, true));
        assert_eq!(refused, [false, false, false, true, true]);
    }

    #[test]
    fn a_free_device_is_a_target_and_no_place_for_outputs() {
        let free = PathFacts::block(512, 512);
        assert_eq!(KINDS.map(|kind| is_refused(kind, &free, false)), [false, false, false, true, true]);
        let null = PathFacts { kind: FileKind::Char, ..PathFacts::regular(0) };
        for known in [null, PathFacts::regular(1), PathFacts::absent()] {
            for kind in KINDS {
                assert_eq!(refusal(Path::new("/x"), kind, &known, false), None, "{kind:?} {known:?}");
            }
        }
    }

    #[test]
    fn nothing_is_made_among_devices_and_the_nearest_is_named() {
        let typo = PathFacts { among_devices: true, ..PathFacts::absent() };
        for kind in KINDS {
            let refused = refusal(Path::new("/dev/mapper/typo"), kind, &typo, true).unwrap();
            assert!(!refused.unsafe_target && refused.message == "there is no device /dev/mapper/typo");
        }
        let near = PathFacts { similar: Some("/dev/sda".into()), ..typo };
        assert_eq!(no_such_device(Path::new("/dev/sdaa"), &near).unwrap().remedy, "did you mean /dev/sda?");
        let directory = PathFacts { exists: true, is_directory: true, ..near };
        assert_eq!(no_such_device(Path::new("/dev"), &directory), None);
    }
}

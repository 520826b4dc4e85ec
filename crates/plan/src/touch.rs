//! What a run does to paths beside reading them, and which of that is refused.
//!
//! Invariant: every path of a job that may be written to, made, grown or removed is among its `touches`, and `refusal` is
//! the only rule about them. What a path is, and who uses it, are the host's facts.

use std::path::{Path, PathBuf};

use crate::facts::PathFacts;
use crate::files::FileKind;
use crate::job::{Job, Memory};
use crate::logs::LogKind;

/// What happens to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The job writes or trims.
    Write,
    /// The job only reads, and the file is made or grown for it.
    LayOut,
    /// The file is removed at the end.
    Remove,
    /// Buffers are a mapping of it.
    Buffers,
    /// What fiord itself has to say goes there: a report, a log, a picture.
    Output,
}

/// A path that a job does something to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// Which.
    pub path: PathBuf,
    /// What happens to it.
    pub deed: Deed,
    /// The option that asked for it.
    pub option: &'static str,
}

/// Why something must not happen to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
    /// Something would have been destroyed.
    pub endangers: bool,
}

/// Everything the job does to paths beside reading them, one entry for each file.
pub fn touches(job: &Job) -> Vec<Touch> {
    let files = &job.files;
    let removed = files.unlink || files.unlink_each_loop;
    let to_file = |file: &crate::files::FilePlan| {
        let is_file = file.kind == FileKind::Regular;
        let (deed, option) = match file.kind {
            FileKind::None => return None,
            _ if files.writable => (Deed::Write, "filename"),
            _ if is_file && file.lay_out_bytes.is_some() => (Deed::LayOut, "filename"),
            _ if is_file && removed => (Deed::Remove, "unlink"),
            _ => return None,
        };
        Some(Touch { path: file.path.clone(), deed, option })
    };
    let mut touches: Vec<Touch> = files.list.iter().filter_map(to_file).collect();
    if let Some(path) = buffer_file(&job.buffers.memory) {
        touches.push(Touch { path: path.to_path_buf(), deed: Deed::Buffers, option: "iomem" });
    }
    let logs = job.logs.iter().flat_map(|logs| &logs.files);
    touches.extend(logs.map(|log| Touch {
        path: log.path.clone(),
        deed: Deed::Output,
        option: log_option(log.kind),
    }));
    let commands = [("exec_prerun", &job.process.exec_prerun), ("exec_postrun", &job.process.exec_postrun)];
    for (option, _) in commands.into_iter().filter(|(_, command)| command.is_some()) {
        touches.push(Touch { path: exec_log(&job.name, option), deed: Deed::Output, option });
    }
    touches
}

/// Where the output of `exec_prerun` or `exec_postrun` of a job of this name goes.
pub fn exec_log(name: &str, option: &str) -> PathBuf {
    PathBuf::from(format!("{name}.{}.txt", option.trim_start_matches("exec_")))
}

/// The file that buffers map, if they map one.
pub fn buffer_file(memory: &Memory) -> Option<&Path> {
    match memory {
        Memory::Mmap(file) | Memory::MmapHuge(file) | Memory::MmapShared(file) => file.as_deref(),
        Memory::Malloc | Memory::Shm | Memory::ShmHuge => None,
    }
}

fn log_option(kind: LogKind) -> &'static str {
    match kind {
        LogKind::Bandwidth => "write_bw_log",
        LogKind::Iops => "write_iops_log",
        LogKind::Submission | LogKind::Completion | LogKind::Total => "write_lat_log",
        LogKind::Histogram => "write_hist_log",
    }
}

/// What forbids to do this to the path, if something does. `allowed`: the user wants targets in use to be written to.
pub fn refusal(path: &Path, deed: Deed, known: &PathFacts, allowed: bool) -> Option<Refused> {
    let shown = path.display();
    if let Some(refused) = no_such_device(path, known) {
        return Some(refused);
    }
    if known.kind == FileKind::Block && known.exists && matches!(deed, Deed::Output | Deed::Buffers) {
        let message = match deed {
            Deed::Buffers => format!("{shown} is a block device, and buffers in it would overwrite it"),
            _ => format!("{shown} is a block device, and would be overwritten"),
        };
        return Some(Refused { message, remedy: "name a file".to_string(), endangers: true });
    }
    // Whoever allows to overwrite a target does not mean reports and logs.
    let allowed = allowed && !matches!(deed, Deed::Output | Deed::Buffers);
    if known.in_use.is_empty() || allowed {
        return None;
    }
    let remedy = match deed {
        Deed::Write => "writing would destroy it; allow_mounted_write=1 if that is what you want",
        Deed::LayOut => {
            "laying it out to its size= would write to it; allow_mounted_write=1 if that is what you want"
        }
        Deed::Remove => "unlink=1 would remove it; allow_mounted_write=1 if that is what you want",
        Deed::Buffers | Deed::Output => "name another file",
    };
    let message = format!("{shown} is in use: {}", known.in_use.join("; "));
    Some(Refused { message, remedy: remedy.to_string(), endangers: true })
}

/// What is absent among the nodes of devices is a device that is not there, and never a file to be made.
pub fn no_such_device(path: &Path, known: &PathFacts) -> Option<Refused> {
    if known.exists || !known.among_devices {
        return None;
    }
    let remedy = match &known.similar {
        Some(similar) => format!("did you mean {}?", similar.display()),
        None => "see lsblk; a file would be made among the devices".to_string(),
    };
    Some(Refused { message: format!("there is no device {}", path.display()), remedy, endangers: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEEDS: [Deed; 5] = [Deed::Write, Deed::LayOut, Deed::Remove, Deed::Buffers, Deed::Output];

    fn is_refused(deed: Deed, known: &PathFacts, allowed: bool) -> bool {
        refusal(Path::new("/x"), deed, known, allowed).is_some_and(|refused| refused.endangers)
    }

    #[test]
    fn what_is_in_use_is_refused_whatever_is_done_to_it() {
        for known in [PathFacts::regular(1), PathFacts::block(512, 512)] {
            let used = PathFacts { in_use: vec!["mounted".to_string()], ..known };
            for deed in DEEDS {
                assert!(is_refused(deed, &used, false), "{deed:?}");
            }
        }
    }

    #[test]
    fn targets_in_use_may_be_allowed_and_outputs_never() {
        let used = PathFacts { in_use: vec!["mounted".to_string()], ..PathFacts::regular(1) };
        let refused = DEEDS.map(|deed| is_refused(deed, &used, true));
        assert_eq!(refused, [false, false, false, true, true]);
    }

    #[test]
    fn a_free_device_is_a_target_and_no_place_for_outputs() {
        let free = PathFacts::block(512, 512);
        assert_eq!(DEEDS.map(|deed| is_refused(deed, &free, false)), [false, false, false, true, true]);
        let null = PathFacts { kind: FileKind::Char, ..PathFacts::regular(0) };
        for known in [null, PathFacts::regular(1), PathFacts::absent()] {
            for deed in DEEDS {
                assert_eq!(refusal(Path::new("/x"), deed, &known, false), None, "{deed:?} {known:?}");
            }
        }
    }

    #[test]
    fn nothing_is_made_among_devices_and_the_nearest_is_named() {
        let typo = PathFacts { among_devices: true, ..PathFacts::absent() };
        for deed in DEEDS {
            let refused = refusal(Path::new("/dev/mapper/typo"), deed, &typo, true).unwrap();
            assert!(!refused.endangers && refused.message == "there is no device /dev/mapper/typo");
        }
        let near = PathFacts { similar: Some("/dev/sda".into()), ..typo };
        assert_eq!(no_such_device(Path::new("/dev/sdaa"), &near).unwrap().remedy, "did you mean /dev/sda?");
        let directory = PathFacts { exists: true, is_directory: true, ..near };
        assert_eq!(no_such_device(Path::new("/dev"), &directory), None);
    }
}

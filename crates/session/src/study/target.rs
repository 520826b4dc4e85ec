//! The target of a study: scratch files in a directory, or a file or device that is only read.
//!
//! Invariant: files that are written to were created here, in a scratch directory (`scratch.rs`); signal handlers are
//! installed before that, so that a signal ends the study and not the process.

use fiord_sys::errno::error_text;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use fiord_engine::registry;
use fiord_findings::lint_target;
use fiord_host::storage_stack::LayerKind;
use fiord_host::{FileSystemFacts, Prober, StorageStack, System, TargetFacts, TargetKind};
use fiord_lab::StudyTarget;
use fiord_plan::{EngineDescriptor, EngineName};
use fiord_report::Code;
use fiord_report::path::shown;
use fiord_report::table::{Table, shown_bytes};
use fiord_sys::signal;
use fiord_sys::stat::DirectSupport;

use super::scratch::{self, ScratchFiles};
use crate::device_table::device_table;

/// At most 1/8 of the free space is used.
const FREE_SHARE: u64 = 8;

/// The smallest size worth measuring.
pub const SIZE_MIN_BYTES: u64 = 8 << 20;

/// What is said of a target that is not a directory.
const READ_ONLY: &str = "it is only read, because writes would destroy its contents; a directory on it has the rows that write as well";

/// The columns of `fiord devices` that are shown in the heading.
const DEVICE: [&str; 7] = ["name", "type", "transport", "size_bytes", "model", "rotational", "scheduler"];

/// How much of a target a study uses.
#[derive(Clone, Copy, Debug)]
pub enum Space {
    /// What is suggested, and less where that is more than a part of the free space.
    AtMost(u64),
    /// What the job says, which is not changed.
    Exactly(u64),
}

impl Space {
    /// What it says.
    pub fn bytes(self) -> u64 {
        match self {
            Space::AtMost(bytes) | Space::Exactly(bytes) => bytes,
        }
    }
}

/// Probes `path` for runs that use so much of it, and creates scratch files if it is a directory. Scratch files
/// left there by killed studies are removed, except in a dry run.
///
/// # Errors
/// Why the target cannot be used, and what to do.
pub fn at(
    path: &Path,
    study: &str,
    space: Space,
    dry_run: bool,
) -> Result<(StudyTarget, Option<ScratchFiles>), String> {
    // Without handlers a study still runs, but a signal leaves its files for the next one to remove.
    let _ = signal::record_stop_requests();
    let facts = probe(path)?;
    match facts.kind {
        TargetKind::Directory if facts.among_devices => Err(format!(
            "{}: test files would be created among device nodes; name a directory of a file system, or a device to read",
            shown(path)
        )),
        TargetKind::Directory => {
            let directory = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
            let cleared =
                if dry_run { Vec::new() } else { scratch::clear(&directory, is_remote(&directory)) };
            // Clearing has freed space.
            let facts = if cleared.is_empty() { facts } else { probe(path)? };
            let (size_bytes, less) = within_free(path, &facts, space)?;
            let scratch = ScratchFiles::create(&directory, study);
            let mut scratch = scratch.map_err(|(path, error)| not_created(&path, &error))?;
            let file = scratch.make("data").map_err(|error| not_created(scratch.path(), &error))?;
            let mut target = study_target(path, &file, &probe(&file)?, size_bytes, true);
            target.remarks.extend(less.into_iter().chain(cleared));
            Ok((target, Some(scratch)))
        }
        TargetKind::Regular | TargetKind::Block => {
            let there = facts.size_bytes.unwrap_or(0);
            if let Err(error) = File::open(path) {
                return Err(format!(
                    "{}: cannot be opened for reading: {}; name a directory, or a file or device you may read",
                    shown(path),
                    error_text(&error)
                ));
            }
            if there < SIZE_MIN_BYTES {
                return Err(format!(
                    "{}: {} is too small to read from, and studies write only to scratch files; name a directory",
                    shown(path),
                    shown_bytes(there)
                ));
            }
            let mut target = study_target(path, path, &facts, there.min(space.bytes()) >> 20 << 20, false);
            target.remarks.push(READ_ONLY.to_string());
            Ok((target, None))
        }
        TargetKind::Absent => Err(format!("{}: no such directory, file or device", shown(path))),
        _ => Err(format!("{}: neither a directory nor a file nor a block device", shown(path))),
    }
}

/// The targets at several places, each of which is named once, as `find` makes them.
///
/// # Errors
/// Why one cannot be used, and what to do.
pub fn all<E: From<String>>(
    paths: &[&Path],
    mut find: impl FnMut(&Path) -> Result<(StudyTarget, Option<ScratchFiles>), E>,
) -> Result<Vec<(StudyTarget, Option<ScratchFiles>)>, E> {
    let mut targets: Vec<(StudyTarget, Option<ScratchFiles>)> = Vec::new();
    for path in paths {
        let found = find(path)?;
        if targets.iter().any(|(known, _)| known.path == found.0.path) {
            return Err(format!("{}: named twice; name each target once", shown(path)).into());
        }
        targets.push(found);
    }
    Ok(targets)
}

pub(super) fn probe(path: &Path) -> Result<TargetFacts, String> {
    Prober::default().probe(path).map_err(|error| format!("{}: {}", shown(path), error_text(&error)))
}

/// How many bytes may be used, and a remark if that is less than what was asked for.
fn within_free(directory: &Path, facts: &TargetFacts, space: Space) -> Result<(u64, Option<String>), String> {
    let wanted_bytes = space.bytes();
    if wanted_bytes < SIZE_MIN_BYTES {
        return Err(format!(
            "--size: {} is too small to measure a disk; the minimum is {}",
            shown_bytes(wanted_bytes),
            shown_bytes(SIZE_MIN_BYTES)
        ));
    }
    let available = facts.file_system.as_ref().map_or(u64::MAX, FileSystemFacts::room_bytes);
    let only = format!("{}: only {} are free", shown(directory), shown_bytes(available));
    if let Space::Exactly(bytes) = space {
        return match bytes <= available {
            true => Ok((bytes, None)),
            false => Err(format!(
                "{only}, and the job's size is {}; lower size=, free some space, or name another directory",
                shown_bytes(bytes)
            )),
        };
    }
    let size_bytes = wanted_bytes.min(available / FREE_SHARE) >> 20 << 20;
    if size_bytes < SIZE_MIN_BYTES {
        return Err(format!(
            "{only}; a study uses at most an eighth of that, and needs {}; free some space, or name another directory",
            shown_bytes(SIZE_MIN_BYTES),
        ));
    }
    let less = (size_bytes < wanted_bytes >> 20 << 20).then(|| {
        format!(
            "{} are used instead of {}: an eighth of the {} that are free",
            shown_bytes(size_bytes),
            shown_bytes(wanted_bytes),
            shown_bytes(available)
        )
    });
    Ok((size_bytes, less))
}

fn not_created(path: &Path, error: &io::Error) -> String {
    // Scratch files are reached through their open directory, whatever its path leads to.
    let remedy = match fs::exists("/proc/self/fd") {
        Ok(true) => "name a directory you may write to",
        _ => "/proc is missing, which a study needs; mount it (mount -t proc proc /proc)",
    };
    format!("{}: cannot be created: {}; {remedy}", shown(path), error_text(error))
}

pub(super) fn study_target(
    path: &Path,
    file: &Path,
    facts: &TargetFacts,
    size_bytes: u64,
    writable: bool,
) -> StudyTarget {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let file = real(file);
    let stack = StorageStack::of(&file, &System::read()).ok();
    let findings = lint_target(facts, stack.as_ref());
    StudyTarget {
        path: real(path),
        file,
        writable,
        size_bytes,
        free_bytes: facts.file_system.as_ref().map(FileSystemFacts::room_bytes),
        direct: !matches!(facts.direct, DirectSupport::Unsupported),
        in_memory: findings.iter().any(|finding| finding.code == Code::InMemory),
        engine: queued_engine(),
        file_system: facts.file_system.as_ref().map(|system| system.type_name.clone()),
        devices: stack.as_ref().map(devices_below).unwrap_or_default(),
        findings,
        identity: None,
        block_bytes: facts.direct_offset_bytes().unwrap_or(1).into(),
        zone_bytes: None,
        device_bytes: if writable { size_bytes } else { facts.size_bytes.unwrap_or(size_bytes) },
        remarks: Vec::new(),
    }
}

/// Whether other machines may use a directory as well.
fn is_remote(directory: &Path) -> bool {
    let chain = StorageStack::of(directory, &System::read());
    chain.is_ok_and(|chain| chain.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Server(_))))
}

/// The best queued engine for files and devices that is available on this kernel.
pub fn queued_engine() -> EngineName {
    let queued = |engine: &EngineDescriptor| engine.queueing.is_queued() && engine.transfers_files();
    let probed = registry::probe_those(queued).unwrap_or_default();
    // The newest first; if none works, the error is that of the oldest.
    let newest = probed.iter().rev().find(|probed| probed.works.is_ok());
    newest.or(probed.first()).map(|probed| probed.engine.name).unwrap_or_default()
}

/// The devices below the file, in the columns of the heading.
fn devices_below(stack: &StorageStack) -> Table {
    // A partition's disk follows it.
    let devices = stack.devices().into_iter().filter(|facts| facts.device.kind != "part");
    device_table(devices).select(&DEVICE)
}

//! The place a study works at: files of its own in a directory, or a file or device that is only read.
//!
//! Invariant: what is written to was made here, in a directory of the study's own (`own.rs`); from before it is made,
//! signals end the study and not the process.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use fiord_engine::registry;
use fiord_host::chain::Stage;
use fiord_host::{Chain, Claim, Prober, System, TargetFacts, TargetKind};
use fiord_lab::Site;
use fiord_report::path::shown;
use fiord_report::table::{Table, shown_bytes};
use fiord_sys::signal;
use fiord_sys::stat::DirectSupport;

use super::own::{self, OwnFiles};
use crate::devices::device_table;

/// One part in so many of what is free is used at most.
const FREE_SHARE: u64 = 8;

/// The least worth measuring.
const SIZE_MIN_BYTES: u64 = 8 << 20;

/// What the heading tells of a device, of the columns of `fiord devices`.
const DEVICE: [&str; 7] = ["name", "type", "transport", "size_bytes", "model", "rotational", "scheduler"];

/// The site at `target`, for runs that use up to `size_bytes`; with the files the study may write to, if it has some.
/// What earlier studies left there is cleared, but for a dry run.
///
/// # Errors
/// What, where, why, and what to do.
pub(crate) fn at(
    target: &Path,
    study: &str,
    size_bytes: u64,
    dry_run: bool,
) -> Result<(Site, Option<OwnFiles>), String> {
    // Without its handlers a study still runs; a signal then leaves its files to the next one.
    let _ = signal::record_stop_requests();
    let facts = probe(target)?;
    match facts.kind {
        TargetKind::Directory if facts.among_devices => Err(format!(
            "{}: files made there would stand among devices; name a directory of a file system, or a device to read",
            target.display()
        )),
        TargetKind::Directory => {
            let directory = fs::canonicalize(target).unwrap_or_else(|_| target.to_path_buf());
            let cleared = if dry_run { Vec::new() } else { own::clear(&directory, is_remote(&directory)) };
            // With what has been cleared, more is free.
            let facts = if cleared.is_empty() { facts } else { probe(target)? };
            let size_bytes = within_free(target, &facts, size_bytes)?;
            let own = OwnFiles::create(&directory, study);
            let mut own = own.map_err(|(path, error)| not_created(&path, &error))?;
            let file = own.make("data").map_err(|error| not_created(own.path(), &error))?;
            let mut site = site(target, &file, &probe(&file)?, size_bytes, true);
            site.remarks.extend(cleared);
            Ok((site, Some(own)))
        }
        TargetKind::Regular | TargetKind::Block => {
            let there = facts.size_bytes.unwrap_or(0);
            if let Err(error) = File::open(target) {
                return Err(format!(
                    "{}: cannot be opened for reading: {error}; name a directory, or a file or device you may read",
                    shown(target)
                ));
            }
            if there < SIZE_MIN_BYTES {
                return Err(format!(
                    "{}: {} is too small to read, and a study writes to files of its own alone; name a directory",
                    shown(target),
                    shown_bytes(there)
                ));
            }
            Ok((site(target, target, &facts, there.min(size_bytes) >> 20 << 20, false), None))
        }
        TargetKind::Absent => Err(format!("{}: there is no such directory, file or device", shown(target))),
        _ => Err(format!("{}: neither a directory nor a file nor a block device", shown(target))),
    }
}

fn probe(target: &Path) -> Result<TargetFacts, String> {
    Prober::default().probe(target).map_err(|error| format!("{}: {error}", shown(target)))
}

/// How much may be used, in whole MiB.
fn within_free(directory: &Path, facts: &TargetFacts, size_bytes: u64) -> Result<u64, String> {
    if size_bytes < SIZE_MIN_BYTES {
        return Err(format!(
            "--size: {} is too little to tell of a disk; {} is the least",
            shown_bytes(size_bytes),
            shown_bytes(SIZE_MIN_BYTES)
        ));
    }
    let available = facts.file_system.as_ref().map_or(u64::MAX, |system| system.available_bytes);
    let size_bytes = size_bytes.min(available / FREE_SHARE) >> 20 << 20;
    if size_bytes < SIZE_MIN_BYTES {
        return Err(format!(
            "{}: {} is free; a study uses an eighth of that at most, and {} at least; free some, or name another \
             directory",
            shown(directory),
            shown_bytes(available),
            shown_bytes(SIZE_MIN_BYTES),
        ));
    }
    Ok(size_bytes)
}

fn not_created(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be created: {error}; name a directory you may write to", shown(path))
}

fn site(target: &Path, file: &Path, facts: &TargetFacts, size_bytes: u64, writable: bool) -> Site {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let file = real(file);
    let (devices, in_memory) = below(&file);
    Site {
        target: real(target),
        file,
        writable,
        size_bytes,
        direct: !matches!(facts.direct, DirectSupport::Unsupported),
        in_memory,
        engine: queued_engine(),
        file_system: facts.file_system.as_ref().map(|system| system.type_name.clone()),
        devices,
        remarks: remarks(facts, in_memory),
    }
}

/// Whether other machines may work in a directory as well.
fn is_remote(directory: &Path) -> bool {
    let chain = Chain::of(directory, &System::read());
    chain.is_ok_and(|chain| chain.links.iter().any(|link| matches!(link.stage, Stage::Server(_))))
}

/// The best engine for queues that this kernel lets us use.
pub(crate) fn queued_engine() -> &'static str {
    const BEST: &str = "io_uring";
    let tried = registry::try_out().unwrap_or_default();
    if tried.iter().any(|tried| tried.info.name == BEST && tried.works.is_ok()) { BEST } else { "libaio" }
}

/// The devices below the file, and whether what is at the bottom is memory.
fn below(file: &Path) -> (Table, bool) {
    let Ok(chain) = Chain::of(file, &System::read()) else { return (Table::default(), false) };
    // A partition's disk follows it.
    let devices = chain.devices().into_iter().filter(|device| device.kind != "part");
    let in_memory = chain.links.iter().any(|link| link.stage == Stage::Memory);
    (device_table(devices).select(&DEVICE), in_memory)
}

/// What is to be known before the figures are read.
fn remarks(facts: &TargetFacts, in_memory: bool) -> Vec<String> {
    let mut remarks: Vec<String> = facts
        .live_claims()
        .map(|claim| match claim {
            Claim::Exclusive => "somebody else has it open: their I/O disturbs".to_string(),
            claim => format!("{claim}: others' I/O disturbs"),
        })
        .collect();
    if in_memory {
        remarks.push("it lies in memory: the figures tell of memory, not of a disk".to_string());
    }
    let (size, allocated) = (facts.size_bytes.unwrap_or(0), facts.allocated_bytes.unwrap_or(u64::MAX));
    if allocated < size {
        remarks.push(format!(
            "only {} of {} of it are on the disk: reading the holes tells nothing",
            shown_bytes(allocated),
            shown_bytes(size)
        ));
    }
    remarks
}

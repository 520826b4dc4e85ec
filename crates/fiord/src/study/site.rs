//! The place a study works at: a file of its own in a directory, or a file or device that is only read.
//!
//! Invariant: what is written to was made here, under a name nobody had, and is removed when this is dropped.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use fiord_host::{Chain, System, Target, TargetFacts, TargetKind};
use fiord_lab::Site;
use fiord_sys::stat::DirectSupport;
use fiord_sys::uring::{Ring, RingOptions};

/// What is left free of a file system, as a share of what is free: one part in so many is used at most.
const FREE_SHARE: u64 = 8;

/// The smallest own file worth measuring.
const SIZE_MIN_BYTES: u64 = 8 << 20;

/// A file that a study made for itself.
#[derive(Debug)]
pub(crate) struct OwnFile {
    path: PathBuf,
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = fs::remove_file(&self.path);
    }
}

/// The site at `target`, for runs that use up to `size_bytes`; with the file the study may write to, if it has one.
///
/// # Errors
/// What, where, why, and what to do.
pub(crate) fn at(target: &Path, study: &str, size_bytes: u64) -> Result<(Site, Option<OwnFile>), String> {
    let facts = probe(target)?;
    match facts.kind {
        TargetKind::Directory => {
            let own = own_file(target, study)?;
            let available = facts.file_system.as_ref().map_or(u64::MAX, |system| system.available_bytes);
            let size_bytes = size_bytes.min(available / FREE_SHARE) >> 20 << 20;
            if size_bytes < SIZE_MIN_BYTES {
                let (free, least) = (available >> 20, (SIZE_MIN_BYTES * FREE_SHARE) >> 20);
                return Err(format!(
                    "{}: {free} MiB are free, and a study wants {least}: it leaves {} of {FREE_SHARE} parts free; \
                     name another directory",
                    target.display(),
                    FREE_SHARE - 1
                ));
            }
            let facts = probe(&own.path)?;
            Ok((site(&own.path, &facts, size_bytes, true), Some(own)))
        }
        TargetKind::Regular | TargetKind::Block => {
            let there = facts.size_bytes.unwrap_or(0);
            if there == 0 {
                return Err(format!(
                    "{}: it is empty, and a study only reads it; name a directory",
                    target.display()
                ));
            }
            Ok((site(target, &facts, there.min(size_bytes), false), None))
        }
        TargetKind::Absent => {
            Err(format!("{}: there is no such directory, file or device", target.display()))
        }
        _ => Err(format!("{}: neither a directory nor a file nor a block device", target.display())),
    }
}

fn probe(target: &Path) -> Result<TargetFacts, String> {
    Target::probe(target).map_err(|error| format!("{}: {error}", target.display()))
}

/// A new, empty file in this directory.
fn own_file(directory: &Path, study: &str) -> Result<OwnFile, String> {
    let path = directory.join(format!("fiord-{study}-{}.tmp", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&path);
    made.map_err(|error| {
        format!("{}: cannot be created: {error}; name a directory you may write to", path.display())
    })?;
    Ok(OwnFile { path })
}

fn site(path: &Path, facts: &TargetFacts, size_bytes: u64, writable: bool) -> Site {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    Site {
        file: path.display().to_string(),
        writable,
        size_bytes,
        direct: !matches!(facts.direct, DirectSupport::Unsupported),
        engine: queued_engine(),
        heading: heading(&path),
    }
}

/// The best engine for queues that this kernel lets us use.
fn queued_engine() -> &'static str {
    let options = RingOptions {
        entries: 1,
        completion_entries: None,
        submission_polling: None,
        completion_polling: false,
    };
    if Ring::build(&options).is_ok() { "io_uring" } else { "libaio" }
}

/// What the file lies on, for people.
fn heading(path: &Path) -> Vec<(&'static str, String)> {
    let Ok(chain) = Chain::of(path, &System::read()) else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(system) = chain.file_systems().first() {
        lines.push(("File system", system.type_name.clone()));
    }
    for device in chain.devices() {
        let model = device.model.as_deref().unwrap_or("no model name");
        lines.push(("Device", format!("{} ({model})", device.name)));
    }
    lines
}

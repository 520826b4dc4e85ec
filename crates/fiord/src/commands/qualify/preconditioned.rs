//! What shows that a device was preconditioned before: runs of the history, the kernel's counters, and the device itself.
//!
//! Invariant: the device is only read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fiord_host::{WRITTEN_UNIT_BYTES, health};
use fiord_lab::qualify::{Earlier, FoundDevice, Kept};
use fiord_lab::{Study, StudyTarget};
use fiord_report::path::shown;
use fiord_report::time::iso;
use fiord_stats::Capped;
use fiord_store::{Filter, History, HistoryEntry, KeptRun, RunKind, RunSelector, StoreError};
use fiord_sys::errno::error_text;
use fiord_sys::procfs;
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::sysfs::Sysfs;

use crate::keep;
use crate::status::SUCCESS;
use crate::study::resume;

/// The kind of such a study in the history.
const QUALIFY: &str = "qualify";

/// Of each block size what is kept, or which evidence is missing.
pub(super) type Found = Vec<(u64, Result<Kept, String>)>;

/// How many places of a device are read, and how much of each.
const PLACES: u64 = 64;
const PLACE_BYTES: usize = 4096;

/// What is kept of the preconditioning of a device with blocks of each of these sizes, or which evidence is missing.
pub(super) fn found(target: &StudyTarget, blocks: &[u64]) -> Found {
    if blocks.is_empty() {
        return Vec::new();
    }
    let now = match target.zone_bytes {
        Some(_) => Err("nothing counts how often its zones are reset".to_string()),
        None => device(&target.file, target.size_bytes),
    };
    let of = |block_bytes: u64| {
        let now = now.as_ref().map_err(Clone::clone)?;
        newest(target, block_bytes, None)?.kept(block_bytes, now, false)
    };
    blocks.iter().map(|block_bytes| (*block_bytes, of(*block_bytes))).collect()
}

/// What is still kept of the preconditioning that a study kept before it was interrupted, by block size and run; of the other
/// block sizes it kept none.
///
/// # Errors
/// Which evidence is missing now.
pub(super) fn still(target: &StudyTarget, blocks: &[u64], kept: &[(u64, i64)]) -> Result<Found, String> {
    let of = |block_bytes: &u64| {
        let Some((_, run)) = kept.iter().find(|(block, _)| block == block_bytes) else {
            return Ok((
                *block_bytes,
                Err("the study that goes on has kept none of such blocks".to_string()),
            ));
        };
        let now = || device(&target.file, target.size_bytes);
        let still =
            newest(target, *block_bytes, Some(*run)).and_then(|run| run.kept(*block_bytes, &now()?, true));
        let lost = |why: String| {
            let name = target.shown();
            format!(
                "--resume: {name}: that the preconditioning by run {run} still holds cannot be shown any more: {why}; begin \
                 anew without --resume"
            )
        };
        Ok((*block_bytes, Ok(still.map_err(lost)?)))
    };
    blocks.iter().map(of).collect()
}

/// The runs whose preconditioning the newest study with these options on these devices kept; `None` if there is none.
pub(super) fn kept_by_newest(
    study: &dyn Study,
    targets: &[&StudyTarget],
) -> Result<Option<Vec<KeptRun>>, String> {
    let failed = |why: StoreError| why.to_string();
    let Some(history) = History::open_existing(&keep::place()?).map_err(failed)? else { return Ok(None) };
    let devices = keep::identity_of_study(targets, &[]).devices;
    let newest = resume::newest_that(&history, study, |identity| identity.devices == devices);
    Ok(newest.map_err(failed)?.map(|(_, identity)| identity.kept))
}

/// The newest run that has preconditioned as much of this device with such blocks, or the one of this number.
fn newest(target: &StudyTarget, block_bytes: u64, run: Option<i64>) -> Result<Earlier, String> {
    let none = || match run {
        Some(run) => format!("the history has no run {run} that did that to this device"),
        None => {
            "the history has no complete one of this device, of such blocks and as much of it".to_string()
        }
    };
    let failed = |why: StoreError| why.to_string();
    let history = History::open_existing(&keep::place()?).map_err(failed)?.ok_or_else(none)?;
    let kind = RunKind::from_name(QUALIFY.to_string());
    let words = keep::device_words(&target.file);
    // After a restart a device may have the name that another had before.
    let path = keep::target(&target.file);
    let all = history.list(&Filter::default()).map_err(failed)?.into_iter();
    for study in all.filter(|study| study.facts.kind == kind) {
        let devices = history.identity(study.id).map_err(failed)?.devices;
        if !devices.contains(&words) {
            continue;
        }
        let parts = history.list(&Filter { parent: Some(study.id), ..Filter::default() }).map_err(failed)?;
        let is_of_one_device = devices.len() == 1;
        let is_done = |part: &HistoryEntry| {
            let is_here = is_of_one_device || part.facts.targets.contains(&path);
            let is_asked = run.is_none_or(|run| run == part.id);
            part.facts.exit_status == Some(SUCCESS) && is_here && is_asked
        };
        // The report is the evidence, and the name only saves reading those of rounds.
        for part in
            parts.into_iter().filter(is_done).filter(|part| part.facts.title.contains("preconditioning"))
        {
            // A report of another format is no evidence.
            let Ok(Some(stored)) = history.load(RunSelector::Id(part.id)) else { continue };
            let Some((_, report)) = stored.printed else { continue };
            let date = iso(part.facts.started_ms, part.facts.utc_offset_s).chars().take(10).collect();
            let earlier = Earlier { run: part.id, date, report, is_of_one_device, later: Vec::new() };
            if earlier.has_preconditioned(block_bytes, target.size_bytes) {
                return Ok(Earlier { later: history.written_after(part.id).map_err(failed)?, ..earlier });
            }
        }
    }
    Err(none())
}

/// The device at this path, of which so many bytes are used.
fn device(path: &Path, size_bytes: u64) -> Result<FoundDevice, String> {
    let failed = |error: std::io::Error| format!("{}: {}", shown(path), error_text(&error));
    let found = stat::stat(path).map_err(failed)?;
    if found.kind != InodeKind::Block {
        return Err("nothing counts what is written to a file".to_string());
    }
    let device = Sysfs::default().block_device_of(found.special).map_err(failed)?;
    let counters = device.counters().map_err(failed)?;
    let own = health([device.name()]).pop();
    let open = File::open(path).map_err(failed)?;
    let (mut block, mut zero_places) = (vec![0; PLACE_BYTES], 0);
    let unit = PLACE_BYTES as u64;
    for place in 0..PLACES {
        let offset = (size_bytes - unit) / (PLACES - 1) * place / unit * unit;
        open.read_exact_at(&mut block, offset).map_err(failed)?;
        zero_places += usize::from(block.iter().all(|byte| *byte == 0));
    }
    Ok(FoundDevice {
        name: device.name().to_string(),
        boot_id: procfs::boot_id().ok(),
        write_sectors: counters.write_sectors,
        discard_ios: counters.discard_ios,
        lifetime_written_bytes: own.and_then(|own| own.log.written_bytes),
        lifetime_unit_bytes: WRITTEN_UNIT_BYTES,
        places: usize::capped(PLACES),
        zero_places,
    })
}

//! What shows that a device was preconditioned before: runs of the history, the kernel's counters, and the device itself.
//!
//! Invariant: the device is only read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fiord_host::{DeviceIdentity, WRITTEN_UNIT_BYTES, health};
use fiord_lab::StudyTarget;
use fiord_lab::qualify::{Earlier, FoundDevice, Kept};
use fiord_lab::several::is_of_several;
use fiord_report::path::shown;
use fiord_report::time::iso;
use fiord_store::{Filter, History, HistoryEntry, RunKind, RunSelector, StoreError};
use fiord_sys::errno::error_text;
use fiord_sys::procfs;
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::sysfs::Sysfs;

use crate::keep;
use crate::status::SUCCESS;

/// The kind of such a study in the history.
const QUALIFY: &str = "qualify";

/// Of each block size what is kept, or which evidence is missing.
pub(super) type Found = Vec<(u64, Result<Kept, String>)>;

/// Runs whose preconditioning a study kept, each with its block size.
pub(super) type KeptRuns = Vec<(u64, i64)>;

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

/// The newest study of so many targets and these options in the history, whatever it kept: which run's preconditioning it
/// kept, by target and block size. `purpose` is that of the study that keeps these.
pub(super) fn kept_by_newest(
    targets: usize,
    purpose: impl Fn(&[KeptRuns]) -> Result<String, String>,
) -> Result<Option<Vec<KeptRuns>>, String> {
    let failed = |why: StoreError| why.to_string();
    let Some(history) = History::open_existing(&keep::place()?).map_err(failed)? else { return Ok(None) };
    let kind = RunKind::from_name(QUALIFY.to_string());
    let all = history.list(&Filter::default()).map_err(failed)?;
    for study in all.into_iter().filter(|study| study.facts.kind == kind) {
        let recorded = history.kept_by(study.id).map_err(failed)?;
        let of = |target: usize| {
            let own = recorded.iter().filter(|kept| kept.target == target);
            own.map(|kept| (kept.block_bytes, kept.run)).collect()
        };
        let kept: Vec<KeptRuns> = (0..targets).map(of).collect();
        if study.facts.title == keep::title_of_study(QUALIFY, &purpose(&kept)?) {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

/// The newest run that has preconditioned as much of this device with such blocks, or the one of this number.
fn newest(target: &StudyTarget, block_bytes: u64, run: Option<i64>) -> Result<Earlier, String> {
    let none = || match run {
        Some(run) => format!("the history has no run {run} that did that to this device"),
        None => {
            "the history has no complete one of this device, of such blocks and as much of it".to_string()
        }
    };
    let identity = DeviceIdentity::of(&target.file).map_err(|error| error_text(&error))?;
    let failed = |why: StoreError| why.to_string();
    let history = History::open_existing(&keep::place()?).map_err(failed)?.ok_or_else(none)?;
    let kind = RunKind::from_name(QUALIFY.to_string());
    let is_of_device = |entry: &HistoryEntry| {
        let is_named = |word: &String| {
            let place = format!(" of {word}");
            let mut ends = entry.facts.title.split(&place).skip(1);
            ends.any(|rest| rest.starts_with(", ") || rest.starts_with(" and "))
        };
        entry.facts.kind == kind && identity.words.iter().any(is_named)
    };
    // After a restart a device may have the name that another had before.
    let path = keep::target(&target.file);
    for study in history.list(&Filter::default()).map_err(failed)?.into_iter().filter(is_of_device) {
        let parts = history.list(&Filter { parent: Some(study.id), ..Filter::default() }).map_err(failed)?;
        let is_of_one_device = !is_of_several(&study.facts.title);
        let is_done = |part: &HistoryEntry| {
            let is_here = is_of_one_device || part.facts.targets.contains(&path);
            let is_asked = run.is_none_or(|run| run == part.id);
            part.facts.exit_status == Some(SUCCESS) && is_here && is_asked
        };
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
        places: PLACES as usize,
        zero_places,
    })
}

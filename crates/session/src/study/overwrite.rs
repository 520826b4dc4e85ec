//! The target of a study that overwrites a device or file.
//!
//! Invariant: only what the user has identified is overwritten, and nothing that is in use, or whose contents are known or
//! cannot be read.

use std::path::{Path, PathBuf};

use fiord_host::{DeviceIdentity, TargetFacts, TargetKind, signature};
use fiord_lab::StudyTarget;
use fiord_plan::Plan;
use fiord_report::path::shown;
use fiord_report::table::shown_bytes;
use fiord_sys::errno::error_text;
use fiord_sys::signal;
use fiord_sys::sysfs::Sysfs;
use fiord_sys::zones;
use fiord_worker::TargetOpener;

use super::target::{SIZE_MIN_BYTES, probe, study_target};
use crate::error::SessionError;

/// What may be overwritten.
#[derive(Clone, Copy, Debug)]
pub struct Overwrite<'a> {
    /// What identifies each device or file that may be.
    pub words: &'a [String],
    /// Whether its contents may be known ones, such as a file system.
    pub erase_signatures: bool,
    /// Whether its zones may be such that are written in sequence only.
    pub in_sequence: bool,
}

/// The device or file at `path` for runs that overwrite it; `used` says how many of its bytes they use.
///
/// # Errors
/// It is not what the user has identified, is in use, or has contents; or why it cannot be used.
pub fn overwritten(
    path: &Path,
    allowed: Overwrite<'_>,
    used: impl FnOnce(u64) -> u64,
) -> Result<StudyTarget, SessionError> {
    // Without handlers a study still runs, but a signal ends the process.
    let _ = signal::record_stop_requests();
    let facts = probe(path)?;
    if !matches!(facts.kind, TargetKind::Regular | TargetKind::Block) {
        return Err(format!("{}: neither a device nor a file; name one", shown(path)).into());
    }
    let identity = identity_of(path)?;
    let word = named(path, &identity, allowed.words)?;
    let refused = |why: String| SessionError { why: format!("{}: {why}", shown(path)), is_refused: true };
    if facts.read_only {
        return Err(refused("it is read-only; name another".to_string()));
    }
    let zone_bytes = written_in_sequence(&facts, allowed.in_sequence)
        .map_err(|why| SessionError::from(format!("{}: {why}", shown(path))))?;
    if facts.kind == TargetKind::Block {
        TargetOpener::default().may_overwrite(path)?;
    }
    if let Some(claim) = facts.live_claims().next() {
        return Err(refused(format!("{claim}; end that use, or name another")));
    }
    let partitions = facts.device.filter(|_| facts.kind == TargetKind::Block).and_then(|number| {
        let device = Sysfs::default().block_device_of(number).ok()?;
        Some(device.partitions()).filter(|partitions| !partitions.is_empty())
    });
    let contents = match signature::of_device(path) {
        Ok(known) => known.or(partitions.map(|_| "partitions")),
        Err(error) => {
            let why = error_text(&error);
            return Err(refused(format!(
                "what is on it cannot be read ({why}), and it may be data; name another"
            )));
        }
    };
    if let Some(what) = contents.filter(|_| !allowed.erase_signatures) {
        return Err(refused(format!("found on it: {what}; --erase-signatures if that is to be destroyed")));
    }
    let size_bytes = used(identity.size_bytes).min(identity.size_bytes) >> 20 << 20;
    let size_bytes = size_bytes - zone_bytes.map_or(0, |zone| size_bytes % zone);
    let least_bytes = SIZE_MIN_BYTES.max(zone_bytes.unwrap_or(0));
    if size_bytes < least_bytes {
        return Err(format!(
            "{}: {} of {} are too small to measure; the minimum is {}",
            shown(path),
            shown_bytes(size_bytes),
            shown_bytes(identity.size_bytes),
            shown_bytes(least_bytes)
        )
        .into());
    }
    let mut target = study_target(path, path, &facts, size_bytes, true);
    target.identity = Some(word);
    target.device_bytes = identity.size_bytes;
    target.zone_bytes = zone_bytes;
    target
        .remarks
        .extend(contents.map(|what| format!("destroyed on it, as far as it was overwritten: {what}")));
    Ok(target)
}

/// The length of its zones, if they are written in sequence only and may be.
fn written_in_sequence(facts: &TargetFacts, may_be: bool) -> Result<Option<u64>, &'static str> {
    if facts.queue.as_ref().is_none_or(|queue| queue.zoned != "host-managed") {
        return Ok(None);
    }
    let device = facts.device.filter(|_| may_be && facts.kind == TargetKind::Block);
    device.and_then(zones::shown_zone_bytes).filter(|bytes| *bytes > 0).map(Some).ok_or(
        "its zones are written in sequence only, which no random write does; name a device without zones, or use \
         fiord qualify on the whole device",
    )
}

/// The word by which the user has identified it.
fn named(path: &Path, identity: &DeviceIdentity, words: &[String]) -> Result<String, SessionError> {
    if let Some(word) = words.iter().find(|word| identity.is(word)) {
        return Ok(word.clone());
    }
    let own = identity.words.first().map_or("", String::as_str);
    let model = identity.model.as_ref().map_or_else(String::new, |model| format!("{model}, "));
    let what = format!("{model}{}, identified by {own:?}", shown_bytes(identity.size_bytes));
    let why = match words {
        [] => "its contents would be destroyed".to_string(),
        [only] => format!("--overwrite={only} is another device"),
        _ => "no --overwrite is about it".to_string(),
    };
    let why = format!("{}: {why}; --overwrite={own:?} overwrites this one ({what})", shown(path));
    Err(SessionError { why, is_refused: true })
}

fn identity_of(path: &Path) -> Result<DeviceIdentity, String> {
    DeviceIdentity::of(path).map_err(|error| format!("{}: {}", shown(path), error_text(&error)))
}

/// What the runs of a study may write of a device or file that is not the study's own.
pub(super) struct WriteLimit {
    path: PathBuf,
    /// What the user has identified it by; `None` if it is only read.
    word: Option<String>,
    bytes: u64,
}

impl WriteLimit {
    /// Of a target; `None` for a scratch file, which may be written as the study likes.
    pub(super) fn of(target: &StudyTarget) -> Option<WriteLimit> {
        let StudyTarget { file, identity, writable, size_bytes, .. } = target;
        let bytes = if *writable { *size_bytes } else { 0 };
        (!writable || identity.is_some()).then(|| WriteLimit {
            path: file.clone(),
            word: identity.clone(),
            bytes,
        })
    }

    /// Checks that the run that errors call `name` keeps to it.
    ///
    /// # Errors
    /// A job would write where it may not.
    pub(super) fn check(&self, name: &str, plan: &Plan) -> Result<(), SessionError> {
        let jobs = plan.jobs.iter().filter(|job| job.files.writable);
        let ends = jobs.flat_map(|job| &job.files.list).filter(|file| file.path == self.path);
        let end_bytes = ends.map(|file| file.offset_bytes.saturating_add(file.length_bytes)).max();
        if end_bytes.is_none_or(|end| self.word.is_some() && end <= self.bytes) {
            return Ok(());
        }
        let why = match &self.word {
            None => "it is only read here, and would be written; --overwrite names a device to overwrite"
                .to_string(),
            Some(_) => format!(
                "only {} of it are to be overwritten, and a job would write beyond; give its size in bytes, and no offset",
                shown_bytes(self.bytes)
            ),
        };
        Err(SessionError { why: format!("{name}: {}: {why}\n", shown(&self.path)), is_refused: true })
    }

    /// Checks that it still is what the user has identified: hours pass between the first run and the last.
    ///
    /// # Errors
    /// Another device is at its path now.
    pub(super) fn check_again(&self) -> Result<(), SessionError> {
        self.word.as_ref().map_or(Ok(()), |word| check_again(&self.path, word))
    }
}

/// Checks that a device or file still is what the user has identified.
///
/// # Errors
/// Another one is at this path now.
fn check_again(path: &Path, word: &str) -> Result<(), SessionError> {
    if identity_of(path)?.is(word) {
        return Ok(());
    }
    let why = format!("{}: it is no longer {word:?}; nothing more is written to it", shown(path));
    Err(SessionError { why, is_refused: true })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fiord_host::Machine;
    use fiord_lab::Step;
    use fiord_options::{Section, job};

    use super::*;
    use crate::study::step_plan::StepPlan;

    #[test]
    fn only_what_was_identified_is_overwritten_and_it_is_looked_at_again() {
        let path = std::env::temp_dir().join(format!("fiord-overwrite-{}", std::process::id()));
        std::fs::write(&path, vec![1; 16 << 20]).unwrap();
        let word = std::fs::canonicalize(&path).unwrap().display().to_string();
        let try_with = |words: &[&str], used: fn(u64) -> u64| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            overwritten(&path, Overwrite { words: &words, erase_signatures: false, in_sequence: false }, used)
        };
        let target = try_with(&["x", &word], |all| all / 2 + 5).unwrap();
        assert_eq!(
            (target.size_bytes, target.device_bytes, target.identity.clone()),
            (8 << 20, 16 << 20, Some(word.clone()))
        );
        for words in [&[][..], &["x"], &["x", "y"], &[""]] {
            let refused = try_with(words, |all| all).unwrap_err();
            assert!(
                refused.is_refused && refused.why.contains(&format!("--overwrite={word:?}")),
                "{}",
                refused.why
            );
        }
        assert!(try_with(&[&word], |_| 1 << 20).unwrap_err().why.contains("the minimum is 8MiB"));
        check_again(&path, &word).unwrap();
        assert!(check_again(&path, "the disk that was here").unwrap_err().is_refused);
        let machine = Machine::read().unwrap();
        let plan = |rw: &str, size: &str| {
            let options = [(job::Access::rw, rw), (job::Amount::size, size)];
            let step = Step::measure("step", vec![Section::new("job").with(options)], Duration::ZERO);
            StepPlan::of("run 1", &step.on(std::fs::canonicalize(&path).unwrap()), false, &machine).unwrap()
        };
        let refusal = |target: &StudyTarget, rw: &str, size: &str| {
            let limit = WriteLimit::of(target).unwrap();
            limit.check("run 1", &plan(rw, size).plan).err().map_or_else(String::new, |refused| refused.why)
        };
        assert_eq!((refusal(&target, "write", "8m"), refusal(&target, "read", "16m")), Default::default());
        assert!(refusal(&target, "write", "9m").contains("only 8MiB of it are to be overwritten"));
        let read_only = StudyTarget { writable: false, identity: None, ..target };
        assert_eq!(refusal(&read_only, "read", "16m"), "");
        assert!(refusal(&read_only, "randwrite", "4k").contains("--overwrite names"));
        std::fs::remove_file(&path).unwrap();
        assert!(check_again(&path, &word).is_err());
    }
}

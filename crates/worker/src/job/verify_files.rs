//! The saved state of a verified job: written at its end, and loaded by the job that verifies.
//!
//! Invariant: a state that cannot be saved is reported and fails no job, but a part of one fails the run; one that cannot
//! be loaded fails the job, which would otherwise verify what was never written.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;

use fiord_plan::shown::shown;
use fiord_plan::{Job, Verification};
use fiord_sys::errno::Errno;
use fiord_verify::VerifyState;
use fiord_workload::{OperationSource, Source};

use crate::failure::Failure;
use crate::files::target_opener::TargetOpener;
use crate::report::Remark;

/// Saves the progress of `job`'s writes, if the job requests it, which it does by default. Returns what is to be said if
/// that failed.
pub(crate) fn save_state(job: &Job, source: &Source, opener: &TargetOpener) -> Option<Remark> {
    let verification = job.verification.as_ref()?;
    let path = verification.saved_state.as_deref()?;
    let state = VerifyState { name: job.name.as_bytes().to_vec(), ..source.state()? };
    let bytes = state.encode(verification.format.header);
    if opener.states.as_ref().is_some_and(|states| states.save(job, &bytes)) {
        return None;
    }
    let unsaved = |failure: &Failure| format!("the state {} is not saved: {failure}", shown(path));
    let mut file = match opener.create_named(path, false) {
        Ok(file) => file,
        // As in fio, verification does not need a directory that may be written to.
        Err(failure) if !failure.errno.is_some_and(Errno::is_no_space) => {
            return Some(Remark::warning(Verification::SAVE_OPTION, unsaved(&failure)));
        }
        Err(failure) => return Some(Remark::lost_output(Verification::SAVE_OPTION, unsaved(&failure))),
    };
    let written = file.write_all(&bytes);
    let failure = Failure::file("write", path, &written.err()?);
    Some(Remark::lost_output(Verification::SAVE_OPTION, unsaved(&failure)))
}

/// The state of the job whose writes are verified, if it is to be loaded.
pub(crate) fn load_state(
    job: &Job,
    verification: &Verification,
    opener: &TargetOpener,
) -> Result<Option<VerifyState>, Failure> {
    let Some(path) = &verification.loaded_state else { return Ok(None) };
    let operation = "load the saved state";
    let bytes = match &opener.states {
        None => std::fs::read(path).map_err(|error| Failure::file(operation, path, &error))?,
        Some(states) => states.load(job).ok_or_else(|| {
            let why = "there is none where the run was started: start this one in the directory of the run that wrote";
            Failure::other(operation, why.to_string())
        })?,
    };
    let state = VerifyState::parse(&bytes).map_err(|damage| Failure {
        path: Some(path.clone()),
        ..Failure::other(operation, damage.to_string())
    })?;
    Ok(Some(state))
}

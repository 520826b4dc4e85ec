//! The saved state of a verified job: written at its end, and loaded by the job that verifies.
//!
//! Invariant: a state that cannot be saved is reported and fails nothing; one that cannot be loaded fails the job, which
//! would otherwise verify what was never written.

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fiord_plan::shown::shown;
use fiord_plan::{Job, Verification};
use fiord_verify::{HeaderFormat, VerifyState};
use fiord_workload::{OperationSource, Source};

use crate::failure::Failure;
use crate::files::target_opener::TargetOpener;

/// Saves the progress of `job`'s writes, if the job requests it. Returns a message if that failed.
pub(crate) fn save_state(job: &Job, source: &Source, opener: &TargetOpener) -> Option<String> {
    let verification = job.verification.as_ref()?;
    let path = verification.saved_state.as_deref()?;
    let state = VerifyState { name: job.name.as_bytes().to_vec(), ..source.state()? };
    let saved = write(path, &state, verification.format.header, opener);
    saved.err().map(|failure| format!("the state {} is not saved: {failure}", shown(path)))
}

fn write(
    path: &Path,
    state: &VerifyState,
    format: HeaderFormat,
    opener: &TargetOpener,
) -> Result<(), Failure> {
    let mut file = opener.create_named(path, false)?;
    file.write_all(&state.encode(format)).map_err(|error| Failure::file("write", path, &error))
}

/// The state of the job whose writes are verified, if it is to be loaded.
pub(crate) fn load_state(verification: &Verification) -> Result<Option<VerifyState>, Failure> {
    let Some(path) = &verification.loaded_state else { return Ok(None) };
    let operation = "load the saved state";
    let bytes = std::fs::read(path).map_err(|error| Failure::file(operation, path, &error))?;
    let state = VerifyState::parse(&bytes).map_err(|damage| Failure {
        path: Some(path.clone()),
        ..Failure::other(operation, damage.to_string())
    })?;
    Ok(Some(state))
}

//! The options by which a study may overwrite devices, and targets as they allow.
//!
//! Invariant: without them, a device or file that is there is only read.

use std::path::Path;

use fiord_lab::StudyTarget;
use fiord_report::path::shown;
use fiord_session::study::overwrite::{Overwrite, overwritten};
use fiord_session::study::scratch::ScratchFiles;
use fiord_session::study::target::{self, Space};

use crate::arguments::CommandError;

/// What a study may overwrite.
#[derive(clap::Args, Debug, Default)]
#[group(skip)]
pub(crate) struct Overwriting {
    /// Overwrite the device of this serial number or
    /// WWN (of a loop device, its backing file;
    /// docs/qualify.md)
    #[arg(long, value_name = "SERIAL")]
    pub overwrite: Vec<String>,
    /// Overwrite it although there is a file system or
    /// the like on it
    #[arg(long, requires = "overwrite")]
    pub erase_signatures: bool,
}

impl Overwriting {
    /// What may be overwritten.
    pub(crate) fn allowed(&self) -> Overwrite<'_> {
        Overwrite { words: &self.overwrite, erase_signatures: self.erase_signatures, in_sequence: false }
    }

    /// The target at `path` for runs of this study that use up to so many bytes.
    pub(crate) fn target(
        &self,
        path: &Path,
        study: &str,
        space: Space,
        dry_run: bool,
    ) -> Result<(StudyTarget, Option<ScratchFiles>), CommandError> {
        if self.overwrite.is_empty() {
            return Ok(target::at(path, study, space, dry_run)?);
        }
        if path.is_dir() {
            let why = "a directory is tested in a scratch file; leave out --overwrite";
            return Err(format!("{}: {why}", shown(path)).into());
        }
        Ok((overwritten(path, self.allowed(), |_| space.bytes())?, None))
    }
}

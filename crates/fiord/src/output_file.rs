//! The files that fiord's own subcommands write: pages, charts, exports, metrics.
//!
//! Invariant: a file is written as a whole or not at all; never one that the command reads, tests or keeps (`claims.rs`),
//! and one that fiord did not write only with `--force`. All of this is checked before the command does anything, and again
//! when it writes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fiord_model::RECORDING_MARK;
use fiord_model::jobfile::MARK;
use fiord_options::bytes::find;
use fiord_report::path::shown;
use fiord_session::claims;
use fiord_sys::errno::error_text;
use fiord_worker::{Replacement, TargetOpener};

use crate::arguments::CommandError;
use crate::status;

/// What is in the first bytes of the files that fiord writes.
const MARKS: [&str; 8] = [
    // A page of HTML.
    "<meta name=\"generator\" content=\"fiord ",
    // A chart.
    "<!-- Made by fiord -->",
    // The exports of the history: CSV and line protocol.
    "id,study,kind,title,command,",
    "fiord_run,",
    // Metrics.
    "# HELP fiord_",
    // A journal.
    "fiord-crash-test ",
    // A job file made of a trace.
    MARK,
    // A recording.
    RECORDING_MARK,
];

/// What is wrong with a file that has contents of another program's or the user's.
const FOREIGN: &str = "exists, and fiord did not write it";

/// Its last bytes name the program that wrote a Parquet file.
const PARQUET: (&str, &str) = ("fiord version ", "PAR1");

/// How much of the beginning and of the end of a file is searched.
const MARKED_BYTES: u64 = 1024;

/// The option of commands that write files.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Force {
    /// Replace the output file even if fiord did not write it
    #[arg(long)]
    force: bool,
}

/// A file that a command is to write.
#[derive(Clone, Debug)]
pub(crate) struct OutputFile {
    option: &'static str,
    path: PathBuf,
    /// `None`: the command has no such option.
    force: Option<Force>,
}

impl OutputFile {
    /// The file that this option names.
    ///
    /// # Errors
    /// Why it cannot, or must not, be written.
    pub(crate) fn new(
        option: &'static str,
        path: &Path,
        force: Option<Force>,
    ) -> Result<OutputFile, CommandError> {
        let file = OutputFile { option, path: path.to_path_buf(), force };
        file.check()?;
        Ok(file)
    }

    /// Its path, as the user typed it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks it against all that the command is known to read, test and keep by now.
    ///
    /// # Errors
    /// Why it cannot, or must not, be written.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let OutputFile { option, path, force } = self;
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if path.is_dir() || !directory.is_dir() {
            return Err(self.failed(status::FAILED, "not a file in an existing directory"));
        }
        TargetOpener::default().may_write(path).map_err(|failure| {
            let CommandError { status, .. } = CommandError::from(failure.clone());
            self.failed(status, &failure.reason())
        })?;
        claims::output(option, path).map_err(|why| self.refused(&why, ""))?;
        match is_foreign(path) {
            Ok(true) => match force {
                Some(Force { force: true }) => Ok(()),
                Some(_) => Err(self.refused(FOREIGN, "or replace it with --force")),
                None => Err(self.refused(FOREIGN, "or remove this one first")),
            },
            Ok(false) => Ok(()),
            Err(error) => Err(self.failed(status::FAILED, &error_text(&error))),
        }
    }

    /// Writes it. Pipes and character devices are written to; a regular file is replaced.
    ///
    /// # Errors
    /// Why it could not, or must not, be written.
    pub(crate) fn write(&self, contents: &[u8]) -> Result<(), CommandError> {
        let mut opened = self.open()?;
        opened.file().write_all(contents).map_err(|error| self.not_written(&error))?;
        opened.keep()
    }

    /// Opens it for contents that come little by little.
    ///
    /// # Errors
    /// Why it cannot, or must not, be written.
    pub(crate) fn open(&self) -> Result<OpenedOutput, CommandError> {
        self.check()?;
        let opener = TargetOpener::default();
        match !self.path.exists() || self.path.is_file() {
            true => Ok(OpenedOutput::Beside(opener.replacement(&self.path)?)),
            false => Ok(OpenedOutput::There(opener.create(&self.path, false)?)),
        }
    }

    /// What to say if writing has failed.
    pub(crate) fn not_written(&self, error: &io::Error) -> CommandError {
        self.failed(status::FAILED, &error_text(error))
    }

    fn refused(&self, why: &str, or: &str) -> CommandError {
        let remedy = [claims::REMEDY, or].join(", ");
        self.failed(status::REFUSED, &format!("it {why}; {}", remedy.trim_end_matches(", ")))
    }

    fn failed(&self, status: u8, why: &str) -> CommandError {
        let space = if self.option.ends_with(':') { "" } else { " " };
        CommandError { why: format!("{}{space}{}: {why}", self.option, shown(&self.path)), status }
    }
}

/// An output file while it is written.
pub(crate) enum OpenedOutput {
    /// One that replaces what is there once it is kept.
    Beside(Replacement),
    /// A pipe or a character device.
    There(File),
}

impl OpenedOutput {
    /// Where to write.
    pub(crate) fn file(&mut self) -> &mut File {
        match self {
            OpenedOutput::Beside(replacement) => &mut replacement.file,
            OpenedOutput::There(file) => file,
        }
    }

    /// Puts it in its place; without that, nothing is left of it.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(crate) fn keep(&mut self) -> Result<(), CommandError> {
        match self {
            OpenedOutput::Beside(replacement) => Ok(replacement.keep()?),
            OpenedOutput::There(_) => Ok(()),
        }
    }
}

/// Whether a file has contents that fiord did not write.
fn is_foreign(path: &Path) -> io::Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    (&mut file).take(MARKED_BYTES).read_to_end(&mut first)?;
    file.seek(SeekFrom::Start(length.saturating_sub(MARKED_BYTES)))?;
    file.take(MARKED_BYTES).read_to_end(&mut last)?;
    let has = |bytes: &[u8], mark: &str| find(bytes, mark.as_bytes()).is_some();
    let is_parquet = last.ends_with(PARQUET.1.as_bytes()) && has(&last, PARQUET.0);
    Ok(length > 0 && !is_parquet && !MARKS.iter().any(|mark| has(&first, mark)))
}

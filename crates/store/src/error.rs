//! Errors of the history.
//!
//! Invariant: the text names the file, what is wrong with it, and what to do.

use fiord_errno::error_text;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// A history that cannot be used, and why.
#[derive(Debug)]
pub struct StoreError {
    /// The database.
    pub path: PathBuf,
    /// Why.
    pub cause: Cause,
}

/// Why a history cannot be used.
#[derive(Debug)]
pub enum Cause {
    /// Its directory cannot be created.
    Directory(io::Error),
    /// SQLite reported an error.
    Database(rusqlite::Error),
    /// Another program's database.
    Foreign,
    /// Its tables are those of another version of fiord.
    OtherSchema {
        /// Their number.
        found: i64,
        /// That of the tables known here.
        known: i64,
    },
    /// The report was recorded by another version of fiord.
    OtherReport {
        /// The number of its format.
        found: u32,
        /// That of the format known here.
        known: u32,
    },
    /// The report cannot be stored, and why.
    Unstorable(String),
    /// It cannot be imported, and why.
    Unimportable(String),
    /// The bytes of a report do not encode one.
    Damaged,
}

impl StoreError {
    pub(crate) fn new(path: &Path, cause: impl Into<Cause>) -> StoreError {
        StoreError { path: path.to_owned(), cause: cause.into() }
    }
}

impl From<rusqlite::Error> for Cause {
    fn from(error: rusqlite::Error) -> Cause {
        Cause::Database(error)
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OTHER_PLACE: &str = "set XDG_STATE_HOME to a directory that can be written";
        match self {
            Cause::Directory(error) => {
                write!(out, "its directory cannot be created: {}; {OTHER_PLACE}", error_text(error))
            }
            Cause::Database(why) => match why.sqlite_error_code() {
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => write!(out, "{why}; {OTHER_PLACE}"),
                Some(ErrorCode::DiskFull) => {
                    write!(out, "{why}; free some space, or delete runs with fiord history rm")
                }
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                    write!(out, "{why}; move the file away, and the next run creates a new one")
                }
                _ => write!(out, "{why}"),
            },
            Cause::Foreign => {
                out.write_str("another program's database; move it away, and the next run creates a new one")
            }
            Cause::OtherSchema { found, known } => write!(
                out,
                "another version of fiord created it (schema {found}, this one reads {known}); use that fiord, or move \
                 the file away, and the next run creates a new one"
            ),
            Cause::OtherReport { found, known } => write!(
                out,
                "another version of fiord recorded this report (format {found}, this one reads {known}); use that \
                 fiord, or delete the run with fiord history rm"
            ),
            Cause::Unstorable(why) => write!(out, "the report cannot be recorded: {why}"),
            Cause::Unimportable(why) => out.write_str(why),
            Cause::Damaged => out.write_str("the stored report is damaged; delete it with fiord history rm"),
        }
    }
}

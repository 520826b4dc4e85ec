//! What keeps a history from being used.
//!
//! Invariant: the text says which file, what happened to it, and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::form::Damaged;

/// A history that cannot be used, and why.
#[derive(Debug)]
pub struct StoreError {
    /// The database.
    pub path: PathBuf,
    /// What is the matter.
    pub trouble: Trouble,
}

/// What is the matter with a history.
#[derive(Debug)]
pub enum Trouble {
    /// Its directory cannot be made.
    Directory(io::Error),
    /// SQLite says so.
    Database(rusqlite::Error),
    /// Another program's database.
    Foreign,
    /// A later fiord laid the tables out.
    NewerSchema {
        /// The schema it has.
        found: i64,
        /// The last one known here.
        known: i64,
    },
    /// A later fiord kept this report.
    NewerReport {
        /// The form it has.
        found: u32,
        /// The last one known here.
        known: u32,
    },
    /// A report's bytes hold no report.
    Damaged,
}

impl StoreError {
    pub(crate) fn new(path: &Path, trouble: impl Into<Trouble>) -> StoreError {
        StoreError { path: path.to_owned(), trouble: trouble.into() }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        Trouble::Database(error)
    }
}

impl From<Damaged> for Trouble {
    fn from(_: Damaged) -> Trouble {
        Trouble::Damaged
    }
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.trouble)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OTHER_PLACE: &str = "set XDG_STATE_HOME to a directory that can be written";
        match self {
            Trouble::Directory(error) => write!(out, "its directory cannot be made: {error}; {OTHER_PLACE}"),
            Trouble::Database(error) => match error.sqlite_error_code() {
                Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => write!(out, "{error}; {OTHER_PLACE}"),
                Some(ErrorCode::DiskFull) => {
                    write!(out, "{error}; make room, or forget runs with fiord history rm")
                }
                Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                    write!(out, "{error}; move the file away, and the next run makes a new one")
                }
                _ => write!(out, "{error}"),
            },
            Trouble::Foreign => {
                out.write_str("another program's database; move it away, and the next run makes a new one")
            }
            Trouble::NewerSchema { found, known } => write!(
                out,
                "a later fiord made it (schema {found}, this one knows up to {known}); use that fiord, or set \
                 XDG_STATE_HOME to another directory"
            ),
            Trouble::NewerReport { found, known } => write!(
                out,
                "a later fiord kept this report (form {found}, this one knows up to {known}); use that fiord"
            ),
            Trouble::Damaged => out.write_str("the kept report is damaged; forget it with fiord history rm"),
        }
    }
}

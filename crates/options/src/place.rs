//! The place of a setting in the user's input.
//!
//! Invariant: lines and columns count from 1, so that editors find them.

use std::ffi::OsStr;
use std::fmt;
use std::sync::Arc;

use crate::shown::shown;

/// The source of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The command line; the "line" is 1 and columns count bytes of the arguments joined by one space.
    CommandLine,
    /// A job file (or `-`), by the name the user gave.
    File(Arc<OsStr>),
    /// A default or a value derived from other options.
    Derived,
}

/// A position in a source. Lines and columns count from 1; columns count bytes. Line 0 is the source as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The text the position lies in.
    pub source: Origin,
    /// Line, from 1; 0 for the source as a whole.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

impl Place {
    /// The place of settings that the user did not type.
    pub fn derived() -> Place {
        Place { source: Origin::Derived, line: 0, column: 0 }
    }

    /// The whole of the source of this name.
    pub fn all_of(name: &str) -> Place {
        Place { source: Origin::File(Arc::from(OsStr::new(name))), line: 0, column: 0 }
    }

    /// Whether the user typed what is there.
    pub fn is_typed(&self) -> bool {
        self.source != Origin::Derived && self.line > 0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Origin::CommandLine => write!(out, "command line:{}:{}", self.line, self.column),
            Origin::File(name) if self.line == 0 => write!(out, "{}", shown(name)),
            Origin::File(name) => write!(out, "{}:{}:{}", shown(name), self.line, self.column),
            Origin::Derived => write!(out, "defaults"),
        }
    }
}

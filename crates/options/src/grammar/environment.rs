//! What the grammars need from outside (files, variables, numbers of the machine), passed in as values and functions.
//!
//! Invariant: plain values and functions; a test provides its own.

use std::ffi::{OsStr, OsString};
use std::io;

use crate::value::EngineName;

/// Gives the bytes of a file by the name the user wrote; `-` is standard input.
pub type ReadFile<'a> = &'a dyn Fn(&OsStr) -> io::Result<Vec<u8>>;

/// Gives the value of an environment variable; `None` when it is not set.
pub type ReadVariable<'a> = &'a dyn Fn(&OsStr) -> Option<OsString>;

/// What the grammars need from outside, since they access nothing themselves.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Reads job files and included files.
    pub files: ReadFile<'a>,
    /// Reads environment variables.
    pub variables: ReadVariable<'a>,
    /// The values of the reserved keywords.
    pub keywords: KeywordValues,
    /// The engines built into this program, by name.
    pub engines: &'a [EngineName],
}

/// The values of the reserved keywords. Where they are not known yet ([`KeywordValues::UNKNOWN`]), keywords stay as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeywordValues {
    /// `$ncpus`: CPUs online.
    pub cpus: u64,
    /// `$mb_memory`: memory in MiB.
    pub memory_mib: u64,
    /// `$pagesize`: size of a memory page in bytes.
    pub page_bytes: u64,
}

impl KeywordValues {
    /// Of a machine that is not known yet: of a host that is reached later.
    pub const UNKNOWN: KeywordValues = KeywordValues { cpus: 0, memory_mib: 0, page_bytes: 0 };
}

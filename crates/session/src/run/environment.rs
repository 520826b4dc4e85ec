//! What the grammars need from outside: files, environment variables, facts about the machine.
//!
//! Invariant: only reads; nothing is created or changed, and no argument is taken for a different one.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;

use fiord_engine::registry;
use fiord_host::Machine;
use fiord_options::environment::{Environment, KeywordValues};
use fiord_sys::errno::error_text;

use crate::claims;

/// Reads a file that the command is given, by the name the user typed; `-` is standard input. No output may overwrite it.
pub fn read_file(name: &OsStr) -> io::Result<Vec<u8>> {
    claims::reads(Path::new(name));
    if name != "-" {
        return std::fs::read(name);
    }
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}

/// The machine that this runs on.
///
/// # Errors
/// What cannot be read, and what to do about it.
pub fn machine() -> Result<Machine, String> {
    Machine::read().map_err(|error| format!("the processors cannot be found out: {}", error_text(&error)))
}

/// What the grammars need, of this machine and this process.
pub fn of(machine: &Machine) -> Environment<'static> {
    let keywords = keywords(machine);
    Environment {
        files: &read_file,
        variables: &|name| std::env::var_os(name),
        keywords,
        engines: registry::NAMES,
    }
}

/// The values of `$ncpus`, `$mb_memory` and `$pagesize`.
fn keywords(machine: &Machine) -> KeywordValues {
    KeywordValues {
        cpus: machine.cpus_online.len() as u64,
        memory_mib: machine.memory.total_bytes >> 20,
        page_bytes: machine.page_bytes,
    }
}

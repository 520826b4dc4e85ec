//! What the grammars need from outside: files, environment variables, and what the machine is.
//!
//! Invariant: reading alone; nothing is created or changed, and no argument is read as another one.

use std::ffi::OsStr;
use std::io::{self, Read};

use fiord_host::Machine;
use fiord_options::expand;
use fiord_report::path::shown;

/// An argument, the first of all being number 1, as the text that fio's grammar reads.
///
/// # Errors
/// It is none: as other text it would name another file.
pub(crate) fn text(number: usize, argument: &OsStr) -> Result<String, String> {
    argument.to_str().map(str::to_string).ok_or_else(|| {
        let shown = shown(argument);
        format!("argument {number} is not UTF-8: {shown}; options and job files are; a link of another name may help")
    })
}

/// A job file by the name the user gave; `-` is standard input.
pub(crate) fn read_file(name: &str) -> io::Result<Vec<u8>> {
    if name != "-" {
        return std::fs::read(name);
    }
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}

/// An environment variable.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What `$ncpus`, `$mb_memory` and `$pagesize` stand for.
pub(crate) fn keywords(machine: &Machine) -> expand::Machine {
    expand::Machine {
        cpus: machine.cpus_online.len() as u64,
        memory_mib: machine.memory.total_bytes >> 20,
        page_bytes: machine.page_bytes,
    }
}

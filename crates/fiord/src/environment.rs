//! What the grammars need from outside: files, environment variables, and what the machine is.
//!
//! Invariant: reading alone; nothing is created or changed.

use std::io::{self, Read};

use fiord_host::Machine;
use fiord_options::expand;

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

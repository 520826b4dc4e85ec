//! The machine: processors, memory, kernel, name.
//!
//! Invariant: read once, a value afterwards.

use fiord_sys::cgroup::{Groups, MemoryLimit};
use fiord_sys::procfs::{self, MemoryInfo};
use fiord_sys::sysfs::Sysfs;
use fiord_sys::{map, system, thread};
use std::io;

/// The properties of the machine that a run's figures depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name on the network.
    pub hostname: String,
    /// The kernel's release, `6.12.1-amd64`.
    pub kernel_release: String,
    /// The instruction set, `x86_64`.
    pub architecture: &'static str,
    /// The processors' model, where the kernel names one.
    pub cpu_model: Option<String>,
    /// Processors online, in order.
    pub cpus_online: Vec<u32>,
    /// Processors this process may run on, in order: fewer in a container or under `taskset`.
    pub cpus_allowed: Vec<u32>,
    /// Memory nodes, in order; at least one.
    pub nodes: Vec<u32>,
    /// Memory in bytes, as it was when this was read.
    pub memory: MemoryInfo,
    /// The limit that a control group sets on this process's memory; `None` without one, and where there is swap, to which what
    /// exceeds it may go.
    pub memory_limit: Option<MemoryLimit>,
    /// Size of a page in bytes.
    pub page_bytes: u64,
}

impl Machine {
    /// Reads the facts.
    ///
    /// # Errors
    /// The kernel's, if it does not tell where this process may run.
    pub fn read() -> io::Result<Machine> {
        let sysfs = Sysfs::default();
        let cpus_allowed = thread::affinity()?;
        let names = system::names();
        Ok(Machine {
            hostname: names.host,
            kernel_release: names.kernel_release,
            architecture: std::env::consts::ARCH,
            cpu_model: procfs::cpu_model(),
            // A sandbox without /sys still has the processors it may use.
            cpus_online: sysfs.online_cpus().unwrap_or_else(|_| cpus_allowed.clone()),
            cpus_allowed,
            // A kernel without NUMA lists no nodes.
            nodes: sysfs.online_nodes().unwrap_or_else(|_| vec![0]),
            memory: system::memory(),
            memory_limit: memory_limit(),
            page_bytes: map::page_bytes() as u64,
        })
    }
}

fn memory_limit() -> Option<MemoryLimit> {
    let has_swap = !procfs::swaps().is_ok_and(|swaps| swaps.is_empty());
    Groups::read().ok().filter(|_| !has_swap)?.memory()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_adds_up() {
        let machine = Machine::read().unwrap();
        assert!(!machine.cpus_allowed.is_empty());
        assert!(machine.cpus_allowed.iter().all(|cpu| machine.cpus_online.contains(cpu)));
        assert!(machine.memory.available_bytes <= machine.memory.total_bytes);
        assert!(machine.page_bytes.is_power_of_two());
        assert!(!machine.nodes.is_empty());
    }
}

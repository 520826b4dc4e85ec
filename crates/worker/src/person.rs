//! Who a worker is to the kernel: CPUs, priorities, memory policy, user, and the commands around its run.
//!
//! Invariant: concerns the calling thread alone.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use fiord_plan::job::{NumaMemory, Process};
use fiord_plan::{FileKind, Job};
use fiord_sys::clock;
use fiord_sys::process::Shell;
use fiord_sys::stat;
use fiord_sys::sysfs::Sysfs;
use fiord_sys::thread::{self, IoClass, IoPriority, MemoryPolicy};

use crate::door::Door;
use crate::failure::Failure;

/// Makes the calling thread the worker of `job`.
pub(crate) fn become_worker(job: &Job) -> Result<(), Failure> {
    let process = &job.process;
    // A table of descriptors of its own takes the kernel's single-user path; without it things only cost more.
    let _ = thread::unshare_files();
    if !process.cpus.is_empty() {
        thread::set_affinity(&process.cpus).map_err(|error| Failure::system("cpus_allowed", &error))?;
    }
    place_memory(process)?;
    if let Some(nice) = process.nice {
        thread::set_nice(nice).map_err(|error| Failure::system("nice", &error))?;
    }
    if process.io_class.is_some() || process.io_priority.is_some() {
        let class = match process.io_class {
            Some(1) => IoClass::RealTime,
            Some(3) => IoClass::Idle,
            Some(2) | None => IoClass::BestEffort,
            Some(_) => IoClass::None,
        };
        let priority = IoPriority { class, level: process.io_priority.unwrap_or(0), hint: 0 };
        thread::set_io_priority(priority).map_err(|error| Failure::system("prio, prioclass", &error))?;
    }
    if process.uid.is_some() || process.gid.is_some() {
        thread::act_as(process.uid, process.gid).map_err(|error| Failure::system("uid, gid", &error))?;
    }
    Ok(())
}

fn place_memory(process: &Process) -> Result<(), Failure> {
    if !process.numa_cpu_nodes.is_empty() {
        let sysfs = Sysfs::default();
        let cpus: std::io::Result<Vec<Vec<u32>>> =
            process.numa_cpu_nodes.iter().map(|node| sysfs.node_cpus(*node)).collect();
        cpus.and_then(|cpus| thread::set_affinity(&cpus.concat()))
            .map_err(|error| Failure::system("numa_cpu_nodes", &error))?;
    }
    let (policy, nodes): (MemoryPolicy, &[u32]) = match &process.numa_memory {
        None => return Ok(()),
        Some(NumaMemory::Default) => (MemoryPolicy::Default, &[]),
        Some(NumaMemory::Local) => (MemoryPolicy::Local, &[]),
        Some(NumaMemory::Prefer(node)) => (MemoryPolicy::Preferred, std::slice::from_ref(node)),
        Some(NumaMemory::Bind(nodes)) => (MemoryPolicy::Bind, nodes),
        Some(NumaMemory::Interleave(nodes)) => (MemoryPolicy::Interleave, nodes),
    };
    thread::set_memory_policy(policy, nodes).map_err(|error| Failure::system("numa_mem_policy", &error))
}

/// How often a command is looked at.
const EXEC_TICK_NS: u64 = 10_000_000;

/// Runs a shell command, its output going to `log` in the current directory, and kills it as soon as `is_given_up`.
/// What goes wrong with it is the user's to judge, as in fio: the job goes on, and the answer is what to say about it.
pub(crate) fn exec(command: &str, log: &Path, door: &Door, is_given_up: &dyn Fn() -> bool) -> Option<String> {
    let shown = log.display();
    let output = match door.create(log, false) {
        Ok(output) => output,
        Err(failure) => {
            return Some(format!("\"{command}\" was not run, for its output has no place: {failure}"));
        }
    };
    match wait_for(command, output, is_given_up) {
        Ok(status) if status.success() => None,
        Ok(status) => Some(format!("\"{command}\" ended with {status}; its output is in {shown}")),
        Err(error) => Some(format!("\"{command}\" could not be run with its output in {shown}: {error}")),
    }
}

fn wait_for(command: &str, output: File, is_given_up: &dyn Fn() -> bool) -> io::Result<ExitStatus> {
    let mut shell = Shell::start(command, Some(output))?;
    loop {
        if let Some(status) = shell.ended()? {
            return Ok(status);
        }
        if is_given_up() {
            return shell.kill();
        }
        clock::sleep_until_ns(clock::monotonic_ns() + EXEC_TICK_NS);
    }
}

/// Puts the scheduler the job asks for in charge of the disks under its files, for good, as fio does. Files that lie on
/// no disk have none.
pub(crate) fn set_io_scheduler(job: &Job) -> Result<(), Failure> {
    let Some(scheduler) = &job.process.io_scheduler else { return Ok(()) };
    let sysfs = Sysfs::default();
    let mut done = Vec::new();
    for file in job.files.list.iter().filter(|file| matches!(file.kind, FileKind::Regular | FileKind::Block))
    {
        let Ok(found) = stat::stat(&file.path) else { continue };
        let number = if found.kind == stat::Kind::Block { found.special } else { found.device };
        if done.contains(&number) {
            continue;
        }
        done.push(number);
        let Ok(device) = sysfs.block_device_of(number) else { continue };
        device.set_scheduler(scheduler).map_err(|error| {
            let known = device.queue().schedulers.join(", ");
            let mut failure = Failure::file("set the I/O scheduler of", &device.path(), &error);
            failure.explanation = format!("ioscheduler={scheduler}; this disk has: {known}");
            failure
        })?;
    }
    Ok(())
}

//! A worker's process attributes: CPUs, priorities, memory policy and user; and the I/O scheduler of its disks.
//!
//! Invariant: apart from the disks' scheduler, affects only the calling thread.

use std::io;
use std::num::NonZeroU64;

use fiord_plan::job::{NumaMemory, Process};
use fiord_plan::shown::shown;
use fiord_plan::{FileKind, Job};
use fiord_sys::stat;
use fiord_sys::sysfs::Sysfs;
use fiord_sys::thread::{self, IoClass, IoPriority, MemoryPolicy};

use crate::failure::Failure;

/// Applies the process attributes of `job` to the calling thread.
pub(crate) fn become_worker(job: &Job) -> Result<(), Failure> {
    let process = &job.process;
    // The libraries of a GPU keep descriptors for all threads.
    if !(job.engine.descriptor.shares_threads || job.uses_gpu()) {
        // A descriptor table of its own takes the kernel's faster unshared path; a failure only costs speed.
        let _ = thread::unshare_files();
    }
    if job.replay.is_some() {
        // A failure only costs precision, which the report states.
        let _ = thread::set_timer_slack_ns(NonZeroU64::MIN);
    }
    if !process.cpus.is_empty() {
        thread::set_affinity(&process.cpus).map_err(|error| Failure::system("cpus_allowed", &error))?;
    }
    place_memory(process)?;
    if let Some(nice) = process.nice {
        thread::set_nice(nice).map_err(|error| Failure::system("nice", &error))?;
    }
    if let Some(priority) = io_priority(process) {
        thread::set_io_priority(priority).map_err(|error| priority_refused(priority, &error))?;
    }
    if process.uid.is_some() || process.gid.is_some() {
        thread::act_as(process.uid, process.gid).map_err(|error| Failure::system("uid, gid", &error))?;
    }
    Ok(())
}

/// The I/O priority that a job sets, if it sets one. A level alone is of the best-effort class; a hint alone leaves
/// class and level to the kernel.
fn io_priority(process: &Process) -> Option<IoPriority> {
    let class = match (process.io_class, process.io_priority) {
        (Some(1), _) => IoClass::RealTime,
        (Some(3), _) => IoClass::Idle,
        (Some(2), _) | (None, Some(_)) => IoClass::BestEffort,
        (None, None) if process.io_hint == 0 => return None,
        (Some(_) | None, _) => IoClass::None,
    };
    Some(IoPriority { class, level: process.io_priority.unwrap_or(0), hint: process.io_hint })
}

fn priority_refused(priority: IoPriority, error: &io::Error) -> Failure {
    let mut failure = Failure::system("prio, prioclass, priohint", error);
    if error.kind() == io::ErrorKind::InvalidInput && priority.hint > 0 {
        failure.explanation = "the kernel takes hints from Linux 6.5 on; leave priohint out".to_string();
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        failure.explanation =
            "prioclass=1 is for root (CAP_SYS_NICE); run as root, or use prioclass=2".to_string();
    }
    failure
}

fn place_memory(process: &Process) -> Result<(), Failure> {
    if !process.numa_cpu_nodes.is_empty() {
        let sysfs = Sysfs::default();
        let cpus: io::Result<Vec<Vec<u32>>> =
            process.numa_cpu_nodes.iter().map(|node| sysfs.node_cpus(*node)).collect();
        let off_time = |cpus: Vec<Vec<u32>>| {
            cpus.into_iter().flatten().filter(|cpu| !process.time_cpus.contains(cpu)).collect::<Vec<u32>>()
        };
        cpus.and_then(|cpus| thread::set_affinity(&off_time(cpus)))
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

/// Sets the job's I/O scheduler on the disks under its files, permanently, as fio does. Files without a disk are
/// skipped.
pub(crate) fn set_io_scheduler(job: &Job) -> Result<(), Failure> {
    let Some(scheduler) = &job.process.io_scheduler else { return Ok(()) };
    let sysfs = Sysfs::default();
    let mut done = Vec::new();
    for file in job.files.list.iter().filter(|file| matches!(file.kind, FileKind::Regular | FileKind::Block))
    {
        let Ok(found) = stat::stat(&file.path) else { continue };
        let number = if found.kind == stat::InodeKind::Block { found.special } else { found.device };
        if done.contains(&number) {
            continue;
        }
        done.push(number);
        let Ok(device) = sysfs.block_device_of(number) else { continue };
        device.set_scheduler(scheduler).map_err(|error| {
            let known = device.queue().schedulers.join(", ");
            let mut failure = Failure::file("set the I/O scheduler of", &device.path(), &error);
            failure.explanation = format!("ioscheduler={}; this disk has: {known}", shown(scheduler));
            failure
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_priority_is_set_if_any_part_of_it_is_given() {
        let process =
            |io_class, io_priority, io_hint| Process { io_class, io_priority, io_hint, ..Process::default() };
        let encoded = |process: Process| io_priority(&process).map(IoPriority::encode);
        assert_eq!(encoded(process(None, None, 0)), None);
        assert_eq!(encoded(process(None, Some(3), 0)), Some(2 << 13 | 3));
        assert_eq!(encoded(process(Some(3), None, 0)), Some(3 << 13));
        assert_eq!(encoded(process(Some(2), Some(1), 5)), Some(2 << 13 | 5 << 3 | 1));
        assert_eq!(encoded(process(None, None, 7)), Some(7 << 3));
        assert_eq!(encoded(process(Some(0), None, 0)), Some(0));
    }

    #[test]
    fn a_priority_that_is_refused_says_why() {
        let refused = |hint, kind: io::ErrorKind| {
            let priority = IoPriority { class: IoClass::RealTime, level: 0, hint };
            priority_refused(priority, &io::Error::from(kind)).explanation
        };
        assert!(refused(1, io::ErrorKind::InvalidInput).contains("Linux 6.5"));
        assert!(!refused(0, io::ErrorKind::InvalidInput).contains("6.5"));
        assert!(refused(0, io::ErrorKind::PermissionDenied).contains("CAP_SYS_NICE"));
    }
}

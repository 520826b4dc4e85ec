//! What an agent tells of its machine.
//!
//! Invariant: only reads; what cannot be found out is empty.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use fiord_fleet::{HostFacts, TargetFacts};
use fiord_host::{Machine, Prober};
use fiord_plan::Plan;
use fiord_plan::shown;
use fiord_session::run::version::FIORD_VERSION;

/// The most targets that are told of.
const TARGETS_MAX: usize = 256;

/// The facts of this machine, and of what the plan reads and writes.
pub(crate) fn of(machine: &Machine, plan: &Plan) -> HostFacts {
    let mut engines: Vec<String> = plan.jobs.iter().map(|job| job.engine.name().to_string()).collect();
    engines.sort();
    engines.dedup();
    let mut paths: Vec<(&Path, bool)> = Vec::new();
    for job in &plan.jobs {
        for file in &job.files.list {
            match paths.iter().position(|(path, _)| *path == file.path) {
                Some(known) => paths[known].1 |= job.files.writable,
                None if paths.len() < TARGETS_MAX => paths.push((&file.path, job.files.writable)),
                None => {}
            }
        }
    }
    let prober = Prober::default();
    let targets = paths.into_iter().map(|(path, is_written)| target(&prober, path, is_written)).collect();
    HostFacts {
        hostname: machine.hostname.clone(),
        kernel: machine.kernel_release.clone(),
        arch: machine.architecture.to_string(),
        cpu: machine.cpu_model.clone().unwrap_or_default(),
        cpus: machine.cpus_online.len() as u32,
        memory_bytes: machine.memory.total_bytes,
        fiord_version: FIORD_VERSION.to_string(),
        machine_id: line_of("/etc/machine-id"),
        engines,
        targets,
        clock_unsynchronised: false,
    }
}

fn target(prober: &Prober, path: &Path, is_written: bool) -> TargetFacts {
    let mut target = TargetFacts { path: shown::text(path), is_written, ..TargetFacts::default() };
    let Ok(found) = prober.probe(path) else { return target };
    target.size_bytes = found.size_bytes.unwrap_or(0);
    if let Some(disk) = &found.disk {
        let directory = PathBuf::from("/sys/class/block").join(disk);
        let read = |name: &str| line_of(directory.join(name));
        target.model = read("device/model");
        // Of a file the identity of its disk says nothing: two files may be on one disk.
        let own = [read("wwid"), read("device/wwid"), read("device/serial")];
        let is_device = matches!(found.kind, fiord_host::TargetKind::Block);
        target.identity = own.into_iter().find(|text| is_device && !text.is_empty());
    }
    target.scheduler = found.queue.and_then(|queue| queue.scheduler).unwrap_or_default();
    target
}

/// The text of a file of one line; empty if it cannot be read.
fn line_of(path: impl AsRef<Path>) -> String {
    read_to_string(path).unwrap_or_default().trim().to_string()
}

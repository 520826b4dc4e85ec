//! What an agent tells of its machine.
//!
//! Invariant: only reads; what cannot be found out is empty.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fiord_fleet::{HostFacts, TargetFacts};
use fiord_host::{Machine, Prober, TargetKind};
use fiord_plan::path_change::path_changes;
use fiord_plan::{FileKind, Plan, shown};
use fiord_session::run::version::FIORD_VERSION;
use fiord_stats::Capped;

/// The most targets that are told of.
pub(crate) const TARGETS_MAX: usize = 256;

/// How the types of file systems that several machines share begin.
const REMOTE: [&str; 9] =
    ["nfs", "cifs", "smb", "ceph", "9p", "lustre", "fuse.glusterfs", "fuse.sshfs", "beegfs"];

/// The facts of this machine, and of what the plan reads and writes.
pub(crate) fn of_plan(machine: &Machine, plan: &Plan) -> HostFacts {
    let mut engines: Vec<String> = plan.jobs.iter().map(|job| job.engine.name().to_string()).collect();
    engines.sort_unstable();
    engines.dedup();
    let mut paths: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for job in &plan.jobs {
        let files = job.files.list.iter().filter(|file| file.kind != FileKind::None);
        let used = files.map(|file| (file.path.clone(), false));
        let changed = path_changes(job).into_iter().map(|change| (change.path, true));
        used.chain(changed).for_each(|(path, is_written)| *paths.entry(path).or_default() |= is_written);
    }
    HostFacts { engines, ..of(machine, &paths) }
}

/// The facts of this machine, and of these targets: whether each is written.
pub(crate) fn of(machine: &Machine, paths: &BTreeMap<PathBuf, bool>) -> HostFacts {
    let prober = Prober::default();
    let target = |(path, is_written): (&PathBuf, &bool)| target(&prober, path, *is_written);
    let targets = paths.iter().take(TARGETS_MAX).map(target).collect();
    HostFacts {
        hostname: machine.hostname.clone(),
        kernel: machine.kernel_release.clone(),
        arch: machine.architecture.to_string(),
        cpu: machine.cpu_model.clone().unwrap_or_default(),
        cpus: u32::capped(machine.cpus_online.len()),
        memory_bytes: machine.memory.total_bytes,
        fiord_version: FIORD_VERSION.to_string(),
        machine_id: line_of("/etc/machine-id"),
        engines: Vec::new(),
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
        let own = [read("wwid"), read("device/wwid"), read("device/serial")];
        let is_device = matches!(found.kind, TargetKind::Block);
        target.identity = own.into_iter().find(|text| is_device && !text.is_empty());
    }
    target.identity = target.identity.or_else(|| identity(path, &found));
    target.scheduler = found.queue.and_then(|queue| queue.scheduler).unwrap_or_default();
    target
}

/// What is the same for all who use this target: on a server, its export and the path there; otherwise this kernel, whatever
/// container it is seen from, and the device, or the directory that has the file. `None` of what holds no data.
fn identity(path: &Path, found: &fiord_host::TargetFacts) -> Option<String> {
    if let Some(file_system) = &found.file_system {
        let below = file_system.mount_point.as_ref().and_then(|root| path.strip_prefix(root).ok());
        let is_remote = REMOTE.iter().any(|kind| file_system.type_name.starts_with(kind));
        if let (true, Some(source), Some(below)) = (is_remote, &file_system.source, below) {
            return Some(format!("{} {}", shown::text(source), shown::text(below)));
        }
    }
    let kernel = line_of("/proc/sys/kernel/random/boot_id");
    match found.kind {
        TargetKind::Block => found.device.map(|number| format!("{kernel} {}:{}", number.major, number.minor)),
        TargetKind::Regular | TargetKind::Absent => {
            let directory = path.parent().filter(|above| !above.as_os_str().is_empty());
            let above = std::fs::metadata(directory.unwrap_or(Path::new("."))).ok()?;
            let name = shown::text(Path::new(path.file_name()?));
            Some(format!("{kernel} {}:{} {name}", above.dev(), above.ino()))
        }
        _ => None,
    }
}

/// The text of a file of one line; empty if it cannot be read.
fn line_of(path: impl AsRef<Path>) -> String {
    read_to_string(path).unwrap_or_default().trim().to_string()
}

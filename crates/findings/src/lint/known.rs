//! What is known of the host before a run, as values.
//!
//! Invariant: a target is what was found before anything was laid out.

use std::path::{Path, PathBuf};

use fiord_host::{DeviceFacts, LayerKind, Limits, PciDevice, StorageStack, TargetFacts};
use fiord_options::{Spec, job};
use fiord_plan::{FilePlan, Job};

/// What is known of the host before a run.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The files and devices of the plan, each once; of many the first.
    pub targets: Vec<KnownTarget>,
    /// Directories of logs that have a line for each I/O, and what lies below each.
    pub log_directories: Vec<(PathBuf, StorageStack)>,
    /// Limits on this process.
    pub limits: Limits,
    /// Memory that could be had without swapping, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// The GPUs that jobs used, once the run is over.
    pub gpus: Vec<PciDevice>,
}

/// A file or device, and the storage below it.
#[derive(Clone, Debug)]
pub struct KnownTarget {
    /// Its type and properties.
    pub facts: TargetFacts,
    /// The storage below it, if known.
    pub stack: Option<StorageStack>,
}

/// The files that a job writes a line to for each I/O, with the option of each; averaged logs have few lines.
pub fn detailed_logs(job: &Job) -> impl Iterator<Item = (&'static Spec, &Path)> {
    let detailed = job.logs.iter().filter(|logs| logs.window_ms.is_none() && !logs.are_sent);
    let recorded = detailed.flat_map(|logs| &logs.files);
    let recorded = recorded.filter(|file| file.recorded && !file.kind.is_histogram());
    let logs = recorded.map(|file| (file.kind.option(), file.path.as_path()));
    logs.chain(job.record.iter().map(|path| (job::Replay::write_iolog, path.as_path())))
}

/// The directory of a log.
pub fn log_directory(log: &Path) -> &Path {
    log.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Known {
    /// What lies below a log, where that is known.
    pub(super) fn below_log(&self, log: &Path) -> Option<&StorageStack> {
        let directory = log_directory(log);
        self.log_directories.iter().find(|(known, _)| known == directory).map(|(_, stack)| stack)
    }

    pub(super) fn of(&self, file: &FilePlan) -> Option<&KnownTarget> {
        self.targets.iter().find(|target| target.facts.path == file.path)
    }

    /// The devices below the files of a job, from above.
    pub(super) fn devices_of(&self, job: &Job) -> impl Iterator<Item = &DeviceFacts> {
        let stacks = self.targets_of(job).filter_map(|target| target.stack.as_ref());
        stacks.flat_map(|stack| &stack.layers).filter_map(|layer| match &layer.kind {
            LayerKind::Device(facts) => Some(facts.as_ref()),
            _ => None,
        })
    }

    /// The targets of a job that are known.
    pub(super) fn targets_of(&self, job: &Job) -> impl Iterator<Item = &KnownTarget> {
        job.files.list.iter().filter_map(|file| self.of(file))
    }
}

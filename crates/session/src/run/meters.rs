//! Measurements other than those of workers: the disks below the targets, and the idleness of the processors.
//!
//! Invariant: measuring starts when the first worker does, after files have been laid out.

use std::path::Path;

use fiord_host::{DeviceUse, DiskUse, DiskWatch};
use fiord_options::value::IdleProf;
use fiord_plan::{FileKind, Plan};
use fiord_report::{Idleness, UnitWork};

use super::idle::{self, IdleWatch};

/// The meters of one run.
pub struct Meters {
    idle: Option<(IdleProf, UnitWork)>,
    disks: Option<DiskWatch>,
    cpus: Option<IdleWatch>,
}

impl Meters {
    /// Calibrates while nothing else runs; `idle` is how idleness is reported, if at all.
    pub fn prepare(idle: Option<IdleProf>) -> Meters {
        Meters { idle: idle.map(|mode| (mode, idle::calibrate())), disks: None, cpus: None }
    }

    /// Takes the initial counters; called when the first workers are about to start.
    pub fn start(&mut self, plan: &Plan) {
        self.disks = watched_disks(plan);
        self.cpus = self.idle.map(|(mode, unit)| IdleWatch::start(mode, unit));
    }

    /// Keeps the counters of the devices as they are now.
    pub fn sample(&mut self) {
        if let Some(disks) = &mut self.disks {
            disks.sample();
        }
    }

    /// The activity of each disk since `start`, as fio counts it.
    pub fn disks(&self) -> Vec<DiskUse> {
        self.disks.as_ref().map(DiskWatch::so_far).unwrap_or_default()
    }

    /// The devices below the targets, and their activity since `start`.
    pub fn devices(&self) -> Vec<DeviceUse> {
        self.disks.as_ref().map(DiskWatch::devices).unwrap_or_default()
    }

    /// How idle the processors have been since `start`, if that is reported.
    pub fn idleness(&self) -> Option<Idleness> {
        self.cpus.as_ref().map(IdleWatch::so_far)
    }
}

/// The disks below the targets of jobs that report disk statistics.
fn watched_disks(plan: &Plan) -> Option<DiskWatch> {
    let watched = plan.jobs.iter().filter(|job| job.measure.disk_stats);
    let files = watched.flat_map(|job| &job.files.list).filter(|file| file.kind != FileKind::None);
    let paths: Vec<&Path> = files.map(|file| file.path.as_path()).collect();
    (!paths.is_empty()).then(|| DiskWatch::start(paths))
}

//! Measurements other than those of workers: the disks below the targets, the idleness of the processors, energy.
//!
//! Invariant: measuring starts when the first worker does, after files have been laid out.

use std::path::Path;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use fiord_host::{DeviceUse, DiskUse, DiskWatch, EnergyMeter, EnergyUse};
use fiord_options::value::IdleProf;
use fiord_plan::{FileKind, Plan};
use fiord_report::{Idleness, UnitWork};

use super::idle::{self, IdleWatch};

/// For how long the power without a run is measured, where it can be.
const IDLE_FOR: Duration = Duration::from_millis(250);

/// The power without a run of each source, from before the first run of this process: a study has many.
static IDLE_UW: OnceLock<Vec<(String, u64)>> = OnceLock::new();

/// The meters of one run.
pub struct Meters {
    idle: Option<(IdleProf, UnitWork)>,
    disks: Option<DiskWatch>,
    cpus: Option<IdleWatch>,
    energy: Option<EnergyMeter>,
}

impl Meters {
    /// Calibrates while nothing else runs; `idle` is how idleness is reported, if at all.
    pub fn prepare(idle: Option<IdleProf>, has_energy: bool) -> Meters {
        let mut energy = if has_energy { EnergyMeter::open() } else { None };
        if let Some(meter) = &mut energy {
            IDLE_UW.get_or_init(|| {
                thread::sleep(IDLE_FOR);
                meter.sample();
                meter.power_uw()
            });
        }
        Meters { idle: idle.map(|mode| (mode, idle::calibrate())), disks: None, cpus: None, energy }
    }

    /// Takes the initial counters; called when the first workers are about to start.
    pub fn start(&mut self, plan: &Plan) {
        self.disks = watched_disks(plan);
        self.cpus = self.idle.map(|(mode, unit)| IdleWatch::start(mode, unit));
        if let Some(energy) = &mut self.energy {
            energy.start(IDLE_UW.get().map_or(&[], Vec::as_slice));
        }
    }

    /// Keeps the counters of the devices as they are now.
    pub fn sample(&mut self) {
        if let Some(disks) = &mut self.disks {
            disks.sample();
        }
        self.sample_energy();
    }

    /// Reads what energy was used until now; a sample includes it.
    pub fn sample_energy(&mut self) {
        if let Some(energy) = &mut self.energy {
            energy.sample();
        }
    }

    /// The energy used from `start` to the last sample.
    pub fn energy(&self) -> Vec<EnergyUse> {
        self.energy.as_ref().map(EnergyMeter::so_far).unwrap_or_default()
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

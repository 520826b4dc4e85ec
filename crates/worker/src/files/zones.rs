//! The zones of the targets of a run, which its jobs share.
//!
//! Invariant: the zones of a target are read once, by the first job that works on it, and from then on known from what the
//! jobs do to them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fiord_plan::shown::shown;
use fiord_plan::{DebugChannel, FilePlan, Job, Plan, ZonedAccess};
use fiord_sys::errno::Errno;
use fiord_sys::file::OpenHow;
use fiord_sys::stat;
use fiord_sys::zones::{self, Zone, ZoneCondition};
use fiord_workload::{ZoneDevice, ZoneLayout, ZoneTable, ZoneWaiters, ZonedTarget};

use super::target_opener::{self, TargetOpener};
use crate::debug::DebugLog;
use crate::failure::Failure;

/// The zones of each target. The default touches no target: all zones are emulated.
#[derive(Debug, Default)]
pub(crate) struct ZoneTables {
    /// How the plan's jobs use each zoned target.
    uses: BTreeMap<PathBuf, TargetUse>,
    tables: Mutex<BTreeMap<PathBuf, Arc<ZoneTable>>>,
}

/// How the jobs of a plan use a zoned target.
#[derive(Debug)]
struct TargetUse {
    /// The end of the range that they use.
    end_bytes: u64,
    /// The jobs of this target and of all that it has jobs in common with.
    waiters: ZoneWaiters,
    /// Whether a job resets zones early, by how much is written of all.
    counts_data: bool,
}

impl ZoneTables {
    /// For a run of this plan.
    pub(crate) fn of(plan: &Plan) -> ZoneTables {
        let mut uses: BTreeMap<PathBuf, TargetUse> = BTreeMap::new();
        for (job, zoned) in plan.jobs.iter().filter_map(|job| Some((job, job.access.zoned.as_ref()?))) {
            let (waiters, mut joined) = (ZoneWaiters::default(), Vec::new());
            for file in &job.files.list {
                let unused = || TargetUse { end_bytes: 0, waiters: waiters.clone(), counts_data: false };
                let target = uses.entry(file.path.clone()).or_insert_with(unused);
                target.end_bytes = target.end_bytes.max(file.offset_bytes.saturating_add(file.length_bytes));
                target.counts_data |= zoned.reset_every.is_some();
                if target.waiters != waiters && !joined.contains(&target.waiters) {
                    joined.push(target.waiters.clone());
                }
            }
            let is_joined = |target: &&mut TargetUse| joined.contains(&target.waiters);
            uses.values_mut().filter(is_joined).for_each(|target| target.waiters = waiters.clone());
        }
        ZoneTables { uses, tables: Mutex::default() }
    }

    /// The zones of each of a job's files, for the calling worker.
    pub(crate) fn of_job(
        &self,
        job: &Job,
        zoned: &ZonedAccess,
        opener: &TargetOpener,
        debug: Option<&DebugLog>,
    ) -> Result<Vec<ZonedTarget>, Failure> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let own_waiters = ZoneWaiters::default();
        let target = |plan: &FilePlan| {
            let used = self.uses.get(&plan.path);
            // Each worker has a descriptor of its own, because workers do not share their tables of descriptors.
            let device = used.map_or(Ok(None), |_| device(plan, job.files.writable, opener, debug))?;
            if let Some(table) = tables.get(&plan.path) {
                return Ok(ZonedTarget { table: table.clone(), device: device.map(boxed) });
            }
            let own_end_bytes = plan.offset_bytes.saturating_add(plan.length_bytes);
            let table = match &device {
                Some(device) => read(plan, zoned, device)?,
                None => emulated(zoned, used.map_or(own_end_bytes, |used| used.end_bytes)),
            };
            let waiters = used.map_or(&own_waiters, |used| &used.waiters);
            let counts_data = used.map_or(zoned.reset_every.is_some(), |used| used.counts_data);
            let table = if counts_data { table.counting_data() } else { table };
            let table = Arc::new(table.sharing(waiters.clone()));
            tables.insert(plan.path.clone(), table.clone());
            Ok(ZonedTarget { table, device: device.map(boxed) })
        };
        job.files.list.iter().map(target).collect()
    }
}

fn boxed(device: Device) -> Box<dyn ZoneDevice> {
    Box::new(device)
}

/// Opens a zoned device; `None` for any other target.
fn device(
    plan: &FilePlan,
    is_written: bool,
    opener: &TargetOpener,
    debug: Option<&DebugLog>,
) -> Result<Option<Device>, Failure> {
    // A character device has the zones of its block device.
    let Some(block) = target_opener::as_block(plan) else { return Ok(None) };
    let how = if is_written { OpenHow::READ_WRITE } else { OpenHow::READ };
    let file = opener.open(&block, &how, true)?;
    // A kernel without zoned devices does not know the question.
    let debug = debug.filter(|debug| debug.has(DebugChannel::Zbd));
    let debug = debug.map(|debug| (debug.clone(), shown(&plan.path)));
    Ok((zones::zone_bytes(&file).unwrap_or(0) > 0).then_some(Device { file, debug }))
}

/// The zones of a device.
fn read(plan: &FilePlan, zoned: &ZonedAccess, device: &Device) -> Result<ZoneTable, Failure> {
    let failed = |error: io::Error| Failure::file("read the zones of", &plan.path, &error);
    let zones = zones::report(&device.file, 0, usize::MAX).map_err(failed)?;
    let number = stat::fstat(&device.file).map_err(failed)?.special;
    let layout: Vec<ZoneLayout> = zones.iter().map(layout).collect();
    let open_max = open_max(zoned, zones::open_max(number), &plan.path)?;
    Ok(ZoneTable::new(layout, open_max, true))
}

/// Maximum number of open zones.
fn open_max(zoned: &ZonedAccess, limit: Option<u32>, path: &Path) -> Result<Option<u32>, Failure> {
    match (zoned.open_max, limit) {
        (wanted, _) if zoned.ignores_device_limit => Ok(wanted),
        (Some(wanted), Some(limit)) if wanted > limit => Err(Failure::other(
            "open zones",
            format!(
                "{} allows {limit} open zones, fewer than max_open_zones={wanted}; ignore_zone_limits=1 tries it \
                 anyway",
                path.display()
            ),
        )),
        (wanted, limit) => Ok(wanted.or(limit)),
    }
}

fn layout(zone: &Zone) -> ZoneLayout {
    let written_bytes = match zone.condition {
        ZoneCondition::Full | ZoneCondition::ReadOnly | ZoneCondition::Offline => zone.capacity_bytes,
        ZoneCondition::Open | ZoneCondition::Other if zone.is_sequential => {
            zone.pointer_bytes.saturating_sub(zone.start_bytes).min(zone.capacity_bytes)
        }
        ZoneCondition::Open | ZoneCondition::Other => 0,
    };
    ZoneLayout {
        start_bytes: zone.start_bytes,
        length_bytes: zone.length_bytes,
        capacity_bytes: zone.capacity_bytes,
        written_bytes,
        // A partly written zone counts as one of the device's active zones even if it is closed.
        is_open: zone.is_sequential && written_bytes > 0 && written_bytes < zone.capacity_bytes,
        is_sequential: zone.is_sequential,
    }
}

/// Emulated zones of a target that has none: empty, up to the end of the range that jobs use.
fn emulated(zoned: &ZonedAccess, end_bytes: u64) -> ZoneTable {
    let zone_bytes = if zoned.zone_bytes == 0 { end_bytes.max(1) } else { zoned.zone_bytes };
    let capacity_bytes = if zoned.capacity_bytes == 0 { zone_bytes } else { zoned.capacity_bytes };
    let layout = |zone: u64| ZoneLayout {
        start_bytes: zone * zone_bytes,
        length_bytes: zone_bytes,
        capacity_bytes,
        written_bytes: 0,
        is_open: false,
        is_sequential: true,
    };
    ZoneTable::new((0..end_bytes / zone_bytes).map(layout).collect(), zoned.open_max, false)
}

/// A zoned device with its own descriptor.
struct Device {
    file: File,
    /// Where what is done to its zones is printed, and its name there.
    debug: Option<(DebugLog, String)>,
}

impl Device {
    fn print(&self, what: &str, start_bytes: u64, length_bytes: u64) {
        if let Some((log, name)) = &self.debug {
            let range = format_args!("{name}: {what} at {start_bytes}, len {length_bytes}");
            log.line(DebugChannel::Zbd, range);
        }
    }
}

impl ZoneDevice for Device {
    fn reset(&self, start_bytes: u64, length_bytes: u64) -> Result<(), Errno> {
        self.print("reset zone", start_bytes, length_bytes);
        zones::reset(&self.file, start_bytes, length_bytes).map_err(errno)
    }

    fn finish(&self, start_bytes: u64, length_bytes: u64) -> Result<(), Errno> {
        self.print("finish zone", start_bytes, length_bytes);
        zones::finish(&self.file, start_bytes, length_bytes).map_err(errno)
    }

    fn written_bytes(&self, start_bytes: u64) -> Result<u64, Errno> {
        let zones = zones::report(&self.file, start_bytes, 1).map_err(errno)?;
        Ok(zones.first().map_or(0, |zone| layout(zone).written_bytes))
    }
}

fn errno(error: io::Error) -> Errno {
    Errno::of(&error).unwrap_or(Errno::EIO)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use fiord_plan::ZoneSkip;

    use super::*;
    use crate::test_jobs::{TempFile, null_job};

    /// A job that waits for a zone of one target may be what another waits for at the next.
    #[test]
    fn jobs_wait_together_at_targets_that_they_share() {
        let job = |paths: &[&str]| {
            let mut job = null_job("zoned");
            let file = job.files.list.remove(0);
            job.files.list =
                paths.iter().map(|path| FilePlan { path: path.into(), ..file.clone() }).collect();
            job.access.zoned = Some(zoned());
            job
        };
        let jobs = vec![job(&["a", "b"]), job(&["c"]), job(&["d", "e"]), job(&["b", "c"]), job(&["e"])];
        let tables = ZoneTables::of(&Plan { jobs, trigger: None });
        let waiters = |path: &str| &tables.uses[Path::new(path)].waiters;
        assert!(waiters("a") == waiters("b") && waiters("b") == waiters("c"));
        assert!(waiters("d") == waiters("e") && waiters("c") != waiters("d"));
    }

    fn zoned() -> ZonedAccess {
        ZonedAccess {
            zone_bytes: 65_536,
            capacity_bytes: 0,
            skip: ZoneSkip::NONE,
            open_max: None,
            job_open_max: None,
            ignores_device_limit: false,
            reads_beyond_pointer: false,
            reset_threshold: 0.0,
            reset_every: None,
            recovers: false,
            appends: false,
            writes_remainder: false,
        }
    }

    /// What is done to zones is printed before the device is asked, here a file, which has no zones.
    #[test]
    fn resets_and_finishes_of_zones_are_printed() {
        let file = TempFile::new("zbd-lines");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let printed = lines.clone();
        let log = DebugLog::new(vec![DebugChannel::Zbd], None, move |line| {
            printed.lock().unwrap().push(line.to_string());
        });
        let opened = File::create(&file.0).unwrap();
        let device = Device { file: opened, debug: Some((log, "/dev/z".to_string())) };
        assert_ne!(device.reset(65_536, 131_072), Ok(()));
        assert_ne!(device.finish(0, 65_536), Ok(()));
        let lines = lines.lock().unwrap();
        let texts: Vec<&str> =
            lines.iter().filter_map(|line| line.split_once("/dev/z: ")).map(|(_, text)| text).collect();
        assert_eq!(texts, ["reset zone at 65536, len 131072\n", "finish zone at 0, len 65536\n"]);
        assert!(lines.iter().all(|line| line.starts_with("zbd      ")), "{lines:?}");
    }
}

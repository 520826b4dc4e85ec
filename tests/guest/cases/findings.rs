//! Findings that need a device or a setting of a machine of our own: a run that must raise each, and a near neighbour that
//! must not.
//!
//! Invariant: emulation is slow, so that nothing is looked for that depends on speed.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use fiord_guest::{DeviceMapper, NullBlk, ScsiDebug, fiord, nvme, start};
use serde_json::Value;

use crate::guest;

/// The findings of a run.
pub(crate) fn findings(args: &[&str]) -> Vec<Value> {
    let run = fiord(args).expect("fiord runs");
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.report().expect("a report");
    report["findings"].as_array().cloned().unwrap_or_default()
}

/// The finding with this code.
fn found(args: &[&str], code: &str) -> Option<Value> {
    findings(args).into_iter().find(|finding| finding["code"] == code)
}

fn has(args: &[&str], code: &str) -> bool {
    found(args, code).is_some()
}

/// A figure that a finding is based on.
pub(crate) fn figure(finding: &Value, name: &str) -> Option<f64> {
    let figures = finding["figures"].as_array()?;
    figures.iter().find(|figure| figure["name"] == name)?["value"].as_f64()
}

#[test]
fn writes_of_less_than_a_physical_block_are_misaligned() {
    guest!();
    // 8 logical blocks of 512 bytes in each physical one.
    let disk = ScsiDebug::new(&["dev_size_mb=16", "physblk_exp=3"]).unwrap();
    let target = format!("--filename={}", disk.path());
    let args = ["--name=m", &target, "--rw=write", "--direct=1", "--size=64k"];
    assert!(has(&[&args[..], &["--bs=512"]].concat(), "misaligned"));
    assert!(!has(&[&args[..], &["--bs=4k"]].concat(), "misaligned"));
}

#[test]
fn a_disk_that_answers_after_seconds_stalls_and_a_prompt_one_does_not() {
    guest!();
    let disk = NullBlk::new("prompt", 16, &[]).unwrap();
    let sectors = 16 << 11;
    let late = DeviceMapper::new("late", &format!("0 {sectors} delay {} 0 3500\n", disk.path())).unwrap();
    let args = ["--name=s", "--rw=read", "--direct=1", "--bs=4k", "--size=4k"];
    let on = |path: &str| has(&[&args[..], &[&format!("--filename={path}")]].concat(), "stalled");
    assert!(on(&late.path()));
    drop(late);
    assert!(!on(&disk.path()));
}

/// The limit of a project of which half is left binds what is written into its directory, and nothing beside it.
#[test]
fn a_project_is_bound_by_its_quota() {
    guest!();
    let disk = NullBlk::new("bound", 320, &[]).unwrap();
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program).args(args).status().expect("it starts");
        assert!(done.success(), "{program} {args:?}");
    };
    run("mkfs.xfs", &["-q", "-f", &disk.path()]);
    let point = std::env::temp_dir().join("fiord-bound");
    fs::create_dir_all(&point).expect("a directory is made");
    let point = point.to_string_lossy().into_owned();
    run("mount", &["-o", "prjquota", &disk.path(), &point]);
    let project = format!("{point}/project");
    fs::create_dir(&project).expect("a directory is made");
    run("chattr", &["-p", "7", "+P", &project]);
    run("xfs_quota", &["-x", "-c", "limit -p bhard=8m 7", &point]);
    fs::write(format!("{project}/half"), vec![7; 4 << 20]).expect("it fits");
    let line = |directory: &str, options: &str| -> Vec<String> {
        let line = format!("--name=q --directory={directory} --rw=write --bs=64k --fallocate=none {options}");
        line.split_whitespace().map(str::to_string).collect()
    };
    let ran = |directory: &str, options: &str| {
        let line = line(directory, options);
        let args: Vec<&str> = line.iter().map(String::as_str).collect();
        fiord(&args).expect("fiord runs")
    };
    let bound = |directory: &str| {
        let ran = ran(directory, "--size=1m --end_fsync=1");
        let report = ran.report().expect("a report");
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        findings.into_iter().find(|finding| finding["code"] == "quota-bound")
    };
    let found = bound(&project).expect("the project is bound");
    assert_eq!(figure(&found, "limit_bytes"), Some(f64::from(8 << 20)), "{found}");
    assert!(bound(&point).is_none());
    // One MiB of the four is written by now.
    let refused = ran(&project, "--size=1m --nrfiles=1 --filename=other --filesize=5m --size=5m");
    let said = format!("{refused:?}");
    assert!(refused.code == Some(1) && said.contains("the quota of project 7 leaves 3145728"), "{said}");
    // Whom the kernel does not tell a project's limit, the file system tells its own size and room as what the limit leaves.
    run("chmod", &["777", &project]);
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    other.arg(std::env::var_os("FIORD").expect("it is named"));
    let refused = other.args(line(&project, "--filename=third --size=5m")).output().expect("it starts");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(1) && said.contains("3145728"), "{refused:?}");
    let filled = format!("{:?}", ran(&project, "--filename=other --size=5m --runtime=1h --end_fsync=1"));
    assert!(filled.contains("EDQUOT") || filled.contains("ENOSPC"), "{filled}");
    run("umount", &[&point]);
}

#[test]
fn a_volume_of_a_pool_without_an_identifier_is_thin_provisioned() {
    guest!();
    let (metadata, data) = (NullBlk::new("meta", 8, &[]).unwrap(), NullBlk::new("data", 32, &[]).unwrap());
    let table = format!("0 {} thin-pool {} {} 128 0\n", 32 << 11, metadata.path(), data.path());
    let pool = DeviceMapper::new("bare-pool", &table).unwrap();
    let created = Command::new("dmsetup").args(["message", "bare-pool", "0", "create_thin 0"]).status();
    assert!(created.expect("it starts").success());
    let volume =
        DeviceMapper::new("bare-volume", &format!("0 {} thin {} 0\n", 64 << 11, pool.path())).unwrap();
    let is_thin = |path: &str| {
        let target = format!("--filename={path}");
        has(&["--name=t", &target, "--rw=write", "--bs=64k", "--size=1m"], "thin-provisioned")
    };
    assert!(is_thin(&volume.path()));
    drop(volume);
    drop(pool);
    let plain = DeviceMapper::new("plain", &format!("0 {} linear {} 0\n", 32 << 11, data.path())).unwrap();
    assert!(!is_thin(&plain.path()));
}

/// Limits of the page cache that are put back.
struct DirtyLimits([(&'static str, String); 2]);

impl DirtyLimits {
    fn set(background_bytes: u64, most_bytes: u64) -> DirtyLimits {
        let names = ["/proc/sys/vm/dirty_background_ratio", "/proc/sys/vm/dirty_ratio"];
        let before = names.map(|name| (name, fs::read_to_string(name).expect("a limit is read")));
        fs::write("/proc/sys/vm/dirty_background_bytes", background_bytes.to_string()).expect("it is set");
        fs::write("/proc/sys/vm/dirty_bytes", most_bytes.to_string()).expect("it is set");
        DirtyLimits(before)
    }
}

impl Drop for DirtyLimits {
    fn drop(&mut self) {
        for (name, value) in &self.0 {
            let _ = fs::write(name, value.trim());
        }
    }
}

#[test]
fn writers_beyond_the_dirty_limit_are_slowed_down_and_direct_ones_are_not() {
    guest!();
    let disk = NullBlk::new("cached", 16, &[]).unwrap();
    let sectors = 16 << 11;
    // So slow that a writer to memory gets ahead of it on any machine.
    let table = format!("0 {sectors} delay {} 0 0 {} 0 500\n", disk.path(), disk.path());
    let slow = DeviceMapper::new("written-late", &table).unwrap();
    let target = format!("--filename={}", slow.path());
    let _limits = DirtyLimits::set(1 << 20, 2 << 20);
    let args = ["--name=w", &target, "--rw=write", "--bs=64k", "--time_based", "--runtime=2500ms"];
    assert!(has(&[&args[..], &["--direct=0"]].concat(), "writers-slowed"));
    assert!(!has(&[&args[..], &["--direct=1"]].concat(), "writers-slowed"));
}

/// Programs that keep all processors busy until they are dropped.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    /// Two for each processor, each allowed to run on that one alone, at normal priority.
    fn start() -> BusyLoops {
        let cpus = std::thread::available_parallelism().expect("the kernel knows").get();
        let on = |cpu: usize| {
            let loops = Command::new("taskset")
                .args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"])
                .spawn();
            loops.expect("taskset runs")
        };
        BusyLoops((0..2 * cpus).map(|number| on(number / 2)).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Programs take the processors for a quarter of a run, which begins before and lasts longer; without them it is alone.
#[test]
fn processors_that_others_keep_busy_during_a_part_of_a_run_are_foreign() {
    guest!();
    let args =
        ["--name=c", "--ioengine=null", "--rate_iops=10", "--size=1g", "--time_based", "--runtime=24s"];
    let code = |name: &'static str| move |finding: &&Value| finding["code"] == name;
    let running = start(&args).and_then(|running| running.begun("c")).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let busy = BusyLoops::start();
    std::thread::sleep(Duration::from_secs(6));
    drop(busy);
    let report = running.wait().unwrap().report().unwrap();
    let beside = report["findings"].as_array().cloned().unwrap_or_default();
    let foreign = beside.iter().find(code("foreign-cpu")).unwrap_or_else(|| panic!("{beside:?}"));
    let contended_s = figure(foreign, "contended_s").expect("for how long");
    assert!((2.0..16.0).contains(&contended_s), "{foreign}");
    assert!(!beside.iter().any(|finding| finding["code"] == "cpu-contended"), "{beside:?}");
    let alone = findings(&[&args[..5], &["--runtime=6s"]].concat());
    assert!(alone.iter().find(code("foreign-cpu")).is_none(), "{alone:?}");
}

/// The codes about a disk's health.
pub(crate) const HEALTH: [&str; 3] = ["device-overheated", "media-errors", "device-worn"];

/// A run on the NVMe disk with this serial number.
fn reads(serial: &str) -> Vec<Value> {
    let target = format!("--filename={}", nvme(serial).expect("the machine has one"));
    findings(&["--name=h", &target, "--rw=read", "--bs=64k", "--size=1m", "--direct=1"])
}

/// The finding about the health of a disk, which is the only one.
fn health_of(serial: &str) -> Option<Value> {
    let is_health = |finding: &Value| HEALTH.iter().any(|code| finding["code"] == *code);
    let mut found: Vec<Value> = reads(serial).into_iter().filter(is_health).collect();
    assert!(found.len() < 2, "{found:?}");
    found.pop()
}

/// Where the kernel shows the temperature of a disk and its limit.
fn thermometer(serial: &str) -> PathBuf {
    let disk = nvme(serial).expect("the machine has one");
    // A disk that could have several controllers belongs to a subsystem, with links to them.
    let owner = PathBuf::from(disk.replace("/dev/", "/sys/block/") + "/device");
    let below = fs::read_dir(&owner).expect("a controller").flatten().map(|entry| entry.path());
    let owners: Vec<PathBuf> =
        below.chain([owner.clone()]).filter_map(|path| fs::canonicalize(path).ok()).collect();
    let entries = fs::read_dir("/sys/class/hwmon").expect("the kernel has thermometers").flatten();
    let is_of_disk =
        |path: &PathBuf| fs::canonicalize(path.join("device")).is_ok_and(|of| owners.contains(&of));
    entries.map(|entry| entry.path()).find(is_of_disk).expect("the disk has a thermometer")
}

#[test]
fn a_disk_is_overheated_above_its_own_limit_and_its_temperature_is_the_kernels() {
    guest!();
    assert_eq!(health_of("plain"), None);
    let dir = thermometer("plain");
    let millidegrees = || fs::read_to_string(dir.join("temp1_input")).unwrap().trim().parse::<f64>().unwrap();
    let limit = fs::read_to_string(dir.join("temp1_max")).unwrap();
    // The emulated disk always has the same temperature, but its limit can be set.
    fs::write(dir.join("temp1_max"), format!("{}", millidegrees() - 5_000.0)).unwrap();
    let hot = health_of("plain");
    fs::write(dir.join("temp1_max"), limit.trim()).unwrap();
    let hot = hot.expect("it is found");
    assert_eq!(hot["code"], "device-overheated");
    let celsius = figure(&hot, "temperature_celsius").expect("its temperature");
    assert!((celsius - millidegrees() / 1e3).abs() < 1.0, "{hot}");
    assert_eq!(figure(&hot, "slowdowns"), Some(0.0), "{hot}");
    assert_eq!(health_of("plain"), None);
}

#[test]
fn a_disk_that_warns_of_its_reliability_is_worn() {
    guest!();
    let worn = health_of("worn").expect("it is found");
    assert_eq!(worn["code"], "device-worn");
    // As the machine's disk is set up.
    assert_eq!(figure(&worn, "critical_warning"), Some(4.0), "{worn}");
    assert_eq!(figure(&worn, "used_percent"), Some(0.0), "{worn}");
}

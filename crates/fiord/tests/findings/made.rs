//! Places and neighbours that runs need to raise findings: control groups, overlays, programs that disturb.
//!
//! Invariant: what is made is gone when its value is dropped.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::common::{Dir, LoopDevice, Mount, Running, finish, fiord, helper, root, start};

/// The one processor that pinned runs and their neighbours share: the last of those this process may use.
pub fn shared_cpu() -> Result<String, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let last = list.and_then(|list| list.trim().rsplit([',', '-']).next());
    last.map(str::to_string)
        .ok_or_else(|| "the kernel does not show which processors may be used".to_string())
}

/// A command on one processor.
pub fn pinned(cpu: &str, command: &Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", cpu]).arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        pinned.current_dir(dir);
    }
    pinned
}

/// Whose turn it is to keep the shared processor busy, and to be judged by how busy it is.
pub fn processor_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has dropped its neighbours.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Programs that keep a processor busy until they are dropped.
pub fn hogs(cpu: &str, count: usize) -> Vec<Running> {
    let hog = |_| {
        let mut spin = Command::new("sh");
        spin.args(["-c", "while :; do :; done"]);
        start(pinned(cpu, &spin))
    };
    (0..count).map(hog).collect()
}

/// A program that writes to a file or device without pause until it is dropped; its last `dd` ends by itself.
pub fn writer(path: &str) -> Running {
    let loops = format!(
        "while dd if=/dev/zero of={path} bs=1M count=64 conv=notrunc oflag=direct 2>/dev/null; do :; done"
    );
    let mut writer = Command::new("sh");
    writer.args(["-c", &loops]);
    start(writer)
}

/// The document of a run, with these words before its command line.
pub fn run_as(dir: &Dir, wrap: impl Fn(&Command) -> Command, line: &str) -> Value {
    let plain = fiord(dir.path(), &format!("--no-history --output-format=json {line}"));
    finish(start(wrap(&plain))).assert_success().json()
}

/// The share of all processors' time that was not idle during a call, 0 to 1.
pub fn busy_during<T>(call: impl FnOnce() -> T) -> (T, f64) {
    let ticks = || -> (u64, u64) {
        let text = fs::read_to_string("/proc/stat").unwrap();
        let fields: Vec<u64> = text
            .lines()
            .next()
            .unwrap()
            .split_whitespace()
            .skip(1)
            .filter_map(|field| field.parse().ok())
            .collect();
        (fields[3] + fields[4], fields.iter().take(8).sum())
    };
    let (idle, all) = ticks();
    let result = call();
    let (idle_now, all_now) = ticks();
    (result, 1.0 - (idle_now - idle) as f64 / (all_now - all).max(1) as f64)
}

/// A loop device of 256 MiB in memory: nobody else's I/O is on it.
pub fn private_device(dir: &Dir) -> Result<(Mount, LoopDevice), String> {
    let tmpfs = Mount::tmpfs(dir, "size=300m")?;
    let backing = tmpfs.path.join("backing");
    let file = fs::File::create(&backing).map_err(|error| error.to_string())?;
    file.set_len(256 << 20).map_err(|error| error.to_string())?;
    let device = LoopDevice::over(&backing)?;
    Ok((tmpfs, device))
}

/// A file system on a loop device.
pub struct Made {
    mount: Mount,
    _device: LoopDevice,
}

impl Made {
    /// One of this type, mounted with these options in `dir/TYPE`. All of them have room in 400 MiB.
    pub fn new(dir: &Dir, kind: &str, options: &str) -> Result<Made, String> {
        let device = LoopDevice::new(dir, 400 << 20)?;
        helper(&format!("mkfs.{kind}"), &["-q", &device.path])?;
        let mount = Mount::new(dir, kind, &["-t", kind, "-o", options, &device.path])?;
        Ok(Made { mount, _device: device })
    }

    pub fn path(&self) -> &Path {
        &self.mount.path
    }
}

/// An overlay whose upper layer is in `upper`, mounted in `dir/NAME`.
pub fn overlay(dir: &Dir, upper: &Path, name: &str, option: &str) -> Result<Mount, String> {
    root()?;
    let part = |part: &str| {
        let path = upper.join(part);
        fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok::<String, String>(path.to_string_lossy().into_owned())
    };
    let (lower, up, work) = (part("lower")?, part("upper")?, part("work")?);
    let options = format!("lowerdir={lower},upperdir={up},workdir={work}{option}");
    Mount::new(dir, name, &["-t", "overlay", "-o", &options, "overlay"])
}

/// The same, of which the layers are not where the mount table says, as in a container.
pub fn hidden_overlay(dir: &Dir) -> Result<Mount, String> {
    let layers = dir.join("layers");
    let mount = overlay(dir, &layers, "hidden", "")?;
    fs::rename(&layers, dir.join("moved")).map_err(|error| error.to_string())?;
    Ok(mount)
}

/// A zram device of 64 MiB.
pub struct Zram {
    number: String,
}

impl Zram {
    pub fn new() -> Result<Zram, String> {
        root()?;
        let text = fs::read_to_string("/sys/class/zram-control/hot_add");
        let number = text.map_err(|error| format!("no zram can be added: {error}"))?.trim().to_string();
        let zram = Zram { number };
        let size = format!("/sys/block/zram{}/disksize", zram.number);
        fs::write(&size, "64M").map_err(|error| format!("{size}: {error}"))?;
        Ok(zram)
    }

    pub fn path(&self) -> String {
        format!("/dev/zram{}", self.number)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = fs::write(format!("/sys/block/zram{}/reset", self.number), "1");
        let _ = fs::write("/sys/class/zram-control/hot_remove", &self.number);
    }
}

//! Where rows run: directories with a cached file, on the disk, in memory and on file systems made for them, and block
//! devices fast enough to show overhead.
//!
//! Invariant: everything set up here is removed when dropped, whatever happens in between; a device that existed before
//! is not touched.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::rows::{DEVICES, FILE_SYSTEMS, Location, TRACE_IOS};
use crate::repo;

const CACHED_BYTES: usize = 64 << 20;
const DEVICE_SIZE: &str = "1G";
const FILE_SYSTEM_GIB: u64 = 4;

/// All places; what not every row needs is set up for the first that does.
pub struct Places {
    /// On the disk. Contains `cached`.
    directory: PathBuf,
    /// Where the output of programs is stored until it is read.
    pub output: PathBuf,
    memory: OnceCell<Result<MemoryDirectory, String>>,
    file_systems: [OnceCell<Result<Mounted, String>>; FILE_SYSTEMS.len()],
    device: OnceCell<Result<Device, String>>,
    devices: OnceCell<Result<Vec<Device>, String>>,
    _scratch: Scratch,
}

impl Places {
    /// Creates the directories and the cached file.
    pub fn new() -> Result<Places, String> {
        let scratch = Scratch::new()?;
        let (directory, output) = (scratch.0.join("place"), scratch.0.join("output"));
        fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        furnish(&directory)?;
        let (device, devices) = (OnceCell::new(), OnceCell::new());
        let (memory, file_systems) = (OnceCell::new(), Default::default());
        Ok(Places { directory, output, memory, file_systems, device, devices, _scratch: scratch })
    }

    /// The directory in which both programs run, or why there is none.
    pub fn directory(&self, place: Location) -> Result<&Path, &String> {
        match place {
            Location::Directory | Location::Device | Location::Devices => Ok(&self.directory),
            Location::Memory => {
                self.memory.get_or_init(MemoryDirectory::new).as_ref().map(|memory| memory.0.as_path())
            }
            Location::FileSystem(index) => {
                let make =
                    || Mounted::new(FILE_SYSTEMS[index], &self.directory.with_file_name(FILE_SYSTEMS[index]));
                self.file_systems[index].get_or_init(make).as_ref().map(|mounted| mounted.at.as_path())
            }
        }
    }

    /// The device's path, or why there is none.
    pub fn device(&self) -> Result<&str, &String> {
        self.device.get_or_init(Device::new).as_ref().map(|device| device.path.as_str())
    }

    /// What the paths of all devices begin with, links in the directory; or why there are none.
    pub fn devices(&self) -> Result<&str, &String> {
        let link = |number| {
            let device = loop_device(1)?;
            let path = self.directory.join(format!("device.{number}"));
            symlink(&device.path, &path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(device)
        };
        let devices = self.devices.get_or_init(|| (0..DEVICES).map(link).collect());
        devices.as_ref().map(|_| "device")
    }

    /// What a row runs on, for the raw results; for a device, its kind.
    pub fn kind_of(&self, place: Location) -> &'static str {
        match (place, self.device.get()) {
            (Location::Directory, _) => "directory",
            (Location::Memory, _) => "tmpfs",
            (Location::FileSystem(index), _) => FILE_SYSTEMS[index],
            (Location::Devices, _) => "64 loops over memory",
            (Location::Device, Some(Ok(Device { kind: Kind::Zram { .. }, .. }))) => "zram",
            (Location::Device, Some(Ok(Device { kind: Kind::Loop { .. }, .. }))) => "loop over memory",
            (Location::Device, _) => "no device",
        }
    }
}

/// Makes the directory and its files.
fn furnish(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    for (name, contents) in [("cached", vec![0x5a; CACHED_BYTES]), ("iolog", iolog())] {
        let path = directory.join(name);
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&contents)?;
            file.sync_all()
        });
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// A directory in memory.
struct MemoryDirectory(PathBuf);

impl MemoryDirectory {
    fn new() -> Result<MemoryDirectory, String> {
        let directory =
            MemoryDirectory(PathBuf::from(format!("/dev/shm/fiord-bench-{}-place", std::process::id())));
        furnish(&directory.0)?;
        Ok(directory)
    }
}

impl Drop for MemoryDirectory {
    fn drop(&mut self) {
        // As that of `Scratch`.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A new file system on a loop device over memory.
struct Mounted {
    at: PathBuf,
    _device: Device,
}

impl Mounted {
    fn new(kind: &str, at: &Path) -> Result<Mounted, String> {
        let device = loop_device(FILE_SYSTEM_GIB)?;
        fs::create_dir_all(at).map_err(|error| format!("{}: {error}", at.display()))?;
        repo::output_of(repo::command(&format!("mkfs.{kind}"), &["-q", &device.path]))?;
        let target = at.to_string_lossy();
        repo::output_of(repo::command("mount", &[&device.path, &target]))?;
        Ok(Mounted { at: at.to_path_buf(), _device: device })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(why) = repo::output_of(repo::command("umount", &[&self.at.to_string_lossy()])) {
            eprintln!("{} is still mounted: {why}", self.at.display());
        }
    }
}

/// A trace of reads of `cached`, each in another place than the one before.
fn iolog() -> Vec<u8> {
    const BLOCK_BYTES: u64 = 4096;
    // Prime to the number of blocks, so that each is read equally often.
    const STEP: u64 = 7919;
    let blocks = CACHED_BYTES as u64 / BLOCK_BYTES;
    let mut text = "fio version 3 iolog\n0 cached add\n0 cached open\n".to_string();
    for at_us in 0..TRACE_IOS {
        let offset_bytes = at_us * STEP % blocks * BLOCK_BYTES;
        let _ = writeln!(text, "{at_us} cached read {offset_bytes} {BLOCK_BYTES}");
    }
    text.push_str(&format!("{TRACE_IOS} cached close\n"));
    text.into_bytes()
}

/// A temporary directory.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Creates one under cargo's target directory.
    pub fn new() -> Result<Scratch, String> {
        let path = repo::target_dir().join(format!("bench-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing depends on its removal: the next run uses another name.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A block device that is only read: an empty zram device, or else a loop device on a file in memory.
struct Device {
    path: String,
    kind: Kind,
}

enum Kind {
    Zram { number: String },
    Loop { backing: PathBuf },
}

impl Device {
    fn new() -> Result<Device, String> {
        zram().or_else(|no_zram| {
            loop_device(1).map_err(|no_loop| format!("no device: zram: {no_zram}; loop: {no_loop}"))
        })
    }

    fn take_down(&self) -> Result<(), String> {
        match &self.kind {
            Kind::Zram { number } => remove_zram(number),
            Kind::Loop { backing } => {
                let _ = fs::remove_file(backing);
                repo::output_of(repo::command("losetup", &["--detach", &self.path])).map(drop)
            }
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Err(why) = self.take_down() {
            eprintln!("{} is still set up: {why}", self.path);
        }
    }
}

/// A new zram device: existing ones may be in use.
fn zram() -> Result<Device, String> {
    // Reading the file adds one.
    let number = read("/sys/class/zram-control/hot_add")?;
    let device = Device { path: format!("/dev/zram{number}"), kind: Kind::Zram { number } };
    write(&format!("/sys/block/{}/disksize", device.path.trim_start_matches("/dev/")), DEVICE_SIZE)?;
    if !Path::new(&device.path).exists() {
        return Err(format!("{} does not exist", device.path));
    }
    Ok(device)
}

/// Programs that examine each new block device (udev) may still have it open; they close it soon.
fn remove_zram(number: &str) -> Result<(), String> {
    let mut removed = Ok(());
    for _ in 0..50 {
        removed = write("/sys/class/zram-control/hot_remove", number);
        if removed.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    removed
}

/// A loop device of this many GiB.
fn loop_device(gib: u64) -> Result<Device, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let backing = PathBuf::from(format!("/dev/shm/fiord-bench-{}-{number}", std::process::id()));
    let sparse = File::create(&backing).and_then(|file| file.set_len(gib << 30));
    sparse.map_err(|error| format!("{}: {error}", backing.display()))?;
    match repo::output_of(repo::command("losetup", &["--find", "--show", &backing.to_string_lossy()])) {
        Ok(path) => Ok(Device { path: path.trim().to_string(), kind: Kind::Loop { backing } }),
        Err(why) => {
            let _ = fs::remove_file(&backing);
            Err(why.lines().next_back().unwrap_or_default().to_string())
        }
    }
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map(|text| text.trim().to_string()).map_err(|error| format!("{path}: {error}"))
}

fn write(path: &str, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_set_up_is_removed() {
        for make in [zram, || loop_device(1)] {
            let device = match make() {
                Ok(device) => device,
                Err(why) => {
                    println!("skipped: {why}");
                    continue;
                }
            };
            let size = format!("/sys/block/{}/size", device.path.trim_start_matches("/dev/"));
            assert_eq!(read(&size).as_deref(), Ok("2097152"), "{}", device.path);
            drop(device);
            assert_ne!(read(&size).as_deref(), Ok("2097152"), "{size}");
        }
    }
}

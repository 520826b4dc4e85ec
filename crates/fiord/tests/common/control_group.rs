//! Control groups: a command that is run in one, and limits on what it reads.
//!
//! Invariant: a group is removed when its value is dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::root;

/// A control group, of whichever version this machine has.
pub struct ControlGroup {
    path: PathBuf,
    version: Version,
}

#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

/// A limit on direct reads of a device.
#[derive(Clone, Copy)]
pub enum ReadLimit {
    BytesPerSecond(u64),
    IosPerSecond(u64),
}

impl ControlGroup {
    /// Below the directory of this controller of version 1, or below `unified`, version 2 beside version 1.
    pub fn new(controller: &str, name: &str) -> Result<ControlGroup, String> {
        ControlGroup::below(&Path::new("/sys/fs/cgroup").join(controller), name, Version::One)
    }

    /// A group in which I/O can be limited.
    pub fn for_io(name: &str) -> Result<ControlGroup, String> {
        let unified = Path::new("/sys/fs/cgroup");
        match unified.join("cgroup.controllers").exists() {
            true => ControlGroup::below(unified, name, Version::Two),
            false => ControlGroup::new("blkio", name),
        }
    }

    fn below(directory: &Path, name: &str, version: Version) -> Result<ControlGroup, String> {
        root()?;
        let path = directory.join(format!("fiord-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(ControlGroup { path, version })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn set(&self, file: &str, value: &str) -> Result<(), String> {
        let file = self.path.join(file);
        fs::write(&file, value).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Limits direct reads of the device `number`, as in `254:0`. Only for a group made by `for_io`.
    pub fn limit_reads(&self, number: &str, limit: ReadLimit) -> Result<(), String> {
        match (self.version, limit) {
            (Version::One, ReadLimit::BytesPerSecond(bytes)) => {
                self.set("blkio.throttle.read_bps_device", &format!("{number} {bytes}"))
            }
            (Version::One, ReadLimit::IosPerSecond(ios)) => {
                self.set("blkio.throttle.read_iops_device", &format!("{number} {ios}"))
            }
            (Version::Two, ReadLimit::BytesPerSecond(bytes)) => {
                self.set("io.max", &format!("{number} rbps={bytes}"))
            }
            (Version::Two, ReadLimit::IosPerSecond(ios)) => {
                self.set("io.max", &format!("{number} riops={ios}"))
            }
        }
    }

    /// A command in this group.
    pub fn inside(&self, command: &Command) -> Command {
        let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.path.display());
        let mut inside = Command::new("sh");
        inside.args(["-c", &join, "sh"]).arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
        if let Some(dir) = command.get_current_dir() {
            inside.current_dir(dir);
        }
        inside
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

//! What a server lets its clients do, whatever they ask for.
//!
//! Invariant: the kernel holds it (Landlock), around the agent and all that it starts, before it reads a byte of a client; a
//! kernel that cannot is an error, and never a server without its policy.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use fiord_plan::{Job, Plan};
use fiord_report::path::shown;
use fiord_store::state_path;
use fiord_sys::errno::error_text;
use fiord_sys::landlock::{self, Access, Fence};

use crate::spool;

/// What an agent may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Files are used below this directory alone.
    pub root: Option<PathBuf>,
    /// Nothing is written.
    pub readonly: bool,
    /// No command is run.
    pub no_exec: bool,
    /// The devices that may be used, as patterns of paths with `*` and `?`; empty: all, or with a root none.
    pub devices: Vec<String>,
    /// Whoever it is may be the client: devices that are not among these are not written.
    pub for_anyone: bool,
}

/// The first versions of the kernel's fences that let files be moved between directories, and keep them from being truncated.
const VERSION_THAT_MOVES: u32 = 2;
const VERSION_OF_FILES: u32 = 3;

/// What programs read of a system: facts of the machine, libraries of engines, the time zone, names of users and hosts.
const OF_THE_SYSTEM: [&str; 7] =
    ["/proc", "/sys", "/usr", "/lib", "/lib64", "/etc/localtime", "/etc/ld.so.cache"];

/// Devices that are no disk.
const PLAIN_DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/shm", "/dev/hugepages"];

impl Policy {
    /// Whether files are fenced, and not commands alone.
    fn fences_files(&self) -> bool {
        self.root.is_some() || self.readonly || self.for_anyone || !self.devices.is_empty()
    }

    /// Whether it forbids nothing.
    fn is_open(&self) -> bool {
        !self.fences_files() && !self.no_exec
    }

    /// The arguments of an agent with this policy.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut words = Vec::new();
        words.extend(self.root.iter().map(|root| joined("--root=", root.as_os_str())));
        let flags =
            [(self.readonly, "--readonly"), (self.no_exec, "--no-exec"), (self.for_anyone, "--for-anyone")];
        words.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| OsString::from(flag)));
        words.extend(self.devices.iter().map(|device| joined("--allow-device=", device.as_ref())));
        words
    }

    /// Whether the kernel can hold it.
    ///
    /// # Errors
    /// It cannot, and why.
    pub fn check(&self) -> Result<(), String> {
        if self.is_open() {
            return Ok(());
        }
        let needed = if self.fences_files() { VERSION_OF_FILES } else { VERSION_THAT_MOVES };
        let why = match landlock::version() {
            Ok(version) if version >= needed => None,
            Ok(version) => Some(format!("its Landlock has version {version}, and {needed} is needed")),
            Err(error) => Some(format!("Landlock: {}", error_text(&error))),
        };
        if let Some(why) = why {
            return Err(format!(
                "this kernel cannot keep clients to what they may do ({why}): use Linux 6.2 or later, or allow all by \
                 --allow-exec alone"
            ));
        }
        match &self.root {
            Some(root) if !root.is_dir() => {
                Err(format!("--root={}: it is no directory", shown(root.as_os_str())))
            }
            _ => Ok(()),
        }
    }

    /// Holds from now on, for this thread and all that it starts; the working directory is the root.
    ///
    /// # Errors
    /// It cannot be held: nothing may be done for a client.
    pub fn enforce(&self) -> Result<(), String> {
        self.check()?;
        if self.is_open() {
            return Ok(());
        }
        let failed = |error: std::io::Error| format!("the policy cannot be held: {}", error_text(&error));
        let commands = if self.no_exec { Access::EXECUTE } else { Access::NONE };
        let files = if self.fences_files() { Access::READ | Access::WRITE } else { Access::NONE };
        let fence = Fence::around(commands | files).map_err(failed)?;
        match self.fences_files() {
            true => self.open_gates(&fence),
            false => fence.allow(Path::new("/"), Access::MOVE).map_err(failed)?,
        }
        if let Some(root) = &self.root {
            std::env::set_current_dir(root).map_err(failed)?;
        }
        fence.close().map_err(failed)
    }

    /// Lets through what is allowed. What is not there, or not this user's, is not let through.
    fn open_gates(&self, fence: &Fence) {
        let write = if self.readonly { Access::NONE } else { Access::WRITE };
        let allow = |path: &Path, access| drop(fence.allow(path, access));
        for path in OF_THE_SYSTEM {
            allow(Path::new(path), Access::READ);
        }
        for path in PLAIN_DEVICES {
            allow(Path::new(path), Access::READ | Access::WRITE);
        }
        if let Some(spool) = state_path(|name| std::env::var_os(name), spool::NAME) {
            // Made now, while it can be: a report of a lost controller is kept there.
            let _ = fs::create_dir_all(&spool);
            allow(&spool, Access::READ | Access::WRITE);
        }
        let devices = if self.for_anyone { Access::READ } else { Access::READ | write };
        match &self.root {
            Some(root) => allow(root, Access::READ | write),
            None => {
                let entries = fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
                let of_files = entries.filter(|path| path != Path::new("/dev"));
                of_files.for_each(|path| allow(&path, Access::READ | write));
            }
        }
        if self.devices.is_empty() && self.root.is_none() {
            allow(Path::new("/dev"), devices);
        }
        for device in below(Path::new("/dev")).filter(|path| self.names(path)) {
            allow(&device, Access::READ | write);
        }
    }

    /// Whether this device is among those that may be used.
    fn names(&self, path: &Path) -> bool {
        self.devices.iter().any(|pattern| matches(pattern.as_bytes(), path.as_os_str().as_encoded_bytes()))
    }

    /// Why this plan is not run: a command before or after a job fails without failing the job.
    pub(crate) fn refusal(&self, plan: &Plan) -> Option<String> {
        let runs = |job: &&Job| job.process.exec_prerun.is_some() || job.process.exec_postrun.is_some();
        let job = plan.jobs.iter().filter(|_| self.no_exec).find(runs)?;
        Some(format!(
            "the job {} would run a command, and clients of this server run no commands",
            shown(&job.name)
        ))
    }

    /// What a client is told of it beside these errors; `None` where no refusal of the kernel's is among them.
    pub(crate) fn explains(&self, mut errors: impl Iterator<Item = impl AsRef<str>>) -> Option<String> {
        errors.any(|error| error.as_ref().contains("EACCES")).then(|| self.sentence())?
    }

    fn sentence(&self) -> Option<String> {
        let root =
            self.root.as_ref().map(|root| format!("use files below {} alone", shown(root.as_os_str())));
        let devices =
            (self.root.is_some() || !self.devices.is_empty() || self.for_anyone).then(|| {
                match self.devices[..] {
                    [] => "write no devices".to_string(),
                    _ => format!("use no devices but {}", self.devices.join(", ")),
                }
            });
        let readonly = self.readonly.then(|| "write nothing".to_string());
        let commands = self.no_exec.then(|| "run no commands".to_string());
        let rules: Vec<String> = root.into_iter().chain(readonly).chain(devices).chain(commands).collect();
        (!rules.is_empty()).then(|| format!("clients of this server {}", rules.join(", ")))
    }
}

fn joined(option: &str, value: &std::ffi::OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(value);
    word
}

/// All that is not a directory below this one; links are not followed.
fn below(directory: &Path) -> Box<dyn Iterator<Item = PathBuf>> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    Box::new(entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => below(&entry.path()),
        _ => Box::new(std::iter::once(entry.path())),
    }))
}

/// Whether a path has the form of a pattern: `*` stands for any letters, `/` among them, and `?` for one.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=path.len()).any(|skipped| matches(rest, &path[skipped..])),
        (Some((b'?', pattern)), Some((_, path))) => matches(pattern, path),
        (Some((wanted, pattern)), Some((letter, path))) => wanted == letter && matches(pattern, path),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_whole_paths() {
        for (pattern, path, expected) in [
            ("/dev/nvme1n1", "/dev/nvme1n1", true),
            ("/dev/nvme1n1", "/dev/nvme1n1p1", false),
            ("/dev/nvme?n*", "/dev/nvme1n1p1", true),
            ("/dev/disk/by-id/*-DATA", "/dev/disk/by-id/wwn-DATA", true),
            ("*", "/dev/sda", true),
            ("", "/dev/sda", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), path.as_bytes()), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_policy_reaches_the_agent_as_arguments() {
        assert!(Policy::default().arguments().is_empty() && Policy::default().sentence().is_none());
        let policy = Policy {
            root: Some(PathBuf::from("/data")),
            no_exec: true,
            devices: vec!["/dev/nvme*".to_string()],
            ..Policy::default()
        };
        assert_eq!(policy.arguments(), ["--root=/data", "--no-exec", "--allow-device=/dev/nvme*"]);
        assert_eq!(policy.explains(["EIO"].iter()), None);
        let sentence = policy.explains(["EIO", "open: EACCES"].iter()).unwrap();
        assert_eq!(
            sentence,
            "clients of this server use files below /data alone, use no devices but /dev/nvme*, run no commands"
        );
    }
}

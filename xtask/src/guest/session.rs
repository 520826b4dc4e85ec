//! The directory that the guest shares with this machine: what runs there, and what comes back.
//!
//! Invariant: it is removed when the guest has ended.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::hardware::Hardware;
use crate::repo;

/// The guest's devices.
const SETUP: &str = include_str!("setup.sh");

/// What the guest does about a command that prints nothing.
const REPORT_SILENCE: &str = include_str!("report_silence.sh");

/// The file with the command's exit status, written when it has ended.
pub const STATUS: &str = "status";

/// The file that says what the guest's tasks wait for, once it was silent for too long.
pub const TASKS: &str = "tasks";

/// The file that shows that the other is complete.
pub const ANSWERED: &str = "answered";

/// The directory that the guest shares with this machine, removed when it ends.
#[derive(Debug)]
pub struct Session {
    /// Its path.
    pub dir: PathBuf,
    /// What the machine has; the contents are here.
    pub hardware: Hardware,
    /// How long the command may print nothing.
    silence: Option<Duration>,
}

impl Session {
    /// One for this command.
    pub fn new(
        fiord: &Path,
        command: &str,
        had_power_cut: bool,
        silence: Option<Duration>,
    ) -> Result<Session, String> {
        let dir = repo::target_dir().join(format!("guest-{}", std::process::id()));
        let session = Session { hardware: Hardware { dir: dir.clone(), had_power_cut }, dir, silence };
        session.fill(fiord, command).map_err(|error| format!("{}: {error}", session.dir.display()))?;
        Ok(session)
    }

    fn fill(&self, fiord: &Path, command: &str) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.dir);
        fs::create_dir_all(self.path("bin"))?;
        std::os::unix::fs::symlink(fiord, self.path("bin/fiord"))?;
        self.hardware.create_images()?;
        for output in ["stdout", "stderr"] {
            File::create(self.path(output))?;
        }
        fs::write(self.path("command"), command)?;
        fs::write(self.path("run"), self.script(fiord, "command"))
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The commands that make the disks.
    pub fn setup(&self) -> String {
        let disks: Vec<&str> = self.hardware.disks().collect();
        format!("NVME_DISKS='{}'\n{SETUP}", disks.join(" "))
    }

    /// The script that runs in the guest; the command is in the file of this name.
    pub fn script(&self, fiord: &Path, command: &str) -> String {
        let dir = self.dir.display();
        let mut script = format!("exec </dev/null >>{dir}/stdout 2>>{dir}/stderr\n");
        if let Some(silence) = self.silence {
            let _ =
                writeln!(script, "SILENCE_S={}\n{REPORT_SILENCE}report_silence {dir} &", silence.as_secs());
        }
        script += &self.setup();
        script += &keep_in_memory(fiord);
        let passed = |name: &OsString| {
            let name = name.to_string_lossy();
            name.starts_with("FIORD_") || name == "RUST_BACKTRACE"
        };
        for (name, value) in std::env::vars_os().filter(|(name, _)| passed(name)) {
            let value = if name == fiord_testing::RECORD { self.path("skips").into() } else { value };
            let _ = writeln!(script, "export {}='{}'", name.display(), value.display());
        }
        let _ = write!(
            script,
            "export FIORD='{}' FIORD_SHARED={dir} FIORD_IN_GUEST=1 PATH={dir}/bin:$PATH\ncd '{}'\n\
             sh {dir}/{command}\nstatus=$?\necho $status >{dir}/{STATUS}\n",
            fiord.display(),
            repo::root().display()
        );
        script
    }

    /// Adds the tests that the guest skipped to the record of this machine.
    pub fn pass_skips(&self) -> io::Result<()> {
        let (Some(record), Ok(skips)) =
            (std::env::var_os(fiord_testing::RECORD), fs::read(self.path("skips")))
        else {
            return Ok(());
        };
        OpenOptions::new().append(true).create(true).open(record)?.write_all(&skips)
    }
}

/// Commands after which the guest keeps the pages of the programs that were built. It forgets those of a file of the machine
/// outside when the last that used it has ended, so that each start reads them anew; an overlay goes on using them.
fn keep_in_memory(fiord: &Path) -> String {
    let built = repo::target_dir().join("debug");
    let mut directories = vec![built.clone()];
    directories.extend(fiord.parent().map(Path::to_path_buf).filter(|directory| *directory != built));
    let mut script = "mkdir -p /run/nothing\n".to_string();
    for directory in directories.iter().map(|directory| directory.display()) {
        let _ = writeln!(
            script,
            "mount -t overlay -o 'lowerdir={directory}:/run/nothing' programs '{directory}'"
        );
    }
    script
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

//! The emulator: QEMU of this machine if it is new enough, or else that of Debian's backports, unpacked but not installed.
//!
//! Invariant: one with all the devices of `cargo x guest --help`, or none.

use std::path::{Path, PathBuf};

use crate::cache::{self, cache};
use crate::repo;

/// The first version that emulates flexible data placement is 8.0.
const MAJOR_MIN: u32 = 8;

/// QEMU as installed.
const INSTALLED: &str = "/usr/bin/qemu-system-x86_64";

/// What is unpacked. Its libraries are those of Debian 12's own QEMU, which is installed for them.
const PACKAGES: [&str; 4] = ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"];

/// Where firmware is looked for, below the directory that it was unpacked into.
const DATA: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];

/// A QEMU that has every device.
#[derive(Debug)]
pub struct Emulator {
    /// Its program.
    pub program: PathBuf,
    /// Where its firmware is, if not in the places built in.
    pub data: Vec<PathBuf>,
    /// Whether one thread emulates all processors in turn.
    pub one_thread: bool,
}

impl Emulator {
    /// The one that is there.
    pub fn find() -> Option<Emulator> {
        let installed = Path::new(INSTALLED);
        if version(installed).is_some_and(|major| major >= MAJOR_MIN) {
            return Some(Emulator { program: installed.to_path_buf(), data: Vec::new(), one_thread: false });
        }
        let program = directory().join(INSTALLED.trim_start_matches('/'));
        version(&program)?;
        let data = DATA.iter().map(|data| directory().join(data)).collect();
        Some(Emulator { program, data, one_thread: false })
    }

    /// Arguments that say where its firmware is, and how it emulates.
    pub fn arguments(&self) -> String {
        let threads = if self.one_thread { " -accel tcg,thread=single" } else { "" };
        self.data.iter().map(|data| format!(" -L {}", data.display())).chain([threads.to_string()]).collect()
    }
}

/// Unpacks one unless there is one.
///
/// # Errors
/// The step that failed.
pub fn install() -> Result<(), String> {
    if Emulator::find().is_some() {
        return Ok(());
    }
    println!("install: qemu of bookworm-backports into {} (downloads 14 MB)", directory().display());
    cache::debian(&directory(), "bookworm-backports", None, &PACKAGES)
}

fn directory() -> PathBuf {
    cache().join("qemu")
}

/// The first number of a version; `None` if the program does not run.
fn version(program: &Path) -> Option<u32> {
    let text = repo::output_of(repo::command(program.to_str()?, &["--version"])).ok()?;
    let (_, rest) = text.split_once("version ")?;
    rest.split('.').next()?.parse().ok()
}

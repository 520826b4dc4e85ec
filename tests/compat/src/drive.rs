//! Finds the two programs and runs cases with both.
//!
//! Invariant: the two runs of a case share no directory, and the files of a case are removed with it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::case::{Case, Contents, Needs};
use crate::program::{Pair, Ran, STILL_RUNNING, Scratch, finish, target_dir};
use crate::versions::Version;

/// Why a case could not be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unable {
    /// The machine lacks something: the case is skipped.
    Lacks(String),
    /// An error, such as a program that does not end: the case fails.
    Failed(String),
}

impl From<String> for Unable {
    fn from(why: String) -> Unable {
        Unable::Failed(why)
    }
}

impl Needs {
    fn look(&self) -> Result<(), Unable> {
        match self {
            Needs::Program(path, install) if !path.exists() => {
                Err(Unable::Lacks(format!("no {}; {install}", path.display())))
            }
            _ => Ok(()),
        }
    }
}

/// The output of `fio --version`.
fn version_of(fio: &Path) -> Result<Version, Unable> {
    let out = Command::new(fio).arg("--version").output();
    let out = out.map_err(|error| format!("{}: {error}", fio.display()))?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(Version::parse(&text).ok_or_else(|| format!("{} --version says {text:?}", fio.display()))?)
}

/// fio, fiord, and a directory to work in.
pub struct Programs {
    /// The original.
    pub fio: PathBuf,
    /// fiord, by a link called `fio`.
    pub fiord: PathBuf,
    /// fiord under its own name.
    pub fiord_itself: PathBuf,
    /// The version of fio.
    pub oracle: Version,
    scratch: PathBuf,
}

impl Programs {
    /// Finds both; the error names what is missing.
    pub fn find() -> Result<Programs, Unable> {
        let fio = std::env::var_os("FIO").map_or_else(|| PathBuf::from("/usr/bin/fio"), PathBuf::from);
        if !fio.exists() {
            return Err(Unable::Lacks(format!("no fio at {}", fio.display())));
        }
        let oracle = version_of(&fio)?;
        let fiord = match std::env::var_os("FIORD") {
            Some(path) => PathBuf::from(path),
            None => target_dir().join("release/fiord"),
        };
        let fiord = fiord.canonicalize().map_err(|_| format!("no fiord at {}", fiord.display()))?;
        let scratch = target_dir().join(format!("compat-{}", std::process::id()));
        let links = scratch.join("bin");
        let link = links.join("fio");
        fs::create_dir_all(&links)
            .and_then(|()| std::os::unix::fs::symlink(&fiord, &link))
            .map_err(|error| format!("{}: {error}", link.display()))?;
        Ok(Programs { fio, fiord: link, fiord_itself: fiord, oracle, scratch })
    }

    /// Runs a case with both programs, each in its own directory.
    ///
    /// # Errors
    /// If this machine lacks what the case needs, or a program does not end.
    pub fn run(&self, case: &Case) -> Result<Pair, Unable> {
        case.needs.iter().try_for_each(Needs::look)?;
        let place = self.scratch.join(case.name.replace(['/', ' '], "_"));
        let mut fio = self.run_fio(case, &place)?;
        fio.notes_before_json = true;
        let fiord = run(&self.fiord, case, &case.own_args, &place.join("fiord"))?;
        Ok(Pair {
            fio,
            fiord,
            programs: (self.fio.clone(), self.fiord.clone()),
            fiord_itself: self.fiord_itself.clone(),
            oracle: self.oracle,
            place: Scratch(place),
        })
    }

    /// fio 3.33 hangs at times, such as where it compresses a log: to hang once is no verdict on a case.
    fn run_fio(&self, case: &Case, place: &Path) -> Result<Ran, Unable> {
        match run(&self.fio, case, &[], &place.join("fio")) {
            Err(Unable::Failed(why)) if why.contains(STILL_RUNNING) => {
                #[allow(clippy::print_stderr, reason = "whoever reads the results is to see it")]
                {
                    eprintln!("{}: fio is run again: {why}", case.name);
                }
                run(&self.fio, case, &[], &place.join("fio-again"))
            }
            ran_or_unable => ran_or_unable,
        }
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // Remaining files are in the target directory, under this process's number, and disturb nothing.
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

fn run(program: &Path, case: &Case, own_args: &[String], dir: &Path) -> Result<Ran, Unable> {
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    fs::create_dir_all(dir).map_err(failed)?;
    for (path, contents) in &case.files {
        put(&dir.join(path), contents).map_err(failed)?;
    }
    let size = case.needs.iter().find_map(|needs| match needs {
        Needs::LoopDevice(size_bytes) => Some(*size_bytes),
        Needs::Program(..) => None,
    });
    let device = size.map(|size| LoopDevice::attach(&dir.with_extension("disk"), size)).transpose()?;
    let path = device.as_ref().map_or("", |device| device.path.as_str());
    let args: Vec<String> =
        case.args.iter().chain(own_args).map(|arg| arg.replace("{device}", path)).collect();
    let mut command = Command::new(program);
    command.args(&args).current_dir(dir).envs(case.env.iter().map(|(name, value)| (name, value)));
    Ok(finish(command, &case.stdin, dir)?)
}

fn put(path: &Path, contents: &Contents) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match contents {
        Contents::Text(text) => fs::write(path, text),
        Contents::Binary(bytes) => fs::write(path, bytes),
        Contents::Bytes(size) => {
            let bytes: Vec<u8> = (0..*size).map(|at| (at % 251) as u8 + 1).collect();
            fs::write(path, bytes)
        }
    }
}

/// A file attached as a block device until dropped.
struct LoopDevice {
    path: String,
}

impl LoopDevice {
    fn attach(file: &Path, size_bytes: u64) -> Result<LoopDevice, Unable> {
        let made = File::create(file).and_then(|disk| disk.set_len(size_bytes));
        made.map_err(|error| format!("{}: {error}", file.display()))?;
        let args = [OsStr::new("--find"), OsStr::new("--show"), file.as_os_str()];
        match Command::new("losetup").args(args).stderr(Stdio::null()).output() {
            Ok(out) if out.status.success() => {
                Ok(LoopDevice { path: String::from_utf8_lossy(&out.stdout).trim().to_string() })
            }
            _ => Err(Unable::Lacks("no loop device".to_string())),
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_requirements_are_distinguished_from_errors() {
        let missing = Needs::Program(PathBuf::from("no/such/program"), "install it");
        assert_eq!(missing.look(), Err(Unable::Lacks("no no/such/program; install it".to_string())));
        assert_eq!(Needs::Program(PathBuf::from("/"), "").look(), Ok(()));
        assert!(matches!(version_of(Path::new("true")), Err(Unable::Failed(_))));
    }
}

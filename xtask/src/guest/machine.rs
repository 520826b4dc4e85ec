//! The emulated machine: it boots, runs a command, and may lose its power before.
//!
//! Invariant: the exit status is the command's own, read from a file that the guest writes when the command has ended; a
//! guest that stops before that is an error.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::console::Console;
use super::kernel::Tools;
use super::power_cut::{self, DiskServer};
use super::session::{STATUS, Session};
use super::watch::{End, Failure, Limits, kill_group, pass_on};
use crate::repo;

/// What boots, and what runs in it.
#[derive(Debug)]
pub struct Machine<'a> {
    /// What it takes to boot.
    pub tools: &'a Tools,
    /// The binary to test.
    pub fiord: &'a Path,
    /// When the machine is taken for hung.
    pub limits: Limits,
}

/// Boots with a shell on this terminal.
pub fn interactive(tools: &Tools, fiord: &Path) -> Result<(), String> {
    let session = Session::new(fiord, "true", false, None)?;
    println!(
        "In the guest, `. {}` makes the disks and puts fiord on the PATH.",
        session.path("disks").display()
    );
    let setup = session.setup();
    let disks =
        format!("{setup}export FIORD='{}' PATH={}/bin:$PATH\n", fiord.display(), session.dir.display());
    fs::write(session.path("disks"), disks).map_err(|error| error.to_string())?;
    let status =
        vng(&session, tools, &[]).status().map_err(|error| format!("{}: {error}", tools.vng.display()))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the guest ended with {status}")),
    }
}

impl Machine<'_> {
    /// Boots, runs a command with its output passed on, and returns its exit status. With `load`, the machine is booted
    /// with that command before, and loses its power when the command asks for it.
    pub fn command(&self, command: &str, load: Option<&str>) -> Result<i32, Failure> {
        let session =
            Session::new(self.fiord, command, load.is_some(), self.limits.silence).map_err(Failure::Other)?;
        let console = Console::create().map_err(Failure::Other)?;
        let status = self.run(&session, load, &console);
        match &status {
            Ok(_) => console.remove(),
            Err(_) => eprintln!("guest: {}", console.end()),
        }
        status
    }

    fn run(&self, session: &Session, load: Option<&str>, console: &Console) -> Result<i32, Failure> {
        if let Some(load) = load {
            self.cut_power(session, load, console)?;
        }
        let mut child = self.boot(session, "run", &[], console).map_err(Failure::Other)?;
        let ended = pass_on(&mut child, session, self.limits);
        let skips = session.pass_skips();
        skips.map_err(|error| Failure::Other(format!("the guest's record of skips: {error}")))?;
        ended?;
        let status = fs::read_to_string(session.path(STATUS)).ok();
        status
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| early(console, "the guest stopped before the command had ended"))
    }

    /// Boots with this script of the session.
    fn boot(
        &self,
        session: &Session,
        script: &str,
        servers: &[DiskServer],
        console: &Console,
    ) -> Result<Child, String> {
        let mut vng = vng(session, self.tools, servers);
        vng.args(["--verbose", "--", "sh"]).arg(session.path(script));
        // A group of its own, so that the emulator can be ended with it.
        vng.stdin(Stdio::null()).process_group(0);
        console.receive(&mut vng)?;
        vng.spawn().map_err(|error| format!("{}: {error}", self.tools.vng.display()))
    }

    /// Boots with a load, and cuts the power when it asks for that: emulator and disks end at once, so that the disks'
    /// caches are lost.
    fn cut_power(&self, session: &Session, load: &str, console: &Console) -> Result<(), Failure> {
        let written = fs::write(session.path("load"), load)
            .and_then(|()| fs::write(session.path("run-load"), session.script(self.fiord, "load")));
        written.map_err(|error| Failure::Other(format!("{}: {error}", session.dir.display())))?;
        let servers = power_cut::DISKS
            .iter()
            .map(|disk| DiskServer::start(disk, &session.dir, &session.hardware.image(disk.serial), console))
            .collect::<Result<Vec<DiskServer>, String>>()
            .map_err(Failure::Other)?;
        let mut child = self.boot(session, "run-load", &servers, console).map_err(Failure::Other)?;
        let ended = pass_on(&mut child, session, self.limits);
        kill_group(&mut child);
        servers.into_iter().for_each(DiskServer::cut_power);
        let _ = fs::remove_file(session.path(STATUS));
        match ended? {
            End::PowerCut => Ok(()),
            End::ItsOwn => Err(early(console, "the guest ended before its power was cut")),
        }
    }
}

/// Why a guest ended early: its emulator aborted, or else this.
fn early(console: &Console, otherwise: &str) -> Failure {
    match console.assertion() {
        Some(assertion) => Failure::Emulator(format!("{otherwise}: {assertion}")),
        None => Failure::Other(otherwise.to_string()),
    }
}

/// The command that boots the machine. The disks of a power cut are served by these, or else are their images.
fn vng(session: &Session, tools: &Tools, servers: &[DiskServer]) -> Command {
    let options = session.hardware.arguments(servers) + &tools.emulator.arguments();
    let mut vng = Command::new(&tools.vng);
    // It starts its other programs by name.
    vng.env("PATH", tools.path());
    vng.arg("--run").arg(&tools.image).arg("--qemu").arg(&tools.emulator.program);
    vng.args(["--disable-kvm", "--cpus", "2", "--memory", "1G", "--user", "root"]);
    // Its driver waits 16 seconds for the management controller that only cases about it answer for.
    vng.args(["--append", "modprobe.blacklist=ipmi_si"]);
    vng.arg(format!("--rwdir={}", session.dir.display())).arg(format!("--qemu-opts={options}"));
    vng.current_dir(repo::root());
    vng
}

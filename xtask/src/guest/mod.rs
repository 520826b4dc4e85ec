//! `cargo x guest`: commands in an emulated machine that has the disks this one lacks.
//!
//! Invariant: nothing in the guest changes this machine's files: its root file system is this machine's, below overlays
//! that end with it, and the one directory it may write to is below the target directory.

mod console;
mod kernel;
mod machine;
mod power_cut;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use self::machine::Machine;
use crate::stage::{self, StageResult};
use crate::{compat, repo};

const HELP: &str = "cargo x guest [--install] [--release] [--power-cut 'LOAD'] ['COMMAND']

Boots Debian's kernel in an emulated machine (qemu without KVM), and runs COMMAND there as root with a shell, or an
interactive shell without one. The exit status is COMMAND's. Booting takes 20 to 60 s.

The guest sees this machine's root file system; what it changes is lost when it ends. fiord is the binary just built
(FIORD=PATH: that one), first on the PATH, and in $FIORD. It has these disks, all of them small and empty:

  /dev/nvme-plain  NVMe, 64 MiB, with a polled queue (its kernel name varies: `readlink` shows it)
  /dev/nvme-zoned  NVMe zoned namespace: 8 zones of 8 MiB, 6 MiB of them usable; at most 4 open
  /dev/nvme-worn   NVMe, 64 MiB, whose health log warns that its reliability is degraded
  /dev/nvme-wide   NVMe with blocks of 4096 bytes
  /dev/nvme-guarded
                   NVMe with blocks of 512 bytes, 8 bytes of metadata apart from the data, protection information type 1
  /dev/nvme-mixed  NVMe with blocks of 4096 bytes followed by 16 bytes of metadata, protection information with 64-bit
                   guards. The kernel has no use for it: only its character device can be read and written
  /dev/nullb0      null_blk, zoned: 16 zones of 4 MiB, the first 2 of them conventional
  /dev/pmem0       persistent memory, 126 MiB, for a file system mounted with dax
  /dev/dax1.0      persistent memory, 126 MiB, that is mapped as a whole
  /dev/sda         scsi_debug, 64 MiB, with trims; /dev/sg0 too

and the modules of the kernel: modprobe brd, dm-flakey, dm-delay, dm-log-writes, loop, nbd, ublk_drv and so on.
`mount` lists what is there, and ~/.cache/fiord/guest/kernel is the kernel. Emulation is 10 to 30 times slower than the
machine it runs on: it shows that something works, never how fast.

  --install   installs what is missing: qemu, nbdkit, kmod, virtme-ng and the kernel
  --release   takes the release build of fiord instead of the debug build
  --power-cut 'LOAD'
              boots and runs LOAD before, cuts the power of the machine when LOAD creates the file $FIORD_SHARED/cut,
              and then boots again for COMMAND. The machine has two more disks of 64 MiB with volatile caches, which the
              cut empties: /dev/nvme-honest writes its cache back when it is flushed, /dev/nvme-lying confirms flushes
              and writes nothing. What is in the directory $FIORD_SHARED survives the cut

For example:
  cargo x guest 'fiord --name=z --filename=/dev/nvme-zoned --zonemode=zbd --direct=1 --rw=write --bs=64k --size=8z'
  cargo x guest --power-cut 'fiord crash-test run /dev/nvme-lying --overwrite --journal $FIORD_SHARED/j --time 5s;
      touch $FIORD_SHARED/cut; sleep 60' 'fiord crash-test check /dev/nvme-lying --journal $FIORD_SHARED/j'
  cargo x guest 'blkzone report /dev/nullb0'
";

/// When a guest with the cases of the stage is taken for hung. They take four minutes on two processors, and longer on a
/// machine that does other work.
const STAGE_SECONDS_MAX: u64 = 1800;

/// The longest time a single command may take.
const COMMAND_SECONDS_MAX: u64 = 3600;

/// How long the machine may run, in seconds; set for the stage.
const SECONDS_VARIABLE: &str = "FIORD_GUEST_SECONDS";

/// `cargo x guest [--install] [--release] [--power-cut 'LOAD'] ['COMMAND']`
pub fn run(args: &[String]) -> Result<(), String> {
    let mut release = false;
    let mut installs = false;
    let mut load = None;
    let mut words = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--power-cut" if words.is_empty() => {
                load =
                    Some(args.next().ok_or("--power-cut: the command that runs until the cut is missing")?);
            }
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(());
            }
            "--install" => installs = true,
            "--release" => release = true,
            flag if flag.starts_with("--") && words.is_empty() => {
                return Err(format!("{flag}: unknown argument\n\n{HELP}"));
            }
            word => words.push(word),
        }
    }
    if installs {
        install()?;
        if words.is_empty() {
            return Ok(());
        }
    }
    let tools = kernel::Tools::find()?;
    let fiord = binary(release)?;
    if words.is_empty() && load.is_some() {
        return Err("--power-cut: the command to run after the cut is missing".to_string());
    }
    if words.is_empty() {
        return machine::interactive(&tools, &fiord);
    }
    let seconds = std::env::var(SECONDS_VARIABLE).ok().and_then(|text| text.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(COMMAND_SECONDS_MAX));
    let machine = Machine { tools: &tools, fiord: &fiord, limit };
    match machine.command(&words.join(" "), load.map(String::as_str))? {
        0 => Ok(()),
        status => std::process::exit(status),
    }
}

/// Installs what the machine consists of.
pub fn install() -> Result<(), String> {
    kernel::install()
}

/// The cases in `tests/guest`, all in one boot, after another whose power was cut.
pub fn stage(fiord: &Path) -> StageResult {
    if let Err(why) = kernel::Tools::find().and_then(|_| portable()) {
        return StageResult::Skipped(why);
    }
    let (program, this) = match (test_program(), std::env::current_exe()) {
        (Ok(program), Ok(this)) => (program, this),
        (Err(why), _) => return StageResult::of(Err(why)),
        (_, Err(error)) => return StageResult::of(Err(error.to_string())),
    };
    // One case at a time: they share the kernel's modules.
    let mut command = Command::new(this);
    command
        .args(["guest", "--power-cut", power_cut::LOAD])
        .arg(format!("{} --test-threads=1", program.display()))
        .env("FIORD", fiord)
        .env(SECONDS_VARIABLE, STAGE_SECONDS_MAX.to_string());
    stage::tests(command)
}

/// The program of `tests/guest`, just built.
fn test_program() -> Result<PathBuf, String> {
    let args = ["test", "--quiet", "-p", "fiord-guest", "--no-run", "--message-format=json"];
    let messages = repo::output_of(repo::cargo(&args))?;
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["target"]["kind"][0] == "test";
        message["executable"].as_str().filter(|_| is_test).map(PathBuf::from)
    };
    messages.lines().find_map(executable).ok_or_else(|| "cargo built no test of fiord-guest".to_string())
}

/// The binary to run in the guest: `FIORD`, or one built now.
fn binary(release: bool) -> Result<PathBuf, String> {
    if std::env::var_os("FIORD").is_none() {
        portable()?;
    }
    compat::binary(release)
}

/// Whether the compiler's flags suit a processor that is emulated.
fn portable() -> Result<(), String> {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    match flags.contains("target-cpu") {
        true => Err(format!(
            "RUSTFLAGS={flags}: the emulated processor has not all instructions of this one; leave target-cpu out"
        )),
        false => Ok(()),
    }
}

//! `cargo x guest`: commands in an emulated machine that has the disks this one lacks.
//!
//! Invariant: nothing in the guest changes this machine's files: its root file system is this machine's, below overlays
//! that end with it, and the one directory it may write to is below the target directory.

mod cache;
mod console;
mod emulator;
mod hardware;
mod kernel;
mod machine;
mod power_cut;
mod session;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use self::kernel::Kernel;
use self::machine::Machine;
use crate::stage::{self, StageResult};
use crate::{compat, repo};

const HELP: &str = "cargo x guest [--install] [--kernel SERIES] [--release] [--power-cut 'LOAD'] ['COMMAND']
cargo x guest [--kernel SERIES] [--release] --cases [NAME…]

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
  /dev/nvme-placed NVMe with flexible data placement: its namespace has 4 placement identifiers, 0, 16384, 1 and 16385
  /dev/nullb0      null_blk, zoned: 16 zones of 4 MiB, the first 2 of them conventional
  /dev/pmem0       persistent memory, 126 MiB, for a file system mounted with dax
  /dev/dax1.0      persistent memory, 126 MiB, that is mapped as a whole
  /dev/sda         scsi_debug, 64 MiB, with trims; /dev/sg0 too

and the modules of the kernel: modprobe brd, dm-flakey, dm-delay, dm-log-writes, loop, nbd, ublk_drv and so on.
`mount` lists what is there, and ~/.cache/fiord/guest/kernel is the kernel. Emulation is 10 to 30 times slower than the
machine it runs on: it shows that something works, never how fast.

  --install   installs what is missing: qemu, nbdkit, kmod, virtme-ng and the kernel
  --kernel SERIES
              the kernel that boots, or is installed: 6.12 (the default, of Debian's backports), or 6.1 (of Debian 12)
  --cases [NAME…]
              runs the cases in tests/guest, as `cargo x ci guest` does, or those whose names contain one of these
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
  cargo x guest --kernel 6.1 --cases passthrough
";

/// When a guest with the cases of the stage is taken for hung. They take some minutes, and longer on a machine that does
/// other work.
const STAGE_SECONDS_MAX: u64 = 1800;

/// The cases of the stage on the oldest kernel: few, because a boot and these take a minute.
const OF_OLDEST: [&str; 4] = [
    "nvme::a_queued_write_and_its_reading_back_agree_with_the_kernel",
    "passthrough::counts_are_those_of_fio_on_short_and_long_blocks",
    "passthrough::the_block_device_holds_what_was_written_and_trimmed",
    "trims::trims_and_syncs_are_queued_in_the_ring",
];

/// The longest time a single command may take.
const COMMAND_SECONDS_MAX: u64 = 3600;

/// How long the machine may run, in seconds; set for the stage.
const SECONDS_VARIABLE: &str = "FIORD_GUEST_SECONDS";

/// What the command line asks for.
struct Request {
    installs: bool,
    kernel: &'static Kernel,
    release: bool,
    load: Option<String>,
    cases: bool,
    /// The command, or the names of cases.
    words: Vec<String>,
}

impl Request {
    /// Options are taken up to the first word that is none.
    fn parse(args: &[String]) -> Result<Request, String> {
        let mut request = Request {
            installs: false,
            kernel: Kernel::DEFAULT,
            release: false,
            load: None,
            cases: false,
            words: Vec::new(),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let is_option = request.words.is_empty();
            match arg.as_str() {
                "--power-cut" if is_option => {
                    let load =
                        args.next().ok_or("--power-cut: the command that runs until the cut is missing")?;
                    request.load = Some(load.clone());
                }
                "--kernel" if is_option => {
                    let series = args.next().ok_or("--kernel: the series is missing, such as 6.1")?;
                    request.kernel = Kernel::of_series(series)?;
                }
                "--install" if is_option => request.installs = true,
                "--release" if is_option => request.release = true,
                "--cases" if is_option => request.cases = true,
                flag if flag.starts_with("--") && is_option => {
                    return Err(format!("{flag}: unknown argument\n\n{HELP}"));
                }
                word => request.words.push(word.to_string()),
            }
        }
        match (&request.load, request.cases) {
            (Some(_), true) => Err("--cases cuts the power itself; leave --power-cut out".to_string()),
            (Some(_), false) if request.words.is_empty() => {
                Err("--power-cut: the command to run after the cut is missing".to_string())
            }
            _ => Ok(request),
        }
    }
}

/// `cargo x guest [--install] [--kernel SERIES] [--release] [--power-cut 'LOAD'] ['COMMAND']`, or with `--cases [NAME…]`.
pub fn run(args: &[String]) -> Result<(), String> {
    if args.first().is_some_and(|arg| ["--help", "-h"].contains(&arg.as_str())) {
        print!("{HELP}");
        return Ok(());
    }
    let request = Request::parse(args)?;
    if request.installs {
        kernel::install(request.kernel)?;
        if request.words.is_empty() && !request.cases {
            return Ok(());
        }
    }
    let tools = kernel::Tools::find(request.kernel)?;
    let fiord = binary(request.release)?;
    if request.cases {
        let names: Vec<&str> = request.words.iter().map(String::as_str).collect();
        return stage::command(cases(request.kernel, &fiord, &test_program()?, &names)?);
    }
    if request.words.is_empty() {
        return machine::interactive(&tools, &fiord);
    }
    let seconds = std::env::var(SECONDS_VARIABLE).ok().and_then(|text| text.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(COMMAND_SECONDS_MAX));
    let machine = Machine { tools: &tools, fiord: &fiord, limit };
    match machine.command(&request.words.join(" "), request.load.as_deref())? {
        0 => Ok(()),
        status => std::process::exit(status),
    }
}

/// Installs what the machine consists of, with every kernel that the stage boots.
pub fn install() -> Result<(), String> {
    kernel::install(Kernel::DEFAULT)?;
    kernel::install(Kernel::OLDEST)
}

/// The cases in `tests/guest` on the newest kernel, in two machines, and those that depend most on the kernel's version on
/// the oldest; two machines at a time.
pub fn stage(fiord: &Path) -> StageResult {
    let found = test_program().and_then(|program| Ok((listed(&program)?, program)));
    let (names, program) = match found {
        Ok(found) => found,
        Err(why) => return StageResult::of(Err(why)),
    };
    let on = |kernel: &'static Kernel, names: &[&str]| {
        if let Err(why) = kernel::Tools::find(kernel).and_then(|_| portable()) {
            return StageResult::Skipped(why);
        }
        match cases(kernel, fiord, &program, &[&["--exact"], names].concat()) {
            Ok(command) => stage::tests(command),
            Err(why) => StageResult::of(Err(why)),
        }
    };
    let [with_power_cut, others] = halves(&names);
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| on(Kernel::DEFAULT, &with_power_cut));
        let result = on(Kernel::DEFAULT, &others).and(on(Kernel::OLDEST, &OF_OLDEST));
        let beside = beside.join();
        result.and(
            beside.unwrap_or_else(|_| StageResult::of(Err("a machine's thread has panicked".to_string()))),
        )
    })
}

/// The cases in two parts that take about as long. The first has the case about a power cut, which needs a second boot, as
/// the second part is followed by the boot of another kernel.
fn halves(names: &[String]) -> [Vec<&str>; 2] {
    let (mut first, mut second) = (vec![power_cut::CASE], Vec::new());
    for name in names.iter().map(String::as_str).filter(|name| *name != power_cut::CASE) {
        if first.len() <= second.len() { first.push(name) } else { second.push(name) }
    }
    [first, second]
}

/// The names of the cases.
fn listed(program: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new(program);
    command.args(["--list", "--format", "terse"]);
    let list = repo::output_of(command)?;
    Ok(list.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect())
}

/// A command that runs the cases whose names contain one of `names`, or all of them, in one boot. It comes after another
/// boot whose power is cut, if the case about that is among them.
fn cases(kernel: &Kernel, fiord: &Path, program: &Path, names: &[&str]) -> Result<Command, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.args(["guest", "--kernel", kernel.series]);
    if names.is_empty() || names.iter().any(|name| power_cut::CASE.contains(name)) {
        command.args(["--power-cut", power_cut::LOAD]);
    }
    // One case at a time: they share the kernel's modules.
    command
        .arg(format!("{} --test-threads=1 {}", program.display(), names.join(" ")))
        .env("FIORD", fiord)
        .env(SECONDS_VARIABLE, STAGE_SECONDS_MAX.to_string());
    Ok(command)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_runs_in_one_of_two_machines() {
        let mut names: Vec<String> = (0..9).map(|number| format!("a::case_{number}")).collect();
        names.push(power_cut::CASE.to_string());
        let [first, second] = halves(&names);
        assert!(first.contains(&power_cut::CASE));
        assert_eq!((first.len(), second.len()), (5, 5));
        let mut all = [first, second].concat();
        all.sort_unstable();
        assert_eq!(all, names);
    }
}

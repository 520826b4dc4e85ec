//! `cargo x guest`: commands in an emulated machine that has the disks this one lacks.
//!
//! Invariant: nothing in the guest changes this machine's files: its root file system is this machine's, below overlays
//! that end with it, and the one directory it may write to is below the target directory.

pub mod arm;
mod cases;
mod console;
mod emulator;
mod hardware;
mod kernel;
mod machine;
mod power_cut;
mod session;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use self::kernel::Kernel;
use self::machine::Machine;
use self::watch::{Failure, Limits};
use crate::{compat, stage};

pub use self::cases::stage;

const HELP: &str = "cargo x guest [--install] [--kernel SERIES] [--one-thread] [--release] [--power-cut 'LOAD'] ['COMMAND']
cargo x guest [--kernel SERIES] [--release] --cases [NAME…]

Boots Debian's kernel in an emulated machine (qemu without KVM), and runs COMMAND there as root with a shell, or an
interactive shell without one. The exit status is COMMAND's. Booting takes 20 to 60 s.

The guest sees this machine's root file system; what it changes is lost when it ends. fiord is the binary just built
(FIORD=PATH: that one), first on the PATH, and in $FIORD. It has these disks, all of them small and empty:

  /dev/nvme-plain  NVMe, 64 MiB, with a polled queue (its kernel name varies: `readlink` shows it)
  /dev/nvme-zoned  NVMe zoned namespace: 8 zones of 8 MiB, 6 MiB of them usable; at most 4 open; appends of 128 KiB
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

an IPMI interface (modprobe ipmi_si ipmi_devintf) to a management controller that whatever opens the port `bmc` in
/sys/class/virtio-ports answers for,

and the modules of the kernel: modprobe brd, dm-flakey, dm-delay, dm-log-writes, loop, nbd, ublk_drv and so on.
`mount` lists what is there, and ~/.cache/fiord/guest/kernel is the kernel. Emulation is 10 to 30 times slower than the
machine it runs on: it shows that something works, never how fast.

  --install   installs what is missing: qemu, nbdkit, kmod, virtme-ng and the kernel
  --kernel SERIES
              the kernel that boots, or is installed: 6.12 (the default, of Debian's backports), or 6.1 (of Debian 12)
  --cases [NAME…]
              runs the cases in tests/guest, as `cargo x ci guest` does, or those whose names contain one of these.
              If they print nothing for five minutes the guest says what its tasks wait for, and is ended; the exit
              status is 75 if it cannot even say that, because the emulator hangs, or if the
              emulator aborts
  --one-thread
              emulates the processors in one thread, by turns: slower, and without the races that make an emulator hang
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

/// How long a command may take.
const RUN_MAX: Duration = Duration::from_secs(3600);

/// What the command line asks for.
struct Request {
    installs: bool,
    kernel: &'static Kernel,
    one_thread: bool,
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
            one_thread: false,
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
                "--one-thread" if is_option => request.one_thread = true,
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

/// `cargo x guest [--install] [--kernel SERIES] [--one-thread] [--release] [--power-cut 'LOAD'] ['COMMAND']`, or with `--cases [NAME…]`.
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
    let mut tools = kernel::Tools::find(request.kernel)?;
    tools.emulator.one_thread = request.one_thread;
    let fiord = binary(request.release)?;
    if request.cases {
        let names: Vec<&str> = request.words.iter().map(String::as_str).collect();
        let program = cases::program()?;
        return stage::command(cases::command(request.kernel, request.one_thread, &fiord, &program, &names)?);
    }
    if request.words.is_empty() {
        return machine::interactive(&tools, &fiord);
    }
    let limits = Limits { run: RUN_MAX, silence: cases::silence() };
    let machine = Machine { tools: &tools, fiord: &fiord, limits };
    match machine.command(&request.words.join(" "), request.load.as_deref()) {
        Ok(0) => Ok(()),
        Ok(status) => std::process::exit(status),
        Err(Failure::Other(why)) => Err(why),
        Err(Failure::Emulator(why)) => {
            eprintln!("{why}");
            std::process::exit(cases::EMULATOR_STATUS)
        }
    }
}

/// Installs what the machine consists of, with every kernel that the stage boots.
pub fn install() -> Result<(), String> {
    kernel::install(Kernel::DEFAULT)?;
    kernel::install(Kernel::OLDEST)
}

/// The binary to run in the guest: `FIORD`, or one built now.
fn binary(release: bool) -> Result<PathBuf, String> {
    if std::env::var_os("FIORD").is_none() {
        hardware::portable()?;
    }
    compat::binary(release)
}

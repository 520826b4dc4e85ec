//! The emulated machine: its devices, the scripts it runs, how its power is cut, and what comes back.
//!
//! Invariant: the exit status is the command's own, read from a file that the guest writes when the command has ended; a
//! guest that stops before that is an error.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::console::Console;
use super::kernel::Tools;
use super::power_cut::{self, DiskServer};
use crate::repo;

/// The guest's devices.
const SETUP: &str = include_str!("setup.sh");

/// QEMU 7.2 emulated `cmpxchg16b` wrongly if an interrupt came between (the kernel panics with a double fault), which newer
/// ones may do; protection keys and five levels of page tables only cost time.
const PROCESSOR: &str = "max,cx16=off,la57=off,pku=off";

/// The file with the command's exit status, written when it has ended.
const STATUS: &str = "status";

/// The file by which a script asks for the power to be cut.
const CUT: &str = "cut";

/// How long the emulator may take to end.
const END_MAX: Duration = Duration::from_secs(5);

/// How long the guest may take to power itself down after its command has ended. It takes two seconds, but has been seen
/// never to do it.
const POWER_DOWN_MAX: Duration = Duration::from_secs(60);

/// How often the guest's output is looked at.
const POLL: Duration = Duration::from_millis(100);

const IMAGE_BYTES: u64 = 64 << 20;

/// An NVMe disk.
#[derive(Debug)]
struct NvmeDisk {
    /// Its serial number.
    serial: &'static str,
    /// Properties of the subsystem that it is in, if that is not one of its own making, from a comma on.
    subsystem: Option<&'static str>,
    /// Properties of its controller, from a comma on.
    controller: &'static str,
    /// Properties of its namespace, from a comma on.
    namespace: &'static str,
}

impl NvmeDisk {
    /// One without anything special.
    const fn plain(serial: &'static str) -> NvmeDisk {
        NvmeDisk { serial, subsystem: None, controller: "", namespace: "" }
    }
}

/// The NVMe disks. The critical warning of the worn one is bit 2: its reliability is degraded.
const DISKS: [NvmeDisk; 7] = [
    NvmeDisk::plain("plain"),
    NvmeDisk {
        namespace: ",zoned=true,zoned.zone_size=8M,zoned.zone_capacity=6M,zoned.max_open=4,zoned.max_active=4",
        ..NvmeDisk::plain("zoned")
    },
    NvmeDisk { controller: ",smart_critical_warning=4", ..NvmeDisk::plain("worn") },
    NvmeDisk { namespace: ",logical_block_size=4096,physical_block_size=4096", ..NvmeDisk::plain("wide") },
    NvmeDisk { namespace: ",ms=8,mset=0,pi=1,pil=1", ..NvmeDisk::plain("guarded") },
    NvmeDisk {
        namespace: ",logical_block_size=4096,physical_block_size=4096,ms=16,mset=1,pi=1,pil=1,pif=2",
        ..NvmeDisk::plain("mixed")
    },
    NvmeDisk {
        // In two groups, of which an identifier has the number in its first bit.
        subsystem: Some(",fdp=on,fdp.runs=16M,fdp.nrg=2,fdp.nruh=8"),
        namespace: ",fdp.ruhs=3-4",
        ..NvmeDisk::plain("placed")
    },
];

/// Modules of persistent memory: the first serves as a block device, the second is mapped as a whole (`setup.sh`).
const MEMORY_MODULES: [&str; 2] = ["nvdimm0", "nvdimm1"];

/// The length of each: the unit in which the kernel adds memory.
const MEMORY_MODULE_BYTES: u64 = 128 << 20;

/// What boots, and what runs in it.
#[derive(Debug)]
pub struct Machine<'a> {
    /// What it takes to boot.
    pub tools: &'a Tools,
    /// The binary to test.
    pub fiord: &'a Path,
    /// When the machine is taken for hung.
    pub limit: Duration,
}

/// The directory that the guest shares with this machine, removed when it ends.
struct Session {
    dir: PathBuf,
    /// Whether the disks of a power cut are there.
    had_power_cut: bool,
}

impl Session {
    fn new(fiord: &Path, command: &str, had_power_cut: bool) -> Result<Session, String> {
        let dir = repo::target_dir().join(format!("guest-{}", std::process::id()));
        let session = Session { dir, had_power_cut };
        session.fill(fiord, command).map_err(|error| format!("{}: {error}", session.dir.display()))?;
        Ok(session)
    }

    fn fill(&self, fiord: &Path, command: &str) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.dir);
        fs::create_dir_all(self.path("bin"))?;
        std::os::unix::fs::symlink(fiord, self.path("bin/fiord"))?;
        for disk in self.disks() {
            File::create(self.image(disk))?.set_len(IMAGE_BYTES)?;
        }
        for module in MEMORY_MODULES {
            File::create(self.image(module))?.set_len(MEMORY_MODULE_BYTES)?;
        }
        for output in ["stdout", "stderr"] {
            File::create(self.path(output))?;
        }
        fs::write(self.path("command"), command)?;
        fs::write(self.path("run"), self.script(fiord, "command"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The serial numbers of the NVMe disks.
    fn disks(&self) -> impl Iterator<Item = &'static str> {
        let of_power_cut = power_cut::DISKS.iter().map(|disk| disk.serial);
        DISKS.iter().map(|disk| disk.serial).chain(of_power_cut.filter(|_| self.had_power_cut))
    }

    /// The contents of a disk.
    fn image(&self, disk: &str) -> PathBuf {
        self.path(&format!("{disk}.img"))
    }

    /// The commands that make the disks.
    fn setup(&self) -> String {
        let disks: Vec<&str> = self.disks().collect();
        format!("NVME_DISKS='{}'\n{SETUP}", disks.join(" "))
    }

    /// The script that runs in the guest; the command is in the file of this name.
    fn script(&self, fiord: &Path, command: &str) -> String {
        let dir = self.dir.display();
        let mut script = format!("exec </dev/null >>{dir}/stdout 2>>{dir}/stderr\n{}", self.setup());
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

    /// The command that boots the machine. The disks of a power cut are served by these, or else are their images.
    fn vng(&self, tools: &Tools, servers: &[DiskServer]) -> Command {
        let raw = |disk: &str| format!("{},format=raw", self.image(disk).display());
        let mut devices = format!("-cpu {PROCESSOR}{}", tools.emulator.arguments());
        for NvmeDisk { serial, subsystem, controller, namespace } in &DISKS {
            let mut of_subsystem = String::new();
            if let Some(properties) = subsystem {
                let _ = write!(devices, " -device nvme-subsys,id=s-{serial}{properties}");
                of_subsystem = format!(",subsys=s-{serial}");
            }
            let _ = write!(
                devices,
                " -drive file={},id=d-{serial},if=none,discard=unmap \
                 -device nvme,serial={serial},id={serial}{of_subsystem}{controller} \
                 -device nvme-ns,drive=d-{serial},bus={serial}{namespace}",
                raw(serial)
            );
        }
        for disk in power_cut::DISKS.iter().map(|disk| disk.serial).filter(|_| self.had_power_cut) {
            let server = servers.iter().find(|server| server.serial == disk);
            let file = server.map_or_else(|| raw(disk), |server| format!("{},format=raw", server.address()));
            let _ = write!(
                devices,
                " -drive file={file},id=d-{disk},if=none -device nvme,serial={disk},drive=d-{disk}"
            );
        }
        devices += " -machine nvdimm=on -m 1G,slots=2,maxmem=2G";
        for module in MEMORY_MODULES {
            let _ = write!(
                devices,
                " -object memory-backend-file,id=m-{module},share=on,mem-path={},size={MEMORY_MODULE_BYTES} \
                 -device nvdimm,id={module},memdev=m-{module}",
                self.image(module).display()
            );
        }
        let mut vng = Command::new(&tools.vng);
        // It starts its other programs by name.
        vng.env("PATH", tools.path());
        vng.arg("--run").arg(&tools.image).arg("--qemu").arg(&tools.emulator.program);
        vng.args(["--disable-kvm", "--cpus", "2", "--memory", "1G", "--user", "root"]);
        vng.arg(format!("--rwdir={}", self.dir.display())).arg(format!("--qemu-opts={devices}"));
        vng.current_dir(repo::root());
        vng
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

/// Boots with a shell on this terminal.
pub fn interactive(tools: &Tools, fiord: &Path) -> Result<(), String> {
    let session = Session::new(fiord, "true", false)?;
    println!(
        "In the guest, `. {}` makes the disks and puts fiord on the PATH.",
        session.path("disks").display()
    );
    let setup = session.setup();
    let disks =
        format!("{setup}export FIORD='{}' PATH={}/bin:$PATH\n", fiord.display(), session.dir.display());
    fs::write(session.path("disks"), disks).map_err(|error| error.to_string())?;
    let status =
        session.vng(tools, &[]).status().map_err(|error| format!("{}: {error}", tools.vng.display()))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("the guest ended with {status}")),
    }
}

impl Machine<'_> {
    /// Boots, runs a command with its output passed on, and returns its exit status. With `load`, the machine is booted
    /// with that command before, and loses its power when the command asks for it.
    pub fn command(&self, command: &str, load: Option<&str>) -> Result<i32, String> {
        let session = Session::new(self.fiord, command, load.is_some())?;
        let console = Console::create()?;
        if let Some(load) = load {
            self.cut_power(&session, load, &console).map_err(|why| console.named(&why))?;
        }
        let mut child = self.boot(&session, "run", &[], &console)?;
        let ended = pass_on(&mut child, &session, self.limit);
        let status = fs::read_to_string(session.path(STATUS)).ok();
        pass_skips(&session)
            .map_err(|error| format!("cannot pass on the guest's record of skips: {error}"))?;
        match (status.and_then(|text| text.trim().parse().ok()), ended) {
            (Some(status), Ok(End::ItsOwn)) => Ok(status),
            (_, Err(why)) => Err(console.named(&why)),
            (_, Ok(_)) => Err(console.named("the guest stopped before the command had ended")),
        }
    }

    /// Boots with this script of the session.
    fn boot(
        &self,
        session: &Session,
        script: &str,
        servers: &[DiskServer],
        console: &Console,
    ) -> Result<Child, String> {
        let mut vng = session.vng(self.tools, servers);
        vng.args(["--verbose", "--", "sh"]).arg(session.path(script));
        // A group of its own, so that the emulator can be ended with it.
        vng.stdin(Stdio::null()).process_group(0);
        console.receive(&mut vng)?;
        vng.spawn().map_err(|error| format!("{}: {error}", self.tools.vng.display()))
    }

    /// Boots with a load, and cuts the power when it asks for that: emulator and disks end at once, so that the disks'
    /// caches are lost.
    fn cut_power(&self, session: &Session, load: &str, console: &Console) -> Result<(), String> {
        let written = fs::write(session.path("load"), load)
            .and_then(|()| fs::write(session.path("run-load"), session.script(self.fiord, "load")));
        written.map_err(|error| format!("{}: {error}", session.dir.display()))?;
        let servers = power_cut::DISKS
            .iter()
            .map(|disk| DiskServer::start(disk, &session.dir, &session.image(disk.serial), console))
            .collect::<Result<Vec<DiskServer>, String>>()?;
        let mut child = self.boot(session, "run-load", &servers, console)?;
        let ended = pass_on(&mut child, session, self.limit);
        kill_group(&mut child);
        servers.into_iter().for_each(DiskServer::cut_power);
        let _ = fs::remove_file(session.path(STATUS));
        match ended? {
            End::PowerCut => Ok(()),
            End::ItsOwn => Err("the guest ended before its power was cut".to_string()),
        }
    }
}

/// How a guest ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// Its script was done, or it stopped. The emulator has ended.
    ItsOwn,
    /// The script asked for its power to be cut, and it still runs.
    PowerCut,
}

/// Copies the guest's output to this program's until the guest has ended or its power is to be cut.
fn pass_on(child: &mut Child, session: &Session, limit: Duration) -> Result<End, String> {
    let start = Instant::now();
    let mut done_since = None;
    let (mut stdout, mut stderr) = (Tail::new(session.path("stdout")), Tail::new(session.path("stderr")));
    loop {
        let ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
        let copied = stdout.copy(&mut io::stdout()).and_then(|()| stderr.copy(&mut io::stderr()));
        copied.map_err(|error| format!("cannot pass on the guest's output: {error}"))?;
        if ended {
            return Ok(End::ItsOwn);
        }
        // A load that was cut has left the file there.
        if session.path(CUT).exists() && fs::remove_file(session.path(CUT)).is_ok() {
            return Ok(End::PowerCut);
        }
        if start.elapsed() > limit {
            end(child);
            return Err(format!("the guest was ended after {} s", limit.as_secs()));
        }
        if done_since.is_none() && session.path(STATUS).exists() {
            done_since = Some(Instant::now());
        }
        if done_since.is_some_and(|since| since.elapsed() > POWER_DOWN_MAX) {
            eprintln!("guest: did not power down, and was ended {} s later", POWER_DOWN_MAX.as_secs());
            end(child);
            return Ok(End::ItsOwn);
        }
        std::thread::sleep(POLL);
    }
}

/// Ends virtme-ng, and with it the emulator, which it started.
fn end(child: &mut Child) {
    let mut stop = Command::new("kill");
    stop.args(["-TERM", "--", &format!("-{}", child.id())]);
    let _ = stop.status();
    let start = Instant::now();
    while start.elapsed() < END_MAX {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        std::thread::sleep(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Kills virtme-ng and the emulator at once, and waits until nothing of them runs.
fn kill_group(child: &mut Child) {
    let group = format!("-{}", child.id());
    let signal = |signal: &str| {
        let mut kill = Command::new("kill");
        kill.args([signal, "--", &group]).stderr(Stdio::null());
        kill.status().is_ok_and(|status| status.success())
    };
    signal("-KILL");
    let _ = child.wait();
    let start = Instant::now();
    while signal("-0") && start.elapsed() < END_MAX {
        std::thread::sleep(POLL);
    }
}

/// A file that grows.
struct Tail {
    file: io::Result<File>,
}

impl Tail {
    fn new(path: PathBuf) -> Tail {
        Tail { file: File::open(path) }
    }

    fn copy(&mut self, to: &mut impl Write) -> io::Result<()> {
        let mut text = Vec::new();
        if let Ok(file) = &mut self.file {
            file.read_to_end(&mut text)?;
        }
        to.write_all(&text)?;
        to.flush()
    }
}

/// Adds the tests that the guest skipped to the record of this machine.
fn pass_skips(session: &Session) -> io::Result<()> {
    let (Some(record), Ok(skips)) =
        (std::env::var_os(fiord_testing::RECORD), fs::read(session.path("skips")))
    else {
        return Ok(());
    };
    OpenOptions::new().append(true).create(true).open(record)?.write_all(&skips)
}

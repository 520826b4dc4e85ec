//! fiord in an emulated machine of 64-bit ARM: Debian's kernel, a shell and fiord, in memory.
//!
//! Invariant: what comes back is in an archive that the guest writes to its second disk when it has ended; without it, or if
//! it says that something failed, the checks have failed. A guest that hangs is ended.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use fiord_sys::errno::error_text;

use super::console::Console;
use super::kernel;
use crate::cache::{self, cache};
use crate::packages::{self, Package};
use crate::repo;

/// The first program that runs.
const INIT: &str = include_str!("arm_init.sh");

const EMULATOR: &str = "/usr/bin/qemu-system-aarch64";

/// Removes the symbols of a program, which are most of it.
const STRIP: &str = "/usr/bin/aarch64-linux-gnu-strip";

/// What it takes on this machine.
pub const PACKAGES: &[Package] =
    &[("qemu-system-arm", EMULATOR), ("cpio", "/usr/bin/cpio"), ("binutils-aarch64-linux-gnu", STRIP)];

/// What is unpacked: a kernel for virtual machines, which has the driver of NVMe built in, and a shell.
const UNPACKED: [&str; 2] = ["linux-image-cloud-arm64", "busybox-static"];

/// The libraries of fiord's binary.
const LIBRARIES: [&str; 4] = ["ld-linux-aarch64.so.1", "libc.so.6", "libm.so.6", "libgcc_s.so.1"];

/// The machine: two processors, no network, and the console on its standard output. Pointers are signed as qemu does it fastest:
/// the algorithm of ARM takes three quarters of the time.
const MACHINE: &str = "-M virt -cpu max,pauth-impdef=on -smp 2 -m 512 -nographic -nic none -no-reboot";

const DISK_BYTES: u64 = 16 << 20;

/// How long the machine may run. It takes a minute of a processor.
const RUN_MAX: Duration = Duration::from_secs(900);

/// How often it is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Installs what is missing.
///
/// # Errors
/// The step that failed.
pub fn install() -> Result<(), String> {
    packages::install(PACKAGES);
    if kernel::image_in(&directory()).is_none() {
        println!("install: a kernel and a shell of arm64 into {} (downloads 22 MB)", directory().display());
        cache::debian(&directory(), "bookworm", Some("arm64"), &UNPACKED)?;
    }
    Ok(())
}

fn directory() -> PathBuf {
    cache().join("arm64")
}

/// The kernel's image, if all is there.
///
/// # Errors
/// What is missing, and how to get it.
pub fn needs() -> Result<PathBuf, String> {
    let missing = PACKAGES.iter().find(|(_, sign)| !Path::new(sign).exists());
    let image = match missing {
        Some((package, _)) => {
            return Err(format!("a machine of ARM needs {package}: cargo x ci --install arm"));
        }
        None => kernel::image_in(&directory()),
    };
    image.ok_or_else(|| format!("no kernel in {}: cargo x ci --install arm", directory().display()))
}

/// Boots the image, with a disk that `here` has written, and with fiord and the tests of its system calls, by these names,
/// whose libraries are below `root`; then `here` reads what has come back. Returns the number of checks, all of which passed.
///
/// # Errors
/// Which failed, with the end of the machine's console.
pub fn check<'a>(
    image: &Path,
    here: &Path,
    programs: impl Iterator<Item = (&'a str, &'a Path)>,
    root: &Path,
) -> Result<u64, String> {
    let place = repo::target_dir().join("arm-guest");
    let _ = fs::remove_dir_all(&place);
    memory(&place, programs, root).map_err(|why| format!("the guest's programs: {why}"))?;
    for disk in ["disk", "archive"] {
        let path = place.join(disk);
        let made = File::create(&path).and_then(|file| file.set_len(DISK_BYTES));
        made.map_err(|error| format!("{}: {}", path.display(), error_text(&error)))?;
    }
    let fiord = |words: &str| {
        let mut command = repo::command(&here.to_string_lossy(), &words.split(' ').collect::<Vec<_>>());
        command.current_dir(&place).env("XDG_STATE_HOME", place.join("state"));
        repo::output_of(command).map(drop)
    };
    let job = "--name=j --filename=disk --ioengine=psync --bs=4k --size=1m --verify=crc32c";
    fiord(&format!("{job} --rw=randwrite --do_verify=0"))?;
    let console = Console::create()?;
    let checked = boot(image, &place, &console).and_then(|()| read_back(&place));
    let checked = checked.map_err(|why| format!("{why}\n{}", console.end()))?;
    console.remove();
    fiord(&format!("{job} --rw=randread --offset=1m"))?;
    fiord("explain report.json")?;
    fiord("report quick.json -o page.html")?;
    let _ = fs::remove_dir_all(&place);
    Ok(checked + 3)
}

/// Makes the archive of the files that the machine has in memory.
fn memory<'a>(
    place: &Path,
    programs: impl Iterator<Item = (&'a str, &'a Path)>,
    root: &Path,
) -> Result<(), String> {
    let files = place.join("root");
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let run = |program: &str, words: &[String]| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        repo::output_of(repo::command(program, &words)).map(drop)
    };
    let into = |name: &str| text(files.join(name));
    run(
        "mkdir",
        &[&["-p".to_string()][..], &["bin", "lib", "proc", "sys", "dev", "tmp"].map(into)].concat(),
    )?;
    let libraries = LIBRARIES.map(|library| text(root.join("lib").join(library)));
    run("cp", &[&libraries[..], &[into("lib")]].concat())?;
    run("cp", &[text(directory().join("bin/busybox")), into("bin")])?;
    for (name, program) in programs {
        run(STRIP, &["-o".to_string(), into("bin") + "/" + name, text(program.to_path_buf())])?;
    }
    fs::write(files.join("init"), INIT).map_err(|error| error_text(&error))?;
    run("chmod", &["755".to_string(), into("init")])?;
    let mut archive = repo::command("sh", &["-c", "find . | cpio -o -H newc --quiet >../memory"]);
    archive.current_dir(files);
    repo::output_of(archive).map(drop)
}

/// Boots, and waits until the machine is off.
fn boot(image: &Path, place: &Path, console: &Console) -> Result<(), String> {
    let mut emulator = repo::command(EMULATOR, &MACHINE.split(' ').collect::<Vec<_>>());
    emulator.arg("-kernel").arg(image).arg("-initrd").arg(place.join("memory"));
    emulator.args(["-append", "console=ttyAMA0 panic=-1 quiet"]).stdin(Stdio::null());
    for disk in ["disk", "archive"] {
        let file = place.join(disk);
        emulator.arg("-drive").arg(format!("file={},format=raw,if=none,id={disk}", file.display()));
        emulator.arg("-device").arg(format!("nvme,drive={disk},serial={disk}"));
    }
    console.receive(&mut emulator)?;
    let mut child = emulator.spawn().map_err(|error| format!("{EMULATOR}: {}", error_text(&error)))?;
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("{EMULATOR}: {status}")),
            Ok(None) if start.elapsed() < RUN_MAX => std::thread::sleep(POLL),
            _ => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("the machine of ARM was ended after {} s", RUN_MAX.as_secs()))
}

/// Unpacks what has come back; returns the number of checks.
fn read_back(place: &Path) -> Result<u64, String> {
    let mut tar = repo::command("tar", &["-xf", "archive"]);
    tar.current_dir(place);
    repo::output_of(tar).map_err(|_| "the machine of ARM was off before its checks had ended".to_string())?;
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap_or_default();
    let checks = read("checks");
    match read("status").trim() {
        "0" => Ok(checks.lines().count() as u64),
        status => Err(format!("on ARM a check ended with status {status:?} after: {checks}")),
    }
}

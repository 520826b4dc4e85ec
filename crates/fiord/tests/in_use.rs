//! Nothing in use is written to, created, extended or removed: by any path, for any use, at any time.
//!
//! Invariant: each case compares the bytes of the backing file before and after; devices are loop devices over files of
//! the test.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use fiord_testing::{need, skipped};

use crate::common::{Dir, LoopDevice, Ran, finish, fiord, helper, root, start, until};

const IMAGE_BYTES: u64 = 8 << 20;
/// Where the file system of a partition begins.
const PARTITION_BYTES: u64 = 1 << 20;
/// The first page of a swap space, which the kernel never uses for what it swaps out.
const SWAP_HEADER_BYTES: usize = 4096;
/// More than the target's size: a reader of that size lays out files.
const BEYOND: &str = "9m";

/// The target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Device,
    File,
}

/// `mount`, for the scripts: a device that was unmounted a moment ago may still be busy.
const MOUNT: &str = "mount() { for _ in 1 2 3 4 5 6 7 8 9 10; do command mount \"$@\" && return; sleep 0.1; done; return 32; }\n";

/// A kind of use, with shell commands that begin and end it. `$DEVICE` is a loop device over `image`.
struct Use {
    name: &'static str,
    target: Target,
    begin: &'static str,
    end: &'static str,
}

const USES: &[Use] = &[
    Use { name: "mounted", target: Target::Device, begin: "mount -o ro $DEVICE point", end: "umount point" },
    Use {
        name: "behind a mounted loop device",
        target: Target::File,
        begin: "mount -o ro $DEVICE point",
        end: "umount point",
    },
    Use {
        name: "a loop device over it is mounted",
        target: Target::Device,
        begin: "losetup --find --show --read-only $DEVICE > second && mount -o ro $(cat second) point",
        end: "umount point; losetup --detach $(cat second)",
    },
    Use {
        name: "another loop device of its file is mounted",
        target: Target::Device,
        begin: "losetup --find --show --read-only image > second && mount -o ro $(cat second) point",
        end: "umount point; losetup --detach $(cat second)",
    },
    Use {
        name: "a loop device over a loop device over the file is mounted",
        target: Target::File,
        begin: "losetup --find --show --read-only $DEVICE > second && mount -o ro $(cat second) point",
        end: "umount point; losetup --detach $(cat second)",
    },
    Use {
        name: "a partition is mounted",
        target: Target::Device,
        begin: "mount -o ro ${DEVICE}p1 point",
        end: "umount point",
    },
    Use { name: "swap", target: Target::Device, begin: "swapon $DEVICE", end: "swapoff $DEVICE" },
    Use { name: "a swap file", target: Target::File, begin: "swapon image", end: "swapoff image" },
];

/// A device prepared for one kind of use.
struct Fixture {
    dir: Dir,
    device: LoopDevice,
    of: &'static Use,
    in_use: bool,
}

impl Fixture {
    fn new(of: &'static Use) -> Result<Fixture, String> {
        root()?;
        let dir = Dir::new();
        let image = dir.join("image");
        fs::write(&image, vec![0; IMAGE_BYTES as usize]).unwrap();
        let name = image.to_str().unwrap();
        let plain = ["-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=0"];
        let partitioned = of.begin.contains("p1");
        match of.begin {
            begin if begin.starts_with("swapon") => helper("mkswap", &[name])?,
            _ if partitioned => {
                let offset = format!("offset={PARTITION_BYTES}");
                helper("mkfs.ext4", &["-q", "-F", "-O", "^has_journal", "-E", &offset, name, "6m"])?
            }
            _ => helper("mkfs.ext4", &[plain.as_slice(), &[name]].concat())?,
        };
        helper("chmod", &["600", name])?;
        if partitioned {
            write_partition_table(&image);
        }
        let device = LoopDevice::over(&image)?;
        if partitioned {
            helper("partx", &["--add", &device.path])?;
            if !Path::new(&format!("{}p1", device.path)).exists() {
                return Err("loop devices have no partitions here".to_string());
            }
        }
        fs::create_dir(dir.join("point")).unwrap();
        for (name, commands) in [("begin", of.begin), ("end", of.end)] {
            let text = format!("#!/bin/sh\nDEVICE={}\n{MOUNT}{commands}\n", device.path);
            let script = dir.write(name, text);
            helper("chmod", &["755", script.to_str().unwrap()])?;
        }
        Ok(Fixture { dir, device, of, in_use: false })
    }

    fn shell(&self, name: &str) -> Result<(), String> {
        let script = format!("cd {} && ./{name}", self.dir.path().display());
        helper("sh", &["-c", &script]).map(drop)
    }

    fn begin(&mut self) -> Result<(), String> {
        self.shell("begin")?;
        self.in_use = true;
        Ok(())
    }

    fn end(&mut self) {
        self.in_use = false;
        self.shell("end").unwrap();
    }

    /// The target, by its usual path.
    fn target(&self) -> PathBuf {
        match self.of.target {
            Target::Device => PathBuf::from(&self.device.path),
            Target::File => self.dir.join("image"),
        }
    }

    /// The bytes of the backing file, after writing back the device's cache.
    fn bytes(&self) -> Vec<u8> {
        helper("blockdev", &["--flushbufs", &self.device.path]).unwrap();
        self.dir.read("image")
    }

    /// Runs fiord, which must refuse: with status 2, with a message that contains `why`, and without changing a byte.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], why: &str) -> Ran {
        let (before, swapped_out) = (self.bytes(), pages_swapped_out());
        let mut command = fiord(self.dir.path(), "");
        command.args(arguments);
        let ran = finish(start(command));
        let case = format!("{}: {arguments:?}: {ran:?}", self.of.name);
        assert_eq!(ran.status, Some(2), "{case}");
        assert!(ran.stderr.contains(why), "{case}");
        let after = self.bytes();
        // A machine short of memory uses the swap space while it is there: all of it but the header.
        let compared = if pages_swapped_out() == swapped_out { after.len() } else { SWAP_HEADER_BYTES };
        assert!(after[..compared] == before[..compared], "bytes were changed: {case}");
        let kind = fs::symlink_metadata(self.target()).unwrap().file_type();
        assert_eq!(kind.is_block_device(), self.of.target == Target::Device, "{case}");
        ran
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if self.in_use {
            let _ = self.shell("end");
        }
    }
}

/// How many pages the machine has written to swap spaces since it was started.
fn pages_swapped_out() -> u64 {
    let counters = fs::read_to_string("/proc/vmstat").unwrap();
    let counter = counters.lines().find_map(|line| line.strip_prefix("pswpout "));
    counter.map_or(0, |pages| pages.parse().unwrap())
}

/// A table with one partition, after the first megabyte.
fn write_partition_table(image: &Path) {
    let mut bytes = fs::read(image).unwrap();
    let sectors = |bytes: u64| (bytes as u32 / 512).to_le_bytes();
    bytes[450] = 0x83;
    bytes[454..458].copy_from_slice(&sectors(PARTITION_BYTES));
    bytes[458..462].copy_from_slice(&sectors(IMAGE_BYTES - PARTITION_BYTES));
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::write(image, bytes).unwrap();
}

/// Other paths to the target, each with a value that keeps it in existence.
fn paths_to(fixture: &Fixture) -> Vec<(&'static str, PathBuf, Box<dyn std::any::Any>)> {
    let (dir, target) = (&fixture.dir, fixture.target());
    symlink(&target, dir.join("link")).unwrap();
    symlink("link", dir.join("link-to-link")).unwrap();
    let open = File::open(&target).unwrap();
    let descriptor = {
        use std::os::fd::AsRawFd;
        format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd())
    };
    let root = format!("/proc/{}/root{}", std::process::id(), target.display());
    let mut ways: Vec<(&str, PathBuf, Box<dyn std::any::Any>)> = vec![
        ("name", target.clone(), Box::new(())),
        ("symbolic link", dir.join("link-to-link"), Box::new(())),
        ("descriptor", descriptor.into(), Box::new(open)),
        ("root of a process", root.into(), Box::new(())),
    ];
    match fixture.of.target {
        Target::Device => {
            use std::os::unix::fs::MetadataExt;
            let number = fs::metadata(&target).unwrap().rdev();
            let (major, minor) = ((number >> 8 & 0xfff).to_string(), (number & 0xff).to_string());
            let node = dir.join("node");
            helper("mknod", &[node.to_str().unwrap(), "b", &major, &minor]).unwrap();
            fs::hard_link(&node, dir.join("node-hard")).unwrap();
            ways.push(("another node", node, Box::new(())));
            ways.push(("hard link of a node", dir.join("node-hard"), Box::new(())));
        }
        Target::File => {
            fs::hard_link(&target, dir.join("hard")).unwrap();
            ways.push(("hard link", dir.join("hard"), Box::new(())));
            fs::create_dir(dir.join("bound")).unwrap();
            let (from, to) = (dir.path().to_str().unwrap(), dir.join("bound"));
            if helper("mount", &["--bind", from, to.to_str().unwrap()]).is_ok() {
                ways.push(("bind mount", to.join("image"), Box::new(Bound(to))));
            }
        }
    }
    ways
}

/// Unmounted on drop.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = helper("umount", &["--lazy", self.0.to_str().unwrap()]);
    }
}

/// What a job or a subcommand can do to a path: its arguments, `@` for the path. Some are only for devices or only for
/// files.
const DEEDS: &[(&str, Option<Target>)] = &[
    ("--name=a --filename=@ --rw=write", None),
    ("--name=a --filename=@ --rw=randrw --bs=4k --number_ios=4", None),
    ("--name=a --filename=@ --rw=write --ioengine=mmap --size=1m", None),
    ("--name=a --filename=@ --rw=randwrite --ioengine=libaio --direct=1 --size=1m", None),
    ("--name=a --filename=@ --rw=randwrite --ioengine=io_uring --size=1m", None),
    ("--name=a --filename=@ --rw=write --create_only=1", None),
    ("--name=a --filename=@ --rw=write --fill_device=1 --size=1m", None),
    ("--name=a --filename=@ --rw=write --numjobs=2 --thread", None),
    ("--name=a --filename=@ --rw=trim", Some(Target::Device)),
    ("--name=a --filename=@ --rw=trimwrite --size=1m", Some(Target::Device)),
    ("--name=a --filename=@ --rw=read --size=9m", Some(Target::File)),
    ("--name=a --filename=@ --rw=write --file_append=1 --size=1m", Some(Target::File)),
    ("--name=a --filename=@ --rw=write --overwrite=1 --size=9m", Some(Target::File)),
    ("--name=a --filename=@ --rw=read --unlink=1", Some(Target::File)),
    ("--name=a --filename=@ --rw=read --unlink_each_loop=1", Some(Target::File)),
    ("--name=a --ioengine=null --size=1m --iomem=mmap:@", None),
    ("--name=a --ioengine=null --size=1m --iomem=mmapshared:@", None),
    ("--name=a --ioengine=null --size=1m --output=@", None),
    ("sweep --name=a --filename=@ --rw=write --over=bs=4k,8k --time=1", None),
];

/// Files that fiord creates under names of its own: here each is a link to the target.
const LOGS: &[(&str, &str)] = &[
    ("a_bw.1.log", "--write_bw_log=a"),
    ("a_iops.2.log", "--write_iops_log=a --numjobs=2"),
    ("a_slat.1.log", "--write_lat_log=a"),
    ("a_clat_hist.1.log", "--write_hist_log=a --log_hist_msec=100"),
    ("a_bw.log", "--write_bw_log=a --per_job_logs=0"),
    ("agg-read_bw.log", "--bandwidth-log"),
    ("a.prerun.txt", "--exec_prerun=true"),
    ("a.postrun.txt", "--exec_postrun=true"),
];

fn words(line: &str, path: &Path) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace('@', path.to_str().unwrap())).collect()
}

#[track_caller]
fn refuses(fixture: &Fixture, line: &str, path: &Path) {
    let words = words(line, path);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    fixture
        .refuses(&words, if is_output(line) && fixture.of.target == Target::Device { "" } else { "in use" });
}

/// Whether the path is not a target of a job: a device is then refused as such.
fn is_output(line: &str) -> bool {
    ["--output", "--iomem"].iter().any(|option| line.contains(option))
}

fn skip(of: &Use, why: &str) {
    skipped(format_args!("{}: {why}", of.name));
}

// divergence: laying out or removing (`unlink`)
#[test]
fn every_change_to_a_target_in_use_is_refused_under_each_of_its_names() {
    need!(root());
    for of in USES {
        let begun = Fixture::new(of).and_then(|mut fixture| fixture.begin().map(|()| fixture));
        let mut fixture = match begun {
            Ok(fixture) => fixture,
            Err(why) => {
                skip(of, &why);
                continue;
            }
        };
        let applies = |only: &Option<Target>| only.is_none_or(|only| only == of.target);
        let all: Vec<&str> = DEEDS.iter().filter(|deed| applies(&deed.1)).map(|deed| deed.0).collect();
        for (number, (_, path, _keeps)) in paths_to(&fixture).iter().enumerate() {
            // All operations by one path, and by each path some that use it differently.
            let some = |line: &&&str| number == 0 || line.contains("--rw=write") && !line.contains("engine");
            for line in all.iter().filter(|line| some(line) || is_output(line)) {
                refuses(&fixture, line, path);
            }
        }
        for (name, options) in LOGS {
            symlink(fixture.target(), fixture.dir.join(name)).unwrap();
            refuses(
                &fixture,
                &format!("--name=a --ioengine=null --size=1m --output=x {options}"),
                Path::new(""),
            );
            fs::remove_file(fixture.dir.join(name)).unwrap();
        }
        fixture.end();
    }
}

// divergence: a device mounted, or a file replaced
#[test]
fn a_target_taken_into_use_after_the_check_is_refused_when_opened() {
    need!(root());
    // Each clone would begin the use.
    let before_a_stage = "--name=first --ioengine=null --size=4k --exec_postrun=./begin --name=a --stonewall";
    let moments = [
        ("--name=a --exec_prerun=./begin", "--rw=write --ioengine=psync"),
        ("--name=a --exec_prerun=./begin", "--rw=randrw --ioengine=io_uring"),
        ("--name=a --exec_prerun=./begin", "--rw=write --create_serialize=0 --unlink=1"),
        (before_a_stage, "--rw=randwrite --ioengine=libaio --direct=1"),
        (before_a_stage, "--rw=write --ioengine=mmap"),
        (before_a_stage, "--rw=write --create_serialize=0 --numjobs=3"),
    ];
    for of in USES {
        for (moment, writer) in moments {
            // The use is possible here, but has not begun.
            let begun = Fixture::new(of).and_then(|mut fixture| fixture.begin().map(|()| fixture));
            let mut fixture = match begun {
                Ok(fixture) => fixture,
                Err(why) => {
                    skip(of, &why);
                    break;
                }
            };
            fixture.end();
            fixture.in_use = true;
            let line = format!("{moment} --filename=@ --size=1m {writer}");
            let words = words(&line, &fixture.target());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = fixture.refuses(&words, "in use by now");
            assert!(ran.stdout.contains("err=16"), "{ran:?}");
            fixture.end();
        }
    }
}

#[test]
fn a_target_that_changed_its_kind_is_not_opened() {
    let becomes = [
        ("a link to a free device", "rm file && ln -s $DEVICE file"),
        ("a link to a device that is mounted", "rm file && ln -s $DEVICE file && mount -o ro $DEVICE point"),
        ("another name of a mounted image", "rm file && ln image file && mount -o ro $DEVICE point"),
        ("a pipe", "rm file && mkfifo file"),
        ("a directory", "rm file && mkdir file"),
        ("a link into /dev that leads nowhere", "rm file && ln -s /dev/mapper/fiord-no-such file"),
    ];
    for (what, commands) in becomes {
        for options in ["--rw=write", "--rw=write --create_serialize=0 --overwrite=1", "--rw=read --unlink=1"]
        {
            let fixture = need!(Fixture::new(&USES[0]));
            fixture.dir.write("file", vec![7; 1 << 20]);
            fixture.dir.write("become", format!("DEVICE={}\n{commands}\n", fixture.device.path));
            let before = fixture.bytes();
            let mut command = fiord(fixture.dir.path(), &format!("--name=a --filename=file {options}"));
            command.arg("--exec_prerun=sh ./become");
            let ran = finish(start(command));
            let after = fixture.bytes();
            let is_mounted = commands.contains("mount");
            if is_mounted {
                fixture.shell("end").unwrap();
            }
            let case = format!("{what}: {options}: {ran:?}");
            assert!(before == after, "bytes were changed: {case}");
            // A missing device is an error, but no danger.
            assert_eq!(ran.status, Some(if what.contains("nowhere") { 1 } else { 2 }), "{case}");
            assert!(!Path::new("/dev/mapper/fiord-no-such").exists(), "{case}");
        }
    }
}

// divergence: two runs that write to one device
#[test]
fn a_device_is_claimed_only_while_it_is_written_to() {
    let mut fixture = need!(Fixture::new(&USES[0]));
    need!(fixture.begin());
    fixture.end();
    let device = fixture.device.path.clone();
    let exclusive = || File::options().read(true).custom_flags(0o200).open(&device);
    fixture.dir.write(
        "free",
        format!("#!/bin/sh\nblkdiscard --help >/dev/null\nmount -o ro {device} point && umount point\n"),
    );
    let line = format!(
        "--name=a --filename={device} --rw=randwrite --bs=4k --numjobs=3 --time_based --runtime=60 --rate_iops=50 \
         --name=b --filename={device} --rw=read --time_based --runtime=60 --rate_iops=50"
    );
    let mut command = fiord(fixture.dir.path(), &line);
    command.args(["--exec_postrun=sh ./free"]);
    let running = start(command);
    until("the device is claimed", || exclusive().is_err());
    assert!(fixture.begin().is_err(), "a device that is written to was mounted");
    crate::common::signal(running.0.id(), "INT");
    let ran = finish(running);
    assert_eq!(ran.status, Some(130), "{ran:?}");
    assert!(exclusive().is_ok());
}

// divergence: `exec_prerun` of a clone
#[test]
fn clones_stages_and_commands_around_a_job_share_a_device() {
    let fixture = need!(Fixture::new(&USES[0]));
    let device = &fixture.device.path;
    let line = format!(
        "--output=x --filename={device} --rw=write --size=64k --name=a --numjobs=4 --name=b --rw=randrw \
         --name=c --stonewall --ioengine=libaio --iodepth=8 --name=d --rw=trim --stonewall \
         --name=e --stonewall --rw=write"
    );
    let mut command = fiord(fixture.dir.path(), &line);
    // Opens the device exclusively, before the claim and after it.
    let alone = format!("flock /dev/null true && mkswap {device}");
    command.arg(format!("--exec_prerun={alone}")).arg(format!("--exec_postrun={alone}"));
    let ran = finish(start(command));
    ran.assert_success();
    for log in ["e.prerun.txt", "e.postrun.txt"] {
        assert!(fixture.dir.text(log).contains("Setting up swapspace"), "{}", fixture.dir.text(log));
    }
}

#[test]
fn reading_is_allowed_and_so_is_writing_with_allow_mounted_write() {
    let mut fixture = need!(Fixture::new(&USES[0]));
    need!(fixture.begin());
    let device = fixture.device.path.clone();
    let before = fixture.bytes();
    fixture
        .dir
        .run(&format!("--output=x --name=a --filename={device} --rw=randread --size=1m"))
        .assert_success();
    fixture
        .dir
        .run(&format!("--output=x --name=a --filename={device} --rw=read --unlink=1"))
        .assert_success();
    assert!(Path::new(&device).exists(), "unlink=1 is for files");
    assert!(fixture.bytes() == before);
    fixture.end();
    let _somebody = File::options().read(true).custom_flags(0o200).open(&device).unwrap();
    fixture.refuses(&["--name=a", &format!("--filename={device}"), "--rw=write"], "in use");
    let line =
        format!("--output=x --name=a --filename={device} --rw=write --size=1m --allow_mounted_write=1");
    fixture.dir.run(&line).assert_success();
    assert!(fixture.bytes() != before);
}

// divergence: `filetype` that contradicts
#[test]
fn filetype_never_overrides_the_actual_type() {
    let mut fixture = need!(Fixture::new(&USES[0]));
    need!(fixture.begin());
    let device = fixture.device.path.clone();
    let (before, size) = (fixture.bytes(), format!("--size={BEYOND}"));
    for options in ["--rw=read", "--rw=read --unlink=1", "--rw=write", "--rw=write --create_only=1"] {
        for filetype in ["file", "char"] {
            let ran = fixture
                .dir
                .run(&format!("--name=a --filename={device} {size} --filetype={filetype} {options}"));
            ran.assert_status(1).assert_prints(&["filetype=", "is a block device"]);
        }
    }
    let ran = fixture.dir.run("--name=a --filename=new --size=1m --filetype=block --rw=write");
    ran.assert_status(1).assert_prints(&["filetype=block, but new does not exist"]);
    assert!(fixture.bytes() == before && fs::metadata(&device).unwrap().file_type().is_block_device());
    assert!(!fixture.dir.join("new").exists());
}

// divergence: a path in or below `/dev`
#[test]
fn no_file_is_created_below_dev() {
    let dir = Dir::new();
    let names = [
        "/dev/fiord-no-such",
        "/dev/mapper/fiord-no-such",
        "/dev/disk/by-id/fiord-no-such",
        "/dev/fiord/x/y",
    ];
    symlink("/dev/fiord-no-such", dir.join("dangling")).unwrap();
    let there = || names.iter().any(|name| Path::new(name).exists()) || Path::new("/dev/a.0.0").exists();
    assert!(!there());
    let dangling = dir.join("dangling");
    for name in names.into_iter().chain([dangling.to_str().unwrap(), "/dev/../dev/fiord-no-such"]) {
        for deed in [
            "--rw=write",
            "--rw=read",
            "--rw=randrw --create_on_open=1",
            "--rw=write --create_only=1",
            "--rw=write --filetype=file",
        ] {
            let ran = dir.run(&format!("--name=a --filename={name} --size=4k {deed}"));
            ran.assert_status(1).assert_prints(&["there is no device"]);
        }
        let through_links = ["--name=a --output=@", "--name=a --iomem=mmap:@"];
        let beside = ["--name=a --write_bw_log=@"];
        let outputs = through_links.iter().chain(beside.iter().filter(|_| name.starts_with("/dev")));
        for output in outputs {
            let ran = dir.run(&format!("{} --ioengine=null --size=4k", output.replace('@', name)));
            ran.assert_status(1).assert_prints(&["there is no device"]);
        }
        assert!(!there(), "{name}");
    }
    dir.run("--name=a --directory=/dev --size=4k --rw=write")
        .assert_status(1)
        .assert_prints(&["there is no device"]);
    dir.run("quick /dev --time=1").assert_status(1).assert_prints(&["among device nodes"]);
    dir.run("--name=a --filename=/dev/nul --size=4k --rw=write")
        .assert_status(1)
        .assert_prints(&["did you mean /dev/null?"]);
    assert!(!there());
    let own = Path::new("/dev/shm");
    if helper("mountpoint", &["-q", "/dev/shm"]).is_ok() {
        let shared = need!(Dir::under(own));
        let line =
            format!("--output=x --name=a --directory={} --size=4k --rw=write", shared.path().display());
        dir.run(&line).assert_success();
    }
}

// divergence: `iomem=mmap:`, logs, `--output`
#[test]
fn outputs_to_devices_are_refused_even_if_unused() {
    let fixture = need!(Fixture::new(&USES[0]));
    let device = fixture.device.path.clone();
    let output = format!("--output={device}");
    fixture.refuses(&["--name=a", "--ioengine=null", "--size=4k", &output], "is a block device");
    let before = fixture.bytes();
    let ran = fixture
        .dir
        .run(&format!("sweep --name=a --ioengine=null --size=4k --over=bs=4k,8k --time=1 --plot={device}"));
    assert_ne!(ran.status, Some(0), "{ran:?}");
    ran.assert_prints(&["is a block device"]);
    let history = fixture.dir.join("state/fiord");
    fs::create_dir_all(&history).unwrap();
    symlink(&device, history.join("history.db")).unwrap();
    let mut command = fiord(fixture.dir.path(), "--name=a --ioengine=null --size=4k");
    command.env("XDG_STATE_HOME", fixture.dir.join("state"));
    finish(start(command)).assert_status(0).assert_prints(&["could not be recorded", "is a block device"]);
    let mut command: Command = fiord(fixture.dir.path(), "history");
    command.env("XDG_STATE_HOME", fixture.dir.join("state"));
    finish(start(command)).assert_prints(&["is a block device"]);
    assert!(fixture.bytes() == before);
}

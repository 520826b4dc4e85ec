//! Nothing that somebody uses is written to, made, grown or removed: every way onto it, every use of it, every moment.
//!
//! Invariant: each case compares the bytes of the file at the bottom before and after; devices are loop devices over
//! files of the test's own.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Dir, LoopDevice, Ran, finish, fiord, helper, root, start, until};

const IMAGE_BYTES: u64 = 8 << 20;
/// Where the file system of a partition begins.
const PARTITION_BYTES: u64 = 1 << 20;
/// More than there is: a reader of that size lays out.
const BEYOND: &str = "9m";

/// What is attacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    Device,
    File,
}

/// A kind of use: shell commands that begin and end it. `$DEVICE` is a loop device over `image`.
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

/// A device, what is on it, and what begins and ends its use.
struct Scene {
    dir: Dir,
    device: LoopDevice,
    of: &'static Use,
    in_use: bool,
}

impl Scene {
    fn new(of: &'static Use) -> Result<Scene, String> {
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
            let text = format!("#!/bin/sh\nDEVICE={}\n{commands}\n", device.path);
            let script = dir.write(name, text);
            helper("chmod", &["755", script.to_str().unwrap()])?;
        }
        Ok(Scene { dir, device, of, in_use: false })
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

    /// What is attacked, by its plain name.
    fn target(&self) -> PathBuf {
        match self.of.target {
            Target::Device => PathBuf::from(&self.device.path),
            Target::File => self.dir.join("image"),
        }
    }

    /// The bytes at the bottom, everything written through the device included.
    fn bytes(&self) -> Vec<u8> {
        helper("blockdev", &["--flushbufs", &self.device.path]).unwrap();
        self.dir.read("image")
    }

    /// Runs fiord, which must refuse: with status 2, by a sentence that says `why`, and without a byte changed.
    #[track_caller]
    fn refuses(&self, arguments: &[&str], why: &str) -> Ran {
        let before = self.bytes();
        let mut command = fiord(self.dir.path(), "");
        command.args(arguments);
        let ran = finish(start(command));
        let case = format!("{}: {arguments:?}: {ran:?}", self.of.name);
        assert_eq!(ran.status, Some(2), "{case}");
        assert!(ran.stderr.contains(why), "{case}");
        assert!(self.bytes() == before, "bytes were changed: {case}");
        let kind = fs::symlink_metadata(self.target()).unwrap().file_type();
        assert_eq!(kind.is_block_device(), self.of.target == Target::Device, "{case}");
        ran
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if self.in_use {
            let _ = self.shell("end");
        }
    }
}

/// A table with one partition, behind the first megabyte.
fn write_partition_table(image: &Path) {
    let mut bytes = fs::read(image).unwrap();
    let sectors = |bytes: u64| (bytes as u32 / 512).to_le_bytes();
    bytes[450] = 0x83;
    bytes[454..458].copy_from_slice(&sectors(PARTITION_BYTES));
    bytes[458..462].copy_from_slice(&sectors(IMAGE_BYTES - PARTITION_BYTES));
    bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::write(image, bytes).unwrap();
}

/// Other names of the target, each with what keeps it there.
fn ways(scene: &Scene) -> Vec<(&'static str, PathBuf, Box<dyn std::any::Any>)> {
    let (dir, target) = (&scene.dir, scene.target());
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
    match scene.of.target {
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

/// What a job or a subcommand can do to a path: its arguments, `@` for the path. Those that are for a device alone or for
/// a file alone say so.
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

/// What fiord writes under names it makes itself: here each is a link to the target.
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
fn refuses(scene: &Scene, line: &str, path: &Path) {
    let words = words(line, path);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    scene.refuses(&words, if is_output(line) && scene.of.target == Target::Device { "" } else { "in use" });
}

/// Whether what is named is no target of a job: a device is then refused for being one.
fn is_output(line: &str) -> bool {
    ["--output", "--iomem"].iter().any(|option| line.contains(option))
}

fn skip(of: &Use, why: &str) {
    common::skip(&format!("{}: {}", common::this_test(), of.name), why);
}

#[test]
fn whatever_is_done_to_what_is_in_use_is_refused_by_each_of_its_names() {
    need!(root());
    for of in USES {
        let begun = Scene::new(of).and_then(|mut scene| scene.begin().map(|()| scene));
        let mut scene = match begun {
            Ok(scene) => scene,
            Err(why) => {
                skip(of, &why);
                continue;
            }
        };
        let applies = |only: &Option<Target>| only.is_none_or(|only| only == of.target);
        let all: Vec<&str> = DEEDS.iter().filter(|deed| applies(&deed.1)).map(|deed| deed.0).collect();
        for (number, (_, path, _keeps)) in ways(&scene).iter().enumerate() {
            // All deeds by one name, and by each name some that differ in how they get there.
            let some = |line: &&&str| number == 0 || line.contains("--rw=write") && !line.contains("engine");
            for line in all.iter().filter(|line| some(line) || is_output(line)) {
                refuses(&scene, line, path);
            }
        }
        for (name, options) in LOGS {
            symlink(scene.target(), scene.dir.join(name)).unwrap();
            refuses(
                &scene,
                &format!("--name=a --ioengine=null --size=1m --output=x {options}"),
                Path::new(""),
            );
            fs::remove_file(scene.dir.join(name)).unwrap();
        }
        scene.end();
    }
}

#[test]
fn what_is_taken_into_use_after_the_check_is_refused_when_it_is_opened() {
    need!(root());
    // Clones would each begin the use if it was they who did.
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
            // It can be begun here, and is not yet.
            let begun = Scene::new(of).and_then(|mut scene| scene.begin().map(|()| scene));
            let mut scene = match begun {
                Ok(scene) => scene,
                Err(why) => {
                    skip(of, &why);
                    break;
                }
            };
            scene.end();
            scene.in_use = true;
            let line = format!("{moment} --filename=@ --size=1m {writer}");
            let words = words(&line, &scene.target());
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let ran = scene.refuses(&words, "in use by now");
            assert!(ran.stdout.contains("err=16"), "{ran:?}");
            scene.end();
        }
    }
}

#[test]
fn what_has_become_something_else_is_not_opened() {
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
            let scene = need!(Scene::new(&USES[0]));
            scene.dir.write("file", vec![7; 1 << 20]);
            scene.dir.write("become", format!("DEVICE={}\n{commands}\n", scene.device.path));
            let before = scene.bytes();
            let mut command = fiord(scene.dir.path(), &format!("--name=a --filename=file {options}"));
            command.arg("--exec_prerun=sh ./become");
            let ran = finish(start(command));
            let after = scene.bytes();
            let is_mounted = commands.contains("mount");
            if is_mounted {
                scene.shell("end").unwrap();
            }
            let case = format!("{what}: {options}: {ran:?}");
            assert!(before == after, "bytes were changed: {case}");
            // A device that is not there is a mistake, and no danger.
            assert_eq!(ran.status, Some(if what.contains("nowhere") { 1 } else { 2 }), "{case}");
            assert!(!Path::new("/dev/mapper/fiord-no-such").exists(), "{case}");
        }
    }
}

#[test]
fn a_device_is_claimed_while_it_is_written_to_and_free_before_and_after() {
    let mut scene = need!(Scene::new(&USES[0]));
    need!(scene.begin());
    scene.end();
    let device = scene.device.path.clone();
    let exclusive = || File::options().read(true).custom_flags(0o200).open(&device);
    scene.dir.write(
        "free",
        format!("#!/bin/sh\nblkdiscard --help >/dev/null\nmount -o ro {device} point && umount point\n"),
    );
    let line = format!(
        "--name=a --filename={device} --rw=randwrite --bs=4k --numjobs=3 --time_based --runtime=60 --rate_iops=50 \
         --name=b --filename={device} --rw=read --time_based --runtime=60 --rate_iops=50"
    );
    let mut command = fiord(scene.dir.path(), &line);
    command.args(["--exec_postrun=sh ./free"]);
    let running = start(command);
    until("the device is claimed", || exclusive().is_err());
    assert!(scene.begin().is_err(), "a device that is written to was mounted");
    common::signal(running.0.id(), "INT");
    let ran = finish(running);
    assert_eq!(ran.status, Some(130), "{ran:?}");
    assert!(exclusive().is_ok());
}

#[test]
fn clones_stages_and_commands_around_a_job_share_a_device() {
    let scene = need!(Scene::new(&USES[0]));
    let device = &scene.device.path;
    let line = format!(
        "--output=x --filename={device} --rw=write --size=64k --name=a --numjobs=4 --name=b --rw=randrw \
         --name=c --stonewall --ioengine=libaio --iodepth=8 --name=d --rw=trim --stonewall \
         --name=e --stonewall --rw=write"
    );
    let mut command = fiord(scene.dir.path(), &line);
    // Wants the device for itself, before the claim and behind it.
    let alone = format!("flock /dev/null true && mkswap {device}");
    command.arg(format!("--exec_prerun={alone}")).arg(format!("--exec_postrun={alone}"));
    let ran = finish(start(command));
    ran.assert_success();
    for log in ["e.prerun.txt", "e.postrun.txt"] {
        assert!(scene.dir.text(log).contains("Setting up swapspace"), "{}", scene.dir.text(log));
    }
}

#[test]
fn reading_is_allowed_and_so_is_writing_where_it_was_said() {
    let mut scene = need!(Scene::new(&USES[0]));
    need!(scene.begin());
    let device = scene.device.path.clone();
    let before = scene.bytes();
    scene
        .dir
        .run(&format!("--output=x --name=a --filename={device} --rw=randread --size=1m"))
        .assert_success();
    scene.dir.run(&format!("--output=x --name=a --filename={device} --rw=read --unlink=1")).assert_success();
    assert!(Path::new(&device).exists(), "unlink=1 is for files");
    assert!(scene.bytes() == before);
    scene.end();
    let _somebody = File::options().read(true).custom_flags(0o200).open(&device).unwrap();
    scene.refuses(&["--name=a", &format!("--filename={device}"), "--rw=write"], "in use");
    let line =
        format!("--output=x --name=a --filename={device} --rw=write --size=1m --allow_mounted_write=1");
    scene.dir.run(&line).assert_success();
    assert!(scene.bytes() != before);
}

#[test]
fn filetype_never_overrules_what_is_there() {
    let mut scene = need!(Scene::new(&USES[0]));
    need!(scene.begin());
    let device = scene.device.path.clone();
    let (before, size) = (scene.bytes(), format!("--size={BEYOND}"));
    for options in ["--rw=read", "--rw=read --unlink=1", "--rw=write", "--rw=write --create_only=1"] {
        for filetype in ["file", "char"] {
            let ran = scene
                .dir
                .run(&format!("--name=a --filename={device} {size} --filetype={filetype} {options}"));
            ran.assert_status(1).assert_says(&["filetype=", "is a block device"]);
        }
    }
    let ran = scene.dir.run("--name=a --filename=new --size=1m --filetype=block --rw=write");
    ran.assert_status(1).assert_says(&["filetype=block, but new does not exist"]);
    assert!(scene.bytes() == before && fs::metadata(&device).unwrap().file_type().is_block_device());
    assert!(!scene.dir.join("new").exists());
}

#[test]
fn what_is_absent_below_dev_is_no_file_to_be_made() {
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
            ran.assert_status(1).assert_says(&["there is no device"]);
        }
        let through_links = ["--name=a --output=@", "--name=a --iomem=mmap:@"];
        let beside = ["--name=a --write_bw_log=@", "--name=@ --exec_prerun=true"];
        let outputs = through_links.iter().chain(&beside[..if name.starts_with("/dev") { 2 } else { 0 }]);
        for output in outputs {
            let ran = dir.run(&format!("{} --ioengine=null --size=4k", output.replace('@', name)));
            ran.assert_status(1).assert_says(&["there is no device"]);
        }
        assert!(!there(), "{name}");
    }
    dir.run("--name=a --directory=/dev --size=4k --rw=write")
        .assert_status(1)
        .assert_says(&["there is no device"]);
    dir.run("quick /dev --time=1").assert_status(1).assert_says(&["among devices"]);
    dir.run("--name=a --filename=/dev/nul --size=4k --rw=write")
        .assert_status(1)
        .assert_says(&["did you mean /dev/null?"]);
    assert!(!there());
    let own = Path::new("/dev/shm");
    if helper("mountpoint", &["-q", "/dev/shm"]).is_ok() {
        let shared = need!(Dir::under(own));
        let line =
            format!("--output=x --name=a --directory={} --size=4k --rw=write", shared.path().display());
        dir.run(&line).assert_success();
    }
}

#[test]
fn outputs_over_devices_are_refused_also_free_ones() {
    let scene = need!(Scene::new(&USES[0]));
    let device = scene.device.path.clone();
    let output = format!("--output={device}");
    scene.refuses(&["--name=a", "--ioengine=null", "--size=4k", &output], "is a block device");
    let before = scene.bytes();
    let ran = scene
        .dir
        .run(&format!("sweep --name=a --ioengine=null --size=4k --over=bs=4k,8k --time=1 --plot={device}"));
    assert_ne!(ran.status, Some(0), "{ran:?}");
    ran.assert_says(&["is a block device"]);
    let history = scene.dir.join("state/fiord");
    fs::create_dir_all(&history).unwrap();
    symlink(&device, history.join("history.db")).unwrap();
    let mut command = fiord(scene.dir.path(), "--name=a --ioengine=null --size=4k");
    command.env("XDG_STATE_HOME", scene.dir.join("state"));
    finish(start(command)).assert_status(0).assert_says(&["not kept", "is a block device"]);
    let mut command: Command = fiord(scene.dir.path(), "history");
    command.env("XDG_STATE_HOME", scene.dir.join("state"));
    finish(start(command)).assert_says(&["is a block device"]);
    assert!(scene.bytes() == before);
}

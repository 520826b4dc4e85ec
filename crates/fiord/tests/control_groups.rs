//! `cgroup`: which group a job's I/O is charged to while it runs, and what is left of it afterwards.
//!
//! Invariant: the groups are made by fiord or below one that the test made, and go with the test.

use std::fs;
use std::path::PathBuf;

use fiord_testing::{need, skip};

use crate::common::control_group::ControlGroup;
use crate::common::{Dir, Ran, finish, fiord, root, start};

/// Where the groups for I/O of version 1 are mounted.
fn blkio_mounts() -> Result<Vec<PathBuf>, String> {
    let mounts = fs::read_to_string("/proc/mounts").map_err(|error| error.to_string())?;
    let is_blkio = |fields: &[&str]| matches!(fields, [_, _, "cgroup", options, ..] if options.split(',').any(|word| word == "blkio"));
    let all = mounts.lines().map(|line| line.split(' ').collect::<Vec<&str>>());
    Ok(all.filter(|fields| is_blkio(fields)).map(|fields| PathBuf::from(fields[1])).collect())
}

/// The root of the hierarchy, if it is of version 1, where groups for I/O hold threads.
fn version_1() -> Result<PathBuf, String> {
    blkio_mounts()?.pop().ok_or_else(|| "blkio is not mounted as version 1".to_string())
}

/// fiord where the hierarchy of version 2 is the only one for I/O: in a mount namespace of its own, where that is mounted
/// at `v2`, and `blkio` of version 1 is not.
struct VersionTwo {
    dir: Dir,
    script: String,
}

impl VersionTwo {
    fn new() -> Result<VersionTwo, String> {
        root()?;
        let dir = Dir::new();
        fs::create_dir(dir.join("v2")).unwrap();
        let mut script = format!("mount -t cgroup2 none '{}'", dir.join("v2").display());
        for mount in blkio_mounts()? {
            script += &format!(" && umount '{}'", mount.display());
        }
        let two = VersionTwo { dir, script };
        let tried = two.within("true");
        if tried.status == Some(0) { Ok(two) } else { Err(format!("version 2: {}", tried.stderr.trim())) }
    }

    /// Runs a command of the shell there; `$@` is fiord with the words of `line`.
    fn shell(&self, command: &str, line: &str) -> Ran {
        let fiord = fiord(self.dir.path(), line);
        let mut namespace = crate::common::with_own_history("unshare");
        namespace.args(["--mount", "--propagation", "private", "sh", "-c"]);
        namespace.args([&format!("{} && {command}", self.script), "sh"]);
        namespace.arg(fiord.get_program()).args(fiord.get_args()).current_dir(self.dir.path());
        finish(start(namespace))
    }

    fn within(&self, command: &str) -> Ran {
        self.shell(command, "")
    }

    /// Runs fiord there.
    fn run(&self, line: &str) -> Ran {
        self.shell("exec \"$@\"", line)
    }

    fn has(&self, group: &str) -> bool {
        self.within(&format!("test -d v2/{group}")).status == Some(0)
    }
}

/// A name that no other run of the test has.
fn name(what: &str) -> String {
    format!("fiord-test-{}-{what}", std::process::id())
}

/// The line of `/proc/PID/cgroup` for groups of I/O in this text.
fn blkio(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains("blkio:")).map(|line| line.rsplit(':').next().unwrap()).collect()
}

// divergence: `cgroup` of a job that has ended
// divergence: `cgroup=a/b`
#[test]
fn a_worker_is_in_its_group_while_it_runs_and_the_group_goes_with_the_run() {
    need!(root());
    let top = need!(version_1());
    let (dir, group) = (Dir::new(), name("run"));
    // A command of the job is in the group of its worker.
    let note = |file: &str| {
        format!(
            "exec_prerun=cat /proc/self/cgroup >{file} && cat {}/{group}/b/*weight >w-{file}",
            top.display()
        )
    };
    dir.write(
        "job.fio",
        format!(
            "[global]\nioengine=null\nsize=64k\n[in]\ncgroup={group}/b\ncgroup_weight=300\n{}\n[out]\n{}\n",
            note("in"),
            note("out")
        ),
    );
    dir.run("job.fio").assert_success();
    let (inside, outside) = (dir.text("in"), dir.text("out"));
    assert_eq!(blkio(&inside), [format!("/{group}/b")]);
    assert_ne!(blkio(&inside), blkio(&outside), "the other job is where fiord was started");
    assert_eq!(dir.text("w-in").trim(), "300");
    assert!(!top.join(&group).exists(), "both directories were made for the run");
}

#[test]
fn a_group_stays_if_it_is_to_or_was_there_before() {
    need!(root());
    let top = need!(version_1());
    let (dir, group) = (Dir::new(), name("stays"));
    let line = format!("--name=a --ioengine=null --size=64k --cgroup={group}");
    dir.run(&format!("{line} --cgroup_nodelete=1")).assert_success();
    assert!(top.join(&group).is_dir());
    dir.run(&line).assert_success();
    assert!(top.join(&group).is_dir(), "it was there before");
    fs::remove_dir(top.join(&group)).unwrap();
    dir.run(&line).assert_success();
    assert!(!top.join(&group).exists());
}

#[test]
fn a_group_that_cannot_be_made_is_an_error_of_its_job_alone() {
    need!(root());
    need!(version_1());
    let dir = Dir::new();
    let ran = dir.run("--ioengine=null --size=64k --name=a --cgroup=../escape --name=b --rw=read");
    ran.assert_status(1).assert_prints(&["find the control group ../escape", "EINVAL", "READ: bw="]);
}

// divergence: `cgroup` without version 1
#[test]
fn version_2_takes_the_whole_process_and_gives_it_back() {
    let two = need!(VersionTwo::new());
    let group = name("two");
    let note = "exec_prerun=cat /proc/self/cgroup >in";
    let job = format!("[global]\nioengine=null\nsize=64k\ncgroup={group}/b\n[one]\n{note}\n[other]\n");
    two.dir.write("job.fio", job);
    let ran = two.run("job.fio");
    ran.assert_success();
    let inside = two.dir.text("in");
    assert!(inside.lines().any(|line| line == format!("0::/{group}/b")), "{inside}");
    assert!(!two.has(&group), "both directories were made for the run");
    let line = format!("--name=a --ioengine=null --size=64k --cgroup={group}");
    two.run(&format!("{line} --cgroup_nodelete=1")).assert_success();
    assert!(two.has(&group));
    two.run(&line).assert_success();
    assert!(two.has(&group), "it was there before");
    assert_eq!(two.within(&format!("rmdir v2/{group}")).status, Some(0));
    // Threads of one process cannot be in different groups.
    let apart = two.run(&format!("{line} --name=b --ioengine=null --size=64k"));
    apart.assert_status(1).assert_prints(&["keeps the threads of a process together", "READ: bw="]);
    assert!(!two.has(&group));
}

// divergence: `cgroup_weight`
/// Without the controller `io`, which version 1 may hold, there are no weights.
#[test]
fn a_weight_of_version_2_is_set_or_said_to_be_missing() {
    let two = need!(VersionTwo::new());
    let group = name("weight");
    let note = format!("exec_prerun=cat v2/{group}/io*weight >w");
    two.dir.write(
        "job.fio",
        format!("[a]\nioengine=null\nsize=64k\ncgroup={group}\ncgroup_weight=300\n{note}\n"),
    );
    let ran = two.run("job.fio");
    let controllers = two.within("cat v2/cgroup.controllers").stdout;
    if controllers.split_whitespace().any(|word| word == "io") {
        ran.assert_success();
        assert!(two.dir.text("w").contains("300"), "{}", two.dir.text("w"));
    } else {
        ran.assert_status(1).assert_prints(&[
            "io.weight: No such file",
            "needs the scheduler bfq",
            "controller io",
        ]);
    }
    assert!(!two.has(&group));
}

/// Without the refusal the kernel ends the process, and the report of the other job with it.
#[test]
fn buffers_beyond_a_limit_on_memory_stop_their_job_alone() {
    let dir = Dir::new();
    let group = need!(ControlGroup::new("memory", "memory"));
    need!(group.set("memory.limit_in_bytes", "67108864"));
    dir.write("sparse", "");
    fs::File::options().write(true).open(dir.join("sparse")).unwrap().set_len(1 << 30).unwrap();
    let line = "--no-history --trust=off --output-format=json --name=big --filename=sparse --rw=randread --bs=4m --iodepth=64 \
                --ioengine=libaio --direct=1 --name=small --size=1m --rw=write";
    let ran = finish(start(group.inside(fiord(dir.path(), line).current_dir(dir.path()))));
    if fs::read_to_string("/proc/swaps").is_ok_and(|swaps| swaps.lines().count() > 1) {
        skip!("there is swap");
    }
    ran.assert_status(1).assert_prints(&["268435456", "67108864", "memory.max"]);
    let document = ran.json();
    let errors = [0, 1].map(|job: usize| document["jobs"][job]["error"].as_i64());
    assert_eq!(errors, [Some(12), Some(0)], "{document}");
    assert_eq!(document["jobs"][1]["write"]["io_bytes"], 1 << 20);
}

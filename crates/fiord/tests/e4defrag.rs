//! The engine e4defrag on ext4: blocks are exchanged, data stay.
//!
//! Invariant: where a file's blocks lie is asked of the kernel by another program (`filefrag`).

use std::fs;

use fiord_testing::need;
use serde_json::Value;

use crate::common::{
    Dir, LoopDevice, Mount, Ran, Running, finish, fiord, helper, signal, start, until, until_asleep_in,
};

const BYTES: usize = 1 << 20;

/// An ext4 of its own with the file `data` on it.
struct Place {
    mount: Mount,
    device: LoopDevice,
    dir: Dir,
}

impl Place {
    fn new() -> Result<Place, String> {
        let dir = Dir::new();
        let device = LoopDevice::new(&dir, 64 << 20)?;
        let mount = Mount::ext4(&dir, &device)?;
        let bytes: Vec<u8> = (0..BYTES).map(|at| (at / 512 % 251) as u8).collect();
        mount.write("data", &bytes);
        let place = Place { mount, device, dir };
        helper("sync", &[&place.path("data")])?;
        Ok(place)
    }

    fn path(&self, name: &str) -> String {
        self.mount.path.join(name).to_string_lossy().into_owned()
    }

    /// Where the blocks of the file lie.
    fn extents(&self) -> Result<Vec<String>, String> {
        let text = helper("filefrag", &["-v", &self.path("data")])?;
        let extents =
            text.lines().filter(|line| line.trim_start().starts_with(|first: char| first.is_ascii_digit()));
        // Number, logical range, physical range.
        Ok(extents.map(|line| line.split(':').nth(2).unwrap_or_default().trim().to_string()).collect())
    }

    fn run(&self, options: &str) -> Ran {
        let line = format!(
            "--output-format=json --name=job --ioengine=e4defrag --filename={} --size={BYTES} --bs=64k {options}",
            self.path("data")
        );
        self.dir.run(&line)
    }

    /// A long job on blocks at random and one that is independent of the file system; the first has made its donor.
    fn start(&self) -> Running {
        let line = format!(
            "--output-format=json --name=job --ioengine=e4defrag --filename={} --size={BYTES} --bs=4k --rw=randwrite \
             --time_based --runtime=600 --donorname={} --inplace=1 --name=bystander --ioengine=null --rw=read --size=1m",
            self.path("data"),
            self.path("donor")
        );
        let running = start(fiord(self.dir.path(), &line));
        until("the donor is there", || fs::metadata(self.path("donor")).is_ok());
        running
    }
}

#[track_caller]
fn exchanged(ran: &Ran) -> Value {
    let job = ran.assert_success().json()["jobs"][0].clone();
    let write = &job["write"];
    let figures = (write["total_ios"].as_u64(), write["io_bytes"].as_u64(), write["clat_ns"]["N"].as_u64());
    assert_eq!(figures, (Some(16), Some(BYTES as u64), Some(16)), "{job}");
    job
}

// divergence: `inplace=0` of `ioengine=e4defrag`
// divergence: `fsync` with `ioengine=e4defrag`
#[test]
fn blocks_are_exchanged_and_the_data_stays() {
    let place = need!(Place::new());
    let data = fs::read(place.path("data")).unwrap();
    let donor = place.path("donor");
    let mut before = need!(place.extents());
    for (rw, options) in
        [("write", "--inplace=1"), ("randwrite", "--inplace=0"), ("write", "--inplace=1 --fsync=4")]
    {
        exchanged(&place.run(&format!("--rw={rw} --donorname={donor} {options}")));
        need!(helper("sync", &[&place.path("data")]));
        let after = place.extents().unwrap();
        assert!(!after.is_empty() && after != before, "{options}: {before:?} {after:?}");
        assert!(fs::read(place.path("data")).unwrap() == data, "{options}: the data have changed");
        let left = fs::metadata(&donor).unwrap().len();
        assert_eq!(left, if options == "--inplace=0" { BYTES as u64 } else { 0 }, "{options}");
        before = after;
    }
    // Blocks that are not whole ones of the file system.
    let ran = place.run(&format!("--rw=randwrite --bs=6k --io_size=6k --donorname={donor} --inplace=1"));
    assert_eq!(ran.assert_success().json()["jobs"][0]["write"]["io_bytes"].as_u64(), Some(6 << 10));
    assert!(fs::read(place.path("data")).unwrap() == data);
}

// divergence: `donorname` that is one of the job's files
#[test]
fn what_cannot_be_exchanged_is_an_error_with_its_reason() {
    let place = need!(Place::new());
    let data = fs::read(place.path("data")).unwrap();
    let donor = place.path("donor");
    let refused = |options: &str, parts: &[&str]| {
        place.run(options).assert_status(1).assert_prints(parts);
        assert!(fs::read(place.path("data")).unwrap() == data, "{options}: the data have changed");
    };
    refused("--rw=write", &["donorname", "needs a file"]);
    let onto_itself = place.run(&format!("--rw=write --donorname={}", place.path("data")));
    onto_itself.assert_status(2).assert_prints(&["donorname", "is a target of the jobs"]);
    assert!(fs::read(place.path("data")).unwrap() == data);
    refused(&format!("--rw=read --donorname={donor} --inplace=1"), &["EINVAL", "has writes only"]);
    refused("--rw=write --donorname=elsewhere --inplace=1", &["EINVAL", "on the same file system"]);
    let absent = place.path("absent/donor");
    refused(&format!("--rw=write --donorname={absent}"), &["absent/donor", "ENOENT"]);

    let dir = Dir::under(std::path::Path::new("/dev/shm")).unwrap();
    let line = "--name=job --ioengine=e4defrag --size=64k --bs=64k --rw=write --donorname=donor --inplace=1";
    dir.run(line).assert_status(1).assert_prints(&["the file system is not ext4"]);
}

/// The kernel does not write to a file system that it has found an error in.
#[test]
fn a_file_system_that_shuts_down_ends_the_job_and_no_other() {
    const EROFS: i64 = 30;
    let place = need!(Place::new());
    let path = place.mount.path.to_string_lossy().into_owned();
    need!(helper("mount", &["-o", "remount,errors=remount-ro", &path]));
    let running = place.start();
    let device = place.device.path.trim_start_matches("/dev/");
    need!(
        fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "for a test")
            .map_err(|error| error.to_string())
    );
    let document = finish(running).assert_status(1).json();
    let errors = [0, 1].map(|job| document["jobs"][job]["error"].as_i64());
    assert_eq!(errors, [Some(EROFS), Some(0)], "{document}");
}

#[test]
fn a_frozen_file_system_does_not_hold_up_the_end() {
    let place = need!(Place::new());
    let path = place.mount.path.to_string_lossy().into_owned();
    let mut running = place.start();
    need!(helper("fsfreeze", &["--freeze", &path]));
    until_asleep_in(&running, "percpu_rwsem_wait");
    signal(running.0.id(), "INT");
    signal(running.0.id(), "INT");
    let report = std::io::read_to_string(running.0.stdout.take().unwrap()).unwrap();
    let thawed = helper("fsfreeze", &["--unfreeze", &path]);
    finish(running).assert_status(130);
    thawed.unwrap();
    let document: Value = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"));
    assert_eq!(document["jobs"].as_array().map(Vec::len), Some(2), "{document}");
}

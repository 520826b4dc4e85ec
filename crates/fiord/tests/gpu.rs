//! The engine over libcuda and libcufile, on libraries that stand in for NVIDIA's: their memory of a GPU is out of reach of the
//! program but by their own calls.
//!
//! Invariant: what arrives in a file, or is verified, went through that memory; what was taken of the libraries is counted.
//!
//! With `FIORD_GPU=DIRECTORY` the tests of data use the libraries and the GPU of this machine: `cargo x gpu`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use fiord_testing::{need, skip};

use crate::common::{Dir, Ran, finish, fiord, helper, signal, start, until};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gpu/stand_in.c");

/// A job of 64 blocks on a file.
const JOB: &str = "--name=job --filename=data --size=1m --bs=16k --ioengine=libcufile --output-format=json";
const BLOCKS: u64 = 64;

/// The ways to the memory of the GPU: calls, batches, copies.
const WAYS: [&str; 5] = [
    "--direct=1",
    "--direct=1 --iodepth=32",
    "--cuda_io=posix",
    "--ioengine=psync --mem=cudamalloc",
    "--ioengine=libaio --direct=1 --iodepth=8 --mem=cudamalloc",
];

/// The directory of the libraries, which the first test compiles.
fn libraries() -> Result<&'static Path, String> {
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    if cfg!(target_feature = "crt-static") {
        return Err("a statically linked program cannot load libraries".to_string());
    }
    let make = || {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpu");
        fs::create_dir_all(&place).map_err(|error| error.to_string())?;
        let compile = |library: &str, part: &str, after: &[&str]| {
            // Another run of the tests may use them.
            let output = place.join(format!("{library}.{}", std::process::id())).display().to_string();
            let name = format!("-Wl,-soname,{library},-rpath,$ORIGIN");
            let fixed =
                ["-shared", "-fPIC", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", part, "-o", &output];
            helper("cc", &[&fixed[..], &[SOURCE, &name], after].concat())?;
            fs::rename(&output, place.join(library)).map_err(|error| error.to_string())
        };
        compile("libcuda.so.1", "-DCUDA", &[])?;
        let search = format!("-L{}", place.display());
        compile("libcufile.so.0", "-DCUFILE", &[&search, "-l:libcuda.so.1"])?;
        Ok(place)
    };
    MADE.get_or_init(make).as_deref().map_err(Clone::clone)
}

/// A directory, and where fiord finds the libraries.
struct Machine {
    dir: Dir,
    /// `None`: where the system has them.
    libraries: Option<&'static Path>,
}

impl Machine {
    /// One whose libraries stand in for those of NVIDIA.
    fn stand_in() -> Result<Machine, String> {
        Machine::with(Dir::new(), Some(libraries()?))
    }

    /// The same, or this machine itself.
    fn new() -> Result<Machine, String> {
        match std::env::var_os("FIORD_GPU") {
            Some(directory) => Machine::with(Dir::under(Path::new(&directory))?, None),
            None => Machine::stand_in(),
        }
    }

    /// One with direct I/O.
    fn with(dir: Dir, libraries: Option<&'static Path>) -> Result<Machine, String> {
        let probe = format!("if=/dev/zero of={} bs=4096 count=1 oflag=direct", dir.join("data").display());
        helper("dd", &probe.split(' ').collect::<Vec<_>>())?;
        Ok(Machine { dir, libraries })
    }

    /// The command, with what the libraries are to do.
    fn command(&self, told: &[(&str, &str)], line: &str) -> Command {
        let mut command = fiord(self.dir.path(), line);
        if let Some(libraries) = self.libraries {
            command.env("LD_LIBRARY_PATH", libraries).env("STAND_IN_LOG", self.dir.join("log"));
        }
        command.envs(told.iter().copied());
        command
    }

    fn told(&self, told: &[(&str, &str)], options: &str) -> Ran {
        finish(start(self.command(told, &format!("{JOB} {options}"))))
    }

    fn run(&self, options: &str) -> Ran {
        self.told(&[], options)
    }

    /// What was taken of the libraries and given back, in order.
    fn log(&self) -> Vec<String> {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default().lines().map(str::to_string).collect()
    }
}

/// I/Os and bytes of a direction, in a run without an error.
#[track_caller]
fn counted(ran: &Ran, direction: &str) -> [u64; 3] {
    let document = ran.assert_success().json();
    let job = &document["jobs"][0];
    assert_eq!(job["error"], 0, "{job}");
    let side = &job[direction];
    [&side["total_ios"], &side["io_bytes"], &side["clat_ns"]["N"]].map(|figure| figure.as_u64().unwrap())
}

const WHOLE: [u64; 3] = [BLOCKS, 1 << 20, BLOCKS];

// divergence: `mem=cudamalloc`
#[test]
fn data_go_through_the_memory_of_the_gpu_and_are_verified() {
    let machine = need!(Machine::new());
    let verified_elsewhere =
        "--name=job --filename=data --size=1m --bs=16k --rw=read --verify=crc32c --output-format=json";
    for way in WAYS {
        assert_eq!(
            counted(&machine.run(&format!("{way} --rw=randwrite --verify=crc32c")), "read"),
            WHOLE,
            "{way}"
        );
        assert_eq!(counted(&machine.dir.run(verified_elsewhere), "read"), WHOLE, "{way}");
        let pattern = format!("{way} --rw=randwrite --buffer_pattern=0xdeadbeef");
        assert_eq!(counted(&machine.run(&pattern), "write"), WHOLE, "{way}");
        let bytes = machine.dir.read("data");
        assert!(bytes.chunks(4).all(|word| word == [0xde, 0xad, 0xbe, 0xef]), "{way}");
    }
}

#[test]
fn data_that_were_changed_in_the_file_are_found_in_the_memory_of_the_gpu() {
    let machine = need!(Machine::new());
    for way in WAYS {
        machine.run(&format!("{way} --rw=write --verify=crc32c --do_verify=0")).assert_success();
        let mut bytes = machine.dir.read("data");
        bytes[500_000] ^= 1;
        machine.dir.write("data", bytes);
        let ran = machine.run(&format!("{way} --rw=read --verify=crc32c"));
        ran.assert_status(1).assert_prints(&["EILSEQ", "491520"]);
    }
}

// divergence: contents of writes with `ioengine=libcufile`
#[test]
fn contents_are_copied_to_the_gpu_once_unless_each_write_has_its_own() {
    let machine = need!(Machine::new());
    let distinct = |options: &str| {
        machine.run(&format!("--rw=write {options}")).assert_success();
        let bytes = machine.dir.read("data");
        let blocks: std::collections::BTreeSet<&[u8]> = bytes.chunks(16 << 10).collect();
        assert!(!blocks.contains(&[0_u8; 16 << 10][..]), "{options}");
        blocks.len() as u64
    };
    for way in WAYS {
        assert_eq!(distinct(&format!("{way} --refill_buffers")), BLOCKS, "{way}");
    }
    assert_eq!(distinct("--direct=1"), 1);
    assert_eq!(distinct(WAYS[3]), 1);
    assert!(distinct("--direct=1 --iodepth=4") <= 4);
}

// divergence: `iodepth` with `ioengine=libcufile`
#[test]
fn each_io_is_counted_once_also_in_batches() {
    let machine = need!(Machine::stand_in());
    for way in WAYS {
        assert_eq!(counted(&machine.run(&format!("{way} --rw=randwrite")), "write"), WHOLE, "{way}");
        assert_eq!(counted(&machine.run(&format!("{way} --rw=randread")), "read"), WHOLE, "{way}");
        // Syncs and trims are the kernel's.
        assert_eq!(counted(&machine.run(&format!("{way} --rw=write --fsync=8")), "write"), WHOLE, "{way}");
    }
    let _ = fs::remove_file(machine.dir.join("log"));
    let batched = "--direct=1 --rw=read --iodepth=8 --iodepth_batch_submit=8 --iodepth_batch_complete_min=8";
    assert_eq!(counted(&machine.run(batched), "read"), WHOLE);
    let submitted: Vec<String> =
        machine.log().into_iter().filter(|line| line.starts_with("submit")).collect();
    assert_eq!(submitted, vec!["submit 8"; 8]);
}

#[test]
fn a_transfer_that_ends_short_is_continued() {
    let machine = need!(Machine::stand_in());
    for way in &WAYS[..2] {
        let ran = machine.told(&[("STAND_IN_SHORT", "1")], &format!("{way} --rw=randwrite --verify=crc32c"));
        assert_eq!(counted(&ran, "read")[..2], WHOLE[..2], "{way}");
        let job = ran.json()["jobs"][0].clone();
        assert!(job["read"]["short_ios"].as_u64() > Some(0), "{job}");
    }
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    let machine = need!(Machine::stand_in());
    for way in &WAYS[..2] {
        let _ = fs::remove_file(machine.dir.join("log"));
        let line = format!("{JOB} {way} --rw=randread --loops=20");
        let running = start(machine.command(&[], &line));
        until("the file is registered", || machine.log().contains(&"take file".to_string()));
        signal(running.0.id(), "STOP");
        signal(running.0.id(), "CONT");
        assert_eq!(counted(&finish(running), "read")[0], 20 * BLOCKS, "{way}");
    }
}

#[test]
fn errors_of_either_library_end_the_job_by_name_and_number() {
    let machine = need!(Machine::stand_in());
    let batch = "--direct=1 --rw=write --iodepth=8 --verify=crc32c";
    let plain = "--direct=1 --rw=read";
    let queued = &format!("{} --rw=write", WAYS[4]);
    let cases: [(&str, &str, i64, &[&str]); 15] = [
        ("cuInit:100:1", plain, 19, &["cuInit", "CUDA_ERROR_NO_DEVICE (100)", "nvidia-smi -L"]),
        ("cuMemAlloc:2:1", plain, 12, &["cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY (2)", "smaller iodepth"]),
        (
            "cuFileDriverOpen:5001:1",
            plain,
            5001,
            &["CU_FILE_DRIVER_NOT_INITIALIZED (5001)", "modprobe nvidia-fs"],
        ),
        (
            "cuFileBufRegister:5036:1",
            plain,
            5036,
            &["CU_FILE_GPU_MEMORY_PINNING_FAILED (5036)", "cufile.json"],
        ),
        ("cuFileHandleRegister:5027:1", plain, 5027, &["5027", "ID_FS_USAGE", "ID_FS_TYPE", "direct=1"]),
        ("cuFileHandleRegister:5018:1", batch, 5018, &["CU_FILE_INVALID_FILE_TYPE (5018)", "ID_FS_USAGE"]),
        ("cuFileRead:5:7", plain, 5, &["Input/output error (EIO)"]),
        ("cuFileRead:5044:7", plain, 5044, &["CU_FILE_IO_ERROR (5044)", "cufile.log"]),
        ("batch:5:7", batch, 5, &["Input/output error (EIO)"]),
        ("batch:5024:7", batch, 5024, &["CU_FILE_MEMORY_NOT_REGISTERED (5024)"]),
        ("cuFileBatchIOSubmit:5035:3", batch, 5035, &["CU_FILE_BATCH_SUBMIT_FAILED (5035)"]),
        ("cuMemcpyHtoD:700:3", batch, 5011, &["CUDA_ERROR_ILLEGAL_ADDRESS (700)"]),
        ("cuMemAlloc:2:1", WAYS[3], 12, &["cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY (2)"]),
        ("cuMemcpyHtoD:700:3", WAYS[3], 5011, &["CUDA_ERROR_ILLEGAL_ADDRESS (700)"]),
        ("cuMemcpyDtoH:700:3", queued, 5011, &["CUDA_ERROR_ILLEGAL_ADDRESS (700)"]),
    ];
    for (failure, options, error, parts) in cases {
        let ran = machine.told(&[("STAND_IN_FAIL", failure)], options);
        assert_eq!(ran.assert_status(1).json()["jobs"][0]["error"], error, "{failure}: {ran:?}");
        ran.assert_prints(parts);
        assert!(!ran.all_output().contains("Unknown error"), "{ran:?}");
    }
    let at_once = machine.run("--ioengine=null --iodepth=2 --mem=cudamalloc --rw=read");
    at_once.assert_status(1).assert_prints(&["mem=cudamalloc", "use iodepth=1"]);
    let deep = machine.run("--direct=1 --rw=read --iodepth=200");
    deep.assert_status(1).assert_prints(&["CU_FILE_INTERNAL_ERROR (5030)", "io_batchsize"]);
}

/// The sentence of the finding about the way that bytes took.
fn copied(ran: &Ran) -> Option<String> {
    let document = ran.assert_success().json();
    let findings = document["findings"].as_array().unwrap().clone();
    let of_way = findings.iter().find(|finding| finding["code"] == "gds-compat")?;
    Some(of_way["sentence"].as_str().unwrap().to_string())
}

#[test]
fn bytes_that_went_through_the_memory_of_the_machine_are_found() {
    let machine = need!(Machine::stand_in());
    let (none, partly) = (("STAND_IN_WAYS", "0.0:0:2:f"), ("STAND_IN_COPIED", "20"));
    for way in &WAYS[..2] {
        let line = format!("{way} --rw=read");
        let found = |told: &[(&str, &str)]| copied(&machine.told(told, &line));
        assert_eq!(found(&[]), None, "{way}: directly");
        let all = "all bytes went to the GPU or from it through the memory of this machine: nvidia-fs is not loaded";
        assert_eq!(found(&[none]).unwrap(), all, "{way}");
        assert_eq!(
            found(&[partly]).unwrap(),
            "cuFile counted 40 I/Os through the memory of this machine",
            "{way}: also of storage that is supported"
        );
        assert_eq!(found(&[none, ("STAND_IN_COPIED", "0")]), None, "{way}: counts say more");
        assert_eq!(found(&[none, ("STAND_IN_FAIL", "cuFileDriverGetProperties:5030:1")]), None, "{way}");
    }
    let job = "--filename=data --size=1m --bs=16k --ioengine=libcufile --direct=1 --rw=read";
    let one_after_another =
        machine.told(&[partly], &format!("--direct=1 --rw=read --name=next --stonewall {job}"));
    assert!(copied(&one_after_another).unwrap().contains("80 I/Os"), "the driver was closed in between");
    let posix = machine.told(&[none], "--cuda_io=posix --rw=read");
    assert_eq!(copied(&posix), None, "as the job asks for");
}

/// The directory of the PCI device that a file is below, in `/sys`; `None` if its disk is none.
fn pci_device_below(file: &Path) -> Option<PathBuf> {
    use std::os::linux::fs::MetadataExt as _;
    let number = fs::metadata(file).ok()?.st_dev();
    let [major, minor] = [number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xf_ff00];
    let disk = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let is_function = |dir: &&Path| dir.join("vendor").exists() && dir.join("class").exists();
    disk.ancestors().find(is_function).map(Path::to_path_buf)
}

#[test]
fn a_gpu_that_is_far_from_the_disk_is_found() {
    let machine = need!(Machine::stand_in());
    let Some(own) = pci_device_below(&machine.dir.join("data")) else {
        skip!("the disk here is no PCI device");
    };
    // Any other device directly on the same bus is behind no port in common.
    let bus = own.parent().unwrap();
    let beside = fs::read_dir(bus).unwrap().flatten().map(|entry| entry.path());
    let Some(other) = beside.into_iter().find(|dir| *dir != own && dir.join("vendor").exists()) else {
        skip!("no other PCI device is beside the disk here");
    };
    if !bus.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pci")) {
        skip!("the disk here is behind a port");
    }
    let found = |gpu: &Path, way: &str| {
        let address = gpu.file_name().unwrap().to_str().unwrap().to_uppercase();
        let ran = machine.told(&[("STAND_IN_PCI", &address)], &format!("{way} --rw=read"));
        ran.assert_success().all_output().contains("gpu-far")
    };
    for way in WAYS {
        assert!(found(&other, way), "{way}");
        assert!(!found(&own, way), "{way}: the same place");
        assert!(!found(Path::new("0000:FF:1F.7"), way), "{way}: a place that is not known");
    }
}

#[test]
fn a_check_moves_its_samples_to_the_gpu() {
    let machine = need!(Machine::stand_in());
    let check = |told: &[(&str, &str)], line: &str| {
        let _ = fs::remove_file(machine.dir.join("log"));
        finish(start(machine.command(told, &format!("check {line} --size=8M --no-history"))))
    };
    let ran = check(&[("STAND_IN_WAYS", "0.0:0:2:f")], "ai-training --gpu --time=1s --trust=on --json .");
    assert!([Some(0), Some(4), Some(6)].contains(&ran.status), "{ran:?}");
    ran.assert_prints(&["gds-compat"]);
    let log = machine.log();
    assert!(log.iter().filter(|line| *line == "take memory on 0").count() > 8, "{log:?}");
    assert_given_back(&log);
    let job = check(&[], "ai-training --gpu --show-job").assert_success().all_output();
    assert!(job.contains("ioengine=libcufile") && !job.contains("psync"), "{job}");
    check(&[], "etcd --gpu .").assert_status(1).assert_prints(&["etcd has no line ioengine=psync", "--show"]);
    assert!(machine.log().is_empty());
}

// divergence: `direct=0` with `ioengine=libcufile`
#[test]
fn what_does_not_fit_is_refused_before_anything_is_opened() {
    let dir = Dir::new();
    for (options, part) in [
        ("--rw=write", "needs direct=1"),
        ("--rw=write --cuda_io=posix --iodepth=2", "one I/O at a time"),
        ("--rw=write --direct=1 --io_submit_mode=offload", "leave io_submit_mode out"),
        ("--rw=write --direct=1 --gpu_dev_ids=0,1", "is not a number"),
        ("--rw=write --direct=1 --cuda_io=nvme", "cuda_io"),
        ("--rw=write --direct=1 --rocm_io=hipfile", "rocm_io"),
        ("--rw=write --direct=1 --mem=cudamalloc", "leave mem= out"),
        (
            "--rw=write --ioengine=psync --io_submit_mode=offload --mem=cudamalloc",
            "leave io_submit_mode= out",
        ),
        ("--rw=write --direct=1 --ioengine=libhipfile", "engine libhipfile not loadable"),
    ] {
        dir.run(&format!("{JOB} {options}")).assert_status(1).assert_prints(&[part]);
    }
    assert!(dir.contents().is_empty());
}

#[test]
fn libraries_that_are_missing_are_named_with_what_to_install() {
    let (dir, here) = (Dir::new(), need!(libraries()));
    let half = Dir::new();
    fs::copy(here.join("libcuda.so.1"), half.join("libcuda.so.1")).unwrap();
    dir.write("data", vec![0; 1 << 20]);
    for (path, library, package) in
        [(dir.path(), "libcuda.so.1", "libcuda1"), (half.path(), "libcufile.so.0", "libcufile0")]
    {
        let mut command = fiord(dir.path(), &format!("{JOB} --rw=read --direct=1"));
        let ran = finish(start({
            command.env("LD_LIBRARY_PATH", path);
            command
        }));
        if !ran.all_output().contains("dlopen") {
            skip!("this machine has {library}");
        }
        ran.assert_status(1)
            .assert_prints(&[&format!("dlopen({library})"), &format!("apt-get install {package}")]);
    }
}

// divergence: `gpu_dev_ids`
#[test]
fn jobs_take_turns_on_the_gpus() {
    let machine = need!(Machine::stand_in());
    let turns = |options: &str| -> [usize; 4] {
        let _ = fs::remove_file(machine.dir.join("log"));
        let line = format!("{options} --rw=read --direct=1 --group_reporting");
        machine.told(&[("STAND_IN_GPUS", "4")], &line).assert_success();
        let log = machine.log();
        [0, 1, 2, 3].map(|gpu| log.iter().filter(|line| **line == format!("take memory on {gpu}")).count())
    };
    assert_eq!(turns("--numjobs=3"), [3, 0, 0, 0]);
    assert_eq!(turns("--numjobs=5 --gpu_dev_ids=3:1"), [0, 2, 0, 3]);
    let none = machine.run("--rw=read --direct=1 --gpu_dev_ids=7");
    none.assert_status(1).assert_prints(&["CUDA_ERROR_INVALID_DEVICE (101)", "set gpu_dev_ids="]);
}

#[test]
fn io_that_never_completes_does_not_hold_up_the_end() {
    let machine = need!(Machine::stand_in());
    let line = format!("{JOB} --direct=1 --rw=read --iodepth=8");
    let running = start(machine.command(&[("STAND_IN_HANG", "1")], &line));
    until("operations are in flight", || machine.log().contains(&"submit 1".to_string()));
    signal(running.0.id(), "INT");
    let ran = finish(running);
    assert!(ran.status.is_some(), "it was killed: {ran:?}");
    assert_eq!(ran.json()["jobs"][0]["read"]["total_ios"], 0);
}

#[test]
fn a_run_that_is_interrupted_reports_what_it_did() {
    let machine = need!(Machine::stand_in());
    // The kernel does not count what libaio reads among the bytes that a process has read.
    for way in &WAYS[..4] {
        let _ = fs::remove_file(machine.dir.join("log"));
        let line = format!("{JOB} {way} --rw=randread --time_based --runtime=1000");
        let running = start(machine.command(&[], &line));
        until("memory is taken", || machine.log().contains(&"take memory on 0".to_string()));
        crate::common::until_moved(&running, 8 << 20);
        signal(running.0.id(), "INT");
        let ran = finish(running);
        let job = ran.json()["jobs"][0].clone();
        assert!(job["error"] == 0 && job["read"]["total_ios"].as_u64() > Some(64), "{way}: {job}");
        assert_given_back(&machine.log());
    }
}

/// Everything that was taken was given back.
#[track_caller]
fn assert_given_back(log: &[String]) {
    let mut held: Vec<&str> = Vec::new();
    for line in log {
        match (line.strip_prefix("take "), line.strip_prefix("give ")) {
            (Some(taken), _) => held.push(taken),
            (_, Some(given)) => {
                let place = held.iter().rposition(|taken| *taken == given);
                held.remove(
                    place.unwrap_or_else(|| panic!("{given} was given back without being taken: {log:?}")),
                );
            }
            (None, None) => {}
        }
    }
    assert!(held.is_empty() && !log.is_empty(), "{held:?} of {log:?}");
}

#[test]
fn what_was_taken_of_the_libraries_is_given_back() {
    let machine = need!(Machine::stand_in());
    for (told, options) in [
        (None, "--direct=1 --rw=write"),
        (None, "--direct=1 --rw=write --iodepth=8 --numjobs=3 --stonewall"),
        (None, "--cuda_io=posix --rw=write --numjobs=2"),
        (Some("batch:5:7"), "--direct=1 --rw=write --iodepth=8"),
        (Some("cuFileHandleRegister:5027:1"), "--direct=1 --rw=write --iodepth=8"),
        (Some("cuFileBatchIOSetUp:5039:1"), "--direct=1 --rw=write --iodepth=8"),
        (Some("cuFileBufRegister:5036:1"), "--direct=1 --rw=write"),
        (Some("cuFileDriverOpen:5001:1"), "--direct=1 --rw=write"),
    ] {
        let _ = fs::remove_file(machine.dir.join("log"));
        let told: Vec<(&str, &str)> = told.iter().map(|failure| ("STAND_IN_FAIL", *failure)).collect();
        machine.told(&told, options).assert_status(i32::from(!told.is_empty()));
        assert_given_back(&machine.log());
    }
}

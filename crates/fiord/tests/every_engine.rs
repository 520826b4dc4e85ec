//! The tests that engines share (`fiord_plan::EngineTest`): the same body for each engine that declares one.
//!
//! Invariant: a fault is one of the kernel: the file is on a file system whose server is the test. What an engine declares
//! is tested: a test that is named exists, and all engines of the registry are asked.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fiord_engine::registry::{self, ENGINES};
use fiord_plan::{EngineDescriptor, EngineTest, FileUse, Tested};
use fiord_testing::{need, skipped};
use serde_json::Value;

use crate::common::fuse::{Asked, Fuse, Reply};
use crate::common::{Dir, Ran, Running, finish, fiord, helper, signal, start, until, until_asleep_in};

const BYTES: u64 = 256 << 10;
const BLOCK: u64 = 4096;
const BLOCKS: u64 = BYTES / BLOCK;

const EIO: i64 = 5;

/// A job that is independent of the fault, and must not be affected.
const BYSTANDER: &str = "--name=bystander --ioengine=null --rw=read --bs=4k --size=1m";

/// The engines that are put to a test together, and work here.
fn together(test: EngineTest) -> Vec<&'static EngineDescriptor> {
    let works = registry::probe().unwrap();
    let is_tested =
        |engine: &&EngineDescriptor| engine.tests.is_some_and(|tests| tests.of(test) == Tested::Together);
    let refused = |engine: &EngineDescriptor| {
        works.iter().find(|probed| probed.engine.name == engine.name).unwrap().works.err()
    };
    let engines = ENGINES.0.iter().copied().filter(is_tested);
    engines
        .filter(|engine| match refused(engine) {
            Some(why) => {
                skipped(format!("{}: {why}", engine.name));
                false
            }
            None => true,
        })
        .collect()
}

/// Each engine of a test, with a file system of its own whose requests for data are answered by what `answer` makes.
fn on_a_file_system<F: FnMut(&Asked) -> Reply + Send + 'static>(
    test: EngineTest,
    mut answer: impl FnMut() -> F,
    body: impl Fn(&EngineDescriptor, &Dir, Fuse),
) {
    for engine in together(test) {
        let dir = Dir::new();
        let place = need!(Fuse::mount(&dir, "place", BYTES, engine.maps_files(), answer()));
        #[allow(clippy::print_stdout, reason = "a test that fails shows where")]
        {
            println!("{}", engine.name);
        }
        body(engine, &dir, place);
    }
}

/// The options of a job on the file.
fn job_on(engine: &EngineDescriptor, options: &str) -> String {
    format!(
        "--name=job --filename=place/data --size={BYTES} --bs=4k --ioengine={} --iodepth=4 {options}",
        engine.name
    )
}

fn run(dir: &Dir, engine: &EngineDescriptor, options: &str) -> Ran {
    dir.run(&format!("--output-format=json {BYSTANDER} {}", job_on(engine, options)))
}

#[track_caller]
fn job(document: &Value, name: &str) -> Value {
    let jobs = document["jobs"].as_array().unwrap();
    jobs.iter().find(|job| job["jobname"] == name).unwrap_or_else(|| panic!("no {name}: {document}")).clone()
}

/// A run in which everything was done.
#[track_caller]
fn whole(ran: &Ran, direction: &str) -> Value {
    let job = job(&ran.assert_success().json(), "job");
    assert_eq!(job["error"], 0, "{job}");
    let side = &job[direction];
    let figures = (side["total_ios"].as_u64(), side["io_bytes"].as_u64(), side["clat_ns"]["N"].as_u64());
    assert_eq!(figures, (Some(BLOCKS), Some(BYTES), Some(BLOCKS)), "{job}");
    job
}

/// A run in which the job failed with one of these errors, and the other did not.
#[track_caller]
fn failed(ran: &Ran, errors: &[i64]) -> Value {
    let document = ran.assert_status(1).json();
    let (failed, other) = (job(&document, "job"), job(&document, "bystander"));
    assert!(errors.contains(&failed["error"].as_i64().unwrap()), "{failed}");
    assert_eq!((other["error"].as_i64(), other["read"]["io_bytes"].as_i64()), (Some(0), Some(1 << 20)));
    failed
}

/// The directions that an engine on files can be used in.
fn directions(engine: &EngineDescriptor) -> &'static [&'static str] {
    // One that only sets sizes has writes alone.
    if engine.transfers_data() { &["write", "read"] } else { &["write"] }
}

#[test]
fn every_engine_declares_its_tests_and_what_it_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for engine in ENGINES.0 {
        let tests = engine.tests.unwrap_or_else(|| panic!("{} declares none", engine.name));
        for test in EngineTest::ALL {
            match tests.of(test) {
                Tested::By(file, function) => {
                    let text = fs::read_to_string(root.join(file)).unwrap_or_default();
                    assert!(text.contains(&format!("fn {function}(")), "{}: {file}: {function}", engine.name);
                }
                Tested::Never(why) => assert!(!why.is_empty(), "{}: {test:?}", engine.name),
                Tested::Together => {}
            }
        }
    }
}

#[test]
fn data_written_are_those_that_arrive_and_data_read_those_that_were_sent() {
    on_a_file_system(
        EngineTest::Data,
        || |_: &Asked| Reply::Whole,
        |engine, dir, place| {
            whole(&run(dir, engine, "--rw=randread --verify=pattern --verify_pattern=0x07"), "read");
            whole(&run(dir, engine, "--rw=randwrite --buffer_pattern=0xdeadbeef"), "write");
            let bytes = place.bytes();
            assert_eq!(bytes.len() as u64, BYTES);
            assert!(bytes.chunks(4).all(|word| word == [0xde, 0xad, 0xbe, 0xef]), "{}", engine.name);
            let verified = run(dir, engine, "--rw=randwrite --verify=crc32c --do_verify=1");
            assert_eq!(
                job(&verified.assert_success().json(), "job")["read"]["total_ios"].as_u64(),
                Some(BLOCKS)
            );
        },
    );
}

#[test]
fn each_io_is_counted_and_is_a_request() {
    on_a_file_system(
        EngineTest::Counts,
        || |_: &Asked| Reply::Whole,
        |engine, dir, place| {
            for direction in directions(engine) {
                let before = place.requests();
                whole(&run(dir, engine, &format!("--rw={direction}")), direction);
                let requests = place.requests() - before;
                assert!(
                    requests >= if engine.maps_files() { 1 } else { BLOCKS },
                    "{}: {requests}",
                    engine.name
                );
            }
        },
    );
}

#[test]
fn transfers_that_end_short_are_continued() {
    let half = || |asked: &Asked| if asked.length > 1024 { Reply::Half } else { Reply::Whole };
    on_a_file_system(EngineTest::Short, half, |engine, dir, place| {
        whole(&run(dir, engine, "--rw=randwrite --buffer_pattern=0x5a"), "write");
        assert!(place.bytes().iter().all(|byte| *byte == 0x5a), "{}", engine.name);
        let read = run(dir, engine, "--rw=randread --verify=pattern --verify_pattern=0x5a");
        whole(&read, "read");
        // Each I/O took more than one request.
        assert!(place.requests() >= 4 * BLOCKS, "{}: {}", engine.name, place.requests());
    });
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    let slow = || |_: &Asked| Reply::After(Duration::from_millis(2));
    on_a_file_system(EngineTest::Interrupted, slow, |engine, dir, place| {
        for direction in directions(engine) {
            let before = place.requests();
            let line =
                format!("--output-format=json {BYSTANDER} {}", job_on(engine, &format!("--rw={direction}")));
            let running = start(fiord(dir.path(), &line));
            until("requests arrive", || place.requests() > before);
            for _ in 0..10 {
                signal(running.0.id(), "STOP");
                signal(running.0.id(), "CONT");
            }
            whole(&finish(running), direction);
        }
    });
}

#[test]
fn an_error_in_the_middle_ends_the_job_and_no_other() {
    let second_half = || {
        |asked: &Asked| match asked.offset >= BYTES / 2 {
            true => Reply::Error(EIO as i32),
            false => Reply::Whole,
        }
    };
    on_a_file_system(EngineTest::Error, second_half, |engine, dir, _place| {
        for direction in directions(engine) {
            // What is written to a mapping goes to the file when it is unmapped.
            if engine.maps_files() && *direction == "write" {
                continue;
            }
            let ran = run(dir, engine, &format!("--rw={direction} --iodepth=1"));
            let job = failed(&ran, &[EIO]);
            assert_eq!(job[direction]["io_bytes"].as_u64(), Some(BYTES / 2), "{}: {job}", engine.name);
            let named = format!("place/data at offset {}", BYTES / 2);
            ran.assert_prints(&[direction, &named, "EIO"]);
        }
    });
}

#[test]
fn a_target_that_is_taken_away_ends_the_job_and_no_other() {
    const GONE: [i64; 3] = [EIO, 103, 107];
    let vanishes = || |asked: &Asked| if asked.number < 16 { Reply::Whole } else { Reply::Vanish };
    on_a_file_system(EngineTest::Gone, vanishes, |engine, dir, _place| {
        let direction = directions(engine).last().unwrap();
        failed(&run(dir, engine, &format!("--rw={direction}")), &GONE);
    });
}

/// The report of a run that hangs, which is interrupted twice, before its threads are released.
fn interrupted(mut running: Running, release: impl FnOnce()) -> (Value, Ran) {
    signal(running.0.id(), "INT");
    signal(running.0.id(), "INT");
    let report = std::io::read_to_string(running.0.stdout.take().unwrap()).unwrap();
    release();
    let document = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {report}"));
    (document, finish(running))
}

// divergence: a second and third SIGINT
#[test]
fn io_that_never_completes_does_not_hold_up_the_end() {
    let hangs = || |asked: &Asked| if asked.number < 16 { Reply::Whole } else { Reply::Never };
    on_a_file_system(EngineTest::Stuck, hangs, |engine, dir, place| {
        let direction = directions(engine).last().unwrap();
        let line =
            format!("--output-format=json {BYSTANDER} {}", job_on(engine, &format!("--rw={direction}")));
        let running = start(fiord(dir.path(), &line));
        until("a request is not answered", || place.requests() > 16);
        let (document, ran) = interrupted(running, || drop(place));
        ran.assert_status(130);
        assert_eq!(job(&document, "bystander")["error"], 0, "{}: {document}", engine.name);
        let moved = job(&document, "job")[direction]["io_bytes"].as_u64();
        assert!(moved <= Some(BYTES) && moved.is_some(), "{}: {document}", engine.name);
    });
}

/// A call on a name of a file system that has stopped: those that change it wait for a frozen one, those that look it up
/// for a server that does not answer.
#[test]
fn a_call_on_a_name_that_never_returns_does_not_hold_up_the_end() {
    for engine in ENGINES.0.iter().filter(|engine| engine.name_call().is_some()) {
        match engine.name.word() {
            "filestat" => on_a_server_that_stops(engine, "place/data"),
            "dirstat" => on_a_server_that_stops(engine, "place"),
            _ => on_a_frozen_file_system(engine),
        }
    }
}

fn on_a_frozen_file_system(engine: &EngineDescriptor) {
    const NAMES: usize = 200;
    let dir = Dir::new();
    let device = need!(crate::common::LoopDevice::new(&dir, 64 << 20));
    let mount = need!(crate::common::Mount::ext4(&dir, &device));
    let place = mount.path.join("names");
    fs::create_dir(&place).unwrap();
    let names = || fs::read_dir(&place).map_or(0, Iterator::count);
    let line = format!(
        "--output-format=json {BYSTANDER} --name=job --ioengine={} --filesize=4k --bs=4k --nrfiles={NAMES} \
         --rate_iops=10 --directory={}",
        engine.name,
        place.display()
    );
    let running = start(fiord(dir.path(), &line));
    // Names that a job removes are made first, and all of them may be there for an instant only.
    let (removes, mut most) = (engine.name.word().ends_with("delete"), 0);
    until("the first names are called", || {
        let now = names();
        most = most.max(now);
        if removes { most > NAMES / 2 && now < most } else { now > 0 }
    });
    let path = mount.path.to_string_lossy().into_owned();
    need!(helper("fsfreeze", &["--freeze", &path]));
    until_asleep_in(&running, "percpu_rwsem_wait");
    let (document, ran) = interrupted(running, || drop(helper("fsfreeze", &["--unfreeze", &path])));
    ran.assert_status(130);
    assert_eq!(job(&document, "bystander")["error"], 0, "{}: {document}", engine.name);
}

fn on_a_server_that_stops(engine: &EngineDescriptor, name: &str) {
    let dir = Dir::new();
    let place = need!(Fuse::mount(&dir, "place", BYTES, false, |_: &Asked| Reply::Whole));
    let line = format!(
        "--output-format=json {BYSTANDER} --name=job --ioengine={} --filename={name} --filesize={BYTES} \
         --bs={BYTES} --time_based --runtime=600 --rate_iops=100",
        engine.name
    );
    let running = start(fiord(dir.path(), &line));
    // More than what comes before the calls.
    until("the name is looked up again and again", || place.requests_of_any_kind() > 200);
    place.stop_answering();
    until_asleep_in(&running, "request_wait_answer");
    let (document, ran) = interrupted(running, || drop(place));
    ran.assert_status(130);
    assert_eq!(job(&document, "bystander")["error"], 0, "{}: {document}", engine.name);
}

/// The sections of a job on an engine: one for each end of a connection, otherwise one.
fn sections(engine: &EngineDescriptor, number: usize) -> String {
    let names = if engine.name_call().is_some() { "filesize=16k\nnrfiles=2\n" } else { "" };
    let own = match engine.name.word() {
        "cpuio" => "cpuload=100\ncpuchunks=500\nnumber_ios=2\n",
        "exec" => "program=true\nstd_redirect=0\n",
        "e4defrag" => "donorname=donor\ninplace=1\n",
        _ => "",
    };
    let common = format!("ioengine={}\nbs=4k\nsize=64k\niodepth=4\n{own}{names}", engine.name);
    match engine.files {
        FileUse::Connected(_) => format!(
            "[reader{number}]\nstonewall\n{common}protocol=unix\nfilename=socket\nrw=read\n\
             [writer{number}]\n{common}protocol=unix\nfilename=socket\nrw=write\n"
        ),
        _ => format!("[job{number}]\nstonewall\n{common}rw=write\n"),
    }
}

/// (Mappings, descriptors, threads) of a process after this number of jobs on an engine, one after another.
fn held_after(engine: &EngineDescriptor, jobs: usize) -> (usize, usize, usize) {
    let dir = Dir::new();
    let mut text: String = (0..jobs).map(|number| sections(engine, number)).collect();
    // It runs until it is interrupted, and shows that the others have ended.
    text += "[last]\nstonewall\nioengine=null\nsize=1g\nrate_iops=20\ntime_based\nruntime=600\nexec_prerun=touch reached\n";
    dir.write("jobs.fio", text);
    let running = start(fiord(dir.path(), "--output-format=json --trust=off jobs.fio"));
    until("the last job is reached", || dir.join("reached").exists());
    let process = format!("/proc/{}", running.0.id());
    let count = |part: &str| fs::read_dir(format!("{process}/{part}")).map_or(0, Iterator::count);
    let look = || {
        let maps = fs::read_to_string(format!("{process}/maps")).unwrap_or_default();
        (maps.lines().count(), count("fd"), count("task"))
    };
    // Until the command before it has ended and its thread is at work.
    let (mut held, mut same) = (look(), 0);
    until("nothing changes", || {
        let now = look();
        same = if now == held { same + 1 } else { 0 };
        held = now;
        same == 50
    });
    signal(running.0.id(), "INT");
    let ran = finish(running);
    let document = ran.assert_status(130).json();
    let ended = document["jobs"].as_array().unwrap();
    assert!(ended.len() > jobs && ended.iter().all(|job| job["error"] == 0), "{document}");
    held
}

#[test]
fn what_a_job_took_is_given_back_when_it_has_ended() {
    const FEW: usize = 2;
    const MANY: usize = 26;
    let null = ENGINES.0.iter().find(|engine| engine.name.word() == "null").unwrap();
    // What a report keeps of each job is kept whatever its engine.
    let grown = |engine| {
        let (few, many) = (held_after(engine, FEW), held_after(engine, MANY));
        assert_eq!((few.1, few.2), (many.1, many.2), "{}: descriptors, threads", engine.name);
        many.0.saturating_sub(few.0)
    };
    let of_none = grown(null);
    for engine in together(EngineTest::GivenBack) {
        if engine.name.word() == "e4defrag" && !is_ext4() {
            skipped("e4defrag: the build directory is not on ext4");
            continue;
        }
        let of_engine = grown(engine);
        assert!(
            of_engine < of_none + (MANY - FEW) / 2,
            "{}: {of_engine} mappings more after {} jobs, {of_none} without I/O",
            engine.name,
            MANY - FEW
        );
    }
}

fn is_ext4() -> bool {
    helper("stat", &["-f", "-c", "%T", env!("CARGO_TARGET_TMPDIR")]).is_ok_and(|kind| kind == "ext2/ext3")
}

//! Engines defined by a test, from the text of an option to the report of a run on them.
//!
//! Invariant: what a new engine needs is one file (`own_engine/guasi.rs`) and one line in the list of engines.

mod own_engine {
    pub mod guasi;
    pub mod volume;
}

use std::path::Path;
use std::sync::Arc;

use fiord_engine::EngineDefinition;
use fiord_engine::engines::Null;
use fiord_options::cli;
use fiord_options::environment::{Environment, KeywordValues};
use fiord_plan::{
    Action, EngineDescriptor, Engines, Facts, Geometry, GeometryNeed, NoGeometry, PathFacts, Plan,
    RunSettings,
};
use fiord_sys::errno::Errno;
use fiord_worker::{EndReason, Moment, RunResult, RunnableEngine, Watcher, WorkerReport};
use own_engine::guasi::Guasi;
use own_engine::volume::{VOLUME_BYTES, Volume, with_volume};

/// The test's list of engines, with the line for the new one.
macro_rules! engines {
    ($($engine:ty,)+) => {
        const DESCRIPTORS: &[&EngineDescriptor] = &[$(<$engine>::DESCRIPTOR),+];
        const RUNNABLE: &[RunnableEngine] = &[$(RunnableEngine::of::<$engine>()),+];
    };
}
engines! {
    Null,
    Guasi,
    Volume,
}

struct Unobserved;

impl Watcher for Unobserved {
    fn snapshot(&mut self, _reports: Vec<WorkerReport>, _moment: Moment) {}
}

/// Plans a command line for a program with these engines.
fn planned(line: &str, engines: Engines) -> Result<Plan, String> {
    let names = engines.names();
    let environment = Environment {
        files: &|_| Err(std::io::Error::from(std::io::ErrorKind::NotFound)),
        variables: &|_| None,
        keywords: KeywordValues { cpus: 1, memory_mib: 1000, page_bytes: 4096 },
        engines: &names,
    };
    let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    let sections = cli::read(&words, &environment).expect("the words make a job").sections;
    let mut facts = Facts { engines, ..Facts::default() };
    let needs = fiord_plan::needs(&sections, engines, &RunSettings::default());
    facts.geometries = needs.geometries.into_iter().map(answered).collect();
    for path in needs.paths {
        facts.paths.insert(path, PathFacts { exists: true, is_directory: true, ..PathFacts::absent() });
    }
    let plan = fiord_plan::build(&sections, &[], &facts, &RunSettings::default());
    plan.map(|(plan, _)| plan).map_err(|refusal| refusal.problems[0].message())
}

/// The engine's answer.
fn answered(need: GeometryNeed) -> (GeometryNeed, Result<Geometry, NoGeometry>) {
    let ask = need.engine.descriptor.geometry.expect("only engines that can be asked");
    let answer = ask(&need.engine.settings, &need.target);
    (need, answer)
}

fn run(line: &str, engines: &[RunnableEngine]) -> RunResult {
    let plan = planned(line, Engines(DESCRIPTORS)).expect("the job can be planned");
    fiord_worker::run(&Arc::new(plan), engines, &mut Unobserved)
}

#[test]
fn an_engine_of_one_file_and_one_line_runs_a_job() {
    for depth in ["1", "8"] {
        let line = format!("--name=a --ioengine=guasi --rw=write --bs=4k --size=1m --iodepth={depth}");
        let result = run(&line, RUNNABLE);
        let worker = &result.workers[0];
        assert_eq!(worker.failure, None);
        assert_eq!(worker.reason, EndReason::Size);
        let writes = &worker.stats.directions[1];
        assert_eq!((writes.ios, writes.bytes), (256, 1 << 20));
        // Its descriptor says that it is synchronous, so the depth stays at 1.
        assert_eq!(worker.stats.depth.counts[0], 256);
    }
}

#[test]
fn an_error_is_explained_by_its_descriptor() {
    let plan = planned("--name=a --ioengine=guasi --size=1m", Engines(DESCRIPTORS)).unwrap();
    let errno = Errno(own_engine::guasi::EXPLAINED);
    let hint = |action| fiord_engine::error_hint(&plan.jobs[0].engine, action, errno);
    assert_eq!((hint(Action::Read), hint(Action::Sync)), (Some("as the test has it"), None));
}

#[test]
fn a_program_without_it_refuses_it_by_name() {
    let refusal = planned("--name=a --ioengine=guasi --size=1m", Engines(&[Null::DESCRIPTOR])).unwrap_err();
    assert!(refusal.contains("guasi"), "{refusal}");
    let result = run("--name=a --ioengine=guasi --size=1m", &[RunnableEngine::of::<Null>()]);
    let failure = result.workers[0].failure.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(failure.contains("guasi"), "{failure}");
}

#[test]
fn an_engine_that_opens_its_targets_transfers_and_verifies_data() {
    for (depth, volume) in [("1", "first"), ("8", "second")] {
        let line = format!(
            "--name=a --ioengine=libhdfs --filename={volume} --rw=randwrite --bs=4k --iodepth={depth} --verify=crc32c --verify_state_save=0"
        );
        let result = run(&line, RUNNABLE);
        let worker = &result.workers[0];
        assert_eq!(worker.failure, None);
        let [reads, writes, _] = &worker.stats.directions;
        // The whole volume, whose size the engine has told.
        assert_eq!((writes.bytes, reads.bytes), (VOLUME_BYTES, VOLUME_BYTES));
        assert!(with_volume(Path::new(volume), |bytes| bytes.chunks(4096).all(|block| block[0] != 0)));
    }
}

#[test]
fn a_target_that_its_engine_cannot_reach_is_named_with_the_reason() {
    let plan = planned("--name=a --ioengine=libhdfs --filename=absent", Engines(DESCRIPTORS)).unwrap();
    let unplannable = plan.jobs[0].unplannable.as_ref().expect("it cannot run").to_string();
    assert!(unplannable.contains("absent: no such volume"), "{unplannable}");
    let result = run("--name=a --ioengine=libhdfs --filename=closed --rw=read", RUNNABLE);
    let failure = result.workers[0].failure.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(failure.contains("closed") && failure.contains("open it"), "{failure}");
}

#[test]
fn a_size_or_block_that_does_not_fit_its_target_is_found_before_the_run() {
    let plan = |words: &str| {
        let line = format!("--name=a --ioengine=libhdfs --filename=third --rw=read {words}");
        planned(&line, Engines(DESCRIPTORS)).unwrap()
    };
    assert_eq!(plan("--bs=4k --size=8m").jobs[0].files.list[0].length_bytes, VOLUME_BYTES);
    let unplannable = plan("--bs=1000").jobs[0].unplannable.as_ref().map(ToString::to_string);
    assert!(unplannable.is_some_and(|text| text.contains("blocks of 1000 bytes are not aligned")));
}

#[test]
fn a_failure_ends_the_job_although_another_operation_never_ends() {
    let line = "--name=a --ioengine=libhdfs --filename=breaks --rw=write --bs=4k --iodepth=4 --time_based --runtime=600";
    let result = run(line, RUNNABLE);
    let worker = &result.workers[0];
    let failure = worker.failure.as_ref().expect("its second operation failed");
    assert_eq!((failure.operation.as_str(), failure.errno), ("write", Some(Errno::ENOTCONN)), "{failure}");
    assert!(failure.to_string().contains("did not end within 30 s after it"), "{failure}");
    // The two that were whole are counted.
    assert_eq!((worker.reason, worker.stats.directions[1].ios), (EndReason::Error, 2));
}

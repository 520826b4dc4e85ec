//! Plans that replay a trace.
//!
//! Invariant: the files of a replay are checked like any target, with the extents that the trace has.

use super::*;
use crate::replay::{FileName, summarize};
use crate::{TraceFacts, TraceNeed};

const TRACE: &[u8] =
    b"fio version 2 iolog\na add\nb add\na read 4096 512\na write 65536 131072\nb read 1048576 4096\n";

/// What the machine knows about the traces that a command line needs, all of which hold `trace`.
fn machine_with(line: &str, trace: &[u8], paths: &[(&str, PathFacts)]) -> Facts {
    let mut facts = machine(paths);
    for need in needs(&sections(line), ENGINES, &RunSettings::default()).traces {
        let summary = summarize(trace, need.transform).map_err(|error| error.to_string());
        let found = summary.map(|summary| {
            let path = |file: &fiord_trace::TracedFile| match &file.name {
                FileName::Path(path) => path.clone(),
                FileName::Device { major, minor } => PathBuf::from(format!("/dev/block/{major}:{minor}")),
            };
            TraceFacts {
                paths: summary.files.iter().map(path).collect(),
                summary,
                inputs: vec![need.path.clone()],
            }
        });
        facts.traces.insert(need, found);
    }
    facts
}

fn replay_of(line: &str, paths: &[(&str, PathFacts)]) -> Job {
    let facts = machine_with(line, TRACE, paths);
    attempt(line, &facts).unwrap().0.jobs.remove(0)
}

fn replay_refused(line: &str, trace: &[u8], paths: &[(&str, PathFacts)]) -> String {
    let facts = machine_with(line, trace, paths);
    let refusal = attempt(line, &facts).unwrap_err();
    let lines = refusal.problems.iter().map(|problem| problem.message());
    lines.collect::<Vec<String>>().join("\n")
}

#[test]
fn the_trace_names_the_files_and_says_what_they_need() {
    let job = replay_of(
        "--name=r --read_iolog=t --filename=other --size=4k",
        &[("b", PathFacts::regular(8 * MIB))],
    );
    let files: Vec<_> = job
        .files
        .list
        .iter()
        .map(|file| (file.path.to_str().unwrap(), file.length_bytes, file.lay_out_bytes))
        .collect();
    // Of a file that is only written beyond its end nothing has to be laid out, and what exists is long enough.
    assert_eq!(files, [("a", 65536 + 131_072, Some(4608)), ("b", 1_052_672, None)]);
    assert_eq!((job.files.open_at_once, job.files.writable), (2, true));
    assert_eq!((job.buffers.bytes, job.limits.pass_bytes), (131_072, 512 + 131_072 + 4096));
    assert_eq!(Direction::ALL.map(|direction| job.issues(direction)), [true, true, false]);
}

#[test]
fn a_replay_that_is_redirected_has_one_file() {
    let job = replay_of(
        "--name=r --read_iolog=t --replay_redirect=/dev/x --replay_scale=2 --replay_align=4k",
        &[("/dev/x", PathFacts::block(MIB, 512))],
    );
    let replay = job.replay.unwrap();
    assert!(replay.redirected);
    assert_eq!((replay.trace.transform.divisor, replay.trace.transform.align_bytes), (2, 4096));
    assert_eq!(job.files.list.len(), 1);
    assert_eq!(job.files.list[0].length_bytes, 524_288 + 4096);
    assert!(job.files.list[0].path.ends_with("x"));
}

#[test]
fn clones_take_the_traces_in_turn() {
    let line = "--name=r --read_iolog=s:t --numjobs=3";
    let facts = machine_with(line, TRACE, &[]);
    let (plan, _) = attempt(line, &facts).unwrap();
    let traces: Vec<_> =
        plan.jobs.iter().map(|job| job.replay.as_ref().unwrap().trace.path.clone()).collect();
    assert_eq!(traces, ["s", "t", "s"].map(PathBuf::from));
}

#[test]
fn what_a_target_cannot_do_is_refused_before_the_run() {
    let short = [("a", PathFacts::block(65536, 512)), ("b", PathFacts::block(8 * MIB, 512))];
    assert!(replay_refused("--name=r --read_iolog=t", TRACE, &short).contains("ends at byte 196608"));
    let coarse = [("a", PathFacts::block(MIB, 4096)), ("b", PathFacts::block(8 * MIB, 4096))];
    assert!(
        replay_refused("--name=r --read_iolog=t --direct=1", TRACE, &coarse)
            .contains("not multiples of 4096")
    );
    let trim = b"fio version 2 iolog\na add\na trim 0 4096\n";
    let null = [("a", PathFacts { kind: FileKind::Char, ..PathFacts::regular(MIB) })];
    assert!(replay_refused("--name=r --read_iolog=t", trim, &null).contains("cannot be trimmed"));
    let wrong = replay_refused("--name=r --read_iolog=t", b"fio version 3 iolog\n1 a read 0 1\n", &[]);
    assert_eq!(wrong, "job r: t cannot be replayed: line 2: the file \"a\" was not added before");
    let odd = replay_refused("--name=r --read_iolog=t --replay_align=1000", TRACE, &[]);
    assert_eq!(odd, "job r: 1000 is not a power of two");
}

// divergence: the targets of a trace
#[test]
fn a_target_in_use_and_a_run_that_may_not_write_refuse_a_trace_that_writes() {
    let used = PathFacts { in_use: vec!["mounted".to_string()], ..PathFacts::block(8 * MIB, 512) };
    let line = "--name=r --read_iolog=t --replay_redirect=/dev/x";
    assert!(replay_refused(line, TRACE, &[("/dev/x", used.clone())]).contains("in use: mounted"));
    let facts = machine_with("--name=r --read_iolog=t", TRACE, &[]);
    let readonly = RunSettings { readonly: true, ..RunSettings::default() };
    let refusal = build(&sections("--name=r --read_iolog=t"), &[], &facts, &readonly).unwrap_err();
    assert_eq!(refusal.problems[0].message(), "job r: t writes or trims, which --readonly forbids");
    let reads = "--name=r --read_iolog=t --replay_skip=write --replay_redirect=/dev/x";
    let facts = machine_with(reads, TRACE, &[("/dev/x", used)]);
    assert!(build(&sections(reads), &[], &facts, &readonly).is_ok());
}

#[test]
fn needs_are_the_traces_as_they_are_transformed_and_the_redirection() {
    let needs = needs(
        &sections("--name=r --read_iolog=s:t --numjobs=2 --replay_redirect=/dev/x"),
        ENGINES,
        &RunSettings::default(),
    );
    let traces: Vec<PathBuf> = needs.traces.into_iter().map(|TraceNeed { path, .. }| path).collect();
    assert_eq!(traces, ["s", "t"].map(PathBuf::from));
    assert!(needs.paths.contains(&PathBuf::from("/dev/x")));
}

#[test]
fn a_recording_is_an_output_and_what_is_replayed_is_not_recorded() {
    let [recorded] = &jobs("--name=r --size=4k --write_iolog=log")[..] else { panic!("one job") };
    assert_eq!(recorded.record, Some(PathBuf::from("log")));
    let changes = path_change::path_changes(recorded);
    assert!(
        changes
            .iter()
            .any(|change| change.path.as_os_str() == "log" && change.kind == path_change::ChangeKind::Output)
    );
    assert_eq!(replay_of("--name=r --read_iolog=t --write_iolog=log", &[]).record, None);
}

#[test]
fn trims_need_no_buffers() {
    let line = "--name=r --read_iolog=t --iodepth=128";
    let trace = b"fio version 2 iolog\na add\na trim 0 2147483648\na read 0 4096\n";
    let facts = machine_with(line, trace, &[("a", PathFacts::block(4 << 30, 512))]);
    assert_eq!(attempt(line, &facts).unwrap().0.jobs[0].buffers.bytes, 4096);
    let bytes = |line: &str| {
        let on = [("/dev/x", PathFacts::block(4 << 30, 512))];
        jobs_on(&format!("--name=a --filename=/dev/x {line}"), &on)[0].buffers.bytes
    };
    assert_eq!(bytes("--rw=trim --bs=1g"), 1);
    assert_eq!(bytes("--rw=trimwrite --bs=4k,4k,64k"), 65_536, "what was trimmed is written");
}

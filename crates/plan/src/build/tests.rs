//! Plans made from command lines as a user types them.
//!
//! Invariant: figures come from what fio 3.33 did with the same words, unless a comment says otherwise.

mod amounts;
mod inherited;
mod replay;
mod space;
mod unsuited;
mod verification;
mod writers;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fiord_options::cli;
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::job;

use super::*;
use crate::access::{Direction, Pattern};
use crate::facts::PathFacts;
use crate::testing::ENGINES;
use crate::{FileKind, FilePlan};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * 1024;

fn sections(line: &str) -> Vec<Section> {
    read(line, None)
}

/// The sections of a job file.
fn in_file(text: &str) -> Vec<Section> {
    read("job.fio", Some(text))
}

fn read(line: &str, file: Option<&str>) -> Vec<Section> {
    let files = |_: &OsStr| {
        file.map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    };
    let no_variable = |_: &OsStr| None;
    let keywords = KeywordValues { cpus: 2, memory_mib: 1000, page_bytes: 4096 };
    let engines = ENGINES.names();
    let environment = Environment { files: &files, variables: &no_variable, keywords, engines: &engines };
    let words: Vec<String> = line.split_whitespace().map(str::to_string).collect();
    cli::read(&words, &environment).unwrap().sections
}

fn machine(paths: &[(&str, PathFacts)]) -> Facts {
    let mut facts = Facts { cpus_online: vec![0, 1], engines: ENGINES, ..Facts::default() };
    for (path, known) in paths {
        facts.paths.insert(PathBuf::from(path), known.clone());
    }
    facts
}

fn directory() -> PathFacts {
    PathFacts { is_directory: true, ..PathFacts::regular(0) }
}

/// The plan, when all of its jobs can run.
fn attempt(line: &str, facts: &Facts) -> Result<(Plan, Vec<Problem>), Refusal> {
    let (plan, warnings) = build(&sections(line), &[], facts, &RunSettings::default())?;
    let problems: Vec<Problem> = plan.unplannable().cloned().collect();
    if problems.is_empty() { Ok((plan, warnings)) } else { Err(Refusal { problems, unsafe_target: false }) }
}

fn jobs(line: &str) -> Vec<Job> {
    jobs_on(line, &[])
}

fn jobs_on(line: &str, paths: &[(&str, PathFacts)]) -> Vec<Job> {
    attempt(line, &machine(paths)).unwrap().0.jobs
}

fn refused(line: &str, paths: &[(&str, PathFacts)]) -> Refusal {
    attempt(line, &machine(paths)).unwrap_err()
}

/// The options and messages of a refusal, one line each.
fn messages(line: &str, paths: &[(&str, PathFacts)]) -> String {
    let line_of = |problem: &Problem| format!("{:?}: {}", problem.option.unwrap(), problem.message());
    refused(line, paths).problems.iter().map(line_of).collect::<Vec<String>>().join("\n")
}

fn paths(job: &Job) -> Vec<String> {
    job.files.list.iter().map(|file| file.path.display().to_string()).collect()
}

#[test]
fn the_plainest_job_has_every_default() {
    let job = &jobs("--name=a --size=1m")[0];
    assert_eq!(job.access.pattern, Pattern::Only(Direction::Read));
    assert!(!job.access.random && job.access.full_coverage && job.access.repeat_order);
    assert_eq!(paths(job), ["a.0.0"]);
    assert_eq!(job.files.list[0].lay_out_bytes, Some(MIB));
    assert!(job.files.lay_out_contents && !job.files.writable && job.files.invalidate);
    assert_eq!((job.limits.pass_bytes, job.limits.loop_bytes, job.limits.loops), (MIB, MIB, 1));
    assert_eq!((job.limits.runtime_ns, job.limits.time_based), (None, false));
    assert_eq!((job.buffers.bytes, job.buffers.align_bytes), (4 * KIB, 4 * KIB));
    assert_eq!(job.engine.name().word(), "psync");
    assert_eq!(job.depth.max, 1);
}

#[test]
fn clones_are_jobs_of_their_own_with_seeds_of_their_own() {
    let jobs = jobs("--name=a --size=1m --numjobs=2 --name=b --size=1m");
    let numbers: Vec<(u32, u32, u32)> = jobs.iter().map(|job| (job.number, job.section, job.clone)).collect();
    assert_eq!(numbers, [(0, 0, 0), (1, 0, 1), (2, 1, 0)]);
    assert_eq!(jobs.iter().flat_map(paths).collect::<Vec<String>>(), ["a.0.0", "a.1.0", "b.0.0"]);
    assert_ne!(jobs[0].access.seed, jobs[1].access.seed);
    assert_ne!(jobs[0].access.seed, jobs[2].access.seed);
}

#[test]
fn a_sections_own_name_is_the_first_clones_and_no_files() {
    let text = "[global]\nsize=64k\nname=g\nwrite_bw_log\n[a]\nname=b\nnumjobs=3\n[c]\nwait_for=b\n";
    let (plan, _) = build(&in_file(text), &[], &machine(&[]), &RunSettings::default()).unwrap();
    let names: Vec<&str> = plan.jobs.iter().filter_map(|job| job.name.to_str()).collect();
    assert_eq!(names, ["b", "a", "a", "c"]);
    let files: Vec<String> = plan.jobs.iter().flat_map(paths).collect();
    assert_eq!(files, ["a.0.0", "a.1.0", "a.2.0", "c.0.0"]);
    let log = |job: &Job| job.logs.as_ref().map(|logs| logs.files[0].path.display().to_string());
    let logs: Vec<String> = plan.jobs.iter().filter_map(log).collect();
    assert_eq!(logs, ["b_bw.1.log", "a_bw.2.log", "a_bw.3.log", "c_bw.4.log"]);
    let needed = needs(&in_file(text), ENGINES, &RunSettings::default()).paths;
    assert!(needed.contains(&PathBuf::from("a.0.0")) && !needed.contains(&PathBuf::from("b.0.0")));
    let alone = in_file("[a]\nname=b\nnumjobs=2\nsize=64k\n[c]\nsize=64k\nwait_for=a\n");
    let refusal = build(&alone, &[], &machine(&[]), &RunSettings::default()).unwrap_err();
    assert!(refusal.problems[0].message().contains("no earlier job \"a\""), "its first worker goes by b");
}

#[test]
fn a_group_that_is_one_job_of_the_report_agrees_on_lat_percentiles() {
    let grouped = "--size=64k --group_reporting --name=a --name=b --lat_percentiles=1";
    assert!(
        messages(grouped, &[]).contains("lat_percentiles: job b: lat_percentiles differs within a group")
    );
    for apart in [
        "--size=64k --name=a --name=b --lat_percentiles=1",
        "--size=64k --group_reporting --name=a --name=b --lat_percentiles=1 --new_group",
        "--size=64k --group_reporting --name=a --name=b --lat_percentiles=1 --stonewall",
        "--size=64k --name=a --group_reporting --name=b --lat_percentiles=1",
        "--size=64k --group_reporting --lat_percentiles=1 --name=a --name=b",
    ] {
        assert_eq!(jobs(apart).len(), 2, "{apart}");
    }
}

#[test]
fn randrepeat_decides_whether_the_run_shows_in_the_seed() {
    let seed = |line: &str, entropy: u64| {
        let run = RunSettings { entropy, ..RunSettings::default() };
        build(&sections(line), &[], &machine(&[]), &run).unwrap().0.jobs[0].access.seed
    };
    assert_eq!(seed("--name=a --size=1m", 1), seed("--name=a --size=1m", 2));
    assert_ne!(seed("--name=a --size=1m --randrepeat=0", 1), seed("--name=a --size=1m --randrepeat=0", 2));
    assert_ne!(seed("--name=a --size=1m --randseed=7", 1), seed("--name=a --size=1m", 1));
    let given = "--name=a --size=1m --randrepeat=0 --randseed=7";
    assert_eq!(seed(given, 1), seed(given, 2), "a seed that is given is the seed");
}

#[test]
fn stonewalls_and_new_groups_count_once_per_section() {
    let line =
        "--size=64k --name=a --numjobs=2 --stonewall --name=b --numjobs=2 --stonewall --name=c --new_group";
    let jobs = jobs(line);
    assert_eq!(jobs.iter().map(|job| job.group_id).collect::<Vec<u32>>(), [0, 0, 1, 1, 2]);
    let walls: Vec<bool> = jobs.iter().map(|job| job.schedule.stonewall).collect();
    assert_eq!(walls, [true, false, true, false, false]);
}

#[test]
fn a_second_job_file_waits_for_the_first() {
    let sections = sections("--size=64k --name=a --name=b");
    let (plan, _) = build(&sections, &[1], &machine(&[]), &RunSettings::default()).unwrap();
    assert!(plan.jobs[1].schedule.stonewall);
    assert_eq!(plan.jobs[1].group_id, 1);
}

#[test]
fn a_job_may_use_what_an_earlier_one_lays_out() {
    let jobs = jobs("--name=a --filename=f --size=64k --rw=write --name=b --filename=f --rw=read");
    assert_eq!(jobs[1].files.list[0].length_bytes, 64 * KIB);
    let alone = messages("--name=b --filename=f --rw=read", &[]);
    assert!(alone.contains("you need to specify size="), "{alone}");
}

#[test]
fn names_of_all_levels_add_up_and_are_remarked_on() {
    let facts = machine(&[]);
    let (plan, warnings) = attempt("--size=64k --filename=x --name=a --filename=y", &facts).unwrap();
    assert_eq!(paths(&plan.jobs[0]), ["x", "y"]);
    assert_eq!(plan.jobs[0].files.list[1].length_bytes, 32 * KIB);
    assert_eq!(warnings.len(), 1);
}

#[test]
fn nrfiles_counts_names_only_behind_them() {
    assert_eq!(paths(&jobs("--size=64k --name=a --filename=f:g --nrfiles=1")[0]), ["f"]);
    assert_eq!(paths(&jobs("--size=64k --name=a --nrfiles=1 --filename=f:g")[0]), ["f", "g"]);
}

#[test]
fn directories_must_be_there_and_be_directories() {
    let line = "--name=a --size=1m --directory=d";
    assert!(messages(line, &[]).contains("the directory d does not exist"));
    assert!(messages(line, &[("d", PathFacts::regular(1))]).contains("d is not a directory"));
    assert_eq!(paths(&jobs_on(line, &[("d", directory())])[0]), ["d/a.0.0"]);
}

#[test]
fn directories_within_a_name_are_created_parents_first() {
    let job = &jobs_on("--name=a --size=1m --filename=s/t/x:s/y", &[])[0];
    assert_eq!(job.files.create_directories, [PathBuf::from("s"), PathBuf::from("s/t")]);
    assert!(
        jobs_on("--name=a --size=1m --filename=s/x", &[("s", directory())])[0]
            .files
            .create_directories
            .is_empty()
    );
}

#[test]
fn every_path_is_probed_on_the_host() {
    let line = "--size=1m --name=a --directory=d --numjobs=2 --name=b --filename=/s/t --name=c --opendir=o";
    let needs = needs(&sections(line), ENGINES, &RunSettings::default());
    let shown: Vec<String> = needs.paths.iter().map(|path| path.display().to_string()).collect();
    assert_eq!(shown, ["/s", "/s/t", "d", "d/a.0.0", "d/a.1.0"]);
    assert_eq!(needs.directories, [PathBuf::from("o")]);
}

#[test]
fn an_engine_that_touches_no_file_needs_no_facts() {
    let path_count = |line: &str| needs(&sections(line), ENGINES, &RunSettings::default()).paths.len();
    assert_eq!(path_count("--name=a --size=1m --numjobs=1000 --ioengine=psync"), 1000);
    assert_eq!(path_count("--name=a --size=1m --numjobs=1000 --ioengine=null"), 0);
}

#[test]
fn opendir_takes_what_the_directory_holds() {
    let mut facts = machine(&[("o/x", PathFacts::regular(64 * KIB)), ("o/y", PathFacts::regular(64 * KIB))]);
    let found = vec![PathBuf::from("o/x"), PathBuf::from("o/y")];
    facts.listings.insert(PathBuf::from("o"), found);
    let (plan, _) = attempt("--name=a --opendir=o", &facts).unwrap();
    assert_eq!(plan.jobs[0].limits.loop_bytes, 128 * KIB);
    let refusal = attempt("--name=a --opendir=p", &facts).unwrap_err();
    assert!(refusal.problems[0].message().contains("cannot be read"));
}

#[test]
fn opendir_and_nrfiles_behind_it_take_so_many() {
    let names = ["d/a", "d/b", "d/c"];
    let mut facts = machine(&names.map(|name| (name, PathFacts::regular(MIB))));
    facts.listings.insert(PathBuf::from("d"), names.map(PathBuf::from).to_vec());
    let count = |line: &str| attempt(line, &facts).unwrap().0.jobs[0].files.list.len();
    assert_eq!(count("--name=a --opendir=d --nrfiles=2"), 2);
    assert_eq!(count("--name=a --nrfiles=2 --opendir=d"), 3);
}

#[test]
fn empty_files_are_passed_over_but_not_all_of_them() {
    let files = [("x", PathFacts::regular(MIB)), ("empty", PathFacts::regular(0))];
    let (plan, problems) = attempt("--name=a --filename=x:empty", &machine(&files)).unwrap();
    assert_eq!((paths(&plan.jobs[0]), problems.len()), (vec!["x".to_string()], 1));
    assert!(messages("--name=a --filename=empty", &files).contains("you need to specify size="));
    assert!(messages("--name=a --filename=x:absent", &files).contains("does not exist"));
}

// divergence: `fill_device` without a size
#[test]
fn filling_without_a_size_is_for_sequential_writes_to_files() {
    for line in ["--rw=read", "--rw=randwrite", "--rw=rw", "--rw=write --ioengine=mmap"] {
        let messages = messages(&format!("--name=a --fill_device=1 {line}"), &[]);
        assert!(messages.starts_with("fill_device: "), "{line}: {messages}");
    }
    let files = &jobs("--name=a --fill_device=1 --rw=write")[0].files;
    assert_eq!((files.list[0].length_bytes, files.fill_device), (size::UNTIL_FULL_BYTES, true));
    let files = &jobs("--name=a --fill_device=1 --rw=randwrite --size=1m")[0].files;
    assert_eq!((files.list[0].length_bytes, files.fallocate), (MIB, crate::files::Fallocate::None));
    let device = [("/dev/x", PathFacts::block(MIB, 512))];
    let files = &jobs_on("--name=a --fill_device=1 --rw=randread --filename=/dev/x", &device)[0].files;
    assert_eq!((files.list[0].length_bytes, files.fill_device), (MIB, false));
}

// divergence: every file smaller than a block
#[test]
fn files_too_small_for_a_block_are_passed_over_but_not_all_of_them() {
    let small = ("g", PathFacts::regular(KIB));
    let facts = machine(&[("f", PathFacts::regular(64 * KIB)), small.clone()]);
    let (plan, warnings) = attempt("--name=a --filename=f:g", &facts).unwrap();
    assert_eq!((paths(&plan.jobs[0]), warnings.len()), (vec!["f".to_string()], 1));
    assert!(messages("--name=a --filename=g", &[small]).contains("than a block of 4096 bytes"));
}

#[test]
fn a_target_in_use_is_refused_with_a_status_of_its_own() {
    let disk = PathFacts { in_use: vec!["mounted on /home".to_string()], ..PathFacts::block(MIB, 512) };
    let refusal = refused("--name=a --filename=/dev/sda --rw=write", &[("/dev/sda", disk.clone())]);
    assert!(refusal.unsafe_target);
    assert!(refusal.problems[0].message().contains("mounted on /home"));
    let read = jobs_on("--name=a --filename=/dev/sda --rw=read", &[("/dev/sda", disk.clone())]);
    assert_eq!(read[0].files.list[0].length_bytes, MIB);
    let line = "--name=a --filename=/dev/sda --rw=write --allow_mounted_write=1";
    assert!(jobs_on(line, &[("/dev/sda", disk)])[0].files.allow_in_use);
}

#[test]
fn what_is_there_decides_what_a_target_is_and_filetype_may_only_agree() {
    let disk = || ("/dev/sda", PathFacts::block(MIB, 512));
    let line = "--name=a --filename=/dev/sda --rw=read --size=2m --filetype";
    assert_eq!(
        messages(&format!("{line}=file"), &[disk()]),
        "filetype: job a: filetype=file, but /dev/sda is a block device"
    );
    assert!(messages(&format!("{line}=char"), &[disk()]).contains("is a block device"));
    assert_eq!(jobs_on(&format!("{line}=block --size=1m"), &[disk()])[0].files.list[0].kind, FileKind::Block);
    let file = "--name=a --filename=f --rw=read --size=2m --filetype";
    assert!(
        messages(&format!("{file}=block"), &[])
            .contains("f does not exist, and only regular files are created")
    );
    assert!(
        messages(&format!("{file}=block"), &[("f", PathFacts::regular(1))]).contains("f is a regular file")
    );
    assert_eq!(jobs(&format!("{file}=file"))[0].files.list[0].kind, FileKind::Regular);
}

#[test]
fn everything_a_job_does_to_a_path_in_use_is_refused_but_reading() {
    let used = |bytes| PathFacts { in_use: vec!["mounted".to_string()], ..PathFacts::regular(bytes) };
    let on = |path, bytes, options: &str| {
        let facts = machine(&[("f", PathFacts::regular(MIB)), (path, used(bytes))]);
        attempt(&format!("--name=a --filename=f {options}"), &facts).map(drop).map_err(|refusal| {
            assert!(refusal.unsafe_target, "{options}");
            refusal.problems[0].option
        })
    };
    assert_eq!(on("f", MIB, "--rw=read"), Ok(()));
    for options in ["--rw=write", "--rw=randrw", "--rw=read --size=2m", "--rw=write --overwrite=1 --size=2m"]
    {
        assert_eq!(on("f", MIB, options), Err(Some(job::Files::filename)), "{options}");
    }
    for options in ["--unlink=1", "--unlink_each_loop=1 --loops=2"] {
        assert_eq!(on("f", MIB, &format!("--rw=read {options}")), Err(Some(job::Files::unlink)), "{options}");
    }
    let others = [
        ("g", "--iomem=mmap:g", job::Buffers::mem),
        ("l_bw.1.log", "--write_bw_log=l", job::Measure::write_bw_log),
        ("l_clat.1.log", "--write_lat_log=l", job::Measure::write_lat_log),
        ("a.prerun.txt", "--exec_prerun=true", job::Process::exec_prerun),
        ("a.postrun.txt", "--exec_postrun=true", job::Process::exec_postrun),
    ];
    for (path, options, option) in others {
        assert_eq!(on(path, 1, options), Err(Some(option)), "{options}");
        let needed =
            needs(&sections(&format!("--name=a --filename=f {options}")), ENGINES, &RunSettings::default())
                .paths;
        assert!(needed.contains(&PathBuf::from(path)), "nobody asks the host about {path}");
    }
    assert_eq!(on("f", MIB, "--rw=write --allow_mounted_write=1"), Ok(()));
}

// divergence: `atomic=1` on a target
#[test]
fn atomic_writes_are_checked_against_the_device() {
    let disk = |atomic_bytes| ("/dev/sda", PathFacts { atomic_bytes, ..PathFacts::block(MIB, 512) });
    let offered = [disk(Some((512, 64 * KIB)))];
    let line = "--name=a --filename=/dev/sda --ioengine=libaio --atomic=1 --rw=randwrite";
    assert!(jobs_on(&format!("{line} --bs=16k"), &offered)[0].files.direct);
    assert!(messages(&format!("{line} --bs=16k"), &[disk(None)]).contains("does not support atomic writes"));
    assert_eq!(jobs_on(&format!("{line} --rw=randread"), &[disk(None)]).len(), 1, "reads are as they were");
    let too_long = messages(&format!("{line} --bs=128k"), &offered);
    assert!(too_long.contains("512 to 65536 bytes, and bs is 131072"), "{too_long}");
    for refused in ["--bs=12k", "--bsrange=4k-8k", "--bssplit=4k/50:8k/50"] {
        let text = messages(&format!("{line} {refused}"), &offered);
        assert!(text.contains("have one length, a power of two"), "{refused}: {text}");
    }
    for refused in ["--bs=8k --offset=4k", "--bs=8k --blockalign=512", "--bs=8k --rw=write:4k"] {
        let text = messages(&format!("{line} {refused}"), &offered);
        assert!(text.contains("begin at multiples of their length"), "{refused}: {text}");
    }
    assert_eq!(jobs_on(&format!("{line} --bs=8k --rw=write:16k"), &offered).len(), 1);
    let absent = "--name=a --filename=new --size=64k --ioengine=libaio --atomic=1 --rw=write";
    assert_eq!(jobs_on(absent, &[]).len(), 1, "its file system has not been asked");
}

// divergence: direct I/O that is not aligned
#[test]
fn direct_io_is_checked_against_the_device() {
    let disk = |bytes| ("/dev/sda", PathFacts::block(MIB, bytes));
    let line = "--name=a --filename=/dev/sda --direct=1";
    assert!(
        messages(&format!("{line} --bs=512"), &[disk(4096)])
            .contains("read blocks of 512 bytes are not aligned")
    );
    assert!(messages(&format!("{line} --bssplit=4k/50:6k/50"), &[disk(4096)]).starts_with("bssplit:"));
    assert!(messages(&format!("{line} --bsrange=4k-10k"), &[disk(4096)]).starts_with("bsrange:"));
    assert!(messages(&format!("{line} --rw=read:512"), &[disk(4096)]).starts_with("rw:"));
    assert!(messages(&format!("{line} --offset=512"), &[disk(4096)]).starts_with("offset:"));
    assert_eq!(jobs_on(&format!("{line} --bsrange=4k-12k --rw=read:8k"), &[disk(4096)]).len(), 1);
    assert_eq!(jobs_on(&format!("{line} --bs=512"), &[disk(512)]).len(), 1);
    let unsupported = PathFacts { direct_supported: Some(false), ..PathFacts::regular(MIB) };
    assert!(
        messages("--name=a --filename=f --buffered=0", &[("f", unsupported)])
            .contains("does not support direct I/O")
    );
}

#[test]
fn targets_that_cannot_work_are_refused_before_the_run() {
    let file = || ("f", PathFacts::regular(MIB));
    let null = ("/dev/null", PathFacts { kind: FileKind::Char, ..PathFacts::regular(MIB) });
    assert!(
        messages("--name=a --filename=/dev/null --rw=trim --size=1m", &[null]).contains("cannot be trimmed")
    );
    let trimmed = jobs_on("--name=a --filename=f --rw=trim", &[file()]).remove(0).files;
    assert!(trimmed.writable && trimmed.lay_out_contents, "a hole is punched into what was written");
    assert!(messages("--name=a --filename=f", &[("f", directory())]).contains("is a directory"));
    let typo = PathFacts { among_devices: true, ..PathFacts::absent() };
    let by_id = "/dev/disk/by-id/x";
    for rw in ["read", "write"] {
        let messages =
            messages(&format!("--name=a --filename={by_id} --size=1m --rw={rw}"), &[(by_id, typo.clone())]);
        assert_eq!(messages, "filename: job a: there is no device /dev/disk/by-id/x");
    }
    assert!(messages("--name=a --filename=- --size=1m", &[]).contains("standard input"));
    assert!(
        messages("--name=a --filename=f --size=1m --allow_file_create=0", &[])
            .contains("must not be created")
    );
    let read_only = PathFacts { writable_mount: false, ..PathFacts::regular(MIB) };
    assert!(messages("--name=a --filename=f --rw=write", &[("f", read_only)]).contains("read-only"));
}

#[test]
fn readonly_forbids_writing_trimming_and_laying_out() {
    let run = RunSettings { readonly: true, ..RunSettings::default() };
    let facts = machine(&[("f", PathFacts::regular(MIB))]);
    let refuses = |line: &str| {
        let planned = build(&sections(line), &[], &facts, &run);
        planned.map_or(true, |(plan, _)| plan.unplannable().next().is_some())
    };
    assert!(refuses("--name=a --filename=f --rw=write"));
    assert!(refuses("--name=a --filename=f --rw=randrw"));
    assert!(refuses("--name=a --size=1m --rw=read"));
    assert!(!refuses("--name=a --filename=f --rw=read"));
}

#[test]
fn a_file_that_must_not_be_created_is_not_extended_either() {
    let files = [("f", PathFacts::regular(MIB))];
    for mode in ["read", "write"] {
        let line = format!("--name=a --filename=f --allow_file_create=0 --rw={mode}");
        assert_eq!(jobs_on(&format!("{line} --size=1m"), &files).len(), 1);
        assert!(messages(&format!("{line} --size=2m"), &files).contains("would have to be extended"));
    }
    let line = "--name=a --filename=f --allow_file_create=0 --rw=write --file_append=1 --size=1m";
    assert_eq!(jobs_on(line, &files).len(), 1);
}

#[test]
fn wait_for_names_an_earlier_job() {
    assert!(messages("--size=1m --name=a --wait_for=a", &[]).contains("cannot wait for itself"));
    assert!(messages("--size=1m --name=a --wait_for=b --name=b", &[]).contains("no earlier job \"b\""));
    let jobs = jobs("--size=1m --name=a --name=b --wait_for=a");
    assert_eq!(jobs[1].schedule.wait_for.as_deref(), Some(OsStr::new("a")));
}

#[test]
fn all_problems_are_reported_at_once_and_each_once() {
    let line = "--name=a --numjobs=4 --size=1k --rate=1m --rate_iops=5 --wait_for=x --name=b --directory=nodir --size=1m";
    let messages = messages(line, &[]);
    let options: Vec<&str> = messages.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(options, ["rate_iops", "size", "wait_for", "bs", "directory"]);
}

#[test]
fn more_workers_than_allowed_are_refused() {
    let run = RunSettings { max_jobs: Some(3), ..RunSettings::default() };
    let refused = |line: &str| build(&sections(line), &[], &machine(&[]), &run).is_err();
    assert!(refused("--name=a --size=1m --numjobs=4"));
    assert!(!refused("--name=a --size=1m --numjobs=3"));
    assert!(messages("--name=a --size=1m --numjobs=0", &[]).contains("at least one worker"));
    let typing_error = messages("--name=a --size=1m --numjobs=100000000", &[]);
    assert!(typing_error.contains("more than --max-jobs=65536 allows"), "{typing_error}");
}

#[test]
fn shares_of_reads_follow_the_later_of_both_options() {
    let share =
        |options: &str| jobs(&format!("--name=a --size=1m --rw=randrw {options}"))[0].access.read_percent;
    assert_eq!(share(""), 50);
    assert_eq!(share("--rwmixread=70 --rwmixwrite=40"), 60);
    assert_eq!(share("--rwmixwrite=40 --rwmixread=70"), 70);
    assert_eq!(share("--rwmixwrite=20"), 80);
}

#[test]
fn block_sizes_are_inherited_as_in_fio() {
    let sizes = |options: &str| {
        jobs(&format!("--name=a --size=1m {options}"))[0]
            .access
            .block_sizes
            .clone()
            .map(|sizes| sizes.max() / KIB)
    };
    assert_eq!(sizes("--bs=4k,8k"), [4, 8, 8]);
    assert_eq!(sizes("--bs=,8k"), [4, 8, 8]);
    assert_eq!(sizes("--bs=,,8k"), [4, 4, 8]);
    assert_eq!(sizes("--bs=8k,"), [8, 4, 4]);
    assert_eq!(sizes("--bs=64k --bsrange=1k-4k,2k-8k"), [4, 8, 8]);
}

#[test]
fn lfsr_covers_blocks_of_one_length_whatever_the_map() {
    let covers = |options: &str| {
        let access = &jobs(&format!("--name=a --size=64k --rw=randread {options}"))[0].access;
        (access.full_coverage, access.covers_single_size)
    };
    assert_eq!(covers("--norandommap"), (false, false));
    assert_eq!(covers("--norandommap --random_generator=lfsr"), (false, true));
    assert_eq!(covers("--norandommap --random_generator=tausworthe64"), (false, false));
    assert_eq!(covers("--random_generator=lfsr --ba=8k"), (false, false));
}

// divergence: `random_generator=tausworthe`
#[test]
fn both_tausworthe_generators_are_the_same() {
    let line = "--name=a --ioengine=null --rw=randread --size=64t --random_generator=";
    let access = |generator: &str| jobs(&format!("{line}{generator}"))[0].access.clone();
    assert!(access("tausworthe") == access("tausworthe64") && access("tausworthe") != access("lfsr"));
}

#[test]
fn a_blockalign_draws_without_a_map() {
    let job = &jobs("--name=a --size=64k --rw=randread --ba=8k")[0];
    assert!(!job.access.full_coverage);
    assert_eq!(job.access.align_bytes, [8 * KIB; 3]);
}

#[test]
fn depth_is_kept_for_the_report_where_the_engine_has_none() {
    let sync = &jobs("--name=a --size=1m --iodepth=32")[0];
    assert_eq!((sync.depth.max, sync.presentation.requested_iodepth), (1, 32));
    let queued = &jobs("--name=a --size=1m --iodepth=32 --ioengine=libaio")[0];
    assert_eq!((queued.depth.max, queued.depth.submit), (32, 1));
}

#[test]
fn buffers_are_filled_by_the_strongest_option() {
    use crate::job::Fill;
    let fill =
        |options: &str| jobs(&format!("--name=a --size=1m --rw=write {options}"))[0].buffers.fill.clone();
    assert_eq!(fill(""), Fill::Random { refill: false, scramble: true });
    assert_eq!(fill("--refill_buffers"), Fill::Random { refill: true, scramble: false });
    assert_eq!(fill("--zero_buffers --refill_buffers"), Fill::Zero);
    assert!(matches!(fill("--zero_buffers --buffer_pattern=0xab"), Fill::Pattern { .. }));
    assert!(matches!(fill("--zero_buffers --buffer_compress_percentage=50"), Fill::Compressible { .. }));
}

#[test]
fn gtod_reduce_switches_off_what_needs_a_clock() {
    use crate::job::ClockSource;
    let measure = &jobs("--name=a --size=1m --gtod_reduce=1")[0].measure;
    assert_eq!(measure.clock, ClockSource::None);
    assert!(!(measure.submission || measure.completion || measure.total));
    assert!(!measure.completion_percentiles && measure.reported && measure.bandwidth);
}

#[test]
fn no_job_runs_on_a_cpu_that_keeps_the_time() {
    use crate::job::ClockSource;
    let facts = Facts { cpus_allowed: vec![0, 1], ..machine(&[]) };
    let line = "--size=1m --name=a --gtod_cpu=1 --name=b --cpus_allowed=0-1 --name=c --gtod_reduce=1";
    let jobs = attempt(line, &facts).unwrap().0.jobs;
    let clocks: Vec<ClockSource> = jobs.iter().map(|job| job.measure.clock).collect();
    assert_eq!(clocks, [ClockSource::Kept(1), ClockSource::Best, ClockSource::None]);
    assert!(jobs.iter().all(|job| job.process.cpus == [0] && job.process.time_cpus == [1]));
    let refused = attempt(&format!("{line} --name=d --cpus_allowed=1"), &facts).unwrap_err();
    assert!(refused.problems[0].message().contains("no CPU is left for the job"), "{refused:?}");
    assert!(attempt("--name=a --size=1m --gtod_cpu=7", &facts).is_err());
}

#[test]
fn a_control_group_has_a_name_a_weight_and_an_end() {
    let group =
        |options: &str| jobs(&format!("--name=a --size=1m {options}"))[0].process.control_group.clone();
    assert_eq!(group(""), None);
    let named = group("--cgroup=a/b").unwrap();
    assert_eq!((named.name.to_str(), named.weight, named.stays), (Some("a/b"), None, false));
    let kept = group("--cgroup=a --cgroup_weight=300 --cgroup_nodelete=1").unwrap();
    assert_eq!((kept.weight, kept.stays), (Some(300), true));
}

#[test]
fn cpus_are_checked_and_split() {
    let facts = machine(&[]);
    assert!(attempt("--name=a --size=1m --cpus_allowed=99", &facts).is_err());
    assert!(attempt("--name=a --size=1m --cpumask=0", &facts).is_err());
    let split = jobs("--name=a --size=1m --cpus_allowed=0-1 --cpus_allowed_policy=split --numjobs=3");
    let cpus: Vec<&[u32]> = split.iter().map(|job| job.process.cpus.as_slice()).collect();
    assert_eq!(cpus, [[0], [1], [0]]);
    assert_eq!(jobs("--name=a --size=1m --cpumask=3")[0].process.cpus, [0, 1]);
}

#[test]
fn the_null_engine_needs_no_files_but_a_size() {
    let job = &jobs("--name=a --size=1m --ioengine=null --nrfiles=3 --directory=nowhere")[0];
    assert_eq!(job.files.list.len(), 3);
    assert!(job.files.list.iter().all(|file| file.lay_out_bytes.is_none()));
    assert!(messages("--name=a --ioengine=null", &[]).contains("specify size="));
}

// divergence: a later pass under `time_based`
// divergence: a later pass of `loops` or `io_size`
#[test]
fn passes_repeat_their_order_as_in_fio_but_not_for_a_run_time() {
    let repeats = |options: &str| {
        let (plan, _) = attempt(&format!("--name=a --size=1m {options}"), &machine(&[])).unwrap();
        plan.jobs[0].access.repeat_order
    };
    assert!(repeats("--loops=3") && repeats("--io_size=3m") && repeats("--runtime=1"));
    assert!(repeats("--loops=3 --time_based"), "time_based has no effect without runtime");
    assert!(!repeats("--runtime=1 --time_based") && !repeats("--loops=3 --randrepeat=0"));
}

#[test]
fn time_limits_are_in_nanoseconds_and_time_based_needs_one() {
    let limits = jobs("--name=a --size=1m --runtime=10 --time_based --ramp_time=500ms")[0].limits;
    assert_eq!(
        (limits.runtime_ns, limits.time_based, limits.ramp_ns),
        (Some(10_000_000_000), true, 500_000_000)
    );
    let (plan, warnings) = attempt("--name=a --size=1m --time_based", &machine(&[])).unwrap();
    assert!(!plan.jobs[0].limits.time_based);
    assert_eq!(warnings.len(), 1);
}

// divergence: `rate_iops` with blocks of several sizes
#[test]
fn rate_iops_counts_ios_of_any_size() {
    for sizes in ["", "--bssplit=4k/50:16k/50", "--bsrange=4k-64k", "--bsrange=4k-64k --rate_process=poisson"]
    {
        let (plan, warnings) =
            attempt(&format!("--name=a --size=1m --rate_iops=100 {sizes}"), &machine(&[])).unwrap();
        let pace = &plan.jobs[0].pace;
        assert_eq!((pace.bytes_per_s[0], pace.ios_per_s[0], warnings), (None, Some(100), vec![]), "{sizes}");
    }
}

#[test]
fn think_time_by_io_time_counts_ios_only_if_requested() {
    let think = |options: &str| {
        jobs(&format!("--name=a --size=1m --thinktime=1ms {options}")).remove(0).pace.think.unwrap()
    };
    assert_eq!((think("").every_ios, think("").io_time_us), (1, 0));
    assert_eq!(think("--thinktime_iotime=2").every_ios, 0);
    let both = think("--thinktime_iotime=2 --thinktime_blocks=9");
    assert_eq!((both.every_ios, both.io_time_us), (9, 2_000_000));
}

// divergence: a job whose targets do not suit it
/// fio runs the others and gives the job its error; each of these was tried with it.
#[test]
fn targets_that_do_not_suit_a_job_are_its_own_error() {
    let small = ("small", PathFacts::regular(100));
    let odd = ("odd", PathFacts { direct_align_bytes: 512, ..PathFacts::regular(MIB) });
    let tty = ("tty", PathFacts { kind: FileKind::Char, ..PathFacts::regular(MIB) });
    let paths = [small, odd, tty, ("dir", directory())];
    let facts = machine(&paths);
    for (options, errno, option) in [
        ("--filename=gone --allow_file_create=0", 2, job::Files::allow_file_create),
        ("--filename=gone --size=0", 22, job::Amount::size),
        ("--filename=dir", 21, job::Files::filename),
        ("--filename=small --size=0", 22, job::Blocks::bs),
        ("--filename=odd --direct=1 --bs=1000", 22, job::Blocks::bs),
        ("--filename=odd --direct=1 --offset=100", 22, job::Access::offset),
        ("--filename=odd --size=0 --offset=2m", 22, job::Access::offset),
        ("--filename=tty --rw=trim", 25, job::Access::rw),
        ("--filename=-", 22, job::Files::filename),
    ] {
        let line = format!("--size=64k --name=one --name=bad --numjobs=2 {options} --name=other --stonewall");
        let (plan, _) = build(&sections(&line), &[], &facts, &RunSettings::default()).unwrap();
        let runs: Vec<bool> = plan.jobs.iter().map(|job| job.unplannable.is_none()).collect();
        assert_eq!(runs, [true, false, false, true], "{options}");
        let bad = &plan.jobs[1];
        let unplannable = bad.unplannable.as_ref().unwrap();
        assert_eq!((unplannable.errno.0, unplannable.problems[0].option), (errno, Some(option)), "{options}");
        assert!(unplannable.to_string().starts_with("command line:1:"), "{unplannable}");
        assert!(bad.files.list.is_empty(), "{options}");
        let numbers: Vec<(u32, u32)> = plan.jobs.iter().map(|job| (job.number, job.group_id)).collect();
        assert_eq!(numbers, [(0, 0), (1, 0), (2, 0), (3, 1)], "numbers and groups are those of all jobs");
    }
}

#[test]
fn a_clone_that_cannot_run_leaves_the_others_alone() {
    let facts = machine(&[("f", PathFacts::regular(MIB))]);
    let line = "--name=a --filename=f --size=512k --offset_increment=512k --numjobs=3 --allow_file_create=0";
    let (plan, _) = build(&sections(line), &[], &facts, &RunSettings::default()).unwrap();
    let runs: Vec<bool> = plan.jobs.iter().map(|job| job.unplannable.is_none()).collect();
    assert_eq!(runs, [true, true, false]);
}

// divergence: a target in use, or a path below `/dev`
#[test]
fn an_option_error_or_an_unsafe_target_stops_the_whole_run() {
    let disk = PathFacts { in_use: vec!["mounted on /home".to_string()], ..PathFacts::block(MIB, 512) };
    let gone = PathFacts { among_devices: true, ..PathFacts::absent() };
    let facts = machine(&[("/dev/sda", disk), ("/dev/gone", gone)]);
    for (options, unsafe_target) in [
        ("--filename=/dev/sda --rw=write", true),
        ("--filename=/dev/sda --rw=write --direct=1 --bs=1000", true),
        ("--filename=/dev/gone --rw=write", false),
        ("--directory=gone", false),
        ("--rate=1m --rate_iops=5", false),
        ("--size=1k --bs=4k", false),
        ("--cpus_allowed=77", false),
    ] {
        let line = format!(
            "--size=64k --name=one --name=missing --filename=no --allow_file_create=0 --name=bad {options}"
        );
        let refusal = build(&sections(&line), &[], &facts, &RunSettings::default()).unwrap_err();
        assert!(refusal.unsafe_target || !unsafe_target, "{options}");
    }
}

/// The files of the one job of these sections, as bytes.
fn named(sections: &[Section]) -> Vec<Vec<u8>> {
    let (plan, _) = build(sections, &[], &machine(&[]), &RunSettings::default()).unwrap();
    let bytes = |file: &FilePlan| file.path.as_os_str().as_bytes().to_vec();
    plan.jobs[0].files.list.iter().map(bytes).collect()
}

/// Every byte of a name is a byte of the file's, but for those that mean something: `:` between names, `;` and `#`
/// before a comment, a line's end in a job file.
#[test]
fn every_byte_of_a_name_reaches_its_file() {
    let read = |arguments: &[OsString], file: &[u8]| {
        let keywords = KeywordValues { cpus: 2, memory_mib: 1000, page_bytes: 4096 };
        let files = |_: &OsStr| Ok(file.to_vec());
        cli::read(
            arguments,
            &Environment { files: &files, variables: &|_| None, keywords, engines: &ENGINES.names() },
        )
        .unwrap()
        .sections
    };
    for byte in (1..=255).filter(|byte| *byte != b'/') {
        let name = [b'a', byte, b'c'];
        let expected: Vec<Vec<u8>> = match byte {
            b':' => vec![b"a".to_vec(), b"c".to_vec()],
            b';' | b'#' => vec![b"a".to_vec()],
            _ => vec![name.to_vec()],
        };
        let option = OsString::from_vec([b"--filename=", &name[..]].concat());
        let typed = [OsString::from("--name=j"), OsString::from("--size=64k"), option];
        assert_eq!(named(&read(&typed, b"")), expected, "{byte:#x} on the command line");
        let clone = OsString::from_vec([b"--name=", &name[..]].concat());
        let of_name = named(&read(&[clone, OsString::from("--size=64k")], b""));
        assert_eq!(of_name, [[&name[..], b".0.0"].concat()], "{byte:#x} in a job's name");
        if byte != b'\n' {
            let text = [b"[j]\nsize=64k\nfilename=", &name[..], b"\n"].concat();
            assert_eq!(named(&read(&[OsString::from("j.fio")], &text)), expected, "{byte:#x} in a job file");
        }
    }
}

#[test]
fn a_steady_state_is_that_of_a_whole_reporting_group() {
    let facts = machine(&[]);
    let both = "--ioengine=null --size=1m --ss=iops:5% --ss_dur=2 --name=a --name=b";
    let (plan, _) = attempt(both, &facts).unwrap();
    let steady = plan.jobs[0].steady.unwrap();
    assert_eq!((steady.duration_s, steady.ramp_ns, steady.interval_ns), (2, 0, 1_000_000_000));
    assert_eq!(plan.jobs[1].steady, Some(steady));
    let line = "--ioengine=null --size=1m --ss_dur=2 --name=a --ss=iops:5% --name=b";
    let refusal = attempt(line, &facts).unwrap_err();
    assert_eq!(refusal.problems[0].option, Some(job::Steady::steadystate));
    let (plan, _) = attempt(&format!("{line} --new_group --ss_dur=0"), &facts).unwrap();
    assert_eq!(plan.jobs[1].steady, None);
}

#[test]
fn jobs_wake_early_if_there_is_a_processor_for_each() {
    let waking = |line: &str| jobs(line).iter().map(|job| job.pace.wakes_early).collect::<Vec<_>>();
    let job = "--name=a --ioengine=null --size=1m";
    assert_eq!(waking(&format!("{job} --rate_iops=10 --numjobs=2")), [true; 2]);
    assert_eq!(waking(&format!("{job} --rate=1m --numjobs=3")), [false; 3]);
    assert_eq!(waking(job), [false]);
}

//! Calls that containers and older kernels refuse: what does not work is named with its cause and a remedy, the rest goes on,
//! and nothing hangs.
//!
//! Invariant: what refuses them is the kernel, by a seccomp filter as those of containers.

use std::collections::BTreeSet;
use std::path::Path;

use fiord_testing::need;
use serde_json::Value;

use crate::common::{Dir, Ran, assert_fits_terminal, finish, start, words};

/// Lets calls fail with the errno that is the second argument, and becomes the program of the others. The number of `prctl` is
/// the first; those of the calls, between commas, the third.
const REFUSE: &str = r#"
my ($prctl, $errno, $calls) = splice @ARGV, 0, 3;
my $filter = pack "SCCL", 0x20,0,0,0;
$filter .= pack "SCCL" x 2, 0x15,0,1,$_, 0x06,0,0,0x50000|$errno for split /,/, $calls;
$filter .= pack "SCCL", 0x06,0,0,0x7fff0000;
my $program = pack "Sx6P" . length($filter), length($filter) / 8, $filter;
syscall($prctl+0, 38, 1, 0, 0, 0) == 0 or die "PR_SET_NO_NEW_PRIVS: $!";
syscall($prctl+0, 22, 2, $program, 0, 0) == 0 or die "PR_SET_SECCOMP: $!";
exec { $ARGV[0] } @ARGV or die "exec: $!";
"#;

/// Calls, with their numbers on x86-64 and on all newer processors.
const CALLS: [(&str, [u32; 2]); 13] = [
    ("bpf", [321, 280]),
    ("cachestat", [451; 2]),
    ("close_range", [436; 2]),
    ("faccessat2", [439; 2]),
    ("fsopen", [430; 2]),
    ("io_uring_setup", [425; 2]),
    ("mount", [165, 40]),
    ("openat2", [437; 2]),
    ("perf_event_open", [298, 241]),
    ("pidfd_open", [434; 2]),
    ("prctl", [157, 167]),
    ("preadv2", [327, 286]),
    ("pwritev2", [328, 287]),
];

fn number(name: &str) -> String {
    let (_, numbers) = CALLS.iter().find(|(call, _)| *call == name).unwrap();
    numbers[usize::from(!cfg!(target_arch = "x86_64"))].to_string()
}

fn refused(dir: &Dir, calls: &[&str], errno: i32, program: &str, line: &str) -> Ran {
    let calls: Vec<String> = calls.iter().map(|name| number(name)).collect();
    let mut command = crate::common::with_own_history("perl");
    command
        .args(["-e", REFUSE, &number("prctl"), &errno.to_string(), &calls.join(","), program])
        .args(words(line))
        .current_dir(dir.path());
    finish(start(command))
}

fn without_ring(dir: &Dir, errno: i32, program: &str, line: &str) -> Ran {
    refused(dir, &["io_uring_setup"], errno, program, line)
}

/// Whether such a filter can be made here.
fn filter(dir: &Dir) -> Result<(), String> {
    let ran = without_ring(dir, 1, "true", "");
    if ran.status == Some(0) {
        Ok(())
    } else {
        Err(format!("no seccomp filter by perl: {}", ran.stderr.trim()))
    }
}

/// What stands between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// The engines that `fiord engines` says do not work.
fn engines_missing(ran: &Ran) -> BTreeSet<String> {
    let document = ran.assert_success().json();
    let engines = document["engines"].as_array().unwrap().iter();
    let missing = engines.filter(|engine| engine["works"] == false);
    missing.map(|engine| engine["name"].as_str().unwrap().to_string()).collect()
}

#[test]
fn the_table_of_refused_calls_has_the_engines_that_do_not_work() {
    let dir = Dir::new();
    need!(filter(&dir));
    let fiord = env!("CARGO_BIN_EXE_fiord");
    let here = engines_missing(&refused(&dir, &[], 1, fiord, "engines --json"));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/install.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split_once("| where | calls refused |").unwrap().1;
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let errno = if cells[3] == "EPERM" { 1 } else { 38 };
        let run = |line: &str| refused(&dir, &quoted(cells[2]), errno, fiord, line);
        let expected: BTreeSet<String> = quoted(cells[4]).into_iter().map(str::to_string).collect();
        let missing = engines_missing(&run("engines --json"));
        assert_eq!(missing.difference(&here).cloned().collect::<BTreeSet<_>>(), expected, "{row}");
        run("--name=job --rw=randrw --size=64k").assert_success();
        run("quick . --size=16M --time=100ms --trust=off --no-history").assert_success();
    }
}

#[test]
fn a_filter_that_forbids_io_uring_is_named_with_the_remedy() {
    let dir = Dir::new();
    need!(filter(&dir));
    for (errno, name, cause) in [(1, "EPERM", "seccomp"), (38, "ENOSYS", "a sandbox hides it")] {
        let ran = without_ring(
            &dir,
            errno,
            env!("CARGO_BIN_EXE_fiord"),
            "--output-format=json --name=ring --ioengine=io_uring --rw=write --size=64k --name=thread --ioengine=io_uring \
             --sqthread_poll --rw=write --size=64k --name=plain --ioengine=libaio --rw=write --size=64k",
        );
        ran.assert_status(1).assert_prints(&["io_uring_setup", name, cause, "use ioengine=libaio"]);
        let jobs = ran.json()["jobs"].clone();
        let ended = |job: usize| (jobs[job]["error"].as_i64(), jobs[job]["write"]["io_bytes"].as_u64());
        let refused = (Some(i64::from(errno)), Some(0));
        assert_eq!((ended(0), ended(1), ended(2)), (refused, refused, (Some(0), Some(64 << 10))), "{jobs}");
    }
}

#[test]
fn the_engines_that_work_are_listed_where_io_uring_is_forbidden() {
    let dir = Dir::new();
    need!(filter(&dir));
    let ran = without_ring(&dir, 1, env!("CARGO_BIN_EXE_fiord"), "engines --json");
    let document = ran.assert_success().json();
    assert_eq!(document["io_uring"], Value::Array(Vec::new()));
    for engine in document["engines"].as_array().unwrap() {
        match engine["name"].as_str().unwrap() {
            "io_uring" => {
                let refusal = engine["refusal"].as_str().unwrap();
                assert!(refusal.contains("io_uring_setup") && refusal.contains("libaio"), "{refusal}");
            }
            "psync" | "libaio" | "posixaio" => assert_eq!(engine["works"], true, "{engine}"),
            _ => {}
        }
    }
    let text = without_ring(&dir, 1, env!("CARGO_BIN_EXE_fiord"), "engines").assert_success().stdout.clone();
    assert_fits_terminal(&text);
}

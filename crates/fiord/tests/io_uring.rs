//! io_uring where it is forbidden: the remedy is named, other jobs go on, and nothing hangs.
//!
//! Invariant: what forbids it is the kernel, by a seccomp filter as those of containers.

use fiord_testing::need;
use serde_json::Value;

use crate::common::{Dir, Ran, assert_fits_terminal, finish, start, words};

/// Lets `io_uring_setup` fail with the errno that is the second argument, and becomes the program of the others. The number
/// of `prctl` is the first; that of `io_uring_setup` is the same everywhere.
const FORBID: &str = r#"
my ($prctl, $errno) = splice @ARGV, 0, 2;
my $filter = pack "SCCL" x 4, 0x20,0,0,0, 0x15,0,1,425, 0x06,0,0,0x50000|$errno, 0x06,0,0,0x7fff0000;
my $program = pack "Sx6P32", 4, $filter;
syscall($prctl+0, 38, 1, 0, 0, 0) == 0 or die "PR_SET_NO_NEW_PRIVS: $!";
syscall($prctl+0, 22, 2, $program, 0, 0) == 0 or die "PR_SET_SECCOMP: $!";
exec { $ARGV[0] } @ARGV or die "exec: $!";
"#;

const PRCTL: &str = if cfg!(target_arch = "x86_64") { "157" } else { "167" };

fn forbidden(dir: &Dir, errno: i32, program: &str, line: &str) -> Ran {
    let mut command = crate::common::with_own_history("perl");
    command
        .args(["-e", FORBID, PRCTL, &errno.to_string(), program])
        .args(words(line))
        .current_dir(dir.path());
    finish(start(command))
}

/// Whether such a filter can be made here.
fn filter(dir: &Dir) -> Result<(), String> {
    let ran = forbidden(dir, 1, "true", "");
    if ran.status == Some(0) {
        Ok(())
    } else {
        Err(format!("no seccomp filter by perl: {}", ran.stderr.trim()))
    }
}

#[test]
fn a_filter_that_forbids_io_uring_is_named_with_the_remedy() {
    let dir = Dir::new();
    need!(filter(&dir));
    for (errno, name, cause) in [(1, "EPERM", "seccomp"), (38, "ENOSYS", "a sandbox hides it")] {
        let ran = forbidden(
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
    let ran = forbidden(&dir, 1, env!("CARGO_BIN_EXE_fiord"), "engines --json");
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
    let text = forbidden(&dir, 1, env!("CARGO_BIN_EXE_fiord"), "engines").assert_success().stdout.clone();
    assert_fits_terminal(&text);
}

//! `fiord hosts` and `fiord agent`, without a network. Runs on hosts are in `tests/fleet`.

use crate::common::schema::assert_documented;
use crate::common::{Dir, finish, fiord, start};

#[test]
fn hosts_are_shown_as_json_and_as_a_table() {
    let dir = Dir::new();
    let ran = dir.run("hosts a,b --via={agent} --json");
    ran.assert_success();
    let document = ran.json();
    assert_documented(&document, "hosts");
    assert_eq!(document["hosts"].as_array().map(Vec::len), Some(2));
    assert_eq!(dir.run("hosts a --via=telnet").status, Some(1));
}

#[test]
fn reports_that_were_left_are_listed_as_json_and_a_damaged_one_is_lost() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.join("state/fiord/spool")).unwrap();
    std::fs::write(dir.join("state/fiord/spool/1700000000000-12-a"), "report").unwrap();
    let collect = |words: &str| {
        let mut command = fiord(dir.path(), &format!("hosts a --via={{agent}} {words}"));
        command.env("XDG_STATE_HOME", dir.join("state")).env("XDG_CACHE_HOME", dir.join("cache"));
        finish(start(command))
    };
    let document = collect("--collect --json").assert_success().json();
    assert_documented(&document, "hosts-collect");
    assert_eq!(document["hosts"][0]["run"], "1700000000000-12");
    collect("--collect=1700000000000-12")
        .assert_status(1)
        .assert_prints(&["a: lost", "its report is damaged"]);
    collect("--collect=1700000000000-1")
        .assert_status(1)
        .assert_prints(&["a: missing", "no report of the run"]);
    let left = dir.join("state/fiord/spool/1700000000000-12-a");
    assert!(left.exists());
    std::fs::remove_file(left).unwrap();
    assert_eq!(
        collect("--collect").assert_success().stdout,
        "no host has a report of a run whose controller was lost\n"
    );
}

#[test]
fn what_clean_removes_is_listed_as_json() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.join("state/fiord/spool")).unwrap();
    std::fs::write(dir.join("state/fiord/spool/1700000000000-12-a"), "report").unwrap();
    let mut command = fiord(dir.path(), "hosts a,b --via={agent} --clean --json");
    command.env("XDG_STATE_HOME", dir.join("state")).env("XDG_CACHE_HOME", dir.join("cache"));
    let ran = finish(start(command));
    let document = ran.assert_success().json();
    assert_documented(&document, "hosts-clean");
    assert_eq!(document["hosts"].as_array().map(Vec::len), Some(2));
    assert!(!dir.join("state/fiord/spool").exists(), "{document}");
}

#[test]
fn what_runs_on_hosts_do_not_have_is_refused_before_a_host_is_reached() {
    let dir = Dir::new();
    for option in ["repeat=2", "idle-prof=system"] {
        let refused = dir.run(&format!("--name=a --ioengine=null --size=1m --hosts=a,b --{option}"));
        let name = option.split('=').next().unwrap();
        refused
            .assert_status(1)
            .assert_prints(&[&format!("{name}: does not work with --hosts yet"), "leave it out"]);
    }
    dir.run("--profile=tiobench --hosts=a")
        .assert_status(1)
        .assert_prints(&["profile: does not work with --hosts"]);
}

#[test]
fn a_void_finding_is_a_status_with_strict_trust() {
    let dir = Dir::new();
    let file = format!("/dev/shm/fiord-hosts-{}", std::process::id());
    let job = format!("--name=a --size=1m --filename={file} --hosts=a --via={{agent}} --output-format=json");
    let (on, strict) = (dir.run(&job), dir.run(&format!("{job} --trust=strict")));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(on.assert_success().json()["findings"][0]["severity"], "void", "it is in memory");
    assert_eq!(strict.status, Some(3), "{strict:?}");
}

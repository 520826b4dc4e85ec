//! Studies on hosts: a result for each host, and nothing left there.

use std::path::PathBuf;
use std::process::{Command, Output};

use fiord_fleet_tests::{Fleet, kill, report, text};
use fiord_servers::{eventually, needs};
use serde_json::Value;

const CHECK: &str = "check etcd --time=1s --size=64M --via={agent} --json --no-history";

/// A subcommand (words) on the hosts of the list.
fn command(fleet: &Fleet, words: &str) -> Command {
    let mut command = Command::new(fleet.fiord());
    command.args(words.split_whitespace()).arg("--hosts").arg(fleet.directory.join("hosts"));
    fleet.placed(&mut command);
    command
}

fn run(fleet: &Fleet, words: &str) -> Output {
    command(fleet, words).output().unwrap()
}

/// A key of each host.
fn each(report: &Value, key: &str) -> Vec<Value> {
    report["hosts"].as_array().unwrap().iter().map(|host| host[key].clone()).collect()
}

/// Directories of studies that are left.
fn scratch(fleet: &Fleet) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(fleet.directory.path()).unwrap().flatten().map(|entry| entry.path());
    paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("fiord-")).collect()
}

/// Whether the runs of so many hosts have written something.
fn are_at_work(fleet: &Fleet, hosts: usize) -> bool {
    let lengths = |directory: PathBuf| std::fs::read_dir(directory).into_iter().flatten().flatten();
    let has_data = |entry: std::fs::DirEntry| {
        entry.file_name() != ".owner" && entry.metadata().is_ok_and(|facts| facts.len() > 0)
    };
    scratch(fleet).into_iter().filter(|directory| lengths(directory.clone()).any(has_data)).count() == hosts
}

#[test]
fn each_host_has_a_verdict_and_the_worst_is_that_of_all() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let output = run(&fleet, CHECK);
    let report = report(&output).unwrap();
    assert_eq!(
        (each(&report, "host"), each(&report, "fate")),
        (vec!["a".into(), "b".into()], vec!["complete".into(); 2])
    );
    let verdicts = each(&report, "verdict");
    assert!(verdicts.contains(&report["verdict"]), "{report}");
    // A busy machine voids figures.
    let statuses = [("PASS", 0), ("MARGINAL", 0), ("FAIL", 4), ("CANNOT TELL", 6)];
    let expected = statuses.iter().find(|(word, _)| report["verdict"] == *word).unwrap().1;
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(expected), String::new()));
    assert_eq!(report["starts"]["hosts"], 2);
    for document in each(&report, "document") {
        assert_eq!(
            (&document["study"], &document["complete"]),
            (&"check".into(), &true.into()),
            "{document}"
        );
    }
    assert!(fleet.all_leave());
    assert_eq!((scratch(&fleet).len(), fleet.spooled()), (0, 0));
}

#[test]
fn a_file_of_the_controller_is_that_of_the_hosts() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a"]).unwrap();
    let shown = run(&fleet, "check --show etcd");
    std::fs::create_dir(fleet.directory.join("here")).unwrap();
    fleet.directory.write("here/mine.toml", &text(&shown.stdout)).unwrap();
    let elsewhere = fleet.fiord().display().to_string();
    // The agent starts where there is no such file.
    let via = format!("--via=sh -c 'cd state && exec {elsewhere} agent' {{agent}}");
    std::fs::create_dir(fleet.directory.join("state")).unwrap();
    let mut own = command(&fleet, "check here/mine.toml . --time=1s --size=64M --json --no-history");
    let output = own.arg(via).output().unwrap();
    let report = report(&output).unwrap();
    assert_eq!(each(&report, "fate"), ["complete"], "{report}");
    assert!(report["hosts"][0]["document"]["target"]["path"].as_str().unwrap().ends_with("/state"));
}

#[test]
fn what_cannot_be_done_on_a_host_is_said_once_and_starts_nothing() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    for words in [CHECK.replace("etcd", "etcd nowhere"), CHECK.replace("etcd", "etcd --unknown")] {
        let output = run(&fleet, &words);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{}", text(&output.stderr));
    }
    let said = text(&run(&fleet, &CHECK.replace("etcd", "etcd nowhere")).stderr);
    assert!(said.contains("2 hosts: nowhere: no such directory"), "{said}");
    let refused = run(&fleet, "profile --rw=read --filename=data --size=1m --via={agent}");
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("a profile is of one machine"), "{}", text(&refused.stderr));
    assert!(!fleet.directory.join("data").exists());
    assert!(fleet.all_leave());
    assert_eq!(scratch(&fleet).len(), 0);
}

#[test]
fn a_job_file_of_the_controller_is_run_with_the_keywords_of_each_host() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    fleet
        .directory
        .write("here.fio", "[job]\nfilename=$hostname.${KIND}\nsize=${hosts}M\nrw=write\n")
        .unwrap();
    let elsewhere = fleet.fiord().display().to_string();
    let via = format!("--via=sh -c 'cd state && unset KIND && exec {elsewhere} agent' {{agent}}");
    std::fs::create_dir(fleet.directory.join("state")).unwrap();
    let mut own = command(&fleet, "sweep here.fio --over bs=64k,1M --json --no-history");
    let output = own.arg(via).env("KIND", "data").output().unwrap();
    let report = report(&output).unwrap();
    assert_eq!(each(&report, "fate"), ["complete"; 2], "{report}");
    for name in ["state/a.data", "state/b.data"] {
        assert_eq!(
            std::fs::metadata(fleet.directory.join(name)).map(|found| found.len()).ok(),
            Some(2 << 20)
        );
    }
}

#[test]
fn a_host_that_is_lost_leaves_the_verdict_open_and_the_others_finish() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let child = command(&fleet, &CHECK.replace("1s", "4s")).spawn().unwrap();
    assert!(eventually(|| are_at_work(&fleet, 2)));
    kill("-KILL", fleet.agents()[0]);
    let output = child.wait_with_output().unwrap();
    let report = report(&output).unwrap();
    let mut fates = each(&report, "fate");
    fates.sort_by_key(Value::to_string);
    assert_eq!(fates, ["complete", "lost"], "{report}");
    assert_eq!((output.status.code(), &report["verdict"]), (Some(1), &"CANNOT TELL".into()));
    assert!(fleet.all_leave());
}

#[test]
fn a_controller_that_is_killed_leaves_no_study_and_no_file() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let mut child = command(&fleet, &CHECK.replace("1s", "600s")).spawn().unwrap();
    assert!(eventually(|| are_at_work(&fleet, 2)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fleet.all_leave());
    assert_eq!(scratch(&fleet).len(), 0);
}

#[test]
fn other_studies_have_a_result_for_each_host() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    for words in [
        "quick --time=1s --size=16M",
        "matrix --time=1s --size=16M --bs=4k --rw=randread --repeat=1",
        "sweep --rw=randread --size=16M --time=2s --over bs=4k,64k",
        "capacity --p99=1s --time=2s --size=16M",
    ] {
        let output = run(&fleet, &format!("{words} --via={{agent}} --json --no-history"));
        let report = report(&output).unwrap();
        assert_eq!(each(&report, "fate"), ["complete"; 2], "{report}");
        // On a busy machine nothing can be told.
        let expected = if report["verdict"].is_null() { 0 } else { 6 };
        assert_eq!(output.status.code(), Some(expected), "{}", text(&output.stderr));
        assert!(
            each(&report, "document")
                .iter()
                .all(|one| one["rows"].as_array().is_some_and(|rows| !rows.is_empty()))
        );
    }
    assert!(fleet.all_leave());
}

#[test]
fn a_file_that_a_job_names_may_be_read_by_all_hosts_and_written_by_one() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    fleet.directory.write("data", &"x".repeat(1 << 20)).unwrap();
    let sweep = |rw: &str| {
        let words =
            "sweep --filename=data --size=1m --over bs=64k,1M --via={agent} --json --no-history --rw=";
        run(&fleet, &format!("{words}{rw}"))
    };
    let read = report(&sweep("read")).unwrap();
    assert_eq!(each(&read, "fate"), ["complete"; 2], "{read}");
    let written = sweep("write");
    assert_eq!(written.status.code(), Some(2), "{}", text(&written.stderr));
    assert!(text(&written.stderr).contains("2 hosts: data: other hosts would write the same target"));
    assert!(fleet.all_leave());
}

#[test]
fn studies_on_hosts_are_compared_whole_or_host_by_host() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let ran =
        run(&fleet, "sweep --rw=randread --size=16M --time=2s --over bs=4k,64k --via={agent} --tag=one");
    // On a busy machine nothing can be told.
    assert!(matches!(ran.status.code(), Some(0 | 6)), "{}", text(&ran.stderr));
    let compared = |words: &str| {
        let mut command = Command::new(fleet.fiord());
        command.arg("compare").args(words.split_whitespace());
        fleet.placed(&mut command);
        command.output().unwrap()
    };
    let whole = compared("one last");
    let shown = text(&whole.stdout);
    assert_eq!((whole.stderr.len(), shown.is_empty()), (0, false), "{}", text(&whole.stderr));
    assert!(shown.contains("a: ") && shown.contains("b: "), "{shown}");
    let hosts = compared("one@a one@b");
    assert_eq!((hosts.stderr.len(), hosts.stdout.is_empty()), (0, false), "{}", text(&hosts.stderr));
    let none = text(&compared("one@a one@c").stderr);
    assert!(none.contains("one has no host c; it has a, b"), "{none}");
}

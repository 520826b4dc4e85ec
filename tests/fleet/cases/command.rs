//! Hosts that are reached by a command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use fiord_fleet_tests::{Fleet, executable, fates, kill, reads, report, text};
use fiord_servers::{eventually, free_port, needs};
use serde_json::Value;

const JOB: &str = "--via={agent} --name=job --ioengine=null --rw=randread --size=64m";
const LONG: &str =
    "--via={agent} --name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600";

#[test]
fn three_hosts_start_together_and_are_one() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b", "c"]).unwrap();
    let output = fleet.run(&format!("{JOB} --time_based --runtime=1")).unwrap();
    let report = report(&output).unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fates(&report), ["complete"; 3]);
    let [each, all] = reads(&report);
    assert!(each == all && each > 0, "{each} {all}");
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 0);
}

#[test]
fn conditions_are_on_all_hosts_as_one_or_on_how_they_differ() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = format!("{JOB} --time_based --runtime=1");
    let holds = fleet.run(&format!("{job} --fail-if=read.iops>1 --fail-if=hosts.iops.min>1")).unwrap();
    let said = text(&holds.stderr);
    // Where a finding voids the figures nothing is decided.
    let expected = if said.contains("a finding voids it") { (6, "undecided") } else { (8, "holds") };
    assert_eq!(holds.status.code(), Some(expected.0), "{said}");
    for condition in ["read.iops>1", "hosts.iops.min>1"] {
        assert!(said.contains(&format!("--fail-if {condition:?}: {}", expected.1)), "{said}");
    }
    let hosts = fleet.directory.read("hosts") + "[gone]\nagent=/nonexistent/fiord\n";
    fleet.directory.write("hosts", &hosts).unwrap();
    let job = format!("{job} --allow-missing=1");
    let open = fleet.run(&format!("{job} --fail-if=read.iops<1 --fail-if=hosts.iops.max<1")).unwrap();
    let said = text(&open.stderr);
    assert_eq!((open.status.code(), said.matches("without 1 of ").count()), (Some(6), 2), "{said}");
    let passed = fleet.run(&format!("{job} --fail-if=read.iops<1 --undecided=pass")).unwrap();
    assert_eq!(passed.status.code(), Some(0), "{}", text(&passed.stderr));
    let wrong = fleet.run(&format!("{job} --fail-if=hosts.p99.mad>1ms")).unwrap();
    assert!(wrong.status.code() == Some(1) && text(&wrong.stderr).contains("hosts.p99.mad"));
}

#[test]
fn a_run_is_in_the_history_with_the_run_of_each_host() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let fiord = |words: &str| fleet.local(words).output().unwrap();
    let hosts = fleet.directory.join("hosts").display().to_string();
    let ran = fiord(&format!("{JOB} --hosts={hosts} --tag=before"));
    assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(0), String::new()));
    let shown = text(&fiord("show before").stdout);
    assert!(shown.contains(text(&ran.stdout).trim()), "{shown}");
    let listed: Value = serde_json::from_slice(&fiord("history --json").stdout).unwrap();
    let runs = listed["runs"].as_array().unwrap();
    assert_eq!((runs.len(), &runs[0]["kind"]), (1, &"hosts".into()), "{listed}");
    assert_eq!((&runs[0]["title"], &runs[0]["exit_status"]), (&"job on 2 hosts".into(), &0.into()));
    let whole = report(&fiord("show last --json")).unwrap();
    assert_eq!(fates(&whole), ["complete"; 2]);
    let of_one: Value = serde_json::from_slice(&fiord("show last@b --json").stdout).unwrap();
    assert_eq!(of_one["jobs"][0]["read"]["total_ios"], 16384);
    for words in ["compare before@a last@b", "compare before last --json", "explain last", "explain last@a"] {
        let output = fiord(words);
        assert_eq!(output.status.code(), Some(0), "{words}: {}", text(&output.stderr));
    }
    let none = text(&fiord("show last@c").stderr);
    assert!(none.contains("run 1 has no host c; it has a, b"), "{none}");
    fiord("history rm last");
    assert!(text(&fiord("show before@a").stderr).contains("names no run"));
    let files = fiord(&format!(
        "--name=j --rw=write --size=4k --filename=f --hosts={hosts} --via={{agent}} --shared"
    ));
    assert_eq!(files.status.code(), Some(0), "{}", text(&files.stderr));
    let listed: Value = serde_json::from_slice(&fiord("history --json").stdout).unwrap();
    let path = fleet.directory.path().canonicalize().unwrap().join("f").display().to_string();
    assert_eq!(listed["runs"][0]["targets"], serde_json::json!([path]), "{listed}");
    fiord("history rm last");
    let list = fleet.directory.read("hosts") + "[gone]\nagent=/nonexistent/fiord\n";
    fleet.directory.write("hosts", &list).unwrap();
    let ran = fiord(&format!("{JOB} --hosts={hosts} --allow-missing=1"));
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    for words in ["show last@gone", "compare last@a last@gone"] {
        let said = text(&fiord(words).stderr);
        assert!(said.contains("has no figures of host gone, which was missing: "), "{words}: {said}");
    }
}

#[test]
fn stages_are_barriers_and_keywords_are_those_of_the_host() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let file = "[one]\nrw=write\nsize=$pagesize*4\nfilename=f-$hostname-${hostnum}\n[two]\nstonewall\nrw=read\nsize=16k\n\
                filename=f-$hostname-${hostnum}\n";
    fleet.directory.write("j.fio", file).unwrap();
    let output = fleet.run("j.fio --via={agent}").unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fates(&report(&output).unwrap()), ["complete"; 2]);
    for name in ["f-a-0", "f-b-1"] {
        assert_eq!(fleet.directory.join(name).metadata().unwrap().len(), 16384, "{name}");
    }
}

#[test]
fn an_error_in_a_section_starts_nothing_and_is_said_once() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b", "c"]).unwrap();
    let output = fleet.run("--via={agent} --name=job --rw=read --filename=nothing").unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("3 hosts: command line:1:"), "{said}");
    assert!(output.stdout.is_empty());
    assert!(fleet.all_leave());
}

#[test]
fn a_target_that_two_hosts_would_write_is_refused_unless_it_is_meant() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = "--via={agent} --name=job --rw=write --size=16k --filename=one";
    let output = fleet.run(job).unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("2 hosts: one: other hosts would write the same target") && said.contains("--shared"),
        "{said}"
    );
    assert!(fleet.all_leave() && !fleet.directory.join("one").exists());
    for meant in ["--shared", "--order=alone"] {
        let output = fleet.run(&format!("{job} {meant}")).unwrap();
        assert_eq!(output.status.code(), Some(0), "{meant}: {}", text(&output.stderr));
    }
    let own = fleet.run("--via={agent} --name=job --rw=write --size=16k --filename=of-$hostname").unwrap();
    assert_eq!(own.status.code(), Some(0), "{}", text(&own.stderr));
}

#[test]
fn hosts_that_take_turns_in_three_rounds_have_medians_and_repeats_to_compare() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let fiord = |words: &str| fleet.local(words).output().unwrap();
    let file = "[job]\nioengine=null\nrw=randread\nsize=64m\nexec_prerun=echo $hostname >>turns\n";
    fleet.directory.write("j.fio", file).unwrap();
    let hosts = fleet.directory.join("hosts").display().to_string();
    let ran = fiord(&format!("j.fio --via={{agent}} --order=interleaved --hosts={hosts}"));
    assert_eq!((ran.status.code(), text(&ran.stderr)), (Some(0), String::new()));
    assert_eq!(fleet.directory.read("turns").split_whitespace().collect::<String>(), "ababab");
    let said = text(&ran.stdout);
    assert!(said.contains("  each ran alone in 3 of 3 rounds: rows are medians"), "{said}");
    assert!(said.contains("\n  3 runs of each; ±"), "{said}");
    let whole = report(&fiord("show last --json")).unwrap();
    assert_eq!(
        (fates(&whole), &whole["fleet"]["order"]),
        (vec!["complete".to_string(); 2], &"interleaved".into())
    );
    let repeats = whole["repeats"].as_array().unwrap();
    let runs = |of: &str, figure: &str| {
        let found = repeats.iter().find(|one| one["of"] == of && one["figure"] == figure).unwrap();
        found["runs"].as_array().unwrap().clone()
    };
    assert_eq!([runs("a", "iops").len(), runs("b: job, read", "p99_ns").len()], [3, 3]);
    let row = whole["fleet"]["hosts"][1]["iops"].as_f64().unwrap();
    assert!(runs("b", "iops").iter().any(|run| (run.as_f64().unwrap() - row).abs() <= 1.0), "{row} {whole}");
    let compared = text(&fiord("compare last@a last@b").stdout);
    assert!(compared.contains("3 runs"), "{compared}");
    assert!(fleet.all_leave());
}

#[test]
fn a_round_that_a_host_misses_is_the_last() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    // Its agent does not start any more once a second round has begun.
    let file = "[job]\nioengine=null\nrw=read\nsize=1m\n\
                exec_prerun=test -e ran-$hostname && touch refuse || touch ran-$hostname\n";
    fleet.directory.write("j.fio", file).unwrap();
    let agent = fleet.fiord().display().to_string();
    let gone = format!("#!/bin/sh\ntest -e refuse && {{ echo refused >&2; exit 3; }}\nexec {agent} agent\n");
    let path = fleet.directory.write("sometimes", &gone).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let hosts = format!("[a]\nagent={agent}\n[b]\nagent={}\n", path.display());
    fleet.directory.write("hosts", &hosts).unwrap();
    let output = fleet.run("j.fio --via={agent} --order=interleaved").unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("b: failed: round 3: ") && said.contains("refused"), "{said}");
    let report = report(&output).unwrap();
    assert_eq!(fates(&report), ["complete", "failed"]);
    let runs = |of: &str| {
        let repeats = report["repeats"].as_array().unwrap();
        repeats.iter().find(|one| one["of"] == of).unwrap()["runs"].as_array().unwrap().len()
    };
    assert_eq!([runs("a"), runs("b")], [3, 2]);
    assert!(fleet.all_leave());
}

#[test]
fn a_host_that_is_missing_ends_it_unless_it_is_allowed() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let hosts = fleet.directory.read("hosts") + "[gone]\nagent=/nonexistent/fiord\n";
    fleet.directory.write("hosts", &hosts).unwrap();
    let output = fleet.run(JOB).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("gone: missing: /nonexistent/fiord"), "{}", text(&output.stderr));
    let output = fleet.run(&format!("{JOB} --allow-missing=1")).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fates(&report(&output).unwrap()), ["complete", "complete", "missing"]);
    assert!(fleet.all_leave());
}

#[test]
fn an_agent_that_is_killed_is_lost_and_the_others_finish() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let child = fleet.start(&LONG.replace("600", "3"), 2).unwrap();
    kill("-KILL", fleet.agents()[0]);
    let output = child.wait_with_output().unwrap();
    let mut fates = fates(&report(&output).unwrap());
    fates.sort();
    assert_eq!((output.status.code(), fates), (Some(1), vec!["complete".to_string(), "lost".to_string()]));
    assert!(fleet.all_leave());
}

#[test]
fn a_trigger_says_whose_states_were_lost_with_their_host() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let hosts = fleet.directory.read("hosts").replace("[a]", "[a]\nfilename=of-a");
    fleet.directory.write("hosts", &hosts.replace("[b]", "[b]\nfilename=of-b")).unwrap();
    let job = "--via={agent} --on-lost=finish --name=w --ioengine=psync --rw=randwrite --size=8m --rate_iops=200 \
               --verify=crc32c --do_verify=0 --shared --trigger-file=fire --trigger=ls";
    let child = fleet.command(job).spawn().unwrap();
    let is_written = |name| fleet.directory.join(name).metadata().is_ok_and(|file| file.len() > 0);
    assert!(eventually(|| is_written("of-a") && is_written("of-b")), "both write");
    kill("-KILL", fleet.agents()[0]);
    fleet.directory.write("fire", "").unwrap();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    let states = ["a", "b"].map(|host| format!("{host}-w-0-verify.state"));
    let came = states.each_ref().map(|state| said.contains(state.as_str()));
    assert!(output.status.code() == Some(1) && came[0] != came[1], "ls names one of {states:?}: {said}");
    let lost = if came[0] { "b" } else { "a" };
    assert!(said.contains(&format!("{lost}: lost: its writes can be verified")), "{said}");
    assert!(fleet.all_leave());
}

#[test]
fn an_agent_that_was_frozen_for_20_seconds_goes_on() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = format!("{} --status-interval=1 --output-format=normal,json", LONG.replace("600", "20"));
    let mut child = fleet.start(&job, 2).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "Hosts:"), "both have told what they did");
    let rest = std::thread::spawn(move || lines.collect::<Vec<String>>());
    let frozen = fleet.agents()[0];
    kill("-STOP", frozen);
    assert!(eventually(|| fleet.agents().len() == 1), "the other has ended");
    kill("-CONT", frozen);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rest = rest.join().unwrap();
    let document = rest.iter().skip_while(|line| *line != "{").map(String::as_str).collect::<String>();
    let report: Value = serde_json::Deserializer::from_str(&document).into_iter().next().unwrap().unwrap();
    assert_eq!(fates(&report), ["complete"; 2]);
    // What it did while nobody saw it is neither nothing nor even.
    let unknown =
        |host: &Value| host["iops"].as_array().unwrap().iter().filter(|rate| rate.is_null()).count();
    let hosts = report["fleet"]["over_time"]["hosts"].as_array().unwrap();
    assert!(hosts.iter().map(unknown).max() >= Some(15), "{hosts:?}");
    assert_eq!(report["fleet"]["window"]["sampled"], false, "the other ended meanwhile");
    let intervals = report["fleet"]["intervals"].as_array().unwrap();
    let of_one = intervals.iter().filter(|interval| interval["hosts"].as_array().unwrap().len() == 1);
    let of_one: Vec<&Value> = of_one.collect();
    assert!(of_one.len() >= 5, "its old figures are in no sum: {intervals:?}");
    assert!(
        of_one.iter().all(|interval| interval["all"]["ios"] == interval["hosts"][0]["ios"]),
        "{of_one:?}"
    );
}

/// Carries bytes both ways, each late by 40 ms and what came while those were waited for.
const RELAY: &str = "import os, subprocess, sys, threading, time
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def carry(source, sink):
    while part := os.read(source, 1 << 16):
        time.sleep(0.04)
        os.write(sink, part)
    os.close(sink)
threading.Thread(target=carry, args=(0, agent.stdin.fileno()), daemon=True).start()
carry(agent.stdout.fileno(), 1)
";

/// The wall clock, which time namespaces share, says when they really started.
#[test]
fn hosts_whose_clocks_differ_and_whose_words_are_late_start_as_is_said() {
    needs!("python3" of "python3");
    let trial = Command::new("unshare").args(["--time", "--fork", "--monotonic", "1000", "true"]).status();
    fiord_testing::need!(trial.is_ok_and(|it| it.success()).then_some(()).ok_or("no time namespaces"));
    let fleet = Fleet::new(&["a", "b", "c"]).unwrap();
    let own = fleet.fiord().display().to_string();
    fleet.directory.write("relay.py", RELAY).unwrap();
    let relay = fleet.directory.join("relay.py");
    let ahead = format!("unshare --time --fork --monotonic 1000 {own}");
    let late = format!("python3 {} unshare --time --fork --monotonic 5000 {own}", relay.display());
    let sections = [("a", own), ("b", ahead), ("c", late)].map(|(host, agent)| {
        executable(&fleet.directory, host, &format!("#!/bin/sh\nexec {agent} \"$@\"\n"));
        format!("[{host}]\nagent={}\n", fleet.directory.join(host).display())
    });
    fleet.directory.write("hosts", &sections.concat()).unwrap();
    let output = fleet.run(&format!("{JOB} --time_based --runtime=1 --rate_iops=100")).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = report(&output).unwrap();
    assert_eq!(fates(&report), ["complete"; 3]);
    let starts = &report["fleet"]["starts"];
    let ms = |figure: &str| starts[figure].as_f64().unwrap() / 1e6;
    let jobs = report["client_stats"].as_array().unwrap().iter().take(3);
    let started: Vec<f64> = jobs.map(|job| job["job_start"].as_f64().unwrap()).collect();
    let apart_ms =
        started.iter().copied().fold(f64::MIN, f64::max) - started.iter().copied().fold(f64::MAX, f64::min);
    // Wall clocks are rounded down to milliseconds.
    let known_ms = ms("clock_error_ns") + 3.0;
    assert!((apart_ms - ms("skew_ns")).abs() <= known_ms, "{apart_ms} ms apart: {starts}");
    assert!((20.0..100.0).contains(&ms("clock_error_ns")), "as much as words were late: {starts}");
    assert!(fleet.all_leave());
}

#[test]
fn a_controller_that_is_killed_leaves_no_load_and_loses_no_report() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let mut child = fleet.start(LONG, 2).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 2);
}

#[test]
fn what_agents_left_is_removed_and_nothing_while_one_works() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let hosts = fleet.directory.join("hosts").display().to_string();
    // Where no file is called hosts, which would be a job file.
    let on_hosts = |words: &str| {
        fleet.local(&format!("hosts {hosts} --via={{agent}} {words}")).current_dir("/").output().unwrap()
    };
    let clean = |words: &str| on_hosts(&format!("--clean {words}"));
    let mut child = fleet.start(LONG, 2).unwrap();
    let busy = clean("");
    let said = text(&busy.stdout);
    assert_eq!(busy.status.code(), Some(1), "{said} {}", text(&busy.stderr));
    assert_eq!(said.matches(": nothing removed: agents work there (processes ").count(), 2, "{said}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 2);
    let listed = report(&on_hosts("--collect --json")).unwrap();
    let run = listed["hosts"][0]["run"].as_str().unwrap();
    let collected = on_hosts(&format!("--collect={run} --json"));
    assert_eq!((collected.status.code(), text(&collected.stderr)), (Some(0), String::new()));
    let collected = report(&collected).unwrap();
    assert_eq!(fates(&collected), ["stopped"; 2], "{collected}");
    assert!(collected["client_stats"][0]["read"]["total_ios"].as_u64() > Some(0), "{collected}");
    let own = fleet.directory.join("state/fiord/spool/of-the-user");
    std::fs::write(&own, "").unwrap();
    let cleaned = report(&clean("--json")).unwrap();
    let removed = |host: &Value| host["removed"].as_array().unwrap().len();
    let all = cleaned["hosts"].as_array().unwrap();
    assert_eq!((all.len(), all.iter().map(removed).sum::<usize>()), (2, 2), "one directory: {cleaned}");
    assert!(fleet.spooled() == 1 && own.exists());
    let again = clean("");
    assert_eq!((again.status.code(), text(&again.stderr)), (Some(0), String::new()));
    assert_eq!(text(&again.stdout), "a: nothing to remove\nb: nothing to remove\n");
    assert!(fleet.all_leave());
}

#[test]
fn a_run_that_is_to_be_finished_goes_on_without_its_controller() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let file = "[job]\nioengine=null\nrw=randread\nsize=1g\ntime_based\nruntime=2\n\
                [two]\nstonewall\nrw=write\nsize=4k\nfilename=of-$hostname\n";
    fleet.directory.write("j.fio", file).unwrap();
    let mut child = fleet.start("j.fio --via={agent} --on-lost=finish", 2).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fleet.all_leave());
    for name in ["of-a", "of-b"] {
        // Laid out before, and written by the second stage.
        let written = std::fs::read(fleet.directory.join(name)).unwrap();
        assert!(written.iter().any(|byte| *byte != 0), "{name}");
    }
    assert_eq!(fleet.spooled(), 2);
}

#[test]
fn an_interrupted_run_reports_what_it_did() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let child = fleet.start(LONG, 2).unwrap();
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.status.signal()), (Some(130), None), "{}", text(&output.stderr));
    let report = report(&output).unwrap();
    assert_eq!(fates(&report), ["stopped"; 2]);
    assert!(reads(&report)[0] > 0);
    assert!(fleet.all_leave());
}

// divergence: `--status-interval` with hosts
#[test]
fn status_reports_come_while_hosts_run_and_the_document_has_the_last_figures_once() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = format!("{JOB} --time_based --runtime=3 --rate_iops=100 --status-interval=1");
    let output = fleet.run(&job).unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let whole = report(&output).unwrap();
    assert_eq!(whole["client_stats"].as_array().unwrap().len(), 3, "each host and all clients once");
    let intervals = whole["fleet"]["intervals"].as_array().unwrap();
    assert!(!intervals.is_empty() && intervals[0]["hosts"].as_array().unwrap().len() <= 2, "{intervals:?}");
    let ios: Vec<u64> = intervals.iter().map(|interval| interval["all"]["ios"].as_u64().unwrap()).collect();
    assert!(ios.is_sorted() && ios[0] > 0 && *ios.last().unwrap() <= reads(&whole)[1], "{ios:?}");
    let printed = text(&fleet.run(&format!("{job} --output-format=normal")).unwrap().stdout);
    let (all, hosts) = (printed.matches("All clients:").count(), printed.matches("\nHosts:\n").count());
    assert!(all >= 2 && all == hosts, "{all} {hosts}: {printed}");
}

#[test]
fn metrics_have_each_host_and_the_sum() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let output = fleet.run(&format!("{JOB} --metrics=file:run.prom")).unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let metrics = fleet.directory.read("run.prom");
    let ios = |labels: &str| metrics.contains(&format!("\nfiord_ios_total{{{labels},direction=\"read\"}} "));
    assert!(ios("hosts=\"2\",job_name=\"All clients\",job_number=\"1\""), "{metrics}");
    for host in ["a", "b"] {
        let labels = format!("host=\"{host}\",job_name=\"job\",job_number=\"1\"");
        assert!(
            metrics.contains(&format!("fiord_ios_total{{{labels},direction=\"read\"}} 16384\n")),
            "{metrics}"
        );
    }
    let used = fleet.run(&format!("{JOB} --metrics=prometheus:192.0.2.1:1")).unwrap();
    assert_eq!(used.status.code(), Some(1), "nothing is run");
    assert!(text(&used.stderr).contains("--metrics") && used.stdout.is_empty(), "{}", text(&used.stderr));
}

#[test]
fn a_host_that_is_lost_has_no_metrics_but_its_state() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let port = free_port().unwrap();
    let child = fleet.start(&format!("{LONG} --metrics=prometheus:{port}"), 2).unwrap();
    let scraped = |wanted: &[&str]| {
        eventually(|| {
            let lines = scrape(port);
            wanted.iter().all(|start| lines.contains(&format!("\n{start}")))
        })
    };
    assert!(scraped(&[
        "fiord_ios_total{host=\"a\"",
        "fiord_ios_total{host=\"b\"",
        "fiord_ios_total{hosts=\"2\""
    ]));
    kill("-KILL", fleet.agents()[0]);
    assert!(scraped(&["fiord_host_state{host", "fiord_ios_total{hosts=\"1\""]), "{}", scrape(port));
    let lines = scrape(port);
    let state = |state: &str| {
        let end = format!("\",state=\"{state}\"}} 1");
        let line = lines.lines().find_map(|line| line.strip_suffix(&end))?;
        line.strip_prefix("fiord_host_state{host=\"").map(str::to_string)
    };
    let (lost, other) = (state("lost").expect(&lines), state("running").expect(&lines));
    assert_eq!(lines.matches(&format!("host=\"{lost}\"")).count(), 1, "{lines}");
    assert!(lines.matches(&format!("host=\"{other}\"")).count() > 5, "{lines}");
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(fleet.all_leave());
}

/// What is exported there now.
fn scrape(port: u16) -> String {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return String::new() };
    let mut answer = String::new();
    let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let _ = asked.and_then(|()| stream.read_to_string(&mut answer));
    answer
}

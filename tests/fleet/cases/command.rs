//! Hosts that are reached by a command.

use std::os::unix::process::ExitStatusExt;

use fiord_fleet_tests::{Fleet, fates, kill, reads, report, text};
use fiord_servers::{eventually, needs};

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
fn an_agent_that_was_frozen_goes_on() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let child = fleet.start(&LONG.replace("600", "2"), 2).unwrap();
    let frozen = fleet.agents()[0];
    kill("-STOP", frozen);
    assert!(eventually(|| fleet.agents().len() == 1), "the other has ended");
    kill("-CONT", frozen);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fates(&report(&output).unwrap()), ["complete"; 2]);
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

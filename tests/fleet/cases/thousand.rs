//! A thousand agents at once, on the engine that moves no data.
//!
//! Invariant: each is a process of its own that runs a job; how far apart they start on this machine is said by the report, and
//! not asserted.

use std::os::unix::process::ExitStatusExt;

use fiord_fleet_tests::{Fleet, fates, kill, reads, report, text};
use fiord_servers::{eventually, needs};
use serde_json::Value;

const HOSTS: usize = 1000;

/// However busy this machine is, no agent is given up.
const REACHED: &str = "--via={agent} --connect-timeout=600";

fn fleet() -> Fleet {
    let names: Vec<String> = (1..=HOSTS).map(|number| format!("n{number}")).collect();
    Fleet::new(&names.iter().map(String::as_str).collect::<Vec<_>>()).unwrap()
}

#[test]
fn a_thousand_hosts_all_report_and_nothing_is_left() {
    needs!("sh" of "dash");
    const JOB: &str = "--name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=3 --rate_iops=10 --thread \
                       --write_iops_log=run --log_avg_msec=1000";
    let fleet = fleet();
    let output = fleet.run(&format!("{REACHED} {JOB}")).unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let report = report(&output).unwrap();
    assert_eq!(fates(&report), vec!["complete"; HOSTS]);
    let [each, all] = reads(&report);
    assert!(each == all && each >= HOSTS as u64, "{each} {all}");
    let own = &report["fleet"];
    assert_eq!((&own["starts"]["hosts"], &own["window"]["hosts"]), (&HOSTS.into(), &HOSTS.into()));
    for figure in ["skew_ns", "clock_error_ns", "accepted_ns"] {
        assert!(own["starts"][figure].as_u64().is_some_and(|ns| ns > 0), "{figure}: {}", own["starts"]);
    }
    let logs =
        (1..=HOSTS).filter(|number| !fleet.directory.read(&format!("run_iops.1.log.n{number}")).is_empty());
    assert_eq!(logs.count(), HOSTS);
    // What many say is said once.
    let findings = report["findings"].as_array().map_or(0, Vec::len);
    assert!(findings < 20, "{}", report["findings"]);
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 0);
}

#[test]
fn a_thousand_hosts_that_are_interrupted_all_stop_and_report() {
    needs!("sh" of "dash");
    let fleet = fleet();
    // A host that is at its second job has done its first.
    let file = "[first]\nioengine=null\nrw=read\nsize=4k\n[job]\nstonewall\nexec_prerun=: >begun-$hostname\n\
                ioengine=null\nrw=randread\nsize=1g\ntime_based\nruntime=600\nrate_iops=10\nthread\n";
    fleet.directory.write("j.fio", file).unwrap();
    // Shared is what the command prints, which is nothing.
    let mut child = fleet.command(&format!("j.fio {REACHED} --shared")).spawn().unwrap();
    let have_begun = || {
        let entries = std::fs::read_dir(fleet.directory.path()).unwrap().flatten();
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"begun-")).count() == HOSTS
    };
    while !eventually(have_begun) {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended");
    }
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), output.status.signal()), (Some(130), None), "{said}");
    let report: Value = report(&output).unwrap();
    assert_eq!(fates(&report), vec!["stopped"; HOSTS], "{said}");
    let [each, all] = reads(&report);
    assert!(each == all && each > 0, "{each} {all}");
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 0);
}

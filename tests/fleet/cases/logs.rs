//! Logs of jobs, which are written where the run was started.

use std::collections::BTreeSet;
use std::process::Command;

use fiord_fleet_tests::{Fleet, fates, kill, report, text};
use fiord_servers::{eventually, needs};

const JOB: &str = "[global]\nioengine=null\nrw=randread\nsize=1m\nbs=4k\nwrite_bw_log=bw\nwrite_lat_log=$hostname/lat\n\
                   [one]\nnumjobs=2\nwrite_iops_log\nlog_avg_msec=100\n\
                   [two]\nstonewall\nnumjobs=2\nper_job_logs=0\nwrite_bw_log=all\nwrite_lat_log\n\
                   [three]\nwrite_hist_log=h\nlog_hist_msec=1\nlog_store_compressed=1\nlog_compression=64k\nwrite_lat_log\n";

/// The names of the files in the directory of a run that its jobs made.
fn logs(fleet: &Fleet) -> BTreeSet<String> {
    let entries = std::fs::read_dir(fleet.directory.path()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(".log")).collect()
}

fn lines(fleet: &Fleet, name: &str) -> usize {
    fleet.directory.read(name).lines().count()
}

#[test]
fn the_logs_of_each_host_are_where_the_run_was_started_and_as_of_a_run_there() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    fleet.directory.write("j.fio", JOB).unwrap();
    for directory in ["a", "b", "home"] {
        std::fs::create_dir(fleet.directory.join(directory)).unwrap();
    }
    // Agents are elsewhere, where none of the directories is that logs name.
    let home = fleet.directory.join("home");
    fleet.directory.write("there", "cd home && exec \"$@\"").unwrap();
    let output = fleet.command("j.fio").arg("--via=sh there {agent}").output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fates(&report(&output).unwrap()), ["complete"; 2]);
    let of_host = |host: &str| {
        let names = ["bw_bw.1.log", "bw_bw.2.log", "one_iops.1.log", "one_iops.2.log", "all_bw.log"];
        let more = ["bw_bw.5.log.fz", "h_clat_hist.5.log"];
        let empty = ["two_slat.log", "two_clat.log", "two_lat.log"];
        let fz = ["three_slat.5.log.fz", "three_clat.5.log.fz", "three_lat.5.log.fz"];
        let all = names.iter().chain(&more).chain(&empty).chain(&fz).map(|name| format!("{name}.{host}"));
        all.collect::<Vec<String>>()
    };
    let expected: BTreeSet<String> = ["a", "b"].into_iter().flat_map(of_host).collect();
    assert_eq!(logs(&fleet), expected);
    for host in ["a", "b"] {
        // divergence: one log of several jobs (`per_job_logs=0`)
        // One line for each I/O of both jobs, those of one behind those of the other.
        assert_eq!(lines(&fleet, &format!("all_bw.log.{host}")), 512, "{host}");
        let mut lat = std::fs::read_dir(fleet.directory.join(host)).unwrap();
        assert_eq!(lat.by_ref().count(), 6, "{host}: of the first two jobs");
        let inflated = Command::new(fleet.fiord())
            .arg(format!(
                "--inflate-log={}",
                fleet.directory.join(&format!("bw_bw.5.log.fz.{host}")).display()
            ))
            .output()
            .unwrap();
        assert_eq!(text(&inflated.stdout).lines().count(), 256, "{host}");
    }
    assert_eq!(std::fs::read_dir(&home).unwrap().count(), 0, "nothing is left on a host");
    let again = fleet.command("j.fio").arg("--via=sh there {agent}").output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    assert_eq!(lines(&fleet, "all_bw.log.a"), 512, "replaced");
}

#[test]
fn logs_longer_than_what_may_wait_come_whole() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = "--name=job --ioengine=null --rw=randread --size=400m --bs=4k --write_lat_log=l --log_offset=1";
    let output = fleet.run(&format!("--via={{agent}} {job}")).unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let mut alone = Command::new(fleet.fiord());
    alone.arg("--no-history").args(job.split_whitespace());
    fleet.placed(&mut alone);
    assert_eq!(alone.output().unwrap().status.code(), Some(0));
    // What of a line is the same in each run: direction, length, offset.
    let stable = |name: &str| -> Vec<String> {
        let log = fleet.directory.read(name);
        log.lines().map(|line| line.split(", ").skip(2).collect::<Vec<&str>>().join(", ")).collect()
    };
    let expected = stable("l_clat.1.log");
    assert_eq!(expected.len(), 102_400);
    for host in ["a", "b"] {
        assert!(stable(&format!("l_clat.1.log.{host}")) == expected, "{host}: as of a run here");
    }
    let report = report(&output).unwrap();
    assert_eq!(report["fleet"]["hosts"][0]["logs"], serde_json::json!({"files": 3, "incomplete": []}));
}

#[test]
fn what_logs_must_not_overwrite_is_refused_before_anything_starts() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = "--via={agent} --name=job --ioengine=null --rw=randread --size=1m";
    fleet.directory.write("kept", "kept").unwrap();
    std::os::unix::fs::symlink("kept", fleet.directory.join("l_bw.1.log.b")).unwrap();
    let output = fleet.run(&format!("{job} --write_bw_log=l")).unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), fleet.directory.read("kept").as_str()), (Some(2), "kept"), "{said}");
    assert!(said.contains("l_bw.1.log.b is a symbolic link") && said.contains("remove the link"), "{said}");
    assert!(!fleet.directory.join("l_bw.1.log.a").exists() && output.stdout.is_empty());
    let output = fleet.run(&format!("{job} --write_bw_log=none/l")).unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("2 hosts: command line") && said.contains("there is no directory none here"),
        "{said}"
    );
    fleet
        .directory
        .write("x_bw.1.log.a", "[job]\nioengine=null\nsize=1m\nrw=read\nwrite_bw_log=x\n")
        .unwrap();
    let output = fleet.run("x_bw.1.log.a --via={agent}").unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("x_bw.1.log.a is read by this command"), "{said}");
    assert!(fleet.all_leave());
}

#[test]
fn logs_of_a_lost_host_are_kept_as_far_as_they_came() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = "--via={agent} --name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600 \
               --rate_iops=2000 --write_lat_log=l";
    let child = fleet.start(job, 2).unwrap();
    let size = |name: &str| fleet.directory.join(name).metadata().map_or(0, |found| found.len());
    assert!(
        eventually(|| size("l_clat.1.log.a") > 0 && size("l_clat.1.log.b") > 0),
        "logs come while jobs run"
    );
    kill("-KILL", fleet.agents()[0]);
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let (said, report) = (text(&output.stderr), report(&output).unwrap());
    let fates = fates(&report);
    let lost = fates.iter().position(|fate| fate == "lost").unwrap();
    let name = ["a", "b"][lost];
    assert!(said.contains(&format!("fiord: {name}: 4 of 4 logs incomplete: ")), "{said}");
    let incomplete = &report["fleet"]["hosts"][lost]["logs"]["incomplete"];
    assert_eq!(incomplete.as_array().map(Vec::len), Some(4), "{report}");
    let whole = &report["fleet"]["hosts"][1 - lost]["logs"];
    assert_eq!(whole, &serde_json::json!({"files": 4, "incomplete": []}), "{said}");
    assert!(fleet.all_leave());
}

#[test]
fn a_log_that_cannot_be_written_ends_and_the_run_goes_on() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    // Each write to it is one to a full disk.
    std::os::unix::fs::symlink("/dev/full", fleet.directory.join("l_bw.1.log.a")).unwrap();
    let job = "--via={agent} --name=job --ioengine=null --rw=randread --size=64m --write_bw_log=l";
    let output = fleet.run(job).unwrap();
    let (said, report) = (text(&output.stderr), report(&output).unwrap());
    assert_eq!((output.status.code(), fates(&report)), (Some(1), vec!["complete".to_string(); 2]), "{said}");
    let why = "a: 1 of 1 logs incomplete: l_bw.1.log.a (No space left on device (ENOSPC))";
    assert!(said.contains(why), "{said}");
    assert_eq!(lines(&fleet, "l_bw.1.log.b"), 16384);
    assert!(fleet.all_leave());
}

#[test]
fn an_interrupted_run_has_its_logs() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = "--via={agent} --name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600 --write_lat_log=l";
    let child = fleet.start(job, 2).unwrap();
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    let report = report(&output).unwrap();
    assert_eq!((output.status.code(), fates(&report)), (Some(130), vec!["stopped".to_string(); 2]));
    for (number, host) in ["a", "b"].into_iter().enumerate() {
        let job =
            report["client_stats"].as_array().unwrap().iter().find(|job| job["hostname"] == host).unwrap();
        let log = lines(&fleet, &format!("l_clat.1.log.{host}"));
        assert_eq!(Some(log as u64), job["read"]["total_ios"].as_u64(), "{host}");
        let logs = &report["fleet"]["hosts"][number]["logs"]["incomplete"];
        assert_eq!(logs, &serde_json::json!([]), "{host}");
    }
}

#[test]
fn a_controller_that_is_killed_holds_up_no_run_by_its_logs() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a", "b"]).unwrap();
    let job = "--via={agent} --name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600 --write_lat_log=l";
    let mut child = fleet.start(job, 2).unwrap();
    kill("-STOP", child.id());
    kill("-KILL", child.id());
    child.wait().unwrap();
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 2);
}

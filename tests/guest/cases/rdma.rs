//! The engine `rdma` over RoCE in software, with fio's engine of this name and with itself at the other end.
//!
//! Invariant: fio's two ends need each other: of what fio 3.33 can do, each end is replaced by fiord's in turn.

#![allow(clippy::unwrap_used, reason = "what a case needs and does not get fails it")]

use std::fs;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fiord_guest::{Finished, RdmaEnd, SoftRoce, fiord, resources_after, start};
use serde_json::Value;

use crate::guest;

/// Only one test at a time has the device.
static DEVICE: Mutex<()> = Mutex::new(());

fn device() -> (MutexGuard<'static, ()>, SoftRoce) {
    let turn = DEVICE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    (turn, SoftRoce::new().expect("the kernel has rdma_rxe"))
}

const HOST: &str = "--hostname=10.7.0.1";

/// Words with those that are not constant.
fn words<'a>(first: &'a [String], second: &'a [&'a str]) -> Vec<&'a str> {
    first.iter().map(String::as_str).chain(second.iter().copied()).collect()
}

/// What every end has.
fn common(port: u16, bs: &str, size: &str) -> Vec<String> {
    vec![
        "--ioengine=rdma".to_string(),
        format!("--port={port}"),
        format!("--bs={bs}"),
        format!("--size={size}"),
    ]
}

/// I/Os and bytes of a direction.
fn counts(job: &Value, side: &str) -> (u64, u64) {
    (job[side]["total_ios"].as_u64().unwrap(), job[side]["io_bytes"].as_u64().unwrap())
}

fn jobs(run: &Finished) -> Vec<Value> {
    run.report().unwrap()["jobs"].as_array().unwrap().clone()
}

fn all_said(run: &Finished) -> String {
    format!("{}{}", run.stdout, run.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn counts_are_those_of_fio_in_both_roles() {
    guest!();
    let (_turn, device) = device();
    // An end of fio that receives needs more receives than the other sends at once: it fails otherwise.
    for (port, verb, waits_depth, connects_depth) in
        [(7101, "write", 4, 8), (7103, "read", 8, 4), (7105, "send", 16, 1)]
    {
        let verb_option = format!("--verb={verb}");
        let depth = |depth: i32| format!("--iodepth={depth}");
        let (waits_depth, connects_depth) = (depth(waits_depth), depth(connects_depth));
        let waits = ["--name=waits", "--rw=read", &waits_depth];
        let connects = ["--name=connects", "--rw=write", HOST, &verb_option, &connects_depth];
        let (all, none) = ((16, 64 << 10), (0, 0));

        let attempt = |number: u16| {
            let port = port + 20 * number;
            let base = common(port, "4k", "64k");
            let fio = RdmaEnd::fio(&words(&base, &waits)).unwrap();
            device.wait_for_listener(port).unwrap();
            let run = fiord(&words(&base, &connects)).unwrap();
            assert_eq!(run.code, Some(0), "{verb}: {run:?}");
            assert_eq!(counts(&run.job().unwrap(), "write"), all, "{verb}");
            fio.job().map_err(|why| eprintln!("{verb}: {why}")).ok()
        };
        // On a busy machine the end of fio now and then does not return when that of fiord has ended.
        let waited = (0..3).find_map(attempt).expect("fio ends in one of three attempts");
        assert_eq!(waited["error"], 0, "{verb}: {waited}");
        // divergence: the end of `rdma` whose memory the other
        let by_fio = if verb == "send" { all } else { (1, 0) };
        assert_eq!(counts(&waited, "read"), by_fio, "{verb}");

        let base = common(port + 1, "4k", "64k");
        let waiting = start(&words(&base, &waits)).unwrap();
        device.wait_for_listener(port + 1).unwrap();
        let fio = RdmaEnd::fio(&words(&base, &connects)).unwrap();
        let run = waiting.wait().unwrap();
        assert_eq!(run.code, Some(0), "{verb}: {run:?}");
        let by_fiord = if verb == "send" { all } else { none };
        assert_eq!(counts(&run.job().unwrap(), "read"), by_fiord, "{verb}");
        let connected = fio.job().unwrap();
        assert_eq!((connected["error"].as_i64(), counts(&connected, "write")), (Some(0), all), "{verb}");
    }
}

#[test]
fn two_ends_of_fiord_use_every_verb() {
    guest!();
    let (_turn, _device) = device();
    // divergence: `verb=send` with `rdma` to an end
    // divergence: `verb=recv` with `rdma`
    for (verb, received) in [("write", 0), ("read", 0), ("send", 32), ("recv", 32)] {
        let verb_option = format!("--verb={verb}");
        let base = common(7201, "8k", "256k");
        let both = ["--iodepth=8", "--name=waits", "--rw=read", "--name=connects", "--rw=write", HOST];
        let run = fiord(&words(&base, &[&both[..], &[&verb_option]].concat())).unwrap();
        assert_eq!(run.code, Some(0), "{verb}: {run:?}");
        let jobs = jobs(&run);
        assert_eq!(counts(&jobs[0], "read"), (received, received * 8192), "{verb}");
        assert_eq!(counts(&jobs[1], "write"), (32, 256 << 10), "{verb}");
        // Each I/O has its latency.
        assert_eq!(jobs[1]["write"]["clat_ns"]["N"], 32, "{verb}");
        assert_eq!(jobs[0]["read"]["clat_ns"]["N"].as_u64().unwrap_or(0), received, "{verb}");
    }
    // Each loop has a connection of its own, and each clone a port.
    // divergence: `rdma` without a host to connect to
    // divergence: `numjobs` with `rdma`
    let base = common(7210, "8k", "64k");
    let both = ["--loops=3", "--numjobs=2", "--iodepth=2", "--verb=send", "--name=waits", "--rw=read"];
    let run = fiord(&words(&base, &[&both[..], &["--name=connects", "--rw=write", HOST]].concat())).unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    for (number, job) in jobs(&run).iter().enumerate() {
        let side = if number < 2 { "read" } else { "write" };
        assert_eq!(counts(job, side), (24, 3 * (64 << 10)), "{number}");
    }
}

/// A file in memory that holds the buffers of an end.
fn buffers(name: &str, byte: u8, length: usize) -> (String, String) {
    let path = format!("/run/rdma-{name}");
    fs::write(&path, vec![byte; length]).unwrap();
    (format!("--iomem=mmapshared:{path}"), path)
}

#[test]
fn data_are_those_that_the_other_end_has() {
    guest!();
    let (_turn, device) = device();
    // What is sent is verified by the receiver, whichever program sends.
    let verified = ["--verify=crc32c", "--verb=send"];
    let waits = ["--name=waits", "--rw=read", "--iodepth=16"];
    let connects = ["--name=connects", "--rw=write", HOST, "--iodepth=1", "--do_verify=0"];
    let base = common(7301, "4k", "256k");
    let waiting = start(&words(&base, &[&waits[..], &verified[..]].concat())).unwrap();
    device.wait_for_listener(7301).unwrap();
    let fio = RdmaEnd::fio(&words(&base, &[&connects[..], &verified[..]].concat())).unwrap();
    let run = waiting.wait().unwrap();
    assert_eq!((run.code, fio.job().unwrap()["error"].as_i64()), (Some(0), Some(0)), "{run:?}");
    // fio posts no receives while it verifies, and fails at more messages than it has posted. fio 3.33 has another header
    // than 3.42, which fiord follows; a pattern has none.
    let verified_by_fio = ["--verify=pattern", "--verify_pattern=0x3c", "--verb=send"];
    let base = common(7302, "4k", "64k");
    let fio = RdmaEnd::fio(&words(&base, &[&waits[..], &verified_by_fio[..]].concat())).unwrap();
    device.wait_for_listener(7302).unwrap();
    let run = fiord(&words(&base, &[&connects[..], &verified_by_fio[..]].concat())).unwrap();
    let received = fio.job().unwrap();
    assert_eq!((run.code, received["error"].as_i64()), (Some(0), Some(0)), "{run:?}");
    assert_eq!(counts(&received, "read"), (16, 64 << 10));
    // Other data are found.
    let base = common(7303, "4k", "64k");
    let waiting = start(&words(&base, &[&waits[..], &verified[..]].concat())).unwrap();
    device.wait_for_listener(7303).unwrap();
    let sender = ["--name=connects", "--rw=write", HOST, "--verb=send", "--buffer_pattern=0x42"];
    let sent = fiord(&words(&base, &sender)).unwrap();
    let run = waiting.wait().unwrap();
    assert_eq!(run.code, Some(1), "{run:?} {sent:?}");
    assert_eq!(run.job().unwrap()["error"], 84, "{run:?}");

    // What is written is in the other end's memory, and what is read comes from there.
    for (port, fio_waits) in [(7310, true), (7320, false)] {
        let (lent, lent_path) = buffers("lent", 0x11, 16 << 10);
        let waits = ["--name=waits", "--rw=read", "--iodepth=4", &lent];
        let wait = |port: u16| -> Box<dyn FnOnce()> {
            let base = common(port, "4k", "64k");
            let end: Box<dyn FnOnce()> = if fio_waits {
                let fio = RdmaEnd::fio(&words(&base, &waits)).unwrap();
                Box::new(move || assert_eq!(fio.job().unwrap()["error"], 0))
            } else {
                let waiting = start(&words(&base, &waits)).unwrap();
                Box::new(move || assert_eq!(waiting.wait().unwrap().code, Some(0)))
            };
            device.wait_for_listener(port).unwrap();
            end
        };
        let connects = ["--name=connects", "--rw=write", HOST, "--iodepth=4"];
        let ended = wait(port);
        let write = ["--verb=write", "--buffer_pattern=0x77"];
        let run = fiord(&words(&common(port, "4k", "64k"), &[&connects[..], &write[..]].concat())).unwrap();
        assert_eq!(run.code, Some(0), "{run:?}");
        ended();
        assert_eq!(fs::read(&lent_path).unwrap(), vec![0x77; 16 << 10], "written, fio waits: {fio_waits}");

        let (own, own_path) = buffers("own", 0x22, 16 << 10);
        let ended = wait(port + 1);
        fs::write(&lent_path, vec![0x5a; 16 << 10]).unwrap();
        let read = ["--verb=read", "--buffer_pattern=0x77", &own];
        let run =
            fiord(&words(&common(port + 1, "4k", "64k"), &[&connects[..], &read[..]].concat())).unwrap();
        assert_eq!(run.code, Some(0), "{run:?}");
        ended();
        assert_eq!(fs::read(&own_path).unwrap(), vec![0x5a; 16 << 10], "read, fio waits: {fio_waits}");
        let _ = (fs::remove_file(lent_path), fs::remove_file(own_path));
    }
}

#[test]
fn messages_shorter_than_a_block_are_continued() {
    guest!();
    let (_turn, _device) = device();
    let args = [
        "--ioengine=rdma",
        "--port=7401",
        "--size=64k",
        "--verb=send",
        "--name=waits",
        "--rw=read",
        "--bs=8k",
        "--name=connects",
        "--rw=write",
        "--bs=4k",
        HOST,
    ];
    let run = fiord(&args).unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    let jobs = jobs(&run);
    assert_eq!(counts(&jobs[0], "read"), (8, 64 << 10));
    assert_eq!(jobs[0]["read"]["short_ios"], 8);
    assert_eq!(counts(&jobs[1], "write"), (16, 64 << 10));
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    guest!();
    let (_turn, device) = device();
    let base = common(7501, "4k", "512k");
    let both = ["--iodepth=4", "--verify=crc32c", "--verb=send", "--name=waits", "--rw=read"];
    let sender = ["--name=connects", "--rw=write", HOST, "--do_verify=0", "--rate_iops=32"];
    let running = start(&words(&base, &[&both[..], &sender[..]].concat())).unwrap();
    device.wait_for_listener(7501).unwrap();
    running.stop_and_continue().unwrap();
    let run = running.wait().unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    let jobs = jobs(&run);
    let all = (128, 512 << 10);
    assert_eq!((counts(&jobs[0], "read"), counts(&jobs[1], "write")), (all, all));
}

#[test]
fn an_end_that_is_not_there_or_goes_away_is_an_error_with_its_reason() {
    guest!();
    let (_turn, device) = device();
    let connects = ["--name=connects", "--rw=write", HOST];
    let fails = |run: &Finished, errno: i32, parts: &[&str]| {
        assert_eq!(run.code, Some(1), "{run:?}");
        let said = all_said(run);
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(jobs(run).iter().any(|job| job["error"] == errno), "{errno}: {said}");
    };
    // divergence: an end of an `rdma` connection that is absent
    let absent = fiord(&words(&common(7601, "4k", "64k"), &connects)).unwrap();
    fails(&absent, 111, &["ECONNREFUSED", "10.7.0.1, port 7601", "begin the other end first"]);

    // An end that is killed has not said that it is done.
    let base = common(7602, "4k", "1g");
    let waiting = start(&words(&base, &["--name=waits", "--rw=read"])).unwrap();
    device.wait_for_listener(7602).unwrap();
    let fio = RdmaEnd::fio(&words(&base, &connects)).unwrap();
    device.wait_for_connection(7602).unwrap();
    fio.kill().unwrap();
    fails(&waiting.wait().unwrap(), 104, &["ECONNRESET", "the other end"]);

    // A sender with more than the receiver takes.
    let base = vec!["--ioengine=rdma".to_string(), "--port=7603".to_string(), "--bs=4k".to_string()];
    let both = ["--verb=send", "--name=waits", "--rw=read", "--size=64k"];
    let sender = ["--name=connects", "--rw=write", HOST, "--size=1m"];
    let run = fiord(&words(&base, &[&both[..], &sender[..]].concat())).unwrap();
    fails(&run, 104, &["ECONNRESET", "the other end is closed"]);
    assert_eq!(counts(&jobs(&run)[0], "read"), (16, 64 << 10));
    // One with less ends both.
    let both = ["--verb=send", "--name=waits", "--rw=read", "--size=1m", "--iodepth=4"];
    let sender = ["--name=connects", "--rw=write", HOST, "--size=64k"];
    let run = fiord(&words(&base, &[&both[..], &sender[..]].concat())).unwrap();
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(counts(&jobs(&run)[0], "read"), (16, 64 << 10));

    // Blocks that do not fit.
    let base = vec!["--ioengine=rdma".to_string(), "--port=7604".to_string(), "--size=64k".to_string()];
    let both = ["--name=waits", "--rw=read", "--bs=4k", "--name=connects", "--rw=write", "--bs=8k", HOST];
    let run = fiord(&words(&base, &both)).unwrap();
    fails(&run, 90, &["EMSGSIZE", "up to 8192 bytes", "use the same bs"]);

    // An address of no RDMA device, and a port that is in use.
    let elsewhere = ["--name=connects", "--rw=write", "--hostname=127.0.0.1"];
    let run = fiord(&words(&common(7605, "4k", "64k"), &elsewhere)).unwrap();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(all_said(&run).contains("no RDMA device of this machine reaches 127.0.0.1"), "{run:?}");
    let base = common(7606, "4k", "64k");
    let waiting = start(&words(&base, &["--name=waits", "--rw=read"])).unwrap();
    device.wait_for_listener(7606).unwrap();
    let run = fiord(&words(&base, &["--name=waits", "--rw=read"])).unwrap();
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(all_said(&run).contains("another program listens there"), "{run:?}");
    assert_eq!(waiting.interrupt().unwrap().code, Some(130));
}

#[test]
fn every_wait_ends_when_the_run_is_interrupted() {
    guest!();
    let (_turn, device) = device();
    let at_once = |since: Instant| {
        // Emulation is slow; a wait that is not interrupted lasts for ever.
        assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    };
    let waits = ["--name=waits", "--rw=read"];
    let waiting = start(&words(&common(7701, "4k", "64k"), &waits)).unwrap();
    device.wait_for_listener(7701).unwrap();
    let since = Instant::now();
    assert_eq!(waiting.interrupt().unwrap().code, Some(130));
    at_once(since);

    // Nothing answers at this address.
    let silent = ["--name=connects", "--rw=write", "--hostname=10.7.0.9"];
    let connecting = start(&words(&common(7702, "4k", "64k"), &silent)).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let since = Instant::now();
    let run = connecting.interrupt().unwrap();
    assert!(matches!(run.code, Some(130 | 1)), "{run:?}");
    at_once(since);

    // The other end is connected, and stopped: it neither sends nor ends.
    for (port, verb) in [(7703, "send"), (7704, "write")] {
        let base = common(port, "4k", "1g");
        let waiting = start(&words(&base, &waits)).unwrap();
        device.wait_for_listener(port).unwrap();
        let verb_option = format!("--verb={verb}");
        let slow = ["--name=connects", "--rw=write", HOST, &verb_option, "--thinktime=1h"];
        let other = start(&words(&base, &slow)).unwrap();
        device.wait_for_connection(port).unwrap();
        std::thread::sleep(Duration::from_secs(2));
        let since = Instant::now();
        let run = waiting.interrupt().unwrap();
        assert_eq!(run.code, Some(130), "{verb}: {run:?}");
        at_once(since);
        let _ = other.interrupt().unwrap();
    }
}

#[test]
fn jobs_give_back_what_they_took() {
    guest!();
    let (_turn, device) = device();
    let common = ["--ioengine=rdma", "--bs=64k", "--size=4m", "--iodepth=8", "--verb=send", "--port=7801"];
    let waits = [&["--name=waits", "--rw=read"][..], &common[..]].concat();
    let both = [&waits[..], &["--name=connects", "--rw=write"][..], &common[..], &[HOST][..]].concat();
    let pair: Vec<String> = both.into_iter().map(str::to_string).collect();
    let after = |pairs: usize| resources_after(&vec![pair.clone(); pairs], &format!("rdma-{pairs}")).unwrap();
    let (few, many) = (after(1), after(5));
    assert_eq!((few.descriptors, few.threads), (many.descriptors, many.threads));
    // The ends of a connection have 1 MiB of buffers.
    assert!(many.memory_bytes < few.memory_bytes + (2 << 20), "{few:?} {many:?}");
    assert_eq!(device.objects().unwrap(), 0);
}

//! Jobs whose targets are connections: both ends in one run, other programs at the other end, and ends of every kind.
//!
//! Invariant: what one end counts as sent, the other receives, byte for byte.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::unix::ffi::OsStrExt;

use fiord_testing::skipped;

use crate::common::{Dir, Ran, Running, finish, fiord, signal, start, until};

/// The last message of an end that closes.
const CLOSE: &[u8] = b"knil\x89\0\0\0";

/// A port that nobody uses at the moment, nor the one after it.
fn free_port() -> u16 {
    loop {
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let next = port.checked_add(1);
        if next.is_some_and(|next| TcpListener::bind(("0.0.0.0", next)).is_ok()) {
            return port;
        }
    }
}

/// A running job of one connection.
fn started(dir: &Dir, options: &str) -> Running {
    start(fiord(dir.path(), &format!("--output-format=json --bs=4k --size=64k --name=j {options}")))
}

/// Waits until something listens on this port.
fn until_listening(port: u16) {
    let entry = format!(":{port:04X} 00000000:0000 0A");
    until("it listens", || fs::read_to_string("/proc/net/tcp").unwrap().contains(&entry));
}

/// Bytes and errors of a job.
fn figures(ran: &Ran, job: usize, direction: &str) -> (u64, u64, u64) {
    let found = &ran.json()["jobs"][job];
    let figure = |key: &str| found[direction][key].as_u64().unwrap();
    (figure("total_ios"), figure("io_bytes"), found["error"].as_u64().unwrap())
}

/// A reader and a writer in one run, with these options for both and for each.
fn both(options: &str, reader: &str, writer: &str) -> Ran {
    let dir = Dir::new();
    let sides = format!("--name=reader --rw=read {reader} --name=writer --rw=write {writer}");
    dir.run(&format!("--output-format=json --bs=4k --size=256k {options} {sides}"))
}

#[test]
fn what_one_job_sends_the_other_receives_and_verifies() {
    for engine in ["net", "netsplice"] {
        let port = free_port();
        let socket = std::env::temp_dir().join(format!("fiord-net-{}", std::process::id()));
        let path = format!("--filename={}", socket.display());
        let host = "--hostname=127.0.0.1";
        let cases = [
            ("tcp", format!("--port={port}"), "--listen", host),
            ("tcp", format!("--port={port} --pingpong"), "--listen", host),
            ("tcp", format!("--port={port} --nodelay=1 --mss=1000 --window_size=64k"), "--listen", host),
            ("tcp", format!("--port={port} --bs=160k --size=1600k"), "--listen", host),
            ("tcpv6", format!("--port={port}"), "--listen", "--hostname=::1"),
            ("udp", format!("--port={port} --pingpong"), "", host),
            ("udpv6", format!("--port={port} --pingpong"), "", "--hostname=::1"),
            ("unix", path, "", ""),
        ];
        for (protocol, options, reader, writer) in cases {
            if protocol.ends_with("v6") && TcpListener::bind("[::1]:0").is_err() {
                skipped("this machine has no IPv6");
                continue;
            }
            let options = format!("--ioengine={engine} --protocol={protocol} --verify=crc32c {options}");
            let ran = both(&options, reader, &format!("{writer} --do_verify=0"));
            ran.assert_success();
            let bytes = if options.contains("1600k") { (10, 1600 << 10, 0) } else { (64, 256 << 10, 0) };
            let both = (figures(&ran, 0, "read"), figures(&ran, 1, "write"));
            assert_eq!(both, (bytes, bytes), "{options}");
            assert!(!socket.exists(), "what is left of the socket");
        }
    }
}

#[test]
fn a_connection_may_send_from_the_end_that_listens_and_begins_anew_with_each_loop() {
    let port = free_port();
    let dir = Dir::new();
    let line = format!(
        "--output-format=json --ioengine=net --port={port} --bs=4k --size=64k --loops=3 \
         --name=writer --rw=write --listen --name=reader --rw=read --hostname=localhost"
    );
    let ran = dir.run(&line);
    ran.assert_success();
    let bytes = (48, 192 << 10, 0);
    assert_eq!((figures(&ran, 0, "write"), figures(&ran, 1, "read")), (bytes, bytes));
}

#[test]
fn each_clone_has_its_own_port_and_groups_are_joined() {
    let port = free_port();
    let clones = format!("--ioengine=net --port={port} --numjobs=2");
    let ran = both(&clones, "--listen", "--hostname=127.0.0.1");
    ran.assert_success();
    for (job, direction) in [(0, "read"), (1, "read"), (2, "write"), (3, "write")] {
        assert_eq!(figures(&ran, job, direction), (64, 256 << 10, 0));
    }
    let group = "--protocol=udp --hostname=224.0.0.99 --interface=127.0.0.1 --ttl=2 --pingpong";
    let ran = both(&format!("--ioengine=net --port={port} {group}"), "", "");
    ran.assert_success();
    assert_eq!(figures(&ran, 0, "read"), (64, 256 << 10, 0));
}

#[test]
fn another_program_receives_the_bytes_and_then_the_last_message() {
    for engine in ["net", "netsplice"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let options = format!("--ioengine={engine} --port={port} --hostname=127.0.0.1 --rw=write");
        let dir = Dir::new();
        let running = started(&dir, &format!("{options} --buffer_pattern=\"abcd\" --scramble_buffers=0"));
        let mut received = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
        finish(running).assert_success();
        assert!(received == [b"abcd".repeat(16 << 10), CLOSE.to_vec()].concat(), "{}", received.len());
    }
}

// divergence: pieces of a stream
// divergence: the other end of a connection
#[test]
fn what_another_program_sends_counts_until_it_closes() {
    for (engine, bytes, close) in [
        ("net", 64 << 10, &b""[..]),
        ("net", 40 << 10, CLOSE),
        ("net", 40 << 10, b""),
        ("net", 10_000, CLOSE),
        ("netsplice", 40 << 10, CLOSE),
        ("netsplice", 10_000, b""),
    ] {
        let (port, dir) = (free_port(), Dir::new());
        let running = started(&dir, &format!("--ioengine={engine} --port={port} --listen --rw=read"));
        until_listening(port);
        let mut peer = TcpStream::connect(("127.0.0.1", port)).unwrap();
        peer.write_all(&vec![7; bytes]).unwrap();
        peer.write_all(close).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        let ran = finish(running);
        ran.assert_success();
        assert_eq!(figures(&ran, 0, "read").1, bytes as u64, "{engine} {bytes}");
    }
}

#[test]
fn datagrams_count_from_the_first_message_to_the_last() {
    let (port, dir) = (free_port(), Dir::new());
    let running = started(&dir, &format!("--ioengine=net --protocol=udp --port={port} --rw=read"));
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let entry = format!(":{port:04X} ");
    until("it is bound", || fs::read_to_string("/proc/net/udp").unwrap().contains(&entry));
    let send = |message: &[u8]| peer.send_to(message, ("127.0.0.1", port)).unwrap();
    send(&[1; 4096]);
    send(b"link\0\0\0\x98");
    for _ in 0..3 {
        send(&[2; 4096]);
    }
    send(CLOSE);
    let ran = finish(running);
    ran.assert_success();
    assert_eq!(figures(&ran, 0, "read"), (3, 3 * 4096, 0));
}

#[test]
fn an_end_that_is_not_there_or_goes_away_is_an_error_with_its_reason() {
    for engine in ["net", "netsplice"] {
        without_its_other_end(engine);
    }
}

fn without_its_other_end(engine: &str) {
    let (port, dir) = (free_port(), Dir::new());
    let options = format!("--ioengine={engine} --port={port} --bs=64k");
    let ran = dir.run(&format!("--name=j {options} --size=64m --rw=write --hostname=127.0.0.1"));
    ran.assert_status(1).assert_prints(&["ECONNREFUSED", "nobody listens there", "err=111"]);
    let ran = dir.run(&format!("--name=j {options} --size=64k --rw=write --hostname=nosuch.invalid"));
    ran.assert_status(1).assert_prints(&["hostname=nosuch.invalid is not known"]);

    // It takes some bytes and resets the connection.
    // divergence: the reader of a stream
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let running =
        start(fiord(dir.path(), &format!("--name=j {options} --size=1g --rw=write --hostname=127.0.0.1")));
    let mut peer = listener.accept().unwrap().0;
    peer.read_exact(&mut [0; 100_000]).unwrap();
    drop(peer);
    let ran = finish(running);
    ran.assert_status(1).assert_prints(&["the other end is closed"]);

    let ran = dir.run(&format!("--name=j {options} --size=64k --rw=read --listen"));
    ran.assert_status(1).assert_prints(&["EADDRINUSE"]);

    // divergence: a file at the path
    dir.write("precious", "text");
    let ran = dir.run(&format!(
        "--name=j --ioengine={engine} --size=64k --rw=read --protocol=unix --filename=precious"
    ));
    ran.assert_status(1).assert_prints(&["EEXIST"]);
    assert_eq!(dir.text("precious"), "text");
}

// divergence: `fsync` with `net`
// divergence: `rw=rw` with `net`
// divergence: `verify` with `rw=write` and `net`
#[test]
fn what_a_connection_cannot_do_is_refused_and_what_may_stall_is_a_warning() {
    let dir = Dir::new();
    let to = "--name=j --ioengine=net --port=1 --hostname=127.0.0.1 --size=64k";
    for (options, text) in [
        ("--rw=write --fsync=1", "cannot be synced"),
        ("--rw=randwrite", "no offsets to choose at random"),
        ("--rw=write --verify=crc32c", "cannot be read back"),
        ("--rw=write --nrfiles=2", "one connection"),
    ] {
        dir.run(&format!("{to} {options}")).assert_status(1).assert_prints(&[text]);
    }
    dir.run(&format!("{to} --rw=rw")).assert_status(1).assert_prints(&["both wait for ever", "ECONNREFUSED"]);
}

/// Ends a job by SIGINT; without the help of a signal it would wait for ever.
fn interrupted(running: Running) {
    signal(running.0.id(), "INT");
    finish(running).assert_status(130);
}

/// Bytes that wait at the established connection of this local port to be received.
fn waiting_bytes(port: u16) -> Option<u64> {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|line| line[1].ends_with(&format!(":{port:04X}")) && line[3] == "01")?;
    u64::from_str_radix(line[4].split(':').nth(1)?, 16).ok()
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    for engine in ["net", "netsplice"] {
        let (port, dir) = (free_port(), Dir::new());
        let line = format!(
            "--output-format=json --ioengine={engine} --port={port} --bs=4k --size=2m --verify=crc32c \
             --name=reader --rw=read --listen \
             --name=writer --rw=write --hostname=127.0.0.1 --do_verify=0 --rate_iops=250"
        );
        let running = start(fiord(dir.path(), &line));
        until("they are connected", || waiting_bytes(port).is_some());
        for _ in 0..10 {
            signal(running.0.id(), "STOP");
            signal(running.0.id(), "CONT");
        }
        let ran = finish(running);
        ran.assert_success();
        let all = (512, 2 << 20, 0);
        assert_eq!((figures(&ran, 0, "read"), figures(&ran, 1, "write")), (all, all), "{engine}");
    }
}

#[test]
fn every_wait_ends_when_the_run_is_interrupted() {
    let (port, dir) = (free_port(), Dir::new());
    let accepting = started(&dir, &format!("--ioengine=net --port={port} --listen --rw=read"));
    until_listening(port);
    interrupted(accepting);

    for engine in ["net", "netsplice"] {
        let receiving = started(&dir, &format!("--ioengine={engine} --port={port} --listen --rw=read"));
        until_listening(port);
        let mut silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        silent.write_all(&[1; 5000]).unwrap();
        until("all is received", || waiting_bytes(port) == Some(0));
        interrupted(receiving);
    }

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stopped = listener.local_addr().unwrap().port();
    for engine in ["net", "netsplice"] {
        let options = format!("--ioengine={engine} --port={stopped} --hostname=127.0.0.1 --rw=write");
        let sending = started(&dir, &format!("{options} --size=10g --bs=256k"));
        let peer = listener.accept().unwrap().0;
        let mut same = (None, 0);
        until("nothing more arrives", || {
            let now = waiting_bytes(stopped).filter(|bytes| *bytes > 0);
            same = (now, if now.is_some() && now == same.0 { same.1 + 1 } else { 0 });
            same.1 == 200
        });
        interrupted(sending);
        drop(peer);
    }

    let opening = started(&dir, &format!("--ioengine=net --protocol=udp --port={port} --rw=read"));
    let entry = format!(":{port:04X} ");
    until("it is bound", || fs::read_to_string("/proc/net/udp").unwrap().contains(&entry));
    interrupted(opening);
}

// divergence: a host, a URL or a credential that is not UTF-8
/// A path is its bytes; what is not UTF-8 is neither the name of a machine nor a URI.
#[test]
fn a_socket_is_at_its_path_byte_for_byte_and_other_names_are_text() {
    let dir = Dir::new();
    let socket = dir.path().join(OsStr::from_bytes(b"a\xff"));
    let end = |options: &str| {
        let mut command =
            fiord(dir.path(), &format!("--name=j --ioengine=net --protocol=unix --size=64k {options}"));
        command.arg([OsStr::new("--hostname="), socket.as_os_str()].join(OsStr::new("")));
        start(command)
    };
    let reader = end("--rw=read");
    until("the socket is there", || socket.exists());
    finish(end("--rw=write")).assert_success();
    finish(reader).assert_success();
    for (options, name) in [
        ("--ioengine=net --rw=write --port=1", "--hostname="),
        ("--ioengine=net --rw=write --port=1 --hostname=127.0.0.1", "--interface="),
        ("--ioengine=nbd", "--uri=nbd://127.0.0.1:1/"),
        ("--ioengine=http", "--http_host="),
        ("--ioengine=rdma --port=1 --rw=write --verb=write", "--hostname="),
    ] {
        let mut command = fiord(dir.path(), &format!("--name=j --filename=/x --size=64k {options}"));
        command.arg([OsStr::new(name), OsStr::from_bytes(b"\xff")].join(OsStr::new("")));
        finish(start(command)).assert_status(1).assert_prints(&["UTF-8"]);
    }
}

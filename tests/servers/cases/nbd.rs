//! nbd against nbdkit and qemu-nbd, beside Debian's fio.
//!
//! Invariant: what went over the wire is counted by nbdkit's `log` filter, or found in the file behind the server.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fiord_servers::{
    CERTIFICATES, Directory, Finished, Place, Server, counts, fio, fiord, free_port, listens, listens_on,
    needs, number, start,
};

use crate::engine::Subject;

/// nbdkit on the socket `s`, and what it exports.
fn nbdkit(directory: Directory, words: &str) -> Server {
    let mut command = Command::new("nbdkit");
    command.args(["-f", "-U", "s"]).args(words.split_whitespace());
    Server::start(directory, &command, |directory| listens_on(&directory.join("s"))).unwrap()
}

/// The same with a log of all requests.
fn logged(words: &str) -> Server {
    nbdkit(Directory::new().unwrap(), &format!("--filter=log {words} logfile=log"))
}

fn uri(server: &Server) -> String {
    format!("--uri=nbd+unix:///?socket={}", server.directory.join("s").display())
}

/// A job on the server: these words, split at spaces.
fn job(server: &Server, words: &str) -> Vec<String> {
    let mut args = vec!["--name=a".to_string(), "--ioengine=nbd".to_string(), uri(server)];
    args.extend(words.split_whitespace().map(str::to_string));
    args
}

fn with(program: fn(&Path, &[&str]) -> Result<Finished, String>, server: &Server, words: &str) -> Finished {
    let args = job(server, words);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    program(server.directory.path(), &args).unwrap()
}

/// Requests of one kind in the log, and their bytes, since the last connection but for the one that asked for the size.
fn in_log(server: &Server, kind: &str) -> (u64, u64) {
    let mut sum = (0, 0);
    for line in server.directory.read("log").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        // `DATE TIME connection=1 Read id=1 offset=0x0 count=0x1000 ...`; the line of the reply begins with dots.
        if words.get(3) == Some(&kind) {
            let count = words.iter().find_map(|word| word.strip_prefix("count=0x"));
            let bytes = count.map_or(0, |digits| u64::from_str_radix(digits, 16).unwrap());
            sum = (sum.0 + 1, sum.1 + bytes);
        }
    }
    sum
}

#[test]
fn counts_are_those_of_fio_and_of_the_log() {
    needs!("nbdkit" of "nbdkit", "fio" of "fio");
    let jobs = [
        "--rw=read --bs=64k --iodepth=16",
        "--rw=write --bs=4k --size=1m --iodepth=32",
        "--rw=randread --bs=4k --size=1m --iodepth=1",
        "--rw=randwrite --bs=4k --size=1m --iodepth=8 --io_size=512k",
        "--rw=trim --bs=64k --size=4m --iodepth=4",
        "--rw=randrw --bs=8k --offset=2m --iodepth=4 --rwmixread=100",
    ];
    for words in jobs {
        let server = logged("memory 8M");
        let ours = with(fiord, &server, words).job().unwrap();
        let [read, written, trimmed] = counts(&ours);
        assert_eq!(in_log(&server, "Read"), read, "{words}");
        assert_eq!(in_log(&server, "Write"), written, "{words}");
        assert_eq!(in_log(&server, "Trim"), trimmed, "{words}");
        let theirs = with(fio, &server, words).job().unwrap();
        assert_eq!(counts(&ours), counts(&theirs), "{words}");
        assert_eq!((&ours["error"], &theirs["error"]), (&0.into(), &0.into()), "{words}");
    }
}

#[test]
fn syncs_are_flushes_and_synchronous_writes_reach_stable_storage() {
    needs!("nbdkit" of "nbdkit");
    let server = logged("memory 1M");
    // divergence: `sync=1` with `ioengine=nbd`
    let ran = with(fiord, &server, "--rw=write --bs=64k --iodepth=4 --fsync=4 --sync=dsync").job().unwrap();
    assert_eq!(counts(&ran)[1], (16, 1 << 20));
    let (flushes, _) = in_log(&server, "Flush");
    assert_eq!(number(&ran, "sync", "total_ios"), flushes);
    assert!(flushes >= 3, "{flushes}");
    let log = server.directory.read("log");
    let through = log.lines().filter(|line| line.contains(" Write ") && line.contains("fua=1")).count();
    assert_eq!(through, 16, "{log}");
}

#[test]
fn data_written_are_data_read_by_other_programs() {
    needs!("nbdkit" of "nbdkit", "nbdcopy" of "libnbd-bin", "fio" of "fio");
    let directory = Directory::new().unwrap();
    std::fs::write(directory.join("disk"), vec![0; 1 << 20]).unwrap();
    let server = nbdkit(directory, "file disk");
    let write = "--rw=randwrite --bs=4k --iodepth=16 --buffer_pattern=\"fiord!?\"";
    let written = with(fiord, &server, write);
    assert_eq!(counts(&written.job().unwrap())[1], (256, 1 << 20), "{written:?}");
    let copied = Command::new("nbdcopy")
        .arg(format!("nbd+unix:///?socket={}", server.directory.join("s").display()))
        .arg(server.directory.join("copy"))
        .status();
    assert!(copied.unwrap().success());
    let copy = std::fs::read(server.directory.join("copy")).unwrap();
    assert_eq!(copy.len(), 1 << 20);
    for block in copy.chunks(4096) {
        let expected = b"fiord!?".iter().copied().cycle().take(block.len());
        assert!(block.iter().copied().eq(expected), "{:?}", &block[..32]);
    }
    // Each program verifies what the other wrote.
    let verified = "--bs=4k --iodepth=16 --verify=crc32c --verify_state_save=0";
    let [ours, theirs]: [fn(&Path, &[&str]) -> _; 2] = [fiord, fio];
    for (writer, reader, layout) in [(ours, theirs, "--verify_header_format=3.33"), (theirs, ours, "")] {
        let wrote = with(writer, &server, &format!("--rw=randwrite --do_verify=0 {verified} {layout}"));
        assert_eq!(wrote.code, Some(0), "{wrote:?}");
        let read = with(reader, &server, &format!("--rw=randread {verified}"));
        assert_eq!((read.code, counts(&read.job().unwrap())[0]), (Some(0), (256, 1 << 20)), "{read:?}");
    }
    // And finds what has changed behind its back.
    let mut disk = std::fs::read(server.directory.join("disk")).unwrap();
    disk[123_456] ^= 1;
    std::fs::write(server.directory.join("disk"), disk).unwrap();
    let read = with(fiord, &server, &format!("--rw=read {verified}"));
    assert_eq!(read.job().unwrap()["error"], 84, "{read:?}");
}

#[test]
fn qemu_serves_an_export_by_name_over_tcp() {
    needs!("qemu-nbd" of "qemu-utils");
    let directory = Directory::new().unwrap();
    std::fs::write(directory.join("disk"), vec![7; 4 << 20]).unwrap();
    let port = free_port().unwrap();
    let mut command = Command::new("qemu-nbd");
    command.args([
        "-f",
        "raw",
        "-t",
        "-e",
        "8",
        "-b",
        "127.0.0.1",
        "-x",
        "disk",
        "-p",
        &port.to_string(),
        "disk",
    ]);
    let server = Server::start(directory, &command, |_| listens(port)).unwrap();
    let run = |export: &str, words: &str| {
        let uri = format!("--uri=nbd://localhost:{port}/{export}");
        let mut args = vec!["--name=a", "--ioengine=nbd", &uri];
        args.extend(words.split_whitespace());
        fiord(server.directory.path(), &args).unwrap()
    };
    let words = "--rw=randwrite --bs=16k --iodepth=32 --verify=md5 --verify_state_save=0 --numjobs=2 --size=2m \
                 --offset_increment=2m --group_reporting";
    let ran = run("disk", words);
    let job = ran.job().unwrap();
    assert_eq!((ran.code, number(&job, "write", "io_bytes")), (Some(0), 4 << 20), "{ran:?}");
    assert_eq!(number(&job, "read", "io_bytes"), 4 << 20);
    let disk = std::fs::read(server.directory.join("disk")).unwrap();
    assert!(
        disk.chunks(16384).all(|block| block[..2] == [0xca, 0xac]),
        "a header of verification in each block"
    );
    let other = run("other", "--rw=read");
    assert!(format!("{other:?}").contains("no export named"), "{other:?}");
}

#[test]
fn replies_out_of_order_reach_their_requests() {
    needs!("nbdkit" of "nbdkit");
    let directory = Directory::new().unwrap();
    // Blocks with headers of verification, which name their offsets; every second one is slow to read.
    let verify = "--bs=4k --size=64k --verify=crc32c --verify_state_save=0";
    let file = format!("--name=a --filename=disk --rw=write --do_verify=0 {verify}");
    let file: Vec<&str> = file.split(' ').collect();
    assert_eq!(fiord(directory.path(), &file).unwrap().code, Some(0));
    let disk = directory.join("disk");
    let read =
        "[ $(($4 / 4096 % 2)) = 0 ] && sleep 0.2; exec dd bs=4096 skip=$(($4 / 4096)) count=1 status=none";
    let mut command = Command::new("nbdkit");
    command
        .args(["-f", "-U", "s", "-t", "8", "--filter=log", "eval", "logfile=log", "get_size=echo 65536"])
        .args(["thread_model=echo parallel", "block_size=echo 4096 4096 4096"])
        .arg(format!("pread={read} if={}", disk.display()));
    let server = Server::start(directory, &command, |directory| listens_on(&directory.join("s"))).unwrap();
    let ran = with(fiord, &server, &format!("--rw=read --iodepth=8 {verify}"));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (16, 65536)), "{ran:?}");
    let ended: Vec<u32> = server
        .directory
        .read("log")
        .lines()
        .filter_map(|line| line.split_once("...Read id=")?.1.split(' ').next()?.parse().ok())
        .collect();
    assert!(ended.windows(2).any(|pair| pair[0] > pair[1]), "in order: {ended:?}");
}

#[test]
fn an_error_of_one_request_is_an_io_error_of_one_io() {
    needs!("nbdkit" of "nbdkit", "fio" of "fio");
    let server = nbdkit(
        Directory::new().unwrap(),
        "--filter=error memory 1M error-pread=EIO error-pread-rate=100% error-file=broken",
    );
    let words = "--rw=read --bs=64k --iodepth=4";
    let whole = with(fiord, &server, words);
    assert_eq!((whole.code, whole.job().unwrap()["error"].as_i64()), (Some(0), Some(0)), "{whole:?}");
    server.directory.write("broken", "").unwrap();
    for program in [fiord, fio] {
        let ran = with(program, &server, words);
        assert_eq!((ran.code, ran.job().unwrap()["error"].as_i64()), (Some(1), Some(5)), "{ran:?}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(told.contains("Input/output error"), "{told}");
    }
    let ran = with(fiord, &server, &format!("{words} --continue_on_error=read")).job().unwrap();
    assert_eq!((&ran["total_err"], &ran["first_error"]), (&16.into(), &5.into()), "{ran}");
    assert_eq!(number(&ran, "read", "total_ios"), 0);
}

#[test]
fn limits_of_the_server_are_found_before_the_run() {
    needs!("nbdkit" of "nbdkit");
    let limits =
        "blocksize-minimum=4096 blocksize-preferred=64K blocksize-maximum=256K blocksize-error-policy=error";
    let server = nbdkit(Directory::new().unwrap(), &format!("--filter=blocksize-policy memory 1M {limits}"));
    let told = |words: &str| {
        let ran = with(fiord, &server, words);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    };
    let small = told("--rw=read --bs=512");
    assert!(small.contains("blocks of 512 bytes are not aligned"), "{small}");
    let large = told("--rw=read --bs=512k");
    assert!(large.contains("Invalid argument") && large.contains("requests of this size"), "{large}");
    let whole = with(fiord, &server, "--rw=read --bs=256k").job().unwrap();
    assert_eq!(counts(&whole)[0], (4, 1 << 20));
    let server = nbdkit(Directory::new().unwrap(), "-r memory 1M");
    let ran = with(fiord, &server, "--rw=write --bs=4k");
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("read-only"), "{ran:?}");
}

#[test]
fn a_server_that_goes_away_ends_the_job_with_its_error() {
    needs!("nbdkit" of "nbdkit");
    let mut server = nbdkit(Directory::new().unwrap(), "--filter=delay memory 64M rdelay=20ms");
    let args = job(&server, "--rw=randread --bs=4k --iodepth=8 --time_based --runtime=60");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let began = Instant::now();
    let running = start(server.directory.path(), &args).and_then(|running| running.at_work("a")).unwrap();
    server.kill().unwrap();
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    assert_eq!((ran.code, job["error"].as_i64()), (Some(1), Some(104)), "{ran:?}");
    assert!(number(&job, "read", "total_ios") > 0 && began.elapsed() < Duration::from_secs(40), "{ran:?}");
    assert!(format!("{ran:?}").contains("closed the connection"), "{ran:?}");
}

#[test]
fn a_server_that_does_not_answer_does_not_hold_up_the_end() {
    needs!("nbdkit" of "nbdkit");
    for words in ["--rw=randread --bs=4k --iodepth=8", "--rw=write --bs=1m --iodepth=4"] {
        let server =
            nbdkit(Directory::new().unwrap(), "--filter=delay memory 64M delay-read=20ms delay-write=20ms");
        let args = job(&server, &format!("{words} --time_based --runtime=60"));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let running = start(server.directory.path(), &args).and_then(|running| running.at_work("a")).unwrap();
        server.freeze().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let asked = Instant::now();
        let ran = running.interrupt().unwrap();
        // Two seconds on a machine without other work; the watchdog would take ten.
        assert!(asked.elapsed() < Duration::from_secs(8), "{:?}: {ran:?}", asked.elapsed());
        let job = ran.job().unwrap();
        assert_eq!((ran.code, job["error"].as_i64()), (Some(130), Some(0)), "{ran:?}");
        assert!(number(&job, "read", "total_ios") + number(&job, "write", "total_ios") > 0, "{ran:?}");
    }
}

/// The engine on a server.
fn subject(server: &Server) -> Subject<'_> {
    let place = Place { directory: server.directory.path(), variables: &[] };
    Subject { place, args: vec!["--ioengine=nbd".to_string(), uri(server)] }
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs!("nbdkit" of "nbdkit");
    let server = nbdkit(Directory::new().unwrap(), "memory 1M");
    subject(&server).loses_no_io_when_it_is_stopped("--iodepth=4");
}

#[test]
fn jobs_give_back_what_they_took() {
    needs!("nbdkit" of "nbdkit");
    let server = nbdkit(Directory::new().unwrap(), "memory 32M");
    subject(&server).gives_back_what_jobs_took("--rw=randrw", 10);
}

#[test]
fn encrypted_exports_are_verified() {
    needs!("nbdkit" of "nbdkit", "openssl" of "openssl");
    let directory = Directory::new().unwrap();
    let made = Command::new("sh").arg("-c").arg(CERTIFICATES).current_dir(directory.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let port = free_port().unwrap();
    let mut command = Command::new("nbdkit");
    command.args([
        "-f",
        "-i",
        "127.0.0.1",
        "-p",
        &port.to_string(),
        "--tls=require",
        "--tls-certificates=server",
    ]);
    command.args(["memory", "1M"]);
    let server = Server::start(directory, &command, |_| listens(port)).unwrap();
    let run = |uri: &str| {
        let uri = format!("--uri={uri}");
        let words = "--rw=randwrite --bs=4k --iodepth=16 --verify=crc32c --verify_state_save=0";
        let mut args = vec!["--name=a", "--ioengine=nbd", &uri];
        args.extend(words.split_whitespace());
        fiord(server.directory.path(), &args).unwrap()
    };
    let trusted = run(&format!("nbds://localhost:{port}/?tls-certificates=client"));
    let job = trusted.job().unwrap();
    assert_eq!(counts(&job)[..2], [(256, 1 << 20), (256, 1 << 20)], "{trusted:?}");
    let refused = |uri: String, why: &str| {
        let ran = run(&uri);
        let told = format!("{ran:?}");
        assert!(ran.code == Some(1) && told.contains(why), "{uri}: {told}");
    };
    refused(format!("nbd://localhost:{port}"), "requires TLS");
    refused(format!("nbds://localhost:{port}/?tls-certificates=other"), "certificate");
    refused(format!("nbds://127.0.0.2:{port}/?tls-certificates=client"), "");
    refused(format!("nbds://localhost:{port}/?tls-certificates=absent"), "ca-cert.pem");
}

#[test]
fn a_server_that_cannot_be_used_is_named_with_what_to_do() {
    needs!("nbdkit" of "nbdkit");
    let directory = Directory::new().unwrap();
    let told = |words: &str| {
        let mut args = vec!["--name=a", "--ioengine=nbd", "--size=1m"];
        args.extend(words.split_whitespace());
        let ran = fiord(directory.path(), &args).unwrap();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        format!("{}{}", ran.stdout, ran.stderr)
    };
    assert!(told("--rw=read").contains("uri= is missing"));
    assert!(told("--uri=localhost").contains("is not a URI"));
    let port = free_port().unwrap();
    let refused = told(&format!("--uri=nbd://localhost:{port}"));
    assert!(refused.contains("ECONNREFUSED") && refused.contains("is the server running"), "{refused}");
    assert!(told("--uri=nbd+unix:///?socket=/nonexistent").contains("ENOENT"));
}

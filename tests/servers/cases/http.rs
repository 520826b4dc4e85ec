//! http against nginx (WebDAV) and against a store that verifies signatures (S3, Swift: `src/store.py`).
//!
//! Invariant: what went over the wire is what the server's log says.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fiord_servers::{
    CERTIFICATES, Directory, Finished, Place, Server, counts, eventually, fiord, free_port, listens, needs,
    number, start,
};
use serde_json::Value;

use crate::engine::Subject;

/// nginx with WebDAV, on a port and with TLS on another one.
struct Nginx {
    server: Server,
    port: u16,
    tls_port: u16,
}

fn nginx() -> Nginx {
    let directory = Directory::new().unwrap();
    let made = Command::new("sh").arg("-c").arg(CERTIFICATES).current_dir(directory.path()).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    for name in ["data", "body"] {
        std::fs::create_dir(directory.join(name)).unwrap();
    }
    let (port, tls_port) = (free_port().unwrap(), free_port().unwrap());
    let text = CONFIGURATION
        .replace("PORT_TLS", &tls_port.to_string())
        .replace("PORT", &port.to_string())
        .replace("DIR", &directory.path().display().to_string());
    let configuration = directory.write("nginx.conf", &text).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(directory.path()).arg("-e").arg("error.log").arg("-c").arg(configuration);
    let server = Server::start(directory, &command, |_| listens(port) && listens(tls_port)).unwrap();
    Nginx { server, port, tls_port }
}

/// One process, as whoever runs the test. Connections end after a hundred requests.
const CONFIGURATION: &str = "
daemon off;
master_process off;
pid DIR/nginx.pid;
error_log DIR/error.log;
events {}
http {
    log_format requests '$request_method $request_uri $status $content_length $body_bytes_sent $http_range';
    access_log DIR/access.log requests;
    client_body_temp_path DIR/body;
    proxy_temp_path DIR/proxy;
    fastcgi_temp_path DIR/fastcgi;
    uwsgi_temp_path DIR/uwsgi;
    scgi_temp_path DIR/scgi;
    keepalive_requests 100;
    client_max_body_size 2m;
    root DIR/data;
    dav_methods PUT DELETE;
    create_full_put_path on;
    server {
        listen 127.0.0.1:PORT;
        location /locked/ {
            auth_basic locked;
            auth_basic_user_file DIR/users;
        }
        location /readonly/ {
            limit_except GET { deny all; }
        }
    }
    server {
        listen 127.0.0.1:PORT_TLS ssl;
        ssl_certificate DIR/server/server-cert.pem;
        ssl_certificate_key DIR/server/server-key.pem;
    }
}
";

/// Runs a job on a server: these words, split at spaces.
fn run(server: &Server, host: &str, words: &str) -> Finished {
    fiord(server.directory.path(), &strings(&args(host, words))).unwrap()
}

fn args(host: &str, words: &str) -> Vec<String> {
    let mut args = vec!["--name=a".to_string(), "--ioengine=http".to_string(), format!("--http_host={host}")];
    args.extend(words.split_whitespace().map(str::to_string));
    args
}

fn strings(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Whether nginx' log, which it writes after answering, has so many requests of this method that succeeded, with so many
/// bytes of their bodies: those received of a PUT, otherwise those sent.
fn has_logged(server: &Server, method: &str, expected: (u64, u64)) -> bool {
    eventually(|| in_log(server, method) == expected)
}

fn in_log(server: &Server, method: &str) -> (u64, u64) {
    let log = server.directory.read("access.log");
    let lines = log.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.filter(|words| words[0] == method && words[2].starts_with('2')).fold(
        (0, 0),
        |(count, bytes), words| {
            let length = if method == "PUT" { words[3] } else { words[4] };
            (count + 1, bytes + length.parse::<u64>().unwrap_or(0))
        },
    )
}

#[test]
fn blocks_are_objects_of_webdav_and_the_log_has_each_of_them() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let Nginx { server, port, .. } = nginx();
    let host = format!("localhost:{port}");
    let words = "--filename=/dir/object --rw=randwrite --bs=4k --size=1m --buffer_pattern=\"fiord!?\"";
    let ran = run(&server, &host, words);
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1]), (Some(0), (256, 1 << 20)), "{ran:?}");
    assert!(has_logged(&server, "PUT", (256, 1 << 20)), "{:?}", in_log(&server, "PUT"));
    // divergence: objects of `ioengine=http`
    // Each block is a file, and holds what was written.
    let directory = server.directory.join("data/dir");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 256);
    for block in 0..256 {
        let name = format!("object_{}_{}", block * 4096, (block + 1) * 4096);
        let bytes = std::fs::read(directory.join(name)).unwrap();
        assert!(bytes.len() == 4096 && bytes.iter().eq(b"fiord!?".iter().cycle().take(4096)));
    }
    let ran = run(&server, &host, "--filename=/dir/object --rw=randread --bs=4k --size=1m");
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (256, 1 << 20)), "{ran:?}");
    assert!(has_logged(&server, "GET", (256, 1 << 20)), "{:?}", in_log(&server, "GET"));
    let ran = run(&server, &host, "--filename=/dir/object --rw=trim --bs=4k --size=1m");
    assert_eq!((ran.code, counts(&ran.job().unwrap())[2]), (Some(0), (256, 1 << 20)), "{ran:?}");
    assert!(has_logged(&server, "DELETE", (256, 0)), "{:?}", in_log(&server, "DELETE"));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn what_is_written_over_webdav_is_verified() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let Nginx { server, port, .. } = nginx();
    let host = format!("localhost:{port}");
    let verified = "--bs=64k --size=1m --verify=crc32c --verify_state_save=0 --filename=/o";
    let ran = run(&server, &host, &format!("--rw=write --numjobs=1 {verified}"));
    assert_eq!(counts(&ran.job().unwrap())[..2], [(16, 1 << 20), (16, 1 << 20)], "{ran:?}");
    let path = server.directory.join("data/o_65536_131072");
    let mut object = std::fs::read(&path).unwrap();
    object[5000] ^= 1;
    std::fs::write(&path, object).unwrap();
    let ran = run(&server, &host, &format!("--rw=read {verified}"));
    assert_eq!(ran.job().unwrap()["error"], 84, "{ran:?}");
    // An object of another length is not a block.
    std::fs::write(&path, [0; 100]).unwrap();
    let ran = run(&server, &host, "--rw=read --bs=64k --size=1m --filename=/o");
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("not as long as the block"), "{ran:?}");
}

#[test]
fn ranges_of_an_object_are_read() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let Nginx { server, port, .. } = nginx();
    let bytes: Vec<u8> = (0..16_u8).flat_map(|block| vec![block; 4096]).collect();
    std::fs::write(server.directory.join("data/whole"), bytes).unwrap();
    let host = format!("localhost:{port}");
    let words = "--http_object_mode=range --filename=/whole --bs=4k --size=4k --offset=12k --rw=read";
    let ran = run(&server, &host, &format!("{words} --verify=pattern --verify_pattern=0x03"));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (1, 4096)), "{ran:?}");
    let logged = || server.directory.read("access.log").contains("GET /whole 206 - 4096 bytes=12288-16383");
    assert!(eventually(logged), "{}", server.directory.read("access.log"));
    let ran = run(&server, &host, "--http_object_mode=range --filename=/whole --bs=4k --size=128k --rw=read");
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("416"), "{ran:?}");
}

#[test]
fn refusals_of_the_server_are_io_errors_that_say_what_to_do() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let Nginx { server, port, .. } = nginx();
    // The user `me` with the password `secret`.
    server.directory.write("users", "me:{PLAIN}secret\n").unwrap();
    let host = format!("localhost:{port}");
    let refused = |words: &str, errno: i64, why: &str| {
        let ran = run(&server, &host, &format!("--bs=4k --size=16k {words}"));
        assert_eq!((ran.code, ran.job().unwrap()["error"].as_i64()), (Some(1), Some(errno)), "{ran:?}");
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(why), "{ran:?}");
    };
    refused("--filename=/absent --rw=read", 2, "404");
    refused("--filename=/readonly/x --rw=write", 13, "403");
    refused("--filename=/locked/x --rw=write", 13, "401");
    refused("--filename=/locked/x --rw=write --http_user=me --http_pass=other", 13, "401");
    refused("--filename=/large --rw=write --bs=4m --size=4m", 27, "413");
    let ran = run(
        &server,
        &host,
        "--bs=4k --size=16k --filename=/locked/x --rw=write --http_user=me --http_pass=secret",
    );
    assert_eq!((ran.code, counts(&ran.job().unwrap())[1].0), (Some(0), 4), "{ran:?}");
    let ran = run(&server, &host, "--bs=4k --size=16k --filename=/absent --rw=read --ignore_error=ENOENT");
    assert_eq!(ran.job().unwrap()["total_err"], 4, "{ran:?}");
    let ran = run(&server, &format!("localhost:{}", free_port().unwrap()), "--bs=4k --size=16k --rw=read");
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("is the server running"), "{ran:?}");
}

#[test]
fn certificates_are_verified_unless_told_otherwise() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let Nginx { server, tls_port, .. } = nginx();
    let words = "--filename=/x --bs=16k --size=256k --rw=write --verify=crc32c --verify_state_save=0";
    let args = args(&format!("localhost:{tls_port}"), words);
    let with = |https: &str, trusted: &str| {
        let mut command = Command::new(std::env::var_os("FIORD").unwrap());
        command.arg("--no-history").arg("--output-format=json").args(&args).arg(format!("--https={https}"));
        command.env("SSL_CERT_FILE", server.directory.join(trusted)).current_dir(server.directory.path());
        let out = command.output().unwrap();
        (
            out.status.code(),
            format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)),
        )
    };
    let (code, told) = with("on", "client/ca-cert.pem");
    assert!(code == Some(0) && told.contains("\"io_bytes\" : 262144"), "{told}");
    let (code, told) = with("on", "other/ca-cert.pem");
    assert!(code == Some(1) && told.contains("certificate"), "{told}");
    let (code, told) = with("insecure", "other/ca-cert.pem");
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn requests_are_not_printed() {
    needs!("python3" of "python3");
    let (server, host) = store();
    // divergence: `http_verbose`
    let ran = run(&server, &host, &format!("{S3} --filename=/b/o --rw=write --http_verbose=2"));
    assert!(ran.code == Some(0) && ran.stderr.is_empty(), "{ran:?}");
}

#[test]
fn a_server_that_does_not_answer_does_not_hold_up_the_end() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    for words in ["--rw=write --bs=4k", "--rw=write --bs=1m"] {
        let Nginx { server, port, .. } = nginx();
        let args =
            args(&format!("localhost:{port}"), &format!("{words} --size=8m --time_based --runtime=60"));
        let running = start(server.directory.path(), &strings(&args));
        let running = running.and_then(|running| running.at_work("a")).unwrap();
        server.freeze().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let asked = Instant::now();
        let ran = running.interrupt().unwrap();
        // Two seconds on a machine without other work; the watchdog would take ten.
        assert!(asked.elapsed() < Duration::from_secs(8), "{:?}: {ran:?}", asked.elapsed());
        let job = ran.job().unwrap();
        assert_eq!((ran.code, job["error"].as_i64()), (Some(130), Some(0)), "{ran:?}");
        assert!(number(&job, "write", "total_ios") > 0, "{ran:?}");
    }
}

/// The engine on nginx.
fn subject(nginx: &Nginx) -> Subject<'_> {
    let place = Place { directory: nginx.server.directory.path(), variables: &[] };
    let host = format!("--http_host=localhost:{}", nginx.port);
    Subject { place, args: vec!["--ioengine=http".to_string(), host, "--filename=/o".to_string()] }
}

#[test]
fn a_process_that_is_stopped_and_continued_loses_no_io() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let nginx = nginx();
    subject(&nginx).loses_no_io_when_it_is_stopped("");
}

#[test]
fn jobs_give_back_what_they_took() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let nginx = nginx();
    subject(&nginx).gives_back_what_jobs_took("--rw=write --size=4m", 10);
}

#[test]
fn a_server_that_goes_away_ends_the_job_with_its_error() {
    needs!("nginx" of "nginx-light", "openssl" of "openssl");
    let mut nginx = nginx();
    let running = subject(&nginx).start("--rw=write --bs=4k --size=1m --time_based --runtime=60");
    let logged = || in_log(&nginx.server, "PUT").0 > 0;
    assert!(eventually(logged), "no request");
    nginx.server.kill().unwrap();
    let ran = running.wait().unwrap();
    let job = ran.job().unwrap();
    // The connection is closed, or a new one is refused.
    let is_gone = matches!(job["error"].as_i64(), Some(104 | 111 | 32));
    assert!(ran.code == Some(1) && is_gone && number(&job, "write", "total_ios") > 0, "{ran:?}");
}

/// The store that verifies signatures.
fn store() -> (Server, String) {
    let directory = Directory::new().unwrap();
    let port = free_port().unwrap();
    let mut command = Command::new("python3");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store.py")).arg(port.to_string()).arg("log");
    (Server::start(directory, &command, |_| listens(port)).unwrap(), format!("localhost:{port}"))
}

/// The lines of the store's log of one method.
fn logged(server: &Server, method: &str) -> Vec<Value> {
    let log = server.directory.read("log");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["method"] == method).collect()
}

const S3: &str = "--http_mode=s3 --http_s3_keyid=AKIAIOSFODNN7EXAMPLE \
                  --http_s3_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY --bs=16k --size=256k";

#[test]
fn signatures_of_s3_are_right_for_every_request() {
    needs!("python3" of "python3");
    let (server, host) = store();
    let words =
        "--filename=/bucket/a$b --rw=write --http_s3_storage_class=COLD --verify=md5 --verify_state_save=0";
    let ran = run(&server, &host, &format!("{S3} {words}"));
    let job = ran.job().unwrap();
    assert_eq!(counts(&job)[..2], [(16, 262_144), (16, 262_144)], "{ran:?}");
    let written = logged(&server, "PUT");
    assert!(written.iter().all(|line| line["status"] == 200 && line["class"] == "COLD"), "{written:?}");
    assert_eq!(written[1]["path"], "/bucket/a%24b_16384_32768");
    let sum = |lines: &[Value], key: &str| lines.iter().map(|line| line[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((written.len(), sum(&written, "received")), (16, 262_144));
    let read = logged(&server, "GET");
    assert_eq!((read.len(), sum(&read, "sent")), (16, 262_144));
    let trimmed = run(&server, &host, &format!("{S3} --filename=/bucket/a$b --rw=trim"));
    assert_eq!((trimmed.code, logged(&server, "DELETE").len()), (Some(0), 16), "{trimmed:?}");
    let wrong = format!("{S3} --filename=/bucket/x --rw=write --http_s3_key=other");
    let refused = run(&server, &host, &wrong);
    assert!(refused.code == Some(1) && format!("{refused:?}").contains("401, 403"), "{refused:?}");
    assert_eq!(logged(&server, "PUT").last().unwrap()["why"], "another signature");
    let missing = run(&server, &host, "--http_mode=s3 --rw=write --bs=4k --size=4k");
    assert!(format!("{missing:?}").contains("http_s3_keyid="), "{missing:?}");
}

#[test]
fn objects_of_s3_are_encrypted_with_the_clients_key_and_read_by_range_and_in_chunks() {
    needs!("python3" of "python3");
    let (server, host) = store();
    let key = "--http_s3_sse_customer_key=0123456789abcdef0123456789abcdef";
    let ran = run(
        &server,
        &host,
        &format!("{S3} --filename=/b/sse --rw=write {key} --verify=crc32c --verify_state_save=0"),
    );
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (16, 262_144)), "{ran:?}");
    let ran = run(&server, &host, &format!("{S3} --filename=/b/sse --rw=read"));
    assert_eq!((ran.code, ran.job().unwrap()["error"].as_i64()), (Some(1), Some(22)), "{ran:?}");
    let ran =
        run(&server, &host, &format!("{S3} --filename=/b/sse --rw=read --http_s3_sse_customer_key=short"));
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("32 bytes"), "{ran:?}");
    // The store answers in chunks if the path says so.
    let chunked = "--filename=/b/chunked --verify=crc32c --verify_state_save=0 --rw=write";
    let ran = run(&server, &host, &format!("{S3} {chunked}"));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (16, 262_144)), "{ran:?}");
    let whole =
        run(&server, &host, &format!("{S3} --http_object_mode=range --filename=/b/w --bs=256k --rw=write"));
    assert_eq!(whole.code, Some(0), "{whole:?}");
    let ran = run(&server, &host, &format!("{S3} --http_object_mode=range --filename=/b/w --rw=randread"));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (16, 262_144)), "{ran:?}");
    assert!(logged(&server, "GET").iter().any(|line| line["range"] == "bytes=16384-32767"));
}

#[test]
fn swift_is_used_with_a_token() {
    needs!("python3" of "python3");
    let (server, host) = store();
    let words = "--http_mode=swift --filename=/v1/AUTH_x/c/o --bs=16k --size=64k --rw=write --verify=crc32c \
                 --verify_state_save=0";
    let ran = run(&server, &host, &format!("{words} --http_swift_auth_token=AUTH_tk0123456789"));
    assert_eq!((ran.code, counts(&ran.job().unwrap())[0]), (Some(0), (4, 65536)), "{ran:?}");
    assert!(logged(&server, "PUT").iter().all(|line| line["status"] == 201));
    let ran = run(&server, &host, &format!("{words} --http_swift_auth_token=other"));
    assert_eq!((ran.code, ran.job().unwrap()["error"].as_i64()), (Some(1), Some(13)), "{ran:?}");
    let ran = run(&server, &host, words);
    assert!(ran.code == Some(1) && format!("{ran:?}").contains("http_swift_auth_token="), "{ran:?}");
}

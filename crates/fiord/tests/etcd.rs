//! `fiord check etcd` against the real etcd on the same file system.
//!
//! Invariant: both report their own figures: etcd a histogram of its syncs, fiord its JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fiord_testing::agreement::{Figures, assert_agree};
use fiord_testing::need;

use crate::common::{Dir, Running, helper, until};

/// Time of the puts for one comparison.
const LOAD: Duration = Duration::from_secs(4);
/// Clients that put at the same time.
const CLIENTS: usize = 2;
/// Makes a record of the log as large as the profile's appends.
const VALUE_BYTES: usize = 2000;
/// An etcd of one member, killed on drop.
struct Etcd {
    _running: Running,
    address: String,
}

impl Etcd {
    fn start(dir: &Dir) -> Result<Etcd, String> {
        helper("etcd", &["--version"])?;
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let (address, peers) = (free(), free());
        let url = |address: &str| format!("http://{address}");
        let mut command = Command::new("etcd");
        command.arg("--data-dir").arg(dir.join("etcd")).args(["--log-level", "error"]);
        for (option, address) in [
            ("--listen-client-urls", &address),
            ("--advertise-client-urls", &address),
            ("--listen-peer-urls", &peers),
            ("--initial-advertise-peer-urls", &peers),
        ] {
            command.args([option, &url(address)]);
        }
        command.args(["--initial-cluster", &format!("default={}", url(&peers))]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let etcd = Etcd { _running: Running(command.spawn().unwrap()), address };
        until("etcd is up", || etcd.get("/health").contains("\"true\""));
        Ok(etcd)
    }

    /// One of its pages; empty while it does not listen.
    fn get(&self, path: &str) -> String {
        let mut page = String::new();
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return page };
        write!(stream, "GET {path} HTTP/1.0\r\nHost: etcd\r\n\r\n").unwrap();
        let _ = stream.read_to_string(&mut page);
        page
    }

    /// Syncs of its log so far, as cumulative buckets by upper bound in seconds.
    fn syncs(&self) -> Vec<(f64, f64)> {
        let page = self.get("/metrics");
        let buckets = page
            .lines()
            .filter_map(|line| line.strip_prefix("etcd_disk_wal_fsync_duration_seconds_bucket{le=\""));
        let bucket = |line: &str| {
            let (limit, count) = line.split_once("\"} ").unwrap();
            (if limit == "+Inf" { f64::INFINITY } else { limit.parse().unwrap() }, count.parse().unwrap())
        };
        buckets.map(bucket).collect()
    }

    /// Puts from all clients, for [`LOAD`]; then the syncs of that time.
    fn load(&self) -> Vec<(f64, f64)> {
        let before = self.syncs();
        let end = Instant::now() + LOAD;
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                scope.spawn(move || self.put_until(client, end));
            }
        });
        let of_load = |((limit, after), (_, before)): (&(f64, f64), &(f64, f64))| (*limit, after - before);
        self.syncs().iter().zip(&before).map(of_load).collect()
    }

    fn put_until(&self, client: usize, end: Instant) {
        let mut stream = BufReader::new(TcpStream::connect(&self.address).unwrap());
        let value = base64(&vec![b'v'; VALUE_BYTES]);
        let mut number = 0;
        while Instant::now() < end {
            number += 1;
            let key = base64(format!("key-{client}-{number}").as_bytes());
            let body = format!("{{\"key\":\"{key}\",\"value\":\"{value}\"}}");
            let length = body.len();
            let request =
                format!("POST /v3/kv/put HTTP/1.1\r\nHost: etcd\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.get_mut().write_all(request.as_bytes()).unwrap();
            read_answer(&mut stream);
        }
    }
}

fn read_answer(stream: &mut impl BufRead) {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    stream.read_exact(&mut vec![0; length]).unwrap();
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let known = digit <= chunk.len();
            text.push(if known { DIGITS[(bits >> (18 - 6 * digit)) as usize & 63] as char } else { '=' });
        }
    }
    text
}

/// The 99th percentile of a histogram, in seconds, interpolated within its bucket; and that bucket's lower end.
fn p99(buckets: &[(f64, f64)]) -> (f64, f64) {
    let rank = buckets.last().unwrap().1 * 0.99;
    let (mut low, mut below) = (0.0, 0.0);
    for (high, count) in buckets {
        if *count >= rank {
            return (low + (high - low) * (rank - below) / (count - below), low);
        }
        (low, below) = (*high, *count);
    }
    unreachable!("the last bucket holds all");
}

/// The p99 of fdatasync that `fiord check etcd` reports, in seconds.
fn fiord_p99(dir: &Dir) -> f64 {
    let ran = dir.run("check etcd --json --time 6");
    let document = ran.json();
    assert_eq!(document["complete"], true, "{ran:?}");
    let row = &document["rows"][0];
    assert_eq!(row["figure"], "p99 of fdatasync, 2300-byte appends");
    row["measured_ns"].as_f64().unwrap() / 1e9
}

#[test]
fn etcds_own_p99_of_syncs_matches_the_check() {
    let dir = Dir::new();
    let etcd = need!(Etcd::start(&dir));
    need!(assert_agree(|| {
        let fiord = fiord_p99(&dir);
        let syncs = etcd.load();
        let (theirs, low) = p99(&syncs);
        let count = syncs.last().unwrap().1;
        let text = format!("etcd {:.2} ms of {count} syncs, fiord {:.2} ms", theirs * 1e3, fiord * 1e3);
        // The lowest bucket only gives an upper bound.
        let theirs_least = if low == 0.0 { theirs } else { 0.0 };
        Figures { theirs, fiord, theirs_least, text }
    }));
}

#[test]
fn a_percentile_is_interpolated_within_its_bucket() {
    let (value, low) = p99(&[(0.001, 900.0), (0.002, 980.0), (0.004, 1000.0), (f64::INFINITY, 1000.0)]);
    assert!((value - 0.003).abs() < 1e-9 && low == 0.002, "{value} {low}");
    assert_eq!(p99(&[(0.001, 100.0), (f64::INFINITY, 100.0)]), (0.00099, 0.0));
    assert_eq!([base64(b"v"), base64(b"vv"), base64(b"vvv")], ["dg==", "dnY=", "dnZ2"]);
}

//! Connections: fio and fiord at the two ends, both ways, for each protocol.
//!
//! Invariant: fiord counts every byte, whichever program is at the other end, and fio ends without an error.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fiord_compat::compare::{counts, equal, figure, success, verdict};
use fiord_compat::program::parse_json;
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case};
use serde_json::Value;

/// Longer than it takes to begin to wait.
const START_TIME_MAX: Duration = Duration::from_secs(30);

/// Longer than any of these runs takes.
const RUN_TIME_MAX: Duration = Duration::from_secs(60);

/// Options of both ends, of the one that waits, and of the other.
const PROTOCOLS: &[(&str, &str, &str, &str)] = &[
    ("tcp", "--ioengine=net --protocol=tcp", "--listen --rw=read", "--hostname=127.0.0.1 --rw=write"),
    ("tcp-reversed", "--ioengine=net", "--listen --rw=write", "--hostname=127.0.0.1 --rw=read"),
    ("tcp-pingpong", "--ioengine=net --pingpong", "--listen --rw=read", "--hostname=localhost --rw=write"),
    (
        "tcp-options",
        "--ioengine=net --nodelay=1 --window_size=64k",
        "--listen --rw=read",
        "--hostname=127.0.0.1 --rw=write",
    ),
    ("tcpv6", "--ioengine=net --protocol=tcpv6", "--listen --rw=read", "--hostname=::1 --rw=write"),
    (
        "udp-pingpong",
        "--ioengine=net --protocol=udp --pingpong",
        "--rw=read",
        "--hostname=127.0.0.1 --rw=write",
    ),
    (
        "udpv6-pingpong",
        "--ioengine=net --protocol=udpv6 --pingpong",
        "--rw=read",
        "--hostname=::1 --rw=write",
    ),
    (
        "multicast-pingpong",
        "--ioengine=net --protocol=udp --pingpong --hostname=224.0.0.98 --interface=127.0.0.1",
        "--rw=read",
        "--ttl=2 --rw=write",
    ),
    ("netsplice", "--ioengine=netsplice", "--listen --rw=read", "--hostname=127.0.0.1 --rw=write"),
    ("loops", "--ioengine=net --loops=2", "--listen --rw=read", "--hostname=127.0.0.1 --rw=write"),
    ("verify", "--ioengine=net --verify=crc32c", "--listen --rw=read", "--hostname=127.0.0.1 --rw=write"),
    ("unix", "--ioengine=net --protocol=unix --filename=socket", "--rw=read", "--rw=write"),
];

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let crossed = PROTOCOLS.iter().map(|&(name, options, waiting, other)| {
        case(format!("engines/net-{name}"), "--name=a --ioengine=null --size=64k")
            .check(success)
            .check(move |pair: &Pair| crossed(pair, options, waiting, other))
    });
    // What fio counts of a stream depends on the time, but not with answers.
    let together = ["tcp", "udp"].into_iter().map(|protocol| {
        let port = free_port();
        let listen = if protocol == "tcp" { "--listen" } else { "" };
        let args = format!(
            "--output-format=json --ioengine=net --protocol={protocol} --port={port} --pingpong --bs=4k --size=256k \
             --name=reader --rw=read {listen} --name=writer --rw=write --hostname=127.0.0.1 --startdelay=1"
        );
        case(format!("engines/net-both-ends-{protocol}"), args).check(success).check(counts)
    });
    let refused = [
        ("random", "--port=1 --hostname=127.0.0.1 --rw=randwrite"),
        ("no-port", "--hostname=127.0.0.1 --rw=write"),
        ("no-host", "--port=1 --rw=write"),
        ("listen-with-host", "--port=1 --listen --hostname=127.0.0.1 --rw=read"),
        ("udp-listen", "--port=1 --protocol=udp --listen --rw=read"),
        ("udp-mixed", "--port=1 --protocol=udp --hostname=127.0.0.1 --rw=rw"),
        ("unix-port", "--port=1 --protocol=unix --filename=s --rw=write"),
        ("unix-nameless", "--protocol=unix --rw=write"),
        ("unknown-protocol", "--port=1 --protocol=xyz --rw=write"),
        ("unknown-host", "--port=1 --hostname=nosuch.invalid --rw=write"),
        ("connection-refused", "--port=1 --hostname=127.0.0.1 --rw=write"),
    ]
    .map(|(name, args)| {
        case(format!("engines/net-{name}"), format!("--name=a --ioengine=net --bs=4k --size=64k {args}"))
            .check(verdict)
    });
    // The machine of these cases has no RDMA device; `tests/guest/cases/rdma.rs` has one.
    let without_device = [
        ("random", "--port=1 --hostname=127.0.0.1 --rw=randwrite"),
        ("mixed", "--port=1 --hostname=127.0.0.1 --rw=rw"),
        ("no-port", "--hostname=127.0.0.1 --rw=write"),
        ("unknown-verb", "--port=1 --verb=xyz --rw=read"),
        ("port-range", "--port=65536 --rw=read"),
        ("no-device", "--port=1 --bindname=127.0.0.1 --proto=send --rw=read"),
    ]
    .map(|(name, args)| {
        case(format!("engines/rdma-{name}"), format!("--name=a --ioengine=rdma --bs=4k --size=64k {args}"))
            .check(verdict)
    });
    crossed.chain(together).chain(refused).chain(without_device).collect()
}

fn free_port() -> u16 {
    let found = TcpListener::bind("0.0.0.0:0").and_then(|listener| listener.local_addr());
    found.map_or(8765, |address| address.port())
}

/// fio sends what fiord receives, and the other way round.
fn crossed(pair: &Pair, options: &str, waiting: &str, other: &str) -> Verdict {
    let (fio, fiord) = (&pair.programs.0, &pair.programs.1);
    let dir = &pair.fiord.dir;
    for [first, second] in [[fio, fiord], [fiord, fio]] {
        let named = options.contains("unix");
        let port = free_port();
        let port_option = if named { String::new() } else { format!("--port={port}") };
        let run = |program: &Path, side: &str| {
            let mut line =
                format!("--output-format=json --name=a --bs=4k --size=256k {options} {port_option} {side}");
            // It is the other end that verifies, and fio 3.33 reads the header of its own version.
            if options.contains("verify") && program == fiord {
                line += " --verify_header_format=3.33";
            }
            // fio 3.33 miscounts blocks of a stream that arrive in pieces, and may wait for ever: each arrives by itself.
            if program == fiord && !options.contains("pingpong") {
                line += " --nodelay=1 --rate_iops=500";
            }
            if options.contains("verify") && side.contains("rw=write") {
                line += " --do_verify=0";
            }
            let mut command = Command::new(program);
            command.args(line.split_whitespace()).current_dir(dir);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().map(Running).map_err(|error| error.to_string())
        };
        let receiver = run(first, waiting)?;
        until_bound(dir, port, named)?;
        let sender = run(second, other)?;
        let sides = [(second, sender.finish()?, other), (first, receiver.finish()?, waiting)];
        for (program, (status, job), side) in sides {
            // divergence: `protocol=unix`
            if program == fio && named {
                continue;
            }
            let name = format!("{} with {side}", program.display());
            equal(&format!("exit status of {name}"), Some(0), status)?;
            let direction = if side.contains("rw=read") { "read" } else { "write" };
            if program == fiord {
                let loops = if options.contains("loops") { 2 } else { 1 };
                let (ios, bytes) =
                    (figure(&job, direction, "total_ios"), figure(&job, direction, "io_bytes"));
                equal(&format!("I/Os and bytes of {name}"), (64 * loops, (256 << 10) * loops), (ios, bytes))?;
            }
        }
    }
    Ok(())
}

/// A program at one end; killed if it is given up.
struct Running(Child);

impl Running {
    /// Its exit status and its job.
    fn finish(mut self) -> Result<(Option<i32>, Value), String> {
        use std::io::Read;
        let end = Instant::now() + RUN_TIME_MAX;
        while self.0.try_wait().map_err(|error| error.to_string())?.is_none() {
            if Instant::now() >= end {
                return Err(format!("{:?} is still running", self.0));
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        let mut text = String::new();
        if let Some(mut stdout) = self.0.stdout.take() {
            stdout.read_to_string(&mut text).map_err(|error| error.to_string())?;
        }
        let status = self.0.wait().map_err(|error| error.to_string())?;
        // fio says first that it waits.
        let begin = text.find('{').unwrap_or(0);
        let document = parse_json(&text[begin..])?;
        Ok((status.code(), document["jobs"][0].clone()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the first end can be reached.
fn until_bound(dir: &Path, port: u16, named: bool) -> Verdict {
    let end = Instant::now() + START_TIME_MAX;
    let entry = format!(":{port:04X} ");
    let is_bound = || match named {
        true => dir.join("socket").exists(),
        false => ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
            let table = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
            table.lines().any(|line| {
                line.split_whitespace().nth(1).is_some_and(|at| format!("{at} ").ends_with(&entry))
            })
        }),
    };
    while !is_bound() {
        if Instant::now() >= end {
            return Err(format!("nothing waits at port {port} after {} s", START_TIME_MAX.as_secs()));
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    // A stream is bound before it listens.
    std::thread::park_timeout(Duration::from_millis(100));
    Ok(())
}

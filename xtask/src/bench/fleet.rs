//! `cargo x bench fleet`: runs on many hosts, and what they cost their controller; beside them fio's client and its servers.
//!
//! Invariant: both programs run the same job, on as many processes of this machine, in a network of their own. When each host
//! did its first I/O is read from the logs that either writes, by the clock that all of them share.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::measure::median;
use super::peer::used_s;
use super::place::Scratch;
use crate::machine;

/// How many hosts, and whether fio's servers are measured beside them.
const HOSTS: [(usize, bool); 4] = [(10, true), (50, true), (100, false), (1000, false)];

/// Runs of each.
const RUNS: usize = 3;

/// What every host runs.
const JOB: &str = "[job]\nioengine=null\nrw=randread\nsize=1g\ntime_based\nruntime=5\nrate_iops=10\nthread\n\
                   write_lat_log=run\nlog_unix_epoch=1\n";

/// The logs that tell when I/Os completed, and for which host.
const LOG: &str = "run_clat.1.log.";

const PORT: u16 = 8765;

/// How long servers may take to start, and a run to end.
const TIME_MAX: Duration = Duration::from_secs(120);

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The figures in the table, with their keys in the raw results and what a unit of them is there.
const FIGURES: [(&str, &str, f64); 6] = [
    ("first I/Os within, ms", "first_ios_within_ms", 1.0),
    ("as said, ms", "skew_ns", 1e6),
    ("clocks known to, ms", "clock_error_ns", 1e6),
    ("controller's CPU, s", "cpu_s", 1.0),
    ("its memory, MiB", "memory_bytes_max", 1_048_576.0),
    ("whole run, s", "process_s", 1.0),
];

/// Measures and prints a table; the raw results.
pub(super) fn run(fio: &Path, fiord: &Path, described: Value) -> Result<Value, String> {
    let mut rows = Vec::new();
    println!("| hosts | program | {} | load |", FIGURES.map(|(title, ..)| title).join(" | "));
    println!("|---|---|{}---|", "---|".repeat(FIGURES.len()));
    for (hosts, is_pair) in HOSTS {
        let load = machine::load();
        let mut programs = vec![("fiord", fiord, Vec::new()), ("fio", fio, Vec::new())];
        programs.truncate(if is_pair { 2 } else { 1 });
        for _ in 0..RUNS {
            for (name, program, runs) in &mut programs {
                runs.push(measured(name, program, hosts)?);
            }
        }
        for (name, _, runs) in programs {
            println!("| {hosts} | {name} | {} | {load:.1} |", cells(&runs).join(" | "));
            rows.push(json!({ "hosts": hosts, "program": name, "load": load, "runs": runs }));
        }
    }
    Ok(json!({ "machine": described, "job": JOB, "rows": rows }))
}

/// The median of each figure.
fn cells(runs: &[Value]) -> Vec<String> {
    let of = |(_, key, unit): (&str, &str, f64)| {
        let known: Option<Vec<f64>> = runs.iter().map(|run| run[key].as_f64()).collect();
        known.map_or_else(|| "-".to_string(), |known| format!("{:.2}", median(known) / unit))
    };
    FIGURES.map(of).to_vec()
}

/// One run.
fn measured(name: &str, program: &Path, hosts: usize) -> Result<Value, String> {
    let scratch = Scratch::new()?;
    let directory = scratch.0.join("run");
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    fs::create_dir_all(&directory).map_err(failed)?;
    fs::write(directory.join("job.fio"), JOB).map_err(failed)?;
    let own = directory.join(name);
    symlink(program, &own).map_err(failed)?;
    let network = Network::start(&own, if name == "fio" { hosts } else { 0 }, &directory)?;
    let mut command = network.command(&own);
    command.arg("job.fio").arg("--output-format=json").current_dir(&directory);
    match name {
        "fio" => {
            let addresses: Vec<String> =
                (0..hosts).map(|number| format!("{},{PORT}\n", address(number))).collect();
            fs::write(directory.join("list"), addresses.concat()).map_err(failed)?;
            command.arg("--client=list")
        }
        _ => command.arg(format!("--hosts=n[1-{hosts}]")).args([
            "--via={agent}",
            "--no-history",
            "--connect-timeout=60",
        ]),
    };
    let mut figures = cost(command, &directory)?;
    let text = fs::read_to_string(directory.join("stdout")).map_err(failed)?;
    let report: Value =
        text.find('{').and_then(|at| serde_json::from_str(&text[at..]).ok()).unwrap_or_default();
    for key in ["skew_ns", "clock_error_ns"] {
        figures[key] = report["fleet"]["starts"][key].clone();
    }
    figures["first_ios_within_ms"] = first_ios_within_ms(&directory, hosts)?.into();
    Ok(figures)
}

/// The address of fio's server of this number.
fn address(number: usize) -> String {
    format!("127.0.{}.{}", 1 + number / 250, 1 + number % 250)
}

/// How long after the first host's first I/O that of the last was.
fn first_ios_within_ms(directory: &Path, hosts: usize) -> Result<u64, String> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let first_ms = |path: PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        text.split(',').next()?.trim().parse::<u64>().ok()
    };
    let is_log =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LOG));
    let paths = entries.flatten().map(|entry| entry.path()).filter(is_log);
    let known: Vec<u64> = paths.filter_map(first_ms).collect();
    match (known.iter().max(), known.iter().min()) {
        (Some(last), Some(first)) if known.len() == hosts => Ok(last - first),
        _ => Err(format!("{} of {hosts} hosts have a log of their I/Os", known.len())),
    }
}

/// A network that nothing else is in, with fio's servers if there are any. All of it ends when it is dropped.
struct Network(Child);

impl Network {
    fn start(fio: &Path, servers: usize, directory: &Path) -> Result<Network, String> {
        let addresses: Vec<String> = (0..servers).map(address).collect();
        // The first process of its namespace: when it is killed, so are the others.
        let script = format!(
            "ip link set lo up\nfor address in $2; do \"$1\" --server=$address,{PORT} & done\nexec sleep 1000000"
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "--pid", "--fork", "--kill-child", "sh", "-c", &script, "sh"]);
        command.arg(fio).arg(addresses.join(" ")).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let network = Network(command.spawn().map_err(|error| format!("unshare: {error}"))?);
        let began = Instant::now();
        while network.listening() != Some(servers) {
            if began.elapsed() > TIME_MAX {
                return Err(format!("{:?} of {servers} servers listen", network.listening()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(network)
    }

    /// Sockets of it that listen; `None` before loopback is up.
    fn listening(&self) -> Option<usize> {
        const LISTENS: &str = "0A";
        let file = |name: &str| fs::read_to_string(format!("/proc/{}/net/{name}", self.0.id())).ok();
        // This machine's own network has more than loopback.
        let is_own = file("dev")?.lines().count() == 3;
        let is_up = file("fib_trie")?.contains("127.0.0.1");
        let listening =
            file("tcp")?.lines().filter(|line| line.split_whitespace().nth(3) == Some(LISTENS)).count();
        (is_own && is_up).then_some(listening)
    }

    /// A program in it.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.0.id())).arg(program);
        command
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Fails if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process costs by itself, without those that it starts.
fn cost(mut command: Command, directory: &Path) -> Result<Value, String> {
    let failed = |error: std::io::Error| error.to_string();
    let create = |name: &str| File::create(directory.join(name)).map_err(failed);
    command.stdin(Stdio::null()).stdout(create("stdout")?).stderr(create("stderr")?);
    let began = Instant::now();
    let mut child = command.spawn().map_err(failed)?;
    let file = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap_or_default();
    let mut memory_kib_max = 0;
    let stat = loop {
        let stat = file("stat");
        // Its figures stay until it is waited for.
        if stat.contains(") Z ") || began.elapsed() > TIME_MAX {
            break stat;
        }
        let known = file("status")
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        memory_kib_max = known.unwrap_or(0).max(memory_kib_max);
        std::thread::sleep(LOOK_EVERY);
    };
    let process_s = began.elapsed().as_secs_f64();
    let _ = child.kill();
    let status = child.wait().map_err(failed)?;
    if !status.success() {
        let said = fs::read_to_string(directory.join("stderr")).unwrap_or_default();
        return Err(format!("{command:?}: {status}\n{said}"));
    }
    Ok(json!({ "process_s": process_s, "cpu_s": used_s(&stat), "memory_bytes_max": memory_kib_max << 10 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_of_those_of_all_runs_and_none_if_one_lacks_it() {
        let runs = [
            json!({ "cpu_s": 1, "skew_ns": 5e6 }),
            json!({ "cpu_s": 3 }),
            json!({ "cpu_s": 2, "skew_ns": 5e6 }),
        ];
        let cells = cells(&runs);
        assert_eq!((cells[1].as_str(), cells[3].as_str()), ("-", "2.00"));
        assert_eq!([address(0), address(999)], ["127.0.1.1", "127.0.4.250"]);
    }
}

//! An RDMA device in software, and programs at its two ends.
//!
//! Invariant: the device and the programs are gone when their values are dropped.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::DIRECTORY;
use crate::device::run;

/// How long a program may take to listen, connect or end.
const TIME_MAX: Duration = Duration::from_secs(60);

/// RoCE in software over a network device of its own. Tests that use it take turns.
#[derive(Debug)]
pub struct SoftRoce(());

const DEVICE: &str = "fiordrxe0";
const NETWORK: &str = "fiordnet0";

impl SoftRoce {
    /// Its address.
    pub const ADDRESS: &str = "10.7.0.1";

    /// The device.
    ///
    /// # Errors
    /// What cannot be loaded or made.
    pub fn new() -> Result<SoftRoce, String> {
        run("modprobe", &["-a", "rdma_rxe", "rdma_ucm", "ib_uverbs", "dummy"])?;
        let device = SoftRoce(());
        run("ip", &["link", "add", NETWORK, "type", "dummy"])?;
        run("ip", &["addr", "add", &format!("{}/24", SoftRoce::ADDRESS), "dev", NETWORK])?;
        run("ip", &["link", "set", NETWORK, "up"])?;
        run("rdma", &["link", "add", DEVICE, "type", "rxe", "netdev", NETWORK])?;
        Ok(device)
    }

    /// Waits until somebody listens at a port.
    ///
    /// # Errors
    /// If nobody does.
    pub fn wait_for_listener(&self, port: u16) -> Result<(), String> {
        wait_for("LISTEN", port)
    }

    /// Waits until somebody is connected to a port.
    ///
    /// # Errors
    /// If nobody is.
    pub fn wait_for_connection(&self, port: u16) -> Result<(), String> {
        wait_for("CONNECT", port)
    }

    /// Connections, listeners and queue pairs that the kernel has.
    ///
    /// # Errors
    /// If it cannot be asked.
    pub fn objects(&self) -> Result<usize, String> {
        let mut count = 0;
        for kind in ["cm_id", "qp", "mr", "pd"] {
            let out = Command::new("rdma").args(["resource", "show", kind]).output();
            let out = out.map_err(|error| format!("rdma: {error}"))?;
            // Those of the kernel have no process.
            count +=
                String::from_utf8_lossy(&out.stdout).lines().filter(|line| line.contains(" pid ")).count();
        }
        Ok(count)
    }
}

/// Waits until the kernel has an identifier in this state with this port.
fn wait_for(state: &str, port: u16) -> Result<(), String> {
    let (since, state, address) = (Instant::now(), format!("state {state} "), format!(":{port} "));
    while since.elapsed() < TIME_MAX {
        let out = Command::new("rdma").args(["resource", "show", "cm_id"]).output();
        let out = out.map_err(|error| format!("rdma: {error}"))?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text
            .lines()
            .map(|line| format!("{line} "))
            .any(|line| line.contains(&state) && line.contains(&address))
        {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Err(format!("no {state}at port {port}"))
}

impl Drop for SoftRoce {
    fn drop(&mut self) {
        let _ = run("rdma", &["link", "delete", DEVICE]);
        let _ = run("ip", &["link", "delete", NETWORK]);
    }
}

/// fio or fiord at one end, started and not waited for.
#[derive(Debug)]
pub struct RdmaEnd {
    child: Child,
    output: PathBuf,
}

impl RdmaEnd {
    /// fio, which is killed if it takes too long: some of its ends never return.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn fio(args: &[&str]) -> Result<RdmaEnd, String> {
        RdmaEnd::start("fio", args)
    }

    fn start(program: &str, args: &[&str]) -> Result<RdmaEnd, String> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let output = PathBuf::from(DIRECTORY).join(format!("rdma-end-{number}"));
        let mut command = Command::new(program);
        command.arg(format!("--output={}", output.display())).arg("--output-format=json").args(args);
        command.current_dir(DIRECTORY).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        Ok(RdmaEnd { child, output })
    }

    /// Kills it, so that the kernel ends its connection. fio has a process for each job.
    ///
    /// # Errors
    /// If it cannot be killed.
    pub fn kill(mut self) -> Result<(), String> {
        let id = self.child.id().to_string();
        let _ = run("pkill", &["-KILL", "-P", &id]);
        self.child.kill().map_err(|error| format!("fio: {error}"))
    }

    /// The first job of its report, when it has ended.
    ///
    /// # Errors
    /// If it does not end, or reports none.
    pub fn job(mut self) -> Result<Value, String> {
        let since = Instant::now();
        while self.child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if since.elapsed() > TIME_MAX {
                return Err("fio does not end".to_string());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let text = fs::read_to_string(&self.output)
            .map_err(|error| format!("{}: {error}", self.output.display()))?;
        let start = text.find("{\n").ok_or_else(|| format!("no report: {text}"))?;
        let report: Value =
            serde_json::from_str(&text[start..]).map_err(|error| format!("{error}: {text}"))?;
        Ok(report["jobs"][0].clone())
    }
}

impl Drop for RdmaEnd {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let id = self.child.id().to_string();
            let _ = run("pkill", &["-KILL", "-P", &id]);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        let _ = fs::remove_file(&self.output);
    }
}

//! A management controller (BMC) that answers in the guest itself: the machine's IPMI interface leads to a serial port there.
//!
//! Invariant: it knows what the kernel's driver needs, and DCMI's Get Power Reading; it refuses all else.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use crate::device::run;

/// Bytes with a meaning of their own: the ends of a message and of a command, and the escape, after which others follow with a
/// bit added.
const MESSAGE_END: u8 = 0xa0;
const COMMAND_END: u8 = 0xa1;
const ESCAPE: u8 = 0xaa;
const ESCAPED: u8 = 0x10;
/// The command that states the version of the protocol.
const VERSION: [u8; 2] = [0xff, 0x01];

/// Completion codes.
const DONE: u8 = 0;
const UNKNOWN_COMMAND: u8 = 0xc1;

/// A controller that answers as long as the guest runs. One case has it.
#[derive(Debug)]
pub struct Bmc {
    watts: Arc<AtomicU16>,
}

impl Bmc {
    /// The power of a controller that knows no DCMI.
    pub const NO_DCMI: u16 = 0;

    /// Answers from now on, and loads the kernel's drivers, with which `/dev/ipmi0` appears.
    ///
    /// # Errors
    /// If the port is not there, or a module cannot be loaded.
    pub fn start(watts: u16) -> Result<Bmc, String> {
        let port = port()?;
        let opened = File::options().read(true).write(true).open(&port);
        let mut file = opened.map_err(|error| format!("{}: {error}", port.display()))?;
        send(&mut file, &VERSION, COMMAND_END).map_err(|error| error.to_string())?;
        let bmc = Bmc { watts: Arc::new(AtomicU16::new(watts)) };
        let watts = Arc::clone(&bmc.watts);
        thread::spawn(move || serve(file, &watts));
        // The guest's udev may have loaded it when nothing answered.
        let _ = run("modprobe", &["-r", "ipmi_si"]);
        run("modprobe", &["-a", "ipmi_si", "ipmi_devintf"])?;
        Ok(bmc)
    }

    /// Answers this from now on.
    pub fn set_watts(&self, watts: u16) {
        self.watts.store(watts, Ordering::Relaxed);
    }
}

/// The port that leads to the interface.
fn port() -> Result<PathBuf, String> {
    let class = "/sys/class/virtio-ports";
    let entries = fs::read_dir(class).map_err(|error| format!("{class}: {error}"))?.flatten();
    let is_ours =
        |path: &PathBuf| fs::read_to_string(path.join("name")).is_ok_and(|name| name.trim() == "bmc");
    let found = entries.map(|entry| entry.path()).find(is_ours);
    let name = found
        .as_ref()
        .and_then(|path| path.file_name())
        .ok_or_else(|| format!("{class}: no port is named bmc"))?;
    Ok(PathBuf::from("/dev").join(name))
}

fn serve(mut port: File, watts: &AtomicU16) {
    let (mut message, mut is_escaped) = (Vec::new(), false);
    let mut bytes = [0; 256];
    while let Ok(length) = port.read(&mut bytes) {
        for byte in &bytes[..length] {
            match *byte {
                MESSAGE_END => {
                    if answer(&mut port, &message, watts.load(Ordering::Relaxed)).is_err() {
                        return;
                    }
                    message.clear();
                }
                COMMAND_END => message.clear(),
                ESCAPE => is_escaped = true,
                byte => {
                    message.push(if is_escaped { byte & !ESCAPED } else { byte });
                    is_escaped = false;
                }
            }
        }
    }
}

/// Answers a message: its number, function and unit, command, data, and a checksum.
fn answer(port: &mut File, message: &[u8], watts: u16) -> std::io::Result<()> {
    let [number, function, command, data @ .., _sum] = message else { return Ok(()) };
    let [low, high] = watts.to_le_bytes();
    let told = match (function >> 2, command, data) {
        // Get Device ID: IPMI 2.0.
        (0x06, 0x01, _) => vec![DONE, 0x20, 0x01, 0x01, 0x00, 0x02, 0x00, 0, 0, 0, 0, 0],
        // Set and Get BMC Global Enables, Clear and Get Message Flags.
        (0x06, 0x2e | 0x30, _) => vec![DONE],
        (0x06, 0x2f | 0x31, _) => vec![DONE, 0],
        (0x2c, 0x02, [0xdc, 0x01, ..]) if watts != Bmc::NO_DCMI => {
            vec![DONE, 0xdc, low, high, low, high, low, high, low, high, 0, 0, 0, 0, 0xe8, 3, 0, 0, 0x40]
        }
        _ => vec![UNKNOWN_COMMAND],
    };
    let mut reply = vec![*number, function | 1 << 2, *command];
    reply.extend(told);
    let sum = reply.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    reply.push(sum.wrapping_neg());
    send(port, &reply, MESSAGE_END)
}

fn send(port: &mut File, bytes: &[u8], end: u8) -> std::io::Result<()> {
    let mut sent = Vec::new();
    for byte in bytes {
        match *byte {
            MESSAGE_END | COMMAND_END | ESCAPE => sent.extend([ESCAPE, byte | ESCAPED]),
            byte => sent.push(byte),
        }
    }
    sent.push(end);
    port.write_all(&sent)
}

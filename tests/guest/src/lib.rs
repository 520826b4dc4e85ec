//! What the cases in the guest are made of: programs that are run, and devices that a case sets up.
//!
//! Invariant: nothing here touches a device outside the machine that `cargo x guest` boots.

mod bmc;
mod device;
mod kernel_trace;
mod rdma;
mod recording;

use std::path::Path;

pub use bmc::Bmc;
pub use device::{DeviceMapper, Flash, NullBlk, NvmeLoop, PersistentFiles, ScsiDebug, nvme};
pub use fiord_programs::{Finished, Resources, Running};
pub use kernel_trace::KernelTrace;
pub use rdma::{RdmaEnd, SoftRoce};
pub use recording::{END_SECTOR, Queued, record};

/// Whether this is the machine that `cargo x guest` boots.
pub fn is_guest() -> bool {
    std::env::var_os("FIORD_IN_GUEST").is_some()
}

/// A version of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRelease {
    /// `6.1.0-56-amd64`.
    pub text: String,
    /// The first two numbers.
    pub version: (u32, u32),
}

/// The version of the kernel that runs.
///
/// # Panics
/// If it does not say so.
pub fn kernel_release() -> KernelRelease {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string();
    let mut numbers = text.split('.').map_while(|number| number.parse().ok());
    let version = numbers.next().zip(numbers.next());
    assert!(version.is_some(), "{text} is not a version of a kernel");
    KernelRelease { version: version.unwrap_or_default(), text }
}

/// Where programs run: in memory, and lost with the machine.
const DIRECTORY: &str = "/run";

/// Runs Debian's fio with a report in JSON.
///
/// # Errors
/// If it cannot be started.
pub fn fio(args: &[&str]) -> Result<Finished, String> {
    fiord_programs::fio(Path::new(DIRECTORY), args)
}

/// Runs fiord as fio, with a report in JSON.
///
/// # Errors
/// If it cannot be started.
pub fn fiord(args: &[&str]) -> Result<Finished, String> {
    fiord_programs::fiord(Path::new(DIRECTORY), args)
}

/// What a process has in use when these jobs have ended; see `fiord_programs::resources_after`.
///
/// # Errors
/// If it cannot be started, or a job fails.
pub fn resources_after(jobs: &[Vec<String>], name: &str) -> Result<Resources, String> {
    let place = fiord_programs::Place { directory: Path::new(DIRECTORY), variables: &[] };
    fiord_programs::resources_after(&place, jobs, name)
}

/// Starts fiord as fio, with a report in JSON.
///
/// # Errors
/// If it cannot be started.
pub fn start(args: &[&str]) -> Result<Running, String> {
    fiord_programs::start(Path::new(DIRECTORY), args)
}

//! What the cases in the guest are made of: programs that are run, and devices that a case sets up.
//!
//! Invariant: nothing here touches a device outside the machine that `cargo x guest` boots.

mod device;
mod program;
mod recording;

pub use device::{DeviceMapper, NullBlk, ScsiDebug, nvme};
pub use program::{Finished, Running, fio, fiord, start};
pub use recording::{END_SECTOR, Queued, record};

/// Whether this is the machine that `cargo x guest` boots.
pub fn is_guest() -> bool {
    std::env::var_os("FIORD_IN_GUEST").is_some()
}

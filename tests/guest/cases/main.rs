//! Cases that need the devices of the machine that `cargo x guest` boots; one boot runs many of them.
//!
//! Invariant: outside of that machine every case says that it is skipped.

mod appends;
mod atomic;
mod clocks;
mod commands;
mod compared;
mod crash;
mod faults;
mod findings;
mod groups;
mod health;
mod kernel;
mod layers;
mod names;
mod network_files;
mod nvme;
mod passthrough;
mod persistent;
mod placement;
mod power;
mod qualify;
mod rdma;
mod shared;
mod traces;
mod trims;
mod zones;

/// Ends a case outside the guest.
macro_rules! guest {
    () => {
        if !fiord_guest::is_guest() {
            fiord_testing::skip!("not in the guest; `cargo x ci guest` runs it there");
        }
    };
}
pub(crate) use guest;

/// Ends a case about something that came with a later kernel than this.
macro_rules! needs_kernel {
    ($major:literal, $minor:literal, $what:expr) => {
        let release = fiord_guest::kernel_release();
        if release.version < ($major, $minor) {
            fiord_testing::skip!(
                "Linux {} has no {}, which came with {}.{}",
                release.text,
                $what,
                $major,
                $minor
            );
        }
    };
}
pub(crate) use needs_kernel;

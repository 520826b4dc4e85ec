//! Cases that need the devices of the machine that `cargo x guest` boots; one boot runs all of them.
//!
//! Invariant: outside of that machine every case says that it is skipped.

mod atomic;
mod commands;
mod compared;
mod crash;
mod faults;
mod findings;
mod groups;
mod health;
mod kernel;
mod nvme;
mod passthrough;
mod persistent;
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

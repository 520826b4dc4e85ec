//! For whom the kernel's workers are busy: for a loop device over a file, whose own requests say whose they are.
//!
//! Invariant: nobody is named unless the loop device moved about as much as the workers did.

use fiord_profile::tracepoints::Operation;

use crate::figures::DeviceFigures;
use crate::issuer::IssuerKind;
use crate::observation::{Observation, WatchedDevice};
use crate::tables::shares;

/// Workers that have less of a device's time, or a loop device that moved less of their bytes, explain nothing, in percent.
const PERCENT_MIN: f64 = 60.0;

/// The loop device for which workers have most of the time of this one, and their part of it in percent.
pub(crate) fn loop_above<'o>(
    observation: &'o Observation,
    device: &WatchedDevice,
    figures: &DeviceFigures,
) -> Option<(&'o WatchedDevice, f64)> {
    let is_worker = |issuer: usize, operation: Operation| {
        let kind = observation.issuers.get(issuer).map(|issuer| issuer.kind(operation));
        matches!(kind, Some(IssuerKind::Worker | IssuerKind::Writeback))
    };
    let workers = figures.issuers.iter().filter(|((issuer, operation), _)| is_worker(*issuer, *operation));
    let (bytes, device_ns) =
        workers.fold((0, 0), |(bytes, device_ns), (_, of)| (bytes + of.bytes, device_ns + of.device_ns));
    let percent = 100.0 * device_ns as f64 / figures.waited_ns().1.max(1) as f64;
    if percent < PERCENT_MIN {
        return None;
    }
    let is_above = |above: &&WatchedDevice| {
        let all = shares(observation, above);
        let moved: u64 = all.iter().map(|share| share.figures.bytes).sum();
        above.backed_by.contains(&device.name) && 100.0 * moved as f64 >= PERCENT_MIN * bytes as f64
    };
    observation.devices.iter().find(is_above).map(|above| (above, percent))
}

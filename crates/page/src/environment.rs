//! The machine and the chain of devices below the files.
//!
//! Invariant: each device is listed once, from those that hold files down to the disks.

use fiord_device::DeviceUse;
use fiord_device::nvme_power::{PowerState, PowerStates};
use fiord_import::{DiskFigures, EnergyFigures};
use fiord_stats::Capped;

use crate::figures::{self, Figure};
use crate::run_view::RunView;

/// A device as the page lists it.
pub(crate) struct DeviceRow {
    pub name: String,
    pub below: String,
    pub what: String,
    pub queue: String,
    pub read: Figure,
    pub written: Figure,
    pub busy: Figure,
}

/// The devices of a run: as fiord knows them, or else as its report counts disks.
pub(crate) fn devices(run: &RunView) -> Vec<DeviceRow> {
    if run.devices.is_empty() {
        return run.report.disks.iter().map(counted).collect();
    }
    run.devices.iter().map(known).collect()
}

fn known(used: &DeviceUse) -> DeviceRow {
    let device = &used.device;
    let queue = &device.queue;
    let mut what = vec![device.kind.clone()];
    what.extend(device.transport.clone());
    what.extend(device.model.clone().map(|model| model.trim().to_string()).filter(|model| !model.is_empty()));
    if device.size_bytes > 0 {
        what.push(figures::size(device.size_bytes as f64));
    }
    if queue.rotational {
        what.push("rotational".to_string());
    }
    let mut settings = Vec::new();
    if let Some(scheduler) = &queue.scheduler {
        settings.push(format!("scheduler {scheduler}"));
    }
    settings.push(format!("blocks of {}", figures::size(f64::from(u32::capped(queue.logical_block_bytes)))));
    if queue.write_back_cache {
        settings.push("volatile write cache".to_string());
    }
    settings.extend(used.power.as_ref().map(power));
    let since = |now: u64, then: u64| now.saturating_sub(then);
    let (start, end) = (&used.start, &used.end);
    let busy_ms = since(end.busy_ms, start.busy_ms) as f64;
    let busy = (used.elapsed_ns > 0).then(|| (100.0 * busy_ms / (used.elapsed_ns as f64 / 1e6)).min(100.0));
    DeviceRow {
        name: device.name.clone(),
        below: used.below.join(", "),
        what: what.join(", "),
        queue: settings.join(", "),
        read: Figure::bytes(Some(since(end.read_sectors, start.read_sectors) * 512)),
        written: Figure::bytes(Some(since(end.write_sectors, start.write_sectors) * 512)),
        busy: Figure::percent(busy),
    }
}

/// The power states at both ends of the run, with what the disk says of them.
fn power(states: &PowerStates) -> String {
    let of = |state: &PowerState| match state.active_uw.or(state.max_uw) {
        Some(power_uw) => format!("{} (up to {} W by its own account)", state.number, power_uw as f64 / 1e6),
        None => state.number.to_string(),
    };
    match states.start == states.end {
        true => format!("power state {}", of(&states.start)),
        false => format!("power state {}, then {}", of(&states.start), of(&states.end)),
    }
}

fn counted(disk: &DiskFigures) -> DeviceRow {
    let bytes = |sectors: Option<u64>| Figure::bytes(sectors.map(|sectors| sectors * 512));
    DeviceRow {
        name: disk.name.clone(),
        below: String::new(),
        what: if disk.is_stacked { "made of other devices".to_string() } else { "disk".to_string() },
        queue: String::new(),
        read: bytes(disk.sectors[0]),
        written: bytes(disk.sectors[1]),
        busy: Figure::percent(disk.util_percent),
    }
}

/// What a source of energy measured: energy, power, power before the run, and what a joule above that gave.
pub(crate) fn energy(used: &EnergyFigures) -> [Figure; 5] {
    [
        Figure::amount(used.joules, "J"),
        Figure::amount(used.watts, "W"),
        Figure::amount(used.idle_watts, "W"),
        Figure::rate(used.iops_per_watt),
        Figure::bytes(used.bytes_per_joule.map(|bytes| u64::capped(bytes.round()))),
    ]
}

/// The devices in one line, from files to disks: `vda1 → vda`.
pub(crate) fn chain(run: &RunView) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut add = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    run.devices.iter().filter(|used| used.holds_files).for_each(|used| add(used.device.name.as_str()));
    run.devices.iter().flat_map(|used| &used.below).for_each(|name| add(name));
    names.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_states_are_said_once_unless_they_differ() {
        let start = PowerState { max_uw: Some(25_000_000), ..PowerState::default() };
        let same = PowerStates { start, end: start };
        assert_eq!(power(&same), "power state 0 (up to 25 W by its own account)");
        let end = PowerState { number: 4, ..PowerState::default() };
        assert_eq!(
            power(&PowerStates { end, ..same }),
            "power state 0 (up to 25 W by its own account), then 4"
        );
        let active = PowerState { active_uw: Some(8_500_000), ..start };
        assert!(power(&PowerStates { start: active, end: active }).contains("8.5 W"));
    }
}

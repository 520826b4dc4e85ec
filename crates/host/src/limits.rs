//! Limits that the host sets on this process: its I/O, its processors.
//!
//! Invariant: what is not limited is `None` or absent from a list.

use fiord_sys::cgroup::Groups;
use fiord_sys::sysfs::{Frequency, Sysfs};
use fiord_sys::thread;

/// Drivers whose `powersave` does not mean the lowest frequency: they choose one by the load.
const ADAPTIVE_DRIVERS: [&str; 3] = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];

/// Limits on this process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// On I/O to devices.
    pub io: Vec<IoLimit>,
    /// How many processors' time its control groups may use.
    pub processors: Option<f64>,
    /// How many processors it may run on.
    pub cpus_allowed: u64,
    /// The slowest of them, if it may not run as fast as it can.
    pub frequency: Option<FrequencyLimit>,
}

/// A processor that may not run as fast as it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrequencyLimit {
    /// Its number.
    pub cpu: u32,
    /// What chooses its frequency.
    pub governor: String,
    /// The highest frequency that it may have, in kHz.
    pub allowed_khz: u64,
    /// The highest that it can have, in kHz.
    pub hardware_khz: u64,
}

/// A limit that a control group sets on this process's I/O to a device, per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoLimit {
    /// The device, by the kernel's name.
    pub device: String,
    /// What is limited, in the kernel's words: `rbps`, `wbps`, `riops`, `wiops`.
    pub what: String,
    /// Bytes or I/Os per second.
    pub per_s: u64,
}

impl Limits {
    /// Those on this process.
    pub fn read() -> Limits {
        let sysfs = Sysfs::default();
        let groups = Groups::read().unwrap_or_default();
        let named = groups.io_limits().into_iter().filter_map(|limit| {
            let device = sysfs.block_device_of(limit.device).ok()?.name().to_owned();
            Some(IoLimit { device, what: limit.what, per_s: limit.per_s })
        });
        let cpus = thread::affinity().unwrap_or_default();
        let slow = cpus.iter().filter_map(|cpu| frequency_limit(*cpu, &sysfs.frequency(*cpu)?));
        Limits {
            io: named.collect(),
            processors: groups.processors(),
            cpus_allowed: cpus.len() as u64,
            frequency: slow.min_by_key(|limit| limit.allowed_khz),
        }
    }
}

fn frequency_limit(cpu: u32, of: &Frequency) -> Option<FrequencyLimit> {
    let is_lowest = of.governor == "powersave" && !ADAPTIVE_DRIVERS.contains(&of.driver.as_str());
    let allowed_khz = if is_lowest { of.scaling_min_khz } else { of.scaling_max_khz };
    let (governor, hardware_khz) = (of.governor.clone(), of.hardware_max_khz);
    (allowed_khz < hardware_khz).then_some(FrequencyLimit { cpu, governor, allowed_khz, hardware_khz })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited_to(governor: &str, driver: &str, max_khz: u64) -> Option<u64> {
        let of = Frequency {
            governor: governor.to_owned(),
            driver: driver.to_owned(),
            scaling_min_khz: 800,
            scaling_max_khz: max_khz,
            hardware_max_khz: 3600,
        };
        frequency_limit(1, &of).map(|limit| limit.allowed_khz)
    }

    #[test]
    fn a_processor_is_limited_by_a_cap_or_by_the_lowest_frequency() {
        assert_eq!(limited_to("performance", "acpi-cpufreq", 3600), None);
        assert_eq!(limited_to("performance", "acpi-cpufreq", 2000), Some(2000));
        assert_eq!(limited_to("powersave", "acpi-cpufreq", 3600), Some(800));
        assert_eq!(limited_to("powersave", "intel_pstate", 3600), None, "it chooses by the load");
        assert_eq!(limited_to("schedutil", "acpi-cpufreq", 3600), None);
    }

    #[test]
    fn this_process_may_run_somewhere() {
        let limits = Limits::read();
        assert!(limits.cpus_allowed > 0);
        assert!(limits.processors.is_none_or(|processors| processors > 0.0));
    }
}

//! Energy of the machine between two moments, from counters and from samples of power.
//!
//! Invariant: what a counter lost by beginning again at 0 is added, once for each reading. Nothing is said of a source that
//! could not be read in between.

use fiord_device::EnergyUse;
use fiord_sys::clock;
use fiord_sys::sysfs::{PowerSource, Sysfs};

/// The sources of this machine.
#[derive(Debug)]
pub struct EnergyMeter {
    sources: Vec<Metered>,
    started_ns: u64,
    read_ns: u64,
}

#[derive(Debug)]
struct Metered {
    source: PowerSource,
    /// The last reading; `None` once it has failed.
    last: Option<u64>,
    energy_uj: u64,
    idle_uw: Option<u64>,
}

impl EnergyMeter {
    /// Of what this machine lets be read now; `None` if that is nothing.
    pub fn open() -> Option<EnergyMeter> {
        EnergyMeter::of(&Sysfs::default(), clock::monotonic_ns())
    }

    /// Of what the tree lets be read at this time in nanoseconds.
    fn of(sysfs: &Sysfs, now_ns: u64) -> Option<EnergyMeter> {
        let metered = |mut source: PowerSource| {
            let last = source.file.read();
            Metered { source, last, energy_uj: 0, idle_uw: None }
        };
        let sources: Vec<Metered> = sysfs.power_sources().into_iter().map(metered).collect();
        (!sources.is_empty()).then_some(EnergyMeter { sources, started_ns: now_ns, read_ns: now_ns })
    }

    /// Reads all sources. To be called more often than a counter comes round: minutes.
    pub fn sample(&mut self) {
        self.sample_at(clock::monotonic_ns());
    }

    fn sample_at(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.read_ns);
        self.read_ns = now_ns;
        for Metered { source, last, energy_uj, .. } in &mut self.sources {
            let now = source.file.read();
            *energy_uj += match (*last, now, source.range_uj) {
                (Some(last), Some(now), Some(range)) if now < last => range.saturating_sub(last) + now,
                (Some(last), Some(now), Some(_)) => now - last,
                // The mean of both readings.
                (Some(last), Some(now), None) => {
                    let power_uw = u128::from(last) + u128::from(now);
                    (power_uw * u128::from(elapsed_ns) / 2_000_000_000) as u64
                }
                _ => 0,
            };
            *last = last.and(now);
        }
    }

    /// What was measured until the last sample is the power without a run; from now on energy is counted anew.
    pub fn start(&mut self, idle_uw: &[(String, u64)]) {
        self.sample();
        self.started_ns = self.read_ns;
        for metered in &mut self.sources {
            let known = idle_uw.iter().find(|(name, _)| *name == metered.source.name);
            (metered.energy_uj, metered.idle_uw) = (0, known.map(|(_, power_uw)| *power_uw));
        }
    }

    /// The mean power of each source since it was opened or started, in microwatts.
    pub fn power_uw(&self) -> Vec<(String, u64)> {
        let power = |used: EnergyUse| Some((used.source.clone(), (used.watts()? * 1e6) as u64));
        self.so_far().into_iter().filter_map(power).collect()
    }

    /// What each source has measured until the last sample.
    pub fn so_far(&self) -> Vec<EnergyUse> {
        let elapsed_ns = self.read_ns - self.started_ns;
        let known = self.sources.iter().filter(|metered| metered.last.is_some() && elapsed_ns > 0);
        known.map(|metered| metered.so_far(elapsed_ns)).collect()
    }
}

impl Metered {
    fn so_far(&self, elapsed_ns: u64) -> EnergyUse {
        EnergyUse {
            source: self.source.name.clone(),
            scope: self.source.scope,
            energy_uj: self.energy_uj,
            elapsed_ns,
            idle_uw: self.idle_uw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MadeUp;

    const SECOND: u64 = 1_000_000_000;

    fn package(made_up: &MadeUp, zone: &str, name: &str, energy_uj: &str) {
        made_up
            .write(&format!("class/powercap/{zone}/name"), name)
            .write(&format!("class/powercap/{zone}/max_energy_range_uj"), "262143328850")
            .write(&format!("class/powercap/{zone}/energy_uj"), energy_uj);
    }

    fn used(meter: &EnergyMeter) -> Vec<(String, u64)> {
        meter.so_far().into_iter().map(|used| (used.source, used.energy_uj)).collect()
    }

    #[test]
    fn counters_come_round_and_parts_of_a_package_are_left_out() {
        let made_up = MadeUp::new();
        package(&made_up, "intel-rapl:0", "package-0\n", "262143328000\n");
        package(&made_up, "intel-rapl:0:0", "core", "7");
        package(&made_up, "intel-rapl:0:1", "dram", "100");
        package(&made_up, "intel-rapl-mmio:0", "package-0", "9");
        let sysfs = made_up.system(&[]).sysfs;
        let mut meter = EnergyMeter::of(&sysfs, 5 * SECOND).unwrap();
        assert_eq!(used(&meter), [], "no time has passed");
        package(&made_up, "intel-rapl:0", "package-0", "150");
        package(&made_up, "intel-rapl:0:1", "dram", "2100");
        meter.sample_at(7 * SECOND);
        assert_eq!(used(&meter), [("package-0".to_string(), 1000), ("dram-0".to_string(), 2000)]);
        assert_eq!(meter.power_uw()[1], ("dram-0".to_string(), 1000));
        let all = meter.so_far();
        let sum = EnergyUse::sum(&all).unwrap();
        assert_eq!((sum.source.as_str(), sum.energy_uj, sum.idle_uw), ("processors and memory", 3000, None));
        assert_eq!(EnergyUse::sum(&all[..1]), None, "it would be the same again");
    }

    #[test]
    fn sensors_and_batteries_are_integrated_over_time() {
        let made_up = MadeUp::new();
        assert!(EnergyMeter::of(&made_up.system(&[]).sysfs, 0).is_none());
        made_up
            .write("class/hwmon/hwmon0/name", "power_meter")
            .write("class/hwmon/hwmon0/power1_average", "100000000")
            .write("class/hwmon/hwmon1/name", "nvme")
            .write("class/hwmon/hwmon1/temp1_input", "40000")
            .write("class/hwmon/hwmon2/name", "psu")
            .write("class/hwmon/hwmon2/power2_label", "pout1")
            .write("class/hwmon/hwmon2/power2_input", "50000000")
            .write("class/hwmon/hwmon2/power2_average", "1");
        for (battery, status) in [("BAT0", "Discharging"), ("BAT1", "Charging")] {
            made_up
                .write(&format!("class/power_supply/{battery}/type"), "Battery")
                .write(&format!("class/power_supply/{battery}/status"), status)
                .write(&format!("class/power_supply/{battery}/power_now"), "9000000");
        }
        let mut meter = EnergyMeter::of(&made_up.system(&[]).sysfs, 0).unwrap();
        made_up.write("class/hwmon/hwmon0/power1_average", "300000000");
        meter.sample_at(SECOND);
        meter.sample_at(3 * SECOND);
        let expected =
            [("power_meter: power1", 800_000_000), ("psu: pout1", 150_000_000), ("BAT0", 27_000_000)];
        assert_eq!(used(&meter), expected.map(|(name, energy)| (name.to_string(), energy)));
        made_up.write("class/power_supply/BAT0/power_now", "");
        meter.sample_at(4 * SECOND);
        assert_eq!(used(&meter).len(), 2, "what cannot be read is left out");
        let idle = [("psu: pout1".to_string(), 20_000_000)];
        meter.start(&idle);
        meter.sample_at(meter.read_ns + 2 * SECOND);
        let psu = &meter.so_far()[1];
        assert_eq!((psu.watts(), psu.net_joules()), (Some(50.0), Some(60.0)));
        assert_eq!(meter.so_far()[0].net_joules(), None);
    }
}

//! Energy of the machine between two moments, from counters and from samples of power.
//!
//! Invariant: what a counter lost by beginning again at 0 is added, once for each reading. Nothing is said of a source that
//! could not be read in between.

use fiord_device::{EnergyScope, EnergyUse};
use fiord_sys::clock;
use fiord_sys::counter_file::CounterFile;
use fiord_sys::sysfs::{PowerSource, Sysfs};

use crate::bmc::BmcPower;

/// The sources of this machine.
#[derive(Debug)]
pub struct EnergyMeter {
    sources: Vec<Metered>,
    started_ns: u64,
    read_ns: u64,
}

/// What is read.
#[derive(Debug)]
enum Source {
    File(CounterFile<u64>),
    Bmc(BmcPower),
}

impl Source {
    fn read(&mut self) -> Option<u64> {
        match self {
            Source::File(file) => file.read(),
            Source::Bmc(bmc) => bmc.read(),
        }
    }
}

#[derive(Debug)]
struct Metered {
    source: Source,
    name: String,
    scope: EnergyScope,
    range_uj: Option<u64>,
    /// The last reading; `None` once it has failed.
    last: Option<u64>,
    energy_uj: u64,
    idle_uw: Option<u64>,
}

impl EnergyMeter {
    /// Of what this machine lets be read now; `None` if that is nothing.
    pub fn open() -> Option<EnergyMeter> {
        // What may take a while comes before the time.
        let bmc = BmcPower::open();
        EnergyMeter::of(&Sysfs::default(), bmc, clock::monotonic_ns())
    }

    /// Of what the tree lets be read at this time in nanoseconds, and of the management controller.
    fn of(sysfs: &Sysfs, bmc: Option<BmcPower>, now_ns: u64) -> Option<EnergyMeter> {
        let of_file = |source: PowerSource| {
            let PowerSource { name, scope, range_uj, file } = source;
            Metered::new(Source::File(file), name, scope, range_uj)
        };
        let of_bmc = |bmc| Metered::new(Source::Bmc(bmc), "ipmi0".to_string(), EnergyScope::Other, None);
        let files = sysfs.power_sources().into_iter().map(of_file);
        let sources: Vec<Metered> = files.chain(bmc.map(of_bmc)).collect();
        (!sources.is_empty()).then_some(EnergyMeter { sources, started_ns: now_ns, read_ns: now_ns })
    }

    /// Reads all sources. To be called more often than a counter comes round: minutes.
    pub fn sample(&mut self) {
        self.sample_at(clock::monotonic_ns());
    }

    fn sample_at(&mut self, now_ns: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.read_ns);
        self.read_ns = now_ns;
        for Metered { source, range_uj, last, energy_uj, .. } in &mut self.sources {
            let now = source.read();
            *energy_uj += match (*last, now, *range_uj) {
                (Some(last), Some(now), Some(range)) if now < last => range.saturating_sub(last) + now,
                (Some(last), Some(now), Some(_)) => now - last,
                // The mean of both readings.
                (Some(last), Some(now), None) => {
                    let power_uw = u128::from(last) + u128::from(now);
                    u64::try_from(power_uw * u128::from(elapsed_ns) / 2_000_000_000).unwrap_or(u64::MAX)
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
            let known = idle_uw.iter().find(|(name, _)| *name == metered.name);
            (metered.energy_uj, metered.idle_uw) = (0, known.map(|(_, power_uw)| *power_uw));
            if let Source::Bmc(bmc) = &mut metered.source {
                bmc.start();
            }
        }
    }

    /// The mean power of each source since it was opened or started, in microwatts.
    pub fn power_uw(&self) -> Vec<(String, u64)> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "power is not negative, and what is beyond all numbers is the largest one"
        )]
        let power = |used: EnergyUse| Some((used.source.clone(), (used.watts()? * 1e6) as u64));
        self.so_far().into_iter().filter_map(power).collect()
    }

    /// What each source has measured until the last sample.
    pub fn so_far(&self) -> Vec<EnergyUse> {
        let elapsed_ns = self.read_ns - self.started_ns;
        let known = self.sources.iter().filter(|metered| metered.is_known() && elapsed_ns > 0);
        known.map(|metered| metered.so_far(elapsed_ns)).collect()
    }
}

impl Metered {
    fn new(mut source: Source, name: String, scope: EnergyScope, range_uj: Option<u64>) -> Metered {
        let last = source.read();
        Metered { source, name, scope, range_uj, last, energy_uj: 0, idle_uw: None }
    }

    /// Whether all readings succeeded, and one of them is of the time that is measured.
    fn is_known(&self) -> bool {
        let is_current = match &self.source {
            Source::File(_) => true,
            Source::Bmc(bmc) => bmc.is_current(),
        };
        self.last.is_some() && is_current
    }

    fn so_far(&self, elapsed_ns: u64) -> EnergyUse {
        EnergyUse {
            source: self.name.clone(),
            scope: self.scope,
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
        let mut meter = EnergyMeter::of(&sysfs, None, 5 * SECOND).unwrap();
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
        assert!(EnergyMeter::of(&made_up.system(&[]).sysfs, None, 0).is_none());
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
        let mut meter = EnergyMeter::of(&made_up.system(&[]).sysfs, None, 0).unwrap();
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

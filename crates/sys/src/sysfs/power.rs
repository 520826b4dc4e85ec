//! Where the kernel tells energy or power: counters of the processors (powercap, RAPL), sensors (hwmon) and batteries.
//!
//! Invariant: a counter is listed once: RAPL's parts of a package, and its second interface (`intel-rapl-mmio`), are left out.

use std::path::Path;

use fiord_device::EnergyScope;

use super::block::names_in;
use super::{Sysfs, text_in};
use crate::counter_file::CounterFile;

/// No more sources than a reading may cost.
const SOURCES_MAX: usize = 32;

/// A file that tells energy or power.
#[derive(Debug)]
pub struct PowerSource {
    /// Its name: `package-0`, `dram-0`, `power_meter: power1`, `BAT0`.
    pub name: String,
    /// What it measures.
    pub scope: EnergyScope,
    /// The value after which a counter of microjoules begins again at 0; `None` for power in microwatts.
    pub range_uj: Option<u64>,
    /// The file.
    pub file: CounterFile<u64>,
}

impl Sysfs {
    /// All that can be read. RAPL's counters need root.
    pub fn power_sources(&self) -> Vec<PowerSource> {
        let all = self.rapl().into_iter().chain(self.power_sensors()).chain(self.batteries());
        all.take(SOURCES_MAX).collect()
    }

    fn rapl(&self) -> Vec<PowerSource> {
        let class = self.root.join("class/powercap");
        let of = |zone: String| {
            // `intel-rapl:0` is a package, `intel-rapl:0:1` a part of it; AMD's have the same names.
            let package = zone.strip_prefix("intel-rapl:")?.split(':').next()?.to_string();
            let dir = class.join(&zone);
            let name = text_in(&dir, "name")?;
            let (name, scope) = match name.as_str() {
                "dram" => (format!("dram-{package}"), EnergyScope::Memory),
                "psys" => (name, EnergyScope::Other),
                _ if name.starts_with("package") => (name, EnergyScope::Processors),
                _ => return None,
            };
            let range_uj = Some(text_in(&dir, "max_energy_range_uj")?.parse().ok()?);
            source(name, scope, range_uj, &dir.join("energy_uj"))
        };
        names_in(&class).into_iter().filter_map(of).collect()
    }

    fn power_sensors(&self) -> Vec<PowerSource> {
        let class = self.root.join("class/hwmon");
        let mut sources = Vec::new();
        for dir in names_in(&class).iter().map(|name| class.join(name)) {
            let files = names_in(&dir);
            let input = |file: &&String| file.starts_with("power") && file.ends_with("_input");
            let average = |file: &&String| {
                let number = file.strip_suffix("_average").filter(|file| file.starts_with("power"));
                number.is_some_and(|number| !files.contains(&format!("{number}_input")))
            };
            for file in files.iter().filter(|file| input(file) || average(file)) {
                let number = file.split('_').next().unwrap_or(file);
                let label = text_in(&dir, &format!("{number}_label")).unwrap_or_else(|| number.to_string());
                let name = format!("{}: {label}", text_in(&dir, "name").unwrap_or_default());
                sources.extend(source(name, EnergyScope::Other, None, &dir.join(file)));
            }
        }
        sources
    }

    /// Those that the machine runs on.
    fn batteries(&self) -> Vec<PowerSource> {
        let class = self.root.join("class/power_supply");
        let of = |name: String| {
            let dir = class.join(&name);
            let is = |file: &str, word: &str| text_in(&dir, file).is_some_and(|text| text == word);
            let is_used = is("type", "Battery") && is("status", "Discharging");
            is_used.then(|| source(name, EnergyScope::Other, None, &dir.join("power_now")))?
        };
        names_in(&class).into_iter().filter_map(of).collect()
    }
}

fn source(name: String, scope: EnergyScope, range_uj: Option<u64>, path: &Path) -> Option<PowerSource> {
    let file = CounterFile::open(path, |text| text.trim().parse().ok())?;
    Some(PowerSource { name, scope, range_uj, file })
}

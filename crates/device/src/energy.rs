//! Energy of the machine during a run, as it measures that itself.
//!
//! Invariant: sources of different scopes overlap, so only those of processors and memory may be added up.

use serde::{Deserialize, Serialize};

/// What a source measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EnergyScope {
    /// A processor package.
    Processors,
    /// Memory.
    Memory,
    /// The whole machine, or what a sensor or battery is at.
    #[default]
    Other,
}

/// What a source has measured during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyUse {
    /// Its name in the kernel: `package-0`, `dram-0`, `psys`, `power_meter: power1`, `BAT0`.
    pub source: String,
    /// What it measures.
    pub scope: EnergyScope,
    /// Energy since the run began, in microjoules.
    pub energy_uj: u64,
    /// The time since then, in nanoseconds.
    pub elapsed_ns: u64,
    /// Power before the run, in microwatts; `None` if it was not measured.
    pub idle_uw: Option<u64>,
}

impl EnergyUse {
    /// Energy in joules.
    pub fn joules(&self) -> f64 {
        self.energy_uj as f64 / 1e6
    }

    /// Mean power in watts; `None` if no time passed.
    pub fn watts(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.joules() / (self.elapsed_ns as f64 / 1e9))
    }

    /// Power before the run, in watts.
    pub fn idle_watts(&self) -> Option<f64> {
        self.idle_uw.map(|power_uw| power_uw as f64 / 1e6)
    }

    /// Energy beyond what would have been used without the run, in joules; `None` if that is not known, or more, or
    /// the same but for rounding.
    pub fn net_joules(&self) -> Option<f64> {
        let net = self.joules() - self.idle_watts()? * self.elapsed_ns as f64 / 1e9;
        // Readings are rounded to microjoules.
        (net > self.joules() * 1e-6).then_some(net)
    }

    /// Those of processors and memory together, if there are several: they are parts of one machine.
    pub fn sum(all: &[EnergyUse]) -> Option<EnergyUse> {
        let mut parts = all.iter().filter(|part| part.scope != EnergyScope::Other).peekable();
        let source = "processors and memory".to_string();
        let first = EnergyUse { source, scope: EnergyScope::Other, ..(*parts.next()?).clone() };
        parts.peek()?;
        Some(parts.fold(first, |sum, part| EnergyUse {
            energy_uj: sum.energy_uj + part.energy_uj,
            elapsed_ns: sum.elapsed_ns.max(part.elapsed_ns),
            idle_uw: sum.idle_uw.zip(part.idle_uw).map(|(one, other)| one + other),
            ..sum
        }))
    }
}

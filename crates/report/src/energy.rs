//! What a run cost: energy by source, and the I/Os and bytes that a joule gave.
//!
//! Invariant: I/Os and bytes are divided by the energy above that without a run, and not at all if that is not known.

use fiord_device::EnergyUse;

use crate::model::RunReport;
use crate::table::{Cell, Column, Table};

/// A row for each source, and one for processors and memory together.
pub fn table(run: &RunReport) -> Table {
    let mut table = Table::new([
        Column::new("source", "SOURCE"),
        Column::new("joules", "JOULES"),
        Column::new("watts", "WATTS"),
        Column::new("idle_watts", "IDLE WATTS"),
        Column::new("net_joules", "ABOVE IDLE"),
        Column::new("iops_per_watt", "IOPS/WATT"),
        Column::new("bytes_per_joule", "BYTES/JOULE"),
    ]);
    let number =
        |value: Option<f64>, decimals| value.map_or(Cell::None, |value| Cell::Number(value, decimals));
    for used in run.energy.iter().chain(EnergyUse::sum(&run.energy).as_ref()) {
        let per_joule = per_joule(run, used);
        table.rows.push(vec![
            Cell::Text(used.source.clone()),
            Cell::Number(used.joules(), 2),
            number(used.watts(), 2),
            number(used.idle_watts(), 2),
            number(used.net_joules(), 2),
            number(per_joule.map(|per| per.ios), 1),
            number(per_joule.map(|per| per.bytes), 0),
        ]);
    }
    table
}

/// What a run did for each joule above idle. I/Os for a joule are IOPS for a watt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerJoule {
    /// I/Os of all jobs.
    pub ios: f64,
    /// Bytes of all jobs.
    pub bytes: f64,
}

/// By what this source measured; `None` if no I/O was done, or the power without a run is not known.
fn per_joule(run: &RunReport, used: &EnergyUse) -> Option<PerJoule> {
    let all = || run.jobs.iter().flat_map(|job| &job.stats.directions);
    let (ios, bytes) = (all().map(|one| one.ios).sum::<u64>(), all().map(|one| one.bytes).sum::<u64>());
    let net = used.net_joules().filter(|_| ios > 0)?;
    Some(PerJoule { ios: ios as f64 / net, bytes: bytes as f64 / net })
}

/// Mean power in watts, and what was done for each joule above idle: of processors and memory, or of the only or first source.
pub fn power(run: &RunReport) -> Option<(f64, Option<PerJoule>)> {
    let sum = EnergyUse::sum(&run.energy);
    let used = sum.as_ref().or(run.energy.first())?;
    Some((used.watts()?, per_joule(run, used)))
}

#[cfg(test)]
mod tests {
    use fiord_device::EnergyScope;

    use super::*;
    use crate::model::JobReport;

    #[test]
    fn io_is_divided_by_what_the_run_used_above_idle() {
        let scope = EnergyScope::Processors;
        let used = |energy_uj, idle_uw| EnergyUse {
            source: String::new(),
            scope,
            energy_uj,
            elapsed_ns: 2_000_000_000,
            idle_uw,
        };
        let mut job = JobReport::default();
        (job.stats.directions[0].ios, job.stats.directions[0].bytes) = (600, 6000);
        let energy = vec![used(30_000_000, Some(10_000_000)), used(20_000_000, None)];
        let mut run = RunReport { jobs: vec![job], energy, ..RunReport::default() };
        let table = table(&run);
        assert_eq!(table.rows[0][5..], [Cell::Number(60.0, 1), Cell::Number(600.0, 0)]);
        assert_eq!(table.rows[1][3..], [Cell::None, Cell::None, Cell::None, Cell::None]);
        assert_eq!((table.rows.len(), power(&run)), (3, Some((25.0, None))), "both packages together");
        run.energy.pop();
        assert_eq!(power(&run), Some((15.0, Some(PerJoule { ios: 60.0, bytes: 600.0 }))));
    }
}

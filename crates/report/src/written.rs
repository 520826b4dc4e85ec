//! What was written to devices during a run.
//!
//! Invariant: two counts are compared only within one boot of the machine.

use crate::model::RunReport;

/// What was written to a device during a run, by the kernel's counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The boot of the machine, if it is known.
    pub boot_id: Option<String>,
    /// The kernel's name of the device in it.
    pub device: String,
    /// Sectors of 512 bytes written since boot when the run began.
    pub from_sectors: u64,
    /// And when it ended.
    pub to_sectors: u64,
}

impl Written {
    /// Of each device of a run that was written to.
    pub fn all_of(report: &RunReport) -> impl Iterator<Item = Written> {
        let all = report.devices.iter().map(|used| Written {
            boot_id: report.boot_id.clone(),
            device: used.device.name.clone(),
            from_sectors: used.start.write_sectors,
            to_sectors: used.end.write_sectors,
        });
        all.filter(|written| written.to_sectors > written.from_sectors)
    }
}

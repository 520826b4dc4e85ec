//! The disks below targets, and which targets share them.
//!
//! Invariant: a disk is a device that has no other below it; of targets of which nothing is known nothing is said.

use std::collections::{BTreeMap, BTreeSet};

use fiord_report::RunReport;

/// The disks below the files of these runs.
pub(crate) fn below<'r>(reports: impl IntoIterator<Item = &'r RunReport>) -> BTreeSet<&'r str> {
    let devices = reports.into_iter().flat_map(|report| &report.devices);
    devices.filter(|of| of.below.is_empty()).map(|of| of.device.name.as_str()).collect()
}

/// Sentences about targets on the same disks, of which a comparison is not one of disks.
pub(crate) fn shared<'r>(targets: impl Iterator<Item = (&'r str, BTreeSet<&'r str>)>) -> Vec<String> {
    let mut sharing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, disks) in targets {
        for disk in disks {
            sharing.entry(disk).or_default().push(name);
        }
    }
    let mut disks_of: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for (disk, names) in sharing.into_iter().filter(|(_, names)| names.len() > 1) {
        disks_of.entry(names).or_default().push(disk);
    }
    let sentence = |(names, disks): (Vec<&str>, Vec<&str>)| {
        let plural = if disks.len() == 1 { "" } else { "s" };
        format!(
            "{} are on the same disk{plural} ({}): a difference between them is not one between disks.",
            names.join(" and "),
            disks.join(", ")
        )
    };
    disks_of.into_iter().map(sentence).collect()
}

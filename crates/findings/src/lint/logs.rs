//! Logs that are written to the disk that is measured.
//!
//! Invariant: averaged logs, a few lines per second, are not found.

use fiord_host::StorageStack;
use fiord_plan::Job;
use fiord_report::path::shown;
use fiord_report::{Code, Finding, Subject};

use super::known::{Known, detailed_logs};

/// A log with a line for each I/O on a device that the job's I/O goes to.
pub(super) fn on_target(job: &Job, known: &Known) -> Option<Finding> {
    let stacks = || known.targets_of(job).filter_map(|target| target.stack.as_ref());
    let is_measured = |name: &str| stacks().any(|stack| names(stack).any(|measured| measured == name));
    detailed_logs(job).find_map(|(option, log)| {
        let device = names(known.below_log(log)?).find(|name| is_measured(name))?;
        let sentence = format!(
            "{} has a line for each I/O and is written to this device, which is measured",
            shown(log)
        );
        let remedy = "write it to another disk, or average it (log_avg_msec=1000)";
        let subject = Subject::Device(device.to_string());
        Some(Finding::new(Code::LogsOnTarget, subject, sentence, remedy).of_option(option))
    })
}

/// The devices of a stack.
fn names(stack: &StorageStack) -> impl Iterator<Item = &str> {
    stack.devices().into_iter().map(|facts| facts.device.name.as_str())
}

#[cfg(test)]
mod tests {
    use crate::testing::{known_target, on_device, plan};

    use super::*;

    #[test]
    fn a_log_of_each_io_on_the_device_that_is_measured_is_found() {
        let found = |options: &[(&'static str, &str)], is_known: bool| {
            let common = [("ioengine", "psync"), ("filename", "/data/f"), ("size", "64k"), ("rw", "write")];
            let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
            let mut target = known_target("/data/f");
            target.stack = Some(on_device("disk", false));
            let log_directories = match is_known {
                true => vec![("/data".into(), on_device("disk", false))],
                false => Vec::new(),
            };
            let known = Known { targets: vec![target], log_directories, ..Known::default() };
            on_target(&plan(&[("a", &options)]).jobs[0], &known).map(|finding| finding.option.into_owned())
        };
        assert_eq!(found(&[("write_lat_log", "/data/log")], true).as_deref(), Some("write_lat_log"));
        assert_eq!(found(&[("write_iolog", "/data/io")], true).as_deref(), Some("write_iolog"));
        // Averaged, elsewhere, unknown, none.
        assert_eq!(found(&[("write_lat_log", "/data/log"), ("log_avg_msec", "1000")], true), None);
        assert_eq!(found(&[("write_lat_log", "/other/log")], true), None);
        assert_eq!(found(&[("write_lat_log", "/data/log")], false), None);
        assert_eq!(found(&[], true), None);
    }
}

//! Where a study works: a file and how to reach it.
//!
//! Invariant: `writable` only if the file is a scratch file, created for the study and removed afterwards, or if it has an
//! `identity`, by which the user named it as one to overwrite.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_options::value::EngineName;
use fiord_options::{Section, Spec, job};
use fiord_report::table::{Cell, Table, shown_bytes};
use fiord_report::{Finding, path};

use crate::step::Step;

/// Most devices listed in the heading: a RAID may have many.
const DEVICES_MAX: usize = 3;

/// The target of a study's I/O.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StudyTarget {
    /// As given by the user: a directory, a file or a device.
    pub path: PathBuf,
    /// The file or device the runs go to: below the target if that is a directory, else the target itself.
    pub file: PathBuf,
    /// Whether the runs may write to it.
    pub writable: bool,
    /// How much of it they use, in bytes.
    pub size_bytes: u64,
    /// How much is free on its file system, in bytes, if that is known.
    pub free_bytes: Option<u64>,
    /// Whether it takes direct I/O.
    pub direct: bool,
    /// Whether it is in memory, with no disk below it.
    pub in_memory: bool,
    /// The queued engine that works here: `io_uring`, or `libaio`.
    pub engine: EngineName,
    /// The type of the file system it lies on, if it lies on one: `ext4`.
    pub file_system: Option<String>,
    /// The devices it lies on, a row each, in the columns of `fiord devices`.
    pub devices: Table,
    /// Its findings, to be read before the figures.
    pub findings: Vec<Finding>,
    /// The serial number or whatever else the user has named this device or file by, as one to overwrite.
    pub identity: Option<String>,
    /// The unit of its I/O, in bytes: that of direct I/O if it takes that, else 1.
    pub block_bytes: u64,
    /// How long its zones are, in bytes, if they are written in sequence only.
    pub zone_bytes: Option<u64>,
    /// How large the device or file is, in bytes; of a scratch file as much as the runs use.
    pub device_bytes: u64,
    /// What was done to the target before the study: a sentence each, without a full stop.
    pub remarks: Vec<String>,
}

impl StudyTarget {
    /// What all jobs at this target have in common. Buffers hold random bytes, so that no device can compress them.
    pub fn settings(&self, engine: EngineName) -> Vec<(&'static Spec, String)> {
        let mut settings = vec![
            (job::Amount::size, self.size_bytes.to_string()),
            (job::Access::direct, u8::from(self.direct).to_string()),
            (job::Access::randrepeat, "0".to_string()),
            (job::Measure::group_reporting, "1".to_string()),
            (job::Queue::ioengine, engine.to_string()),
            (job::Process::stonewall, "1".to_string()),
        ];
        settings.extend(self.zone_bytes.map(|_| (job::Files::zonemode, "zbd".to_string())));
        settings
    }

    /// The step that fills the file, for a writable target: blocks that were never written are not read from the
    /// device. No two blocks are alike.
    pub fn fill(&self) -> Step {
        let options = [
            (job::Access::rw, "write"),
            (job::Blocks::bs, "1M"),
            (job::Queue::iodepth, "8"),
            (job::Buffers::refill_buffers, "1"),
            (job::Files::end_fsync, "1"),
        ];
        let section = Section::new("fill").with(self.settings(self.engine)).with(options);
        Step::prepare("filling the test file", vec![section]).on(self.file.clone())
    }

    /// A step of one job on the target's file: these options, for this time.
    pub fn run(
        &self,
        name: &str,
        engine: EngineName,
        options: &[(&'static Spec, &str)],
        time: Duration,
    ) -> Step {
        let ends = [
            (job::Time::time_based, "1".to_string()),
            (job::Time::runtime, format!("{}ms", time.as_millis().max(1))),
        ];
        let section = Section::new(name.replace(", ", "-").replace(' ', "-"));
        let section = section.with(self.settings(engine)).with(ends).with(options.iter().copied());
        Step::measure(name, vec![section], time).on(self.file.clone())
    }

    /// The path of another scratch file of the study, for a writable target. It is not created here.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.file.with_file_name(name)
    }

    /// The directory of the study's scratch files, for a writable target.
    pub fn own_directory(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// The target's path as it is shown to users.
    pub fn shown(&self) -> String {
        path::shown(&self.path)
    }

    /// Heading lines about the target: `Device`, `vda: disk, virtio, 256GiB, scheduler none`. `access` is how the
    /// jobs reach it: `direct I/O`.
    pub fn heading(&self, access: &str) -> Vec<(&'static str, String)> {
        let devices = self.devices.rows.iter().map(|row| ("Device", self.device(row)));
        let mut lines: Vec<(&str, String)> = devices.take(DEVICES_MAX).collect();
        if self.devices.rows.len() > DEVICES_MAX {
            let more = self.devices.rows.len() - DEVICES_MAX;
            lines.push(("", format!("and {more} more; see `fiord devices {}`", self.shown())));
        }
        if self.in_memory && lines.is_empty() {
            lines.push(("Device", "memory (no disk)".to_string()));
        }
        let on = self.file_system.iter().map(String::as_str);
        let reached = on.chain([access]).collect::<Vec<_>>().join(", ");
        let size = shown_bytes(self.size_bytes);
        let used = match (&self.identity, self.writable) {
            (Some(identity), _) => format!("{size} of it are overwritten (it is {identity})"),
            (None, true) => format!("{size} in scratch files, removed afterwards"),
            (None, false) => format!("{size} of it, read only"),
        };
        lines.push(("Target", format!("{}: {reached}; {used}", self.shown())));
        lines.extend(self.notes().map(|note| ("Note", note.to_string())));
        lines
    }

    /// Notes to be read before the figures: its findings, and what was done to it.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let findings = self.findings.iter().map(|finding| finding.sentence.as_str());
        findings.chain(self.remarks.iter().map(String::as_str))
    }

    /// The subject of a sentence about the figures.
    pub fn subject(&self) -> &'static str {
        match (self.in_memory, self.direct) {
            (true, _) => "This target is memory, not a disk: it",
            (false, false) => "Without direct I/O, through the page cache, this disk",
            (false, true) => "This disk",
        }
    }

    fn device(&self, row: &[Cell]) -> String {
        let mut words = Vec::new();
        for (column, cell) in self.devices.columns.iter().zip(row) {
            match (column.key, cell) {
                (_, Cell::None) => {}
                ("rotational", Cell::Flag(true)) => words.push("reported as rotational".to_string()),
                ("rotational", _) => words.push("not rotational".to_string()),
                ("scheduler", name) => words.push(format!("scheduler {}", name.shown())),
                (_, cell) => words.push(cell.shown()),
            }
        }
        let rest = words.split_off(words.len().min(1));
        format!("{}: {}", words.concat(), rest.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use fiord_report::{Code, Subject};

    use super::*;
    use crate::testing::{settings, target};

    #[test]
    fn the_heading_describes_the_devices_and_the_access() {
        let heading = |target: &StudyTarget| {
            target
                .heading("direct I/O")
                .into_iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            heading(&target()),
            [
                "Device: sda: disk, 1TiB, not rotational, scheduler none",
                "Target: /data: ext4, direct I/O; 1GiB in scratch files, removed afterwards",
            ]
        );
        let memory = StudyTarget { in_memory: true, devices: Table::default(), ..target() };
        assert_eq!(heading(&memory)[0], "Device: memory (no disk)");
        let mut many = target();
        many.devices.rows = vec![many.devices.rows[0].clone(); 5];
        assert_eq!(heading(&many)[3], ": and 2 more; see `fiord devices /data`");
        assert_eq!(heading(&many).len(), 5);
        let subject = Subject::Target("/dev/sda".into());
        let finding = Finding::new(Code::TargetInUse, subject, "/dev/sda is mounted at /", "");
        let device = StudyTarget {
            writable: false,
            file_system: None,
            findings: vec![finding],
            remarks: vec!["cleared /data/old".to_string()],
            ..target()
        };
        assert_eq!(
            heading(&device)[1..],
            [
                "Target: /data: direct I/O; 1GiB of it, read only",
                "Note: /dev/sda is mounted at /",
                "Note: cleared /data/old",
            ]
        );
    }

    #[test]
    fn a_run_is_one_job_after_a_stonewall() {
        let step = target().run(
            "random read 4k, depth 32",
            EngineName::Libaio,
            &[(job::Access::rw, "randread")],
            Duration::from_millis(1500),
        );
        assert_eq!(
            settings(&step),
            "[random-read-4k-depth-32] size=1073741824 direct=1 randrepeat=0 group_reporting=1 ioengine=libaio \
             stonewall=1 time_based=1 runtime=1500ms rw=randread"
        );
        assert_eq!((step.time, step.prepares), (Duration::from_millis(1500), false));
        assert_eq!(step.sections[0].files, [PathBuf::from("/data/own:1/data")]);
        assert_eq!(target().beside("log"), Path::new("/data/own:1/log"));
        assert_eq!(target().own_directory(), Path::new("/data/own:1"));
    }

    #[test]
    fn the_file_is_filled_with_incompressible_data_and_synced() {
        let fill = target().fill();
        assert!(fill.prepares);
        let settings = settings(&fill);
        assert!(
            settings.contains("refill_buffers=1 end_fsync=1") && !settings.contains("runtime"),
            "{settings}"
        );
    }
}

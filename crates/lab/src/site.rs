//! Where a study works: a file and how to reach it.
//!
//! Invariant: `writable` only where the file is the study's own, made for it and removed after it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_options::Section;
use fiord_report::path;
use fiord_report::table::{Cell, Table, shown_bytes};

use crate::study::Step;

/// Devices told in the heading: a RAID may have many.
const DEVICES_MAX: usize = 3;

/// The place of a study's I/O.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// What was asked for: a directory, a file or a device.
    pub target: PathBuf,
    /// The file or device the runs go to: below the target where that is a directory, else the target itself.
    pub file: PathBuf,
    /// Whether the runs may write to it.
    pub writable: bool,
    /// How much of it they use, in bytes.
    pub size_bytes: u64,
    /// Whether it takes direct I/O.
    pub direct: bool,
    /// Whether it lies in memory, with no disk below.
    pub in_memory: bool,
    /// The queued engine that works here: `io_uring`, or `libaio`.
    pub engine: &'static str,
    /// The type of the file system it lies on, if it lies on one: `ext4`.
    pub file_system: Option<String>,
    /// The devices it lies on, a row each, in the columns of `fiord devices`.
    pub devices: Table,
    /// What is to be known before the figures are read, a sentence without a full stop each.
    pub remarks: Vec<String>,
}

impl Site {
    /// What all jobs at this site have in common. Buffers hold random bytes, so that no device can compress them.
    pub fn settings(&self, engine: &str) -> Vec<(&'static str, String)> {
        vec![
            ("size", self.size_bytes.to_string()),
            ("direct", u8::from(self.direct).to_string()),
            ("randrepeat", "0".to_string()),
            ("group_reporting", "1".to_string()),
            ("ioengine", engine.to_string()),
            ("stonewall", "1".to_string()),
        ]
    }

    /// The step that fills the file, for a site that is written to: what was never written is not read from the device.
    /// No block is like another.
    pub fn fill(&self) -> Step {
        let options =
            [("rw", "write"), ("bs", "1M"), ("iodepth", "8"), ("refill_buffers", "1"), ("end_fsync", "1")];
        let section = Section::new("fill").with(self.settings(self.engine)).with(owned(&options));
        Step::prepare("filling the test file", vec![section]).on(self.file.clone())
    }

    /// A step of one job on the site's file: these options, for this time.
    pub fn run(&self, name: &str, engine: &str, options: &[(&'static str, &str)], time: Duration) -> Step {
        let ends = [("time_based", "1".to_string()), ("runtime", format!("{}ms", time.as_millis().max(1)))];
        let section = Section::new(name.replace(", ", "-").replace(' ', "-"));
        let section = section.with(self.settings(engine)).with(ends).with(owned(options));
        Step::measure(name, vec![section], time).on(self.file.clone())
    }

    /// Another file of the study's own; for a site that is written to. Nobody has made it yet.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.file.with_file_name(name)
    }

    /// The directory of the study's own files; for a site that is written to.
    pub fn own_directory(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// The target as people read it.
    pub fn shown(&self) -> String {
        path::shown(&self.target)
    }

    /// Where it works, for people, line by line: `Device`, `vda: disk, virtio, 256GiB, scheduler none`. `way` is how the
    /// jobs reach it: `direct I/O`.
    pub fn heading(&self, way: &str) -> Vec<(&'static str, String)> {
        let devices = self.devices.rows.iter().map(|row| ("Device", self.device(row)));
        let mut lines: Vec<(&str, String)> = devices.take(DEVICES_MAX).collect();
        if self.devices.rows.len() > DEVICES_MAX {
            let more = self.devices.rows.len() - DEVICES_MAX;
            lines.push(("", format!("and {more} more, which `fiord devices {}` shows", self.shown())));
        }
        if self.in_memory && lines.is_empty() {
            lines.push(("Device", "memory: no disk below".to_string()));
        }
        let on = self.file_system.iter().map(String::as_str);
        let access = on.chain([way]).collect::<Vec<_>>().join(", ");
        let size = shown_bytes(self.size_bytes);
        let used = match self.writable {
            true => format!("{size} in own files, removed after"),
            false => format!("{size} of it, only read"),
        };
        lines.push(("Target", format!("{}: {access}; {used}", self.shown())));
        lines.extend(self.remarks.iter().map(|remark| ("Note", remark.clone())));
        lines
    }

    /// What a sentence about the figures is about.
    pub fn subject(&self) -> &'static str {
        match (self.in_memory, self.direct) {
            (true, _) => "There is no disk here: memory",
            (false, false) => "Without direct I/O, through the page cache, this disk",
            (false, true) => "This disk",
        }
    }

    fn device(&self, row: &[Cell]) -> String {
        let mut words = Vec::new();
        for (column, cell) in self.devices.columns.iter().zip(row) {
            match (column.key, cell) {
                (_, Cell::None) => {}
                ("rotational", Cell::Flag(true)) => words.push("says it rotates".to_string()),
                ("rotational", _) => words.push("not rotational".to_string()),
                ("scheduler", name) => words.push(format!("scheduler {}", name.shown())),
                (_, cell) => words.push(cell.shown()),
            }
        }
        let rest = words.split_off(words.len().min(1));
        format!("{}: {}", words.concat(), rest.join(", "))
    }
}

fn owned<'a>(options: &'a [(&'static str, &str)]) -> impl Iterator<Item = (&'static str, String)> + 'a {
    options.iter().map(|(option, value)| (*option, value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{settings, site};

    #[test]
    fn the_heading_tells_of_the_device_and_of_the_way_to_it() {
        let heading = |site: &Site| {
            site.heading("direct I/O")
                .into_iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            heading(&site()),
            [
                "Device: sda: disk, 1TiB, not rotational, scheduler none",
                "Target: /data: ext4, direct I/O; 1GiB in own files, removed after",
            ]
        );
        let memory = Site { in_memory: true, devices: Table::default(), ..site() };
        assert_eq!(heading(&memory)[0], "Device: memory: no disk below");
        let mut many = site();
        many.devices.rows = vec![many.devices.rows[0].clone(); 5];
        assert_eq!(heading(&many)[3], ": and 2 more, which `fiord devices /data` shows");
        assert_eq!(heading(&many).len(), 5);
        let device = Site {
            writable: false,
            file_system: None,
            remarks: vec!["/dev/sda is mounted at /".to_string()],
            ..site()
        };
        assert_eq!(
            heading(&device)[1..],
            ["Target: /data: direct I/O; 1GiB of it, only read", "Note: /dev/sda is mounted at /"]
        );
    }

    #[test]
    fn a_run_is_one_job_that_waits_for_those_before_it() {
        let step = site().run(
            "random read 4k, depth 32",
            "libaio",
            &[("rw", "randread")],
            Duration::from_millis(1500),
        );
        assert_eq!(
            settings(&step),
            "[random-read-4k-depth-32] size=1073741824 direct=1 randrepeat=0 group_reporting=1 ioengine=libaio \
             stonewall=1 time_based=1 runtime=1500ms rw=randread"
        );
        assert_eq!((step.time, step.prepares), (Duration::from_millis(1500), false));
        assert_eq!(step.sections[0].files, [PathBuf::from("/data/own:1/data")]);
        assert_eq!(site().beside("log"), Path::new("/data/own:1/log"));
        assert_eq!(site().own_directory(), Path::new("/data/own:1"));
    }

    #[test]
    fn the_file_is_filled_with_what_cannot_be_compressed_and_it_counts_only_when_it_is_on_the_disk() {
        let fill = site().fill();
        assert!(fill.prepares);
        let settings = settings(&fill);
        assert!(
            settings.contains("refill_buffers=1 end_fsync=1") && !settings.contains("runtime"),
            "{settings}"
        );
    }
}

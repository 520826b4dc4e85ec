//! Preconditioning that was done before and need not be repeated: what shows that.
//!
//! Invariant: it is kept only if all that could have undone it is known not to have happened. What is not known counts as
//! evidence that is missing.

use fiord_options::job;
use fiord_report::table::shown_bytes;
use fiord_report::{Code, RunReport, Written};
use fiord_stats::OrderBy;

use crate::figures::{WRITE, whole_run};

/// How often preconditioning writes the capacity.
pub(super) const FILLS: u64 = 2;

/// Preconditioning of an earlier study that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its run in the history.
    pub run: i64,
    /// The date of that, `2026-11-28`.
    pub date: String,
    /// How much of the device it wrote twice, in bytes.
    pub size_bytes: u64,
    /// How much was written to the device since, in bytes.
    pub written_since_bytes: u64,
    /// Who counted that.
    pub counted_by: Counter,
    /// How much of that no run of the history has written, in bytes, as far as the count shows: by a run that was
    /// interrupted, or by others.
    pub unrecorded_bytes: u64,
    /// The unit of that count, in bytes.
    pub unit_bytes: u64,
}

/// Who counts what is written to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// The kernel, since the machine was started.
    #[default]
    Kernel,
    /// The disk, in all its life. It does not count discards.
    Disk,
}

impl Counter {
    /// Its name in JSON.
    pub(super) fn word(self) -> &'static str {
        match self {
            Counter::Kernel => "kernel",
            Counter::Disk => "disk",
        }
    }
}

impl Kept {
    /// For the heading.
    pub(super) fn sentence(&self) -> String {
        let Kept { run, date, size_bytes, written_since_bytes, counted_by, unrecorded_bytes, unit_bytes } =
            self;
        let [size, since, unrecorded] =
            [size_bytes, written_since_bytes, unrecorded_bytes].map(|bytes| shown_bytes(*bytes));
        let by = match unrecorded_bytes {
            0 => "all by runs of the history".to_string(),
            _ => format!("{unrecorded} of it by no run of the history, such as one that was interrupted"),
        };
        let unknown = match counted_by {
            Counter::Kernel => String::new(),
            Counter::Disk => format!(
                ", by the disk's own count, which shows no less than {}, over a restart of the machine; discards before the \
                 restart are not known, and only that the places read are not empty speaks against them",
                shown_bytes(*unit_bytes)
            ),
        };
        format!("kept: run {run} of {date} wrote {FILLS} times {size}; {since} written since, {by}{unknown}")
    }
}

/// A device as it is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundDevice {
    /// The kernel's name.
    pub name: String,
    /// The boot of the machine.
    pub boot_id: Option<String>,
    /// Sectors of 512 bytes written since boot.
    pub write_sectors: u64,
    /// Discards since boot.
    pub discard_ios: u64,
    /// What hosts have written to it in its life, in bytes, by its own count; `None` if it tells none.
    pub lifetime_written_bytes: Option<u64>,
    /// The unit of that count, in bytes: it is rounded up.
    pub lifetime_unit_bytes: u64,
    /// How many places were read of what the tests use.
    pub places: usize,
    /// In how many of them there were only zeros.
    pub zero_places: usize,
}

/// A run of the history.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its number.
    pub run: i64,
    /// Its date, `2026-11-28`.
    pub date: String,
    /// What it measured.
    pub report: RunReport,
    /// Whether its study was of no other device, so that its device is this one, whatever its name was then.
    pub is_of_one_device: bool,
    /// What was written during later runs of the history.
    pub later: Vec<Written>,
}

impl Earlier {
    /// How much it wrote twice in sequence from the beginning, in blocks of this size, if it did that to its end.
    fn preconditioned_bytes(&self, block_bytes: u64) -> Option<u64> {
        let [job] = &self.report.jobs[..] else { return None };
        let option =
            |name: &str| job.options.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
        let number = |name: &str| option(name)?.parse::<u64>().ok();
        let size_bytes = number(job::Amount::size.name)?;
        let is_whole = job.error == 0
            && job.stats.directions[WRITE].bytes >= FILLS.saturating_mul(size_bytes)
            && whole_run(&self.report).bytes == job.stats.directions[WRITE].bytes
            && self.report.findings.iter().all(|finding| finding.code != Code::Interrupted);
        (is_whole
            && option(job::Access::rw.name) == Some("write")
            && number(job::Blocks::bs.name) == Some(block_bytes)
            && number(job::General::loops.name) == Some(FILLS))
        .then_some(size_bytes)
    }

    /// Whether it has preconditioned so much in blocks of this size.
    pub fn has_preconditioned(&self, block_bytes: u64, size_bytes: u64) -> bool {
        self.preconditioned_bytes(block_bytes).is_some_and(|done| done >= size_bytes)
    }

    /// What is kept of it on the device as it is found now. A study that was interrupted may have written what no run of the
    /// history has.
    ///
    /// # Errors
    /// Which evidence is missing.
    pub fn kept(self, block_bytes: u64, now: &FoundDevice, was_interrupted: bool) -> Result<Kept, String> {
        let run = self.run;
        let size_bytes = self.preconditioned_bytes(block_bytes);
        let size_bytes = size_bytes.ok_or_else(|| format!("run {run} did not precondition it"))?;
        let is_same_boot = self.report.boot_id.is_some() && self.report.boot_id == now.boot_id;
        let (written_since_bytes, recorded_bytes, counted_by) = match is_same_boot {
            true => {
                let (written, recorded) = self.counted_by_kernel(now)?;
                (written, recorded, Counter::Kernel)
            }
            false => {
                let (written, recorded) = self.counted_by_disk(now)?;
                (written, recorded, Counter::Disk)
            }
        };
        if now.places == 0 || now.zero_places > 0 {
            return Err(format!(
                "there are only zeros in {} of {} places since run {run}",
                now.zero_places, now.places
            ));
        }
        // The difference of two counts that are rounded up is wrong by less than their unit.
        let unit_bytes = if counted_by == Counter::Disk { now.lifetime_unit_bytes } else { 1 };
        let unrecorded_bytes = written_since_bytes.saturating_sub(recorded_bytes);
        let unrecorded_bytes = if unrecorded_bytes < unit_bytes { 0 } else { unrecorded_bytes };
        if unrecorded_bytes > 0 && !was_interrupted {
            return Err(format!(
                "{} were written since run {run} by no run of the history, so what is on it is not known",
                shown_bytes(unrecorded_bytes)
            ));
        }
        let date = self.date;
        Ok(Kept { run, date, size_bytes, written_since_bytes, counted_by, unrecorded_bytes, unit_bytes })
    }

    /// How much later runs have written to the device of this name in one boot, in bytes, between two values of the kernel's
    /// counter. What was written during two runs at once counts once.
    fn recorded_bytes(&self, boot_id: Option<&String>, name: &str, [from, to]: [u64; 2]) -> u64 {
        let is_of_device = |written: &&Written| written.boot_id.as_ref() == boot_id && written.device == name;
        let mut of_device: Vec<&Written> = self.later.iter().filter(is_of_device).collect();
        of_device.order_by_key(|written| written.from_sectors);
        let (mut sectors, mut counted_to) = (0_u64, from);
        for written in of_device {
            let begins = written.from_sectors.max(counted_to);
            let ends = written.to_sectors.min(to);
            sectors += ends.saturating_sub(begins);
            counted_to = counted_to.max(ends);
        }
        sectors.saturating_mul(512)
    }

    /// What was written since by the kernel's counters, which are of this boot, and how much of it by later runs.
    fn counted_by_kernel(&self, now: &FoundDevice) -> Result<(u64, u64), String> {
        let run = self.run;
        let then = self.report.devices.iter().find(|used| used.holds_files && used.device.name == now.name);
        let then = then.ok_or_else(|| format!("run {run} has no counters of {}", now.name))?.end;
        let Some(sectors) = now.write_sectors.checked_sub(then.write_sectors) else {
            return Err(format!("the device counts less written than at the end of run {run}"));
        };
        if now.discard_ios != then.discard_ios {
            return Err(format!("there were discards since run {run}"));
        }
        let since = [then.write_sectors, now.write_sectors];
        let recorded = self.recorded_bytes(now.boot_id.as_ref(), &now.name, since);
        Ok((sectors.saturating_mul(512), recorded))
    }

    /// What was written since by the disk's own counter, after the machine was started anew, and how much of it by later runs,
    /// before that and since.
    fn counted_by_disk(&self, now: &FoundDevice) -> Result<(u64, u64), String> {
        let run = self.run;
        let anew = |why: &str| format!("the machine was started anew since run {run}, and {why}");
        if !self.is_of_one_device {
            return Err(anew("which of the devices of its study this one was is not known"));
        }
        let mut holding = self.report.devices.iter().filter(|used| used.holds_files);
        let then = match (holding.next(), holding.next()) {
            (Some(only), None) => only.lifetime_written_bytes.map(|bytes| (only, bytes)),
            _ => None,
        };
        let (used, then) =
            then.ok_or_else(|| anew("it has not recorded a count of all that was ever written"))?;
        let now_bytes = now.lifetime_written_bytes;
        let now_bytes =
            now_bytes.ok_or_else(|| anew("the device tells no count of all that was ever written"))?;
        let Some(written_bytes) = now_bytes.checked_sub(then) else {
            return Err(anew("the device counts less as ever written than at its end"));
        };
        if now.discard_ios > 0 {
            return Err(anew("there were discards since that start"));
        }
        let boots = [
            (self.report.boot_id.as_ref(), &used.device.name, [used.end.write_sectors, u64::MAX]),
            (now.boot_id.as_ref(), &now.name, [0, now.write_sectors]),
        ];
        let known = boots.into_iter().filter(|(boot_id, ..)| boot_id.is_some());
        Ok((written_bytes, known.map(|(boot, name, range)| self.recorded_bytes(boot, name, range)).sum()))
    }
}

#[cfg(test)]
mod tests {
    use fiord_report::{Finding, Subject};

    use super::*;
    use crate::testing::{direction, report};

    fn earlier() -> Earlier {
        let mut report = report(None, Some(direction(256, 1 << 16, 1000)));
        let options = [("size", "8388608"), ("rw", "write"), ("bs", "65536"), ("loops", "2")];
        report.jobs[0].options = options.map(|(name, text)| (name.to_string(), text.to_string())).to_vec();
        report.boot_id = Some("boot".to_string());
        report.devices = vec![Default::default()];
        report.devices[0].holds_files = true;
        report.devices[0].device.name = "loop7".to_string();
        report.devices[0].end.write_sectors = 1000;
        report.devices[0].end.discard_ios = 3;
        Earlier { run: 12, date: "2026-11-28".to_string(), report, is_of_one_device: true, later: Vec::new() }
    }

    fn written(name: &str, sectors: std::ops::Range<u64>) -> Written {
        Written {
            boot_id: Some("boot".to_string()),
            device: name.to_string(),
            from_sectors: sectors.start,
            to_sectors: sectors.end,
        }
    }

    #[test]
    fn only_a_complete_run_of_the_same_blocks_and_at_least_the_same_size_counts() {
        assert!(earlier().has_preconditioned(1 << 16, 8 << 20));
        assert!(
            !earlier().has_preconditioned(1 << 17, 8 << 20)
                && !earlier().has_preconditioned(1 << 16, 9 << 20)
        );
        let is_done = |change: &dyn Fn(&mut RunReport)| {
            let mut other = earlier();
            change(&mut other.report);
            other.has_preconditioned(1 << 16, 8 << 20)
        };
        assert!(!is_done(&|report| report.jobs[0].stats.directions[WRITE].bytes -= 1));
        assert!(!is_done(&|report| report.jobs[0].error = 5));
        assert!(!is_done(&|report| report.jobs[0].options[1].1 = "randwrite".to_string()));
        assert!(!is_done(&|report| report.jobs[0].options.truncate(3)));
        assert!(!is_done(&|report| {
            report.findings.push(Finding::new(Code::Interrupted, Subject::Run, "it was ended", ""));
        }));
    }

    #[test]
    fn it_is_kept_only_if_nothing_can_have_undone_it() {
        let now = FoundDevice {
            name: "loop7".to_string(),
            boot_id: Some("boot".to_string()),
            write_sectors: 3048,
            discard_ios: 3,
            places: 64,
            ..FoundDevice::default()
        };
        let mut before = earlier();
        // By two runs that overlap, and one on another device.
        let [one, other] =
            [("loop7", 1000..2500), ("loop7", 2000..3048)].map(|(name, sectors)| written(name, sectors));
        before.later = vec![other, one.clone(), written("loop8", 0..9000)];
        let kept = before.clone().kept(1 << 16, &now, false).unwrap();
        assert_eq!(
            kept.sentence(),
            "kept: run 12 of 2026-11-28 wrote 2 times 8MiB; 1MiB written since, all by runs of the history"
        );
        before.later = vec![one];
        let why = before.clone().kept(1 << 16, &now, false).unwrap_err();
        assert!(why.starts_with("274KiB were written since run 12 by no run of the history"), "{why}");
        let interrupted = before.kept(1 << 16, &now, true).unwrap();
        assert!(
            interrupted.sentence().contains("1MiB written since, 274KiB of it by no run"),
            "{interrupted:?}"
        );
        let refused = |now: FoundDevice, why: &str| {
            let said = earlier().kept(1 << 16, &now, true).unwrap_err();
            assert!(said.contains(why), "{said}");
        };
        refused(FoundDevice { boot_id: Some("other".to_string()), ..now.clone() }, "started anew");
        refused(FoundDevice { boot_id: None, ..now.clone() }, "started anew");
        refused(FoundDevice { name: "loop8".to_string(), ..now.clone() }, "no counters of loop8");
        refused(FoundDevice { write_sectors: 999, ..now.clone() }, "less written");
        refused(FoundDevice { discard_ios: 4, ..now.clone() }, "discards since run 12");
        refused(FoundDevice { zero_places: 1, ..now.clone() }, "zeros in 1 of 64 places");
        refused(FoundDevice { places: 0, ..now.clone() }, "of 0 places");
        let mut unknown = earlier();
        unknown.report.boot_id = None;
        assert!(unknown.kept(1 << 16, &FoundDevice { boot_id: None, ..now }, true).is_err());
    }

    #[test]
    fn over_a_restart_the_count_of_the_disk_is_the_evidence() {
        let now = FoundDevice {
            name: "nvme1n1".to_string(),
            boot_id: Some("other".to_string()),
            write_sectors: 5,
            lifetime_written_bytes: Some(7 << 20),
            lifetime_unit_bytes: 512_000,
            places: 64,
            ..FoundDevice::default()
        };
        let of_disk = || {
            let mut before = earlier();
            before.report.devices[0].lifetime_written_bytes = Some(4 << 20);
            before
        };
        let mut recorded = of_disk();
        // 3 MiB less 5 sectors before the restart and 5 since: within what the disk can count.
        let since = Written { boot_id: Some("other".to_string()), ..written("nvme1n1", 0..5) };
        recorded.later = vec![written("loop7", 1000..1000 + (3 << 11) - 5), since];
        let kept = recorded.clone().kept(1 << 16, &now, false).unwrap();
        assert_eq!((kept.written_since_bytes, kept.counted_by), (3 << 20, Counter::Disk));
        let said = kept.sentence();
        assert!(
            said.contains("3MiB written since, all by runs of the history, by the disk's own count"),
            "{said}"
        );
        let more =
            |bytes: u64| FoundDevice { lifetime_written_bytes: Some((7 << 20) + bytes), ..now.clone() };
        assert!(recorded.clone().kept(1 << 16, &more(511_999), false).is_ok(), "less than it counts");
        let why = recorded.kept(1 << 16, &more(512_000), false).unwrap_err();
        assert!(why.contains("500KiB were written since run 12 by no run"), "{why}");
        assert!(kept.sentence().contains("discards before the restart are not known"));
        let refused = |before: Earlier, now: FoundDevice, why: &str| {
            let said = before.kept(1 << 16, &now, true).unwrap_err();
            assert!(said.starts_with("the machine was started anew since run 12, and "), "{said}");
            assert!(said.contains(why), "{said}");
        };
        refused(earlier(), now.clone(), "has not recorded");
        let unknown = FoundDevice { lifetime_written_bytes: None, ..now.clone() };
        refused(of_disk(), unknown, "the device tells no count");
        let backwards = FoundDevice { lifetime_written_bytes: Some((4 << 20) - 1), ..now.clone() };
        refused(of_disk(), backwards, "counts less as ever written");
        refused(of_disk(), FoundDevice { discard_ios: 1, ..now.clone() }, "discards since that start");
        refused(Earlier { is_of_one_device: false, ..of_disk() }, now.clone(), "which of the devices");
        let mut on_two = of_disk();
        on_two.report.devices.push(on_two.report.devices[0].clone());
        refused(on_two, now.clone(), "has not recorded");
        let empty = FoundDevice { zero_places: 1, ..now };
        assert!(of_disk().kept(1 << 16, &empty, true).unwrap_err().contains("zeros in 1 of 64 places"));
    }
}

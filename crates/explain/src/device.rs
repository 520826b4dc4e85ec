//! Sums of groups, and what the disks did.
//!
//! Invariant: the disks' figures are of all programs together, and the text says so.

use std::collections::HashMap;

use fiord_import::{DirectionName, DiskFigures, Report};

use crate::entry::{PartExplanation, Sentences};
use crate::words::{bytes, count, number_of, percent, time};

/// From this share of the time on, a disk is called busy, in percent.
const BUSY_MIN: f64 = 95.0;

/// The sums of reporting groups, where they say more than their jobs.
pub(crate) fn groups(report: &Report) -> Vec<PartExplanation> {
    let mut found = Vec::new();
    let mut members: HashMap<u32, u32> = HashMap::new();
    for job in &report.jobs {
        let Some(group_id) = job.group_id else { continue };
        *members.entry(group_id).or_default() += job.member_count.unwrap_or(1);
    }
    for group in &report.groups {
        // The sum of one job is in its own block.
        if members.get(&group.group_id).is_none_or(|count| *count < 2) {
            continue;
        }
        for rate in &group.directions {
            let (Some(sum), Some(min), Some(max)) = (rate.bandwidth, rate.bandwidth_min, rate.bandwidth_max)
            else {
                continue;
            };
            let mut said = Sentences::default();
            said.say(format!("{} per second for all jobs of group {} together.", bytes(sum), group.group_id));
            said.say(format!("The slowest job had {} and the fastest {}.", bytes(min), bytes(max)));
            said.say("The sum is bytes over the longest run time, so jobs that ended early lower it.");
            let name = rate.name.name();
            found.extend(said.entry(
                format!("group.{}.{name}", group.group_id),
                &name.to_uppercase(),
                Some(rate.line),
            ));
        }
    }
    found
}

/// Each disk.
pub(crate) fn disks(report: &Report) -> Vec<PartExplanation> {
    let elapsed_ms = report.jobs.iter().flat_map(|job| &job.directions).filter_map(|of| of.runtime_ms).max();
    let own = |name: DirectionName| -> u64 {
        let all = report.jobs.iter().flat_map(|job| &job.directions).filter(|of| of.name == name);
        all.filter_map(|of| of.bytes).sum()
    };
    let own = [own(DirectionName::Read), own(DirectionName::Write)];
    let mut found = Vec::new();
    for disk in &report.disks {
        let said = of_disk(report, disk, own, elapsed_ms.filter(|ms| *ms > 0));
        found.extend(said.entry(format!("disk.{}", disk.name), &disk.name, disk.line));
    }
    found
}

/// `own` is what the jobs read and wrote.
fn of_disk(report: &Report, disk: &DiskFigures, own: [u64; 2], elapsed_ms: Option<u64>) -> Sentences {
    let mut said = Sentences::default();
    let ([Some(reads), Some(writes)], util) = (disk.ios, disk.util_percent) else { return said };
    if reads + writes == 0 {
        said.say(
            "It completed no request during the run: the I/O was served by memory or a cache, or the run was too short \
             for the kernel's counters.",
        );
        return said;
    }
    said.say(format!(
        "It completed {} and {}, those of other programs included.",
        number_of(reads, "read"),
        number_of(writes, "write")
    ));
    for (index, verb, preposition) in [(0, "read", "from"), (1, "wrote", "to")] {
        let moved = own[index];
        let Some(sectors) = disk.sectors[index].filter(|_| moved > 0) else { continue };
        let transferred = bytes(sectors.saturating_mul(512));
        // Of several disks, which I/O of the jobs went to which is not known.
        said.say(match report.disks.len() {
            1 => {
                format!("The jobs {verb} {}; {transferred} were transferred {preposition} it.", bytes(moved))
            }
            _ => format!("{transferred} were transferred {preposition} it."),
        });
    }
    let merged = disk.merges[0].zip(disk.merges[1]).map(|(read, written)| read + written);
    if let Some(merged) = merged.filter(|merged| *merged > 0) {
        let were = if merged == 1 { "was" } else { "were" };
        said.say(format!("{} {were} merged with a neighbour (merge).", number_of(merged, "request")));
    }
    if let Some((read_ms, write_ms)) = disk.ticks_ms[0].zip(disk.ticks_ms[1]) {
        let mean_ns = (read_ms + write_ms) as f64 * 1e6 / (reads + writes) as f64;
        said.say(format!("A request took {} on average (ticks).", time(mean_ns)));
    }
    if let (Some(in_queue_ms), Some(elapsed_ms)) = (disk.in_queue_ms, elapsed_ms) {
        let mean = in_queue_ms as f64 / elapsed_ms as f64;
        let shown =
            if mean < 0.1 { "Fewer than 0.1".to_string() } else { count((mean * 10.0).round() / 10.0) };
        said.say(format!("{shown} were in its queue on average (in_queue over the run time)."));
    }
    if let Some(util) = util {
        said.say(format!("It had at least one request for {} of the time (util).", percent(util)));
        if util >= BUSY_MIN {
            said.say(
                "On an SSD or a RAID, which work on many requests at a time, that is not its limit: see whether a higher \
                 depth or more jobs give more IOPS.",
            );
        }
    }
    said
}

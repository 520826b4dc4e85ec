//! Whether direct I/O was direct: what the page cache held of its files, and what the disks and the network of the machine
//! moved meanwhile.
//!
//! Invariant: a file system is judged by evidence; its type only chooses the remedy.

use std::path::Path;

use fiord_host::{HostTotals, PageCacheUse};
use fiord_options::job;
use fiord_plan::{Direction, Job, Plan};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};
use fiord_stats::{Capped, JobStats};

use super::measured::{JobEvidence, Measurements};
use crate::subject::{self, percent};

/// Less than this is not judged, in bytes.
const BYTES_MIN: u64 = 1 << 20;

/// Pages that had not been written yet were there in this share of the looks, in percent. Direct writes leave none; buffered
/// ones that are written at once, as on btrfs, leave some while they last.
const LOOKS_MIN: f64 = 10.0;

/// The cached part has grown by at least this share of what was read and written, in percent. Direct I/O leaves nothing
/// there.
const GROWN_MIN: f64 = 10.0;

/// With less than this share of the bytes moved by any disk or network, in percent, they came from memory.
const MOVED_MAX: f64 = 50.0;

/// An I/O over a network takes longer than this, in nanoseconds, and than its bytes take at this rate per second.
const FASTEST_NS_MAX: u64 = 200_000;
const FASTEST_BYTES_PER_S: f64 = 1e9;

/// Direct I/O that was not direct.
pub(super) fn not_honoured(plan: &Plan, measured: &Measurements<'_>) -> Vec<Finding> {
    let of_files = measured.page_cache.iter().filter_map(|seen| in_page_cache(plan, measured, seen));
    let of_memory = [Direction::Read, Direction::Write];
    let of_memory = of_memory.into_iter().filter_map(|direction| moved_nowhere(plan, measured, direction));
    of_files.chain(of_memory).collect()
}

/// A file whose pages were in the cache although all its jobs are direct.
fn in_page_cache(plan: &Plan, measured: &Measurements<'_>, seen: &PageCacheUse) -> Option<Finding> {
    let uses = |job: &Job| job.files.list.iter().any(|file| file.path == seen.path);
    let mut of_file = plan.jobs.iter().filter(|job| uses(job));
    if !of_file.all(|job| job.files.direct && job.verification.is_none()) {
        return None;
    }
    let moved = |direction: Direction| -> u64 {
        let jobs = measured.working(plan).filter(|(job, _)| uses(job));
        jobs.map(|(_, known)| known.stats.directions[direction.index()].bytes).sum()
    };
    let (read, written) = (moved(Direction::Read), moved(Direction::Write));
    let length =
        plan.jobs.iter().flat_map(|job| &job.files.list).find(|file| file.path == seen.path)?.length_bytes;
    let unwritten_share = percent(f64::from(seen.unwritten_looks), f64::from(seen.looks));
    let had_unwritten = written >= BYTES_MIN && unwritten_share >= LOOKS_MIN;
    // Of I/O that went through the cache, as much is in the parts that were looked at as in others, or more.
    let looked_share = seen.looked_bytes as f64 / length.max(1) as f64;
    let grown_share =
        percent(seen.grown_bytes as f64, (read + written).min(length) as f64 * looked_share.min(1.0));
    let has_grown = read + written >= BYTES_MIN && seen.grown_bytes >= BYTES_MIN && grown_share >= GROWN_MIN;
    let what = match (has_grown, had_unwritten) {
        (false, false) => return None,
        (true, _) if written == 0 => "reads",
        (true, _) if read > 0 => "I/O",
        _ => "writes",
    };
    let sentence = format!(
        "its direct {what} went through the page cache: {} does not do direct I/O there",
        seen.file_system
    );
    let subject = Subject::Target(seen.path.clone().into());
    let finding = Finding::new(Code::DirectNotHonoured, subject, sentence, remedy(&seen.file_system));
    Some(finding.of_option(job::Access::direct).based_on([
        ("looks", Cell::Count(u64::from(seen.looks))),
        ("unwritten_looks", Cell::Count(u64::from(seen.unwritten_looks))),
        ("cached_bytes", Cell::Bytes(seen.grown_bytes)),
    ]))
}

/// How to get direct I/O on a file system of this type.
fn remedy(file_system: &str) -> &'static str {
    match file_system {
        "btrfs" => {
            "chattr +C on an empty file, or on its directory before it is made: without checksums and compression"
        }
        "ext3" | "ext4" => {
            "mount it without data=journal, and use a file without the attributes j, E and V (lsattr)"
        }
        _ => "measure a file system that does direct I/O, or the device itself",
    }
}

/// Bytes of direct I/O on storage of which no device is seen that no disk and no network moved: the program that serves it,
/// or a level below, took them from memory, or left them there.
fn moved_nowhere(plan: &Plan, measured: &Measurements<'_>, direction: Direction) -> Option<Finding> {
    let working = || {
        let jobs = measured.working(plan);
        jobs.filter(|(_, known)| bytes_of(known, direction) > 0)
    };
    let is_direct = working().all(|(job, _)| job.files.direct && job.verification.is_none());
    if !measured.is_hidden || !measured.devices.is_empty() || !is_direct {
        return None;
    }
    let own: u64 = working().map(|(_, known)| bytes_of(known, direction)).sum();
    let (start, end) = measured.ends()?;
    let of = |totals: &HostTotals| {
        let traffic = totals.traffic?;
        Some(match direction {
            Direction::Read => (traffic.disks_read_bytes, traffic.received_bytes),
            Direction::Write | Direction::Trim => (traffic.disks_written_bytes, traffic.sent_bytes),
        })
    };
    let ((disks, network), before) = (of(end.totals.as_ref()?)?, of(start.totals.as_ref()?)?);
    let moved = disks.saturating_sub(before.0) + network.saturating_sub(before.1);
    let is_local = working().any(|(_, known)| is_faster_than_networks(known.stats, direction));
    (own >= BYTES_MIN && percent(moved as f64, own as f64) < MOVED_MAX && is_local).then(|| {
        let (verb, what) = match direction {
            Direction::Read => ("read", "came from"),
            Direction::Write | Direction::Trim => ("written", "reached"),
        };
        let sentence = format!(
            "{} were {verb} directly, of which at most {} {what} any disk or network of this machine: the others are in a \
             cache below",
            shown_bytes(own),
            shown_bytes(moved.min(own))
        );
        let remedy = "let what serves the file system do direct I/O, or measure the directory or device below it";
        let subject = path_of(plan).map_or(Subject::Run, |path| Subject::Target(path.into()));
        let finding = Finding::new(Code::DirectNotHonoured, subject, sentence, remedy);
        finding
            .of_option(job::Access::direct)
            .based_on([("bytes", Cell::Bytes(own)), ("moved_bytes", Cell::Bytes(moved))])
    })
}

fn bytes_of(known: &JobEvidence<'_>, direction: Direction) -> u64 {
    known.stats.directions[direction.index()].bytes
}

/// Whether the fastest I/O was faster than one over a network is. Networks that this process does not see, as from within
/// a container, are told from memory by this.
fn is_faster_than_networks(stats: &JobStats, direction: Direction) -> bool {
    let of = &stats.directions[direction.index()];
    let mut latencies = [&of.total, &of.completion].into_iter().map(|latency| &latency.running);
    let io_bytes = of.bytes as f64 / of.ios.max(1) as f64;
    let longest_ns = FASTEST_NS_MAX + u64::capped(io_bytes / FASTEST_BYTES_PER_S * 1e9);
    latencies.find(|known| known.count > 0).is_some_and(|known| known.min() <= longest_ns)
}

fn path_of(plan: &Plan) -> Option<&Path> {
    let mut jobs = plan.jobs.iter().filter(|job| subject::does_io(job));
    jobs.find_map(|job| job.files.list.first()).map(|file| file.path.as_path())
}

#[cfg(test)]
mod tests {
    use fiord_host::{HostReading, MachineTraffic};

    use crate::evidence::testing::{device, job, moved, nothing};
    use crate::testing::plan;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// The sentences about a job that moved 100 MiB in a direction.
    fn found(option: (&'static str, &str), direction: Direction, seen: PageCacheUse) -> Vec<String> {
        let common =
            [("ioengine", "psync"), ("filename", "/data/f"), ("size", "100m"), ("direct", "1"), option];
        let plan = plan(&[("a", &common)]);
        let stats = moved(direction.index(), 100 * MIB);
        let seen = [PageCacheUse { path: "/data/f".into(), file_system: "btrfs".into(), looks: 40, ..seen }];
        let measured = Measurements { jobs: &[job(&stats)], page_cache: &seen, ..nothing() };
        not_honoured(&plan, &measured).into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn pages_in_the_cache_show_that_direct_io_was_not_direct() {
        let plain = ("iodepth", "1");
        let unwritten = |unwritten_looks| PageCacheUse { unwritten_looks, ..PageCacheUse::default() };
        let sentence = "its direct writes went through the page cache: btrfs does not do direct I/O there";
        assert_eq!(found(plain, Direction::Write, unwritten(4)), [sentence]);
        assert_eq!(found(plain, Direction::Write, unwritten(3)), [""; 0], "another program, once");
        assert_eq!(found(plain, Direction::Write, unwritten(0)), [""; 0]);
        assert_eq!(found(plain, Direction::Read, unwritten(8)), [""; 0], "it does not write");
        let grown =
            |grown_bytes| PageCacheUse { grown_bytes, looked_bytes: 100 * MIB, ..PageCacheUse::default() };
        let in_parts = |grown_bytes| PageCacheUse { looked_bytes: 20 * MIB, ..grown(grown_bytes) };
        assert!(found(plain, Direction::Read, grown(100 * MIB))[0].starts_with("its direct reads went"));
        assert!(found(plain, Direction::Write, grown(100 * MIB))[0].starts_with("its direct writes went"));
        assert_eq!(found(plain, Direction::Read, grown(9 * MIB)), [""; 0], "less than a tenth");
        assert!(found(plain, Direction::Read, in_parts(2 * MIB))[0].starts_with("its direct reads went"));
        assert_eq!(found(plain, Direction::Read, in_parts(MIB)), [""; 0], "less than a tenth of the parts");
        assert_eq!(found(("direct", "0"), Direction::Read, grown(100 * MIB)), [""; 0], "as it asked");
        let of_journal = remedy("ext4");
        assert!(of_journal.contains("data=journal") && remedy("btrfs").starts_with("chattr +C"));
    }

    /// 100 MiB on storage that is not seen, while the disks and the network of the machine moved this much.
    fn hidden(
        direction: Direction,
        disks: u64,
        network: u64,
        fastest_ns: u64,
        is_hidden: bool,
    ) -> Vec<String> {
        let common = [("ioengine", "psync"), ("filename", "/fuse/f"), ("size", "100m"), ("direct", "1")];
        let plan = plan(&[("a", &common)]);
        let mut stats = moved(direction.index(), 100 * MIB);
        stats.directions[direction.index()].total.record(fastest_ns);
        let reading = |disks, network| HostReading {
            totals: Some(HostTotals {
                traffic: Some(MachineTraffic {
                    disks_read_bytes: disks,
                    disks_written_bytes: disks,
                    received_bytes: network,
                    sent_bytes: network,
                }),
                ..HostTotals::default()
            }),
            ..HostReading::default()
        };
        let host = [reading(7, 7), reading(7 + disks, 7 + network)];
        let measured = Measurements { jobs: &[job(&stats)], host: &host, is_hidden, ..nothing() };
        let seen = not_honoured(&plan, &measured);
        let devices = [device("sda", 0, 0)];
        assert_eq!(
            not_honoured(&plan, &Measurements { devices: &devices, ..measured }),
            [],
            "a device is seen"
        );
        seen.into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn bytes_that_nothing_moved_came_from_memory() {
        let sentence = "100MiB were read directly, of which at most 1MiB came from any disk or network of this machine: the \
                        others are in a cache below";
        assert_eq!(hidden(Direction::Read, MIB, 0, 20_000, true), [sentence]);
        assert!(
            hidden(Direction::Write, MIB, 0, 20_000, true)[0].starts_with("100MiB were written directly")
        );
        assert_eq!(hidden(Direction::Read, 100 * MIB, 0, 20_000, true), [""; 0], "from a disk");
        assert_eq!(hidden(Direction::Read, 0, 100 * MIB, 20_000, true), [""; 0], "from a server");
        assert_eq!(hidden(Direction::Read, 0, 0, 400_000, true), [""; 0], "over a network that is not seen");
        assert_eq!(
            hidden(Direction::Read, 0, 0, 20_000, false),
            [""; 0],
            "a server, which has its own cache"
        );
    }
}

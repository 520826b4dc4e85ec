//! What a file or device that is measured lies on, and who else uses it.
//!
//! Invariant: every finding rests on what the kernel lists, never on the name of the target.

use fiord_host::{
    Claim, DeviceFacts, FileSystemFacts, Layer, LayerKind, StorageStack, TargetFacts, TargetKind,
};
use fiord_plan::{Direction, FilePlan, Job};
use fiord_report::path::shown;
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};

/// One finding for each current use by others.
pub(super) fn in_use(facts: &TargetFacts) -> Vec<Finding> {
    let sentence = |claim: &Claim| match claim {
        Claim::Exclusive => "another process has it open; its I/O affects the results".to_string(),
        claim => format!("{claim}; I/O of others affects the results"),
    };
    let remedy = "unmount it or stop what uses it, or measure when it is idle";
    let finding = |claim: &Claim| Finding::new(Code::TargetInUse, target(facts), sentence(claim), remedy);
    facts.live_claims().map(finding).collect()
}

/// What is at the bottom instead of a disk that can be watched.
pub(super) fn below(facts: &TargetFacts, stack: &StorageStack) -> Option<Finding> {
    in_memory(facts, stack).or_else(|| hidden(facts, stack))
}

/// Whether there is memory at the bottom, and no disk.
fn in_memory(facts: &TargetFacts, stack: &StorageStack) -> Option<Finding> {
    stack.layers.iter().any(|layer| layer.kind == LayerKind::Memory).then(|| {
        let sentence = "it is in memory: the results are those of memory, not of a disk";
        let remedy = "name a directory on a disk (`fiord devices DIRECTORY` shows what it is stored on)";
        Finding::new(Code::InMemory, target(facts), sentence, remedy)
    })
}

/// Whether it is on an overlay whose layers cannot be seen from here, so that no device below can be watched.
fn hidden(facts: &TargetFacts, stack: &StorageStack) -> Option<Finding> {
    let is_overlay = |layer: &Layer| match &layer.kind {
        LayerKind::FileSystem(facts) => facts.type_name == "overlay",
        _ => false,
    };
    (stack.layers.iter().any(is_overlay) && stack.is_hidden()).then(|| {
        let sentence = "it is on an overlay whose layers cannot be seen from here: nothing shows which device did the \
                        I/O, or whether one did";
        let remedy = "name a directory on a volume of its own, or run outside the container";
        Finding::new(Code::StorageHidden, target(facts), sentence, remedy)
    })
}

/// Less than one part in so many is free on a file system that is nearly full.
const FREE_SHARE_MIN: u64 = 10;

/// File systems that write to a new place what is overwritten.
const COPY_ON_WRITE: [&str; 3] = ["btrfs", "bcachefs", "zfs"];

/// What the file system of a target that is written to does to figures.
pub(super) fn of_file_system(facts: &TargetFacts) -> Vec<Finding> {
    let is_on_it = matches!(facts.kind, TargetKind::Regular | TargetKind::Absent | TargetKind::Directory);
    let Some(system) = facts.file_system.as_ref().filter(|_| is_on_it) else { return Vec::new() };
    let mut findings = Vec::new();
    let (available_bytes, total_bytes) = (system.available_bytes, system.total_bytes);
    // Memory has no place that is slower than another.
    if available_bytes < total_bytes / FREE_SHARE_MIN
        && !matches!(system.type_name.as_str(), "tmpfs" | "ramfs")
    {
        let [available, total] = [available_bytes, total_bytes].map(shown_bytes);
        let sentence = format!(
            "its file system is nearly full, {available} of {total} are free: writes are slower than on an emptier one"
        );
        let remedy = "free some space, or measure on an emptier file system";
        let figures =
            [("available_bytes", Cell::Bytes(available_bytes)), ("total_bytes", Cell::Bytes(total_bytes))];
        findings.push(Finding::new(Code::NearlyFull, target(facts), sentence, remedy).based_on(figures));
    }
    if COPY_ON_WRITE.contains(&system.type_name.as_str()) {
        let sentence = format!(
            "it is on {}, which writes to a new place what is overwritten: figures depend on snapshots, compression and age",
            system.type_name
        );
        let remedy = "measure on a file system of the same kind and age as the one in use";
        findings.push(Finding::new(Code::CopyOnWrite, target(facts), sentence, remedy));
    }
    findings.extend(quota(facts, system));
    findings
}

/// What is below a target that is written to allocates space only when it is first written.
pub(super) fn thin(facts: &TargetFacts, stack: &StorageStack) -> Option<Finding> {
    let is_pool = |layer: &&Layer| match &layer.kind {
        LayerKind::Device(device) => device.device.kind == DeviceFacts::THIN_POOL,
        _ => false,
    };
    // The first layer is the target itself.
    let holes = |layer: &Layer| match &layer.kind {
        LayerKind::Path { path, kind: TargetKind::Regular, size_bytes, allocated_bytes } => {
            let (size_bytes, allocated_bytes) = ((*size_bytes)?, (*allocated_bytes)?);
            (allocated_bytes < size_bytes).then(|| (shown(path), size_bytes, allocated_bytes))
        }
        _ => None,
    };
    let below = stack.layers.get(1..)?;
    let remedy = "write all of the target before what is measured, unless first writes are what you use";
    let found = |sentence: String| Finding::new(Code::ThinProvisioned, target(facts), sentence, remedy);
    if below.iter().any(|layer| is_pool(&layer)) {
        return Some(found(
            "it is on a volume of a thin pool: a first write allocates its place, which later ones do not"
                .to_string(),
        ));
    }
    let (file, size_bytes, allocated_bytes) = below.iter().find_map(holes)?;
    let [size, allocated] = [size_bytes, allocated_bytes].map(shown_bytes);
    let figures =
        [("allocated_bytes", Cell::Bytes(allocated_bytes)), ("size_bytes", Cell::Bytes(size_bytes))];
    let sentence = format!(
        "it is on a device in the file {file}, of which {allocated} of {size} are allocated: a first write allocates its \
         place, which later ones do not"
    );
    Some(found(sentence).based_on(figures))
}

/// Whether a quota ends before the file system does.
fn quota(facts: &TargetFacts, system: &FileSystemFacts) -> Option<Finding> {
    let quota = system.quota?;
    // The file system itself may tell what the quota leaves as what is free.
    if quota.left_bytes > system.available_bytes {
        return None;
    }
    let [left, limit] = [quota.left_bytes, quota.limit_bytes].map(shown_bytes);
    let sentence = format!(
        "the quota of {} {} leaves {left} of {limit}: writes beyond that fail with EDQUOT, however much the disk has free",
        quota.of.word(),
        quota.id
    );
    let remedy = "measure within the quota, or have it raised";
    let figures =
        [("left_bytes", Cell::Bytes(quota.left_bytes)), ("limit_bytes", Cell::Bytes(quota.limit_bytes))];
    Some(Finding::new(Code::QuotaBound, target(facts), sentence, remedy).based_on(figures))
}

/// Whether a job reads what is in the file, and not what is laid out or written first.
pub(super) fn reads_what_is_there(job: &Job, facts: &TargetFacts) -> bool {
    let laid_out = |file: &&FilePlan| file.lay_out_bytes.is_some() && job.files.lay_out_contents;
    let mut files = job.files.list.iter().filter(|file| file.path == facts.path);
    job.access.pattern.includes(Direction::Read) && files.any(|file| !laid_out(&file))
}

/// Whether parts of a regular file were never written: it has no blocks there, or blocks that were only allocated.
pub(super) fn unwritten(facts: &TargetFacts) -> Option<Finding> {
    let (size_bytes, allocated_bytes) = (facts.size_bytes?, facts.allocated_bytes?);
    let unwritten_bytes = facts.unwritten_bytes.unwrap_or_default();
    let [size, allocated, unwritten] = [size_bytes, allocated_bytes, unwritten_bytes].map(shown_bytes);
    let sentence = match (allocated_bytes < size_bytes, unwritten_bytes > 0) {
        (false, false) => return None,
        (true, false) => {
            format!("only {allocated} of {size} are allocated on the disk: reading holes does not reach it")
        }
        (true, true) => format!(
            "only {allocated} of {size} are allocated on the disk, {unwritten} of them without having been written: \
             reading the rest does not reach it"
        ),
        (false, true) => format!(
            "{unwritten} of {size} are allocated on the disk and were never written: reading them does not reach it"
        ),
    };
    let remedy = "write all of the file before it is read";
    let figures = [
        ("allocated_bytes", Cell::Bytes(allocated_bytes)),
        ("unwritten_bytes", facts.unwritten_bytes.map_or(Cell::None, Cell::Bytes)),
        ("size_bytes", Cell::Bytes(size_bytes)),
    ];
    Some(Finding::new(Code::Unwritten, target(facts), sentence, remedy).based_on(figures))
}

fn target(facts: &TargetFacts) -> Subject {
    Subject::Target(facts.path.clone().into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use fiord_host::{QuotaFacts, QuotaOf};

    use super::*;
    use crate::testing::on_device;

    /// A regular file of 1 MiB, written in full, that nothing else uses.
    fn file() -> TargetFacts {
        TargetFacts {
            kind: TargetKind::Regular,
            size_bytes: Some(1 << 20),
            allocated_bytes: Some(1 << 20),
            ..TargetFacts::absent(Path::new("/data/file"))
        }
    }

    fn on(kind: LayerKind) -> StorageStack {
        StorageStack { layers: vec![Layer { depth: 0, kind }] }
    }

    #[test]
    fn each_use_by_others_is_a_finding_and_mere_contents_are_none() {
        let mounted = Claim::Mounted { device: "/dev/sda1".into(), point: "/home".into() };
        let holds = Claim::Holds { what: "ext2/3/4 file system" };
        let found = in_use(&TargetFacts { claims: vec![mounted, holds.clone(), Claim::Exclusive], ..file() });
        let sentences: Vec<&str> = found.iter().map(|finding| finding.sentence.as_str()).collect();
        assert_eq!(
            sentences,
            [
                "/dev/sda1 is mounted at /home; I/O of others affects the results",
                "another process has it open; its I/O affects the results",
            ]
        );
        assert!(found.iter().all(|finding| finding.code == Code::TargetInUse));
        assert_eq!(found[0].subject, Subject::Target("/data/file".into()));
        assert_eq!(in_use(&TargetFacts { claims: vec![holds], ..file() }), []);
    }

    #[test]
    fn a_file_system_that_is_nearly_full_or_never_overwrites_is_found() {
        let found = |type_name: &str, available_bytes: u64| {
            let system = FileSystemFacts {
                type_name: type_name.to_string(),
                mount_point: None,
                source: None,
                options: None,
                read_only: false,
                total_bytes: 1000,
                free_bytes: available_bytes,
                available_bytes,
                quota: None,
            };
            let found = of_file_system(&TargetFacts { file_system: Some(system), ..file() });
            found.iter().map(|finding| finding.code).collect::<Vec<_>>()
        };
        assert_eq!(found("ext4", 100), []);
        assert_eq!(found("ext4", 99), [Code::NearlyFull]);
        assert_eq!(found("tmpfs", 0), []);
        assert_eq!(found("btrfs", 500), [Code::CopyOnWrite]);
        assert_eq!(found("zfs", 5), [Code::NearlyFull, Code::CopyOnWrite]);
        assert_eq!(of_file_system(&file()), []);
    }

    #[test]
    fn a_quota_that_leaves_less_than_is_free_is_found() {
        let found = |left_bytes| {
            let quota = QuotaFacts { of: QuotaOf::Project, id: 7, limit_bytes: 8 << 20, left_bytes };
            let system = FileSystemFacts {
                type_name: "xfs".to_string(),
                mount_point: None,
                source: None,
                options: None,
                read_only: false,
                total_bytes: 100 << 20,
                free_bytes: 50 << 20,
                available_bytes: 50 << 20,
                quota: Some(quota),
            };
            of_file_system(&TargetFacts { file_system: Some(system), ..file() })
        };
        let sentence = &found(2 << 20)[0].sentence;
        assert!(sentence.starts_with("the quota of project 7 leaves 2MiB of 8MiB: "), "{sentence}");
        assert_eq!(found(50 << 20)[0].code, Code::QuotaBound, "the file system tells it as its own");
        assert_eq!(found((50 << 20) + 1), []);
    }

    #[test]
    fn a_device_in_a_file_with_holes_or_in_a_thin_pool_is_found() {
        let backing = |allocated_bytes| LayerKind::Path {
            path: "/srv/image".into(),
            kind: TargetKind::Regular,
            size_bytes: Some(1 << 20),
            allocated_bytes: Some(allocated_bytes),
        };
        let device = |kind: &str| on_device(kind, false).layers.remove(0).kind;
        let found = |kinds: Vec<LayerKind>| {
            let layers = kinds.into_iter().enumerate().map(|(depth, kind)| Layer { depth, kind }).collect();
            thin(&file(), &StorageStack { layers }).map(|finding| finding.sentence)
        };
        let holes = found(vec![backing(0), device("loop"), backing((1 << 20) - 4096)]).unwrap();
        assert!(
            holes.starts_with("it is on a device in the file /srv/image, of which 1020KiB of 1MiB"),
            "{holes}"
        );
        assert_eq!(
            found(vec![backing(0), device("loop"), backing(1 << 20)]),
            None,
            "only the target has holes"
        );
        let pool =
            found(vec![backing(1 << 20), device("lvm"), device(DeviceFacts::THIN_POOL), device("disk")]);
        assert!(pool.unwrap().starts_with("it is on a volume of a thin pool"));
        assert_eq!(found(vec![backing(1 << 20), device("lvm"), device("disk")]), None);
    }

    #[test]
    fn memory_below_is_found_and_a_server_is_not_memory() {
        let found = in_memory(&file(), &on(LayerKind::Memory)).unwrap();
        assert_eq!(found.code, Code::InMemory);
        assert_eq!(in_memory(&file(), &on(LayerKind::Server("nas:/export".to_string()))), None);
    }

    #[test]
    fn an_overlay_of_which_nothing_below_is_seen_is_found() {
        let file_system = |name: &str| {
            LayerKind::FileSystem(Box::new(FileSystemFacts {
                type_name: name.to_string(),
                mount_point: None,
                source: None,
                options: None,
                read_only: false,
                total_bytes: 0,
                free_bytes: 0,
                available_bytes: 0,
                quota: None,
            }))
        };
        let absent = || LayerKind::Path {
            path: "/upper".into(),
            kind: TargetKind::Absent,
            size_bytes: None,
            allocated_bytes: None,
        };
        let found = |kinds: Vec<LayerKind>| {
            let layers = kinds.into_iter().enumerate().map(|(depth, kind)| Layer { depth, kind }).collect();
            hidden(&file(), &StorageStack { layers }).is_some()
        };
        assert!(found(vec![file_system("overlay"), absent()]));
        assert!(!found(vec![file_system("overlay"), file_system("tmpfs"), LayerKind::Memory]));
        assert!(!found(vec![file_system("overlay"), LayerKind::Server("nas".to_string())]));
        assert!(!found(vec![file_system("fuse"), absent()]), "it is what was asked for");
    }

    #[test]
    fn one_block_that_was_never_written_is_found() {
        let allocated_bytes = Some((1 << 20) - 4096);
        let found = unwritten(&TargetFacts { allocated_bytes, ..file() }).unwrap();
        assert_eq!(found.code, Code::Unwritten);
        assert!(
            found.sentence.starts_with("only 1020KiB of 1MiB are allocated on the disk"),
            "{}",
            found.sentence
        );
        assert_eq!(found.figures[0].value, Cell::Bytes((1 << 20) - 4096));
        assert_eq!(unwritten(&file()), None);
        let allocated = |unwritten_bytes| TargetFacts { unwritten_bytes, ..file() };
        let found = unwritten(&allocated(Some(4096))).unwrap();
        assert!(found.sentence.starts_with("4KiB of 1MiB are allocated on the disk and were never written"));
        assert_eq!(found.figures[1].value, Cell::Bytes(4096));
        assert_eq!(unwritten(&allocated(Some(0))), None);
        let found = unwritten(&TargetFacts { allocated_bytes: Some(8192), ..allocated(Some(4096)) }).unwrap();
        assert!(
            found.sentence.starts_with("only 8KiB of 1MiB are allocated on the disk, 4KiB of them without")
        );
        // Space preallocated beyond the end, and a device, of which it is unknown what was written.
        for (size_bytes, allocated_bytes) in [(Some(1), Some(4096)), (Some(4096), None), (None, Some(0))] {
            assert_eq!(unwritten(&TargetFacts { size_bytes, allocated_bytes, ..file() }), None);
        }
    }

    #[test]
    fn a_target_is_linted_for_all_of_them_in_order() {
        let everything = TargetFacts { claims: vec![Claim::Exclusive], allocated_bytes: Some(0), ..file() };
        let codes = |facts: &TargetFacts, stack: Option<&StorageStack>| -> Vec<Code> {
            crate::lint_target(facts, stack).iter().map(|finding| finding.code).collect()
        };
        let memory = on(LayerKind::Memory);
        assert_eq!(codes(&everything, Some(&memory)), [Code::TargetInUse, Code::InMemory, Code::Unwritten]);
        assert_eq!(codes(&everything, None), [Code::TargetInUse, Code::Unwritten]);
        assert_eq!(codes(&file(), Some(&on(LayerKind::Server("nas".to_string())))), []);
    }
}

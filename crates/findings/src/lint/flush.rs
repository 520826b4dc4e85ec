//! Whether what was written is safe when the run is over: what is not flushed, and flushes that do nothing.
//!
//! Invariant: a job that writes nothing has no such finding.

use fiord_host::{FileSystemFacts, LayerKind};
use fiord_plan::{Direction, Job, SyncMode};
use fiord_report::{Code, Finding, Subject};

use crate::subject;

use super::known::Known;

/// Direct writes into a device's volatile cache, never flushed.
pub(super) fn volatile_cache(job: &Job, known: &Known) -> Option<Finding> {
    // What buffered writes leave behind in memory is more, and is found by counters.
    if flushes(job) || !job.files.direct || !job.access.pattern.includes(Direction::Write) {
        return None;
    }
    let stacks = known.targets_of(job).filter_map(|target| target.stack.as_ref());
    let device = stacks.flat_map(|stack| &stack.layers).find_map(|layer| match &layer.kind {
        LayerKind::Device(facts) if facts.device.queue.write_back_cache => Some(&facts.device),
        _ => None,
    })?;
    let sentence = "writes complete in its volatile cache, which the job does not flush";
    let remedy = "end_fsync=1 or fdatasync=N if they must survive a power failure";
    let subject = Subject::Device(device.name.clone());
    Some(Finding::new(Code::VolatileCache, subject, sentence, remedy))
}

fn flushes(job: &Job) -> bool {
    let barriers = &job.access.barriers;
    barriers.fsync_every > 0
        || barriers.fdatasync_every > 0
        || job.files.sync != SyncMode::None
        || job.files.end_fsync
        || job.files.end_syncfs
        || job.files.fsync_on_close
}

/// Flushes on a file system that is mounted to ignore them, or not to flush the device.
pub(super) fn ignored(job: &Job, known: &Known) -> Option<Finding> {
    if !flushes(job) || !job.access.pattern.includes(Direction::Write) {
        return None;
    }
    let stacks = known.targets_of(job).filter_map(|target| target.stack.as_ref());
    let (option, kind) = stacks.flat_map(|stack| &stack.layers).find_map(|layer| match &layer.kind {
        LayerKind::FileSystem(facts) => Some((ignoring(facts)?, facts.type_name.clone())),
        _ => None,
    })?;
    let sentence = format!(
        "its flushes do not make writes durable: the {kind} below is mounted with the option {option}"
    );
    let remedy = "mount it without that option, or name a directory elsewhere";
    Some(Finding::new(Code::SyncIgnored, subject::job(job), sentence, remedy))
}

/// The option by which a file system is told to ignore flushes.
fn ignoring(facts: &FileSystemFacts) -> Option<&'static str> {
    let candidates: &[&'static str] = match facts.type_name.as_str() {
        // As Linux shows it since 6.6, and before.
        "overlay" => &["fsync=volatile", "volatile"],
        "ext3" | "ext4" | "xfs" | "btrfs" => &["nobarrier", "barrier=0"],
        _ => &[],
    };
    let options = facts.options.as_deref()?;
    candidates.iter().copied().find(|candidate| options.split(',').any(|option| option == *candidate))
}

#[cfg(test)]
mod tests {
    use fiord_host::{Layer, StorageStack};

    use crate::lint::known::KnownTarget;
    use crate::testing::{known_target, on_device, plan};

    use super::*;

    #[test]
    fn writes_that_nothing_flushes_are_found_where_there_is_a_volatile_cache() {
        let found = |options: &[(&'static str, &str)], write_back: bool| {
            let common = [
                ("ioengine", "psync"),
                ("filename", "/data/f"),
                ("size", "64k"),
                ("direct", "1"),
                ("rw", "write"),
            ];
            let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
            let mut target = known_target("/data/f");
            target.stack = Some(on_device("disk", write_back));
            let known = Known { targets: vec![target], ..Known::default() };
            volatile_cache(&plan(&[("a", &options)]).jobs[0], &known).is_some()
        };
        assert!(found(&[], true));
        assert!(!found(&[], false));
        for option in ["end_fsync", "fsync", "fdatasync", "sync", "fsync_on_close"] {
            assert!(!found(&[(option, "1")], true), "{option}");
        }
        assert!(!found(&[("rw", "read")], true));
        assert!(!found(&[("direct", "0")], true));
    }

    #[test]
    fn flushes_that_the_file_system_ignores_are_found() {
        let found = |type_name: &str, mounted: &str, option: (&'static str, &str)| {
            let common = [("ioengine", "psync"), ("filename", "/data/f"), ("size", "64k"), ("rw", "write")];
            let options: Vec<(&'static str, &str)> = common.into_iter().chain([option]).collect();
            let facts = FileSystemFacts {
                type_name: type_name.to_string(),
                mount_point: None,
                source: None,
                options: Some(mounted.to_string()),
                read_only: false,
                total_bytes: 0,
                free_bytes: 0,
                available_bytes: 0,
                quota: None,
            };
            let layers = vec![Layer { depth: 0, kind: LayerKind::FileSystem(Box::new(facts)) }];
            let target = KnownTarget { stack: Some(StorageStack { layers }), ..known_target("/data/f") };
            let known = Known { targets: vec![target], ..Known::default() };
            ignored(&plan(&[("a", &options)]).jobs[0], &known).is_some()
        };
        let synced = ("fdatasync", "1");
        assert!(found("overlay", "rw,fsync=volatile", synced));
        assert!(found("overlay", "rw,volatile", synced) && found("ext4", "rw,nobarrier", synced));
        assert!(!found("overlay", "rw,upperdir=/volatile", synced));
        assert!(!found("ext4", "rw,volatile", synced));
        assert!(!found("overlay", "rw,volatile", ("direct", "0")), "it flushes nothing");
        assert!(!found("overlay", "rw,volatile", ("rw", "read")));
    }
}

//! I/O that memory can serve: reads from the page cache where no counters will show it, and all I/O to a device that has
//! a cache in memory.
//!
//! Invariant: a cache counts only if its size is known and the working set fits into it.

use fiord_host::LayerKind;
use fiord_options::job;
use fiord_plan::{Direction, Job};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};

use super::known::{Known, KnownTarget};
use crate::subject;

/// Repeated buffered reads of data that fits into memory.
pub(super) fn cached_io(job: &Job, known: &Known) -> Option<Finding> {
    let limits = &job.limits;
    let again = limits.time_based || limits.loops > 1 || limits.loop_bytes > limits.pass_bytes;
    let reads = job.access.pattern.includes(Direction::Read);
    let available_bytes = known.memory_available_bytes?;
    let uncounted = |target: &KnownTarget| {
        target.stack.as_ref().is_none_or(|stack| {
            !stack.layers.iter().any(|layer| matches!(layer.kind, LayerKind::Device(_) | LayerKind::Memory))
        })
    };
    let fits = limits.pass_bytes < available_bytes;
    (reads && again && fits && !job.files.direct && known.targets_of(job).any(uncounted)).then(|| {
        let sentence = format!(
            "it repeatedly reads {} through the page cache, which has room for {}",
            shown_bytes(limits.pass_bytes),
            shown_bytes(available_bytes)
        );
        let remedy = "direct=1, or a size well above the machine's memory";
        Finding::new(Code::CachedIo, subject::job(job), sentence, remedy)
            .of_option(job::Access::direct)
            .based_on([
                ("size_bytes", Cell::Bytes(limits.pass_bytes)),
                ("memory_available_bytes", Cell::Bytes(available_bytes)),
            ])
    })
}

/// A working set that fits into the cache of a device below: the page cache, for a loop device that uses it.
pub(super) fn too_small(job: &Job, known: &Known) -> Option<Finding> {
    let (size_bytes, room_bytes) = (job.limits.pass_bytes, known.memory_available_bytes?);
    let device = known.devices_of(job).find(|facts| facts.caches_in_memory)?;
    (size_bytes < room_bytes).then(|| {
        let sentence = format!(
            "all {} that are used fit into its cache: it goes through the page cache, which has room for {}",
            shown_bytes(size_bytes),
            shown_bytes(room_bytes)
        );
        let remedy = "losetup --direct-io=on, or a size well above the machine's memory";
        Finding::new(Code::TooSmall, Subject::Device(device.device.name.clone()), sentence, remedy)
            .of_option(job::Amount::size)
            .based_on([("size_bytes", Cell::Bytes(size_bytes)), ("cache_bytes", Cell::Bytes(room_bytes))])
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{known_target, on_device, plan};

    use super::*;

    fn found(options: &[(&'static str, &str)], available_bytes: u64, on_disk: bool) -> bool {
        let common = [("ioengine", "psync"), ("filename", "/data/f"), ("size", "1m")];
        let options: Vec<(&'static str, &str)> = common.iter().chain(options).copied().collect();
        let mut target = known_target("/data/f");
        target.stack = on_disk.then(|| on_device("disk", false));
        let known = Known {
            targets: vec![target],
            memory_available_bytes: Some(available_bytes),
            ..Known::default()
        };
        cached_io(&plan(&[("a", &options)]).jobs[0], &known).is_some()
    }

    #[test]
    fn buffered_reads_that_fit_into_memory_are_found_where_nothing_counts_them() {
        let again = ("loops", "2");
        assert!(found(&[again], 2 << 20, false));
        assert!(!found(&[again], 1 << 20, false), "it does not fit");
        assert!(!found(&[again], 2 << 20, true), "counters will say");
        assert!(!found(&[], 2 << 20, false), "once");
        assert!(!found(&[again, ("direct", "1")], 2 << 20, false));
        assert!(!found(&[again, ("rw", "write")], 2 << 20, false));
    }

    #[test]
    fn a_working_set_that_fits_into_the_cache_of_a_loop_device_is_found() {
        let found = |caches: bool, available_bytes: Option<u64>| {
            let mut stack = on_device("loop", false);
            if let LayerKind::Device(facts) = &mut stack.layers[0].kind {
                facts.caches_in_memory = caches;
            }
            let target = KnownTarget { stack: Some(stack), ..known_target("/data/f") };
            let known =
                Known { targets: vec![target], memory_available_bytes: available_bytes, ..Known::default() };
            let options = [("ioengine", "psync"), ("filename", "/data/f"), ("size", "1m"), ("direct", "1")];
            too_small(&plan(&[("a", &options)]).jobs[0], &known).map(|finding| finding.subject)
        };
        assert_eq!(found(true, Some(2 << 20)), Some(Subject::Device("sdb".to_string())));
        assert_eq!(found(true, Some(1 << 20)), None, "it does not fit");
        assert_eq!(found(true, None), None, "the size of the cache is not known");
        assert_eq!(found(false, Some(2 << 20)), None);
    }
}

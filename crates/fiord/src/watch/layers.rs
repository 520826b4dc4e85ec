//! What lies above and below a device: arrays that are resynchronised, the parts of mapped devices, and what is there instead
//! of disks.
//!
//! Invariant: only reads what the kernel shows in `/sys` and `/proc`.

use std::fs;
use std::path::Path;

use fiord_host::{LayerKind, StorageStack, System};
use fiord_report::path::shown;
use fiord_sys::sysfs::BlockDevice;
use fiord_watch::Resync;

/// The whole disks directly below an array or a mapped device, each once.
pub(super) fn below(device: &BlockDevice) -> Vec<String> {
    let mut names: Vec<String> = device.slaves().iter().map(|below| below.disk().name().to_owned()).collect();
    names.dedup();
    names
}

/// What the array does that has this disk or a part of it as a member, if it does more than what it is asked for.
pub(super) fn resync(disk: &BlockDevice) -> Option<Resync> {
    let arrays = std::iter::once(disk.clone()).chain(disk.partitions());
    let mut arrays = arrays.flat_map(|part| part.holders());
    arrays.find_map(|array| {
        let action = array
            .attribute("md/sync_action")
            .filter(|action| !["idle", "frozen"].contains(&action.as_str()))?;
        let done_percent = array.attribute("md/sync_completed").and_then(|text| percent_of(&text));
        Some(Resync { array: array.name().to_owned(), action, done_percent })
    })
}

/// Of `1234 / 5678`.
fn percent_of(text: &str) -> Option<u64> {
    let (done, all) = text.split_once('/')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    number(done)?.saturating_mul(100).checked_div(number(all)?)
}

/// Why there is no disk below a target, and what to do instead.
pub(crate) fn without_disk(target: &Path, system: &System) -> String {
    let name = shown(target);
    let stack = StorageStack::of(target, system).ok();
    let file_systems = stack.iter().flat_map(StorageStack::file_systems);
    let file_system = file_systems.last();
    let is_server = |layer: &LayerKind| matches!(layer, LayerKind::Server(_));
    let server = stack.iter().flat_map(|stack| &stack.layers).any(|layer| is_server(&layer.kind));
    match file_system {
        Some(facts) if server => {
            let source = facts.source.as_deref().map(shown).unwrap_or_default();
            let point = facts.mount_point.as_deref();
            let mounts = fs::read_to_string("/proc/self/mountstats").unwrap_or_default();
            let took = point.and_then(|point| calls(&mounts, point)).unwrap_or_default();
            format!(
                "{name}: no block device is below it: it is {} of {source}{took}\n  watch the disks of the server, there",
                facts.type_name
            )
        }
        Some(facts) => format!(
            "{name}: no block device is below it: it is {}\n  name a file on a disk, or a device",
            facts.type_name
        ),
        None => format!("{name}: no block device is below it\n  name a file on a disk, or a device"),
    }
}

/// How long reads and writes of a mount of NFS took since it was mounted, from `/proc/self/mountstats`: `, whose 120 READs took
/// 1.3 ms each, 0.2 ms of it here`; `None` if there were none.
fn calls(mounts: &str, point: &Path) -> Option<String> {
    let place = format!(" mounted on {} with fstype ", point.to_str()?);
    let from = mounts.find(&place)?;
    let of_mount = mounts[from..].lines().skip(1).take_while(|line| !line.starts_with("device "));
    let taken = of_mount.filter_map(|line| {
        let (name, counts) = line.trim().split_once(": ")?;
        let counts: Vec<u64> = counts.split(' ').map_while(|count| count.parse().ok()).collect();
        // How many, how often sent, time-outs, bytes sent and received, milliseconds in the queue, of the server, and in all.
        let [calls, _, _, _, _, _, server_ms, all_ms, ..] = counts[..] else { return None };
        (["READ", "WRITE"].contains(&name) && calls > 0).then(|| {
            let each = |ms: u64| ms as f64 / calls as f64;
            format!(
                "{calls} {name}s took {:.1} ms each, {:.1} ms of it at the server and on the way",
                each(all_ms),
                each(server_ms)
            )
        })
    });
    let taken: Vec<String> = taken.collect();
    (!taken.is_empty()).then(|| format!("; since it was mounted {}", taken.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_mount_are_its_own_and_of_those_that_were_made() {
        let mounts = "device proc mounted on /proc with fstype proc
device 127.0.0.1:/a mounted on /mnt with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 1 1 0
\t        READ: 200 200 0 44000 820000 40 500 560 0
\t       WRITE: 0 0 0 0 0 0 0 0 0
device 127.0.0.1:/b mounted on /mnt/b with fstype nfs4 statvers=1.1
\t       WRITE: 7 7 0 9 9 9 14 21 0
";
        assert_eq!(
            calls(mounts, Path::new("/mnt")).as_deref(),
            Some(
                "; since it was mounted 200 READs took 2.8 ms each, 2.5 ms of it at the server and on the way"
            )
        );
        assert!(calls(mounts, Path::new("/mnt/b")).is_some_and(|said| said.contains("7 WRITEs took 3.0 ms")));
        assert_eq!(calls(mounts, Path::new("/proc")), None);
        assert_eq!(calls("device", Path::new("/")), None);
    }

    #[test]
    fn how_far_an_array_is_may_not_be_told() {
        assert_eq!(percent_of("1234 / 5678"), Some(21));
        assert_eq!((percent_of("none"), percent_of("0 / 0"), percent_of("")), (None, None, None));
    }
}

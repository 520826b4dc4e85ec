//! dev-dax: copies to and from a device of persistent memory (`/dev/daxN.M`).
//!
//! Invariant: the whole device is mapped, because it maps only multiples of its own alignment. Each write is durable when it
//! ends.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use fiord_plan::{
    EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileUse, Geometry, Need, NoGeometry,
    Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::persistent;
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::sysfs::Sysfs;
use fiord_sys::width::to_usize;

use crate::boxed::BoxedSync;
use crate::contract::Outcome;
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::persistent_memory::{Extent, Medium, PersistentEngine, Stores};

/// The engine.
#[derive(Debug)]
pub struct DevDax;

const TESTS: &str = "tests/guest/cases/persistent.rs";
const SHARED: &str = "tests/guest/cases/shared.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "a_device_is_driven_as_by_fio_and_each_reads_what_the_other_wrote"),
    counts: Tested::By(TESTS, "a_device_is_driven_as_by_fio_and_each_reads_what_the_other_wrote"),
    short: Tested::Never("a copy is not short inside its target"),
    interrupted: Tested::By(SHARED, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "a_device_that_is_taken_away_is_an_error"),
    gone: Tested::By(TESTS, "a_device_that_is_taken_away_is_an_error"),
    stuck: Tested::Never("memory answers at once"),
    given_back: Tested::By(SHARED, "jobs_give_back_what_they_took"),
};

/// As in the C library: shorter writes go through the processor's caches.
const STORES: Stores = Stores { past_caches_from_bytes: 256, drains: true };

const MEDIUM: Medium = Medium {
    extent: |device, _planned_bytes| extent(device),
    map: persistent::map,
    refusal,
    trim: |_, _| Outcome::Failed(Errno(libc::EINVAL)),
};

/// Size and alignment of a device.
fn extent(device: BorrowedFd<'_>) -> io::Result<Extent> {
    let found = stat::fstat(device)?;
    let wrong = || io::Error::from_raw_os_error(libc::ENOTTY);
    if found.kind != InodeKind::Char {
        return Err(wrong());
    }
    let device = Sysfs::default().char_device_of(found.special).map_err(|_| wrong())?;
    let number = |file: &str| device.number_in(file).filter(|number| *number > 0);
    let (size, unit) = (number("size"), number("align"));
    let (Some(length_bytes), Some(unit_bytes)) = (size.filter(|_| device.is_memory()), unit) else {
        return Err(wrong());
    };
    Ok(Extent { length_bytes, unit_bytes: to_usize(unit_bytes) })
}

fn geometry(_settings: &EngineSettings, path: &Path) -> Result<Geometry, NoGeometry> {
    let failed = |error: io::Error| {
        let errno = Errno::of(&error).unwrap_or(Errno(libc::EIO));
        let reason = match errno.0 {
            libc::ENOTTY => {
                "the engine dev-dax needs a device of persistent memory (/dev/daxN.M); use ioengine=libpmem \
                             for files in such memory"
                    .to_string()
            }
            libc::ENOENT => format!(
                "{errno}: persistent memory becomes such a device with `ndctl create-namespace --mode=devdax`, and again \
                 with `daxctl reconfigure-device --mode=devdax` where it serves as ordinary memory"
            ),
            libc::ENXIO => format!("{errno}: the device has no driver (modprobe device_dax)"),
            libc::EACCES | libc::EPERM => {
                format!("{errno}: the device is for root, unless its permissions are changed")
            }
            _ => format!("{errno}: the device cannot be opened"),
        };
        NoGeometry { errno, reason }
    };
    let extent = extent(File::open(path).map_err(failed)?.as_fd()).map_err(failed)?;
    Ok(Geometry { size_bytes: Some(extent.length_bytes), block_bytes: 1 })
}

/// Why a device could not be mapped.
fn refusal(errno: i32) -> &'static str {
    match errno {
        libc::EOPNOTSUPP => "its memory is not durable without calls of the kernel; use ioengine=mmap",
        libc::ENXIO => "the device is gone",
        _ => "the device cannot be mapped",
    }
}

/// The explanation of an errno of an operation.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EIO => Some("the memory is damaged, or the device is gone"),
        _ => None,
    }
}

impl EngineDefinition for DevDax {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Persistent,
        tests: Some(TESTED),
        geometry: Some(geometry),
        explain: |_, errno| explain(errno),
        example: Some(Example {
            text: "Random reads of a device of persistent memory.",
            commands: "fiord --name=example --ioengine=dev-dax --filename=/dev/dax0.0 --rw=randread --bs=4k --size=16m",
            needs: &[Need {
                what: "persistent memory (/dev/dax0.0) that may be read",
                check: "test -r /dev/dax0.0",
            }],
        }),
        ..EngineDescriptor::synchronous(EngineName::DevDax, "copies to and from mapped persistent memory")
    };

    fn set_up<'a, V: Visitor<'a>>((): &(), setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let engine = PersistentEngine::new(&MEDIUM, STORES, arena, job.files);
        visitor.synchronous(engine.map(BoxedSync::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_persistent_memory_is_refused_with_what_to_do() {
        let places =
            [("/proc/self/exe", "/dev/daxN.M"), ("/dev/null", "/dev/daxN.M"), ("/dev/dax77.7", "ndctl")];
        for (path, remedy) in places {
            let refused = geometry(&EngineSettings::new(()), Path::new(path)).unwrap_err();
            assert!(refused.reason.contains(remedy), "{path}: {refused:?}");
        }
    }
}

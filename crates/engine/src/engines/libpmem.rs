//! libpmem: copies to and from files in persistent memory, on a file system mounted with DAX. The C library is not needed:
//! this engine stores and writes back with the same instructions.
//!
//! Invariant: a file that is not in persistent memory is refused, because what is stored there would not be durable; unless
//! the environment declares it to be persistent.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use fiord_options::job::JobOptions;
use fiord_options::value::SyncMode;
use fiord_plan::{
    EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileUse, Need, Op, Tested,
};
use fiord_sys::map::{Mapping, Sharing, page_bytes};
use fiord_sys::persistent;

use crate::boxed::BoxedSync;
use crate::contract::Outcome;
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::persistent_memory::{Extent, Medium, PersistentEngine, Stores};
use crate::sync_and_trim;

/// The variable of the environment that the C library has for memory that it does not recognise as persistent: 1 declares
/// that every file is in such memory.
const DECLARED: &str = "PMEM_IS_PMEM_FORCE";

/// The engine.
#[derive(Debug)]
pub struct Libpmem;

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Writes go past the processor's caches (`direct=1`).
    pub past_caches: bool,
    /// Each write waits until it is durable (`sync`).
    pub durable_writes: bool,
    /// Every file is taken to be in persistent memory.
    pub declared_persistent: bool,
}

impl Settings {
    /// Those of a job's options, in this environment.
    fn of(options: &JobOptions) -> Settings {
        Settings {
            past_caches: options.access.direct || !options.access.buffered,
            durable_writes: options.access.sync != SyncMode::None,
            declared_persistent: std::env::var_os(DECLARED).is_some_and(|value| value == "1"),
        }
    }
}

const TESTS: &str = "tests/guest/cases/persistent.rs";
const SHARED: &str = "tests/guest/cases/shared.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "what_is_written_with_dax_is_in_the_file_and_what_is_in_the_file_is_read"),
    counts: Tested::By(TESTS, "files_with_dax_are_driven_as_by_fio"),
    short: Tested::Never("a copy is not short inside its target"),
    interrupted: Tested::By(SHARED, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "damaged_memory_of_a_file_is_an_error_of_its_io"),
    gone: Tested::By(TESTS, "a_file_that_is_truncated_is_an_error"),
    stuck: Tested::Never(
        "memory answers at once, and no signal ends the wait for a file system that is frozen",
    ),
    given_back: Tested::By(SHARED, "jobs_give_back_what_they_took"),
};

const MEDIUM: Medium = Medium { extent, map: persistent::map, refusal, trim };

const DECLARED_MEDIUM: Medium = Medium {
    map: |file, length_bytes, protection| {
        Mapping::of_file(file, 0, length_bytes, protection, Sharing::Shared)
    },
    ..MEDIUM
};

fn extent(_file: BorrowedFd<'_>, planned_bytes: u64) -> io::Result<Extent> {
    Ok(Extent { length_bytes: planned_bytes, unit_bytes: page_bytes() })
}

/// Why a file could not be mapped.
fn refusal(errno: i32) -> &'static str {
    match errno {
        libc::EOPNOTSUPP => {
            "it is not in persistent memory whose file system is mounted with dax; use ioengine=mmap here, or \
             PMEM_IS_PMEM_FORCE=1 in the environment to take it for such a file all the same"
        }
        libc::EINVAL => "the kernel is older than 4.15 and has no MAP_SYNC; use ioengine=mmap",
        _ => "it cannot be mapped",
    }
}

/// A hole, as in other files.
fn trim(file: RawFd, op: &Op) -> Outcome {
    sync_and_trim::execute(file, op)
}

/// The explanation of an errno of an operation.
fn explain(errno: i32) -> Option<&'static str> {
    match errno {
        libc::EIO => Some("the memory is damaged, or the file was truncated"),
        libc::EFBIG => Some("a mapping cannot extend a file"),
        _ => None,
    }
}

impl EngineDefinition for Libpmem {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Persistent,
        tests: Some(TESTED),
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |_, errno| explain(errno),
        example: Some(Example {
            text: "Random writes past the processor's caches to a file in persistent memory, each durable when it ends.",
            commands: "fiord --name=example --ioengine=libpmem --rw=randwrite --bs=4k --size=16m --direct=1 --sync=1",
            needs: &[Need {
                what: "a directory on a file system mounted with dax",
                check: "findmnt -n -o OPTIONS --target . | grep -qE 'dax(=always)?(,|$)'",
            }],
        }),
        ..EngineDescriptor::synchronous(EngineName::Libpmem, "copies to and from files in persistent memory")
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let stores = Stores {
            past_caches_from_bytes: if settings.past_caches { 0 } else { u64::MAX },
            drains: settings.durable_writes,
        };
        let medium = if settings.declared_persistent { &DECLARED_MEDIUM } else { &MEDIUM };
        let engine = PersistentEngine::new(medium, stores, arena, job.files);
        visitor.synchronous(engine.map(BoxedSync::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // divergence: `direct` and `sync` with `libpmem`
    #[test]
    fn direct_and_sync_choose_how_writes_are_stored() {
        let mut options = JobOptions::default();
        assert_eq!(Settings::of(&options), Settings::default());
        options.access.direct = true;
        options.access.sync = SyncMode::Dsync;
        let both = Settings { past_caches: true, durable_writes: true, ..Settings::default() };
        assert_eq!(Settings::of(&options), both);
    }
}

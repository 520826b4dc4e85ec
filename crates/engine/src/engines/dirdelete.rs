//! dirdelete: the removal of each directory by its name, as a file system does it.
//!
//! Invariant: the kernel removes a directory only if it is empty.

use std::ffi::CStr;
use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileUse, NameCall, NamePurpose};
use fiord_sys::names;

use crate::by_name::{NameCalls, engine_of_calls};

/// The engine.
#[derive(Debug)]
pub struct Dirdelete;

engine_of_calls!(Dirdelete);

impl NameCalls for Dirdelete {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::ByName(NameCall { purpose: NamePurpose::Remove, directories: true }),
        explain: |_, errno| match errno {
            libc::ENOENT => Some(
                "it has been removed already; it can be removed once, so leave out loops= and time_based",
            ),
            libc::ENOTEMPTY => Some("it is not empty, and only empty directories are removed"),
            _ => None,
        },
        tests: Some(EngineTests::BY_NAME),
        example: Some(Example::plain(
            "A thousand directories made, and their removal measured.",
            "fiord --name=example --ioengine=dirdelete --filesize=4k --nrfiles=1000",
        )),
        ..EngineDescriptor::synchronous(EngineName::Dirdelete, "removes each empty directory")
    };

    fn call((): &(), name: &CStr) -> io::Result<()> {
        names::remove_directory(name)
    }
}

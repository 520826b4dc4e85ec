//! filedelete: the removal of each file by its name, as a file system does it.
//!
//! Invariant: only names that the plan has as regular files are removed.

use std::ffi::CStr;
use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileUse, NameCall, NamePurpose};
use fiord_sys::names;

use crate::by_name::{NameCalls, engine_of_calls};

/// The engine.
#[derive(Debug)]
pub struct Filedelete;

engine_of_calls!(Filedelete);

impl NameCalls for Filedelete {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::ByName(NameCall { purpose: NamePurpose::Remove, directories: false }),
        explain: |_, errno| match errno {
            libc::ENOENT => Some(
                "it has been removed already; a file can be removed once, so leave out loops= and time_based",
            ),
            _ => None,
        },
        tests: Some(EngineTests::BY_NAME),
        example: Some(Example::plain(
            "A thousand files made, and their removal measured.",
            "fiord --name=example --ioengine=filedelete --filesize=4k --nrfiles=1000",
        )),
        ..EngineDescriptor::synchronous(EngineName::Filedelete, "unlinks each file")
    };

    fn call((): &(), name: &CStr) -> io::Result<()> {
        names::remove_file(name)
    }
}

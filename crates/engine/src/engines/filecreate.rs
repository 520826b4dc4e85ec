//! filecreate: the opening of each file, which creates it, as a file system does it; no data.
//!
//! Invariant: a file that is there already is not changed.

use std::ffi::CStr;
use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileUse, NameCall, NamePurpose};
use fiord_sys::names;

use crate::by_name::{NameCalls, engine_of_calls};

/// The engine.
#[derive(Debug)]
pub struct Filecreate;

engine_of_calls!(Filecreate);

impl NameCalls for Filecreate {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::ByName(NameCall { purpose: NamePurpose::Create, directories: false }),
        explain: |_, errno| match errno {
            libc::ENOENT => Some("its directory is gone"),
            libc::EISDIR => Some("it is a directory; ioengine=dircreate makes directories"),
            _ => None,
        },
        tests: Some(EngineTests::BY_NAME),
        example: Some(Example::plain(
            "A thousand empty files made, removed again at the end.",
            "fiord --name=example --ioengine=filecreate --filesize=4k --nrfiles=1000 --unlink=1",
        )),
        ..EngineDescriptor::synchronous(EngineName::Filecreate, "opens each file, which creates it")
    };

    fn call((): &(), name: &CStr) -> io::Result<()> {
        names::create_file(name)
    }
}

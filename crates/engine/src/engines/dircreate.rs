//! dircreate: the making of each directory by its name, as a file system does it.
//!
//! Invariant: a directory that is there already is an error.

use std::ffi::CStr;
use std::io;

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Example, FileUse, NameCall, NamePurpose};
use fiord_sys::names;

use crate::by_name::{NameCalls, engine_of_calls};

/// The engine.
#[derive(Debug)]
pub struct Dircreate;

engine_of_calls!(Dircreate);

impl NameCalls for Dircreate {
    type Settings = ();

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::ByName(NameCall { purpose: NamePurpose::Create, directories: true }),
        explain: |_, errno| match errno {
            libc::EEXIST => {
                Some("it is there already; remove it first, or use unlink_each_loop=1 with loops=")
            }
            libc::ENOENT => Some("its parent directory is gone"),
            _ => None,
        },
        tests: Some(EngineTests::BY_NAME),
        example: Some(Example::plain(
            "A thousand directories made, removed again at the end.",
            "fiord --name=example --ioengine=dircreate --filesize=4k --nrfiles=1000 --unlink=1",
        )),
        ..EngineDescriptor::synchronous(EngineName::Dircreate, "makes each directory")
    };

    fn call((): &(), name: &CStr) -> io::Result<()> {
        names::create_directory(name)
    }
}

//! dirstat: a lookup of each directory by its name.
//!
//! Invariant: nothing is changed, and what is found is not read.

use std::ffi::CStr;
use std::io;

use fiord_plan::{
    EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileUse, NameCall, NamePurpose,
};
use fiord_sys::names::{self, Lookup};

use crate::by_name::{NameCalls, engine_of_calls};
use crate::name_lookup;

/// The engine.
#[derive(Debug)]
pub struct Dirstat;

engine_of_calls!(Dirstat);

impl NameCalls for Dirstat {
    type Settings = Lookup;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::ByName(NameCall { purpose: NamePurpose::Look, directories: true }),
        settings: |options| EngineSettings::new(name_lookup::of(options)),
        explain: |_, errno| match errno {
            libc::ENOENT => Some("it was removed after the job had made it"),
            _ => None,
        },
        tests: Some(EngineTests::BY_NAME),
        example: Some(Example::plain(
            "A thousand directories made, and looked up.",
            "fiord --name=example --ioengine=dirstat --filesize=4k --nrfiles=1000",
        )),
        ..EngineDescriptor::synchronous(EngineName::Dirstat, "stat, lstat or statx of each directory")
    };

    fn call(how: &Lookup, name: &CStr) -> io::Result<()> {
        names::look_up(name, *how)
    }
}

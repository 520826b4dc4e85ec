//! filestat: a lookup of each file by its name; no data.
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
pub struct Filestat;

engine_of_calls!(Filestat);

impl NameCalls for Filestat {
    type Settings = Lookup;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::ByName(NameCall { purpose: NamePurpose::Look, directories: false }),
        settings: |options| EngineSettings::new(name_lookup::of(options)),
        explain: |_, errno| match errno {
            libc::ENOENT => Some("it was removed after the job had made it, or create_on_open=1 left it out"),
            _ => None,
        },
        tests: Some(EngineTests::BY_NAME),
        example: Some(Example::plain(
            "A thousand files made, and looked up by `statx`.",
            "fiord --name=example --ioengine=filestat --stat_type=statx --filesize=4k --nrfiles=1000",
        )),
        ..EngineDescriptor::synchronous(EngineName::Filestat, "stat, lstat or statx of each file")
    };

    fn call(how: &Lookup, name: &CStr) -> io::Result<()> {
        names::look_up(name, *how)
    }
}

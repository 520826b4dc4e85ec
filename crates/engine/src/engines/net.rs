//! net: `send` and `recv` on a connection, to and from fio's engine of this name or fiord's.
//!
//! Invariant: a transfer is one system call.

use std::io;

use fiord_options::job::JobOptions;
use fiord_plan::{EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileUse, RateUnit};

use crate::connection::{Connection, Settings};
use crate::connection_engine::{Wire, set_up};
use crate::contract::Arena;
use crate::definition::{EngineDefinition, JobOutline, Visitor};

/// The engine.
#[derive(Debug)]
pub struct Net;

impl EngineDefinition for Net {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        files: FileUse::Connected(RateUnit::Bits),
        settings: |options: &JobOptions| EngineSettings::new(Settings::of(options)),
        tests: Some(EngineTests::CONNECTED),
        example: Some(Example::plain(
            "A job that sends to another over a TCP connection.",
            "fiord --ioengine=net --port=8765 --bs=64k --size=256m --name=reader --listen --rw=read \\\n  \
             --name=writer --hostname=127.0.0.1 --rw=write",
        )),
        explain: |settings, errno| settings.get::<Settings>()?.explain(errno),
        ..EngineDescriptor::synchronous(EngineName::Net, "send and recv over tcp, udp, unix or vsock")
    };

    fn set_up<'arena, V: Visitor<'arena>>(
        settings: &Settings,
        job: &JobOutline,
        arena: Arena<'arena>,
        visitor: V,
    ) -> V::Output {
        set_up(settings, job, arena, Ok(Plain), visitor)
    }
}

/// `send` and `recv`.
#[derive(Debug)]
struct Plain;

impl Wire for Plain {
    unsafe fn receive(
        &mut self,
        connection: &mut Connection,
        buffer: *mut u8,
        length_bytes: usize,
    ) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { connection.receive(buffer, length_bytes) }
    }

    unsafe fn send(
        &mut self,
        connection: &mut Connection,
        buffer: *const u8,
        length_bytes: usize,
        more: bool,
    ) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { connection.send(buffer, length_bytes, more) }
    }
}

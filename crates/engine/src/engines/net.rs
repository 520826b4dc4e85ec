//! net: `send` and `recv` on a connection, to and from fio's engine of this name or fiord's.
//!
//! Invariant: a transfer is one system call.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, Example, RateUnit};

use crate::connection::{Connection, Settings};
use crate::connection_engine::{Wire, descriptor, set_up};
use crate::definition::{EngineDefinition, Setup, Visitor};

/// The engine.
#[derive(Debug)]
pub struct Net;

impl EngineDefinition for Net {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        example: Some(Example::plain(
            "A job that sends to another over a TCP connection.",
            "fiord --ioengine=net --port=8765 --bs=64k --size=256m --name=reader --listen --rw=read \\\n  \
             --name=writer --hostname=127.0.0.1 --rw=write",
        )),
        ..descriptor(EngineName::Net, "send and recv over tcp, udp, unix or vsock", RateUnit::Bits)
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        set_up(settings, setup, Ok(Plain), visitor)
    }
}

/// `send` and `recv`.
#[derive(Debug)]
struct Plain;

impl Wire for Plain {
    unsafe fn receive(&mut self, from: &mut Connection, buffer: *mut [u8]) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { from.receive(buffer.cast(), buffer.len()) }
    }

    unsafe fn send(&mut self, to: &mut Connection, buffer: *const [u8], more: bool) -> io::Result<usize> {
        // SAFETY: the caller vouches for the buffer.
        unsafe { to.send(buffer.cast(), buffer.len(), more) }
    }
}

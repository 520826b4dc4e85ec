//! netsplice: like net, but what a stream carries goes through a pipe, by `splice` between the connection and the pipe and
//! by `vmsplice` between the pipe and memory.
//!
//! Invariant: the pipe is empty between operations. Messages, and bytes with an answer, go by `send` and `recv`.
//!
//! The kernel sends pages of memory that `vmsplice` lent it, later: what is written into a buffer again before they
//! arrived, arrives. Data that is verified is copied into the pipe instead.

use std::io;

use fiord_plan::{EngineDescriptor, EngineName, Example, RateUnit};
use fiord_sys::pipe::Pipe;

use crate::connection::{Connection, Settings};
use crate::connection_engine::{Wire, descriptor, set_up};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::setup_error::{SetupError, SetupStep};

/// The engine.
#[derive(Debug)]
pub struct Netsplice;

impl EngineDefinition for Netsplice {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        example: Some(Example::plain(
            "The same as net, by splice and vmsplice.",
            "fiord --ioengine=netsplice --port=8766 --bs=64k --size=256m --name=reader --listen --rw=read \\\n  \
             --name=writer --hostname=127.0.0.1 --rw=write",
        )),
        ..descriptor(
            EngineName::Netsplice,
            "splice and vmsplice between memory and a connection",
            RateUnit::Bytes,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let pipe = Pipe::new().map_err(|error| SetupError::new(SetupStep::Pipe, &error));
        let wire = pipe.map(|pipe| Spliced { pipe, copies: setup.job.verifies });
        set_up(settings, setup, wire, visitor)
    }
}

/// `splice` and `vmsplice`.
#[derive(Debug)]
struct Spliced {
    pipe: Pipe,
    /// Whether data is copied into the pipe.
    copies: bool,
}

impl Spliced {
    /// Puts bytes of memory into the empty pipe: how many.
    ///
    /// # Safety
    /// `buffer` is valid for reads of `length_bytes`.
    unsafe fn fill(&self, buffer: *const u8, length_bytes: usize) -> io::Result<usize> {
        let length = length_bytes.min(self.pipe.capacity_bytes());
        // SAFETY: the caller vouches for the buffer; its pages stay readable, as the arena outlives the operation, and are
        // only read.
        unsafe {
            match self.copies {
                true => self.pipe.fill_with_copy(std::slice::from_raw_parts(buffer, length)),
                false => self.pipe.fill_from_memory(buffer, length),
            }
        }
    }

    /// Moves what the pipe holds into the connection: how many bytes. What it does not take is dropped.
    fn drain(&self, connection: &Connection, held: usize, more: bool) -> io::Result<usize> {
        let mut moved = 0;
        while moved < held {
            match self.pipe.drain_to_stream(connection.socket().fd(), held - moved, more) {
                Ok(0) => break,
                Ok(bytes) => moved += bytes,
                Err(error) if moved == 0 => {
                    self.pipe.discard(held);
                    return Err(error);
                }
                Err(_) => break,
            }
        }
        self.pipe.discard(held - moved);
        Ok(moved)
    }
}

impl Wire for Spliced {
    unsafe fn receive(&mut self, from: &mut Connection, buffer: *mut [u8]) -> io::Result<usize> {
        let (buffer, length_bytes) = (buffer.cast::<u8>(), buffer.len());
        if !from.is_stream() || from.has_ended() {
            // SAFETY: the caller vouches for the buffer.
            return unsafe { from.receive(buffer, length_bytes) };
        }
        let mut done = 0;
        while done < length_bytes {
            let wanted = (length_bytes - done).min(self.pipe.capacity_bytes());
            let held = match self.pipe.fill_from_stream(from.socket().fd(), wanted) {
                Ok(0) => break,
                Ok(held) => held,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let mut moved = 0;
            while moved < held {
                // SAFETY: the piece is inside the buffer that the caller vouches for.
                moved += unsafe { self.pipe.drain_to_memory(buffer.add(done + moved), held - moved)? };
            }
            done += held;
        }
        // SAFETY: the caller vouches for the buffer.
        unsafe { from.data_of(buffer, done, length_bytes) }
    }

    unsafe fn send(&mut self, to: &mut Connection, buffer: *const [u8], more: bool) -> io::Result<usize> {
        let (buffer, length_bytes) = (buffer.cast::<u8>(), buffer.len());
        if !to.is_stream() {
            // SAFETY: the caller vouches for the buffer.
            return unsafe { to.send(buffer, length_bytes, more) };
        }
        let mut done = 0;
        while done < length_bytes {
            let left = length_bytes - done;
            // SAFETY: the rest is inside the buffer that the caller vouches for.
            let held = unsafe { self.fill(buffer.add(done), left)? };
            match self.drain(to, held, more || held < left) {
                Ok(moved) => {
                    done += moved;
                    if moved < held {
                        break;
                    }
                }
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(done)
    }
}

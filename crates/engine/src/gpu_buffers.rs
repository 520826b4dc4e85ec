//! Memory of a GPU beside the buffers of an engine: `mem=cudamalloc`, and `cuda_io=posix`.
//!
//! Invariant: what an operation reads is in the memory of the GPU when it has ended for the loop, and what it writes comes
//! from there, so that its latency has the copy in it.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use fiord_plan::{FileIndex, Op};
use fiord_sys::errno::Errno;
use fiord_sys::library::cuda::{self, DeviceMemory, GpuError};
use fiord_sys::thread::Usage;
use fiord_sys::width::to_usize;

use crate::attached_files::AttachedFiles;
use crate::boxed::{BoxedSync, LentQueued, LentSync, hand_on_engine_calls};
use crate::contract::{
    ArenaAccess, Completion, Engine, Executed, NamedTarget, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};
use crate::definition::JobOutline;
use crate::gpu_errors;
use crate::setup_error::SetupError;

/// The memory of a GPU, as long as all buffers of an engine, for the thread that makes it.
#[derive(Debug)]
pub struct GpuMemory {
    memory: DeviceMemory,
    buffer_bytes: usize,
    /// Whether each write brings contents of its own to the memory of the GPU.
    renews_contents: bool,
    buffers: Box<[Buffer]>,
}

/// What is known of a slot's buffer.
#[derive(Debug, Clone, Default)]
struct Buffer {
    /// Whether the memory of the GPU has contents to write.
    is_loaded: bool,
    /// The operation that is queued or in flight, and the error of the copy before it.
    begun: Option<(Op, Option<Errno>)>,
}

impl GpuMemory {
    /// Memory of the GPU with this number for the buffers of an engine.
    ///
    /// # Errors
    /// Why there is none: no libcuda, no such GPU, or not so much.
    pub fn new(gpu: u32, job: &JobOutline, arena: &ArenaAccess<'_, '_>) -> Result<GpuMemory, SetupError> {
        cuda::is_available()?;
        let (depth, buffer_bytes) = arena.shape();
        let memory =
            DeviceMemory::allocate(gpu, buffer_bytes.saturating_mul(depth)).map_err(gpu_errors::refused)?;
        let renews_contents = job.renews_contents || job.verifies;
        Ok(GpuMemory {
            memory,
            buffer_bytes,
            renews_contents,
            buffers: vec![Buffer::default(); depth].into(),
        })
    }

    /// Copies what an operation writes out of the memory of the GPU; what the buffer has is brought there before, for each
    /// write if each has contents of its own, and once otherwise.
    fn before(&mut self, op: &Op, index: usize, buffer: &mut [u8]) -> Result<(), GpuError> {
        if !op.action.sends_buffer() {
            return Ok(());
        }
        let (start, base) = (to_usize(op.buffer_offset_bytes), index * self.buffer_bytes);
        let known = &mut self.buffers[index];
        if self.renews_contents || !known.is_loaded {
            // SAFETY: the bytes are those of a slice.
            unsafe { self.memory.copy_in(base, buffer.as_ptr(), buffer.len()) }?;
            known.is_loaded = true;
        }
        let part = &mut buffer[start..start + to_usize(op.length_bytes)];
        // SAFETY: the bytes are those of a slice that nobody else has.
        unsafe { self.memory.copy_out(base + start, part.as_mut_ptr(), part.len()) }
    }

    /// Copies what an operation has read to the memory of the GPU.
    fn after(&self, op: &Op, index: usize, buffer: &[u8], outcome: Outcome) -> Outcome {
        let Outcome::Done(bytes) = outcome else { return outcome };
        if !op.action.fills_buffer() {
            return outcome;
        }
        let start = to_usize(op.buffer_offset_bytes);
        let part = &buffer[start..start + to_usize(bytes.min(op.length_bytes))];
        // SAFETY: the bytes are those of a slice.
        match unsafe { self.memory.copy_in(index * self.buffer_bytes + start, part.as_ptr(), part.len()) } {
            Ok(()) => outcome,
            Err(error) => Outcome::Failed(gpu_errors::number(error)),
        }
    }
}

/// An engine with memory of a GPU.
pub struct WithGpu<E>(E, GpuMemory);

impl<E> WithGpu<E> {
    /// This engine, whose buffers are as many and as long as those that the memory was made for.
    pub fn new(engine: E, memory: GpuMemory) -> WithGpu<E> {
        WithGpu(engine, memory)
    }
}

hand_on_engine_calls!(WithGpu<BoxedSync<'arena>>);
hand_on_engine_calls!(WithGpu<LentSync<'_, 'arena>>);
hand_on_engine_calls!(WithGpu<LentQueued<'_, 'arena>>);

impl<'arena, E: SyncEngine<'arena>> SyncEngine<'arena> for WithGpu<E>
where
    WithGpu<E>: Engine<'arena>,
{
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        let WithGpu(engine, memory) = self;
        let index = slot.index();
        if let Err(error) = memory.before(&op, index, engine.arena().bytes_mut(slot)) {
            return Outcome::Failed(gpu_errors::number(error));
        }
        let outcome = engine.execute(op, slot);
        memory.after(&op, index, engine.arena().bytes_mut(slot), outcome)
    }
}

impl<'arena> QueuedEngine<'arena> for WithGpu<LentQueued<'_, 'arena>> {
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        self.0.execute_unqueued(op)
    }

    fn queue(&mut self, op: Op, mut slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let WithGpu(engine, memory) = self;
        let index = slot.index();
        let refused = memory.before(&op, index, engine.arena().bytes_mut(&mut slot)).err();
        engine.queue(op, slot)?;
        memory.buffers[index].begun = Some((op, refused.map(gpu_errors::number)));
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        self.0.submit()
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let WithGpu(engine, memory) = self;
        let before = done.len();
        let reaped = engine.reap(min, max, wait, done);
        for Completion { slot, outcome } in &mut done[before..] {
            let index = slot.index();
            *outcome = match memory.buffers[index].begun.take() {
                Some((_, Some(refused))) => Outcome::Failed(refused),
                Some((op, None)) => memory.after(&op, index, engine.arena().bytes_mut(slot), *outcome),
                None => *outcome,
            };
        }
        reaped
    }
}

//! libcufile: between files and memory of an NVIDIA GPU, by cuFile, or by `pread` and `pwrite` and a copy.
//!
//! Invariant: an operation uses the part of the GPU's memory that belongs to its slot, as it uses the slot's buffer. Batch
//! and files are given back before the memory; none of them while operations are in flight, which the engine leaves to
//! themselves if they never end.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use fiord_options::engine::Cufile;
use fiord_options::job::{Access, JobOptions, Queue};
use fiord_options::value::{CudaIo, IoSubmitMode};
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, MissingSetting,
    Need, Op, Queueing, Tested,
};
use fiord_sys::errno::Errno;
use fiord_sys::library::Connection;
use fiord_sys::library::cuda::{self, DeviceMemory, GpuError};
use fiord_sys::library::cufile::{
    self, Batch, DevicePart, RegisteredFile, RegisteredMemory, Request, Transfer,
};
use fiord_sys::signal;
use fiord_sys::width::{to_u32, to_usize};

use super::psync::Psync;
use crate::attached_files::AttachedFiles;
use crate::boxed::{BoxedQueued, BoxedSync};
use crate::contract::{
    Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, SyncEngine, Wait,
};
use crate::definition::{EngineDefinition, JobOutline, Setup, Visitor};
use crate::gpu_buffers::{GpuMemory, WithGpu};
use crate::gpu_errors;
use crate::library_engine::{GRACE, LOOK_EVERY};
use crate::local_completions::LocalCompletions;
use crate::read_write::ReadWriteEngine;
use crate::setup_error::SetupError;
use crate::sync_and_trim;

/// Buffers in the memory of a GPU begin at multiples of this, as transfers without a copy need it.
const ALIGN_BYTES: usize = 4096;

/// A queue is full: what was not submitted waits for the end of something in flight.
const BATCH_FULL: i32 = 5037;

/// The engine.
#[derive(Debug)]
pub struct Libcufile;

/// Its tests, on libraries that stand in for those of NVIDIA.
const TESTS: &str = "crates/fiord/tests/gpu.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "data_go_through_the_memory_of_the_gpu_and_are_verified"),
    counts: Tested::By(TESTS, "each_io_is_counted_once_also_in_batches"),
    short: Tested::By(TESTS, "a_transfer_that_ends_short_is_continued"),
    interrupted: Tested::By(TESTS, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "errors_of_either_library_end_the_job_by_name_and_number"),
    gone: Tested::Never("a device that is gone is an error as any other to the library"),
    stuck: Tested::By(TESTS, "io_that_never_completes_does_not_hold_up_the_end"),
    given_back: Tested::By(TESTS, "what_was_taken_of_the_libraries_is_given_back"),
};

/// Its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The GPUs that jobs take turns on.
    pub gpus: Vec<u32>,
    /// `pread` and `pwrite` and a copy in place of cuFile.
    pub posix: bool,
    /// What does not fit together, if anything does not.
    missing: Option<MissingSetting>,
}

impl Default for Settings {
    /// A job that sets nothing lacks `direct=1`.
    fn default() -> Settings {
        Settings::of(&JobOptions::default())
    }
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.cufile;
        let posix = own.cuda_io == CudaIo::Posix;
        Settings { gpus: own.gpu_dev_ids.0.clone(), posix, missing: missing(options, posix) }
    }

    /// The GPU of a job.
    fn gpu(&self, job: &JobOutline) -> u32 {
        let turns = self.gpus.len().max(1);
        self.gpus.get(job.number as usize % turns).copied().unwrap_or(0)
    }
}

/// What does not fit to this engine.
fn missing(options: &JobOptions, posix: bool) -> Option<MissingSetting> {
    if options.queue.io_submit_mode == IoSubmitMode::Offload {
        return Some(MissingSetting {
            option: Queue::io_submit_mode,
            message: "the engine libcufile is not offloaded: each thread would need memory of the GPU for all of the job",
            remedy: "leave io_submit_mode out",
        });
    }
    if posix && options.queue.iodepth > 1 {
        return Some(MissingSetting {
            option: Cufile::cuda_io,
            message: "cuda_io=posix does one I/O at a time, and iodepth asks for more",
            remedy: "use numjobs in place of iodepth, or leave cuda_io out",
        });
    }
    (!posix && !options.access.direct).then_some(MissingSetting {
        option: Access::direct,
        message: "the engine libcufile needs direct=1: through the page cache, data would go through memory of this machine",
        remedy: "set direct=1, or cuda_io=posix to measure that way",
    })
}

impl EngineDefinition for Libcufile {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        settings: |options| EngineSettings::new(Settings::of(options)),
        missing: |settings| settings.get::<Settings>()?.missing,
        // Both libraries keep descriptors for all threads.
        shares_threads: true,
        is_of_gpus: true,
        explain: |_, errno| gpu_errors::explain(errno),
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random reads to the memory of the first GPU, 32 at a time.",
            commands: "fiord --name=example --ioengine=libcufile --direct=1 --iodepth=32 --rw=randread --bs=64k --size=16m",
            needs: &[
                Need { what: "an NVIDIA GPU, with libcuda and libcufile", check: "nvidia-smi -L" },
                Need::DIRECT,
            ],
        }),
        ..EngineDescriptor::of(
            EngineName::Libcufile,
            "memory of an NVIDIA GPU (libcufile)",
            Queueing::ByDepth,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        if settings.posix {
            return visitor.synchronous(by_copies(settings, setup));
        }
        if let Err(unavailable) = cuda::is_available().and_then(|()| cufile::is_available()) {
            return visitor.synchronous::<BoxedSync<'_>>(Err(unavailable.into()));
        }
        let Setup { job, arena } = setup;
        let depth = arena.count();
        let engine = GpuEngine::new(settings, job, arena);
        if depth == 1 {
            return visitor.synchronous(engine.map(BoxedSync::new));
        }
        visitor.queued(engine.and_then(BatchEngine::new).map(BoxedQueued::new))
    }
}

/// The engine with `cuda_io=posix`: psync, and copies.
fn by_copies<'arena>(settings: &Settings, setup: Setup<'_, 'arena>) -> Result<BoxedSync<'arena>, SetupError> {
    let Setup { job, arena } = setup;
    let mut engine = ReadWriteEngine::<Psync>::new(&(), arena, job.files)?;
    let memory = GpuMemory::new(settings.gpu(job), job, &engine.arena())?;
    Ok(BoxedSync::new(WithGpu::new(BoxedSync::new(engine), memory)))
}

/// The engine at a depth of 1, and what a batch is made of.
#[derive(Debug)]
struct GpuEngine<'arena> {
    // Fields are dropped in this order.
    /// By file.
    registered: Box<[Option<RegisteredFile>]>,
    memory: RegisteredMemory,
    files: AttachedFiles,
    arena: Arena<'arena>,
    /// Bytes of the GPU's memory for each slot.
    stride_bytes: usize,
    /// Whether each write brings contents of its own to the memory of the GPU.
    renews_contents: bool,
    /// Whether what was read is looked at.
    verifies: bool,
    /// By slot: whether the memory of the GPU has contents to write.
    has_contents: Box<[bool]>,
}

impl<'arena> GpuEngine<'arena> {
    fn new(
        settings: &Settings,
        job: &JobOutline,
        arena: Arena<'arena>,
    ) -> Result<GpuEngine<'arena>, SetupError> {
        let depth = arena.count() as usize;
        let stride_bytes = arena.stride_bytes().next_multiple_of(ALIGN_BYTES);
        let memory = DeviceMemory::allocate(settings.gpu(job), stride_bytes.saturating_mul(depth))
            .and_then(RegisteredMemory::new);
        Ok(GpuEngine {
            registered: (0..job.files).map(|_| None).collect(),
            memory: memory.map_err(gpu_errors::refused)?,
            files: AttachedFiles::new(job.files),
            stride_bytes,
            renews_contents: job.renews_contents || job.verifies,
            verifies: job.verifies,
            has_contents: vec![false; depth].into_boxed_slice(),
            arena,
        })
    }

    /// Where an operation's part begins in the memory of the GPU.
    fn place(&self, index: u32, op: &Op) -> usize {
        index as usize * self.stride_bytes + to_usize(op.buffer_offset_bytes)
    }

    /// Brings what an operation writes to the memory of the GPU: as the buffer has it, if each write has contents of its own;
    /// otherwise the whole buffer, once.
    fn load(&mut self, index: u32, op: &Op) -> Result<(), GpuError> {
        let (place, from, bytes) = match self.renews_contents {
            true => (self.place(index, op), self.arena.part(index, op), to_usize(op.length_bytes)),
            false if self.has_contents[index as usize] => return Ok(()),
            false => {
                let bytes = self.arena.stride_bytes();
                (index as usize * self.stride_bytes, self.arena.pointer(index, 0, bytes as u64), bytes)
            }
        };
        self.has_contents[index as usize] = true;
        // SAFETY: the part is inside the slot's buffer; the slot is in the engine or borrowed mutably, so nobody writes there.
        unsafe { self.memory.memory().copy_in(place, from, bytes) }
    }

    /// Copies an operation's part of the GPU's memory to its buffer.
    fn unload(&self, index: u32, op: &Op, bytes: u64) -> Result<(), GpuError> {
        let to = self.arena.part(index, op);
        let bytes = to_usize(bytes.min(op.length_bytes));
        // SAFETY: as above; nobody else uses the buffer.
        unsafe { self.memory.memory().copy_out(self.place(index, op), to, bytes) }
    }

    /// What follows the end of an operation: data that were read are brought to where they are looked at.
    fn ended(&self, index: u32, op: &Op, result: i64) -> Outcome {
        match op.action {
            Action::Read if result > 0 && self.verifies => {
                match self.unload(index, op, result.cast_unsigned()) {
                    Ok(()) => Outcome::from_result(result),
                    Err(error) => Outcome::Failed(gpu_errors::number(error)),
                }
            }
            Action::Read
            | Action::Write
            | Action::Trim
            | Action::ResetZone
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_) => Outcome::from_result(result),
        }
    }

    /// The place of an operation, for cuFile.
    fn part(&self, index: u32, op: &Op) -> DevicePart {
        DevicePart {
            memory_offset_bytes: self.place(index, op),
            length_bytes: to_usize(op.length_bytes),
            file_offset_bytes: op.offset_bytes,
        }
    }

    /// The file of an operation.
    fn file(&self, op: &Op) -> Result<&RegisteredFile, Errno> {
        self.registered.get(op.file as usize).and_then(Option::as_ref).ok_or(Errno(libc::EBADF))
    }

    /// Reads or writes by cuFile.
    fn by_cufile(&mut self, index: u32, op: &Op, reads: bool) -> Outcome {
        if !reads && let Err(error) = self.load(index, op) {
            return Outcome::Failed(gpu_errors::number(error));
        }
        let file = match self.file(op) {
            Ok(file) => file,
            Err(errno) => return Outcome::Failed(errno),
        };
        let result = self.memory.transfer(direction(reads), file, self.part(index, op));
        self.ended(index, op, result)
    }
}

/// The direction of a transfer.
fn direction(reads: bool) -> Transfer {
    if reads { Transfer::Read } else { Transfer::Write }
}

impl<'arena> Engine<'arena> for GpuEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        self.files.attach(file, fd)?;
        if let Some(place) = self.registered.get_mut(file as usize) {
            *place = Some(RegisteredFile::new(fd.as_raw_fd()).map_err(gpu_errors::unregistered)?);
        }
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.files.detach(file);
        if let Some(place) = self.registered.get_mut(file as usize) {
            *place = None;
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> SyncEngine<'arena> for GpuEngine<'arena> {
    fn execute(&mut self, op: Op, slot: &mut Slot<'arena>) -> Outcome {
        if !op.action.transfers() {
            return sync_and_trim::execute(self.files.get(op.file), &op);
        }
        self.by_cufile(slot.number(), &op, sync_and_trim::is_read(&op))
    }
}

/// The engine at a depth above 1.
#[derive(Debug)]
struct BatchEngine<'arena> {
    batch: ManuallyDrop<Batch>,
    gpu: ManuallyDrop<GpuEngine<'arena>>,
    /// By slot.
    ops: Box<[Option<Op>]>,
    /// What is not yet submitted, in order, and the slots of it.
    queued: Vec<Request>,
    local: LocalCompletions<'arena>,
    in_flight: u32,
    /// When a request to stop was first seen while nothing ended.
    stalled_since: Option<Instant>,
}

impl<'arena> BatchEngine<'arena> {
    fn new(gpu: GpuEngine<'arena>) -> Result<BatchEngine<'arena>, SetupError> {
        let depth = gpu.arena.count();
        Ok(BatchEngine {
            batch: ManuallyDrop::new(Batch::new(depth).map_err(gpu_errors::refused)?),
            gpu: ManuallyDrop::new(gpu),
            ops: vec![None; depth as usize].into_boxed_slice(),
            queued: Vec::with_capacity(depth as usize),
            local: LocalCompletions::new(depth),
            in_flight: 0,
            stalled_since: None,
        })
    }

    /// What the library is asked to do.
    fn request(&mut self, index: u32, op: &Op) -> Result<Request, Errno> {
        let reads = sync_and_trim::is_read(op);
        if !reads {
            self.gpu.load(index, op).map_err(gpu_errors::number)?;
        }
        let (file, part) = (self.gpu.file(op)?, self.gpu.part(index, op));
        Ok(Batch::request(&self.gpu.memory, direction(reads), file, part, index))
    }

    /// Takes what has ended, at most `max`, waiting for `min` but no longer than this; returns how many.
    fn take(
        &mut self,
        min: u32,
        max: u32,
        at_most: Duration,
        done: &mut Vec<Completion<'arena>>,
    ) -> Result<u32, Errno> {
        let BatchEngine { batch, gpu, ops, in_flight, .. } = self;
        let min = min.min(*in_flight);
        let mut count = 0;
        for event in batch.ended(min, max, at_most).map_err(gpu_errors::number)? {
            let index = event.number();
            let Some(op) = ops.get_mut(index as usize).and_then(Option::take) else { continue };
            done.push(Completion {
                slot: Slot::from_index(index),
                outcome: gpu.ended(index, &op, event.result()),
            });
            count += 1;
        }
        *in_flight -= count;
        Ok(count)
    }

    /// Whether nothing has ended for so long, since the run was asked to stop, that what is in flight is given up.
    fn is_stuck(&mut self) -> bool {
        if signal::stop_requested().is_none() {
            return false;
        }
        self.stalled_since.get_or_insert_with(Instant::now).elapsed() >= GRACE
    }
}

impl Drop for BatchEngine<'_> {
    fn drop(&mut self) {
        let (until, mut done) = (Instant::now() + GRACE, Vec::with_capacity(self.ops.len()));
        while self.in_flight > 0 && Instant::now() < until {
            done.clear();
            if self.take(1, self.in_flight, LOOK_EVERY, &mut done).is_err() {
                break;
            }
        }
        if self.in_flight > 0 {
            // Neither buffers nor memory of the GPU are freed, because the library may still use them.
            Connection::abandon_all();
            return;
        }
        // SAFETY: neither is used after this, and nothing is in flight.
        unsafe {
            ManuallyDrop::drop(&mut self.batch);
            ManuallyDrop::drop(&mut self.gpu);
        }
    }
}

impl<'arena> Engine<'arena> for BatchEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, length_bytes: u64) -> io::Result<()> {
        self.gpu.attach(file, fd, length_bytes)
    }

    fn detach(&mut self, file: FileIndex) {
        // After the engine has given up what is in flight, the file is still in use.
        if self.in_flight == 0 {
            self.gpu.detach(file);
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        self.gpu.arena()
    }
}

impl<'arena> QueuedEngine<'arena> for BatchEngine<'arena> {
    fn execute_unqueued(&mut self, op: &Op) -> Option<Outcome> {
        sync_and_trim::execute_unqueued(&self.gpu.files, op)
    }

    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let index = slot.into_index();
        match self.request(index, &op) {
            Ok(request) => {
                self.ops[index as usize] = Some(op);
                self.queued.push(request);
            }
            Err(errno) => self.local.push(Slot::from_index(index), Outcome::Failed(errno)),
        }
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        let count = to_u32(self.queued.len());
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the slots were moved into the engine, so nobody uses their parts of the memory until the operations have
        // ended. Memory and files are given back only when nothing is in flight.
        match unsafe { self.batch.submit(&mut self.queued) } {
            Ok(()) => self.in_flight += count,
            Err(GpuError::Cufile(_, BATCH_FULL)) if self.in_flight > 0 => return Ok(0),
            Err(error) => {
                for request in &self.queued {
                    let slot = Slot::from_index(request.number());
                    self.local.push(slot, Outcome::Failed(gpu_errors::number(error)));
                }
            }
        }
        self.queued.clear();
        Ok(count)
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        self.submit()?;
        let until = match wait {
            Wait::Poll | Wait::Block => None,
            Wait::For(time_ns) => Some(Instant::now() + Duration::from_nanos(time_ns)),
        };
        let mut got = self.local.drain(max, done);
        while got < max && self.in_flight > 0 {
            let left = match wait {
                Wait::Poll => Duration::ZERO,
                Wait::Block | Wait::For(_) => until.map_or(LOOK_EVERY, |until| {
                    until.saturating_duration_since(Instant::now()).min(LOOK_EVERY)
                }),
            };
            let missing = if left.is_zero() { 0 } else { min.min(max).saturating_sub(got) };
            let taken = self.take(missing, max - got, left, done)?;
            got += taken;
            if got >= min.min(max) || left.is_zero() {
                break;
            }
            if taken > 0 {
                self.stalled_since = None;
            } else if self.is_stuck() {
                // The run is stopped, which is no failure of the job.
                return Err(Errno::EINTR.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_take_turns_on_the_gpus() {
        let settings = Settings { gpus: vec![2, 0], ..Settings::default() };
        let of = |settings: &Settings, number| settings.gpu(&JobOutline { number, ..JobOutline::plain(1) });
        assert_eq!([0, 1, 2, 3].map(|number| of(&settings, number)), [2, 0, 2, 0]);
        assert_eq!(of(&Settings::default(), 5), 0);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_the_option_that_asks_for_it() {
        let refused = |change: fn(&mut JobOptions)| {
            let mut options = JobOptions::default();
            options.access.direct = true;
            change(&mut options);
            Settings::of(&options).missing.map(|missing| missing.option.name)
        };
        assert_eq!(refused(|_| {}), None);
        assert_eq!(refused(|options| options.access.direct = false), Some("direct"));
        assert_eq!(
            refused(|options| options.queue.io_submit_mode = IoSubmitMode::Offload),
            Some("io_submit_mode")
        );
        let posix = |options: &mut JobOptions| {
            options.access.direct = false;
            options.cufile.cuda_io = CudaIo::Posix;
        };
        assert_eq!(refused(posix), None);
        assert_eq!(
            refused(|options| {
                options.cufile.cuda_io = CudaIo::Posix;
                options.queue.iodepth = 2;
            }),
            Some("cuda_io")
        );
    }
}

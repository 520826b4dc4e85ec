//! io_uring_cmd: NVMe commands through a ring to the character device of a namespace, past the block layer.
//!
//! Invariant: what an operation's command reads or writes beside the slot's buffer (its range, its vector, its metadata)
//! is in the slot's part of `side`, which is released only when nothing is in flight.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use fiord_options::engine;
use fiord_options::job::JobOptions;
use fiord_options::value::{CommandType, NvmeVerify, NvmeWrite, NvmeWrites, Verify};
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse, Geometry,
    Need, NoGeometry, Op, PlacementUse, Queueing, Tested, TrimRange,
};
use fiord_sys::errno::Errno;
use fiord_sys::memory::{MemorySource, Region};
use fiord_sys::nvme::{self, NVME_URING_CMD_IO, NVME_URING_CMD_IO_VEC, NvmeNamespace};
use fiord_sys::width::{low_u32, to_u32, to_usize};
use io_uring::squeue::Flags;
use io_uring::{cqueue, opcode, squeue};

use crate::boxed::BoxedQueued;
use crate::contract::{Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, Wait};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::local_completions::LocalCompletions;
use crate::nvme_placement::Placements;
use crate::nvme_protection::Protector;
use crate::nvme_target::{self, CommandUse, NvmeTarget, RANGE_BYTES};
use crate::ring_queue::{Every, RingQueue, RingUse, on_file, registered_buffer};
use crate::setup_error::{SetupError, SetupStep};

/// The engine.
#[derive(Debug)]
pub struct IoUringCmd;

/// Its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    ring: RingUse,
    fixed_buffers: bool,
    /// The address of a vector in place of that of the buffer.
    vectored: bool,
    force_async_every: u32,
    kind: CommandType,
    writes: NvmeWrites,
    command: CommandUse,
    placement: Option<PlacementUse>,
    /// Whether what was written is compared with what is read.
    verifies: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of(&JobOptions::default())
    }
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let (ring, own) = (&options.io_uring, &options.io_uring_cmd);
        let checks = own.pi_chk.unwrap_or_default();
        Settings {
            ring: RingUse {
                registered_files: ring.registerfiles.is_some_and(|flag| flag.0),
                submission_thread: ring.sqthread_poll.is_some_and(|flag| flag.0),
                submission_thread_cpu: ring.sqthread_poll_cpu,
                hipri: ring.hipri.is_some_and(|flag| flag.0),
                // A driver without a free request says so at once, and the kernel copies the command then.
                keeps_entries: false,
            },
            fixed_buffers: ring.fixedbufs.is_some_and(|flag| flag.0),
            vectored: ring.nonvectored == 0,
            force_async_every: ring.force_async.unwrap_or(0),
            placement: PlacementUse::of(options),
            verifies: options.verify.verify != Verify::None,
            kind: own.cmd_type,
            writes: own.write_mode.clone(),
            command: CommandUse {
                write: NvmeWrite::Write,
                verify: own.verify_mode,
                force_unit_access: [own.readfua, own.writefua],
                deallocate: own.deac,
                trim_ranges: options.access.num_range.max(1),
                metadata_bytes: own.md_per_io_size.0,
                controller_protects: own.pi_act,
                checks: [checks.guard, checks.application, checks.reference],
                application_tag: [own.apptag, own.apptag_mask]
                    .map(|tag| u16::try_from(tag).unwrap_or(u16::MAX)),
            },
        }
    }
}

/// The size and block of a namespace, in units of what the job's buffers hold of a block.
fn geometry(settings: &EngineSettings, path: &Path) -> Result<Geometry, NoGeometry> {
    let settings = settings.get::<Settings>().cloned().unwrap_or_default();
    let failed = |error: io::Error| {
        let errno = Errno::of(&error).unwrap_or(Errno(libc::EIO));
        NoGeometry { errno, reason: explain_opening(path, errno) }
    };
    if settings.kind == CommandType::Bsg {
        let reason = "cmd_type=bsg is not built: SCSI commands through a ring need Linux 7.1; use ioengine=sg on /dev/sgN";
        return Err(NoGeometry { errno: Errno(libc::EOPNOTSUPP), reason: reason.to_string() });
    }
    let device = File::open(path).map_err(failed)?;
    if !device.metadata().map_err(failed)?.file_type().is_char_device() {
        return Err(failed(io::Error::from_raw_os_error(libc::ENOTTY)));
    }
    let target = NvmeTarget::new(nvme::nvme_namespace(&device).map_err(failed)?, &settings.command);
    let invalid = |reason| NoGeometry { errno: Errno(libc::EINVAL), reason };
    let refused = cannot_verify(&settings, &target).or_else(|| cannot_append(&settings, &target, &device));
    if let Some(reason) = refused {
        return Err(invalid(reason.to_string()));
    }
    if let Some(wanted) = &settings.placement {
        Placements::of(wanted, &device, &target.namespace).map_err(invalid)?;
    }
    let size_bytes = Some(target.namespace.blocks.saturating_mul(target.unit_bytes));
    Ok(Geometry { size_bytes, block_bytes: target.unit_bytes })
}

/// Why what was written may differ from what is read, although the disk is right.
fn cannot_verify(settings: &Settings, target: &NvmeTarget) -> Option<&'static str> {
    let NvmeNamespace { block_bytes, protection, .. } = target.namespace;
    if !settings.verifies {
        None
    } else if !settings.writes.are_plain() && !settings.writes.append() {
        Some(
            "write_mode= writes other data than the job's, which verify= would call corrupted; leave one of them out",
        )
    } else if target.unit_bytes > u64::from(block_bytes) && protection.is_some() {
        Some(
            "protection information is written into the job's buffer (metadata follow the data of each block), which \
             verify= would call corrupted; use pi_chk= in its place",
        )
    } else if settings.command.verify == NvmeVerify::Compare
        && protection.is_some()
        && settings.command.controller_protects
    {
        Some(
            "the controller does not make the protection information of Compare commands; use pi_act=0 with \
             md_per_io_size=, or verify_mode=read",
        )
    } else {
        None
    }
}

/// Why writes cannot be appended to zones.
fn cannot_append(settings: &Settings, target: &NvmeTarget, device: &File) -> Option<&'static str> {
    if !settings.writes.append() {
        None
    } else if nvme::nvme_zones(device).is_err() {
        Some("write_mode=zone_append needs a zoned namespace, and this is none; use write_mode=write")
    } else if target.namespace.protection.is_some() {
        Some(
            "protection information has the number of its block, which the controller chooses in Zone Append; use \
             write_mode=write",
        )
    } else {
        None
    }
}

/// Why a path is not a namespace, and what to do.
fn explain_opening(path: &Path, errno: Errno) -> String {
    match errno.0 {
        libc::ENOTTY => {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let meant = name.strip_prefix("nvme").filter(|rest| rest.contains('n'));
            let meant = meant.map_or_else(String::new, |rest| format!(": /dev/ng{rest}"));
            format!("io_uring_cmd needs the character device of an NVMe namespace (/dev/ngXnY){meant}")
        }
        libc::EACCES | libc::EPERM => {
            format!(
                "{errno}: identifying a namespace needs root before Linux 6.2, and the right to open the device"
            )
        }
        libc::ENOENT | libc::ENXIO | libc::ENODEV => {
            format!("{errno}: `ls /dev/ng*` lists the namespaces of this machine")
        }
        _ => format!("{errno}: the namespace cannot be identified"),
    }
}

/// Its tests, on the NVMe devices of the guest.
const TESTS: &str = "tests/guest/cases/passthrough.rs";
const SHARED: &str = "tests/guest/cases/shared.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "the_block_device_holds_what_was_written_and_trimmed"),
    counts: Tested::By(TESTS, "counts_are_those_of_fio_on_short_and_long_blocks"),
    short: Tested::Never("a command is whole, or an error"),
    interrupted: Tested::By(SHARED, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(SHARED, "a_command_that_fails_is_an_error_of_its_io"),
    gone: Tested::By(SHARED, "a_disk_that_is_taken_away_ends_the_job"),
    stuck: Tested::By(SHARED, "commands_that_are_never_answered_do_not_hold_up_the_end"),
    given_back: Tested::By(SHARED, "jobs_give_back_what_they_took"),
};

impl EngineDefinition for IoUringCmd {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(TESTED),
        example: Some(Example {
            text: "Random reads of an NVMe namespace by commands of its own, past the block layer.",
            commands: "fiord --name=example --ioengine=io_uring_cmd --filename=/dev/ng0n1 --rw=randread --bs=4k --iodepth=8 \\\n    \
                       --size=16m --fixedbufs --registerfiles",
            needs: &[Need {
                what: "an NVMe disk (/dev/ng0n1) that may be read",
                check: "test -r /dev/ng0n1",
            }],
        }),
        files: FileUse::Device,
        geometry: Some(geometry),
        settings: |options| EngineSettings::new(Settings::of(options)),
        trim_ranges_max: nvme_target::RANGES_MAX,
        names_placements: true,
        appends_to_zones: true,
        compares: Some(|settings| {
            let settings = settings.get::<Settings>()?;
            (settings.command.verify == NvmeVerify::Compare).then_some(engine::IoUringCmd::verify_mode)
        }),
        explain: |_, errno| nvme_target::explain(errno),
        ..EngineDescriptor::of(
            EngineName::IoUringCmd,
            "NVMe commands through a ring (Linux 5.19)",
            Queueing::Queued,
        )
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        let engine = IoUringCmdEngine::new(settings, arena, job.files);
        visitor.queued(engine.map(BoxedQueued::new))
    }
}

/// The engine, set up.
pub struct IoUringCmdEngine<'arena> {
    queue: RingQueue<'arena, squeue::Entry128, cqueue::Entry32>,
    targets: Box<[Option<NvmeTarget>]>,
    /// By file: what its writes name, if the job wants them to.
    placements: Box<[Option<Placements>]>,
    /// By slot: its last operation.
    ops: Box<[Op]>,
    side: SideMemory,
    settings: Settings,
    /// How many slots each registered buffer contains.
    slots_per_buffer: Option<u32>,
    force_async: Every,
    writes: WriteMix,
    /// What ended without the ring, and how many of these `submit` has not counted yet.
    local: LocalCompletions<'arena>,
    local_queued: u32,
}

/// Memory of commands beside the buffers, a part for each slot: a vector, metadata, the ranges of a trim.
struct SideMemory {
    region: ManuallyDrop<Region>,
    stride_bytes: usize,
    /// Where in a slot's part the metadata begin.
    metadata_at: usize,
}

/// Where in a slot's part the ranges of a trim begin, after the vector.
const RANGES_AT: usize = size_of::<libc::iovec>();

/// The parts of slots, and their metadata, begin at multiples of that.
const SIDE_ALIGN_BYTES: usize = 64;

impl SideMemory {
    fn new(slots: u32, trim_ranges: u32, metadata_bytes: u64) -> io::Result<SideMemory> {
        let short = || io::Error::from_raw_os_error(libc::ENOMEM);
        let metadata_bytes = usize::try_from(metadata_bytes).map_err(|_| short())?;
        let metadata_at = (RANGES_AT + trim_ranges as usize * RANGE_BYTES).next_multiple_of(SIDE_ALIGN_BYTES);
        let stride_bytes =
            metadata_bytes.checked_add(metadata_at).ok_or_else(short)?.next_multiple_of(SIDE_ALIGN_BYTES);
        let length = stride_bytes.checked_mul(slots as usize).ok_or_else(short)?;
        let region = Region::allocate(&MemorySource::Malloc, length, 4096).map_err(|_| short())?;
        // SAFETY: the region has this length, and nothing else uses it.
        unsafe { std::ptr::write_bytes(region.as_ptr(), 0, length) };
        Ok(SideMemory { region: ManuallyDrop::new(region), stride_bytes, metadata_at })
    }

    /// The part of a slot.
    fn of(&self, index: u32) -> *mut u8 {
        let start = index as usize * self.stride_bytes;
        assert!(start < self.region.len_bytes(), "a slot of another engine");
        // SAFETY: inside the region, as just checked.
        unsafe { self.region.as_ptr().add(start) }
    }

    fn metadata(&self, index: u32) -> *mut u8 {
        // SAFETY: the part of a slot is longer than that.
        unsafe { self.of(index).add(self.metadata_at) }
    }

    /// The place of the ranges of a trim. No command in flight uses it, as the slot is the caller's.
    fn ranges(&mut self, index: u32) -> &mut [[u8; RANGE_BYTES]] {
        let count = (self.metadata_at - RANGES_AT) / RANGE_BYTES;
        // SAFETY: the ranges lie between the vector and the metadata in the slot's part.
        unsafe { std::slice::from_raw_parts_mut(self.of(index).add(RANGES_AT).cast(), count) }
    }

    /// Stores a vector, and returns where.
    fn put_vector(&mut self, index: u32, start: *mut u8, length_bytes: usize) -> u64 {
        let place = self.of(index);
        let vector = libc::iovec { iov_base: start.cast(), iov_len: length_bytes };
        // SAFETY: the part of a slot begins with its vector; no command in flight uses it, as the slot is the caller's.
        unsafe { place.cast::<libc::iovec>().write(vector) };
        place as u64
    }
}

impl<'arena> IoUringCmdEngine<'arena> {
    /// An engine with these settings over these buffers for this many files. To be called on the thread that will do
    /// the I/O.
    ///
    /// # Errors
    /// The call that the kernel refused, with its likely cause.
    pub fn new(
        settings: &Settings,
        arena: Arena<'arena>,
        files: usize,
    ) -> Result<IoUringCmdEngine<'arena>, SetupError> {
        let slots = arena.count();
        let CommandUse { trim_ranges, metadata_bytes, .. } = settings.command;
        let side = SideMemory::new(slots, trim_ranges, metadata_bytes)
            .map_err(|error| SetupError::new(SetupStep::Memory, &error))?;
        let queue = RingQueue::new(&settings.ring, arena, files)?;
        let slots_per_buffer = settings.fixed_buffers.then(|| queue.register_buffers()).transpose()?;
        Ok(IoUringCmdEngine {
            queue,
            targets: vec![None; files].into(),
            placements: std::iter::repeat_with(|| None).take(files).collect(),
            ops: vec![Op::new(Action::Sync, 0, 0, 0); slots as usize].into(),
            side,
            settings: settings.clone(),
            slots_per_buffer,
            force_async: Every::new(settings.force_async_every),
            writes: WriteMix::new(&settings.writes),
            local: LocalCompletions::new(slots),
            local_queued: 0,
        })
    }

    fn target(&self, file: FileIndex) -> Option<&NvmeTarget> {
        self.targets.get(file as usize)?.as_ref()
    }

    /// The protection information that the job makes itself.
    fn protector(&self, target: &NvmeTarget) -> Option<Protector> {
        let CommandUse { controller_protects, checks, application_tag, .. } = self.settings.command;
        let protection = target.namespace.protection.filter(|_| !controller_protects)?;
        Some(Protector { protection, checks, application_tag })
    }

    /// The data and the metadata of each block of an operation that was checked, with its number.
    ///
    /// # Safety
    ///
    /// The slot is not in flight, and nothing else uses its buffer while the blocks are used.
    unsafe fn blocks<'a>(
        &'a self,
        op: &Op,
        index: u32,
        target: &'a NvmeTarget,
    ) -> impl Iterator<Item = (&'a [u8], &'a mut [u8], u64)> {
        let buffer = self.queue.arena.part(index, op);
        let metadata = self.side.metadata(index);
        let data_bytes = target.namespace.block_bytes as usize;
        let (unit_bytes, separate_bytes) = (to_usize(target.unit_bytes), to_usize(target.separate_bytes));
        let (first, blocks) = target.blocks(op);
        (0..to_usize(blocks)).map(move |number| {
            // SAFETY: the part of the buffer has `blocks` units, and there is room for as many separate metadata
            // (`NvmeTarget::refuses`); the ranges do not overlap.
            unsafe {
                let start = buffer.add(number * unit_bytes);
                let data = std::slice::from_raw_parts(start, data_bytes);
                let metadata = match separate_bytes {
                    0 => std::slice::from_raw_parts_mut(start.add(data_bytes), unit_bytes - data_bytes),
                    _ => {
                        std::slice::from_raw_parts_mut(metadata.add(number * separate_bytes), separate_bytes)
                    }
                };
                (data, metadata, first + number as u64)
            }
        })
    }

    /// Makes the protection information of a write, or of what the controller compares.
    fn protect(&mut self, op: &Op, index: u32, target: &NvmeTarget) {
        let sends = op.action == Action::Write || target.compares(op);
        let Some(protector) = self.protector(target).filter(|_| sends) else { return };
        // SAFETY: the slot is held by the caller, and not yet in flight.
        for (data, metadata, block) in unsafe { self.blocks(op, index, target) } {
            protector.protect(data, metadata, block);
        }
    }

    /// The outcome of a completed operation whose data are right, unless protection information says otherwise.
    fn checked(&self, slot: &Slot<'arena>, outcome: Outcome) -> Outcome {
        let index = slot.number();
        let op = &self.ops[slot.index()];
        let Some(target) = self.target(op.file) else { return outcome };
        let reads = op.action == Action::Read && matches!(outcome, Outcome::Done(_));
        let Some(protector) = self.protector(target).filter(|_| reads) else { return outcome };
        // SAFETY: the command has completed.
        let mut blocks = unsafe { self.blocks(op, index, target) };
        match blocks.all(|(data, metadata, block)| protector.is_right(data, metadata, block)) {
            true => outcome,
            false => Outcome::Failed(Errno(libc::EILSEQ)),
        }
    }

    /// Stores the ranges of a trim, and returns how many; `None` if one is not whole blocks.
    fn put_ranges(&mut self, op: &Op, index: u32, target: &NvmeTarget) -> Option<u32> {
        let ranges = self.side.ranges(index);
        let own = TrimRange { offset_bytes: op.offset_bytes, length_bytes: op.length_bytes };
        if self.settings.command.trim_ranges == 1 {
            ranges[0] = target.range(own)?;
            return Some(1);
        }
        let length_bytes = self.settings.command.trim_ranges as usize * TrimRange::STORED_BYTES;
        let list = self.queue.arena.pointer(index, 0, length_bytes as u64);
        // SAFETY: the buffer is that long, and the slot is the caller's.
        let list = unsafe { std::slice::from_raw_parts(list, length_bytes) };
        let mut count = 0;
        for (place, range) in ranges.iter_mut().zip(TrimRange::stored(list)) {
            *place = target.range(range)?;
            count += 1;
        }
        (count > 0).then_some(count)
    }

    /// The entry of an operation that is not refused, with this many ranges if it is a trim.
    fn entry(&mut self, op: &Op, index: u32, target: &NvmeTarget, ranges: u32) -> squeue::Entry128 {
        let mut command = target.command(op);
        if let (Action::Write, Some(placements)) = (op.action, &mut self.placements[op.file as usize]) {
            let words = placements.words(op.offset_bytes);
            command.words_10_15[2] |= words[0];
            command.words_10_15[3] |= words[1];
        }
        let mut kind = NVME_URING_CMD_IO;
        let mut registered = None;
        if target.sends_data(op) {
            self.protect(op, index, target);
            let buffer = self.queue.arena.part(index, op);
            (command.address, command.data_bytes) = (buffer as u64, low_u32(op.length_bytes));
            registered = self.slots_per_buffer.map(|slots| registered_buffer(index, slots));
            if self.settings.vectored && registered.is_none() {
                kind = NVME_URING_CMD_IO_VEC;
                let vector = self.side.put_vector(index, buffer, to_usize(op.length_bytes));
                (command.address, command.data_bytes) = (vector, 1);
            }
            let (_, blocks) = target.blocks(op);
            if target.separate_bytes > 0 {
                command.metadata = self.side.metadata(index) as u64;
                command.metadata_bytes = low_u32(blocks * target.separate_bytes);
            }
        } else if op.action == Action::Trim {
            command.address = self.side.ranges(index).as_ptr() as u64;
            command.data_bytes = ranges * to_u32(RANGE_BYTES);
            command.words_10_15[0] = ranges - 1;
        }
        let data = command.ring_data();
        let entry = on_file!(self.queue, op, |fd| opcode::UringCmd80::new(fd, kind)
            .buf_index(registered)
            .cmd(data)
            .build());
        let entry = entry.user_data(u64::from(index));
        if self.force_async.next() { entry.flags(Flags::ASYNC) } else { entry }
    }
}

/// The commands of writes, in turn.
#[derive(Debug)]
struct WriteMix {
    /// Each with its weight, and how much it has coming: the command with most of that is next.
    commands: Box<[(NvmeWrite, i64, i64)]>,
}

impl WriteMix {
    fn new(writes: &NvmeWrites) -> WriteMix {
        WriteMix {
            commands: writes.0.iter().map(|(command, weight)| (*command, i64::from(*weight), 0)).collect(),
        }
    }

    fn next(&mut self) -> NvmeWrite {
        let mut total = 0;
        for (_, weight, due) in &mut self.commands {
            *due += *weight;
            total += *weight;
        }
        // The first of those with most: the order of the job's option.
        let next = self.commands.iter_mut().rev().max_by_key(|(_, _, due)| *due);
        next.map_or(NvmeWrite::Write, |(command, _, due)| {
            *due -= total;
            *command
        })
    }
}

/// How the operation of a completion ended, apart from its data.
fn outcome(ops: &[Op], targets: &[Option<NvmeTarget>], completion: &cqueue::Entry32) -> Outcome {
    let op = &ops[to_usize(completion.user_data())];
    match completion.result() {
        0 => match targets.get(op.file as usize).and_then(Option::as_ref) {
            Some(target) if target.appends() && op.action == Action::Write => {
                // The result of the command: two words of its completion, as one number.
                let place = target.appended_bytes(op, completion.big_cqe()[0]);
                place.map_or(Outcome::Failed(Errno(libc::EPROTO)), Outcome::Appended)
            }
            _ => Outcome::whole(op),
        },
        error if error < 0 => Outcome::Failed(Errno(-error)),
        status => Outcome::Failed(nvme_target::errno_of(status.cast_unsigned())),
    }
}

impl<'arena> Engine<'arena> for IoUringCmdEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        let mut target = NvmeTarget::new(nvme::nvme_namespace(fd)?, &self.settings.command);
        if self.settings.writes.append() {
            target = target.appending_to(nvme::nvme_zones(fd)?);
        }
        if let Some(wanted) = &self.settings.placement {
            let placements = Placements::of(wanted, fd, &target.namespace).map_err(io::Error::other)?;
            self.placements[file as usize] = Some(placements);
        }
        self.queue.attach(file, fd)?;
        self.targets[file as usize] = Some(target);
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.queue.detach(file);
        if let Some(target) = self.targets.get_mut(file as usize) {
            *target = None;
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        self.queue.access()
    }
}

impl<'arena> QueuedEngine<'arena> for IoUringCmdEngine<'arena> {
    /// An operation that no command can be made of ends without the ring.
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let target = self.target(op.file).copied().ok_or(Errno(libc::EBADF));
        let write = if op.action == Action::Write { self.writes.next() } else { NvmeWrite::Write };
        let target = target.map(|target| target.writing_by(write));
        let target = target.and_then(|target| target.refuses(&op).map_or(Ok(target), Err));
        let target = match target {
            Ok(target) => target,
            Err(errno) => {
                self.local.push(slot, Outcome::Failed(errno));
                self.local_queued += 1;
                return Ok(());
            }
        };
        let ranges = match op.action {
            Action::Trim => self.put_ranges(&op, slot.number(), &target),
            Action::Read
            | Action::Write
            | Action::ResetZone
            | Action::Sync
            | Action::DataSync
            | Action::RangeSync(_) => Some(0),
        };
        let Some(ranges) = ranges else {
            self.local.push(slot, Outcome::Failed(Errno(libc::EINVAL)));
            self.local_queued += 1;
            return Ok(());
        };
        let index = slot.into_index();
        self.ops[index as usize] = op;
        let entry = self.entry(&op, index, &target, ranges);
        // SAFETY: the entry names a part of the slot's buffer and its part of `side`, which is released only when
        // nothing is in flight.
        unsafe { self.queue.push(&entry, index) }
    }

    fn submit(&mut self) -> io::Result<u32> {
        Ok(std::mem::take(&mut self.local_queued) + self.queue.submit()?)
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        let local = if self.local.len() > 0 { self.local.drain(max, done) } else { 0 };
        let (before, ops, targets) = (done.len(), &self.ops, &self.targets);
        let (min, max) = (min.saturating_sub(local), max - local);
        let reaped = self.queue.reap(min, max, wait, done, |completion| outcome(ops, targets, completion));
        self.check(&mut done[before..]);
        reaped
    }

    fn submit_and_wait(&mut self, done: &mut Vec<Completion<'arena>>) -> io::Result<u32> {
        if self.local.len() > 0 {
            let taken = self.submit()?;
            return self.reap(1, 1, Wait::Block, done).map(|()| taken);
        }
        let (before, ops, targets) = (done.len(), &self.ops, &self.targets);
        let taken = self.queue.submit_and_wait(done, |completion| outcome(ops, targets, completion));
        self.check(&mut done[before..]);
        taken
    }
}

impl<'arena> IoUringCmdEngine<'arena> {
    /// Checks the protection information of what was read.
    fn check(&self, done: &mut [Completion<'arena>]) {
        if !self.settings.command.controller_protects {
            done.iter_mut().for_each(|one| one.outcome = self.checked(&one.slot, one.outcome));
        }
    }
}

impl Drop for IoUringCmdEngine<'_> {
    fn drop(&mut self) {
        if self.queue.wait_until_idle() {
            // SAFETY: no command uses it any more, and it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.side.region) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // divergence: `cmd_type=bsg` with
    #[test]
    fn a_file_is_no_namespace_and_the_message_names_the_device_that_was_meant() {
        let settings = EngineSettings::new(Settings::default());
        let refused = geometry(&settings, Path::new("/proc/self/exe")).unwrap_err();
        assert!(refused.errno == Errno(libc::ENOTTY) && refused.reason.contains("/dev/ngXnY"), "{refused:?}");
        assert!(geometry(&settings, Path::new("/dev/null")).is_err());
        let scsi = EngineSettings::new(Settings { kind: CommandType::Bsg, ..Settings::default() });
        let refused = geometry(&scsi, Path::new("/dev/null")).unwrap_err();
        assert!(refused.reason.contains("ioengine=sg"), "{refused:?}");
        let meant = explain_opening(Path::new("/dev/nvme1n2"), Errno(libc::ENOTTY));
        assert!(meant.ends_with(": /dev/ng1n2"), "{meant}");
    }

    #[test]
    fn parts_of_slots_do_not_overlap() {
        let mut side = SideMemory::new(2, 5, 100).unwrap();
        assert_eq!(side.of(1) as usize - side.of(0) as usize, 256);
        let vector = side.put_vector(1, std::ptr::null_mut(), 5);
        let ranges = side.ranges(1).as_ptr_range();
        assert_eq!((vector, ranges.start as u64 - vector), (side.of(1) as u64, 16));
        assert!(side.ranges(1).len() >= 5 && ranges.end as usize <= side.metadata(1) as usize);
        assert_eq!(side.metadata(1) as u64 - vector, 128);
        assert!(SideMemory::new(2, 1, u64::MAX).is_err());
        // SAFETY: it is not used after this.
        unsafe { ManuallyDrop::drop(&mut side.region) };
    }

    #[test]
    fn options_become_settings() {
        let mut options = JobOptions::default();
        assert!(Settings::of(&options).command.controller_protects);
        options.io_uring_cmd.write_mode = NvmeWrites(vec![(NvmeWrite::Zeroes, 100)]);
        options.io_uring_cmd.apptag = 7;
        let settings = Settings::of(&options);
        assert_eq!(settings.command.application_tag, [7, 0xffff]);
        assert!(!settings.writes.are_plain());
    }

    #[test]
    fn commands_of_writes_take_turns_in_their_shares() {
        let weights = [(NvmeWrite::Write, 120), (NvmeWrite::Zeroes, 60), (NvmeWrite::Verify, 120)];
        let mut mix = WriteMix::new(&NvmeWrites(weights.to_vec()));
        let issued: Vec<NvmeWrite> = (0..100).map(|_| mix.next()).collect();
        let count = |command: NvmeWrite| issued.iter().filter(|issued| **issued == command).count();
        assert_eq!(weights.map(|(command, _)| count(command)), [40, 20, 40]);
        assert_eq!(issued[..2], [NvmeWrite::Write, NvmeWrite::Verify], "not one after all of the other");
    }
}

//! sg: SCSI commands through the `sg` driver: queued on a character device (`/dev/sgN`), one at a time on a block device.
//!
//! Invariant: the memory that a request names (the slot's buffer and its part of `requests`) is used by nothing else until
//! its answer has been received. Trims that are submitted together are one command, whose slots end together.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use fiord_options::job::JobOptions;
use fiord_options::value::ScsiWrite;
use fiord_plan::{
    Action, EngineDescriptor, EngineName, EngineSettings, EngineTests, Example, FileIndex, FileUse, Geometry,
    Need, NoGeometry, Op, Queueing, Tested,
};
use fiord_sys::errno::{Errno, error_text};
use fiord_sys::file::OpenHow;
use fiord_sys::sg::{self, FLAG_POLLED, SENSE_BYTES, ScsiDisk, SgData, SgRequest};
use fiord_sys::stat::{self, InodeKind};
use fiord_sys::width::{low_u32, to_u32};

use crate::boxed::BoxedQueued;
use crate::contract::{Arena, ArenaAccess, Completion, Engine, Outcome, QueuedEngine, Slot, Wait};
use crate::definition::{EngineDefinition, Setup, Visitor};
use crate::local_completions::LocalCompletions;
use crate::scsi_command::{self, CommandUse, ScsiCommand, Transfer, UNMAP_HEADER_BYTES, UNMAP_RANGE_BYTES};

/// How long a disk may take, as the kernel has it for its own requests.
const TIMEOUT_MS: u32 = 60_000;

/// The most trims of one command.
const RANGES_MAX: usize = 64;

/// No slot.
const NONE: u32 = u32::MAX;

/// The engine.
#[derive(Debug)]
pub struct Sg;

/// Its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    command: CommandUse,
    polled: bool,
    stream: u16,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::of(&JobOptions::default())
    }
}

impl Settings {
    /// Those of a job's options.
    fn of(options: &JobOptions) -> Settings {
        let own = &options.sg;
        Settings {
            command: CommandUse { write: own.sg_write_mode, force_unit_access: [own.readfua, own.writefua] },
            polled: own.hipri.is_some_and(|flag| flag.0),
            stream: u16::try_from(own.stream_id).unwrap_or(u16::MAX),
        }
    }
}

/// The size and block of a disk.
fn geometry(_settings: &EngineSettings, path: &Path) -> Result<Geometry, NoGeometry> {
    let failed = |error: io::Error| {
        let errno = Errno::of(&error).unwrap_or(Errno(libc::EIO));
        let reason = match errno.0 {
            libc::ENOTTY | libc::EINVAL => {
                "the engine sg needs a SCSI disk: /dev/sgN (modprobe sg), or its block device /dev/sdX"
                    .to_string()
            }
            libc::EACCES | libc::EPERM => {
                format!("{errno}: SCSI commands need root, or the right to open it")
            }
            _ => format!("{errno}: the disk does not tell its capacity"),
        };
        NoGeometry { errno, reason }
    };
    let device = File::open(path).map_err(failed)?;
    let kind = device.metadata().map_err(failed)?.file_type();
    if !kind.is_char_device() && !kind.is_block_device() {
        return Err(failed(io::Error::from_raw_os_error(libc::ENOTTY)));
    }
    let disk = sg::scsi_disk(&device).map_err(failed)?;
    let block_bytes = u64::from(disk.block_bytes);
    Ok(Geometry { size_bytes: Some(disk.blocks.saturating_mul(block_bytes)), block_bytes })
}

/// Its tests, on the SCSI disks of the guest.
const TESTS: &str = "tests/guest/cases/commands.rs";
const SHARED: &str = "tests/guest/cases/shared.rs";

const TESTED: EngineTests = EngineTests {
    data: Tested::By(TESTS, "the_disk_holds_what_was_written_and_trimmed"),
    counts: Tested::By(TESTS, "a_scsi_disk_is_driven_as_by_fio_through_both_of_its_devices"),
    short: Tested::Never("a command is whole, or an error"),
    interrupted: Tested::By(SHARED, "a_process_that_is_stopped_and_continued_loses_no_io"),
    error: Tested::By(TESTS, "errors_of_the_medium_end_the_job_or_are_counted"),
    gone: Tested::By(SHARED, "a_disk_that_is_taken_away_ends_the_job"),
    stuck: Tested::By(SHARED, "commands_that_are_never_answered_do_not_hold_up_the_end"),
    given_back: Tested::By(SHARED, "jobs_give_back_what_they_took"),
};

impl EngineDefinition for Sg {
    type Settings = Settings;

    const DESCRIPTOR: &'static EngineDescriptor = &EngineDescriptor {
        tests: Some(TESTED),
        example: Some(Example {
            text: "Reads of a SCSI disk by commands that do not take the data from a cache of the disk.",
            commands: "fiord --name=example --ioengine=sg --filename=/dev/sg0 --rw=read --bs=64k --size=4m --readfua=1",
            needs: &[Need {
                what: "a SCSI disk as /dev/sg0 (modprobe -a sg scsi_debug)",
                check: "grep -q scsi_debug /sys/class/scsi_generic/sg0/device/model",
            }],
        }),
        files: FileUse::Device,
        geometry: Some(geometry),
        settings: |options| EngineSettings::new(Settings::of(options)),
        explain: |_, errno| scsi_command::explain(errno),
        ..EngineDescriptor::of(EngineName::Sg, "SCSI commands through the sg driver", Queueing::Queued)
    };

    fn set_up<'a, V: Visitor<'a>>(settings: &Settings, setup: Setup<'_, 'a>, visitor: V) -> V::Output {
        let Setup { job, arena } = setup;
        visitor.queued(Ok(BoxedQueued::new(SgEngine::new(settings, arena, job.files))))
    }
}

/// The engine, set up.
#[derive(Debug)]
pub struct SgEngine<'arena> {
    targets: Box<[Option<Target>]>,
    /// By slot.
    requests: Box<[SlotRequest]>,
    /// Slots to be submitted, in order.
    queued: Vec<u32>,
    in_flight: u32,
    /// The character devices that are open, to wait for.
    polled: Vec<libc::pollfd>,
    local: LocalCompletions<'arena>,
    settings: Settings,
    arena: Arena<'arena>,
}

/// An open disk.
#[derive(Debug)]
struct Target {
    fd: RawFd,
    /// The device once more, open for writing, where the job opened it for reading alone: requests are sent with `write`.
    _again: Option<File>,
    disk: ScsiDisk,
    /// Whether requests are queued, as on a character device.
    queues: bool,
    stream: u16,
    /// Whether the stream was opened for the job.
    owns_stream: bool,
}

/// The memory of a slot's request.
#[derive(Debug)]
struct SlotRequest {
    op: Op,
    command: [u8; 16],
    sense: [u8; SENSE_BYTES],
    unmap: [u8; UNMAP_HEADER_BYTES + RANGES_MAX * UNMAP_RANGE_BYTES],
    /// The next slot whose trim is in the same command.
    next: u32,
}

impl<'arena> SgEngine<'arena> {
    /// An engine with these settings over these buffers for this many files.
    pub fn new(settings: &Settings, arena: Arena<'arena>, files: usize) -> SgEngine<'arena> {
        let slots = arena.count();
        let request = || SlotRequest {
            op: Op::new(Action::Sync, 0, 0, 0),
            command: [0; 16],
            sense: [0; SENSE_BYTES],
            unmap: [0; UNMAP_HEADER_BYTES + RANGES_MAX * UNMAP_RANGE_BYTES],
            next: NONE,
        };
        SgEngine {
            targets: (0..files).map(|_| None).collect(),
            requests: (0..slots).map(|_| request()).collect(),
            queued: Vec::with_capacity(slots as usize),
            in_flight: 0,
            polled: Vec::with_capacity(files),
            local: LocalCompletions::new(slots),
            settings: *settings,
            arena,
        }
    }

    fn target(&self, file: FileIndex) -> Option<&Target> {
        self.targets.get(file as usize)?.as_ref()
    }

    /// How many of the queued operations are one command: the first alone, or the trims of the same disk that begin the
    /// queue.
    fn together(&self, disk: &ScsiDisk) -> usize {
        let first = self.requests[self.queued[0] as usize].op;
        let block_bytes = u64::from(disk.block_bytes);
        let is_refused = |op: &Op| scsi_command::refuses(op, block_bytes, ScsiWrite::Write).is_some();
        let most = RANGES_MAX.min(disk.unmap_ranges_max as usize);
        let is_same = |slot: &&u32| {
            let op = &self.requests[**slot as usize].op;
            op.action == Action::Trim && op.file == first.file && !is_refused(op)
        };
        self.queued.iter().take_while(is_same).take(most).count().max(1)
    }

    /// The request of the first queued operation, and of those that are one command with it.
    fn request(&mut self, disk: &ScsiDisk, stream: u16, count: usize) -> SgRequest {
        let block_bytes = u64::from(disk.block_bytes);
        let first = self.queued[0];
        let op = self.requests[first as usize].op;
        for pair in self.queued[..count].windows(2) {
            self.requests[pair[0] as usize].next = pair[1];
        }
        self.requests[self.queued[count - 1] as usize].next = NONE;
        if op.action == Action::Trim {
            return self.unmap(first, count, block_bytes);
        }
        let command = scsi_command::command(&op, block_bytes, &self.settings.command, stream);
        let (start, length) = match command.transfer {
            Transfer::None => (std::ptr::null_mut(), 0),
            Transfer::FromDisk | Transfer::ToDisk | Transfer::FirstToDisk => {
                (self.arena.part(first, &op), low_u32(op.length_bytes))
            }
        };
        let data = match command.transfer {
            Transfer::None => SgData::None,
            Transfer::FromDisk => SgData::FromDevice(start, length),
            Transfer::ToDisk => SgData::ToDevice(start, length),
            Transfer::FirstToDisk => SgData::ToDevice(start, disk.block_bytes),
        };
        let request = self.of_slot(first, &command, data);
        let is_plain = op.action == Action::Read
            || (op.action == Action::Write && self.settings.command.write == ScsiWrite::Write);
        if self.settings.polled && is_plain { request.with_flag(FLAG_POLLED) } else { request }
    }

    /// The request of the trims that begin with this slot's.
    fn unmap(&mut self, first: u32, count: usize, block_bytes: u64) -> SgRequest {
        for (place, slot) in self.queued[..count].iter().enumerate() {
            let range = scsi_command::unmap_range(&self.requests[*slot as usize].op, block_bytes);
            let start = UNMAP_HEADER_BYTES + place * UNMAP_RANGE_BYTES;
            self.requests[first as usize].unmap[start..start + UNMAP_RANGE_BYTES].copy_from_slice(&range);
        }
        let own = &mut self.requests[first as usize];
        own.unmap[..UNMAP_HEADER_BYTES].copy_from_slice(&scsi_command::unmap_header(count));
        let length = UNMAP_HEADER_BYTES + count * UNMAP_RANGE_BYTES;
        let data = SgData::ToDevice(own.unmap.as_mut_ptr(), to_u32(length));
        self.of_slot(first, &scsi_command::unmap(count), data)
    }

    fn of_slot(&mut self, slot: u32, command: &ScsiCommand, data: SgData) -> SgRequest {
        let own = &mut self.requests[slot as usize];
        own.command = command.bytes;
        SgRequest::new(&own.command[..command.length], data, &mut own.sense, slot.cast_signed(), TIMEOUT_MS)
    }

    /// Submits the first queued operations that are one command; how many, or the error if none was taken.
    fn submit_first(&mut self) -> io::Result<usize> {
        let first = self.queued[0];
        let Some(target) = self.target(self.requests[first as usize].op.file) else {
            return Err(Errno(libc::EBADF).into());
        };
        let (fd, disk, queues, stream) = (target.fd, target.disk, target.queues, target.stream);
        let (op, write) = (&self.requests[first as usize].op, self.settings.command.write);
        if let Some(errno) = scsi_command::refuses(op, u64::from(disk.block_bytes), write) {
            return Err(errno.into());
        }
        let count = self.together(&disk);
        let mut request = self.request(&disk, stream, count);
        // SAFETY: the request names the slot's buffer and its part of `requests`, which stay where they are, and which
        // nothing else uses until it is answered.
        unsafe { if queues { sg::send(fd, &request) } else { sg::execute(fd, &mut request) } }?;
        self.queued.drain(..count);
        if queues {
            self.in_flight += to_u32(count);
        } else {
            self.answered(&request);
        }
        Ok(count)
    }

    /// Ends the first queued operation with an error of its own.
    fn fail_first(&mut self, errno: Errno) {
        let slot = self.queued.remove(0);
        self.local.push(Slot::from_index(slot), Outcome::Failed(errno));
    }

    /// Ends the operations of an answered request; how many.
    fn answered(&mut self, answer: &SgRequest) -> u32 {
        let first = answer.number().cast_unsigned();
        let result = answer.result(&self.requests[first as usize].sense);
        let (mut slot, mut count) = (first, 0);
        while slot != NONE {
            let own = &self.requests[slot as usize];
            let outcome = match (result, Outcome::whole(&own.op)) {
                (Err(errno), _) => Outcome::Failed(errno),
                (Ok(()), Outcome::Done(bytes)) if own.op.action == Action::Trim => Outcome::Done(bytes),
                (Ok(()), Outcome::Done(bytes)) => {
                    Outcome::Done(bytes.saturating_sub(answer.residual_bytes() as u64))
                }
                (Ok(()), other @ (Outcome::Appended(_) | Outcome::Failed(_))) => other,
            };
            let next = own.next;
            self.local.push(Slot::from_index(slot), outcome);
            (slot, count) = (next, count + 1);
        }
        count
    }

    /// Waits for answers until the time has passed; whether there are any.
    fn wait(&mut self, wait: Wait) -> io::Result<bool> {
        let time_ns = match wait {
            Wait::Poll => Some(0),
            Wait::For(time_ns) => Some(time_ns),
            // A device that is alone is read at once, which waits.
            Wait::Block if self.polled.len() == 1 => {
                self.polled[0].revents = libc::POLLIN;
                return Ok(true);
            }
            Wait::Block => None,
        };
        sg::wait(&mut self.polled, time_ns)
    }

    /// Receives one answer from each device that has one.
    fn receive(&mut self) -> io::Result<()> {
        for place in 0..self.polled.len() {
            let libc::pollfd { fd, revents, .. } = self.polled[place];
            if revents != 0 {
                let answer = sg::receive(fd)?;
                self.in_flight -= self.answered(&answer);
            }
        }
        Ok(())
    }
}

/// Opens a device once more, for writing.
#[allow(
    clippy::disallowed_methods,
    reason = "a device that is open already, to which nothing but reads are sent"
)]
fn open_again(fd: BorrowedFd<'_>) -> io::Result<File> {
    let path = format!("/proc/thread-self/fd/{}", fd.as_raw_fd());
    fiord_sys::file::open(Path::new(&path), &OpenHow::READ_WRITE).map_err(|error| {
        let why =
            format!("it cannot be opened for writing ({}), which every command needs", error_text(&error));
        io::Error::new(error.kind(), why)
    })
}

impl<'arena> Engine<'arena> for SgEngine<'arena> {
    fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>, _length_bytes: u64) -> io::Result<()> {
        let disk = sg::scsi_disk(fd)?;
        let is_character_device = stat::fstat(fd)?.kind == InodeKind::Char;
        let writes_streams = self.settings.command.write == ScsiWrite::WriteStream;
        let owns_stream = writes_streams && self.settings.stream == 0;
        let stream = match owns_stream {
            true => sg::stream_control(fd, None).map_err(|error| {
                io::Error::new(
                    error.kind(),
                    format!("no stream can be opened ({}); name one with stream_id=", error_text(&error)),
                )
            })?,
            false => self.settings.stream,
        };
        let place = self.targets.get_mut(file as usize);
        let place = place.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        let again = if is_character_device && !stat::is_writable(fd)? { Some(open_again(fd)?) } else { None };
        let fd = again.as_ref().map_or(fd.as_raw_fd(), AsRawFd::as_raw_fd);
        let queues = is_character_device;
        *place = Some(Target { fd, _again: again, disk, queues, stream, owns_stream });
        if queues {
            self.polled.push(libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        }
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        let Some(target) = self.targets.get_mut(file as usize).and_then(Option::take) else { return };
        self.polled.retain(|polled| polled.fd != target.fd);
        if target.owns_stream {
            // SAFETY: the file stays open until this returns.
            let fd = unsafe { BorrowedFd::borrow_raw(target.fd) };
            // The disk closes it otherwise when it needs it.
            let _ = sg::stream_control(fd, Some(target.stream));
        }
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena> QueuedEngine<'arena> for SgEngine<'arena> {
    fn queue(&mut self, op: Op, slot: Slot<'arena>) -> Result<(), Slot<'arena>> {
        let index = slot.into_index();
        self.requests[index as usize].op = op;
        self.queued.push(index);
        Ok(())
    }

    fn submit(&mut self) -> io::Result<u32> {
        let mut taken = 0;
        while !self.queued.is_empty() {
            match self.submit_first() {
                Ok(count) => taken += to_u32(count),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    // The device has as many requests as it takes.
                    Some(libc::EDOM | libc::EAGAIN | libc::ENOMEM | libc::EBUSY) if self.in_flight > 0 => {
                        break;
                    }
                    errno => {
                        self.fail_first(Errno(errno.unwrap_or(libc::EIO)));
                        taken += 1;
                    }
                },
            }
        }
        Ok(taken)
    }

    fn reap(&mut self, min: u32, max: u32, wait: Wait, done: &mut Vec<Completion<'arena>>) -> io::Result<()> {
        if !self.queued.is_empty() {
            self.submit()?;
        }
        let wanted = if wait == Wait::Poll { max } else { min.min(max) };
        while self.local.len() < wanted && self.in_flight > 0 {
            let received = self.wait(wait).and_then(|ready| {
                if ready {
                    self.receive()?;
                }
                Ok(ready)
            });
            let go_on = match received {
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => false,
                received => received? && !matches!(wait, Wait::For(_)),
            };
            if !self.queued.is_empty() {
                self.submit()?;
            }
            if !go_on {
                break;
            }
        }
        self.local.drain(max, done);
        Ok(())
    }
}

impl Drop for SgEngine<'_> {
    fn drop(&mut self) {
        while self.in_flight > 0 {
            let ready = self.wait(Wait::Block);
            let received = ready.and_then(|_| self.receive());
            match received {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => break,
                _ => {}
            }
        }
        if self.in_flight > 0 {
            self.arena.leak();
            // The kernel may still have their addresses.
            std::mem::forget(std::mem::take(&mut self.requests));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_no_scsi_disk() {
        let settings = EngineSettings::new(Settings::default());
        let refused = geometry(&settings, Path::new("/proc/self/exe")).unwrap_err();
        assert!(refused.reason.contains("/dev/sgN"), "{refused:?}");
        assert!(geometry(&settings, Path::new("/dev/null")).is_err());
    }

    #[test]
    fn options_become_settings() {
        let mut options = JobOptions::default();
        options.sg.sg_write_mode = ScsiWrite::WriteStream;
        options.sg.stream_id = 3;
        let settings = Settings::of(&options);
        assert_eq!((settings.command.write, settings.stream), (ScsiWrite::WriteStream, 3));
    }
}

//! I/O between files and memory of an NVIDIA GPU, by `libcufile.so.0`.
//!
//! Invariant: the driver is open from the first registered memory until the last. Batches and files are given back before
//! it, and a batch not while operations are in flight, for which its owner vouches.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::RawFd;
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::cuda::{DeviceMemory, GpuError};
use super::{CAN_LOAD, Connection, Unavailable, functions};
use crate::clock::c_timespec;
use crate::errno::Errno;
use crate::width::{low_u32, to_u32};

functions! {
    /// Functions of libcufile. The driver is closed by the name that its header makes of the one without a number.
    #[allow(non_snake_case, reason = "the library's names")]
    struct Cufile from "libcufile.so.0" of package "libcufile0, from Debian's non-free or the repository of CUDA";
    fn cuFileDriverOpen() -> Status;
    fn cuFileDriverClose_v2() -> Status;
    fn cuFileDriverGetProperties(*mut Properties) -> Status;
    fn cuFileHandleRegister(*mut *mut c_void, *mut Descriptor) -> Status;
    fn cuFileHandleDeregister(*mut c_void);
    fn cuFileBufRegister(*const c_void, usize, c_int) -> Status;
    fn cuFileBufDeregister(*const c_void) -> Status;
    fn cuFileRead(*mut c_void, *mut c_void, usize, libc::off64_t, libc::off64_t) -> isize;
    fn cuFileWrite(*mut c_void, *const c_void, usize, libc::off64_t, libc::off64_t) -> isize;
    fn cuFileBatchIOSetUp(*mut *mut c_void, c_uint) -> Status;
    fn cuFileBatchIOSubmit(*mut c_void, c_uint, *mut Request, c_uint) -> Status;
    fn cuFileBatchIOGetStatus(*mut c_void, c_uint, *mut c_uint, *mut Event, *mut libc::timespec) -> Status;
    fn cuFileBatchIODestroy(*mut c_void);
}

functions! {
    /// Statistics of libcufile, which version 1.15 brought.
    #[allow(non_snake_case, reason = "the library's names")]
    struct Statistics from "libcufile.so.0" of package "libcufile0";
    fn cuFileGetStatsL3(*mut Counts) -> Status;
}

/// The number that cuFile gives errors of CUDA.
pub const CUDA_DRIVER_ERROR: i32 = 5011;

/// The driver is open already.
const DRIVER_ALREADY_OPEN: i32 = 5026;

/// `CUfileError_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    error: c_int,
    cuda_error: c_int,
}

impl Status {
    /// The result of a call.
    #[inline]
    fn of(self, call: &'static str) -> Result<(), GpuError> {
        match self {
            Status { error: 0, .. } => Ok(()),
            Status { error: CUDA_DRIVER_ERROR, cuda_error } if cuda_error != 0 => {
                Err(GpuError::Cuda(call, cuda_error))
            }
            Status { error, .. } => Err(GpuError::Cufile(call, error)),
        }
    }
}

/// `CUfileDescr_t` of a file descriptor. On 32-bit processors, which have no such library, its size would be another.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Descriptor {
    /// `CU_FILE_HANDLE_TYPE_OPAQUE_FD`.
    kind: c_int,
    /// A union with a pointer.
    handle: usize,
    file_system: *const c_void,
}

/// `CUfileIOParams_t`: one operation of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Request {
    mode: c_int,
    base: *mut c_void,
    file_offset: libc::off64_t,
    memory_offset: libc::off64_t,
    length_bytes: usize,
    file: *mut c_void,
    command: c_int,
    cookie: *mut c_void,
}

impl Request {
    /// The number that its end will have.
    #[inline]
    pub fn number(&self) -> u32 {
        low_u32(self.cookie.addr() as u64)
    }
}

/// `CUfileIOEvents_t`: the end of one.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Event {
    cookie: *mut c_void,
    status: c_int,
    result: usize,
}

/// `CUFILE_COMPLETE`.
const COMPLETE: c_int = 0x10;

impl Event {
    /// The number that the operation was given.
    #[inline]
    pub fn number(&self) -> u32 {
        low_u32(self.cookie.addr() as u64)
    }

    /// Bytes, or a negative error: of the kernel, or of cuFile from 5001 on.
    #[inline]
    pub fn result(&self) -> i64 {
        let result = self.result.cast_signed() as i64;
        match self.status {
            COMPLETE => result,
            _ if result < -1 => result,
            // CUFILE_INVALID, CUFILE_CANCELED, CUFILE_TIMEOUT; CUFILE_FAILED.
            0x04 => -i64::from(libc::EINVAL),
            0x08 => -i64::from(libc::ECANCELED),
            0x20 => -i64::from(libc::ETIMEDOUT),
            _ => -i64::from(libc::EIO),
        }
    }
}

/// What `CUfileDrvProps_t` begins with: fields that differ between versions are behind, where there is room for them.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Properties {
    nvidia_fs: [c_uint; 2],
    poll_threshold: usize,
    direct_io_max: usize,
    storage: c_uint,
    control: c_uint,
    features: c_uint,
    others: [u64; 16],
}

/// `CUfileOpCounter_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    ok: u64,
    failed: u64,
}

/// `CUfileStatsLevel3_t`, with the fields of the levels below it that are used, and with room for further ones behind.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counts {
    calls: [u64; 22],
    batches: [Counter; 8],
    batch_posix_processed: Counter,
    batch_others: [u64; 24],
    sizes: [u64; 64],
    gpu_count: u32,
    gpus: [GpuCounts; 16],
    others: [u64; 128],
}

/// `CUfilePerGpuStats_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct GpuCounts {
    uuid: [u8; 16],
    read: [u64; 7],
    posix_reads: u64,
    read_others: [u64; 5],
    written: [u64; 7],
    posix_writes: u64,
    written_others: [u64; 3],
    registrations: [u64; 5],
}

/// By which ways cuFile moves bytes, as it says itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ways {
    /// The version of nvidia-fs; zeros where it is not loaded.
    pub nvidia_fs: [u32; 2],
    /// Storage that can be reached directly, a bit for each kind.
    pub storage: u32,
    /// Whether bytes may go through the memory of this machine (`allow_compat_mode`).
    pub may_copy: bool,
    /// Whether there may be direct ways that are not among the bits of the storage (`CU_FILE_P2P_SUPPORTED`).
    pub has_others: bool,
    /// At least so many I/Os went through the memory of this machine; `None` unless cuFile counts them (`cufile_stats`), and
    /// until its driver is closed.
    pub copied_ios: Option<u64>,
}

/// What was told since it was last forgotten.
static WAYS: Mutex<Option<Ways>> = Mutex::new(None);

/// What cuFile said in this run; `None` if it was not used.
#[inline]
pub fn ways() -> Option<Ways> {
    if CAN_LOAD { *WAYS.lock().unwrap_or_else(PoisonError::into_inner) } else { None }
}

/// A new run begins, of which cuFile has said nothing yet.
pub fn forget_ways() {
    *WAYS.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

impl Cufile {
    /// Asks for the properties of the driver, which is open. Without an answer nothing is known of its ways.
    fn ask(&self) {
        let mut told = Properties::default();
        // SAFETY: there is room for what the call writes.
        let answer = unsafe { (self.cuFileDriverGetProperties)(&raw mut told) };
        let mut known = WAYS.lock().unwrap_or_else(PoisonError::into_inner);
        let ways = Ways {
            nvidia_fs: told.nvidia_fs,
            storage: told.storage,
            may_copy: told.control & (1 << 1) != 0,
            has_others: told.features & (1 << 4) != 0,
            // An earlier job of the run may have closed the driver, and its counts with it.
            copied_ios: known.and_then(|earlier| earlier.copied_ios),
        };
        *known = (answer.error == 0).then_some(ways);
    }
}

/// Reads the counts of the driver, which is about to be closed. Older libraries have none, and others refuse to tell unless
/// they keep them.
fn count_copied() {
    let Ok(functions) = Statistics::get() else { return };
    // SAFETY: zeros are valid counts.
    let mut counts: Counts = unsafe { std::mem::zeroed() };
    // SAFETY: there is room for what the call writes.
    if unsafe { (functions.cuFileGetStatsL3)(&raw mut counts) }.error == 0
        && let Some(ways) = WAYS.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
    {
        let gpus = counts.gpus.iter().take(counts.gpu_count as usize);
        let single: u64 = gpus.map(|gpu| gpu.posix_reads.saturating_add(gpu.posix_writes)).sum();
        // Whether those of batches are among the others is not said.
        let all = single.max(counts.batch_posix_processed.ok);
        ways.copied_ios = Some(ways.copied_ios.unwrap_or(0).saturating_add(all));
    }
}

/// A part of registered memory, and where it belongs in a file.
#[derive(Debug, Clone, Copy)]
pub struct DevicePart {
    /// Where in the memory, in bytes.
    pub memory_offset_bytes: usize,
    /// How much, in bytes.
    pub length_bytes: usize,
    /// Where in the file, in bytes.
    pub file_offset_bytes: u64,
}

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the file.
    Read,
    /// To the file.
    Write,
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Cufile::get().map(drop)
}

/// How many have opened the driver, which the library keeps for the whole process.
static USERS: Mutex<u32> = Mutex::new(0);

/// The driver, open.
#[derive(Debug)]
struct Driver {
    functions: &'static Cufile,
    /// Threads of the library.
    _connection: Connection,
}

impl Driver {
    fn open() -> Result<Driver, GpuError> {
        let functions = Cufile::get()?;
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        if *users == 0 {
            // SAFETY: the call takes nothing.
            match unsafe { (functions.cuFileDriverOpen)() } {
                Status { error: 0 | DRIVER_ALREADY_OPEN, .. } => {}
                refused => refused.of("cuFileDriverOpen")?,
            }
            functions.ask();
        }
        *users += 1;
        Ok(Driver { functions, _connection: Connection::opened() })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
        *users -= 1;
        if *users == 0 {
            count_copied();
            // SAFETY: nobody uses the driver any more. An error would change nothing.
            unsafe { (self.functions.cuFileDriverClose_v2)() };
        }
    }
}

/// Memory of a GPU that cuFile knows.
#[derive(Debug)]
pub struct RegisteredMemory {
    driver: Driver,
    memory: DeviceMemory,
}

impl RegisteredMemory {
    /// Registers it.
    ///
    /// # Errors
    /// The call that failed.
    pub fn new(memory: DeviceMemory) -> Result<RegisteredMemory, GpuError> {
        let driver = Driver::open()?;
        let (base, length_bytes) = (memory.base(), memory.length_bytes());
        // SAFETY: the memory was allocated by CUDA, with this length.
        unsafe { (driver.functions.cuFileBufRegister)(base, length_bytes, 0) }.of("cuFileBufRegister")?;
        Ok(RegisteredMemory { driver, memory })
    }

    /// The memory itself.
    pub fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// Transfers a part, and waits for its end. Bytes, or a negative error: of the kernel, or of cuFile from 5001 on.
    #[inline]
    pub fn transfer(&self, transfer: Transfer, file: &RegisteredFile, part: DevicePart) -> i64 {
        let DevicePart { memory_offset_bytes, length_bytes, file_offset_bytes } = part;
        self.memory.check(memory_offset_bytes, length_bytes);
        let (base, length) = (self.memory.base(), length_bytes);
        let (at, within) =
            (file_offset_bytes.cast_signed(), memory_offset_bytes.cast_signed() as libc::off64_t);
        let Cufile { cuFileRead, cuFileWrite, .. } = self.driver.functions;
        // SAFETY: the file and the memory are registered, and the part is inside the memory.
        let result = unsafe {
            match transfer {
                Transfer::Read => cuFileRead(file.handle, base, length, at, within),
                Transfer::Write => cuFileWrite(file.handle, base, length, at, within),
            }
        };
        match result {
            -1 => match Errno::last() {
                Errno(0) => -i64::from(libc::EIO),
                Errno(number) => -i64::from(number),
            },
            result => result as i64,
        }
    }
}

impl Drop for RegisteredMemory {
    fn drop(&mut self) {
        // SAFETY: the memory is registered, and no operation on it is in flight.
        unsafe { (self.driver.functions.cuFileBufDeregister)(self.memory.base()) };
    }
}

/// An open file that cuFile knows.
#[derive(Debug)]
pub struct RegisteredFile {
    functions: &'static Cufile,
    handle: *mut c_void,
}

impl RegisteredFile {
    /// Registers the file of a descriptor, which stays open as long as this.
    ///
    /// # Errors
    /// The call that failed.
    pub fn new(descriptor: RawFd) -> Result<RegisteredFile, GpuError> {
        let functions = Cufile::get()?;
        let mut handle = ptr::null_mut();
        let mut description =
            Descriptor { kind: 1, handle: descriptor.cast_unsigned() as usize, file_system: ptr::null() };
        // SAFETY: the handle is written to, and the description lives during the call.
        let status = unsafe { (functions.cuFileHandleRegister)(&raw mut handle, &raw mut description) };
        status.of("cuFileHandleRegister")?;
        Ok(RegisteredFile { functions, handle })
    }
}

impl Drop for RegisteredFile {
    fn drop(&mut self) {
        // SAFETY: the file is registered, and no operation on it is in flight.
        unsafe { (self.functions.cuFileHandleDeregister)(self.handle) };
    }
}

/// Operations that are in flight beside each other.
#[derive(Debug)]
pub struct Batch {
    functions: &'static Cufile,
    handle: *mut c_void,
    events: Box<[Event]>,
}

impl Batch {
    /// Room for so many operations.
    ///
    /// # Errors
    /// The call that failed.
    pub fn new(operations: u32) -> Result<Batch, GpuError> {
        let functions = Cufile::get()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the handle is written to.
        unsafe { (functions.cuFileBatchIOSetUp)(&raw mut handle, operations) }.of("cuFileBatchIOSetUp")?;
        let none = Event { cookie: ptr::null_mut(), status: 0, result: 0 };
        Ok(Batch { functions, handle, events: vec![none; operations as usize].into_boxed_slice() })
    }

    /// An operation on a part of this memory, whose end has this number.
    #[inline]
    pub fn request(
        memory: &RegisteredMemory,
        transfer: Transfer,
        file: &RegisteredFile,
        part: DevicePart,
        number: u32,
    ) -> Request {
        const CUFILE_BATCH: c_int = 1;
        memory.memory.check(part.memory_offset_bytes, part.length_bytes);
        Request {
            mode: CUFILE_BATCH,
            base: memory.memory.base(),
            file_offset: part.file_offset_bytes.cast_signed(),
            memory_offset: part.memory_offset_bytes.cast_signed() as libc::off64_t,
            length_bytes: part.length_bytes,
            file: file.handle,
            command: match transfer {
                Transfer::Read => 0,
                Transfer::Write => 1,
            },
            cookie: ptr::without_provenance_mut(number as usize),
        }
    }

    /// Starts operations, all or none.
    ///
    /// # Safety
    /// Until they have ended their files stay registered, and so does their memory, which nobody else uses.
    ///
    /// # Errors
    /// The call that failed.
    #[inline]
    pub unsafe fn submit(&mut self, requests: &mut [Request]) -> Result<(), GpuError> {
        let (count, first) = (to_u32(requests.len()), requests.as_mut_ptr());
        // SAFETY: the batch is set up, and the caller vouches for what the requests name.
        unsafe { (self.functions.cuFileBatchIOSubmit)(self.handle, count, first, 0) }
            .of("cuFileBatchIOSubmit")
    }

    /// The ends of at most `max` operations, waiting for at least `min`, but for no longer than this.
    ///
    /// # Errors
    /// The call that failed.
    #[inline]
    pub fn ended(&mut self, min: u32, max: u32, at_most: Duration) -> Result<&[Event], GpuError> {
        let room = max.min(to_u32(self.events.len()));
        let (mut count, mut timeout) = (room, c_timespec(at_most));
        let (events, timeout) = (self.events.as_mut_ptr(), &raw mut timeout);
        let Cufile { cuFileBatchIOGetStatus, .. } = self.functions;
        // SAFETY: there is room for so many events, and count and timeout live during the call.
        unsafe { cuFileBatchIOGetStatus(self.handle, min.min(room), &raw mut count, events, timeout) }
            .of("cuFileBatchIOGetStatus")?;
        Ok(&self.events[..count.min(room) as usize])
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: nothing is in flight.
        unsafe { (self.functions.cuFileBatchIODestroy)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn structures_are_those_of_the_header() {
        let sizes = [size_of::<Status>(), size_of::<Descriptor>(), size_of::<Request>(), size_of::<Event>()];
        assert_eq!(sizes, [8, 24, 64, 24]);
        let told = [offset_of!(Properties, storage), offset_of!(Properties, features)];
        assert_eq!(told, [24, 32]);
        // 64 numbers of level 1, 64 of level 2, and 31 of each GPU.
        let counts = [offset_of!(Counts, sizes), offset_of!(Counts, gpus), size_of::<GpuCounts>()];
        assert_eq!(counts, [64 * 8, 129 * 8, 31 * 8]);
    }

    #[test]
    fn an_operation_that_did_not_complete_is_an_error() {
        let of = |status, result: i64| {
            Event { cookie: ptr::without_provenance_mut(7), status, result: result as usize }.result()
        };
        assert_eq!((of(COMPLETE, 4096), of(COMPLETE, -5), of(0x40, -5014)), (4096, -5, -5014));
        assert_eq!((of(0x40, 0), of(0x40, -1), of(0x04, 0)), (-5, -5, -22));
        assert_eq!((of(0x08, 0), of(0x20, 100)), (-125, -110));
    }
}

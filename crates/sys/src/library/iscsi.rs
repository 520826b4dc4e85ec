//! Logical units of iSCSI targets, by libiscsi.
//!
//! Invariant: one thread at a time uses a unit, since the library has no threads of its own: answers arrive, and operations
//! end, inside `Unit::serve`.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::io;
use std::time::Duration;

use super::socket::{Answers, poll};
use super::{HandOver, LibraryError, Part, Unavailable, functions};
use crate::errno::Errno;
use crate::width::low_u32;

/// `iscsi_command_cb`.
type Callback = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut c_void);

functions! {
    /// Functions of libiscsi.
    struct Libiscsi from "libiscsi.so.7" or "libiscsi.so.9" of package "libiscsi7 (Debian 12 and 13)";
    fn iscsi_create_context(*const c_char) -> *mut c_void;
    fn iscsi_destroy_context(*mut c_void) -> c_int;
    fn iscsi_parse_full_url(*mut c_void, *const c_char) -> *mut Url;
    fn iscsi_destroy_url(*mut Url);
    fn iscsi_set_targetname(*mut c_void, *const c_char) -> c_int;
    fn iscsi_set_session_type(*mut c_void, c_int) -> c_int;
    fn iscsi_set_noautoreconnect(*mut c_void, c_int);
    fn iscsi_full_connect_sync(*mut c_void, *const c_char, c_int) -> c_int;
    fn iscsi_readcapacity16_sync(*mut c_void, c_int) -> *mut c_void;
    fn scsi_datain_unmarshall(*mut c_void) -> *mut Capacity;
    fn scsi_free_scsi_task(*mut c_void);
    fn scsi_task_add_data_in_buffer(*mut c_void, c_int, *mut c_uchar) -> c_int;
    fn iscsi_get_fd(*mut c_void) -> c_int;
    fn iscsi_which_events(*mut c_void) -> c_int;
    fn iscsi_service(*mut c_void, c_int) -> c_int;
    fn iscsi_read16_task(*mut c_void, c_int, u64, u32, c_int, c_int, c_int, c_int, c_int, c_int, Callback, *mut c_void) -> *mut c_void;
    fn iscsi_write16_task(*mut c_void, c_int, u64, *mut c_uchar, u32, c_int, c_int, c_int, c_int, c_int, c_int, Callback, *mut c_void) -> *mut c_void;
    fn iscsi_unmap_task(*mut c_void, c_int, c_int, c_int, *mut UnmapRange, c_int, Callback, *mut c_void) -> *mut c_void;
    fn iscsi_synchronizecache16_task(*mut c_void, c_int, u64, u32, c_int, c_int, Callback, *mut c_void) -> *mut c_void;
}

/// The name that initiators based on this library take.
const INITIATOR: &CStr = c"iqn.2007-10.com.github:sahlberg:libiscsi:fiord";

/// `ISCSI_SESSION_NORMAL`.
const NORMAL_SESSION: c_int = 2;

/// Bytes of each text in a URL.
const TEXT_BYTES: usize = 256;

/// The beginning of `struct iscsi_url`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Url {
    portal: [c_char; TEXT_BYTES],
    target: [c_char; TEXT_BYTES],
    user: [c_char; TEXT_BYTES],
    password: [c_char; TEXT_BYTES],
    target_user: [c_char; TEXT_BYTES],
    target_password: [c_char; TEXT_BYTES],
    lun: c_int,
}

/// The beginning of `struct scsi_readcapacity16`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Capacity {
    last_block: u64,
    block_bytes: u32,
}

/// `struct unmap_list`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct UnmapRange {
    first_block: u64,
    blocks: u32,
}

/// The beginning of `struct scsi_task`.
#[repr(C)]
struct Task {
    status: c_int,
    cdb_bytes: c_int,
    direction: c_int,
    expected_bytes: c_int,
    cdb: [c_uchar; 16],
    residual_status: c_int,
    residual_bytes: usize,
    sense_type: c_uchar,
    sense_key: c_int,
}

/// What is done with blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockCommand {
    /// Reads them.
    Read,
    /// Writes them.
    Write,
    /// Gives up their space.
    Unmap,
    /// Makes everything that was written permanent.
    Sync,
}

/// A logical unit.
#[derive(Debug)]
pub struct Unit {
    functions: &'static Libiscsi,
    context: *mut c_void,
    lun: c_int,
    /// Its size.
    pub size_bytes: u64,
    /// Its blocks, of which offsets and lengths are multiples.
    pub block_bytes: u32,
}

// SAFETY: the library has no state of threads; one thread at a time uses a unit, by its methods.
unsafe impl Send for Unit {}

impl Unit {
    /// Logs in to the unit of a URL, `iscsi://[USER%PASSWORD@]HOST[:PORT]/TARGET/LUN`; blocks until the target answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(url: &CStr) -> Result<Unit, LibraryError> {
        let functions = Libiscsi::get()?;
        // SAFETY: the name is terminated.
        let context = unsafe { (functions.iscsi_create_context)(INITIATOR.as_ptr()) };
        if context.is_null() {
            return Err(LibraryError::Call("iscsi_create_context", Errno(libc::ENOMEM)));
        }
        let mut unit = Unit { functions, context, lun: 0, size_bytes: 0, block_bytes: 512 };
        // SAFETY: the context is valid and the URL terminated; what is parsed lives until it is destroyed, and so do its
        // texts, which are terminated.
        let connected = unsafe {
            let parsed = (functions.iscsi_parse_full_url)(context, url.as_ptr());
            if parsed.is_null() {
                return Err(LibraryError::Call("iscsi_parse_full_url", Errno(libc::EINVAL)));
            }
            unit.lun = (*parsed).lun;
            (functions.iscsi_set_targetname)(context, (&raw const (*parsed).target).cast());
            (functions.iscsi_set_session_type)(context, NORMAL_SESSION);
            (functions.iscsi_set_noautoreconnect)(context, 1);
            let portal = (&raw const (*parsed).portal).cast();
            let answer = (functions.iscsi_full_connect_sync)(context, portal, unit.lun);
            (functions.iscsi_destroy_url)(parsed);
            answer
        };
        if connected != 0 {
            return Err(LibraryError::Call("iscsi_full_connect_sync", Errno(libc::ENOTCONN)));
        }
        unit.ask_for_size()?;
        Ok(unit)
    }

    /// Asks the unit for its size and its blocks.
    fn ask_for_size(&mut self) -> Result<(), LibraryError> {
        let failed = LibraryError::Call("iscsi_readcapacity16_sync", Errno(libc::EIO));
        // SAFETY: the context is connected. The task and what is read from it live until it is freed.
        unsafe {
            let task = (self.functions.iscsi_readcapacity16_sync)(self.context, self.lun);
            if task.is_null() {
                return Err(failed);
            }
            let capacity = (self.functions.scsi_datain_unmarshall)(task);
            if (*task.cast::<Task>()).status == 0 && !capacity.is_null() && (*capacity).block_bytes > 0 {
                self.block_bytes = (*capacity).block_bytes;
                self.size_bytes = ((*capacity).last_block + 1) * u64::from(self.block_bytes);
            }
            (self.functions.scsi_free_scsi_task)(task);
        }
        if self.size_bytes > 0 { Ok(()) } else { Err(failed) }
    }

    /// Starts an operation, at the end of which `serve` calls `HandOver::end` with the ticket, unless this fails.
    ///
    /// # Safety
    /// The ticket is from `HandOver::ticket`. Until the operation has ended nobody uses the memory, which is valid for reads,
    /// and for writes if the command reads. Offset and length are multiples of the block, and a transfer is no
    /// longer than `TRANSFER_BYTES_MAX`.
    ///
    /// # Errors
    /// The library's refusal; the ticket was given back.
    pub unsafe fn start(&self, command: BlockCommand, part: Part, ticket: *mut c_void) -> Result<(), Errno> {
        let Part { buffer, length_bytes, offset_bytes } = part;
        let (functions, context, lun) = (self.functions, self.context, self.lun);
        let first = offset_bytes / u64::from(self.block_bytes);
        let (length, block) = (low_u32(length_bytes), self.block_bytes.cast_signed());
        let blocks = blocks_of(length_bytes, self.block_bytes).inspect_err(|_| {
            // SAFETY: the ticket was not used.
            unsafe { HandOver::cancel(ticket) };
        })?;
        // SAFETY: the context is connected, and the caller vouches for the memory. Nothing is sent or received before
        // `serve`, so that a read has its buffer in time.
        let task = unsafe {
            match command {
                BlockCommand::Read => {
                    let task = (functions.iscsi_read16_task)(
                        context, lun, first, length, block, 0, 0, 0, 0, 0, ended, ticket,
                    );
                    if !task.is_null() {
                        (functions.scsi_task_add_data_in_buffer)(task, length.cast_signed(), buffer);
                    }
                    task
                }
                BlockCommand::Write => (functions.iscsi_write16_task)(
                    context, lun, first, buffer, length, block, 0, 0, 0, 0, 0, ended, ticket,
                ),
                BlockCommand::Unmap => {
                    let mut range = UnmapRange { first_block: first, blocks };
                    (functions.iscsi_unmap_task)(context, lun, 0, 0, &raw mut range, 1, ended, ticket)
                }
                BlockCommand::Sync => {
                    (functions.iscsi_synchronizecache16_task)(context, lun, 0, 0, 0, 0, ended, ticket)
                }
            }
        };
        if !task.is_null() {
            return Ok(());
        }
        // SAFETY: the operation was not started, so nobody else has the ticket.
        unsafe { HandOver::cancel(ticket) };
        Err(Errno(libc::EIO))
    }

    /// Sends and receives what can be, after waiting for it at most so long; `true` if a signal arrived.
    ///
    /// # Errors
    /// The end of the connection.
    pub fn serve(&self, at_most: Duration) -> io::Result<bool> {
        // SAFETY: the context is valid.
        let (socket, events) = unsafe {
            ((self.functions.iscsi_get_fd)(self.context), (self.functions.iscsi_which_events)(self.context))
        };
        let Answers::Ready(ready) = poll(socket, events, at_most)? else { return Ok(true) };
        // SAFETY: the context is valid; operations end here, with their tickets.
        match unsafe { (self.functions.iscsi_service)(self.context, ready) } {
            0.. => Ok(false),
            _ => Err(Errno(libc::ECONNRESET).into()),
        }
    }

    /// Leaves the connection as it is, because operations are in flight that may never end.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        // SAFETY: the context is valid. Operations that are in flight end here, with an error.
        unsafe { (self.functions.iscsi_destroy_context)(self.context) };
    }
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Libiscsi::get().map(drop)
}

/// How many blocks a range has; `EFBIG` if a command has no room for them.
fn blocks_of(length_bytes: u64, block_bytes: u32) -> Result<u32, Errno> {
    u32::try_from(length_bytes / u64::from(block_bytes)).map_err(|_| Errno(libc::EFBIG))
}

/// The error of a command that ended with this status.
fn errno_of(status: c_int, sense_key: c_int) -> c_int {
    const CHECK_CONDITION: c_int = 2;
    const BUSY: c_int = 8;
    const RESERVED: c_int = 0x18;
    const CANCELLED: c_int = 0x0f00_0000;
    const ERROR: c_int = 0x0f00_0001;
    const TIMEOUT: c_int = 0x0f00_0002;
    match (status, sense_key) {
        (CHECK_CONDITION, 2) => libc::ENODEV,
        (CHECK_CONDITION, 5) => libc::EREMOTEIO,
        (CHECK_CONDITION, 7) => libc::EROFS,
        (BUSY, _) => libc::EBUSY,
        (RESERVED, _) => libc::EBADE,
        (TIMEOUT, _) => libc::ETIMEDOUT,
        // The library ends what is in flight so when the connection is over.
        (CANCELLED | ERROR, _) => libc::ECONNRESET,
        _ => libc::EIO,
    }
}

/// Called by the library, inside `serve`, when an operation has ended.
unsafe extern "C" fn ended(_context: *mut c_void, status: c_int, task: *mut c_void, ticket: *mut c_void) {
    let Ok(functions) = Libiscsi::get() else { return };
    // SAFETY: the task is that of the operation, and freed once; the ticket is the one that it was started with, and the
    // library calls back once.
    unsafe {
        let sense_key = if task.is_null() { 0 } else { (*task.cast::<Task>()).sense_key };
        let result = if status == 0 { 0 } else { -i64::from(errno_of(status, sense_key)) };
        if !task.is_null() {
            (functions.scsi_free_scsi_task)(task);
        }
        HandOver::end(ticket, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmap_has_its_whole_length_or_is_refused() {
        assert_eq!(blocks_of(5 << 30, 512), Ok(10 << 20));
        assert_eq!(blocks_of(2 << 40, 512), Err(Errno(libc::EFBIG)));
    }

    #[test]
    fn errors_of_commands_have_the_numbers_that_the_kernel_gives_them() {
        assert_eq!(errno_of(2, 7), libc::EROFS);
        assert_eq!(errno_of(2, 3), libc::EIO);
        assert_eq!(errno_of(0x18, 0), libc::EBADE);
        assert_eq!(errno_of(0x0f00_0000, 0), libc::ECONNRESET);
    }
}

//! Files of a GlusterFS volume, by `libgfapi.so.0`.
//!
//! Invariant: files are closed before their volume, and not while operations on them are in flight, for which the callers
//! of `start` vouch.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::ptr;
use std::sync::Arc;

use super::{Connection, HandOver, LibraryError, Part, Unavailable, functions};
use crate::errno::Errno;
use crate::width::to_c_int;

/// `glfs_io_cbk`.
type Callback = unsafe extern "C" fn(*mut c_void, isize, *mut c_void, *mut c_void, *mut c_void);

functions! {
    /// Functions of libgfapi. Some have changed their types between versions of the library, and are named with theirs.
    struct Gfapi from "libgfapi.so.0" of package "libgfapi0";
    fn glfs_new(*const c_char) -> *mut c_void;
    fn glfs_set_volfile_server(*mut c_void, *const c_char, *const c_char, c_int) -> c_int;
    fn glfs_init(*mut c_void) -> c_int;
    fn glfs_fini(*mut c_void) -> c_int;
    fn glfs_open(*mut c_void, *const c_char, c_int) -> *mut c_void;
    fn glfs_creat(*mut c_void, *const c_char, c_int, libc::mode_t) -> *mut c_void;
    fn glfs_close(*mut c_void) -> c_int;
    fn glfs_lseek(*mut c_void, libc::off64_t, c_int) -> libc::off64_t;
    fn glfs_ftruncate(*mut c_void, libc::off64_t, *mut c_void, *mut c_void) -> c_int, version "GFAPI_6.0";
    fn glfs_pwrite(*mut c_void, *const c_void, usize, libc::off64_t, c_int, *mut c_void, *mut c_void) -> isize, version "GFAPI_6.0";
    fn glfs_pread_async(*mut c_void, *mut c_void, usize, libc::off64_t, c_int, Callback, *mut c_void) -> c_int, version "GFAPI_6.0";
    fn glfs_pwrite_async(*mut c_void, *const c_void, c_int, libc::off64_t, c_int, Callback, *mut c_void) -> c_int, version "GFAPI_6.0";
    fn glfs_fsync_async(*mut c_void, Callback, *mut c_void) -> c_int, version "GFAPI_6.0";
    fn glfs_fdatasync_async(*mut c_void, Callback, *mut c_void) -> c_int, version "GFAPI_6.0";
    fn glfs_discard_async(*mut c_void, libc::off64_t, usize, Callback, *mut c_void) -> c_int, version "GFAPI_6.0";
}

/// What is done with a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCommand {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Gives up its space.
    Discard,
    /// Makes data and metadata permanent.
    Sync,
    /// Makes data permanent.
    DataSync,
}

/// A volume.
#[derive(Debug)]
pub struct Volume {
    functions: &'static Gfapi,
    handle: *mut c_void,
    _connection: Connection,
}

// SAFETY: the library's handles may be used by any thread.
unsafe impl Send for Volume {}
// SAFETY: the same.
unsafe impl Sync for Volume {}

/// The last error of the library on this thread.
fn last_errno() -> Errno {
    Errno::of(&io::Error::last_os_error()).filter(|errno| errno.0 != 0).unwrap_or(Errno(libc::EIO))
}

impl Volume {
    /// Connects to a volume by a host that manages it; blocks until the host answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(volume: &CStr, host: &CStr) -> Result<Arc<Volume>, LibraryError> {
        let functions = Gfapi::get()?;
        let connection = Connection::opened();
        // SAFETY: the name is terminated.
        let handle = unsafe { (functions.glfs_new)(volume.as_ptr()) };
        if handle.is_null() {
            return Err(LibraryError::Call("glfs_new", last_errno()));
        }
        let volume = Volume { functions, handle, _connection: connection };
        // SAFETY: the volume was made and is not yet initialised; the names are terminated.
        let answer =
            unsafe { (functions.glfs_set_volfile_server)(handle, c"tcp".as_ptr(), host.as_ptr(), 0) };
        if answer != 0 {
            return Err(LibraryError::Call("glfs_set_volfile_server", last_errno()));
        }
        // SAFETY: the volume was made and is initialised once.
        if unsafe { (functions.glfs_init)(handle) } != 0 {
            return Err(LibraryError::Call("glfs_init", last_errno()));
        }
        Ok(Arc::new(volume))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // SAFETY: no file of the volume is open, because each keeps the volume.
        unsafe { (self.functions.glfs_fini)(self.handle) };
    }
}

/// An open file.
#[derive(Debug)]
pub struct VolumeFile {
    handle: *mut c_void,
    volume: Arc<Volume>,
}

// SAFETY: the library's handles may be used by any thread.
unsafe impl Send for VolumeFile {}

impl VolumeFile {
    /// Opens a file, and creates it if `create`.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(
        volume: &Arc<Volume>,
        path: &CStr,
        writable: bool,
        create: bool,
    ) -> Result<VolumeFile, LibraryError> {
        let flags = if writable || create { libc::O_RDWR } else { libc::O_RDONLY };
        // SAFETY: the volume is open and the name terminated.
        let handle = unsafe {
            match create {
                true => {
                    (volume.functions.glfs_creat)(volume.handle, path.as_ptr(), flags | libc::O_CREAT, 0o644)
                }
                false => (volume.functions.glfs_open)(volume.handle, path.as_ptr(), flags),
            }
        };
        if handle.is_null() {
            let call = if create { "glfs_creat" } else { "glfs_open" };
            return Err(LibraryError::Call(call, last_errno()));
        }
        Ok(VolumeFile { handle, volume: Arc::clone(volume) })
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// The call that failed.
    pub fn length_bytes(&self) -> Result<u64, LibraryError> {
        // SAFETY: the file is open.
        let end = unsafe { (self.volume.functions.glfs_lseek)(self.handle, 0, libc::SEEK_END) };
        u64::try_from(end).map_err(|_| LibraryError::Call("glfs_lseek", last_errno()))
    }

    /// Gives it this length.
    ///
    /// # Errors
    /// The call that failed.
    pub fn set_length(&self, bytes: u64) -> Result<(), LibraryError> {
        let length = bytes.cast_signed();
        // SAFETY: the file is open; the library returns no attributes through null.
        let answer = unsafe {
            (self.volume.functions.glfs_ftruncate)(self.handle, length, ptr::null_mut(), ptr::null_mut())
        };
        if answer == 0 { Ok(()) } else { Err(LibraryError::Call("glfs_ftruncate", last_errno())) }
    }

    /// Writes bytes at an offset; returns how many.
    ///
    /// # Errors
    /// The error of the call.
    pub fn write_at(&self, bytes: &[u8], offset_bytes: u64) -> Result<usize, Errno> {
        let (start, offset) = (bytes.as_ptr().cast(), offset_bytes.cast_signed());
        let none = ptr::null_mut();
        // SAFETY: the file is open, and the memory lives during the call; no attributes are asked for.
        let answer = unsafe {
            (self.volume.functions.glfs_pwrite)(self.handle, start, bytes.len(), offset, 0, none, none)
        };
        usize::try_from(answer).map_err(|_| last_errno())
    }

    /// Starts an operation, at the end of which `HandOver::end` is called with the ticket, by a thread of the library,
    /// unless this fails.
    ///
    /// # Safety
    /// The ticket is from `HandOver::ticket`. Until the operation has ended the file is neither dropped nor the memory
    /// used, which is valid for reads, and for writes if the command reads. A transfer is no longer than `TRANSFER_BYTES_MAX`.
    ///
    /// # Errors
    /// The library's refusal; the ticket was given back.
    #[inline]
    pub unsafe fn start(&self, command: FileCommand, part: Part, ticket: *mut c_void) -> Result<(), Errno> {
        let (functions, file) = (self.volume.functions, self.handle);
        let Part { buffer, length_bytes, offset_bytes } = part;
        let length = usize::try_from(length_bytes).map_err(|_| {
            // SAFETY: the ticket was not used.
            unsafe { HandOver::cancel(ticket) };
            Errno(libc::EFBIG)
        })?;
        let offset = offset_bytes.cast_signed();
        // SAFETY: the file is open, and the caller vouches for the memory.
        let answer = unsafe {
            match command {
                FileCommand::Read => {
                    (functions.glfs_pread_async)(file, buffer.cast(), length, offset, 0, ended, ticket)
                }
                FileCommand::Write => {
                    let (start, length) = (buffer.cast_const().cast(), to_c_int(length));
                    (functions.glfs_pwrite_async)(file, start, length, offset, 0, ended, ticket)
                }
                FileCommand::Discard => (functions.glfs_discard_async)(file, offset, length, ended, ticket),
                FileCommand::Sync => (functions.glfs_fsync_async)(file, ended, ticket),
                FileCommand::DataSync => (functions.glfs_fdatasync_async)(file, ended, ticket),
            }
        };
        if answer == 0 {
            return Ok(());
        }
        let errno = last_errno();
        // SAFETY: the operation was not started, so nobody else has the ticket.
        unsafe { HandOver::cancel(ticket) };
        Err(errno)
    }

    /// Leaves the file and its volume as they are, because operations are in flight that may never end.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for VolumeFile {
    fn drop(&mut self) {
        // SAFETY: the file is open and has nothing in flight.
        unsafe { (self.volume.functions.glfs_close)(self.handle) };
    }
}

/// A name in the volume: from its root, whatever the job wrote.
pub fn rooted(name: &CStr) -> CString {
    let bytes = [b"/".as_slice(), name.to_bytes()].concat();
    CString::new(bytes).unwrap_or_default()
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Gfapi::get().map(drop)
}

/// Called by the library when an operation has ended.
unsafe extern "C" fn ended(
    _file: *mut c_void,
    result: isize,
    _before: *mut c_void,
    _after: *mut c_void,
    ticket: *mut c_void,
) {
    let result = if result < 0 { -i64::from(last_errno().0) } else { result as i64 };
    // SAFETY: the ticket is the one that the operation was started with, and the library calls back once.
    unsafe { HandOver::end(ticket, result) };
}

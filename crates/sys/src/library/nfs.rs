//! Files of an NFS server, by libnfs, without a mount of the kernel's.
//!
//! Invariant: one thread at a time uses a context, since the library has no threads of its own: answers arrive, and
//! operations end, inside `Export::serve`.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::ptr;
use std::time::Duration;

use super::socket::{Answers, poll};
use super::{HandOver, LibraryError, Part, Unavailable, checked, functions};
use crate::errno::Errno;
use crate::width::{low_u32, to_usize};

/// `nfs_cb`.
type Callback = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, *mut c_void);

functions! {
    /// Functions of libnfs before version 6, which has changed the types of some.
    struct Libnfs from "libnfs.so.13" or "libnfs.so.14" of package "libnfs13 (Debian 12) or libnfs14";
    fn nfs_init_context() -> *mut c_void;
    fn nfs_set_autoreconnect(*mut c_void, c_int);
    fn nfs_destroy_context(*mut c_void);
    fn nfs_parse_url_dir(*mut c_void, *const c_char) -> *mut Url;
    fn nfs_destroy_url(*mut Url);
    fn nfs_mount(*mut c_void, *const c_char, *const c_char) -> c_int;
    fn nfs_get_error(*mut c_void) -> *const c_char;
    fn nfs_get_fd(*mut c_void) -> c_int;
    fn nfs_which_events(*mut c_void) -> c_int;
    fn nfs_service(*mut c_void, c_int) -> c_int;
    fn nfs_open2(*mut c_void, *const c_char, c_int, c_int, *mut *mut c_void) -> c_int;
    fn nfs_close(*mut c_void, *mut c_void) -> c_int;
    fn nfs_fstat64(*mut c_void, *mut c_void, *mut Status) -> c_int;
    fn nfs_ftruncate(*mut c_void, *mut c_void, u64) -> c_int;
    fn nfs_pwrite(*mut c_void, *mut c_void, u64, u64, *const c_void) -> c_int;
    fn nfs_pread_async(*mut c_void, *mut c_void, u64, u64, Callback, *mut c_void) -> c_int;
    fn nfs_pwrite_async(*mut c_void, *mut c_void, u64, u64, *const c_void, Callback, *mut c_void) -> c_int;
    fn nfs_fsync_async(*mut c_void, *mut c_void, Callback, *mut c_void) -> c_int;
}

/// `struct nfs_url`.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Url {
    server: *const c_char,
    path: *const c_char,
    file: *const c_char,
}

/// `struct nfs_stat_64`.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Status {
    device: u64,
    inode: u64,
    mode: u64,
    links: u64,
    user: u64,
    group: u64,
    special_device: u64,
    size_bytes: u64,
    others: [u64; 9],
}

/// What is done with a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCommand {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Makes what was written permanent.
    Sync,
}

/// An operation that the library has, with what its end needs.
#[derive(Debug, Clone, Copy)]
struct Pending {
    ticket: *mut c_void,
    /// Where read data go; null for other operations.
    buffer: *mut u8,
    length_bytes: usize,
}

/// A directory that a server exports.
#[derive(Debug)]
pub struct Export {
    functions: &'static Libnfs,
    context: *mut c_void,
    /// By slot.
    pending: Box<[UnsafeCell<Pending>]>,
}

// SAFETY: the library has no state of threads; one thread at a time uses an export, by its methods.
unsafe impl Send for Export {}

/// An open file of an export, which must not be used with another.
#[derive(Debug)]
pub struct ExportFile(*mut c_void);

// SAFETY: it is used with its export alone.
unsafe impl Send for ExportFile {}

impl Export {
    /// Connects to the server of a URL, `nfs://HOST/PATH?OPTIONS`, with room for operations of so many slots; blocks until
    /// the server answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(url: &CStr, slots: u32) -> Result<Export, LibraryError> {
        let functions = Libnfs::get()?;
        // SAFETY: the call takes nothing.
        let context = unsafe { (functions.nfs_init_context)() };
        if context.is_null() {
            return Err(LibraryError::Call("nfs_init_context", Errno(libc::ENOMEM)));
        }
        let none = Pending { ticket: ptr::null_mut(), buffer: ptr::null_mut(), length_bytes: 0 };
        let pending = (0..slots).map(|_| UnsafeCell::new(none)).collect();
        let export = Export { functions, context, pending };
        // SAFETY: the context is valid and the URL terminated; what is parsed lives until it is destroyed.
        unsafe {
            // The library would wait for a server that is gone, for ever; the URL may ask for that.
            (functions.nfs_set_autoreconnect)(context, 0);
            let parsed = (functions.nfs_parse_url_dir)(context, url.as_ptr());
            if parsed.is_null() {
                return Err(LibraryError::Call("nfs_parse_url_dir", Errno(libc::EINVAL)));
            }
            let answer = (functions.nfs_mount)(context, (*parsed).server, (*parsed).path);
            (functions.nfs_destroy_url)(parsed);
            checked("nfs_mount", answer)?;
        }
        Ok(export)
    }

    /// Opens a file; blocks until the server answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open_file(&self, path: &CStr, writable: bool, create: bool) -> Result<ExportFile, LibraryError> {
        let flags = if writable { libc::O_RDWR } else { libc::O_RDONLY };
        let flags = if create { flags | libc::O_CREAT } else { flags };
        let mut file = ptr::null_mut();
        // SAFETY: the context is valid, the path terminated, and the file written to.
        let answer =
            unsafe { (self.functions.nfs_open2)(self.context, path.as_ptr(), flags, 0o644, &raw mut file) };
        checked("nfs_open", answer).map(|_| ExportFile(file))
    }

    /// Closes a file of which nothing is in flight; blocks until the server answers.
    pub fn close(&self, file: ExportFile) {
        // SAFETY: the file is open; whatever the server answers, it is closed afterwards.
        unsafe { (self.functions.nfs_close)(self.context, file.0) };
    }

    /// The length of a file in bytes; blocks until the server answers.
    ///
    /// # Errors
    /// The call that failed; `EISDIR` and `EINVAL` if it is not a regular file.
    pub fn length_bytes(&self, file: &ExportFile) -> Result<u64, LibraryError> {
        let mut status = Status::default();
        // SAFETY: the file is open, and the status written to.
        let answer = unsafe { (self.functions.nfs_fstat64)(self.context, file.0, &raw mut status) };
        checked("nfs_fstat64", answer)?;
        match low_u32(status.mode) & libc::S_IFMT {
            libc::S_IFREG => Ok(status.size_bytes),
            libc::S_IFDIR => Err(LibraryError::Call("nfs_fstat64", Errno(libc::EISDIR))),
            _ => Err(LibraryError::Call("nfs_fstat64", Errno(libc::EINVAL))),
        }
    }

    /// Gives a file this length; blocks until the server answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn set_length(&self, file: &ExportFile, bytes: u64) -> Result<(), LibraryError> {
        // SAFETY: the file is open.
        let answer = unsafe { (self.functions.nfs_ftruncate)(self.context, file.0, bytes) };
        checked("nfs_ftruncate", answer).map(drop)
    }

    /// Writes bytes at an offset; returns how many. Blocks until the server answers.
    ///
    /// # Errors
    /// The error of the call.
    pub fn write_at(&self, file: &ExportFile, bytes: &[u8], offset_bytes: u64) -> Result<usize, Errno> {
        let (start, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
        // SAFETY: the file is open, and the memory lives during the call.
        let answer =
            unsafe { (self.functions.nfs_pwrite)(self.context, file.0, offset_bytes, length, start) };
        usize::try_from(answer).map_err(|_| Errno(-answer))
    }

    /// Starts an operation, at the end of which `serve` calls `HandOver::end` with the ticket, unless this
    /// fails.
    ///
    /// # Safety
    /// The ticket is from `HandOver::ticket` for one of the slots, of which no other operation is in flight. Until the operation has
    /// ended nobody uses the memory, which is valid for reads, and for writes if the command reads; the file is of this
    /// export and open.
    ///
    /// # Errors
    /// The library's refusal; the ticket was given back.
    pub unsafe fn start(
        &self,
        command: FileCommand,
        file: &ExportFile,
        part: Part,
        ticket: *mut c_void,
    ) -> Result<(), Errno> {
        let Part { buffer, length_bytes, offset_bytes } = part;
        let (context, handle) = (self.context, file.0);
        let reads = command == FileCommand::Read;
        let buffer_of_read = if reads { buffer } else { ptr::null_mut() };
        // SAFETY: the ticket was not used.
        let slot = unsafe { HandOver::slot_of(ticket) };
        let place = self.pending[slot as usize].get();
        // SAFETY: nothing of the slot is in flight, so nobody else uses its place, which lives as long as the context.
        let answer = unsafe {
            *place = Pending { ticket, buffer: buffer_of_read, length_bytes: to_usize(length_bytes) };
            let place = place.cast();
            let Libnfs { nfs_pread_async, nfs_pwrite_async, nfs_fsync_async, .. } = self.functions;
            match command {
                FileCommand::Read => {
                    nfs_pread_async(context, handle, offset_bytes, length_bytes, ended, place)
                }
                FileCommand::Write => {
                    let bytes = buffer.cast_const().cast();
                    nfs_pwrite_async(context, handle, offset_bytes, length_bytes, bytes, ended, place)
                }
                FileCommand::Sync => nfs_fsync_async(context, handle, ended, place),
            }
        };
        if answer == 0 {
            return Ok(());
        }
        // SAFETY: the operation was not started, so nobody else has the ticket.
        unsafe { HandOver::cancel(ticket) };
        Err(Errno(if answer < -1 { -answer } else { libc::EIO }))
    }

    /// Sends and receives what can be, after waiting for it at most so long; `true` if a signal arrived.
    ///
    /// # Errors
    /// The end of the connection.
    pub fn serve(&self, at_most: Duration) -> io::Result<bool> {
        // SAFETY: the context is valid.
        let (socket, events) = unsafe {
            ((self.functions.nfs_get_fd)(self.context), (self.functions.nfs_which_events)(self.context))
        };
        let Answers::Ready(ready) = poll(socket, events, at_most)? else { return Ok(true) };
        // SAFETY: the context is valid; the operations that end here are those of the slots.
        match unsafe { (self.functions.nfs_service)(self.context, ready) } {
            0.. => Ok(false),
            _ => Err(Errno(libc::ECONNRESET).into()),
        }
    }

    /// Leaves the connection as it is, because operations are in flight that may never end.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // SAFETY: the context is valid. Operations that are in flight end here, with an error.
        unsafe { (self.functions.nfs_destroy_context)(self.context) };
    }
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
pub fn is_available() -> Result<(), Unavailable> {
    Libnfs::get().map(drop)
}

/// The result of an operation that has failed, a negative error number. The library has one number for what the server refuses to read
/// and write, and its answer in a text, such as `NFS: Write failed with NFS3ERR_NOSPC(-28)`; what was not answered, because the
/// connection is over, has another number.
fn result_of(result: c_int, text: &str) -> c_int {
    let answer = match -result {
        libc::EFAULT => text.rsplit_once('(').and_then(|(_, end)| end.split_once(')')?.0.parse().ok()),
        libc::EINTR => None,
        _ => Some(result),
    };
    answer.filter(|answer| (-4095..0).contains(answer)).unwrap_or(-libc::ECONNRESET)
}

/// Called by the library, inside `serve`, when an operation has ended.
unsafe extern "C" fn ended(result: c_int, context: *mut c_void, data: *mut c_void, place: *mut c_void) {
    let Ok(functions) = Libnfs::get() else { return };
    // SAFETY: the place is that of the operation's slot, which nobody else uses until it has ended. The library has as many
    // bytes at `data` as it says, and the memory is what the operation was started with. The text of an error lives as long
    // as this call. The library calls back once.
    unsafe {
        let Pending { ticket, buffer, length_bytes } = *place.cast::<Pending>();
        if result >= 0 {
            if !buffer.is_null() {
                let count = length_bytes.min(result.cast_unsigned() as usize);
                ptr::copy_nonoverlapping(data.cast_const().cast(), buffer, count);
            }
            return HandOver::end(ticket, i64::from(result));
        }
        let text = (functions.nfs_get_error)(context);
        let text = if text.is_null() { c"" } else { CStr::from_ptr(text) };
        HandOver::end(ticket, i64::from(result_of(result, &text.to_string_lossy())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_server_or_of_a_lost_connection() {
        assert_eq!(result_of(-libc::ENOSPC, ""), -libc::ENOSPC);
        let full = "NFS: Write failed with NFS3ERR_NOSPC(-28)";
        assert_eq!(result_of(-libc::EFAULT, full), -libc::ENOSPC);
        let unanswered = ["", "Socket failed with POLLHUP", "odd (", "odd (28)", "odd (-99999999999)"];
        assert_eq!(unanswered.map(|text| result_of(-libc::EFAULT, text)), [-libc::ECONNRESET; 5]);
        assert_eq!(result_of(-libc::EINTR, full), -libc::ECONNRESET);
    }
}

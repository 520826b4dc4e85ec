//! Images of Ceph's block device, by `librbd.so.1`.
//!
//! Invariant: an image is closed before its pool, and not while operations are in flight, for which the callers of `start`
//! vouch.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

use super::rados::{Callback, ClusterName, Pool};
use super::{HandOver, LibraryError, Part, Unavailable, checked, functions};
use crate::errno::Errno;
use crate::width::to_usize;

functions! {
    /// Functions of librbd.
    struct Rbd from "librbd.so.1" of package "librbd1";
    fn rbd_open(*mut c_void, *const c_char, *mut *mut c_void, *const c_char) -> c_int;
    fn rbd_open_read_only(*mut c_void, *const c_char, *mut *mut c_void, *const c_char) -> c_int;
    fn rbd_close(*mut c_void) -> c_int;
    fn rbd_get_size(*mut c_void, *mut u64) -> c_int;
    fn rbd_encryption_load(*mut c_void, c_int, *mut c_void, usize) -> c_int;
    fn rbd_aio_create_completion(*mut c_void, Callback, *mut *mut c_void) -> c_int;
    fn rbd_aio_get_return_value(*mut c_void) -> isize;
    fn rbd_aio_release(*mut c_void);
    fn rbd_aio_read(*mut c_void, u64, usize, *mut c_char, *mut c_void) -> c_int;
    fn rbd_aio_write(*mut c_void, u64, usize, *const c_char, *mut c_void) -> c_int;
    fn rbd_aio_discard(*mut c_void, u64, u64, *mut c_void) -> c_int;
    fn rbd_aio_flush(*mut c_void, *mut c_void) -> c_int;
}

/// The format of an encrypted image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptionFormat {
    /// LUKS of the first version.
    Luks1,
    /// LUKS of the second version.
    Luks2,
    /// LUKS of the version that the image has.
    Luks,
}

/// What opens an encrypted image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// Its format.
    pub format: EncryptionFormat,
    /// Its passphrase.
    pub passphrase: CString,
}

/// `rbd_encryption_luks1_format_options_t` and `rbd_encryption_luks2_format_options_t`.
#[repr(C)]
struct LuksVersionOptions {
    algorithm: c_int,
    passphrase: *const c_char,
    passphrase_bytes: usize,
}

/// `rbd_encryption_luks_format_options_t`.
#[repr(C)]
struct LuksOptions {
    passphrase: *const c_char,
    passphrase_bytes: usize,
}

/// Which image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageName {
    /// The cluster.
    pub cluster: ClusterName,
    /// The pool.
    pub pool: CString,
    /// The image.
    pub image: CString,
    /// How it is encrypted.
    pub encryption: Option<Encryption>,
}

/// An open image.
#[derive(Debug)]
pub struct Image {
    functions: &'static Rbd,
    handle: *mut c_void,
    /// Closed after the image.
    pool: Option<Pool>,
}

// SAFETY: the library's handles may be used by any thread.
unsafe impl Send for Image {}

/// What is done with a part of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageCommand {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Gives up its space.
    Discard,
    /// Makes everything that was written before permanent.
    Flush,
}

impl Image {
    /// Opens an image; blocks until the cluster answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(name: &ImageName, writable: bool) -> Result<Image, LibraryError> {
        let functions = Rbd::get()?;
        let pool = Pool::open(&name.cluster, &name.pool)?;
        let mut handle = ptr::null_mut();
        let open = if writable { functions.rbd_open } else { functions.rbd_open_read_only };
        // SAFETY: the pool is open, the name terminated, and the handle is written to. There is no snapshot.
        let answer = unsafe { open(pool.context(), name.image.as_ptr(), &raw mut handle, ptr::null()) };
        checked("rbd_open", answer)?;
        let image = Image { functions, handle, pool: Some(pool) };
        if let Some(encryption) = &name.encryption {
            image.decrypt(encryption)?;
        }
        Ok(image)
    }

    /// From here on I/O is encrypted.
    fn decrypt(&self, encryption: &Encryption) -> Result<(), LibraryError> {
        const AES256: c_int = 1;
        let passphrase = encryption.passphrase.as_bytes();
        let (start, bytes) = (passphrase.as_ptr().cast(), passphrase.len());
        let mut versioned =
            LuksVersionOptions { algorithm: AES256, passphrase: start, passphrase_bytes: bytes };
        let mut any = LuksOptions { passphrase: start, passphrase_bytes: bytes };
        let of_version = (ptr::from_mut(&mut versioned).cast(), size_of::<LuksVersionOptions>());
        let (format, (options, size)) = match encryption.format {
            EncryptionFormat::Luks1 => (0, of_version),
            EncryptionFormat::Luks2 => (1, of_version),
            EncryptionFormat::Luks => (2, (ptr::from_mut(&mut any).cast(), size_of::<LuksOptions>())),
        };
        // SAFETY: the options are those of the format and live during the call, like the passphrase.
        let answer = unsafe { (self.functions.rbd_encryption_load)(self.handle, format, options, size) };
        checked("rbd_encryption_load", answer).map(drop)
    }

    /// The size of the image in bytes.
    ///
    /// # Errors
    /// The call that failed.
    pub fn size_bytes(&self) -> Result<u64, LibraryError> {
        let mut bytes = 0;
        // SAFETY: the image is open, and the size is written to.
        checked("rbd_get_size", unsafe { (self.functions.rbd_get_size)(self.handle, &raw mut bytes) })?;
        Ok(bytes)
    }

    /// Leaves the image and the connection as they are, because operations are in flight that may never end.
    pub fn abandon(self) {
        let mut image = std::mem::ManuallyDrop::new(self);
        if let Some(pool) = image.pool.take() {
            pool.abandon();
        }
    }

    /// Starts an operation, at the end of which `HandOver::end` is called with the ticket, by a thread of the library,
    /// unless this fails.
    ///
    /// # Safety
    /// The ticket is from `HandOver::ticket`. Until the operation has ended the image is neither dropped nor the memory
    /// used, which is valid for reads, and for writes if the command reads.
    ///
    /// # Errors
    /// The library's refusal; the ticket was given back.
    #[inline]
    pub unsafe fn start(&self, command: ImageCommand, part: Part, ticket: *mut c_void) -> Result<(), Errno> {
        let Rbd { rbd_aio_read, rbd_aio_write, rbd_aio_discard, rbd_aio_flush, .. } = self.functions;
        let mut completion = ptr::null_mut();
        let Part { buffer, length_bytes: length, offset_bytes: offset } = part;
        let image = self.handle;
        // SAFETY: the completion is written to, the image is open, and the caller vouches for the memory.
        let answer = unsafe {
            let created = (self.functions.rbd_aio_create_completion)(ticket, ended, &raw mut completion);
            match (created, command) {
                (..0, _) => created,
                (_, ImageCommand::Read) => {
                    rbd_aio_read(image, offset, to_usize(length), buffer.cast(), completion)
                }
                (_, ImageCommand::Write) => {
                    rbd_aio_write(image, offset, to_usize(length), buffer.cast_const().cast(), completion)
                }
                (_, ImageCommand::Discard) => rbd_aio_discard(image, offset, length, completion),
                (_, ImageCommand::Flush) => rbd_aio_flush(image, completion),
            }
        };
        if answer >= 0 {
            return Ok(());
        }
        // SAFETY: the operation was not started, so nobody else has the completion or the ticket.
        unsafe {
            if !completion.is_null() {
                (self.functions.rbd_aio_release)(completion);
            }
            HandOver::cancel(ticket);
        }
        Err(Errno(-answer))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the image is open and has nothing in flight.
        unsafe { (self.functions.rbd_close)(self.handle) };
    }
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Rbd::get().map(drop)
}

/// Called by the library when an operation has ended.
unsafe extern "C" fn ended(completion: *mut c_void, ticket: *mut c_void) {
    let Ok(functions) = Rbd::get() else { return };
    // SAFETY: the completion is that of the operation, whose result is there and which is released once; the ticket is the
    // one that it was started with, and the library calls back once.
    unsafe {
        let result = (functions.rbd_aio_get_return_value)(completion);
        (functions.rbd_aio_release)(completion);
        HandOver::end(ticket, result as i64);
    }
}

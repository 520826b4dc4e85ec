//! Objects of a Ceph cluster, by `librados.so.2`.
//!
//! Invariant: a pool is closed before the connection to its cluster, and neither while operations are in flight, for
//! which the callers of `start` vouch.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::{Connection, HandOver, LibraryError, Part, Unavailable, checked, functions};
use crate::errno::Errno;
use crate::width::to_usize;

/// `rados_callback_t`.
pub(super) type Callback = unsafe extern "C" fn(*mut c_void, *mut c_void);

functions! {
    /// Functions of librados.
    struct Rados from "librados.so.2" of package "librados2";
    fn rados_create(*mut *mut c_void, *const c_char) -> c_int;
    fn rados_create2(*mut *mut c_void, *const c_char, *const c_char, u64) -> c_int;
    fn rados_conf_read_file(*mut c_void, *const c_char) -> c_int;
    fn rados_conf_set(*mut c_void, *const c_char, *const c_char) -> c_int;
    fn rados_connect(*mut c_void) -> c_int;
    fn rados_shutdown(*mut c_void);
    fn rados_ioctx_create(*mut c_void, *const c_char, *mut *mut c_void) -> c_int;
    fn rados_ioctx_destroy(*mut c_void);
    fn rados_write(*mut c_void, *const c_char, *const c_char, usize, u64) -> c_int;
    fn rados_aio_create_completion2(*mut c_void, Callback, *mut *mut c_void) -> c_int;
    fn rados_aio_get_return_value(*mut c_void) -> c_int;
    fn rados_aio_release(*mut c_void);
    fn rados_aio_read(*mut c_void, *const c_char, *mut c_void, *mut c_char, usize, u64) -> c_int;
    fn rados_aio_write(*mut c_void, *const c_char, *mut c_void, *const c_char, usize, u64) -> c_int;
    fn rados_create_write_op() -> *mut c_void;
    fn rados_release_write_op(*mut c_void);
    fn rados_write_op_zero(*mut c_void, u64, u64);
    fn rados_aio_write_op_operate(*mut c_void, *mut c_void, *mut c_void, *const c_char, *mut i64, c_int) -> c_int;
}

/// How long to wait for a monitor, in seconds, unless the configuration says otherwise: its own default is five minutes.
const CONNECT_TIMEOUT_S: &CStr = c"30";

/// Which cluster, as whom.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterName {
    /// The cluster's name, `ceph` by default.
    pub cluster: Option<CString>,
    /// The client: with a cluster's name in full (`client.admin`), otherwise without its type (`admin`).
    pub client: Option<CString>,
    /// The configuration file; by default that of `CEPH_CONF`, or one of the places that the library knows.
    pub configuration: Option<CString>,
}

/// A connection to a cluster.
#[derive(Debug)]
struct Cluster {
    functions: &'static Rados,
    handle: *mut c_void,
    connection: Option<Connection>,
}

// SAFETY: the library's handles may be used by any thread.
unsafe impl Send for Cluster {}

impl Cluster {
    /// Connects to a cluster; blocks until a monitor answers.
    fn connect(name: &ClusterName) -> Result<Cluster, LibraryError> {
        let functions = Rados::get()?;
        let connection = Some(Connection::opened());
        let text = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
        let mut handle = ptr::null_mut();
        // SAFETY: the names are terminated or null, which the call takes for its defaults, and the handle is written to.
        let created = unsafe {
            match &name.cluster {
                Some(cluster) => {
                    (functions.rados_create2)(&raw mut handle, cluster.as_ptr(), text(&name.client), 0)
                }
                None => (functions.rados_create)(&raw mut handle, text(&name.client)),
            }
        };
        checked("rados_create", created)?;
        let cluster = Cluster { functions, handle, connection };
        // SAFETY: the handle is that of a cluster that was just created, and the names are terminated or null. The
        // library refuses an option that it does not know, which does not matter.
        unsafe {
            (functions.rados_conf_set)(handle, c"client_mount_timeout".as_ptr(), CONNECT_TIMEOUT_S.as_ptr());
            checked(
                "rados_conf_read_file",
                (functions.rados_conf_read_file)(handle, text(&name.configuration)),
            )?;
            checked("rados_connect", (functions.rados_connect)(handle))?;
        }
        Ok(cluster)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // SAFETY: the handle is valid, and nothing that was opened with it is left.
        unsafe { (self.functions.rados_shutdown)(self.handle) };
    }
}

/// A pool of a cluster.
#[derive(Debug)]
pub struct Pool {
    context: *mut c_void,
    cluster: Cluster,
}

// SAFETY: the library's handles may be used by any thread.
unsafe impl Send for Pool {}

/// What is done with a part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectCommand {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Fills it with zeroes, which frees its space.
    Zero,
}

impl Pool {
    /// A pool of a cluster; blocks until the cluster answers.
    ///
    /// # Errors
    /// The call that failed.
    pub fn open(cluster: &ClusterName, pool: &CStr) -> Result<Pool, LibraryError> {
        let cluster = Cluster::connect(cluster)?;
        let mut context = ptr::null_mut();
        // SAFETY: the handle is connected, the name is terminated, and the context is written to.
        let answer = unsafe {
            (cluster.functions.rados_ioctx_create)(cluster.handle, pool.as_ptr(), &raw mut context)
        };
        checked("rados_ioctx_create", answer)?;
        Ok(Pool { context, cluster })
    }

    /// The handle, for other libraries of Ceph.
    pub(super) fn context(&self) -> *mut c_void {
        self.context
    }

    /// Leaves the connection as it is, because operations are in flight that may never end.
    pub fn abandon(self) {
        let mut pool = std::mem::ManuallyDrop::new(self);
        if let Some(connection) = pool.cluster.connection.take() {
            connection.abandon();
        }
    }

    /// Creates an object of no bytes unless there is one of this name.
    ///
    /// # Errors
    /// The call that failed.
    pub fn touch(&self, object: &CStr) -> Result<(), LibraryError> {
        // SAFETY: the context is valid, the name terminated, and no bytes are read.
        let answer = unsafe {
            (self.cluster.functions.rados_write)(self.context, object.as_ptr(), c"".as_ptr(), 0, 0)
        };
        checked("rados_write", answer).map(drop)
    }

    /// Starts an operation, at the end of which `HandOver::end` is called with the ticket, by a thread of the library,
    /// unless this fails.
    ///
    /// # Safety
    /// The ticket is from `HandOver::ticket`. Until the operation has ended the pool is neither dropped nor the memory
    /// used, which is valid for reads, and for writes if the command reads. A transfer is no longer than
    /// `TRANSFER_BYTES_MAX`.
    ///
    /// # Errors
    /// The library's refusal; the ticket was given back.
    #[inline]
    pub unsafe fn start(
        &self,
        command: ObjectCommand,
        object: &CStr,
        part: Part,
        ticket: *mut c_void,
    ) -> Result<(), Errno> {
        let functions = self.cluster.functions;
        let mut completion = ptr::null_mut();
        let Part { buffer, length_bytes, offset_bytes } = part;
        // SAFETY: the completion is written to. The context is valid, the name terminated, and the caller vouches for the
        // memory. The library holds a reference of its own to what an operation needs.
        let answer = unsafe {
            let created = (functions.rados_aio_create_completion2)(ticket, ended, &raw mut completion);
            match (created, command) {
                (..0, _) => created,
                (_, ObjectCommand::Read) => (functions.rados_aio_read)(
                    self.context,
                    object.as_ptr(),
                    completion,
                    buffer.cast(),
                    to_usize(length_bytes),
                    offset_bytes,
                ),
                (_, ObjectCommand::Write) => (functions.rados_aio_write)(
                    self.context,
                    object.as_ptr(),
                    completion,
                    buffer.cast_const().cast(),
                    to_usize(length_bytes),
                    offset_bytes,
                ),
                (_, ObjectCommand::Zero) => self.start_zeroing(object, completion, part),
            }
        };
        if answer >= 0 {
            return Ok(());
        }
        // SAFETY: the operation was not started, so nobody else has the completion or the ticket.
        unsafe {
            if !completion.is_null() {
                (functions.rados_aio_release)(completion);
            }
            HandOver::cancel(ticket);
        }
        Err(Errno(-answer))
    }

    /// Starts an operation that fills a part of an object with zeroes.
    ///
    /// # Safety
    /// The completion is one that was created and not used.
    unsafe fn start_zeroing(&self, object: &CStr, completion: *mut c_void, part: Part) -> c_int {
        let functions = self.cluster.functions;
        // SAFETY: the operation is created, used and released here; the library keeps what it needs of it.
        unsafe {
            let operation = (functions.rados_create_write_op)();
            (functions.rados_write_op_zero)(operation, part.offset_bytes, part.length_bytes);
            let answer = (functions.rados_aio_write_op_operate)(
                operation,
                self.context,
                completion,
                object.as_ptr(),
                ptr::null_mut(),
                0,
            );
            (functions.rados_release_write_op)(operation);
            answer
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the context is valid, and nothing that was opened with it is left.
        unsafe { (self.cluster.functions.rados_ioctx_destroy)(self.context) };
    }
}

/// Whether the library can be used; loads it.
///
/// # Errors
/// Why not, and what to do.
#[inline]
pub fn is_available() -> Result<(), Unavailable> {
    Rados::get().map(drop)
}

/// Called by the library when an operation has ended.
unsafe extern "C" fn ended(completion: *mut c_void, ticket: *mut c_void) {
    let Ok(functions) = Rados::get() else { return };
    // SAFETY: the completion is that of the operation, whose result is there and which is released once; the ticket is the
    // one that it was started with, and the library calls back once.
    unsafe {
        let result = (functions.rados_aio_get_return_value)(completion);
        (functions.rados_aio_release)(completion);
        HandOver::end(ticket, i64::from(result));
    }
}

//! C libraries that are opened when they are first used and never linked, so that fiord starts without them.
//!
//! Invariant: a library stays loaded until the process ends, so that its functions, which are looked up once, remain valid.
//!
//! Only names and types of their functions are declared here, after the public headers of each library.

pub mod cuda;
pub mod cufile;
pub mod gluster;
pub mod hand_over;
pub mod iscsi;
pub mod nfs;
pub mod patience;
pub mod queue_pair;
pub mod rados;
pub mod rbd;
pub mod rdma;
mod socket;
mod verbs;

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

pub use hand_over::HandOver;

/// A library that cannot be used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable {
    /// The call that failed, with the name of the library.
    pub call: &'static str,
    /// Why.
    pub cause: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// A call of a library that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LibraryError {
    /// The library itself.
    Unavailable(Unavailable),
    /// The call and the error number it returned.
    Call(&'static str, crate::Errno),
    /// A request to stop the run arrived while the library waited for the server.
    Stopped(&'static str),
}

impl From<Unavailable> for LibraryError {
    fn from(unavailable: Unavailable) -> LibraryError {
        LibraryError::Unavailable(unavailable)
    }
}

/// The result of a call that returns 0 or more, or a negative error number.
#[inline]
pub(crate) fn checked(call: &'static str, answer: c_int) -> Result<c_int, LibraryError> {
    if answer < 0 { Err(LibraryError::Call(call, crate::Errno(-answer))) } else { Ok(answer) }
}

/// A library that is loaded.
#[derive(Debug)]
pub(crate) struct Library {
    handle: *mut c_void,
}

/// Whether this program can load libraries: one that is linked statically has no dynamic loader.
pub const CAN_LOAD: bool = !cfg!(target_feature = "crt-static");

impl Library {
    /// Loads the library of this file name.
    ///
    /// # Errors
    /// The loader's reason.
    pub(crate) fn open(file_name: &CStr) -> Result<Library, String> {
        // SAFETY: the name is terminated. Constructors of the library run; they are those of packaged system libraries,
        // which any program may load.
        let handle = unsafe { libc::dlopen(file_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() { Err(last_error()) } else { Ok(Library { handle }) }
    }

    /// A function of the library, in this version if one is given.
    ///
    /// # Safety
    /// `F` is a pointer to a function with the types that the library gives the function of this name and version.
    ///
    /// # Errors
    /// The loader's reason.
    pub(crate) unsafe fn function<F: Copy>(&self, name: &CStr, version: Option<&CStr>) -> Result<F, String> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a pointer to a function") };
        // SAFETY: the handle is that of a loaded library, and the names are terminated.
        let address = unsafe { look_up(self.handle, name, version) };
        if address.is_null() {
            return Err(last_error());
        }
        // SAFETY: both are pointers, and the caller vouches for the type.
        Ok(unsafe { std::mem::transmute_copy(&address) })
    }
}

/// The address of a function, null if there is none.
///
/// # Safety
/// The handle is that of a loaded library.
unsafe fn look_up(handle: *mut c_void, name: &CStr, version: Option<&CStr>) -> *mut c_void {
    match version {
        #[cfg(target_env = "gnu")]
        // SAFETY: as the caller says, and the names are terminated.
        Some(version) => unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) },
        // SAFETY: as the caller says, and the name is terminated.
        _ => unsafe { libc::dlsym(handle, name.as_ptr()) },
    }
}

/// The reason of the loader's last failure on this thread.
fn last_error() -> String {
    // SAFETY: the call returns null or a string that lives until the thread's next call of the loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { return "no reason given".to_string() } else { CStr::from_ptr(text) }
    };
    text.to_string_lossy().into_owned()
}

/// The most bytes of one transfer for libraries that take or return them as an `int`.
pub const TRANSFER_BYTES_MAX: u64 = i32::MAX as u64;

/// A part of memory, and where it belongs in a file, object or image.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Where in memory; not used by commands that transfer nothing.
    pub buffer: *mut u8,
    /// How much, in bytes: of what is transferred no more than is in memory.
    pub length_bytes: u64,
    /// Where in the file, object or image, in bytes.
    pub offset_bytes: u64,
}

/// How a library is called, in errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Naming {
    /// `dlopen(FILE)`.
    pub(crate) call: &'static str,
    /// How to install it.
    pub(crate) install: &'static str,
}

impl Naming {
    /// The error of a library that was not found, or lacks a function. Made at most once per library.
    pub(crate) fn unavailable(self, reason: String) -> Unavailable {
        Unavailable { call: self.call, cause: String::leak(reason), remedy: self.install }
    }

    /// The error in a program without a loader.
    pub(crate) fn without_loader(self) -> Unavailable {
        Unavailable {
            call: self.call,
            cause: "this fiord is linked statically, and such a program cannot load libraries",
            remedy: "build fiord from its sources with cargo, which links it to the C library of this machine",
        }
    }

    /// Checks that this program can load libraries. Inlined into the engines, all of whose code behind this check the compiler
    /// then leaves out of a program that cannot.
    #[inline]
    pub(crate) fn needs_loader(self) -> Result<(), Unavailable> {
        if CAN_LOAD { Ok(()) } else { Err(self.without_loader()) }
    }
}

/// Declares a structure of the functions of one library, loaded on first use.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        struct $name:ident from $file:literal $(or $other:literal)* of package $package:literal;
        $(fn $function:ident($($argument:ty),* $(,)?) $(-> $result:ty)? $(, version $version:literal)?;)+
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $(pub(crate) $function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl $name {
            const NAMING: $crate::library::Naming = $crate::library::Naming {
                call: concat!("dlopen(", $file, ")"),
                install: concat!("apt-get install ", $package),
            };

            /// Those of the library, which is loaded by the first call.
            #[inline]
            pub(crate) fn get() -> Result<&'static $name, $crate::library::Unavailable> {
                use std::sync::OnceLock;
                Self::NAMING.needs_loader()?;
                static LOADED: OnceLock<Result<$name, $crate::library::Unavailable>> = OnceLock::new();
                LOADED.get_or_init(Self::load).as_ref().map_err(|unavailable| *unavailable)
            }

            fn load() -> Result<$name, $crate::library::Unavailable> {
                let terminated = |text: &'static str| {
                    std::ffi::CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
                };
                let failed = |reason| Self::NAMING.unavailable(reason);
                let library = $crate::library::Library::open(terminated(concat!($file, "\0")));
                $(let library = library.or_else(|_| {
                    $crate::library::Library::open(terminated(concat!($other, "\0")))
                });)*
                let library = library.map_err(failed)?;
                Ok($name {
                    $($function: {
                        let version: Option<&'static str> = None $(.or(Some(concat!($version, "\0"))))?;
                        let name = terminated(concat!(stringify!($function), "\0"));
                        // SAFETY: the type is that of the library's header.
                        unsafe { library.function(name, version.map(terminated)) }.map_err(failed)?
                    },)+
                })
            }
        }
    };
}

pub(crate) use functions;

/// Connections that are open or were abandoned.
static CONNECTIONS: AtomicU32 = AtomicU32::new(0);

/// A connection that a library keeps, with threads of its own. While there is one, the process ends without running the
/// destructors of libraries, which would take away what these threads use.
#[derive(Debug)]
pub struct Connection(());

impl Connection {
    /// One more.
    pub(crate) fn opened() -> Connection {
        if CONNECTIONS.fetch_add(1, Ordering::Relaxed) == 0 {
            exit_early();
        }
        Connection(())
    }

    /// The connection is left to itself, because closing it could take for ever.
    pub(crate) fn abandon(self) {
        std::mem::forget(self);
        Connection::abandon_all();
    }

    /// Connections that were not closed stay as they are when the process ends.
    pub fn abandon_all() {
        // Again, since handlers run in the opposite order: destructors may have been added in the meantime.
        exit_early();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// From here on `exit` ends the process at once if a connection is open then.
fn exit_early() {
    #[cfg(target_env = "gnu")]
    {
        unsafe extern "C" {
            fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        }
        // SAFETY: the function does not use its argument. Without memory for the entry the destructors run.
        unsafe { on_exit(end_process, std::ptr::null_mut()) };
    }
}

/// Ends the process if a connection is open.
#[cfg(target_env = "gnu")]
extern "C" fn end_process(status: c_int, _argument: *mut c_void) {
    if CONNECTIONS.load(Ordering::Relaxed) > 0 {
        // SAFETY: the call does not return, and takes a number. What fiord prints was flushed before it called `exit`.
        unsafe { libc::_exit(status) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    functions! {
        /// The mathematical library, which every Debian system has.
        struct Mathematics from "libm.so.6" of package "libc6";
        fn cos(f64) -> f64;
        fn pow(f64, f64) -> f64, version "GLIBC_2.29";
    }

    functions! {
        /// No system has this one.
        #[allow(dead_code, reason = "it is never loaded")]
        struct Nowhere from "libfiord-nowhere.so.7" of package "libfiord-nowhere7";
        fn cos(f64) -> f64;
    }

    functions! {
        /// A function that the library does not have.
        #[allow(dead_code, reason = "it is never loaded")]
        struct Misfit from "libm.so.6" of package "libc6";
        fn fiord_nothing(f64) -> f64;
    }

    #[test]
    fn functions_of_a_library_are_found_in_the_version_asked_for() {
        if !CAN_LOAD {
            fiord_testing::skip!("a statically linked test cannot load libraries");
        }
        let functions = Mathematics::get().unwrap();
        // SAFETY: both take and return plain numbers.
        let (cosine, power) = unsafe { ((functions.cos)(0.0), (functions.pow)(2.0, 10.0)) };
        assert_eq!((cosine, power), (1.0, 1024.0));
    }

    #[test]
    fn a_missing_library_names_its_package_and_a_missing_function_itself() {
        let missing = Nowhere::get().unwrap_err();
        assert_eq!(missing.call, "dlopen(libfiord-nowhere.so.7)");
        if !CAN_LOAD {
            assert!(missing.cause.contains("statically") && missing.remedy.contains("from its sources"));
            fiord_testing::skip!("a statically linked test cannot load libraries");
        }
        assert!(missing.cause.contains("libfiord-nowhere.so.7"), "{}", missing.cause);
        assert_eq!(missing.remedy, "apt-get install libfiord-nowhere7");
        let misfit = Misfit::get().unwrap_err();
        assert!(misfit.cause.contains("fiord_nothing"), "{}", misfit.cause);
    }
}

//! Error numbers as values, with their names and texts. The only table of the workspace.
//!
//! Invariant: each of the kernel's numbers is listed once, with the number that Linux gives it on x86-64, ARM, RISC-V,
//! POWER, s390 and LoongArch; the texts are those of `strerror`, whatever the locale.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

use std::fmt;
use std::io;

#[cfg(any(target_arch = "mips", target_arch = "mips64", target_arch = "sparc", target_arch = "sparc64"))]
compile_error!("Linux numbers its errors differently on this architecture");

/// The kernel's greatest error number. Libraries have numbers above it for errors of their own.
const KERNEL_MAX: i32 = 4095;

/// One of the kernel's error numbers (positive, as `errno` holds it).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(pub i32);

/// An error of the kernel of which more is known than its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The number.
    pub errno: Errno,
    /// What it concerns, why, and what to do.
    pub explanation: String,
}

impl Explained {
    /// This explanation of an error, as an `io::Error`; of one without a number, `EIO`.
    pub fn with(error: &io::Error, explanation: impl Into<String>) -> io::Error {
        let errno = Errno::of(error).unwrap_or(Errno::EIO);
        io::Error::new(error.kind(), Explained { errno, explanation: explanation.into() })
    }

    /// What is inside an `io::Error`.
    pub fn of(error: &io::Error) -> Option<&Explained> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.errno, self.explanation)
    }
}

impl std::error::Error for Explained {}

/// Declares the table and a constant for each of its rows.
macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)+) => {
        /// One constant per error of the kernel.
        impl Errno {
            $(
                #[doc = $text]
                pub const $name: Errno = Errno($number);
            )+
        }

        /// Number, name, text.
        const TABLE: &[(i32, &str, &str)] = &[$(($number, stringify!($name), $text)),+];
    };
}

impl Errno {
    /// The calling thread's last error.
    pub fn last() -> Errno {
        Errno(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// The number inside an `io::Error`, if it came from the kernel.
    pub fn of(error: &io::Error) -> Option<Errno> {
        error.raw_os_error().map(Errno).or_else(|| Explained::of(error).map(|explained| explained.errno))
    }

    /// The constant's name, `"ENOSPC"`; `"E?"` for a number without a name.
    pub fn name(self) -> &'static str {
        self.row().map_or("E?", |row| row.1)
    }

    /// Its text, `"No space left on device"`.
    pub fn describe(self) -> &'static str {
        match self.row() {
            Some(row) => row.2,
            None if self.0 > KERNEL_MAX => "Error of a library",
            None => "Unknown error",
        }
    }

    /// Whether there is no room, on the file system or within a quota.
    pub fn is_no_space(self) -> bool {
        matches!(self, Errno::ENOSPC | Errno::EDQUOT)
    }

    /// The number of a name, `"ENOSPC"`; aliases (`EWOULDBLOCK`, `ENOTSUP`, `EDEADLOCK`) are known.
    pub fn from_name(name: &str) -> Option<Errno> {
        let name = match name {
            "EWOULDBLOCK" => "EAGAIN",
            "ENOTSUP" => "EOPNOTSUPP",
            "EDEADLOCK" => "EDEADLK",
            other => other,
        };
        TABLE.iter().find(|row| row.1 == name).map(|row| Errno(row.0))
    }

    fn row(self) -> Option<&'static (i32, &'static str, &'static str)> {
        TABLE.iter().find(|row| row.0 == self.0)
    }
}

impl fmt::Display for Errno {
    /// `No space left on device (ENOSPC)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row() {
            Some(row) => write!(f, "{} ({})", row.2, row.1),
            None if self.0 > KERNEL_MAX => write!(f, "error {} of a library", self.0),
            None => write!(f, "Unknown error (errno {})", self.0),
        }
    }
}

/// The text of an error for a message: an error of the kernel as [`Errno`] is displayed, any other in its own words.
pub fn error_text(error: &io::Error) -> String {
    Errno::of(error).map_or_else(|| error.to_string(), |errno| errno.to_string())
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({} {})", self.0, self.name())
    }
}

impl std::error::Error for Errno {}

impl From<Errno> for io::Error {
    fn from(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno.0)
    }
}

errnos! {
    EPERM = 1, "Operation not permitted";
    ENOENT = 2, "No such file or directory";
    ESRCH = 3, "No such process";
    EINTR = 4, "Interrupted system call";
    EIO = 5, "Input/output error";
    ENXIO = 6, "No such device or address";
    E2BIG = 7, "Argument list too long";
    ENOEXEC = 8, "Exec format error";
    EBADF = 9, "Bad file descriptor";
    ECHILD = 10, "No child processes";
    EAGAIN = 11, "Resource temporarily unavailable";
    ENOMEM = 12, "Cannot allocate memory";
    EACCES = 13, "Permission denied";
    EFAULT = 14, "Bad address";
    ENOTBLK = 15, "Block device required";
    EBUSY = 16, "Device or resource busy";
    EEXIST = 17, "File exists";
    EXDEV = 18, "Invalid cross-device link";
    ENODEV = 19, "No such device";
    ENOTDIR = 20, "Not a directory";
    EISDIR = 21, "Is a directory";
    EINVAL = 22, "Invalid argument";
    ENFILE = 23, "Too many open files in system";
    EMFILE = 24, "Too many open files";
    ENOTTY = 25, "Inappropriate ioctl for device";
    ETXTBSY = 26, "Text file busy";
    EFBIG = 27, "File too large";
    ENOSPC = 28, "No space left on device";
    ESPIPE = 29, "Illegal seek";
    EROFS = 30, "Read-only file system";
    EMLINK = 31, "Too many links";
    EPIPE = 32, "Broken pipe";
    EDOM = 33, "Numerical argument out of domain";
    ERANGE = 34, "Numerical result out of range";
    EDEADLK = 35, "Resource deadlock avoided";
    ENAMETOOLONG = 36, "File name too long";
    ENOLCK = 37, "No locks available";
    ENOSYS = 38, "Function not implemented";
    ENOTEMPTY = 39, "Directory not empty";
    ELOOP = 40, "Too many levels of symbolic links";
    ENOMSG = 42, "No message of desired type";
    EIDRM = 43, "Identifier removed";
    ECHRNG = 44, "Channel number out of range";
    EL2NSYNC = 45, "Level 2 not synchronized";
    EL3HLT = 46, "Level 3 halted";
    EL3RST = 47, "Level 3 reset";
    ELNRNG = 48, "Link number out of range";
    EUNATCH = 49, "Protocol driver not attached";
    ENOCSI = 50, "No CSI structure available";
    EL2HLT = 51, "Level 2 halted";
    EBADE = 52, "Invalid exchange";
    EBADR = 53, "Invalid request descriptor";
    EXFULL = 54, "Exchange full";
    ENOANO = 55, "No anode";
    EBADRQC = 56, "Invalid request code";
    EBADSLT = 57, "Invalid slot";
    EBFONT = 59, "Bad font file format";
    ENOSTR = 60, "Device not a stream";
    ENODATA = 61, "No data available";
    ETIME = 62, "Timer expired";
    ENOSR = 63, "Out of streams resources";
    ENONET = 64, "Machine is not on the network";
    ENOPKG = 65, "Package not installed";
    EREMOTE = 66, "Object is remote";
    ENOLINK = 67, "Link has been severed";
    EADV = 68, "Advertise error";
    ESRMNT = 69, "Srmount error";
    ECOMM = 70, "Communication error on send";
    EPROTO = 71, "Protocol error";
    EMULTIHOP = 72, "Multihop attempted";
    EDOTDOT = 73, "RFS specific error";
    EBADMSG = 74, "Bad message";
    EOVERFLOW = 75, "Value too large for defined data type";
    ENOTUNIQ = 76, "Name not unique on network";
    EBADFD = 77, "File descriptor in bad state";
    EREMCHG = 78, "Remote address changed";
    ELIBACC = 79, "Can not access a needed shared library";
    ELIBBAD = 80, "Accessing a corrupted shared library";
    ELIBSCN = 81, ".lib section in a.out corrupted";
    ELIBMAX = 82, "Attempting to link in too many shared libraries";
    ELIBEXEC = 83, "Cannot exec a shared library directly";
    EILSEQ = 84, "Invalid or incomplete multibyte or wide character";
    ERESTART = 85, "Interrupted system call should be restarted";
    ESTRPIPE = 86, "Streams pipe error";
    EUSERS = 87, "Too many users";
    ENOTSOCK = 88, "Socket operation on non-socket";
    EDESTADDRREQ = 89, "Destination address required";
    EMSGSIZE = 90, "Message too long";
    EPROTOTYPE = 91, "Protocol wrong type for socket";
    ENOPROTOOPT = 92, "Protocol not available";
    EPROTONOSUPPORT = 93, "Protocol not supported";
    ESOCKTNOSUPPORT = 94, "Socket type not supported";
    EOPNOTSUPP = 95, "Operation not supported";
    EPFNOSUPPORT = 96, "Protocol family not supported";
    EAFNOSUPPORT = 97, "Address family not supported by protocol";
    EADDRINUSE = 98, "Address already in use";
    EADDRNOTAVAIL = 99, "Cannot assign requested address";
    ENETDOWN = 100, "Network is down";
    ENETUNREACH = 101, "Network is unreachable";
    ENETRESET = 102, "Network dropped connection on reset";
    ECONNABORTED = 103, "Software caused connection abort";
    ECONNRESET = 104, "Connection reset by peer";
    ENOBUFS = 105, "No buffer space available";
    EISCONN = 106, "Transport endpoint is already connected";
    ENOTCONN = 107, "Transport endpoint is not connected";
    ESHUTDOWN = 108, "Cannot send after transport endpoint shutdown";
    ETOOMANYREFS = 109, "Too many references: cannot splice";
    ETIMEDOUT = 110, "Connection timed out";
    ECONNREFUSED = 111, "Connection refused";
    EHOSTDOWN = 112, "Host is down";
    EHOSTUNREACH = 113, "No route to host";
    EALREADY = 114, "Operation already in progress";
    EINPROGRESS = 115, "Operation now in progress";
    ESTALE = 116, "Stale file handle";
    EUCLEAN = 117, "Structure needs cleaning";
    ENOTNAM = 118, "Not a XENIX named type file";
    ENAVAIL = 119, "No XENIX semaphores available";
    EISNAM = 120, "Is a named type file";
    EREMOTEIO = 121, "Remote I/O error";
    EDQUOT = 122, "Disk quota exceeded";
    ENOMEDIUM = 123, "No medium found";
    EMEDIUMTYPE = 124, "Wrong medium type";
    ECANCELED = 125, "Operation canceled";
    ENOKEY = 126, "Required key not available";
    EKEYEXPIRED = 127, "Key has expired";
    EKEYREVOKED = 128, "Key has been revoked";
    EKEYREJECTED = 129, "Key was rejected by service";
    EOWNERDEAD = 130, "Owner died";
    ENOTRECOVERABLE = 131, "State not recoverable";
    ERFKILL = 132, "Operation not possible due to RF-kill";
    EHWPOISON = 133, "Memory page has hardware error";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_map_to_each_other() {
        for &(number, name, _) in TABLE {
            assert_eq!(Errno(number).name(), name, "{name} is listed twice or under another number");
            assert_eq!(Errno::from_name(name), Some(Errno(number)));
        }
    }

    #[test]
    fn aliases_are_known() {
        assert_eq!(Errno::from_name("EWOULDBLOCK"), Some(Errno::EAGAIN));
        assert_eq!(Errno::from_name("ENOTSUP"), Some(Errno::EOPNOTSUPP));
        assert_eq!(Errno::from_name("EDEADLOCK"), Some(Errno::EDEADLK));
        assert_eq!(Errno::from_name("ENOSUCHTHING"), None);
    }

    #[test]
    fn a_number_above_those_of_the_kernel_is_a_librarys() {
        assert_eq!(Errno(5027).to_string(), "error 5027 of a library");
        assert_eq!((Errno(4095).describe(), Errno(4096).describe()), ("Unknown error", "Error of a library"));
    }

    // musl has texts of its own.
    #[cfg(target_env = "gnu")]
    #[test]
    fn numbers_and_texts_are_those_of_the_c_library() {
        for &(number, name, text) in TABLE {
            let theirs = io::Error::from_raw_os_error(number).to_string();
            let theirs = theirs.split(" (os error").next().unwrap_or_default();
            assert!(theirs == text || theirs.contains("nknown"), "{name}: {text:?}, libc says {theirs:?}");
        }
    }

    #[test]
    fn errors_of_the_kernel_have_one_text_wherever_they_come_from() {
        let missing = std::fs::File::open("/nonexistent").unwrap_err();
        assert_eq!(error_text(&missing), "No such file or directory (ENOENT)");
        assert_eq!(error_text(&missing), Errno::ENOENT.to_string());
        assert_eq!(error_text(&io::Error::other("the log is cut off")), "the log is cut off");
    }

    #[test]
    fn unknown_numbers_are_shown_as_numbers() {
        assert_eq!(Errno(999).to_string(), "Unknown error (errno 999)");
        assert_eq!(Errno::ENOSPC.to_string(), "No space left on device (ENOSPC)");
    }
}

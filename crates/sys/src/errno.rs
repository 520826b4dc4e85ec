//! Error numbers as values: their names, and what they mean in words.
//!
//! Invariant: the table holds each of the kernel's numbers once, by libc's constant, so it is right on every
//! architecture; the texts are those a person knows from `strerror`, whatever the locale.

use std::fmt;
use std::io;

/// One of the kernel's error numbers (positive, as `errno` holds it).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(pub i32);

impl Errno {
    /// The calling thread's last error.
    pub fn last() -> Errno {
        Errno(io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }

    /// The number inside an `io::Error`, where it came from the kernel.
    pub fn of(error: &io::Error) -> Option<Errno> {
        error.raw_os_error().map(Errno)
    }

    /// The constant's name, `"ENOSPC"`; `"E?"` for a number the kernel has no name for.
    pub fn name(self) -> &'static str {
        self.row().map_or("E?", |row| row.1)
    }

    /// What it means, `"No space left on device"`.
    pub fn describe(self) -> &'static str {
        self.row().map_or("Unknown error", |row| row.2)
    }

    /// The number behind a name, `"ENOSPC"`; the second names of some (`EWOULDBLOCK`, `ENOTSUP`, `EDEADLOCK`) too.
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
            None => write!(f, "Unknown error (errno {})", self.0),
        }
    }
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

/// The result of a call that answers -1 and sets `errno`.
#[inline]
pub(crate) fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The same for calls that answer a length.
#[inline]
pub(crate) fn check_len(answer: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// The same for `syscall(2)`.
#[inline]
pub(crate) fn check_long(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The result of a `posix_*` call, which answers the error number itself.
#[inline]
pub(crate) fn check_posix(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

#[rustfmt::skip]
const TABLE: &[(i32, &str, &str)] = &[
    (libc::EPERM, "EPERM", "Operation not permitted"),
    (libc::ENOENT, "ENOENT", "No such file or directory"),
    (libc::ESRCH, "ESRCH", "No such process"),
    (libc::EINTR, "EINTR", "Interrupted system call"),
    (libc::EIO, "EIO", "Input/output error"),
    (libc::ENXIO, "ENXIO", "No such device or address"),
    (libc::E2BIG, "E2BIG", "Argument list too long"),
    (libc::ENOEXEC, "ENOEXEC", "Exec format error"),
    (libc::EBADF, "EBADF", "Bad file descriptor"),
    (libc::ECHILD, "ECHILD", "No child processes"),
    (libc::EAGAIN, "EAGAIN", "Resource temporarily unavailable"),
    (libc::ENOMEM, "ENOMEM", "Cannot allocate memory"),
    (libc::EACCES, "EACCES", "Permission denied"),
    (libc::EFAULT, "EFAULT", "Bad address"),
    (libc::ENOTBLK, "ENOTBLK", "Block device required"),
    (libc::EBUSY, "EBUSY", "Device or resource busy"),
    (libc::EEXIST, "EEXIST", "File exists"),
    (libc::EXDEV, "EXDEV", "Invalid cross-device link"),
    (libc::ENODEV, "ENODEV", "No such device"),
    (libc::ENOTDIR, "ENOTDIR", "Not a directory"),
    (libc::EISDIR, "EISDIR", "Is a directory"),
    (libc::EINVAL, "EINVAL", "Invalid argument"),
    (libc::ENFILE, "ENFILE", "Too many open files in system"),
    (libc::EMFILE, "EMFILE", "Too many open files"),
    (libc::ENOTTY, "ENOTTY", "Inappropriate ioctl for device"),
    (libc::ETXTBSY, "ETXTBSY", "Text file busy"),
    (libc::EFBIG, "EFBIG", "File too large"),
    (libc::ENOSPC, "ENOSPC", "No space left on device"),
    (libc::ESPIPE, "ESPIPE", "Illegal seek"),
    (libc::EROFS, "EROFS", "Read-only file system"),
    (libc::EMLINK, "EMLINK", "Too many links"),
    (libc::EPIPE, "EPIPE", "Broken pipe"),
    (libc::EDOM, "EDOM", "Numerical argument out of domain"),
    (libc::ERANGE, "ERANGE", "Numerical result out of range"),
    (libc::EDEADLK, "EDEADLK", "Resource deadlock avoided"),
    (libc::ENAMETOOLONG, "ENAMETOOLONG", "File name too long"),
    (libc::ENOLCK, "ENOLCK", "No locks available"),
    (libc::ENOSYS, "ENOSYS", "Function not implemented"),
    (libc::ENOTEMPTY, "ENOTEMPTY", "Directory not empty"),
    (libc::ELOOP, "ELOOP", "Too many levels of symbolic links"),
    (libc::ENOMSG, "ENOMSG", "No message of desired type"),
    (libc::EIDRM, "EIDRM", "Identifier removed"),
    (libc::ECHRNG, "ECHRNG", "Channel number out of range"),
    (libc::EL2NSYNC, "EL2NSYNC", "Level 2 not synchronized"),
    (libc::EL3HLT, "EL3HLT", "Level 3 halted"),
    (libc::EL3RST, "EL3RST", "Level 3 reset"),
    (libc::ELNRNG, "ELNRNG", "Link number out of range"),
    (libc::EUNATCH, "EUNATCH", "Protocol driver not attached"),
    (libc::ENOCSI, "ENOCSI", "No CSI structure available"),
    (libc::EL2HLT, "EL2HLT", "Level 2 halted"),
    (libc::EBADE, "EBADE", "Invalid exchange"),
    (libc::EBADR, "EBADR", "Invalid request descriptor"),
    (libc::EXFULL, "EXFULL", "Exchange full"),
    (libc::ENOANO, "ENOANO", "No anode"),
    (libc::EBADRQC, "EBADRQC", "Invalid request code"),
    (libc::EBADSLT, "EBADSLT", "Invalid slot"),
    (libc::EBFONT, "EBFONT", "Bad font file format"),
    (libc::ENOSTR, "ENOSTR", "Device not a stream"),
    (libc::ENODATA, "ENODATA", "No data available"),
    (libc::ETIME, "ETIME", "Timer expired"),
    (libc::ENOSR, "ENOSR", "Out of streams resources"),
    (libc::ENONET, "ENONET", "Machine is not on the network"),
    (libc::ENOPKG, "ENOPKG", "Package not installed"),
    (libc::EREMOTE, "EREMOTE", "Object is remote"),
    (libc::ENOLINK, "ENOLINK", "Link has been severed"),
    (libc::EADV, "EADV", "Advertise error"),
    (libc::ESRMNT, "ESRMNT", "Srmount error"),
    (libc::ECOMM, "ECOMM", "Communication error on send"),
    (libc::EPROTO, "EPROTO", "Protocol error"),
    (libc::EMULTIHOP, "EMULTIHOP", "Multihop attempted"),
    (libc::EDOTDOT, "EDOTDOT", "RFS specific error"),
    (libc::EBADMSG, "EBADMSG", "Bad message"),
    (libc::EOVERFLOW, "EOVERFLOW", "Value too large for defined data type"),
    (libc::ENOTUNIQ, "ENOTUNIQ", "Name not unique on network"),
    (libc::EBADFD, "EBADFD", "File descriptor in bad state"),
    (libc::EREMCHG, "EREMCHG", "Remote address changed"),
    (libc::ELIBACC, "ELIBACC", "Can not access a needed shared library"),
    (libc::ELIBBAD, "ELIBBAD", "Accessing a corrupted shared library"),
    (libc::ELIBSCN, "ELIBSCN", ".lib section in a.out corrupted"),
    (libc::ELIBMAX, "ELIBMAX", "Attempting to link in too many shared libraries"),
    (libc::ELIBEXEC, "ELIBEXEC", "Cannot exec a shared library directly"),
    (libc::EILSEQ, "EILSEQ", "Invalid or incomplete multibyte or wide character"),
    (libc::ERESTART, "ERESTART", "Interrupted system call should be restarted"),
    (libc::ESTRPIPE, "ESTRPIPE", "Streams pipe error"),
    (libc::EUSERS, "EUSERS", "Too many users"),
    (libc::ENOTSOCK, "ENOTSOCK", "Socket operation on non-socket"),
    (libc::EDESTADDRREQ, "EDESTADDRREQ", "Destination address required"),
    (libc::EMSGSIZE, "EMSGSIZE", "Message too long"),
    (libc::EPROTOTYPE, "EPROTOTYPE", "Protocol wrong type for socket"),
    (libc::ENOPROTOOPT, "ENOPROTOOPT", "Protocol not available"),
    (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT", "Protocol not supported"),
    (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT", "Socket type not supported"),
    (libc::EOPNOTSUPP, "EOPNOTSUPP", "Operation not supported"),
    (libc::EPFNOSUPPORT, "EPFNOSUPPORT", "Protocol family not supported"),
    (libc::EAFNOSUPPORT, "EAFNOSUPPORT", "Address family not supported by protocol"),
    (libc::EADDRINUSE, "EADDRINUSE", "Address already in use"),
    (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL", "Cannot assign requested address"),
    (libc::ENETDOWN, "ENETDOWN", "Network is down"),
    (libc::ENETUNREACH, "ENETUNREACH", "Network is unreachable"),
    (libc::ENETRESET, "ENETRESET", "Network dropped connection on reset"),
    (libc::ECONNABORTED, "ECONNABORTED", "Software caused connection abort"),
    (libc::ECONNRESET, "ECONNRESET", "Connection reset by peer"),
    (libc::ENOBUFS, "ENOBUFS", "No buffer space available"),
    (libc::EISCONN, "EISCONN", "Transport endpoint is already connected"),
    (libc::ENOTCONN, "ENOTCONN", "Transport endpoint is not connected"),
    (libc::ESHUTDOWN, "ESHUTDOWN", "Cannot send after transport endpoint shutdown"),
    (libc::ETOOMANYREFS, "ETOOMANYREFS", "Too many references: cannot splice"),
    (libc::ETIMEDOUT, "ETIMEDOUT", "Connection timed out"),
    (libc::ECONNREFUSED, "ECONNREFUSED", "Connection refused"),
    (libc::EHOSTDOWN, "EHOSTDOWN", "Host is down"),
    (libc::EHOSTUNREACH, "EHOSTUNREACH", "No route to host"),
    (libc::EALREADY, "EALREADY", "Operation already in progress"),
    (libc::EINPROGRESS, "EINPROGRESS", "Operation now in progress"),
    (libc::ESTALE, "ESTALE", "Stale file handle"),
    (libc::EUCLEAN, "EUCLEAN", "Structure needs cleaning"),
    (libc::ENOTNAM, "ENOTNAM", "Not a XENIX named type file"),
    (libc::ENAVAIL, "ENAVAIL", "No XENIX semaphores available"),
    (libc::EISNAM, "EISNAM", "Is a named type file"),
    (libc::EREMOTEIO, "EREMOTEIO", "Remote I/O error"),
    (libc::EDQUOT, "EDQUOT", "Disk quota exceeded"),
    (libc::ENOMEDIUM, "ENOMEDIUM", "No medium found"),
    (libc::EMEDIUMTYPE, "EMEDIUMTYPE", "Wrong medium type"),
    (libc::ECANCELED, "ECANCELED", "Operation canceled"),
    (libc::ENOKEY, "ENOKEY", "Required key not available"),
    (libc::EKEYEXPIRED, "EKEYEXPIRED", "Key has expired"),
    (libc::EKEYREVOKED, "EKEYREVOKED", "Key has been revoked"),
    (libc::EKEYREJECTED, "EKEYREJECTED", "Key was rejected by service"),
    (libc::EOWNERDEAD, "EOWNERDEAD", "Owner died"),
    (libc::ENOTRECOVERABLE, "ENOTRECOVERABLE", "State not recoverable"),
    (libc::ERFKILL, "ERFKILL", "Operation not possible due to RF-kill"),
    (libc::EHWPOISON, "EHWPOISON", "Memory page has hardware error"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_each_others_inverse() {
        for &(number, name, _) in TABLE {
            assert_eq!(Errno(number).name(), name, "{name} stands twice or under another number");
            assert_eq!(Errno::from_name(name), Some(Errno(number)));
        }
    }

    #[test]
    fn second_names_are_known() {
        assert_eq!(Errno::from_name("EWOULDBLOCK"), Some(Errno(libc::EWOULDBLOCK)));
        assert_eq!(Errno::from_name("ENOTSUP"), Some(Errno(libc::ENOTSUP)));
        assert_eq!(Errno::from_name("EDEADLOCK"), Some(Errno(libc::EDEADLOCK)));
        assert_eq!(Errno::from_name("ENOSUCHTHING"), None);
    }

    #[test]
    fn texts_are_those_of_the_c_library() {
        for &(number, name, text) in TABLE {
            let theirs = io::Error::from_raw_os_error(number).to_string();
            let theirs = theirs.split(" (os error").next().unwrap();
            assert!(theirs == text || theirs.contains("nknown"), "{name}: {text:?}, libc says {theirs:?}");
        }
    }

    #[test]
    fn unknown_numbers_are_shown_as_numbers() {
        assert_eq!(Errno(9999).to_string(), "Unknown error (errno 9999)");
        assert_eq!(Errno(libc::ENOSPC).to_string(), "No space left on device (ENOSPC)");
    }
}

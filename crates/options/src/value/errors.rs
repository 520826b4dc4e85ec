//! Errors by name or number, for `ignore_error`.
//!
//! Invariant: an error is held as Linux's number; the names are those of Linux on all its common architectures.

use super::{Reading, Value};

/// An error number of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub i32);

/// Errors to pass over, one list per kind of I/O.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IgnoreErrors {
    /// For reads.
    pub read: Vec<ErrorCode>,
    /// For writes.
    pub write: Vec<ErrorCode>,
    /// For verifying.
    pub verify: Vec<ErrorCode>,
}

impl ErrorCode {
    /// The name (`EIO`), where the number is one of Linux's common ones.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(_, number)| *number == self.0).map(|(name, _)| *name)
    }

    fn parse(text: &str) -> Result<ErrorCode, String> {
        let text = text.trim();
        if let Some((_, number)) = NAMES.iter().find(|(name, _)| *name == text) {
            return Ok(ErrorCode(*number));
        }
        match text.parse() {
            Ok(number @ 1..=4095) => Ok(ErrorCode(number)),
            _ => Err(format!("{text:?} is neither the name nor the number of an error")),
        }
    }
}

impl Value for IgnoreErrors {
    const KIND: &'static str = "up to three lists of errors (read,write,verify), errors separated by a colon";

    fn parse(text: &str, reading: &mut Reading) -> Result<IgnoreErrors, String> {
        let mut lists = [const { Vec::new() }; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > lists.len() {
            reading.note(format!("three lists are taken (read, write, verify) of {text:?}"));
        }
        for (list, part) in lists.iter_mut().zip(parts) {
            for error in part.split(':').filter(|error| !error.trim().is_empty()) {
                list.push(ErrorCode::parse(error)?);
            }
        }
        let [read, write, verify] = lists;
        Ok(IgnoreErrors { read, write, verify })
    }

    fn print(&self) -> String {
        let list = |errors: &[ErrorCode]| {
            let names: Vec<String> = errors
                .iter()
                .map(|error| error.name().map_or_else(|| error.0.to_string(), str::to_string))
                .collect();
            names.join(":")
        };
        let lists = format!("{},{},{}", list(&self.read), list(&self.write), list(&self.verify));
        lists.trim_end_matches(',').to_string()
    }

    fn unset() -> Option<IgnoreErrors> {
        Some(IgnoreErrors::default())
    }
}

/// errno(3) on Linux.
#[rustfmt::skip]
const NAMES: &[(&str, i32)] = &[
    ("EPERM", 1), ("ENOENT", 2), ("ESRCH", 3), ("EINTR", 4), ("EIO", 5), ("ENXIO", 6), ("E2BIG", 7),
    ("ENOEXEC", 8), ("EBADF", 9), ("ECHILD", 10), ("EAGAIN", 11), ("EWOULDBLOCK", 11), ("ENOMEM", 12),
    ("EACCES", 13), ("EFAULT", 14), ("ENOTBLK", 15), ("EBUSY", 16), ("EEXIST", 17), ("EXDEV", 18),
    ("ENODEV", 19), ("ENOTDIR", 20), ("EISDIR", 21), ("EINVAL", 22), ("ENFILE", 23), ("EMFILE", 24),
    ("ENOTTY", 25), ("ETXTBSY", 26), ("EFBIG", 27), ("ENOSPC", 28), ("ESPIPE", 29), ("EROFS", 30),
    ("EMLINK", 31), ("EPIPE", 32), ("EDOM", 33), ("ERANGE", 34), ("EDEADLK", 35), ("ENAMETOOLONG", 36),
    ("ENOLCK", 37), ("ENOSYS", 38), ("ENOTEMPTY", 39), ("ELOOP", 40), ("ENODATA", 61), ("ETIME", 62),
    ("ENOLINK", 67), ("EPROTO", 71), ("EBADMSG", 74), ("EOVERFLOW", 75), ("EILSEQ", 84), ("EUSERS", 87),
    ("EOPNOTSUPP", 95), ("ENOTSUP", 95), ("ENOBUFS", 105), ("ETIMEDOUT", 110), ("EALREADY", 114),
    ("EINPROGRESS", 115), ("ESTALE", 116), ("EREMOTEIO", 121), ("EDQUOT", 122), ("ENOMEDIUM", 123),
    ("EMEDIUMTYPE", 124), ("ECANCELED", 125), ("EHWPOISON", 133),
];

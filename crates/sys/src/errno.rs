//! Return values of system calls made through `libc`, as results.
//!
//! Invariant: the table of error numbers and names is `fiord-errno`'s.

use std::io;

pub use fiord_errno::{Errno, Explained, error_text};

/// The result of a call that returns -1 and sets `errno`.
#[inline]
pub(crate) fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The same for calls that return a length, in one of the signed types of lengths.
#[inline]
pub(crate) fn check_len<T>(answer: T) -> io::Result<usize>
where
    usize: TryFrom<T>,
{
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// The same for `syscall(2)`.
#[inline]
pub(crate) fn check_long(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The result of a `posix_*` call, which returns the error number itself.
#[inline]
pub(crate) fn check_posix(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

/// What a call with a descriptor that is not open says of the call: success if the kernel got as far as the descriptor, as it
/// does not if it lacks the call or a filter forbids it.
///
/// # Errors
/// The refusal of the call itself.
pub fn is_carried_out<T>(with_bad_descriptor: io::Result<T>) -> io::Result<()> {
    match with_bad_descriptor {
        Err(error) if Errno::of(&error) != Some(Errno(libc::EBADF)) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_this_architectures() {
        let pairs = [
            (Errno::EPERM, libc::EPERM),
            (Errno::EDEADLK, libc::EDEADLK),
            (Errno::ENOSYS, libc::ENOSYS),
            (Errno::EOPNOTSUPP, libc::EOPNOTSUPP),
            (Errno::ETIMEDOUT, libc::ETIMEDOUT),
            (Errno::EDQUOT, libc::EDQUOT),
            (Errno::EHWPOISON, libc::EHWPOISON),
        ];
        for (ours, theirs) in pairs {
            assert_eq!(ours, Errno(theirs));
        }
    }
}

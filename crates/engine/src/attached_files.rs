//! The open files of one engine, by number.
//!
//! Invariant: a file that is not open is descriptor -1, which every system call refuses with `EBADF`; the table is
//! allocated once and never grows.
//!
//! Descriptors are stored as numbers, beyond the borrow with which they were attached: the system calls of a data path
//! take numbers, of which -1 is one. If a file were closed nevertheless, its number would fail with `EBADF` or refer to
//! another file of this process, like a wrong path; memory safety does not depend on it. The worker's file table calls
//! `detach` before it closes a file.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use fiord_plan::FileIndex;

const CLOSED: RawFd = -1;

/// Descriptors by file number.
#[derive(Debug)]
pub struct AttachedFiles {
    table: Box<[RawFd]>,
}

impl AttachedFiles {
    /// A table for `count` files, all closed.
    pub fn new(count: usize) -> AttachedFiles {
        AttachedFiles { table: vec![CLOSED; count].into_boxed_slice() }
    }

    /// The file was opened.
    ///
    /// # Errors
    /// `EBADF` for a number beyond the table.
    pub fn attach(&mut self, file: FileIndex, fd: BorrowedFd<'_>) -> io::Result<()> {
        let place =
            self.table.get_mut(file as usize).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        *place = fd.as_raw_fd();
        Ok(())
    }

    /// The file is about to be closed.
    pub fn detach(&mut self, file: FileIndex) {
        if let Some(place) = self.table.get_mut(file as usize) {
            *place = CLOSED;
        }
    }

    /// The descriptor; -1 if the file is not open.
    #[inline]
    pub fn get(&self, file: FileIndex) -> RawFd {
        self.table.get(file as usize).copied().unwrap_or(CLOSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_file_has_a_descriptor_between_attach_and_detach() {
        let stdin = std::io::stdin();
        let mut files = AttachedFiles::new(2);
        assert_eq!(files.get(1), CLOSED);
        files.attach(1, stdin.as_fd()).unwrap();
        assert_eq!((files.get(0), files.get(1)), (CLOSED, stdin.as_raw_fd()));
        files.detach(1);
        assert_eq!(files.get(1), CLOSED);
        files.detach(9);
        assert_eq!(files.get(9), CLOSED);
        assert_eq!(files.attach(2, stdin.as_fd()).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}

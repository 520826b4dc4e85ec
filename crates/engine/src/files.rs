//! The open files of one engine, by number.
//!
//! Invariant: a file that is not open is descriptor -1, which every system call answers with `EBADF`; the table is
//! made once and never grows.

use std::io;
use std::os::fd::RawFd;

use fiord_plan::FileIndex;

const CLOSED: RawFd = -1;

/// Descriptors by file number.
#[derive(Debug)]
pub(crate) struct Descriptors {
    table: Box<[RawFd]>,
}

impl Descriptors {
    /// Room for `count` files, all closed.
    pub(crate) fn new(count: usize) -> Descriptors {
        Descriptors { table: vec![CLOSED; count].into_boxed_slice() }
    }

    /// The file was opened.
    ///
    /// # Errors
    /// `EBADF` for a number beyond the table.
    pub(crate) fn attach(&mut self, file: FileIndex, fd: RawFd) -> io::Result<()> {
        let place =
            self.table.get_mut(file as usize).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        *place = fd;
        Ok(())
    }

    /// The file is about to be closed.
    pub(crate) fn detach(&mut self, file: FileIndex) {
        if let Some(place) = self.table.get_mut(file as usize) {
            *place = CLOSED;
        }
    }

    /// The descriptor; -1 when the file is not open.
    #[inline]
    pub(crate) fn get(&self, file: FileIndex) -> RawFd {
        self.table.get(file as usize).copied().unwrap_or(CLOSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_between_attach_and_detach() {
        let mut files = Descriptors::new(2);
        assert_eq!(files.get(1), CLOSED);
        files.attach(1, 7).unwrap();
        assert_eq!((files.get(0), files.get(1)), (CLOSED, 7));
        files.detach(1);
        assert_eq!(files.get(1), CLOSED);
        files.detach(9);
        assert_eq!(files.get(9), CLOSED);
        assert_eq!(files.attach(2, 7).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}

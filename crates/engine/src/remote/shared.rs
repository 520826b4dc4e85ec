//! A session with a server that all open targets of a job share.
//!
//! Invariant: there is a session exactly as long as a target is open.

use std::io;

/// The session, and how many targets are open.
#[derive(Debug)]
pub(crate) struct Shared<S> {
    session: Option<S>,
    open: u32,
}

impl<S> Default for Shared<S> {
    fn default() -> Shared<S> {
        Shared { session: None, open: 0 }
    }
}

impl<S> Shared<S> {
    /// A target is opened; the first one connects.
    ///
    /// # Errors
    /// Those of `connect`.
    pub(crate) fn open(&mut self, connect: impl FnOnce() -> io::Result<S>) -> io::Result<()> {
        if self.session.is_none() {
            self.session = Some(connect()?);
        }
        self.open += 1;
        Ok(())
    }

    /// A target is closed; the last one disconnects.
    pub(crate) fn close(&mut self) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            self.session = None;
        }
    }

    /// The session, while a target is open.
    #[inline]
    pub(crate) fn get(&mut self) -> Option<&mut S> {
        self.session.as_mut()
    }
}

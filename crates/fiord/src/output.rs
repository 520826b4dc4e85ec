//! The one place that writes to standard output and standard error.
//!
//! Invariant: standard output carries data alone; standard error stays empty on a run that goes well unless it is a
//! terminal. A reader that has gone away (`| head`) ends the program quietly.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use fiord_sys::tty;
use fiord_worker::{Door, Failure};

/// Where reports go: standard output, or the file of `--output`.
pub(crate) struct Output {
    sink: Sink,
    failed: Option<io::Error>,
}

enum Sink {
    Stdout,
    File(File),
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout() -> Output {
        Output { sink: Sink::Stdout, failed: None }
    }

    /// Whether this is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self.sink, Sink::Stdout)
    }

    /// The file at `path`, made anew.
    ///
    /// # Errors
    /// Why it cannot be created, or must not be.
    pub(crate) fn file(path: &Path) -> Result<Output, Failure> {
        Ok(Output { sink: Sink::File(Door::default().create(path, false)?), failed: None })
    }

    /// Writes `text` at once. The first failure is kept for `finish`; a closed pipe is none.
    pub(crate) fn write(&mut self, text: &str) {
        if self.failed.is_some() {
            return;
        }
        let written = match &mut self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
            }
            Sink::File(file) => file.write_all(text.as_bytes()),
        };
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.failed = Some(error);
        }
    }

    /// What kept the report from being written, if anything did.
    ///
    /// # Errors
    /// The first failure of `write`.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

/// Says something to the person: an error, or a remark on a terminal.
pub(crate) fn say(text: &str) {
    // Nobody is left to be told that standard error is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Says a line that would only disturb where nobody looks.
pub(crate) fn remark(text: &str) {
    if tty::stderr_is_terminal() {
        say(text);
    }
}

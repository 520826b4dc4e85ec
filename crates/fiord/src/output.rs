//! The one place that writes to standard output and standard error.
//!
//! Invariant: standard output carries only data; standard error stays empty on success unless it is a terminal. When
//! the reader closes the pipe (`| head`), output is dropped without an error.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use fiord_options::secret;
use fiord_report::path::visible_lines;
use fiord_sys::errno::error_text;
use fiord_sys::tty;
use fiord_worker::{Failure, TargetOpener};

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

    /// The file at `path`, truncated or created.
    ///
    /// # Errors
    /// Why it cannot, or must not, be created.
    pub(crate) fn file(path: &Path) -> Result<Output, Failure> {
        Ok(Output { sink: Sink::File(TargetOpener::default().create(path, false)?), failed: None })
    }

    /// Another output to the same place.
    ///
    /// # Errors
    /// That of duplicating the open file.
    pub(crate) fn duplicate(&self) -> io::Result<Output> {
        let sink = match &self.sink {
            Sink::Stdout => Sink::Stdout,
            Sink::File(file) => Sink::File(file.try_clone()?),
        };
        Ok(Output { sink, failed: None })
    }

    /// Writes `text` immediately. The first error is kept for `finish`; a closed pipe is not an error.
    pub(crate) fn write(&mut self, text: &str) {
        self.write_bytes(text.as_bytes());
    }

    /// The same of what may not be UTF-8.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        let written = self.append(bytes);
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.failed = Some(error);
        }
    }

    /// Writes immediately, for who depends on its being written: a closed pipe is an error here.
    ///
    /// # Errors
    /// That of this write.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(bytes).and_then(|()| stdout.flush())
            }
            Sink::File(file) => file.write_all(bytes),
        }
    }

    /// Reports whether everything was written.
    ///
    /// # Errors
    /// The first error of `write`.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.failed.map_or(Ok(()), Err)
    }
}

/// Prints a page to standard output.
///
/// # Errors
/// It could not be written, in words.
pub(crate) fn print(page: &[u8]) -> Result<(), String> {
    let mut output = Output::stdout();
    output.write_bytes(page);
    output.finish().map_err(|error| format!("standard output: {}", error_text(&error)))
}

/// Releases the streams at the end of the program, so that whoever reads them sees their end even if a thread of the program
/// never returns from the kernel.
pub(crate) fn release() {
    // What cannot be written by now cannot be reported either.
    let _ = io::stdout().lock().flush();
    let _ = fiord_sys::thread::release_streams();
}

/// Prints to standard error: an error, or a message on a terminal. It may quote a URL or a text as it was given.
pub(crate) fn say(text: &str) {
    draw(&visible_lines(&secret::in_urls_of(text)));
}

/// Writes to standard error as it is: what moves the cursor of a terminal.
pub(crate) fn draw(text: &str) {
    // There is nowhere to report that standard error is gone.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a message to standard error if that is a terminal.
pub(crate) fn remark(text: &str) {
    if tty::stderr_is_terminal() {
        say(text);
    }
}

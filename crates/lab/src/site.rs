//! Where a study works: a file and how to reach it.
//!
//! Invariant: `writable` only where the file is the study's own, made by it and removed by it.

/// The place of a study's I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The file or device all runs go to.
    pub file: String,
    /// Whether the runs may write to it.
    pub writable: bool,
    /// How much of it they use, in bytes.
    pub size_bytes: u64,
    /// Whether it takes direct I/O.
    pub direct: bool,
    /// The queued engine that works here: `io_uring`, or `libaio`.
    pub engine: &'static str,
    /// What it lies on, for people, line by line: `Device`, `vda (virtual disk, not rotational)`.
    pub heading: Vec<(&'static str, String)>,
}

impl Site {
    /// The `[global]` section that all jobs at this site begin with.
    ///
    /// Buffers hold random bytes that are new for each block, so that no device can compress or fold them.
    pub fn global(&self) -> String {
        format!(
            "[global]\nfilename={}\nsize={}\ndirect={}\nrefill_buffers=0\nscramble_buffers=1\nrandrepeat=0\n\
             group_reporting=1\n",
            self.file.replace(':', "\\:"),
            self.size_bytes,
            u8::from(self.direct),
        )
    }
}

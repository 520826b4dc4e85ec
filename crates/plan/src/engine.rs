//! Which engine a job uses, with the engine's own settings, and how deep its queue is.
//!
//! Invariant: one variant per engine; adding an engine adds one variant here and one file in the engine room.

/// Queue depth and batches, in I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// I/Os kept in flight, at least 1.
    pub max: u32,
    /// I/Os submitted at once, at least 1.
    pub submit: u32,
    /// Completions waited for at once (0: only poll).
    pub complete_min: u32,
    /// Completions taken at once at most; `None` takes all there are, where fio would take one at a time.
    pub complete_max: Option<u32>,
    /// When the queue was full, refill once it has drained to this.
    pub low: u32,
}

/// An engine and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineSettings {
    /// Does nothing.
    Null,
    /// `lseek` and `read`/`write`.
    Sync,
    /// `pread`/`pwrite`.
    Psync,
    /// `lseek` and `readv`/`writev`, adjacent I/Os gathered.
    Vsync,
    /// `preadv`/`pwritev`.
    Pvsync,
    /// `preadv2`/`pwritev2`.
    Pvsync2(Pvsync2),
    /// Memory copies into a mapping.
    Mmap(Mmap),
    /// `io_submit` and the completion ring.
    Libaio(Libaio),
    /// io_uring.
    IoUring(IoUring),
}

impl EngineSettings {
    /// fio's name of the engine.
    pub fn name(&self) -> &'static str {
        match self {
            EngineSettings::Null => "null",
            EngineSettings::Sync => "sync",
            EngineSettings::Psync => "psync",
            EngineSettings::Vsync => "vsync",
            EngineSettings::Pvsync => "pvsync",
            EngineSettings::Pvsync2(_) => "pvsync2",
            EngineSettings::Mmap(_) => "mmap",
            EngineSettings::Libaio(_) => "libaio",
            EngineSettings::IoUring(_) => "io_uring",
        }
    }
}

/// Settings of pvsync2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pvsync2 {
    /// `RWF_HIPRI` on this share of I/Os, in percent.
    pub hipri_percent: u8,
    /// `RWF_UNCACHED` (`RWF_DONTCACHE`).
    pub uncached: bool,
    /// `RWF_NOWAIT`.
    pub nowait: bool,
}

/// Settings of mmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mmap {
    /// `MADV_HUGEPAGE`.
    pub transparent_huge_pages: bool,
}

/// Settings of libaio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Libaio {
    /// `RWF_NOWAIT`.
    pub nowait: bool,
    /// `preadv`/`pwritev` commands.
    pub vectored: bool,
}

/// Settings of io_uring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IoUring {
    /// Buffers registered with the ring.
    pub fixed_buffers: bool,
    /// Files registered with the ring.
    pub registered_files: bool,
    /// A kernel thread polls the submission queue.
    pub submission_thread: bool,
    /// The CPU of that thread.
    pub submission_thread_cpu: Option<u32>,
    /// Completions are polled (`IORING_SETUP_IOPOLL`).
    pub hipri: bool,
    /// `READ`/`WRITE` (true) or `READV`/`WRITEV` (false).
    pub nonvectored: bool,
    /// `RWF_UNCACHED`.
    pub uncached: bool,
    /// `RWF_NOWAIT`.
    pub nowait: bool,
    /// `IOSQE_ASYNC` on each so many-th I/O; 0 never.
    pub force_async_every: u32,
}

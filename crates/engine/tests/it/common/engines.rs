//! Every engine that transfers data, in each of its manners.
//!
//! Invariant: what `every_engine!` lists, the tests of files and of devices both run.

use fiord_engine::{IoUring, Libaio, MapUse, Mmap, Psync, Pvsync, Pvsync2, Refused, Sync, Vsync};
use fiord_plan::IoUring as UringSettings;
use fiord_plan::Libaio as LibaioSettings;
use fiord_sys::map::MapAdvice;

use super::{FILES, Machine, arena, queued, synchronous};

/// An engine, ready for files, or why this machine has none.
pub type Made = Result<Box<dyn Machine>, Refused>;

/// Hands the names of the functions below to a macro.
macro_rules! every_engine {
    ($tests:ident) => {
        $tests! {
            sync psync vsync pvsync pvsync2
            mmap mmap_flushed mmap_huge
            libaio libaio_vectored
            io_uring io_uring_vectored io_uring_registered io_uring_async
            io_uring_thread io_uring_thread_registered
        }
    };
}
pub(crate) use every_engine;

pub fn sync() -> Made {
    Ok(synchronous(Sync::new(arena(), FILES)))
}

pub fn psync() -> Made {
    Ok(synchronous(Psync::new(arena(), FILES)))
}

pub fn vsync() -> Made {
    Ok(synchronous(Vsync::new(arena(), FILES)))
}

pub fn pvsync() -> Made {
    Ok(synchronous(Pvsync::new(arena(), FILES)))
}

pub fn pvsync2() -> Made {
    Ok(synchronous(Pvsync2::new(&fiord_plan::Pvsync2::default(), arena(), FILES)))
}

pub fn mmap() -> Made {
    mapped(MapUse { advice: MapAdvice::Normal, flush_writes: false }, false)
}

pub fn mmap_flushed() -> Made {
    mapped(MapUse { advice: MapAdvice::Random, flush_writes: true }, false)
}

pub fn mmap_huge() -> Made {
    mapped(MapUse { advice: MapAdvice::Sequential, flush_writes: false }, true)
}

fn mapped(usage: MapUse, transparent_huge_pages: bool) -> Made {
    Ok(synchronous(Mmap::new(&fiord_plan::Mmap { transparent_huge_pages }, usage, arena(), FILES)))
}

pub fn libaio() -> Made {
    Ok(queued(Libaio::new(&LibaioSettings::default(), arena(), FILES)?))
}

pub fn libaio_vectored() -> Made {
    let settings = LibaioSettings { vectored: true, ..Default::default() };
    Ok(queued(Libaio::new(&settings, arena(), FILES)?))
}

pub fn io_uring() -> Made {
    uring(UringSettings { nonvectored: true, ..Default::default() })
}

pub fn io_uring_vectored() -> Made {
    uring(UringSettings::default())
}

pub fn io_uring_registered() -> Made {
    uring(UringSettings { fixed_buffers: true, registered_files: true, ..Default::default() })
}

pub fn io_uring_async() -> Made {
    uring(UringSettings { nonvectored: true, force_async_every: 2, ..Default::default() })
}

pub fn io_uring_thread() -> Made {
    uring(UringSettings { submission_thread: true, nonvectored: true, ..Default::default() })
}

pub fn io_uring_thread_registered() -> Made {
    let (fixed_buffers, registered_files) = (true, true);
    uring(UringSettings { submission_thread: true, fixed_buffers, registered_files, ..Default::default() })
}

fn uring(settings: UringSettings) -> Made {
    Ok(queued(IoUring::new(&settings, arena(), FILES)?))
}

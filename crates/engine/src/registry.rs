//! The list of engines.
//!
//! Invariant: every engine a job can name is here once, by its own constant.

use fiord_plan::{IoUring as IoUringSettings, Libaio as LibaioSettings, Mmap as MmapSettings};
use fiord_sys::map::MapAdvice;
use fiord_sys::memory::{MemoryError, Region, Source};

use crate::contract::{Arena, Engine, Info};
use crate::mmap::MapUse;
use crate::refused::Refused;

/// Sets an engine up over these buffers for one file, and lets go of it.
type TryOut = fn(Arena) -> Result<(), Refused>;

/// Lists engines with their default setup: adding one is adding its line here.
macro_rules! engines {
    ($($engine:ty: |$arena:ident| $made:expr,)+) => {
        const INFOS: &[Info] = &[$(<$engine as Engine>::INFO),+];
        const TRY_OUTS: &[TryOut] = &[$(|$arena| $made.map(drop::<$engine>)),+];
    };
}

engines! {
    crate::Sync: |arena| Ok(crate::Sync::new(arena, 1)),
    crate::Psync: |arena| Ok(crate::Psync::new(arena, 1)),
    crate::Vsync: |arena| Ok(crate::Vsync::new(arena, 1)),
    crate::Pvsync: |arena| Ok(crate::Pvsync::new(arena, 1)),
    crate::Pvsync2: |arena| Ok(crate::Pvsync2::new(&Default::default(), arena, 1)),
    crate::Mmap: |arena| Ok(crate::Mmap::new(&MmapSettings::default(), MAP_USE, arena, 1)),
    crate::Libaio: |arena| crate::Libaio::new(&LibaioSettings::default(), arena, 1),
    crate::IoUring: |arena| crate::IoUring::new(&IoUringSettings::default(), arena, 1),
    crate::Null: |arena| Ok(crate::Null::new(arena)),
}

const MAP_USE: MapUse = MapUse { advice: MapAdvice::Normal, flush_writes: false };

/// An engine, and what came of setting it up.
#[derive(Debug, Clone, Copy)]
pub struct Tried {
    /// The engine.
    pub info: &'static Info,
    /// Whether it could be, or why not.
    pub works: Result<(), Refused>,
}

/// Each engine, and whether this machine and kernel set it up with its default settings: over two small buffers, which
/// are let go of at once.
///
/// # Errors
/// When there is no memory for such buffers.
pub fn try_out() -> Result<Vec<Tried>, MemoryError> {
    const BUFFER_BYTES: usize = 4096;
    let length = Arena::region_bytes(2, BUFFER_BYTES, BUFFER_BYTES);
    let tried = INFOS.iter().zip(TRY_OUTS).map(|(info, try_out)| {
        let region = Region::allocate(&Source::Malloc, length, BUFFER_BYTES)?;
        let works = try_out(Arena::new(region, 2, BUFFER_BYTES, BUFFER_BYTES));
        Ok(Tried { info, works })
    });
    tried.collect()
}

/// What each engine is, in the order a person reads them.
pub fn infos() -> &'static [Info] {
    INFOS
}

/// The engine of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Info> {
    INFOS.iter().find(|info| info.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_plan::EngineSettings;

    #[test]
    fn each_engine_a_plan_can_name_is_listed_under_that_name() {
        let planned = [
            EngineSettings::Null,
            EngineSettings::Sync,
            EngineSettings::Psync,
            EngineSettings::Vsync,
            EngineSettings::Pvsync,
            EngineSettings::Pvsync2(Default::default()),
            EngineSettings::Mmap(Default::default()),
            EngineSettings::Libaio(Default::default()),
            EngineSettings::IoUring(Default::default()),
        ];
        for settings in &planned {
            let found = infos().iter().filter(|info| info.name == settings.name()).count();
            assert_eq!(found, 1, "{}", settings.name());
        }
        assert_eq!(infos().len(), planned.len());
        assert!(find("io_uring").is_some_and(|info| info.queued));
        assert!(find("posixaio").is_none());
    }

    #[test]
    fn engines_that_ask_the_kernel_for_nothing_work_everywhere() {
        let tried = try_out().unwrap();
        assert_eq!(tried.len(), infos().len());
        for Tried { info, works } in tried {
            let asks = ["libaio", "io_uring"].contains(&info.name);
            assert!(asks || works.is_ok(), "{}: {works:?}", info.name);
        }
    }

    #[test]
    fn summaries_fit_a_line() {
        for info in infos() {
            assert!(!info.summary.is_empty() && info.summary.len() <= 60, "{}", info.name);
        }
    }
}

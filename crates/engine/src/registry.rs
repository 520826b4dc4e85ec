//! The list of engines.
//!
//! Invariant: every engine a job can name is here once, by its own constant.

use crate::contract::{Engine, Info};

/// Lists engines: adding one is adding its type here.
macro_rules! engines {
    ($($engine:ty,)+) => {
        &[$(<$engine as Engine>::INFO),+]
    };
}

const INFOS: &[Info] = engines![
    crate::sync::Sync,
    crate::psync::Psync,
    crate::vsync::Vsync,
    crate::pvsync::Pvsync,
    crate::pvsync2::Pvsync2,
    crate::mmap::Mmap,
    crate::libaio::Libaio,
    crate::io_uring::IoUring,
    crate::null::Null,
];

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
    fn summaries_fit_a_line() {
        for info in infos() {
            assert!(!info.summary.is_empty() && info.summary.len() <= 60, "{}", info.name);
        }
    }
}

//! What the rest of the program knows of all engines together: their descriptors, and whether they work here.
//!
//! Invariant: every list derives from the one in `engines/mod.rs`, and has its order.

use fiord_plan::{EngineDescriptor, EngineName, EngineTests, Engines, Example};
use fiord_sys::memory::{MemoryError, MemorySource, Region};

use crate::contract::{Arena, QueuedEngine, SyncEngine};
use crate::definition::{EngineDefinition, JobOutline, Setup, Visitor};
use crate::setup_error::SetupError;

macro_rules! descriptors {
    ($($engine:ty,)+) => { &[$(<$engine as EngineDefinition>::DESCRIPTOR),+] };
}

macro_rules! names {
    ($($engine:ty,)+) => { &[$(<$engine as EngineDefinition>::DESCRIPTOR.name),+] };
}

macro_rules! probes {
    ($($engine:ty,)+) => { &[$(probe_one::<$engine>),+] };
}

/// The descriptors of all engines, in the order of lists.
pub const ENGINES: Engines = Engines(for_each_engine!(descriptors));

/// Their names.
pub const NAMES: &[EngineName] = for_each_engine!(names);

/// The examples of all, for their page.
pub fn examples() -> impl Iterator<Item = (EngineName, Example)> {
    ENGINES.0.iter().filter_map(|engine| Some((engine.name, engine.example?)))
}

/// The tests that each of them is put to.
pub fn tests() -> impl Iterator<Item = (EngineName, EngineTests)> {
    ENGINES.0.iter().filter_map(|engine| Some((engine.name, engine.tests?)))
}

/// Sets an engine up over these buffers for a job, and drops it.
type Probe = fn(Arena<'_>, &JobOutline) -> Result<(), SetupError>;

/// One for each engine.
const PROBES: &[Probe] = for_each_engine!(probes);

/// An engine, and whether it can be set up here.
#[derive(Debug, Clone, Copy)]
pub struct Probed {
    /// The engine.
    pub engine: &'static EngineDescriptor,
    /// Success, or why it cannot.
    pub works: Result<(), SetupError>,
}

/// Each engine, and whether this machine and kernel set it up with its default settings.
///
/// # Errors
/// If there is no memory for two small buffers.
pub fn probe() -> Result<Vec<Probed>, MemoryError> {
    probe_those(|_| true)
}

/// The same of some engines alone: others load libraries, and may use devices. Each is set up over two small buffers, which
/// are freed immediately.
///
/// # Errors
/// If there is no memory for such buffers.
pub fn probe_those(are_wanted: impl Fn(&EngineDescriptor) -> bool) -> Result<Vec<Probed>, MemoryError> {
    probe_for(&JobOutline::plain(1), are_wanted)
}

fn probe_for(
    job: &JobOutline,
    are_wanted: impl Fn(&EngineDescriptor) -> bool,
) -> Result<Vec<Probed>, MemoryError> {
    const BUFFER_BYTES: usize = 4096;
    let length = Arena::region_bytes(2, BUFFER_BYTES, BUFFER_BYTES);
    let wanted = ENGINES.0.iter().zip(PROBES).filter(|(engine, _)| are_wanted(engine));
    let probed = wanted.map(|(engine, probe)| {
        let region = Region::allocate(&MemorySource::Malloc, length, BUFFER_BYTES)?;
        let works = Arena::with(region, 2, BUFFER_BYTES, BUFFER_BYTES, |arena| probe(arena, job));
        Ok(Probed { engine, works })
    });
    probed.collect()
}

fn probe_one<D: EngineDefinition>(arena: Arena<'_>, job: &JobOutline) -> Result<(), SetupError> {
    struct Whether;
    impl<'arena> Visitor<'arena> for Whether {
        type Output = Result<(), SetupError>;

        fn synchronous<E: SyncEngine<'arena>>(self, engine: Result<E, SetupError>) -> Self::Output {
            engine.map(drop)
        }

        fn queued<E: QueuedEngine<'arena>>(self, engine: Result<E, SetupError>) -> Self::Output {
            engine.map(drop)
        }
    }
    D::set_up(&D::Settings::default(), Setup { job, arena }, Whether)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_options::job::JobOptions;
    use fiord_plan::EngineSettings;
    use fiord_sys::errno::Errno;

    /// The settings of a job without options, and those that the definition takes for its default.
    fn settings<D: EngineDefinition>() -> (EngineSettings, bool) {
        let resolved = (D::DESCRIPTOR.settings)(&JobOptions::default());
        let is_its_own = resolved.get::<D::Settings>().is_some();
        (resolved, is_its_own)
    }

    macro_rules! all_settings {
        ($($engine:ty,)+) => { [$((<$engine>::DESCRIPTOR.name, settings::<$engine>())),+] };
    }

    #[test]
    fn each_engine_resolves_settings_of_its_own_type() {
        for (name, (settings, is_its_own)) in for_each_engine!(all_settings) {
            assert!(is_its_own, "{name}: {settings:?}");
        }
    }

    #[test]
    fn each_engine_is_listed_once() {
        for name in NAMES {
            assert_eq!(NAMES.iter().filter(|other| *other == name).count(), 1, "{name}");
        }
        assert!(ENGINES.find(EngineName::IoUring).is_some_and(EngineDescriptor::can_queue));
        assert!(ENGINES.find(EngineName::Guasi).is_none());
    }

    #[test]
    fn engines_without_kernel_setup_work_everywhere() {
        let probed = probe().unwrap();
        assert_eq!(probed.len(), NAMES.len());
        for Probed { engine, works } in probed {
            // Engines that open their targets themselves may need a library, and some others do.
            let needs_library = works.is_err_and(|refused| refused.errno == Errno(libc::ELIBACC));
            let needs_setup = engine.queueing.is_queued() || engine.names_targets() || needs_library;
            assert!(needs_setup || works.is_ok(), "{}: {works:?}", engine.name);
        }
    }

    #[test]
    fn blocks_that_a_library_cannot_count_are_refused() {
        let job = JobOutline { block_bytes_max: 1 << 31, ..JobOutline::plain(1) };
        let counted = ["rados", "nfs", "libiscsi", "gfapi", "gfapi_async"];
        let probed = probe_for(&job, |engine| counted.contains(&engine.name.word())).unwrap();
        assert_eq!(probed.len(), counted.len());
        for Probed { engine, works } in probed {
            assert_eq!(works.map_err(|refused| refused.errno), Err(Errno(libc::EFBIG)), "{}", engine.name);
        }
    }

    #[test]
    fn summaries_fit_a_line() {
        for engine in ENGINES.0 {
            assert!(!engine.summary.is_empty() && engine.summary.len() <= 60, "{}", engine.name);
        }
    }
}

//! Every engine that transfers data, in each of its variants.
//!
//! Invariant: the engines are those of the registry; the tests of files and of devices run each, as jobs that set nothing
//! get it, and in the variants below.

use fiord_engine::engines::{
    IoUring, Libaio, Libpmem, Mmap, io_uring::Settings as IoUringSettings,
    libaio::Settings as LibaioSettings, libpmem::Settings as LibpmemSettings, mmap::Settings as MmapSettings,
};
use fiord_engine::{
    EngineDefinition, JobOutline, QueuedEngine, Setup, SetupError, SyncEngine, Visitor, for_each_engine,
    offload,
};
use fiord_plan::EngineSettings;
use fiord_plan::files::Advice;

use super::{FILES, Test, Tested, queued, synchronous, with_arena};

/// A variant: its name, and how it is tested.
pub struct Variant {
    /// The engine's name, and what is special about the variant.
    pub name: String,
    /// Runs a test on it.
    pub run: Box<dyn Fn(Test<'_>) -> Tested>,
}

/// Sees every engine of the registry that transfers data, and each of its variants.
pub fn variants() -> Vec<Variant> {
    macro_rules! plain {
        ($($engine:ty,)+) => { [$(plain::<$engine>()),+] };
    }
    let mut variants: Vec<Variant> = for_each_engine!(plain).into_iter().flatten().collect();
    macro_rules! offloaded {
        ($($engine:ty,)+) => { [$(offloaded::<$engine>()),+] };
    }
    variants.extend(for_each_engine!(offloaded).into_iter().flatten());
    let plain = JobOutline::plain(FILES);
    let sequential = JobOutline { advice: Advice::Sequential, ..plain.clone() };
    let flushed = JobOutline { advice: Advice::Random, direct: true, ..plain.clone() };
    let uring = IoUringSettings { nonvectored: true, ..IoUringSettings::default() };
    let registered =
        IoUringSettings { fixed_buffers: true, registered_files: true, ..IoUringSettings::default() };
    // On files that are in no persistent memory.
    let declared = LibpmemSettings { declared_persistent: true, ..LibpmemSettings::default() };
    let past_caches = LibpmemSettings { past_caches: true, durable_writes: true, ..declared };
    variants.extend([
        variant::<Libpmem>("through caches", declared, plain.clone()),
        variant::<Libpmem>("past caches", past_caches, plain.clone()),
        variant::<Mmap>("flushed", MmapSettings::default(), flushed),
        variant::<Mmap>("huge", MmapSettings { transparent_huge_pages: true }, sequential),
        variant::<Libaio>(
            "vectored",
            LibaioSettings { vectored: true, ..LibaioSettings::default() },
            plain.clone(),
        ),
        variant::<IoUring>("nonvectored", uring, plain.clone()),
        variant::<IoUring>("registered", registered, plain.clone()),
        variant::<IoUring>("async", IoUringSettings { force_async_every: 2, ..uring }, plain.clone()),
        variant::<IoUring>("thread", IoUringSettings { submission_thread: true, ..uring }, plain.clone()),
        variant::<IoUring>(
            "thread, registered",
            IoUringSettings { submission_thread: true, ..registered },
            plain.clone(),
        ),
    ]);
    variants
}

/// Whether it moves data between files of this machine and memory, in a job that sets nothing.
fn transfers_files<D: EngineDefinition>() -> bool {
    let settings = EngineSettings::new(D::Settings::default());
    D::DESCRIPTOR.transfers_files() && (D::DESCRIPTOR.missing)(&settings).is_none()
}

fn plain<D: EngineDefinition>() -> Option<Variant> {
    let settings = D::Settings::default();
    transfers_files::<D>().then(|| variant::<D>("plain", settings, JobOutline::plain(FILES)))
}

/// The engine on a pool of threads.
fn offloaded<D: EngineDefinition>() -> Option<Variant> {
    let run = |test: Test<'_>| {
        let (settings, job) = (D::Settings::default(), JobOutline::plain(FILES));
        with_arena(|arena| offload::<D, _>(&settings, &job, arena, Tester { test }))
    };
    let name = format!("{} (offloaded)", D::DESCRIPTOR.name);
    transfers_files::<D>().then(|| Variant { name, run: Box::new(run) })
}

fn variant<D: EngineDefinition>(what: &str, settings: D::Settings, job: JobOutline) -> Variant {
    Variant {
        name: format!("{} ({what})", D::DESCRIPTOR.name),
        run: Box::new(move |test| {
            with_arena(|arena| D::set_up(&settings, Setup { job: &job, arena }, Tester { test }))
        }),
    }
}

/// Runs a test on the engine it is given.
struct Tester<'t> {
    test: Test<'t>,
}

impl<'arena> Visitor<'arena> for Tester<'_> {
    type Output = Tested;

    fn synchronous<E: SyncEngine<'arena>>(self, engine: Result<E, SetupError>) -> Tested {
        synchronous(engine, self.test)
    }

    fn queued<E: QueuedEngine<'arena>>(self, engine: Result<E, SetupError>) -> Tested {
        queued(engine, self.test)
    }
}

//! The engines that jobs can run on, each with the loops compiled for it.
//!
//! Invariant: the engine is looked up once per worker, never in a loop.

use fiord_engine::EngineDefinition;
use fiord_plan::{EngineName, PlannedEngine};

use super::worker::{RunOn, run_on};

/// An engine, with a worker compiled for it.
#[derive(Debug, Clone, Copy)]
pub struct RunnableEngine {
    name: EngineName,
    run_on: RunOn,
}

impl RunnableEngine {
    /// The engine of this definition.
    pub const fn of<D: EngineDefinition>() -> RunnableEngine {
        RunnableEngine { name: D::DESCRIPTOR.name, run_on: run_on::<D> }
    }
}

macro_rules! runnable {
    ($($engine:ty,)+) => { &[$(RunnableEngine::of::<$engine>()),+] };
}

/// Every engine of this program. A static, because what a constant names is compiled in each crate that uses the constant, and
/// the loops belong here.
pub static ENGINES: &[RunnableEngine] = fiord_engine::for_each_engine!(runnable);

/// The function that runs a job on its engine, if that is among these.
pub(crate) fn find(engines: &[RunnableEngine], engine: &PlannedEngine) -> Option<RunOn> {
    engines.iter().find(|runnable| runnable.name == engine.name()).map(|runnable| runnable.run_on)
}

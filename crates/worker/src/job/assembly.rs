//! Assembles the state of a job's loop before the start.
//!
//! Invariant: everything a loop needs is allocated here, since nothing may be allocated once it runs.

use fiord_engine::contract::{Engine, Slot};
use fiord_plan::job::Fill;
use fiord_plan::{BlockSizes, Direction, Job, Pattern};
use fiord_workload::{
    CycleSource, Filler, PriorityDraw, RangedTrims, Source, SprandomSource, Stream, VerifySource,
    WorkloadError, ZonedSource,
};

use super::debug_source::DebugSource;
use super::locked::LockedSource;
use super::record::RecordedSource;
use super::replay::ReplaySource;
use super::verify_files;
use super::verify_threads::ThreadedVerifySource;
use crate::debug::DebugLog;
use crate::failure::Failure;
use crate::files::locks::Locks;
use crate::files::table::FileTable;
use crate::files::target_opener::TargetOpener;
use crate::files::zones::ZoneTables;
use crate::hot::depth_search::DepthSearch;
use crate::hot::errors::ErrorHandler;
use crate::hot::rate_limiter::RateLimiter;
use crate::hot::recorder::Recorder;
use crate::hot::wake::WakeAhead;
use crate::hot::work::{Parts, Work};
use crate::live::{Live, PublishedLock};

/// Bytes of buffers that are touched before the start: for small I/Os a page fault would show in the latency. Larger
/// buffers are touched when they are first used.
const TOUCHED_AHEAD_BYTES: u64 = 1 << 20;

/// Where a loop shows what it does.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub live: &'a Live,
    pub published: &'a PublishedLock,
}

/// What a job has in common with the other jobs of its run.
#[derive(Clone, Copy)]
pub(crate) struct Common<'a> {
    pub opener: &'a TargetOpener,
    pub zones: &'a ZoneTables,
    pub locks: &'a Locks,
}

/// The state of a job's loop, and its buffers, the first of which are filled.
///
/// Boxed, because the stack for several copies of it would stay allocated in each of thousands of threads.
#[inline(never)]
pub(crate) fn assemble<'a, 'arena>(
    job: &'a Job,
    shown: Shown<'a>,
    common: Common<'a>,
    debug: Option<&DebugLog>,
    engine: &mut dyn Engine<'arena>,
) -> Result<(Box<Work<'a>>, Vec<Slot<'arena>>), Failure> {
    let source = DebugSource::around(source(job, common, debug)?, job, debug);
    Ok(assemble_from(source, job, shown, common.opener, engine))
}

/// What the job's operations come from.
pub(crate) fn source(job: &Job, common: Common<'_>, debug: Option<&DebugLog>) -> Result<Source, Failure> {
    let Common { opener, zones, locks } = common;
    if job.engine.cycle().is_some() {
        return Ok(Source::Other(Box::new(CycleSource::new(&job.limits))));
    }
    let unplanned = |why: WorkloadError| Failure::other("plan the operations", why.to_string());
    let source = match (&job.replay, &job.verification) {
        (Some(replay), _) => Source::Other(Box::new(ReplaySource::new(job, replay, debug)?)),
        (None, Some(verification)) => {
            let earlier = verify_files::load_state(job, verification, opener)?;
            let zoned = job.access.zoned.as_ref();
            let targets = zoned.map(|zoned| zones.of_job(job, zoned, opener, debug)).transpose()?;
            let source = VerifySource::new(job, verification, targets, earlier.as_ref());
            let source = source.map_err(unplanned)?;
            match verification.threads {
                0 => Source::Other(Box::new(source)),
                _ => Source::Other(Box::new(ThreadedVerifySource::new(source, job, verification)?)),
            }
        }
        (None, None) => match (&job.access.zoned, &job.access.sprandom) {
            (Some(zoned), _) => {
                let targets = zones.of_job(job, zoned, opener, debug)?;
                let source = ZonedSource::new(&job.access, &job.files, &job.limits, zoned, targets);
                Source::Other(Box::new(source.map_err(unplanned)?))
            }
            (None, Some(plan)) => {
                let source = SprandomSource::new(&job.access, plan, &job.files, &job.limits);
                Source::Other(Box::new(source.map_err(unplanned)?))
            }
            (None, None) if job.access.trim_ranges > 1 => {
                let source = RangedTrims::new(&job.access, &job.files, &job.limits);
                Source::Other(Box::new(source.map_err(unplanned)?))
            }
            (None, None) => {
                Source::Generator(Stream::new(&job.access, &job.files, &job.limits).map_err(unplanned)?)
            }
        },
    };
    let source = match locks.of_job(job) {
        Some(locks) => Source::Other(Box::new(LockedSource::new(source, locks))),
        None => source,
    };
    match &job.record {
        Some(path) => Ok(Source::Other(Box::new(RecordedSource::new(source, job, path, opener)?))),
        None => Ok(source),
    }
}

/// The same for operations that come from this source.
#[inline(never)]
pub(crate) fn assemble_from<'a, 'arena>(
    source: Source,
    job: &'a Job,
    shown: Shown<'a>,
    opener: &'a TargetOpener,
    engine: &mut dyn Engine<'arena>,
) -> (Box<Work<'a>>, Vec<Slot<'arena>>) {
    let Shown { live, published } = shown;
    let (buffers, seed) = (&job.buffers, job.access.seed);
    let mut filler = match &job.verification {
        // Verified blocks are filled by their source.
        Some(_) => Filler::new(&Fill::Zero, seed),
        None => Filler::new(&buffers.fill, seed).with_duplicates(buffers.dedupe.as_ref(), seed),
    };
    let mut slots = engine.arena().slots();
    let writes = !source.is_generator() || job.issues(Direction::Write);
    let mut left_bytes = TOUCHED_AHEAD_BYTES;
    let mut primed = vec![!writes; slots.len()].into_boxed_slice();
    for slot in &mut slots {
        let buffer = engine.arena().bytes_mut(slot);
        let Some(left) = left_bytes.checked_sub(buffer.len() as u64) else { break };
        filler.prime(buffer);
        (left_bytes, primed[slot.index()]) = (left, true);
    }
    let work = Box::new(Work::new(Parts {
        source,
        filler,
        limiter: RateLimiter::new(&job.pace, seed, job.access.block_sizes.each_ref().map(BlockSizes::max))
            .map(|limiter| limiter.with_arrivals_of(|direction| job.issues(direction))),
        wake: WakeAhead::of(job),
        priorities: PriorityDraw::new(&job.io_priorities, seed),
        recorder: Recorder::new(job, live),
        errors: ErrorHandler::new(job),
        files: FileTable::new(job, opener),
        search: job.latency_target.map(|target| Box::new(DepthSearch::new(target, job.depth.max))),
        live,
        limits: &job.limits,
        published,
        engine: job.engine.descriptor,
        serializes: job.submission.serialize_overlap,
        writes,
        writes_after_trims: job.replay.is_none() && job.access.pattern == Pattern::TrimThenWrite,
        primed,
    }));
    (work, slots)
}

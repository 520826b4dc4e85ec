//! Where the next operations come from: the source, once their files are open.
//!
//! Invariant: files are opened and closed between two batches only.

use fiord_engine::contract::Engine;
use fiord_sys::clock;
use fiord_workload::{OperationSource, Source, Supply};

use super::batch::{BATCH, Refilled};
use super::{Phase, Work};
use crate::alloc_guard::allow_alloc;
use crate::failure::Failure;
use crate::files::table::Change;
use crate::hot::end::End;

impl Work<'_> {
    /// Generates the next operations and opens their files. With operations in flight the latter may have to wait;
    /// the loop calls again when fewer are.
    pub(crate) fn refill<'arena, E: Engine<'arena>>(
        &mut self,
        engine: &mut E,
        now_ns: u64,
        in_flight: u32,
    ) -> Result<Refilled, End> {
        if let Some(ns) = self.recorder.log_wait_ns(now_ns) {
            return Ok(Refilled::Later(ns));
        }
        if !self.ops.held {
            let supply = self.make_operations(now_ns);
            self.refuse_late()?;
            match supply {
                Supply::Ready if self.ops.ops.is_empty() => {
                    return Err(source_bug("gave no operation although ready"));
                }
                Supply::Ready => {}
                Supply::Ended => return Ok(Refilled::Exhausted),
                Supply::Failed => return Err(source_failure(self.source.failure())),
                Supply::AfterCompletion if in_flight > 0 => return Ok(Refilled::Blocked),
                Supply::AfterCompletion => {
                    return Err(source_bug("waits for a completion with nothing in flight"));
                }
                Supply::NotBefore(at_ns) => {
                    return Ok(Refilled::Later(at_ns.saturating_sub(self.elapsed_ns(now_ns))));
                }
            }
        }
        let change = self.files.change(&self.source);
        if change == Change::None {
            return Ok(Refilled::Ready);
        }
        self.ops.hold();
        if change.needs_idle_queue() && in_flight > 0 {
            return Ok(Refilled::Blocked);
        }
        self.change_files(change, engine)?;
        self.ops.release();
        Ok(Refilled::Ready)
    }

    /// Opens the files of the first operations.
    pub(crate) fn open_files(&mut self, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        self.change_files(Change::Window, engine)
    }

    #[cold]
    fn change_files(&mut self, change: Change, engine: &mut dyn Engine<'_>) -> Result<(), Failure> {
        // Files are opened, closed, synced and removed by path, with nothing in flight.
        let made = allow_alloc(|| self.files.make(change, &self.source, engine));
        self.live.set_files_open(self.files.count());
        made
    }

    /// Generates the next operations.
    fn make_operations(&mut self, now_ns: u64) -> Supply {
        let ramps_by_size = self.phase == Phase::Ramp && self.limits.ramp_bytes > 0;
        if ramps_by_size && self.has_ramped() {
            self.recorder.reset();
            self.measure(now_ns);
        }
        self.ops.clear();
        // A ramp with a size ends between two I/Os.
        let room = self.steer(now_ns).min(if ramps_by_size { 1 } else { BATCH });
        let elapsed_ns = if self.source.is_generator() { 0 } else { self.elapsed_ns(now_ns) };
        let supply = self.source.fill(&mut self.ops.ops, room, elapsed_ns);
        if let Source::Other(source) = &self.source {
            self.live.set_reads_back(source.reads_back(), clock::monotonic_ns);
        }
        if let Some(draw) = &mut self.priorities {
            draw.draw(&mut self.ops.ops);
        }
        supply
    }

    /// Time since the loop began; `now_ns` is used if the loop has a clock.
    fn elapsed_ns(&self, now_ns: u64) -> u64 {
        self.paced_ns(now_ns).saturating_sub(self.began_ns)
    }

    /// Whether a ramp with a size has transferred its bytes.
    fn has_ramped(&mut self) -> bool {
        self.recorder.flush();
        self.live.counters().bytes.iter().sum::<u64>() >= self.limits.ramp_bytes
    }

    /// Steers a mixed stream to the direction whose rate allows it; returns how many operations may be generated before
    /// that is to be decided again.
    fn steer(&mut self, now_ns: u64) -> usize {
        match &self.limiter {
            Some(limiter) if limiter.limits_rates() && self.source.is_mixed() => {
                let now_ns = self.paced_ns(now_ns);
                self.source.steer(limiter.preferred_directions(now_ns));
                limiter.allowed(now_ns).clamp(1, BATCH)
            }
            _ => BATCH,
        }
    }
}

/// The failure of a source that can make no progress.
fn source_bug(what: &str) -> End {
    source_failure(format!("fiord has a bug: the source of operations {what}"))
}

/// The failure of a source that cannot go on.
fn source_failure(why: String) -> End {
    End::failed(|| Failure::other("make operations", why))
}

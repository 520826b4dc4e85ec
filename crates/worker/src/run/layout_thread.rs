//! Lays out the files of all jobs with serial creation, before the first worker starts.
//!
//! Invariant: runs on its own thread, because a thread that touches a target may never return from the kernel.

use fiord_plan::Job;
use fiord_sys::channel::Sender;
use fiord_sys::clock;

use crate::failure::Failure;
use crate::files::layout::{Extent, Task, is_wanted as is_wanted_by, lay_out};
use crate::run_state::RunState;

/// Progress of the layout before the first worker starts.
pub(crate) enum LayoutEvent {
    /// The layout of this job's files begins.
    Begins(usize, Extent),
    /// This many more bytes were written.
    Wrote(u64),
    /// The layout of this job's files succeeded or failed.
    Ended(usize, Result<(), Failure>),
}

/// Bytes written are sent no more often: each event wakes the thread that follows, which takes longer than a small file does.
const SHOWN_EVERY_NS: u64 = 10_000_000;

/// Lays out the files of all jobs with serial creation and sends its progress, until a stop is requested.
/// Never fails: a job's failure is sent with its `Ended` event.
pub(crate) fn lay_out_all(shared: &RunState, events: &Sender<LayoutEvent>) {
    // If the receiver is gone, the event is not needed.
    let send = |event| drop(events.send(event));
    for (number, job) in serial(&shared.plan.jobs) {
        let is_stopped = || shared.live[number].is_stop_requested();
        if is_stopped() {
            return;
        }
        let task = Task::of(job);
        let Some(extent) = task.extent() else { continue };
        send(LayoutEvent::Begins(number, extent));
        let (mut unsent_bytes, mut sent_ns) = (0, clock::monotonic_ns());
        let laid_out = lay_out(job, task, &shared.opener, &mut |bytes| {
            unsent_bytes += bytes;
            let now_ns = clock::monotonic_ns();
            if now_ns - sent_ns >= SHOWN_EVERY_NS {
                send(LayoutEvent::Wrote(std::mem::take(&mut unsent_bytes)));
                sent_ns = now_ns;
            }
            !is_stopped()
        });
        send(LayoutEvent::Wrote(unsent_bytes));
        send(LayoutEvent::Ended(number, laid_out));
    }
}

/// Whether any of these jobs has files to be laid out before the first worker starts.
pub(crate) fn is_wanted(jobs: &[Job]) -> bool {
    serial(jobs).any(|(_, job)| is_wanted_by(job))
}

fn serial(jobs: &[Job]) -> impl Iterator<Item = (usize, &Job)> {
    jobs.iter().enumerate().filter(|(_, job)| job.files.create_serially)
}

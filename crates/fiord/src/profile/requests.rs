//! The tracepoints of the block layer during a run.
//!
//! Invariant: the newest events are kept in a bounded buffer of the kernel, which is read once the run is over.

use fiord_host::DiskUse;
use fiord_profile::{Observation, RequestTimes};
use fiord_sys::stat::DeviceNumber;
use fiord_sys::sysfs::Sysfs;
use fiord_worker::WorkerReport;

use crate::tracepoints::Recorder;

/// Records the requests of a run.
pub(super) struct RequestTracer {
    recorder: Recorder,
}

impl RequestTracer {
    /// Starts recording the requests of these disks; `None` if there are none. The error says what is lacking, and what to do.
    pub(super) fn start(disks: &[DiskUse]) -> Result<Option<RequestTracer>, String> {
        let numbers: Vec<DeviceNumber> = disks.iter().flat_map(numbers).collect();
        if numbers.is_empty() {
            return Ok(None);
        }
        Ok(Some(RequestTracer { recorder: Recorder::start(&numbers)? }))
    }

    /// Stops recording, and completes the observation with what was recorded.
    pub(super) fn finish(mut self, workers: &[WorkerReport], observation: &mut Observation) {
        let run_ns = observation.readings.last().map_or(0, |reading| reading.at_ns);
        let threads = workers.iter().filter(|worker| !worker.unstarted).count() as u64;
        match self.recorder.finish() {
            Ok(taken) => {
                let events = std::iter::from_fn(|| self.recorder.taken.next(u64::MAX)).collect();
                let times = RequestTimes::of(events, taken.since_ns, threads, run_ns);
                observation.requests = Some(times.unwrap_or_default());
            }
            Err(why) => observation.lacking.push(why),
        }
    }
}

/// The numbers of the disks that requests of this one are sent to.
fn numbers(disk: &DiskUse) -> Vec<DeviceNumber> {
    if !disk.members.is_empty() {
        return disk.members.iter().flat_map(numbers).collect();
    }
    let device = Sysfs::default().block_device(&disk.name).ok();
    device.and_then(|device| device.number()).into_iter().collect()
}

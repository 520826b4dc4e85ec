//! The tracepoints of the block layer during a run.
//!
//! Invariant: the newest events are kept in a bounded buffer of the kernel, which is read once the run is over.

use fiord_host::DiskUse;
use fiord_profile::trace::TRACEPOINTS;
use fiord_profile::{Observation, RequestTimes};
use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_sys::sysfs::Sysfs;
use fiord_sys::tracefs::{TraceError, TraceInstance};
use fiord_worker::WorkerReport;

/// Room for events on each processor: some fifty thousand.
const BUFFER_BYTES: u64 = 4 << 20;

/// Records the requests of a run.
pub(super) struct RequestTracer {
    instance: TraceInstance,
}

impl RequestTracer {
    /// Starts recording the requests of these disks; `None` if there are none. The error says what is lacking, and what to do.
    pub(super) fn start(disks: &[DiskUse]) -> Result<Option<RequestTracer>, String> {
        let numbers: Vec<String> =
            disks.iter().flat_map(numbers).map(|number| format!("dev == {number}")).collect();
        if numbers.is_empty() {
            return Ok(None);
        }
        let start = || {
            let instance = TraceInstance::create(BUFFER_BYTES)?;
            for tracepoint in TRACEPOINTS {
                instance.enable("block", tracepoint, &numbers.join(" || "))?;
            }
            instance.start()?;
            Ok(Some(RequestTracer { instance }))
        };
        start().map_err(|error| lacking(&error))
    }

    /// Stops recording, and completes the observation with what was recorded.
    pub(super) fn finish(self, workers: &[WorkerReport], observation: &mut Observation) {
        let run_ns = observation.readings.last().map_or(0, |reading| reading.at_ns);
        let threads = workers.iter().filter(|worker| !worker.unstarted).count() as u64;
        match self.instance.finish() {
            Ok(text) => {
                observation.requests = Some(RequestTimes::of(&text, threads, run_ns).unwrap_or_default());
            }
            Err(error) => observation.lacking.push(lacking(&error)),
        }
    }
}

/// The numbers of the disks that requests of this one are sent to, as the kernel's filters have them.
fn numbers(disk: &DiskUse) -> Vec<u64> {
    if !disk.members.is_empty() {
        return disk.members.iter().flat_map(numbers).collect();
    }
    let number = Sysfs::default().block_device(&disk.name).ok().and_then(|device| device.number());
    number.map(|number| u64::from(number.major) << 20 | u64::from(number.minor)).into_iter().collect()
}

/// Times of single requests, which cannot be had, and what to do.
fn lacking((path, error): &TraceError) -> String {
    let what = "times of requests in the queue and at the device, by tracepoints";
    let remedy = match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            "run as root, or give this user /sys/kernel/tracing: \
             mount -t tracefs -o gid=GROUP,mode=770 tracefs /sys/kernel/tracing"
        }
        _ => "a kernel with CONFIG_EVENT_TRACING and CONFIG_BLK_DEV_IO_TRACE is needed",
    };
    format!("{what}: {}: {}; {remedy}", shown(path), error_text(error))
}

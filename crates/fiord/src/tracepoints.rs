//! The tracepoints of the block layer, recorded for some devices.
//!
//! Invariant: what the kernel was told to record is taken back when the recorder goes.

use std::io;

use fiord_profile::tracepoints::{EventFormats, EventQueues, Page, Step};
use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_sys::process;
use fiord_sys::stat::DeviceNumber;
use fiord_sys::tracefs::{TraceError, TraceInstance, TracePages};

/// Room for events on each processor: some fifty thousand.
const BUFFER_BYTES: u64 = 4 << 20;

/// Records the events of devices; the oldest that were not taken are overwritten.
pub(crate) struct Recorder {
    pages: TracePages,
    instance: TraceInstance,
    formats: EventFormats,
    /// Events that were taken.
    pub(crate) taken: EventQueues,
}

/// How many events were taken.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) events: u64,
    /// How many were overwritten before they could be taken.
    pub(crate) lost: u64,
    /// If any were: from when on, in nanoseconds of the trace's clock, all processors have theirs.
    pub(crate) since_ns: Option<u64>,
}

/// As the kernel's events number a device.
pub(crate) fn kernel_number(number: DeviceNumber) -> u32 {
    number.major << 20 | number.minor
}

impl Recorder {
    /// Starts recording the requests of these devices.
    ///
    /// # Errors
    /// What is lacking, and what to do.
    pub(crate) fn start(devices: &[DeviceNumber]) -> Result<Recorder, String> {
        let numbers = devices.iter().map(|device| format!("dev == {}", kernel_number(*device)));
        let filter = numbers.collect::<Vec<_>>().join(" || ");
        let start = || {
            let instance = TraceInstance::create(BUFFER_BYTES)?;
            let mut formats = EventFormats::default();
            for step in Step::ALL {
                let name = step.tracepoint();
                instance.enable("block", name, &filter)?;
                formats.add(step, &instance.format("block", name)?).map_err(|field| {
                    let why = format!("this kernel's {name} has no field {field}");
                    (format!("events/block/{name}/format").into(), io::Error::other(why))
                })?;
            }
            let pages = instance.pages()?;
            instance.start()?;
            Ok(Recorder { pages, instance, formats, taken: EventQueues::default() })
        };
        start().map_err(|error| lacking(&error))
    }

    /// Takes what was recorded since the last call.
    ///
    /// # Errors
    /// What is lacking.
    pub(crate) fn take(&mut self) -> Result<Taken, String> {
        let mut taken = Taken::default();
        let mut processor_before = None;
        let Recorder { pages, formats, taken: queues, .. } = self;
        let read = pages.take(|processor, bytes| {
            let page = Page(bytes);
            let (events, first_ns) = queues.add_page(processor, page, formats);
            taken.events += events;
            taken.lost += page.lost();
            if processor_before.replace(processor) != Some(processor) || page.lost() > 0 {
                taken.since_ns = taken.since_ns.max(first_ns);
            }
        });
        read.map_err(|error| format!("requests cannot be read from the kernel: {}", error_text(&error)))?;
        taken.since_ns = taken.since_ns.filter(|_| taken.lost > 0);
        Ok(taken)
    }

    /// Stops recording, and takes the rest.
    ///
    /// # Errors
    /// What is lacking.
    pub(crate) fn finish(&mut self) -> Result<Taken, String> {
        self.instance.stop().map_err(|error| lacking(&error))?;
        self.take()
    }
}

/// Times of single requests, which cannot be had, and what to do.
fn lacking((path, error): &TraceError) -> String {
    let what = "times of requests in the queue and at the device, by tracepoints";
    format!("{what}: {}: {}; {}", shown(path), error_text(error), remedy(error, process::is_root()))
}

/// What to do, by how tracefs answers, and whether root asked.
fn remedy(error: &io::Error, is_root: bool) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !is_root => {
            "run as root, or give this user /sys/kernel/tracing: \
             mount -t tracefs -o gid=GROUP,mode=770 tracefs /sys/kernel/tracing"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "a container or the kernel's lockdown forbids it; run on the host, or give the container /sys/kernel/tracing \
             as a volume"
        }
        // ENOSYS.
        io::ErrorKind::Unsupported => {
            "this kernel is older than 5.2, or a sandbox hides fsopen; mount -t tracefs tracefs /sys/kernel/tracing"
        }
        _ => "use a kernel with CONFIG_EVENT_TRACING and CONFIG_BLK_DEV_IO_TRACE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_tracefs_has_its_own_remedy() {
        let remedy = |kind: io::ErrorKind, is_root| remedy(&io::Error::from(kind), is_root);
        assert!(remedy(io::ErrorKind::PermissionDenied, false).starts_with("run as root"));
        assert!(remedy(io::ErrorKind::PermissionDenied, true).contains("run on the host"));
        assert!(remedy(io::ErrorKind::ReadOnlyFilesystem, true).contains("as a volume"));
        assert!(remedy(io::ErrorKind::Unsupported, true).contains("older than 5.2"));
        assert!(remedy(io::ErrorKind::NotFound, true).contains("CONFIG_EVENT_TRACING"));
    }
}

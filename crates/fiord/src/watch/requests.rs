//! The requests of devices by tracepoints, while they happen, and who had them made.
//!
//! Invariant: events are taken in the order of time over all processors; a thread is looked at once, when it is first seen.

use std::collections::{BTreeMap, HashMap};

use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_sys::stat::DeviceNumber;
use fiord_sys::tracefs::{TraceError, TraceInstance, TracePages};
use fiord_sys::{clock, processes};
use fiord_watch::ring::Page;
use fiord_watch::{BlockEvent, DeviceFigures, EventFormats, Issuer, Requests, Step};

use super::kernel_number;

/// Room for events on each processor.
const BUFFER_BYTES: u64 = 4 << 20;

/// Records the requests of devices.
pub(super) struct RequestTracer {
    pages: TracePages,
    instance: TraceInstance,
    formats: EventFormats,
    /// Events that were read and may not be the next: another processor's may be older.
    waiting: Vec<BlockEvent>,
    requests: Requests,
    issuers: Issuers,
    lost: u64,
    lacking: Vec<String>,
}

/// What was recorded.
#[derive(Debug, Default)]
pub(super) struct Traced {
    /// Whether anything could be recorded.
    pub(super) is_traced: bool,
    pub(super) devices: BTreeMap<u32, DeviceFigures>,
    pub(super) issuers: Vec<Issuer>,
    pub(super) lost: u64,
    pub(super) lacking: Vec<String>,
}

/// Who had requests made, each thread looked at once.
#[derive(Debug, Default)]
struct Issuers {
    all: Vec<Issuer>,
    by_thread: HashMap<(i32, [u8; 16]), usize>,
}

impl Issuers {
    fn place(&mut self, event: &BlockEvent) -> usize {
        let key = (event.thread, event.thread_name);
        if let Some(place) = self.by_thread.get(&key) {
            return *place;
        }
        let issuer = match processes::of_thread(event.thread) {
            Ok(found) => Issuer {
                // A worker of the kernel is called by what it happens to do.
                name: if found.is_kernel { event.thread_name() } else { found.name },
                pid: found.process,
                cgroup: found.cgroup,
                is_kernel: found.is_kernel,
            },
            // It has ended already.
            Err(_) => Issuer { name: event.thread_name(), pid: event.thread, ..Issuer::default() },
        };
        let known = self.all.iter().position(|known| *known == issuer);
        let place = known.unwrap_or_else(|| {
            self.all.push(issuer);
            self.all.len() - 1
        });
        self.by_thread.insert(key, place);
        place
    }
}

impl RequestTracer {
    /// Starts recording the requests of these devices. The error says what is lacking, and what to do.
    pub(super) fn start(devices: &[DeviceNumber]) -> Result<RequestTracer, String> {
        let numbers = devices.iter().map(|device| format!("dev == {}", kernel_number(*device)));
        let filter = numbers.collect::<Vec<_>>().join(" || ");
        let start = || {
            let instance = TraceInstance::create(BUFFER_BYTES)?;
            let mut formats = EventFormats::default();
            for step in Step::ALL {
                let name = step.tracepoint();
                instance.enable("block", name, &filter)?;
                let format = instance.format("block", name)?;
                formats.add(step, &format).map_err(|field| {
                    let why = format!("the kernel's tracepoint {name} has no field {field}");
                    ("events/block".into(), std::io::Error::other(why))
                })?;
            }
            let pages = instance.pages()?;
            instance.start()?;
            Ok((instance, pages, formats))
        };
        let (instance, pages, formats) = start().map_err(|error| lacking(&error))?;
        Ok(RequestTracer {
            pages,
            instance,
            formats,
            waiting: Vec::new(),
            requests: Requests::default(),
            issuers: Issuers::default(),
            lost: 0,
            lacking: Vec::new(),
        })
    }

    /// Takes what was recorded since the last call.
    pub(super) fn read(&mut self) {
        // What is recorded from now on may be found on one processor and not on another that was read before.
        let until_ns = clock::monotonic_ns();
        self.take();
        self.count(until_ns);
    }

    fn take(&mut self) {
        let RequestTracer { pages, formats, waiting, lost, .. } = self;
        let taken = pages.take(|bytes| {
            let page = Page(bytes);
            *lost += page.lost();
            waiting.extend(page.records().filter_map(|(at_ns, record)| formats.event(at_ns, record)));
        });
        if let Err(error) = taken {
            let why = format!("requests cannot be read from the kernel: {}", error_text(&error));
            if !self.lacking.contains(&why) {
                self.lacking.push(why);
            }
        }
    }

    fn count(&mut self, until_ns: u64) {
        self.waiting.sort_by_key(|event| event.at_ns);
        let ready = self.waiting.partition_point(|event| event.at_ns <= until_ns);
        for event in self.waiting.drain(..ready) {
            self.requests.take(&event, |event| self.issuers.place(event));
        }
    }

    /// Stops recording.
    pub(super) fn finish(mut self) -> Traced {
        self.take();
        self.count(u64::MAX);
        drop(self.pages);
        drop(self.instance);
        Traced {
            is_traced: true,
            devices: self.requests.devices,
            issuers: self.issuers.all,
            lost: self.lost,
            lacking: self.lacking,
        }
    }
}

/// Single requests, which cannot be had, and what to do.
fn lacking((path, error): &TraceError) -> String {
    let remedy = match error.kind() {
        std::io::ErrorKind::PermissionDenied => "run as root",
        _ => "a kernel with CONFIG_EVENT_TRACING and CONFIG_BLK_DEV_IO_TRACE is needed",
    };
    format!(
        "counters only, no latencies and not who: tracepoints: {}: {}; {remedy}",
        shown(path),
        error_text(error)
    )
}

//! Exports the figures of a run, or of watching, as metrics: answers Prometheus, sends to a collector, writes a file at the end.
//!
//! Invariant: the run never waits for a reader of metrics. Whoever asks gets the latest snapshot; what cannot be sent is
//! reported when the run is over.

use std::ffi::OsStr;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fiord_metrics::{Family, otlp_json, prometheus_protobuf, prometheus_text};
use fiord_options::value::{MetricsDestination, Reading, Value};
use fiord_report::path::shown;
use fiord_sys::channel::{RecvTimeoutError, Sender, channel};
use fiord_sys::errno::error_text;
use fiord_sys::spawn::{Thread, spawn};
use fiord_sys::{clock, sealed_map, signal, thread};

use self::server::{Request, Response};
use crate::arguments::CommandError;
use crate::output_file::OutputFile;

mod server;

/// Interval between the snapshots that are exported.
pub(crate) const EXPORT_EVERY: Duration = Duration::from_secs(1);

/// Interval between two requests to a collector.
const SEND_EVERY: Duration = Duration::from_secs(5);

/// How long a collector may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Stack of each thread.
const STACK_BYTES: usize = 2 << 20;

/// The lowest priority of a thread.
const NICE_MOST: i32 = 19;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// The latest snapshot, shared with those who export it.
#[derive(Clone, Default)]
struct Latest(Arc<Mutex<Option<Arc<Vec<Family>>>>>);

impl Latest {
    fn set(&self, families: Vec<Family>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(families));
    }

    /// `None` as long as there is none.
    fn get(&self) -> Option<Arc<Vec<Family>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Exports figures until it is finished.
pub(crate) struct MetricsExporter {
    latest: Latest,
    endpoints: Vec<Endpoint>,
    senders: Vec<CollectorThread>,
    files: Vec<OutputFile>,
}

impl MetricsExporter {
    /// Starts to export to these destinations, as `--metrics` names them; `None` if there are none.
    ///
    /// # Errors
    /// What is no destination, an address that cannot be bound, a file that must not be written, or a thread that cannot
    /// be started, with what to do.
    pub(crate) fn start<'v>(
        values: impl Iterator<Item = &'v OsStr>,
        host: &str,
    ) -> Result<Option<MetricsExporter>, CommandError> {
        let mut destinations = Vec::new();
        for value in values {
            let parsed = MetricsDestination::parse_bytes(value, &mut Reading::default());
            destinations.push(parsed.map_err(|why| format!("--metrics={}: {why}", shown(value)))?);
        }
        if destinations.is_empty() {
            return Ok(None);
        }
        let latest = Latest::default();
        let mut exporter = MetricsExporter {
            latest: latest.clone(),
            endpoints: Vec::new(),
            senders: Vec::new(),
            files: Vec::new(),
        };
        for destination in destinations {
            let name = format!("--metrics={}", destination.print());
            match destination {
                MetricsDestination::Prometheus(address) => {
                    exporter.endpoints.push(Endpoint::start(address, &name, latest.clone())?);
                }
                MetricsDestination::Otlp(url) => {
                    exporter.senders.push(CollectorThread::start(url, name, host, latest.clone())?);
                }
                MetricsDestination::File(path) => {
                    let file = OutputFile::new("--metrics=file:", Path::new(&path), None);
                    exporter.files.push(file?);
                }
            }
        }
        Ok(Some(exporter))
    }

    /// Makes the figures so far those that are exported.
    pub(crate) fn publish(&mut self, families: Vec<Family>) {
        self.latest.set(families);
    }

    /// Sends and writes the last figures; returns why not for each destination that did not get them.
    pub(crate) fn finish(self) -> Vec<String> {
        self.endpoints.into_iter().for_each(Endpoint::stop);
        let mut lines: Vec<String> = self.senders.into_iter().filter_map(CollectorThread::finish).collect();
        let text = prometheus_text(&self.latest.get().unwrap_or_default());
        for file in self.files {
            if let Err(why) = file.write(text.as_bytes()) {
                lines.push(why.why);
            }
        }
        lines
    }
}

/// Answers Prometheus on a thread of its own.
struct Endpoint {
    /// Dropped when the run is over.
    over: UnixStream,
    thread: Thread,
}

impl Endpoint {
    fn start(address: SocketAddr, name: &str, latest: Latest) -> Result<Endpoint, String> {
        let failed = |why: String| format!("{name}: {why}");
        let listener = TcpListener::bind(address)
            .map_err(|error| failed(format!("{}; choose another address", error_text(&error))))?;
        let (over, is_over) = UnixStream::pair().map_err(|error| failed(error_text(&error)))?;
        let serve = move || {
            signal::leave_to_other_threads();
            // The jobs go first.
            let _ = thread::set_nice(NICE_MOST);
            // Who asks then finds nobody; the run goes on.
            let _ = server::serve(&listener, &is_over, &|request| answer(request, &latest));
        };
        let thread =
            spawn("fiord-metrics", STACK_BYTES, serve).map_err(|error| failed(not_started(&error)))?;
        Ok(Endpoint { over, thread })
    }

    fn stop(self) {
        drop(self.over);
        // If it panicked, that is on standard error, and no figure of the run was its.
        let _ = self.thread.join();
    }
}

/// The answer to a request.
fn answer(request: &Request, latest: &Latest) -> Response {
    if !["GET", "HEAD"].contains(&request.method.as_str()) {
        let refused = Response::text("405 Method Not Allowed", "fiord: metrics can only be read\n");
        return Response { header: Some("Allow: GET, HEAD"), ..refused };
    }
    if request.path != "/metrics" {
        let status = if request.path == "/" { "200 OK" } else { "404 Not Found" };
        return Response::text(status, "fiord: the metrics are at /metrics\n");
    }
    let Some(families) = latest.get() else {
        let early = Response::text("503 Service Unavailable", "fiord: there are no figures yet\n");
        return Response { header: Some("Retry-After: 1"), ..early };
    };
    let (kind, body) = match request.accept.contains("application/vnd.google.protobuf") {
        true => (PROTOBUF, prometheus_protobuf(&families)),
        false => (TEXT, prometheus_text(&families).into_bytes()),
    };
    Response { status: "200 OK", kind, header: None, body }
}

/// Sends to a collector on a thread of its own.
struct CollectorThread {
    name: String,
    /// Dropped when the run is over.
    over: Sender<()>,
    thread: Thread<Result<(), String>>,
}

impl CollectorThread {
    fn start(url: String, name: String, host: &str, latest: Latest) -> Result<CollectorThread, String> {
        let host = host.to_string();
        let start_ns = clock::realtime_ns();
        let (over, is_over) = channel();
        let send = move || {
            signal::leave_to_other_threads();
            let agent: ureq::Agent =
                ureq::Agent::config_builder().timeout_global(Some(ANSWER_MAX)).build().into();
            let mut next = Instant::now() + SEND_EVERY;
            loop {
                let ended = is_over.recv_timeout(next.saturating_duration_since(Instant::now()))
                    == Err(RecvTimeoutError::Disconnected);
                next = Instant::now() + SEND_EVERY;
                let body = otlp_json(
                    &latest.get().unwrap_or_default(),
                    &host,
                    env!("CARGO_PKG_VERSION"),
                    start_ns,
                    clock::realtime_ns(),
                );
                let sent = agent.post(&url).header("Content-Type", "application/json").send(&body);
                // Only the last request matters: its figures contain those of all before it.
                if ended {
                    return sent.map(drop).map_err(|unsent| match unsent {
                        ureq::Error::Io(error) => error_text(&error),
                        other => other.to_string(),
                    });
                }
            }
        };
        let thread = spawn("fiord-otlp", STACK_BYTES, send)
            .map_err(|error| format!("{name}: {}", not_started(&error)))?;
        Ok(CollectorThread { name, over, thread })
    }

    /// Waits until the last figures are sent; returns why they could not be.
    fn finish(self) -> Option<String> {
        if sealed_map::is_sealed() {
            // A request may need another thread, to resolve a name.
            return Some(format!("{}: the last figures were not sent: {}", self.name, sealed_map::HELD));
        }
        drop(self.over);
        let sent = self.thread.join().unwrap_or_else(|panicked| Err(panicked.to_string()));
        let why = sent.err()?;
        Some(format!("{}: the last figures were not sent: {why}; is a collector there?", self.name))
    }
}

fn not_started(error: &io::Error) -> String {
    format!("no thread could be started: {}", error_text(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_read_and_only_when_there_are_some() {
        let latest = Latest::default();
        let status = |method: &str, path: &str| {
            let request = Request { method: method.into(), path: path.into(), accept: String::new() };
            answer(&request, &latest).status
        };
        assert_eq!(status("GET", "/metrics"), "503 Service Unavailable");
        latest.set(Vec::new());
        let cases = [
            ("GET", "/metrics", "200 OK"),
            ("HEAD", "/metrics", "200 OK"),
            ("GET", "/", "200 OK"),
            ("GET", "/other", "404 Not Found"),
            ("POST", "/metrics", "405 Method Not Allowed"),
            ("DELETE", "/", "405 Method Not Allowed"),
        ];
        for (method, path, expected) in cases {
            assert_eq!(status(method, path), expected, "{method} {path}");
        }
    }
}

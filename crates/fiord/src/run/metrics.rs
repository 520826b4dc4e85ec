//! Exports the figures of a run as metrics: answers Prometheus, sends to a collector, writes a file at the end.
//!
//! Invariant: the run never waits for a reader of metrics. Whoever asks gets the latest snapshot; what cannot be sent is
//! reported when the run is over.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fiord_metrics::{Family, families, otlp_json, prometheus_protobuf, prometheus_text};
use fiord_options::value::{MetricsDestination, Value};
use fiord_report::RunReport;
use fiord_report::path::shown;
use fiord_sys::errno::error_text;
use fiord_sys::{clock, signal};
use fiord_worker::TargetOpener;
use tiny_http::{Header, Request, Response, Server};

/// Interval between the snapshots that are exported.
pub(crate) const EXPORT_EVERY: Duration = Duration::from_secs(1);

/// Interval between two requests to a collector.
const SEND_EVERY: Duration = Duration::from_secs(5);

/// How long a collector may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";

/// The latest snapshot, shared with those who export it.
#[derive(Clone, Default)]
struct Latest(Arc<Mutex<Arc<Vec<Family>>>>);

impl Latest {
    fn set(&self, families: Vec<Family>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(families);
    }

    fn get(&self) -> Arc<Vec<Family>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Exports the figures of runs until it is finished.
pub(crate) struct MetricsExporter {
    latest: Latest,
    endpoints: Vec<Endpoint>,
    senders: Vec<CollectorThread>,
    files: Vec<std::ffi::OsString>,
}

impl MetricsExporter {
    /// Starts to export to these destinations.
    ///
    /// # Errors
    /// An address that cannot be bound, a file that must not be written, or a thread that cannot be started, with what to
    /// do.
    pub(crate) fn start(
        destinations: Vec<MetricsDestination>,
        host: &str,
    ) -> Result<MetricsExporter, String> {
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
                    let refused = TargetOpener::default().may_write(Path::new(&path));
                    refused.map_err(|failure| format!("fiord: {name}: {}\n", failure.reason()))?;
                    exporter.files.push(path);
                }
            }
        }
        Ok(exporter)
    }

    /// Makes the figures so far those that are exported.
    pub(crate) fn publish(&mut self, report: &RunReport) {
        self.latest.set(families(report));
    }

    /// Sends and writes the last figures; returns a line for each destination that did not get them.
    pub(crate) fn finish(self) -> Vec<String> {
        self.endpoints.into_iter().for_each(Endpoint::stop);
        let mut lines: Vec<String> = self.senders.into_iter().filter_map(CollectorThread::finish).collect();
        let text = prometheus_text(&self.latest.get());
        for path in self.files {
            if let Err(failure) = TargetOpener::default().replace(Path::new(&path), text.as_bytes()) {
                lines.push(format!("fiord: --metrics=file:{}: {}\n", shown(&path), failure.reason()));
            }
        }
        lines
    }
}

/// Answers Prometheus on threads of its own.
struct Endpoint {
    server: Arc<Server>,
    thread: JoinHandle<()>,
}

impl Endpoint {
    fn start(address: SocketAddr, name: &str, latest: Latest) -> Result<Endpoint, String> {
        let failed = |why: String| format!("fiord: {name}: {why}\n");
        let listener = TcpListener::bind(address)
            .map_err(|error| failed(format!("{}; choose another address", error_text(&error))))?;
        // The server starts threads as well, which inherit the signal mask of the thread that creates it.
        let (created, creation) = channel();
        let serve = move || {
            signal::leave_to_other_threads();
            let server = Server::from_listener(listener, None).map(Arc::new);
            let _ = created.send(server.as_ref().map(Arc::clone).map_err(ToString::to_string));
            let Ok(server) = server else { return };
            for request in server.incoming_requests() {
                answer(request, &latest);
            }
        };
        let thread = thread("fiord-metrics", serve).map_err(&failed)?;
        let server = creation.recv().map_err(|closed| failed(closed.to_string()))?.map_err(failed)?;
        Ok(Endpoint { server, thread })
    }

    fn stop(self) {
        self.server.unblock();
        // If it panicked, that is on standard error.
        let _ = self.thread.join();
    }
}

/// Answers one request; a client that has gone needs no answer.
fn answer(request: Request, latest: &Latest) {
    let path = request.url().split('?').next().unwrap_or_default();
    if path != "/metrics" {
        let page = "fiord: the metrics of the run are at /metrics\n";
        let status = if path == "/" { 200 } else { 404 };
        let _ = request.respond(Response::from_string(page).with_status_code(status));
        return;
    }
    let accepts = request.headers().iter().find(|header| header.field.equiv("Accept"));
    let takes_protobuf =
        accepts.is_some_and(|header| header.value.as_str().contains("application/vnd.google.protobuf"));
    let families = latest.get();
    let (kind, body) = if takes_protobuf {
        (PROTOBUF, prometheus_protobuf(&families))
    } else {
        (TEXT, prometheus_text(&families).into_bytes())
    };
    let mut response = Response::from_data(body);
    if let Ok(header) = Header::from_bytes("Content-Type", kind) {
        response.add_header(header);
    }
    let _ = request.respond(response);
}

/// Sends to a collector on a thread of its own.
struct CollectorThread {
    name: String,
    /// Dropped when the run is over.
    over: Sender<()>,
    thread: JoinHandle<Result<(), String>>,
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
                    &latest.get(),
                    &host,
                    env!("CARGO_PKG_VERSION"),
                    start_ns,
                    clock::realtime_ns(),
                );
                let sent = agent.post(&url).header("Content-Type", "application/json").send(&body);
                // Only the last request matters: its figures contain those of all before it.
                if ended {
                    return sent.map(drop).map_err(|unsent| unsent.to_string());
                }
            }
        };
        let thread = thread("fiord-otlp", send).map_err(|why| format!("fiord: {name}: {why}\n"))?;
        Ok(CollectorThread { name, over, thread })
    }

    /// Waits until the last figures are sent; returns why they could not be.
    fn finish(self) -> Option<String> {
        drop(self.over);
        let sent = self.thread.join().unwrap_or_else(|_| Err("its thread panicked".to_string()));
        let why = sent.err()?;
        Some(format!("fiord: {}: the last figures were not sent: {why}; is a collector there?\n", self.name))
    }
}

fn thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, String> {
    let started = std::thread::Builder::new().name(name.to_string()).spawn(work);
    started.map_err(|error| format!("no thread could be started: {}", error_text(&error)))
}

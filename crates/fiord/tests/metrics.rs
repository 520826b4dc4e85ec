//! Metrics of real runs, as their readers get them.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use fiord_testing::need;
use serde_json::{Value, json};

use crate::common::{Dir, finish, fiord, start, until};
use crate::watch;

const JOB: &str =
    "--name=a --ioengine=null --size=1g --rw=randrw --rate_iops=400 --time_based --numjobs=2 --no-history";

/// The sum of the values of a metric whose lines contain these labels.
pub(crate) fn sum(text: &str, metric: &str, labels: &str) -> f64 {
    let of_metric = |line: &&str| line.starts_with(&format!("{metric}{{")) && line.contains(labels);
    let values = text.lines().filter(of_metric).map(|line| line.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<f64>().unwrap()).sum()
}

#[test]
fn the_file_has_the_figures_of_the_report() {
    let dir = Dir::new();
    let ran = dir.run(&format!("{JOB} --runtime=1 --metrics=file:run.prom --output-format=json"));
    let report = ran.assert_success().json();
    let text = dir.text("run.prom");
    let jobs = report["jobs"].as_array().unwrap();
    for direction in ["read", "write"] {
        let of_jobs = |key: &str| jobs.iter().map(|job| job[direction][key].as_f64().unwrap()).sum::<f64>();
        let labels = format!("direction=\"{direction}\"");
        assert_eq!(sum(&text, "fiord_ios_total", &labels), of_jobs("total_ios"));
        assert_eq!(sum(&text, "fiord_transferred_bytes_total", &labels), of_jobs("io_bytes"));
        let completions = format!("{labels},kind=\"completion\"");
        assert_eq!(sum(&text, "fiord_latency_seconds_count", &completions), of_jobs("total_ios"));
        let everything = format!("{labels},kind=\"completion\",le=\"+Inf\"");
        assert_eq!(sum(&text, "fiord_latency_seconds_bucket", &everything), of_jobs("total_ios"));
    }
    assert!(text.contains("job_number=\"1\"") && text.contains("job_number=\"2\""), "{text}");
    assert!(!dir.join("run.prom.incomplete").exists());
}

/// The answer to a request at this port; empty if nobody listens yet.
fn get(port: u16, path: &str, accept: &str) -> Vec<u8> {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return Vec::new() };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().port()
}

#[test]
fn prometheus_is_answered_while_the_run_lasts() {
    let dir = Dir::new();
    let port = free_port();
    let _running = start(fiord(dir.path(), &format!("{JOB} --runtime=300 --metrics=prometheus:{port}")));
    let count = || {
        let answer = String::from_utf8(get(port, "/metrics", "*/*")).unwrap();
        let is_early = answer.is_empty() || answer.starts_with("HTTP/1.1 503 ");
        assert!(is_early || answer.contains("Content-Type: text/plain; version=0.0.4"), "{answer}");
        sum(&answer, "fiord_ios_total", "direction=\"read\"")
    };
    until("I/Os are counted", || count() > 0.0);
    let first = count();
    until("the figures change", || count() > first);
    let protobuf = get(port, "/metrics", "application/vnd.google.protobuf;encoding=delimited");
    assert!(String::from_utf8_lossy(&protobuf).contains("io.prometheus.client.MetricFamily"), "its type");
    assert!(String::from_utf8_lossy(&get(port, "/else", "*/*")).starts_with("HTTP/1.1 404"));
}

/// The whole answer to this text.
fn ask(port: u16, text: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_endpoint_has_one_thread_and_ends_whoever_asks_nothing() {
    let dir = Dir::new();
    let port = free_port();
    let running = start(fiord(dir.path(), &format!("{JOB} --runtime=300 --metrics=prometheus:{port}")));
    let answered = || String::from_utf8(get(port, "/metrics", "*/*")).unwrap();
    until("there are figures", || {
        let answer = answered();
        // Never an empty page: who averages would take it for a run that does nothing.
        let is_ready = answer.starts_with("HTTP/1.1 200 ");
        assert!(answer.is_empty() || is_ready || answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert_eq!(is_ready, answer.contains("fiord_run_info"), "{answer}");
        is_ready
    });
    let threads = || std::fs::read_dir(format!("/proc/{}/task", running.0.id())).unwrap().count();
    let before = threads();
    let idle: Vec<TcpStream> = (0..60).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
    for (number, stream) in idle.iter().enumerate().filter(|(number, _)| number % 2 == 0) {
        (&mut &*stream).write_all(b"GET /metrics HT").unwrap_or_else(|error| panic!("{number}: {error}"));
    }
    assert!(answered().starts_with("HTTP/1.1 200 "), "those before it are ended");
    assert_eq!(threads(), before);
    for stream in idle {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        // It goes on after a signal, which `read` does not.
        let end = (&mut &stream).read_to_end(&mut Vec::new());
        let is_reset = end.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(is_reset || end.as_ref().is_ok_and(|length| *length == 0), "{end:?}");
    }
    let posted = ask(port, "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
    assert!(posted.starts_with("HTTP/1.1 405 ") && posted.contains("Allow: GET, HEAD\r\n"), "{posted}");
    let head = ask(port, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn a_collector_gets_the_last_figures() {
    let dir = Dir::new();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = collector.local_addr().unwrap().port();
    let received = thread::spawn(move || {
        let (mut stream, _) = collector.accept().unwrap();
        let mut request = Vec::new();
        let mut chunk = [0; 4096];
        let body = loop {
            let length = stream.read(&mut chunk).unwrap();
            assert!(length > 0, "the request ends early");
            request.extend_from_slice(&chunk[..length]);
            let text = String::from_utf8_lossy(&request).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
            if body.len() as u64 >= length.trim().parse::<u64>().unwrap() {
                assert!(head.starts_with("post /v1/metrics"), "{head}");
                break body.to_string();
            }
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        body
    });
    let url = format!("otlp:http://127.0.0.1:{port}/v1/metrics");
    let ran = dir.run(&format!("{JOB} --runtime=1 --metrics={url} --output-format=json"));
    let report = ran.assert_success().json();
    let request: Value = serde_json::from_str(&received.join().unwrap()).unwrap();
    let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let named = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap();
    let points = named("fiord_latency_seconds")["exponentialHistogram"]["dataPoints"].as_array().unwrap();
    let completions = points.iter().filter(|point| point["attributes"].to_string().contains("completion"));
    let counted: u64 =
        completions.map(|point| point["count"].as_str().unwrap().parse::<u64>().unwrap()).sum();
    let jobs = report["jobs"].as_array().unwrap().iter();
    let of_job = |job: &Value| {
        job["read"]["total_ios"].as_u64().unwrap() + job["write"]["total_ios"].as_u64().unwrap()
    };
    assert_eq!(counted, jobs.map(of_job).sum::<u64>());
}

#[test]
fn what_cannot_be_exported_is_reported() {
    let dir = Dir::new();
    let run = |destination: &str| dir.run(&format!("{JOB} --runtime=1 --metrics={destination}"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let refused = run(&format!("prometheus:{address}"));
    refused.assert_status(1).assert_prints(&["Address already in use (EADDRINUSE)"]);
    assert_eq!(refused.stdout, "", "nothing is run");
    run("statsd:1").assert_status(1).assert_prints(&["prometheus:ADDRESS"]);
    let unwritten = run("file:missing/run.prom");
    unwritten.assert_status(1).assert_prints(&["not a file in an existing directory"]);
    assert_eq!(unwritten.stdout, "", "nothing is run");
    // Here the run has been carried out, and its report is printed.
    drop(taken);
    let unsent = run(&format!("otlp:http://{address}/v1/metrics"));
    unsent.assert_status(1).assert_prints(&["the last figures were not sent", "Run status group 0"]);
}

#[test]
fn watching_exports_what_it_prints() {
    let (dir, _memory, device) = need!(watch::device());
    let port = free_port();
    let form = format!("--json --metrics=prometheus:{port} --metrics=file:watch.prom");
    let running = watch::watching(&dir, &device, &form);
    let job = format!("--name=a --filename={} --direct=1 --ioengine=libaio --iodepth=4", device.path);
    let line = format!("{job} --rw=randread --bs=8k --number_ios=500 --size=16m --norandommap");
    finish(start(fiord(dir.path(), &line))).assert_success();
    let name = device.path.trim_start_matches("/dev/");
    let labels = format!("device=\"{name}\",operation=\"read\"");
    let scraped = || String::from_utf8(get(port, "/metrics", "*/*")).unwrap();
    let kinds = ["queue", "device"].map(|kind| format!("{labels},kind=\"{kind}\""));
    until("the reads are scraped", || {
        sum(&scraped(), "fiord_device_latency_seconds_count", &kinds[0]) >= 500.0
    });
    let answer = scraped();
    let of_device = format!("device=\"{name}\",direction=\"read\"");
    assert!(sum(&answer, "fiord_device_transferred_bytes_total", &of_device) >= 500.0 * 8192.0, "{answer}");
    assert!(answer.contains("\nfiord_lost_events_total 0\n"), "{answer}");
    let document = watch::stopped(running);
    let text = dir.text("watch.prom");
    let read = watch::row(&document, "devices", "operation", &json!("read"));
    for kind in &kinds {
        let count = sum(&text, "fiord_device_latency_seconds_count", kind);
        assert_eq!(Some(count), read["requests"].as_f64(), "{kind} {text}");
    }
    assert!(sum(&text, "fiord_device_ios_total", &of_device) >= 500.0, "{text}");
    // Both halves of the latency are in seconds: no read of memory takes a minute.
    let at_device = sum(&text, "fiord_device_latency_seconds_sum", &kinds[1]);
    assert!(at_device > 0.0 && at_device < 60.0 * 500.0, "{text}");
}

#[test]
fn watching_needs_its_destinations_before_and_tells_of_them_afterwards() {
    let dir = Dir::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for (destination, why) in [
        ("nowhere:1".to_string(), "not a destination of metrics: use prometheus:ADDRESS"),
        (format!("prometheus:{port}"), "(EADDRINUSE); choose another address"),
    ] {
        let ran = dir.run(&format!("watch / --for 1h --metrics={destination}"));
        ran.assert_status(1).assert_prints(&["fiord watch: --metrics=", why]);
    }
    // A port that was free a moment ago: no collector is there.
    let nobody = free_port();
    let (dir, _memory, device) = need!(watch::device());
    let ran = dir
        .run(&format!("watch {} --for 1ms --metrics=otlp:http://127.0.0.1:{nobody}/v1/metrics", device.path));
    ran.assert_status(1).assert_prints(&[
        "fiord watch: --metrics=otlp:",
        "were not sent",
        "is a collector there?",
    ]);
    assert!(ran.stdout.contains("No request reached"), "{}", ran.stdout);
}

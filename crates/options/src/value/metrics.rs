//! Where the metrics of a run go.
//!
//! Invariant: nothing is contacted or bound while a value is read, and an address is one of this machine unless it says
//! otherwise: a port alone is on the loopback interface.

use std::ffi::{OsStr, OsString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;
use crate::shown;

/// Where the metrics of a run go: `prometheus:9464`, `otlp:http://localhost:4318/v1/metrics`, `file:run.prom`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsDestination {
    /// Prometheus asks for them at this address.
    Prometheus(SocketAddr),
    /// They are sent to this URL of an OpenTelemetry collector.
    Otlp(String),
    /// They are written to this file when the run ends.
    File(OsString),
}

const CHOICES: [Choice; 3] = [
    Choice {
        word: "prometheus:ADDRESS",
        help: "Answer Prometheus at this address (IP:PORT, or a port of 127.0.0.1).",
    },
    Choice { word: "otlp:URL", help: "Send them to a collector of OpenTelemetry every 5 s, and at the end." },
    Choice { word: "file:PATH", help: "Write them at the end, for node_exporter's textfile collector." },
];

impl Value for MetricsDestination {
    const KIND: ValueKind = ValueKind::Text;
    const CHOICES: &'static [Choice] = &CHOICES;

    fn parse(text: &str, reading: &mut Reading) -> Result<MetricsDestination, String> {
        MetricsDestination::parse_bytes(OsStr::new(text), reading)
    }

    fn parse_bytes(bytes: &OsStr, _reading: &mut Reading) -> Result<MetricsDestination, String> {
        let all = bytes.as_bytes();
        let colon = all.iter().position(|byte| *byte == b':').unwrap_or(all.len());
        let rest = all.get(colon + 1..).unwrap_or_default();
        let text = || std::str::from_utf8(rest).map_err(|_| "the address is not UTF-8".to_string());
        match &all[..colon] {
            _ if rest.is_empty() => Err(forms()),
            b"prometheus" => address(text()?).map(MetricsDestination::Prometheus),
            b"otlp" => url(text()?).map(MetricsDestination::Otlp),
            b"file" => Ok(MetricsDestination::File(OsString::from_vec(rest.to_vec()))),
            _ => Err(forms()),
        }
    }

    fn print(&self) -> String {
        match self {
            MetricsDestination::Prometheus(address) => format!("prometheus:{address}"),
            MetricsDestination::Otlp(url) => format!("otlp:{url}"),
            MetricsDestination::File(path) => format!("file:{}", shown::text(path)),
        }
    }
}

fn forms() -> String {
    let words = CHOICES.map(|choice| choice.word);
    format!("not a destination of metrics: use {}, {} or {}", words[0], words[1], words[2])
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(port) = text.strip_prefix("localhost:").unwrap_or(text).parse::<u16>() {
        return Ok(SocketAddr::new(loopback, port));
    }
    let wrong =
        || format!("{text:?} is not an address: use a port, or IP:PORT such as 0.0.0.0:9464 or [::1]:9464");
    text.parse().map_err(|_| wrong())
}

fn url(text: &str) -> Result<String, String> {
    match text.strip_prefix("http://") {
        Some(rest) if !rest.is_empty() => Ok(text.to_string()),
        _ if text.starts_with("https://") => Err(
            "fiord sends metrics without TLS: use http:// and a collector on this host or in this network"
                .to_string(),
        ),
        _ => Err(format!("{text:?} is not a URL: use http://HOST:4318/v1/metrics")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, String> {
        MetricsDestination::parse(text, &mut Reading::default()).map(|value| value.print())
    }

    #[test]
    fn a_port_alone_is_of_the_loopback_interface() {
        for text in ["prometheus:9464", "prometheus:localhost:9464", "prometheus:127.0.0.1:9464"] {
            assert_eq!(parsed(text).as_deref(), Ok("prometheus:127.0.0.1:9464"));
        }
        assert_eq!(parsed("prometheus:[::1]:9464").as_deref(), Ok("prometheus:[::1]:9464"));
        assert_eq!(parsed("prometheus:0.0.0.0:9464").as_deref(), Ok("prometheus:0.0.0.0:9464"));
    }

    #[test]
    fn a_path_may_be_any_bytes_and_have_colons() {
        let bytes = OsStr::from_bytes(b"file:/tmp/a:\xe9.prom");
        let value = MetricsDestination::parse_bytes(bytes, &mut Reading::default());
        assert_eq!(value, Ok(MetricsDestination::File(OsString::from_vec(b"/tmp/a:\xe9.prom".to_vec()))));
    }

    #[test]
    fn what_is_wrong_is_refused_with_the_forms_there_are() {
        for text in ["", "prometheus", "prometheus:", "file:", "statsd:1"] {
            assert!(parsed(text).is_err_and(|why| why.contains("prometheus:ADDRESS")), "{text}");
        }
        assert!(parsed("prometheus:host.example:1").is_err_and(|why| why.contains("IP:PORT")));
        assert!(parsed("otlp:https://x/").is_err_and(|why| why.contains("without TLS")));
        assert!(parsed("otlp:localhost:4318").is_err_and(|why| why.contains("is not a URL")));
    }
}

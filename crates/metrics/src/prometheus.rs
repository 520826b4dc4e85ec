//! Prometheus' text format, version 0.0.4: what a scrape gets by default, and what node_exporter reads from files.
//!
//! Invariant: a text ends with a line feed, and a metric's lines follow its `HELP` and `TYPE`. Histograms are classic
//! here: the format has no other.

use std::fmt::Write as _;

use crate::family::{Family, Labels, LatencyHistogram, Value};

/// The families as text.
pub fn text(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        let (name, help, kind) = (family.name, family.help, family.kind.name());
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for sample in &family.samples {
            match &sample.value {
                Value::Number(value) => line(&mut text, name, &sample.labels, None, *value),
                Value::Latencies(latencies) => histogram(&mut text, name, &sample.labels, latencies),
            }
        }
    }
    text
}

fn histogram(text: &mut String, name: &str, labels: &Labels, latencies: &LatencyHistogram) {
    for (bound, count) in &latencies.classic {
        let bound = bound.map_or("+Inf".to_string(), |bound| bound.to_string());
        line(text, &format!("{name}_bucket"), labels, Some(&bound), *count as f64);
    }
    line(text, &format!("{name}_sum"), labels, None, latencies.sum_s);
    line(text, &format!("{name}_count"), labels, None, latencies.count as f64);
}

fn line(text: &mut String, name: &str, labels: &Labels, bound: Option<&str>, value: f64) {
    let named = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let pairs: Vec<String> = named
        .chain(bound.map(|bound| ("le", bound)))
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
        .collect();
    let braced = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
    let _ = writeln!(text, "{name}{braced} {value}");
}

/// A label's value: backslash, quote and line feed are the characters that end or break it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

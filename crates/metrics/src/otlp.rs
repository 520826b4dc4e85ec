//! OpenTelemetry's metrics in the JSON encoding of OTLP, the body of a request to `/v1/metrics`.
//!
//! Invariant: counters are cumulative since the start of the run; integers of 64 bits are strings, as the encoding asks.

use serde_json::{Value as Json, json};

use crate::family::{Family, Kind, Labels, LatencyHistogram, Sample, Value};
use crate::latency::{NativeBucket, SCHEMA};

/// OTLP's number for values that count since the start.
const CUMULATIVE: u32 = 2;

/// A request with these families, measured from one time to the other, both in nanoseconds since the epoch.
pub fn json(families: &[Family], host: &str, version: &str, start_ns: u64, end_ns: u64) -> String {
    let metrics: Vec<Json> = families.iter().map(|family| metric(family, start_ns, end_ns)).collect();
    let attribute = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let resource = json!([
        attribute("service.name", "fiord"),
        attribute("service.version", version),
        attribute("host.name", host),
    ]);
    json!({
        "resourceMetrics": [{
            "resource": { "attributes": resource },
            "scopeMetrics": [{ "scope": { "name": "fiord", "version": version }, "metrics": metrics }],
        }],
    })
    .to_string()
}

fn metric(family: &Family, start_ns: u64, end_ns: u64) -> Json {
    let points: Vec<Json> = family.samples.iter().map(|sample| point(sample, start_ns, end_ns)).collect();
    let mut metric = json!({ "name": family.name, "description": family.help, "unit": unit(family.name) });
    let (key, data) = match family.kind {
        Kind::Counter => {
            let sum =
                json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true });
            ("sum", sum)
        }
        Kind::Gauge => ("gauge", json!({ "dataPoints": points })),
        Kind::Histogram => {
            ("exponentialHistogram", json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE }))
        }
    };
    metric[key] = data;
    metric
}

/// The unit of a metric in UCUM's spelling, by its name.
fn unit(name: &str) -> &'static str {
    let base = name.strip_suffix("_total").unwrap_or(name);
    if base.ends_with("_seconds") {
        "s"
    } else if base.ends_with("_bytes") {
        "By"
    } else {
        "1"
    }
}

fn point(sample: &Sample, start_ns: u64, end_ns: u64) -> Json {
    let mut point = json!({
        "attributes": attributes(&sample.labels),
        "startTimeUnixNano": start_ns.to_string(),
        "timeUnixNano": end_ns.to_string(),
    });
    match &sample.value {
        Value::Number(value) => point["asDouble"] = json!(value),
        Value::Latencies(latencies) => add_histogram(&mut point, latencies),
    }
    point
}

fn attributes(labels: &Labels) -> Vec<Json> {
    let attribute = |(key, value): &(&str, String)| json!({ "key": key, "value": { "stringValue": value } });
    labels.iter().map(attribute).collect()
}

fn add_histogram(point: &mut Json, latencies: &LatencyHistogram) {
    point["count"] = json!(latencies.count.to_string());
    point["sum"] = json!(latencies.sum_s);
    point["scale"] = json!(SCHEMA);
    point["zeroCount"] = json!(latencies.zeros.to_string());
    point["positive"] = buckets(&latencies.native);
    if let Some((min, max)) = latencies.extremes_s {
        point["min"] = json!(min);
        point["max"] = json!(max);
    }
}

/// All buckets from the first that counted something to the last. OTLP's bucket `i` begins where Prometheus' ends that
/// has the index `i`.
fn buckets(native: &[NativeBucket]) -> Json {
    let (Some(first), Some(last)) = (native.first(), native.last()) else {
        return json!({ "offset": 0, "bucketCounts": [] });
    };
    let mut counts = vec![0_u64; last.index.abs_diff(first.index) as usize + 1];
    for bucket in native {
        counts[bucket.index.abs_diff(first.index) as usize] = bucket.count;
    }
    let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
    json!({ "offset": first.index - 1, "bucketCounts": counts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_between_are_there_with_nothing_in_them() {
        let native = [NativeBucket { index: -3, count: 2 }, NativeBucket { index: 0, count: 7 }];
        assert_eq!(buckets(&native), json!({ "offset": -4, "bucketCounts": ["2", "0", "0", "7"] }));
        assert_eq!(buckets(&[]), json!({ "offset": 0, "bucketCounts": [] }));
    }

    #[test]
    fn units_follow_from_names() {
        let units = ["fiord_latency_seconds", "fiord_transferred_bytes_total", "fiord_ios_total"].map(unit);
        assert_eq!(units, ["s", "By", "1"]);
    }
}

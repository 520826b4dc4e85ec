//! Prometheus' protobuf format, the only one with native histograms.
//!
//! Invariant: field numbers are those of `io.prometheus.client.MetricFamily`; each family follows its length.
//! Histograms are both classic and native: a server takes what it is configured for.

use fiord_stats::Capped;
use prost::Message;

use crate::family::{Family, Kind, LatencyHistogram, Sample, Value};
use crate::latency::{NativeBucket, SCHEMA};

/// Latencies up to this count as zero, in seconds: less than a nanosecond is not measured.
const ZERO_MAX_S: f64 = 1e-9 / 2.0;

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    /// 0 a counter, 1 a gauge, 4 a histogram.
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

/// Consecutive buckets; the offset is from the end of the span before.
#[derive(Clone, PartialEq, Message)]
struct BucketSpan {
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

/// The families, each with its length before it.
pub fn encode(families: &[Family]) -> Vec<u8> {
    families.iter().flat_map(|family| message(family).encode_length_delimited_to_vec()).collect()
}

fn message(family: &Family) -> MetricFamily {
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Histogram => 4,
    };
    MetricFamily {
        name: family.name.to_string(),
        help: family.help.to_string(),
        kind: Some(kind),
        metric: family.samples.iter().map(|sample| metric(sample, family.kind)).collect(),
    }
}

fn metric(sample: &Sample, kind: Kind) -> Metric {
    let pair =
        |(name, value): &(&'static str, String)| LabelPair { name: name.to_string(), value: value.clone() };
    let mut metric = Metric { label: sample.labels.iter().map(pair).collect(), ..Metric::default() };
    match &sample.value {
        Value::Number(value) if kind == Kind::Gauge => metric.gauge = Some(Number { value: Some(*value) }),
        Value::Number(value) => metric.counter = Some(Number { value: Some(*value) }),
        Value::Latencies(latencies) => metric.histogram = Some(histogram(latencies)),
    }
    metric
}

fn histogram(latencies: &LatencyHistogram) -> Histogram {
    // The count of all is the bucket without a bound.
    let bounded = latencies.classic.iter().filter_map(|(bound, count)| Some((bound.as_ref()?, count)));
    let bucket =
        |(bound, count): (&f64, &u64)| Bucket { cumulative_count: Some(*count), upper_bound: Some(*bound) };
    let (positive_span, positive_delta) = spans(&latencies.native);
    Histogram {
        sample_count: Some(latencies.count),
        sample_sum: Some(latencies.sum_s),
        bucket: bounded.map(bucket).collect(),
        schema: Some(SCHEMA),
        zero_threshold: Some(ZERO_MAX_S),
        zero_count: Some(latencies.zeros),
        positive_span,
        positive_delta,
    }
}

/// The buckets as spans, and the difference of each count from the one before.
fn spans(buckets: &[NativeBucket]) -> (Vec<BucketSpan>, Vec<i64>) {
    let mut spans: Vec<BucketSpan> = Vec::new();
    let mut deltas = Vec::new();
    let (mut next_index, mut last_count) = (0, 0);
    for bucket in buckets {
        match spans.last_mut() {
            Some(span) if bucket.index == next_index => span.length = Some(span.length() + 1),
            _ => spans.push(BucketSpan { offset: Some(bucket.index - next_index), length: Some(1) }),
        }
        deltas.push(i64::capped(bucket.count) - last_count);
        (next_index, last_count) = (bucket.index + 1, i64::capped(bucket.count));
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_differences_restore_the_buckets() {
        let bucket = |index, count| NativeBucket { index, count };
        let buckets = [bucket(-120, 5), bucket(-119, 2), bucket(-100, 9), bucket(3, 1), bucket(4, 1)];
        let (spans, deltas) = spans(&buckets);
        let mut restored = Vec::new();
        let (mut index, mut count, mut deltas) = (0, 0, deltas.into_iter());
        for span in &spans {
            index += span.offset();
            for _ in 0..span.length() {
                count += deltas.next().expect("a difference for each bucket");
                restored.push(bucket(index, count as u64));
                index += 1;
            }
        }
        assert_eq!((restored.as_slice(), spans.len()), (&buckets[..], 3));
    }

    #[test]
    fn an_encoded_family_is_read_back() {
        let latencies = LatencyHistogram {
            count: 3,
            sum_s: 0.5,
            extremes_s: Some((0.0, 0.25)),
            classic: vec![(Some(1e-6), 1), (None, 3)],
            zeros: 1,
            native: vec![bucket(-16, 2)],
        };
        let sample =
            Sample { labels: vec![("kind", "total".to_string())], value: Value::Latencies(latencies) };
        let family = Family { name: "a_seconds", help: "A.", kind: Kind::Histogram, samples: vec![sample] };
        let bytes = encode(std::slice::from_ref(&family));
        let read = MetricFamily::decode_length_delimited(&bytes[..]).expect("a family");
        assert_eq!(read, message(&family));
        let histogram = read.metric[0].histogram.as_ref().expect("a histogram");
        assert_eq!((histogram.sample_count(), histogram.bucket.len()), (3, 1));
        assert_eq!(histogram.positive_delta, [2]);
    }

    fn bucket(index: i32, count: u64) -> NativeBucket {
        NativeBucket { index, count }
    }
}

//! Families of metrics: a name, its help, and one value for each set of labels.
//!
//! Invariant: the samples of a family have the kind of the family, and no two have the same labels.

use fiord_stats::Latency;

use crate::latency::{Bound, NativeBucket, classic_counts, native_buckets, seconds};

/// Names and values that tell the samples of a family apart.
pub type Labels = Vec<(&'static str, String)>;

/// Whether a value may fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows until the run ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts of latencies.
    Histogram,
}

impl Kind {
    /// As Prometheus' text format calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of a counter or a gauge.
    Number(f64),
    /// Of a histogram.
    Latencies(LatencyHistogram),
}

/// Latencies as monitoring systems count them.
///
/// fio's bins are finer than either layout: a latency counts where the middle of its bin is, which is within 1/128 of
/// the latency.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyHistogram {
    /// Latencies counted.
    pub count: u64,
    /// Their sum, in seconds.
    pub sum_s: f64,
    /// The shortest and the longest, in seconds; `None` if there are none.
    pub extremes_s: Option<(f64, f64)>,
    /// Classic buckets: how many latencies were at most so long.
    pub classic: Vec<(Bound, u64)>,
    /// Latencies of less than a nanosecond.
    pub zeros: u64,
    /// Exponential buckets that counted something, ascending.
    pub native: Vec<NativeBucket>,
}

impl LatencyHistogram {
    /// Those of a latency that has a histogram.
    pub(crate) fn of(latency: &Latency) -> LatencyHistogram {
        let occupied: Vec<(u64, u64)> = latency.histogram.occupied().collect();
        let running = &latency.running;
        let (zeros, native) = native_buckets(&occupied);
        LatencyHistogram {
            count: occupied.iter().map(|(_, count)| count).sum(),
            sum_s: running.sum as f64 / 1e9,
            extremes_s: (running.count > 0).then(|| (seconds(running.min), seconds(running.max))),
            classic: classic_counts(&occupied),
            zeros,
            native,
        }
    }
}

/// A value and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What tells it apart from the others of its family.
    pub labels: Labels,
    /// The value.
    pub value: Value,
}

/// A metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Its name by Prometheus' conventions: the unit at the end, `_total` after it if it is a counter.
    pub name: &'static str,
    /// What it is, as a sentence.
    pub help: &'static str,
    /// Whether it may fall.
    pub kind: Kind,
    /// Its values; none if the run has none.
    pub samples: Vec<Sample>,
}

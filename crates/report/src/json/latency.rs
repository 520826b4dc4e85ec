//! The object of a latency, in fio's layout.
//!
//! Invariant: without values there are no percentiles.

use fiord_stats::Latency;

use super::writer::Writer;

/// Whether the document contains the counts by latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// JSON: percentiles only.
    Percentiles,
    /// JSON+: every occupied bin of the histograms too.
    Bins,
}

/// Writes it with these percentiles.
pub(super) fn latency(json: &mut Writer, key: &str, latency: &Latency, percentiles: &[f64], detail: Detail) {
    json.object(key, |json| {
        let running = &latency.running;
        json.integer("min", running.min());
        json.integer("max", running.max);
        json.float("mean", running.mean());
        json.float("stddev", running.stddev());
        json.integer("N", running.count);
        if percentiles.is_empty() || latency.histogram.count() == 0 {
            return;
        }
        json.object("percentile", |json| {
            for (percent, value_ns) in percentiles.iter().zip(latency.percentiles(percentiles)) {
                json.integer(&format!("{percent:.6}"), value_ns);
            }
        });
        if detail == Detail::Bins {
            json.object("bins", |json| {
                for (value_ns, count) in latency.histogram.occupied() {
                    json.integer(&value_ns.to_string(), count);
                }
            });
        }
    });
}

//! The figures of a run, or of watched devices, as metrics, for monitoring systems.
//!
//! Invariant: every format renders the same [`families()`]; a metric is declared in one place, with its name, its help
//! and its kind.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod families;
mod family;
mod latency;
mod otlp;
mod prometheus;
mod protobuf;

pub use families::{HostFigures, families, of_hosts, watched};
pub use family::{Family, Kind, Labels, LatencyHistogram, Sample, Value};
pub use otlp::json as otlp_json;
pub use prometheus::text as prometheus_text;
pub use protobuf::encode as prometheus_protobuf;

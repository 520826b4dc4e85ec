//! What only a report needs to know of a job: units, figures, and the words the user chose.
//!
//! Invariant: nothing here changes what a worker does.

use crate::access::PerDirection;

/// How the directions of a job are reported (`unified_rw_reporting`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unified {
    /// Each direction separately.
    #[default]
    None,
    /// Summed into one.
    Mixed,
    /// Each direction separately, and the sum.
    Both,
}

/// In what bandwidth is reported (`unit_base`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateUnit {
    /// Bytes per second.
    #[default]
    Bytes,
    /// Bits per second.
    Bits,
}

/// How one worker is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Presentation {
    /// The `rw` mode in fio's canonical word (`randrw`).
    pub mode: String,
    /// Shortest and longest block of each direction in bytes, for the job's banner.
    pub block_bytes: PerDirection<(u64, u64)>,
    /// The queue depth as typed; a synchronous engine always uses 1.
    pub requested_iodepth: u32,
    /// Percentiles listed, in ascending order.
    pub percentiles: Vec<f64>,
    /// Digits of figures in the normal report.
    pub significant_figures: u32,
    /// Bytes of a kilobyte: 1024 or 1000.
    pub kb_base: u32,
    /// Bytes or bits.
    pub rate_unit: RateUnit,
    /// Directions separately or summed.
    pub unified: Unified,
    /// Whether the job has `group_reporting`.
    pub group_reporting: bool,
    /// The section's own settings as typed: canonical name and text (empty for a bare flag), in order.
    pub options: Vec<(String, String)>,
}

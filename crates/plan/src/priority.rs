//! The I/O priorities of a job: its own, and those of single I/Os.
//!
//! Invariant: a number of a priority (`Op::priority`) is an index of `values`; 0 is the job's own.

use crate::access::PerDirection;

/// Class of priorities in the kernel: best effort.
pub const BEST_EFFORT: u8 = 2;

/// An I/O priority as the kernel packs it.
pub const fn packed(class: u8, level: u8, hint: u16) -> u16 {
    (class as u16) << 13 | hint << 3 | level as u16
}

/// The I/O priorities of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoPriorities {
    /// Each once, as the kernel packs them, at most 256: first the job's own, 0 if it has none.
    pub values: Vec<u16>,
    /// Which I/Os have another than the job's own.
    pub shares: PerDirection<Vec<PriorityShare>>,
}

impl Default for IoPriorities {
    fn default() -> IoPriorities {
        IoPriorities { values: vec![0], shares: Default::default() }
    }
}

impl IoPriorities {
    /// Whether I/Os have priorities of their own.
    pub fn differ(&self) -> bool {
        self.values.len() > 1
    }
}

/// Some I/Os of one direction, and their priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityShare {
    /// Those of this length only.
    pub length_bytes: Option<u64>,
    /// Share of them, in percent.
    pub percent: u8,
    /// Number of their priority.
    pub priority: u8,
}

/// Which I/Os the job's options give a priority.
pub type PriorityRequests = PerDirection<Vec<PriorityRequest>>;

/// Some I/Os of one direction, and the priority that the job's options give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PriorityRequest {
    /// Those of this length only.
    pub length_bytes: Option<u64>,
    /// Share of them, in percent.
    pub percent: u8,
    /// As the kernel packs it.
    pub value: u16,
}

//! The source of jobs whose I/Os are cycles of other work: reads of no bytes, as many as the job may issue.
//!
//! Invariant: no operation names a place in a file.

use fiord_plan::job::Limits;
use fiord_plan::{Action, FileIndex, Op};

use crate::source::{OperationSource, Supply};

/// Cycles, in fio counted as reads.
#[derive(Debug)]
pub struct CycleSource {
    left: u64,
}

impl CycleSource {
    /// As many as `number_ios` says, or until time ends the job.
    pub fn new(limits: &Limits) -> CycleSource {
        CycleSource {
            left: limits.number_ios.map_or(u64::MAX, |ios| ios.saturating_mul(limits.loops.max(1))),
        }
    }
}

impl OperationSource for CycleSource {
    fn fill(&mut self, ops: &mut Vec<Op>, _room: usize, _now_ns: u64) -> Supply {
        if self.left == 0 {
            return Supply::Ended;
        }
        self.left -= 1;
        ops.push(Op::new(Action::Read, 0, 0, 0));
        Supply::Ready
    }

    fn for_each_open_file(&self, show: &mut dyn FnMut(FileIndex)) {
        show(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_end_with_their_number_and_have_no_bytes() {
        let limits = Limits {
            pass_bytes: 4096,
            loop_bytes: 4096,
            repeats_passes: false,
            loops: 2,
            number_ios: Some(3),
            runtime_ns: None,
            time_based: false,
            ramp_ns: 0,
            ramp_bytes: 0,
        };
        let mut source = CycleSource::new(&limits);
        let mut ops = Vec::new();
        while source.fill(&mut ops, 64, 0) == Supply::Ready {}
        assert_eq!(ops.len(), 6);
        assert!(ops.iter().all(|op| op.length_bytes == 0 && op.action == Action::Read));
        let mut endless = CycleSource::new(&Limits { number_ios: None, ..limits });
        assert_eq!(endless.fill(&mut ops, 64, 0), Supply::Ready);
    }
}

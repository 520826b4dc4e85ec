//! The I/O priorities of a job: its own, and those of single I/Os (`cmdprio…`).
//!
//! Invariant: a priority that equals the job's own is not another one.

use fiord_options::{Problem, ProblemKind, engine};

use super::section::ResolvedSection;
use crate::access::PerDirection;
use crate::engine::EngineDescriptor;
use crate::job::Process;
use crate::priority::{BEST_EFFORT, IoPriorities, PriorityRequest, PriorityShare, packed};

/// Most priorities a job can have: the numbers of a byte.
const MOST: usize = 256;

/// The priorities of a job's I/Os on this engine.
pub(crate) fn io_priorities(
    section: &ResolvedSection<'_>,
    engine: &EngineDescriptor,
    process: &Process,
) -> IoPriorities {
    let mut values = vec![own(process)];
    let mut shares: PerDirection<Vec<PriorityShare>> = Default::default();
    let requested = engine.priorities.map(|requested| requested(section.options)).unwrap_or_default();
    for (requests, shares) in requested.into_iter().zip(&mut shares) {
        for PriorityRequest { length_bytes, percent, value } in requests {
            let known = values.iter().position(|known| *known == value);
            let index = known.unwrap_or(values.len());
            if known.is_none() && values.len() < MOST {
                values.push(value);
            }
            let priority = u8::try_from(index).unwrap_or(u8::MAX);
            shares.push(PriorityShare { length_bytes, percent, priority });
        }
    }
    IoPriorities { values, shares }
}

/// The priority of all I/Os that have no other.
pub(crate) fn own(process: &Process) -> u16 {
    let given = process.io_class.is_some() || process.io_priority.is_some();
    let class = process.io_class.unwrap_or(if given { BEST_EFFORT } else { 0 });
    packed(class, process.io_priority.unwrap_or(0), process.io_hint)
}

/// fio's job then fails.
pub(crate) fn percentage_excludes_bssplit(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = &section.options.io_priorities;
    let shares = &options.cmdprio_percentage;
    let has_share = [shares.read, shares.write].into_iter().flatten().any(|percent| percent > 0);
    (has_share && options.cmdprio_bssplit.is_some()).then(|| {
        let message = "cmdprio_bssplit and cmdprio_percentage both say which I/Os have a priority";
        let option = engine::IoPriorities::cmdprio_bssplit;
        section.error(ProblemKind::Conflict, option, message, "leave out cmdprio_percentage")
    })
}

//! The priorities of single I/Os, as the kernel takes them with a request.
//!
//! Invariant: an operation without a priority of its own has 0, with which the kernel uses the thread's.

use fiord_options::job::JobOptions;
use fiord_options::value::{PerDirection as Given, PriorityEntry};
use fiord_plan::priority::{BEST_EFFORT, packed};
use fiord_plan::{EngineDescriptor, EngineName, Op, PriorityRequest, PriorityRequests, Queueing};

/// The kernel's number of the real-time class.
const REAL_TIME: u8 = 1;

/// Of an engine whose requests carry priorities and can be atomic writes.
pub(crate) const fn descriptor(
    name: EngineName,
    summary: &'static str,
    queueing: Queueing,
) -> EngineDescriptor {
    EngineDescriptor {
        priorities: Some(requested),
        atomic_writes: true,
        ..EngineDescriptor::of(name, summary, queueing)
    }
}

/// Which I/Os the options give a priority: reads, and writes.
fn requested(options: &JobOptions) -> PriorityRequests {
    [of_direction(options, 0), of_direction(options, 1), Vec::new()]
}

fn of_direction(options: &JobOptions, direction: usize) -> Vec<PriorityRequest> {
    let own = &options.io_priorities;
    let part = |given: &Option<Given<u32>>| {
        given.as_ref().and_then(|given| [given.read, given.write, given.trim][direction])
    };
    let of_options = packed(
        part(&own.cmdprio_class).map_or(REAL_TIME, |class| class.min(3) as u8),
        part(&own.cmdprio).map_or(0, |level| level.min(7) as u8),
        part(&own.cmdprio_hint).map_or(0, |hint| hint.min(1023) as u16),
    );
    let percent = part(&Some(own.cmdprio_percentage)).unwrap_or(0).min(100) as u8;
    if percent > 0 {
        return vec![PriorityRequest { length_bytes: None, percent, value: of_options }];
    }
    let split = own.cmdprio_bssplit.as_ref();
    let split = split.and_then(|given| [&given.read, &given.write][direction].as_ref());
    let value = |entry: &PriorityEntry| match entry.priority {
        None => of_options,
        Some((0, level @ 1.., hint)) => packed(BEST_EFFORT, level, hint),
        Some((class, level, hint)) => packed(class, level, hint),
    };
    let used = split.map_or(&[][..], |split| &split.entries).iter().filter(|entry| entry.percent > 0);
    let request = |entry: &PriorityEntry| PriorityRequest {
        length_bytes: Some(entry.bytes),
        percent: entry.percent,
        value: value(entry),
    };
    used.map(request).collect()
}

/// The priorities of a job's I/Os, by number.
#[derive(Debug)]
pub(crate) struct Priorities(Box<[u16; 256]>);

impl Priorities {
    /// These, of which the first is the thread's.
    pub(crate) fn new(values: &[u16]) -> Priorities {
        let mut all = Box::new([0; 256]);
        all.iter_mut().zip(values).skip(1).for_each(|(place, value)| *place = *value);
        Priorities(all)
    }

    /// That of an operation.
    #[inline]
    pub(crate) fn of(&self, op: &Op) -> u16 {
        self.0[usize::from(op.priority)]
    }
}

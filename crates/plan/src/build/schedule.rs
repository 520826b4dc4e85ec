//! When a worker starts, when it ends, and which group and report entry it counts into.
//!
//! Invariant: group and entry numbers never go back from one worker to the next.

use fiord_options::job::JobOptions;
use fiord_options::value::{self, Size};

use super::targets::Targets;
use crate::job::{ExitWhat, Limits, Schedule};

const NS_PER_US: u64 = 1000;

/// Whether only time ends a worker. Without a run time it would never end, which `rules` reports.
pub(crate) fn is_time_based(options: &JobOptions) -> bool {
    options.time.time_based.0 && options.time.runtime.us > 0
}

/// The ends of a worker with these targets, given the bytes of one loop.
pub(crate) fn limits(options: &JobOptions, targets: &Targets, loop_bytes: u64) -> Limits {
    let has_io_size = matches!(options.amount.io_size, Some(Size::Bytes(1..) | Size::Zones(1..)));
    let runtime_ns = (options.time.runtime.us > 0).then(|| options.time.runtime.us.saturating_mul(NS_PER_US));
    Limits {
        pass_bytes: targets.pass_bytes,
        loop_bytes,
        repeats_passes: has_io_size,
        loops: u64::from(options.general.loops.max(1)),
        number_ios: (options.access.number_ios > 0).then_some(options.access.number_ios),
        runtime_ns,
        time_based: is_time_based(options),
        ramp_ns: options.time.ramp_time.us.saturating_mul(NS_PER_US),
        ramp_bytes: targets.ramp_bytes,
    }
}

/// The start of a worker.
pub(crate) fn schedule(options: &JobOptions, stonewall: bool) -> Schedule {
    let delay = options.time.startdelay;
    Schedule {
        stonewall,
        start_delay_ns: (delay.low_us.saturating_mul(NS_PER_US), delay.high_us.saturating_mul(NS_PER_US)),
        wait_for: options.process.wait_for.as_ref().map(|name| name.0.clone()),
        exit_all: options.process.exitall.0,
        exit_all_on_error: options.process.exitall_on_error.0,
        exit_what: match options.process.exit_what {
            value::ExitWhat::Group => ExitWhat::Group,
            value::ExitWhat::Stonewall => ExitWhat::Stonewall,
            value::ExitWhat::All => ExitWhat::All,
        },
    }
}

/// Numbers groups as workers come.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    last: Option<u32>,
}

impl Grouping {
    /// The group of the next worker, and whether it joins the worker before it in the report. `begins_group` is a
    /// stonewall or `new_group` of the worker's section, and counts for its first clone; a worker with
    /// `group_reporting` joins the one before it, whatever that one's options are, if that is of the same group.
    pub fn next(&mut self, begins_group: bool, group_reporting: bool) -> (u32, bool) {
        let (group, joins) = match self.last {
            None => (0, false),
            Some(group) if begins_group => (group + 1, false),
            Some(group) => (group, group_reporting),
        };
        self.last = Some(group);
        (group, joins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(workers: &[(bool, bool)]) -> Vec<(u32, bool)> {
        let mut grouping = Grouping::default();
        workers.iter().map(|&(begins, reporting)| grouping.next(begins, reporting)).collect()
    }

    #[test]
    fn the_first_worker_is_of_group_zero_even_behind_a_stonewall() {
        assert_eq!(
            numbers(&[(true, false), (false, false), (true, false)]),
            [(0, false), (0, false), (1, false)]
        );
    }

    #[test]
    fn group_reporting_joins_the_worker_before() {
        // fio --name=a --numjobs=2 --group_reporting --name=b --numjobs=2 --name=c --group_reporting --numjobs=2
        // writes three entries: a with both of a, b with one, b with the other and both of c.
        let workers =
            [(false, true), (false, true), (false, false), (false, false), (false, true), (false, true)];
        let joins: Vec<bool> = numbers(&workers).iter().map(|numbers| numbers.1).collect();
        assert_eq!(joins, [false, true, false, false, true, true]);
    }

    #[test]
    fn no_entry_spans_two_groups() {
        assert_eq!(
            numbers(&[(false, true), (true, true), (false, true)]),
            [(0, false), (1, false), (1, true)]
        );
    }
}

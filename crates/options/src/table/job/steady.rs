//! Ending a job once a measure has become steady.
//!
//! Invariant: nothing here has an effect without `steadystate_duration`.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// The end at a steady state.
    pub struct Steady, scope Scope::Job;

    "Steady state" {
        /// Which measure must become steady, and how steady, before the job ends.
        ///
        /// A measure and a limit, in percent of the mean or in the unit of the measure: `iops:3%` ends the job once all
        /// measurements of the last `steadystate_duration` are within 3 % of their mean, `bw_slope:1m` once the line
        /// through them rises or falls by less than 1 MiB/s each second. With `group_reporting`, the sum of the group
        /// is measured, and all of its jobs end together. `lat` and `lat_slope` need fio 3.42 or fiord.
        steadystate | ss: SteadyCriterion = "iops_slope:0.01%";
        /// Time over which the measure must be steady, in whole seconds; 0 to run without looking for a steady state.
        steadystate_duration | ss_dur: Seconds = 0;
        /// Time before the first measurement.
        steadystate_ramp_time | ss_ramp: Seconds = 0;
        /// Length of one measurement; at most `steadystate_duration`.
        steadystate_check_interval | ss_interval: Seconds = 1;
    }
}

//! How fast a job may go: rates and think time.
//!
//! Invariant: a rate of nothing is no limit, as in fio.

use fiord_options::job::JobOptions;
use fiord_options::value::{Bytes, RateProcess, ThinktimeBlocksType};

use crate::access::PerDirection;
use crate::pace::{Pace, Think};

/// The limits of one worker.
pub(crate) fn pace(options: &JobOptions) -> Pace {
    let bytes = |rate: &fiord_options::value::PerDirection<Bytes>| {
        limits([rate.read, rate.write, rate.trim].map(|part| part.map(|Bytes(bytes)| bytes)))
    };
    let ios = |rate: &fiord_options::value::PerDirection<u32>| {
        limits([rate.read, rate.write, rate.trim].map(|part| part.map(u64::from)))
    };
    Pace {
        bytes_per_s: bytes(&options.rate),
        ios_per_s: ios(&options.rate_iops),
        min_bytes_per_s: bytes(&options.rate_min),
        min_ios_per_s: ios(&options.rate_iops_min),
        cycle_ms: u64::from(options.rate_cycle),
        poisson: options.rate_process == RateProcess::Poisson,
        ignore_think_time: options.rate_ignore_thinktime,
        think: think(options),
    }
}

fn limits(rates: PerDirection<Option<u64>>) -> PerDirection<Option<u64>> {
    rates.map(|rate| rate.filter(|rate| *rate > 0))
}

/// The pauses, if there are any: the other think options do nothing without `thinktime`.
fn think(options: &JobOptions) -> Option<Think> {
    (options.thinktime.us > 0).then(|| Think {
        pause_us: options.thinktime.us,
        spin_us: options.thinktime_spin.us.min(options.thinktime.us),
        cycles: u64::from(options.thinkcycles),
        every_ios: options.thinktime_blocks.max(1),
        count_issued: options.thinktime_blocks_type == ThinktimeBlocksType::Issue,
        io_time_us: options.thinktime_iotime.us,
    })
}

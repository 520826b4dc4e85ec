//! How fast a job may go: rates and think time.
//!
//! Invariant: a rate of nothing is no limit, as in fio.

use fiord_options::value::{Bytes, RateProcess, ThinktimeBlocksType};

use super::source::Source;
use crate::access::{Access, PerDirection};
use crate::pace::{Pace, Think};

/// The limits of one worker.
pub(crate) fn pace(source: &Source<'_>, access: &Access) -> Pace {
    let options = source.options;
    let bytes = |rate: &fiord_options::value::PerDirection<Bytes>| {
        limits([rate.read, rate.write, rate.trim].map(|part| part.map(|Bytes(bytes)| bytes)))
    };
    let ios = |rate: &fiord_options::value::PerDirection<u32>| {
        limits([rate.read, rate.write, rate.trim].map(|part| part.map(u64::from)))
    };
    let poisson = options.rate_process == RateProcess::Poisson;
    let (mut bytes_per_s, mut ios_per_s) = (bytes(&options.rate), ios(&options.rate_iops));
    // Of blocks of several sizes, `rate_iops` counts the smallest; arrivals at random are counted as they are.
    for direction in (0..3).filter(|_| !poisson) {
        let sizes = &access.block_sizes[direction];
        if let (Some(ios), true) = (ios_per_s[direction], sizes.min() < sizes.max()) {
            bytes_per_s[direction] = Some(ios.saturating_mul(sizes.min()));
            ios_per_s[direction] = None;
        }
    }
    Pace {
        bytes_per_s,
        ios_per_s,
        min_bytes_per_s: bytes(&options.rate_min),
        min_ios_per_s: ios(&options.rate_iops_min),
        cycle_ms: u64::from(options.rate_cycle),
        poisson,
        ignore_think_time: options.rate_ignore_thinktime,
        think: think(source),
    }
}

fn limits(rates: PerDirection<Option<u64>>) -> PerDirection<Option<u64>> {
    rates.map(|rate| rate.filter(|rate| *rate > 0))
}

/// The pauses, if there are any: the other think options do nothing without `thinktime`.
fn think(source: &Source<'_>) -> Option<Think> {
    let options = source.options;
    let io_time_us = options.thinktime_iotime.us;
    let counts_ios = io_time_us == 0 || source.is_given("thinktime_blocks");
    (options.thinktime.us > 0).then(|| Think {
        pause_us: options.thinktime.us,
        spin_us: options.thinktime_spin.us.min(options.thinktime.us),
        cycles: u64::from(options.thinkcycles),
        every_ios: if counts_ios { options.thinktime_blocks.max(1) } else { 0 },
        count_issued: options.thinktime_blocks_type == ThinktimeBlocksType::Issue,
        io_time_us,
    })
}

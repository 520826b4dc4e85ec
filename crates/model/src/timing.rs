//! When the I/Os of a section are issued: rates, bursts, a later start, depth.
//!
//! Invariant: a trace without the durations of calls does not tell a program that waits from a storage that is slow, so that a
//! rate is always said to be what was seen; of one with them there is no rate where the program waited for the storage.

use fiord_stats::Capped;

use crate::arrivals::Arrivals;
use crate::pattern::{Mix, READ, WRITE};
use crate::stream::Stream;

/// I/Os that follow each other sooner than this come as fast as the storage allows, where the trace does not tell how long the
/// calls took; where it does, the program was seen to do something else between them.
const AT_ONCE_NS: f64 = 50_000.0;
/// With fewer I/Os nothing is said of a rate.
const GAPS_MIN: u64 = 50;
/// Nor with a shorter recording, whose pauses may be those of a busy machine.
const SPAN_NS_MIN: u64 = 500_000_000;
/// Who spends so much of the time in calls goes as fast as the storage allows.
const BUSY_SHARE_MIN: f64 = 0.8;
/// Variations of times between I/Os that are those of independent arrivals.
const INDEPENDENT: std::ops::Range<f64> = 0.7..1.5;
/// A section that starts later than this gets a delay.
const DELAY_NS_MIN: u64 = 500_000_000;

/// Adds the options for when the I/Os of a section come.
pub(crate) fn add(stream: &Stream, mix: Mix, add: &mut dyn FnMut(&'static str, String, String)) {
    let depth = u64::capped(stream.depths.mean().round());
    if depth > 0 {
        let most = stream.depths.quantile(1.0);
        add(
            "iodepth",
            depth.max(1).to_string(),
            format!("requests in flight on the average; at most {most}"),
        );
    }
    let arrivals = match mix {
        Mix::Only(kind) => &stream.arrivals[kind],
        _ => &stream.all_arrivals,
    };
    if arrivals.first_ns() >= DELAY_NS_MIN {
        let ms = arrivals.first_ns() / 1_000_000;
        add("startdelay", format!("{ms}ms"), "when its first I/O came".to_string());
    }
    if waits_for_storage(stream) {
        return;
    }
    if arrivals.gaps() < GAPS_MIN || arrivals.span_ns() < SPAN_NS_MIN {
        return;
    }
    if let Some(pauses) = arrivals.pauses() {
        // Calls take their time in the model as well: a pause that was one, such as a sync, is none of the program.
        let is_all = arrivals.gaps() == stream.all_arrivals.gaps();
        let idle_ns = stream.idle_ns().filter(|_| is_all).map(|idle_ns| idle_ns * pauses.ios as f64);
        // Times between the I/Os of one file pass beside those of others: together the pauses take no longer than all did.
        let all_ios = mix.kinds().iter().map(|kind| stream.tracks[*kind].ios).sum::<u64>();
        let most_ns = match stream.files {
            1 => f64::MAX,
            _ => arrivals.span_ns() as f64 * pauses.ios as f64 / all_ios.max(1) as f64,
        };
        let us = (idle_ns.unwrap_or(pauses.mean_ns.min(most_ns)) / 1000.0).round();
        let why = format!("bursts of {} I/Os, with pauses of {:.1} ms", pauses.ios, us / 1000.0);
        add("thinktime", format!("{us}"), why);
        add("thinktime_blocks", pauses.ios.to_string(), String::new());
    } else if arrivals.mean_ns() >= AT_ONCE_NS || stream.busy_share().is_some() {
        rates(stream, mix, arrivals, add);
    }
}

/// Whether its thread was in its calls nearly all the time.
pub(crate) fn waits_for_storage(stream: &Stream) -> bool {
    stream.busy_share().is_some_and(|share| share >= BUSY_SHARE_MIN)
}

fn rates(stream: &Stream, mix: Mix, arrivals: &Arrivals, add: &mut dyn FnMut(&'static str, String, String)) {
    let rate = |kind: usize| {
        let per_s = stream.tracks[kind].ios as f64 * 1e9 / arrivals.span_ns().max(1) as f64;
        u64::capped(per_s.round())
    };
    let rates: Vec<u64> = mix.kinds().iter().map(|kind| rate(*kind)).collect();
    if rates.contains(&0) {
        let us = (arrivals.mean_ns() / 1000.0).round();
        return add("thinktime", format!("{us}"), "the mean time from one I/O to the next".to_string());
    }
    let value = match mix {
        Mix::Only(_) => rates[0].to_string(),
        Mix::ReadsAndWrites => format!("{},{}", rate(READ), rate(WRITE)),
        Mix::TrimsThenWrites => format!("0,{},{}", rate(WRITE), rates[0]),
    };
    let variation = arrivals.variation();
    let why = format!(
        "the rate seen, in I/Os a second; without this line as fast as the storage allows. Times between I/Os have a \
         variation of {variation:.2} (0 evenly spaced, 1 independent of each other)"
    );
    add("rate_iops", value, why);
    if INDEPENDENT.contains(&variation) {
        add("rate_process", "poisson".to_string(), "they come independently of each other".to_string());
    }
}

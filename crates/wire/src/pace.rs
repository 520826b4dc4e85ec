//! How fast a host gets on, from what it tells of its progress.
//!
//! Invariant: O(1) for each message, and no rate is taken over less than [`RATES_NS_MIN`].

use crate::message::Progress;

/// The shortest time over which rates are taken, in nanoseconds: progress may come in bursts.
const RATES_NS_MIN: i64 = 500_000_000;

/// What a host does per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// I/Os per second: reads, writes, trims.
    pub iops: [f64; 3],
    /// Bytes per second, likewise.
    pub bytes_per_s: [f64; 3],
}

/// The last progress that rates were taken from, when it came, and the rates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    at_ns: i64,
    progress: Progress,
    rates: Rates,
}

impl Pace {
    /// More progress came.
    pub(crate) fn advance(&mut self, progress: Progress, now_ns: i64) {
        let passed_ns = now_ns - self.at_ns;
        if passed_ns < RATES_NS_MIN {
            return;
        }
        // The first one was reached in a time that is not known.
        let rate = |now: [u64; 3], then: [u64; 3]| match self.at_ns {
            0 => [0.0; 3],
            _ => [0, 1, 2].map(|at: usize| now[at].saturating_sub(then[at]) as f64 * 1e9 / passed_ns as f64),
        };
        let rates = Rates {
            iops: rate(progress.ios, self.progress.ios),
            bytes_per_s: rate(progress.bytes, self.progress.bytes),
        };
        *self = Pace { at_ns: now_ns, progress, rates };
    }

    /// What is done per second.
    pub(crate) fn rates(&self) -> Rates {
        self.rates
    }

    /// How long what was started then still takes, in nanoseconds; `None` if that is not known.
    pub(crate) fn left_ns(&self, started_ns: i64, now_ns: i64) -> Option<i64> {
        let permille = i64::from(self.progress.done_permille.filter(|done| *done > 0)?);
        let all_ns = (self.at_ns - started_ns).max(0).saturating_mul(1000) / permille;
        Some(started_ns.saturating_add(all_ns).saturating_sub(now_ns).max(0))
    }
}

//! The kernel's counters of a block device, and the difference of two readings.
//!
//! Invariant: counters only grow. A reading below an earlier one means that the device was replaced by another of
//! the same name, and the difference is 0.

use serde::{Deserialize, Serialize};

/// Declares the counters once: the structure, their names, and the operations on each of them.
macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A device's counters: since boot, as the kernel reports them, or between two readings.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct DiskCounters {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl DiskCounters {
            /// Each counter's name and value, in the order in which they are declared.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }

            /// Each counter combined with that of another device or moment.
            fn each(&self, other: &DiskCounters, combine: impl Fn(u64, u64) -> u64) -> DiskCounters {
                DiskCounters { $($name: combine(self.$name, other.$name)),+ }
            }
        }
    };
}

counters! {
    /// Reads completed.
    read_ios,
    /// Reads merged with another before they were sent to the device.
    read_merges,
    /// Sectors of 512 bytes read.
    read_sectors,
    /// Time reads took, summed over them, in milliseconds.
    read_ms,
    /// Writes completed.
    write_ios,
    /// Writes merged with another before they were sent to the device.
    write_merges,
    /// Sectors of 512 bytes written.
    write_sectors,
    /// Time writes took, summed over them, in milliseconds.
    write_ms,
    /// Requests sent and not yet completed: at the later reading, not a difference.
    in_flight,
    /// Time during which the device had I/O in flight, in milliseconds.
    busy_ms,
    /// Time all requests took, summed over them, in milliseconds.
    in_queue_ms,
    /// Discards completed (Linux 4.18 and later).
    discard_ios,
    /// Sectors of 512 bytes discarded.
    discard_sectors,
    /// Flushes completed (Linux 5.5 and later).
    flush_ios,
}

impl DiskCounters {
    /// What the device did from an earlier reading until this one.
    #[must_use]
    pub fn since(&self, earlier: &DiskCounters) -> DiskCounters {
        DiskCounters { in_flight: self.in_flight, ..self.each(earlier, u64::saturating_sub) }
    }

    /// The mean of the counters of several devices, each rounded down; all 0 for none.
    #[must_use]
    pub fn mean<'a>(all: impl Iterator<Item = &'a DiskCounters>) -> DiskCounters {
        let mut count = 0;
        let sum = DiskCounters::sum(all.inspect(|_| count += 1));
        sum.each(&sum, |sum, _| sum / count.max(1))
    }

    /// The sum of the counters of several devices; all 0 for none.
    #[must_use]
    pub fn sum<'a>(all: impl Iterator<Item = &'a DiskCounters>) -> DiskCounters {
        all.fold(DiskCounters::default(), |sum, one| sum.each(one, |a, b| a + b))
    }

    /// The share of `elapsed_ns` during which the device was busy, 0 to 100; 0 when no time passed.
    pub fn busy_percent(&self, elapsed_ns: u64) -> f64 {
        let elapsed_ms = elapsed_ns as f64 / 1e6;
        let percent = if elapsed_ms > 0.0 { 100.0 * self.busy_ms as f64 / elapsed_ms } else { 0.0 };
        // The kernel counts busy time in whole ticks of its timer and may be one ahead.
        percent.min(100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters that all differ, and are above `base`.
    fn counters(base: u64) -> DiskCounters {
        DiskCounters {
            read_ios: base + 1,
            read_merges: base + 2,
            read_sectors: base + 3,
            read_ms: base + 4,
            write_ios: base + 5,
            write_merges: base + 6,
            write_sectors: base + 7,
            write_ms: base + 8,
            in_flight: base + 9,
            busy_ms: base + 10,
            in_queue_ms: base + 11,
            discard_ios: base + 12,
            discard_sectors: base + 13,
            flush_ios: base + 14,
        }
    }

    #[test]
    fn every_counter_but_in_flight_is_a_difference_of_readings() {
        let twice = counters(0).each(&counters(0), |a, b| a + b);
        assert_eq!(twice.since(&counters(0)), DiskCounters { in_flight: 18, ..counters(0) });
        assert_eq!(counters(0).since(&counters(1)), DiskCounters { in_flight: 9, ..DiskCounters::default() });
    }

    #[test]
    fn counters_have_the_names_of_their_fields() {
        let named: Vec<_> = counters(0).named().collect();
        assert_eq!((named[0], named[13]), (("read_ios", 1), ("flush_ios", 14)));
        assert!(named.iter().map(|(_, value)| *value).eq(1..=14));
    }

    #[test]
    fn the_mean_is_that_of_every_counter() {
        assert_eq!(DiskCounters::mean([counters(0), counters(4)].iter()), counters(2));
        assert_eq!(DiskCounters::mean([].iter()), DiskCounters::default());
        assert_eq!(DiskCounters::mean([counters(0), counters(1)].iter()), counters(0), "rounded down");
    }

    #[test]
    fn a_disk_is_never_more_than_100_percent_busy() {
        let busy = DiskCounters { busy_ms: 11, ..DiskCounters::default() };
        assert_eq!(busy.busy_percent(10_000_000), 100.0);
        assert_eq!(busy.busy_percent(44_000_000), 25.0);
        assert_eq!(busy.busy_percent(0), 0.0, "no time passed");
    }
}

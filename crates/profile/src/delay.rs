//! For how long the jobs' threads were ready to run and had no processor, from samples of the scheduler's counters.
//!
//! Invariant: a thread that was sampled until shortly before its end counts for its whole time, at the rate seen until then.

use std::collections::BTreeMap;

use fiord_stats::Capped;

/// A thread's counters at one moment, as `/proc/PID/task/TID/schedstat` has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayReading {
    /// When, in nanoseconds of any clock.
    pub at_ns: u64,
    /// Time it was ready to run and had no processor, in nanoseconds.
    pub waited_ns: u64,
}

impl DelayReading {
    /// The time waited in the text of such a file, `2314 1379559 1`: the second figure, in nanoseconds.
    pub fn parse(text: &str) -> Option<u64> {
        let mut words = text.split_ascii_whitespace();
        let [_ran, waited, _slices] = [words.next()?, words.next()?, words.next()?];
        waited.parse().ok()
    }
}

/// The first and the last reading of each thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadDelays {
    threads: BTreeMap<u32, (DelayReading, DelayReading)>,
}

impl ThreadDelays {
    /// Adds a reading of a thread, later than those before.
    pub fn add(&mut self, thread_id: u32, reading: DelayReading) {
        self.threads.entry(thread_id).or_insert((reading, reading)).1 = reading;
    }

    /// How long these threads waited in all; each is given with the time that it did I/O, in milliseconds. `None` if
    /// none of them was seen twice. Threads that were not count like the others.
    pub fn waited_ns(&self, threads: impl IntoIterator<Item = (u32, u64)>) -> Option<u64> {
        let (mut waited_ns, mut seen_ns, mut all_ns) = (0.0, 0.0, 0.0);
        for (thread_id, elapsed_ms) in threads {
            let elapsed_ns = elapsed_ms as f64 * 1e6;
            all_ns += elapsed_ns;
            let Some((first, last)) = self.threads.get(&thread_id) else { continue };
            let between_ns = last.at_ns.saturating_sub(first.at_ns) as f64;
            if between_ns > 0.0 {
                let share = last.waited_ns.saturating_sub(first.waited_ns) as f64 / between_ns;
                waited_ns += share.min(1.0) * elapsed_ns;
                seen_ns += elapsed_ns;
            }
        }
        (seen_ns > 0.0).then(|| u64::capped(waited_ns * all_ns / seen_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_figure_is_the_time_waited() {
        assert_eq!(DelayReading::parse("2314 1379559 1\n"), Some(1_379_559));
        for odd in ["", "0 0", "1 -2 3", "1 99999999999999999999999 3"] {
            assert_eq!(DelayReading::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_was_seen_stands_for_the_whole_time() {
        let mut delays = ThreadDelays::default();
        let reading = |at_ms: u64, waited_ms: u64| DelayReading {
            at_ns: at_ms * 1_000_000,
            waited_ns: waited_ms * 1_000_000,
        };
        delays.add(7, reading(0, 50));
        delays.add(7, reading(300, 80));
        delays.add(7, reading(800, 130));
        // A tenth of its time, of one second.
        assert_eq!(delays.waited_ns([(7, 1000)]), Some(100_000_000));
        // Another that was never seen counts alike.
        assert_eq!(delays.waited_ns([(7, 1000), (8, 1000)]), Some(200_000_000));
        delays.add(9, reading(0, 0));
        assert_eq!(delays.waited_ns([(9, 1000)]), None, "seen once");
        assert_eq!(delays.waited_ns([]), None);
        // Never more than all of it.
        delays.add(9, reading(10, 500));
        assert_eq!(delays.waited_ns([(9, 1000)]), Some(1_000_000_000));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_panic(text in ".*") {
            DelayReading::parse(&text);
        }
    }
}

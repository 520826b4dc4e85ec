//! Decides whether to poll briefly for a completion before sleeping until one arrives.
//!
//! Invariant: a device slower than one poll is polled once in 256 waits; a faster one before every wait.
//!
//! Going to sleep and being woken takes microseconds, more on a virtual machine, and part of that cost is borne by the
//! context that completes the I/O. On a device faster than that, a measurement would mostly show the cost of sleeping.

/// How long to poll: about the cost of sleeping and waking.
pub(crate) const POLL_NS: u64 = 5_000;

/// Decides before each wait, from the results of the last polls.
#[derive(Debug, Default)]
pub(crate) struct AdaptivePoll {
    /// Waits without polling since the last poll found nothing; doubles with each such poll.
    backoff: u8,
    /// How many of these are left.
    left: u8,
}

impl AdaptivePoll {
    /// Whether to poll before this wait.
    #[inline]
    pub(crate) fn should_poll(&mut self) -> bool {
        let polls = self.left == 0;
        self.left = self.left.saturating_sub(1);
        polls
    }

    /// Records whether the poll found a completion.
    #[inline]
    pub(crate) fn record(&mut self, found: bool) {
        // At most 255.
        self.backoff = if found { 0 } else { self.backoff.saturating_mul(2).saturating_add(1) };
        self.left = self.backoff;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls in this many waits if none finds anything.
    fn failed_polls(poll: &mut AdaptivePoll, waits: u32) -> u32 {
        let mut polls = 0;
        for _ in 0..waits {
            if poll.should_poll() {
                polls += 1;
                poll.record(false);
            }
        }
        polls
    }

    #[test]
    fn a_slow_device_is_hardly_ever_polled() {
        let mut poll = AdaptivePoll::default();
        // Eight polls double the back-off to its maximum; from there on it is one in 256.
        assert_eq!(failed_polls(&mut poll, 256 * 100), 8 + 99);
    }

    #[test]
    fn one_success_resets_the_back_off() {
        let mut poll = AdaptivePoll::default();
        failed_polls(&mut poll, 10_000);
        while !poll.should_poll() {}
        poll.record(true);
        assert!((0..100).all(|_| {
            let polls = poll.should_poll();
            poll.record(true);
            polls
        }));
    }
}

//! Whether to look out for a completion for a moment before sleeping until it comes.
//!
//! Invariant: a device that is slower than a look-out is looked out for once in 256 waits; one that is faster, always.
//!
//! Going to sleep and being woken takes microseconds, more on a virtual machine, and whoever completes the I/O pays for
//! a part of it. On a device that is faster than that, sleeping is what the device is then measured by.

/// How long to look out: about what sleeping and waking cost.
pub(crate) const LOOKOUT_NS: u64 = 5_000;

/// Decides for each wait, by what became of the last attempts.
#[derive(Debug, Default)]
pub(crate) struct Lookout {
    /// Waits to pass by after the next attempt in vain.
    passing: u8,
    /// Of these, still to be passed by.
    left: u8,
}

impl Lookout {
    /// Whether to look out before this wait.
    #[inline]
    pub(crate) fn is_worth_it(&mut self) -> bool {
        let worth_it = self.left == 0;
        self.left = self.left.saturating_sub(1);
        worth_it
    }

    /// Whether something was seen.
    #[inline]
    pub(crate) fn learn(&mut self, seen: bool) {
        // At most 255.
        self.passing = if seen { 0 } else { self.passing.saturating_mul(2).saturating_add(1) };
        self.left = self.passing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts in so many waits, when nothing is ever seen.
    fn attempts_in_vain(lookout: &mut Lookout, waits: u32) -> u32 {
        let mut attempts = 0;
        for _ in 0..waits {
            if lookout.is_worth_it() {
                attempts += 1;
                lookout.learn(false);
            }
        }
        attempts
    }

    #[test]
    fn a_slow_device_is_hardly_looked_out_for() {
        let mut lookout = Lookout::default();
        // Eight attempts double the pause to its most; from there on it is one in 256.
        assert_eq!(attempts_in_vain(&mut lookout, 256 * 100), 8 + 99);
    }

    #[test]
    fn one_success_brings_it_back() {
        let mut lookout = Lookout::default();
        attempts_in_vain(&mut lookout, 10_000);
        while !lookout.is_worth_it() {}
        lookout.learn(true);
        assert!((0..100).all(|_| {
            let worth_it = lookout.is_worth_it();
            lookout.learn(true);
            worth_it
        }));
    }
}

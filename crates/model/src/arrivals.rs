//! When the I/Os of a stream arrive: the times between them.
//!
//! Invariant: only differences of times count, so that it does not matter when the trace began.

use fiord_stats::Capped;

use crate::counted::{Counted, quarter_octave};

/// Times between the I/Os of a stream.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    first_ns: Option<u64>,
    last_ns: u64,
    gaps: u64,
    mean_ns: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
    sizes: Counted,
}

/// Pauses between bursts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pauses {
    /// Their mean length.
    pub mean_ns: f64,
    /// I/Os from one to the next.
    pub ios: u64,
}

/// Gaps of at least this many times the median may be pauses.
const PAUSE_MEDIANS: u64 = 16;
/// Gaps below this are no pauses: timers have no finer grain.
const PAUSE_NS_MIN: u64 = 1_000_000;
/// Pauses are at most this share of all gaps, and at least this share of all time.
const PAUSES_GAPS_MAX: f64 = 0.2;
const PAUSES_TIME_MIN: f64 = 0.75;

impl Arrivals {
    /// Adds an I/O.
    pub fn add(&mut self, at_ns: u64) {
        if self.first_ns.is_none() {
            (self.first_ns, self.last_ns) = (Some(at_ns), at_ns);
            return;
        }
        let gap_ns = at_ns.saturating_sub(self.last_ns);
        self.last_ns = self.last_ns.max(at_ns);
        self.gaps += 1;
        let from_mean = gap_ns as f64 - self.mean_ns;
        self.mean_ns += from_mean / self.gaps as f64;
        self.squares += from_mean * (gap_ns as f64 - self.mean_ns);
        self.sizes.add(quarter_octave(gap_ns));
    }

    /// Adds those of a stream that goes on beside this one.
    pub fn absorb(&mut self, other: &Arrivals) {
        let (mine, others) = (self.gaps as f64, other.gaps as f64);
        let all = (mine + others).max(1.0);
        let apart = other.mean_ns - self.mean_ns;
        self.squares += other.squares + apart * apart * mine * others / all;
        self.mean_ns += apart * others / all;
        self.gaps += other.gaps;
        self.sizes.absorb(&other.sizes);
        self.first_ns = self.first_ns.into_iter().chain(other.first_ns).min();
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// When the first arrived, in nanoseconds since the beginning of the trace.
    pub fn first_ns(&self) -> u64 {
        self.first_ns.unwrap_or(0)
    }

    /// From the first to the last.
    pub fn span_ns(&self) -> u64 {
        self.last_ns - self.first_ns()
    }

    /// The mean time from one to the next; 0 without any.
    pub fn mean_ns(&self) -> f64 {
        self.mean_ns
    }

    /// How many times there are between I/Os.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// The coefficient of variation: 0 evenly spaced, 1 independent of each other, more in bursts.
    pub fn variation(&self) -> f64 {
        if self.mean_ns <= 0.0 {
            return 0.0;
        }
        (self.squares / self.gaps as f64).sqrt() / self.mean_ns
    }

    /// The pauses, if most of the time passes in few of the gaps.
    pub fn pauses(&self) -> Option<Pauses> {
        let pause_ns_min = (self.sizes.quantile(0.5) * PAUSE_MEDIANS).max(PAUSE_NS_MIN);
        let long = || self.sizes.iter().filter(|(gap_ns, _)| *gap_ns >= pause_ns_min);
        let count: u64 = long().map(|(_, count)| count).sum();
        // Of a gap only its quarter of an octave is known: its middle.
        let long_ns: f64 = long().map(|(gap_ns, count)| gap_ns as f64 * 1.1 * count as f64).sum();
        let all_ns = self.mean_ns * self.gaps as f64;
        let short_ns: f64 = self
            .sizes
            .iter()
            .filter(|(gap_ns, _)| *gap_ns < pause_ns_min)
            .map(|(gap_ns, count)| gap_ns as f64 * 1.1 * count as f64)
            .sum();
        let are_pauses = count >= 3
            && count as f64 <= self.gaps as f64 * PAUSES_GAPS_MAX
            && long_ns >= all_ns * PAUSES_TIME_MIN;
        are_pauses.then(|| Pauses {
            mean_ns: (all_ns - short_ns).max(PAUSE_NS_MIN as f64) / count as f64,
            ios: u64::capped(((self.gaps as f64 + 1.0) / (count as f64 + 1.0)).round().max(1.0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_stats::Random;

    fn arrivals(gaps_ns: impl IntoIterator<Item = u64>) -> Arrivals {
        let (mut arrivals, mut at_ns) = (Arrivals::default(), 5);
        arrivals.add(at_ns);
        for gap_ns in gaps_ns {
            at_ns += gap_ns;
            arrivals.add(at_ns);
        }
        arrivals
    }

    #[test]
    fn even_and_random_arrivals_differ_in_their_variation() {
        let even = arrivals([1_000_000; 500]);
        assert_eq!((even.mean_ns(), even.variation(), even.pauses()), (1e6, 0.0, None));
        let mut random = Random::new(1);
        let poisson = arrivals((0..5000).map(|_| random.exponential(1e6) as u64));
        assert!((0.9..1.1).contains(&poisson.variation()), "{}", poisson.variation());
        assert_eq!(poisson.pauses(), None);
    }

    #[test]
    fn bursts_have_pauses() {
        let gap_ns = |number: u64| if number % 10 == 9 { 20_000_000 } else { 5_000 };
        let bursts = arrivals((0..999).map(gap_ns));
        let pauses = bursts.pauses().unwrap();
        assert_eq!(pauses.ios, 10);
        assert!((18e6..22e6).contains(&pauses.mean_ns), "{pauses:?}");
        assert!(bursts.variation() > 2.0);
    }

    #[test]
    fn streams_beside_each_other_have_the_variation_of_all() {
        let (mut left, right) = (arrivals([10, 30]), arrivals([20, 100]));
        left.absorb(&right);
        let all = arrivals([10, 30, 20, 100]);
        assert!((left.variation() - all.variation()).abs() < 1e-9);
        assert_eq!((left.gaps(), left.mean_ns(), left.span_ns()), (4, 40.0, 120));
    }
}

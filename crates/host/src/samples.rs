//! Samples of a run of any length in a bounded amount of memory.
//!
//! Invariant: samples are evenly spaced. When there are too many, every second one is dropped, and from then on half as
//! many are taken.

/// The most samples, unless it is given.
const SAMPLES_MAX: usize = 4096;

/// Samples that are asked for at regular intervals: fewer than `MAX`.
#[derive(Clone, Debug)]
pub struct Samples<T, const MAX: usize = SAMPLES_MAX> {
    all: Vec<T>,
    /// How often a sample was asked for, and of how many requests one is taken.
    asked: u64,
    one_in: u64,
}

impl<T, const MAX: usize> Default for Samples<T, MAX> {
    fn default() -> Samples<T, MAX> {
        Samples { all: Vec::new(), asked: 0, one_in: 1 }
    }
}

impl<T, const MAX: usize> Samples<T, MAX> {
    /// Takes a sample, if it is time for one and there is one.
    pub fn take(&mut self, sample: impl FnOnce() -> Option<T>) {
        self.asked += 1;
        if !self.asked.is_multiple_of(self.one_in) {
            return;
        }
        self.all.extend(sample());
        if self.all.len() >= MAX {
            self.one_in *= 2;
            let mut index = 0;
            self.all.retain(|_| {
                index += 1;
                index % 2 == 0
            });
        }
    }

    /// All that are kept, in order.
    pub fn all(&self) -> &[T] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_long_run_become_fewer_and_stay_evenly_spaced() {
        let mut samples: Samples<usize> = Samples::default();
        (1..=SAMPLES_MAX + 2).for_each(|at| samples.take(|| Some(at)));
        let all = samples.all();
        assert_eq!(all.len(), SAMPLES_MAX / 2 + 1, "half of the first, and one of the last two");
        assert!(all.windows(2).all(|pair| pair[1] - pair[0] == 2), "{all:?}");
    }

    #[test]
    fn the_most_samples_are_those_that_the_documentation_names() {
        let page = include_str!("../../../docs/json.md");
        let row = page.lines().find(|line| line.contains("`devices[].samples[].elapsed_ns`")).unwrap();
        assert!(row.contains(&format!("(fewer than {SAMPLES_MAX} samples)")), "{row}");
    }

    #[test]
    fn a_sample_that_cannot_be_had_is_left_out() {
        let mut samples: Samples<u32, 4> = Samples::default();
        samples.take(|| Some(1));
        samples.take(|| None);
        samples.take(|| Some(3));
        assert_eq!(samples.all(), [1, 3]);
    }
}

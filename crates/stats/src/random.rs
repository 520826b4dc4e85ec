//! Random sources: one small generator, and the simplest things drawn from it.
//!
//! Invariant: the sequence of a source depends only on its seed, on every machine; nothing here reads a clock or the
//! system's entropy.

use crate::capped::Capped;

/// The xoshiro256** generator of Blackman and Vigna, seeded through splitmix64.
///
/// Fast, 32 bytes, period 2^256 - 1; not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

/// One step of splitmix64: a bijection on 64 bits that maps neighbouring numbers far apart.
pub const fn splitmix64(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// A source that is a function of `seed` alone. Neighbouring seeds give unrelated sources.
    pub const fn new(seed: u64) -> Self {
        let a = splitmix64(seed);
        let b = splitmix64(a);
        let c = splitmix64(b);
        // splitmix64 is a bijection with a single zero, so four zeroes in a row (the one state to avoid) cannot happen.
        Random { state: [a, b, c, splitmix64(c)] }
    }

    /// Substream `number` of `seed`, one for each use (offsets, directions, sizes…); different ones are unrelated.
    pub const fn substream(seed: u64, number: u64) -> Self {
        Random::new(Random::substream_seed(seed, number))
    }

    /// The seed of that substream.
    pub const fn substream_seed(seed: u64, number: u64) -> u64 {
        splitmix64(seed) ^ splitmix64(!number)
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// A number below `bound`, each equally likely; 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Lemire's method: the high half of a product, redrawn in the rare case that would bias it.
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if low_half(product) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while low_half(product) < unfair {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// 0 to 99, each equally likely: `percent() < 70` is true seven times in ten.
    #[inline]
    pub fn percent(&mut self) -> u32 {
        (self.below(100) & 0x7f) as u32
    }

    /// A number in [0, 1), with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// A waiting time with the given mean, as between the arrivals of a Poisson process; in the mean's unit.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit() is never zero, so the logarithm is finite.
        -mean * (1.0 - self.unit()).ln()
    }

    /// Shuffles `items`; every order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, usize::capped(self.below(last as u64 + 1)));
        }
    }
}

/// The low half of a product of two 64-bit numbers.
#[inline]
pub(crate) const fn low_half(product: u128) -> u64 {
    const LOW: u128 = u64::MAX as u128;
    (product & LOW) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 100_000;

    #[test]
    fn the_generator_is_xoshiro256_starstar() {
        // From the state 1, 2, 3, 4 the reference implementation's first outputs.
        let mut random = Random { state: [1, 2, 3, 4] };
        assert_eq!([random.next_u64(), random.next_u64(), random.next_u64()], [11520, 0, 1_509_978_240]);
    }

    #[test]
    fn same_seed_same_stream_and_substreams_differ() {
        let draw = |mut random: Random| [random.next_u64(), random.next_u64()];
        assert_eq!(draw(Random::new(7)), draw(Random::new(7)));
        assert_ne!(draw(Random::new(7)), draw(Random::new(8)));
        assert_ne!(draw(Random::substream(7, 0)), draw(Random::substream(7, 1)));
    }

    #[test]
    fn below_is_even_and_in_range() {
        let mut random = Random::new(1);
        let mut counts = [0_u64; 7];
        (0..70_000).for_each(|_| counts[random.below(7) as usize] += 1);
        // Each count is binomial with mean 10,000 and deviation 93; six deviations never happen by chance.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 560), "{counts:?}");
        assert_eq!((random.below(0), random.below(1)), (0, 0));
        assert!(random.percent() < 100);
    }

    #[test]
    fn exponential_has_its_mean() {
        let mut random = Random::new(2);
        let sum: f64 = (0..DRAWS).map(|_| random.exponential(5.0)).sum();
        assert!((sum / DRAWS as f64 - 5.0).abs() < 0.1);
    }

    #[test]
    fn shuffle_keeps_the_items() {
        let mut random = Random::new(7);
        let mut items: Vec<u32> = (0..50).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}

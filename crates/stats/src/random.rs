//! Random sources: one small generator and the distributions a workload draws from.
//!
//! Invariant: a source's whole future follows from its seed, on every machine; nothing here reads a clock or the
//! system's entropy.

/// The xoshiro256** generator of Blackman and Vigna, seeded through splitmix64.
///
/// Fast, 32 bytes, period 2^256 - 1; not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: [u64; 4],
}

/// One step of splitmix64: a bijection on 64 bits that scatters neighbouring numbers.
pub const fn splitmix64(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// A source that is a function of `seed` alone. Seeds that are near each other give unrelated sources.
    pub const fn new(seed: u64) -> Self {
        let a = splitmix64(seed);
        let b = splitmix64(a);
        let c = splitmix64(b);
        // splitmix64 is a bijection with a single zero, so four zeroes in a row (the one state to avoid) cannot happen.
        Random { state: [a, b, c, splitmix64(c)] }
    }

    /// A source for purpose `purpose` (offsets, directions, sizes…) under `seed`; different purposes are unrelated.
    pub const fn for_purpose(seed: u64, purpose: u64) -> Self {
        Random::new(splitmix64(seed) ^ splitmix64(!purpose))
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
        // Lemire's method: the high half of a product, redrawn in the rare case that would favour some numbers.
        let mut product = u128::from(self.next_u64()) * u128::from(bound);
        if (product as u64) < bound {
            let unfair = bound.wrapping_neg() % bound;
            while (product as u64) < unfair {
                product = u128::from(self.next_u64()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// 0 to 99, each equally likely: `percent() < 70` is true seven times in ten.
    #[inline]
    pub fn percent(&mut self) -> u32 {
        self.below(100) as u32
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

    /// A standard normal number (mean 0, deviation 1), by Marsaglia's polar method.
    pub fn standard_normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Fills `bytes` with random bits.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = self.next_u64().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// Puts `items` in an order of which each is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// Ranks 0..count where rank k comes up in proportion to 1 / (k + 1)^theta: rank 0 is the hottest.
///
/// Drawn by rejection-inversion (Hörmann and Derflinger, 1996): exact, no table, and set up in constant time.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    count: f64,
    theta: f64,
    integral_first: f64,
    integral_last: f64,
    sure: f64,
}

impl Zipf {
    /// Ranks below `count` (at least 1) with exponent `theta` above 0.
    pub fn new(count: u64, theta: f64) -> Self {
        let mut zipf =
            Zipf { count: count.max(1) as f64, theta, integral_first: 0.0, integral_last: 0.0, sure: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(zipf.count + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank.
    pub fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.integral_last + random.unit() * (self.integral_first - self.integral_last);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.sure || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }

    /// 1 / x^theta.
    fn density(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The density's integral from 1 to `x`; written so that theta = 1 (a logarithm) is no special case.
    fn integral(&self, x: f64) -> f64 {
        let exponent = (1.0 - self.theta) * x.ln();
        if exponent.abs() < 1e-8 {
            x.ln() * (1.0 + exponent / 2.0)
        } else {
            exponent.exp_m1() / (1.0 - self.theta)
        }
    }

    /// The `x` whose [`Zipf::integral`] is `area`.
    fn inverse(&self, area: f64) -> f64 {
        let scaled = (area * (1.0 - self.theta)).max(-1.0);
        if scaled.abs() < 1e-8 {
            (area * (1.0 - scaled / 2.0)).exp()
        } else {
            (scaled.ln_1p() / (1.0 - self.theta)).exp()
        }
    }
}

/// Ranks 0..count under the self-similar law of Gray and others (1994), which fio calls Pareto: the first `share` of
/// the ranks takes `1 - share` of the draws (0.2 is the 80-20 rule), and the same holds within that share.
#[derive(Clone, Debug, PartialEq)]
pub struct Pareto {
    count: u64,
    power: f64,
}

impl Pareto {
    /// Ranks below `count` (at least 1) with `share` between 0 and 1, both excluded.
    pub fn new(count: u64, share: f64) -> Self {
        Pareto { count: count.max(1), power: share.ln() / (1.0 - share).ln() }
    }

    /// A rank.
    pub fn sample(&self, random: &mut Random) -> u64 {
        let rank = self.count as f64 * random.unit().powf(self.power);
        (rank as u64).min(self.count - 1)
    }
}

/// Indices 0..count around a centre, normally distributed; draws that fall outside are drawn again.
#[derive(Clone, Debug, PartialEq)]
pub struct Normal {
    count: f64,
    centre: f64,
    deviation: f64,
}

impl Normal {
    /// Indices below `count` (at least 1) with a deviation of `deviation_percent` of the range, about the place `centre`
    /// (0 the start, 1 the end, 0.5 fio's default).
    pub fn new(count: u64, deviation_percent: f64, centre: f64) -> Self {
        let count = count.max(1) as f64;
        Normal { count, centre: count * centre.clamp(0.0, 1.0), deviation: count * deviation_percent / 100.0 }
    }

    /// An index.
    pub fn sample(&self, random: &mut Random) -> u64 {
        // At least half the draws of a centre inside the range fall inside unless the deviation dwarfs it, which the
        // limit of 100 % keeps away; a deviation of nothing always draws the centre.
        loop {
            let index = self.centre + self.deviation * random.standard_normal();
            if index >= 0.0 && index < self.count {
                return index as u64;
            }
            if self.deviation == 0.0 {
                return self.count as u64 - 1;
            }
        }
    }
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
    fn same_seed_same_stream_and_purposes_differ() {
        let draw = |mut random: Random| [random.next_u64(), random.next_u64()];
        assert_eq!(draw(Random::new(7)), draw(Random::new(7)));
        assert_ne!(draw(Random::new(7)), draw(Random::new(8)));
        assert_ne!(draw(Random::for_purpose(7, 0)), draw(Random::for_purpose(7, 1)));
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
    fn zipf_draws_ranks_in_proportion() {
        for theta in [0.5, 0.8, 1.0, 1.2, 2.0] {
            let count = 1000;
            let zipf = Zipf::new(count, theta);
            let mut random = Random::new(3);
            let mut counts = vec![0_u64; count as usize];
            (0..DRAWS).for_each(|_| counts[zipf.sample(&mut random) as usize] += 1);
            let total: f64 = (1..=count).map(|k| (k as f64).powf(-theta)).sum();
            for rank in [0, 1, 9, 99] {
                let expected = DRAWS as f64 * ((rank + 1) as f64).powf(-theta) / total;
                let off = (counts[rank] as f64 - expected).abs();
                assert!(
                    off < 6.0 * expected.sqrt() + 1.0,
                    "theta {theta} rank {rank}: {} {expected}",
                    counts[rank]
                );
            }
        }
    }

    #[test]
    fn pareto_keeps_its_rule() {
        let pareto = Pareto::new(10_000, 0.2);
        let mut random = Random::new(4);
        let hot = (0..DRAWS).filter(|_| pareto.sample(&mut random) < 2000).count();
        assert!((hot as f64 / DRAWS as f64 - 0.8).abs() < 0.01, "{hot}");
    }

    #[test]
    fn normal_has_its_centre_and_deviation() {
        let normal = Normal::new(100_000, 10.0, 0.5);
        let mut random = Random::new(5);
        let draws: Vec<f64> = (0..DRAWS).map(|_| normal.sample(&mut random) as f64).collect();
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / DRAWS as f64;
        assert!((mean - 50_000.0).abs() < 300.0, "{mean}");
        assert!((variance.sqrt() - 10_000.0).abs() < 300.0, "{}", variance.sqrt());
        assert_eq!(Normal::new(10, 0.0, 1.0).sample(&mut random), 9);
    }

    #[test]
    fn degenerate_ranges_draw_their_one_value() {
        let mut random = Random::new(6);
        assert_eq!(Zipf::new(1, 1.2).sample(&mut random), 0);
        assert_eq!(Pareto::new(1, 0.2).sample(&mut random), 0);
        assert_eq!(Normal::new(1, 50.0, 0.5).sample(&mut random), 0);
    }

    #[test]
    fn fill_covers_odd_lengths_and_shuffle_keeps_the_items() {
        let mut random = Random::new(7);
        let mut bytes = [0_u8; 29];
        random.fill(&mut bytes);
        assert!(bytes[24..].iter().any(|byte| *byte != 0));
        let mut items: Vec<u32> = (0..50).collect();
        random.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}

//! Statistics of a random order: its deviation from a shuffle.
//!
//! Invariant: for a shuffle, each statistic is approximately standard normal: one in twenty is beyond ±1.96.

use fiord_stats::random::Random;

/// A name, and a function of numbers that are all different and all below the second argument.
pub type Statistic = (&'static str, fn(&[u64], u64) -> f64);

/// All of them.
pub const STATISTICS: &[Statistic] = &[
    ("halves", |order, _| correlation(&order[..order.len() / 2], &order[order.len().div_ceil(2)..])),
    ("lag 1", |order, _| serial(order, 1)),
    ("lag 2", |order, _| serial(order, 2)),
    ("lag 3", |order, _| serial(order, 3)),
    ("lag 4", |order, _| serial(order, 4)),
    ("lag 5", |order, _| serial(order, 5)),
    ("lag 6", |order, _| serial(order, 6)),
    ("lag 7", |order, _| serial(order, 7)),
    ("lag 8", |order, _| serial(order, 8)),
    ("runs up and down", |order, _| runs_up_and_down(order)),
    ("runs about the middle", runs_about_the_middle),
    ("gaps", |order, range| even(&gaps(order, range, 1))),
    ("gaps at powers of two", gaps_at_powers),
    ("low bits at powers", |order, _| low_bits_at_powers(order)),
    ("high bits at powers", high_bits_at_powers),
    ("pairs on a grid", pairs),
    ("spread of the start", spread_of_start),
    ("highest of spectrum", |order, _| highest_of_spectrum(order)),
    ("shape of spectrum", |order, _| shape_of_spectrum(order)),
];

/// One statistic in twenty is beyond plus or minus this.
pub const ONE_IN_TWENTY: f64 = 1.96;

/// Wilson and Hilferty: the cube root of a chi-squared number is approximately normal.
fn deviate(chi_squared: f64, degrees: f64) -> f64 {
    let variance = 2.0 / (9.0 * degrees);
    ((chi_squared / degrees).cbrt() - (1.0 - variance)) / variance.sqrt()
}

fn chi_squared(counts: &[u64], expected: impl Fn(usize) -> f64) -> f64 {
    let part = |(index, count): (usize, &u64)| (*count as f64 - expected(index)).powi(2) / expected(index);
    counts.iter().enumerate().map(part).sum()
}

/// Chi squared of counts that should all be equal, and its degrees of freedom.
fn evenness(counts: &[u64]) -> (f64, f64) {
    let each = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    (chi_squared(counts, |_| each), counts.len() as f64 - 1.0)
}

/// A statistic of counts that should all be equal.
pub fn even(counts: &[u64]) -> f64 {
    let (chi_squared, degrees) = evenness(counts);
    deviate(chi_squared, degrees)
}

fn coefficient(a: &[u64], b: &[u64]) -> f64 {
    let mean = |numbers: &[u64]| numbers.iter().map(|n| *n as f64).sum::<f64>() / numbers.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (*x as f64 - mean_a, *y as f64 - mean_b);
        (ab, aa, bb) = (ab + x * y, aa + x * x, bb + y * y);
    }
    ab / (aa * bb).sqrt()
}

/// A statistic of two orders of the same length: their correlation.
pub fn correlation(a: &[u64], b: &[u64]) -> f64 {
    coefficient(a, b) * (a.len() as f64 - 1.0).sqrt()
}

fn serial(order: &[u64], lag: usize) -> f64 {
    let count = order.len() as f64;
    (coefficient(&order[..order.len() - lag], &order[lag..]) + 1.0 / (count - 1.0)) * count.sqrt()
}

fn runs_up_and_down(order: &[u64]) -> f64 {
    let count = order.len() as f64;
    let turns = order.windows(3).filter(|three| (three[0] < three[1]) != (three[1] < three[2])).count();
    (turns as f64 + 1.0 - (2.0 * count - 1.0) / 3.0) / ((16.0 * count - 29.0) / 90.0).sqrt()
}

fn runs_about_the_middle(order: &[u64], range: u64) -> f64 {
    let is_above = |number: &u64| *number >= range / 2;
    let (count, above) = (order.len() as f64, order.iter().filter(|number| is_above(number)).count() as f64);
    let changes = order.windows(2).filter(|pair| is_above(&pair[0]) != is_above(&pair[1])).count() as f64;
    let mean = 2.0 * above * (count - above) / count;
    (changes - mean) / (mean * (mean - 1.0) / (count - 1.0)).sqrt()
}

/// Bins for this many numbers: 20 numbers each, but not too few and not too many.
fn bins(count: usize) -> usize {
    (count / 20).clamp(4, 64)
}

fn bin(number: u64, range: u64, bins: usize) -> usize {
    (u128::from(number) * bins as u128 / u128::from(range)) as usize
}

/// Counts of the differences between numbers at this distance in the order, which wraps around.
fn gaps(order: &[u64], range: u64, lag: usize) -> Vec<u64> {
    let mut counts = vec![0; bins(order.len() - lag)];
    for (from, to) in order.iter().zip(&order[lag..]) {
        // 1..range, since numbers differ.
        let gap = if to > from { to - from } else { range - (from - to) };
        let bin = bin(gap - 1, range - 1, counts.len());
        counts[bin] += 1;
    }
    counts
}

fn powers_of_two(below: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |lag| Some(2 * lag)).take_while(move |lag| *lag <= below)
}

/// A statistic of several sets of counts.
fn even_all(sets: impl Iterator<Item = Vec<u64>>) -> f64 {
    let add = |sum: (f64, f64), one: (f64, f64)| (sum.0 + one.0, sum.1 + one.1);
    let (chi_squared, degrees) = sets.map(|counts| evenness(&counts)).fold((0.0, 0.0), add);
    deviate(chi_squared, degrees)
}

/// If the order is generated by counting, numbers at these distances differ in one bit of the count.
fn gaps_at_powers(order: &[u64], range: u64) -> f64 {
    even_all(powers_of_two(order.len() / 2).skip(1).map(|lag| gaps(order, range, lag)))
}

/// Changes of 4 bits between numbers a power of two apart in the order; no number is in two pairs.
fn bits_at_powers(order: &[u64], change: impl Fn(u64, u64) -> u64) -> f64 {
    even_all(powers_of_two(order.len() / 4).map(|lag| {
        let mut counts = vec![0; 16];
        for two in order.chunks_exact(2 * lag) {
            let (first, second) = two.split_at(lag);
            first.iter().zip(second).for_each(|(a, b)| counts[(change(*a, *b) & 15) as usize] += 1);
        }
        counts
    }))
}

fn low_bits_at_powers(order: &[u64]) -> f64 {
    bits_at_powers(order, |from, to| to.wrapping_sub(from))
}

/// For a range that is not a power of two, the bits of the scaled numbers.
fn high_bits_at_powers(order: &[u64], range: u64) -> f64 {
    let high = |number: u64| bin(number, range, 16) as u64;
    bits_at_powers(order, |from, to| high(to) ^ high(from))
}

/// Positions of pairs of successive numbers on a grid; no number is in two pairs.
fn pairs(order: &[u64], range: u64) -> f64 {
    let side = if order.len() < 4096 { 4 } else { 8 };
    let mut counts = vec![0; side * side];
    for pair in order.chunks_exact(2) {
        counts[bin(pair[0], range, side) * side + bin(pair[1], range, side)] += 1;
    }
    // Expected counts follow from the sums of rows and columns, which are given.
    let (mut rows, mut columns) = (vec![0.0; side], vec![0.0; side]);
    for (index, count) in counts.iter().enumerate() {
        rows[index / side] += *count as f64;
        columns[index % side] += *count as f64;
    }
    let total = (order.len() / 2) as f64;
    let chi_squared = chi_squared(&counts, |index| rows[index / side] * columns[index % side] / total);
    deviate(chi_squared, (side - 1).pow(2) as f64)
}

/// The evenness of the first sixteenth.
fn spread_of_start(order: &[u64], range: u64) -> f64 {
    let start = &order[..order.len() / 16];
    let mut counts = vec![0; bins(start.len())];
    let bins = counts.len();
    start.iter().for_each(|number| counts[bin(*number, range, bins)] += 1);
    let (chi_squared, degrees) = evenness(&counts);
    // Sampling without replacement: the larger the sample, the more even it is.
    deviate(chi_squared / (1.0 - start.len() as f64 / range as f64), degrees)
}

/// The power at each frequency, with a mean of 1, of the largest power of two of the numbers.
fn spectrum(order: &[u64]) -> Vec<f64> {
    let count = 1_usize << order.len().ilog2().min(16);
    let mean = order[..count].iter().map(|number| *number as f64).sum::<f64>() / count as f64;
    let mut real: Vec<f64> = order[..count].iter().map(|number| *number as f64 - mean).collect();
    let mut imaginary = vec![0.0; count];
    fourier(&mut real, &mut imaginary);
    let power = |index: usize| real[index] * real[index] + imaginary[index] * imaginary[index];
    let powers: Vec<f64> = (1..count / 2).map(power).collect();
    let mean = powers.iter().sum::<f64>() / powers.len() as f64;
    powers.iter().map(|power| power / mean).collect()
}

/// The Cooley-Tukey transform, in place.
fn fourier(real: &mut [f64], imaginary: &mut [f64]) {
    let count = real.len();
    for index in 0..count {
        let reversed = index.reverse_bits() >> (usize::BITS - count.trailing_zeros());
        if index < reversed {
            real.swap(index, reversed);
            imaginary.swap(index, reversed);
        }
    }
    for length in powers_of_two(count).skip(1) {
        let angle = -2.0 * std::f64::consts::PI / length as f64;
        let turns: Vec<(f64, f64)> = (0..length / 2).map(|k| (angle * k as f64).sin_cos()).collect();
        for start in (0..count).step_by(length) {
            for (k, (sine, cosine)) in turns.iter().enumerate() {
                let (a, b) = (start + k, start + k + length / 2);
                let x = real[b] * cosine - imaginary[b] * sine;
                let y = real[b] * sine + imaginary[b] * cosine;
                (real[b], imaginary[b]) = (real[a] - x, imaginary[a] - y);
                (real[a], imaginary[a]) = (real[a] + x, imaginary[a] + y);
            }
        }
    }
}

/// Powers are exponentially distributed, which gives the distribution of the highest of them.
fn highest_of_spectrum(order: &[u64]) -> f64 {
    let powers = spectrum(order);
    let highest = powers.iter().copied().fold(0.0, f64::max);
    let all_below = (powers.len() as f64 * (-(-highest).exp()).ln_1p()).exp();
    // As chi squared with two degrees of freedom: minus twice the logarithm of its probability.
    deviate(-2.0 * (1.0 - all_below).max(f64::MIN_POSITIVE).ln(), 2.0)
}

fn shape_of_spectrum(order: &[u64]) -> f64 {
    let powers = spectrum(order);
    let mut counts = vec![0; bins(powers.len())];
    let bins = counts.len();
    for power in powers {
        counts[(((1.0 - (-power).exp()) * bins as f64) as usize).min(bins - 1)] += 1;
    }
    even(&counts)
}

/// The first `count` of a true shuffle of `blocks` numbers.
pub fn shuffle(blocks: u64, seed: u64, count: usize) -> Vec<u64> {
    let mut random = Random::new(seed);
    if blocks > 1 << 32 {
        // So few of so many hardly ever collide.
        return (0..count).map(|_| random.below(blocks)).collect();
    }
    let mut all: Vec<u64> = (0..blocks).collect();
    random.shuffle(&mut all);
    all.truncate(count);
    all
}

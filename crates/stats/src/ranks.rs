//! Ranks drawn by a skewed distribution (zipf, pareto, normal), from a table made beforehand.
//!
//! Invariant: the ranks drawn follow the distribution exactly; the table changes the cost of a draw, not its result.
//!
//! The ranks are cut into buckets within which probabilities differ by at most one part in 32, a few hundred to a few
//! thousand however many ranks there are. A bucket is drawn with Walker's alias method, then a rank of it evenly, which
//! is accepted at once as often as its least likely rank would be; otherwise, one time in 30 at most, the probability of
//! that rank decides, which has to be computed only where a parabola through three of the bucket's leaves it open.

mod alias;
mod shape;

use crate::capped::Capped;
use crate::random::{Random, low_half};
use alias::AliasTable;
use shape::Shape;

/// Largest ratio between the probabilities of two ranks of one bucket.
const RATIO_MAX: f64 = 1.0 + 1.0 / 32.0;

/// Ranks whose probabilities together are below this have no place in the table: a run of a century draws none of them.
const NEGLIGIBLE: f64 = 1.0 / (1_u64 << 60) as f64;

/// As many ranks are added up one by one; the sum of more is an integral.
const ADDED_UP_MAX: u64 = 16;

/// A distribution over the ranks 0..count.
#[derive(Clone, Debug)]
pub struct Ranks {
    shape: Shape,
    count: u64,
    table: AliasTable,
    buckets: Box<[Bucket]>,
    /// Of each bucket.
    curves: Box<[WeightCurve]>,
}

/// Neighbouring ranks with nearly the same probability.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u64,
    count: u64,
    /// Of 2^64: how often a rank is accepted whichever it is.
    sure: u64,
}

/// The weights of a bucket's ranks: of the first, of the middle between both ends, and of the last; and the largest.
#[derive(Clone, Copy, Debug)]
struct WeightCurve {
    weights: [f64; 3],
    weight_max: f64,
}

/// A parabola through a bucket's weights is off by much less than this share of them.
const PARABOLA_ERROR: f64 = 2e-4;

impl Ranks {
    /// Ranks 0..count (at least 1) where rank k comes up in proportion to 1 / (k + 1)^theta: rank 0 is the hottest.
    /// `theta` is at least 0, which makes all ranks equal.
    pub fn zipf(count: u64, theta: f64) -> Ranks {
        Ranks::new(Shape::Zipf { theta }, count)
    }

    /// Ranks 0..count (at least 1) under the self-similar distribution of Gray and others (1994), which fio calls
    /// Pareto: the first `share` of the ranks takes `1 - share` of the draws (0.2 is the 80-20 rule), and the same holds
    /// within that share. `share` is between 0 and 1, both excluded.
    pub fn pareto(count: u64, share: f64) -> Ranks {
        let exponent = (1.0 - share).ln() / share.ln();
        Ranks::new(Shape::Pareto { count: count.max(1) as f64, exponent }, count)
    }

    /// Ranks 0..count (at least 1), normally distributed about the place `centre` (0 the start, 1 the end) with a
    /// deviation of `deviation_percent` of the range, under the condition that none falls outside.
    pub fn normal(count: u64, deviation_percent: f64, centre: f64) -> Ranks {
        let range = count.max(1) as f64;
        let centre = range * centre.clamp(0.0, 1.0);
        Ranks::new(Shape::normal(range, centre, range * deviation_percent / 100.0), count)
    }

    /// How many ranks there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A rank.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> u64 {
        let number = self.table.sample(random);
        let bucket = &self.buckets[number];
        loop {
            let product = u128::from(random.next_u64()) * u128::from(bucket.count);
            // The low half of the product is where within its rank the draw fell: a number of its own.
            let (within_bucket, within_rank) = ((product >> 64) as u64, low_half(product));
            if within_rank <= bucket.sure || self.accepts(number, within_bucket, within_rank) {
                return bucket.first + within_bucket;
            }
        }
    }

    /// Whether a rank that is not accepted in any case is accepted.
    #[cold]
    fn accepts(&self, number: usize, within_bucket: u64, within_rank: u64) -> bool {
        let (bucket, curve) = (&self.buckets[number], &self.curves[number]);
        let weight = within_rank as f64 * 2.0_f64.powi(-64) * curve.weight_max;
        // From -1 at the first rank to 1 at the last.
        let place = 2.0 * within_bucket as f64 / (bucket.count - 1) as f64 - 1.0;
        let [first, middle, last] = curve.weights;
        let guess = middle + place * ((last - first) + place * (first + last - 2.0 * middle)) / 2.0;
        match (weight - guess).abs() > PARABOLA_ERROR * curve.weight_max {
            true => weight < guess,
            false => weight < self.shape.weight((bucket.first + within_bucket) as f64),
        }
    }

    fn new(shape: Shape, count: u64) -> Ranks {
        let count = count.max(1);
        let (mut buckets, mut curves) = (Vec::new(), Vec::new());
        let mut weights = Vec::new();
        let hottest = shape.hottest(count);
        let mut total = shape.weight(hottest as f64);
        let upward = count - hottest;
        // From the hottest rank away to either end: weights fall all the way.
        for (first, length, step) in [(hottest, upward, 1_i64), (hottest.wrapping_sub(1), hottest, -1)] {
            let rank_at =
                |distance: u64| first.wrapping_add_signed(step.wrapping_mul(distance.cast_signed()));
            let mut begin = 0;
            while begin < length {
                let weight_max = shape.weight(rank_at(begin) as f64);
                if weight_max * (length - begin) as f64 <= total * NEGLIGIBLE {
                    break;
                }
                let least = weight_max / RATIO_MAX;
                let end =
                    last_where(begin, length, |distance| shape.weight(rank_at(distance) as f64) >= least) + 1;
                let weight_min = shape.weight(rank_at(end - 1) as f64);
                let sure = if end - begin == 1 { u64::MAX } else { fraction(weight_min / weight_max) };
                let first = rank_at(begin).min(rank_at(end - 1));
                let weight = sum(&shape, first, end - begin);
                total += weight;
                weights.push(weight);
                buckets.push(Bucket { first, count: end - begin, sure });
                let (low, high) = (first as f64, (first + (end - begin - 1)) as f64);
                let weights = [low, f64::midpoint(low, high), high].map(|rank| shape.weight(rank));
                curves.push(WeightCurve { weights, weight_max });
                begin = end;
            }
        }
        Ranks {
            shape,
            count,
            table: AliasTable::new(&weights),
            buckets: buckets.into(),
            curves: curves.into(),
        }
    }
}

/// The last number from `begin` on, below `end`, of which `holds` is true; it is true of `begin` and, from the first of
/// which it is not, of none.
fn last_where(begin: u64, end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut inside, mut step) = (begin, 1);
    while end - inside > step && holds(inside + step) {
        inside += step;
        step = step.saturating_mul(2);
    }
    while step > 1 {
        step /= 2;
        if end - inside > step && holds(inside + step) {
            inside += step;
        }
    }
    inside
}

/// The weights of these ranks together.
fn sum(shape: &Shape, first: u64, count: u64) -> f64 {
    if count <= ADDED_UP_MAX {
        return (first..first + count).map(|rank| shape.weight(rank as f64)).sum();
    }
    // Simpson's rule over what is nearly a straight line.
    let (low, high) = (first as f64 - 0.5, (first + count) as f64 - 0.5);
    let ends = shape.weight(low) + shape.weight(high);
    (high - low) * (ends + 4.0 * shape.weight(f64::midpoint(low, high))) / 6.0
}

/// A share as a number of 2^64.
fn fraction(share: f64) -> u64 {
    u64::capped(share * 2.0_f64.powi(64))
}

#[cfg(test)]
mod tests;

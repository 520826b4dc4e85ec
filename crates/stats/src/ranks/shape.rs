//! How likely each rank is, up to a common factor.
//!
//! Invariant: weights never rise from the hottest rank towards either end, and none is above 1.

use crate::capped::Capped;

/// A distribution's formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// (rank + 1)^-theta.
    Zipf { theta: f64 },
    /// The part of `count * u^(1 / exponent)` with u even in 0..1 that lies within the rank.
    Pareto { count: f64, exponent: f64 },
    /// The part of a normal distribution that lies within the rank.
    Normal {
        centre: f64,
        deviation: f64,
        /// Parts that a rank is cut into for the integral over it; even.
        parts: u32,
    },
    /// One rank alone.
    Point { rank: f64 },
}

/// A deviation below this many ranks is none.
const DEVIATION_MIN: f64 = 1.0 / 64.0;

impl Shape {
    /// Over 0..`count`, about `centre`; all in ranks.
    pub(super) fn normal(count: f64, centre: f64, deviation: f64) -> Shape {
        if deviation < DEVIATION_MIN {
            return Shape::Point { rank: centre.floor().min(count - 1.0) };
        }
        let parts = 2 * u32::capped((4.0 / deviation).ceil().clamp(1.0, 512.0));
        Shape::Normal { centre, deviation, parts }
    }

    /// The rank with the largest weight.
    pub(super) fn hottest(&self, count: u64) -> u64 {
        match *self {
            Shape::Zipf { .. } => 0,
            Shape::Pareto { exponent, .. } if exponent <= 1.0 => 0,
            Shape::Pareto { .. } => count - 1,
            Shape::Normal { centre: place, .. } | Shape::Point { rank: place } => {
                u64::capped(place).min(count - 1)
            }
        }
    }

    /// The weight of a rank; between two ranks, of what would lie there.
    pub(super) fn weight(&self, rank: f64) -> f64 {
        match *self {
            Shape::Zipf { theta } => (-theta * rank.ln_1p()).exp(),
            Shape::Pareto { count, exponent } if rank >= 0.5 => {
                // ((rank + 1)^e - rank^e) / count^e, without the difference of two numbers that are nearly the same.
                (exponent * (rank / count).ln()).exp() * (exponent * rank.recip().ln_1p()).exp_m1()
            }
            Shape::Pareto { count, exponent } => {
                let power = |place: f64| (place.max(0.0) / count).powf(exponent);
                power(rank + 1.0) - power(rank)
            }
            Shape::Normal { centre, deviation, parts } => {
                let density = |place: f64| (-((place - centre) / deviation).powi(2) / 2.0).exp();
                let step = f64::from(parts).recip();
                let factor = |part: u32| match part {
                    0 => 1.0,
                    part if part == parts => 1.0,
                    part => 2.0 + 2.0 * f64::from(part % 2),
                };
                (0..=parts).map(|part| factor(part) * density(rank + f64::from(part) * step)).sum::<f64>()
                    * step
                    / 3.0
            }
            Shape::Point { rank: only } => f64::from(u8::from(rank == only)),
        }
    }
}

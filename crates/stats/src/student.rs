//! Quantiles of Student's t, for any number of degrees of freedom and any confidence.
//!
//! Invariant: exact to six digits; degrees of freedom need not be whole, as Welch's formula gives them.

/// The value that Student's t exceeds to either side together in a share of `outside` of all cases: 0.05 for an interval
/// of 95 %. `degrees` of freedom below 1 count as 1.
pub fn two_sided(outside: f64, degrees: f64) -> f64 {
    let (outside, degrees) = (outside.clamp(1e-12, 1.0), degrees.max(1.0));
    let (mut low, mut high) = (0.0, 1.0);
    while share_outside(high, degrees) > outside {
        high *= 2.0;
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        match share_outside(middle, degrees) > outside {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high)
}

/// The share of all cases in which the absolute value of t is above this.
fn share_outside(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast on one side of the mean, the other side follows by symmetry.
    match x < (a + 1.0) / (a + b + 2.0) {
        true => front * continued_fraction(x, a, b) / a,
        false => 1.0 - front * continued_fraction(1.0 - x, b, a) / b,
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut product = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            factor = c * d;
            product *= factor;
        }
        if (factor - 1.0).abs() < 1e-14 {
            break;
        }
    }
    product
}

/// The logarithm of the gamma function (Lanczos).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.001_208_650_973_866_179,
        -0.000_005_395_239_384_953,
    ];
    let base = x + 5.5;
    let sum = (1..).zip(TERMS).fold(1.000_000_000_190_015, |sum, (n, term)| sum + term / (x + f64::from(n)));
    (x + 0.5) * base.ln() - base + (2.506_628_274_631_000_5 * sum / x).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_tables() {
        for (outside, degrees, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 10.0, 2.228),
            (0.05, 120.0, 1.980),
            (0.01, 4.0, 4.604),
            (0.001, 3.0, 12.924),
            (0.002, 30.0, 3.385),
            (0.5, 5.0, 0.727),
            (0.05, 1e6, 1.960),
        ] {
            let found = two_sided(outside, degrees);
            assert!((found - expected).abs() < 0.001, "{outside} {degrees}: {found}");
        }
    }

    #[test]
    fn degrees_need_not_be_whole_and_nothing_is_infinite() {
        assert!(two_sided(0.05, 4.5) < two_sided(0.05, 4.0) && two_sided(0.05, 4.5) > two_sided(0.05, 5.0));
        assert_eq!(two_sided(0.05, 0.2), two_sided(0.05, 1.0));
        assert!(two_sided(0.0, 1.0).is_finite());
        assert!(two_sided(1.0, 3.0) < 1e-3);
    }
}

//! Skewed ranks against the definitions of their distributions.
//!
//! Invariant: expected shares come from the definition alone, never from the code under test.

use super::*;

const DRAWS: u64 = 400_000;

/// Draws counted by cell, against the shares that they should have: chi squared as a standard normal number (Wilson and
/// Hilferty). Cells with few expected draws are put together.
fn deviate(counts: &[u64], share: impl Fn(usize) -> f64) -> f64 {
    let draws: u64 = counts.iter().sum();
    let (mut chi_squared, mut cells) = (0.0, 0.0);
    let (mut seen, mut expected) = (0.0, 0.0);
    let mut left = 1.0;
    for (cell, count) in counts.iter().enumerate() {
        seen += *count as f64;
        expected += share(cell) * draws as f64;
        left -= share(cell);
        if expected >= 10.0 && left * draws as f64 >= 10.0 || cell + 1 == counts.len() {
            chi_squared += (seen - expected).powi(2) / expected;
            cells += 1.0;
            (seen, expected) = (0.0, 0.0);
        }
    }
    let variance = 2.0 / (9.0 * (cells - 1.0));
    ((chi_squared / (cells - 1.0)).cbrt() - (1.0 - variance)) / variance.sqrt()
}

fn counts(ranks: &Ranks, count: u64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let mut counts = vec![0; count as usize];
    (0..DRAWS).for_each(|_| counts[ranks.sample(&mut random) as usize] += 1);
    counts
}

/// Beyond this either way is once in 30,000; the seeds are fixed, so a test that passes once always passes.
const TOO_FAR: f64 = 4.0;

#[test]
fn zipf_is_a_zipf_distribution() {
    for (count, theta) in
        [(2, 1.2), (50, 0.0), (1000, 0.5), (1000, 1.0), (1024, 1.2), (5000, 0.8), (4096, 2.5)]
    {
        let total: f64 = (1..=count).map(|k| (k as f64).powf(-theta)).sum();
        let found = deviate(&counts(&Ranks::zipf(count, theta), count, 3), |rank| {
            (rank as f64 + 1.0).powf(-theta) / total
        });
        assert!(found < TOO_FAR, "{count} ranks, theta {theta}: {found}");
    }
}

#[test]
fn zipf_over_very_many_ranks_keeps_the_shares_of_ranges() {
    // The sum of k^-theta by Euler and Maclaurin, beyond the first thousand.
    let (count, theta) = (1_u64 << 36, 0.9_f64);
    let integral = |x: f64| x.powf(1.0 - theta) / (1.0 - theta);
    let harmonic = |last: u64| {
        let head: f64 = (1..=last.min(1000)).map(|k| (k as f64).powf(-theta)).sum();
        head + if last > 1000 { integral(last as f64 + 0.5) - integral(1000.5) } else { 0.0 }
    };
    let bounds: Vec<u64> = (0..=36).map(|bits| 1_u64 << bits).collect();
    let ranks = Ranks::zipf(count, theta);
    let mut random = Random::new(9);
    let mut cells = vec![0; bounds.len()];
    for _ in 0..DRAWS {
        let number = ranks.sample(&mut random) + 1;
        cells[bounds.partition_point(|bound| *bound < number)] += 1;
    }
    let share = |cell: usize| {
        let below = if cell == 0 { 0.0 } else { harmonic(bounds[cell - 1]) };
        (harmonic(bounds[cell]) - below) / harmonic(count)
    };
    let found = deviate(&cells, share);
    assert!(found < TOO_FAR, "{found}");
}

#[test]
fn pareto_is_self_similar() {
    for (count, share) in [(10_u64, 0.2_f64), (1000, 0.1), (1024, 0.2), (1000, 0.5), (1000, 0.7), (500, 0.99)]
    {
        // Below x of the range lies x^c of the draws, where c makes 1 - share of share.
        let exponent = (1.0 - share).ln() / share.ln();
        let below = |rank: f64| (rank / count as f64).powf(exponent);
        let found = deviate(&counts(&Ranks::pareto(count, share), count, 4), |rank| {
            below(rank as f64 + 1.0) - below(rank as f64)
        });
        assert!(found < TOO_FAR, "{count} ranks, {share}: {found}");
    }
}

/// The part of a standard normal distribution below `x`, by adding up its density from -9 on.
fn normal_below(x: f64) -> f64 {
    let steps = 20_000;
    let width = (x + 9.0).max(0.0) / f64::from(steps);
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    (0..steps).map(|step| density(-9.0 + (f64::from(step) + 0.5) * width) * width).sum()
}

// divergence: `random_distribution=normal:10`
#[test]
fn normal_is_a_normal_distribution_within_its_range() {
    for (count, percent, centre) in
        [(1000_u64, 10.0, 0.5), (100, 0.5, 0.5), (200, 50.0, 0.1), (64, 20.0, 1.0), (300, 3.0, 0.0)]
    {
        let at = |rank: f64| normal_below((rank - count as f64 * centre) / (count as f64 * percent / 100.0));
        let (start, whole) = (at(0.0), at(count as f64) - at(0.0));
        let cumulated: Vec<f64> = (0..=count).map(|rank| (at(rank as f64) - start) / whole).collect();
        let found = deviate(&counts(&Ranks::normal(count, percent, centre), count, 5), |rank| {
            cumulated[rank + 1] - cumulated[rank]
        });
        assert!(found < TOO_FAR, "{count} ranks, {percent} % about {centre}: {found}");
    }
}

#[test]
fn a_deviation_of_nothing_draws_the_centre() {
    let mut random = Random::new(6);
    for (centre, rank) in [(0.0, 0), (0.5, 5), (1.0, 9)] {
        let ranks = Ranks::normal(10, 0.0, centre);
        assert!((0..100).all(|_| ranks.sample(&mut random) == rank));
    }
    for ranks in [Ranks::zipf(1, 1.2), Ranks::pareto(1, 0.2), Ranks::normal(1, 50.0, 0.5)] {
        assert_eq!(ranks.sample(&mut random), 0);
    }
}

#[test]
fn tables_stay_small_however_many_ranks_there_are() {
    for count in [1 << 10, 1 << 30, 1 << 50, u64::MAX] {
        for ranks in [
            Ranks::zipf(count, 0.5),
            Ranks::zipf(count, 1.2),
            Ranks::zipf(count, 11.0),
            Ranks::pareto(count, 0.01),
            Ranks::pareto(count, 0.2),
            Ranks::pareto(count, 0.99),
            Ranks::normal(count, 0.1, 0.5),
            Ranks::normal(count, 99.0, 0.3),
        ] {
            assert!(ranks.buckets.len() < 5000, "{:?} {count}: {} buckets", ranks.shape, ranks.buckets.len());
        }
    }
}

#[test]
fn buckets_do_not_overlap_and_leave_out_nothing_that_matters() {
    for ranks in [Ranks::zipf(5000, 1.2), Ranks::pareto(5000, 0.9), Ranks::normal(5000, 30.0, 0.2)] {
        let mut parts: Vec<(u64, u64)> = ranks.buckets.iter().map(|part| (part.first, part.count)).collect();
        parts.sort_unstable();
        assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{parts:?}");
        let covered: u64 = parts.iter().map(|part| part.1).sum();
        let total: f64 = (0..5000).map(|rank| ranks.shape.weight(f64::from(rank))).sum();
        let kept: f64 = parts.iter().map(|part| sum(&ranks.shape, part.0, part.1)).sum();
        assert!(covered <= 5000 && (kept / total - 1.0).abs() < 1e-5, "{covered} {}", kept / total);
    }
}

#[test]
fn parabolas_are_as_near_as_they_are_taken_to_be() {
    for ranks in [
        Ranks::zipf(1 << 30, 1.2),
        Ranks::zipf(5000, 8.0),
        Ranks::pareto(1 << 20, 0.01),
        Ranks::pareto(5000, 0.9),
        Ranks::normal(1 << 30, 10.0, 0.3),
        Ranks::normal(100, 3.0, 0.51),
    ] {
        for (bucket, curve) in ranks.buckets.iter().zip(&ranks.curves).filter(|(bucket, _)| bucket.count > 2)
        {
            for part in 0..=8 {
                let within = (bucket.count - 1) * part / 8;
                let place = 2.0 * within as f64 / (bucket.count - 1) as f64 - 1.0;
                let [first, middle, last] = curve.weights;
                let guess = middle + place * ((last - first) + place * (first + last - 2.0 * middle)) / 2.0;
                let off =
                    (guess - ranks.shape.weight((bucket.first + within) as f64)).abs() / curve.weight_max;
                assert!(off < PARABOLA_ERROR / 4.0, "{:?}: {bucket:?} {off}", ranks.shape);
            }
        }
    }
}

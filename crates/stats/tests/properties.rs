//! Properties of every accumulator.
//!
//! Invariant: for all values, merging is a sum, and figures are near the exact ones.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

use fiord_stats::{Histogram, JobStats, Latency, Moments, Random, Ranks, Usage};
use proptest::prelude::*;

/// Latencies of all magnitudes: uniform exponents, so that every part of the layout is covered.
fn latencies_ns() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(
        (0_u32..44, any::<u64>()).prop_map(|(bits, value)| value & ((1 << bits) - 1)),
        0..60,
    )
}

/// A job's result with something in every field that merges by its own rule.
fn job() -> impl Strategy<Value = JobStats> {
    let counts =
        (0_u64..1000, 0_u64..1 << 40, 0_u64..5000, 0_u64..1000, prop::sample::select(vec![0, 5, 28]));
    (latencies_ns(), prop::collection::vec(0_u64..1 << 30, 0..8), counts, 0_usize..3).prop_map(
        |(values, samples, (ios, bytes, runtime_ms, usage, first_error), direction)| {
            let mut stats = JobStats { first_error, errors_total: ios, ..JobStats::default() };
            let one = &mut stats.directions[direction];
            (one.ios, one.bytes, one.runtime_ms, one.short_ios, one.dropped_ios) =
                (ios, bytes, runtime_ms, ios / 2, ios / 3);
            one.completion = Latency::with_histogram();
            for value in &values {
                let bin = one.completion.record(*value);
                one.submission.record(value / 2);
                one.total.record(value * 2);
                stats.distribution.record(*value, bin);
                stats.depth.record_many((value % 70) as u32, 1);
                stats.submit.record((value % 70) as u32);
                stats.complete.record((value % 7) as u32);
            }
            samples.iter().for_each(|sample| one.bandwidth.record(*sample));
            samples.iter().for_each(|sample| one.iops.record(sample / 4));
            stats.sync.ios = values.len() as u64;
            stats.sync.latency = one.total.clone();
            stats.usage = Usage {
                user_us: usage,
                system_us: usage + 1,
                context_switches: usage + 2,
                major_faults: usage + 3,
                minor_faults: usage + 4,
                elapsed_ms: usage + 5,
            };
            stats
        },
    )
}

fn sum(parts: &[&JobStats]) -> JobStats {
    let mut total = JobStats::default();
    parts.iter().for_each(|part| total.merge(part));
    total
}

fn counted(values: &[u64]) -> Latency {
    let mut latency = Latency::with_histogram();
    values.iter().for_each(|value| {
        latency.record(*value);
    });
    latency
}

proptest! {
    #[test]
    fn merge_is_commutative(a in job(), b in job()) {
        prop_assert_eq!(sum(&[&a, &b]), sum(&[&b, &a]));
    }

    #[test]
    fn merge_is_associative(a in job(), b in job(), c in job()) {
        let mut left = a.clone();
        left.merge(&b);
        left.merge(&c);
        let mut bc = b.clone();
        bc.merge(&c);
        let mut right = a;
        right.merge(&bc);
        prop_assert_eq!(left, right);
    }

    #[test]
    fn merge_has_a_zero(a in job()) {
        let mut with_zero = a.clone();
        with_zero.merge(&JobStats::default());
        prop_assert_eq!(&with_zero, &a);
        prop_assert_eq!(sum(&[&a]), a);
    }

    #[test]
    fn all_directions_as_one_hold_the_same_io(a in job(), b in job()) {
        let both = sum(&[&a, &b]);
        let mixed = both.mixed();
        prop_assert_eq!(mixed.ios, both.directions.iter().map(|direction| direction.ios).sum::<u64>());
        prop_assert_eq!(mixed.completion.running.count, both.distribution.counts().iter().sum::<u64>());
    }

    #[test]
    fn merging_separate_records_equals_one_record(values in latencies_ns(), split in 0_usize..60) {
        let (first, second) = values.split_at(split.min(values.len()));
        let mut merged = counted(first);
        merged.merge(&counted(second));
        prop_assert_eq!(merged, counted(&values));
    }

    #[test]
    fn percentiles_are_near_the_exact_ones(mut values in prop::collection::vec(0_u64..1 << 33, 1..200), percent in 0.1_f64..100.0) {
        let latency = counted(&values);
        values.sort_unstable();
        let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).clamp(1, values.len());
        let exact = values[rank - 1];
        let found = latency.percentiles(&[percent])[0];
        prop_assert!(found.abs_diff(exact) <= exact / 64 + 1, "{found} for {exact}");
        prop_assert!(found <= *values.last().unwrap() && found >= values[0]);
    }

    #[test]
    fn percentiles_ascend(values in latencies_ns()) {
        let found = counted(&values).percentiles(&[1.0, 50.0, 99.0, 99.9, 100.0]);
        prop_assert!(found.is_sorted());
    }

    #[test]
    fn moments_match_naive_ones(values in prop::collection::vec(0_u64..1 << 40, 2..50)) {
        let mut running = Moments::default();
        values.iter().for_each(|value| running.record(*value));
        let count = values.len() as f64;
        let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count;
        let variance = values.iter().map(|value| (*value as f64 - mean).powi(2)).sum::<f64>() / (count - 1.0);
        prop_assert!((running.mean() - mean).abs() <= mean * 1e-12);
        prop_assert!((running.stddev() - variance.sqrt()).abs() <= variance.sqrt() * 1e-9);
        prop_assert_eq!((running.min(), running.max), (*values.iter().min().unwrap(), *values.iter().max().unwrap()));
    }

    #[test]
    fn draws_stay_in_range(seed: u64, count in 1_u64..1 << 40, theta in 0.05_f64..4.0, share in 0.01_f64..0.99) {
        let mut random = Random::new(seed);
        let (zipf, pareto) = (Ranks::zipf(count, theta), Ranks::pareto(count, share));
        let normal = Ranks::normal(count, share * 100.0, share);
        for _ in 0..20 {
            prop_assert!(random.below(count) < count);
            prop_assert!(zipf.sample(&mut random) < count);
            prop_assert!(pareto.sample(&mut random) < count);
            prop_assert!(normal.sample(&mut random) < count);
            prop_assert!((0.0..1.0).contains(&random.unit()));
        }
    }
}

#[test]
fn counts_given_back_are_the_same_histogram() {
    let latency = counted(&[1, 1, 500, 70_000]);
    let again = Histogram::try_from(latency.histogram.bins().to_vec()).unwrap();
    assert_eq!(again, latency.histogram);
    assert!(Histogram::try_from(vec![0; 7]).is_err());
}

//! Where a curve of throughput stops rising: its knee.
//!
//! Invariant: the knee is never beyond the peak, and the unit of throughput does not matter.

/// One measurement of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The value of the option that was swept.
    pub value: f64,
    /// Throughput, in any unit.
    pub throughput: f64,
    /// How far the throughput may be off, in the same unit.
    pub noise: f64,
}

/// A knee reaches at least this share of the reference.
pub const SHARE_MIN: f64 = 0.95;

/// Throughput that still grows at least so many times as fast as the value (both as ratios) has not reached its knee.
const STILL_GROWING: f64 = 0.5;

/// What was found on a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Index of the highest throughput; of equal ones the first.
    pub peak: usize,
    /// Index of the knee; `None` when throughput still grows where the curve ends.
    pub knee: Option<usize>,
}

/// Finds the knee of a curve whose values rise; `None` when there are no two points.
///
/// The reference is the highest throughput of all points after each point's own noise is taken off it, so that a
/// single noisy run cannot raise it. The knee is the first point that reaches [`SHARE_MIN`] of the reference. Where
/// that is the last point, or where throughput from there to a peak in the last place still grows at least half as
/// fast as the value does, the knee was not reached.
pub fn find(points: &[Point]) -> Option<Found> {
    if points.len() < 2 {
        return None;
    }
    let reference = points.iter().map(|point| point.throughput - point.noise).fold(0.0, f64::max);
    let peak = (1..points.len())
        .fold(0, |peak, index| if points[index].throughput > points[peak].throughput { index } else { peak });
    let knee = points.iter().position(|point| point.throughput >= SHARE_MIN * reference)?;
    let last = points.len() - 1;
    let growing = knee == last || (peak == last && still_growing(&points[knee], &points[last], reference));
    Some(Found { peak, knee: (!growing).then_some(knee) })
}

fn still_growing(from: &Point, to: &Point, reference: f64) -> bool {
    if from.value <= 0.0 || from.throughput <= 0.0 {
        return false;
    }
    let growth = (reference / from.throughput).ln();
    growth > 0.0 && growth >= STILL_GROWING * (to.value / from.value).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A curve over values that double from 1, with this noise as a share of each throughput.
    fn curve(throughputs: &[f64], noise: f64) -> Vec<Point> {
        let value = |index: usize| f64::from(1u32 << index);
        let point = |(index, throughput): (usize, &f64)| Point {
            value: value(index),
            throughput: *throughput,
            noise: noise * throughput,
        };
        throughputs.iter().enumerate().map(point).collect()
    }

    fn knee(throughputs: &[f64]) -> Option<usize> {
        find(&curve(throughputs, 0.01)).unwrap().knee
    }

    #[test]
    fn flat_curves_have_their_knee_at_once() {
        assert_eq!(knee(&[100.0, 100.0, 100.0, 100.0]), Some(0));
        assert_eq!(knee(&[99.0, 101.0, 98.0, 102.0, 97.0]), Some(0));
    }

    #[test]
    fn linear_curves_do_not_reach_it() {
        assert_eq!(knee(&[10.0, 20.0, 40.0, 80.0]), None);
        // Close together, neighbours are within the share of each other although nothing levels off.
        let close: Vec<Point> = (100..120)
            .map(|value| Point { value: f64::from(value), throughput: f64::from(value), noise: 0.0 })
            .collect();
        assert_eq!(find(&close).unwrap().knee, None);
    }

    #[test]
    fn saturating_curves_have_it_where_they_level_off() {
        assert_eq!(knee(&[10.0, 20.0, 40.0, 78.0, 80.0, 80.0]), Some(3));
        assert_eq!(knee(&[14.0, 28.0, 56.0, 111.0, 112.0, 110.0, 111.0, 112.0]), Some(3));
    }

    #[test]
    fn the_last_value_alone_is_no_knee() {
        assert_eq!(knee(&[10.0, 20.0, 40.0, 44.0]), None);
        assert_eq!(knee(&[10.0, 20.0, 40.0, 41.0]), Some(2));
    }

    #[test]
    fn a_noisy_peak_further_right_does_not_drag_it() {
        let mut points = curve(&[25.0, 50.0, 98.0, 100.0, 99.0, 130.0], 0.01);
        assert_eq!(find(&points).unwrap().knee, None, "without noise the last is a peak");
        points[5].noise = 35.0;
        assert_eq!(find(&points).unwrap(), Found { peak: 5, knee: Some(2) });
        // However noisy it is, the others keep their weight.
        points[5].noise = 130.0;
        assert_eq!(find(&points).unwrap().knee, Some(2));
    }

    #[test]
    fn falling_curves_have_it_before_the_fall() {
        assert_eq!(knee(&[50.0, 98.0, 100.0, 70.0, 40.0]), Some(1));
        assert_eq!(knee(&[100.0, 80.0, 60.0]), Some(0));
    }

    #[test]
    fn a_single_point_is_no_curve() {
        assert_eq!(find(&[]), None);
        assert_eq!(find(&curve(&[100.0], 0.0)), None);
        assert_eq!(find(&curve(&[0.0, 0.0], 0.0)).unwrap().knee, Some(0));
    }

    proptest! {
        #[test]
        fn the_knee_is_never_beyond_the_peak(
            throughputs in proptest::collection::vec(0.0..1e12f64, 2..20),
            noise in 0.0..0.5f64,
        ) {
            let points = curve(&throughputs, noise);
            let found = find(&points).unwrap();
            prop_assert!(found.knee.is_none_or(|knee| knee <= found.peak));
            prop_assert!(points.iter().all(|point| point.throughput <= points[found.peak].throughput));
        }

        #[test]
        fn the_unit_does_not_matter(
            throughputs in proptest::collection::vec(1.0..1e6f64, 2..20),
            noise in 0.0..0.5f64,
            power in -20i32..20,
        ) {
            // A power of two scales without rounding.
            let scaled: Vec<f64> = throughputs.iter().map(|throughput| throughput * 2f64.powi(power)).collect();
            prop_assert_eq!(find(&curve(&throughputs, noise)), find(&curve(&scaled, noise)));
        }

        #[test]
        fn a_plateau_within_its_noise_has_its_knee_where_it_begins(
            rise in 1usize..6,
            plateau in proptest::collection::vec(0.98..1.02f64, 3..8),
        ) {
            let rising = (0..rise).map(|index| 0.5f64.powi((rise - index) as i32));
            let throughputs: Vec<f64> = rising.chain(plateau).collect();
            prop_assert_eq!(find(&curve(&throughputs, 0.02)).unwrap().knee, Some(rise));
        }
    }
}

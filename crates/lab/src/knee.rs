//! Where a curve of throughput stops rising: its knee.
//!
//! Invariant: the knee is never beyond the peak, and the unit of throughput does not matter.

/// One measurement of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The value of the option that was swept.
    pub value: f64,
    /// Throughput, in any unit.
    pub throughput: f64,
    /// How far the throughput may be off, in the same unit.
    pub noise: f64,
}

/// A knee reaches at least this share of the reference.
pub const SHARE_MIN: f64 = 0.95;

/// Throughput that still grows at least this many times as fast as the value (both as ratios) has not reached its knee.
const STILL_GROWING: f64 = 0.5;

/// What was found on a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveShape {
    /// Index of the highest throughput; of equal ones the first.
    pub peak: usize,
    /// Where the knee is.
    pub knee: Knee,
}

/// Where a knee is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knee {
    /// At the point of this index, whatever the throughputs are within their noise.
    At(usize),
    /// Nowhere on the curve: throughput is still growing at its end.
    NotReached,
    /// The noise does not carry a knee: it may be anywhere from the first of these points to the second, or beyond the
    /// curve if that is `None`.
    Between(usize, Option<usize>),
}

impl Knee {
    /// The index of the knee, if it is known.
    pub fn index(self) -> Option<usize> {
        match self {
            Knee::At(index) => Some(index),
            Knee::NotReached | Knee::Between(..) => None,
        }
    }
}

/// Finds the knee of a curve with increasing values; `None` if it has fewer than two points.
///
/// The reference is the highest throughput of all points after subtracting each point's own noise, so that a
/// single noisy run cannot raise it. The knee is the first point that reaches [`SHARE_MIN`] of the reference, both with
/// its noise added and with it subtracted; if these are different points, the knee is not known. If it is the last point,
/// or if the last point is the peak and throughput from the knee to it still grows at least half as fast as the value
/// does, the knee was not reached.
pub fn find(points: &[CurvePoint]) -> Option<CurveShape> {
    if points.len() < 2 {
        return None;
    }
    let reference = points.iter().map(|point| point.throughput - point.noise).fold(0.0, f64::max);
    let peak = (1..points.len())
        .fold(0, |peak, index| if points[index].throughput > points[peak].throughput { index } else { peak });
    let reached = |noises: f64| {
        let is_there = |point: &CurvePoint| point.throughput + noises * point.noise >= SHARE_MIN * reference;
        // The point of the reference reaches it, unless all is noise.
        points.iter().position(is_there).unwrap_or(peak)
    };
    let last = points.len() - 1;
    let known = |knee: usize| {
        let growing =
            knee == last || (peak == last && still_growing(&points[knee], &points[last], reference));
        (!growing).then_some(knee)
    };
    let (earliest, latest) = (reached(1.0), reached(-1.0));
    let knee = match (known(earliest), known(latest)) {
        (None, None) => Knee::NotReached,
        (Some(one), Some(other)) if one == other => Knee::At(one),
        (_, to) => Knee::Between(earliest, to),
    };
    Some(CurveShape { peak, knee })
}

fn still_growing(from: &CurvePoint, to: &CurvePoint, reference: f64) -> bool {
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
    fn curve(throughputs: &[f64], noise: f64) -> Vec<CurvePoint> {
        let value = |index: usize| f64::from(1u32 << index);
        let point = |(index, throughput): (usize, &f64)| CurvePoint {
            value: value(index),
            throughput: *throughput,
            noise: noise * throughput,
        };
        throughputs.iter().enumerate().map(point).collect()
    }

    fn knee(throughputs: &[f64]) -> Option<usize> {
        find(&curve(throughputs, 0.01)).unwrap().knee.index()
    }

    #[test]
    fn flat_curves_have_their_knee_at_the_first_point() {
        assert_eq!(knee(&[100.0, 100.0, 100.0, 100.0]), Some(0));
        assert_eq!(knee(&[99.0, 101.0, 98.0, 102.0, 97.0]), Some(0));
    }

    #[test]
    fn linear_curves_have_no_knee() {
        assert_eq!(knee(&[10.0, 20.0, 40.0, 80.0]), None);
        // Close together, neighbours are within the share of each other although nothing levels off.
        let close: Vec<CurvePoint> = (100..120)
            .map(|value| CurvePoint { value: f64::from(value), throughput: f64::from(value), noise: 0.0 })
            .collect();
        assert_eq!(find(&close).unwrap().knee, Knee::NotReached);
    }

    #[test]
    fn saturating_curves_have_their_knee_where_they_level_off() {
        assert_eq!(knee(&[10.0, 20.0, 40.0, 78.0, 80.0, 80.0]), Some(3));
        assert_eq!(knee(&[14.0, 28.0, 56.0, 111.0, 112.0, 110.0, 111.0, 112.0]), Some(3));
    }

    #[test]
    fn the_last_point_is_not_a_knee() {
        assert_eq!(knee(&[10.0, 20.0, 40.0, 44.0]), None);
        assert_eq!(knee(&[10.0, 20.0, 40.0, 41.0]), Some(2));
    }

    #[test]
    fn a_noisy_later_peak_does_not_move_the_knee() {
        let mut points = curve(&[25.0, 50.0, 98.0, 100.0, 99.0, 130.0], 0.01);
        assert_eq!(find(&points).unwrap().knee, Knee::NotReached, "without noise the last is a peak");
        points[5].noise = 35.0;
        assert_eq!(find(&points).unwrap(), CurveShape { peak: 5, knee: Knee::At(2) });
        // However noisy it is, it does not change the knee of the others.
        points[5].noise = 130.0;
        assert_eq!(find(&points).unwrap().knee, Knee::At(2));
    }

    #[test]
    fn a_knee_that_the_noise_does_not_carry_is_not_named() {
        // The third reaches 95 % or not, within its noise.
        let mut points = curve(&[25.0, 50.0, 94.0, 100.0, 100.0], 0.001);
        assert_eq!(find(&points).unwrap().knee, Knee::At(3));
        points[2].noise = 5.0;
        assert_eq!(find(&points).unwrap().knee, Knee::Between(2, Some(3)));
        points[2].throughput = 99.0;
        assert_eq!(find(&points).unwrap().knee, Knee::Between(2, Some(3)), "it may as well not reach it");
        points[2].noise = 1.0;
        assert_eq!(find(&points).unwrap().knee, Knee::At(2));
        // Every second measurement is twice as high.
        assert_eq!(find(&curve(&[40.0, 60.0, 100.0], 0.5)).unwrap().knee, Knee::Between(0, None));
    }

    #[test]
    fn falling_curves_have_their_knee_before_the_fall() {
        assert_eq!(knee(&[50.0, 98.0, 100.0, 70.0, 40.0]), Some(1));
        assert_eq!(knee(&[100.0, 80.0, 60.0]), Some(0));
    }

    #[test]
    fn a_single_point_is_not_a_curve() {
        assert_eq!(find(&[]), None);
        assert_eq!(find(&curve(&[100.0], 0.0)), None);
        assert_eq!(find(&curve(&[0.0, 0.0], 0.0)).unwrap().knee, Knee::At(0));
    }

    proptest! {
        #[test]
        fn the_knee_is_never_beyond_the_peak(
            throughputs in proptest::collection::vec(0.0..1e12f64, 2..20),
            noise in 0.0..0.5f64,
        ) {
            let points = curve(&throughputs, noise);
            let found = find(&points).unwrap();
            prop_assert!(found.knee.index().is_none_or(|knee| knee <= found.peak));
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
            prop_assert_eq!(find(&curve(&throughputs, 0.02)).unwrap().knee, Knee::At(rise));
        }
    }
}

//! Conversions of figures to integers of other types, for figures that are shown, counted or used as a place.
//!
//! Invariant: the result is the nearest value that the type has, and never one that has wrapped around. Where a value that
//! does not fit is an error of its source, `try_from` says so instead.

/// An integer type into which figures of the type `Figure` can be put.
pub trait Capped<Figure>: Sized {
    /// `figure`, or the type's bound that is nearest to it. What has no meaning as a number (NaN) is 0, and fractions are
    /// cut off.
    fn capped(figure: Figure) -> Self;
}

macro_rules! capped_fractions {
    ($($to:ty)*) => {$(
        impl Capped<f64> for $to {
            #[inline]
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "`as` gives the nearest bound to floating-point numbers that do not fit, and 0 to NaN"
            )]
            fn capped(figure: f64) -> Self {
                figure as Self
            }
        }
    )*};
}

macro_rules! capped_counts {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl Capped<$from> for $to {
            #[inline]
            fn capped(figure: $from) -> Self {
                // A count is not negative: only the upper bound can be exceeded.
                Self::try_from(figure).unwrap_or(Self::MAX)
            }
        }
    )*)*};
}

capped_fractions!(u16 u32 u64 u128 usize i32 i64 i128);

capped_counts! {
    u32 => i32;
    u64 => u16 u32 usize i64;
    u128 => u64 usize;
    usize => u8 u16 u32 i32 i64;
}

#[cfg(test)]
mod tests {
    use super::Capped;

    #[test]
    fn fractions_are_cut_off_and_bounds_kept() {
        assert_eq!([u64::capped(2.9), u64::capped(-1.0), u64::capped(f64::NAN)], [2, 0, 0]);
        assert_eq!([u64::capped(f64::INFINITY), u64::capped(2f64.powi(64))], [u64::MAX, u64::MAX]);
        assert_eq!([i64::capped(-2.9), i64::capped(f64::NEG_INFINITY)], [-2, i64::MIN]);
    }

    #[test]
    fn counts_that_do_not_fit_are_the_greatest_one() {
        assert_eq!([u32::capped(7_usize), u32::capped(1_u64 << 32)], [7, u32::MAX]);
        assert_eq!([u64::capped(7_u128), u64::capped(1_u128 << 64)], [7, u64::MAX]);
        assert_eq!([i64::capped(7_u64), i64::capped(u64::MAX)], [7, i64::MAX]);
    }
}

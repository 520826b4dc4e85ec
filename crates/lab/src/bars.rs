//! Bars of block characters on a logarithmic scale.
//!
//! Invariant: a scale is fixed and does not depend on what is shown, so that bars of two runs can be compared; a
//! value off the scale ends at its edge.

use fiord_stats::Capped;

/// A scale: powers of ten, evenly spaced.
#[derive(Clone, Copy, Debug)]
pub struct Bars {
    /// The power of ten at the left edge.
    pub from: i32,
    /// How many powers of ten there are up to the right edge.
    pub decades: usize,
    /// Characters for each.
    pub decade_width: usize,
}

/// A bar's last character, by eighths.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

impl Bars {
    /// The width of the whole scale, in characters.
    pub fn width(&self) -> usize {
        self.decades * self.decade_width
    }

    /// The bar of a value, without trailing blanks; at least an eighth of a character long.
    pub fn bar(&self, value: f64) -> String {
        let decades = value.log10() - f64::from(self.from);
        let eighths = (decades * self.decade_width as f64 * 8.0).round();
        let eighths = usize::capped(eighths.max(1.0)).min(self.width() * 8);
        let mut bar = "█".repeat(eighths / 8);
        bar.extend(Some(EIGHTHS[eighths % 8]).filter(|last| *last != ' '));
        bar
    }

    /// The labels of the axis, at each power of ten except the right edge.
    pub fn axis(&self) -> String {
        let mark =
            |decade: usize| format!("{:<1$}", shown(self.from + i32::capped(decade)), self.decade_width);
        (0..self.decades).map(mark).collect::<String>().trim_end().to_string()
    }
}

/// A power of ten, abbreviated: `0.1`, `100`, `10k`.
fn shown(power: i32) -> String {
    match power {
        ..0 => format!("{}", 10f64.powi(power)),
        0..3 => format!("{}", 10u64.pow(power.unsigned_abs())),
        3..6 => format!("{}k", 10u64.pow(power.unsigned_abs() - 3)),
        _ => format!("{}M", 10u64.pow(power.unsigned_abs() - 6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARS: Bars = Bars { from: -1, decades: 5, decade_width: 5 };

    #[test]
    fn a_tenfold_value_is_a_decade_longer() {
        let length = |value: f64| BARS.bar(value).chars().count();
        assert_eq!([1.0, 10.0, 100.0, 1_000.0, 10_000.0].map(length), [5, 10, 15, 20, 25]);
        assert_eq!(BARS.bar(1.0), "█████");
        assert_eq!(BARS.bar(1.2), "█████▍");
    }

    #[test]
    fn a_value_off_the_scale_ends_at_its_edge() {
        assert_eq!(BARS.bar(1e9), "█".repeat(25));
        assert_eq!([0.0, 0.01, 0.1].map(|value| BARS.bar(value)), ["▏", "▏", "▏"]);
    }

    #[test]
    fn the_axis_labels_the_powers_of_ten() {
        assert_eq!(BARS.axis(), "0.1  1    10   100  1k");
        assert_eq!(Bars { from: 2, decades: 5, decade_width: 4 }.axis(), "100 1k  10k 100k1M");
    }
}

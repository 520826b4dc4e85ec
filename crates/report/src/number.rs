//! Figures as fio shortens them: `9.89MiB`, `111k`, `379Mibit/s`.
//!
//! Invariant: a shortened figure has at most the requested digits before the point, and is rounded to nearest.

use fiord_stats::Capped;

/// How figures are shortened: the `significant_figures`, `kb_base` and `unit_base` options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// Characters a figure may take, the point included.
    pub digits: u32,
    /// Whether figures in powers of 1000 are first, those of 1024 in parentheses (`kb_base=1000`).
    pub decimal_first: bool,
    /// Whether rates are in bits (`unit_base=1`).
    pub bits: bool,
}

impl Default for Units {
    /// The defaults: four characters, powers of 1024 first, bytes.
    fn default() -> Self {
        Units::new(4, 1024, 8)
    }
}

impl Units {
    /// From the options' values.
    pub fn new(significant_figures: u32, kb_base: u32, unit_base: u32) -> Self {
        Units { digits: significant_figures.max(1), decimal_first: kb_base == 1000, bits: unit_base == 1 }
    }

    /// Bytes, in the base that is printed first: `22.1MiB`.
    pub fn bytes(&self, bytes: u64) -> String {
        self.scaled(u128::from(bytes), self.decimal_first, "B")
    }

    /// Bytes in the other base: `23.2MB`.
    pub fn bytes_other(&self, bytes: u64) -> String {
        self.scaled(u128::from(bytes), !self.decimal_first, "B")
    }

    /// A rate, in the base that is printed first: `434MiB/s`.
    pub fn rate(&self, bytes_per_second: u64) -> String {
        self.rate_in(bytes_per_second, self.decimal_first)
    }

    /// A rate in the other base: `455MB/s`.
    pub fn rate_other(&self, bytes_per_second: u64) -> String {
        self.rate_in(bytes_per_second, !self.decimal_first)
    }

    /// A count in powers of 1000: `111k`.
    pub fn count(&self, count: u64) -> String {
        shortened_count(count, self.digits)
    }

    fn rate_in(&self, bytes_per_second: u64, decimal: bool) -> String {
        let bytes = u128::from(bytes_per_second);
        if self.bits { self.scaled(bytes * 8, decimal, "bit/s") } else { self.scaled(bytes, decimal, "B/s") }
    }

    fn scaled(&self, value: u128, decimal: bool, unit: &str) -> String {
        const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
        let (base, prefixes) = if decimal { (1000, DECIMAL) } else { (1024, BINARY) };
        let (figure, power) = shorten(value, self.digits, base);
        format!("{figure}{}{unit}", prefixes[power])
    }
}

/// A count in powers of 1000, in at most `digits` characters before its suffix: `14350k`, `3602.5k`.
pub fn shortened_count(count: u64, digits: u32) -> String {
    const SUFFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let (figure, power) = shorten(u128::from(count), digits, 1000);
    format!("{figure}{}", SUFFIXES[power])
}

/// Divides `value` by `base` until its whole part has at most `digits` digits; fills the remaining characters with
/// decimals.
///
/// Returns the figure and the number of divisions.
fn shorten(value: u128, digits: u32, base: u128) -> (String, usize) {
    let (mut divisor, mut power) = (1, 0);
    while digit_count(value / divisor) > digits && power < 6 {
        divisor *= base;
        power += 1;
    }
    // The point takes a character too, so a single remaining one stays empty.
    let room = digits.saturating_sub(digit_count(value / divisor) + 1);
    let decimals = if power == 0 { 0 } else { room as usize };
    let scale = 10_u128.pow(u32::capped(decimals));
    let rounded = (value * scale * 2 + divisor) / (divisor * 2);
    if decimals == 0 {
        return (rounded.to_string(), power);
    }
    (format!("{}.{:0decimals$}", rounded / scale, rounded % scale), power)
}

fn digit_count(value: u128) -> u32 {
    value.checked_ilog10().unwrap_or(0) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_four_characters() {
        let fio = Units::default();
        for (bytes, binary, decimal) in [
            (0, "0B", "0B"),
            (1023, "1023B", "1023B"),
            (9999, "9999B", "9999B"),
            (10_000, "9.77KiB", "10.0kB"),
            (10_239, "10.00KiB", "10.2kB"),
            (1_048_063, "1023KiB", "1048kB"),
            (1_048_064, "1024KiB", "1048kB"),
            (99_999_850, "95.4MiB", "100.0MB"),
            (9_999_992_973, "9537MiB", "10000MB"),
        ] {
            assert_eq!((fio.bytes(bytes).as_str(), fio.bytes_other(bytes).as_str()), (binary, decimal));
        }
    }

    #[test]
    fn significant_figures_widen_and_narrow() {
        let with = |digits| Units::new(digits, 1024, 8);
        assert_eq!(with(1).bytes(4_796_756_657), "4GiB");
        assert_eq!(with(2).bytes(581), "1KiB");
        assert_eq!(with(3).bytes(1_474_034), "1.4MiB");
        assert_eq!(with(6).bytes(176_445_360), "172310KiB");
        assert_eq!(with(8).bytes(4_071_424), "4071424B");
    }

    #[test]
    fn bases_and_bits_follow_the_options() {
        let decimal = Units::new(4, 1000, 0);
        assert_eq!(
            (decimal.rate(33_400_000), decimal.rate_other(33_400_000)),
            ("33.4MB/s".into(), "31.9MiB/s".into())
        );
        let bits = Units::new(4, 1024, 1);
        assert_eq!(
            (bits.rate(49_650_000), bits.rate_other(49_650_000)),
            ("379Mibit/s".into(), "397Mbit/s".into())
        );
    }

    #[test]
    fn latencies_have_six_characters() {
        assert_eq!(shortened_count(182_821, 6), "182821");
        assert_eq!(shortened_count(14_350_123, 6), "14350k");
        assert_eq!(shortened_count(3_602_500, 6), "3602.5k");
    }
}

//! Parsers for sizes and durations in fiord's own options.
//!
//! Invariant: every size or duration that fiord prints can be typed back and means the same (`1.5GiB`, `4KiB`,
//! `12.3ms`, `2 min 30 s`); text that cannot be parsed in full is refused. Job options follow fio's rules and are not
//! parsed here: there `4KiB` is 4000.

use std::time::Duration;

use fiord_stats::Capped;

/// The units of size, each 1024 times the one before. `k`, `kb`, `ki` and `kib` are the same, and so on.
const SIZE_PREFIXES: &str = "kmgtpe";

/// The units of time, in nanoseconds; a number without one counts seconds.
const TIME_UNITS: [(&str, u128); 12] = [
    ("ns", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("s", SECOND_NS),
    ("sec", SECOND_NS),
    ("", SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("min", 60 * SECOND_NS),
    ("h", 3_600 * SECOND_NS),
    ("d", 86_400 * SECOND_NS),
];

const SECOND_NS: u128 = 1_000_000_000;

/// The most digits and decimals a number may have, so that no product overflows.
const DIGITS_MAX: usize = 20;
const DECIMALS_MAX: usize = 9;

/// A number with its unit, in lower case.
struct Quantity {
    /// The number without its decimal point.
    digits: u128,
    /// How many of the digits are decimals.
    decimals: u32,
    unit: String,
}

impl Quantity {
    /// The number times `factor`, rounded.
    fn times(&self, factor: u128) -> Option<u128> {
        let scale = 10u128.pow(self.decimals);
        Some((self.digits.checked_mul(factor)? + scale / 2) / scale)
    }
}

/// Parses a size, such as `4096`, `512M` or `1.5GiB`, into bytes.
///
/// # Errors
/// What is wrong, and what to write instead.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size; write 4096, 512M or 1.5GiB");
    let amounts = amounts(text).ok_or_else(wrong)?;
    let [only] = amounts.as_slice() else { return Err(wrong()) };
    let factor = size_factor(&only.unit).ok_or_else(wrong)?;
    if only.decimals > 0 && factor == 1 {
        return Err(format!("{text:?} is not a whole number of bytes"));
    }
    let bytes = only.times(factor).and_then(|bytes| u64::try_from(bytes).ok());
    bytes.ok_or_else(|| format!("{text:?} is too large"))
}

/// Parses a duration: `30`, `1500ms`, `2m`, `2 min 30 s`.
///
/// # Errors
/// What is wrong, and what to write instead.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write 30, 1500ms or 2m");
    let amounts = amounts(text).ok_or_else(wrong)?;
    if amounts.len() > 1 && amounts.iter().any(|amount| amount.unit.is_empty()) {
        return Err(wrong());
    }
    let mut all_ns: u128 = 0;
    for amount in &amounts {
        let (_, factor) = TIME_UNITS.iter().find(|(unit, _)| *unit == amount.unit).ok_or_else(wrong)?;
        all_ns += amount.times(*factor).ok_or_else(wrong)?;
    }
    let ns = u64::try_from(all_ns).map_err(|_| format!("{text:?} is too long"))?;
    Ok(Duration::from_nanos(ns))
}

/// Parses a duration that must not be zero.
///
/// # Errors
/// What is wrong, and what to write instead.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must not be zero; write 30, 30s or 2m".to_string()),
        duration => Ok(duration),
    }
}

/// Bytes per unit: `k`, `kb`, `ki`, `kib` and so on; `b` or no unit means bytes.
fn size_factor(unit: &str) -> Option<u128> {
    if ["", "b"].contains(&unit) {
        return Some(1);
    }
    let power = SIZE_PREFIXES.find(unit.chars().next()?)? + 1;
    ["", "b", "i", "ib"].contains(&&unit[1..]).then(|| 1u128 << (10 * power))
}

/// The amounts in a text, with optional blanks between numbers and units; `None` if it is empty or holds anything
/// else.
fn amounts(text: &str) -> Option<Vec<Quantity>> {
    let mut rest = text.trim();
    let mut amounts = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        let behind = behind.trim_start();
        let end = behind.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || number.ends_with('.') {
            return None;
        }
        if whole.len() > DIGITS_MAX || decimals.len() > DECIMALS_MAX {
            return None;
        }
        let digits = format!("{whole}{decimals}").parse().ok()?;
        amounts.push(Quantity {
            digits,
            decimals: u32::capped(decimals.len()),
            unit: unit.to_ascii_lowercase(),
        });
        rest = behind.trim_start();
    }
    Some(amounts).filter(|amounts| !amounts.is_empty())
}

#[cfg(test)]
mod tests {
    use fiord_report::table::{Cell, shown_bytes};

    use super::*;

    #[test]
    fn sizes_are_binary_however_their_unit_is_written() {
        for (text, bytes) in [
            ("4096", 4096),
            ("512B", 512),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("1GiB", 1 << 30),
            ("1g", 1 << 30),
            ("1 GiB", 1 << 30),
            ("512MB", 512 << 20),
            ("2Ti", 2 << 40),
            ("1.5g", 3 << 29),
            ("79.7GiB", 85_577_223_373),
            ("1PiB", 1 << 50),
            ("15EiB", 15 << 60),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn times_have_seconds_where_they_have_no_unit() {
        for (text, ms) in [
            ("30", 30_000),
            ("30s", 30_000),
            ("45 s", 45_000),
            ("2m", 120_000),
            ("2min", 120_000),
            ("2 min 30 s", 150_000),
            ("1500ms", 1_500),
            ("1.07s", 1_070),
            ("0.5", 500),
            ("0", 0),
            ("30d", 30 * 86_400_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(duration("850ns"), Ok(Duration::from_nanos(850)));
        assert!(positive_duration("0").is_err());
    }

    #[test]
    fn printed_amounts_can_be_typed() {
        for shift in 0..64 {
            for bytes in [1u64 << shift, (1u64 << shift) | (1 << shift >> 3), (1u64 << shift) - 1] {
                let shown = shown_bytes(bytes);
                match size(&shown) {
                    Ok(read) => assert_same(read, bytes, &shown),
                    // The largest is shown as a number that exceeds 64 bits.
                    Err(_) => assert_eq!(shown, "16EiB"),
                }
            }
        }
        for power in 0..12 {
            for ns in [10u64.pow(power), 123 * 10u64.pow(power) / 100, 98 * 10u64.pow(power)] {
                let shown = Cell::Latency(ns).shown();
                assert_same(duration(&shown).unwrap().as_nanos() as u64, ns, &shown);
            }
        }
    }

    /// Asserts that the parsed value is the shown one, to its three digits.
    #[track_caller]
    fn assert_same(read: u64, figure: u64, shown: &str) {
        assert!(
            read.abs_diff(figure) as f64 <= 0.0051 * figure as f64,
            "{figure}: {shown} is read as {read}"
        );
    }

    #[test]
    fn nothing_is_read_in_part() {
        for text in [
            "",
            " ",
            "lots",
            "-3",
            "1.5",
            "1.",
            ".5k",
            "4kx",
            "1GiBs",
            "4k,8k",
            "4k-8k",
            "1g 512m",
            "1e3",
            "99999999T",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["", "soon", "5 parsecs", "-3", "1.", "30days", "1m 30", "30*1", "1-2", "99999999999d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}

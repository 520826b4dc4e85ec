//! Figures as words.
//!
//! Invariant: a figure has the same text wherever it occurs, with its unit.

use fiord_report::table::Cell;
use fiord_stats::Capped;

/// Bytes: `22.1MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    Cell::Bytes(bytes).shown()
}

/// A time: `187us`.
pub(crate) fn time(ns: f64) -> String {
    Cell::Latency(u64::capped(ns.max(0.0).round())).shown()
}

/// A count with its digits in groups, or a small rate with decimals: `106 811`, `3.2`.
pub(crate) fn count(count: f64) -> String {
    if count < 10.0 && count.fract() != 0.0 {
        return format!("{count:.1}");
    }
    let digits = format!("{count:.0}");
    let lead = digits.len() % 3;
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && index % 3 == lead {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A share: `2.3 %`, `0.06 %`, `96 %`.
pub(crate) fn percent(share: f64) -> String {
    match share {
        0.0 => "0 %".to_string(),
        share if share < 0.1 => format!("{share:.2} %"),
        share if share < 10.0 => format!("{share:.1} %"),
        share => format!("{share:.0} %"),
    }
}

/// A ratio: `1.4 times`, `38 times`.
pub(crate) fn times(ratio: f64) -> String {
    if ratio < 10.0 { format!("{ratio:.1} times") } else { format!("{} times", count(ratio)) }
}

/// A noun with its number: `1 read`, `3 reads`.
pub(crate) fn number_of(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number as f64))
}

/// Several texts as a list: `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_units() {
        assert_eq!(
            [1.5, 12.0, 5661.0, 106_811.3, 1e6].map(count),
            ["1.5", "12", "5,661", "106,811", "1,000,000"]
        );
        assert_eq!([0.0, 0.06, 2.34, 95.6].map(percent), ["0 %", "0.06 %", "2.3 %", "96 %"]);
        assert_eq!([1.44, 38.2].map(times), ["1.4 times", "38 times"]);
        assert_eq!((number_of(1, "read"), number_of(2000, "sync")), ("1 read".into(), "2,000 syncs".into()));
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}

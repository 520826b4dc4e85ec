//! Figures as people read them: three digits and a unit.
//!
//! Invariant: a figure that is not finite is a dash.

/// A figure with its exact value, as a `data` element shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figure {
    /// As it is shown.
    pub text: String,
    /// The exact value, in the base unit; empty without one.
    pub exact: String,
}

impl Figure {
    /// There is none.
    pub(crate) fn none() -> Figure {
        Figure { text: "–".to_string(), exact: String::new() }
    }

    fn of(text: String, exact: impl ToString) -> Figure {
        Figure { text, exact: exact.to_string() }
    }

    /// I/Os per second.
    pub(crate) fn rate(per_s: Option<f64>) -> Figure {
        per_s.map_or_else(Figure::none, |per_s| Figure::of(count(per_s), per_s))
    }

    /// A number of things.
    pub(crate) fn count(number: Option<u64>) -> Figure {
        number.map_or_else(Figure::none, |number| Figure::of(grouped(number), number))
    }

    /// Bytes per second.
    pub(crate) fn bandwidth(bytes_per_s: Option<u64>) -> Figure {
        bytes_per_s.map_or_else(Figure::none, |bytes| Figure::of(format!("{}/s", size(bytes as f64)), bytes))
    }

    /// Bytes.
    pub(crate) fn bytes(bytes: Option<u64>) -> Figure {
        bytes.map_or_else(Figure::none, |bytes| Figure::of(size(bytes as f64), bytes))
    }

    /// A time in nanoseconds.
    pub(crate) fn time(ns: Option<f64>) -> Figure {
        ns.map_or_else(Figure::none, |ns| Figure::of(time(ns), ns))
    }

    /// An amount of this unit.
    pub(crate) fn amount(amount: Option<f64>, unit: &str) -> Figure {
        amount.map_or_else(Figure::none, |amount| Figure::of(scaled(amount, 1000.0, &[unit]), amount))
    }

    /// A share in percent.
    pub(crate) fn percent(percent: Option<f64>) -> Figure {
        percent.map_or_else(Figure::none, |percent| Figure::of(format!("{percent:.1} %"), percent))
    }
}

/// Three digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        0.0 => 0,
        0.0..0.01 => 4,
        0.01..1.0 => 2,
        1.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    if !value.is_finite() {
        return "–".to_string();
    }
    let mut value = value;
    let mut index = 0;
    while value.abs() >= base * 0.9995 && index + 1 < units.len() {
        value /= base;
        index += 1;
    }
    let unit = units[index];
    let blank = if unit.is_empty() { "" } else { "\u{a0}" };
    format!("{}{blank}{unit}", digits(value))
}

/// A count: `23.7 k`.
pub(crate) fn count(value: f64) -> String {
    scaled(value, 1000.0, &["", "k", "M", "G"])
}

/// A size: `92.6 MiB`.
pub(crate) fn size(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A time: `92 µs`.
pub(crate) fn time(ns: f64) -> String {
    scaled(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A time of a run in seconds: `12.5 s`.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s >= 7200.0 => format!("{}\u{a0}h", digits(s / 3600.0)),
        s if s >= 300.0 => format!("{}\u{a0}min", digits(s / 60.0)),
        s => format!("{}\u{a0}s", digits(s)),
    }
}

/// A whole number with its digits in groups of three.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_string();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push('\u{202f}');
        }
        text.extend(group.iter().copied().map(char::from));
    }
    text
}

/// A percentile's name: `99.9`.
pub(crate) fn percentile(percent: f64) -> String {
    let text = format!("{percent:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(count(23_712.4), "23.7\u{a0}k");
        assert_eq!(count(0.0), "0");
        assert_eq!(size(97_099_187.0), "92.6\u{a0}MiB");
        assert_eq!(time(92_160.0), "92.2\u{a0}µs");
        assert_eq!(time(999_990.0), "1\u{a0}ms");
        assert_eq!(seconds(3600.0), "60\u{a0}min");
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(percentile(99.99), "99.99");
        assert_eq!(Figure::time(None).text, "–");
        assert_eq!(time(f64::NAN), "–");
    }
}

//! Figures as reports shorten them: `9.89MiB`, `111k`, `379Mibit/s`, `500.00us`.
//!
//! Invariant: a text that is not a figure with a known unit as a whole is `None`.

/// Which powers a prefix without `i` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefixes {
    /// `kB` is 1000 bytes and `KiB` 1024: fio 3.
    Precise,
    /// `KB` is 1024 bytes: fio 2.
    Binary,
}

/// A count: `5661`, `49.6k`.
pub(crate) fn count(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    let (power, rest) = prefix(unit);
    rest.is_empty().then_some(number * 1000f64.powi(power))
}

/// A whole number.
pub(crate) fn whole(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Any finite number without a unit.
pub(crate) fn plain(text: &str) -> Option<f64> {
    let starts = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    text.parse().ok().filter(|number: &f64| starts && number.is_finite())
}

/// A share: `99.6%`.
pub(crate) fn percent(text: &str) -> Option<f64> {
    plain(text.strip_suffix('%')?)
}

/// Bytes, or bytes per second: `22.1MiB`, `455MB/s`, `379Mibit/s`; `0` alone has no unit.
pub(crate) fn bytes(text: &str, prefixes: Prefixes) -> Option<f64> {
    let (number, unit) = split(text)?;
    let (power, rest) = prefix(unit);
    let (base, rest) = match rest.strip_prefix('i') {
        Some(rest) => (1024f64, rest),
        None if prefixes == Prefixes::Binary => (1024.0, rest),
        None => (1000.0, rest),
    };
    let unit = rest.strip_suffix("/s").unwrap_or(rest);
    let bytes = match unit {
        "B" => 1.0,
        "bit" => 0.125,
        "" if number == 0.0 => 0.0,
        _ => return None,
    };
    Some(number * base.powi(power) * bytes)
}

/// A duration in nanoseconds: `51msec`, `500.00us`; `0` alone has no unit.
pub(crate) fn duration_ns(text: &str) -> Option<f64> {
    let (number, unit) = split(text)?;
    match unit {
        "" => (number == 0.0).then_some(0.0),
        unit => Some(number * unit_ns(unit)?),
    }
}

/// A unit of time in nanoseconds.
pub(crate) fn unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "nsec" | "ns" => Some(1.0),
        "usec" | "us" => Some(1e3),
        "msec" | "ms" => Some(1e6),
        "sec" | "s" => Some(1e9),
        _ => None,
    }
}

/// The number at the front, and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((plain(number)?, unit))
}

/// The power of a prefix, and what follows it.
fn prefix(unit: &str) -> (i32, &str) {
    let powers = [("k", 1), ("K", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5), ("E", 6)];
    let found = powers.iter().find_map(|(letter, power)| Some((*power, unit.strip_prefix(letter)?)));
    found.unwrap_or((0, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_in_both_bases() {
        let precise = |text| bytes(text, Prefixes::Precise);
        assert_eq!(precise("22.5MiB"), Some(22.5 * 1_048_576.0));
        assert_eq!(precise("455MB/s"), Some(455e6));
        assert_eq!(precise("6882kB/s"), Some(6_882_000.0));
        assert_eq!(precise("8Mibit/s"), Some(1_048_576.0));
        assert_eq!(precise("8Mbit/s"), Some(1e6));
        assert_eq!(precise("512B"), Some(512.0));
        assert_eq!(bytes("4KB", Prefixes::Binary), Some(4096.0));
        assert_eq!((count("49.6k"), count("5661")), (Some(49_600.0), Some(5661.0)));
        assert_eq!((percent("99.6%"), duration_ns("51msec")), (Some(99.6), Some(51e6)));
        assert_eq!((duration_ns("0"), duration_ns("0.00ns")), (Some(0.0), Some(0.0)));
    }

    #[test]
    fn what_is_not_a_figure_is_refused() {
        assert_eq!((bytes("0", Prefixes::Precise), bytes("1", Prefixes::Precise)), (Some(0.0), None));
        for text in ["", "k", "1..2", "4x", "MiB", "1e5k", "inf", "nan", "4 k"] {
            assert_eq!(
                (count(text), bytes(text, Prefixes::Precise), percent(text)),
                (None, None, None),
                "{text}"
            );
        }
        assert_eq!((duration_ns("5"), duration_ns("5 parsecs"), plain("+1")), (None, None, None));
    }
}

//! Values to sweep over: lists, and ranges in powers of two.
//!
//! Invariant: values come in the order they were written, a range from its beginning to its end, both included; none
//! comes twice.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use fiord_report::path;
use fiord_stats::Capped;

/// One value of a swept option.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptValue {
    /// As it is written into the job: `64k`, or any bytes.
    pub setting: OsString,
    /// As it is shown.
    pub text: String,
    /// Its number, in the unit of its option: 65536. `None` if the values are words.
    pub number: Option<f64>,
}

/// Most values one option may be given.
const VALUES_MAX: usize = 1000;

/// The size suffixes, each 1024 times the one before.
const SIZE_SUFFIXES: [&str; 6] = ["", "k", "m", "g", "t", "p"];

/// Reads a single value as a number.
pub type Number<'a> = &'a dyn Fn(&str) -> Option<f64>;

/// The values of a list such as `4k,16k,64k`, `1..120` or `1,8..64`. Without `number` they are text, such as paths, and
/// dots in them have no meaning.
///
/// # Errors
/// What is wrong with the list, one sentence, and what to write instead.
pub fn values(list: &OsStr, number: Option<Number<'_>>) -> Result<Vec<SweptValue>, String> {
    let mut values: Vec<SweptValue> = Vec::new();
    for item in list.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        let item = OsStr::from_bytes(item);
        let range = number.and_then(|number| Some((item.to_str()?.split_once("..")?, number)));
        let settings: Vec<OsString> = match range {
            Some(((from, to), number)) => {
                doublings(from.trim(), to.trim(), number)?.into_iter().map(OsString::from).collect()
            }
            None if item.is_empty() => {
                return Err(format!("\"{}\" has an empty item; remove it", path::text(list)));
            }
            None => vec![item.to_os_string()],
        };
        for setting in settings {
            let number = number.zip(setting.to_str()).and_then(|(number, text)| number(text));
            let value = SweptValue { number, text: path::text(&setting), setting };
            if values.iter().any(|known| same(known, &value)) {
                return Err(format!("{} is listed twice; remove one", value.text));
            }
            values.push(value);
        }
        if values.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values; use fewer"));
        }
    }
    Ok(values)
}

fn same(one: &SweptValue, other: &SweptValue) -> bool {
    one.setting == other.setting || (one.number.is_some() && one.number == other.number)
}

/// From one end to the other, each value twice the previous one; the end is always included.
fn doublings(from: &str, to: &str, number: Number<'_>) -> Result<Vec<String>, String> {
    let read = |text: &str| {
        number(text).ok_or_else(|| {
            format!("{from}..{to}: {text:?} is not a number; separate words with commas: \"read,write\"")
        })
    };
    let (first, last) = (read(from)?, read(to)?);
    if first <= 0.0 {
        return Err(format!("{from}..{to} cannot be doubled from {from}; write 0,1..{to}"));
    }
    if last < first {
        return Err(format!("{from}..{to} is descending; write {to}..{from}"));
    }
    let digits = from.bytes().take_while(u8::is_ascii_digit).count();
    let (count, suffix) = from.split_at(digits);
    let count: u64 = count
        .parse()
        .ok()
        .filter(|_| !suffix.contains('.'))
        .ok_or_else(|| format!("{from}..{to}: {from:?} is not a whole number; write each value"))?;
    let times = (0..u64::BITS).take_while(|doublings| first * 2f64.powi(i32::capped(*doublings)) < last);
    let mut texts: Vec<String> = times.map(|doublings| larger_unit(count << doublings, suffix)).collect();
    texts.push(to.to_string());
    Ok(texts)
}

/// The same size in the largest unit that leaves a whole number; without a suffix, or with another one, as it is.
fn larger_unit(mut count: u64, suffix: &str) -> String {
    let known = SIZE_SUFFIXES.iter().position(|known| *known == suffix.to_lowercase());
    let Some(mut unit) = known.filter(|unit| *unit > 0) else { return format!("{count}{suffix}") };
    let upper = suffix.chars().all(char::is_uppercase);
    while count.is_multiple_of(1024) && unit + 1 < SIZE_SUFFIXES.len() {
        (count, unit) = (count / 1024, unit + 1);
    }
    // Most people write k in lower case and larger units in upper case; a list that starts in upper case keeps it.
    let suffix = SIZE_SUFFIXES[unit];
    if upper || unit > 1 { format!("{count}{}", suffix.to_uppercase()) } else { format!("{count}{suffix}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sizes as fio reads them, without the odd cases.
    fn number(text: &str) -> Option<f64> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (count, suffix) = text.split_at(digits);
        let unit = SIZE_SUFFIXES.iter().position(|known| *known == suffix.to_lowercase())?;
        Some(count.parse::<f64>().ok()? * 1024f64.powi(unit as i32))
    }

    fn texts(list: &str) -> String {
        match values(OsStr::new(list), Some(&number)) {
            Ok(values) => values.into_iter().map(|value| value.text).collect::<Vec<_>>().join(" "),
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn lists_keep_the_order_and_spelling_of_their_values() {
        assert_eq!(texts("4k, 16k,64K"), "4k 16k 64K");
        assert_eq!(texts("read,write"), "read write");
        assert_eq!(texts("1,8..32"), "1 8 16 32");
    }

    #[test]
    fn ranges_double_and_include_their_end() {
        assert_eq!(texts("1..120"), "1 2 4 8 16 32 64 120");
        assert_eq!(texts("1..64"), "1 2 4 8 16 32 64");
        assert_eq!(texts("3..3"), "3");
        assert_eq!(texts("256k..4M"), "256k 512k 1M 2M 4M");
        assert_eq!(texts("512..2k"), "512 1024 2k");
        assert_eq!(texts("4K..8M").split(' ').count(), 12);
    }

    #[test]
    fn units_of_time_are_kept() {
        let milliseconds = |text: &str| text.strip_suffix("ms")?.parse().ok();
        let values = values(OsStr::new("1ms..5ms"), Some(&milliseconds)).unwrap();
        let texts: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
        assert_eq!(texts, ["1ms", "2ms", "4ms", "5ms"]);
    }

    #[test]
    fn text_may_be_any_bytes_and_contain_dots() {
        let list = OsStr::from_bytes(b"../a,b\xff,b\xfe");
        let values = values(list, None).unwrap();
        let settings: Vec<&[u8]> = values.iter().map(|value| value.setting.as_bytes()).collect();
        assert_eq!(settings, [&b"../a"[..], b"b\xff", b"b\xfe"]);
        let texts: Vec<&str> = values.iter().map(|value| value.text.as_str()).collect();
        assert_eq!(texts, ["../a", r"b\xff", r"b\xfe"]);
    }

    #[test]
    fn fractions_are_not_doubled() {
        let decimal = |text: &str| text.parse().ok();
        assert!(values(OsStr::new("1.5..6"), Some(&decimal)).unwrap_err().contains("write each value"));
        assert_eq!(values(OsStr::new("1.5,2.5"), Some(&decimal)).unwrap().len(), 2);
    }

    #[test]
    fn errors_name_the_problem_and_a_remedy() {
        for (list, expected) in [
            ("4k,,8k", "empty item; remove it"),
            ("", "empty item"),
            ("read..write", "separate words with commas"),
            ("0..64", "write 0,1..64"),
            ("64..1", "write 1..64"),
            ("4k,4096", "4096 is listed twice"),
            ("8,1..8", "8 is listed twice"),
            ("x4..8", "is not a number"),
        ] {
            assert!(
                texts(list).starts_with("error: ") && texts(list).contains(expected),
                "{list}: {}",
                texts(list)
            );
        }
    }

    proptest! {
        #[test]
        fn ranges_increase_and_include_both_ends(from in 1u32..10_000, span in 0u32..1_000_000) {
            let to = from + span;
            let values = values(OsStr::new(&format!("{from}..{to}")), Some(&number)).unwrap();
            let numbers: Vec<f64> = values.iter().filter_map(|value| value.number).collect();
            prop_assert_eq!(numbers.first(), Some(&f64::from(from)));
            prop_assert_eq!(numbers.last(), Some(&f64::from(to)));
            prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2.0 * pair[0]));
        }

        #[test]
        fn no_list_panics(list in "[0-9kmM.,a-z ]{0,24}") {
            let _ = values(OsStr::new(&list), Some(&number));
        }
    }
}

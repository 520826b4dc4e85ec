//! The bytes of the static binary by crate, and the rule for how many a change may add.
//!
//! Invariant: the figures are of the binary's symbols; what has none (tables, strings, unwinding) is counted as `other`, so that
//! all lines add up to the file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::processor::Processor;
use crate::repo;

const RECORD: &str = "bench/binary.json";

/// The most bytes that the binary may have.
pub const BYTES_MAX: u64 = 11_000_000;

/// The most bytes by which it may have grown since the record without a reason in it.
const GROWTH_MAX: u64 = 150_000;

/// Crates that the table names; the rest are one line.
const LINES_MAX: usize = 24;

/// What has no symbol.
const OTHER: &str = "other";

/// Bytes by crate.
type Sizes = BTreeMap<String, u64>;

/// Counts the bytes of each crate in a binary that has its symbols.
pub fn by_crate(binary: &Path, of: &Processor) -> Result<Sizes, String> {
    let mut nm = of.binutil("nm");
    nm.args(["--demangle", "--print-size", "--defined-only"]).arg(binary);
    Ok(sizes_of(&repo::output_of(nm)?))
}

/// Removes the symbols. Cargo keeps its own link to the file that had them.
pub fn strip(binary: &Path, of: &Processor) -> Result<(), String> {
    let stripped = binary.with_extension("stripped");
    let mut strip = of.binutil("strip");
    strip.arg("-o").arg(&stripped).arg(binary);
    repo::output_of(strip)?;
    std::fs::rename(&stripped, binary).map_err(|error| format!("{}: {error}", binary.display()))
}

/// Prints what each crate takes of a stripped binary of `bytes`.
pub fn print(sizes: &Sizes, bytes: u64) {
    let mut lines: Vec<(&str, u64)> = sizes.iter().map(|(name, size)| (name.as_str(), *size)).collect();
    lines.sort_by_key(|(name, size)| (std::cmp::Reverse(*size), *name));
    let named = lines.len().min(LINES_MAX);
    let rest: u64 = lines[named..].iter().map(|(_, size)| size).sum();
    lines.truncate(named);
    lines.push((OTHER, bytes.saturating_sub(sizes.values().sum()) + rest));
    for (name, size) in lines {
        println!("  {:<20} {:>11}", name, with_commas(size));
    }
}

/// Whether the binary may have so many bytes: the limit, and what the record says.
pub fn check(bytes: u64) -> Result<(), String> {
    let record = repo::read(RECORD).ok_or_else(|| format!("{RECORD}: cannot be read"))?;
    let record: Value = serde_json::from_str(&record).map_err(|error| format!("{RECORD}: {error}"))?;
    judge(bytes, record["bytes"].as_u64().unwrap_or(0))
}

fn judge(bytes: u64, recorded: u64) -> Result<(), String> {
    if bytes > BYTES_MAX {
        return Err(format!("the binary has {bytes} bytes, more than {BYTES_MAX}: take something out"));
    }
    match bytes.saturating_sub(recorded) {
        growth if growth > GROWTH_MAX => Err(format!(
            "the binary has {growth} bytes more than {RECORD} says ({bytes} for {recorded}), which may be {GROWTH_MAX}: say \
             why in its \"reasons\", and run cargo x dist --record"
        )),
        _ => Ok(()),
    }
}

/// Writes the record; its reasons stay.
pub fn record(sizes: &Sizes, bytes: u64) -> Result<(), String> {
    let before = repo::read(RECORD).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let reasons = before.map_or_else(|| json!([]), |record| record["reasons"].clone());
    let by_crate: Map<String, Value> = sizes.iter().map(|(name, size)| (name.clone(), json!(size))).collect();
    let record = json!({ "bytes": bytes, "reasons": reasons, "by_crate": by_crate });
    repo::write(RECORD, &format!("{record:#}\n"))
}

/// The sizes in what `nm` prints: address, size, kind and name of each symbol.
fn sizes_of(symbols: &str) -> Sizes {
    let mut sizes = Sizes::new();
    for line in symbols.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(_), Some(size), Some(kind), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        // What is zero at the start takes no bytes of the file.
        if kind.eq_ignore_ascii_case("b") {
            continue;
        }
        let Ok(size) = u64::from_str_radix(size, 16) else { continue };
        *sizes.entry(crate_of(name)).or_default() += size;
    }
    sizes
}

/// The crate of a symbol: the first part of its path, or of the path of the type that implements it. A name without a path
/// is C's.
fn crate_of(symbol: &str) -> String {
    let path = symbol.trim_start_matches(['<', '&', '*', '[', '(']);
    let path =
        ["mut ", "dyn ", "const "].iter().fold(path, |path, word| path.strip_prefix(word).unwrap_or(path));
    match path.split_once("::") {
        Some((name, _)) if name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') => {
            name.to_string()
        }
        _ => "C".to_string(),
    }
}

/// A number with its digits in groups of three.
pub fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let comma = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    let group = |(place, digit): (usize, char)| [comma(place).then_some(','), Some(digit)];
    digits.chars().enumerate().flat_map(group).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_counted_for_their_crates() {
        let symbols = "0000000000001000 0000000000000010 T fiord_plan::build::plan\n\
                       0000000000001010 0000000000000020 t <fiord_plan::Job as core::fmt::Debug>::fmt\n\
                       0000000000001030 0000000000000004 t <&mut dyn core::fmt::Write>::write\n\
                       0000000000001040 0000000000000100 b fiord_sys::STOCK\n\
                       0000000000001050 0000000000000008 T sqlite3_open\n\
                       0000000000001060 T without_a_size\n";
        let expected = [("C", 8), ("core", 4), ("fiord_plan", 0x30)];
        assert_eq!(sizes_of(symbols), expected.map(|(name, size)| (name.to_string(), size)).into());
    }

    #[test]
    fn digits_are_in_groups_of_three() {
        assert_eq!([0, 999, 1000, 9_987_654].map(with_commas), ["0", "999", "1,000", "9,987,654"]);
    }

    #[test]
    fn growth_needs_a_reason_and_has_a_limit() {
        assert_eq!(judge(9_150_000, 9_000_000), Ok(()));
        assert_eq!(judge(8_000_000, 9_000_000), Ok(()));
        assert!(judge(9_150_001, 9_000_000).is_err_and(|why| why.contains("150001 bytes more")));
        assert!(judge(BYTES_MAX + 1, BYTES_MAX).is_err_and(|why| why.contains("take something out")));
    }
}

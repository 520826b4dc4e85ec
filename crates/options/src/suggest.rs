//! The name somebody probably meant.
//!
//! Invariant: a suggestion is always one of the names offered, and never the name asked for.

/// The candidate nearest to `typed`, if it is near enough to be a slip: at most one edit per three characters,
/// counting insertions, deletions, substitutions and swaps of neighbours as one edit each.
pub fn nearest<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = letters(&typed.to_ascii_lowercase());
    let edits_max = (typed.len() / 3).max(1);
    candidates
        .filter(|candidate| candidate.len() > 1)
        .filter_map(|candidate| Some((distance(&typed, &letters(candidate), edits_max)?, candidate)))
        .min_by_key(|(edits, candidate)| (*edits, candidate.len()))
        .map(|(_, candidate)| candidate)
}

/// The letters of a name; `-` and `_` are the same.
fn letters(name: &str) -> Vec<char> {
    name.chars().map(|letter| if letter == '-' { '_' } else { letter }).collect()
}

/// Edit distance in which a swap of two neighbours is one edit (optimal string alignment); `None` beyond `edits_max`.
fn distance(left: &[char], right: &[char], edits_max: usize) -> Option<usize> {
    // So many letters more or less are as many edits; a line that lacks its "=" can be very long.
    if left.len().abs_diff(right.len()) > edits_max {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for row in 1..=left.len() {
        let mut cells = Vec::with_capacity(last.len());
        cells.push(row);
        for column in 1..=right.len() {
            let substituted = last[column - 1] + usize::from(left[row - 1] != right[column - 1]);
            let mut edits = substituted.min(last[column] + 1).min(cells[column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                edits = edits.min(before_last[column - 2] + 1);
            }
            cells.push(edits);
        }
        // A cell is never less than the least of the two rows above it.
        if cells.iter().chain(&last).all(|edits| *edits > edits_max) {
            return None;
        }
        before_last = std::mem::replace(&mut last, cells);
    }
    last.last().copied().filter(|edits| *edits <= edits_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["iodepth", "bs", "bsrange", "output-format", "rw", "numjobs"];

    fn suggestion(typed: &str) -> Option<&'static str> {
        nearest(typed, NAMES.into_iter())
    }

    #[test]
    fn slips_find_their_name() {
        assert_eq!(suggestion("iodpeth"), Some("iodepth"));
        assert_eq!(suggestion("numjob"), Some("numjobs"));
        assert_eq!(suggestion("wr"), Some("rw"));
        assert_eq!(suggestion("output_fromat"), Some("output-format"));
        assert_eq!(suggestion("IODEPTH"), Some("iodepth"));
    }

    #[test]
    fn strangers_find_nothing() {
        assert_eq!(suggestion("colour"), None);
        assert_eq!(suggestion("zz"), None);
        assert_eq!(suggestion(""), None);
        assert_eq!(suggestion(&"x".repeat(10_000_000)), None);
    }

    #[test]
    fn distances_are_counted_as_described() {
        let within =
            |left: &str, right: &str, edits_max| distance(&letters(left), &letters(right), edits_max);
        assert_eq!(within("", "abc", 3), Some(3));
        assert_eq!(within("abc", "acb", 3), Some(1));
        assert_eq!(within("kitten", "sitting", 3), Some(3));
        assert_eq!(within("kitten", "sitting", 2), None);
        assert_eq!(within("abcdefgh", "badcfehg", 4), Some(4));
        assert_eq!(within("xxxxxxxx", "yyyyyyyy", 3), None);
    }
}

//! The name somebody probably meant.
//!
//! Invariant: a suggestion is always one of the names offered, and never the name asked for.

/// The candidate nearest to `typed`, if it is near enough to be a slip: at most one edit per three characters,
/// counting insertions, deletions, substitutions and swaps of neighbours as one edit each.
pub fn nearest<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let length = typed.chars().count();
    let limit = (length / 3).max(1);
    candidates
        // So many characters more or less are as many edits; a line without "=" can be very long.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= limit)
        .map(|candidate| (distance(&typed, &candidate.replace('-', "_")), candidate))
        .filter(|(edits, candidate)| *edits <= limit && candidate.len() > 1)
        .min_by_key(|(edits, candidate)| (*edits, candidate.len()))
        .map(|(_, candidate)| candidate)
}

/// Edit distance in which a swap of two neighbours is one edit (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (row, cells) in rows.iter_mut().enumerate() {
        cells[0] = row;
    }
    for (column, cell) in rows[0].iter_mut().enumerate() {
        *cell = column;
    }
    for row in 1..=left.len() {
        for column in 1..=right.len() {
            let substituted = rows[row - 1][column - 1] + usize::from(left[row - 1] != right[column - 1]);
            let mut edits = substituted.min(rows[row - 1][column] + 1).min(rows[row][column - 1] + 1);
            let swapped = row > 1
                && column > 1
                && left[row - 1] == right[column - 2]
                && left[row - 2] == right[column - 1];
            if swapped {
                edits = edits.min(rows[row - 2][column - 2] + 1);
            }
            rows[row][column] = edits;
        }
    }
    rows[left.len()][right.len()]
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
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

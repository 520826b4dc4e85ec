//! Suggests the name that was probably meant.
//!
//! Invariant: a suggestion is always one of the candidates, and never the typed name.

/// The candidate nearest to `typed`, if it is near enough to be a typing error: at most one edit per three characters,
/// counting insertions, deletions, substitutions and swaps of neighbours as one edit each.
pub fn nearest<'a>(typed: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = comparable(typed);
    let edits_max = (typed.chars().count() / 3).max(1);
    // Every letter more or less is an edit; a line that lacks its "=" can be very long.
    let is_near = |name: &str| name.chars().count().abs_diff(typed.chars().count()) <= edits_max;
    candidates
        .filter(|candidate| candidate.len() > 1 && is_near(candidate))
        .map(|candidate| (strsim::osa_distance(&typed, &comparable(candidate)), candidate))
        .filter(|(edits, _)| *edits <= edits_max)
        .min_by_key(|(edits, candidate)| (*edits, candidate.len()))
        .map(|(_, candidate)| candidate)
}

/// The name in lower case; `-` and `_` are the same.
fn comparable(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
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
}

//! Text in columns of a terminal: width, cutting, alignment.
//!
//! Invariant: a wide character takes two columns and a combining one none, and neither is separated from its base.

use unicode_width::UnicodeWidthStr;

/// The width of a text on a terminal, in columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The longest prefix of a text that fits into `columns_max`.
pub fn cut(text: &str, columns_max: usize) -> &str {
    let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
    let end = ends.take_while(|end| width(&text[..*end]) <= columns_max).last().unwrap_or(0);
    &text[..end]
}

/// The text, or its beginning and an ellipsis if it is wider than `columns_max`.
pub fn shortened(text: &str, columns_max: usize) -> String {
    match width(text) <= columns_max {
        true => text.to_string(),
        false => format!("{}…", cut(text, columns_max.saturating_sub(1)).trim_end()),
    }
}

/// The text, or an ellipsis and its end if it is wider than `columns_max`: what differs between paths is at their ends.
pub fn shortened_at_start(text: &str, columns_max: usize) -> String {
    if width(text) <= columns_max {
        return text.to_string();
    }
    let mut ends = text.char_indices().map(|(at, _)| &text[at..]);
    let end = ends.find(|end| width(end) < columns_max).unwrap_or_default();
    format!("…{end}")
}

/// The text at the left of a field of `columns`; unchanged if it is wider.
pub fn left_aligned(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// The text at the right of a field of `columns`; unchanged if it is wider.
pub fn right_aligned(text: &str, columns: usize) -> String {
    format!("{:1$}{text}", "", columns.saturating_sub(width(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_combining_ones_none() {
        assert_eq!(width("ディスク"), 8);
        assert_eq!(width("e\u{301}t\u{e9}"), 3);
    }

    #[test]
    fn a_cut_separates_no_character_from_its_marks() {
        assert_eq!(cut("ディスク", 5), "ディ");
        assert_eq!(cut("e\u{301}t\u{e9}", 1), "e\u{301}");
        assert_eq!(cut("disk", 0), "");
        assert_eq!(cut("disk", 9), "disk");
    }

    #[test]
    fn what_is_shortened_fits() {
        assert_eq!((shortened("disk", 4), shortened("disks", 4)), ("disk".to_string(), "dis…".to_string()));
        assert_eq!(shortened_at_start("/mnt/disk", 9), "/mnt/disk");
        assert_eq!(shortened_at_start("/mnt/disk", 6), "…/disk");
        assert_eq!(shortened_at_start("ディスク", 5), "…スク");
        assert_eq!(shortened_at_start("disk", 0), "…");
    }

    #[test]
    fn fields_are_as_wide_as_requested() {
        assert_eq!(left_aligned("ディ", 6) + "|", "ディ  |");
        assert_eq!(right_aligned("e\u{301}", 3), "  e\u{301}");
        assert_eq!(left_aligned("disk", 2), "disk");
    }
}

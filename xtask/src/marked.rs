//! Pages written by hand with a generated part between two marks.
//!
//! Invariant: nothing outside the marks changes.

/// The page with the part between `start` and `end` replaced; the error names missing marks.
pub fn replace(page: &str, start: &str, end: &str, inner: &str) -> Result<String, String> {
    let lacks = || format!("needs the lines\n{start}{end}where the generated part belongs");
    let (before, rest) = page.split_once(start).ok_or_else(lacks)?;
    let (_, after) = rest.split_once(end).ok_or_else(lacks)?;
    Ok(format!("{before}{start}{inner}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_part_between_the_marks_changes() {
        assert_eq!(replace("a <b>c</b> d", "<b>", "</b>", "e").unwrap(), "a <b>e</b> d");
        assert!(replace("a <b>c", "<b>", "</b>", "e").unwrap_err().contains("<b></b>"));
        assert!(replace("</b><b>", "<b>", "</b>", "e").is_err());
    }
}

//! The tables in documents are complete: every row has as many cells as its heading.
//!
//! Invariant: a cell more than the heading has is never accepted, because Markdown drops it without a warning.

/// One line per row of this document that has more or fewer cells than the heading of its table.
pub fn check(file: &str, text: &str) -> Vec<String> {
    if !file.ends_with(".md") {
        return Vec::new();
    }
    let (mut wrong, mut heading_cells, mut is_code) = (Vec::new(), None, false);
    for (index, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.starts_with('|') {
            heading_cells = None;
            continue;
        }
        let (cells, expected) = (cells(line), *heading_cells.get_or_insert(cells(line)));
        if cells != expected {
            wrong.push(format!("{file}:{}: {cells} cells in a table of {expected} columns", index + 1));
        }
    }
    wrong
}

/// The cells of a row. A bar after a backslash or in a code span does not end one.
fn cells(row: &str) -> usize {
    let (mut bars, mut is_span, mut before) = (0, false, ' ');
    for letter in row.trim_end().chars() {
        is_span ^= letter == '`';
        bars += usize::from(letter == '|' && before != '\\' && !is_span);
        before = letter;
    }
    bars - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_cells_of_its_heading() {
        let good = "| a | b |\n| --- | --- |\n| 1 | `x|y` |\n| c \\| d | |\n\n| one |\n| --- |\n";
        assert_eq!(check("docs/page.md", good), Vec::<String>::new());
        let bad = "| a | b |\n| --- | --- |\n| 1 | 2 | 3 |\n| 1 |\n";
        assert_eq!(
            check("docs/page.md", bad),
            [
                "docs/page.md:3: 3 cells in a table of 2 columns",
                "docs/page.md:4: 1 cells in a table of 2 columns"
            ]
        );
    }

    #[test]
    fn code_and_other_files_have_no_tables() {
        let output = "```text\n| a |\n| 1 | 2 |\n```\n";
        assert_eq!(check("docs/page.md", output), Vec::<String>::new());
        assert_eq!(check("src/main.rs", "| a |\n| 1 | 2 |\n"), Vec::<String>::new());
    }
}

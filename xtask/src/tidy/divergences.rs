//! Rows of docs/divergences.md are checked: a test or a compat case names the row it shows.
//!
//! Invariant: the names are where the checks are, as comments `// divergence: START OF THE ROW`, so that there is no list
//! of them. Each row is named by one at least.

use std::collections::BTreeSet;

/// The page.
pub const PAGE: &str = "docs/divergences.md";

/// Begins a comment that names a row.
const MARKER: &str = "// divergence: ";

/// One line per name that is not the start of exactly one row in `page`, and one that lists the rows without a check.
/// `sources` are the paths and texts of all Rust files.
pub fn check(page: &str, sources: &[(String, String)]) -> Vec<String> {
    let rows = rows(page);
    let mut findings = Vec::new();
    let mut checked = BTreeSet::new();
    for (path, text) in sources {
        for (index, line) in text.lines().enumerate() {
            let Some(name) = line.trim_start().strip_prefix(MARKER) else { continue };
            let named: Vec<&(usize, &str)> = rows.iter().filter(|(_, cell)| cell.starts_with(name)).collect();
            match named[..] {
                [row] => {
                    checked.insert(row.0);
                }
                _ => findings.push(format!(
                    "{path}:{}: {} rows of {PAGE} begin with \"{name}\"; name one",
                    index + 1,
                    named.len()
                )),
            }
        }
    }
    let unchecked: Vec<&(usize, &str)> = rows.iter().filter(|(line, _)| !checked.contains(line)).collect();
    if !unchecked.is_empty() {
        let list: String =
            unchecked.iter().map(|(line, cell)| format!("\n  {PAGE}:{line}: {cell}")).collect();
        findings.push(format!(
            "{PAGE}: no check names {} rows; write `{MARKER}START OF THE ROW` above the test or compat case that shows each; \
             the rows are:{list}",
            unchecked.len()
        ));
    }
    findings
}

/// The rows of all tables: line and first cell.
fn rows(page: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = page.lines().collect();
    let is_rule = |line: Option<&&str>| line.is_some_and(|line| line.starts_with("| ---"));
    let is_row = |index: usize| {
        lines[index].starts_with("| ") && !is_rule(lines.get(index)) && !is_rule(lines.get(index + 1))
    };
    let numbers = (0..lines.len()).filter(|index| is_row(*index));
    numbers.map(|index| (index + 1, first_cell(&lines[index][2..]))).collect()
}

/// The text before the first bar that is not in a code span.
fn first_cell(row: &str) -> &str {
    let mut is_span = false;
    let end = row.find(|letter| {
        is_span ^= letter == '`';
        letter == '|' && !is_span
    });
    row[..end.unwrap_or(row.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_TEXT: &str =
        "# Title\n\n| Input | fio |\n| --- | --- |\n| `a|b` here | x |\n| other | y |\n| others | z |\n";

    fn findings(source: &str) -> Vec<String> {
        check(PAGE_TEXT, &[("a.rs".to_string(), source.to_string())])
    }

    #[test]
    fn rows_without_a_check_are_listed() {
        assert_eq!(rows(PAGE_TEXT), [(5, "`a|b` here"), (6, "other"), (7, "others")]);
        let named =
            |names: &[&str]| names.iter().map(|name| format!("    {MARKER}{name}\n")).collect::<String>();
        let missing = findings(&named(&["`a|b`", "others"]));
        assert!(
            missing.len() == 1 && missing[0].ends_with("are:\n  docs/divergences.md:6: other"),
            "{missing:?}"
        );
        let page = PAGE_TEXT.replace("| other | y |\n", "");
        let sources = [("a.rs".to_string(), named(&["`a|b`", "others"]))];
        assert_eq!(check(&page, &sources), [""; 0]);
    }

    #[test]
    fn a_name_is_the_start_of_one_row() {
        let of = |name: &str| findings(&format!("{MARKER}{name}\n"));
        assert!(of("gone")[0].starts_with("a.rs:1: 0 rows"));
        assert!(of("othe")[0].starts_with("a.rs:1: 2 rows"));
    }
}

//! Rows of docs/divergences.md are checked: a test or a compat case names the row it shows.
//!
//! Invariant: the names are where the checks are, as comments `// divergence: START OF THE ROW`, so that there is no list
//! of them. The number of rows that no check names may only fall.

use std::collections::BTreeSet;

/// The page.
pub const PAGE: &str = "docs/divergences.md";

/// How many rows no check names.
const UNCHECKED: usize = 0;

/// Begins a comment that names a row.
const MARKER: &str = "// divergence: ";

/// One line per name that is not the start of exactly one row in `page`, and one if the number of rows without a check
/// is not the recorded one. `sources` are the paths and texts of all Rust files.
pub fn check(page: &str, sources: &[(String, String)]) -> Vec<String> {
    check_number(page, sources, UNCHECKED)
}

fn check_number(page: &str, sources: &[(String, String)], recorded: usize) -> Vec<String> {
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
    if unchecked.len() > recorded {
        let list: String =
            unchecked.iter().map(|(line, cell)| format!("\n  {PAGE}:{line}: {cell}")).collect();
        findings.push(format!(
            "{PAGE}: no check names {} rows, {recorded} are recorded; write `{MARKER}START OF THE ROW` above the test or \
             compat case that shows the new one; the rows are:{list}",
            unchecked.len()
        ));
    }
    if unchecked.len() < recorded {
        findings.push(format!("{}: UNCHECKED can be lowered to {}", file!(), unchecked.len()));
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

    fn findings(source: &str, recorded: usize) -> Vec<String> {
        check_number(PAGE_TEXT, &[("a.rs".to_string(), source.to_string())], recorded)
    }

    #[test]
    fn rows_without_a_check_are_counted() {
        assert_eq!(rows(PAGE_TEXT), [(5, "`a|b` here"), (6, "other"), (7, "others")]);
        let named =
            |names: &[&str]| names.iter().map(|name| format!("    {MARKER}{name}\n")).collect::<String>();
        assert_eq!(findings(&named(&["`a|b`", "others"]), 1), [""; 0]);
        let missing = findings(&named(&["`a|b`"]), 1);
        assert!(missing.len() == 1 && missing[0].contains(":6: other"), "{missing:?}");
        assert!(findings(&named(&["`a|b`", "others"]), 2)[0].ends_with("lowered to 1"));
    }

    #[test]
    fn a_name_is_the_start_of_one_row() {
        let of = |name: &str| findings(&format!("{MARKER}{name}\n"), 3);
        assert!(of("gone")[0].starts_with("a.rs:1: 0 rows"));
        assert!(of("othe")[0].starts_with("a.rs:1: 2 rows"));
    }
}

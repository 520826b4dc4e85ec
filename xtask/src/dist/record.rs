//! The table of what the artefacts weigh and how long they take to make, in docs/install.md.
//!
//! Invariant: its figures are of one `cargo x dist` of everything, and name the commit.

use std::path::Path;

use super::artefact::Made;
use super::sizes::with_commas;
use crate::{machine, marked, repo};

const PAGE: &str = "docs/install.md";
const START: &str = "<!-- sizes: written by `cargo x dist --record` -->\n";
const END: &str = "<!-- end of sizes -->\n";

/// Writes the table of these artefacts.
pub fn write(made: &[Made]) -> Result<(), String> {
    let page = repo::read(PAGE).ok_or_else(|| format!("{PAGE}: cannot be read"))?;
    let of = |args: &[&str]| machine::first_line(Path::new("git"), args);
    let commit = of(&["rev-parse", "--short=7", "HEAD"]);
    let page = marked::replace(&page, START, END, &table(made, &commit));
    repo::write(PAGE, &page.map_err(|lacks| format!("{PAGE}: {lacks}"))?)
}

fn table(made: &[Made], commit: &str) -> String {
    let rows: String = made.iter().map(row).collect();
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "| at {commit} | bytes | seconds to make, {processors} processors |\n| --- | ---: | ---: |\n{rows}"
    )
}

fn row(made: &Made) -> String {
    let file = match made.name {
        "binary" => "the static binary".to_string(),
        _ => format!("`{}`", made.file()),
    };
    format!("| {file} | {} | {:.0} |\n", with_commas(made.bytes), made.took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_artefact_has_a_row() {
        let of = |name, path: &str, bytes| Made {
            name,
            path: path.into(),
            bytes,
            took: Duration::from_millis(2500),
        };
        let made = [of("binary", "/t/fiord", 9_987_654), of("deb", "/t/fiord_0.1.0_amd64.deb", 123)];
        let rows: Vec<String> = table(&made, "abcdef0").lines().skip(2).map(String::from).collect();
        assert_eq!(rows, ["| the static binary | 9,987,654 | 2 |", "| `fiord_0.1.0_amd64.deb` | 123 | 2 |"]);
    }
}

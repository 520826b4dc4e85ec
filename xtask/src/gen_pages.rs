//! Pages generated from tables, and the test that they are up to date.
//!
//! Invariant: a generated page is never edited by hand; `cargo x gen` gives the same bytes for the same table.

use fiord_engine::registry;
use fiord_options::{config, reference};
use fiord_plan::{EngineTest, Tested};
use fiord_report::Code;
use fiord_stats::Count;

use crate::bench::page as performance;
use crate::editors;
use crate::marked;
use crate::repo;
use crate::schemas;
use crate::tidy::doors;

/// Every generated page: path and text.
fn pages() -> Result<Vec<(String, String)>, String> {
    let mut pages = vec![
        ("docs/options.md", reference::options_markdown()),
        ("docs/engines.md", engines_page()),
        ("docs/findings.md", findings_page()),
        ("docs/config.md", config_page()),
    ];
    pages.extend(performance::pages()?);
    let mut pages: Vec<_> = pages.into_iter().map(|(path, text)| (path.to_string(), text)).collect();
    let json = repo::read("docs/json.md").ok_or("docs/json.md: not there")?;
    let json = marked::replace(&json, COUNTS_START, COUNTS_END, &counts_table())?;
    pages.extend(schemas::pages(&json)?);
    pages.push(("docs/json.md".to_string(), json));
    pages.extend(editors::files()?);
    Ok(pages)
}

/// What is counted of a job and of its directions, as rows of the description of JSON.
fn counts_table() -> String {
    let mut table = String::from(
        "| key | type | value |\n| --- | --- | --- |\n| `counts` | object, absent | the counts |\n",
    );
    for count in Count::all(false) {
        table += &format!("| `counts.{}` | integer, absent | {} |\n", count.key, count.meaning);
    }
    table += "| `counts.read` | object, absent | those of reads |\n";
    for count in Count::all(true) {
        table += &format!("| `counts.read.{}` | integer, absent | {} |\n", count.key, count.meaning);
    }
    for (key, noun) in [("write", "writes"), ("trim", "trims"), ("mixed", "all as one")] {
        table += &format!("| `counts.{key}` | as read, absent | those of {noun} |\n");
    }
    table
}

const COUNTS_START: &str = "<!-- counts: written by `cargo x gen` from `crates/stats/src/count.rs` -->\n";
const COUNTS_END: &str = "<!-- end of counts -->\n";

/// Every engine of fio, the tests of each that is built in, and an example of it.
fn engines_page() -> String {
    let mut page = reference::engines_markdown(registry::NAMES);
    page += &tests();
    page += EXAMPLES_HEAD;
    for (engine, example) in registry::examples() {
        page += &format!("\n### {}\n\n{}\n\n```sh\n{}\n```\n", engine, example.text, example.commands);
        let needs: Vec<&str> = example.needs.iter().map(|need| need.what).collect();
        if !needs.is_empty() {
            page += &format!("\nNeeds {}.\n", needs.join(", "));
        }
    }
    page
}

/// The table of engines and tests, and below it what its numbers stand for.
fn tests() -> String {
    let mut page = String::from(TESTS_HEAD);
    for test in EngineTest::ALL {
        page += &format!("- *{}*: {}\n", test.name(), test.meaning());
    }
    let names = EngineTest::ALL.map(|test| format!(" {} |", test.name())).concat();
    page += &format!("\n| engine |{names}\n|{}\n", " --- |".repeat(EngineTest::ALL.len() + 1));
    let mut notes: Vec<String> = Vec::new();
    for (engine, tests) in registry::tests() {
        let cells = EngineTest::ALL.map(|test| {
            let (word, note) = match tests.of(test) {
                Tested::Together => return " yes |".to_string(),
                Tested::By(file, function) => ("yes", format!("`{function}` in `{file}`")),
                Tested::Never(why) => ("no", why.to_string()),
            };
            let number = notes.iter().position(|known| *known == note).unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            });
            format!(" {word} ({}) |", number + 1)
        });
        page += &format!("| `{engine}` |{}\n", cells.concat());
    }
    page.push('\n');
    for (number, note) in notes.iter().enumerate() {
        page += &format!("{}. {note}\n", number + 1);
    }
    page
}

const TESTS_HEAD: &str = "
## Tests

What every engine is put to, on its real counterpart. `yes` alone is a test that engines share, in
`crates/fiord/tests/every_engine.rs`; a number names another test, or the reason why there is none.

";

const EXAMPLES_HEAD: &str = "
## Examples

Shell commands for an empty directory; files are made by fiord. `crates/fiord/tests/engine_examples.rs` runs each example
where what it needs is there.
";

/// Every code of a finding: severity and meaning, how to see it, and what to do.
fn findings_page() -> String {
    let mut page = String::from(FINDINGS_HEAD);
    for code in Code::ALL {
        page +=
            &format!("| [`{0}`](#{0}) | {1} | {2} |\n", code.name(), code.severity().name(), code.meaning());
    }
    for code in Code::ALL {
        let (name, severity, meaning) = (code.name(), code.severity().name(), code.meaning());
        page += &format!(
            "\n## {name}\n\n*{severity}.* {meaning}\n\nHow to see it yourself: {}\n\nWhat to do: {}\n",
            code.see(),
            code.fix()
        );
    }
    page
}

/// Every key of the config file: an example, what it does, and what is stronger.
fn config_page() -> String {
    let mut page = String::from(CONFIG_HEAD);
    for key in &config::KEYS {
        page += &format!("| `{}` | {} | {} |\n", key.example, key.text, key.stronger);
    }
    page + CONFIG_TAIL
}

const CONFIG_HEAD: &str = "\
# The config file

`$XDG_CONFIG_HOME/fiord/config.toml`, by default `~/.config/fiord/config.toml`, is TOML and says what every command of this user does
unless an option or a variable says otherwise: option, then environment, then file, then default. There need not be one. This page
is written by `cargo x gen` from `crates/options/src/config.rs`.

| line of the file | what it does | what is stronger |
| --- | --- | --- |
";

const CONFIG_TAIL: &str = "
Nothing in it changes what is measured, and no key names a command, a script or a file to be read. Of reports it changes what
`trust` does: their findings, and the exit status of runs and studies. Which runs a history keeps is a policy of that history
(`fiord history --keep=90d`), not of this file.

It is not followed by fiord under the name `fio`, nor on hosts that a run is sent to: `--hosts` takes the values of the machine where it
is typed. What is wrong with it is an error of every command but help, with file, line and column; a file that is there and
cannot be read is one as well. In a directory that this user may not enter, as with `sudo -E -u postgres`, it counts as not there.
No output overwrites it.
";

const FINDINGS_HEAD: &str = "\
# Findings

A finding is a reason why a figure may not mean what its reader thinks. This page is written by `cargo x gen` from
`crates/report/src/finding.rs`. A `note` is worth knowing; a `caution` must be read before the figure is quoted; with a
`void` finding, the figure does not measure what the job specifies. Findings are computed, never guessed: where the kernel
has no figure, there is no finding.

Findings are printed after the report, and are the list `findings` in JSON ([json.md](json.md)). `--trust=off` turns them
off; with `--trust=strict` the exit status is 3 if there is a `void` finding. A study draws no conclusion from a run with
a `void` finding: it reports `CANNOT TELL` with the reason, and exits with status 6.

`crates/fiord/tests/findings/table.rs` has, for each code, a run on a real kernel that must raise it and a near
neighbour that must not, or the reason why a test cannot raise it. Nothing is added to the loops that do I/O: facts are
read before and after the jobs run, and meanwhile the main thread reads the counters of the jobs, the clocks, and what
the page cache holds of files that are used past it, four times a second, and once a second those of the devices below their files, of the processors, of what tasks wait for (`/proc/pressure`,
and the same of the control group), of dirty memory and of cooling; and, also once a second, copies the histograms of
latency. Together that took 0.8 ms of processor time per second, 0.08 % of one processor, and 1 ms before and after the
run: the differences between `--trust=on` and `--trust=off`, by `getrusage`, of the medians of five runs of 23 s and five
of 3 s each, of a development build, while other programs kept the machine's two processors busy: `fiord --name=a
--rw=read --bs=4k --size=1m --ioengine=psync --rate_iops=10 --time_based --runtime=23s`.

| code | severity | meaning |
| --- | --- | --- |
";

/// Writes every page whose text differs.
pub fn run() -> Result<(), String> {
    // fiord has the list of its subcommands, and its own test that this page is up to date.
    put(
        "docs/fiord.1",
        &repo::output_of(repo::cargo(&["run", "--quiet", "-p", "fiord", "--", "help", "--man"]))?,
    )?;
    for (path, text) in pages()? {
        put(&path, &text)?;
    }
    let page = repo::read("ARCHITECTURE.md").ok_or("ARCHITECTURE.md: not there")?;
    put("ARCHITECTURE.md", &doors::with_table(&page)?)
}

fn put(path: &str, text: &str) -> Result<(), String> {
    if repo::read(path).as_deref() != Some(text) {
        println!("gen: {path}");
        repo::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_pages_are_up_to_date() {
        let stale: Vec<String> = pages()
            .unwrap()
            .into_iter()
            .filter(|(path, text)| repo::read(path).as_deref() != Some(text.as_str()))
            .map(|(path, _)| path)
            .collect();
        assert!(
            stale.is_empty(),
            "{} differ from their tables; update them with: cargo x gen",
            stale.join(", ")
        );
    }
}

//! The table of options as pages: `--help`, `--cmdhelp`, `--enghelp`, the reference page and the man page.
//!
//! Invariant: pure functions of the table; the same table gives the same bytes.

use std::fmt::Write;
use std::ops::RangeInclusive;

use crate::engine;
use crate::spec::{Choice, Scope, Spec, Status, Takes};
use crate::table::{Lookup, engine_specs, find_job_option, job_specs, program_specs};

/// Kinds of values whose spelling is not obvious, and how they are spelt.
const VALUES: [(&str, &str); 7] = [
    ("integer", "`32`, or in hexadecimal `0x20`; `k`, `m` and `g` multiply as in a size"),
    ("size", "bytes: `4096`, `4k`, `1m`, `2g`, `1t`; `k` is 1024 unless `kb_base=1000`"),
    ("percentage or number of zones", "of what is there: `20%`; zones: `8z`"),
    ("range", "`4k-64k`"),
    (
        "duration",
        "`90s`, `500ms`, `20us`, `5m`, `2h`, `1d`; what a bare number counts is told with the option",
    ),
    ("boolean", "`1` is yes and `0` is no"),
    ("empty or boolean", "yes by its name alone: `time_based`; or `time_based=1`, `time_based=0`"),
];

/// `--help`, without the version in front: usage and the program's options.
pub fn help() -> String {
    let mut page = String::from("fiord [options] [job options] <job file(s)>\n");
    for spec in program_specs() {
        let _ = writeln!(page, "  {:<22}{}{}", flag(spec), sentence(spec), words(spec));
    }
    page.push_str("\nJob options are listed by --cmdhelp, engines and their options by --enghelp.\n");
    page
}

/// `--cmdhelp`: all job options for no name and for `all`; one of them in detail, or the nearest name there is.
/// That there is none is an answer, too, as it is for fio, whose exit status is then 0.
pub fn cmdhelp(name: Option<&str>) -> String {
    let Some(name) = name.filter(|name| *name != "all") else {
        return list(job_specs().iter());
    };
    detail_or_nearest(name, find_job_option(name, false, &[])).unwrap_or_else(|none| format!("{none}\n"))
}

/// `--enghelp`: the engines that are built in; with a question `ENGINE`, that engine's options; with
/// `ENGINE,OPTION`, one of them in detail. `Err` says what of the question does not exist.
pub fn enghelp(question: Option<&str>, engines: &[&str]) -> Result<String, String> {
    let Some(question) = question else {
        let names: String = engines.iter().map(|name| format!("\t{name}\n")).collect();
        return Ok(format!("Available IO engines:\n{names}"));
    };
    let (name, option) = match question.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (question, None),
    };
    if !engine::NAMES.iter().any(|engine| engine.word == name) {
        return Err(format!("IO engine {name} not found"));
    }
    let own: Vec<&'static Spec> = engine_specs().filter(|spec| belongs_to(spec, name)).collect();
    match option {
        Some(option) => match find_job_option(option, false, &[name]) {
            Lookup::Found(spec) if !belongs_to(spec, name) => Err(format!("No such command: {option}")),
            lookup => detail_or_nearest(option, lookup),
        },
        None if own.is_empty() => Err(format!("IO engine {name} has no options")),
        None => Ok(list(own.into_iter())),
    }
}

/// `docs/options.md`: every option with its kind, default, range and words, under its heading.
pub fn options_markdown() -> String {
    let mut page = String::from(
        "<!-- Written by `cargo x gen` from the table in crates/options. Do not edit. -->\n\n# Options\n\n\
         Every option of fio 3.42, on the command line as `--name=value`, in a job file as `name=value`. An option \
         marked *not yet* is refused by name unless its value is the default; one marked *no effect* is accepted.\n\n\
         In italics stand the kind of value, the default and the values allowed. Of values:\n\n",
    );
    for (kind, spelling) in VALUES {
        let _ = writeln!(page, "- {kind}: {spelling}");
    }
    page.push_str("\n# Job options\n");
    markdown_of(&mut page, job_specs().iter());
    page.push_str("\n# Options of engines\n\nThey follow `ioengine`, and mean nothing to other engines.\n");
    markdown_of(&mut page, engine_specs());
    page.push_str("\n# Options of the program\n\nFor the command line only.\n");
    markdown_of(&mut page, program_specs().iter());
    page
}

/// `docs/engines.md`: every engine fio has, and whether it is built in.
pub fn engines_markdown() -> String {
    let mut page = String::from(
        "<!-- Written by `cargo x gen` from the table in crates/options. Do not edit. -->\n\n# Engines\n\n\
         How a job issues its I/O: `ioengine=NAME`. Options of their own are in [options.md](options.md).\n\n\
         `fiord engines` shows which of those built in work on this machine, and what its kernel takes of io_uring.\n\n\
         | engine | what it does | built in | its options |\n| --- | --- | --- | --- |\n",
    );
    for engine in engine::NAMES {
        let own: Vec<String> = engine_specs()
            .filter(|spec| belongs_to(spec, engine.word))
            .map(|spec| format!("`{}`", spec.name))
            .collect();
        let built = if engine::is_built(engine.word) { "yes" } else { "not yet" };
        let _ = writeln!(page, "| `{}` | {} | {built} | {} |", engine.word, engine.help, own.join(" "));
    }
    page
}

/// The man page `fiord.1`, as roff.
pub fn man_page() -> String {
    let mut page = String::from(
        ".\\\" Written by `cargo x gen` from the table in crates/options. Do not edit.\n\
         .TH FIORD 1\n.SH NAME\nfiord \\- flexible I/O tester\n.SH SYNOPSIS\n.B fiord\n\
         [\\fIoptions\\fR] [\\fIjob options\\fR] [\\fIjob file\\fR ...]\n.SH DESCRIPTION\n\
         fiord runs the I/O that job files or the command line describe, and reports what it measured. It takes the \
         job files and options of fio and prints its reports.\n.SH OPTIONS\n",
    );
    roff_of(&mut page, program_specs().iter());
    page.push_str(".SH VALUES\n");
    for (kind, spelling) in VALUES {
        let _ = writeln!(page, ".TP\n{}\n{}.", roff(kind), roff(spelling));
    }
    page.push_str(".SH JOB OPTIONS\n");
    roff_of(&mut page, job_specs().iter());
    page.push_str(".SH OPTIONS OF ENGINES\n");
    roff_of(&mut page, engine_specs());
    page.push_str(
        ".SH EXIT STATUS\n0 when every job did what it was asked to, 1 when an option or a job was wrong, or a \
         permission was missing (called as fio: the number of failed jobs, 255 at most), 2 when it was refused because it would destroy something, 4 when \\fBfiord check\\fR says FAIL, 5 when with \
         \\fB\\-\\-strict\\fR it says MARGINAL, ",
    );
    page.push_str("128 plus the number of the signal when one ended the run.\n.SH SEE ALSO\n.BR fio (1)\n");
    page
}

fn belongs_to(spec: &Spec, engine: &str) -> bool {
    matches!(spec.scope, Scope::Engine(names) if names.contains(&engine))
}

/// The words a value is made of, as fio's help has them: scripts look there for what a program can do.
fn words(spec: &Spec) -> String {
    match spec.choices {
        [] => String::new(),
        choices => {
            let words: Vec<&str> = choices.iter().map(|choice| choice.word).collect();
            format!(" ({})", words.join(","))
        }
    }
}

/// The summary, with what stands in the way of using the option.
fn sentence(spec: &Spec) -> String {
    let mark = match spec.status {
        Status::Ready => "",
        Status::Pending(_) | Status::Dormant(_) => " (not yet)",
        Status::Ignored(_) => " (no effect)",
    };
    format!("{}{mark}", spec.summary())
}

/// `--name`, `--name=value` or `--name[=value]`.
fn flag(spec: &Spec) -> String {
    match spec.takes {
        Takes::Nothing => format!("--{}", spec.name),
        Takes::Optional => format!("--{}[=...]", spec.name),
        Takes::Value => format!("--{}=...", spec.name),
    }
}

/// What stands before the name wherever the option is written.
fn dashes(spec: &Spec) -> &'static str {
    match spec.scope {
        Scope::Program => "--",
        Scope::Job | Scope::Engine(_) => "",
    }
}

/// A line per option, as fio's lists have it.
fn list(specs: impl Iterator<Item = &'static Spec>) -> String {
    specs.fold(String::new(), |mut page, spec| {
        let _ = writeln!(page, "{:<24}: {}", spec.name, sentence(spec));
        page
    })
}

/// The option found in detail, or the nearest one and a word about it.
fn detail_or_nearest(name: &str, lookup: Lookup) -> Result<String, String> {
    match lookup {
        Lookup::Found(spec) => Ok(detail(spec)),
        Lookup::Unknown { suggestion: Some(near) } => match find_job_option(near, false, &[]) {
            Lookup::Found(spec) => {
                Ok(format!("No such command: {name} - showing closest match\n{}", detail(spec)))
            }
            _ => Err(format!("No such command: {name}; did you mean {near}?")),
        },
        Lookup::Unknown { suggestion: None } | Lookup::Ambiguous(_) => {
            Err(format!("No such command: {name}"))
        }
    }
}

/// One option in fio's columns, then our own words.
fn detail(spec: &Spec) -> String {
    let mut page = String::new();
    let mut line = |label: &str, text: &str| {
        let _ = writeln!(page, "{label:>20}: {text}");
    };
    line(spec.name, spec.summary());
    if !spec.aliases.is_empty() {
        line("alias", &spec.aliases.join(", "));
    }
    line("type", spec.kind);
    line("default", if spec.default.is_empty() { "no default" } else { spec.default });
    if let Some(range) = &spec.range {
        // fio's way of saying that there is no upper bound.
        let max = if *range.end() >= i128::from(u32::MAX) { -1 } else { *range.end() };
        line("range", &format!("min={}, max={max}", range.start()));
    }
    for (index, Choice { word, help }) in spec.choices.iter().enumerate() {
        line(if index == 0 { "valid values" } else { "" }, &format!("{word:<10} {help}"));
    }
    if let Some(status) = status(spec) {
        line("status", &status);
    }
    for paragraph in spec.details() {
        let _ = writeln!(page, "\n{paragraph}");
    }
    page.push('\n');
    page
}

/// What keeps the option from working; `None` when nothing does.
fn status(spec: &Spec) -> Option<String> {
    match spec.status {
        Status::Ready => None,
        Status::Pending(why) => Some(format!("not yet: {why}")),
        Status::Ignored(why) => Some(format!("no effect: {why}")),
        Status::Dormant("ioengine") => Some("not yet: the engine is not built in".to_string()),
        Status::Dormant(parent) => Some(format!("not yet: goes with {parent}")),
    }
}

/// Facts on one line: kind, default, allowed values.
fn facts(spec: &Spec) -> String {
    let mut facts = vec![spec.kind.to_string()];
    // A flag that is not given is not set; that goes without saying.
    if !spec.default.is_empty() && (spec.takes == Takes::Value || spec.default != "0") {
        facts.push(format!("default {}", spec.default));
    }
    if let Some(range) = &spec.range
        && !goes_without_saying(spec.kind, range)
    {
        facts.push(spec.allowed());
    }
    facts.join("; ")
}

/// Whether a range says no more than the kind of value: 0 or 1 for a boolean, no negative numbers.
fn goes_without_saying(kind: &str, range: &RangeInclusive<i128>) -> bool {
    kind.ends_with("boolean") || (*range.start() == 0 && *range.end() >= i128::from(u32::MAX))
}

fn markdown_of(page: &mut String, specs: impl Iterator<Item = &'static Spec>) {
    let mut heading = "";
    for spec in specs {
        if spec.category != heading {
            heading = spec.category;
            let _ = write!(page, "\n## {heading}\n");
        }
        let names: Vec<String> = spec.names().map(|name| format!("`{}{name}`", dashes(spec))).collect();
        let _ =
            write!(page, "\n### {}\n\n{}. *{}*\n", names.join(", "), spec.summary(), markdown(&facts(spec)));
        for paragraph in spec.details() {
            let _ = write!(page, "\n{paragraph}\n");
        }
        if let Some(status) = status(spec) {
            let _ = write!(page, "\n**{}**\n", capitalised(&markdown(&status)));
        }
        if !spec.choices.is_empty() && spec.name != "ioengine" {
            page.push_str("\n| value | meaning |\n| --- | --- |\n");
            for Choice { word, help } in spec.choices {
                let _ = writeln!(page, "| `{word}` | {help} |");
            }
        }
    }
}

/// Keeps characters of plain text from being taken for markup.
fn markdown(text: &str) -> String {
    text.replace('*', "\\*").replace('_', "\\_")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn roff_of(page: &mut String, specs: impl Iterator<Item = &'static Spec>) {
    let mut heading = "";
    for spec in specs {
        if spec.category != heading {
            heading = spec.category;
            let _ = writeln!(page, ".SS \"{heading}\"");
        }
        let names: Vec<String> =
            spec.names().map(|name| format!("\\fB{}{}\\fR", roff(dashes(spec)), roff(name))).collect();
        let _ =
            writeln!(page, ".TP\n{} ({})\n{}.", names.join(", "), roff(&facts(spec)), roff(spec.summary()));
        for paragraph in spec.details() {
            let _ = writeln!(page, "{}", roff(&paragraph));
        }
        if !spec.choices.is_empty() && spec.name != "ioengine" {
            let _ = writeln!(page, "Values: {}.", roff(&spec.allowed_words()));
        }
        if let Some(status) = status(spec) {
            let _ = writeln!(page, "{}.", roff(&capitalised(&status)));
        }
    }
}

/// Keeps characters of plain text from being taken for roff; code spans become bold.
fn roff(text: &str) -> String {
    let mut bold = false;
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '`' => {
                bold = !bold;
                escaped.push_str(if bold { "\\fB" } else { "\\fR" });
            }
            other => escaped.push(other),
        }
    }
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_have_fios_columns() {
        let page = cmdhelp(Some("blocksize"));
        let mut lines = page.lines();
        assert_eq!(lines.next(), Some("                  bs: Block size of an I/O"));
        assert_eq!(lines.next(), Some("               alias: blocksize"));
        assert_eq!(lines.next(), Some("                type: size"));
        assert_eq!(lines.next(), Some("             default: 4096"));
        assert_eq!(lines.next(), Some("               range: min=1, max=-1"));
        let page = cmdhelp(Some("rate_process"));
        assert!(page.contains("        valid values: linear     Evenly.\n"), "{page}");
        assert!(page.contains("                    : poisson    As a Poisson process"), "{page}");
    }

    #[test]
    fn the_help_names_the_words_of_values() {
        let page = help();
        assert!(page.contains(" (terse,json,json+,normal)\n"), "fio's words, in its order: {page}");
        assert!(page.contains(" (always,never,auto)\n"), "{page}");
    }

    #[test]
    fn the_list_names_every_job_option() {
        let page = cmdhelp(None);
        assert_eq!(page, cmdhelp(Some("all")));
        assert_eq!(page.lines().count(), job_specs().len());
        assert!(page.contains("\niodepth                 : I/Os kept in flight\n"));
    }

    #[test]
    fn a_typo_shows_the_nearest_option() {
        let page = cmdhelp(Some("iodept"));
        assert!(page.starts_with("No such command: iodept - showing closest match\n             iodepth: "));
        assert_eq!(cmdhelp(Some("zzz")), "No such command: zzz\n");
    }

    #[test]
    fn engines_explain_their_own_options_only() {
        let engines = ["psync", "io_uring"];
        assert_eq!(enghelp(None, &engines).expect("a list"), "Available IO engines:\n\tpsync\n\tio_uring\n");
        assert!(enghelp(Some("io_uring"), &engines).expect("options").contains("\nfixedbufs "));
        assert!(enghelp(Some("libaio,nowait"), &engines).expect("one").starts_with("              nowait: "));
        assert_eq!(enghelp(Some("psync"), &engines), Err("IO engine psync has no options".to_string()));
        assert_eq!(enghelp(Some("xyz"), &engines), Err("IO engine xyz not found".to_string()));
        assert_eq!(enghelp(Some("libaio,bs"), &engines), Err("No such command: bs".to_string()));
    }

    #[test]
    fn pages_name_every_option() {
        let (markdown, roff_page, help) = (options_markdown(), man_page(), help());
        for spec in job_specs().iter().chain(program_specs()).chain(engine_specs()) {
            let name = format!("{}{}", dashes(spec), spec.name);
            assert!(markdown.contains(&format!("`{name}`")), "{name}");
            assert!(roff_page.contains(&format!("\\fB{}\\fR", roff(&name))), "{name}");
        }
        for spec in program_specs() {
            assert!(help.contains(&format!("--{}", spec.name)), "{}", spec.name);
        }
        for engine in engine::NAMES {
            assert!(engines_markdown().contains(&format!("| `{}` |", engine.word)), "{}", engine.word);
        }
    }

    #[test]
    fn examples_are_accepted() {
        let mut seen = 0;
        for spec in job_specs() {
            for example in
                spec.details().iter().filter_map(|text| Some(text.split_once("Example: ")?.1.to_string()))
            {
                let mentions: Vec<&str> = example.split('`').skip(1).step_by(2).collect();
                let names = |mention: &&str| spec.names().any(|name| mention.split('=').next() == Some(name));
                assert!(mentions.iter().any(names), "{}: {example}", spec.name);
                for (name, value) in mentions.iter().filter_map(|mention| mention.split_once('=')) {
                    let Lookup::Found(named) = find_job_option(name, false, &[]) else {
                        panic!("{}: no option is called {name}", spec.name)
                    };
                    assert_eq!((named.check)(Some(value)), Ok(()), "{}: {name}={value}", spec.name);
                    seen += 1;
                }
            }
        }
        assert!(seen >= 60, "{seen} examples");
    }

    #[test]
    fn roff_lines_do_not_start_with_a_request_by_accident() {
        for line in man_page().lines().filter(|line| line.starts_with('.')) {
            let request = line[1..].split(' ').next().unwrap_or_default();
            assert!(["\\\"", "TH", "SH", "SS", "TP", "B", "BR"].contains(&request), "{line}");
        }
    }
}

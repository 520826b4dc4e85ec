//! The table of options as pages: `--help`, `--cmdhelp`, `--enghelp`, the reference page and the lists of the man page.
//!
//! Invariant: pure functions of the table; the same table gives the same bytes.

use std::fmt::Write;
use std::ops::RangeInclusive;

use crate::table::job::Queue;
use crate::table::{Lookup, Scope, Spec, Status, engine_specs, find_job_option, job_specs, program_specs};
use crate::value::{Choice, EngineName, Takes, ValueKind};

/// Kinds of values whose spelling is not obvious, and how they are spelt.
const VALUES: [(&str, &str); 7] = [
    ("integer", "`32`, or `0x20` in hexadecimal, with the suffixes `k`, `m` and `g` of sizes"),
    ("size", "bytes: `4096`, `4k`, `1m`, `2g`, `1t`; `k` is 1024 unless `kb_base=1000`"),
    ("percentage or number of zones", "`20%` of the target; `8z` for eight zones, with `zonemode`"),
    ("range", "`4k-64k`"),
    (
        "duration",
        "`90s`, `500ms`, `20us`, `5m`, `2h`, `1d`; each option states the unit of a number without one",
    ),
    ("boolean", "`1` is yes and `0` is no"),
    ("empty or boolean", "`time_based` alone is the same as `time_based=1`; the opposite is `time_based=0`"),
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

/// `--cmdhelp`: all job options for no name and for `all`; otherwise one option in detail, or the one with the nearest
/// name. An unknown name is not an error, as in fio, which exits with status 0.
pub fn cmdhelp(name: Option<&str>) -> String {
    let Some(name) = name.filter(|name| *name != "all") else {
        return list(job_specs());
    };
    detail_or_nearest(name, find_job_option(name, false, &[])).unwrap_or_else(|none| format!("{none}\n"))
}

/// `--enghelp`: the engines that are built in; with a question `ENGINE`, that engine's options; with
/// `ENGINE,OPTION`, one of them in detail. `Err` names the engine or option that does not exist.
pub fn enghelp(question: Option<&str>, engines: &[EngineName]) -> Result<String, String> {
    let Some(question) = question else {
        let names: String = engines.iter().map(|name| format!("\t{name}\n")).collect();
        return Ok(format!("Available IO engines:\n{names}"));
    };
    let (name, option) = match question.split_once(',') {
        Some((name, option)) => (name, Some(option)),
        None => (question, None),
    };
    let Some(engine) = EngineName::from_word(name) else {
        return Err(format!("IO engine {name} not found"));
    };
    let own: Vec<&'static Spec> = engine_specs().filter(|spec| belongs_to(spec, engine)).collect();
    match option {
        Some(option) => match find_job_option(option, false, &[engine]) {
            Lookup::Found(spec) if !belongs_to(spec, engine) => Err(format!("No such command: {option}")),
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
         marked *not yet* or *one engine only* is refused by name unless its value is the default; one marked *no effect* is accepted.\n\n\
         The kind of value, its default and the allowed values are in italics. How values are written:\n\n",
    );
    for (kind, spelling) in VALUES {
        let _ = writeln!(page, "- {kind}: {spelling}");
    }
    page.push_str("\n# Job options\n");
    markdown_of(&mut page, job_specs());
    page.push_str(
        "\n# Options of engines\n\nThey are given after `ioengine`, and apply to no other engine.\n",
    );
    markdown_of(&mut page, engine_specs());
    page.push_str("\n# Options of the program\n\nFor the command line only.\n");
    markdown_of(&mut page, program_specs());
    page
}

/// `docs/engines.md`: every engine fio has, and whether it is one of those built in.
pub fn engines_markdown(engines: &[EngineName]) -> String {
    let mut page = String::from(
        "<!-- Written by `cargo x gen` from the table in crates/options. Do not edit. -->\n\n# Engines\n\n\
         How a job issues its I/O: `ioengine=NAME`. The options of each engine are described in [options.md](options.md).\n\n\
         `fiord engines` shows which of the engines work on this machine, and which features of io_uring its kernel has.\n\n\
         | engine | what it does | built in | its options |\n| --- | --- | --- | --- |\n",
    );
    for engine in EngineName::ALL {
        let own: Vec<String> = engine_specs()
            .filter(|spec| belongs_to(spec, *engine))
            .map(|spec| format!("`{}`", spec.name))
            .collect();
        let built = match engine.refusal() {
            _ if engines.contains(engine) => "yes".to_string(),
            Some(refusal) => format!("no: {}; {}", refusal.reason, refusal.instead),
            None => "not yet".to_string(),
        };
        let _ = writeln!(page, "| `{}` | {} | {built} | {} |", engine.word(), engine.help(), own.join(" "));
    }
    page
}

/// The sections of the man page `fiord.1` that list options, as roff.
pub fn man_sections() -> String {
    let mut page = String::from(".SH OPTIONS\n");
    roff_of(&mut page, program_specs());
    page.push_str(".SH VALUES\n");
    for (kind, spelling) in VALUES {
        let _ = writeln!(page, ".TP\n{}\n{}.", roff(kind), roff(spelling));
    }
    page.push_str(".SH JOB OPTIONS\n");
    roff_of(&mut page, job_specs());
    page.push_str(".SH OPTIONS OF ENGINES\n");
    roff_of(&mut page, engine_specs());
    page
}

fn belongs_to(spec: &Spec, engine: EngineName) -> bool {
    matches!(spec.scope, Scope::Engine(names) if names.contains(&engine))
}

/// The words a value is made of, as fio's help has them: scripts look there for what a program can do.
fn words(spec: &Spec) -> String {
    match spec.choices {
        [] => String::new(),
        choices => {
            let words: Vec<&str> = choices.iter().map(|choice| choice.word).collect();
            // Programs look for `terse,json,json+,normal`; lists that need a line of their own can be wrapped.
            let close = words.join(",");
            if close.len() <= 40 { format!(" ({close})") } else { format!(" ({})", words.join(", ")) }
        }
    }
}

/// The summary, and why the option cannot be used, if it cannot.
fn sentence(spec: &Spec) -> String {
    format!("{}{}", spec.summary(), mark(spec))
}

/// Why the option cannot be used, in a few words.
fn mark(spec: &Spec) -> &'static str {
    match spec.status {
        Status::Ready => "",
        Status::Pending(_) | Status::Unbuilt => " (not yet)",
        Status::Ignored(_) => " (no effect)",
        // The same as the option that it modifies.
        Status::Dormant(parent) => mark(parent),
    }
}

/// `--name`, `--name=value` or `--name[=value]`.
fn flag(spec: &Spec) -> String {
    match spec.takes {
        Takes::Nothing => format!("--{}", spec.name),
        Takes::Optional => format!("--{}[=...]", spec.name),
        Takes::Value => format!("--{}=...", spec.name),
    }
}

/// The dashes before the name of an option, in every mention of it.
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
    line("type", spec.kind.words());
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

/// The reason why the option does not work; `None` if it works.
fn status(spec: &Spec) -> Option<String> {
    match spec.status {
        Status::Ready => None,
        Status::Pending(why) => Some(format!("not yet: {why}")),
        Status::Ignored(why) => Some(format!("no effect: {why}")),
        Status::Unbuilt => Some("not yet: the engine is not built in".to_string()),
        Status::Dormant(parent) => Some(format!("no effect alone: only modifies {}", parent.name)),
    }
}

/// Facts on one line: kind, default, allowed values.
fn facts(spec: &Spec) -> String {
    let mut facts = vec![spec.kind.to_string()];
    // The default of a flag is always that it is not set.
    if !spec.default.is_empty() && (spec.takes == Takes::Value || spec.default != "0") {
        facts.push(format!("default {}", spec.default));
    }
    if let Some(range) = &spec.range
        && !is_implied_by_kind(spec.kind, range)
    {
        facts.push(match *range.end() >= i128::from(u32::MAX) {
            true => format!("{} or more", range.start()),
            false => spec.allowed(),
        });
    }
    facts.join("; ")
}

/// Whether a range adds nothing to the kind of value: 0 or 1 for a boolean, no negative numbers.
fn is_implied_by_kind(kind: ValueKind, range: &RangeInclusive<i128>) -> bool {
    matches!(kind, ValueKind::Boolean | ValueKind::OptionalBoolean)
        || (*range.start() == 0 && *range.end() >= i128::from(u32::MAX))
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
        if !spec.choices.is_empty() && spec != Queue::ioengine {
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
        if !spec.choices.is_empty() && spec != Queue::ioengine {
            let _ = writeln!(page, "Values: {}.", roff(&spec.allowed_words()));
        }
        if let Some(status) = status(spec) {
            let _ = writeln!(page, "{}.", roff(&capitalised(&status)));
        }
    }
}

/// Keeps characters of plain text from being taken for roff; code spans become bold.
pub fn roff(text: &str) -> String {
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
    fn the_manual_page_lists_the_words_of_options_that_have_some_but_for_the_engines() {
        let page = man_sections();
        let entry = |name: &str| {
            let start = page.find(&format!(".TP\n\\fB{name}\\fR")).unwrap();
            let length = page[start + 4..].find(".TP\n").unwrap();
            &page[start..start + 4 + length]
        };
        assert!(entry("rate_process").contains("\nValues: linear, poisson.\n"), "{}", entry("rate_process"));
        assert!(!entry("iodepth").contains("Values:"), "{}", entry("iodepth"));
        assert!(!entry("ioengine").contains("Values:"), "its values have sections of their own");
    }

    #[test]
    fn the_list_names_every_job_option() {
        let page = cmdhelp(None);
        assert_eq!(page, cmdhelp(Some("all")));
        assert_eq!(page.lines().count(), job_specs().count());
        assert!(page.contains("\niodepth                 : I/Os kept in flight\n"));
    }

    #[test]
    fn facts_name_defaults_but_those_of_flags_that_are_not_set() {
        let of =
            |name: &str| facts(job_specs().chain(program_specs()).find(|spec| spec.name == name).unwrap());
        assert_eq!(of("iodepth"), "integer; default 1; 1 or more");
        assert_eq!(of("size"), "size, percentage or number of zones");
        assert_eq!(of("minimal"), "flag");
    }

    #[test]
    fn a_typo_shows_the_nearest_option() {
        let page = cmdhelp(Some("iodept"));
        assert!(page.starts_with("No such command: iodept - showing closest match\n             iodepth: "));
        assert_eq!(cmdhelp(Some("zzz")), "No such command: zzz\n");
    }

    #[test]
    fn engines_explain_their_own_options_only() {
        let engines = [EngineName::Psync, EngineName::IoUring];
        assert_eq!(enghelp(None, &engines).expect("a list"), "Available IO engines:\n\tpsync\n\tio_uring\n");
        assert!(enghelp(Some("io_uring"), &engines).expect("options").contains("\nfixedbufs "));
        assert!(enghelp(Some("libaio,nowait"), &engines).expect("one").starts_with("              nowait: "));
        assert_eq!(enghelp(Some("psync"), &engines), Err("IO engine psync has no options".to_string()));
        assert_eq!(enghelp(Some("xyz"), &engines), Err("IO engine xyz not found".to_string()));
        assert_eq!(enghelp(Some("libaio,bs"), &engines), Err("No such command: bs".to_string()));
    }

    #[test]
    fn pages_name_every_option() {
        let (markdown, roff_page, help) = (options_markdown(), man_sections(), help());
        for spec in job_specs().chain(program_specs()).chain(engine_specs()) {
            let name = format!("{}{}", dashes(spec), spec.name);
            assert!(markdown.contains(&format!("`{name}`")), "{name}");
            assert!(roff_page.contains(&format!("\\fB{}\\fR", roff(&name))), "{name}");
        }
        for spec in program_specs() {
            assert!(help.contains(&format!("--{}", spec.name)), "{}", spec.name);
        }
        for engine in EngineName::ALL {
            assert!(engines_markdown(&[]).contains(&format!("| `{engine}` |")), "{engine}");
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
                    assert_eq!(named.check(Some(value.as_ref())), Ok(()), "{}: {name}={value}", spec.name);
                    seen += 1;
                }
            }
        }
        assert!(seen >= 60, "{seen} examples");
    }

    #[test]
    fn roff_lines_do_not_start_with_a_request_by_accident() {
        for line in man_sections().lines().filter(|line| line.starts_with('.')) {
            let request = line[1..].split(' ').next().unwrap_or_default();
            assert!(["\\\"", "TH", "SH", "SS", "TP", "B", "BR"].contains(&request), "{line}");
        }
    }
}

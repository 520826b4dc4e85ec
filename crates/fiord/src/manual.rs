//! The manual pages: fiord(1), and one of each subcommand.
//!
//! Invariant: pure functions of what is declared elsewhere: options and examples of subcommands (the page of `--help`),
//! the table of options, the exit statuses. Nothing of these is repeated here.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use fiord_options::config::KEYS;
use fiord_options::reference::{self, roff};
use fiord_session::run::calibration;
use fiord_session::run::version::FIO_VERSION;
use fiord_session::study::scratch;

use crate::status;
use crate::subcommand::{Subcommand, Subcommands};

/// When the pages of this version were written: the version and this date are changed together.
const DATE: &str = "2026-11-23";

/// The line before the examples in what follows the options of `--help`.
const EXAMPLES: &str = "Examples:";

/// The variables that fiord reads, and what for.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("XDG_STATE_HOME", "Directory of the files that fiord keeps between runs; by default `~/.local/state`."),
    ("XDG_CONFIG_HOME", "Directory of the config file; by default `~/.config`."),
    ("HOME", "The home directory, for the defaults of these."),
    ("NO_COLOR", "If it is set and not empty, nothing is printed in colour."),
    ("TERM", "If it is `dumb`, nothing is printed in colour, and `--live` is refused."),
];

/// fiord(1).
pub(crate) fn of_fiord(subcommands: &Subcommands) -> String {
    let mut page = head("fiord", "storage I/O tester, compatible with fio");
    page.push_str(
        ".SH SYNOPSIS\n.B fiord\n[\\fIoptions\\fR] [\\fIjob options\\fR] [\\fIjob file\\fR ...]\n.br\n.B fiord\n\
         \\fIsubcommand\\fR [\\fIarguments\\fR]\n.SH DESCRIPTION\n\
         fiord runs the I/O that job files or the command line describe, and reports what it measured. It accepts the \
         job files and options of fio and prints reports in the same formats.\n\
         .SH SUBCOMMANDS\nEach has a page of its own, which \\fBfiord help\\fR \\fISUBCOMMAND\\fR prints in brief.\n",
    );
    for Subcommand { name, summary, .. } in subcommands.0 {
        let _ = writeln!(page, ".TP\n.BR {} (1)\n{}.", roff(&page_name(name)), roff(summary));
    }
    page.push_str(&reference::man_sections());
    section(&mut page, "FILES", files());
    section(&mut page, "ENVIRONMENT", environment());
    section(&mut page, "EXIT STATUS", statuses());
    page.push_str(".SH SEE ALSO\n.BR fio (1)\n");
    page
}

/// The page of one subcommand.
pub(crate) fn of(subcommand: &Subcommand) -> String {
    let mut command = (subcommand.declaration)();
    command.build();
    let mut page = head(&page_name(subcommand.name), subcommand.summary);
    page.push_str(".SH SYNOPSIS\n");
    usages(&command).iter().for_each(|usage| example(&mut page, usage));
    page.push_str(".SH DESCRIPTION\n");
    paragraphs(&mut page, &about(&command));
    page.push_str(".SH OPTIONS\n");
    arguments(&mut page, &command);
    for nested in nested(&command) {
        let _ = writeln!(page, ".SS \"{}\"", roff(&full_name(nested)));
        paragraphs(&mut page, &about(nested));
        arguments(&mut page, nested);
    }
    ending(&mut page, &command);
    section(&mut page, "FILES", files());
    section(&mut page, "ENVIRONMENT", environment());
    section(&mut page, "EXIT STATUS", statuses());
    page.push_str(".SH SEE ALSO\n.BR fiord (1)\n");
    page
}

/// `fiord-quick`, the name of the page of `quick`.
pub(crate) fn page_name(subcommand: &str) -> String {
    format!("fiord-{subcommand}")
}

fn head(name: &str, summary: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        ".\\\" Written by `fiord help --man`. Do not edit.\n.TH {} 1 {DATE} \"fiord {version}\" \"compatible with \
         {FIO_VERSION}\"\n.SH NAME\n{} \\- {}\n",
        roff(&name.to_uppercase()),
        roff(name),
        roff(summary)
    )
}

/// A heading, and a list of names and texts.
fn section(page: &mut String, heading: &str, entries: Vec<(String, String)>) {
    let _ = writeln!(page, ".SH {heading}");
    for (name, text) in entries {
        let _ = writeln!(page, ".TP\n\\fB{}\\fR\n{}", roff(&name), roff(&text));
    }
}

/// The files that fiord reads and creates by itself.
fn files() -> Vec<(String, String)> {
    // As the home directory is written in a manual.
    let home = |name: &str| (name == "HOME").then(|| OsString::from("/~"));
    let shown = |path: Option<PathBuf>| {
        path.map(|path| path.to_string_lossy().trim_start_matches('/').to_string()).unwrap_or_default()
    };
    let keys = KEYS.map(|key| format!("`{}`: {} (stronger: {}).", key.example, key.text, key.stronger));
    vec![
        (shown(fiord_store::config_path(home)), format!("Defaults, in TOML. {}", keys.join(" "))),
        (shown(fiord_store::default_path(home)), "The runs that were recorded.".to_string()),
        (
            shown(fiord_store::state_path(home, calibration::FILE)),
            "What fiord itself costs per I/O on this machine.".to_string(),
        ),
        (
            format!("{}STUDY-NUMBER/", scratch::PREFIX),
            "Scratch files of a study in the directory that is tested; removed at its end.".to_string(),
        ),
    ]
}

fn environment() -> Vec<(String, String)> {
    ENVIRONMENT.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

fn statuses() -> Vec<(String, String)> {
    status::MEANINGS.iter().map(|(status, text)| (status.to_string(), format!("{text}."))).collect()
}

/// The subcommands of a subcommand, but for `help`.
pub(crate) fn nested(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|nested| nested.get_name() != "help")
}

/// The words that call it: `fiord crash-test run`.
pub(crate) fn full_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).to_string()
}

/// The command lines that it takes and its subcommands take, one or more.
fn usages(command: &Command) -> Vec<String> {
    std::iter::once(command).chain(nested(command)).map(usage).collect()
}

/// The command line that it takes; of several, one on each line.
pub(crate) fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let lines = usage.strip_prefix("Usage: ").unwrap_or(&usage).lines().map(str::trim);
    lines.collect::<Vec<_>>().join("\n")
}

/// What it does, in full.
pub(crate) fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

/// Text that is filled, with a space between paragraphs.
fn paragraphs(page: &mut String, text: &str) {
    for (number, paragraph) in text.trim().split("\n\n").enumerate() {
        if number > 0 {
            page.push_str(".PP\n");
        }
        for line in paragraph.lines() {
            let _ = writeln!(page, "{}", roff(line.trim()));
        }
    }
}

/// Text whose lines stay as they are.
fn example(page: &mut String, text: &str) {
    let is_first = page.lines().next_back().is_some_and(|line| line.starts_with(".SH"));
    page.push_str(if is_first { ".nf\n" } else { ".PP\n.nf\n" });
    for line in text.lines() {
        let _ = writeln!(page, "{}", roff(line));
    }
    page.push_str(".fi\n");
}

/// What follows the options of `--help`: examples, and notes if there are any.
fn ending(page: &mut String, command: &Command) {
    let all = std::iter::once(command).chain(nested(command));
    let text: String = all
        .filter_map(|command| command.get_after_long_help().or(command.get_after_help()))
        .fold(String::new(), |text, ending| text + &ending.to_string().replace('\u{a0}', " ") + "\n\n");
    let (mut notes, mut examples) = (String::new(), String::new());
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        match paragraph.trim_start_matches('\n').strip_prefix(EXAMPLES) {
            Some(lines) => lines.trim_matches('\n').lines().for_each(|line| {
                let _ = writeln!(examples, "{}", line.strip_prefix("  ").unwrap_or(line));
            }),
            None => notes = notes + paragraph + "\n\n",
        }
    }
    if !notes.is_empty() {
        page.push_str(".SH NOTES\n");
        paragraphs(page, &notes);
    }
    if !examples.is_empty() {
        page.push_str(".SH EXAMPLES\n");
        example(page, examples.trim_end());
    }
}

/// The arguments in the order of `--help`.
fn arguments(page: &mut String, command: &Command) {
    let shown = |arg: &&Arg| !arg.is_hide_set();
    let options = command.get_arguments().filter(|arg| !arg.is_positional()).filter(shown);
    for arg in command.get_positionals().filter(shown).chain(options) {
        let _ = writeln!(page, ".TP\n{}\n{}", tag(arg), roff(&help(arg)));
        for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
            if let Some(text) = value.get_help() {
                let text = format!("`{}`: {text}", value.get_name());
                let _ = writeln!(page, ".br\n{}", roff(&text));
            }
        }
    }
}

/// `--time=TIME`, with its parts marked.
fn tag(arg: &Arg) -> String {
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| italic(name)).collect();
    let values = match arg.get_action() {
        ArgAction::Set | ArgAction::Append => values.join(" "),
        _ => String::new(),
    };
    let bold = |dashes: &str, name: &str| format!("\\fB{}\\fR", roff(&format!("{dashes}{name}")));
    let short = arg.get_short().map(|short| bold("-", &short.to_string()));
    let long = arg.get_long().map(|long| bold("--", long));
    let names = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let is_repeated = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    let more = if is_repeated || matches!(arg.get_action(), ArgAction::Append) { " ..." } else { "" };
    let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    match (names.is_empty(), values.is_empty()) {
        (true, _) => format!("{values}{more}"),
        (false, true) => names,
        (false, false) if is_optional => format!("{names}[={values}]{more}"),
        (false, false) => format!("{names}={values}{more}"),
    }
}

fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", roff(text))
}

/// What an argument is for, its default and its values.
fn help(arg: &Arg) -> String {
    let text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !text.ends_with(['.', '?', '!']) {
        text.push('.');
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !arg.is_hide_default_value_set() && arg.get_action().takes_values() {
        let _ = write!(text, " Default: `{}`.", defaults.join(" "));
    }
    let values = arg.get_possible_values();
    let values: Vec<_> =
        values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
    if !values.is_empty() && !arg.is_hide_possible_values_set() {
        let _ = write!(text, " Values: `{}`.", values.join("`, `"));
    }
    text
}

//! What a study prints: what it will do, what it found, its JSON.
//!
//! Invariant: values in, text out; colours are added on a terminal alone, never where `NO_COLOR` is set, and nothing is
//! told by them.

use std::fmt::Write;

use fiord_lab::{Findings, Site, Study};
use fiord_report::Warning;
use fiord_report::json::{Writer, warnings};
use fiord_report::path;
use fiord_sys::tty;

use super::checked::Checked;
use super::progress::duration;
use super::ways::Ways;
use crate::environment;

/// What it will do, on what, and how long it takes.
pub(super) fn opening(study: &dyn Study, site: Option<&Site>, ways: &Ways, width: usize) -> String {
    let fills = study.steps().iter().any(|step| step.prepares);
    let after = if fills { " after its file is filled" } else { "" };
    let title =
        format!("fiord {}: {}, about {}{after}", study.name(), study.purpose(), duration(study.time()));
    let mut heading = site.map_or(Vec::new(), |site| site.heading(&ways.told(site)));
    heading.extend(study.heading());
    folded(&title, width, 0) + &labelled(&heading, width) + "\n"
}

/// Lines of a name and a text each, the texts below each other.
pub(crate) fn labelled(lines: &[(&str, String)], width: usize) -> String {
    let widest = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, text): &(&str, String)| folded(&format!("{name:<widest$}  {text}"), width, widest + 2);
    lines.iter().map(line).collect()
}

/// The table, its pictures, the sentence, and what else there is to say.
pub(super) fn closing(findings: &Findings, said: &[Warning], width: usize, coloured: bool) -> String {
    let text = findings.coloured.as_ref().filter(|_| coloured).unwrap_or(&findings.text);
    let mut text = painted(text, coloured);
    if !findings.conclusion.is_empty() {
        text += "\n";
        text += &folded(&findings.conclusion, width, 0);
    }
    if !said.is_empty() {
        text += "\nWarnings:\n";
    }
    for Warning { code, place, message } in said {
        text += &folded(&format!("    {place}: {code}: {}", message.replace('\n', "; ")), width, 4);
    }
    text
}

/// The table, and below it what else there is to say.
pub(super) fn markdown(findings: &Findings, said: &[Warning]) -> String {
    let mut text = findings.shown.as_ref().unwrap_or(&findings.table).markdown();
    if !said.is_empty() {
        text += "\n";
    }
    for Warning { code, place, message } in said {
        text += &format!("- `{place}`: `{code}`: {}\n", message.replace('\n', "; "));
    }
    text
}

/// Everything as one document; `why` it is not complete, if it is not.
pub(super) fn json(
    study: &dyn Study,
    site: Option<&Site>,
    checked: &Checked,
    findings: &Findings,
    why: Option<&str>,
) -> String {
    Writer::document(|json| {
        json.string("study", study.name());
        json.boolean("complete", why.is_none());
        optional(json, "error", why);
        match site {
            Some(site) => json.object("target", |json| target(json, site, &checked.ways)),
            None => json.null("target"),
        }
        checked.ways.jobs.write_json(json, "jobs");
        findings.table.write_json(json, "rows");
        for (key, table) in &findings.tables {
            table.write_json(json, key);
        }
        for (key, cell) in &findings.facts {
            cell.write(json, key);
        }
        optional(json, "conclusion", Some(findings.conclusion.as_str()).filter(|text| !text.is_empty()));
        warnings(json, &checked.told.warnings);
    })
}

fn target(json: &mut Writer, site: &Site, ways: &Ways) {
    let Site {
        target,
        file,
        writable,
        size_bytes,
        direct,
        in_memory,
        engine: _,
        file_system,
        devices,
        remarks,
    } = site;
    json.string("path", &path::text(target));
    json.string("file", &path::text(file));
    json.boolean("writable", *writable);
    json.integer("size_bytes", size_bytes);
    json.boolean("takes_direct", *direct);
    match ways.direct() {
        Some(direct) => json.boolean("direct", direct),
        None => json.null("direct"),
    }
    json.boolean("in_memory", *in_memory);
    optional(json, "engine", ways.engine());
    optional(json, "file_system", file_system.as_deref());
    devices.write_json(json, "devices");
    json.strings("remarks", remarks);
}

fn optional(json: &mut Writer, key: &str, text: Option<&str>) {
    match text {
        Some(text) => json.string(key, text),
        None => json.null(key),
    }
}

/// A text of any length as lines of at most `width`, those after the first indented. Words are not broken.
fn folded(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut line = 0;
    let lead = text.chars().take_while(|c| *c == ' ').count();
    // What stands before the text of a heading keeps its blanks.
    let (head, rest) = text.split_at(text.char_indices().nth(indent).map_or(lead, |(at, _)| at));
    lines += head;
    line += head.chars().count();
    for (number, word) in rest.split(' ').enumerate() {
        let length = word.chars().count();
        if number > 0 && line + 1 + length > width {
            let _ = write!(lines, "\n{:indent$}", "");
            line = indent;
        } else if number > 0 {
            lines.push(' ');
            line += 1;
        }
        lines += word;
        line += length;
    }
    lines + "\n"
}

/// Whether colours are shown: on a terminal, unless the user wants none (no-color.org).
pub(crate) fn is_coloured() -> bool {
    tty::stdout_is_terminal()
        && environment::variable("NO_COLOR").is_none_or(|value| value.is_empty())
        && environment::variable("TERM").is_none_or(|name| name != "dumb")
}

/// Bars in colour.
fn painted(text: &str, coloured: bool) -> String {
    const ON: &str = "\u{1b}[36m";
    const OFF: &str = "\u{1b}[0m";
    let mut painted = String::with_capacity(text.len());
    let mut inside = false;
    for letter in text.chars() {
        let bar = coloured && ('\u{2581}'..='\u{258f}').contains(&letter);
        if bar != inside {
            painted += if bar { ON } else { OFF };
            inside = bar;
        }
        painted.push(letter);
    }
    painted + if inside { OFF } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_go_on_below_their_text() {
        assert_eq!(folded("one two three", 80, 0), "one two three\n");
        assert_eq!(folded("one two three", 8, 0), "one two\nthree\n");
        assert_eq!(folded("Name  one two three", 13, 6), "Name  one two\n      three\n");
        assert_eq!(folded("unbreakable", 4, 0), "unbreakable\n");
    }

    #[test]
    fn bars_are_coloured_and_nothing_else() {
        assert_eq!(painted("a ██▏ b\n", true), "a \u{1b}[36m██▏\u{1b}[0m b\n");
        assert_eq!(painted("a ██▏ b\n", false), "a ██▏ b\n");
    }
}

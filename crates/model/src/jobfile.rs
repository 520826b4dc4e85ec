//! A job file as values, and its text: each option below the reason for its value.
//!
//! Invariant: what comes from a trace stands in comments with its control characters replaced, and never in an option but
//! as a name of letters, digits, dots, hyphens and underscores.

use std::fmt::Write;

use fiord_report::table::wrapped;

/// An option with its value, and why it has that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub name: &'static str,
    /// Its value, as fio's language writes it.
    pub value: String,
    /// Why, in one sentence without a full stop; empty if the option before says it.
    pub why: String,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Position of its stream among those of the trace.
    pub stream: usize,
    /// What it stands for.
    pub about: String,
    /// Its options.
    pub options: Vec<Chosen>,
}

/// A job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    /// What it is, and what to know before it is run.
    pub about: Vec<String>,
    /// Options of all sections.
    pub global: Vec<Chosen>,
    /// Its sections.
    pub sections: Vec<Section>,
}

/// The beginning of every text, by which a file is known as one that fiord wrote.
pub const MARK: &str = "# Made by fiord model ";

/// Columns of a comment.
const WIDTH: usize = 98;

impl JobFile {
    /// Its text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.about.iter().for_each(|about| comment(&mut text, about));
        if !self.global.is_empty() {
            text.push_str("\n[global]\n");
            options(&mut text, &self.global);
        }
        for section in &self.sections {
            let _ = writeln!(text, "\n[{}]", section.name);
            comment(&mut text, &section.about);
            options(&mut text, &section.options);
        }
        text
    }
}

fn options(text: &mut String, options: &[Chosen]) {
    for Chosen { name, value, why } in options {
        comment(text, why);
        let _ = writeln!(text, "{name}={value}");
    }
}

fn comment(text: &mut String, sentence: &str) {
    if sentence.is_empty() {
        return;
    }
    let shown: String = sentence.chars().map(|char| if char.is_control() { '?' } else { char }).collect();
    for line in wrapped(&shown, WIDTH) {
        let _ = writeln!(text, "# {}", line.trim());
    }
}

/// Bytes as fio's language writes them: `4k`, `3m`, `2300`.
pub fn bytes(bytes: u64) -> String {
    for (shift, unit) in [(30, "g"), (20, "m"), (10, "k")] {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// A name of a section or file made of any text: `wal.log`.
pub(crate) fn plain_name(text: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '_' };
    let name: String = text.chars().map(plain).take(64).collect();
    match name.trim_start_matches(['.', '-']) {
        "" | "global" => format!("file-{}", name.len()),
        name => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_section_or_directory() {
        assert_eq!(plain_name("wal.log"), "wal.log");
        assert_eq!(plain_name("a]\n[b=c:d"), "a___b_c_d");
        assert_eq!(plain_name("../../etc"), "_.._etc");
        assert_eq!(plain_name("global"), "file-6");
        assert_eq!(plain_name(""), "file-0");
    }

    #[test]
    fn sizes_have_the_largest_unit_that_divides_them() {
        assert_eq!(
            [0, 512, 2300, 4096, 3 << 20, 1 << 40].map(bytes),
            ["0", "512", "2300", "4k", "3m", "1024g"]
        );
    }

    #[test]
    fn comments_keep_control_characters_out() {
        let mut text = String::new();
        comment(&mut text, "the file a\nfilename=/dev/sda");
        assert_eq!(text, "# the file a?filename=/dev/sda\n");
    }
}

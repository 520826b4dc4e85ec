//! A check in words: what it runs, what it measures, and what it requires of a disk.
//!
//! Invariant: every limit is shown with its source, every figure with what it is made of, and no text of the file controls a
//! terminal.

use fiord_report::path::visible_lines;
use fiord_report::table::shown_bytes;

use super::expression::Expression;
use super::job_file::Space;
use super::limit::Better;
use super::profile::{FigureOfCheck, Profile};

impl Profile {
    /// In words, each paragraph a line.
    pub fn explained(&self) -> String {
        let mut text = format!(
            "{}: {}\n\nPASS means that a disk is fast enough for {}.\n\n",
            self.name, self.runs, self.workload
        );
        for stage in &self.stages {
            let jobs: Vec<&str> = stage.jobs.iter().map(|job| job.name.as_str()).collect();
            let (jobs, seconds) = (jobs.join(", "), stage.seconds);
            text += &match seconds {
                0 => format!("Before: {jobs}, until everything is written; not measured.\n"),
                _ if stage.jobs.len() == 1 => format!("Measured: {jobs}, at most {seconds} s.\n"),
                _ => format!("Measured: {jobs}, at the same time, at most {seconds} s.\n"),
            };
        }
        let Space { fixed_bytes, files, .. } = self.space;
        let mut space = Vec::new();
        if fixed_bytes > 0 {
            space.push(shown_bytes(fixed_bytes));
        }
        if files > 0 {
            space.push(format!("{files} x --size"));
        }
        let rounds = if self.rounds == 1 { "once".to_string() } else { format!("{} times", self.rounds) };
        text += &format!(
            "All of it {rounds} or more, at most {} s together. Space: {}.\n",
            self.seconds(),
            space.join(" and ")
        );
        self.figures.iter().for_each(|figure| text += &figure.explained());
        if !self.forbidden.is_empty() {
            let codes: Vec<&str> = self.forbidden.iter().map(|code| code.name()).collect();
            text += &format!("\nFails with one of these findings: {}\n", codes.join(", "));
        }
        visible_lines(&text)
    }
}

impl FigureOfCheck {
    fn explained(&self) -> String {
        let Expression(parts) = &self.of;
        let which = if parts.len() > 1 { " (the worst of several)" } else { "" };
        let mut text = format!("\n{}{which}\n", self.title);
        let Some(limit) = &self.limit else { return text + "    reported without a limit\n" };
        let unit = self.of.unit();
        let shown = |value: f64| unit.with_unit(&unit.cell(value).shown());
        let (within, beyond) = match limit.better {
            Better::Lower => ("up to", "above"),
            Better::Higher => ("from", "below"),
        };
        text += &match limit.fail {
            Some(fail) => format!("    PASS {within} {}, FAIL {beyond} {}\n", shown(limit.pass), shown(fail)),
            None => format!("    PASS {within} {}, else MARGINAL\n", shown(limit.pass)),
        };
        text += &format!("    from: {}\n", limit.from);
        if let Some(remedy) = &self.remedy {
            text += &format!("    else: {remedy}\n");
        }
        text
    }
}

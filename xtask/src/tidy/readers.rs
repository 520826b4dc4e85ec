//! Every option that is declared ready is read by the planner, and every field of the plan by whoever carries it out.
//!
//! Invariant: what is only written is found; tests, comments and strings do not count as readers.

use fiord_options::table::{engine_specs, job_specs};
use fiord_options::{Spec, Status};

use super::source;
use crate::repo;

/// Options that are ready without being read, each with the reason.
const NEEDS_NO_READER: [(&str, &str); 1] = [("thread", "workers are always threads")];

/// Where the planner is, which turns options into the plan.
const PLANNER: &str = "crates/plan/src/";

/// The planner's files that hold no part of the plan: its input, the making of it, and what is made of it there.
const NOT_THE_PLAN: [&str; 6] = ["lib.rs", "facts.rs", "touch.rs", "rules.rs", "seed.rs", "build/"];

/// Where the plan is carried out and reported.
const READERS: [&str; 5] = [
    "crates/workload/src/",
    "crates/engine/src/",
    "crates/worker/src/",
    "crates/report/src/",
    "crates/fiord/src/",
];

/// One line per option or field that nobody reads.
pub fn check() -> Result<Vec<String>, String> {
    let (mut planner, mut readers, mut fields) = (String::new(), String::new(), Vec::new());
    for path in repo::files()?.into_iter().filter(|path| path.ends_with(".rs") && !path.ends_with("tests.rs"))
    {
        let own = path.strip_prefix(PLANNER);
        if own.is_none() && !READERS.iter().any(|room| path.starts_with(room)) {
            continue;
        }
        let Some(text) = repo::read(&path) else { continue };
        let code = code(&text);
        match own {
            Some(name) => {
                if !NOT_THE_PLAN.iter().any(|other| name.starts_with(other)) {
                    fields.extend(declared(&code).into_iter().map(|field| (path.clone(), field)));
                }
                planner.push_str(&code);
            }
            None => readers.push_str(&code),
        }
    }
    let ready = |spec: &&Spec| spec.status == Status::Ready;
    let mut findings: Vec<String> = Vec::new();
    for spec in job_specs().iter().chain(engine_specs()).filter(ready) {
        let excused = NEEDS_NO_READER.iter().any(|(name, _)| *name == spec.name);
        if excused == is_read_option(&planner, spec.name) {
            findings.push(match excused {
                true => format!("{PLANNER}: the option {} is read; it needs no excuse", spec.name),
                false => {
                    format!("{PLANNER}: the option {} is declared ready, and nobody reads it", spec.name)
                }
            });
        }
    }
    let unread = fields.into_iter().filter(|(_, field)| !is_read_field(&readers, field));
    findings.extend(unread.map(|(path, field)| format!("{path}: nobody reads the plan's field {field}")));
    Ok(findings)
}

/// The text without comments and tests. Strings stay, as some options are read by name.
fn code(text: &str) -> String {
    let blanked = source::blank(text);
    let tests = source::test_lines(&blanked);
    let is_test = |line: usize| tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
    let mut lines = String::with_capacity(text.len());
    for (index, (line, blanked)) in text.lines().zip(blanked.lines()).enumerate() {
        if !is_test(index + 1) {
            let is_comment = blanked.trim().is_empty();
            lines.push_str(if is_comment { "" } else { line.split(" // ").next().unwrap_or(line) });
            lines.push('\n');
        }
    }
    lines
}

/// Whether `options.NAME` or `own.NAME` stands somewhere, or the settings of that name are asked for.
fn is_read_option(code: &str, name: &str) -> bool {
    let field = name.replace('-', "_");
    let is_read = |at: usize| {
        let owner = code[..at].trim_end().strip_suffix('.').map(str::trim_end);
        owner.is_some_and(|owner| owner.ends_with("options") || owner.ends_with("own"))
    };
    source::words(code, &field).any(is_read) || code.contains(&format!(".all(\"{name}\")"))
}

/// Whether a field is read: behind a dot, or taken out of its structure by a pattern.
fn is_read_field(code: &str, field: &str) -> bool {
    source::words(code, field).any(|at| {
        let behind = code[at + field.len()..].trim_start();
        code[..at].trim_end().ends_with('.') || behind.starts_with([',', '}'])
    })
}

/// The public fields that a file declares.
fn declared(code: &str) -> Vec<String> {
    let field = |line: &str| {
        let (name, _) = line.strip_prefix("    pub ")?.split_once(':')?;
        name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_').then(|| name.to_string())
    };
    code.lines().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_read_by_its_field_or_its_name() {
        let planner = code(
            "// options.nice\nlet a = options\n    .iodepth_low; f(own.fixedbufs); given.all(\"file\");\n",
        );
        assert!(is_read_option(&planner, "iodepth_low") && is_read_option(&planner, "fixedbufs"));
        assert!(is_read_option(&planner, "file"));
        assert!(!is_read_option(&planner, "nice"), "comments read nothing");
        assert!(!is_read_option(&planner, "iodepth"), "words are whole");
        assert!(!is_read_option("barriers.write_barrier", "write_barrier"));
    }

    #[test]
    fn a_field_is_read_behind_a_dot_or_in_a_pattern() {
        let reader = "let Pace { think, .. } = pace; job.depth.max; Barriers { every: 3 }";
        assert!(is_read_field(reader, "think") && is_read_field(reader, "depth"));
        assert!(!is_read_field(reader, "every"), "what is only written is not read");
        assert!(!is_read_field(reader, "userspace_reap"));
    }

    #[test]
    fn tests_read_nothing_and_fields_are_found() {
        let text = "pub struct A {\n    /// Doc.\n    pub b: u8, // last\n}\n#[cfg(test)]\nmod tests {\n    pub c: u8,\n}\n";
        assert_eq!(declared(&code(text)), ["b"]);
    }
}

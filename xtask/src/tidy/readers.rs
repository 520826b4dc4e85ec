//! Every option that is declared ready is read by the planner, and every field of the plan by the code that carries it
//! out.
//!
//! Invariant: options and fields that are only written are found; tests and comments do not count as readers.

use std::collections::BTreeSet;

use fiord_options::table::{engine_specs, job_specs};
use fiord_options::{Spec, Status, job};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Expr, ExprAssign, ExprField, ExprMethodCall, FieldPat, Fields, File, Item, Macro, Member, Visibility,
};

use super::tree;
use super::uses;
use crate::repo;

/// Options that are ready without being read, each with the reason.
const NEEDS_NO_READER: [(&Spec, &str); 1] = [(job::Process::thread, "workers are always threads")];

/// The directory of the planner, which turns options into the plan.
const PLANNER: &str = "crates/plan/src/";

/// The directory of the engines, each of which resolves its own options.
const ENGINES: &str = "crates/engine/src/";

/// The planner's files that declare no part of the plan: its input, its construction, and values derived from it.
const NOT_THE_PLAN: [&str; 6] = ["lib.rs", "example.rs", "facts.rs", "path_change.rs", "seed.rs", "build/"];

/// The directories of the code that carries out the plan and reports on it.
const READERS: [&str; 7] = [
    "crates/workload/src/",
    "crates/engine/src/",
    "crates/worker/src/",
    "crates/findings/src/",
    "crates/report/src/",
    "crates/session/src/",
    "crates/fiord/src/",
];

/// One line per option or field that is never read.
pub fn check() -> Result<Vec<String>, String> {
    let (mut planner, mut readers, mut fields) = (Reads::default(), Reads::default(), Vec::new());
    let mut engines = Reads::default();
    for path in repo::files()?.into_iter().filter(|path| path.ends_with(".rs") && !path.ends_with("tests.rs"))
    {
        let own = path.strip_prefix(PLANNER);
        if own.is_none() && !READERS.iter().any(|room| path.starts_with(room)) {
            continue;
        }
        let Some(text) = repo::read(&path) else { continue };
        let code = syn::parse_file(&text).map_err(|error| format!("{path}: {error}"))?;
        match own {
            Some(name) => {
                if !NOT_THE_PLAN.iter().any(|other| name.starts_with(other)) {
                    fields.extend(declared(&code).into_iter().map(|field| (path.clone(), field)));
                }
                planner.visit_file(&code);
            }
            None => {
                readers.visit_file(&code);
                if path.starts_with(ENGINES) {
                    engines.visit_file(&code);
                }
            }
        }
    }
    let ready = |spec: &&Spec| spec.status == Status::Ready;
    let mut findings: Vec<String> = Vec::new();
    let of_jobs = job_specs().map(|spec| (spec, PLANNER, &planner));
    let of_engines = engine_specs().map(|spec| (spec, ENGINES, &engines));
    for (spec, place, resolver) in of_jobs.chain(of_engines).filter(|(spec, ..)| ready(spec)) {
        let excused = NEEDS_NO_READER.iter().any(|(option, _)| *option == spec);
        if excused == resolver.has_option(spec.name) {
            findings.push(match excused {
                true => format!("{place}: the option {} is read; remove the exception", spec.name),
                false => format!("{place}: the option {} is declared ready, but never read", spec.name),
            });
        }
    }
    let unread = fields.into_iter().filter(|(_, field)| !readers.fields.contains(field));
    findings.extend(unread.map(|(path, field)| format!("{path}: the plan's field {field} is never read")));
    Ok(findings)
}

/// What a file reads.
#[derive(Default)]
struct Reads {
    /// Fields of any structure.
    fields: BTreeSet<String>,
    /// Fields of the options of a job, or of an engine's own.
    options: BTreeSet<String>,
    /// Options whose settings are all requested.
    named: BTreeSet<String>,
}

impl Reads {
    /// Whether the option of this name is read: its field, or all its settings.
    fn has_option(&self, name: &str) -> bool {
        let name = name.replace('-', "_");
        self.options.contains(&name) || self.named.contains(&name)
    }

    /// Records a field of the last of `owners`: `options.time` are the owners of `options.time.runtime`.
    fn note(&mut self, owners: &[String], field: String) {
        let of_job = owners.iter().rev().take(2).any(|owner| owner.ends_with("options"));
        if of_job || owners.last().is_some_and(|owner| owner == "own") {
            self.options.insert(field.clone());
        }
        self.fields.insert(field);
    }

    /// Fields in macro arguments that are not expressions: names after dots.
    fn scan(&mut self, tokens: TokenStream) {
        let (mut owners, mut behind_dot): (Vec<String>, bool) = (Vec::new(), false);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    match behind_dot {
                        true => self.note(&owners, name.clone()),
                        false => owners.clear(),
                    }
                    owners.push(name);
                    behind_dot = false;
                }
                TokenTree::Punct(punct) => behind_dot = punct.as_char() == '.',
                TokenTree::Group(group) => self.scan(group.stream()),
                TokenTree::Literal(_) => behind_dot = false,
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reads {
    fn visit_item(&mut self, item: &'ast Item) {
        if !tree::only_for_tests(tree::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_expr_field(&mut self, read: &'ast ExprField) {
        if let Member::Named(field) = &read.member {
            self.note(&owners(&read.base), field.to_string());
        }
        visit::visit_expr_field(self, read);
    }

    fn visit_expr_assign(&mut self, assignment: &'ast ExprAssign) {
        match assignment.left.as_ref() {
            // The left side of an assignment is written.
            Expr::Field(written) => self.visit_expr(&written.base),
            left => self.visit_expr(left),
        }
        self.visit_expr(&assignment.right);
    }

    fn visit_field_pat(&mut self, taken: &'ast FieldPat) {
        if let Member::Named(field) = &taken.member {
            self.fields.insert(field.to_string());
        }
        visit::visit_field_pat(self, taken);
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        if let (true, Some(Expr::Path(option))) = (call.method == "all", call.args.first())
            && let Some(name) = option.path.segments.last()
        {
            self.named.insert(name.ident.to_string());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        match uses::arguments(invoked) {
            Some(arguments) => arguments.iter().for_each(|argument| Visit::visit_expr(self, argument)),
            None => self.scan(invoked.tokens.clone()),
        }
    }
}

/// The names of the fields before this one in the expression.
fn owners(of: &Expr) -> Vec<String> {
    match of {
        Expr::Path(path) => {
            path.path.segments.last().map(|last| last.ident.to_string()).into_iter().collect()
        }
        Expr::Field(field) => {
            let mut owners = owners(&field.base);
            if let Member::Named(name) = &field.member {
                owners.push(name.to_string());
            }
            owners
        }
        _ => Vec::new(),
    }
}

/// The public fields of the structures that a file declares.
fn declared(code: &File) -> Vec<String> {
    let structures = code.items.iter().filter_map(|item| match item {
        Item::Struct(structure) if !tree::only_for_tests(&structure.attrs) => match &structure.fields {
            Fields::Named(fields) => Some(fields.named.iter()),
            _ => None,
        },
        _ => None,
    });
    let is_public = |field: &&syn::Field| matches!(field.vis, Visibility::Public(_));
    structures
        .flatten()
        .filter(is_public)
        .filter_map(|field| Some(field.ident.as_ref()?.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(code: &str) -> Reads {
        let mut reads = Reads::default();
        reads.visit_file(&syn::parse_file(code).unwrap());
        reads
    }

    #[test]
    fn an_option_is_read_by_its_field_or_all_its_settings() {
        let planner = reads(
            "// options.nice\nfn f() { let a = job.options.queue\n    .iodepth_low; f(own.fixedbufs); given.all(job::Files::file); }",
        );
        for name in ["iodepth_low", "fixedbufs", "file"] {
            assert!(planner.has_option(name), "{name}");
        }
        assert!(!planner.has_option("nice"), "comments do not count");
        assert!(!planner.has_option("iodepth"), "names are whole");
        assert!(!reads("fn f() { barriers.write_barrier }").has_option("write_barrier"));
    }

    #[test]
    fn a_field_is_read_after_a_dot_or_in_a_pattern() {
        let code = "fn f() { let Pace { think, .. } = pace; job.depth.max = 1; Barriers { every, all: 3 };
                    line!(out, \"{}\", job.name); other! { a => job.size } }";
        let fields = reads(code).fields;
        let expected = ["depth", "name", "size", "think"].map(String::from);
        assert_eq!(fields.into_iter().collect::<Vec<_>>(), expected, "a write is not a read");
    }

    #[test]
    fn tests_read_nothing_and_fields_are_found() {
        let text = "pub struct A { /// Doc.\n pub b: u8, c: u8 }\n#[cfg(test)]\nmod tests { pub struct B { pub d: u8 } fn f() { a.b } }\n";
        assert_eq!(declared(&syn::parse_file(text).unwrap()), ["b"]);
        assert!(reads(text).fields.is_empty());
    }
}

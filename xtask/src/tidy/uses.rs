//! All paths in code, including those in macro arguments.
//!
//! Invariant: a path is returned as written, with its line; `names.rs` resolves it.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemUse, Macro, Path, Token, Visibility};

use super::tree::{self, Names};

/// A path somewhere in the code.
#[derive(Debug, PartialEq, Eq)]
pub struct Use {
    /// The path as written.
    pub path: Names,
    /// The line it is on, from 1.
    pub line: usize,
    /// Whether it is re-exported by `pub use`, with any visibility.
    pub handed_on: bool,
}

/// All paths in these items, excluding the code of tests.
pub fn of(code: &[Item]) -> Vec<Use> {
    let mut uses = Uses::default();
    code.iter().for_each(|item| uses.visit_item(item));
    uses.found
}

/// The arguments of a macro, if they are expressions separated by commas.
pub fn arguments(invoked: &Macro) -> Option<Vec<Expr>> {
    let parser = Punctuated::<Expr, Token![,]>::parse_terminated;
    Some(parser.parse2(invoked.tokens.clone()).ok()?.into_iter().collect())
}

#[derive(Default)]
struct Uses {
    found: Vec<Use>,
}

impl Uses {
    fn note(&mut self, path: Names, line: usize) {
        self.found.push(Use { path, line, handed_on: false });
    }

    /// The paths of a macro's arguments that are neither expressions nor statements. A single name counts if it looks
    /// like a type, since other names are mostly fields and variables.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) => {
                    if colons != 2 || path.is_empty() {
                        self.end_of_path(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                }
                other => {
                    self.end_of_path(&mut path, line);
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
            colons = 0;
        }
        self.end_of_path(&mut path, line);
    }

    fn end_of_path(&mut self, path: &mut Names, line: usize) {
        let path = std::mem::take(path);
        let is_type = path.first().is_some_and(|name| name.starts_with(char::is_uppercase));
        if path.len() > 1 || is_type {
            self.note(path, line);
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item(&mut self, item: &'ast Item) {
        if !tree::only_for_tests(tree::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        let handed_on = !matches!(import.vis, Visibility::Inherited);
        let line = import.use_token.span.start().line;
        let paths = tree::used(&import.tree).into_iter();
        self.found.extend(paths.map(|(_, path)| Use { path, line, handed_on }));
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        self.note(names, line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        match arguments(invoked) {
            Some(arguments) => arguments.iter().for_each(|argument| Visit::visit_expr(self, argument)),
            None => self.scan(invoked.tokens.clone()),
        }
    }

    // `pub(in path)` and attributes name no item that this code depends on.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

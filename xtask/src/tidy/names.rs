//! Resolves paths to the items of a target, through imports and re-exports.
//!
//! Invariant: a path resolves to the module that defines the item, never to one that re-exports it.

use std::collections::BTreeSet;

use super::tree::Tree;

/// The target of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A module.
    Module(usize),
    /// An item, and the module that defines it.
    Item(usize),
}

/// Resolves `path` in `module`; `None` if it is not of this target.
pub fn resolve(tree: &Tree, module: usize, path: &[String]) -> Option<Target> {
    Search { tree, tried: BTreeSet::new() }.path(module, path)
}

struct Search<'t> {
    tree: &'t Tree,
    /// Names being resolved, so that circular imports end.
    tried: BTreeSet<(usize, String)>,
}

impl Search<'_> {
    fn path(&mut self, module: usize, path: &[String]) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(module),
            "super" => Target::Module(self.tree.modules[module].parent?),
            name => self.name(module, name, !rest.is_empty())?,
        };
        while let (Target::Module(inside), Some((name, behind))) = (at, rest.split_first()) {
            at = match name.as_str() {
                "super" => Target::Module(self.tree.modules[inside].parent?),
                name => self.name(inside, name, !behind.is_empty())?,
            };
            rest = behind;
        }
        Some(at)
    }

    /// Resolves a name inside a module; if `more` of the path follows, a module rather than an item.
    fn name(&mut self, module: usize, name: &str, more: bool) -> Option<Target> {
        let inside = &self.tree.modules[module];
        let child = inside.children.get(name).map(|child| Target::Module(*child));
        let item = inside.items.contains(name).then_some(Target::Item(module));
        if let Some(own) = if more { child.or(item) } else { item.or(child) } {
            return Some(own);
        }
        if !self.tried.insert((module, name.to_string())) {
            return None;
        }
        let imported = inside.imports.get(name).into_iter().flatten();
        let mut found = imported.filter_map(|path| self.path(module, path)).collect::<Vec<_>>();
        if found.is_empty() {
            for glob in &inside.globs {
                if let Some(Target::Module(from)) = self.path(module, glob) {
                    found.extend(self.name(from, name, more));
                }
            }
        }
        self.tried.remove(&(module, name.to_string()));
        found.into_iter().next()
    }
}

//! The modules of one crate target, parsed by `syn`, and the names each of them defines and imports.
//!
//! Invariant: code compiled only for tests (`#[cfg(test)]`) is not in the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Attribute, Expr, Item, ItemUse, Lit, Meta, UseTree};

/// A path as written, one name each: `crate::a::B`.
pub type Names = Vec<String>;

/// A module: a file of its own, or a part of its parent's file.
pub struct Module {
    /// Index of its file in `Tree::files`.
    pub file: usize,
    /// Index of the module around it; `None` for the root.
    pub parent: Option<usize>,
    /// Its child modules, by name.
    pub children: BTreeMap<String, usize>,
    /// Names of the items it defines.
    pub items: BTreeSet<String>,
    /// Names it imports, each with the paths it may refer to.
    pub imports: BTreeMap<String, Vec<Names>>,
    /// Paths whose every name it imports (`use path::*`).
    pub globs: Vec<Names>,
    /// Its code, without its child modules.
    pub code: Vec<Item>,
}

/// All modules of one target; the first is its root.
#[derive(Default)]
pub struct Tree {
    /// Files, relative to the root of the repository.
    pub files: Vec<String>,
    /// Modules; a parent comes before its children.
    pub modules: Vec<Module>,
    /// Indices of the files that are modules only because of a macro. Programs that do not expand macros miss them.
    pub found_by_macros: Vec<usize>,
}

/// Reads the text of a file; `None` if it does not exist.
pub type Read<'r> = &'r dyn Fn(&str) -> Option<String>;

impl Tree {
    /// Reads the target whose first file is `root`, and every file it names.
    ///
    /// # Errors
    /// If a file is missing or is not Rust, with its name and line.
    pub fn read(root: &str, read: Read) -> Result<Tree, String> {
        let mut tree = Tree::default();
        tree.add_file(root.to_string(), parent_of(Path::new(root)), None, read)?;
        Ok(tree)
    }

    /// Adds a file and its module; `directory` is where the files of the module's children are.
    fn add_file(
        &mut self,
        path: String,
        directory: PathBuf,
        parent: Option<usize>,
        read: Read,
    ) -> Result<usize, String> {
        let text = read(&path).ok_or_else(|| format!("{path}: this file of a module is missing"))?;
        let parsed = syn::parse_file(&text)
            .map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
        self.files.push(path);
        self.add_module(parsed.items, self.files.len() - 1, directory, parent, read)
    }

    fn add_module(
        &mut self,
        items: Vec<Item>,
        file: usize,
        directory: PathBuf,
        parent: Option<usize>,
        read: Read,
    ) -> Result<usize, String> {
        let index = self.modules.len();
        let (children, code): (Vec<Item>, Vec<Item>) = items
            .into_iter()
            .filter(|item| !only_for_tests(attributes(item)))
            .partition(|item| matches!(item, Item::Mod(_)));
        self.modules.push(Module::of(code, file, parent));
        for child in children {
            let Item::Mod(child) = child else { continue };
            let name = child.ident.to_string();
            let below = directory.join(&name);
            let added = match (child.content, path_attribute(&child.attrs)) {
                (Some((_, items)), _) => self.add_module(items, file, below, Some(index), read)?,
                (None, Some(named)) => {
                    let path = parent_of(Path::new(&self.files[file])).join(named);
                    self.add_file(as_text(&path), parent_of(&path), Some(index), read)?
                }
                (None, None) => self.add_file_of(&name, &directory, index, read)?,
            };
            self.modules[index].children.insert(name, added);
        }
        for name in declared_by_macros(&self.modules[index].code) {
            self.found_by_macros.push(self.files.len());
            let added = self.add_file_of(&name, &directory, index, read)?;
            self.modules[index].children.insert(name, added);
        }
        Ok(index)
    }

    /// Adds the file of a child module, which is where the compiler looks for it.
    fn add_file_of(
        &mut self,
        name: &str,
        directory: &Path,
        parent: usize,
        read: Read,
    ) -> Result<usize, String> {
        let beside = as_text(&directory.join(format!("{name}.rs")));
        let below = directory.join(name);
        let path = if read(&beside).is_some() { beside } else { as_text(&below.join("mod.rs")) };
        self.add_file(path, below, Some(parent), read)
    }

    /// Whether `module` is below `ancestor`.
    pub fn is_below(&self, module: usize, ancestor: usize) -> bool {
        let mut at = self.modules[module].parent;
        while let Some(parent) = at {
            if parent == ancestor {
                return true;
            }
            at = self.modules[parent].parent;
        }
        false
    }
}

impl Module {
    fn of(code: Vec<Item>, file: usize, parent: Option<usize>) -> Module {
        let mut imports = Imports::default();
        let mut items = BTreeSet::new();
        for item in &code {
            imports.visit_item(item);
            items.extend(defined(item));
        }
        Module {
            file,
            parent,
            children: BTreeMap::new(),
            items,
            imports: imports.names,
            globs: imports.globs,
            code,
        }
    }
}

fn parent_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// A path with `a/../b` written as `b`, so that a file has one name.
fn as_text(path: &Path) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.iter().filter_map(|part| part.to_str()) {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Collects the imports of a `use`, in a module or in a function.
#[derive(Default)]
struct Imports {
    names: BTreeMap<String, Vec<Names>>,
    globs: Vec<Names>,
}

impl Visit<'_> for Imports {
    fn visit_item_use(&mut self, import: &ItemUse) {
        for (name, path) in used(&import.tree) {
            match name {
                Some(name) => self.names.entry(name).or_default().push(path),
                None => self.globs.push(path),
            }
        }
    }
}

/// Every path of a `use`, with the name it gets; `None` for `*`.
pub fn used(tree: &UseTree) -> Vec<(Option<String>, Names)> {
    fn walk(tree: &UseTree, before: &mut Names, found: &mut Vec<(Option<String>, Names)>) {
        let with = |before: &Names, last: &syn::Ident| {
            let mut path = before.clone();
            // `use a::{self}` is `use a`.
            if last != "self" || path.is_empty() {
                path.push(last.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                walk(&path.tree, before, found);
                before.pop();
            }
            UseTree::Name(name) => {
                let path = with(before, &name.ident);
                found.push((path.last().cloned(), path));
            }
            UseTree::Rename(rename) => {
                found.push((Some(rename.rename.to_string()), with(before, &rename.ident)));
            }
            UseTree::Glob(_) => found.push((None, before.clone())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, found)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &mut Names::new(), &mut found);
    found
}

/// The names an item defines.
fn defined(item: &Item) -> Vec<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        Item::Macro(item) => match &item.ident {
            Some(ident) => ident,
            None => return declared(item.mac.tokens.clone()),
        },
        _ => return Vec::new(),
    };
    vec![ident.to_string()]
}

/// The items in a macro's arguments: the name after each `struct`, `enum`, `fn` and so on.
fn declared(tokens: TokenStream) -> Vec<String> {
    names_after(&["struct", "enum", "union", "trait", "fn", "type", "const", "static"], tokens)
}

/// The modules in the arguments of macros that are invoked as items.
fn declared_by_macros(code: &[Item]) -> Vec<String> {
    let arguments = code.iter().filter_map(|item| match item {
        Item::Macro(item) if item.ident.is_none() => Some(item.mac.tokens.clone()),
        _ => None,
    });
    arguments.flat_map(|tokens| names_after(&["mod"], tokens)).collect()
}

/// The name after each of these keywords.
fn names_after(keywords: &[&str], tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut behind_keyword = false;
    for token in tokens {
        if let TokenTree::Ident(ident) = token {
            let word = ident.to_string();
            if behind_keyword {
                found.push(word.clone());
            }
            behind_keyword = keywords.contains(&word.as_str());
        } else {
            behind_keyword = false;
        }
    }
    found
}

/// Whether a `cfg` restricts this to tests.
pub fn only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = list.tokens.to_string();
            text == "test" || text.starts_with("all") && text.contains("test") && !text.contains("not")
        }
        _ => false,
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

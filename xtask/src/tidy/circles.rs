//! No circular dependencies of files: the files that a file uses can be understood without it.
//!
//! Invariant: a file depends on another if it names an item defined there, through whatever import. Declaring a child
//! module and re-exporting its items is not a dependency, and neither is code under `#[cfg(test)]`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::dependencies;
use super::names::{self, Target};
use super::tree::{Read, Tree};
use super::uses;
use crate::repo;

/// A dependency of one file on another: the first place that names an item.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reason {
    line: usize,
    path: String,
}

/// The files of a target, and their dependencies.
#[derive(Default)]
struct Graph {
    files: Vec<String>,
    edges: BTreeMap<usize, BTreeMap<usize, Reason>>,
}

/// One line per circle of each target of the workspace.
pub fn check(metadata: &Value) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    for targets in dependencies::targets(metadata)? {
        // Targets of a package may share files.
        let mut circles = BTreeSet::new();
        for root in targets {
            circles.extend(of_target(&root, &repo::read)?);
        }
        findings.extend(circles);
    }
    Ok(findings)
}

/// The circles of the target whose first file is `root`.
fn of_target(root: &str, read: Read) -> Result<Vec<String>, String> {
    Ok(Graph::of(&Tree::read(root, read)?).circles())
}

impl Graph {
    fn of(tree: &Tree) -> Graph {
        let mut graph = Graph { files: tree.files.clone(), ..Graph::default() };
        for (index, module) in tree.modules.iter().enumerate() {
            for found in uses::of(&module.code) {
                let Some(Target::Item(owner)) = names::resolve(tree, index, &found.path) else { continue };
                let from = module.file;
                let to = tree.modules[owner].file;
                if from == to || found.handed_on && tree.is_below(owner, index) {
                    continue;
                }
                let reason = Reason { line: found.line, path: found.path.join("::") };
                graph.edges.entry(from).or_default().entry(to).or_insert(reason);
            }
        }
        graph
    }

    fn next(&self, file: usize) -> impl Iterator<Item = usize> {
        self.edges.get(&file).into_iter().flat_map(|edges| edges.keys().copied())
    }

    /// The shortest circle through a file, which comes first.
    fn circle_through(&self, start: usize) -> Option<Vec<usize>> {
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for next in self.next(at) {
                if next == start {
                    let mut way = vec![at];
                    while let Some(before) = came_from.get(way.last()?) {
                        way.push(*before);
                    }
                    way.reverse();
                    return Some(way);
                }
                if let Entry::Vacant(unseen) = came_from.entry(next) {
                    unseen.insert(at);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    fn reachable(&self, start: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            open.extend(self.next(at).filter(|next| found.insert(*next)));
        }
        found
    }

    /// One finding per group of files that all depend on each other: its shortest circle, and the other files.
    fn circles(&self) -> Vec<String> {
        let reachable: Vec<BTreeSet<usize>> =
            (0..self.files.len()).map(|file| self.reachable(file)).collect();
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut findings = Vec::new();
        for file in 0..self.files.len() {
            if !reachable[file].contains(&file) || seen.contains(&file) {
                continue;
            }
            let group: Vec<usize> =
                reachable[file].iter().copied().filter(|other| reachable[*other].contains(&file)).collect();
            seen.extend(&group);
            let ways = group.iter().filter_map(|member| self.circle_through(*member));
            findings.extend(ways.min_by_key(Vec::len).map(|way| self.finding(&way, &group)));
        }
        findings
    }

    fn finding(&self, way: &[usize], group: &[usize]) -> String {
        let steps = way.iter().zip(way.iter().cycle().skip(1)).map(|(from, to)| {
            let reason = &self.edges[from][to];
            format!("\n  {}:{} uses {} ({})", self.files[*from], reason.line, self.files[*to], reason.path)
        });
        let others: Vec<&str> =
            group.iter().filter(|file| !way.contains(file)).map(|file| self.files[*file].as_str()).collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!("\n  and in longer circles with these: {}", others.join(", ")),
        };
        format!("{}: a circle of files:{}{others}", self.files[way[0]], steps.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let read =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.to_string());
        of_target(files[0].0, &read).unwrap()
    }

    #[test]
    fn two_files_that_name_each_others_items_are_a_circle() {
        let found = circles(&[
            ("src/lib.rs", "mod a; mod b; mod c;"),
            ("src/a.rs", "use crate::b::B;\npub struct A(B);"),
            ("src/b.rs", "pub struct B;\nfn f() { println!(\"{}\", super::a::A::NAME) }"),
            ("src/c.rs", "use crate::a::A;"),
        ]);
        assert_eq!(
            found,
            [
                "src/a.rs: a circle of files:\n  src/a.rs:1 uses src/b.rs (crate::b::B)\n  src/b.rs:2 uses src/a.rs (super::a::A::NAME)"
            ]
        );
    }

    #[test]
    fn overlapping_circles_are_one_finding() {
        let found = circles(&[
            ("src/lib.rs", "mod a; mod b; mod c;"),
            ("src/a.rs", "pub fn a() { crate::b::b() }"),
            ("src/b.rs", "use crate::c;\npub fn b() { c::c() }"),
            ("src/c.rs", "pub fn c() { crate::a::a(); crate::b::b() }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("src/b.rs:2 uses src/c.rs (c::c)"), "{found:?}");
        assert!(found[0].ends_with("and in longer circles with these: src/a.rs"), "{found:?}");
    }

    #[test]
    fn declaring_children_and_reexporting_their_items_is_no_dependency() {
        let files = |lib: &'static str, child: &'static str| {
            circles(&[
                ("src/lib.rs", lib),
                ("src/a.rs", "mod deep; pub use deep::Deep; pub struct A;"),
                ("src/a/deep.rs", child),
            ])
        };
        let handed_on = "mod a; pub use a::{A, Deep}; pub struct Root;";
        assert_eq!(files(handed_on, "use super::A; use crate::Root; pub struct Deep(A, Root);").len(), 0);
        let used = "mod a; pub use a::Deep; pub struct Root(Deep);";
        assert_eq!(files(used, "use crate::Root; pub struct Deep(Root);").len(), 1);
    }

    #[test]
    fn a_reexport_leads_to_the_file_that_defines_the_item() {
        let found = circles(&[
            ("src/lib.rs", "mod a; mod b; pub use b::B;"),
            ("src/a.rs", "use crate::B; pub struct A;"),
            ("src/b.rs", "use crate::a::*; pub struct B(A);"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!found[0].contains("lib.rs"), "{found:?}");
    }

    #[test]
    fn tests_and_the_items_of_other_crates_make_no_circle() {
        let found = circles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use std::b::B; pub struct A;\n#[cfg(test)]\nmod tests { use crate::b::B; }"),
            ("src/b.rs", "use crate::a::A; pub struct B;"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn items_made_by_macros_are_items() {
        let found = circles(&[
            ("src/lib.rs", "#[macro_use] mod a; mod b;"),
            (
                "src/a.rs",
                "macro_rules! words { ($($t:tt)*) => { $crate::b::check(); } }\npub(crate) use words;",
            ),
            ("src/b.rs", "use crate::a::words;\nwords! { pub enum Word { A } }\npub fn check() {}"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn files_of_modules_that_a_macro_declares_are_read() {
        let found = circles(&[
            ("src/lib.rs", "mod list;"),
            ("src/list/mod.rs", "modules! { mod a: A; mod b: B; }"),
            ("src/list/a.rs", "use super::b::B;\npub struct A(B);"),
            ("src/list/b.rs", "pub struct B;\nfn f(_: crate::list::a::A) {}"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

//! Names: of jobs, and of the files a worker uses.
//!
//! Invariant: the same words give the same names; nothing here looks at what exists.

use std::path::{Path, PathBuf};

/// Characters that end one name of a list and begin the next.
const SEPARATOR: char = ':';

/// Splits a list of paths at `:`; `\:` is a colon within a path.
pub(crate) fn split_paths(text: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&SEPARATOR) => {
                letters.next();
                push(&mut paths, SEPARATOR);
            }
            SEPARATOR => paths.push(String::new()),
            other => push(&mut paths, other),
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

fn push(paths: &mut [String], letter: char) {
    if let Some(last) = paths.last_mut() {
        last.push(letter);
    }
}

/// What decides the names of a worker's files.
#[derive(Debug, Clone)]
pub(crate) struct Naming<'a> {
    /// The section's name: what it calls itself by `name` makes no difference to its files.
    pub section: &'a str,
    /// Files handed over as paths. Where there are some, nothing else here says anything.
    pub paths: &'a [PathBuf],
    /// Every `filename` in order: one given in `[global]` and one in the section name files both, as in fio.
    pub filenames: Vec<&'a str>,
    /// `filename_format`.
    pub format: &'a str,
    /// `directory`.
    pub directory: Option<&'a str>,
    /// `nrfiles`, when given; beside names, only when given behind them (fio counts names as they come).
    pub file_count: Option<u32>,
}

impl Naming<'_> {
    /// The directories files may be put into, in order.
    pub fn directories(&self) -> Vec<String> {
        self.directory.filter(|_| self.paths.is_empty()).map(split_paths).unwrap_or_default()
    }

    /// Whether every clone has the same files.
    pub fn is_shared(&self) -> bool {
        !self.paths.is_empty() || self.filenames.iter().any(|list| !split_paths(list).is_empty())
    }

    /// The files of one clone. Files named outright are those named, the first `nrfiles` of them where that is
    /// given, all in the first directory; files named after the job go to the clone's directory of the list.
    pub fn files(&self, clone: u32) -> Vec<PathBuf> {
        if !self.paths.is_empty() {
            return self.paths.to_vec();
        }
        let directories = self.directories();
        let mut names: Vec<String> = self.filenames.iter().flat_map(|list| split_paths(list)).collect();
        if !names.is_empty() {
            if let Some(count) = self.file_count {
                names.truncate(count.max(1) as usize);
            }
            return names.iter().map(|name| within(directories.first(), name)).collect();
        }
        let directory = match directories.len() {
            0 => None,
            count => directories.get(clone as usize % count),
        };
        (0..self.file_count.unwrap_or(1).max(1))
            .map(|number| within(directory, &self.formatted(clone, number)))
            .collect()
    }

    /// `filename_format` filled in. The client's name is empty: there is no client.
    fn formatted(&self, clone: u32, number: u32) -> String {
        self.format
            .replace("$jobname", self.section)
            .replace("$clientuid", "")
            .replace("$jobnum", &clone.to_string())
            .replace("$filenum", &number.to_string())
    }
}

/// A name below a directory. A name that starts with `/` is below it too, as in fio.
fn within(directory: Option<&String>, name: &str) -> PathBuf {
    match directory {
        Some(directory) => Path::new(directory).join(name.trim_start_matches('/')),
        None => PathBuf::from(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "$jobname.$jobnum.$filenum";

    fn naming<'a>(filename: Option<&'a str>, directory: Option<&'a str>, count: Option<u32>) -> Naming<'a> {
        let filenames = filename.into_iter().collect();
        Naming { section: "a", paths: &[], filenames, format: FORMAT, directory, file_count: count }
    }

    fn files(naming: &Naming<'_>, clone: u32) -> Vec<String> {
        naming.files(clone).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn lists_split_at_colons_but_for_escaped_ones() {
        assert_eq!(split_paths("f:g"), ["f", "g"]);
        assert_eq!(split_paths(r"a\:b:c"), ["a:b", "c"]);
        assert_eq!(split_paths("f::g:"), ["f", "g"]);
        assert_eq!(split_paths(r"a\b"), [r"a\b"]);
    }

    #[test]
    fn files_are_named_after_job_clone_and_number() {
        assert_eq!(files(&naming(None, None, None), 0), ["a.0.0"]);
        assert_eq!(files(&naming(None, None, Some(2)), 1), ["a.1.0", "a.1.1"]);
    }

    #[test]
    fn a_format_replaces_each_of_its_words() {
        let naming = Naming { format: "$jobname.$clientuid.$jobnum.$filenum.x", ..naming(None, None, None) };
        assert_eq!(files(&naming, 1), ["a..1.0.x"]);
    }

    #[test]
    fn clones_take_turns_in_the_directories() {
        let naming = naming(None, Some("d1:d2"), None);
        assert_eq!(
            [files(&naming, 0), files(&naming, 1), files(&naming, 2)].concat(),
            ["d1/a.0.0", "d2/a.1.0", "d1/a.2.0"]
        );
    }

    #[test]
    fn files_named_outright_are_shared_by_clones_in_the_first_directory() {
        let naming = naming(Some("f:g"), Some("d1:d2"), None);
        assert_eq!(files(&naming, 1), ["d1/f", "d1/g"]);
        let absolute = self::naming(Some("/x/zz"), Some("d1"), None);
        assert_eq!(files(&absolute, 0), ["d1/x/zz"]);
    }

    #[test]
    fn nrfiles_shortens_a_list_and_never_lengthens_it() {
        assert_eq!(files(&naming(Some("f:g"), None, Some(1)), 0), ["f"]);
        assert_eq!(files(&naming(Some("f:g"), None, Some(4)), 0), ["f", "g"]);
    }

    #[test]
    fn paths_are_taken_as_they_are_by_every_clone() {
        let paths = [PathBuf::from("/d/a:b\\:$jobname"), PathBuf::from("rel;#\n")];
        let naming = Naming { paths: &paths, ..naming(Some("f"), Some("d1:d2"), Some(1)) };
        assert_eq!((naming.files(0), naming.files(3)), (paths.to_vec(), paths.to_vec()));
        assert!(naming.directories().is_empty() && naming.is_shared());
    }

    #[test]
    fn names_given_twice_are_all_used() {
        let naming = Naming { filenames: vec!["x", "z:x"], ..naming(None, None, None) };
        assert_eq!(files(&naming, 0), ["x", "z", "x"]);
    }
}

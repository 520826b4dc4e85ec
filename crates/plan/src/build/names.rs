//! Names: of jobs, and of the files a worker uses.
//!
//! Invariant: the same words give the same names; nothing here looks at what exists.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use fiord_options::job::JobOptions;
use fiord_options::{Section, bytes, job};

/// Ends one name of a list and begins the next.
const SEPARATOR: u8 = b':';

/// The name by which a clone is reported, logged and waited for. A section's own `name` applies to the first clone
/// only; the others, and the files of all, are named after the section (as in fio 3.33). An inherited `name` has no
/// effect.
pub(super) fn worker_name<'a>(parsed: &'a Section, options: &'a JobOptions, clone: u32) -> &'a OsStr {
    let named = parsed.own.iter().any(|setting| setting.spec == job::General::name);
    match &options.general.name {
        Some(name) if named && clone == 0 => &name.0,
        _ => &parsed.name,
    }
}

/// Splits a list of paths at `:`; `\:` is a colon within a path.
pub(crate) fn split_paths(list: &OsStr) -> Vec<PathBuf> {
    let mut paths = vec![Vec::new()];
    let mut bytes = list.as_bytes().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if bytes.peek() == Some(&SEPARATOR) => push(&mut paths, bytes.next()),
            SEPARATOR => paths.push(Vec::new()),
            other => push(&mut paths, Some(other)),
        }
    }
    paths.retain(|path| !path.is_empty());
    paths.into_iter().map(|path| PathBuf::from(OsString::from_vec(path))).collect()
}

fn push(paths: &mut [Vec<u8>], byte: Option<u8>) {
    if let Some(last) = paths.last_mut() {
        last.extend(byte);
    }
}

/// What `filename` names: like fio, without the blanks at both ends, and up to a `;` or `#`, on the command line as well.
pub(crate) fn without_comment(names: &OsStr) -> &OsStr {
    let names = names.as_bytes();
    let end = names.iter().position(|byte| matches!(byte, b';' | b'#')).unwrap_or(names.len());
    OsStr::from_bytes(bytes::trim(&names[..end]))
}

/// What decides the names of a worker's files.
#[derive(Debug, Clone)]
pub(crate) struct Naming<'a> {
    /// The section's name: its option `name` does not affect its files.
    pub section: &'a OsStr,
    /// Files given as paths. If there are any, everything else here is ignored.
    pub paths: &'a [PathBuf],
    /// Every `filename` in order: one given in `[global]` and one in the section name files both, as in fio.
    pub filenames: Vec<&'a OsStr>,
    /// `filename_format`.
    pub format: &'a OsStr,
    /// `directory`.
    pub directory: Option<&'a OsStr>,
    /// `nrfiles`, when given; beside names, only when given after them (fio counts names as they come).
    pub file_count: Option<u32>,
}

impl Naming<'_> {
    /// The directories files may be put into, in order.
    pub fn directories(&self) -> Vec<PathBuf> {
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
        let mut names: Vec<PathBuf> = self.filenames.iter().flat_map(|list| split_paths(list)).collect();
        if !names.is_empty() {
            if let Some(count) = self.file_count {
                names.truncate(count.max(1) as usize);
            }
            return names.iter().map(|name| within(directories.first(), name.as_os_str())).collect();
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
    fn formatted(&self, clone: u32, number: u32) -> OsString {
        let (clone, number) = (clone.to_string(), number.to_string());
        let words: [(&[u8], &[u8]); 4] = [
            (b"$jobname", self.section.as_bytes()),
            (b"$clientuid", b""),
            (b"$jobnum", clone.as_bytes()),
            (b"$filenum", number.as_bytes()),
        ];
        let filled = words
            .iter()
            .fold(self.format.as_bytes().to_vec(), |format, (word, by)| bytes::replace(&format, word, by));
        OsString::from_vec(filled)
    }
}

/// A name below a directory. A name that starts with `/` is below it too, as in fio.
fn within(directory: Option<&PathBuf>, name: &OsStr) -> PathBuf {
    let Some(directory) = directory else { return PathBuf::from(name) };
    let slashes = name.as_bytes().iter().take_while(|byte| **byte == b'/').count();
    directory.join(OsStr::from_bytes(&name.as_bytes()[slashes..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming<'a>(filename: Option<&'a str>, directory: Option<&'a str>, count: Option<u32>) -> Naming<'a> {
        Naming {
            section: OsStr::new("a"),
            paths: &[],
            filenames: filename.into_iter().map(OsStr::new).collect(),
            format: OsStr::new("$jobname.$jobnum.$filenum"),
            directory: directory.map(OsStr::new),
            file_count: count,
        }
    }

    fn split(list: &[u8]) -> Vec<Vec<u8>> {
        split_paths(OsStr::from_bytes(list))
            .into_iter()
            .map(|path| path.into_os_string().into_vec())
            .collect()
    }

    fn files(naming: &Naming<'_>, clone: u32) -> Vec<String> {
        naming.files(clone).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn lists_split_at_colons_but_for_escaped_ones() {
        assert_eq!(split(b"f:g"), [b"f", b"g"]);
        assert_eq!(split(b"a\\:b:c"), [&b"a:b"[..], b"c"]);
        assert_eq!(split(b"f::g:"), [b"f", b"g"]);
        assert_eq!(split(b"a\\b"), [b"a\\b"]);
        assert_eq!(split(b"\xff\\:\xfe:\xc3"), [&b"\xff:\xfe"[..], b"\xc3"]);
    }

    /// Each left-hand side was given to fio 3.33, which named the file on the right.
    #[test]
    fn names_end_where_fio_ends_them() {
        for (given, named) in [
            (" a b\t", "a b"),
            ("a;b:c", "a"),
            ("a:c #b", "a:c"),
            ("\ta\n", "a"),
            ("#b", ""),
            ("\"a b\"", "\"a b\""),
        ] {
            assert_eq!(without_comment(OsStr::new(given)), named, "{given:?}");
        }
    }

    #[test]
    fn files_are_named_after_job_clone_and_number() {
        assert_eq!(files(&naming(None, None, None), 0), ["a.0.0"]);
        assert_eq!(files(&naming(None, None, Some(2)), 1), ["a.1.0", "a.1.1"]);
    }

    #[test]
    fn a_format_replaces_each_of_its_words() {
        let naming = Naming {
            format: OsStr::new("$jobname.$clientuid.$jobnum.$filenum.x"),
            ..naming(None, None, None)
        };
        assert_eq!(files(&naming, 1), ["a..1.0.x"]);
        let section = OsStr::from_bytes(b"caf\xe9");
        let named = Naming { section, ..self::naming(None, None, None) }.files(0);
        assert_eq!(named, [PathBuf::from(OsStr::from_bytes(b"caf\xe9.0.0"))]);
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
        let naming =
            Naming { filenames: vec![OsStr::new("x"), OsStr::new("z:x")], ..naming(None, None, None) };
        assert_eq!(files(&naming, 0), ["x", "z", "x"]);
    }
}

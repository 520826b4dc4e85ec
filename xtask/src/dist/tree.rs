//! What accompanies the binary in packages: manual pages and completions, as the binary itself prints them.
//!
//! Invariant: the tree is written anew each time, and no page in it has another source than the binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::processor::Processor;
use crate::repo;

/// Shells, the directory of each in the tree, and the name of the file for `fiord` there.
pub const SHELLS: [(&str, &str); 4] =
    [("bash", "fiord"), ("zsh", "_fiord"), ("fish", "fiord.fish"), ("elvish", "fiord.elv")];

/// The files beside the binary.
#[derive(Debug)]
pub struct Tree {
    pub processor: &'static Processor,
    pub binary: PathBuf,
    /// Whether the binary is hardly optimised.
    pub is_quick: bool,
    /// `man/*.1`, `man/*.1.gz` and `completions/SHELL/FILE`.
    pub directory: PathBuf,
}

/// Writes the tree beside the binary.
pub fn write(binary: &Path, processor: &'static Processor, is_quick: bool) -> Result<Tree, String> {
    let directory = binary.with_file_name("tree");
    let tree = Tree { processor, binary: binary.to_path_buf(), is_quick, directory };
    if tree.directory.exists() {
        fs::remove_dir_all(&tree.directory).map_err(|error| said(&tree.directory, &error))?;
    }
    let main = tree.printed(&["help", "--man"])?;
    for subcommand in subcommands(&main) {
        let page = tree.printed(&["help", "--man", &subcommand])?;
        tree.put(&format!("man/fiord-{subcommand}.1"), &page)?;
    }
    tree.put("man/fiord.1", &main)?;
    for (shell, file) in SHELLS {
        tree.put(&format!("completions/{shell}/{file}"), &tree.printed(&["completions", shell])?)?;
    }
    compress(&tree.directory.join("man"))?;
    Ok(tree)
}

/// The subcommands that have a page: those that the page of fiord refers to.
fn subcommands(page: &str) -> Vec<String> {
    let referred =
        |line: &str| Some(line.strip_prefix(".BR fiord\\-")?.strip_suffix(" (1)")?.replace("\\-", "-"));
    page.lines().filter_map(referred).collect()
}

impl Tree {
    /// What the binary prints.
    fn printed(&self, args: &[&str]) -> Result<String, String> {
        let mut command = self.processor.command(&self.binary);
        command.args(args);
        repo::output_of(command)
    }

    fn put(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.directory.join(name);
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent).map_err(|error| said(parent, &error))?;
        fs::write(&path, text).map_err(|error| said(&path, &error))
    }
}

/// A compressed copy of each page, as packages have them.
fn compress(directory: &Path) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|error| said(directory, &error))?;
    let mut command = Command::new("gzip");
    command.args(["--best", "--no-name", "--keep"]).args(entries.flatten().map(|entry| entry.path()));
    repo::output_of(command).map(drop)
}

/// An error, and the path it is about.
pub fn said(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_that_the_first_refers_to_is_written() {
        let page = ".TP\n.BR fiord\\-crash\\-test (1)\nwhether\n.BR fiord (1)\n.BR fio (1)\n";
        assert_eq!(subcommands(page), ["crash-test"]);
        assert!(subcommands(include_str!("../../../docs/fiord.1")).contains(&"quick".to_string()));
    }
}

//! `--showcmd`: a job file as a command line, as fio prints it.
//!
//! Invariant: for every job file fio accepts, the text is fio's, byte for byte.

use std::os::unix::ffi::OsStrExt;

use super::cli::{JobFile, Parsed};
use crate::section::Setting;
use crate::table::job::General;

/// The command lines of all job files, one line each.
pub fn print(parsed: &Parsed) -> Vec<u8> {
    parsed.files.iter().flat_map(line).collect()
}

/// One job file as a command line. Like fio, each `[global]` section repeats all globals so far, those of the
/// command line included, in its place.
fn line(file: &JobFile) -> Vec<u8> {
    let mut globals = file.inherited.clone();
    let mut line = Vec::new();
    if !file.blocks.is_empty() {
        line.extend(b"fio ");
    }
    for block in &file.blocks {
        match &block.name {
            None => {
                globals.extend(block.settings.iter().cloned());
                globals.iter().for_each(|setting| push(&mut line, setting));
            }
            Some(name) => {
                line.extend([b"--name=", name.as_bytes(), b" "].concat());
                block.settings.iter().for_each(|setting| push(&mut line, setting));
            }
        }
    }
    line.push(b'\n');
    line
}

/// One option. fio puts the description in quotes, and nothing else.
fn push(line: &mut Vec<u8>, setting: &Setting) {
    let quote: &[u8] = if setting.spec == General::description { b"\"" } else { b"" };
    line.extend([b"--", setting.spec.name.as_bytes()].concat());
    if let Some(value) = setting.shown_value() {
        line.extend([b"=", quote, value.as_bytes(), quote].concat());
    }
    line.push(b' ');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::testing::read_with;

    fn printed(args: &[&str], files: &[(&str, &str)]) -> String {
        String::from_utf8(print(&read_with(args, files).unwrap())).unwrap()
    }

    /// Texts printed by fio 3.33 for the same files and arguments.
    #[test]
    fn the_text_is_fios() {
        let one = [("j.fio", "[global]\nrw=read\n[a]\n[global]\nsize=1k\n[b]\n")];
        assert_eq!(
            printed(&["--bs=1k", "j.fio", "--thread"], &one),
            "fio --bs=1k --thread --rw=read --name=a --bs=1k --thread --rw=read --size=1k --name=b \n"
        );
        let two = [("j.fio", "[a]\nthread\n"), ("k.fio", "[global]\nbs=1k\n[k]\nsize=2k\n")];
        assert_eq!(
            printed(&["j.fio", "k.fio", "--name=c"], &two),
            "fio --name=a --thread \nfio --bs=1k --name=k --size=2k \n"
        );
    }

    #[test]
    fn options_of_the_command_line_show_up_with_a_global_section_only() {
        assert_eq!(
            printed(&["--bs=1k", "j.fio"], &[("j.fio", "[a]\nrw=read\n")]),
            "fio --name=a --rw=read \n"
        );
        assert_eq!(printed(&["--name=a"], &[]), "");
    }

    #[test]
    fn descriptions_alone_are_quoted() {
        let files = [("j.fio", "[a]\ndescription=say \"hi\"\nfilename=\"/x y\"\n")];
        assert_eq!(
            printed(&["j.fio"], &files),
            "fio --name=a --description=\"say \"hi\"\" --filename=\"/x y\" \n"
        );
    }
}

//! One run of both programs, and what must agree afterwards.
//!
//! Invariant: a case starts with only the files it names; its two runs share no directory.

use std::path::PathBuf;

use crate::program::Pair;
use crate::verdict::Verdict;

/// A comparison of two runs.
pub type Check = Box<dyn Fn(&Pair) -> Verdict + Send + Sync>;

/// A file that exists before the run.
#[derive(Debug, Clone)]
pub enum Contents {
    /// This text.
    Text(String),
    /// Exactly these bytes.
    Binary(&'static [u8]),
    /// This many bytes, not all zero.
    Bytes(u64),
}

/// A requirement of a case on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// A program, by its path, and how it is installed.
    Program(PathBuf, &'static str),
    /// A loop device of this many bytes, whose path replaces `{device}` in the arguments.
    LoopDevice(u64),
}

/// A named comparison of fio and fiord.
pub struct Case {
    /// `group/name`, unique; the filter and pending.txt refer to it.
    pub name: String,
    /// The command line after the program's name.
    pub args: Vec<String>,
    /// Arguments that only fiord is given, behind the others: options of its own.
    pub own_args: Vec<String>,
    /// Files in the directory the programs run in: relative path and contents.
    pub files: Vec<(String, Contents)>,
    /// Standard input; empty by default.
    pub stdin: String,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// What must be available.
    pub needs: Vec<Needs>,
    /// Whether fiord may refuse it because something is not built; such cases are counted separately.
    pub may_be_unbuilt: bool,
    /// What fio must do for the comparison to mean anything. A busy machine may keep it from that: then both are run again.
    pub premises: Vec<Check>,
    /// What must agree, in order.
    pub checks: Vec<Check>,
}

/// A case that runs `args`, split at spaces; `'…'` keeps spaces together.
pub fn case(name: impl Into<String>, args: impl AsRef<str>) -> Case {
    Case {
        name: name.into(),
        args: words(args.as_ref()),
        own_args: Vec::new(),
        files: Vec::new(),
        stdin: String::new(),
        env: Vec::new(),
        needs: Vec::new(),
        may_be_unbuilt: false,
        premises: Vec::new(),
        checks: Vec::new(),
    }
}

impl Case {
    /// Adds a text file.
    pub fn text(mut self, path: &str, text: impl Into<String>) -> Case {
        self.files.push((path.to_string(), Contents::Text(text.into())));
        self
    }

    /// Adds a binary file.
    pub fn binary(mut self, path: &str, contents: &'static [u8]) -> Case {
        self.files.push((path.to_string(), Contents::Binary(contents)));
        self
    }

    /// Adds a file of this many bytes.
    pub fn bytes(mut self, path: &str, size: u64) -> Case {
        self.files.push((path.to_string(), Contents::Bytes(size)));
        self
    }

    /// Sets standard input.
    pub fn stdin(mut self, text: &str) -> Case {
        self.stdin = text.to_string();
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Case {
        self.env.push((name.to_string(), value.to_string()));
        self
    }

    /// Runs only if a loop device is available.
    pub fn on_loop_device(mut self, size_bytes: u64) -> Case {
        self.needs.push(Needs::LoopDevice(size_bytes));
        self
    }

    /// Runs only if this program is installed; `install` says how to install it.
    pub fn with_program(mut self, path: PathBuf, install: &'static str) -> Case {
        self.needs.push(Needs::Program(path, install));
        self
    }

    /// Counted separately if fiord refuses it because something is not built.
    pub fn or_not_built(mut self) -> Case {
        self.may_be_unbuilt = true;
        self
    }

    /// Adds arguments.
    pub fn and(mut self, args: &str) -> Case {
        self.args.extend(words(args));
        self
    }

    /// Adds arguments for fiord alone.
    pub fn own(mut self, args: &str) -> Case {
        self.own_args.extend(words(args));
        self
    }

    /// Adds something that fio must do.
    pub fn premise(mut self, check: impl Fn(&Pair) -> Verdict + Send + Sync + 'static) -> Case {
        self.premises.push(Box::new(check));
        self
    }

    /// Adds a comparison.
    pub fn check(mut self, check: impl Fn(&Pair) -> Verdict + Send + Sync + 'static) -> Case {
        self.checks.push(Box::new(check));
        self
    }
}

/// Splits a command line; text in single quotes is one word.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None;
    let mut quoted = false;
    for char in line.chars() {
        match char {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            ' ' | '\n' if !quoted => words.extend(word.take()),
            other => word.get_or_insert_with(String::new).push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words("--name='a b'  --x=''\n y ''"), ["--name=a b", "--x=", "y", ""]);
    }
}

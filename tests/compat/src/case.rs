//! One thing both programs are asked to do, and what must agree afterwards.
//!
//! Invariant: a case starts from the files it names and nothing else; its two runs share no directory.

use crate::program::Pair;

/// What a comparison answers: nothing, or what differs.
pub type Verdict = Result<(), String>;

/// A comparison of two runs.
pub type Check = Box<dyn Fn(&Pair) -> Verdict + Send + Sync>;

/// A file that is there before the run.
#[derive(Debug, Clone)]
pub enum Contents {
    /// This text.
    Text(String),
    /// So many bytes that are not all zero.
    Bytes(u64),
}

/// What the machine must offer for a case to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A loop device of so many bytes, whose path replaces `{device}` in the arguments.
    LoopDevice(u64),
}

/// A named comparison of fio and fiord.
pub struct Case {
    /// `group/what`, unique; what the filter matches and pending.txt names.
    pub name: String,
    /// The command line behind the program's name.
    pub args: Vec<String>,
    /// Files in the directory the programs run in: relative path and contents.
    pub files: Vec<(String, Contents)>,
    /// Standard input; empty when not given.
    pub stdin: String,
    /// Variables added to the environment.
    pub env: Vec<(String, String)>,
    /// What must be at hand.
    pub needs: Needs,
    /// What must agree, in order.
    pub checks: Vec<Check>,
}

/// A case that runs `args`, split at spaces; `'…'` keeps spaces together.
pub fn case(name: impl Into<String>, args: impl AsRef<str>) -> Case {
    Case {
        name: name.into(),
        args: words(args.as_ref()),
        files: Vec::new(),
        stdin: String::new(),
        env: Vec::new(),
        needs: Needs::Nothing,
        checks: Vec::new(),
    }
}

impl Case {
    /// Adds a text file.
    pub fn text(mut self, path: &str, text: impl Into<String>) -> Case {
        self.files.push((path.to_string(), Contents::Text(text.into())));
        self
    }

    /// Adds a file of so many bytes.
    pub fn bytes(mut self, path: &str, size: u64) -> Case {
        self.files.push((path.to_string(), Contents::Bytes(size)));
        self
    }

    /// Feeds standard input.
    pub fn stdin(mut self, text: &str) -> Case {
        self.stdin = text.to_string();
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Case {
        self.env.push((name.to_string(), value.to_string()));
        self
    }

    /// Runs only where there is a loop device to be had.
    pub fn on_loop_device(mut self, size_bytes: u64) -> Case {
        self.needs = Needs::LoopDevice(size_bytes);
        self
    }

    /// Adds arguments.
    pub fn and(mut self, args: &str) -> Case {
        self.args.extend(words(args));
        self
    }

    /// Adds a comparison.
    pub fn check(mut self, check: impl Fn(&Pair) -> Verdict + Send + Sync + 'static) -> Case {
        self.checks.push(Box::new(check));
        self
    }
}

/// Splits a command line; single quotes keep what they enclose in one word.
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

//! Whether the program is copied to hosts.
//!
//! Invariant: its words are those of `--push`.

/// When the program is copied to hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Push {
    /// Where the same program is not there.
    #[default]
    Auto,
    /// Never: it must be there.
    Never,
    /// Everywhere.
    Always,
}

impl Push {
    /// The value of this word of `--push`.
    pub fn from_word(word: &str) -> Option<Push> {
        match word {
            "auto" => Some(Push::Auto),
            "never" => Some(Push::Never),
            "always" => Some(Push::Always),
            _ => None,
        }
    }
}

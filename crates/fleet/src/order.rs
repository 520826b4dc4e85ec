//! In which order hosts run.
//!
//! Invariant: its words are those of `--order`.

/// In which order hosts run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// All at once, from one start.
    #[default]
    Together,
    /// Each alone, one after another.
    Alone,
    /// Each alone, one after another, in several rounds.
    Interleaved,
}

impl Order {
    /// As it is typed and printed.
    pub fn word(self) -> &'static str {
        match self {
            Order::Together => "together",
            Order::Alone => "alone",
            Order::Interleaved => "interleaved",
        }
    }

    /// How often each host runs.
    pub fn rounds(self) -> usize {
        match self {
            Order::Together | Order::Alone => 1,
            Order::Interleaved => 3,
        }
    }
}

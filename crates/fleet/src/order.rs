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
    /// Each alone, in several rounds.
    Interleaved,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 3] = [Order::Together, Order::Alone, Order::Interleaved];

    /// As it is typed and printed.
    pub fn word(self) -> &'static str {
        match self {
            Order::Together => "together",
            Order::Alone => "alone",
            Order::Interleaved => "interleaved",
        }
    }

    /// The order of this word.
    pub fn from_word(word: &str) -> Option<Order> {
        Order::ALL.into_iter().find(|order| order.word() == word)
    }
}

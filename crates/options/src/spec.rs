//! What is known of one option: data for the parser, the help, the manual and the echo.
//!
//! Invariant: a `Spec` comes from the one declaration in the table and from nowhere else.

/// Which namespace an option lives in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A job option.
    Job,
    /// A command-line option of the program itself (`--output`).
    Program,
    /// A private option of the engines named (`sqthread_poll` of `io_uring`).
    Engine(&'static [&'static str]),
}

/// Whether a value must, may or cannot follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No value: `--readonly`.
    Nothing,
    /// A value or none: `thread`, `thread=1` (fio's "empty or boolean").
    Optional,
    /// Always a value.
    Value,
}

/// How far fiord supports an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Works.
    Ready,
    /// Known, refused by name with this reason.
    Pending(&'static str),
    /// Accepted without effect, with this explanation.
    Ignored(&'static str),
}

/// One declaration of the table.
#[derive(Debug)]
pub struct Spec {
    /// The canonical name.
    pub name: &'static str,
    /// Other spellings fio takes.
    pub aliases: &'static [&'static str],
    /// Where it applies.
    pub scope: Scope,
    /// Whether a value follows.
    pub takes: Takes,
    /// Whether it works.
    pub status: Status,
    /// Kind of value in the field's words (`integer`, `size`, `duration`), for help and docs.
    pub kind: &'static str,
    /// Default as a user would type it; empty when there is none.
    pub default: &'static str,
    /// Range or list of allowed values for help and docs; empty when free.
    pub allowed: &'static str,
    /// Documentation in our own words; the first line is the summary.
    pub doc: &'static str,
    /// Heading the reference page lists it under.
    pub category: &'static str,
    /// Parses `value` as the option's type and throws the result away: the check behind `--parse-only`.
    pub check: fn(Option<&str>) -> Result<(), String>,
}

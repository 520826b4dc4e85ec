//! What was typed, in order: the value between the grammars (job file, command line) and the table.
//!
//! Invariant: a section is text; nothing in it has been parsed as a value yet.

use crate::place::Place;
use crate::spec::Spec;

/// One `option=value` as typed, after `${VAR}` and keyword expansion.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The option it sets.
    pub spec: &'static Spec,
    /// The spelling the user chose (alias or abbreviation).
    pub spelling: String,
    /// The value; `None` for a bare flag. This is what fio echoes in JSON (`""` for `None`).
    pub value: Option<String>,
    /// Where the option's name starts.
    pub place: Place,
    /// Where the value starts; the same as `place` for a bare flag.
    pub value_place: Place,
}

/// One job section (or one `--name` on the command line): what applies to it from `[global]`, then its own.
#[derive(Debug, Clone)]
pub struct Section {
    /// The section's name (`[name]`) or the value of `--name`.
    pub name: String,
    /// Settings inherited from the globals in force where the section stands, in order.
    pub global: Vec<Setting>,
    /// The section's own settings, in order. On the command line `name` itself is among them.
    pub own: Vec<Setting>,
    /// Where the section's name stands.
    pub place: Place,
}

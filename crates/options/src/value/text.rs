//! Values taken as they stand, and flags.
//!
//! Invariant: nothing is trimmed, split or unescaped here; whoever uses a text decides what it means.

use super::{Rules, Value};
use crate::spec::Takes;

/// Any text: a name, a path, a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text(pub String);

impl Text {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Value for Text {
    const KIND: &'static str = "text";

    fn parse(text: &str, _rules: &Rules) -> Result<Text, String> {
        Ok(Text(text.to_string()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}

/// A flag that may be given bare or as a boolean (`thread`, `thread=1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag(pub bool);

impl Value for Flag {
    const KIND: &'static str = "empty or boolean";
    const TAKES: Takes = Takes::Optional;

    fn parse(text: &str, _rules: &Rules) -> Result<Flag, String> {
        match text {
            "0" => Ok(Flag(false)),
            "1" => Ok(Flag(true)),
            _ => Err(format!("{text:?} is neither 0 nor 1")),
        }
    }

    fn print(&self) -> String {
        u8::from(self.0).to_string()
    }

    fn bare() -> Option<Flag> {
        Some(Flag(true))
    }
}

/// A flag that takes no value at all (`--readonly`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch(pub bool);

impl Value for Switch {
    const KIND: &'static str = "flag";
    const TAKES: Takes = Takes::Nothing;

    fn parse(text: &str, rules: &Rules) -> Result<Switch, String> {
        Flag::parse(text, rules).map(|flag| Switch(flag.0))
    }

    fn print(&self) -> String {
        u8::from(self.0).to_string()
    }

    fn bare() -> Option<Switch> {
        Some(Switch(true))
    }
}

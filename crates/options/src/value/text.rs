//! Values taken as they stand, and flags.
//!
//! Invariant: nothing is trimmed, split or unescaped here; whoever uses a text decides what it means.

use super::number::{LIST_SEPARATORS, first_part, note_rest, scan};
use super::{Reading, Value};
use crate::engine;
use crate::spec::{Choice, Takes};
use crate::suggest;

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

    fn parse(text: &str, _reading: &mut Reading) -> Result<Text, String> {
        Ok(Text(text.to_string()))
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}

/// Text that may be left out: `write_bw_log` takes the job's name, `--cmdhelp` lists everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OptionalText(pub Option<String>);

impl Value for OptionalText {
    const KIND: &'static str = "empty or text";
    const TAKES: Takes = Takes::Optional;

    fn parse(text: &str, _reading: &mut Reading) -> Result<OptionalText, String> {
        Ok(OptionalText((!text.is_empty()).then(|| text.to_string())))
    }

    fn print(&self) -> String {
        self.0.clone().unwrap_or_default()
    }

    fn bare() -> Option<OptionalText> {
        Some(OptionalText(None))
    }

    fn unset() -> Option<OptionalText> {
        Some(OptionalText(None))
    }
}

/// An engine that fio has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineName(pub &'static str);

impl Value for EngineName {
    const KIND: &'static str = "engine";
    const CHOICES: &'static [Choice] = engine::NAMES;

    fn parse(text: &str, _reading: &mut Reading) -> Result<EngineName, String> {
        let word = engine::named(text);
        match engine::NAMES.iter().find(|engine| engine.word == word) {
            Some(engine) => Ok(EngineName(engine.word)),
            None => Err(no_engine(word)),
        }
    }

    fn print(&self) -> String {
        self.0.to_string()
    }
}

/// What to say of a name that is none, in the words that scripts look for.
fn no_engine(name: &str) -> String {
    let names = engine::NAMES.iter().map(|engine| engine.word);
    match suggest::nearest(name, names) {
        Some(near) => {
            format!(
                "engine {name} not loadable: unknown to fio, not built into fiord yet; did you mean {near:?}?"
            )
        }
        None => format!("engine {name} not loadable: unknown to fio, not built into fiord yet"),
    }
}

/// A flag that may be given bare or with a number: none and any number but 0 set it, 0 clears it (`thread`,
/// `thread=0`, `thread=8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flag(pub bool);

impl Value for Flag {
    const KIND: &'static str = "empty or boolean";
    const TAKES: Takes = Takes::Optional;
    const ONE_OF_LIST: bool = true;

    fn parse(text: &str, reading: &mut Reading) -> Result<Flag, String> {
        let text = first_part(text, LIST_SEPARATORS, reading)?;
        let (number, rest) = scan(text).ok_or_else(|| format!("{text:?} is neither 0 nor 1"))?;
        note_rest(text, rest, number, reading);
        Ok(Flag(number != 0))
    }

    fn print(&self) -> String {
        u8::from(self.0).to_string()
    }

    fn bare() -> Option<Flag> {
        Some(Flag(true))
    }
}

/// A flag that takes no value at all (`--readonly`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Switch(pub bool);

impl Value for Switch {
    const KIND: &'static str = "flag";
    const TAKES: Takes = Takes::Nothing;

    fn parse(text: &str, _reading: &mut Reading) -> Result<Switch, String> {
        match text {
            "0" => Ok(Switch(false)),
            "1" => Ok(Switch(true)),
            _ => Err(format!("takes no value, and was given {text:?}")),
        }
    }

    fn print(&self) -> String {
        u8::from(self.0).to_string()
    }

    fn bare() -> Option<Switch> {
        Some(Switch(true))
    }
}

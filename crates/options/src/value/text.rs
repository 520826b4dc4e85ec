//! Values taken as they stand, and flags.
//!
//! Invariant: nothing is trimmed, split or unescaped here; whoever uses a text decides what it means.

use std::ffi::{OsStr, OsString};

use super::contract::{Reading, Takes, Value};
use super::kind::ValueKind;
use super::number::{LIST_SEPARATORS, first_part, note_rest};
use super::scan::scan;
use crate::shown;

/// Any bytes but NUL: a name, a path, a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Text(pub OsString);

impl Value for Text {
    const KIND: ValueKind = ValueKind::Text;

    fn parse(text: &str, _reading: &mut Reading) -> Result<Text, String> {
        Ok(Text(OsString::from(text)))
    }

    fn parse_bytes(bytes: &OsStr, _reading: &mut Reading) -> Result<Text, String> {
        Ok(Text(bytes.to_os_string()))
    }

    fn print(&self) -> String {
        shown::text(&self.0)
    }
}

/// Text in UTF-8: a host, a URL, what a protocol of text sends. A path is `Text`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Utf8Text(pub String);

impl Value for Utf8Text {
    const KIND: ValueKind = ValueKind::Text;

    fn parse(text: &str, _reading: &mut Reading) -> Result<Utf8Text, String> {
        Ok(Utf8Text(text.to_string()))
    }

    fn print(&self) -> String {
        shown::text(&self.0)
    }
}

/// Text that may be left out: `write_bw_log` takes the job's name, `--cmdhelp` lists everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OptionalText(pub Option<OsString>);

impl Value for OptionalText {
    const KIND: ValueKind = ValueKind::OptionalText;
    const TAKES: Takes = Takes::Optional;

    fn parse(text: &str, _reading: &mut Reading) -> Result<OptionalText, String> {
        Ok(OptionalText((!text.is_empty()).then(|| OsString::from(text))))
    }

    fn parse_bytes(bytes: &OsStr, _reading: &mut Reading) -> Result<OptionalText, String> {
        Ok(OptionalText(Some(bytes.to_os_string())))
    }

    fn print(&self) -> String {
        self.0.as_ref().map(shown::text).unwrap_or_default()
    }

    fn bare() -> Option<OptionalText> {
        Some(OptionalText(None))
    }

    fn unset() -> Option<OptionalText> {
        Some(OptionalText(None))
    }
}

/// A flag that may be given bare or with a number: none and any number but 0 set it, 0 clears it (`thread`,
/// `thread=0`, `thread=8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flag(pub bool);

impl Value for Flag {
    const KIND: ValueKind = ValueKind::OptionalBoolean;
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
    const KIND: ValueKind = ValueKind::Flag;
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

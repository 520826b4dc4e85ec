//! The kinds of values there are.
//!
//! Invariant: what is decided by a kind is decided by its variant; the words are for help and reference alone.

use std::fmt;

/// A kind of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Bytes, or a part of the target.
    Amount,
    /// Block sizes and their shares.
    BlockSplit,
    /// 0 or 1.
    Boolean,
    /// Whole numbers.
    ColonList,
    /// Decimal fractions.
    Decimals,
    /// A distribution and its parameters, for each direction.
    Distribution,
    /// The name of an engine.
    Engine,
    /// Errors by name or number.
    Errors,
    /// Nothing.
    Flag,
    /// A whole number.
    Integer,
    /// A time whose bare number counts microseconds.
    Micros,
    /// NUMA nodes by number.
    NodeList,
    /// A policy of memory and its nodes.
    NumaPolicy,
    /// CPUs by number.
    NumberList,
    /// 0, 1 or nothing.
    OptionalBoolean,
    /// The same, or nothing.
    OptionalText,
    /// Contents of a buffer.
    Pattern,
    /// A time whose bare number counts seconds.
    Seconds,
    /// The same, or two ends.
    SecondsOrRange,
    /// Bytes.
    Size,
    /// Bytes, or two ends.
    SizeOrRange,
    /// Two ends in bytes.
    SizeRange,
    /// A path, a name or free text, of any bytes.
    Text,
    /// Contents of a block that is verified.
    VerifyPattern,
    /// One of a few words.
    Word,
    /// A word and the file it maps.
    WordWithFile,
    /// A word and its parameter.
    WordWithNumber,
    /// Several words.
    Words,
    /// Words and a number of writes.
    WordsWithCount,
}

impl ValueKind {
    /// Whether a value is one number, so that arithmetic can stand for it.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            ValueKind::Integer
                | ValueKind::Size
                | ValueKind::Amount
                | ValueKind::SizeOrRange
                | ValueKind::Boolean
                | ValueKind::Micros
                | ValueKind::Seconds
                | ValueKind::SecondsOrRange
        )
    }

    /// Whether a minus can stand between two ends.
    pub fn has_ranges(self) -> bool {
        matches!(
            self,
            ValueKind::SizeOrRange
                | ValueKind::SizeRange
                | ValueKind::SecondsOrRange
                | ValueKind::NumberList
                | ValueKind::NodeList
        )
    }

    /// The kind in a few words.
    pub fn words(self) -> &'static str {
        match self {
            ValueKind::Amount => "size, percentage or number of zones",
            ValueKind::BlockSplit => "list of block sizes and percentages",
            ValueKind::Boolean => "boolean",
            ValueKind::ColonList | ValueKind::Decimals => "list of numbers separated by colons",
            ValueKind::Distribution => "distribution with its numbers, one or up to three (read,write,trim)",
            ValueKind::Engine => "engine",
            ValueKind::Errors => {
                "up to three lists of errors (read,write,verify), errors separated by a colon"
            }
            ValueKind::Flag => "flag",
            ValueKind::Integer => "integer",
            ValueKind::Micros => "duration, in microseconds without a unit",
            ValueKind::NodeList => "list of numbers and ranges, or all",
            ValueKind::NumaPolicy => "policy, with nodes after a colon",
            ValueKind::NumberList => "list of numbers and ranges",
            ValueKind::OptionalBoolean => "empty or boolean",
            ValueKind::OptionalText => "empty or text",
            ValueKind::Pattern => "pattern of numbers, \"strings\" and 'files'",
            ValueKind::Seconds => "duration, in seconds without a unit",
            ValueKind::SecondsOrRange => "duration or range of durations, in seconds without a unit",
            ValueKind::Size => "size",
            ValueKind::SizeOrRange => "size or range of sizes",
            ValueKind::SizeRange => "range of sizes",
            ValueKind::Text => "text",
            ValueKind::VerifyPattern => "pattern of numbers, \"strings\", 'files' and %o",
            ValueKind::Word => "word",
            ValueKind::WordWithFile => "word, with a file after a colon",
            ValueKind::WordWithNumber => "word, with a number after a colon",
            ValueKind::Words => "words separated by commas",
            ValueKind::WordsWithCount => "words separated by commas, then a colon and a number of writes",
        }
    }
}

impl fmt::Display for ValueKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.words())
    }
}

//! Why a trace cannot be read.
//!
//! Invariant: an error states its place: a line of an iolog, or a byte of a binary trace.

use std::fmt;

/// Where in a trace something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracePosition {
    /// A line of an iolog, from 1.
    Line(u64),
    /// A byte of a binary trace, from 0.
    Byte(u64),
}

/// Why a trace cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// Where.
    pub place: TracePosition,
    /// What is wrong.
    pub message: String,
}

impl TraceError {
    pub(crate) fn line(line: u64, message: impl Into<String>) -> TraceError {
        TraceError { place: TracePosition::Line(line), message: message.into() }
    }

    pub(crate) fn byte(byte: u64, message: impl Into<String>) -> TraceError {
        TraceError { place: TracePosition::Byte(byte), message: message.into() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            TracePosition::Line(line) => write!(out, "line {line}: {}", self.message),
            TracePosition::Byte(byte) => write!(out, "byte {byte}: {}", self.message),
        }
    }
}

impl std::error::Error for TraceError {}

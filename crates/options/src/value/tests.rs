//! Tests of the value types.
//!
//! Invariant: every type is printed and parsed back.

//! The two grammars: arguments and job files to settings, and settings back to text.
//!
//! Invariant: this file declares and re-exports.

pub mod cli;
pub mod clients;
pub mod environment;
pub mod expand;
pub mod jobfile;
pub mod lookup;
pub mod masked;
mod parsed;
mod profile;
pub mod showcmd;
#[cfg(test)]
pub(crate) mod testing;
pub mod write;

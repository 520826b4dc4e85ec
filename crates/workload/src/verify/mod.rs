//! Verification: what was written, and when it is read back.

mod ledger;
mod operations;
mod progress;
mod source;

pub use source::VerifySource;

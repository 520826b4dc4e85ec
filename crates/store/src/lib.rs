//! The history of runs: an SQLite file that several processes may write at once, and the encoding of runs in it.
//!
//! Invariant: a run is in the history completely or not at all, whatever happens to the process, the disk or the power;
//! and a report that is read back renders the same bytes as before.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, reason = "files go through the target opener"))]

mod encoding;
mod error;
mod headline;
mod history;
mod import;
mod location;
mod record;
mod retention;
mod schema;

pub use encoding::{checksum, decode, encode, seal};
pub use error::{Cause, StoreError};
pub use headline::Headline;
pub use history::History;
pub use import::{Imported, Source};
pub use location::{config_path, default_path, state_path};
pub use record::{
    Conclusion, Draft, Filter, HistoryEntry, KeptRun, Printed, RunFacts, RunKind, RunSelector, Stored,
    StudyIdentity, check_tag,
};
pub use retention::Retention;

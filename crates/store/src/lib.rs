//! The history of runs: an SQLite file that several fiords write at once, and what a run looks like in it.
//!
//! Invariant: a run is in the history whole or not at all, whatever happens to the process, the disk or the power; and
//! a report that is read back renders the bytes it rendered before it was kept.

mod error;
pub mod form;
mod headline;
mod history;
mod place;
mod record;
mod report_form;
mod schema;

pub use error::{StoreError, Trouble};
pub use headline::{Headline, SYNC};
pub use history::History;
pub use place::default_path;
pub use record::{Draft, Entry, Facts, Filter, Kind, Printed, Stored, Summary, Which};
pub use report_form::{decode, encode};

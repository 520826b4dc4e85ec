//! Lists within lists that are read back, such as the disks of a RAID of RAIDs.
//!
//! Invariant: no input nests so deeply that reading it overflows the stack.

use std::cell::Cell;

use serde::de::{Deserialize, Deserializer, Error};

/// Far above any tree of disks, and far below what a stack has room for.
const LEVELS_MAX: u32 = 64;

thread_local! {
    /// The lists around the one that is being read.
    static LEVELS: Cell<u32> = const { Cell::new(0) };
}

/// For a field whose items may have such a field themselves: `#[serde(deserialize_with = "…")]`.
///
/// # Errors
/// What `from` reports, and more than 64 lists within each other.
pub fn deserialize<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let levels = LEVELS.get();
    if levels == LEVELS_MAX {
        return Err(D::Error::custom("too many lists within each other"));
    }
    LEVELS.set(levels + 1);
    let items = Vec::deserialize(from);
    LEVELS.set(levels);
    items
}

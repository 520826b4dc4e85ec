//! The files of jobs: how they are opened, claimed, laid out and kept open.
//!
//! Invariant: everything that opening, creating or removing may change goes through `target_opener`.

pub(crate) mod cache_growth;
pub(crate) mod claim;
pub(crate) mod layout;
mod layout_writer;
pub(crate) mod locks;
pub(crate) mod table;
pub(crate) mod target_opener;
pub(crate) mod zones;

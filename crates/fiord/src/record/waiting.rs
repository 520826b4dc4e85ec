//! What waits for what began before it.
//!
//! Invariant: the order is that of the numbers alone.

use std::cmp::Ordering;

/// Something that comes after all whose order is smaller.
pub(super) struct Waiting<T> {
    /// When it began, and its number among those that began then.
    pub(super) order: (u64, u64),
    /// What waits.
    pub(super) done: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Waiting<T>) -> bool {
        self.order == other.order
    }
}
impl<T> Eq for Waiting<T> {}
impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Waiting<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Waiting<T>) -> Ordering {
        self.order.cmp(&other.order)
    }
}

//! Collecting into maps and sets one by one.
//!
//! Invariant: the result is that of `collect`.

/// Collects into a map or set by inserting: `collect` sorts first, by a sort of 4 KB that is compiled for every type.
pub trait Gather: Iterator + Sized {
    /// All items.
    fn gather<C: Default + Extend<Self::Item>>(self) -> C {
        let mut all = C::default();
        all.extend(self);
        all
    }
}

impl<I: Iterator> Gather for I {}

//! A list that grows by whole chunks.
//!
//! Invariant: an entry stays where it was put; pushing allocates at the end of a chunk and nowhere else.

/// Entries of a chunk. Untouched memory costs nothing, so a chunk may be large.
const CHUNK: usize = 65_536;

/// Entries, in the order they were pushed.
#[derive(Clone, Debug)]
pub struct Chunks<T> {
    full: Vec<Vec<T>>,
    open: Vec<T>,
}

impl<T> Chunks<T> {
    /// An empty list whose first `entries` entries cost no allocation.
    pub fn with_room_for(entries: usize) -> Chunks<T> {
        Chunks { full: Vec::with_capacity(64), open: Vec::with_capacity(entries.max(CHUNK)) }
    }

    /// Whether the next entry begins a chunk.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.open.len() == self.open.capacity()
    }

    /// Appends an entry.
    #[inline]
    pub fn push(&mut self, entry: T) {
        if self.is_full() {
            self.full.push(std::mem::replace(&mut self.open, Vec::with_capacity(CHUNK)));
        }
        self.open.push(entry);
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slices().flatten()
    }

    /// All entries, in order, a chunk at a time.
    pub fn slices(&self) -> impl Iterator<Item = &[T]> {
        self.full.iter().chain(std::iter::once(&self.open)).map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_order_and_their_place() {
        let mut chunks = Chunks::with_room_for(0);
        chunks.push(0);
        let first: *const usize = &raw const chunks.open[0];
        let count = 2 * CHUNK + 3;
        (1..count).for_each(|entry| chunks.push(entry));
        assert!(chunks.iter().copied().eq(0..count));
        assert_eq!(chunks.slices().map(<[usize]>::len).collect::<Vec<_>>(), [CHUNK, CHUNK, 3]);
        assert!(std::ptr::eq(first, &raw const chunks.full[0][0]));
    }
}

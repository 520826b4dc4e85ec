//! The open files in the order of their turns, each found by its number without a search.
//!
//! Invariant: `places` has the place in `ring` of each file that is open, and `CLOSED` of each other one. Nothing is
//! allocated after `new`.

use fiord_plan::FileIndex;
use fiord_stats::Capped;

/// The place of a file that is not open.
const CLOSED: u32 = u32::MAX;

/// A queue of files, the current one first.
#[derive(Debug, Clone)]
pub(crate) struct OpenFiles {
    ring: Box<[FileIndex]>,
    /// By file.
    places: Box<[u32]>,
    /// The place of the current file.
    head: usize,
    len: usize,
}

impl OpenFiles {
    /// None of `count` files; `room` may be open.
    pub(crate) fn new(count: usize, room: usize) -> OpenFiles {
        let (ring, places) = (vec![0; room].into(), vec![CLOSED; count].into());
        OpenFiles { ring, places, head: 0, len: 0 }
    }

    /// Opens the first files, and no others.
    pub(crate) fn restart(&mut self) {
        self.places.fill(CLOSED);
        (self.head, self.len) = (0, 0);
        (0..self.ring.len()).for_each(|file| self.push_back(FileIndex::capped(file)));
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The place of the file whose turn is the `turn`-th from now.
    #[inline]
    fn place(&self, turn: usize) -> usize {
        let place = self.head + turn;
        if place < self.ring.len() { place } else { place - self.ring.len() }
    }

    /// The current file.
    #[inline]
    pub(crate) fn front(&self) -> Option<FileIndex> {
        (self.len > 0).then(|| self.ring[self.head])
    }

    /// All of them, the current one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = FileIndex> + '_ {
        (0..self.len).map(|turn| self.ring[self.place(turn)])
    }

    #[inline]
    fn set(&mut self, place: usize, file: FileIndex) {
        self.ring[place] = file;
        self.places[file as usize] = u32::capped(place);
    }

    /// Adds a file behind the others; there is room for it.
    pub(crate) fn push_back(&mut self, file: FileIndex) {
        self.set(self.place(self.len), file);
        self.len += 1;
    }

    /// Closes the current file.
    pub(crate) fn pop_front(&mut self) -> Option<FileIndex> {
        let file = self.front()?;
        self.places[file as usize] = CLOSED;
        self.head = self.place(1);
        self.len -= 1;
        Some(file)
    }

    /// The current file goes behind the others.
    #[inline]
    pub(crate) fn rotate(&mut self) {
        // One that is alone stays, as in most jobs.
        if self.len > 1
            && let Some(file) = self.pop_front()
        {
            self.push_back(file);
        }
    }

    /// Exchanges the current file with the one whose turn is the `turn`-th from now.
    #[inline]
    pub(crate) fn bring_forward(&mut self, turn: usize) {
        self.exchange(self.place(turn));
    }

    /// Exchanges the current file with this one; `false`: it is not open.
    #[inline]
    pub(crate) fn bring_file_forward(&mut self, file: FileIndex) -> bool {
        let place = self.places[file as usize];
        if place != CLOSED {
            self.exchange(place as usize);
        }
        place != CLOSED
    }

    #[inline]
    fn exchange(&mut self, place: usize) {
        let (current, file) = (self.ring[self.head], self.ring[place]);
        self.set(place, current);
        self.set(self.head, file);
    }

    /// Makes this file the current one, in place of the last of a queue without room.
    pub(crate) fn replace_last(&mut self, file: FileIndex) {
        self.head = self.place(self.ring.len() - 1);
        self.places[self.ring[self.head] as usize] = CLOSED;
        self.set(self.head, file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_stats::Random;
    use std::collections::VecDeque;

    #[test]
    fn it_does_what_a_queue_that_is_searched_does() {
        let (count, room) = (50, 7);
        let mut files = OpenFiles::new(count, room);
        files.restart();
        let (mut queue, mut random): (VecDeque<FileIndex>, _) =
            ((0..room as FileIndex).collect(), Random::new(3));
        let mut hits = 0;
        for _ in 0..10_000 {
            let file = random.below(count as u64) as FileIndex;
            let turn = random.below(room as u64) as usize;
            match random.below(4) {
                0 => {
                    queue.rotate_left(1);
                    files.rotate();
                }
                1 => {
                    queue.swap(0, turn);
                    files.bring_forward(turn);
                }
                2 => {
                    let place = queue.iter().position(|open| *open == file);
                    assert_eq!(files.bring_file_forward(file), place.is_some());
                    hits += u32::from(place.is_some());
                    match place {
                        Some(place) => queue.swap(0, place),
                        None => {
                            queue.pop_back();
                            queue.push_front(file);
                            files.replace_last(file);
                        }
                    }
                }
                _ => {
                    let closed = queue.pop_front().unwrap();
                    assert_eq!(files.pop_front(), Some(closed));
                    let next = (0..count as FileIndex).find(|file| !queue.contains(file) && *file != closed);
                    queue.push_back(next.unwrap());
                    files.push_back(next.unwrap());
                }
            }
            assert!(files.iter().eq(queue.iter().copied()), "{files:?} {queue:?}");
            assert_eq!((files.front(), files.len()), (queue.front().copied(), room));
        }
        assert!(hits > 100);
    }
}

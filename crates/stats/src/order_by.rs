//! Sorting whatever the type, with one sort that is compiled for all.
//!
//! Invariant: what compares equal stays in the order in which it was.
//!
//! The standard library's sorts are compiled for every type and every way of comparing, 4 KB each. Those of slices of numbers and
//! strings, which many places share, are for what may be long.

use std::cmp::Ordering;

/// Sorting what is seldom sorted, or not long.
pub trait OrderBy<T> {
    /// Sorts as `sort_by` does.
    fn order_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts as `sort_by_key` does.
    fn order_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.order_by(|one, other| key(one).cmp(&key(other)));
    }
}

impl<T> OrderBy<T> for [T] {
    fn order_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let mut places = places(self.len(), &mut |one, other| compare(&self[one], &self[other]));
        for place in 0..places.len() {
            while places[place] != place {
                let to = places[place];
                self.swap(place, to);
                places.swap(place, to);
            }
        }
    }
}

/// The place of each of `count` items among all of them, which are compared by their numbers.
fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|one, other| compare(*one, *other));
    let mut places = vec![0; count];
    order.into_iter().enumerate().for_each(|(place, item)| places[item] = place);
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::OrderBy;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(items: Vec<(u8, u8)>) {
            let (mut expected, mut ordered) = (items.clone(), items);
            expected.sort_by_key(|item| item.0);
            ordered.order_by_key(|item| item.0);
            prop_assert_eq!(ordered, expected);
        }
    }
}

//! Block sizes: one, or several with their shares.
//!
//! Invariant: the percents of several sizes sum up to 100.

use fiord_stats::Capped;

use crate::counted::Counted;
use crate::jobfile::bytes;
use crate::pattern::Mix;
use crate::place::whole_percents;
use crate::stream::KINDS;

/// Sizes that are written out, at most; more are put together.
const SIZES_MAX: usize = 16;

/// The block sizes of one kind of I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sizes {
    /// Size in bytes and percent, in order.
    pub shares: Vec<(u64, u32)>,
    /// Percent of the I/Os, rounded up, that have another size.
    pub others_percent: u32,
}

impl Sizes {
    /// The sizes that I/Os of these lengths have.
    pub fn of(lengths: &Counted) -> Sizes {
        let total = lengths.total().max(1) as f64;
        let grouped =
            if lengths.distinct() > SIZES_MAX { grouped(lengths) } else { lengths.iter().collect() };
        // What is less than half a percent would be 0.
        let (kept, rare): (Vec<_>, Vec<_>) =
            grouped.into_iter().partition(|(_, count)| *count as f64 >= total * 0.005);
        let percents = whole_percents(&kept.iter().map(|(_, count)| *count as f64).collect::<Vec<_>>());
        let rare: u64 = rare.iter().map(|(_, count)| count).sum();
        Sizes {
            shares: kept
                .into_iter()
                .map(|(size, _)| size)
                .zip(percents)
                .filter(|(_, percent)| *percent > 0)
                .collect(),
            others_percent: u32::capped((rare as f64 * 100.0 / total).ceil()),
        }
    }

    /// The shortest; 0 without any.
    pub fn min(&self) -> u64 {
        self.shares.first().map_or(0, |(size, _)| *size)
    }

    fn split(&self) -> String {
        let share = |(size, percent): &(u64, u32)| format!("{}/{percent}", bytes(*size));
        self.shares.iter().map(share).collect::<Vec<_>>().join(":")
    }
}

/// Many sizes as a few: of each group with as many I/Os, the one in the middle.
fn grouped(lengths: &Counted) -> Vec<(u64, u64)> {
    let count = (lengths.total() / SIZES_MAX as u64).max(1);
    let middle = |group: usize| lengths.quantile((group as f64 + 0.5) / SIZES_MAX as f64);
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for size in (0..SIZES_MAX).map(middle) {
        match groups.last_mut() {
            Some((last, grown)) if *last == size => *grown += count,
            _ => groups.push((size, count)),
        }
    }
    groups
}

/// Adds the options for the sizes of each kind of a section.
pub(crate) fn add(all: &[Sizes], mix: Mix, add: &mut dyn FnMut(&'static str, String, String)) {
    let is_one = all.iter().all(|sizes| sizes.shares.len() == 1);
    let of = |kind: usize| mix.kinds().iter().position(|one| *one == kind).map_or(&all[0], |at| &all[at]);
    let text = |sizes: &Sizes| if is_one { bytes(sizes.min()) } else { sizes.split() };
    let differs = all.iter().any(|sizes| sizes.shares != all[0].shares);
    let value = match differs {
        true => (0..KINDS.len()).map(|kind| text(of(kind))).collect::<Vec<_>>().join(","),
        false => text(&all[0]),
    };
    let others = all.iter().map(|sizes| sizes.others_percent).max().unwrap_or(0);
    let except = if others == 0 { String::new() } else { format!(", but for {others} %") };
    match is_one {
        true => add("bs", value, format!("all have this size{except}")),
        false => add("bssplit", value, format!("sizes and their percents{except}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(lengths: impl IntoIterator<Item = u64>) -> Sizes {
        let mut counted = Counted::default();
        lengths.into_iter().for_each(|length| counted.add(length));
        Sizes::of(&counted)
    }

    #[test]
    fn a_short_end_is_no_size_of_its_own() {
        let sizes = sizes((0..1000).map(|number| if number == 999 { 512 } else { 4096 }));
        assert_eq!(sizes, Sizes { shares: vec![(4096, 100)], others_percent: 1 });
    }

    #[test]
    fn several_sizes_have_percents() {
        let sizes = sizes((0..300).map(|number| if number % 3 == 0 { 65_536 } else { 4096 }));
        assert_eq!(sizes.split(), "4k/67:64k/33");
    }

    #[test]
    fn many_sizes_are_a_few_of_the_same_distribution() {
        let sizes = sizes((1..=6400).map(|number| number * 10));
        assert!(sizes.shares.len() <= SIZES_MAX, "{sizes:?}");
        assert_eq!(sizes.shares.iter().map(|(_, percent)| percent).sum::<u32>(), 100);
        let mean: f64 =
            sizes.shares.iter().map(|(size, percent)| *size as f64 * f64::from(*percent) / 100.0).sum();
        assert!((31_000.0..33_000.0).contains(&mean), "{mean}");
    }
}

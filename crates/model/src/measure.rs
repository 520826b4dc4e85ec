//! Measures the streams of a trace, entry by entry.
//!
//! Invariant: every entry belongs to exactly one stream, so that the sums over streams are those of the trace.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use fiord_stats::OrderBy;
use fiord_trace::{Entry as Traced, OpenFlags};

use crate::pattern::WRITE;
use crate::stream::{Identity, Stream, Told};
use crate::touched::Sampling;

/// Of all I/Os and synchronizations, of bytes, and of synchronizations alone, a stream with less hardly counts.
const SMALL_SHARE: f64 = 0.001;
/// What those may be together.
const ALL_SMALL_SHARE: f64 = 0.02;

/// What was measured of a trace.
#[derive(Debug, Clone, Default)]
pub struct Measurement {
    streams: Vec<Stream>,
    /// Where in `streams` each is.
    known: HashMap<Identity, usize>,
    sampling: Sampling,
    operations: u64,
}

impl Measurement {
    /// Adds the next entry of a trace, with what the trace tells besides.
    pub fn add(&mut self, entry: &Traced, told: &Told) {
        let flags = told.call.map(|(_, flags)| flags);
        let identity = Identity { file: entry.file, process: told.process, flags };
        let at = *self.known.entry(identity).or_insert_with(|| {
            self.streams.push(Stream::new(identity));
            self.streams.len() - 1
        });
        self.streams[at].add(self.operations, entry, told, &mut self.sampling);
        self.operations += 1;
        self.sampling.thin(self.streams.iter_mut().map(|stream| &mut stream.touched));
    }

    /// The streams, in the order of their first operations.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Which blocks were kept of all.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Reads, writes and trims of all streams.
    pub fn ios(&self) -> u64 {
        self.streams.iter().map(Stream::ios).sum()
    }

    /// Operations of any kind.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Without the streams that hardly count, such as what is read to start a program; and how many streams and operations
    /// these were. All are kept if those together are more than a little.
    #[must_use]
    pub fn without_small(&self) -> (Measurement, usize, u64) {
        let mut rest = self.clone();
        rest.join_syncs();
        let counted = |stream: &Stream| {
            let syncs: u64 = stream.syncs.iter().map(|syncs| syncs.count).sum();
            let bytes: u64 = stream.tracks.iter().map(|track| track.bytes).sum();
            [stream.ios() + syncs, bytes, syncs]
        };
        let sum = |streams: &[&Stream]| {
            let each = streams.iter().map(|stream| counted(stream));
            each.fold([0; 3], |sum, one| [0, 1, 2].map(|at| sum[at] + one[at]))
        };
        let all = sum(&rest.streams.iter().collect::<Vec<_>>());
        let is_part = |part: [u64; 3], share: f64| {
            part.iter().zip(all).all(|(part, all)| *part as f64 <= all as f64 * share)
        };
        let is_small = |stream: &&Stream| is_part(counted(stream), SMALL_SHARE);
        let small: Vec<&Stream> = rest.streams.iter().filter(is_small).collect();
        let (streams, [operations, ..]) = (small.len(), sum(&small));
        if !is_part(sum(&small), ALL_SMALL_SHARE) {
            return (rest, 0, 0);
        }
        rest.streams.retain(|stream| !is_small(&stream));
        rest.known.clear();
        rest.operations -= operations;
        (rest, streams, operations)
    }

    /// Where a thread only synchronizes what another one writes, both are of the stream that writes most to the file: a job
    /// synchronizes only what it writes.
    fn join_syncs(&mut self) {
        let (mut writers, alone): (Vec<Stream>, Vec<Stream>) =
            std::mem::take(&mut self.streams).into_iter().partition(|stream| stream.ios() > 0);
        for one in alone {
            let of_file = writers.iter_mut().filter(|stream| stream.identity.file == one.identity.file);
            match of_file
                .max_by_key(|stream| stream.tracks[WRITE].ios)
                .filter(|most| most.tracks[WRITE].ios > 0)
            {
                Some(writer) => {
                    writer.syncs.iter_mut().zip(&one.syncs).for_each(|(mine, other)| mine.absorb(other));
                    let durations = writer.durations.iter_mut().zip(&one.durations);
                    durations.for_each(|(mine, other)| mine.absorb(other));
                }
                None => writers.push(one),
            }
        }
        self.streams = writers;
        self.known.clear();
    }

    /// With the streams put together that do the same kind of thing: for people, who want few sections.
    #[must_use]
    pub fn compact(self) -> Measurement {
        self.grouped(Class::of, |_, _| {})
    }

    /// With the streams of each key put together, and changed by it.
    pub(crate) fn grouped<K: Ord>(
        mut self,
        key: impl Fn(&Stream) -> K,
        change: impl Fn(&K, &mut Stream),
    ) -> Measurement {
        let mut groups: BTreeMap<K, Stream> = BTreeMap::new();
        for stream in std::mem::take(&mut self.streams) {
            match groups.entry(key(&stream)) {
                Entry::Vacant(group) => {
                    group.insert(stream);
                }
                Entry::Occupied(mut group) => group.get_mut().absorb(stream),
            }
        }
        groups.iter_mut().for_each(|(key, stream)| change(key, stream));
        self.streams = groups.into_values().collect();
        self.streams.order_by_key(|stream| stream.numbers().0);
        self.known.clear();
        self
    }
}

/// What streams of one compact section have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Class {
    /// Of reads, writes, trims: none, mostly sequential, mostly random.
    orders: [u8; 3],
    /// Whether it synchronizes.
    is_synced: bool,
    /// How its file was open.
    flags: Option<OpenFlags>,
}

impl Class {
    fn of(stream: &Stream) -> Class {
        let order = |kind: usize| match &stream.tracks[kind] {
            track if track.ios == 0 => 0,
            track if track.sequential_share().is_none_or(|share| share >= 0.5) => 1,
            _ => 2,
        };
        let is_synced = stream.syncs.iter().any(|syncs| syncs.count > 0);
        Class { orders: [0, 1, 2].map(order), is_synced, flags: stream.identity.flags }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fiord_trace::EntryKind;

    fn measured(ios: &[(u32, u64)]) -> Measurement {
        let mut measured = Measurement::default();
        for (file, count) in ios {
            for number in 0..*count {
                let offset_bytes = number * 4096;
                let (kind, length_bytes) = (EntryKind::Write, 4096);
                let entry = Traced { at_ns: number, file: *file, kind, offset_bytes, length_bytes };
                measured.add(&entry, &Told::default());
            }
        }
        measured
    }

    #[test]
    fn streams_that_hardly_count_are_left_out_unless_they_are_many() {
        let (rest, streams, operations) = measured(&[(0, 3), (1, 5000), (2, 1)]).without_small();
        assert_eq!((rest.streams().len(), rest.operations(), streams, operations), (1, 5000, 2, 4));
        let many: Vec<(u32, u64)> = (0..2000).map(|file| (file, 1)).collect();
        let (rest, streams, _) = measured(&many).without_small();
        assert_eq!((rest.streams().len(), streams), (2000, 0));
    }
}

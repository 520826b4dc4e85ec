//! Merges binary traces into one, whose events are in the order of their times.
//!
//! Invariant: of each trace only one event is held at a time; the result has the I/Os of every trace, each as often as
//! its trace is repeated, and nothing else.

use std::io::{self, BufRead, Read, Seek};

use fiord_errno::error_text;

use crate::FileName;
use crate::blktrace::{self, EVENT_BYTES, Events};

/// One of the traces that are merged.
#[derive(Debug)]
pub struct MergeInput<R> {
    /// How errors name it.
    pub name: String,
    /// The trace.
    pub input: R,
    /// Factor of its times, in millionths: 500,000 takes half the time.
    pub time_scale_ppm: u64,
    /// How often it is played; at least 1.
    pub iterations: u64,
}

/// The merged trace, as a stream of bytes. Reading fails with the sentence that says what is wrong with which trace.
///
/// The time of each trace begins with its first I/O; a repetition begins with the last I/O of the one before.
#[derive(Debug)]
pub struct MergedTrace<R> {
    streams: Vec<Stream<R>>,
    event: [u8; EVENT_BYTES],
    /// Bytes of `event` that were handed out.
    used: usize,
}

impl<R: BufRead + Seek> MergedTrace<R> {
    /// Merges these traces.
    ///
    /// # Errors
    /// One of them cannot be read, or is not a binary trace.
    pub fn new(inputs: Vec<MergeInput<R>>) -> io::Result<MergedTrace<R>> {
        let streams = inputs.into_iter().map(Stream::new).collect::<io::Result<Vec<Stream<R>>>>()?;
        Ok(MergedTrace { streams, event: [0; EVENT_BYTES], used: EVENT_BYTES })
    }

    /// Takes the earliest event, that of the first trace if several have the same time. `false` at the end.
    fn advance(&mut self) -> io::Result<bool> {
        let pending = self.streams.iter_mut().filter(|stream| stream.pending.is_some());
        let Some(first) = pending.min_by_key(|stream| stream.due_ns()) else { return Ok(false) };
        if let Some((at_ns, mut event)) = first.pending.take() {
            blktrace::set_time(&mut event, at_ns);
            (self.event, self.used) = (event, 0);
        }
        first.read_next()?;
        Ok(true)
    }
}

impl<R: BufRead + Seek> Read for MergedTrace<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.used == EVENT_BYTES && !self.advance()? {
            return Ok(0);
        }
        let taken = buffer.len().min(EVENT_BYTES - self.used);
        buffer[..taken].copy_from_slice(&self.event[self.used..self.used + taken]);
        self.used += taken;
        Ok(taken)
    }
}

#[derive(Debug)]
struct Stream<R> {
    name: String,
    time_scale_ppm: u64,
    /// Iterations after the current one.
    iterations_left: u64,
    /// Time of the current iteration's beginning in the merged trace, in nanoseconds.
    began_ns: u64,
    events: Events<R>,
    /// The devices of the trace; the merged one has their numbers in its events.
    devices: Vec<FileName>,
    /// The next event, and its time in the merged trace.
    pending: Option<(u64, [u8; EVENT_BYTES])>,
}

impl<R: BufRead + Seek> Stream<R> {
    fn new(from: MergeInput<R>) -> io::Result<Stream<R>> {
        let MergeInput { name, mut input, time_scale_ppm, iterations } = from;
        let wrong = |why: String| io::Error::other(format!("{name}: {why}"));
        let first_bytes = input.fill_buf().map_err(|error| wrong(error_text(&error)))?;
        if !blktrace::is_magic(first_bytes) {
            return Err(wrong("it is not a binary trace of blktrace; only these can be merged".to_string()));
        }
        let first_bytes = first_bytes[..first_bytes.len().min(8)].to_vec();
        let mut stream = Stream {
            events: Events::new(input, &first_bytes),
            name,
            time_scale_ppm,
            iterations_left: iterations.saturating_sub(1),
            began_ns: 0,
            devices: Vec::new(),
            pending: None,
        };
        stream.read_next()?;
        Ok(stream)
    }

    fn due_ns(&self) -> u64 {
        self.pending.as_ref().map_or(u64::MAX, |(at_ns, _)| *at_ns)
    }

    /// Reads the next I/O, if necessary of the next iteration.
    fn read_next(&mut self) -> io::Result<()> {
        let wrong = |name: &str, why: String| io::Error::other(format!("{name}: {why}"));
        loop {
            let next =
                self.events.next(&mut self.devices).map_err(|why| wrong(&self.name, why.to_string()))?;
            if next.is_some() {
                let at_ns = self.scaled_ns(self.events.now_ns());
                self.pending = Some((at_ns, self.events.event()));
                return Ok(());
            }
            // A trace without I/Os has none after any number of repetitions.
            if self.iterations_left == 0 || self.devices.is_empty() {
                return Ok(());
            }
            self.iterations_left -= 1;
            self.began_ns = self.scaled_ns(self.events.now_ns());
            self.events.rewind().map_err(|error| wrong(&self.name, error_text(&error)))?;
        }
    }

    fn scaled_ns(&self, at_ns: u64) -> u64 {
        let scaled = u128::from(at_ns) * u128::from(self.time_scale_ppm) / 1_000_000;
        self.began_ns.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::tests::blktrace_event;
    use crate::{Entry, EntryKind, Reader, Transform};

    const READ: u32 = 1;
    const COMPLETED: u32 = 8;

    /// A trace of reads on the device 7:`minor`, at these times; each is completed, which is no I/O of its own.
    fn trace(minor: u32, times_ns: &[u64]) -> Vec<u8> {
        let event = |(number, at_ns): (usize, &u64)| {
            let queued = blktrace_event(*at_ns, number as u64 * 8, 4096, READ << 16 | 1, minor, b"data");
            [queued, blktrace_event(at_ns + 1, number as u64 * 8, 4096, READ << 16 | COMPLETED, minor, b"")]
                .concat()
        };
        times_ns.iter().enumerate().flat_map(event).collect()
    }

    fn merged(inputs: &[(Vec<u8>, u64, u64)]) -> io::Result<Vec<u8>> {
        let inputs = inputs.iter().map(|(bytes, time_scale_ppm, iterations)| MergeInput {
            name: "t".to_string(),
            input: Cursor::new(bytes.clone()),
            time_scale_ppm: *time_scale_ppm,
            iterations: *iterations,
        });
        let mut bytes = Vec::new();
        MergedTrace::new(inputs.collect())?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn entries(bytes: &[u8]) -> Vec<(u64, u64, FileName)> {
        let mut reader = Reader::new(bytes, Transform::default()).unwrap();
        let mut entries = Vec::new();
        while let Some(Entry { at_ns, file, offset_bytes, kind, .. }) = reader.next_entry().unwrap() {
            assert_eq!(kind, EntryKind::Read);
            entries.push((at_ns, offset_bytes, reader.files()[file as usize].clone()));
        }
        entries
    }

    #[test]
    fn events_are_in_the_order_of_their_scaled_times() {
        let (a, b) = (trace(0, &[1000, 2000, 5000]), trace(1, &[70, 1070, 9070]));
        let device = |minor| FileName::Device { major: 7, minor };
        let bytes = merged(&[(a, 500_000, 2), (b, 1_000_000, 1)]).unwrap();
        // Half the time of `a`, which is repeated when it ends: 0, 500, 2000, and from there again.
        assert_eq!(
            entries(&bytes),
            [
                (0, 0, device(0)),
                (0, 0, device(1)),
                (500, 4096, device(0)),
                (1000, 4096, device(1)),
                (2000, 8192, device(0)),
                (2000, 0, device(0)),
                (2500, 4096, device(0)),
                (4000, 8192, device(0)),
                (9000, 8192, device(1)),
            ]
        );
        assert_eq!(bytes.len(), 9 * EVENT_BYTES, "only I/Os, without data");
    }

    #[test]
    fn what_is_no_binary_trace_is_refused_by_name() {
        for bytes in [&b"fio version 3 iolog\n"[..], b""] {
            let refused = merged(&[(bytes.to_vec(), 1_000_000, 1)]).unwrap_err().to_string();
            assert!(refused.starts_with("t: it is not a binary trace"), "{refused}");
        }
        let short = trace(0, &[1])[..60].to_vec();
        let refused = merged(&[(short, 1_000_000, 1)]).unwrap_err().to_string();
        assert!(refused.contains("ends within an event"), "{refused}");
    }

    #[test]
    fn a_trace_without_ios_ends_however_often_it_is_repeated() {
        let only_completed = blktrace_event(5, 0, 4096, READ << 16 | COMPLETED, 0, b"");
        assert_eq!(merged(&[(only_completed, 1_000_000, u64::MAX)]).unwrap(), []);
    }

    proptest! {
        /// The merged trace is what its parts are, put together and sorted.
        #[test]
        fn merging_loses_and_adds_nothing(parts in proptest::collection::vec(proptest::collection::vec(0..5000_u64, 1..20), 1..4)) {
            let parts: Vec<Vec<u64>> = parts.into_iter().map(|mut part| { part.sort_unstable(); part }).collect();
            let traces: Vec<Vec<u8>> = parts.iter().enumerate().map(|(at, part)| trace(at as u32, part)).collect();
            let inputs: Vec<_> = traces.iter().map(|bytes| (bytes.clone(), 1_000_000, 1)).collect();
            let mut expected: Vec<_> = traces.iter().flat_map(|bytes| entries(bytes)).collect();
            let found = entries(&merged(&inputs).unwrap());
            prop_assert!(found.is_sorted_by_key(|(at_ns, ..)| *at_ns));
            let mut found = found;
            found.sort();
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}

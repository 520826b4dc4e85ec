//! Replays of traces: which trace a worker replays, on which files, and what it needs of them.
//!
//! Invariant: the files are in the order of the trace, so that the number of a file is the same in both.

use std::path::PathBuf;

use fiord_options::job;
use fiord_options::shown::shown;
use fiord_options::value::FloatList;
use fiord_options::{Problem, ProblemKind, Spec};
use fiord_stats::Capped;

use super::names::split_paths;
use super::section::ResolvedSection;
use super::size::{Extent, OFFSET_BYTES_MAX, Present};
use crate::access::Direction;
use crate::facts::Facts;
use crate::files::FileKind;
use crate::replay::{EntryKind, Replay, TraceFacts, TraceNeed, TracePart, TracedFile, Transform};

/// The trace that a clone replays; several are for the clones in turn, or are merged.
pub(crate) fn need(section: &ResolvedSection<'_>, clone: u32) -> Result<Option<TraceNeed>, Problem> {
    let options = &section.options.replay;
    let Some(read_iolog) = &options.read_iolog else { return Ok(None) };
    let traces = split_paths(&read_iolog.0);
    let (path, parts) = match &options.merge_blktrace_file {
        Some(merged) => (PathBuf::from(&merged.0), parts(section, traces)?),
        None => match traces.get(clone as usize % traces.len().max(1)) {
            Some(path) => (path.clone(), Vec::new()),
            None => return Ok(None),
        },
    };
    let skip = options.replay_skip.unwrap_or_default();
    let skipped = [
        (EntryKind::Read, skip.read),
        (EntryKind::Write, skip.write),
        (EntryKind::Trim, skip.trim),
        (EntryKind::Sync, skip.sync),
        (EntryKind::DataSync, skip.sync),
        (EntryKind::RangeSync, skip.sync),
    ];
    let transform = Transform {
        speed_percent: options.replay_time_scale,
        no_stall: options.replay_no_stall,
        divisor: u64::from(options.replay_scale).max(1),
        align_bytes: options.replay_align.0.max(1),
        skip: skipped.into_iter().filter_map(|(kind, is_skipped)| is_skipped.then_some(kind)).collect(),
    };
    Ok(Some(TraceNeed { path, parts, transform }))
}

/// The traces that are merged, with their speeds and repetitions.
fn parts(section: &ResolvedSection<'_>, traces: Vec<PathBuf>) -> Result<Vec<TracePart>, Problem> {
    let options = &section.options.replay;
    let (scalars, iterations) = (&options.merge_blktrace_scalars, &options.merge_blktrace_iters);
    let scalars = paired(section, job::Replay::merge_blktrace_scalars, scalars.as_ref(), &traces)?;
    let iterations = paired(section, job::Replay::merge_blktrace_iters, iterations.as_ref(), &traces)?;
    if let Some(broken) = iterations.into_iter().flatten().find(|number| number.fract() != 0.0) {
        return Err(section.error(
            ProblemKind::InvalidValue,
            job::Replay::merge_blktrace_iters,
            format!("{broken} is not a whole number"),
            "a trace is repeated as a whole",
        ));
    }
    let part = |(at, path): (usize, PathBuf)| TracePart {
        path,
        time_scale_ppm: scalars.map_or(1_000_000, |percents| u64::capped((percents[at] * 10_000.0).round())),
        iterations: iterations.map_or(1, |numbers| u64::capped(numbers[at])),
    };
    Ok(traces.into_iter().enumerate().map(part).collect())
}

/// A list with one number for each trace, if it is given.
fn paired<'l>(
    section: &ResolvedSection<'_>,
    option: &'static Spec,
    numbers: Option<&'l FloatList>,
    traces: &[PathBuf],
) -> Result<Option<&'l [f64]>, Problem> {
    let numbers = numbers.map(|numbers| numbers.0.as_slice());
    match numbers.map(<[f64]>::len).filter(|length| *length != traces.len()) {
        Some(length) => {
            let message = format!("{length} number(s) for the {} trace(s) of read_iolog", traces.len());
            Err(section.error(ProblemKind::Conflict, option, message, "give one number for each trace"))
        }
        None => Ok(numbers),
    }
}

/// The file that the traces of `read_iolog` are merged into, if they are merged.
pub(crate) fn merged(section: &ResolvedSection<'_>) -> Option<PathBuf> {
    let options = &section.options.replay;
    let merged = options.merge_blktrace_file.as_ref().filter(|_| options.read_iolog.is_some());
    merged.map(|path| PathBuf::from(&path.0))
}

/// The one file of `replay_redirect`.
pub(crate) fn redirect(section: &ResolvedSection<'_>) -> Option<PathBuf> {
    section.options.replay.replay_redirect.as_ref().map(|path| PathBuf::from(&path.0))
}

/// The iolog that a worker's I/O is recorded in. What is replayed is not recorded again.
pub(crate) fn recording(section: &ResolvedSection<'_>) -> Option<PathBuf> {
    let options = &section.options.replay;
    options.write_iolog.as_ref().filter(|_| options.read_iolog.is_none()).map(|path| PathBuf::from(&path.0))
}

/// What a clone replays, if it replays anything.
pub(crate) fn replayed<'f>(
    section: &ResolvedSection<'_>,
    clone: u32,
    facts: &'f Facts,
    readonly: bool,
) -> Result<Option<Replayed<'f>>, Problem> {
    let Some(need) = need(section, clone)? else { return Ok(None) };
    let align_bytes = need.transform.align_bytes;
    if !align_bytes.is_power_of_two() {
        let message = format!("{align_bytes} is not a power of two");
        return Err(section.error(ProblemKind::InvalidValue, job::Replay::replay_align, message, ""));
    }
    let trace = shown(&need.path);
    let facts = match facts.traces.get(&need) {
        Some(Ok(facts)) => facts,
        refused => {
            let why = refused.and_then(|refused| refused.as_ref().err());
            let why = why.map_or("it was not read", String::as_str);
            return Err(section.error(
                ProblemKind::Unreadable,
                job::Replay::read_iolog,
                format!("{trace} cannot be replayed: {why}"),
                "name a file written by write_iolog=, or a binary trace written by blkparse -d",
            ));
        }
    };
    let replayed = Replayed { need, facts, redirect: redirect(section) };
    if readonly && (replayed.occurs(Direction::Write) || replayed.occurs(Direction::Trim)) {
        let message = format!("{trace} writes or trims, which --readonly forbids");
        return Err(section.error(
            ProblemKind::Forbidden,
            job::Replay::read_iolog,
            message,
            "replay_skip=write,trim leaves that out",
        ));
    }
    Ok(Some(replayed))
}

/// A trace, with the files it is replayed on.
#[derive(Debug)]
pub(crate) struct Replayed<'a> {
    need: TraceNeed,
    facts: &'a TraceFacts,
    redirect: Option<PathBuf>,
}

impl Replayed<'_> {
    /// The files it is replayed on.
    pub fn paths(&self) -> Vec<PathBuf> {
        match &self.redirect {
            Some(path) => vec![path.clone()],
            None => self.facts.paths.clone(),
        }
    }

    /// Whether operations of this direction occur.
    pub fn occurs(&self, direction: Direction) -> bool {
        let kind = match direction {
            Direction::Read => EntryKind::Read,
            Direction::Write => EntryKind::Write,
            Direction::Trim => EntryKind::Trim,
        };
        self.facts.summary.entries(kind) > 0
    }

    /// The longest transfer, at least 1.
    pub fn longest_bytes(&self) -> u64 {
        self.facts.summary.length_bytes_max.max(1)
    }

    /// Bytes of all transfers.
    pub fn bytes(&self) -> u64 {
        self.facts.summary.bytes
    }

    /// The power of two that all offsets and lengths in this file are multiples of.
    pub fn align_bytes(&self, index: u64) -> u64 {
        self.uses(index).map(|file| file.align_bytes).min().unwrap_or(1)
    }

    /// The part of a file that is used, or how far the trace reaches beyond its end.
    pub fn extent(&self, index: u64, present: Present) -> Result<Extent, u64> {
        let end_bytes = self.uses(index).map(|file| file.end_bytes).max().unwrap_or(0);
        let read_end_bytes = self.uses(index).map(|file| file.read_end_bytes).max().unwrap_or(0);
        let grows = present.kind == FileKind::Regular && end_bytes <= OFFSET_BYTES_MAX;
        if present.kind == FileKind::Block && end_bytes > present.bytes {
            return Err(end_bytes);
        }
        let needed_bytes = (grows && read_end_bytes > present.bytes).then_some(read_end_bytes);
        Ok(Extent { offset_bytes: 0, length_bytes: end_bytes, needed_bytes })
    }

    /// The uses of the trace's files that go to a file of the job.
    fn uses(&self, index: u64) -> impl Iterator<Item = &TracedFile> {
        let files = &self.facts.summary.files;
        let of_one = self.redirect.is_none();
        files
            .iter()
            .enumerate()
            .filter(move |(number, _)| !of_one || *number as u64 == index)
            .map(|(_, file)| file)
    }

    /// The replay, for the plan.
    pub fn plan(&self) -> Replay {
        Replay {
            trace: self.need.clone(),
            inputs: self.facts.inputs.clone(),
            redirected: self.redirect.is_some(),
            length_ns: self.facts.summary.length_ns,
            bytes: self.bytes(),
            directions: Direction::ALL.map(|direction| self.occurs(direction)),
        }
    }
}

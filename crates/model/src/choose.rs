//! Chooses the options that make a job do what a stream does.
//!
//! Invariant: a value stands for what was measured, and its comment says what that was; what a trace does not tell is set
//! to what does no harm, and said to be a guess.

use fiord_report::table::shown_bytes;
use fiord_stats::Capped;
use fiord_stats::OrderBy;
use fiord_trace::{FileName, Recorded};

use crate::calls;
use crate::jobfile::{Chosen, JobFile, MARK, Section, bytes, plain_name};
use crate::measure::Measurement;
use crate::pattern::{Mix, READ, WRITE};
use crate::place::{Where, fit};
use crate::sizes::{self, Sizes};
use crate::stream::{KINDS, Stream};
use crate::syncs;
use crate::timing;
use crate::touched::Sampling;
use crate::track::Track;

/// Where a measurement comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// What the trace is called.
    pub name: &'a str,
    /// The names of its files, in the order of their numbers.
    pub files: &'a [FileName],
    /// Whether it is one of block requests.
    pub is_blktrace: bool,
    /// What it tells besides its entries, if it is a recording of fiord.
    pub recorded: Option<&'a Recorded>,
}

impl Origin<'_> {
    fn file(&self, number: u32) -> String {
        match self.files.get(number as usize) {
            Some(FileName::Path(path)) => fiord_report::path::shown(path),
            Some(FileName::Device { major, minor }) => format!("device {major}:{minor}"),
            None => format!("file {number}"),
        }
    }

    /// Who issued the I/Os of a stream, as it follows the name of its file.
    fn issuer(&self, stream: &Stream) -> String {
        let Some(number) = stream.identity.process else { return String::new() };
        match self.recorded {
            Some(recorded) => {
                // The last program that it executed.
                let thread = recorded.threads.iter().rfind(|thread| thread.thread == number);
                let name = thread.map_or("", |thread| thread.name.as_str());
                format!(", thread {number} of {name}")
            }
            None => format!(", process {number}"),
        }
    }
}

/// The job file that does what was measured.
pub fn job_file(measurement: &Measurement, origin: &Origin<'_>) -> JobFile {
    let used = measurement.streams().iter().enumerate().filter(|(_, stream)| stream.ios() > 0);
    let mut sections = Vec::new();
    for (at, stream) in used {
        let parts = Mix::parts(stream);
        for mix in &parts {
            let name =
                section_name(stream, measurement, origin, (parts.len() > 1).then(|| mix.suffix()), &sections);
            let part = Part { stream, mix: *mix, sampling: measurement.sampling() };
            sections.push((mix.first(stream), mix.last(stream), part.section(name, at, origin)));
        }
    }
    sections.order_by_key(|(first, ..)| *first);
    let mut last_before = None;
    for (first, last, section) in &mut sections {
        if last_before.is_some_and(|before| before < *first) {
            let why = "it began after all of the above had ended";
            section.options.push(Chosen { name: "stonewall", value: "1".to_string(), why: why.to_string() });
            section.options.retain(|chosen| chosen.name != "startdelay");
        }
        last_before = Some(last_before.map_or(*last, |before: u64| before.max(*last)));
    }
    let sections: Vec<Section> = sections.into_iter().map(|(.., section)| section).collect();
    JobFile { about: about(measurement, origin, sections.len()), global: global(origin), sections }
}

fn about(measurement: &Measurement, origin: &Origin<'_>, sections: usize) -> Vec<String> {
    let plural = if sections == 1 { "" } else { "s" };
    let mut about = vec![
        format!(
            "{} from {}: {} operations, as {sections} section{plural}.",
            MARK.trim_start_matches("# ").trim_end(),
            origin.name,
            measurement.operations(),
        ),
        "It works on new files in the current directory (--directory=DIR for another), never on those of the trace. Run it \
         with fiord or fio."
            .to_string(),
    ];
    about.extend(origin.recorded.map(calls::about).unwrap_or_default());
    about
}

fn global(origin: &Origin<'_>) -> Vec<Chosen> {
    let chosen =
        |name, value: &str, why: &str| Chosen { name, value: value.to_string(), why: why.to_string() };
    if let Some(recorded) = origin.recorded {
        return calls::global(recorded);
    }
    match origin.is_blktrace {
        true => vec![
            chosen("ioengine", "libaio", "block requests are queued beside each other"),
            chosen("direct", "1", "a trace of block requests is below the page cache"),
        ],
        false => vec![
            chosen(
                "ioengine",
                "psync",
                "a guess: an iolog does not tell how the calls were made; io_uring if they were queued",
            ),
            chosen("direct", "0", "a guess: nor does it tell O_DIRECT; 1 if the application uses that"),
        ],
    }
}

/// The name of a stream's section: that of its file, with a number if there is one of that name.
fn section_name(
    stream: &Stream,
    measurement: &Measurement,
    origin: &Origin<'_>,
    suffix: Option<&str>,
    others: &[(u64, u64, Section)],
) -> String {
    let file = origin.file(stream.identity.file);
    let last = file.rsplit('/').next().unwrap_or(&file);
    let is_of_file = |other: &&Stream| other.identity.file == stream.identity.file && other.ios() > 0;
    let process = match (stream.identity.process, origin.recorded) {
        (Some(process), None) => format!("-pid{process}"),
        (Some(thread), Some(_)) if measurement.streams().iter().filter(is_of_file).count() > 1 => {
            format!("-tid{thread}")
        }
        _ => String::new(),
    };
    let name = plain_name(last) + &process + suffix.unwrap_or("");
    let is_free = |name: &String| !others.iter().any(|(.., other)| other.name == *name);
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
}

/// Kinds of I/O of a stream that one section does.
#[derive(Clone, Copy)]
struct Part<'a> {
    stream: &'a Stream,
    mix: Mix,
    sampling: &'a Sampling,
}

/// How much of the end of a region the beginning must be before the section gets an offset.
const OFFSET_SHARE_MIN: f64 = 0.05;

/// Of I/O that continues less often than this, the end of the file is seldom seen.
const SEQUENTIAL_MIN: f64 = 0.95;
/// From this percentage on, I/O is taken for random: what continues does so by chance, or because a map of the blocks that
/// are left has few others.
const RANDOM_PERCENT_MIN: u32 = 97;

/// The region that a section works on.
struct Region {
    begin_bytes: u64,
    length_bytes: u64,
}

impl Part<'_> {
    fn tracks(&self) -> impl Iterator<Item = (usize, &Track)> {
        self.mix.kinds().iter().map(|kind| (*kind, &self.stream.tracks[*kind]))
    }

    fn section(&self, name: String, at: usize, origin: &Origin<'_>) -> Section {
        let Part { stream, mix, .. } = *self;
        let mut options = Vec::new();
        let mut add = |name, value: String, why: String| options.push(Chosen { name, value, why });
        let region = self.region();
        let sizes = self.sizes();
        let percents = self.random_percents(&region, &sizes);
        let is_random = percents.iter().any(|percent| *percent > 0);
        match stream.files {
            1 => add("filename", format!("{}.model", self.file_name(origin)), String::new()),
            files => add("nrfiles", files.to_string(), format!("{files} files do the same kind of thing")),
        }
        calls::add(stream, &mut add);
        self.order(&percents, is_random, &mut add);
        sizes::add(&sizes, mix, &mut add);
        self.grain(is_random, &sizes, &mut add);
        self.extent(&region, self.is_counted(&sizes), &mut add);
        if is_random {
            self.place(&region, &sizes, &mut add);
        }
        syncs::add(stream, mix, self.passes(&region), &mut add);
        timing::add(stream, mix, &mut add);
        Section { name, stream: at, about: self.about(origin), options }
    }

    /// The file's name below the current directory: streams of one file have the same.
    fn file_name(&self, origin: &Origin<'_>) -> String {
        let file = origin.file(self.stream.identity.file);
        let plain = |number: u32| plain_name(origin.file(number).rsplit('/').next().unwrap_or(""));
        let name = plain_name(file.rsplit('/').next().unwrap_or(&file));
        let is_taken = (0..self.stream.identity.file).any(|before| plain(before) == name);
        if is_taken { format!("{name}.{}", self.stream.identity.file) } else { name }
    }

    fn about(&self, origin: &Origin<'_>) -> String {
        let counted = |(kind, track): (usize, &Track)| {
            format!("{} {}s ({})", track.ios, KINDS[kind].word(), shown_bytes(track.bytes))
        };
        let what: Vec<String> = self.tracks().map(counted).collect();
        let process = origin.issuer(self.stream);
        let others = match self.stream.files {
            1 => String::new(),
            files => format!(" and {} more", files - 1),
        };
        let file = origin.file(self.stream.identity.file);
        let busy = match self.stream.busy_share() {
            Some(share) if timing::waits_for_storage(self.stream) => format!(
                "; in these calls for {:.0} % of the time, and so as fast as the storage allows",
                share * 100.0
            ),
            _ => String::new(),
        };
        format!("{file}{others}{process}: {}{busy}", what.join(", "))
    }

    fn sizes(&self) -> Vec<Sizes> {
        self.tracks().map(|(_, track)| Sizes::of(&track.lengths)).collect()
    }

    /// What is touched; of random I/O, the end is rounded up, because the last block is seldom seen.
    fn region(&self) -> Region {
        let used = || self.tracks().filter(|(_, track)| track.ios > 0);
        let end_bytes = used().map(|(_, track)| track.end_bytes).max().unwrap_or(0);
        let begin_bytes = used().map(|(_, track)| track.begin_bytes).min().unwrap_or(0);
        let jumps = |track: &Track| track.sequential_share().is_some_and(|share| share < SEQUENTIAL_MIN);
        let is_random = used().any(|(_, track)| jumps(track) && track.constant_gap().is_none());
        let end_bytes = if is_random { rounded_up(end_bytes) } else { end_bytes };
        let begin_bytes = match begin_bytes as f64 >= end_bytes as f64 * OFFSET_SHARE_MIN {
            true if is_random => begin_bytes - begin_bytes % step(begin_bytes),
            true => begin_bytes,
            false => 0,
        };
        Region { begin_bytes, length_bytes: end_bytes - begin_bytes }
    }

    /// Of each kind, how many percent of its I/Os go anywhere. What continues by chance does not count.
    fn random_percents(&self, region: &Region, sizes: &[Sizes]) -> Vec<u32> {
        let percent = |((_, track), sizes): ((usize, &Track), &Sizes)| {
            let places = (region.length_bytes / sizes.min().max(1)).max(2) as f64;
            let jumps = 1.0 - track.sequential_share().unwrap_or(1.0);
            let by_design = track.constant_gap().is_some() && matches!(self.mix, Mix::Only(_));
            let percent = u32::capped((jumps / (1.0 - 1.0 / places) * 100.0).round());
            match percent {
                _ if by_design => 0,
                RANDOM_PERCENT_MIN.. => 100,
                percent => percent,
            }
        };
        self.tracks().zip(sizes).map(percent).collect()
    }

    fn order(&self, percents: &[u32], is_random: bool, add: &mut dyn FnMut(&'static str, String, String)) {
        let word = self.mix.word(is_random);
        let alone = match self.mix {
            Mix::Only(kind) => Some(&self.stream.tracks[kind]),
            _ => None,
        };
        let gap = alone.filter(|_| !is_random).and_then(Track::constant_gap).filter(|gap| *gap > 0);
        if let Some(gap) = gap {
            let why = format!("each begins {gap} bytes after the one before ended");
            return add("rw", format!("{word}:{}", bytes(gap.unsigned_abs())), why);
        }
        if let Some(run) = alone.and_then(Track::constant_run) {
            let why = format!("every {run} in a row follow each other, then it goes elsewhere");
            return add("rw", format!("{word}:{run}"), why);
        }
        let share = |(kind, track): (usize, &Track)| {
            let share = track.sequential_share().map_or(100.0, |share| share * 100.0);
            format!("{share:.1} % of the {}s", KINDS[kind].word())
        };
        let shares: Vec<String> = self.tracks().map(share).collect();
        add("rw", word.to_string(), format!("{} continue where the one before ended", shares.join(", ")));
        if is_random && percents.iter().any(|percent| *percent < 100) {
            let of =
                |kind: usize| self.mix.kinds().iter().position(|one| *one == kind).map(|at| percents[at]);
            let each: Vec<String> =
                (0..KINDS.len()).map(|kind| of(kind).unwrap_or(100).to_string()).collect();
            let value = match self.mix {
                Mix::Only(_) => percents[0].to_string(),
                _ => each.join(","),
            };
            add("percentage_random", value, "the others go anywhere, in percent".to_string());
        }
        if self.mix == Mix::ReadsAndWrites {
            let (reads, writes) = (self.stream.tracks[READ].ios, self.stream.tracks[WRITE].ios);
            let percent = (reads as f64 * 100.0 / (reads + writes) as f64).round();
            let why = format!("{reads} of {} I/Os are reads", reads + writes);
            add("rwmixread", format!("{percent}"), why);
        }
    }

    /// Alignment, where it is not that of the shortest block.
    fn grain(&self, is_random: bool, sizes: &[Sizes], add: &mut dyn FnMut(&'static str, String, String)) {
        let jumps = self.tracks().map(|(_, track)| track.ios - track.sequential - track.wraps).sum::<u64>();
        let grain =
            self.tracks().fold(0, |grain, (_, track)| crate::track::divisor(grain, track.grain_bytes));
        let shortest = sizes.iter().map(Sizes::min).min().unwrap_or(0);
        if is_random && jumps >= 16 && grain > 0 && grain != shortest {
            add("blockalign", bytes(grain), format!("offsets are multiples of {}", bytes(grain)));
        }
    }

    /// Bytes of all I/Os.
    fn moved_bytes(&self) -> u64 {
        self.tracks().fold(0, |sum, (_, track)| sum.saturating_add(track.bytes))
    }

    fn all_files_bytes(&self) -> u64 {
        self.stream.other_files_bytes.saturating_add(self.stream.end_bytes())
    }

    /// How often the job goes through its files: `io_size` by `size`.
    fn passes(&self, region: &Region) -> u64 {
        let size = if self.stream.files > 1 { self.all_files_bytes() } else { region.length_bytes };
        self.moved_bytes().div_ceil(size.max(1)).max(1)
    }

    /// Whether its I/Os are counted, and not their bytes: of sizes that are drawn as many bytes may be many more I/Os, each of
    /// which counts for the next synchronization.
    fn is_counted(&self, sizes: &[Sizes]) -> bool {
        let is_drawn = sizes.iter().any(|sizes| sizes.shares.len() > 1);
        let is_synced = self.stream.syncs.iter().any(|syncs| syncs.count > 0);
        is_drawn && is_synced && self.mix.kinds().contains(&WRITE) && self.stream.files == 1
    }

    fn extent(&self, region: &Region, is_counted: bool, add: &mut dyn FnMut(&'static str, String, String)) {
        let Region { begin_bytes, length_bytes } = *region;
        let moved = self.moved_bytes();
        if self.stream.files > 1 {
            add(
                "size",
                bytes(self.all_files_bytes()),
                "the lengths of all files that were touched".to_string(),
            );
            return add("io_size", bytes(moved), "bytes of all I/Os".to_string());
        }
        if begin_bytes > 0 {
            add("offset", bytes(begin_bytes), "nothing below was touched".to_string());
        }
        let touched = self.tracks().map(|(_, track)| track.end_bytes).max().unwrap_or(0);
        let why = match touched == begin_bytes + length_bytes {
            true => "to the end of what was touched".to_string(),
            false => "to the end of what was touched, rounded up: the last block is seldom seen".to_string(),
        };
        add("size", bytes(length_bytes), why);
        if is_counted {
            let ios: u64 = self.tracks().map(|(_, track)| track.ios).sum();
            add(
                "number_ios",
                ios.to_string(),
                "its I/Os; sizes are drawn, and so are their bytes".to_string(),
            );
            add(
                "io_size",
                bytes(moved.saturating_mul(2)),
                "more than that, so that bytes do not end it".to_string(),
            );
        } else if moved != length_bytes {
            add("io_size", bytes(moved), "bytes of all I/Os".to_string());
        }
    }

    fn place(&self, region: &Region, sizes: &[Sizes], add: &mut dyn FnMut(&'static str, String, String)) {
        let grain =
            self.tracks().fold(0, |grain, (_, track)| crate::track::divisor(grain, track.grain_bytes));
        let shortest = sizes.iter().map(Sizes::min).min().unwrap_or(1);
        let grain = if grain == 0 { shortest.max(1) } else { grain };
        let place = |(offset_bytes, jumps): (u64, u32)| {
            (offset_bytes.saturating_sub(region.begin_bytes) / grain, jumps)
        };
        let blocks: Vec<(u64, u32)> = self.stream.touched.jumped_to().map(place).collect();
        let places = (region.length_bytes / grain).max(1);
        let found = fit(&blocks, places, self.sampling.share());
        let off = match found.distance {
            Some(distance) if distance > 0.1 => format!(
                "; not close: the shares of the most frequent blocks are off by {:.0} points",
                distance * 100.0
            ),
            _ => String::new(),
        };
        match found.place {
            Where::EachOnce | Where::TooFew => {}
            Where::Anywhere => {
                let why = "blocks come again as often as by chance".to_string();
                add("norandommap", "1".to_string(), why);
            }
            Where::Zipf(theta) => {
                // fio does not take 1.
                let theta = if (theta - 1.0).abs() < 0.0005 { 1.001 } else { theta };
                let why = format!("few of the {places} blocks are touched often{off}");
                add("random_distribution", format!("zipf:{theta:.3}"), why);
            }
            Where::Pareto(share) => {
                let why = format!("few of the {places} blocks are touched often, by the 80-20 rule{off}");
                add("random_distribution", format!("pareto:{share:.3}"), why);
            }
            Where::Zones(zones) => {
                let zone = |(access, size): &(u32, u32)| format!("{access}/{size}");
                let value = zones.iter().map(zone).collect::<Vec<_>>().join(":");
                let why = "some parts are touched more often than others: percent of accesses / of the size";
                add("random_distribution", format!("zoned:{value}"), why.to_string());
            }
        }
    }
}

/// A sixty-fourth of a size, as a power of two.
fn step(bytes: u64) -> u64 {
    1 << (bytes.checked_ilog2().unwrap_or(0).saturating_sub(6))
}

fn rounded_up(bytes: u64) -> u64 {
    let step = step(bytes);
    bytes.checked_next_multiple_of(step).unwrap_or(bytes)
}

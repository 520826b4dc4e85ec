//! Traces before a run: finds out what they need, keeps those that can be read only once, and merges.
//!
//! Invariant: a trace is streamed, whatever its length; what is read only once is kept on a disk, not in memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use fiord_plan::replay::{FileName, MergeInput, MergedTrace, STANDARD_INPUT, Summary, summarize};
use fiord_plan::{Plan, TraceFacts, TraceNeed};
use fiord_report::path::shown;
use fiord_stats::Gather;
use fiord_sys::errno::error_text;
use fiord_sys::file;
use fiord_sys::stat::DeviceNumber;
use fiord_sys::sysfs::Sysfs;
use fiord_worker::TargetOpener;

use crate::claims;
use crate::error::SessionError;

/// The option that names the file of a merged trace.
const MERGED: &str = "merge_blktrace_file";

/// Bytes of a trace that are read at once.
const READ_BYTES: usize = 1 << 20;
/// Where traces are kept if `TMPDIR` is not set: a disk on most machines, where `/tmp` may be memory.
const KEPT_IN: &str = "/var/tmp";

/// What each trace needs, or why it cannot be replayed.
pub(crate) fn facts(needs: &[TraceNeed]) -> BTreeMap<TraceNeed, Result<TraceFacts, String>> {
    let mut inputs = Inputs::default();
    needs.iter().map(|need| (need.clone(), trace_facts(need, &mut inputs))).gather()
}

fn trace_facts(need: &TraceNeed, inputs: &mut Inputs) -> Result<TraceFacts, String> {
    let inputs = inputs.of(need)?;
    let summary = match need.parts.is_empty() {
        true => summary(open(&inputs[0])?, need)?,
        false => summary(BufReader::with_capacity(READ_BYTES, merged(need, &inputs)?), need)?,
    };
    let sysfs = Sysfs::default();
    let path = |name: &FileName| match *name {
        FileName::Path(ref path) => path.clone(),
        // One that does not exist here is reported as absent, unless everything goes to another device.
        FileName::Device { major, minor } => sysfs
            .block_device_of(DeviceNumber { major, minor })
            .map_or_else(|_| PathBuf::from(format!("/dev/block/{major}:{minor}")), |device| device.path()),
    };
    let paths = summary.files.iter().map(|file| path(&file.name)).collect();
    Ok(TraceFacts { summary, paths, inputs })
}

fn summary(trace: impl io::BufRead, need: &TraceNeed) -> Result<Summary, String> {
    summarize(trace, need.transform).map_err(|why| why.to_string())
}

fn open(path: &Path) -> Result<BufReader<File>, String> {
    let file = File::open(path).map_err(|error| error_text(&error))?;
    Ok(BufReader::with_capacity(READ_BYTES, file))
}

/// Merges the traces of a plan into their files.
///
/// # Errors
/// Why a file could not be written.
pub fn merge_planned(plan: &Plan) -> Result<(), SessionError> {
    let mut written: BTreeMap<&Path, &TraceNeed> = BTreeMap::new();
    for replay in plan.jobs.iter().filter_map(|job| job.replay.as_ref()) {
        let need = &replay.trace;
        match replay.merged().map(|path| (path, written.get(path))) {
            None => {}
            Some((_, Some(other))) if other.parts == need.parts => {}
            Some((path, Some(_))) => {
                let why = format!("fiord: two jobs merge different traces into {}\n", shown(path));
                return Err(why.into());
            }
            Some((path, None)) => {
                merge(need, &replay.inputs)?;
                written.insert(path, need);
            }
        }
    }
    Ok(())
}

/// Merges traces into their files, and does nothing else.
///
/// # Errors
/// Why a trace cannot be merged, or its file not be written.
pub fn merge_only(needs: &[TraceNeed]) -> Result<(), SessionError> {
    let mut inputs = Inputs::default();
    needs.iter().try_for_each(|need| {
        let found = inputs.of(need).map_err(|why| format!("fiord: {why}\n"))?;
        claims::output(MERGED, &need.path).map_err(|why| SessionError {
            why: format!("fiord: {MERGED}={} {why}; {}\n", shown(&need.path), claims::REMEDY),
            is_refused: true,
        })?;
        merge(need, &found)
    })
}

fn merge(need: &TraceNeed, inputs: &[PathBuf]) -> Result<(), SessionError> {
    let refused = |why: String| format!("fiord: {MERGED}={}: {why}\n", shown(&need.path));
    let mut parts = merged(need, inputs).map_err(refused)?;
    let file = TargetOpener::default()
        .create(&need.path, false)
        .map_err(|failure| SessionError { why: refused(failure.reason()), ..SessionError::from(failure) })?;
    let mut file = BufWriter::with_capacity(READ_BYTES, file);
    let copied = io::copy(&mut parts, &mut file).and_then(|_| file.flush());
    Ok(copied.map_err(|error| refused(error_text(&error)))?)
}

fn merged(need: &TraceNeed, inputs: &[PathBuf]) -> Result<MergedTrace<BufReader<File>>, String> {
    let part = |(part, input): (&fiord_plan::TracePart, &PathBuf)| {
        let name = shown(&part.path);
        let opened = open(input).map_err(|why| format!("{name}: {why}"))?;
        Ok(MergeInput {
            name,
            input: opened,
            time_scale_ppm: part.time_scale_ppm,
            iterations: part.iterations,
        })
    };
    let parts = need.parts.iter().zip(inputs).map(part).collect::<Result<Vec<_>, String>>()?;
    MergedTrace::new(parts).map_err(|why| why.to_string())
}

/// Where traces are read. What can be read only once is read once, however many jobs replay it.
#[derive(Debug, Default)]
struct Inputs {
    by_path: BTreeMap<PathBuf, Result<PathBuf, String>>,
}

impl Inputs {
    /// Where a trace is read, or where its parts are.
    fn of(&mut self, need: &TraceNeed) -> Result<Vec<PathBuf>, String> {
        if need.parts.is_empty() {
            return Ok(vec![self.of_path(&need.path)?]);
        }
        let mut inputs = Vec::new();
        for part in &need.parts {
            let path = &part.path;
            let input = self.of_path(path).map_err(|why| format!("{}: {why}", shown(path)))?;
            inputs.push(input);
        }
        Ok(inputs)
    }

    fn of_path(&mut self, path: &Path) -> Result<PathBuf, String> {
        self.by_path.entry(path.to_path_buf()).or_insert_with(|| input(path)).clone()
    }
}

/// Where a trace can be read as often as necessary.
fn input(path: &Path) -> Result<PathBuf, String> {
    claims::reads(path);
    if path == Path::new(STANDARD_INPUT) {
        return keep(io::stdin().lock());
    }
    let kind = fs::metadata(path).map_err(|error| error_text(&error))?.file_type();
    if kind.is_file() {
        return Ok(path.to_path_buf());
    }
    if kind.is_socket() {
        return keep(UnixStream::connect(path).map_err(|error| error_text(&error))?);
    }
    if kind.is_fifo() || kind.is_char_device() {
        return keep(File::open(path).map_err(|error| error_text(&error))?);
    }
    Err("it is neither a file nor a pipe nor a socket".to_string())
}

/// Copies a stream into a file without a name, and returns a path under which this process can open it. The file
/// exists until the process ends.
fn keep(mut stream: impl Read) -> Result<PathBuf, String> {
    let directory = std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from(KEPT_IN), PathBuf::from);
    let copied = file::unnamed(&directory).and_then(|mut kept| {
        io::copy(&mut stream, &mut kept)?;
        Ok(kept)
    });
    match copied {
        Ok(kept) => Ok(PathBuf::from(format!("/proc/self/fd/{}", kept.into_raw_fd()))),
        Err(error) => Err(format!("it cannot be kept in {}: {}", shown(&directory), error_text(&error))),
    }
}

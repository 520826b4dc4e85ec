//! The files of one worker: what they are, which part is used, what must exist first, and whether they may be used.
//!
//! Invariant: a target that passes here can be opened and used as planned, as far as the facts tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fiord_options::job::JobOptions;
use fiord_options::value::{self, FileType, Size};
use fiord_options::{Problem, Severity};

use super::blocks::granularity_bytes;
use super::names::Naming;
use super::size::{self, Extent, Misfit, Present, Wanted};
use super::source::{Source, last_given};
use crate::access::{Access, Direction, Pattern};
use crate::engine::EngineSettings;
use crate::facts::{Facts, PathFacts};
use crate::files::{Advice, Fallocate, FileKind, FilePlan, Files, SyncMode};
use crate::job::Unplannable;
use crate::seed;
use crate::touch;

/// Numbers of the kernel's errors that stand for what is wrong with a target, in the report as `err=`.
const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const ENOTTY: i32 = 25;
const EROFS: i32 = 30;

/// fio's name for standard input and output.
const STANDARD_STREAM: &str = "-";
/// Salt of the draw of file sizes, so that it is not the draw of anything else.
const SIZE_SALT: u64 = 0x512e;

/// What is wrong with a job.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// In the order found.
    pub problems: Vec<Problem>,
    /// Which of them keep only the worker at hand from running, each with the errno that stands for it.
    of_worker: Vec<(usize, i32)>,
    /// Which of them kept only their worker from running.
    of_workers: BTreeSet<usize>,
    /// One of them is a path whose contents somebody else needs.
    pub endangers: bool,
}

/// One worker whose files are to be found.
pub(crate) struct Worker<'a> {
    /// Its section.
    pub source: &'a Source<'a>,
    /// Its engine.
    pub engine: &'a EngineSettings,
    /// Its stream.
    pub access: &'a Access,
    /// Which clone it is.
    pub clone: u32,
    /// The machine.
    pub facts: &'a Facts,
    /// Nothing may be changed (`--readonly`).
    pub readonly: bool,
}

/// The files of a worker, and the bytes of one pass and one loop over them.
pub(crate) struct Targets {
    /// The files.
    pub files: Files,
    /// Bytes of one pass.
    pub pass_bytes: u64,
    /// Bytes of one loop.
    pub loop_bytes: u64,
    /// Alignment that direct I/O needs of buffers, 1 without it.
    pub memory_align_bytes: u64,
    /// What keeps the worker from running; the files are then those that suit it.
    pub unplannable: Option<Unplannable>,
}

impl Trouble {
    /// Adds what keeps only the worker at hand from running.
    fn blame(&mut self, problem: Problem, errno: i32) {
        self.of_worker.push((self.problems.len(), errno));
        self.problems.push(problem);
    }

    /// What was found wrong with one worker alone.
    fn take_unplannable(&mut self) -> Option<Unplannable> {
        let found = std::mem::take(&mut self.of_worker);
        let errno = found.first()?.1;
        let problems = found.iter().map(|(index, _)| self.problems[*index].clone()).collect();
        self.of_workers.extend(found.into_iter().map(|(index, _)| index));
        Some(Unplannable { errno, problems })
    }

    /// Whether something found since there were `before` problems stops the whole run.
    pub fn stops_all_since(&self, before: usize) -> bool {
        let of_one = |index: usize| {
            self.of_workers.contains(&index)
                || self.of_worker.iter().any(|(of_worker, _)| *of_worker == index)
        };
        let found = self.problems.iter().enumerate().skip(before);
        found.into_iter().any(|(index, problem)| problem.severity == Severity::Error && !of_one(index))
    }

    /// What is worth saying of a run that nothing stops.
    pub fn into_warnings(self) -> Vec<Problem> {
        let Trouble { problems, of_workers, .. } = self;
        let of_run = problems.into_iter().enumerate().filter(|(index, _)| !of_workers.contains(index));
        of_run.map(|(_, problem)| problem).collect()
    }
}

/// How a job names its files.
pub(crate) fn naming<'a>(source: &'a Source<'a>) -> Naming<'a> {
    let options = source.options;
    let counted_last = last_given(source, &["filename", "nrfiles"]) == Some("nrfiles");
    Naming {
        section: &source.section.name,
        paths: &source.section.files,
        filenames: source.given.all("filename").filter_map(|setting| setting.value.as_deref()).collect(),
        format: options.filename_format.as_str(),
        directory: options.directory.as_ref().map(|text| text.as_str()),
        file_count: counted_last.then_some(options.nrfiles),
    }
}

/// Whether I/O goes past the page cache. `buffered=0` is another way to say so; the later of the two counts.
pub(crate) fn is_direct(source: &Source<'_>) -> bool {
    match last_given(source, &["direct", "buffered"]) {
        Some("buffered") => !source.options.buffered,
        _ => source.options.direct,
    }
}

impl Worker<'_> {
    /// The worker's files. `laid_out` is what earlier workers will have made of each path, and is added to.
    pub fn targets(&self, laid_out: &mut BTreeMap<PathBuf, u64>, trouble: &mut Trouble) -> Option<Targets> {
        let before = trouble.problems.len();
        let paths = self.paths(trouble);
        let wanted = self.wanted(paths.len() as u64);
        let mut list = Vec::with_capacity(paths.len());
        let mut memory_align_bytes = 1;
        let mut laid_before: Vec<(PathBuf, u64)> = Vec::new();
        for (index, path) in paths.into_iter().enumerate() {
            let known = self.facts.path(&path);
            if is_direct(self.source) {
                memory_align_bytes = memory_align_bytes.max(known.direct_memory_align_bytes);
            }
            let Some(file) = self.file(path, index as u64, &known, &wanted, laid_out, trouble) else {
                continue;
            };
            if let Some(bytes) = file.lay_out_bytes {
                let laid = laid_out.entry(file.path.clone()).or_default();
                laid_before.push((file.path.clone(), *laid));
                *laid = (*laid).max(bytes);
            }
            list.push(file);
        }
        if trouble.stops_all_since(before) {
            trouble.of_worker.clear();
            return None;
        }
        if list.is_empty() && trouble.of_worker.is_empty() {
            // Files too small for a block are passed over, but not all of them.
            for (index, passed_over) in trouble.problems.iter_mut().enumerate().skip(before) {
                passed_over.severity = Severity::Error;
                trouble.of_worker.push((index, EINVAL));
            }
        }
        let unplannable = trouble.take_unplannable();
        if unplannable.is_some() {
            // It makes nothing that those after it could use.
            laid_out.extend(laid_before.into_iter().rev());
        }
        let lengths = list.iter().map(|file| file.length_bytes);
        let (pass_bytes, loop_bytes) = size::totals(wanted.size, self.source.options.io_size, lengths);
        Some(Targets { files: self.files(list), pass_bytes, loop_bytes, memory_align_bytes, unplannable })
    }

    /// The paths, from names or from a directory.
    fn paths(&self, trouble: &mut Trouble) -> Vec<PathBuf> {
        let naming = naming(self.source);
        for directory in naming.directories() {
            let known = self.facts.path(Path::new(&directory));
            let wrong = match (known.exists, known.is_directory) {
                (false, _) => format!("the directory {directory} does not exist"),
                (true, false) => format!("{directory} is not a directory"),
                (true, true) => continue,
            };
            if *self.engine != EngineSettings::Null {
                trouble.problems.push(self.source.error("directory", wrong, format!("mkdir -p {directory}")));
            }
        }
        let opendir = self.source.options.opendir.as_ref().filter(|_| naming.paths.is_empty());
        let Some(opened) = opendir else { return naming.files(self.clone) };
        let mut paths = if naming.filenames.is_empty() { Vec::new() } else { naming.files(self.clone) };
        match self.facts.listings.get(Path::new(opened.as_str())) {
            Some(found) if !found.is_empty() => paths.extend(found.iter().cloned()),
            found => {
                let why = if found.is_some() { "holds no files" } else { "cannot be read" };
                let message = format!("the directory {} {why}", opened.as_str());
                trouble.problems.push(self.source.error("opendir", message, ""));
            }
        }
        if last_given(self.source, &["opendir", "nrfiles"]) == Some("nrfiles") {
            paths.truncate(self.source.options.nrfiles.max(1) as usize);
        }
        paths
    }

    /// Whether the job goes on until its files can grow no more; a size of its own is an end as well.
    fn until_full(&self) -> bool {
        let options = self.source.options;
        options.fill_device && options.filesize.is_none() && wanted_size(options).is_none()
    }

    /// What keeps a job from filling a file system.
    fn cannot_fill(&self) -> Option<Problem> {
        let sequential_writes = self.access.pattern == Pattern::Only(Direction::Write) && !self.access.random;
        let (message, remedy) = match self.engine {
            EngineSettings::Mmap(_) => ("a mapping cannot grow a file until it is full", "another ioengine="),
            _ if sequential_writes => return None,
            _ => (
                "without a size only sequential writes go on until the device is full",
                "rw=write, or a size=",
            ),
        };
        Some(self.source.error("fill_device", message, remedy))
    }

    fn wanted(&self, file_count: u64) -> Wanted {
        let options = self.source.options;
        let minimum = |direction: Direction| self.access.block_sizes[direction.index()].min();
        Wanted {
            size: wanted_size(options),
            file_size: options.filesize,
            offset: options.offset,
            offset_increment: options.offset_increment,
            offset_align_bytes: options.offset_align.0,
            clone: self.clone,
            file_count,
            block_bytes_min: self.sized_directions().map(minimum).min().unwrap_or(1),
            sequential: !self.access.random,
            append: options.file_append,
            until_full: self.until_full(),
            seed: seed::mix(self.access.seed, SIZE_SALT),
        }
    }

    /// The directions whose block sizes are used. With `bs_is_seq_rand` they mean something else: the first is for
    /// sequential I/Os and the second for random ones, whatever the direction.
    fn sized_directions(&self) -> impl Iterator<Item = Direction> {
        let by_order = self.access.sizes_by_order;
        Direction::ALL.into_iter().filter(move |direction| match by_order {
            true => *direction != Direction::Trim,
            false => self.access.pattern.includes(*direction),
        })
    }

    /// One file, or what keeps it from being used.
    fn file(
        &self,
        path: PathBuf,
        index: u64,
        known: &PathFacts,
        wanted: &Wanted,
        laid_out: &BTreeMap<PathBuf, u64>,
        trouble: &mut Trouble,
    ) -> Option<FilePlan> {
        let kind = self.kind(&path, known, trouble)?;
        if kind != FileKind::None && !self.usable(&path, kind, known, trouble) {
            return None;
        }
        if let Some(problem) = self.cannot_fill().filter(|_| kind == FileKind::Regular && wanted.until_full) {
            trouble.blame(problem, EINVAL);
            return None;
        }
        let bytes = match kind {
            FileKind::None => 0,
            _ => known.size_bytes.max(laid_out.get(&path).copied().unwrap_or(0)),
        };
        let extent = match size::extent(wanted, index, Present { kind, bytes }) {
            Ok(extent) => extent,
            Err(misfit) => {
                let problem = self.misfit(&path, known, wanted, misfit);
                match problem.severity {
                    Severity::Error => trouble.blame(problem, EINVAL),
                    _ => trouble.problems.push(problem),
                }
                return None;
            }
        };
        if is_direct(self.source) && kind != FileKind::None {
            let misaligned = self.misaligned(&path, known, extent);
            misaligned.into_iter().for_each(|problem| trouble.blame(problem, EINVAL));
        }
        let needed = extent.needed_bytes.filter(|needed| *needed > known.size_bytes);
        let options = self.source.options;
        let forbids = match (self.readonly, options.allow_file_create || options.file_append) {
            (true, _) => Some("--readonly forbids that"),
            (false, false) => Some("allow_file_create=0 forbids that"),
            (false, true) => None,
        };
        if let (Some(needed), Some(why)) = (needed, forbids) {
            let message = format!("{} would have to be extended to {needed} bytes", path.display());
            trouble.blame(self.source.error("size", message, why), EPERM);
        }
        Some(FilePlan {
            path,
            kind,
            device: known.device,
            offset_bytes: extent.offset_bytes,
            length_bytes: extent.length_bytes,
            lay_out_bytes: needed.filter(|_| !self.source.options.create_on_open),
        })
    }

    /// What the target is: what is there, or a file to be made. `filetype` may say the same, and nothing else.
    fn kind(&self, path: &Path, known: &PathFacts, trouble: &mut Trouble) -> Option<FileKind> {
        if *self.engine == EngineSettings::Null {
            return Some(FileKind::None);
        }
        let (word, said) = match self.source.options.filetype {
            FileType::File => ("file", FileKind::Regular),
            FileType::Block => ("block", FileKind::Block),
            FileType::Char => ("char", FileKind::Char),
            FileType::Detect => return Some(known.kind),
        };
        if said == known.kind || known.is_directory || touch::no_such_device(path, known).is_some() {
            return Some(known.kind);
        }
        let shown = path.display();
        let message = match known.exists {
            true => format!("filetype={word}, but {shown} is {}", known.kind.words()),
            false => format!("filetype={word}, but {shown} does not exist, and only files are made"),
        };
        trouble.problems.push(self.source.error(
            "filetype",
            message,
            "leave filetype= out: what is there tells",
        ));
        None
    }

    /// Whether the target may be used at all; otherwise what forbids it is told.
    fn usable(&self, path: &Path, kind: FileKind, known: &PathFacts, trouble: &mut Trouble) -> bool {
        let options = self.source.options;
        let shown = path.display();
        let modifies = self.access.pattern.modifies();
        let (option, errno, message, remedy) = if path == Path::new(STANDARD_STREAM) {
            let message = "standard input and output cannot be targets".to_string();
            ("filename", EINVAL, message, "name a file or device")
        } else if known.exists && known.is_directory {
            ("filename", EISDIR, format!("{shown} is a directory"), "use directory= to put files into it")
        } else if let Some(refused) = touch::no_such_device(path, known) {
            trouble.problems.push(self.source.error("filename", refused.message, refused.remedy));
            return false;
        } else if !known.exists && !options.allow_file_create {
            ("allow_file_create", ENOENT, format!("{shown} does not exist and must not be created"), "")
        } else if !known.writable_mount && (modifies || !known.exists) {
            ("filename", EROFS, format!("{shown} is on a file system mounted read-only"), "")
        } else if is_direct(self.source) && known.direct_supported == Some(false) {
            let message = format!("{shown} does not take direct I/O");
            ("direct", EINVAL, message, "leave direct=1 out, or use another file system")
        } else if kind == FileKind::Regular && self.access.pattern.includes(Direction::Trim) {
            let message = format!("{shown} is a regular file, and only devices are trimmed");
            ("rw", ENOTTY, message, "name a block device")
        } else {
            return true;
        };
        trouble.blame(self.source.error(option, message, remedy), errno);
        false
    }

    fn misfit(&self, path: &Path, known: &PathFacts, wanted: &Wanted, misfit: Misfit) -> Problem {
        let shown = path.display();
        match misfit {
            Misfit::NoSize => {
                let why = match known.exists {
                    _ if wanted.append => "appending does not say how far",
                    false => "it does not exist",
                    true => "it has no length of its own",
                };
                let message = format!("you need to specify size= for {shown}: {why}");
                // Among others an empty file is passed over, as one too small for a block is.
                let problem = if known.exists && !wanted.append { Source::warning } else { Source::error };
                problem(self.source, "size", message, "for example size=1g")
            }
            Misfit::OffsetBeyondEnd { offset_bytes, file_bytes } => {
                let message = format!(
                    "the first byte used, {offset_bytes}, is behind the end of {shown}, {file_bytes}"
                );
                self.source.error("offset", message, "specify a valid offset=")
            }
            Misfit::BeyondAllFiles { offset_bytes } => {
                let message =
                    format!("the part used of {shown}, from byte {offset_bytes} on, ends beyond all files");
                let remedy = format!("no file is longer than {} bytes", size::OFFSET_BYTES_MAX);
                self.source.error("size", message, remedy)
            }
            Misfit::SmallerThanBlock { length_bytes } => {
                let block = wanted.block_bytes_min;
                let message =
                    format!("{shown} is not used: a block is {block} bytes, and its part {length_bytes}");
                self.source.warning("bs", message, "use a smaller bs= or a larger size=")
            }
        }
    }

    /// Blocks and offsets that direct I/O would refuse, found before the device does.
    fn misaligned(&self, path: &Path, known: &PathFacts, extent: Extent) -> Vec<Problem> {
        let unit = known.direct_align_bytes.max(1);
        let shown = path.display();
        let mut problems = Vec::new();
        let remedy = format!("direct I/O on it takes multiples of {unit} bytes");
        for direction in self.sized_directions() {
            let sizes = &self.access.block_sizes[direction.index()];
            let bytes = granularity_bytes(sizes, self.access.unaligned_sizes);
            let given = ["bssplit", "bsrange", "bs"].into_iter().find(|name| self.source.is_given(name));
            if !bytes.is_multiple_of(unit) {
                let message = format!("{} blocks of {bytes} bytes do not suit {shown}", direction.name());
                problems.push(self.source.error(given.unwrap_or("bs"), message, remedy.clone()));
            }
            let align = self.access.align_bytes[direction.index()];
            if self.access.random && !align.is_multiple_of(unit) && bytes.is_multiple_of(unit) {
                let message = format!("offsets that are multiples of {align} bytes do not suit {shown}");
                problems.push(self.source.error("ba", message, remedy.clone()));
            }
        }
        let stride = self.access.stride_bytes;
        if !self.access.random && !stride.unsigned_abs().is_multiple_of(unit) {
            let message = format!("steps of {stride} bytes lead where {} takes no I/O", path.display());
            problems.push(self.source.error("rw", message, remedy.clone()));
        }
        if !extent.offset_bytes.is_multiple_of(unit) {
            let message =
                format!("the first byte used of {shown}, {}, does not suit it", extent.offset_bytes);
            problems.push(self.source.error("offset", message, remedy));
        }
        problems
    }

    /// How the files are opened and left.
    fn files(&self, list: Vec<FilePlan>) -> Files {
        let options = self.source.options;
        let open_at_once = options.openfiles.filter(|count| *count > 0).unwrap_or(list.len() as u32);
        Files {
            open_at_once: open_at_once.min(list.len() as u32),
            direct: is_direct(self.source),
            sync: match options.sync {
                value::SyncMode::None => SyncMode::None,
                value::SyncMode::Sync => SyncMode::Sync,
                value::SyncMode::Dsync => SyncMode::DataSync,
            },
            writable: self.access.pattern.modifies(),
            may_create: options.allow_file_create,
            // A mapping cannot grow a file.
            lay_out_contents: self.access.pattern.includes(Direction::Read)
                || options.overwrite
                || matches!(self.engine, EngineSettings::Mmap(_)),
            create_directories: self.missing_directories(&list),
            create_on_open: options.create_on_open,
            create_serially: options.create_serialize,
            create_fsync: options.create_fsync,
            create_only: options.create_only,
            fallocate: if options.fill_device { Fallocate::None } else { fallocate(options) },
            advice: advice(options),
            write_hint: options.write_hint.map(write_hint),
            pre_read: options.pre_read,
            invalidate: options.invalidate,
            unlink: options.unlink,
            unlink_each_loop: options.unlink_each_loop,
            end_fsync: options.end_fsync,
            end_syncfs: options.end_syncfs,
            fsync_on_close: options.fsync_on_close,
            append: options.file_append,
            fill_device: options.fill_device && list.iter().all(|file| file.kind == FileKind::Regular),
            allow_in_use: options.allow_mounted_write,
            list,
        }
    }

    /// Directories of the files to be created that are not there, parents first.
    fn missing_directories(&self, list: &[FilePlan]) -> Vec<PathBuf> {
        let mut missing = Vec::new();
        for file in list.iter().filter(|file| file.kind == FileKind::Regular) {
            if self.facts.path(&file.path).exists {
                continue;
            }
            let absent: Vec<PathBuf> =
                ancestors(&file.path).take_while(|path| !self.facts.path(path).exists).collect();
            for directory in absent.into_iter().rev() {
                if !missing.contains(&directory) {
                    missing.push(directory);
                }
            }
        }
        missing
    }
}

/// `size`, where it says anything.
fn wanted_size(options: &JobOptions) -> Option<Size> {
    options.size.filter(|size| *size != Size::Bytes(0))
}

/// The directories above a path, nearest first, without the working directory and the root.
pub(crate) fn ancestors(path: &Path) -> impl Iterator<Item = PathBuf> {
    let above =
        path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty() && path.parent().is_some());
    above.map(Path::to_path_buf)
}

fn fallocate(options: &JobOptions) -> Fallocate {
    match options.fallocate {
        value::Fallocate::None => Fallocate::None,
        value::Fallocate::Native => Fallocate::Native,
        value::Fallocate::Posix => Fallocate::Posix,
        value::Fallocate::Keep => Fallocate::Keep,
        value::Fallocate::Truncate => Fallocate::Truncate,
    }
}

fn advice(options: &JobOptions) -> Advice {
    match options.fadvise_hint {
        value::FadviseHint::None => Advice::None,
        value::FadviseHint::Workload => Advice::ByPattern,
        value::FadviseHint::Random => Advice::Random,
        value::FadviseHint::Sequential => Advice::Sequential,
        value::FadviseHint::NoReuse => Advice::NoReuse,
    }
}

/// The values of `F_SET_RW_HINT`, as the kernel has them.
fn write_hint(hint: value::WriteHint) -> u64 {
    match hint {
        value::WriteHint::None => 1,
        value::WriteHint::Short => 2,
        value::WriteHint::Medium => 3,
        value::WriteHint::Long => 4,
        value::WriteHint::Extreme => 5,
    }
}

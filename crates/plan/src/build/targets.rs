//! The files of one worker: what they are, which part is used, what must exist first, and whether they may be used.
//!
//! Invariant: a target that passes here can be opened and used as planned, as far as the facts show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fiord_errno::Errno;
use fiord_options::job::{self, JobOptions};
use fiord_options::shown::shown;
use fiord_options::value::{self, FileType, Size, SizeRange};
use fiord_options::{Problem, ProblemKind, ProblemLevel};
use fiord_stats::Capped;

use super::blocks::granularity_bytes;
use super::diagnostics::Diagnostics;
use super::names::{Naming, without_comment};
use super::opening;
use super::replay::Replayed;
use super::section::ResolvedSection;
use super::size::{self, Extent, Misfit, Present, Wanted};
use super::space::{self, LaidOut};
use super::zoned;
use super::zones;
use crate::access::{Access, Direction, Pattern};
use crate::engine::{Geometry, MissingSetting, NamePurpose, NoGeometry, PlannedEngine};
use crate::facts::{Facts, PathFacts};
use crate::files::{FileKind, FileLock, FilePlan, Files, SyncMode};
use crate::job::Unplannable;
use crate::path_change;
use crate::seed;

/// fio's name for standard input and output.
const STANDARD_STREAM: &str = "-";
/// Salt of the random sequence of file sizes, so that it differs from all others.
const SIZE_SALT: u64 = 0x512e;

/// One worker whose files are to be planned.
pub(crate) struct PlannedWorker<'a> {
    /// Its section.
    pub section: &'a ResolvedSection<'a>,
    /// Its engine.
    pub engine: &'a PlannedEngine,
    /// Its stream.
    pub access: &'a Access,
    /// The trace it replays.
    pub replay: Option<&'a Replayed<'a>>,
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
    /// Bytes before anything is counted.
    pub ramp_bytes: u64,
    /// Alignment that direct I/O needs of buffers, 1 without it.
    pub memory_align_bytes: u64,
    /// Why the worker cannot run; the files are then those that it could use.
    pub unplannable: Option<Unplannable>,
}

/// How a job names its files.
pub(crate) fn naming<'a>(section: &'a ResolvedSection<'a>) -> Naming<'a> {
    let options = section.options;
    let counted_last =
        section.given.last_of(&[job::Files::filename, job::Files::nrfiles]) == Some(job::Files::nrfiles);
    Naming {
        section: &section.parsed.name,
        paths: &section.parsed.files,
        filenames: section
            .given
            .all(job::Files::filename)
            .filter_map(|setting| setting.value.as_deref().map(without_comment))
            .collect(),
        format: &options.files.filename_format.0,
        directory: options.files.directory.as_ref().map(|text| text.0.as_os_str()),
        file_count: counted_last.then_some(options.files.nrfiles),
    }
}

/// Whether I/O bypasses the page cache. `buffered=0` means the same; the later of the two options applies.
pub(crate) fn is_direct(section: &ResolvedSection<'_>) -> bool {
    if section.options.access.atomic {
        return true;
    }
    match section.given.last_of(&[job::Access::direct, job::Access::buffered]) == Some(job::Access::buffered)
    {
        true => !section.options.access.buffered,
        false => section.options.access.direct,
    }
}

impl PlannedWorker<'_> {
    /// Whether operations of this direction can occur.
    pub(super) fn issues(&self, direction: Direction) -> bool {
        match self.replay {
            Some(replay) => replay.occurs(direction),
            None => self.access.pattern.includes(direction),
        }
    }

    /// Whether it writes to or trims its files, or changes them in place of reads.
    pub(super) fn modifies(&self) -> bool {
        self.issues(Direction::Write)
            || self.issues(Direction::Trim)
            || self.engine.descriptor.resizes_files()
            || self.purpose().is_some_and(|purpose| purpose != NamePurpose::Look)
    }

    /// What the engine does with the names of files, if it makes no other use of them.
    fn purpose(&self) -> Option<NamePurpose> {
        self.engine.descriptor.name_call().map(|call| call.purpose)
    }

    /// Whether the names are those of directories.
    fn names_directories(&self) -> bool {
        self.engine.descriptor.name_call().is_some_and(|call| call.directories)
    }

    /// Whether files are opened with `O_DIRECT`.
    fn opens_direct(&self) -> bool {
        is_direct(self.section) && self.purpose().is_none() && !self.engine.descriptor.bypasses_cache()
    }

    /// The worker's files. `laid_out` is what earlier workers will have made of each path, and is added to.
    pub fn targets(&self, laid_out: &mut LaidOut, diagnostics: &mut Diagnostics) -> Option<Targets> {
        let before = diagnostics.problems.len();
        if let Some(missing) = (self.engine.descriptor.missing)(&self.engine.settings) {
            let MissingSetting { option, message, remedy } = missing;
            let problem = self.section.error(ProblemKind::Conflict, option, message, remedy);
            diagnostics.add_of_worker(problem, Errno::EINVAL);
        }
        let paths = match self.replay {
            Some(replay) => replay.paths(),
            None => self.paths(diagnostics),
        };
        let wanted = self.wanted(paths.len() as u64);
        let mut list = Vec::with_capacity(paths.len());
        let mut memory_align_bytes = 1;
        for (index, path) in paths.into_iter().enumerate() {
            let Some(known) = self.known(&path, diagnostics) else { continue };
            if self.opens_direct() {
                memory_align_bytes = memory_align_bytes.max(known.direct_memory_align_bytes);
            }
            let Some(file) = self.file(path, index as u64, &known, &wanted, laid_out, diagnostics) else {
                continue;
            };
            laid_out.add(&file, self.fills(&known), self.facts);
            list.push(file);
        }
        if diagnostics.stops_all_since(before) {
            diagnostics.drop_worker();
            return None;
        }
        if list.is_empty() && !diagnostics.stops_worker() {
            // Files too small for a block are skipped, but not if that leaves none.
            diagnostics.stop_worker_since(before, Errno::EINVAL);
        }
        let made = list.iter().filter(|file| file.lay_out_bytes.is_some());
        let remedy = "lower size=, free some space, or name another directory=";
        if let Some(problem) = laid_out.no_room(self.section, made, self.facts, remedy) {
            diagnostics.add_of_worker(problem, Errno::ENOSPC);
        }
        let unplannable = diagnostics.take_unplannable();
        let lengths = list.iter().map(|file| match self.access.zoned {
            Some(zoned) => {
                let zone_bytes = self.zone_bytes(&self.facts.path(&file.path));
                zoned::pass_bytes(self.access, &zoned, file, zone_bytes)
            }
            None => file.length_bytes,
        });
        let zone_bytes = list.first().map_or(0, |file| self.zone_bytes(&self.facts.path(&file.path)));
        let in_bytes = |size: Option<Size>| size.map(|size| size::in_bytes(size, zone_bytes));
        let options = self.section.options;
        let (pass_bytes, loop_bytes) = match self.replay {
            Some(replay) => (replay.bytes(), replay.bytes()),
            None => size::totals(in_bytes(wanted.size), in_bytes(options.amount.io_size), lengths),
        };
        let ramp_bytes = size::part(in_bytes(options.time.ramp_size), pass_bytes).unwrap_or(0);
        self.reach_ends(&mut list, laid_out, diagnostics);
        let files = self.files(list);
        Some(Targets { files, pass_bytes, loop_bytes, ramp_bytes, memory_align_bytes, unplannable })
    }

    /// As in fio, strided zones go on behind what `size` counts, to the end of a longer file.
    fn reach_ends(&self, list: &mut [FilePlan], laid_out: &LaidOut, diagnostics: &mut Diagnostics) {
        for file in list.iter_mut().filter(|_| self.access.strided.is_some() && self.replay.is_none()) {
            let known_bytes = self.known(&file.path, diagnostics).map_or(0, |known| known.size_bytes);
            let end_bytes = known_bytes.max(laid_out.length_bytes(&file.path));
            file.length_bytes = file.length_bytes.max(end_bytes.saturating_sub(file.offset_bytes));
        }
    }

    /// The paths, from names or from a directory.
    fn paths(&self, diagnostics: &mut Diagnostics) -> Vec<PathBuf> {
        let naming = naming(self.section);
        for directory in naming.directories() {
            let known = self.facts.path(&directory);
            let directory = shown(&directory);
            let wrong = match (known.exists, known.is_directory) {
                (false, _) => format!("the directory {directory} does not exist"),
                (true, false) => format!("{directory} is not a directory"),
                (true, true) => continue,
            };
            if self.engine.descriptor.touches_files() {
                diagnostics.problems.push(self.section.error(
                    ProblemKind::Target,
                    job::Files::directory,
                    wrong,
                    format!("mkdir -p {directory}"),
                ));
            }
        }
        let opendir = self.section.options.files.opendir.as_ref().filter(|_| naming.paths.is_empty());
        let Some(opened) = opendir else { return naming.files(self.clone) };
        let mut paths = if naming.filenames.is_empty() { Vec::new() } else { naming.files(self.clone) };
        match self.facts.listings.get(Path::new(&opened.0)) {
            Some(found) if !found.is_empty() => paths.extend(found.iter().cloned()),
            found => {
                let why = if found.is_some() { "holds no files" } else { "cannot be read" };
                let message = format!("the directory {} {why}", shown(&opened.0));
                diagnostics.problems.push(self.section.error(
                    ProblemKind::Target,
                    job::Files::opendir,
                    message,
                    "",
                ));
            }
        }
        if self.section.given.last_of(&[job::Files::opendir, job::Files::nrfiles])
            == Some(job::Files::nrfiles)
        {
            paths.truncate(self.section.options.files.nrfiles.max(1) as usize);
        }
        paths
    }

    /// What is known of a target: of the path, and what the engine finds. `None` if the engine cannot be told, with the
    /// reason among the diagnostics.
    fn known(&self, path: &Path, diagnostics: &mut Diagnostics) -> Option<PathFacts> {
        let of_path = || match self.engine.descriptor.touches_files() {
            true => self.facts.path(path),
            false => PathFacts::absent(),
        };
        match self.facts.geometry(self.engine, path) {
            None => Some(of_path()),
            Some(Ok(Geometry { size_bytes, block_bytes })) => Some(PathFacts {
                size_bytes: size_bytes.unwrap_or(0),
                logical_block_bytes: *block_bytes,
                direct_align_bytes: *block_bytes,
                ..of_path()
            }),
            // A name that no device has, but nearly.
            Some(Err(_))
                if path_change::no_such_device(path, &of_path()).is_some() && of_path().similar.is_some() =>
            {
                Some(of_path())
            }
            Some(Err(NoGeometry { errno, reason })) => {
                let message = format!("{}: {reason}", shown(path));
                let problem = self.section.error(ProblemKind::Target, job::Queue::ioengine, message, "");
                diagnostics.add_of_worker(problem.of_path(path), *errno);
                None
            }
        }
    }

    /// Whether the engine has told size and block of this target.
    fn has_geometry(&self, path: &Path) -> bool {
        self.facts.geometry(self.engine, path).is_some()
    }

    /// Whether the job runs until its files can grow no more, which a size of its own prevents.
    fn until_full(&self) -> bool {
        let options = self.section.options;
        self.replay.is_none()
            && options.amount.fill_device
            && options.amount.filesize.is_none()
            && wanted_size(options).is_none()
    }

    /// Why the job cannot fill a file system; `None` if it can.
    fn cannot_fill(&self) -> Option<Problem> {
        let sequential_writes = self.access.pattern == Pattern::Only(Direction::Write) && !self.access.random;
        let (message, remedy) = if self.engine.descriptor.maps_files() {
            ("a memory mapping cannot extend a file", "use another ioengine=")
        } else if sequential_writes {
            return None;
        } else {
            (
                "without size=, only sequential writes can run until the device is full",
                "use rw=write, or set size=",
            )
        };
        Some(self.section.error(ProblemKind::Conflict, job::Amount::fill_device, message, remedy))
    }

    fn wanted(&self, file_count: u64) -> Wanted {
        let options = self.section.options;
        let minimum = |direction: Direction| self.access.block_sizes[direction.index()].min();
        let block_bytes_min = self.sized_directions().map(minimum).min().unwrap_or(1);
        // As in fio, what is created without a size has one block; cycles have no use for one.
        let is_sized = wanted_size(options).is_some() || options.amount.filesize.is_some();
        let is_free = self.purpose() == Some(NamePurpose::Create) || self.engine.cycle().is_some();
        let block = (is_free && !is_sized)
            .then_some(SizeRange { low_bytes: block_bytes_min, high_bytes: block_bytes_min });
        Wanted {
            size: wanted_size(options),
            file_size: options.amount.filesize.or(block),
            offset: options.access.offset,
            offset_increment: options.access.offset_increment,
            offset_align_bytes: options.access.offset_align.0,
            clone: self.clone,
            file_count,
            block_bytes_min,
            // Zones that do not fit in full are not used.
            sequential: !self.access.random && self.access.zoned.is_none(),
            append: options.files.file_append,
            until_full: self.until_full(),
            seed: seed::mix(self.access.seed, SIZE_SALT),
        }
    }

    /// Length of the zones that amounts may count (`8z`); 0 if there is none. As in fio, a zone of `strided` counts with
    /// what is transferred in it.
    fn zone_bytes(&self, known: &PathFacts) -> u64 {
        match (self.access.zoned, self.access.strided) {
            (Some(zoned), _) => known.zone_bytes.unwrap_or(zoned.zone_bytes),
            (None, Some(strided)) => strided.transfer_bytes,
            (None, None) => 0,
        }
    }

    /// The directions whose block sizes are used. With `bs_is_seq_rand`, the first size is for sequential I/Os and the
    /// second for random ones, in any direction.
    fn sized_directions(&self) -> impl Iterator<Item = Direction> {
        let by_order = self.access.sizes_by_order;
        Direction::ALL.into_iter().filter(move |direction| match by_order {
            true => *direction != Direction::Trim,
            false => self.access.pattern.includes(*direction),
        })
    }

    /// One file; `None` if it cannot be used, with the reason among the diagnostics.
    fn file(
        &self,
        path: PathBuf,
        index: u64,
        known: &PathFacts,
        wanted: &Wanted,
        laid_out: &LaidOut,
        diagnostics: &mut Diagnostics,
    ) -> Option<FilePlan> {
        let kind = self.kind(&path, known, diagnostics)?;
        let usable = match kind {
            _ if self.names_directories() => self.usable_directory(&path, known, diagnostics),
            FileKind::None => true,
            _ => self.usable(&path, kind, known, diagnostics),
        };
        if !usable {
            return None;
        }
        if let Some(problem) = self.cannot_fill().filter(|_| kind == FileKind::Regular && wanted.until_full) {
            diagnostics.add_of_worker(problem, Errno::EINVAL);
            return None;
        }
        let present = match kind {
            // A target whose size its engine knows has that size, like a device.
            _ if self.has_geometry(&path) => Present { kind: FileKind::Block, bytes: known.size_bytes },
            FileKind::None => Present { kind, bytes: 0 },
            _ => Present { kind, bytes: known.size_bytes.max(laid_out.length_bytes(&path)) },
        };
        let zone_bytes = self.zone_bytes(known);
        if let Some(problem) = zones::uncounted(self.section).filter(|_| zone_bytes == 0) {
            diagnostics.problems.push(problem);
            return None;
        }
        let extent = match self.replay {
            Some(replay) => {
                replay.extent(index, present).map_err(|end_bytes| self.beyond_end(&path, present, end_bytes))
            }
            None => size::extent(&wanted.in_bytes(zone_bytes), index, present)
                .map_err(|misfit| self.misfit(&path, known, wanted, misfit)),
        };
        let extent = match extent {
            Ok(extent) => extent,
            Err(problem) => {
                let problem = problem.of_path(&path);
                match problem.level {
                    ProblemLevel::Error => diagnostics.add_of_worker(problem, Errno::EINVAL),
                    _ => diagnostics.problems.push(problem),
                }
                return None;
            }
        };
        if self.has_geometry(&path) || (self.opens_direct() && kind != FileKind::None) {
            let misaligned = match self.replay {
                Some(replay) => self.misaligned_trace(&path, known, replay.align_bytes(index)),
                None => self.misaligned(&path, known, extent),
            };
            misaligned
                .into_iter()
                .for_each(|problem| diagnostics.add_of_worker(problem.of_path(&path), Errno::EINVAL));
        }
        let needed = extent.needed_bytes.filter(|needed| *needed > known.size_bytes);
        let needed = needed.filter(|_| self.purpose() != Some(NamePurpose::Create));
        let options = self.section.options;
        // What is only verified stays as it is, even if it has become shorter.
        let needed = needed.filter(|_| !(options.verify.verify_only.0 && known.exists));
        if let Some(problem) = needed.and_then(|needed| self.may_not_be_extended(&path, needed)) {
            diagnostics.add_of_worker(problem, Errno::EPERM);
        }
        Some(FilePlan {
            path,
            kind,
            device: known.device,
            offset_bytes: extent.offset_bytes,
            length_bytes: extent.length_bytes,
            lay_out_bytes: needed.filter(|_| !self.section.options.files.create_on_open),
        })
    }

    /// Why a file that has to have `needed` bytes may not be given them.
    fn may_not_be_extended(&self, path: &Path, needed: u64) -> Option<Problem> {
        let options = &self.section.options.files;
        let why = match (self.readonly, options.allow_file_create || options.file_append) {
            (true, _) => "--readonly forbids that",
            (false, false) => "allow_file_create=0 forbids that",
            (false, true) => return None,
        };
        let message = format!("{} would have to be extended to {needed} bytes", shown(path));
        Some(self.section.error(ProblemKind::Forbidden, job::Amount::size, message, why))
    }

    /// The kind of the target: that of the existing file, or of the file to be created. `filetype` must agree with it.
    fn kind(&self, path: &Path, known: &PathFacts, diagnostics: &mut Diagnostics) -> Option<FileKind> {
        if !self.engine.descriptor.touches_files() || self.names_directories() {
            return Some(FileKind::None);
        }
        let (word, expected) = match self.section.options.files.filetype {
            FileType::File => ("file", FileKind::Regular),
            FileType::Block => ("block", FileKind::Block),
            FileType::Char => ("char", FileKind::Char),
            FileType::Detect => return Some(known.kind),
        };
        if expected == known.kind || known.is_directory || path_change::no_such_device(path, known).is_some()
        {
            return Some(known.kind);
        }
        let shown = shown(path);
        let message = match known.exists {
            true => format!("filetype={word}, but {shown} is {}", known.kind.words()),
            false => {
                format!("filetype={word}, but {shown} does not exist, and only regular files are created")
            }
        };
        diagnostics.problems.push(self.section.error(
            ProblemKind::Target,
            job::Files::filetype,
            message,
            "leave out filetype=: the type is detected",
        ));
        None
    }

    /// Whether the target may be used; if not, the reason is added to the diagnostics.
    fn usable(&self, path: &Path, kind: FileKind, known: &PathFacts, diagnostics: &mut Diagnostics) -> bool {
        let options = self.section.options;
        let shown = shown(path);
        let modifies = self.modifies();
        let (option, errno, message, remedy) = if path == Path::new(STANDARD_STREAM) {
            let message = "standard input and output cannot be targets".to_string();
            (job::Files::filename, Errno::EINVAL, message, "name a file or device")
        } else if known.exists && known.is_directory {
            (
                job::Files::filename,
                Errno::EISDIR,
                format!("{shown} is a directory"),
                "use directory= to put files into it",
            )
        } else if let Some(refused) = path_change::no_such_device(path, known) {
            diagnostics.problems.push(self.section.error(
                ProblemKind::Target,
                job::Files::filename,
                refused.message,
                refused.remedy,
            ));
            return false;
        } else if !known.exists && !options.files.allow_file_create {
            (
                job::Files::allow_file_create,
                Errno::ENOENT,
                format!("{shown} does not exist and must not be created"),
                "",
            )
        } else if !known.writable_mount && (modifies || !known.exists) {
            (job::Files::filename, Errno::EROFS, format!("{shown} is on a file system mounted read-only"), "")
        } else if self.opens_direct() && known.direct_supported == Some(false) {
            let message = format!("{shown} does not support direct I/O");
            (job::Access::direct, Errno::EINVAL, message, "leave out direct=1, or use another file system")
        } else if self.purpose().is_some() && modifies && self.readonly {
            let message = format!("{shown} would be created or removed");
            (job::Files::filename, Errno::EPERM, message, "--readonly forbids that")
        } else if self.purpose().is_some() && kind != FileKind::Regular {
            let message =
                format!("{shown} is {}, and {} is for regular files", kind.words(), self.engine.name());
            (job::Files::filename, Errno::EINVAL, message, "name a regular file, or one that does not exist")
        } else if matches!(kind, FileKind::Char | FileKind::Pipe)
            && self.issues(Direction::Trim)
            && (!self.engine.descriptor.bypasses_cache() || self.engine.descriptor.maps_medium())
        {
            let message =
                format!("{shown} is neither a block device nor a regular file, and cannot be trimmed");
            (job::Access::rw, Errno::ENOTTY, message, "name a block device or a file")
        } else {
            return true;
        };
        diagnostics.add_of_worker(
            self.section.error(ProblemKind::Target, option, message, remedy).of_path(path),
            errno,
        );
        false
    }

    /// The same for the name of a directory.
    fn usable_directory(&self, path: &Path, known: &PathFacts, diagnostics: &mut Diagnostics) -> bool {
        let shown = shown(path);
        let changes = self.modifies() || !known.exists;
        let (errno, message, remedy) = if known.exists && !known.is_directory {
            let message = format!("{shown} is not a directory");
            (Errno::ENOTDIR, message, "name a directory, or one that does not exist")
        } else if changes && self.readonly {
            (Errno::EPERM, format!("{shown} would have to be created or removed"), "--readonly forbids that")
        } else if !known.exists && !self.section.options.files.allow_file_create {
            let message = format!("{shown} does not exist and must not be created");
            (Errno::ENOENT, message, "leave out allow_file_create=0")
        } else if changes && !known.writable_mount {
            (Errno::EROFS, format!("{shown} is on a file system mounted read-only"), "")
        } else {
            return true;
        };
        let problem = self.section.error(ProblemKind::Target, job::Files::filename, message, remedy);
        diagnostics.add_of_worker(problem.of_path(path), errno);
        false
    }

    fn misfit(&self, path: &Path, known: &PathFacts, wanted: &Wanted, misfit: Misfit) -> Problem {
        let shown = shown(path);
        match misfit {
            Misfit::NoSize => {
                let why = match known.exists {
                    _ if wanted.append => "file_append has no limit of its own",
                    false => "it does not exist",
                    true => "it has no length of its own",
                };
                let message = format!("you need to specify size= for {shown}: {why}");
                let remedy = "for example size=1g";
                let problem = self.section.error(ProblemKind::Extent, job::Amount::size, message, remedy);
                // An empty file among others is skipped, like one that is too small for a block.
                if known.exists && !wanted.append { problem.as_warning() } else { problem }
            }
            Misfit::OffsetBeyondEnd { offset_bytes, file_bytes } => {
                let message = format!(
                    "offset {offset_bytes} is beyond the end of {shown}, which has {file_bytes} bytes"
                );
                self.section.error(
                    ProblemKind::Extent,
                    job::Access::offset,
                    message,
                    "specify a valid offset=",
                )
            }
            Misfit::BeyondAllFiles { offset_bytes } => {
                let message = format!(
                    "the region of {shown} from byte {offset_bytes} ends beyond the largest file size"
                );
                let remedy = format!("a file has at most {} bytes", size::OFFSET_BYTES_MAX);
                self.section.error(ProblemKind::Extent, job::Amount::size, message, remedy)
            }
            Misfit::SmallerThanBlock { length_bytes } => {
                let block = wanted.block_bytes_min;
                let message = format!(
                    "{shown} is not used: its region ({length_bytes}) is shorter than a block of {block} bytes"
                );
                self.section
                    .error(
                        ProblemKind::Extent,
                        job::Blocks::bs,
                        message,
                        "use a smaller bs= or a larger size=",
                    )
                    .as_warning()
            }
        }
    }

    /// A trace that goes beyond the end of a device.
    fn beyond_end(&self, path: &Path, present: Present, end_bytes: u64) -> Problem {
        let message =
            format!("the trace ends at byte {end_bytes} of {}, which has {}", shown(path), present.bytes);
        self.section.error(
            ProblemKind::Extent,
            job::Replay::read_iolog,
            message,
            "scale it down with replay_scale=",
        )
    }

    /// Offsets and lengths of a trace that direct I/O, or any I/O in blocks, would refuse.
    fn misaligned_trace(&self, path: &Path, known: &PathFacts, align_bytes: u64) -> Vec<Problem> {
        let unit = known.direct_align_bytes.max(1);
        if align_bytes.is_multiple_of(unit) {
            return Vec::new();
        }
        let message = format!("offsets or lengths of the trace are not multiples of {unit} bytes");
        let remedy = match self.has_geometry(path) {
            true => format!("{} is addressed in such blocks", shown(path)),
            false => format!("direct I/O on {} requires that: leave out direct=1", shown(path)),
        };
        vec![self.section.error(ProblemKind::Misaligned, job::Replay::read_iolog, message, remedy)]
    }

    /// Blocks and offsets that direct I/O, or any I/O in blocks, would refuse, found before the run.
    fn misaligned(&self, path: &Path, known: &PathFacts, extent: Extent) -> Vec<Problem> {
        let unit = known.direct_align_bytes.max(1);
        let shown = shown(path);
        let mut problems = Vec::new();
        let remedy = match self.has_geometry(path) {
            true => format!("it is addressed in blocks of {unit} bytes"),
            false => format!("direct I/O on it requires multiples of {unit} bytes"),
        };
        for direction in self.sized_directions() {
            let sizes = &self.access.block_sizes[direction.index()];
            let bytes = granularity_bytes(sizes, self.access.unaligned_sizes);
            let given = [job::Blocks::bssplit, job::Blocks::bsrange, job::Blocks::bs]
                .into_iter()
                .find(|option| self.section.is_given(option));
            if !bytes.is_multiple_of(unit) {
                let message =
                    format!("{} blocks of {bytes} bytes are not aligned for {shown}", direction.name());
                problems.push(self.section.error(
                    ProblemKind::Misaligned,
                    given.unwrap_or(job::Blocks::bs),
                    message,
                    remedy.clone(),
                ));
            }
            let align = self.access.align_bytes[direction.index()];
            if self.access.random && !align.is_multiple_of(unit) && bytes.is_multiple_of(unit) {
                let message = format!("offsets in multiples of {align} bytes are not aligned for {shown}");
                problems.push(self.section.error(
                    ProblemKind::Misaligned,
                    job::Blocks::ba,
                    message,
                    remedy.clone(),
                ));
            }
        }
        let stride = self.access.stride_bytes;
        if !self.access.random && !stride.unsigned_abs().is_multiple_of(unit) {
            let message = format!("steps of {stride} bytes lead to offsets that are not aligned for {shown}");
            problems.push(self.section.error(
                ProblemKind::Misaligned,
                job::Access::rw,
                message,
                remedy.clone(),
            ));
        }
        if !extent.offset_bytes.is_multiple_of(unit) {
            let message = format!("offset {} is not aligned for {shown}", extent.offset_bytes);
            problems.push(self.section.error(ProblemKind::Misaligned, job::Access::offset, message, remedy));
        }
        problems
    }

    /// Whether layouts are written, and not only reserved.
    fn lays_out_contents(&self) -> bool {
        // A mapping cannot grow a file, and trimming what was never written measures nothing.
        self.issues(Direction::Read)
            || self.issues(Direction::Trim)
            || self.section.options.files.overwrite
            || self.engine.descriptor.maps_files()
    }

    /// Whether the layout of a file certainly takes its length in space, beside all others.
    fn fills(&self, known: &PathFacts) -> bool {
        let files = &self.section.options.files;
        // Only what is laid out before the first worker starts lies there all at once, whoever removes it later.
        let stays = files.create_serialize || !(files.unlink || files.unlink_each_loop);
        let shrinks =
            known.space.is_some_and(|space| space.may_shrink) && space::shrinks(self.section.options);
        self.lays_out_contents() && stays && !shrinks
    }

    /// How the files are opened and closed.
    fn files(&self, list: Vec<FilePlan>) -> Files {
        let options = self.section.options;
        // A trace may go from any file to any other, and names are not kept open.
        let limited = self.replay.is_none() && self.purpose().is_none();
        let open_at_once = options.files.openfiles.filter(|count| *count > 0 && limited);
        let open_at_once = open_at_once.unwrap_or(u32::capped(list.len()));
        Files {
            open_at_once: open_at_once.min(u32::capped(list.len())),
            direct: self.opens_direct() || self.engine.descriptor.bypasses_cache(),
            direct_by_engine: self.engine.descriptor.bypasses_cache(),
            sync: match options.access.sync {
                value::SyncMode::None => SyncMode::None,
                value::SyncMode::Sync => SyncMode::Sync,
                value::SyncMode::Dsync => SyncMode::DataSync,
            },
            lock: match options.files.lockfile {
                value::LockFile::None => None,
                value::LockFile::Exclusive => Some(FileLock::Exclusive),
                value::LockFile::ReadWrite => Some(FileLock::ReadWrite),
            },
            writable: self.modifies(),
            may_create: options.files.allow_file_create,
            lay_out_contents: self.lays_out_contents(),
            create_directories: self.missing_directories(&list),
            create_on_open: options.files.create_on_open,
            create_serially: options.files.create_serialize,
            create_fsync: options.files.create_fsync,
            create_only: options.files.create_only,
            fallocate: opening::fallocate(options),
            advice: opening::advice(options),
            write_hint: options.files.write_hint.map(opening::write_hint),
            pre_read: options.files.pre_read && self.purpose().is_none(),
            invalidate: options.buffers.invalidate,
            unlink: options.files.unlink,
            // What is only verified stays.
            unlink_each_loop: options.files.unlink_each_loop && !options.verify.verify_only.0,
            end_fsync: options.files.end_fsync,
            end_syncfs: options.files.end_syncfs,
            fsync_on_close: options.files.fsync_on_close,
            fill_device: options.amount.fill_device
                && self.replay.is_none()
                && list.iter().all(|file| file.kind == FileKind::Regular),
            allow_in_use: options.files.allow_mounted_write,
            list,
        }
    }

    /// Directories of the files to be created that are not there, parents first.
    fn missing_directories(&self, list: &[FilePlan]) -> Vec<PathBuf> {
        let (mut missing, mut seen) = (Vec::new(), BTreeSet::new());
        let directories = self.names_directories();
        // What is looked up or removed has to be there.
        let itself = directories && self.purpose() != Some(NamePurpose::Create);
        for file in list.iter().filter(|file| directories || file.kind == FileKind::Regular) {
            let is_absent = |path: &PathBuf| !self.facts.path(path).exists;
            if !is_absent(&file.path) {
                continue;
            }
            let own = itself.then(|| file.path.clone());
            let absent: Vec<PathBuf> =
                own.into_iter().chain(ancestors(&file.path).take_while(is_absent)).collect();
            for directory in absent.into_iter().rev() {
                if seen.insert(directory.clone()) {
                    missing.push(directory);
                }
            }
        }
        missing
    }
}

/// `size`, unless it is 0.
fn wanted_size(options: &JobOptions) -> Option<Size> {
    options.amount.size.filter(|size| !matches!(size, Size::Bytes(0) | Size::Zones(0)))
}

/// The directories above a path, nearest first, without the working directory and the root.
pub(crate) fn ancestors(path: &Path) -> impl Iterator<Item = PathBuf> {
    let above =
        path.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty() && path.parent().is_some());
    above.map(Path::to_path_buf)
}

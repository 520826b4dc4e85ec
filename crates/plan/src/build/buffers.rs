//! Contents, source and alignment of the I/O buffers.
//!
//! Invariant: a buffer holds the longest block of any direction the job has, is aligned as direct I/O needs it, and lies in no
//! more pages than it must.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fiord_options::job::{self, JobOptions};
use fiord_options::shown::shown;
use fiord_options::value::{DedupeMode, IoSubmitMode, MemoryKind, PatternPart};
use fiord_options::{Problem, ProblemKind};
use fiord_stats::Capped;

use super::section::ResolvedSection;
use crate::access::{Access, Direction, Pattern};
use crate::facts::Facts;
use crate::job::{Buffers, Dedupe, Fill, Job, Memory, WorkingSet};
use crate::path_change;
use crate::trim_ranges::TrimRange;

/// Bytes of the block's offset in a pattern.
const OFFSET_BYTES: usize = 8;

/// The buffers of one worker.
pub(crate) fn buffers(
    section: &ResolvedSection<'_>,
    block_bytes_max: u64,
    direct_align_bytes: u64,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Buffers {
    let options = section.options;
    let align =
        align_bytes(options.buffers.iomem_align.0.max(direct_align_bytes), block_bytes_max, facts.page_bytes);
    if !options.buffers.iomem_align.0.max(1).is_power_of_two() {
        let message = format!("{} is not a power of two; {align} is used", options.buffers.iomem_align.0,);
        problems
            .push(section.error(ProblemKind::Adjusted, job::Buffers::iomem_align, message, "").as_warning());
    }
    Buffers {
        fill: fill(section, facts, problems),
        dedupe: None,
        memory: memory(options),
        bytes: block_bytes_max,
        align_bytes: align,
        hugepage_bytes: options.buffers.hugepage_size.0,
        lock_bytes: options.buffers.lockmem.0,
    }
}

/// The alignment of each buffer, where at least `needed_bytes` are wanted. Blocks shorter than a page share one, as many as fit
/// without one that crosses its end; at least a sector each, so that no two share a cache line.
fn align_bytes(needed_bytes: u64, block_bytes: u64, page_bytes: u64) -> u64 {
    const SECTOR_BYTES: u64 = 512;
    let own_bytes = block_bytes.checked_next_power_of_two().unwrap_or(u64::MAX);
    own_bytes.max(SECTOR_BYTES).min(page_bytes).max(needed_bytes).next_power_of_two()
}

/// The part of a job's buffers that certainly is in memory once it runs: those that its data are in, unless a file is.
pub(crate) fn certain_bytes(job: &Job) -> u64 {
    let is_memory = path_change::buffer_file(&job.buffers.memory).is_none();
    if !is_memory || !job.engine.descriptor.transfers_files() {
        return 0;
    }
    (u64::from(job.depth.max) * job.buffers.bytes).min(job.limits.pass_bytes)
}

/// The longest block that is transferred. A trim transfers nothing, but where its blocks are written after it.
pub(crate) fn longest_block(access: &Access) -> u64 {
    let occurs = |direction: &Direction| match direction {
        Direction::Trim => access.pattern == Pattern::TrimThenWrite,
        Direction::Read | Direction::Write => access.pattern.includes(*direction) || access.sizes_by_order,
    };
    let longest = |direction: Direction| access.block_sizes[direction.index()].max();
    let longest = Direction::ALL.into_iter().filter(occurs).map(longest).max().unwrap_or(1);
    match access.trim_ranges {
        1 => longest,
        // Their list is in the buffer.
        ranges => longest.max(u64::from(ranges) * TrimRange::STORED_BYTES as u64),
    }
}

/// What buffers hold. A pattern beats zeros, and both beat random data, of which a part may be compressible.
fn fill(section: &ResolvedSection<'_>, facts: &Facts, problems: &mut Vec<Problem>) -> Fill {
    let options = section.options;
    let percent = options.buffers.buffer_compress_percentage.unwrap_or(0).min(100) as u8;
    let has_duplicates = options.buffers.dedupe_percentage > 0;
    let refill = options.buffers.refill_buffers.0 || percent > 0 || has_duplicates;
    let scramble = options.buffers.scramble_buffers && !refill;
    let pattern = match &options.buffers.buffer_pattern {
        Some(pattern) => match assemble(&pattern.0, &facts.contents) {
            Ok((bytes, offset_at)) => Some((bytes, offset_at)),
            Err(path) => {
                let message = format!("the file {} of the pattern cannot be read", shown(path));
                problems.push(section.error(
                    ProblemKind::Unreadable,
                    job::Buffers::buffer_pattern,
                    message,
                    "",
                ));
                None
            }
        },
        None => None,
    };
    match (pattern, percent) {
        (Some((bytes, offset_at)), 0) => Fill::Pattern { bytes, offset_at },
        (pattern, 1..) => Fill::Compressible {
            percent,
            chunk_bytes: options.buffers.buffer_compress_chunk.0,
            pattern: pattern.map(|(bytes, _)| bytes).unwrap_or_default(),
            refill,
            scramble,
        },
        (None, 0) if options.buffers.zero_buffers.0 && !has_duplicates => Fill::Zero,
        (None, 0) => Fill::Random { refill, scramble },
    }
}

/// Duplicates among the writes of a worker whose file has this many bytes.
pub(crate) fn dedupe(options: &JobOptions, access: &Access, file_bytes: u64) -> Option<Dedupe> {
    let percent = options.buffers.dedupe_percentage.min(100) as u8;
    let set_percent = u128::from(options.buffers.dedupe_working_set_percentage.min(100));
    let block_bytes = access.block_sizes[Direction::Write.index()].min();
    let set_bytes = u64::capped(u128::from(file_bytes) * set_percent / 100);
    let has_set = options.buffers.dedupe_mode == DedupeMode::WorkingSet;
    let working_set = has_set.then(|| WorkingSet {
        contents: (set_bytes / block_bytes.max(1)).max(1),
        seeds: if options.buffers.dedupe_global { vec![access.seed] } else { Vec::new() },
    });
    (percent > 0).then_some(Dedupe { percent, working_set })
}

/// Gives the workers that share their working sets each other's seeds.
pub(crate) fn share_working_sets(jobs: &mut [Job]) {
    let sets = |job: &'_ Job| job.buffers.dedupe.as_ref().and_then(|dedupe| dedupe.working_set.clone());
    let seeds: Vec<u64> = jobs.iter().filter_map(sets).flat_map(|set| set.seeds).collect();
    let working_sets = jobs.iter_mut().filter_map(|job| job.buffers.dedupe.as_mut()?.working_set.as_mut());
    working_sets.filter(|set| !set.seeds.is_empty()).for_each(|set| set.seeds.clone_from(&seeds));
}

/// A rule; fio's words.
pub(super) fn working_set_has_one_file(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let has_set = options.buffers.dedupe_mode == DedupeMode::WorkingSet;
    let uses_set = options.buffers.dedupe_percentage > 0 && has_set;
    (uses_set && options.files.nrfiles > 1).then(|| {
        let message = format!(
            "dedupe working set mode supported with single file per job, but {} files provided",
            options.files.nrfiles
        );
        section.error(
            ProblemKind::Conflict,
            job::Buffers::dedupe_mode,
            message,
            "nrfiles=1, or dedupe_mode=repeat",
        )
    })
}

/// A rule.
pub(super) fn dedupe_options_need_duplicates(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let has_set = options.buffers.dedupe_mode == DedupeMode::WorkingSet;
    let (option, other) = match options.buffers.dedupe_percentage {
        0 if has_set => (job::Buffers::dedupe_mode, "dedupe_percentage=50"),
        _ if options.buffers.dedupe_global && !has_set => {
            (job::Buffers::dedupe_global, "dedupe_mode=working_set")
        }
        _ => return None,
    };
    let message = format!("{} has no effect without {other}", option.name);
    Some(section.error(ProblemKind::NoEffect, option, message, "").as_warning())
}

/// The bytes of a pattern, and where in them the block's offset goes; or the file that cannot be read.
pub(crate) fn assemble(
    parts: &[PatternPart],
    contents: &BTreeMap<PathBuf, Vec<u8>>,
) -> Result<(Vec<u8>, Vec<usize>), PathBuf> {
    let (mut bytes, mut offset_at) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            PatternPart::Bytes(part) => bytes.extend_from_slice(part),
            PatternPart::File(name) => match contents.get(name) {
                Some(content) => bytes.extend_from_slice(content),
                None => return Err(name.clone()),
            },
            PatternPart::Offset => {
                offset_at.push(bytes.len());
                bytes.extend_from_slice(&[0; OFFSET_BYTES]);
            }
        }
    }
    Ok((bytes, offset_at))
}

/// The files a pattern is made of.
pub(crate) fn pattern_files(options: &JobOptions) -> impl Iterator<Item = PathBuf> {
    let of_buffers = options.buffers.buffer_pattern.iter().flat_map(|pattern| &pattern.0);
    let of_blocks = options.verify.verify_pattern.iter().flat_map(|pattern| &pattern.0);
    of_buffers.chain(of_blocks).filter_map(|part| match part {
        PatternPart::File(name) => Some(name.clone()),
        PatternPart::Bytes(_) | PatternPart::Offset => None,
    })
}

pub(crate) fn memory(options: &JobOptions) -> Memory {
    let file = options.buffers.mem.file.clone();
    match options.buffers.mem.kind {
        MemoryKind::Malloc => Memory::Malloc,
        MemoryKind::Shm => Memory::Shm,
        MemoryKind::ShmHuge => Memory::ShmHuge,
        MemoryKind::Mmap => Memory::Mmap(file),
        MemoryKind::MmapHuge => Memory::MmapHuge(file),
        MemoryKind::MmapShared => Memory::MmapShared(file),
        MemoryKind::CudaMalloc => Memory::Gpu,
    }
}

/// What is copied for an engine that has memory of a GPU itself would be copied twice, and a pool has none.
pub(crate) fn copies_have_one_engine(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let is_of_gpus = section.engine()?.is_of_gpus;
    let is_refused = is_of_gpus || options.queue.io_submit_mode == IoSubmitMode::Offload;
    (is_refused && options.buffers.mem.kind == MemoryKind::CudaMalloc).then(|| {
        let (message, remedy) = if is_of_gpus {
            ("the engine has memory of the GPU itself", "leave mem= out")
        } else {
            ("the threads of a pool have no memory of a GPU", "leave io_submit_mode= out")
        };
        section.error(ProblemKind::Conflict, job::Buffers::mem, message.to_string(), remedy)
    })
}

/// A huge page is a power of two larger than a page.
pub(crate) fn huge_pages_are_larger_than_pages(section: &ResolvedSection<'_>) -> Option<Problem> {
    let bytes = section.options.buffers.hugepage_size.0;
    (!bytes.is_power_of_two() || bytes < 4096).then(|| {
        let message = format!("{bytes} bytes are not the size of a huge page");
        section.error(
            ProblemKind::InvalidValue,
            job::Buffers::hugepage_size,
            message,
            "a power of two, usually 2m or 1g",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_its_parts_in_order() {
        let part = |name: &str| PatternPart::File(name.into());
        let parts = [PatternPart::Bytes(vec![0xde, 0xad]), part("f"), PatternPart::Offset, part("f")];
        let contents = BTreeMap::from([(PathBuf::from("f"), vec![1])]);
        let (bytes, offset_at) = assemble(&parts, &contents).unwrap();
        assert_eq!(bytes, [0xde, 0xad, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(offset_at, [3]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let parts = [PatternPart::File("gone".into())];
        assert_eq!(assemble(&parts, &BTreeMap::new()), Err("gone".into()));
    }

    const KIB: u64 = 1024;

    /// The memory of `depth` buffers in KiB, as the arena of an engine lays them out.
    fn memory_kib(depth: u64, block_bytes: u64, page_bytes: u64) -> u64 {
        depth * block_bytes.next_multiple_of(align_bytes(1, block_bytes, page_bytes)) / KIB
    }

    #[test]
    fn small_blocks_share_pages_of_every_size() {
        for page_bytes in [4 * KIB, 16 * KIB, 64 * KIB] {
            assert_eq!(memory_kib(4096, 512, page_bytes), 2 * KIB);
            assert_eq!(memory_kib(4096, 1, page_bytes), 2 * KIB, "at least a sector");
            assert_eq!(memory_kib(1024, 4 * KIB, page_bytes), 4 * KIB);
            assert_eq!(align_bytes(1, page_bytes, page_bytes), page_bytes);
            assert_eq!(
                align_bytes(1, page_bytes + 512, page_bytes),
                page_bytes,
                "longer blocks begin a page"
            );
        }
        assert_eq!(memory_kib(16, 5 * KIB, 64 * KIB), 16 * 8);
    }

    #[test]
    fn no_block_crosses_the_end_of_a_page_that_it_fits_into() {
        for page_bytes in [4 * KIB, 16 * KIB, 64 * KIB] {
            for block_bytes in (1..=page_bytes).step_by(511) {
                let stride_bytes = block_bytes.next_multiple_of(align_bytes(1, block_bytes, page_bytes));
                let crosses = |index: u64| index * stride_bytes % page_bytes + block_bytes > page_bytes;
                assert!(!(0..1000).any(crosses), "{block_bytes} {page_bytes}");
            }
        }
    }

    #[test]
    fn what_direct_io_or_the_user_needs_is_kept() {
        // A disk of 4 KiB blocks, and iomem_align.
        assert_eq!(align_bytes(4 * KIB, 512, 64 * KIB), 4 * KIB);
        assert_eq!(align_bytes(128 * KIB, 512, 64 * KIB), 128 * KIB);
        assert_eq!(align_bytes(3000, 512, 4 * KIB), 4 * KIB);
        assert_eq!(align_bytes(64, 4 * KIB, 4 * KIB), 4 * KIB);
        assert_eq!(align_bytes(0, u64::MAX, 4 * KIB), 4 * KIB);
    }
}

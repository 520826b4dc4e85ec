//! Contents, source and alignment of the I/O buffers.
//!
//! Invariant: a buffer holds the longest block of any direction the job has, and is aligned at least to a page.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fiord_options::Problem;
use fiord_options::job::JobOptions;
use fiord_options::value::{BufferPattern, MemoryKind, PatternPart};

use super::source::Source;
use crate::access::{Access, Direction};
use crate::facts::Facts;
use crate::job::{Buffers, Fill, Memory};

/// Bytes of the block's offset in a pattern.
const OFFSET_BYTES: usize = 8;

/// The buffers of one worker.
pub(crate) fn buffers(
    source: &Source<'_>,
    access: &Access,
    direct_align_bytes: u64,
    facts: &Facts,
    problems: &mut Vec<Problem>,
) -> Buffers {
    let options = source.options;
    let align = options.iomem_align.0.max(direct_align_bytes).max(facts.page_bytes);
    if !options.iomem_align.0.max(1).is_power_of_two() {
        let message =
            format!("{} is not a power of two; {} is used", options.iomem_align.0, align.next_power_of_two());
        problems.push(source.warning("iomem_align", message, ""));
    }
    Buffers {
        fill: fill(source, facts, problems),
        memory: memory(options),
        bytes: longest_block(access),
        align_bytes: align.next_power_of_two(),
        hugepage_bytes: options.hugepage_size.0,
        lock_bytes: options.lockmem.0,
    }
}

/// The longest block of the directions that occur.
fn longest_block(access: &Access) -> u64 {
    let occurs = |direction: &Direction| access.pattern.includes(*direction) || access.sizes_by_order;
    let longest = |direction: Direction| access.block_sizes[direction.index()].max();
    Direction::ALL.into_iter().filter(occurs).map(longest).max().unwrap_or(1)
}

/// What buffers hold. A pattern beats zeros, and both beat random data, of which a part may be compressible.
fn fill(source: &Source<'_>, facts: &Facts, problems: &mut Vec<Problem>) -> Fill {
    let options = source.options;
    let percent = options.buffer_compress_percentage.unwrap_or(0).min(100) as u8;
    let refill = options.refill_buffers.0 || percent > 0;
    let scramble = options.scramble_buffers && !refill;
    let pattern = match &options.buffer_pattern {
        Some(pattern) => match assemble(pattern, &facts.contents) {
            Ok((bytes, offset_at)) => Some((bytes, offset_at)),
            Err(path) => {
                let message = format!("the file {path} of the pattern cannot be read");
                problems.push(source.error("buffer_pattern", message, ""));
                None
            }
        },
        None => None,
    };
    match (pattern, percent) {
        (Some((bytes, offset_at)), 0) => Fill::Pattern { bytes, offset_at },
        (pattern, 1..) => Fill::Compressible {
            percent,
            chunk_bytes: options.buffer_compress_chunk.0,
            pattern: pattern.map(|(bytes, _)| bytes).unwrap_or_default(),
            refill,
            scramble,
        },
        (None, 0) if options.zero_buffers.0 => Fill::Zero,
        (None, 0) => Fill::Random { refill, scramble },
    }
}

/// The bytes of a pattern, and where in them the block's offset goes; or the file that cannot be read.
fn assemble(
    pattern: &BufferPattern,
    contents: &BTreeMap<PathBuf, Vec<u8>>,
) -> Result<(Vec<u8>, Vec<usize>), String> {
    let (mut bytes, mut offset_at) = (Vec::new(), Vec::new());
    for part in &pattern.0 {
        match part {
            PatternPart::Bytes(part) => bytes.extend_from_slice(part),
            PatternPart::File(name) => match contents.get(&PathBuf::from(name)) {
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
    let parts = options.buffer_pattern.iter().flat_map(|pattern| &pattern.0);
    parts.filter_map(|part| match part {
        PatternPart::File(name) => Some(PathBuf::from(name)),
        PatternPart::Bytes(_) | PatternPart::Offset => None,
    })
}

pub(crate) fn memory(options: &JobOptions) -> Memory {
    let file = options.mem.file.as_ref().map(PathBuf::from);
    match options.mem.kind {
        MemoryKind::Malloc => Memory::Malloc,
        MemoryKind::Shm => Memory::Shm,
        MemoryKind::ShmHuge => Memory::ShmHuge,
        MemoryKind::Mmap => Memory::Mmap(file),
        MemoryKind::MmapHuge => Memory::MmapHuge(file),
        MemoryKind::MmapShared => Memory::MmapShared(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_its_parts_in_order() {
        let part = |name: &str| PatternPart::File(name.to_string());
        let pattern = BufferPattern(vec![
            PatternPart::Bytes(vec![0xde, 0xad]),
            part("f"),
            PatternPart::Offset,
            part("f"),
        ]);
        let contents = BTreeMap::from([(PathBuf::from("f"), vec![1])]);
        let (bytes, offset_at) = assemble(&pattern, &contents).unwrap();
        assert_eq!(bytes, [0xde, 0xad, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(offset_at, [3]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let pattern = BufferPattern(vec![PatternPart::File("gone".to_string())]);
        assert_eq!(assemble(&pattern, &BTreeMap::new()), Err("gone".to_string()));
    }
}

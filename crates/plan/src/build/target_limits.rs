//! Limits of a job's targets: unsuitable zones, and atomic writes.
//!
//! Invariant: where the limits of a target are known, the kernel accepts the length and offset of every atomic write.

use fiord_options::job;
use fiord_options::shown::shown;
use fiord_options::value::EngineName;
use fiord_options::{Problem, ProblemKind};

use super::section::ResolvedSection;
use super::{zoned, zones};
use crate::access::{Access, BlockSizes, Direction};
use crate::engine::EngineDescriptor;
use crate::facts::Facts;
use crate::files::{FilePlan, Files};

/// Problems of the job's targets.
pub(crate) fn problems(
    section: &ResolvedSection<'_>,
    access: &Access,
    files: &Files,
    facts: &Facts,
) -> Vec<Problem> {
    let mut problems = zoned::unsuited(section, access, files, facts);
    problems.extend(zones::beyond_files(section, access, files));
    if section.options.access.atomic && access.pattern.includes(Direction::Write) {
        let sizes = &access.block_sizes[Direction::Write.index()];
        problems.extend(files.list.iter().find_map(|file| not_atomic(section, access, sizes, file, facts)));
    }
    problems
}

/// A rule.
pub(super) fn atomic_needs_an_engine_with_flags(section: &ResolvedSection<'_>) -> Option<Problem> {
    let engine = section.engine().filter(|engine| EngineDescriptor::touches_files(engine))?;
    (section.options.access.atomic && !engine.atomic_writes).then(|| {
        let able = section.engines.0.iter().rev().filter(|engine| engine.atomic_writes);
        let able: Vec<EngineName> = able.map(|engine| engine.name).collect();
        let message = format!("the engine {} cannot ask for atomic writes", engine.name);
        let remedy = format!("use ioengine={}", EngineName::join(&able, " or "));
        section.error(ProblemKind::Conflict, job::Access::atomic, message, remedy)
    })
}

/// Why the kernel would refuse atomic writes of these lengths to this file.
fn not_atomic(
    section: &ResolvedSection<'_>,
    access: &Access,
    sizes: &BlockSizes,
    file: &FilePlan,
    facts: &Facts,
) -> Option<Problem> {
    let known = facts.path(&file.path);
    let path = shown(&file.path);
    let length_bytes = sizes.min();
    let (option, message, remedy) = match known.atomic_bytes {
        // A file system reports its limits only for an existing file.
        None if !known.exists => return None,
        None => (
            job::Access::atomic,
            format!("{path} does not support atomic writes"),
            "use Linux 6.11 or newer and a device that offers them (/sys/block/*/queue/atomic_write_unit_max_bytes)"
                .to_string(),
        ),
        Some(_) if sizes.max() != length_bytes || !length_bytes.is_power_of_two() => (
            job::Blocks::bs,
            "atomic writes have one length, a power of two".to_string(),
            "for example bs=4k".to_string(),
        ),
        Some((min, max)) if length_bytes < min || length_bytes > max => (
            job::Blocks::bs,
            format!("{path} supports atomic writes of {min} to {max} bytes, and bs is {length_bytes}"),
            format!("use at most bs={max}"),
        ),
        Some(_) if !is_aligned(access, file, length_bytes) => (
            job::Access::offset,
            format!("atomic writes of {length_bytes} bytes must begin at multiples of their length"),
            "change offset, blockalign or the number after rw".to_string(),
        ),
        Some(_) => return None,
    };
    Some(section.error(ProblemKind::Target, option, message, remedy).of_path(&file.path))
}

/// Whether every block begins at a multiple of its length.
fn is_aligned(access: &Access, file: &FilePlan, length_bytes: u64) -> bool {
    let align_bytes = access.align_bytes[Direction::Write.index()];
    let steps_bytes = if access.random { align_bytes } else { access.stride_bytes.unsigned_abs() };
    file.offset_bytes.is_multiple_of(length_bytes) && steps_bytes.is_multiple_of(length_bytes)
}

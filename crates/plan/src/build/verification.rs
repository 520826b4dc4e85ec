//! Verification: what blocks look like, and when they are read back.
//!
//! Invariant: a plan verifies only what it can: every piece holds its header. `writers.rs` has blocks that several workers write.

use std::ffi::OsStr;
use std::path::PathBuf;

use fiord_options::shown::shown;
use fiord_options::value::{self, Verify, VerifyHeaderFormat, VerifyPolicy};
use fiord_options::{Problem, ProblemKind, Spec, job};
use fiord_stats::Capped;
use fiord_verify::{BlockFormat, BlockPattern, Checksum, Contents, HeaderFormat, Method};

use super::blocks::granularity_bytes;
use super::section::ResolvedSection;
use super::stream;
use super::{buffers, process, schedule};
use crate::access::{Access, Direction, Pattern};
use crate::engine::PlannedEngine;
use crate::facts::{Facts, RunSettings};
use crate::job::{Fill, Job};
use crate::verification::{Backlog, Trims, Verification, state_file_name};

/// Most threads that check the blocks of one worker.
const THREADS_MAX: u32 = 1024;

/// A later run cannot know how far one got that ended by its time. (It would also have no end: it issues no writes, whose
/// time could be up.)
pub(super) fn verify_only_follows_a_whole_run(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let ends_by_time = options.time.time_based.0 && options.time.runtime.us > 0;
    let writes = stream::pattern(options.access.rw.kind).includes(Direction::Write);
    (options.verify.verify_only.0 && ends_by_time && writes && method(section).is_some()).then(|| {
        let message = "with time_based, verify_only does not know which writes the earlier run did";
        let remedy = "verify with rw=read, or write without time_based";
        section.error(ProblemKind::Conflict, job::Verification::verify_only, message, remedy)
    })
}

/// The verification of one worker; `None` without one.
pub(crate) fn verification(
    (section, name, number): (&ResolvedSection<'_>, &OsStr, u32),
    access: &Access,
    fill: &Fill,
    engine: &PlannedEngine,
    (facts, run): (&Facts, &RunSettings),
    problems: &mut Vec<Problem>,
) -> Option<Verification> {
    let options = &section.options.verify;
    let method = method(section)?;
    let contents = match contents(section, fill, facts) {
        Ok(contents) => contents,
        Err(problem) => {
            problems.push(problem);
            return None;
        }
    };
    let format = BlockFormat {
        method,
        header: match options.verify_header_format {
            VerifyHeaderFormat::V3_33 => HeaderFormat::V3_33,
            VerifyHeaderFormat::V3_42 => HeaderFormat::V3_42,
        },
        header_at_bytes: options.verify_offset.map_or(0, |bytes| usize::capped(bytes.0)),
        piece_bytes: 0,
        contents,
    };
    let format = BlockFormat { piece_bytes: piece_bytes(section, access, &format, problems), ..format };
    problems.extend(holds_headers(section, access, &format));
    problems.extend(fits_header(section, access));
    problems.extend(reads_back_at_all(section, access));
    problems.extend(writes_alone(section, access));
    let compared = engine.descriptor.compares.and_then(|compares| compares(&engine.settings));
    problems.extend(compared.and_then(|option| knows_contents(section, access, &format, option)));
    let cpus = options.verify_async_cpus.as_ref().map_or_else(Vec::new, |set| set.0.clone());
    let cpus = process::online(section, job::Verification::verify_async_cpus, cpus, facts, problems);
    Some(Verification {
        threads: threads(section, problems),
        thread_cpus: cpus,
        format,
        checks: engine.descriptor.transfers_data(),
        compares_reads: true,
        reads_back: options.do_verify,
        only: options.verify_only.0,
        by_device: compared.is_some(),
        has_new_files_each_pass: section.options.files.unlink_each_loop
            && !schedule::is_time_based(section.options),
        checks_seed: options.verify_header_seed,
        checks_number: options.verify_write_sequence,
        backlog: backlog(section),
        trims: trims(section),
        dump_directory: options.verify_dump.then(|| run.aux_path.clone()),
        saved_state: saved_state(section, name, number, run),
        loaded_state: options.verify_state_load.then(|| state_file(name, number, run)),
        only_synced: options.verify_policy == VerifyPolicy::Fsynced,
    })
}

/// Whether a section's jobs verify.
pub(super) fn verifies(section: &ResolvedSection<'_>) -> bool {
    method(section).is_some()
}

/// The method of a section's jobs; `None` if they do not verify.
fn method(section: &ResolvedSection<'_>) -> Option<Method> {
    let options = &section.options.verify;
    let checksum = match options.verify {
        // As in fio, a pattern alone is verified behind headers.
        Verify::None if options.verify_pattern.is_some() && !section.is_given(job::Verification::verify) => {
            return Some(Method::PatternWithHeader);
        }
        Verify::None => return None,
        Verify::Meta => return Some(Method::Meta),
        Verify::Pattern => return Some(Method::Pattern),
        Verify::PatternHeader => return Some(Method::PatternWithHeader),
        Verify::Null => return Some(Method::Null),
        Verify::Md5 => Checksum::Md5,
        Verify::Crc64 => Checksum::Crc64,
        Verify::Crc32 => Checksum::Crc32,
        Verify::Crc32c => Checksum::Crc32c,
        Verify::Crc16 => Checksum::Crc16,
        Verify::Crc7 => Checksum::Crc7,
        Verify::Sha1 => Checksum::Sha1,
        Verify::Sha256 => Checksum::Sha256,
        Verify::Sha512 => Checksum::Sha512,
        Verify::Sha3_224 => Checksum::Sha3_224,
        Verify::Sha3_256 => Checksum::Sha3_256,
        Verify::Sha3_384 => Checksum::Sha3_384,
        Verify::Sha3_512 => Checksum::Sha3_512,
        Verify::Xxhash => Checksum::Xxhash,
    };
    Some(Method::Checksum(checksum))
}

/// The file in which this worker saves its state, if it does: only a job that writes has one.
pub(crate) fn saved_state(
    section: &ResolvedSection<'_>,
    name: &OsStr,
    number: u32,
    run: &RunSettings,
) -> Option<PathBuf> {
    let options = &section.options.verify;
    let writes =
        stream::pattern(section.options.access.rw.kind).includes(Direction::Write) && !options.verify_only.0;
    ((options.verify_state_save || run.trigger.is_some()) && writes && method(section).is_some())
        .then(|| state_file(name, number, run))
}

/// The file of the state of a job that ran on this machine.
fn state_file(name: &OsStr, number: u32, run: &RunSettings) -> PathBuf {
    run.aux_path.join(state_file_name("local".as_ref(), name, number))
}

/// What is behind headers. A pattern of its own beats what the buffers are filled with.
fn contents(section: &ResolvedSection<'_>, fill: &Fill, facts: &Facts) -> Result<Contents, Problem> {
    let options = &section.options.verify;
    let needs_pattern = matches!(options.verify, Verify::Pattern | Verify::PatternHeader);
    match (&options.verify_pattern, fill) {
        (Some(value::VerifyPattern(parts)), _) => {
            let (bytes, offset_at) = buffers::assemble(parts, &facts.contents).map_err(|path| {
                let message = format!("the file {} of the pattern cannot be read", shown(path));
                section.error(ProblemKind::Unreadable, job::Verification::verify_pattern, message, "")
            })?;
            let restart_bytes = usize::capped(options.verify_pattern_interval.0);
            let pattern = BlockPattern::new(bytes, offset_at, restart_bytes);
            pattern.map(Contents::Pattern).ok_or_else(|| {
                section.error(
                    ProblemKind::InvalidValue,
                    job::Verification::verify_pattern,
                    "the pattern has no bytes",
                    "give one such as 0xdeadbeef",
                )
            })
        }
        (None, _) if needs_pattern => {
            let message = format!("verify={} needs a pattern", options.verify.word());
            Err(section.error(
                ProblemKind::Conflict,
                job::Verification::verify,
                message,
                "give one with verify_pattern",
            ))
        }
        (None, Fill::Random { .. }) => Ok(Contents::Random),
        (None, Fill::Zero | Fill::Compressible { .. } | Fill::Pattern { .. }) => Ok(Contents::Given),
    }
}

/// Every piece must hold its header, also where it changes places with data.
fn holds_headers(section: &ResolvedSection<'_>, access: &Access, format: &BlockFormat) -> Option<Problem> {
    let header_bytes = format.header_bytes(format.header);
    let used = Direction::ALL
        .into_iter()
        .filter(|direction| *direction != Direction::Trim && access.pattern.includes(*direction));
    let block_bytes = usize::capped(used.map(|direction| access.block_sizes[direction.index()].min()).min()?);
    let piece_bytes = if format.piece_bytes == 0 { block_bytes } else { format.piece_bytes.min(block_bytes) };
    let name = format.method.name();
    if header_bytes > piece_bytes {
        let interval = section.options.verify.verify_interval;
        let option = match interval.is_some_and(|bytes| bytes.0 == piece_bytes as u64) {
            true => job::Verification::verify_interval,
            false => job::Blocks::bs,
        };
        let message = format!(
            "the header of verify={name} has {header_bytes} bytes and does not fit into {piece_bytes}"
        );
        return Some(section.error(
            ProblemKind::Conflict,
            option,
            message,
            format!("make it {header_bytes} or more"),
        ));
    }
    let at = format.header_at_bytes;
    if at > 0 && format.method.has_header() && (at < header_bytes || at + header_bytes > piece_bytes) {
        let message = format!(
            "a header of verify={name} has {header_bytes} bytes, and cannot be at offset {at} of {piece_bytes}"
        );
        let remedy = match piece_bytes.checked_sub(header_bytes).filter(|most| *most >= header_bytes) {
            Some(most) => format!("allowed here: {header_bytes} to {most}"),
            None => "leave it out".to_string(),
        };
        return Some(section.error(ProblemKind::Conflict, job::Verification::verify_offset, message, remedy));
    }
    None
}

/// A header has 32 bits for the length of a block, and so has the list of blocks to read back.
fn fits_header(section: &ResolvedSection<'_>, access: &Access) -> Option<Problem> {
    let block_bytes = access.block_sizes[Direction::Write.index()].max();
    u32::try_from(block_bytes).is_err().then(|| {
        let message =
            format!("a block of {block_bytes} bytes cannot be verified: 4 GiB and more have no header");
        section.error(
            ProblemKind::Conflict,
            job::Blocks::bs,
            message,
            "write blocks below 4 GiB, or leave out verify=",
        )
    })
}

/// Bytes that one header covers; 0: those of each block. As in fio, it is what divides all blocks that are written if their
/// sizes differ, or if the interval given does not divide them.
fn piece_bytes(
    section: &ResolvedSection<'_>,
    access: &Access,
    format: &BlockFormat,
    problems: &mut Vec<Problem>,
) -> usize {
    let sizes = &access.block_sizes[Direction::Write.index()];
    let unit_bytes = granularity_bytes(sizes, access.unaligned_sizes);
    let given_bytes = section.options.verify.verify_interval.map(|bytes| bytes.0).filter(|bytes| *bytes > 0);
    let wanted_bytes = given_bytes.unwrap_or(u64::MAX).min(sizes.min());
    let piece_bytes = match wanted_bytes {
        _ if access.unaligned_sizes => 0,
        wanted if unit_bytes.is_multiple_of(wanted) => wanted,
        _ if unit_bytes < format.header_bytes(format.header) as u64 => 0,
        _ => unit_bytes,
    };
    if given_bytes.is_some() && piece_bytes != wanted_bytes && format.method.has_header() {
        let covered = match piece_bytes {
            0 => "a whole block, of any length".to_string(),
            bytes => format!("{bytes} bytes"),
        };
        let message = format!("{wanted_bytes} bytes do not divide all blocks: each header covers {covered}");
        let remedy = "use an interval that divides the block sizes, without bs_unaligned";
        problems.push(
            section
                .error(ProblemKind::Adjusted, job::Verification::verify_interval, message, remedy)
                .as_warning(),
        );
    }
    usize::capped(piece_bytes)
}

/// A device that compares is sent whole blocks, with their headers.
fn knows_contents(
    section: &ResolvedSection<'_>,
    access: &Access,
    format: &BlockFormat,
    option: &'static Spec,
) -> Option<Problem> {
    let options = &section.options.verify;
    let (message, remedy) = if !access.pattern.includes(Direction::Write) || options.verify_only.0 {
        ("only the job that writes the blocks knows their contents", "let the job write them")
    } else if format.contents == Contents::Given {
        ("what the buffers are filled with is not known any more when it is compared", "use verify_pattern")
    } else if options.trim_percentage > 0 {
        ("blocks that were trimmed have no contents to compare", "leave trim_percentage out")
    } else {
        return None;
    };
    Some(section.error(ProblemKind::Conflict, option, message, format!("{remedy}, or read the blocks back")))
}

/// What a job has read is not compared where its blocks may lie over each other: nobody knows which was written last.
pub(crate) fn compare_whole_blocks(section: &ResolvedSection<'_>, job: &mut Job) -> Option<Problem> {
    if job.access.pattern != Pattern::Only(Direction::Read) || job.reads_whole_blocks() {
        return None;
    }
    job.verification.as_mut()?.compares_reads = false;
    let message = "blocks of this job may overlap, so that what it reads may be parts of several writes: nothing is compared";
    let remedy =
        "use verify_only=1 with the options of the job that wrote, which finds the last write of each block";
    Some(section.error(ProblemKind::NoEffect, job::Verification::verify, message, remedy).as_warning())
}

/// fio warns as well: only the end of a pass is followed by reading back.
fn reads_back_at_all(section: &ResolvedSection<'_>, access: &Access) -> Option<Problem> {
    let options = &section.options.verify;
    let is_time_based = super::schedule::is_time_based(section.options);
    (is_time_based
        && options.do_verify
        && options.verify_backlog == 0
        && access.pattern.includes(Direction::Write))
    .then(|| {
        let message = "verification read phase will never start because write phase uses all of runtime";
        section
            .error(
                ProblemKind::NoEffect,
                job::Time::time_based,
                message,
                "use verify_backlog, or a second job that reads",
            )
            .as_fios_warning()
    })
}

/// fio warns as well.
fn writes_alone(section: &ResolvedSection<'_>, access: &Access) -> Option<Problem> {
    let is_shared = section.options.general.numjobs > 1 && section.is_given(job::Files::filename);
    (is_shared && access.pattern.includes(Direction::Write)).then(|| {
        let message = "multiple writers may overwrite blocks that belong to other jobs. This can cause verification failures.";
        section.error(ProblemKind::Conflict, job::General::numjobs, message, "").as_fios_warning()
    })
}

/// Threads that check blocks beside the I/O.
fn threads(section: &ResolvedSection<'_>, problems: &mut Vec<Problem>) -> u32 {
    let threads = section.options.verify.verify_async;
    if threads > THREADS_MAX {
        let message =
            format!("{threads} threads for each job are more than the {THREADS_MAX} that are of use");
        problems.push(section.error(
            ProblemKind::InvalidValue,
            job::Verification::verify_async,
            message,
            "one thread per CPU is enough",
        ));
    }
    threads.min(THREADS_MAX)
}

fn backlog(section: &ResolvedSection<'_>) -> Option<Backlog> {
    let options = &section.options.verify;
    let every = options.verify_backlog;
    let batch = options.verify_backlog_batch.filter(|batch| *batch > 0).map_or(every, u64::from);
    (every > 0 && options.do_verify).then_some(Backlog { every, batch })
}

/// Which blocks are trimmed before they are read back. As in fio, a job that reads nothing back trims none.
fn trims(section: &ResolvedSection<'_>) -> Option<Trims> {
    let options = &section.options.verify;
    let (percent, every) = (options.trim_percentage.min(100) as u8, options.trim_backlog);
    let batch = options.trim_backlog_batch.filter(|batch| *batch > 0).map_or(every, u64::from);
    let reads_zeroes = options.trim_verify_zero;
    (percent > 0).then_some(Trims { percent, every, batch: batch.max(1), reads_zeroes })
}

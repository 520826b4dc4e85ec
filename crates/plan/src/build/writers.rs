//! Verified blocks that other workers write as well.
//!
//! Invariant: what a correct disk may return is never compared as if it could not.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use fiord_verify::Method;

use super::blocks::granularity_bytes;
use crate::access::{Access, BlockSizes, Direction, Pattern, RandomDistribution};
use crate::job::Job;

/// What other workers do to the blocks that a worker verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sharing {
    /// Nothing.
    None,
    /// They write whole blocks of the same form: it is not known whose write was the last.
    SameBlocks,
    /// They write parts of them, blocks of another form, or trim them: what is read may be anything.
    OtherBlocks,
}

/// A range of a file in which a worker changes blocks.
struct Writer {
    /// Index of the job.
    job: usize,
    bytes: Range<u64>,
}

/// Compares less strictly what several workers write, and nothing where one may change parts of a block of another.
pub(crate) fn expect_other_writers(jobs: &mut [Job]) {
    if jobs.iter().all(|job| job.verification.is_none()) {
        return;
    }
    let mut writers: BTreeMap<PathBuf, Vec<Writer>> = BTreeMap::new();
    for (number, job) in jobs.iter().enumerate().filter(|(_, job)| job.access.pattern.modifies()) {
        for file in &job.files.list {
            let bytes = file.offset_bytes..file.offset_bytes.saturating_add(file.length_bytes);
            writers.entry(file.path.clone()).or_default().push(Writer { job: number, bytes });
        }
    }
    let stages = stages(jobs);
    let sharing: Vec<Sharing> =
        (0..jobs.len()).map(|number| sharing(jobs, number, &stages, &writers)).collect();
    for (job, sharing) in jobs.iter_mut().zip(sharing) {
        let Some(verification) = &mut job.verification else { continue };
        match sharing {
            Sharing::None => {}
            Sharing::SameBlocks => (verification.checks_seed, verification.checks_number) = (false, false),
            Sharing::OtherBlocks => verification.checks = false,
        }
    }
}

/// For each job, the number of stonewalls before it: jobs with the same number run at the same time.
fn stages(jobs: &[Job]) -> Vec<u32> {
    let begun = |stage: &mut u32, job: &Job| {
        *stage += u32::from(job.schedule.stonewall);
        Some(*stage)
    };
    jobs.iter().scan(0, begun).collect()
}

/// What other workers do to the blocks of a job.
fn sharing(jobs: &[Job], number: usize, stages: &[u32], writers: &BTreeMap<PathBuf, Vec<Writer>>) -> Sharing {
    let job = &jobs[number];
    if job.verification.is_none() {
        return Sharing::None;
    }
    let draws_sizes = draws_sizes(job);
    let mut most = Sharing::None;
    for file in &job.files.list {
        let bytes = file.offset_bytes..file.offset_bytes.saturating_add(file.length_bytes);
        let others = writers.get(&file.path).into_iter().flatten();
        let overlapping = others.filter(|other| {
            other.job != number && other.bytes.start < bytes.end && other.bytes.end > bytes.start
        });
        for other in overlapping {
            // A job draws the sizes of its blocks by its number, and so others than the job that wrote before.
            let meets_others = stages[other.job] == stages[number] || draws_sizes;
            let in_step = has_same_blocks(job, &jobs[other.job], other.bytes.start.abs_diff(bytes.start));
            most =
                most.max(if meets_others && !in_step { Sharing::OtherBlocks } else { Sharing::SameBlocks });
        }
    }
    most
}

impl Job {
    /// Whether each read of a job that only reads covers blocks as a job that wrote has left them, if it had the same options:
    /// blocks that cannot overlap, or each place once.
    pub fn reads_whole_blocks(&self) -> bool {
        let (access, limits) = (&self.access, &self.limits);
        let reads = Direction::Read.index();
        let is_one_pass = !limits.time_based && limits.loops <= 1 && limits.loop_bytes <= limits.pass_bytes;
        // Blocks at random may cover less than the places that they take, and what is left of several files may be another
        // block.
        let transfers_all = !access.random && access.stride_bytes == 0 && self.files.list.len() == 1;
        let is_one_pass = is_one_pass && (transfers_all || !limits.repeats_passes);
        let visits_once = match access.random {
            // A job that leaves gaps begins at the start again, with blocks of other sizes if it draws them.
            false => access.stride_bytes == 0 || access.stride_bytes > 0 && !draws_sizes(self),
            true => {
                access.full_coverage
                    && access.distribution[reads] == RandomDistribution::Uniform
                    && access.percent_random[reads] == 100
                    && (access.ios_per_draw, access.stride_bytes) == (1, 0)
                    && (access.sizes_by_order || access.align_bytes[reads] == access.block_sizes[reads].min())
            }
        };
        let is_zoned = access.strided.is_some() || access.zoned.is_some();
        unit_bytes(self).is_some() || is_one_pass && visits_once && !is_zoned
    }
}

/// Whether a job reads blocks, without having written them, whose sizes it draws.
fn draws_sizes(job: &Job) -> bool {
    let sizes = &job.access.block_sizes[Direction::Read.index()];
    job.access.pattern == Pattern::Only(Direction::Read)
        && sizes.min() != sizes.max()
        && unit_bytes(job).is_none()
}

/// Whether each write of one of these jobs covers pieces of the other as a whole, and with the same form; their ranges
/// begin so many bytes apart.
fn has_same_blocks(job: &Job, other: &Job, apart_bytes: u64) -> bool {
    let (Some(own), Some(theirs)) = (&job.verification, &other.verification) else { return false };
    let units = [unit_bytes(job), unit_bytes(other)];
    let [Some(unit_bytes), Some(other_bytes)] = units else { return false };
    let trims =
        own.trims.is_some() || theirs.trims.is_some() || other.access.pattern.includes(Direction::Trim);
    own.format == theirs.format
        && unit_bytes == other_bytes
        && apart_bytes.is_multiple_of(unit_bytes)
        && !trims
}

/// The length of the pieces of a job's blocks, if all pieces have one length and are at multiples of it.
fn unit_bytes(job: &Job) -> Option<u64> {
    let Access { block_sizes, align_bytes, stride_bytes, strided, zoned, .. } = &job.access;
    let is_reader = job.access.pattern == Pattern::Only(Direction::Read);
    let used = if is_reader { Direction::Read } else { Direction::Write }.index();
    // Which of the sizes apply depends on the order.
    let sizes = if job.access.sizes_by_order { &block_sizes[..2] } else { &block_sizes[used..=used] };
    // A pattern begins anew with each block, and its phase differs between pieces; trims zero blocks as a whole.
    let untrimmed = job.verification.as_ref().filter(|verification| verification.trims.is_none());
    let format = untrimmed.map(|verification| &verification.format);
    let format =
        format.filter(|format| format.method.has_header() && format.method != Method::PatternWithHeader);
    let piece_bytes = format.map_or(0, |format| format.piece_bytes as u64);
    let is_single =
        sizes.iter().all(|size| size.min() == size.max()) && sizes[0].min() == sizes[sizes.len() - 1].min();
    let is_divided = |sizes: &BlockSizes| granularity_bytes(sizes, false).is_multiple_of(piece_bytes);
    let in_pieces = piece_bytes > 0 && sizes.iter().all(is_divided);
    let unit_bytes = match (in_pieces, is_single) {
        (true, _) if !job.access.unaligned_sizes => piece_bytes,
        (_, true) => sizes[0].min(),
        (_, false) => return None,
    };
    let strided = strided.iter().flat_map(|zones| [zones.transfer_bytes, zones.zone_bytes, zones.skip_bytes]);
    let zoned = zoned.iter().flat_map(|zones| [zones.zone_bytes, zones.capacity_bytes]);
    let mut steps = [align_bytes[used], stride_bytes.unsigned_abs()].into_iter().chain(strided).chain(zoned);
    steps.all(|bytes| bytes.is_multiple_of(unit_bytes)).then_some(unit_bytes)
}

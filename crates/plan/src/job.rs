//! The plan: one `Job` per worker, everything resolved.
//!
//! Invariant: a `Plan` is immutable and complete; a worker needs no other settings.

use std::ffi::OsString;
use std::fmt;

use fiord_errno::Errno;
use fiord_options::{Problem, Spec, job};

use crate::access::{Access, Direction, PerDirection};
use crate::engine::{Depth, PlannedEngine};
use crate::files::Files;
use crate::logs::Logs;
use crate::pace::{LatencyTarget, Pace};
use crate::presentation::Presentation;
use crate::priority::IoPriorities;
use crate::replay::Replay;
use crate::steady::Steady;
use crate::trigger::Trigger;
use crate::verification::Verification;

/// A whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// One entry per worker, in order of their numbers.
    pub jobs: Vec<Job>,
    /// What stops all jobs and saves their state.
    pub trigger: Option<Trigger>,
}

impl Plan {
    /// Problems of single jobs, which do not run while the others do, in the order of the jobs.
    pub fn unplannable(&self) -> impl Iterator<Item = &Problem> {
        self.jobs
            .iter()
            .filter_map(|job| job.unplannable.as_ref())
            .flat_map(|unplannable| &unplannable.problems)
    }
}

/// Why one job cannot run although its options are valid: its targets do not meet its needs. It is an error of that job
/// alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplannable {
    /// The errno of the first of them.
    pub errno: Errno,
    /// Its problems, at least one; all are errors.
    pub problems: Vec<Problem>,
}

impl fmt::Display for Unplannable {
    /// One line: each problem after its place.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(out, "{separator}{}: {}", problem.place, problem.message())?;
        }
        Ok(())
    }
}

/// When a worker ends, and what is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one pass over the files: the sum of their lengths, or `size` when that is less.
    pub pass_bytes: u64,
    /// Bytes to transfer per loop: `io_size`, else `pass_bytes`.
    pub loop_bytes: u64,
    /// Passes are repeated until a loop has transferred `loop_bytes`, even if they transfer less than `pass_bytes` (holes
    /// between blocks, ends of files that are shorter than a block): `io_size` is given in bytes.
    pub repeats_passes: bool,
    /// Passes of `loop_bytes`.
    pub loops: u64,
    /// I/Os in all, when limited.
    pub number_ios: Option<u64>,
    /// Run time, when limited.
    pub runtime_ns: Option<u64>,
    /// Go on until `runtime_ns` however often the files are done.
    pub time_based: bool,
    /// Run time before anything is counted.
    pub ramp_ns: u64,
    /// Bytes before anything is counted (`ramp_size`).
    pub ramp_bytes: u64,
}

impl Limits {
    /// Whether a part at the beginning is not counted.
    pub fn has_ramp(&self) -> bool {
        self.ramp_ns > 0 || self.ramp_bytes > 0
    }
}

/// When a worker starts and whom its end concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Wait for everything before it to end.
    pub stonewall: bool,
    /// Start that much after the group; a range is drawn from with the job's seed.
    pub start_delay_ns: (u64, u64),
    /// Start when all workers of the job of this name have ended.
    pub wait_for: Option<OsString>,
    /// End of this worker ends others.
    pub exit_all: bool,
    /// An error of this worker ends others.
    pub exit_all_on_error: bool,
    /// Which others.
    pub exit_what: ExitWhat,
}

/// fio's `exit_what`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitWhat {
    /// Workers of the same reporting group.
    Group,
    /// Workers up to the next stonewall.
    Stonewall,
    /// All of the run.
    All,
}

/// What the buffers hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// Zeros.
    Zero,
    /// Random bytes.
    Random {
        /// New bytes for every write.
        refill: bool,
        /// A cheap change for every write.
        scramble: bool,
    },
    /// Random bytes of which this share can be compressed away.
    Compressible {
        /// Share in percent.
        percent: u8,
        /// Granularity in bytes; 0 is the whole of a block.
        chunk_bytes: u64,
        /// What the compressible part holds; zeros when empty.
        pattern: Vec<u8>,
        /// New bytes for every write.
        refill: bool,
        /// A cheap change for every write.
        scramble: bool,
    },
    /// A pattern, repeated; the numbers are where the 8-byte offset of the block goes (`%o`).
    Pattern {
        /// Bytes of one repetition.
        bytes: Vec<u8>,
        /// Positions within `bytes` that take the offset, little-endian, 8 bytes each.
        offset_at: Vec<usize>,
    },
}

impl Fill {
    /// Whether each write has contents of its own, apart from the cheap changes.
    pub fn is_renewed(&self) -> bool {
        match self {
            Fill::Zero => false,
            Fill::Random { refill, .. } | Fill::Compressible { refill, .. } => *refill,
            Fill::Pattern { offset_at, .. } => !offset_at.is_empty(),
        }
    }
}

/// Where buffers come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Memory {
    /// The allocator.
    Malloc,
    /// System V shared memory.
    Shm,
    /// System V shared memory in huge pages.
    ShmHuge,
    /// Anonymous mapping, or of a file.
    Mmap(Option<std::path::PathBuf>),
    /// Anonymous or file mapping in huge pages.
    MmapHuge(Option<std::path::PathBuf>),
    /// Shared mapping.
    MmapShared(Option<std::path::PathBuf>),
    /// The allocator, with copies from and to memory of the first GPU.
    Gpu,
}

/// The I/O buffers of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffers {
    /// Contents.
    pub fill: Fill,
    /// Where from.
    pub memory: Memory,
    /// Length of each.
    pub bytes: u64,
    /// Alignment of each; a power of two.
    pub align_bytes: u64,
    /// Page size of the huge forms.
    pub hugepage_bytes: u64,
    /// Memory pinned for the whole run beside the buffers (`lockmem`).
    pub lock_bytes: u64,
    /// Share of writes that repeat others.
    pub dedupe: Option<Dedupe>,
}

/// Writes with the contents of others (`dedupe_percentage`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dedupe {
    /// Their share, in percent.
    pub percent: u8,
    /// Contents that they are taken from; without any, the last new contents are repeated.
    pub working_set: Option<WorkingSet>,
}

/// The contents that a worker writes first, which it repeats later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkingSet {
    /// How many; at least 1.
    pub contents: u64,
    /// The seeds of the workers that share their sets (`dedupe_global`), this one included; none where it has a set
    /// of its own.
    pub seeds: Vec<u64>,
}

/// What a failed or slow I/O means for its worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorPolicy {
    /// errno values that are counted and ignored, per direction (`continue_on_error`, `ignore_error`).
    pub passed_over: PerDirection<Vec<i32>>,
    /// The same for what verification finds (EILSEQ).
    pub passed_over_in_verification: Vec<i32>,
    /// Print each error that is ignored.
    pub dump: bool,
    /// Fail when an I/O takes longer than this (`max_latency`), per direction.
    pub latency_ns_max: PerDirection<Option<u64>>,
}

impl ErrorPolicy {
    /// Whether any error is counted and ignored.
    pub fn passes_over_any(&self) -> bool {
        let lists = self.passed_over.iter().chain([&self.passed_over_in_verification]);
        lists.into_iter().any(|codes| !codes.is_empty())
    }
}

/// Which clock stamps I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's counter where it can be trusted, else the monotonic clock.
    Best,
    /// `clock_gettime(CLOCK_MONOTONIC)`.
    Monotonic,
    /// The same in microseconds (`gettimeofday`).
    Microseconds,
    /// The processor's counter: the TSC, or the generic timer of ARM.
    Counter,
    /// What a thread keeps that does nothing else on this CPU (`gtod_cpu`).
    Kept(u32),
    /// None: nothing is stamped (`gtod_reduce`).
    None,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Clock.
    pub clock: ClockSource,
    /// Submission latency is recorded.
    pub submission: bool,
    /// Completion latency is recorded.
    pub completion: bool,
    /// Total latency is recorded.
    pub total: bool,
    /// Throughput samples are taken.
    pub bandwidth: bool,
    /// Histogram of submission latencies.
    pub submission_percentiles: bool,
    /// Histogram of completion latencies.
    pub completion_percentiles: bool,
    /// Histogram of total latencies.
    pub total_percentiles: bool,
    /// Length of a throughput sample.
    pub bandwidth_interval_ms: u64,
    /// Length of an IOPS sample.
    pub iops_interval_ms: u64,
    /// The worker appears in the report (`stats`).
    pub reported: bool,
    /// Disk statistics of its targets are reported.
    pub disk_stats: bool,
    /// How many trims each block lasts is recorded, if the job trims (`block_error_percentiles`).
    pub block_lifetimes: bool,
    /// The clock that the job's start is reported by, as a number of `clock_gettime` (0: the time of day).
    pub start_clock_id: u32,
}

/// How I/Os reach the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Submission {
    /// I/Os that overlap are not in flight together (`serialize_overlap`).
    pub serialize_overlap: bool,
    /// A pool of threads executes them, as many as the queue is deep (`io_submit_mode=offload`).
    pub offload: bool,
}

/// How the worker's thread runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Name of its thread; the job's name if `None`.
    pub comm: Option<OsString>,
    /// Niceness.
    pub nice: Option<i32>,
    /// I/O priority class (0..=3).
    pub io_class: Option<u8>,
    /// I/O priority level (0..=7).
    pub io_priority: Option<u8>,
    /// I/O priority hint (0..=1023).
    pub io_hint: u16,
    /// CPUs it may run on; empty is all.
    pub cpus: Vec<u32>,
    /// CPUs it may not run on, because they keep the time; they are not among `cpus`.
    pub time_cpus: Vec<u32>,
    /// NUMA nodes it may run on; empty is all.
    pub numa_cpu_nodes: Vec<u32>,
    /// Memory policy.
    pub numa_memory: Option<NumaMemory>,
    /// Control group to join.
    pub control_group: Option<ControlGroup>,
    /// User to become.
    pub uid: Option<u32>,
    /// Group to become.
    pub gid: Option<u32>,
    /// Shell command before.
    pub exec_prerun: Option<OsString>,
    /// Shell command after.
    pub exec_postrun: Option<OsString>,
    /// I/O scheduler to set on the target's disk.
    pub io_scheduler: Option<OsString>,
}

/// The control group of a worker (`cgroup`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroup {
    /// Its path below the root of the groups for I/O.
    pub name: OsString,
    /// Its weight (100..=1000).
    pub weight: Option<u32>,
    /// Whether it stays after the run.
    pub stays: bool,
}

impl ControlGroup {
    /// The option that names it.
    pub const OPTION: &'static Spec = job::Process::cgroup;
}

/// fio's `numa_mem_policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumaMemory {
    /// The system's default.
    Default,
    /// This node first.
    Prefer(u32),
    /// These nodes only.
    Bind(Vec<u32>),
    /// Round these nodes.
    Interleave(Vec<u32>),
    /// The node it runs on.
    Local,
}

/// One worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The job's name.
    pub name: OsString,
    /// Its description.
    pub description: Option<OsString>,
    /// Number of the worker over the whole run, from 0.
    pub number: u32,
    /// Number of the section it comes from, from 0.
    pub section: u32,
    /// Which clone of its section it is, from 0.
    pub clone: u32,
    /// Run status group (`groupid`), from 0: a stonewall or `new_group` begins the next.
    pub group_id: u32,
    /// Why it cannot run. It then has no files, and is reported with its error.
    pub unplannable: Option<Unplannable>,
    /// Engine.
    pub engine: PlannedEngine,
    /// Queue depth.
    pub depth: Depth,
    /// How I/Os reach the engine.
    pub submission: Submission,
    /// Files.
    pub files: Files,
    /// Stream of operations.
    pub access: Access,
    /// A trace that is replayed instead of the stream.
    pub replay: Option<Replay>,
    /// The iolog that the job's I/O is recorded in.
    pub record: Option<std::path::PathBuf>,
    /// Buffers.
    pub buffers: Buffers,
    /// End.
    pub limits: Limits,
    /// Rates.
    pub pace: Pace,
    /// Start.
    pub schedule: Schedule,
    /// Errors.
    pub errors: ErrorPolicy,
    /// The latency that its queue depth is adjusted to.
    pub latency_target: Option<LatencyTarget>,
    /// The steady state that ends it before its other limits do.
    pub steady: Option<Steady>,
    /// Verification of its blocks.
    pub verification: Option<Verification>,
    /// Statistics.
    pub measure: Measure,
    /// Logs over time.
    pub logs: Option<Logs>,
    /// Thread.
    pub process: Process,
    /// Priorities of its I/Os.
    pub io_priorities: IoPriorities,
    /// What only the report needs.
    pub presentation: Presentation,
}

impl Job {
    /// Whether it is reported as one with the job before it (`group_reporting`), as in fio.
    pub fn is_reported_with(&self, before: &Job) -> bool {
        self.group_id == before.group_id && self.presentation.group_reporting
    }

    /// Whether operations of this direction can occur.
    pub fn issues(&self, direction: Direction) -> bool {
        match &self.replay {
            Some(replay) => replay.directions[direction.index()],
            None => self.access.pattern.includes(direction) || self.trims_what_it_wrote(direction),
        }
    }

    /// Whether it trims blocks that it wrote, before they are verified (`trim_percentage`).
    fn trims_what_it_wrote(&self, direction: Direction) -> bool {
        let trims = self.verification.as_ref().is_some_and(|verification| verification.trims.is_some());
        direction == Direction::Trim && trims && self.access.pattern.includes(Direction::Write)
    }

    /// Whether it uses memory of a GPU.
    pub fn uses_gpu(&self) -> bool {
        self.engine.descriptor.is_of_gpus || self.buffers.memory == Memory::Gpu
    }

    /// Whether its I/O touches pages of files in memory, so that a page fault may wait for a file system.
    pub fn touches_mapped_files(&self) -> bool {
        let has_mapped_buffers = match &self.buffers.memory {
            Memory::Mmap(file) | Memory::MmapHuge(file) | Memory::MmapShared(file) => file.is_some(),
            Memory::Malloc | Memory::Shm | Memory::ShmHuge | Memory::Gpu => false,
        };
        has_mapped_buffers || self.engine.descriptor.maps_files()
    }

    /// The option of the trace that it records, or else replays.
    pub fn trace_option(&self) -> &'static Spec {
        if self.record.is_some() { job::Replay::write_iolog } else { job::Replay::read_iolog }
    }
}

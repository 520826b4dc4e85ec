//! Jobs for tests: a plain one, to be changed field by field.
//!
//! Invariant: a job made here has fio's defaults: 4 KiB blocks, one pass over the files.

#![allow(dead_code, reason = "each test program uses its part")]

use fiord_plan::files::{Advice, Fallocate};
use fiord_plan::job::Limits;
use fiord_plan::{
    Access, Barriers, BlockSizes, Direction, FileKind, FilePlan, FileService, Files, Op, Pattern,
    RandomDistribution, Sequencer, SyncMode,
};
use fiord_workload::Stream;

pub mod statistics;

/// The three values that make a stream.
#[derive(Debug, Clone)]
pub struct Case {
    pub access: Access,
    pub files: Files,
    pub limits: Limits,
}

/// A job over files of these lengths.
pub fn case(pattern: Pattern, random: bool, file_lengths: &[u64]) -> Case {
    let pass_bytes = file_lengths.iter().sum();
    Case {
        access: Access {
            pattern,
            random,
            stride_bytes: 0,
            ios_per_draw: 1,
            sequencer: Sequencer::Sequential,
            percent_random: [100; 3],
            distribution: [const { RandomDistribution::Uniform }; 3],
            strided: None,
            zoned: None,
            sprandom: None,
            trim_ranges: 1,
            read_percent: 50,
            full_coverage: true,
            soft_map: false,
            covers_single_size: false,
            block_sizes: [const { BlockSizes::Fixed(4096) }; 3],
            unaligned_sizes: false,
            sizes_by_order: false,
            align_bytes: [4096; 3],
            seed: 42,
            repeat_order: true,
            service: FileService::RoundRobin { every: 1 },
            barriers: Barriers::default(),
        },
        files: files(file_lengths),
        limits: Limits {
            pass_bytes,
            loop_bytes: pass_bytes,
            repeats_passes: false,
            loops: 1,
            number_ios: None,
            runtime_ns: None,
            time_based: false,
            ramp_ns: 0,
            ramp_bytes: 0,
        },
    }
}

fn files(lengths: &[u64]) -> Files {
    let file = |length_bytes: &u64| FilePlan {
        path: "none".into(),
        kind: FileKind::None,
        device: None,
        offset_bytes: 0,
        length_bytes: *length_bytes,
        lay_out_bytes: None,
    };
    Files {
        list: lengths.iter().map(file).collect(),
        open_at_once: lengths.len() as u32,
        direct: false,
        direct_by_engine: false,
        sync: SyncMode::None,
        lock: None,
        writable: true,
        may_create: true,
        lay_out_contents: false,
        create_directories: Vec::new(),
        create_on_open: false,
        create_serially: true,
        create_fsync: false,
        create_only: false,
        fallocate: Fallocate::None,
        advice: Advice::None,
        write_hint: None,
        pre_read: false,
        invalidate: false,
        unlink: false,
        unlink_each_loop: false,
        end_fsync: false,
        end_syncfs: false,
        fsync_on_close: false,
        fill_device: false,
        allow_in_use: false,
    }
}

impl Case {
    /// Modifies it in one expression.
    pub fn with(mut self, change: impl FnOnce(&mut Case)) -> Case {
        change(&mut self);
        self
    }

    /// Fixed blocks in all directions.
    pub fn block(self, bytes: u64) -> Case {
        self.sizes([0; 3].map(|_| BlockSizes::Fixed(bytes)))
    }

    /// These lengths, aligned to the shortest of each.
    pub fn sizes(mut self, sizes: [BlockSizes; 3]) -> Case {
        self.access.align_bytes = [0, 1, 2].map(|index: usize| sizes[index].min());
        self.access.block_sizes = sizes;
        self
    }

    pub fn stream(&self) -> Stream {
        Stream::new(&self.access, &self.files, &self.limits).expect("a stream")
    }

    /// All of its operations, or the first million.
    pub fn ops(&self) -> Vec<Op> {
        self.first(1_000_000)
    }

    /// Its first operations.
    pub fn first(&self, count: usize) -> Vec<Op> {
        let mut stream = self.stream();
        let mut ops = Vec::new();
        while ops.len() < count && stream.fill(&mut ops, 61) > 0 {}
        ops.truncate(count);
        ops
    }
}

/// The offset of each, in bytes.
pub fn offsets(ops: &[Op]) -> Vec<u64> {
    ops.iter().map(|op| op.offset_bytes).collect()
}

/// The number of reads, writes, trims and synchronisations.
pub fn counts(ops: &[Op]) -> [usize; 4] {
    let mut counts = [0; 4];
    for op in ops {
        counts[direction(op).map_or(3, Direction::index)] += 1;
    }
    counts
}

/// Its direction; `None` for synchronisations.
pub fn direction(op: &Op) -> Option<Direction> {
    op.action.direction()
}

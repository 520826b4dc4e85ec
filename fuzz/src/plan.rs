//! The target for the plan: any job text, on any machine.
//!
//! Invariant: every plan that is built can be run: its values are in range, and so is every operation generated from
//! it.

use std::path::Path;

use fiord_engine::registry::{ENGINES, NAMES};
use fiord_options::cli::Parsed;
use fiord_options::{Problem, ProblemLevel, Section, resolve_job};
use fiord_plan::facts::{Quota, Space};
use fiord_plan::{Action, Facts, FileKind, Job, Needs, PathFacts, RunSettings};
use fiord_workload::{Stream, WorkloadError};

use crate::grammar::{read_what_fits, without};
use crate::spelled_out;

/// Limits of workers and files; more only make a run slower.
const FILES_MAX: u64 = 512;

/// Blocks of a map that takes 32 MiB.
const BLOCKS_MAX: u64 = 1 << 28;

/// Operations checked per job.
const OPERATIONS: usize = 256;

/// Bytes that make the choices, one after another; zeros once they run out.
struct Dice<'a>(&'a [u8]);

impl Dice<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, self.0), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    fn bit(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// A size: small, large, odd, or the largest possible.
    fn size_bytes(&mut self) -> u64 {
        let mantissa = u64::from(self.byte());
        match self.byte() % 72 {
            64.. => i64::MAX as u64 - mantissa,
            shift => (mantissa << shift).min(i64::MAX as u64),
        }
    }

    fn power_of_two(&mut self) -> u64 {
        1 << (self.byte() % 21)
    }

    fn path_facts(&mut self) -> PathFacts {
        if !self.bit() {
            let among_devices = self.byte() % 4 == 1;
            return PathFacts { writable_mount: !self.bit(), among_devices, ..PathFacts::absent() };
        }
        let kinds = [FileKind::Regular, FileKind::Block, FileKind::Char, FileKind::Pipe];
        PathFacts {
            exists: true,
            kind: kinds[usize::from(self.byte()) % kinds.len()],
            is_directory: self.byte() % 8 == 1,
            size_bytes: self.size_bytes(),
            logical_block_bytes: self.power_of_two(),
            direct_align_bytes: self.power_of_two(),
            direct_memory_align_bytes: self.power_of_two(),
            direct_supported: [None, Some(true), Some(false)][usize::from(self.byte() % 3)],
            writable_mount: self.byte() % 4 != 1,
            in_use: if self.byte() % 4 == 1 { vec!["mounted".to_string()] } else { Vec::new() },
            device: self.bit().then(|| (u32::from(self.byte() % 2), 0)),
            among_devices: self.byte() % 4 == 1,
            similar: None,
            zone_bytes: None,
            atomic_bytes: None,
            allocated_bytes: self.size_bytes(),
            space: self.bit().then(|| Space {
                file_system: (0, u32::from(self.byte() % 2)),
                free_bytes: self.size_bytes(),
                may_shrink: self.bit(),
                frees_later: self.bit(),
                quota: self.bit().then(|| Quota {
                    of: ("user", u32::from(self.byte() % 2)),
                    left_bytes: self.size_bytes(),
                }),
            }),
        }
    }

    fn facts(&mut self, needs: &Needs) -> Facts {
        let mut facts = Facts { page_bytes: 4096 << (self.byte() % 3), engines: ENGINES, ..Facts::default() };
        for path in &needs.paths {
            facts.paths.insert(path.clone(), self.path_facts());
        }
        for directory in &needs.directories {
            let found: Vec<_> = (0..self.byte() % 4).map(|n| directory.join(n.to_string())).collect();
            for path in &found {
                facts.paths.insert(path.clone(), self.path_facts());
            }
            facts.listings.insert(directory.clone(), found);
        }
        for file in &needs.contents {
            let length = usize::from(self.byte());
            facts.contents.insert(file.clone(), vec![7; length]);
        }
        facts.cpus_online = (0..u32::from(self.byte() % 8) + 1).collect();
        facts.cpus_allowed =
            facts.cpus_online.iter().copied().filter(|cpu| *cpu == 0 || self.bit()).collect();
        facts
    }
}

/// A job file (options may be spelled in two bytes, see `spelled_out`), a NUL, and the bytes that choose the
/// properties of the machine.
pub fn build_plan(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let mut text = spelled_out(parts.next().unwrap_or_default());
    let dice = parts.next().unwrap_or_default();
    while let Some((read, parsed)) = read_what_fits(text) {
        let Some(problems) = build(&parsed, Dice(dice)) else { return };
        let Some(rest) = without(&read, &problems) else { return };
        text = rest;
    }
}

/// Builds the plan; the problems if that fails.
fn build(parsed: &Parsed, mut dice: Dice<'_>) -> Option<Vec<Problem>> {
    let run = RunSettings {
        readonly: dice.byte() % 4 == 1,
        max_jobs: (dice.byte() % 4 == 1).then_some(4),
        ..RunSettings::default()
    };
    if too_much(&parsed.sections) {
        return None;
    }
    let facts = dice.facts(&fiord_plan::needs(&parsed.sections, ENGINES, &run));
    let build = || fiord_plan::build(&parsed.sections, &parsed.waiting, &facts, &run);
    let built = build();
    assert!(built == build(), "results differ");
    match built {
        Ok((plan, warnings)) => {
            assert!(warnings.iter().all(|problem| problem.level != ProblemLevel::Error), "{warnings:?}");
            assert!(run.max_jobs.is_none_or(|most| plan.jobs.len() <= most as usize));
            for (number, job) in plan.jobs.iter().enumerate() {
                assert_eq!(job.number as usize, number);
                assert_sound(job, &run);
            }
            None
        }
        Err(refusal) => {
            let is_error = |problem: &Problem| problem.level == ProblemLevel::Error;
            assert!(refusal.problems.iter().any(is_error), "refused without a reason");
            Some(refusal.problems)
        }
    }
}

fn too_much(sections: &[Section]) -> bool {
    let files = |section: &Section| {
        let (options, _, _) = resolve_job(section, NAMES);
        u64::from(options.general.numjobs).saturating_mul(u64::from(options.files.nrfiles).max(1))
    };
    sections.iter().map(files).fold(0, u64::saturating_add) > FILES_MAX
}

fn assert_sound(job: &Job, run: &RunSettings) {
    assert!(job.depth.max >= 1, "{:?}", job.depth);
    assert!(job.buffers.align_bytes.is_power_of_two(), "{:?}", job.buffers);
    assert_eq!(job.files.list.is_empty(), job.unplannable.is_some(), "only a job that can run has files");
    assert!(!(run.readonly && job.access.pattern.modifies()), "{:?}", job.access);
    for file in &job.files.list {
        let end = file.offset_bytes.checked_add(file.length_bytes);
        assert!(end.is_some_and(|end| end <= i64::MAX as u64), "{file:?} ends beyond all files");
        assert!(file.path != Path::new(""), "{file:?} has no name");
    }
    if job.unplannable.is_none() {
        assert_operations_in_range(job);
    }
}

/// Whether a map of all blocks (which blocks of several lengths need for full coverage) would take all memory.
fn map_is_too_large(job: &Job) -> bool {
    let lengths = job.access.block_sizes.iter().flat_map(|sizes| [sizes.min(), sizes.max()]);
    let (shortest, longest) =
        lengths.fold((u64::MAX, 1), |(low, high), bytes| (low.min(bytes), high.max(bytes)));
    let bytes = job.files.list.iter().map(|file| file.length_bytes).fold(0, u64::saturating_add);
    shortest != longest && bytes / shortest.max(1) > BLOCKS_MAX
}

fn assert_operations_in_range(job: &Job) {
    if map_is_too_large(job) {
        return;
    }
    let mut stream = match Stream::new(&job.access, &job.files, &job.limits) {
        Ok(stream) => stream,
        Err(WorkloadError::MapTooLarge { .. }) => return,
        Err(why) => panic!("{why}: {job:?}"),
    };
    let mut operations = Vec::with_capacity(OPERATIONS);
    let mut before = usize::MAX;
    while operations.len() < OPERATIONS && operations.len() != before {
        before = operations.len();
        stream.fill(&mut operations, OPERATIONS - before);
    }
    for operation in operations.iter().filter(|operation| operation.action.direction().is_some()) {
        let file = &job.files.list[operation.file as usize];
        let end = operation.offset_bytes.checked_add(operation.length_bytes);
        assert!(operation.length_bytes > 0, "{operation:?} moves nothing");
        assert!(
            operation.action == Action::Trim || operation.length_bytes <= job.buffers.bytes,
            "{operation:?} is longer than a buffer: {:?}",
            job.buffers
        );
        assert!(
            operation.offset_bytes >= file.offset_bytes
                && end.is_some_and(|end| end <= file.offset_bytes + file.length_bytes),
            "{operation:?} lies outside {file:?}"
        );
    }
}

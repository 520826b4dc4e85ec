//! Plans jobs with the facts about the host.
//!
//! Invariant: probing changes nothing; a path that cannot be probed is absent from the facts, and the plan reports it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fiord_engine::registry;
use fiord_host::{DirectSupport, Machine, Prober, TargetFacts, TargetKind};
use fiord_options::{Problem, Section, suggest};
use fiord_plan::facts::{Facts, GeometryNeed, MemoryLeft, Needs, PathFacts, Quota, RunSettings, Space};
use fiord_plan::{FileKind, Plan, Refusal, with_ancestors};
use fiord_sys::sysfs::Sysfs;

use super::{attended, traces};
use crate::claims;

/// How deep `opendir` descends: enough for any tree, and an end to loops of links.
const DEPTH_MAX: usize = 64;

/// The plan of these sections on this machine, with warnings.
///
/// # Errors
/// Why there is none, or what of the command's own it would overwrite.
pub fn plan(
    sections: &[Section],
    waiting: &[usize],
    machine: &Machine,
    settings: &RunSettings,
) -> Result<(Plan, Vec<Problem>), Refusal> {
    attended::during(|| {
        let facts = gather(&fiord_plan::needs(sections, registry::ENGINES, settings), machine);
        let built = fiord_plan::build(sections, waiting, &facts, settings)?;
        claims::admit(&built.0, sections)?;
        Ok(built)
    })
}

/// Everything in `needs`, and the machine.
fn gather(needs: &Needs, machine: &Machine) -> Facts {
    let traces = traces::facts(&needs.traces);
    let traced = traces.values().flatten().flat_map(|trace| &trace.paths);
    let traced: Vec<PathBuf> = traced.cloned().flat_map(with_ancestors).collect();
    let listings: BTreeMap<PathBuf, Vec<PathBuf>> =
        needs.directories.iter().map(|directory| (directory.clone(), files_below(directory))).collect();
    let found = listings.values().flatten();
    let prober = Prober::default();
    let probe = |path: &PathBuf| {
        // A path that cannot be probed counts as absent.
        (path.clone(), prober.probe(path).map_or_else(|_| PathFacts::absent(), |facts| path_facts(&facts)))
    };
    let paths = needs.paths.iter().chain(found).chain(&traced).map(probe).collect();
    let ask = |need: &GeometryNeed| {
        let geometry = need.engine.descriptor.geometry?;
        Some((need.clone(), geometry(&need.engine.settings, &need.target)))
    };
    let read = |path: &PathBuf| {
        claims::reads(path);
        std::fs::read(path).ok().map(|bytes| (path.clone(), bytes))
    };
    Facts {
        paths,
        contents: needs.contents.iter().filter_map(read).collect(),
        traces,
        geometries: needs.geometries.iter().filter_map(ask).collect(),
        listings,
        cpus_online: machine.cpus_online.clone(),
        cpus_allowed: machine.cpus_allowed.clone(),
        numa_nodes: nodes(machine),
        engines: registry::ENGINES,
        page_bytes: machine.page_bytes,
        memory_bytes: machine.memory.total_bytes,
        memory_left: machine
            .memory_limit
            .map(|limit| MemoryLeft { left_bytes: limit.left_bytes(), limit_bytes: limit.limit_bytes }),
    }
}

fn nodes(machine: &Machine) -> BTreeMap<u32, Vec<u32>> {
    let sysfs = Sysfs::default();
    machine.nodes.iter().map(|node| (*node, sysfs.node_cpus(*node).unwrap_or_default())).collect()
}

/// The facts about one path that the plan needs.
pub fn path_facts(facts: &TargetFacts) -> PathFacts {
    let kind = match facts.kind {
        TargetKind::Block => FileKind::Block,
        TargetKind::Char => FileKind::Char,
        TargetKind::Pipe | TargetKind::Other => FileKind::Pipe,
        TargetKind::Regular | TargetKind::Directory | TargetKind::Absent => FileKind::Regular,
    };
    PathFacts {
        exists: facts.kind != TargetKind::Absent,
        is_directory: facts.kind == TargetKind::Directory,
        kind,
        size_bytes: facts.size_bytes.unwrap_or(0),
        allocated_bytes: facts.allocated_bytes.unwrap_or(0),
        space: space(facts),
        logical_block_bytes: facts.logical_block_bytes.map_or(1, u64::from),
        direct_align_bytes: facts.direct_offset_bytes().map_or(1, u64::from),
        direct_memory_align_bytes: facts.direct_memory_bytes().map_or(1, u64::from),
        direct_supported: match facts.direct {
            DirectSupport::Aligned(_) => Some(true),
            DirectSupport::Unsupported => Some(false),
            DirectSupport::Unknown => None,
        },
        writable_mount: !facts.read_only,
        in_use: facts.live_claims().map(ToString::to_string).collect(),
        device: facts
            .device
            .filter(|_| facts.kind == TargetKind::Block)
            .map(|number| (number.major, number.minor)),
        zone_bytes: facts
            .device
            .filter(|_| facts.kind == TargetKind::Block)
            .or(facts.behind.as_ref().map(|block| block.number))
            .and_then(fiord_sys::zones::shown_zone_bytes),
        atomic_bytes: (facts.kind != TargetKind::Absent)
            .then(|| fiord_sys::stat::atomic_limits(&facts.path).unwrap_or(None))
            .flatten()
            .map(|limits| (u64::from(limits.min_bytes), u64::from(limits.max_bytes))),
        among_devices: facts.among_devices,
        similar: similar(facts),
    }
}

/// The space of the file system that a path is on, if it says how much it has.
fn space(facts: &TargetFacts) -> Option<Space> {
    // These store what they are given; others may compress it, or a server may.
    const PLAIN: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "tmpfs"];
    let system = facts.file_system.as_ref().filter(|system| system.total_bytes > 0)?;
    let number = facts.device?;
    Some(Space {
        file_system: (number.major, number.minor),
        free_bytes: system.free_bytes,
        may_shrink: !PLAIN.contains(&system.type_name.as_str()),
        quota: system
            .quota
            .map(|quota| Quota { of: (quota.of.word(), quota.id), left_bytes: quota.left_bytes }),
    })
}

/// The name most similar to an absent path, among the neighbours of it or of the first missing directory on the way.
fn similar(facts: &TargetFacts) -> Option<PathBuf> {
    let absent = facts.missing_directory.as_ref().unwrap_or(&facts.path).file_name()?.to_str()?;
    let names = facts.neighbours.iter().filter_map(|path| path.file_name()?.to_str());
    let meant = suggest::nearest(absent, names)?;
    facts.neighbours.iter().find(|path| path.file_name().is_some_and(|name| name == meant)).cloned()
}

/// Regular files of a directory and all below it, sorted.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    collect(directory, DEPTH_MAX, &mut files);
    files.sort();
    files
}

fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect(&path, depth - 1, files),
            Ok(kind) if kind.is_file() => files.push(path),
            _ => {}
        }
    }
}

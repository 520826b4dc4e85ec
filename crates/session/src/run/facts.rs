//! Plans jobs with the facts about the host.
//!
//! Invariant: probing changes nothing; a path that cannot be probed is absent from the facts, and the plan reports it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use fiord_engine::registry;
use fiord_host::{DirectSupport, Machine, Prober, TargetFacts, TargetKind};
use fiord_options::{Problem, Section, suggest};
use fiord_plan::facts::{Facts, GeometryNeed, MemoryLeft, Needs, PathFacts, Quota, RunSettings, Space};
use fiord_plan::{FileKind, Plan, Refusal, with_ancestors};
use fiord_stats::Gather;
use fiord_sys::file;
use fiord_sys::sysfs::Sysfs;

use super::{attended, traces};
use crate::claims;

/// How deep `opendir` descends: enough for any tree, and an end to loops of links.
const DEPTH_MAX: usize = 64;

/// How long file systems are given, one after the other, to free what was removed before files are refused for lack of room:
/// XFS does so in a thread of its own, which the question for the free space wakes. Btrfs does it with a transaction, which
/// ends at the latest when the file system is synced (`None`), which may take long and comes last.
const PAUSES: [Option<Duration>; 5] = [
    Some(Duration::from_millis(1)),
    Some(Duration::from_millis(10)),
    Some(Duration::from_millis(100)),
    Some(Duration::from_millis(500)),
    None,
];

/// A plan with warnings, or why there is none.
type Built = Result<(Plan, Vec<Problem>), Refusal>;

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
        let build = |facts: &Facts| fiord_plan::build(sections, waiting, facts, settings);
        let built = with_room(facts, build, ask_again)?;
        claims::admit(&built.0, sections)?;
        Ok(built)
    })
}

/// What `build` makes of the facts. While files do not fit that may when their file systems have freed what was removed,
/// `again` waits for that and asks for their space again; it is given one of these files on each file system.
fn with_room(
    mut facts: Facts,
    build: impl Fn(&Facts) -> Built,
    mut again: impl FnMut(Option<Duration>, &BTreeSet<PathBuf>, &mut Facts),
) -> Built {
    let mut built = build(&facts);
    for pause in PAUSES {
        let short = short(&built, &facts);
        if short.is_empty() {
            break;
        }
        again(pause, &short, &mut facts);
        built = build(&facts);
    }
    built
}

/// Of the files that do not fit into file systems that free later, one on each.
fn short(built: &Built, facts: &Facts) -> BTreeSet<PathBuf> {
    let jobs = built.iter().flat_map(|(plan, _)| &plan.jobs);
    let refused =
        jobs.filter_map(|job| job.unplannable.as_ref()).filter(|refused| refused.errno.is_no_space());
    let on_each: BTreeMap<(u32, u32), &Path> = refused
        .flat_map(|refused| &refused.problems)
        .filter_map(|problem| {
            let path = problem.path.as_deref()?;
            let space = facts.path(path).space.filter(|space| space.frees_later)?;
            Some((space.file_system, path))
        })
        .gather();
    on_each.into_values().map(Path::to_owned).gather()
}

/// Waits for as long, or until the file systems of these files are synced, and asks for the space of those that free later.
fn ask_again(pause: Option<Duration>, short: &BTreeSet<PathBuf>, facts: &mut Facts) {
    match pause {
        Some(pause) => thread::sleep(pause),
        None => short.iter().for_each(|path| sync(path)),
    }
    let prober = Prober::default();
    for (path, known) in &mut facts.paths {
        if known.space.is_some_and(|space| space.frees_later) {
            known.space = prober.probe(path).ok().as_ref().and_then(space).or(known.space);
        }
    }
}

/// Syncs the file system of a file, which may be missing.
fn sync(path: &Path) {
    let above = path.ancestors().skip(1).map(|above| if above == "" { Path::new(".") } else { above });
    let open = above.filter_map(|above| File::open(above).ok()).next();
    // If it fails, the space is as it was.
    let _ = open.map(file::syncfs);
}

/// Everything in `needs`, and the machine.
fn gather(needs: &Needs, machine: &Machine) -> Facts {
    let traces = traces::facts(&needs.traces);
    let traced = traces.values().flatten().flat_map(|trace| &trace.paths);
    let traced: Vec<PathBuf> = traced.cloned().flat_map(with_ancestors).collect();
    let listings: BTreeMap<PathBuf, Vec<PathBuf>> =
        needs.directories.iter().map(|directory| (directory.clone(), files_below(directory))).gather();
    let found = listings.values().flatten();
    let prober = Prober::default();
    let probe = |path: &PathBuf| {
        // A path that cannot be probed counts as absent.
        (path.clone(), prober.probe(path).map_or_else(|_| PathFacts::absent(), |facts| path_facts(&facts)))
    };
    let paths = needs.paths.iter().chain(found).chain(&traced).map(probe).gather();
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
        contents: needs.contents.iter().filter_map(read).gather(),
        traces,
        geometries: needs.geometries.iter().filter_map(ask).gather(),
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
    machine.nodes.iter().map(|node| (*node, sysfs.node_cpus(*node).unwrap_or_default())).gather()
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
    const FREES_LATER: [&str; 2] = ["btrfs", "xfs"];
    let system = facts.file_system.as_ref().filter(|system| system.total_bytes > 0)?;
    let number = facts.device?;
    Some(Space {
        file_system: (number.major, number.minor),
        free_bytes: system.free_bytes,
        may_shrink: !PLAIN.contains(&system.type_name.as_str()),
        frees_later: FREES_LATER.contains(&system.type_name.as_str()),
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
    files.sort_unstable();
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::io;

    use fiord_options::cli;
    use fiord_options::environment::{Environment, KeywordValues};

    const MIB: u64 = 1 << 20;

    /// The pauses until a file of 10 MiB fits or is refused, where each question finds as many MiB free as the next of these,
    /// the last one for ever.
    fn pauses(free_mib: &[u64], frees_later: bool) -> (Vec<Option<Duration>>, bool) {
        let files = |_: &OsStr| Err(io::Error::from(io::ErrorKind::NotFound));
        let (variables, engines) = (|_: &OsStr| None, registry::ENGINES.names());
        let keywords = KeywordValues { cpus: 1, memory_mib: 1000, page_bytes: 4096 };
        let environment = Environment { files: &files, variables: &variables, keywords, engines: &engines };
        let words = ["--name=j", "--filename=f", "--size=10m"].map(str::to_string);
        let sections = cli::read(&words, &environment).unwrap().sections;
        let asked = |turn: usize| {
            let free_bytes = free_mib[turn.min(free_mib.len() - 1)] * MIB;
            let space =
                Space { file_system: (8, 1), free_bytes, may_shrink: false, frees_later, quota: None };
            PathFacts { space: Some(space), ..PathFacts::absent() }
        };
        let paths = [(PathBuf::from("f"), asked(0))].into();
        let facts = Facts { paths, engines: registry::ENGINES, ..Facts::default() };
        let mut pauses = Vec::new();
        let settings = RunSettings::default();
        let built = with_room(
            facts,
            |facts| fiord_plan::build(&sections, &[], facts, &settings),
            |pause, short, facts| {
                assert_eq!(short, &BTreeSet::from([PathBuf::from("f")]));
                pauses.push(pause);
                facts.paths.insert(PathBuf::from("f"), asked(pauses.len()));
            },
        );
        (pauses, built.unwrap().0.unplannable().next().is_none())
    }

    #[test]
    fn space_that_is_freed_late_is_waited_for() {
        assert_eq!(pauses(&[10], true), (vec![], true));
        assert_eq!(pauses(&[1, 10], true), (PAUSES[..1].to_vec(), true));
        assert_eq!(pauses(&[1, 2, 9, 10], true), (PAUSES[..3].to_vec(), true));
        // For no longer than that, and not where nothing is freed later.
        assert_eq!(pauses(&[1], true), (PAUSES.to_vec(), false));
        assert_eq!(pauses(&[1, 10], false), (vec![], false));
    }
}

//! Facts about the machine that a plan depends on: plain values, listed by `needs` and filled in by the caller.
//!
//! Invariant: a path that is not filled in counts as absent.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::engine::{Engines, Geometry, NoGeometry, PlannedEngine};
use crate::files::FileKind;
use crate::replay::{TraceFacts, TraceNeed};
use crate::trigger::Trigger;

/// One path, as found on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFacts {
    /// Whether it exists.
    pub exists: bool,
    /// Its type; meaningless if it does not exist.
    pub kind: FileKind,
    /// Whether it is a directory (then `kind` has no meaning either).
    pub is_directory: bool,
    /// Length of the file or device; 0 when it does not report one.
    pub size_bytes: u64,
    /// Bytes that its file system has allocated for it.
    pub allocated_bytes: u64,
    /// The space of its file system. For an absent path, that of the nearest existing directory; `None` when unknown.
    pub space: Option<Space>,
    /// Logical block of the device below; 1 when unknown.
    pub logical_block_bytes: u64,
    /// Smallest unit of a direct transfer, offset and length alike; 1 when unknown.
    pub direct_align_bytes: u64,
    /// Alignment of buffers for direct transfers; 1 when unknown.
    pub direct_memory_align_bytes: u64,
    /// Whether direct I/O works there; `None` when unknown.
    pub direct_supported: Option<bool>,
    /// Whether its file system is writable. For an absent path, that of the nearest existing directory.
    pub writable_mount: bool,
    /// Why writing to it would destroy data: it is mounted, swap, part of an array, or backs a loop device that is.
    /// Empty if it is not in use.
    pub in_use: Vec<String>,
    /// Major and minor number of a block device, whatever it is called; `None` for everything else.
    pub device: Option<(u32, u32)>,
    /// Length of the zones of a zoned block device; `None` for everything else.
    pub zone_bytes: Option<u64>,
    /// The shortest and the longest atomic write it takes, in bytes; `None` if it takes none.
    pub atomic_bytes: Option<(u64, u64)>,
    /// Of a directory, and of an absent path: whether a file created there would be among the device nodes.
    pub among_devices: bool,
    /// Of an absent path among the device nodes: the device with the most similar name.
    pub similar: Option<PathBuf>,
}

impl PathFacts {
    /// A path that does not exist.
    pub fn absent() -> PathFacts {
        PathFacts {
            exists: false,
            kind: FileKind::Regular,
            is_directory: false,
            size_bytes: 0,
            allocated_bytes: 0,
            space: None,
            logical_block_bytes: 1,
            direct_align_bytes: 1,
            direct_memory_align_bytes: 1,
            direct_supported: None,
            writable_mount: true,
            in_use: Vec::new(),
            device: None,
            zone_bytes: None,
            atomic_bytes: None,
            among_devices: false,
            similar: None,
        }
    }
}

/// The space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// The number of its device.
    pub file_system: (u32, u32),
    /// Free, including what is reserved for root.
    pub free_bytes: u64,
    /// It can compress or share what is written, which then takes less space than its length.
    pub may_shrink: bool,
    /// It frees what was removed some time after it was removed, and does not count it as free before.
    pub frees_later: bool,
    /// The quota that binds what is written there, if one does.
    pub quota: Option<Quota>,
}

/// What a quota leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quota {
    /// Of what it is, in a word, and the number of that: what is written for it counts together.
    pub of: (&'static str, u32),
    /// Bytes left.
    pub left_bytes: u64,
}

/// Memory that a limit leaves to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLeft {
    /// What is left.
    pub left_bytes: u64,
    /// The limit.
    pub limit_bytes: u64,
}

/// A target that only its engine can be asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometryNeed {
    /// The engine, which has a `geometry`, with the job's settings.
    pub engine: PlannedEngine,
    /// The target.
    pub target: PathBuf,
}

/// The machine, and the program that runs on it, as far as a plan depends on them.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Every path of `Needs::paths`.
    pub paths: HashMap<PathBuf, PathFacts>,
    /// Regular files below each directory of `Needs::directories` (all levels), as paths that start with the
    /// directory as given; sorted. A directory that cannot be read is missing here.
    pub listings: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Contents of each file of `Needs::contents`. One that cannot be read is missing here.
    pub contents: BTreeMap<PathBuf, Vec<u8>>,
    /// Each trace of `Needs::traces`, or why it cannot be replayed.
    pub traces: BTreeMap<TraceNeed, Result<TraceFacts, String>>,
    /// The answer to each of `Needs::geometries`.
    pub geometries: Vec<(GeometryNeed, Result<Geometry, NoGeometry>)>,
    /// CPUs that are on line, sorted.
    pub cpus_online: Vec<u32>,
    /// CPUs this process may run on, sorted.
    pub cpus_allowed: Vec<u32>,
    /// CPUs of each NUMA node.
    pub numa_nodes: BTreeMap<u32, Vec<u32>>,
    /// The engines of this program.
    pub engines: Engines,
    /// Size of a memory page.
    pub page_bytes: u64,
    /// Memory installed.
    pub memory_bytes: u64,
    /// Memory that a limit leaves to this process, and the limit; `None` without one.
    pub memory_left: Option<MemoryLeft>,
}

impl Default for Facts {
    /// A machine of one CPU, 4 KiB pages and empty disks, and a program without engines.
    fn default() -> Facts {
        Facts {
            paths: HashMap::new(),
            listings: BTreeMap::new(),
            contents: BTreeMap::new(),
            traces: BTreeMap::new(),
            geometries: Vec::new(),
            cpus_online: vec![0],
            cpus_allowed: vec![0],
            numa_nodes: BTreeMap::from([(0, vec![0])]),
            engines: Engines::default(),
            page_bytes: 4096,
            memory_bytes: 1 << 30,
            memory_left: None,
        }
    }
}

impl Facts {
    /// The facts about a path.
    pub fn path(&self, path: &Path) -> PathFacts {
        self.paths.get(path).cloned().unwrap_or_else(PathFacts::absent)
    }

    /// What the engine found of a target, if it was asked.
    pub fn geometry(&self, engine: &PlannedEngine, target: &Path) -> Option<&Result<Geometry, NoGeometry>> {
        let asked = |need: &GeometryNeed| need.engine == *engine && need.target == target;
        self.geometries.iter().find(|(need, _)| asked(need)).map(|(_, answer)| answer)
    }
}

/// What must be looked up on the host before a plan can be built. Each list is without repeats.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Needs {
    /// Targets and directories: `Facts::paths`.
    pub paths: Vec<PathBuf>,
    /// Directories whose files become targets (`opendir`): `Facts::listings`. The files found there are targets too:
    /// ask about them as about `paths`.
    pub directories: Vec<PathBuf>,
    /// Files whose contents are used (`buffer_pattern='file'`): `Facts::contents`.
    pub contents: Vec<PathBuf>,
    /// Traces that are replayed: `Facts::traces`. The files they name are targets too: ask about them, and about the
    /// directories above them, as about `paths`.
    pub traces: Vec<TraceNeed>,
    /// Targets that only their engines can be asked about: `Facts::geometries`.
    pub geometries: Vec<GeometryNeed>,
}

/// Settings of the run that decide about a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// Nothing may be written or trimmed (`--readonly`).
    pub readonly: bool,
    /// Workers allowed in all (`--max-jobs`); `None` for as many as a run can have.
    pub max_jobs: Option<u32>,
    /// Randomness of this run, for jobs that are not to be repeatable.
    pub entropy: u64,
    /// Directory of the files that verification leaves (`--aux-path`); empty for the working directory.
    pub aux_path: PathBuf,
    /// Whether jobs that end at a time count as writing everything: a study chose that time, and the next one may be longer.
    pub counts_timed_writes: bool,
    /// What stops all jobs and saves their state (`--trigger-file`, `--trigger-timeout`).
    pub trigger: Option<Trigger>,
    /// Whether logs are written on another machine.
    pub sends_logs: bool,
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings {
            readonly: false,
            max_jobs: None,
            entropy: 0x5eed,
            aux_path: PathBuf::new(),
            counts_timed_writes: false,
            trigger: None,
            sends_logs: false,
        }
    }
}

//! What the plan has to know of the machine: plain values, asked for by `needs` and filled in by the caller.
//!
//! Invariant: a path nobody filled in is an absent one, so that a plan never depends on a question not asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::files::FileKind;

/// One path, as the host tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFacts {
    /// Whether there is anything at the path.
    pub exists: bool,
    /// What it is; of no meaning when it does not exist.
    pub kind: FileKind,
    /// Whether it is a directory (then `kind` has no meaning either).
    pub is_directory: bool,
    /// Length of the file or device; 0 when it does not report one.
    pub size_bytes: u64,
    /// Logical block of the device below; 1 when unknown.
    pub logical_block_bytes: u64,
    /// Smallest unit of a direct transfer, offset and length alike; 1 when unknown.
    pub direct_align_bytes: u64,
    /// Alignment of buffers for direct transfers; 1 when unknown.
    pub direct_memory_align_bytes: u64,
    /// Whether direct I/O works there; `None` when unknown.
    pub direct_supported: Option<bool>,
    /// Whether the file system takes writes. For an absent path, that of the nearest existing directory.
    pub writable_mount: bool,
    /// Why writing to it would destroy something: mounted, swap, part of an array, behind a loop device that is. Empty
    /// when free.
    pub in_use: Vec<String>,
    /// Major and minor number of a block device, whatever it is called; `None` for everything else.
    pub device: Option<(u32, u32)>,
    /// Of a directory, and of what is absent: a file made there would stand among the nodes of devices.
    pub among_devices: bool,
    /// Of what is absent among devices: the one whose name is nearest.
    pub similar: Option<PathBuf>,
}

impl PathFacts {
    /// A path with nothing there.
    pub fn absent() -> PathFacts {
        PathFacts {
            exists: false,
            kind: FileKind::Regular,
            is_directory: false,
            size_bytes: 0,
            logical_block_bytes: 1,
            direct_align_bytes: 1,
            direct_memory_align_bytes: 1,
            direct_supported: None,
            writable_mount: true,
            in_use: Vec::new(),
            device: None,
            among_devices: false,
            similar: None,
        }
    }

    /// A regular file of this length, of which nothing else is known.
    pub fn regular(size_bytes: u64) -> PathFacts {
        PathFacts { exists: true, size_bytes, ..PathFacts::absent() }
    }

    /// A block device of this length and logical block.
    pub fn block(size_bytes: u64, logical_block_bytes: u64) -> PathFacts {
        PathFacts {
            kind: FileKind::Block,
            logical_block_bytes,
            direct_align_bytes: logical_block_bytes,
            ..PathFacts::regular(size_bytes)
        }
    }
}

/// The machine, as far as a plan depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Every path of `Needs::paths`.
    pub paths: BTreeMap<PathBuf, PathFacts>,
    /// Regular files below each directory of `Needs::directories` (all levels), as paths that start with the
    /// directory as given; sorted. A directory that cannot be read is missing here.
    pub listings: BTreeMap<PathBuf, Vec<PathBuf>>,
    /// Contents of each file of `Needs::contents`. One that cannot be read is missing here.
    pub contents: BTreeMap<PathBuf, Vec<u8>>,
    /// CPUs that are on line, sorted.
    pub cpus_online: Vec<u32>,
    /// CPUs this process may run on, sorted.
    pub cpus_allowed: Vec<u32>,
    /// CPUs of each NUMA node.
    pub numa_nodes: BTreeMap<u32, Vec<u32>>,
    /// Size of a memory page.
    pub page_bytes: u64,
    /// Memory installed.
    pub memory_bytes: u64,
}

impl Default for Facts {
    /// A machine of one CPU, 4 KiB pages and empty disks.
    fn default() -> Facts {
        Facts {
            paths: BTreeMap::new(),
            listings: BTreeMap::new(),
            contents: BTreeMap::new(),
            cpus_online: vec![0],
            cpus_allowed: vec![0],
            numa_nodes: BTreeMap::from([(0, vec![0])]),
            page_bytes: 4096,
            memory_bytes: 1 << 30,
        }
    }
}

impl Facts {
    /// What is known of a path.
    pub fn path(&self, path: &Path) -> PathFacts {
        self.paths.get(path).cloned().unwrap_or_else(PathFacts::absent)
    }
}

/// What the host must be asked about before a plan can be built. Each list is sorted and without repeats.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Needs {
    /// Targets and directories: `Facts::paths`.
    pub paths: Vec<PathBuf>,
    /// Directories whose files become targets (`opendir`): `Facts::listings`. The files found there are targets too:
    /// ask about them as about `paths`.
    pub directories: Vec<PathBuf>,
    /// Files whose contents are used (`buffer_pattern='file'`): `Facts::contents`.
    pub contents: Vec<PathBuf>,
}

/// Settings of the run that decide about a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunSettings {
    /// Nothing may be written or trimmed (`--readonly`).
    pub readonly: bool,
    /// Workers allowed in all (`--max-jobs`); `None` for no limit.
    pub max_jobs: Option<u32>,
    /// Randomness of this run, for jobs that ask not to be repeatable.
    pub entropy: u64,
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings { readonly: false, max_jobs: None, entropy: 0x5eed }
    }
}

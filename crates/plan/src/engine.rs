//! Descriptions of engines as the planner needs them, and the engine of a job with its settings.
//!
//! Invariant: no engine is named here. Engines are above this crate and describe themselves; their descriptors are
//! passed in with the facts.

use std::any::Any;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fiord_errno::Errno;
use fiord_options::Spec;
use fiord_options::job::JobOptions;
use fiord_options::value::EngineName;

use crate::engine_tests::EngineTests;
use crate::example::Example;
use crate::files::as_file_name;
use crate::presentation::RateUnit;
use crate::priority::PriorityRequests;

/// The description of an engine: the one constant in its file, from which everything else about it is derived.
#[derive(Debug, Clone, Copy)]
pub struct EngineDescriptor {
    /// fio's name of it.
    pub name: EngineName,
    /// What it does, in one line.
    pub summary: &'static str,
    /// How many I/Os it keeps in flight.
    pub queueing: Queueing,
    /// What it does with the job's files.
    pub files: FileUse,
    /// Asks a target for its size and block, where `stat` does not tell them: that of a volume or a character device.
    pub geometry: Option<AskGeometry>,
    /// Its own settings, from the job's options.
    pub settings: fn(&JobOptions) -> EngineSettings,
    /// Which I/Os get a priority of their own, from the job's options, if it passes priorities on with its requests.
    pub priorities: Option<fn(&JobOptions) -> PriorityRequests>,
    /// Whether its writes can be atomic (`RWF_ATOMIC`), as `atomic` asks.
    pub atomic_writes: bool,
    /// Whether its I/Os are done by threads that serve all jobs of the process, or by a library that keeps descriptors for all of
    /// them: these jobs then have no tables of file descriptors of their own, since a number would name another file in each.
    pub shares_threads: bool,
    /// Whether its data begin or end in memory of a GPU.
    pub is_of_gpus: bool,
    /// The most ranges of one trim.
    pub trim_ranges_max: u32,
    /// Whether its writes name the placement of their data, as `dataplacement` asks.
    pub names_placements: bool,
    /// Whether its writes can be appended to zones, as `write_mode=zone_append` asks.
    pub appends_to_zones: bool,
    /// The option that has the device compare what was written in place of reading it back, if it is set so; only of engines
    /// whose devices can.
    pub compares: Option<fn(&EngineSettings) -> Option<&'static Spec>>,
    /// The likely cause of an errno that a read or write ended with, and what to do, where its settings tell more than
    /// the number does.
    pub explain: fn(&EngineSettings, errno: i32) -> Option<&'static str>,
    /// If its I/Os are cycles of other work, how they follow each other: a job on it has no targets, and its I/Os no bytes.
    pub cycle: Option<fn(&EngineSettings) -> Cycle>,
    /// A setting without which it cannot work, if that is missing.
    pub missing: fn(&EngineSettings) -> Option<MissingSetting>,
    /// Files that the engine writes besides the job's targets, for a job of this name.
    pub outputs: fn(&EngineSettings, &OsStr) -> Vec<EngineOutput>,
    /// How to use it; every engine of the registry has one.
    pub example: Option<Example>,
    /// The tests that it is put to; every engine of the registry names them.
    pub tests: Option<EngineTests>,
}

impl EngineDescriptor {
    /// Of an engine that executes one operation at a time on the job's open files, and has no settings of its own.
    pub const fn synchronous(name: EngineName, summary: &'static str) -> EngineDescriptor {
        EngineDescriptor::of(name, summary, Queueing::Synchronous)
    }

    /// Of an engine on the job's open files without settings of its own.
    pub const fn of(name: EngineName, summary: &'static str, queueing: Queueing) -> EngineDescriptor {
        EngineDescriptor {
            name,
            summary,
            queueing,
            files: FileUse::Opened,
            geometry: None,
            settings: |_| EngineSettings::new(()),
            priorities: None,
            atomic_writes: false,
            shares_threads: false,
            is_of_gpus: false,
            trim_ranges_max: 1,
            names_placements: false,
            appends_to_zones: false,
            compares: None,
            explain: |_, _| None,
            cycle: None,
            missing: |_| None,
            outputs: |_, _| Vec::new(),
            example: None,
            tests: None,
        }
    }

    /// Whether it can keep several I/Os in flight.
    pub fn can_queue(&self) -> bool {
        match self.queueing {
            Queueing::Synchronous => false,
            Queueing::Queued | Queueing::QueuedIfDirect | Queueing::ByDepth => true,
        }
    }

    /// Whether it waits for each buffered I/O while submitting it, so that `iodepth` has no effect on it.
    pub fn blocks_when_buffered(&self) -> bool {
        match self.queueing {
            Queueing::QueuedIfDirect => true,
            Queueing::Synchronous | Queueing::Queued | Queueing::ByDepth => false,
        }
    }

    /// Whether it is given descriptors of the job's files, which are paths of this machine.
    pub fn touches_files(&self) -> bool {
        match self.files {
            FileUse::Untouched | FileUse::Named | FileUse::Connected(_) => false,
            FileUse::Opened
            | FileUse::Device
            | FileUse::Mapped
            | FileUse::Persistent
            | FileUse::Resized
            | FileUse::ByName(_) => true,
        }
    }

    /// Whether it moves data between files or block devices of any kind and memory.
    pub fn transfers_files(&self) -> bool {
        self.touches_files() && self.transfers_data() && !self.bypasses_cache()
    }

    /// The call that it makes for each file or directory by its name, if that is what it does.
    pub fn name_call(&self) -> Option<NameCall> {
        let FileUse::ByName(call) = self.files else { return None };
        Some(call)
    }

    /// Whether it opens its targets itself, by their names.
    pub fn names_targets(&self) -> bool {
        match self.files {
            FileUse::Named | FileUse::Connected(_) => true,
            FileUse::Untouched
            | FileUse::Opened
            | FileUse::Device
            | FileUse::Mapped
            | FileUse::Persistent
            | FileUse::Resized
            | FileUse::ByName(_) => false,
        }
    }

    /// Whether it is handed open files, which a pool of threads can be handed as well.
    pub const fn takes_open_files(&self) -> bool {
        let opens_itself = matches!(self.files, FileUse::Named | FileUse::Connected(_) | FileUse::ByName(_));
        !opens_itself && self.cycle.is_none()
    }

    /// The unit of its rates, if its targets are connections: they have neither offsets nor sizes, begin with each loop,
    /// and end when the other end is closed.
    pub fn connects(&self) -> Option<RateUnit> {
        let FileUse::Connected(unit) = self.files else { return None };
        Some(unit)
    }

    /// Whether it maps them: a mapping cannot grow a file, and keeps its pages in the cache if it goes through that.
    pub fn maps_files(&self) -> bool {
        match self.files {
            FileUse::Mapped | FileUse::Persistent => true,
            FileUse::Untouched
            | FileUse::Opened
            | FileUse::Device
            | FileUse::Resized
            | FileUse::Named
            | FileUse::ByName(_)
            | FileUse::Connected(_) => false,
        }
    }

    /// Whether the mapping of a target is the medium itself, and not the kernel's cache of it.
    pub fn maps_medium(&self) -> bool {
        self.maps_files() && self.bypasses_cache()
    }

    /// Whether it goes past the page cache by itself, on targets of special kinds that do not open with `O_DIRECT`.
    pub fn bypasses_cache(&self) -> bool {
        match self.files {
            FileUse::Device | FileUse::Persistent => true,
            FileUse::Untouched
            | FileUse::Opened
            | FileUse::Mapped
            | FileUse::Resized
            | FileUse::Named
            | FileUse::ByName(_)
            | FileUse::Connected(_) => false,
        }
    }

    /// Whether it changes the space or size of files, in any direction.
    pub fn resizes_files(&self) -> bool {
        match self.files {
            FileUse::Resized => true,
            FileUse::Untouched
            | FileUse::Opened
            | FileUse::Device
            | FileUse::Mapped
            | FileUse::Persistent
            | FileUse::Named
            | FileUse::ByName(_)
            | FileUse::Connected(_) => false,
        }
    }

    /// Whether it moves data between them and memory, which can be verified afterwards.
    pub fn transfers_data(&self) -> bool {
        match self.files {
            FileUse::Opened
            | FileUse::Device
            | FileUse::Mapped
            | FileUse::Persistent
            | FileUse::Named
            | FileUse::Connected(_) => true,
            FileUse::Untouched | FileUse::Resized | FileUse::ByName(_) => false,
        }
    }
}

/// How many I/Os an engine keeps in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    /// One, regardless of `iodepth`.
    Synchronous,
    /// `iodepth`.
    Queued,
    /// The same, but only if its I/O is direct.
    QueuedIfDirect,
    /// As many as `iodepth` says, but at a depth of 1 a job takes it as a synchronous engine.
    ByDepth,
}

impl Queueing {
    /// Whether the engine is a queued one at every depth.
    pub fn is_queued(self) -> bool {
        match self {
            Queueing::Queued | Queueing::QueuedIfDirect => true,
            Queueing::Synchronous | Queueing::ByDepth => false,
        }
    }
}

/// What an engine does with a job's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileUse {
    /// Nothing: they need not exist.
    Untouched,
    /// I/O on their descriptors.
    Opened,
    /// Commands to the devices behind their descriptors, past the page cache. They are opened without `O_DIRECT`, which such
    /// devices do not take.
    Device,
    /// Copies to and from a mapping.
    Mapped,
    /// Copies to and from a mapping of persistent memory, past the page cache: the memory is the medium.
    Persistent,
    /// Calls on their descriptors that allocate space or set their sizes; no data.
    Resized,
    /// I/O on targets that the engine opens by their names, which are not paths of this machine: volumes, objects,
    /// addresses.
    Named,
    /// I/O on connections that the engine makes, by names too. Rates are in this unit unless `unit_base` says otherwise.
    Connected(RateUnit),
    /// One call for each file or directory, by its name, in each pass: its first I/O makes the call, the others only
    /// count.
    ByName(NameCall),
}

/// How the cycles of an engine that does other work than I/O follow each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cycle {
    /// The pause between two, in microseconds.
    pub pause_us: u64,
    /// Whether the job ends when all jobs that do I/O have ended.
    pub ends_with_io: bool,
}

/// A setting that an engine cannot work without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MissingSetting {
    /// The option that sets it.
    pub option: &'static Spec,
    /// What is missing.
    pub message: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// A file that an engine writes.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineOutput {
    /// Its path.
    pub path: PathBuf,
    /// The option that causes it.
    pub option: &'static Spec,
    /// Whether a file that is there is opened as it is; it is emptied otherwise.
    pub is_kept: bool,
    /// Whether the user gave the path, rather than the engine making it of the job's name.
    pub is_given: bool,
}

/// A call on the name of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameCall {
    /// What it does.
    pub purpose: NamePurpose,
    /// Whether the names are those of directories; of regular files otherwise.
    pub directories: bool,
}

/// What a call on a name does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamePurpose {
    /// Makes what has the name.
    Create,
    /// Looks it up.
    Look,
    /// Removes it.
    Remove,
}

/// Asks a target for its geometry.
pub type AskGeometry = fn(&EngineSettings, &Path) -> Result<Geometry, NoGeometry>;

/// What an engine finds of a target when it asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Its size; `None` if it has none of its own, and that of the job applies.
    pub size_bytes: Option<u64>,
    /// The unit of its offsets and lengths.
    pub block_bytes: u64,
}

/// Why a target could not be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoGeometry {
    /// The error.
    pub errno: Errno,
    /// What failed and what to do, as it follows the target's name and a colon.
    pub reason: String,
}

/// The engines of this program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Engines(pub &'static [&'static EngineDescriptor]);

impl Engines {
    /// The engine of that name, if it is built in.
    pub fn find(self, name: EngineName) -> Option<&'static EngineDescriptor> {
        self.0.iter().copied().find(|engine| engine.name == name)
    }

    /// The names of all, in the order in which they are listed.
    pub fn names(self) -> Vec<EngineName> {
        self.0.iter().map(|engine| engine.name).collect()
    }
}

impl PartialEq for Engines {
    fn eq(&self, other: &Engines) -> bool {
        self.names() == other.names()
    }
}

impl Eq for Engines {}

/// The engine of a job, with its settings.
#[derive(Clone)]
pub struct PlannedEngine {
    /// Which.
    pub descriptor: &'static EngineDescriptor,
    /// The engine's own settings.
    pub settings: EngineSettings,
}

impl PlannedEngine {
    /// fio's name of the engine.
    pub fn name(&self) -> EngineName {
        self.descriptor.name
    }

    /// How its cycles follow each other, if they are not I/O.
    pub fn cycle(&self) -> Option<Cycle> {
        self.descriptor.cycle.map(|cycle| cycle(&self.settings))
    }

    /// Files that the engine writes besides the job's targets, for a job of this name.
    pub fn outputs(&self, job: &OsStr) -> Vec<EngineOutput> {
        (self.descriptor.outputs)(&self.settings, &as_file_name(job))
    }
}

impl fmt::Debug for PlannedEngine {
    /// `libaio(Settings { … })`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name().word()).field(&self.settings).finish()
    }
}

impl PartialEq for PlannedEngine {
    fn eq(&self, other: &PlannedEngine) -> bool {
        self.name() == other.name() && self.settings == other.settings
    }
}

/// Settings of one engine, of a type that only the engine knows.
#[derive(Clone)]
pub struct EngineSettings(Arc<dyn Settings>);

impl EngineSettings {
    /// These settings.
    pub fn new<T: Any + fmt::Debug + PartialEq + Send + Sync>(settings: T) -> EngineSettings {
        EngineSettings(Arc::new(settings))
    }

    /// The settings, if they are of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        let settings: &dyn Any = &*self.0;
        settings.downcast_ref()
    }
}

impl fmt::Debug for EngineSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for EngineSettings {
    fn eq(&self, other: &EngineSettings) -> bool {
        self.0.is_equal(other)
    }
}

/// What settings of every type have in common.
trait Settings: Any + fmt::Debug + Send + Sync {
    /// Whether the others are of the same type and equal.
    fn is_equal(&self, others: &EngineSettings) -> bool;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Settings for T {
    fn is_equal(&self, others: &EngineSettings) -> bool {
        others.get::<T>() == Some(self)
    }
}

/// Queue depth and batches, in I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// I/Os kept in flight, at least 1.
    pub max: u32,
    /// I/Os submitted at once, at least 1.
    pub submit: u32,
    /// Completions waited for at once (0: only poll).
    pub complete_min: u32,
    /// Maximum completions reaped at once; `None` reaps all that have completed, where fio reaps one at a time.
    pub complete_max: Option<u32>,
    /// When the queue was full, refill once it has drained to this.
    pub low: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_equal_when_type_and_value_are() {
        let three = EngineSettings::new(3_u32);
        assert_eq!(three, EngineSettings::new(3_u32));
        assert_ne!(three, EngineSettings::new(4_u32));
        assert_ne!(three, EngineSettings::new(3_u64));
        assert_eq!((three.get::<u32>(), three.get::<u64>()), (Some(&3), None));
        assert_eq!(format!("{three:?}"), "3");
    }
}

//! What I/O buffers are made of, and when writes are pushed out.
//!
//! Invariant: the name of a file is kept byte for byte; nothing here looks for the file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::choice::unknown_word;
use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;
use super::number::integer;
use crate::shown::{self, shown};

/// Backing of a job's I/O buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Kind of memory.
    pub kind: MemoryKind,
    /// File to map, for the kinds that map one (`mmap:/path`).
    pub file: Option<PathBuf>,
}

/// Kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Anonymous memory from the allocator.
    Malloc,
    /// A shared memory segment.
    Shm,
    /// A shared memory segment of huge pages.
    ShmHuge,
    /// A private mapping.
    Mmap,
    /// A mapping of huge pages.
    MmapHuge,
    /// A shared mapping.
    MmapShared,
    /// Memory of a GPU, beside memory from the allocator.
    CudaMalloc,
}

impl MemoryKind {
    fn word(self) -> &'static str {
        match self {
            MemoryKind::Malloc => "malloc",
            MemoryKind::Shm => "shm",
            MemoryKind::ShmHuge => "shmhuge",
            MemoryKind::Mmap => "mmap",
            MemoryKind::MmapHuge => "mmaphuge",
            MemoryKind::MmapShared => "mmapshared",
            MemoryKind::CudaMalloc => "cudamalloc",
        }
    }
}

impl Value for Memory {
    const KIND: ValueKind = ValueKind::WordWithFile;
    const CHOICES: &'static [Choice] = &[
        Choice { word: "malloc", help: "Memory from the allocator." },
        Choice { word: "shm", help: "A System V shared memory segment." },
        Choice { word: "shmhuge", help: "A shared memory segment of huge pages." },
        Choice { word: "mmap", help: "A mapping, anonymous or of a file: `mmap:/path`." },
        Choice { word: "mmaphuge", help: "A mapping of huge pages: `mmaphuge:/path/on/hugetlbfs`." },
        Choice { word: "mmapshared", help: "A shared mapping, anonymous or of a file." },
        Choice {
            word: "cudamalloc",
            help: "Memory of the first GPU: what is read is copied there, what is written from there.",
        },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<Memory, String> {
        Self::parse_bytes(OsStr::new(text), reading)
    }

    fn parse_bytes(bytes: &OsStr, reading: &mut Reading) -> Result<Memory, String> {
        let bytes = bytes.as_bytes();
        let end = bytes.iter().position(|byte| matches!(byte, b':' | b',')).unwrap_or(bytes.len());
        let word = shown(OsStr::from_bytes(&bytes[..end]));
        let rest = OsStr::from_bytes(bytes.get(end + 1..).unwrap_or_default());
        let kind = match word.as_str() {
            "malloc" => MemoryKind::Malloc,
            "shm" => MemoryKind::Shm,
            "shmhuge" => MemoryKind::ShmHuge,
            "mmap" => MemoryKind::Mmap,
            "mmaphuge" => MemoryKind::MmapHuge,
            "mmapshared" => MemoryKind::MmapShared,
            "cudamalloc" => MemoryKind::CudaMalloc,
            _ => return Err(unknown_word(&word, Self::CHOICES, reading)),
        };
        let mapped = matches!(kind, MemoryKind::Mmap | MemoryKind::MmapHuge | MemoryKind::MmapShared);
        if !rest.is_empty() && !mapped {
            reading.note(format!("{word} maps no file: \"{}\" is ignored", shown(rest)));
        }
        Ok(Memory { kind, file: (mapped && !rest.is_empty()).then(|| PathBuf::from(rest)) })
    }

    fn print(&self) -> String {
        match &self.file {
            Some(file) => format!("{}:{}", self.kind.word(), shown::text(file)),
            None => self.kind.word().to_string(),
        }
    }
}

/// Use of `sync_file_range(2)`: `wait_before,write:8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncFileRange {
    /// Wait for writeback already under way.
    pub wait_before: bool,
    /// Start writeback.
    pub write: bool,
    /// Wait for it.
    pub wait_after: bool,
    /// Writes between two calls; 0 for no calls.
    pub every_writes: u32,
}

impl Value for SyncFileRange {
    const KIND: ValueKind = ValueKind::WordsWithCount;
    const CHOICES: &'static [Choice] = &[
        Choice { word: "wait_before", help: "Wait for writeback already under way." },
        Choice { word: "write", help: "Start writeback." },
        Choice { word: "wait_after", help: "Wait for the writeback started." },
    ];

    fn parse(text: &str, reading: &mut Reading) -> Result<SyncFileRange, String> {
        let (words, count) = text.split_once(':').unwrap_or((text, ""));
        let mut value =
            SyncFileRange { wait_before: false, write: false, wait_after: false, every_writes: 0 };
        for word in words.split(',').filter(|word| !word.is_empty()) {
            match word {
                "wait_before" => value.wait_before = true,
                "write" => value.write = true,
                "wait_after" => value.wait_after = true,
                _ => return Err(unknown_word(word, Self::CHOICES, reading)),
            }
        }
        if !(value.wait_before || value.write || value.wait_after) {
            return Err(format!("{text:?} contains none of the allowed words"));
        }
        if count.is_empty() {
            reading.note(format!("{text:?} has no number of writes after a colon, so nothing is synced"));
            return Ok(value);
        }
        value.every_writes = u32::try_from(integer(count, reading)?)
            .map_err(|_| format!("{count:?} in {text:?} is not a number of writes"))?;
        Ok(value)
    }

    fn print(&self) -> String {
        let words =
            [(self.wait_before, "wait_before"), (self.write, "write"), (self.wait_after, "wait_after")];
        let words: Vec<&str> = words.iter().filter(|(on, _)| *on).map(|(_, word)| *word).collect();
        format!("{}:{}", words.join(","), self.every_writes)
    }
}

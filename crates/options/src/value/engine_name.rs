//! The engines that fio has, by name.
//!
//! Invariant: every engine that fio 3.42 has on some system is listed once, whether fiord has it or not.

use std::fmt;

use super::contract::{Choice, Reading, Value};
use super::kind::ValueKind;

/// Declares the engines: each a variant, its name and what it does.
macro_rules! engines {
    ($($variant:ident = $word:literal, $help:literal;)+) => {
        /// An engine that fio has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EngineName {
            $(
                #[doc = $help]
                $variant,
            )+
        }

        impl EngineName {
            /// Every engine that fio 3.42 has on some system.
            pub const ALL: &'static [EngineName] = &[$(EngineName::$variant),+];

            /// fio's name of it.
            pub const fn word(self) -> &'static str {
                match self {
                    $(EngineName::$variant => $word,)+
                }
            }

            /// What it does, in one sentence.
            pub const fn help(self) -> &'static str {
                match self {
                    $(EngineName::$variant => $help,)+
                }
            }

            /// The engine of exactly this name.
            pub fn from_word(word: &str) -> Option<EngineName> {
                match word {
                    $($word => Some(EngineName::$variant),)+
                    _ => None,
                }
            }
        }

        /// The words that `ioengine` takes.
        const CHOICES: &[Choice] = &[$(Choice { word: $word, help: $help }),+];
    };
}

engines! {
    Sync = "sync", "read(2) and write(2), with lseek(2).";
    Psync = "psync", "pread(2) and pwrite(2).";
    Vsync = "vsync", "readv(2) and writev(2) of neighbouring blocks.";
    Pvsync = "pvsync", "preadv(2) and pwritev(2).";
    Pvsync2 = "pvsync2", "preadv2(2) and pwritev2(2).";
    Libaio = "libaio", "Linux asynchronous I/O (io_submit(2)).";
    IoUring = "io_uring", "Linux io_uring.";
    Mmap = "mmap", "Memory copied to and from a mapping of the file.";
    Null = "null", "No I/O at all: measures the tool itself.";
    IoUringCmd = "io_uring_cmd", "NVMe commands passed through io_uring.";
    Posixaio = "posixaio", "POSIX asynchronous I/O.";
    Splice = "splice", "splice(2) and vmsplice(2).";
    Netsplice = "netsplice", "splice(2) over a network connection.";
    Net = "net", "A network connection.";
    Sg = "sg", "SCSI generic commands.";
    Cpuio = "cpuio", "Work for the CPU instead of I/O.";
    E4defrag = "e4defrag", "Moves of extents on ext4.";
    Falloc = "falloc", "fallocate(2) in place of reads, writes and trims.";
    Ftruncate = "ftruncate", "ftruncate(2) in place of writes.";
    Filecreate = "filecreate", "Creation of files.";
    Filestat = "filestat", "stat(2) of files.";
    Filedelete = "filedelete", "Removal of files.";
    Dircreate = "dircreate", "Creation of directories.";
    Dirstat = "dirstat", "stat(2) of directories.";
    Dirdelete = "dirdelete", "Removal of directories.";
    Exec = "exec", "A program of the user's.";
    PageFault = "page_fault", "Page faults on a mapping.";
    Mtd = "mtd", "Raw flash behind the MTD layer.";
    External = "external", "An engine loaded from a file.";
    Rbd = "rbd", "Ceph block devices through librbd.";
    Rados = "rados", "Ceph objects through librados.";
    Rdma = "rdma", "Memory of another machine, or messages, over RDMA.";
    Gfapi = "gfapi", "GlusterFS, one request at a time.";
    GfapiAsync = "gfapi_async", "GlusterFS, asynchronously.";
    Libhdfs = "libhdfs", "Hadoop's file system.";
    Http = "http", "Objects over HTTP, WebDAV, S3 or Swift.";
    Nbd = "nbd", "Network block devices.";
    Dfs = "dfs", "DAOS file system.";
    Nfs = "nfs", "NFS from user space.";
    Libcufile = "libcufile", "NVIDIA GPUDirect Storage through libcufile.";
    CppNull = "cpp_null", "No I/O, as an example of an external engine in C++.";
    Libiscsi = "libiscsi", "iSCSI from user space.";
    Libblkio = "libblkio", "Block devices through libblkio.";
    Xnvme = "xnvme", "NVMe through xNVMe.";
    Libzbc = "libzbc", "Zoned block devices through libzbc.";
    Libpmem = "libpmem", "Persistent memory through libpmem.";
    DevDax = "dev-dax", "Persistent memory as a DAX device.";
    Pmemblk = "pmemblk", "Persistent memory through libpmemblk.";
    ImePsync = "ime_psync", "DDN IME, one request at a time.";
    ImePsyncv = "ime_psyncv", "DDN IME, vectored.";
    ImeAio = "ime_aio", "DDN IME, asynchronously.";
    Solarisaio = "solarisaio", "Solaris asynchronous I/O.";
    Windowsaio = "windowsaio", "Windows asynchronous I/O.";
    Guasi = "guasi", "Asynchronous system calls through GUASI.";
}

/// Why fiord will not have an engine, and what measures the nearest thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, as the end of a sentence.
    pub reason: &'static str,
    /// What to use, as a sentence's second half.
    pub instead: &'static str,
}

impl EngineName {
    /// Why fiord will never have it; `None` if it has it, or may.
    pub const fn refusal(self) -> Option<Refusal> {
        let (reason, instead) = match self {
            EngineName::IoUring | EngineName::IoUringCmd if cfg!(not(target_pointer_width = "64")) => (
                "fiord knows the layout of its rings on 64-bit processors alone",
                "use ioengine=libaio, with direct=1",
            ),
            EngineName::Windowsaio => {
                ("it is an interface of Windows", "use ioengine=libaio or io_uring, with direct=1")
            }
            EngineName::Solarisaio => ("it is an interface of Solaris", "use ioengine=posixaio"),
            EngineName::Guasi => ("its library is no longer maintained", "use ioengine=posixaio or io_uring"),
            EngineName::External => (
                "such files are made for structures inside fio, which fiord does not have",
                "use the engine nearest to it; `fiord engines` lists them",
            ),
            EngineName::CppNull => ("it is an example for authors of fio's engines", "use ioengine=null"),
            EngineName::Libhdfs => (
                "it runs Hadoop's client in a Java machine inside the program, which would be measured too",
                "mount HDFS (its NFS gateway or hadoop-fuse-dfs) and use ioengine=psync there",
            ),
            EngineName::Xnvme => (
                "its library is a layer above interfaces that fiord uses itself",
                "use ioengine=io_uring on the namespace",
            ),
            EngineName::ImePsync | EngineName::ImePsyncv | EngineName::ImeAio => (
                "it needs the client library of DDN's IME, which is not public",
                "use ioengine=psync or libaio on IME's mount",
            ),
            EngineName::Dfs => (
                "it needs the client libraries of DAOS",
                "mount the container with dfuse and use ioengine=psync or io_uring there",
            ),
            EngineName::Pmemblk => (
                "its library was withdrawn by its authors (PMDK 2.0)",
                "use ioengine=libpmem on a file of the same file system",
            ),
            EngineName::Libblkio => (
                "its library is not part of Debian 12, and the kernel drives the same devices",
                "use ioengine=io_uring on the block device",
            ),
            EngineName::Libzbc => (
                "its library is not part of Debian 12, and is a layer above commands that the kernel sends itself",
                "use ioengine=io_uring, libaio or psync on the block device, with zonemode=zbd",
            ),
            _ => return None,
        };
        Some(Refusal { reason, instead })
    }

    /// Their names, with this between them.
    pub fn join(engines: &[EngineName], separator: &str) -> String {
        let words: Vec<&str> = engines.iter().map(|engine| engine.word()).collect();
        words.join(separator)
    }
}

impl Default for EngineName {
    /// The engine of a job that names none.
    fn default() -> EngineName {
        EngineName::Psync
    }
}

impl fmt::Display for EngineName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.word())
    }
}

impl Value for EngineName {
    const KIND: ValueKind = ValueKind::Engine;
    const CHOICES: &'static [Choice] = CHOICES;

    fn parse(text: &str, reading: &mut Reading) -> Result<EngineName, String> {
        match NamedEngine::of(text) {
            NamedEngine::Known(engine) => Ok(engine),
            NamedEngine::Unknown(name) => {
                reading.suggest(&name, EngineName::ALL.iter().map(|engine| engine.word()));
                // In the words that scripts look for.
                Err(format!("engine {name} not loadable: neither fio nor fiord has an engine of this name"))
            }
        }
    }

    fn print(&self) -> String {
        self.word().to_string()
    }
}

/// The engine that a value of `ioengine` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedEngine {
    /// One that fio has.
    Known(EngineName),
    /// None: the name as written.
    Unknown(String),
}

impl NamedEngine {
    /// Reads a value of `ioengine`: the text after a colon is for the engine itself, and every name that begins with
    /// `aio` or `linuxaio` is libaio.
    pub fn of(value: &str) -> NamedEngine {
        if value.starts_with("aio") || value.starts_with("linuxaio") {
            return NamedEngine::Known(EngineName::Libaio);
        }
        let word = value.split(':').next().unwrap_or(value);
        EngineName::from_word(word).map_or_else(|| NamedEngine::Unknown(word.to_string()), NamedEngine::Known)
    }

    /// The engine, if fio has it.
    pub fn known(&self) -> Option<EngineName> {
        match self {
            NamedEngine::Known(engine) => Some(*engine),
            NamedEngine::Unknown(_) => None,
        }
    }

    /// Its name, as written where no engine has it.
    pub fn word(&self) -> &str {
        match self {
            NamedEngine::Known(engine) => engine.word(),
            NamedEngine::Unknown(word) => word,
        }
    }
}

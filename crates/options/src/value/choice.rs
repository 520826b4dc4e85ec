//! Options whose value is one of a few words.
//!
//! Invariant: the words, what they mean and the variants they stand for are written once, in one `choices!`.

use super::contract::{Choice, KbBase, Reading, Value};
use super::kind::ValueKind;

/// Declares an enum of words. The first word of a variant is the one printed; `|` adds further spellings.
macro_rules! choices {
    ($(
        $(#[doc = $doc:literal])*
        pub enum $name:ident {
            $(
                #[doc = $help:literal]
                $variant:ident = $word:literal $(| $other:literal)*,
            )*
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $(
                #[doc = $help]
                $variant,
            )*
        }

        words! { $name { $(#[doc = $help] $variant = $word $(| $other)*,)* } }
    )*};
}

/// The words of an enum, and its parser.
macro_rules! words {
    ($name:ident {
        $(
            #[doc = $help:literal]
            $variant:ident = $word:literal $(| $other:literal)*,
        )*
    }) => {
        impl $name {
            /// The word that stands for this.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The variant of exactly this word.
            pub fn from_word(word: &str) -> Option<$name> {
                match word {
                    $($word $(| $other)* => Some($name::$variant),)*
                    _ => None,
                }
            }
        }

        impl Value for $name {
            const KIND: ValueKind = ValueKind::Word;
            const CHOICES: &'static [Choice] = &[$(
                Choice { word: $word, help: unindented($help) },
                $(Choice { word: $other, help: concat!("Same as ", $word, ".") },)*
            )*];

            fn parse(text: &str, reading: &mut Reading) -> Result<$name, String> {
                let (word, rest) = split_word(text);
                let value = $name::from_word(word).ok_or_else(|| unknown_word(word, $name::CHOICES, reading))?;
                if !rest.is_empty() {
                    reading.note(format!("{text:?} is read as {word:?}: the rest is ignored"));
                }
                Ok(value)
            }

            fn print(&self) -> String {
                self.word().to_string()
            }
        }
    };
}

/// A doc comment without the space that `///` leaves in front of it.
pub(crate) const fn unindented(doc: &str) -> &str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

/// The word before the first `:` or `,`, and the text after that separator.
pub(crate) fn split_word(text: &str) -> (&str, &str) {
    text.split_once([':', ',']).unwrap_or((text, ""))
}

/// The error message for a word that is none of the choices.
pub(crate) fn unknown_word(word: &str, choices: &'static [Choice], reading: &mut Reading) -> String {
    reading.suggest(word, choices.iter().map(|choice| choice.word));
    format!("{word:?} is not one of the allowed values")
}

words! {
    KbBase {
        /// `4k` is 4096 and `4KiB` is 4000 (fio's inversion, for old scripts); binary units in reports.
        Binary = "1024",
        /// `4k` is 4000 and `4KiB` is 4096, as in the standards; decimal units in reports.
        Decimal = "1000",
    }
}

choices! {
    /// What is done with findings: reasons why a figure may not mean what its reader thinks.
    pub enum Trust {
    /// No findings.
    Off = "off",
    /// Findings are printed after the report.
    On = "on",
    /// The same, and the exit status is 3 if a finding voids a figure.
        Strict = "strict",
    }

    /// What a condition or a verdict is that the figures do not decide.
    pub enum Undecided {
    /// A result of its own, exit status 6.
        Tell = "tell",
    /// As if it were fulfilled.
        Pass = "pass",
    /// As if it were not.
        Fail = "fail",
    }

    /// What a host does whose controller is lost.
    pub enum OnLost {
        /// It stops, as by SIGTERM.
        Stop = "stop",
        /// It runs to its end.
        Finish = "finish",
    }

    /// What hosts are put into groups by.
    pub enum GroupBy {
        /// The word that the list of hosts has for each.
        Role = "role",
        /// The kernel's release.
        Kernel = "kernel",
        /// The processor's model.
        Processor = "processor",
        /// The processor's architecture.
        Architecture = "architecture",
        /// The models of the disks.
        Disk = "disk",
        /// fiord's version.
        Fiord = "fiord",
    }

    /// Whether the program is copied to hosts.
    pub enum Push {
        /// Where the same program is not there.
        Auto = "auto",
        /// Never.
        Never = "never",
        /// To all.
        Always = "always",
    }

    /// In which order hosts run.
    pub enum HostOrder {
        /// All at once.
        Together = "together",
        /// Each alone, one after another.
        Alone = "alone",
        /// Each alone, one after another, in three rounds: what changes over time is shared by all.
        Interleaved = "interleaved",
    }

    /// Unit that bandwidth is reported in.
    pub enum UnitBase {
    /// Chosen automatically.
        Automatic = "0",
        /// Bytes.
        Bytes = "8",
        /// Bits.
        Bits = "1",
    }

    /// The directions a job works in, and whether offsets are sequential or random.
    pub enum RwKind {
        /// Sequential reads.
        Read = "read",
        /// Sequential writes.
        Write = "write",
        /// Sequential trims.
        Trim = "trim",
        /// Random reads.
        RandRead = "randread",
        /// Random writes.
        RandWrite = "randwrite",
        /// Random trims.
        RandTrim = "randtrim",
        /// Sequential reads and writes mixed.
        ReadWrite = "rw" | "readwrite",
        /// Random reads and writes mixed.
        RandReadWrite = "randrw",
        /// Each block trimmed, then written, in sequence.
        TrimWrite = "trimwrite",
        /// Each block trimmed, then written, at random.
        RandTrimWrite = "randtrimwrite",
    }

    /// Effect of the number after a random `rw=MODE:`.
    pub enum RwSequencer {
    /// That many sequential I/Os before a new random offset.
    Sequential = "sequential",
    /// That many I/Os at the same offset.
        Identical = "identical",
    }

    /// How space is allocated for files before the run.
    pub enum Fallocate {
    /// No allocation.
    None = "none" | "0",
    /// By fallocate(2), if the file system supports it.
        Native = "native",
        /// By posix_fallocate(3).
        Posix = "posix" | "1",
        /// By fallocate(2), keeping the file's size.
        Keep = "keep",
        /// By extending the file without allocating.
        Truncate = "truncate",
    }

    /// Access pattern announced to the kernel with posix_fadvise(2).
    pub enum FadviseHint {
        /// No hint.
        None = "0",
        /// Sequential or random access, as the job's `rw` is.
        Workload = "1",
        /// Random access.
        Random = "random",
        /// Sequential access.
        Sequential = "sequential",
        /// Data is used once.
        NoReuse = "noreuse",
    }

    /// Write lifetime hint.
    pub enum WriteHint {
        /// No particular lifetime.
        None = "none",
        /// Short-lived data.
        Short = "short",
        /// Medium-lived data.
        Medium = "medium",
        /// Long-lived data.
        Long = "long",
        /// Extremely long-lived data.
        Extreme = "extreme",
    }

    /// What every write waits for.
    pub enum SyncMode {
        /// Nothing.
        None = "none" | "0",
        /// Data and metadata (O_SYNC).
        Sync = "sync" | "1",
        /// Data (O_DSYNC).
        Dsync = "dsync",
    }

    /// Whether requests of HTTP are encrypted.
    pub enum Https {
        /// No TLS.
        Off = "off" | "0",
        /// TLS, and the server's certificate must be one that this machine trusts.
        On = "on" | "1",
        /// TLS with any certificate.
        Insecure = "insecure",
    }

    /// Interface of a store of objects.
    pub enum HttpMode {
        /// WebDAV.
        WebDav = "webdav",
        /// Amazon S3.
        S3 = "s3",
        /// OpenStack Swift.
        Swift = "swift",
    }

    /// What an object of HTTP is.
    pub enum HttpObjectMode {
        /// A block of a file.
        Block = "block",
        /// A file; a block is a range of it.
        Range = "range",
    }

    /// Way between files and GPUs.
    pub enum CudaIo {
        /// cuFile's calls, on memory of the GPU. Needs `direct=1`.
        Cufile = "cufile",
        /// read(2) and write(2) on memory of this machine, which is copied to the GPU after reads and from it before writes.
        Posix = "posix",
    }

    /// Clock that times are read from.
    pub enum ClockSource {
        /// Microseconds, as gettimeofday(2) has them, but unmoved by steps of the time of day.
        GetTimeOfDay = "gettimeofday",
        /// clock_gettime(2), the monotonic clock.
        ClockGetTime = "clock_gettime",
        /// The processor's own counter.
        Cpu = "cpu",
    }

    /// Generator of random offsets.
    pub enum RandomGenerator {
        /// Each block once per pass, unless `norandommap` is set.
        Tausworthe = "tausworthe",
        /// Each block once per pass, even with `norandommap`, if all blocks have the same size.
        Lfsr = "lfsr",
        /// Same as tausworthe: fiord's random numbers always have 64 bits.
        Tausworthe64 = "tausworthe64",
    }

    /// How the I/Os of a rate are spaced.
    pub enum RateProcess {
        /// Evenly.
        Linear = "linear",
        /// As a Poisson process: exponentially distributed gaps.
        Poisson = "poisson",
    }

    /// Whether the I/Os of a rate arrive independently of each other.
    pub enum RateArrivals {
        /// Each is due after the one before it.
        Closed = "closed",
        /// They arrive whatever the device does.
        Open = "open",
    }

    /// The I/Os that `thinktime_blocks` counts.
    pub enum ThinktimeBlocksType {
    /// Completed I/Os.
    Complete = "complete",
    /// Issued I/Os.
        Issue = "issue",
    }

    /// How CPUs are distributed among the workers of a job.
    pub enum CpusAllowedPolicy {
        /// Every worker may use all of them.
        Shared = "shared",
        /// Every worker has its own CPU.
        Split = "split",
    }

    /// What `exitall` stops.
    pub enum ExitWhat {
        /// The jobs of the same group.
        Group = "group",
        /// The jobs running now; those after the next stonewall still run.
        Stonewall = "stonewall",
        /// All jobs, including those that have not started.
        All = "all",
    }

    /// How directions are reported.
    pub enum UnifiedRwReporting {
        /// Each direction separately.
        None = "none" | "0",
        /// The sum of all directions.
        Mixed = "mixed" | "1",
        /// Each direction separately, then the sum.
        Both = "both" | "2",
    }

    /// Errors after which a job continues.
    pub enum ContinueOnError {
        /// None: the first error ends the job.
        None = "none" | "0",
        /// Errors of reads.
        Read = "read",
        /// Errors of writes.
        Write = "write",
        /// Errors of any I/O.
        Io = "io",
        /// Errors found by verification.
        Verify = "verify",
        /// All errors.
        All = "all" | "1",
    }

    /// Type that files must have.
    pub enum FileType {
    /// Any type.
        Detect = "none",
        /// Regular files.
        File = "file",
        /// Block devices.
        Block = "block",
        /// Character devices.
        Char = "char",
    }

    /// Locking of files around I/O.
    pub enum LockFile {
        /// No locks.
        None = "none",
        /// One user at a time.
        Exclusive = "exclusive",
        /// Many readers or one writer.
        ReadWrite = "readwrite",
    }

    /// Who submits and completes I/O.
    pub enum IoSubmitMode {
        /// The job's own thread.
        Inline = "inline",
        /// A separate pool of threads.
        Offload = "offload",
    }

    /// How zones are treated.
    pub enum ZoneMode {
        /// No zones.
        None = "none",
        /// Zones of `zonerange` bytes with `zoneskip` bytes between them.
        Strided = "strided",
        /// Zones of a zoned block device.
        Zbd = "zbd",
    }

    /// Checksum or pattern that written data is verified by.
    pub enum Verify {
        /// No verification.
        None = "0",
        /// MD5.
        Md5 = "md5",
        /// CRC-64.
        Crc64 = "crc64",
        /// CRC-32.
        Crc32 = "crc32",
        /// CRC-32C.
        Crc32c = "crc32c" | "crc32c-intel",
        /// CRC-16.
        Crc16 = "crc16",
        /// CRC-7.
        Crc7 = "crc7",
        /// SHA-1.
        Sha1 = "sha1",
        /// SHA-256.
        Sha256 = "sha256",
        /// SHA-512.
        Sha512 = "sha512",
        /// SHA3-224.
        Sha3_224 = "sha3-224",
        /// SHA3-256.
        Sha3_256 = "sha3-256",
        /// SHA3-384.
        Sha3_384 = "sha3-384",
        /// SHA3-512.
        Sha3_512 = "sha3-512",
        /// xxHash.
        Xxhash = "xxhash",
        /// The header alone.
        Meta = "meta",
        /// The pattern of `verify_pattern`.
        Pattern = "pattern",
        /// The pattern of `verify_pattern` after a header.
        PatternHeader = "pattern_hdr",
        /// All steps of verification except for the comparison.
        Null = "null",
    }

    /// Layout of the headers of verified blocks.
    pub enum VerifyHeaderFormat {
        /// The layout of fio 3.33.
        V3_33 = "3.33",
        /// The layout of fio 3.42.
        V3_42 = "3.42",
    }

    /// Which writes are verified.
    pub enum VerifyPolicy {
        /// Those that completed.
        Completed = "completed",
        /// Those that an fsync followed.
        Fsynced = "fsynced",
    }

    /// Value of a log entry for its window.
    pub enum LogWindowValue {
        /// The average.
        Average = "avg" | "0",
        /// The maximum.
        Maximum = "max" | "1",
        /// The average, then the maximum.
        Both = "both",
    }

    /// Where duplicate buffers come from.
    pub enum DedupeMode {
        /// The last write with new contents.
        Repeat = "repeat",
        /// The working set: the first writes, in random order.
        WorkingSet = "working_set",
    }

    /// Protocols of connections.
    pub enum NetProtocol {
        /// Transmission control protocol.
        Tcp = "tcp",
        /// Transmission control protocol over IPv6.
        Tcpv6 = "tcpv6",
        /// User datagrams.
        Udp = "udp",
        /// User datagrams over IPv6.
        Udpv6 = "udpv6",
        /// Unix sockets, addressed by a path.
        Unix = "unix",
        /// Sockets between virtual machines and their host, addressed by a number (CID) and a port.
        Vsock = "vsock",
    }

    /// What one end of an RDMA connection does with the other.
    pub enum RdmaVerb {
        /// Writes to the other end's memory, which does nothing.
        Write = "write",
        /// Reads the other end's memory, which does nothing.
        Read = "read",
        /// Sends messages, which the other end receives.
        Send = "send",
        /// Receives messages, which the other end sends.
        Recv = "recv",
    }

    /// How writes tell a drive where their data belong.
    pub enum DataPlacement {
        /// They do not.
        None = "none",
        /// Flexible data placement: by the placement identifiers of the namespace.
        Fdp = "fdp",
        /// By the number of a stream.
        Streams = "streams",
    }

    /// Commands that an engine passes through.
    pub enum CommandType {
        /// NVMe commands, to the character device of a namespace.
        Nvme = "nvme",
        /// SCSI commands, to a device of bsg (not yet: they need Linux 7.1; the engine sg issues them).
        Bsg = "bsg",
    }

    /// NVMe command that writes are issued as.
    pub enum NvmeWrite {
        /// Write.
        Write = "write",
        /// Write Uncorrectable: reads of the blocks fail afterwards.
        Uncorrectable = "uncor",
        /// Write Zeroes.
        Zeroes = "zeroes",
        /// Verify: the drive reads the blocks and checks them, without a transfer.
        Verify = "verify",
        /// Zone Append: the drive chooses the place in the zone, so that several are in flight there. For `zonemode=zbd`.
        ZoneAppend = "zone_append",
    }

    /// NVMe command that reads back what was written.
    pub enum NvmeVerify {
        /// Read: the data come back and are compared here.
        Read = "read",
        /// Compare: the data that were written are sent, and the drive compares them.
        Compare = "compare",
    }

    /// SCSI command that writes are issued as.
    pub enum ScsiWrite {
        /// WRITE.
        Write = "write",
        /// WRITE AND VERIFY, without a comparison of data.
        WriteAndVerify = "write_and_verify" | "verify",
        /// WRITE SAME: the first block of the buffer is written to all blocks.
        WriteSame = "write_same" | "same",
        /// WRITE SAME without data: the device writes a pattern of its own, usually zeroes.
        WriteSameNoData = "write_same_ndob",
        /// VERIFY without a comparison of data.
        Verify = "verify_bytchk_00",
        /// VERIFY that compares with the buffer.
        VerifyData = "verify_bytchk_01",
        /// VERIFY that compares each block with the first block of the buffer.
        VerifySame = "verify_bytchk_11",
        /// WRITE STREAM.
        WriteStream = "write_stream",
    }

    /// How the placement of the next write is chosen.
    pub enum PlidSelect {
        /// At random.
        Random = "random",
        /// In turn.
        RoundRobin = "roundrobin",
        /// By the offset, as the file of `dp_scheme` says.
        Scheme = "scheme",
    }

    /// What the engine cpuio computes.
    pub enum CpuMode {
        /// An empty loop.
        Noop = "noop",
        /// Sort numbers, which takes more energy.
        Qsort = "qsort",
    }

    /// How the engines filestat and dirstat look a name up.
    pub enum StatType {
        /// Use stat(2).
        Stat = "stat",
        /// Use lstat(2): a symbolic link itself.
        Lstat = "lstat",
        /// Use statx(2).
        Statx = "statx",
    }

    /// When the progress line is shown.
    pub enum EtaWhen {
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
        /// When the output is a terminal.
        Auto = "auto",
    }

    /// How idleness of CPUs is reported.
    pub enum IdleProf {
        /// For the whole machine.
        System = "system",
        /// For each CPU as well.
        Percpu = "percpu",
        /// Calibrate the unit of work and exit.
        Calibrate = "calibrate",
    }
}

//! Private options of `io_uring`, which `io_uring_cmd` shares.
//!
//! Invariant: options that fio looks at for `io_uring_cmd` alone are a set of their own, which `io_uring` accepts without
//! effect, as in fio; a rule of the plan says so.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `io_uring`.
    pub struct IoUring, scope Scope::Engine(&[EngineName::IoUring, EngineName::IoUringCmd]);

    "Engine io_uring" {
        /// Poll for completions instead of waiting for interrupts.
        ///
        /// Needs direct I/O and a device with poll queues.
        hipri: Flag;
        /// Register the I/O buffers with the kernel, so that they are not mapped for each I/O.
        fixedbufs: Flag;
        /// Register the files with the kernel, which then need not look them up for each I/O.
        registerfiles: Flag;
        /// Let a kernel thread submit the I/O.
        ///
        /// The job then submits without system calls, but the thread occupies a CPU.
        sqthread_poll: Flag;
        /// CPU of the thread of `sqthread_poll`.
        sqthread_poll_cpu: u32;
        /// Whether commands carry the buffer's address itself (1) or a vector (0); -1 chooses by kernel version.
        nonvectored: i32 = -1;
        /// Drop pages from the page cache when the I/O is done.
        uncached: u32;
        /// Fail with EAGAIN instead of blocking.
        nowait: bool, in 0..=1;
        /// Have every Nth I/O executed by the kernel's worker threads.
        force_async: u32;
    }
}

options! {
    /// Options of `io_uring_cmd` alone. `io_uring` takes them too, as in fio, without effect.
    pub struct IoUringCmd, scope Scope::Engine(&[EngineName::IoUring, EngineName::IoUringCmd]);

    "Engine io_uring_cmd" {
        /// Kind of commands passed through.
        cmd_type: CommandType = "nvme";
        /// Force unit access for reads: the data come from the medium, not from a cache of the drive.
        readfua: bool = 0, in 0..=1;
        /// Force unit access for writes: a write ends when its data are on the medium.
        writefua: bool = 0, in 0..=1;
        /// Command that writes are issued as, or several with their shares.
        ///
        /// All but `write` and `zone_append` transfer no data of the job, which must not verify what it wrote. Example:
        /// `write_mode=write/40:zeroes/:verify/` has 40 % Write commands; the others share the rest. The commands take
        /// turns in these shares. `zone_append` stands alone, and needs a zoned namespace and `zonemode=zbd`: a zone then has
        /// as many writes in flight as the job, each of at most the zone append size limit of the drive. The place that the
        /// drive chose is in logs (`log_offset`); a job cannot verify what it appended.
        write_mode: NvmeWrites = "write";
        /// Command that reads back what was written.
        ///
        /// With `compare` the job has to have written the blocks itself, because it sends their whole contents.
        verify_mode: NvmeVerify = "read";
        /// Command that reads are issued as.
        #[pending("reads are Read commands")]
        read_mode: Text = "read";
        /// Length of a SCSI command.
        #[pending("only NVMe commands are passed through; use the engine sg for SCSI")]
        cdb_len: Bytes = 0;
        /// Comparison made by a SCSI verify command.
        #[pending("only NVMe commands are passed through; use the engine sg for SCSI")]
        verify_bytchk: Text = 0;
        /// Bytes of the buffer for metadata that each I/O has, for namespaces that keep metadata apart from the data.
        ///
        /// At least the metadata of one block times the blocks of the largest I/O. Not needed if the controller inserts
        /// and removes all of it (`pi_act=1` and metadata that consist of protection information alone).
        md_per_io_size: Bytes = 0;
        /// Whether the controller generates the protection information of writes, and removes it from reads.
        ///
        /// Otherwise fiord generates it, and checks that of reads.
        pi_act: bool = 1, in 0..=1;
        /// Checks of the protection information by the controller, and with `pi_act=0` by fiord.
        ///
        /// `GUARD`, `REFTAG` and `APPTAG`, separated by commas.
        pi_chk: ProtectionChecks;
        /// Application tag of the protection information.
        apptag: u32 = 0x1234, in 0..=0xffff;
        /// Bits of the application tag that are checked.
        apptag_mask: u32 = 0xffff, in 0..=0xffff;
        /// Deallocate the blocks of Write Zeroes commands.
        deac: bool = 0, in 0..=1;
    }
}

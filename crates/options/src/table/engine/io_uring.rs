//! Private options of `io_uring`, which `io_uring_cmd` shares.
//!
//! Invariant: options that fio looks at for `io_uring_cmd` alone are accepted here without effect, as in fio.

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
        /// Force unit access for reads.
        #[ignored("only io_uring_cmd uses it")]
        readfua: bool = 0, in 0..=1;
        /// Force unit access for writes.
        #[ignored("only io_uring_cmd uses it")]
        writefua: bool = 0, in 0..=1;
        /// Command that writes are issued as.
        #[ignored("only io_uring_cmd uses it")]
        write_mode: Text = "write";
        /// Command that verification reads are issued as.
        #[ignored("only io_uring_cmd uses it")]
        verify_mode: Text = "read";
        /// Command that reads are issued as.
        #[ignored("only io_uring_cmd uses it")]
        read_mode: Text = "read";
        /// Kind of commands passed through.
        #[ignored("only io_uring_cmd uses it")]
        cmd_type: Text = "nvme";
        /// Length of a SCSI command.
        #[ignored("only io_uring_cmd uses it")]
        cdb_len: Bytes = 0;
        /// Comparison made by a SCSI verify command.
        #[ignored("only io_uring_cmd uses it")]
        verify_bytchk: Text = 0;
        /// Metadata bytes per I/O.
        #[ignored("only io_uring_cmd uses it")]
        md_per_io_size: Bytes = 0;
        /// Whether the controller generates the protection information.
        #[ignored("only io_uring_cmd uses it")]
        pi_act: bool = 1, in 0..=1;
        /// Checks of the protection information.
        #[ignored("only io_uring_cmd uses it")]
        pi_chk: Text;
        /// Application tag.
        #[ignored("only io_uring_cmd uses it")]
        apptag: u32 = 0x1234;
        /// Mask of the application tag.
        #[ignored("only io_uring_cmd uses it")]
        apptag_mask: u32 = 0xffff;
        /// Deallocate in write-zeroes commands.
        #[ignored("only io_uring_cmd uses it")]
        deac: bool = 0, in 0..=1;
    }
}

//! Private options of `io_uring`, which `io_uring_cmd` shares.
//!
//! Invariant: options that fio looks at for `io_uring_cmd` alone are accepted here without effect, as in fio.

use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

options! {
    /// Options of `io_uring`.
    pub struct IoUring, scope Scope::Engine(&["io_uring", "io_uring_cmd"]);

    "Engine io_uring" {
        /// Poll for completions instead of waiting for interrupts.
        ///
        /// Needs direct I/O and a device with poll queues.
        hipri: Flag;
        /// Register the I/O buffers with the kernel, so that they are not mapped for each I/O.
        fixedbufs: Flag;
        /// Register the files with the kernel, so that they are not looked up for each I/O.
        registerfiles: Flag;
        /// Let a kernel thread submit the I/O.
        ///
        /// Submitting costs the job no system calls; the thread costs a CPU.
        sqthread_poll: Flag;
        /// CPU of the thread of `sqthread_poll`.
        sqthread_poll_cpu: u32;
        /// Whether commands carry the buffer's address itself (1) or a vector (0); -1 chooses by kernel.
        nonvectored: i32 = -1;
        /// Drop pages from the page cache when the I/O is done.
        uncached: u32;
        /// Fail with EAGAIN instead of waiting.
        nowait: bool, in 0..=1;
        /// Have every so manieth I/O done by the kernel's workers.
        force_async: u32;
        /// Share of I/Os with a high priority, in percent.
        #[pending("priorities are set per worker, not per I/O")]
        cmdprio_percentage: PerDirection<u32> = 0, in 0..=100;
        /// Priority class of those I/Os.
        #[dormant("cmdprio_*")]
        cmdprio_class: PerDirection<u32>, in 1..=3;
        /// Priority hint of those I/Os.
        #[dormant("cmdprio_*")]
        cmdprio_hint: PerDirection<u32>, in 0..=1023;
        /// Priority of those I/Os within their class.
        #[dormant("cmdprio_*")]
        cmdprio: PerDirection<u32>, in 0..=7;
        /// Share of I/Os with a high priority, by block size.
        #[pending("priorities are set per worker, not per I/O")]
        cmdprio_bssplit: Text;
        /// Force unit access for reads.
        #[ignored("only io_uring_cmd looks at it")]
        readfua: bool = 0, in 0..=1;
        /// Force unit access for writes.
        #[ignored("only io_uring_cmd looks at it")]
        writefua: bool = 0, in 0..=1;
        /// Command that writes are issued as.
        #[ignored("only io_uring_cmd looks at it")]
        write_mode: Text = "write";
        /// Command that verifying reads are issued as.
        #[ignored("only io_uring_cmd looks at it")]
        verify_mode: Text = "read";
        /// Command that reads are issued as.
        #[ignored("only io_uring_cmd looks at it")]
        read_mode: Text = "read";
        /// Kind of commands passed through.
        #[ignored("only io_uring_cmd looks at it")]
        cmd_type: Text = "nvme";
        /// Length of a SCSI command.
        #[ignored("only io_uring_cmd looks at it")]
        cdb_len: Bytes = 0;
        /// Comparison a SCSI verify command makes.
        #[ignored("only io_uring_cmd looks at it")]
        verify_bytchk: Text = 0;
        /// Metadata bytes per I/O.
        #[ignored("only io_uring_cmd looks at it")]
        md_per_io_size: Bytes = 0;
        /// Whether the controller makes the protection information.
        #[ignored("only io_uring_cmd looks at it")]
        pi_act: bool = 1, in 0..=1;
        /// Checks of the protection information.
        #[ignored("only io_uring_cmd looks at it")]
        pi_chk: Text;
        /// Application tag.
        #[ignored("only io_uring_cmd looks at it")]
        apptag: u32 = 0x1234;
        /// Mask of the application tag.
        #[ignored("only io_uring_cmd looks at it")]
        apptag_mask: u32 = 0xffff;
        /// Deallocate in write-zeroes commands.
        #[ignored("only io_uring_cmd looks at it")]
        deac: bool = 0, in 0..=1;
    }
}

//! The options of a job, by subject: one file each.
//!
//! Invariant: every option of fio 3.42 is declared once; what is not built yet is declared `pending`, never left out.

mod access;
mod amount;
mod blocks;
mod buffers;
mod files;
mod general;
mod legacy;
mod measure;
mod pace;
mod process;
mod queue;
mod replay;
mod steady;
mod time;
mod verify;

use super::engine::{
    Ceph, Cpuio, Cufile, E4defrag, Exec, FileStat, Gluster, Http, IoPriorities, IoUring, IoUringCmd, Libaio,
    Mmap, Mtd, Nbd, Net, Nfs, Pvsync2, Rados, Rbd, Rdma, Sg,
};
use super::set::option_sets;

pub use access::Access;
pub use amount::Amount;
pub use blocks::Blocks;
pub use buffers::Buffers;
pub use files::Files;
pub use general::General;
pub use legacy::Legacy;
pub use measure::Measure;
pub use pace::Pace;
pub use process::Process;
pub use queue::Queue;
pub use replay::Replay;
pub use steady::Steady;
pub use time::Time;
pub use verify::Verification;

option_sets! {
    /// The options of one job, resolved: what the section says, what it inherits, and defaults for the rest.
    pub struct JobOptions {
        /// The job as a whole, and its units.
        general: General,
        /// When it runs, and for how long.
        time: Time,
        /// The files and devices it works on, and their zones.
        files: Files,
        /// Directions, order and offsets.
        access: Access,
        /// Block sizes.
        blocks: Blocks,
        /// What the buffers hold and where they lie.
        buffers: Buffers,
        /// How much is transferred.
        amount: Amount,
        /// The engine and its depth.
        queue: Queue,
        /// Rates, pauses and limits of latency.
        pace: Pace,
        /// Recorded I/O.
        replay: Replay,
        /// The workers, their order, and what they run on.
        process: Process,
        /// Verification of what was written.
        verify: Verification,
        /// The end at a steady state.
        steady: Steady,
        /// Reports, logs, statistics, and what counts as an error.
        measure: Measure,
        /// Options of old job files.
        legacy: Legacy,
    }

    engines {
        io_uring: IoUring,
        io_uring_cmd: IoUringCmd,
        libaio: Libaio,
        io_priorities: IoPriorities,
        pvsync2: Pvsync2,
        mmap: Mmap,
        mtd: Mtd,
        sg: Sg,
        ceph: Ceph,
        rados: Rados,
        rbd: Rbd,
        gluster: Gluster,
        net: Net,
        rdma: Rdma,
        nbd: Nbd,
        nfs: Nfs,
        cufile: Cufile,
        http: Http,
        file_stat: FileStat,
        cpuio: Cpuio,
        exec: Exec,
        e4defrag: E4defrag,
    }
}

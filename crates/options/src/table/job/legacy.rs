//! Options that old job files and fio's built-in profiles still carry.
//!
//! Invariant: none of them has an effect.

use super::general::General;
use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of old job files.
    pub struct Legacy, scope Scope::Job;

    "Options of fio's profiles" {
        /// Block size of `profile=tiobench`, in bytes.
        #[dormant(General::profile)]
        block: u32 = 4096;
        /// Number of runs of `profile=tiobench`.
        #[dormant(General::profile)]
        numruns: u32;
        /// Directory of `profile=tiobench`.
        #[dormant(General::profile)]
        dir: Text;
        /// Number of threads of `profile=tiobench`.
        ///
        /// Many job files that were derived from fio's examples contain it; the number of workers is `numjobs`.
        #[dormant(General::profile)]
        threads: u32;
        /// Devices of `profile=act`, separated by commas. They are overwritten.
        #[dormant(General::profile)]
        device_names as "device-names": Text;
        /// Load multiplier of `profile=act`.
        #[dormant(General::profile)]
        load: u32 = 1;
        /// Duration of `profile=act`.
        #[dormant(General::profile)]
        test_duration as "test-duration": Seconds = "24h";
        /// Read threads per device of `profile=act`.
        #[dormant(General::profile)]
        threads_per_queue as "threads-per-queue": u32 = 8;
        /// Blocks of 512 bytes per read of `profile=act`.
        #[dormant(General::profile)]
        read_req_num_512_blocks as "read-req-num-512-blocks": u32 = 3;
        /// Large blocks that `profile=act` writes, in bytes, whatever the name says.
        #[dormant(General::profile)]
        large_block_op_kbytes as "large-block-op-kbytes": u32 = 131072;
        /// Run the preparation phase of `profile=act`.
        #[dormant(General::profile)]
        prep: Flag;
    }

    "Old job files" {
        /// I/Os after which a mix changes direction.
        #[ignored("fio ignores it as well")]
        rwmixcycle: u32 = 0, in 0..=U32;
        /// Difference at which a job waits for its flow.
        #[ignored("fio ignores it as well")]
        flow_watermark: u32 = 1024, in 0..=U32;
    }
}

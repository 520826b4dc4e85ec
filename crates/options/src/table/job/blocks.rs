//! How large the blocks of a job are.
//!
//! Invariant: sizes are in bytes, one per direction.

use crate::table::set::{U64, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Block sizes.
    pub struct Blocks, scope Scope::Job;

    "Block size" {
        /// Block size of an I/O.
        ///
        /// One for all, or one each for reads, writes and trims (`4k,8k,16k`). The last value also applies to the
        /// directions after it, unless a comma follows it; an empty part keeps the default (`,8k`).
        ///
        /// Example: `bs=4k` is 4096 bytes.
        bs | blocksize: PerDirection<Bytes> = 4096, in 1..=U64;
        /// Range that block sizes are chosen from at random, in multiples of the smallest.
        ///
        /// Example: `bsrange=4k-64k`.
        bsrange | blocksize_range: PerDirection<BlockRange> = "", in 1..=U64;
        /// Mix of block sizes.
        ///
        /// `4k/50:8k/30:64k/` is half 4k, 30 percent 8k and the rest 64k. Shares left blank divide what remains.
        bssplit: PerDirection<BlockSplit> = "";
        /// Allow any size within `bsrange`, not only multiples of the smallest.
        bs_unaligned | blocksize_unaligned: Flag = 0;
        /// Use the block size of reads for sequential I/O, and that of writes for random I/O.
        bs_is_seq_rand: bool = 0, in 0..=1;
        /// Align random offsets to this instead of the block size.
        ///
        /// Example: `bs=4k` with `ba=64k`.
        ba | blockalign: PerDirection<Bytes> = "", in 1..=U64;
    }
}

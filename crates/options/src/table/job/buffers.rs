//! What the I/O buffers of a job hold, and what memory they are made of.
//!
//! Invariant: contents are described here and made by the workload.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// What the buffers hold and where they lie.
    pub struct Buffers, scope Scope::Job;

    "Buffers" {
        /// Fill buffers with zeroes.
        zero_buffers: Flag = 0;
        /// Refill the buffer before every write, instead of filling it once at the start.
        ///
        /// Example: `refill_buffers` for a drive that compresses.
        refill_buffers: Flag = 0;
        /// Change a few bytes of the buffer for every write.
        ///
        /// This is cheap, and enough to keep simple deduplication from finding equal blocks.
        scramble_buffers: bool = 1, in 0..=1;
        /// Compressibility of the buffers, in percent.
        ///
        /// Random data is followed by zeroes, or by `buffer_pattern`, in that proportion.
        ///
        /// Example: `buffer_compress_percentage=50` makes blocks that compress to about half.
        buffer_compress_percentage: u32, in 0..=100;
        /// Size of one compressible region of a buffer. 0 makes the whole block one region.
        buffer_compress_chunk: Bytes = 512;
        /// Fill buffers with this pattern.
        ///
        /// Hexadecimal digits (`0xdeadface`), decimal numbers, strings in double quotes and names of files in single
        /// quotes, concatenated without separators.
        buffer_pattern: BufferPattern;
        /// Share of writes that duplicate the contents of another write, in percent.
        ///
        /// The contents of the others are new: random, or compressible by `buffer_compress_percentage`. All contain the
        /// `buffer_pattern`, if one is given.
        ///
        /// Example: `rw=write` with `dedupe_percentage=40`.
        dedupe_percentage: u32 = 0, in 0..=100;
        /// Source of the contents of duplicates.
        dedupe_mode: DedupeMode = "repeat";
        /// Size of the working set that duplicates come from, in percent of the file.
        dedupe_working_set_percentage: u32 = 5, in 0..=100;
        /// Whether jobs share their working sets.
        ///
        /// With `dedupe_mode=working_set`, duplicates then come evenly from the sets of all jobs that have this option.
        dedupe_global: bool = 0, in 0..=1;
        /// Drop the files' pages from the page cache before the run.
        ///
        /// Example: `invalidate=0` to read what an earlier job left in the cache.
        invalidate: bool = 1, in 0..=1;
        /// Kind of memory that I/O buffers are allocated from.
        ///
        /// Example: `mem=mmaphuge`.
        mem | iomem: Memory = "malloc";
        /// Alignment of each I/O buffer in bytes.
        ///
        /// The first begins a page. By default the others are as close as direct I/O and pages allow: blocks shorter than a page
        /// share one, and longer ones begin a page.
        ///
        /// Example: `iomem_align=4k`.
        iomem_align | mem_align: Bytes = 0;
        /// Size of a huge page.
        hugepage_size as "hugepage-size": Bytes = 2097152;
        /// Pin this much memory per worker, to leave less for the page cache.
        ///
        /// Example: `lockmem=1g`.
        lockmem: Bytes = 0;
    }
}

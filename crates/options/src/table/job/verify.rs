//! Verification of data that was written.
//!
//! Invariant: all of it is declared, whether built or not.

use crate::table::set::{U32, U64, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Verification of what was written.
    pub struct Verification, scope Scope::Job;

    "Verification" {
        /// Checksum or pattern that data is written with and verified by.
        verify: Verify = 0;
        /// Whether a writing job reads its data back and verifies it at the end.
        do_verify: bool = 1, in 0..=1;
        /// Which writes are verified after a crash.
        verify_policy: VerifyPolicy = "completed";
        /// Offset of the header within a block.
        verify_offset: Bytes, in 48..=U64;
        /// Bytes covered by one header.
        verify_interval: Bytes;
        /// Pattern to write and verify.
        verify_pattern: VerifyPattern;
        /// Bytes after which the pattern restarts.
        verify_pattern_interval: Bytes = 0;
        /// Whether the first mismatch ends the job.
        verify_fatal: bool = 0, in 0..=1;
        /// Whether blocks that do not match are saved.
        verify_dump: bool = 0, in 0..=1;
        /// Threads that verify.
        verify_async: u32 = 0, in 0..=U32;
        /// CPUs of the threads that verify.
        verify_async_cpus: NumberSet;
        /// Number of blocks to write before they are verified; 0 verifies them at the end of the job.
        verify_backlog: u64 = 0;
        /// Number of blocks to verify at a time during the job; by default `verify_backlog`.
        verify_backlog_batch: u32, in 0..=U32;
        /// Save which blocks were written, for a later run.
        verify_state_save: bool = 1, in 0..=1;
        /// Load which blocks were written by an earlier run.
        verify_state_load: bool = 0, in 0..=1;
        /// Verify the sequence number of each write.
        verify_write_sequence: bool = 1, in 0..=1;
        /// Verify the seed of each block's contents.
        verify_header_seed: bool = 1, in 0..=1;
        /// Layout of the headers that are written; both layouts are verified. Not an option of fio.
        ///
        /// fio 3.33 and fio 3.42 each verify only their own layout.
        verify_header_format: VerifyHeaderFormat = "3.42";
        /// Verify what an earlier run wrote, without writing.
        verify_only: Flag = 0;
        /// Verify by replaying the random numbers.
        #[ignored("fiord knows what it wrote without generating the random numbers again")]
        experimental_verify: bool = 0, in 0..=1;
        /// Share of the blocks written that are trimmed before they are read back, in percent.
        ///
        /// The seed determines which blocks. Applies only to jobs that verify what they write.
        trim_percentage: u32 = 0, in 0..=100;
        /// Whether trimmed blocks are read back and must be zeroes; otherwise they are not read back.
        trim_verify_zero: bool = 1, in 0..=1;
        /// Number of blocks to write before some are trimmed; 0 trims them at the end of the job.
        trim_backlog: u64 = 0;
        /// Number of blocks to trim at a time during the job; by default `trim_backlog`.
        trim_backlog_batch: u32, in 0..=U32;
        /// Verify blocks in order of offset.
        #[ignored("fio ignores it as well")]
        verifysort: bool = 1, in 0..=1;
        /// Blocks to sort before verifying.
        #[ignored("fio ignores it as well")]
        verifysort_nr: u32 = 0, in 0..=U32;
    }
}

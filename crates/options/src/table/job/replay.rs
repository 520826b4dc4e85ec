//! Recording I/O patterns and replaying them.
//!
//! Invariant: what is replayed is chosen here; nothing is read.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Recorded I/O.
    pub struct Replay, scope Scope::Job;

    "Record and replay" {
        /// Record the job's I/O in this file, as an iolog (version 3) that `read_iolog` and fio replay.
        ///
        /// Every I/O is recorded with its time of issue while the job runs. An existing iolog is appended to. Each
        /// job needs its own file.
        ///
        /// Example: `write_iolog=job.log`.
        write_iolog: Text;
        /// Replay the I/O recorded in this file: an iolog (version 2 or 3), or a binary trace of `blkparse -d`.
        ///
        /// Each I/O is issued at its recorded time, to its recorded file, offset and length. Several files, separated
        /// by colons, are assigned to the workers of `numjobs` in turn. Traces are streamed, so that they may be of
        /// any length. `-` is standard input. That, a pipe or a socket is first read to its end, into a file without
        /// a name in `$TMPDIR` (`/var/tmp` by default).
        ///
        /// Example: `read_iolog=job.log` with `replay_redirect=/dev/sdb`.
        read_iolog: Text;
        /// Read the trace in chunks while it is replayed.
        #[ignored("traces are always read while they are replayed")]
        read_iolog_chunked: bool = 0, in 0..=1;
        /// Merge the binary traces of `read_iolog` into this file, and replay that.
        ///
        /// The I/Os of all traces, in the order of their times; the time of each trace begins with its first I/O.
        /// `--merge-blktrace-only` writes the file and replays nothing.
        ///
        /// Example: `read_iolog=a.bin:b.bin` with `merge_blktrace_file=both.bin`.
        merge_blktrace_file: Text;
        /// Factor, in percent, by which the times of each merged trace are multiplied.
        ///
        /// One number for each file of `read_iolog`: `50:100` takes half the time for the first.
        merge_blktrace_scalars: FloatList, in 0..=U32;
        /// Number of times each trace is played when merging.
        ///
        /// One number for each file of `read_iolog`. A repetition begins with the last I/O of the one before.
        merge_blktrace_iters: FloatList, in 1..=U32;
        /// Replay in the recorded order, but without the recorded pauses.
        replay_no_stall: bool = 0, in 0..=1;
        /// Speed of the replay, in percent: 200 takes half the time.
        replay_time_scale: u32 = 100, in 1..=U32;
        /// Replay everything on this file or device, instead of those named in the trace.
        replay_redirect: Text;
        /// Round replayed offsets down to multiples of this, a power of two.
        replay_align: Bytes = 0;
        /// Divide replayed offsets by this.
        replay_scale: u32 = 1, in 0..=U32;
        /// Kinds of I/O to leave out of the replay: any of `read`, `write`, `trim` and `sync`.
        replay_skip: ReplaySkip;
    }
}

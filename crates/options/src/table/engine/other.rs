//! Private options of engines on other interfaces of the system.
//!
//! Invariant: the sets of engines that are not built in are `unbuilt`.

use crate::table::set::options;
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// Options of `cpuio`.
    pub struct Cpuio, scope Scope::Engine(&[EngineName::Cpuio]);

    "Engine cpuio" {
        /// Share of a CPU to use, in percent; more than 100 is 100. The engine needs it.
        cpuload: u32;
        /// Length of a burst of work, in microseconds. After each, the CPU is left idle for as long as `cpuload` says.
        cpuchunks: u32 = 50000;
        /// Kind of work.
        cpumode: CpuMode = "noop";
        /// End when the jobs that do I/O are done.
        exit_on_io_done: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `filestat` and `dirstat`.
    pub struct FileStat, scope Scope::Engine(&[EngineName::Filestat, EngineName::Dirstat]);

    "Engines filestat and dirstat" {
        /// System call to measure.
        stat_type: StatType = "stat";
    }
}

options! {
    /// Options of `exec`.
    pub struct Exec, scope Scope::Engine(&[EngineName::Exec]);

    "Engine exec" {
        /// Program to run: a path, or a name found in PATH. The engine needs it.
        program: Text;
        /// Its arguments, separated by blanks. No shell reads them.
        ///
        /// `%r` is replaced by the run time of the job in seconds, `%n` by its name.
        arguments: Text;
        /// Seconds between the signal that asks the program to end (SIGTERM) and the one that kills it.
        grace_time: u32 = 1;
        /// Write the program's output to files: the job's name with `.stdout` and `.stderr`.
        std_redirect: bool = 1, in 0..=1;
    }
}

options! {
    /// Options of `e4defrag`.
    pub struct E4defrag, scope Scope::Engine(&[EngineName::E4defrag]);

    "Engine e4defrag" {
        /// File whose blocks are exchanged with those of the job's files. The engine needs it.
        ///
        /// It is on the same file system, and its contents are lost; it is made if it is not there.
        donorname: Text;
        /// Whether the donor's blocks are allocated for each I/O.
        ///
        /// They are freed after the I/O. Without it, all of them are allocated once, before the run.
        inplace: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `mtd`.
    pub struct Mtd, scope Scope::Engine(&[EngineName::Mtd]);

    "Engine mtd" {
        /// Pass over bad blocks: I/Os there count as done.
        skip_bad: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `sg`.
    pub struct Sg, scope Scope::Engine(&[EngineName::Sg]);

    "Engine sg" {
        /// Poll for completions.
        hipri: Flag;
        /// Force unit access for reads.
        readfua: bool = 0, in 0..=1;
        /// Force unit access for writes.
        writefua: bool = 0, in 0..=1;
        /// Command that writes are issued as.
        ///
        /// `verify_bytchk_01` and `verify_bytchk_11` compare the data of the medium with those of the job.
        sg_write_mode: ScsiWrite = "write";
        /// Identifier of the stream that writes go to, with `sg_write_mode=write_stream`.
        ///
        /// With 0 a stream is opened for the job, and closed when it ends.
        stream_id: u32 = 0, in 0..=0xffff;
    }
}

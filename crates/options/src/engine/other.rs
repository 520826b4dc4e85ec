//! Private options of engines on other interfaces of the system.
//!
//! Invariant: all dormant, since none of these engines is built in.

use crate::spec::Scope;
use crate::table::options;
use crate::value::*;

options! {
    /// Options of `cpuio`.
    pub struct Cpuio, scope Scope::Engine(&["cpuio"]);

    "Engine cpuio" {
        /// Share of a CPU to use, in percent.
        #[dormant("ioengine")]
        cpuload: u32;
        /// Length of a burst of work, in microseconds.
        #[dormant("ioengine")]
        cpuchunks: u32 = 50000;
        /// Kind of work.
        #[dormant("ioengine")]
        cpumode: Text = "noop";
        /// End when the jobs that do I/O are done.
        #[dormant("ioengine")]
        exit_on_io_done: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `filestat` and `dirstat`.
    pub struct Stat, scope Scope::Engine(&["filestat", "dirstat"]);

    "Engines filestat and dirstat" {
        /// System call to measure.
        #[dormant("ioengine")]
        stat_type: Text = "stat";
    }
}

options! {
    /// Options of `exec`.
    pub struct Exec, scope Scope::Engine(&["exec"]);

    "Engine exec" {
        /// Program to run.
        #[dormant("ioengine")]
        program: Text;
        /// Its arguments.
        #[dormant("ioengine")]
        arguments: Text;
        /// Seconds between asking the program to end and killing it.
        #[dormant("ioengine")]
        grace_time: u32 = 1;
        /// Write the program's output to files.
        #[dormant("ioengine")]
        std_redirect: bool = 1, in 0..=1;
    }
}

options! {
    /// Options of `e4defrag`.
    pub struct E4defrag, scope Scope::Engine(&["e4defrag"]);

    "Engine e4defrag" {
        /// File that blocks are taken from.
        #[dormant("ioengine")]
        donorname: Text;
        /// Where the donor's space comes from.
        #[dormant("ioengine")]
        inplace: u32 = 0, in 0..=1;
    }
}

options! {
    /// Options of `mtd`.
    pub struct Mtd, scope Scope::Engine(&["mtd"]);

    "Engine mtd" {
        /// Pass over bad blocks.
        #[dormant("ioengine")]
        skip_bad: bool = 0, in 0..=1;
    }
}

options! {
    /// Options of `sg`.
    pub struct Sg, scope Scope::Engine(&["sg"]);

    "Engine sg" {
        /// Poll for completions.
        #[dormant("ioengine")]
        hipri: Flag;
        /// Force unit access for reads.
        #[dormant("ioengine")]
        readfua: bool = 0, in 0..=1;
        /// Force unit access for writes.
        #[dormant("ioengine")]
        writefua: bool = 0, in 0..=1;
        /// Command that writes are issued as.
        #[dormant("ioengine")]
        sg_write_mode: Text = "write";
        /// Identifier of the stream that writes go to.
        #[dormant("ioengine")]
        stream_id: u32 = 0;
    }
}

//! The workers of a job: where they run, with what priority, and in which order.
//!
//! Invariant: these options change who does the I/O, never which I/O is done.

use crate::table::set::{U32, options};
use crate::table::spec::Scope;
use crate::value::*;

options! {
    /// The workers, their order, and what they run on.
    pub struct Process, scope Scope::Job;

    "Workers and their order" {
        /// Run workers as threads.
        ///
        /// fiord's workers are always threads, so this option only appears in the report.
        thread: Flag = 0;
        /// Start after the job of this name has ended.
        ///
        /// That job must be defined earlier, and in the same group.
        ///
        /// Example: `wait_for=warmup`.
        wait_for: Text;
        /// Scheduling priority of the worker.
        ///
        /// Example: `nice=10`.
        nice: i32 = 0, in -20..=19;
        /// I/O priority within the class; 0 is the highest.
        ///
        /// Example: `prioclass=2` with `prio=7` is the lowest of the best-effort class.
        prio: u32, in 0..=7;
        /// I/O priority class.
        ///
        /// 0 leaves it to the kernel, 1 is real time, 2 best effort, 3 idle.
        prioclass: u32, in 0..=3;
        /// I/O priority hint, for devices that support command duration limits (Linux 6.5).
        ///
        /// Example: `prioclass=2` with `priohint=1`.
        priohint: u32 = 0, in 0..=1023;
        /// Name of the worker's thread in process listings; the job's name by default.
        ///
        /// The kernel truncates it to 15 bytes.
        ///
        /// Example: `comm=loader`.
        comm: Text;
        /// CPUs the worker may run on, as a bit mask.
        cpumask: u32, in 0..=U32;
        /// CPUs the worker may run on: `0,5,8-15`.
        cpus_allowed: NumberSet;
        /// Whether workers share the CPUs of `cpus_allowed` or get one each.
        ///
        /// Example: `numjobs=4`, `cpus_allowed=0-3` and `cpus_allowed_policy=split` give each worker a CPU.
        cpus_allowed_policy: CpusAllowedPolicy = "shared";
        /// NUMA nodes on whose CPUs the worker may run.
        ///
        /// Example: `numa_cpu_nodes=0`.
        numa_cpu_nodes: NumaNodes;
        /// NUMA nodes that the worker's memory is allocated on.
        ///
        /// `default`, `local`, `prefer:N`, `bind:LIST` or `interleave:LIST`.
        numa_mem_policy: NumaPolicy;
        /// Control group that the worker's I/O is charged to.
        ///
        /// A path below the root of the groups for I/O: of `blkio` where version 1 is mounted, otherwise of version 2. It is
        /// made if it does not exist, and then removed after the run. Version 2 keeps the threads of a process
        /// together: there, all jobs of the run need the same group.
        ///
        /// Example: `cgroup=bench/a` with `cgroup_weight=200`.
        cgroup: Text;
        /// Weight of the control group: its share of a disk's time beside other groups.
        ///
        /// It is set with the scheduler bfq, or with the controller `io` of version 2.
        cgroup_weight: u32, in 100..=1000;
        /// Keep the control group after the run.
        cgroup_nodelete: bool = 0, in 0..=1;
        /// The flow whose jobs `flow` keeps in proportion, by number.
        flow_id: u32 = 0, in 0..=U32;
        /// Weight of this job's number of I/Os among the jobs of the same `flow_id`; 0 takes no part.
        ///
        /// A job that is ahead of its share waits for the others, until they catch up or end.
        ///
        /// Example: of two jobs with `flow=8` and `flow=1`, one issues eight I/Os for each I/O of the other.
        flow: u32 = 0, in 0..=1000;
        /// Time after which a job that is ahead of its share checks again, in microseconds; 0 checks continuously.
        flow_sleep: u32 = 0, in 0..=U32;
        /// Wait for all jobs before this one to end, and start a new group of reports.
        ///
        /// Example: `stonewall` in the second section of a job file runs it after the first.
        stonewall | wait_for_previous: Flag = 0;
        /// End all jobs when this one ends.
        exitall: Flag = 0;
        /// Jobs that `exitall` ends.
        exit_what: ExitWhat = "group";
        /// End all jobs when this one ends in error.
        exitall_on_error: Flag = 0;
        /// Command to run before the job.
        ///
        /// Its output is written to `JOB.prerun.txt`. If it fails, fiord prints a warning and runs the job. Example:
        /// `exec_prerun=sync`.
        exec_prerun: Text;
        /// Command to run after the job.
        ///
        /// Its output is written to `JOB.postrun.txt`.
        exec_postrun: Text;
        /// User the worker runs as, by number.
        uid: u32, in 0..=U32;
        /// Group the worker runs as, by number.
        gid: u32, in 0..=U32;
    }
}

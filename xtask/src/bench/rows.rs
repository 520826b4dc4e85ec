//! What is measured: one row per claim about overhead.
//!
//! Invariant: both programs get the same arguments.

use std::fmt;

/// One claim.
pub struct Row {
    /// Its name in the table.
    pub name: &'static str,
    /// Arguments for either program, run in an empty directory that both share.
    pub args: Vec<String>,
    /// The figure taken from a run.
    pub metric: Metric,
    /// What fiord's figure divided by fio's is meant to be.
    pub target: Target,
}

/// A figure of a run.
#[derive(Clone, Copy)]
pub enum Metric {
    /// I/Os per second, reads and writes of all jobs.
    Iops,
    /// Time of the whole process in microseconds.
    ProcessMicros,
}

impl Metric {
    /// For the raw results.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::Iops => "iops",
            Metric::ProcessMicros => "process_us",
        }
    }
}

/// The ratio aimed at.
#[derive(Clone, Copy)]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtLeast(ratio) => out.pad(&format!(">={ratio}")),
            Target::AtMost(ratio) => out.pad(&format!("<={ratio}")),
        }
    }
}

/// Every row; timed ones run for `seconds`.
pub fn rows(seconds: u32) -> Vec<Row> {
    let timed = |name, args: &str, target| Row {
        name,
        args: words(&format!("--name=bench --time_based --runtime={seconds} {args}")),
        metric: Metric::Iops,
        target: Target::AtLeast(target),
    };
    const CACHED: &str = "--filename=cached --size=64m --bs=4k --rw=randread --invalidate=0";
    vec![
        timed("null-randread-4k", "--ioengine=null --size=1g --bs=4k --rw=randread --norandommap", 10.0),
        timed("psync-cached-4k", &format!("--ioengine=psync {CACHED}"), 1.25),
        Row {
            name: "process-one-trivial-job",
            args: words("--name=bench --ioengine=null --size=4k"),
            metric: Metric::ProcessMicros,
            target: Target::AtMost(0.1),
        },
    ]
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(String::from).collect()
}

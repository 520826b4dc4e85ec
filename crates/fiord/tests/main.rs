//! The tests of fiord's binary, one file per subject.
//!
//! Invariant: they are one program, so that they are linked once, and tests that wait run beside those of other subjects.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic when something is wrong")]

mod capacity;
mod check;
mod command_line;
mod common;
mod compare;
mod compare_pairs;
mod connections;
mod control_groups;
mod crash_test;
mod debug;
mod devices;
mod e4defrag;
mod endless;
mod engine_calls;
mod engine_examples;
mod engines;
mod etcd;
mod every_engine;
mod explain;
mod failed_jobs;
mod faults;
mod findings;
mod full_disk;
mod hangs;
mod history;
mod history_export;
mod hostile_text;
mod hosts;
mod in_use;
mod io_uring;
mod leftovers;
mod lifecycle;
mod limits;
mod live;
mod logs;
mod manual;
mod matrix;
mod metrics;
mod model;
mod options_files;
mod options_run;
mod outputs;
mod paths;
mod patterns;
mod profile;
mod qualify;
mod qualify_flash;
mod quick;
mod repeat;
mod report;
mod scale;
mod schemas;
mod secrets;
mod signals;
mod space;
mod submission;
mod sweep;
mod traces;
mod trims;
mod verify_files;
mod watch;

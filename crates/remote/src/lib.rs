//! Reaches hosts and runs jobs on them: the agent, the controller, and how agents are started.
//!
//! Invariant: what an agent and a controller decide is in `wire`; here are the threads, processes and files that carry it
//! out. Nothing is printed: an agent's standard output is its stream.

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

pub mod agent;
mod agent_facts;
mod agent_logs;
mod agent_run;
mod agent_study;
mod agent_tells;
pub mod controller;
mod hello;
pub mod hold;
pub mod keywords;
pub mod kube;
pub mod launch;
pub mod leftovers;
mod link;
mod logs;
mod push;
pub mod server;
pub mod slurm;
mod spool;
mod ssh;
pub mod states;

pub use agent_study::StudyAgent;
pub use controller::{Finished, Job, Onlooker, run};
pub use hello::SELF;
pub use launch::Launcher;

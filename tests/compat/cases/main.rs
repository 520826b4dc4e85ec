//! The compat suite: one named test per behaviour that fio and fiord must share.
//!
//! Invariant: a table of cases is data; the library in `src/` runs and compares programs.

mod blocks;
mod connections;
mod contents;
mod contract;
mod corpus;
mod depths;
mod divergences;
mod echo;
mod engines;
mod errors;
mod files;
mod flows;
mod latency;
mod limits;
mod logs;
mod models;
mod modes;
mod parse;
mod parsers;
mod priorities;
mod profiles;
mod program;
mod readers;
mod reports;
mod steady;
mod traces;
mod verify;
mod verify_cross;
mod workloads;
mod zones;

use std::process::ExitCode;

use fiord_compat::{Case, runner};

fn main() -> ExitCode {
    let mut cases: Vec<Case> = Vec::new();
    for table in [
        parse::cases,
        parsers::cases,
        profiles::cases,
        program::cases,
        priorities::cases,
        errors::cases,
        echo::cases,
        models::cases,
        modes::cases,
        blocks::cases,
        contents::cases,
        limits::cases,
        logs::cases,
        latency::cases,
        files::cases,
        flows::cases,
        engines::cases,
        connections::cases,
        depths::cases,
        divergences::cases,
        reports::cases,
        steady::cases,
        traces::cases,
        verify::cases,
        verify_cross::cases,
        contract::cases,
        workloads::cases,
        readers::cases,
        zones::cases,
    ] {
        cases.extend(table());
    }
    match runner::main(cases, include_str!("../pending.txt")) {
        Ok(status) => status,
        Err(why) => {
            #[allow(clippy::print_stderr, reason = "explains why the suite cannot start")]
            {
                eprintln!("{why}");
            }
            ExitCode::FAILURE
        }
    }
}

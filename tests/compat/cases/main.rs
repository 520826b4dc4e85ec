//! The compat suite: one named test per thing that fio and fiord must do alike.
//!
//! Invariant: a table of cases is data; how programs are run and compared lives in the library beside it.

mod blocks;
mod contract;
mod corpus;
mod depths;
mod echo;
mod engines;
mod errors;
mod files;
mod limits;
mod modes;
mod parse;
mod parsers;
mod program;
mod readers;
mod reports;
mod workloads;

use std::process::ExitCode;

use fiord_compat::{Case, runner};

fn main() -> ExitCode {
    let mut cases: Vec<Case> = Vec::new();
    for table in [
        parse::cases,
        parsers::cases,
        program::cases,
        errors::cases,
        echo::cases,
        modes::cases,
        blocks::cases,
        limits::cases,
        files::cases,
        engines::cases,
        depths::cases,
        reports::cases,
        contract::cases,
        workloads::cases,
        readers::cases,
    ] {
        cases.extend(table());
    }
    match runner::main(cases, include_str!("../pending.txt")) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

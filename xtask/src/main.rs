//! The project's chores, `cargo x CHORE`: what CI runs is what a contributor runs.
//!
//! Invariant: a chore exits with 0 only if everything it looked at is in order.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore talks to the person who started it")]

mod bench;
mod ci;
mod compat;
mod fuzz;
mod gen_pages;
mod install;
mod instructions;
mod marked;
mod repo;
mod stage;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "cargo x CHORE

  ci [--install]          everything CI checks; --install first installs what the tests need
  gen                     write the generated pages in docs/ and ARCHITECTURE.md's table
  compat [FILTER]         build fiord and compare it with fio, case by case (FIO=, FIORD= name the programs)
  fuzz [TARGET] [SECS]    run the fuzz targets, each for SECS seconds (5)
  tidy                    doors between crates, lengths, headers, banned calls
  bench [--quick] [ROW]   fiord against fio, pair by pair; keeps the raw results under bench/runs/ (FIO=, FIORD= and
                          PEAK=, fio's t/io_uring, name the programs)
  instructions [--record] instructions per I/O against those in bench/instructions.json; --record writes them there
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (chore, rest) = match args.split_first() {
        Some((chore, rest)) => (chore.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match chore {
        "ci" => ci::run(rest),
        "gen" => gen_pages::run(),
        "compat" => compat::run(rest),
        "fuzz" => fuzz::run(rest),
        "tidy" => tidy::run(),
        "bench" => bench::run(rest),
        bench::one::CHORE => bench::one::run(rest),
        "instructions" => instructions::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("no chore is called {other:?}\n\n{HELP}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

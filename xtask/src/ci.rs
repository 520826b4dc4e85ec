//! Everything CI checks, in the order in which failures are cheapest to find.
//!
//! Invariant: a stage that fails does not keep the later ones from running, except those that need its binary.

use crate::stage::{self, Ending, Stages};
use crate::{compat, fuzz, install, instructions, repo, tidy};

const FUZZ_SECONDS_PER_TARGET: u32 = 4;

/// `cargo x ci [--install]`
pub fn run(args: &[String]) -> Result<(), String> {
    match args {
        [] => {}
        [flag] if flag == "--install" => install::run()?,
        _ => return Err("cargo x ci [--install]".to_string()),
    }
    let mut stages = Stages::default();
    stages.run("fmt", || cargo(&["fmt", "--all", "--check"]));
    stages.run("clippy", || {
        cargo(&["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
    });
    stages.run("tidy", || Ending::of(tidy::run()));
    let mut built = false;
    stages.run("build", || {
        let ending = cargo(&["build", "--release", "-p", "fiord"]);
        built = matches!(ending, Ending::Passed(_));
        ending
    });
    stages.run("instructions", || match built {
        true => instructions::stage(&compat::release_binary()),
        false => Ending::Skipped("there is no binary to count".to_string()),
    });
    stages.run("test", || {
        let workspace =
            ["test", "--workspace", "--exclude", "fiord-compat", "--no-fail-fast", "--", "--show-output"];
        stage::tests(repo::cargo(&workspace))
    });
    stages.run("compat", || match built {
        true => stage::tests(compat::command(&compat::release_binary(), &[])),
        false => Ending::Skipped("there is no binary to compare".to_string()),
    });
    stages.run("seeds", fuzz::tests);
    stages.run("fuzz", || fuzz::smoke(FUZZ_SECONDS_PER_TARGET));
    match stages.summary() {
        true => Ok(()),
        false => std::process::exit(1),
    }
}

fn cargo(args: &[&str]) -> Ending {
    Ending::of(stage::command(repo::cargo(args)))
}

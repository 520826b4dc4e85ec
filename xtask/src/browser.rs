//! `cargo x browser`: pages of real runs in headless Chromium: axe-core's rules, errors, requests, widths, screenshots.
//!
//! Invariant: what is downloaded has a pinned version and stays below target/; without Chromium, node or npm the stage is
//! skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use fiord_sys::errno::error_text;

use crate::stage::{self, StageResult};
use crate::{compat, repo};

/// Packages of npm, installed below target/browser.
const PACKAGES: &[&str] = &["axe-core@4.10.3", "puppeteer-core@24.4.0"];
const SCRIPT: &str = "xtask/src/browser/check.mjs";
const CHROMIUM: &str = "/usr/bin/chromium";

/// `cargo x browser [BINARY]`
pub fn run(args: &[String]) -> Result<(), String> {
    let binary = match args {
        [] => compat::build(true)?,
        // fiord runs in another directory.
        [binary] => {
            std::path::absolute(binary).map_err(|error| format!("{binary}: {}", error_text(&error)))?
        }
        _ => return Err("usage: cargo x browser [BINARY]".to_string()),
    };
    needed()?;
    check(&binary)
}

/// The stage of CI.
pub fn stage(binary: &Path) -> StageResult {
    match needed() {
        Err(why) => StageResult::Skipped(why),
        Ok(()) => StageResult::of(check(binary)),
    }
}

/// Installs the packages; the error says what is missing.
fn needed() -> Result<(), String> {
    if !Path::new(CHROMIUM).exists() {
        return Err(format!("{CHROMIUM} is not installed"));
    }
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix"]);
    npm.arg(place()).args(PACKAGES);
    stage::command(npm).map_err(|why| format!("npm: {why}"))
}

fn place() -> PathBuf {
    repo::root().join("target/browser")
}

/// Makes pages of real runs and checks them. Screenshots are left in target/browser/screenshots.
fn check(binary: &Path) -> Result<(), String> {
    let place = place();
    let state = place.join("state");
    let pages = [("one", &["last"][..]), ("two", &["last~1", "last"][..]), ("study", &["study"][..])];
    let fiord = |arguments: &[&str]| {
        let mut fiord = Command::new(binary);
        fiord.args(arguments).current_dir(&place).env("XDG_STATE_HOME", &state);
        fiord.stdout(std::process::Stdio::null());
        stage::command(fiord)
    };
    let study = "matrix --tag=study --trust=off --bs=4k,64k --rw=randread,randwrite --size=16m --time=5s";
    fiord(&study.split(' ').collect::<Vec<_>>())?;
    for depth in ["--iodepth=2", "--iodepth=16"] {
        fiord(&[
            "--name=mixed",
            "--filename=page-data",
            "--size=16m",
            "--rw=randrw",
            "--bs=4k",
            "--ioengine=libaio",
            depth,
            "--rate_iops=3000",
            "--runtime=8",
            "--time_based",
        ])?;
    }
    let study = "profile --no-history --trust=off --rw=randread --bs=4k --size=16m --time=6 --repeat=1 -o profile.html -- vary direct=0,1";
    fiord(&study.split(' ').collect::<Vec<_>>())?;
    let mut node = Command::new("node");
    node.arg(repo::root().join(SCRIPT)).arg(&place).arg(CHROMIUM).arg(place.join("screenshots"));
    for (name, runs) in pages {
        let page = format!("{name}.html");
        fiord(&[&["report", "-o", page.as_str()][..], runs].concat())?;
        node.arg(place.join(page));
    }
    node.arg(place.join("profile.html"));
    stage::command(node)
}

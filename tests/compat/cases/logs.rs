//! Compressed logs: each program prints those that the other one wrote.
//!
//! Invariant: both programs' logs are printed by both, and only times and latencies may differ between the two.

use std::path::Path;
use std::process::Command;

use fiord_compat::compare::{equal, refused, success};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case};

/// What a program prints of a compressed log.
fn inflated(program: &Path, directory: &Path, log: &str) -> Result<String, String> {
    let mut command = Command::new(program);
    let output = command.arg(format!("--inflate-log={log}")).current_dir(directory).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{log}: {} fails: {output:?}", program.display())),
    }
}

/// The columns that have to agree: all but the first two, which are times and figures.
fn columns(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(", ").skip(2).map(str::to_string).collect()).collect()
}

/// The same names, and the same files are empty.
fn same_files(pair: &Pair) -> Verdict {
    let known = |files: Vec<(String, u64)>| -> Vec<(String, bool)> {
        files.into_iter().map(|(name, size)| (name, size == 0)).collect()
    };
    equal("files, and whether they are empty", known(pair.fio.files()?), known(pair.fiord.files()?))
}

/// Each log is printed alike by both programs, whichever wrote it, and has the same directions, sizes and offsets.
fn both_print(logs: &'static [&'static str]) -> impl Fn(&Pair) -> Verdict {
    move |pair| {
        for log in logs {
            let mut of_writers = Vec::new();
            for written in [&pair.fio.dir, &pair.fiord.dir] {
                let fio = inflated(&pair.programs.0, written, log)?;
                equal(log, fio.as_str(), &inflated(&pair.programs.1, written, log)?)?;
                of_writers.push(columns(&fio));
            }
            if of_writers[0].is_empty() {
                return Err(format!("{log} is empty"));
            }
            equal(log, &of_writers[0], &of_writers[1])?;
        }
        Ok(())
    }
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let job = "--name=a --ioengine=null --rw=write --bs=4k --size=4m --log_store_compressed=1 --log_compression=4096";
    let log =
        |name: &str, options: &str| case(format!("logs/{name}"), format!("{job} {options}")).check(success);
    let all = "--write_lat_log=l --write_bw_log=l --write_iops_log=l";
    let names: &[&str] = &["l_clat.1.log.fz", "l_lat.1.log.fz", "l_bw.1.log.fz", "l_iops.1.log.fz"];
    let of_names = |engine: &str| {
        let line = format!("--name=a --ioengine={engine} --filesize=4k --nrfiles=5 --bs=4k {all}");
        case(format!("logs/{engine}"), line).check(success).check(same_files)
    };
    vec![
        of_names("filecreate"),
        of_names("filestat"),
        of_names("filedelete"),
        log("compressed", all).check(same_files).check(both_print(names)),
        log("compressed-offset", &format!("{all} --log_offset=1")).check(both_print(names)),
        log("compressed-priority", &format!("{all} --log_offset=1 --log_prio=1 --prioclass=2 --prio=3"))
            .check(both_print(names)),
        log("compressed-real-time", &format!("{all} --prioclass=1 --prio=4")).check(both_print(names)),
        case("logs/inflate-missing", "--inflate-log=nothing.fz").check(refused),
        case("logs/inflate-text", "--inflate-log=l.fz").text("l.fz", "0, 1, 0, 4096, 0\n").check(refused),
    ]
}

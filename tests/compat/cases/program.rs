//! Options of the program itself: versions, helps, formats, and where output goes (C17, C18).
//!
//! Invariant: only the form of texts that may differ is checked.

use fiord_compat::compare::{debug_io, equal, exit, files, refused, stdout, success, verdict};
use fiord_compat::verdict::Verdict;
use fiord_compat::{Case, Pair, case, versions};

const JOB: &str = "--name=a --ioengine=null --size=64k --bs=4k --rw=read";

fn first_line_is_version(pair: &Pair) -> Verdict {
    equal("first line", Some(versions::FOLLOWED.to_string().as_str()), pair.fiord.stdout.lines().next())
}

fn says_something(pair: &Pair) -> Verdict {
    if pair.fiord.stdout.trim().is_empty() { Err("nothing on stdout".to_string()) } else { Ok(()) }
}

/// Both print the same lines of `--debug=io`, in whichever order.
fn same_io_lines(pair: &Pair) -> Verdict {
    let (fio, fiord) = (debug_io(&pair.fio.stdout), debug_io(&pair.fiord.stdout));
    equal("whether fio printed any", true, !fio.is_empty())?;
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    equal("lines of --debug=io", sorted(fio), sorted(fiord))
}

/// The names at the beginning of the lines of `--cmdhelp=all`: fiord's must include all of fio's.
fn lists_the_same_options(pair: &Pair) -> Verdict {
    let names = |text: &str| -> Vec<String> {
        let name = |line: &str| Some(line.split_once(':')?.0.trim().to_string());
        text.lines().filter(|line| !line.starts_with([' ', '\t'])).filter_map(name).collect()
    };
    let fiord = names(&pair.fiord.stdout);
    let renamed = |name: &str| {
        versions::LISTS_OLD_NAMES.holds(pair.oracle) && versions::RENAMED_OPTIONS.contains(&name)
    };
    let listed = |name: &String| fiord.contains(name) || renamed(name);
    let lacks: Vec<String> = names(&pair.fio.stdout).into_iter().filter(|name| !listed(name)).collect();
    if lacks.is_empty() { Ok(()) } else { Err(format!("fiord's help lacks {lacks:?}")) }
}

/// fiord lists engines that fio lists, in its form: one a line below a heading.
fn names_fios_engines(pair: &Pair) -> Verdict {
    let engines = |text: &str| -> Vec<String> { text.lines().skip(1).map(str::to_string).collect() };
    let (fios, fiords) = (engines(&pair.fio.stdout), engines(&pair.fiord.stdout));
    equal("heading", pair.fio.stdout.lines().next(), pair.fiord.stdout.lines().next())?;
    let added = |engine: &String| {
        versions::LACKS_ENGINES.holds(pair.oracle) && versions::ADDED_ENGINES.contains(&engine.trim())
    };
    match fiords.iter().find(|engine| !fios.contains(engine) && !added(engine)) {
        Some(engine) => Err(format!("--enghelp lists {engine:?}, which fio does not")),
        None => equal("an engine is listed", true, !fiords.is_empty()),
    }
}

fn no_stdout(pair: &Pair) -> Verdict {
    equal("stdout", "", pair.fiord.stdout.trim())
}

fn output_file_is_json(pair: &Pair) -> Verdict {
    let text = pair.fiord.file("out.json")?;
    fiord_compat::raw::only_json(&text)?;
    fiord_compat::raw::json_text(&text)
}

/// On the same machine fio's test sometimes fails by some tens of cycles (2 of 20 runs under load). So a clock that
/// passes in fio must pass here; if it fails in fio, fiord's exit status must only agree with its own last line.
fn clock_verdict(pair: &Pair) -> Verdict {
    let passed = |ran: &fiord_compat::program::Ran| ran.stdout.trim_end().ends_with("cs: Pass!");
    equal("fiord's status and last line", pair.fiord.status == 0, passed(&pair.fiord))?;
    if pair.fio.status == 0 { equal("passes", passed(&pair.fio), passed(&pair.fiord)) } else { Ok(()) }
}

/// Every case of this group.
pub fn cases() -> Vec<Case> {
    let program = |name: &str, args: &str| case(format!("program/{name}"), args);
    let mut cases = vec![
        case(
            "program/debug-io",
            format!("--debug=io --output-format=terse {}", JOB.replace("null", "psync")),
        )
        .check(success)
        .check(same_io_lines),
        program("version", "--version").check(exit).check(first_line_is_version),
        program("version-short", "-v").check(exit).check(first_line_is_version),
        program("help", "--help").check(exit).check(says_something),
        program("help-short", "-h").check(exit).check(says_something),
        program("nothing-to-do", "").check(exit),
        program("cmdhelp-all", "--cmdhelp=all").check(exit).check(lists_the_same_options),
        program("cmdhelp-bare", "--cmdhelp").check(exit).check(says_something),
        program("cmdhelp-one", "--cmdhelp=iodepth").check(exit).check(says_something),
        program("cmdhelp-alias", "--cmdhelp=readwrite").check(exit).check(says_something),
        // divergence: `--cmdhelp` of an unknown option
        program("cmdhelp-unknown", "--cmdhelp=frobnicate").check(exit),
        program("enghelp", "--enghelp").check(exit).check(names_fios_engines),
        program("enghelp-engine", "--enghelp=io_uring").check(exit).check(says_something),
        program("enghelp-option", "--enghelp=io_uring,sqthread_poll").check(exit).check(says_something),
        program("enghelp-unknown", "--enghelp=warp").check(exit),
        program("version-after-an-error", "--name=a --bs=zz --version").check(refused),
        program("version-before-an-error", "--name=a --version --bs=zz").check(success),
        program("version-after-a-forbidden-write", "--readonly --name=a --rw=write --size=1m --version")
            .check(refused),
        program("help-after-an-error", "--rw=sideways --help").check(refused),
        program("cmdhelp-after-an-error", "--name=a --bs=zz --cmdhelp=bs").check(refused),
        program("cmdhelp-letter-after-an-engine", "--name=a --ioengine=./x.so -conf 1").check(refused),
        program("enghelp-after-an-error", "--iodepth=x --enghelp").check(refused),
        program("crctest-after-an-error", "--name=a --bs=zz --crctest=crc32c").check(refused),
        program("unknown-option", "--frobnicate").check(verdict),
        program("unwanted-value", &format!("--showcmd=x {JOB}")).check(verdict),
        program("output", &format!("--output=out.txt {JOB}")).check(success).check(no_stdout),
        program("output-json", &format!("--output=out.json --output-format=json {JOB}"))
            .check(success)
            .check(no_stdout)
            .check(output_file_is_json),
        program("output-short", &format!("-o out.txt {JOB}")).check(success).check(no_stdout),
        program("output-in-missing-directory", &format!("--output=gone/out.txt {JOB}")).check(verdict),
        program("warnings-fatal", &format!("--warnings-fatal {JOB}")).check(success),
        program("readonly-read", &format!("--readonly {JOB}")).check(success),
        program("readonly-write", "--readonly --name=a --ioengine=null --size=64k --rw=write").check(verdict),
        program("readonly-write-parsed", "--readonly --parse-only --name=a --size=64k --rw=write")
            .check(refused),
        program("readonly-write-shown", "--readonly --showcmd job.fio")
            .text("job.fio", "[a]\nsize=64k\nrw=randtrim\n")
            .check(refused),
        program("showcmd-output", "--showcmd --output=shown job.fio")
            .text("job.fio", "[a]\nsize=64k\nrw=read\n")
            .check(success)
            .check(stdout)
            .check(files),
        program("aux-path", &format!("--aux-path=. {JOB}")).check(success),
        program("idle-prof", &format!("--idle-prof=system {JOB}")).check(exit),
        program("crctest", "--crctest=crc32c").check(exit).check(says_something),
        program("cpuclock-test", "--cpuclock-test").check(clock_verdict),
    ];
    cases.push(program("eta-never", &format!("--eta=never {JOB}")).check(success));
    cases.push(program("memcpytest-help", "--memcpytest=help").check(stdout));
    cases.push(program("memcpytest-unknown", "--memcpytest=bogus").check(stdout));
    cases.push(program("bandwidth-log", &format!("--bandwidth-log {JOB}")).check(success));
    cases
}

//! The output of the program on each stream, and its exit status.
//!
//! Invariant: standard output contains only what was requested, and standard error is empty unless something is wrong.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::schema::assert_documented;
use crate::common::{Dir, direct_works_in, finish, fiord, run_with_input, start};

const JOB: &str = "--name=job --ioengine=null --rw=randrw --bs=4k --size=1m";

fn lines_start(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split([' ', ';', ':']).next()).collect()
}

#[test]
fn standard_error_is_empty_on_success() {
    let dir = Dir::new();
    for format in ["normal", "terse", "json", "json+", "normal,json", "json,terse,normal"] {
        let ran = dir.run(&format!("--output-format={format} {JOB}"));
        assert_ne!(ran.assert_success().stdout, "", "{format}");
    }
    // Also with warnings: a depth that a synchronous engine does not have, and no runtime.
    let ran = dir.run(
        "--output-format=json --name=a --rw=write --bs=4k --size=64k --iodepth=32 --thread --alloc-size=1m",
    );
    assert_eq!(ran.assert_success().json()["jobs"][0]["write"]["total_ios"], 16);
}

/// The job files that the README begins with, shortened.
#[test]
fn each_job_file_in_examples_runs_without_a_warning() {
    let dir = Dir::new();
    fiord_testing::need!(direct_works_in(dir.path()));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = fs::read_dir(examples).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "fio")).collect();
    assert!(files.len() >= 4, "{files:?}");
    let shorter = |line: &str| match line.split_once('=') {
        Some(("runtime", _)) => "runtime=200ms".to_string(),
        Some(("size", _)) => "size=4m".to_string(),
        _ => line.to_string(),
    };
    for path in files {
        let lines: Vec<String> = fs::read_to_string(&path).unwrap().lines().map(shorter).collect();
        dir.write("job.fio", lines.join("\n"));
        let ran = dir.run("--trust=off job.fio");
        assert_eq!((ran.status, &ran.stderr[..]), (Some(0), ""), "{}: {ran:?}", path.display());
    }
}

#[test]
fn the_json_format_prints_nothing_but_json() {
    let dir = Dir::new();
    for format in ["json", "json+"] {
        let ran =
            dir.run(&format!("--output-format={format} {JOB} --name=other --stonewall --rw=read --size=1m"));
        assert!(ran.assert_success().stdout.starts_with('{') && ran.stdout.ends_with("}\n"), "{ran:?}");
        assert_eq!(ran.json()["jobs"].as_array().map(Vec::len), Some(2));
        assert_eq!(ran.json()["fio version"], "fio-3.42");
    }
}

#[test]
fn several_formats_are_printed_in_sequence() {
    let ran = Dir::new().run(&format!("--output-format=json,normal,terse {JOB}"));
    let text = &ran.assert_success().stdout;
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what:?} in {text}"));
    let banner = at("job: (g=0): rw=randrw");
    let starting = at("Starting 1 ");
    let terse = at("\n3;fio-3.42;job;0;0;");
    let json = at("\n{\n");
    let normal = at("\njob: (groupid=0, jobs=1)");
    assert!([banner, starting, terse, json, normal].is_sorted(), "{text}");
    let end = text[json..].find("\n}\n").unwrap() + json + 3;
    serde_json::from_str::<Value>(&text[json..end]).unwrap();
    assert!(text[end..normal + 1].trim().is_empty(), "between JSON and normal: {:?}", &text[end..normal]);
}

#[test]
fn terse_has_the_fields_of_its_version() {
    let dir = Dir::new();
    for (options, fields) in [
        ("--minimal", 121),
        ("--output-format=terse", 121),
        ("--minimal --terse-version=2", 161),
        ("--minimal --terse-version=4", 162),
        ("--output-format=terse --terse-version=5", 180),
    ] {
        let ran = dir.run(&format!("{options} {JOB}"));
        let lines: Vec<&str> = ran.assert_success().stdout.lines().collect();
        assert_eq!(lines.len(), 1, "{options}: {lines:?}");
        assert_eq!(lines[0].split(';').count(), fields, "{options}: {}", lines[0]);
    }
    let ran = dir.run(&format!("--append-terse {JOB}"));
    let kinds = lines_start(&ran.assert_success().stdout);
    assert!(kinds.contains(&"3") && ran.stdout.contains("Run status group 0"), "{ran:?}");
}

#[test]
fn a_report_to_a_file_leaves_standard_output_empty() {
    let dir = Dir::new();
    for (format, start) in
        [("json", "{\n"), ("normal", "job: (g=0): rw=randrw"), ("terse", "3;fio-3.42;job;")]
    {
        for option in ["--output=report", "-o report", "--output report"] {
            let ran = dir.run(&format!("{option} --output-format={format} {JOB}"));
            assert_eq!(ran.assert_success().stdout, "");
            assert!(dir.text("report").starts_with(start), "{}", dir.text("report"));
        }
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = Dir::new();
    for line in [
        "--cmdhelp=all",
        "--help",
        &format!("{JOB} --numjobs=64"),
        &format!("--output-format=json+ {JOB} --numjobs=64"),
    ] {
        let mut running = start(fiord(dir.path(), line));
        let mut reader = BufReader::with_capacity(16, running.0.stdout.take().unwrap());
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        assert_ne!(first, "");
        drop(reader);
        let ran = finish(running);
        assert_eq!(ran.stderr, "", "{line}");
        assert_eq!(ran.status, Some(0), "{line}");
    }
}

#[test]
fn readonly_refuses_to_change_anything() {
    let dir = Dir::new();
    dir.write("f", [1; 4096]);
    let before = dir.contents();
    for mode in ["write", "randwrite", "rw", "randrw", "trim", "trimwrite"] {
        let ran = dir.run(&format!("--readonly --name=a --filename=f --rw={mode} --bs=4k --size=4k"));
        ran.assert_status(1).assert_prints(&["readonly"]);
        assert!(dir.contents() == before, "{mode} changed something");
    }
    dir.run("--readonly --name=a --filename=f --rw=read --bs=4k --size=4k").assert_success();
    assert!(dir.contents() == before);
}

#[test]
fn parse_only_touches_nothing() {
    let dir = Dir::new();
    dir.write("job.fio", "[global]\nbs=4k\nsize=64k\n[a]\nrw=write\n[b]\nrw=randread\ndirectory=gone\n");
    dir.write("wrong.fio", "[a]\nrw=sideways\nbs=4k\n");
    let before = dir.contents();
    dir.run("--parse-only --name=a --filename=new --rw=write --bs=4k --size=64k").assert_success();
    let ran = dir.run("--parse-only --showcmd job.fio");
    assert!(ran.all_output().contains("--name=a --rw=write"), "{ran:?}");
    dir.run("--parse-only wrong.fio").assert_status(1).assert_prints(&["wrong.fio:2:4", "sideways"]);
    assert!(dir.contents() == before, "something was made");
}

// divergence: several wrong lines
#[test]
fn all_errors_are_reported_together_and_nothing_is_run() {
    let dir = Dir::new();
    dir.write("wrong.fio", "[good]\nrw=write\nbs=4k\nsize=64k\n[bad]\nrw=up\nbs=4q\niodpeth=3\n");
    let ran = dir.run("wrong.fio");
    ran.assert_status(1);
    for part in ["wrong.fio:6:4", "up", "wrong.fio:7:4", "4q", "wrong.fio:8:1", "iodepth"] {
        assert!(ran.stderr.contains(part), "{part} is not in {}", ran.stderr);
    }
    assert_eq!(dir.contents().len(), 1, "the good job was run");
}

#[test]
fn called_as_fio_it_is_fio() {
    let dir = Dir::new();
    symlink(env!("CARGO_BIN_EXE_fiord"), dir.join("fio")).unwrap();
    for arguments in [&["--version"][..], &["-v"]] {
        let mut command = Command::new(dir.join("fio"));
        command.args(arguments);
        assert_eq!(finish(start(command)).assert_success().stdout, "fio-3.42\n");
        let mut command = fiord(dir.path(), "");
        command.args(arguments);
        let both = concat!("fio-3.42\nfiord ", env!("CARGO_PKG_VERSION"), "\n");
        assert_eq!(finish(start(command)).assert_success().stdout, both);
    }
    // It has no subcommands under that name: this is a job file that does not exist.
    let mut command = Command::new(dir.join("fio"));
    command.arg("version").current_dir(dir.path());
    finish(start(command)).assert_status(1).assert_prints(&["version"]);
    let mut command = Command::new(dir.join("fio"));
    command.args(format!("--output-format=json {JOB}").split_whitespace());
    assert_eq!(finish(start(command)).assert_success().json()["jobs"][0]["jobname"], "job");
}

#[test]
fn help_goes_to_standard_output_and_errors_to_standard_error() {
    let dir = Dir::new();
    let help = dir.run("version --help");
    assert!(help.assert_success().stdout.contains("Usage: fiord version [OPTIONS]"), "{help:?}");
    let mistake = dir.run("version --jsn");
    assert!(mistake.assert_status(1).stderr.starts_with("fiord version: unexpected argument '--jsn'"));
    assert_eq!(mistake.assert_prints(&["'--json'"]).stdout, "");
}

/// A page explains what is not built in as well.
#[test]
fn a_page_is_printed_beside_an_option_that_is_not_built_in() {
    let dir = Dir::new();
    let pending = "--hosts=a --idle-prof=system";
    for line in ["--help", "--version", "--cmdhelp=bs"].map(|page| format!("{pending} {page}")) {
        let ran = dir.run(&line);
        assert_ne!(ran.assert_success().stdout, "", "{line}");
    }
    let refused = dir.run(pending);
    refused.assert_status(1).assert_prints(&["idle-prof: does not work with --hosts yet"]);
}

// divergence: `--help`, `--version`
/// What stands before a page on the command line is read and checked, what stands after it is not; as in fio.
#[test]
fn a_page_is_printed_if_nothing_before_it_is_wrong() {
    let dir = Dir::new();
    for page in ["--version", "-v", "--help", "-h", "--cmdhelp=bs", "--enghelp=mmap"] {
        let ran = dir.run(&format!("--name=a --iodepth=zz {page}"));
        assert_eq!(ran.assert_status(1).assert_prints(&["1:20", "zz"]).stdout, "", "{page}");
        let ran = dir.run(&format!("--name=a {page} --iodepth=zz"));
        assert_eq!(ran.assert_success().stderr, "", "{page}");
        assert_ne!(ran.stdout, "", "{page}");
    }
    // fio reads `-conf` as `-c onf`, which asks for a page, and the engine stands before it.
    let ran = dir.run("--name=a --ioengine=./x.so -conf 1");
    assert_eq!(ran.assert_status(1).assert_prints(&["engine ./x.so not loadable"]).stdout, "");
}

// divergence: `--section=b` without such a section
#[test]
fn an_unknown_section_is_named_when_it_leaves_no_jobs() {
    let dir = Dir::new();
    fs::write(dir.path().join("a.fio"), "[a]\nsize=4k\nioengine=null\n").expect("a job file");
    let ran = dir.run("--section=zz a.fio");
    assert_eq!(ran.assert_status(1).assert_prints(&["there is no section \"zz\"", "no jobs"]).stdout, "");
}

#[test]
fn a_job_file_takes_precedence_over_a_subcommand_of_its_name() {
    let dir = Dir::new();
    assert!(dir.run("version").assert_success().stdout.starts_with("fiord "));
    let facts: Value = dir.run("version --json").assert_success().json();
    assert_eq!(facts["fiord"], env!("CARGO_PKG_VERSION"));
    dir.write("version", "[from_a_file]\nioengine=null\nrw=read\nsize=64k\n");
    let ran = dir.run("version --output-format=json");
    assert_eq!(ran.assert_success().json()["jobs"][0]["jobname"], "from_a_file");
}

#[test]
fn jobs_come_from_files_standard_input_and_the_command_line() {
    let dir = Dir::new();
    let text = "[one]\nioengine=null\nrw=read\nbs=4k\nsize=64k\n[two]\nioengine=null\nrw=read\nsize=64k\n";
    dir.write("job.fio", text);
    let names = |ran: &crate::common::Ran| -> Vec<String> {
        let document = ran.assert_success().json();
        let jobs = document["jobs"].as_array().unwrap().clone();
        jobs.iter().map(|job| job["jobname"].as_str().unwrap().to_string()).collect()
    };
    let json = "--output-format=json";
    assert_eq!(names(&dir.run(&format!("{json} job.fio"))), ["one", "two"]);
    assert_eq!(names(&dir.run(&format!("{json} --section=two job.fio"))), ["two"]);
    assert_eq!(names(&run_with_input(dir.path(), &format!("{json} -"), text)), ["one", "two"]);
    assert_eq!(names(&dir.run(&format!("{json} {JOB} --name=more --rw=read --size=4k"))), ["job", "more"]);
    dir.run("absent.fio").assert_status(1).assert_prints(&["absent.fio"]);
}

#[test]
fn the_report_echoes_options_where_they_were_typed() {
    let ran = Dir::new()
        .run("--output-format=json --bs=4Ki --ioengine=null --name=a --rw=read --size=64k --thread");
    let document = ran.assert_success().json();
    assert_eq!(document["global options"]["bs"], "4Ki", "{document}");
    let own = &document["jobs"][0]["job options"];
    assert_eq!((&own["rw"], &own["size"], &own["thread"]), (&"read".into(), &"64k".into(), &"".into()));
}

#[test]
fn help_is_given_without_a_job() {
    let dir = Dir::new();
    for line in
        ["--help", "-h", "--cmdhelp", "--cmdhelp=all", "--cmdhelp=iodepth", "--enghelp", "--enghelp=io_uring"]
    {
        let ran = dir.run(line);
        assert_ne!(ran.assert_success().stdout, "", "{line}");
    }
    dir.run("--cmdhelp=iodpeth").assert_prints(&["iodepth"]);
    let own = dir.run("--help");
    assert!(own.stdout.contains("fiord quick [TARGET]"), "{own:?}");
    dir.run("qiuck").assert_status(1).assert_prints(&["did you mean `fiord quick`?"]);
    assert_eq!(dir.contents(), []);
}

#[test]
fn help_lists_and_explains_the_subcommands() {
    let dir = Dir::new();
    let list = dir.run("help").assert_success().stdout.clone();
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let in_all = dir.run("--help").stdout;
    let names: Vec<&str> =
        in_all.lines().filter_map(|line| line.strip_prefix("  fiord ")?.split(' ').next()).collect();
    assert!(names.contains(&"quick") && names.contains(&"help"), "{in_all}");
    for name in names {
        assert!(list.contains(&format!(" {name}")), "{name} is not in {list}");
        let page = dir.run(&format!("help {name}"));
        assert!(page.assert_success().stdout.contains(&format!("Usage: fiord {name}")), "{page:?}");
        assert_eq!(page.stdout, dir.run(&format!("{name} --help")).stdout, "{name}");
    }
    dir.run("help qiuck").assert_status(1).assert_prints(&["did you mean `fiord quick`?"]);
    dir.run("help iodepth").assert_status(1).assert_prints(&["fiord --cmdhelp=iodepth"]);
    dir.run("help nonsense").assert_status(1).assert_prints(&["`fiord help` lists them"]);
    assert_eq!(dir.contents(), []);
    // A job file of that name comes first, a directory does not.
    fs::create_dir(dir.join("help")).unwrap();
    assert_eq!(dir.run("help").assert_success().stdout, list);
    fs::remove_dir(dir.join("help")).unwrap();
    dir.write("help", "[from_a_file]\nioengine=null\nrw=read\nsize=64k\n");
    let ran = dir.run("help --output-format=json");
    assert_eq!(ran.assert_success().json()["jobs"][0]["jobname"], "from_a_file");
    // A word behind it that is no file is one of the subcommand's.
    assert!(dir.run("help quick").assert_success().stdout.contains("Usage: fiord quick"));
    fs::remove_file(dir.join("help")).unwrap();
    symlink(env!("CARGO_BIN_EXE_fiord"), dir.join("fio")).unwrap();
    let mut command = Command::new(dir.join("fio"));
    command.arg("help").current_dir(dir.path());
    finish(start(command)).assert_status(1).assert_prints(&["job file"]);
}

/// The names come from the declarations themselves.
#[test]
fn every_subcommand_prints_json() {
    let dir = Dir::new();
    let document = dir.run("help --json").assert_success().json();
    assert_documented(&document, "help");
    let subcommands = document["subcommands"].as_array().unwrap();
    let has_json = |subcommand: &Value| {
        subcommand["options"].as_array().unwrap().iter().any(|option| option["name"] == "json")
    };
    let without: Vec<&str> = subcommands
        .iter()
        .filter(|subcommand| subcommand["needs_subcommand"] == false && !has_json(subcommand))
        .map(|subcommand| subcommand["name"].as_str().unwrap())
        .collect();
    // It speaks to a controller, in frames.
    assert_eq!(without, ["agent"]);
    let names: Vec<&str> = subcommands.iter().map(|one| one["name"].as_str().unwrap()).collect();
    for name in ["quick", "history", "history rm", "crash-test", "crash-test run", "help"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let one = dir.run("help --json crash-test").assert_success().json();
    let below: Vec<&Value> =
        subcommands.iter().filter(|one| one["name"].as_str().unwrap().starts_with("crash-test")).collect();
    assert_eq!(one["subcommands"].as_array().unwrap().iter().collect::<Vec<_>>(), below);
    dir.run("help --json --man").assert_status(1);
    let script = dir.run("completions --json fish").assert_success().json();
    assert_documented(&script, "completions");
    assert_eq!(script["shell"], "fish");
    assert_eq!(script["script"], dir.run("completions fish").assert_success().stdout);
}

#[test]
fn every_page_of_help_fits_80_columns() {
    let dir = Dir::new();
    let all = dir.run("--help").assert_success().stdout.clone();
    let mut pages = vec![("--help".to_string(), all.clone())];
    let names = all.lines().filter_map(|line| line.strip_prefix("  fiord ")?.split(' ').next());
    let mut rest: Vec<String> = names.map(String::from).collect();
    while let Some(name) = rest.pop() {
        let page = dir.run(&format!("{name} --help")).assert_success().stdout.clone();
        // Subcommands of a subcommand.
        let below = page.split_once("\nCommands:\n").map_or("", |(_, commands)| commands);
        let below =
            below.lines().take_while(|line| !line.is_empty()).filter(|line| line.get(2..3) != Some(" "));
        rest.extend(
            below
                .filter_map(|line| line.split_whitespace().next())
                .filter(|word| *word != "help")
                .map(|word| format!("{name} {word}")),
        );
        pages.push((name, page));
    }
    assert!(pages.iter().any(|(name, _)| name == "crash-test run"), "pages of nested subcommands are found");
    for (name, page) in pages {
        let wide: Vec<&str> = page.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{name}: {wide:#?}");
    }
}

/// As with fio, a command line without anything is an error; scripts see it on standard error.
#[test]
fn the_first_page_fits_a_terminal() {
    let dir = Dir::new();
    let alone = dir.run("");
    alone.assert_status(1);
    assert_eq!(alone.stdout, dir.run("help").assert_success().stdout);
    assert!(alone.stdout.lines().count() <= 23, "with the prompt it fills 24 lines: {}", alone.stdout);
    assert!(alone.stdout.lines().all(|line| line.chars().count() <= 80), "{}", alone.stdout);
    for part in ["fiord quick", "Examples:", "fiord --help", "--cmdhelp=OPTION"] {
        assert!(alone.stdout.contains(part), "{part} is not in {}", alone.stdout);
    }
    assert!(alone.stderr.starts_with("fiord: no arguments: ") && alone.stderr.lines().count() == 1);
    symlink(env!("CARGO_BIN_EXE_fiord"), dir.join("fio")).unwrap();
    let mut command = Command::new(dir.join("fio"));
    command.current_dir(dir.path());
    let fio = finish(start(command));
    assert_eq!(fio.assert_status(1).assert_prints(&["no jobs"]).stdout, "");
}

#[test]
fn every_subcommand_has_examples_that_it_accepts() {
    let dir = Dir::new();
    let list = dir.run("--help").stdout;
    for name in list.lines().filter_map(|line| line.strip_prefix("  fiord ")?.split(' ').next()) {
        let page = dir.run(&format!("{name} --help"));
        let (_, examples) =
            page.stdout.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{name}: {page:?}"));
        assert!(examples.lines().all(|line| line.chars().count() <= 80), "{examples}");
        let mut accepted = 0;
        for example in examples.lines().filter_map(|line| line.trim().strip_prefix("fiord ")) {
            // Words after two spaces explain it, a pipe or a file is elsewhere.
            let line = example.split("  ").next().and_then(|line| line.split(['|', '>']).next()).unwrap();
            if line.contains('\'') {
                continue;
            }
            // What is wrong before --help is reported instead. Behind -- stands another program.
            let (own, program) = line.split_once(" -- ").unwrap_or((line, ""));
            dir.run(&format!("{own} --help -- {program}")).assert_success();
            accepted += 1;
        }
        assert!(accepted > 0, "{name}: {examples}");
    }
}

#[test]
fn the_document_of_a_run_names_its_fiord_in_an_object() {
    let dir = Dir::new();
    let run = dir.run(&format!("--output-format=json {JOB}")).assert_success().json();
    assert_eq!(run["fiord"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["fio version"], "fio-3.42");
}

#[test]
fn an_error_of_a_subcommand_begins_with_its_name() {
    let dir = Dir::new();
    let history = dir.join("history");
    for (line, error) in [
        ("help nonsense", "fiord help: no subcommand is called \"nonsense\""),
        ("show 99", "fiord show: there is no run 99"),
        ("show some", "fiord show: \"some\" names no run"),
        ("history rm 99", "fiord history: no run has been recorded yet"),
        (
            "history --limit=x",
            "fiord history: invalid value 'x' for '--limit <COUNT>': \"x\" is not a number of runs",
        ),
        ("explain none", "fiord explain: none: no such file"),
        ("devices none", "fiord devices: cannot examine none: it does not exist"),
        ("quick none", "fiord quick: none: no such directory, file or device"),
        ("sweep --rw=read", "fiord sweep: the following required arguments were not provided"),
        ("crash-test", "fiord crash-test: 'fiord crash-test' requires a subcommand"),
    ] {
        let mut command = fiord(dir.path(), line);
        command.env("XDG_STATE_HOME", &history);
        let ran = finish(start(command));
        ran.assert_status(1);
        assert!(ran.stderr.starts_with(error) && ran.stdout.is_empty(), "{line}: {ran:?}");
    }
    assert_eq!(dir.contents(), []);
}

#[test]
fn a_page_that_cannot_be_written_is_an_error_of_its_subcommand() {
    let dir = Dir::new();
    for (line, name) in [
        ("version", "version"),
        ("help", "help"),
        ("help show", "show"),
        ("history --json", "history"),
        ("devices --json", "devices"),
        ("explain --line iops", "explain"),
        ("check list", "check"),
        ("quick --dry-run", "quick"),
        ("sweep --rw=read --over bs=4k,8k --dry-run", "sweep"),
        ("quick --time=1ms --size=16m --no-history", "quick"),
    ] {
        let mut command = fiord(dir.path(), line);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = command.env("XDG_STATE_HOME", dir.join("history")).stdout(full).output().unwrap();
        let error = format!("fiord {name}: standard output: No space left on device (ENOSPC)\n");
        assert_eq!(
            (String::from_utf8_lossy(&ran.stderr).as_ref(), ran.status.code()),
            (error.as_str(), Some(1))
        );
    }
}

#[test]
fn a_job_that_did_less_than_its_size_is_distinguishable() {
    // `runtime` without `time_based` ends at `size`, as the manual says.
    let ran = Dir::new()
        .run("--output-format=json --name=a --ioengine=null --rw=read --bs=4k --size=64k --runtime=30");
    assert_eq!(ran.assert_success().json()["jobs"][0]["read"]["total_ios"], 16);
}

/// What a user of other programs types first, and what is meant.
#[test]
fn a_wrong_word_is_answered_with_the_right_one() {
    let dir = Dir::new();
    let cases = [
        ("quick -t 10", "'--time'"),
        ("quick --tme=3", "'--time'"),
        ("capacity --p95=10ms", "'--bound=p95=TIME'"),
        ("capacity --p99=10", "10ms"),
        ("check postgresql", "did you mean \"postgres\"?"),
        ("run job.fio", "`fiord JOBFILE`"),
        ("parse --help", "`fiord --parse-only JOBFILE`"),
        ("quik --help", "`fiord quick`"),
        ("help run", "`fiord JOBFILE`"),
        ("--name=a --ioengine=io_uring_cmd --filename=missing --size=1m", "/dev/ng"),
    ];
    for (line, hint) in cases {
        let ran = dir.run(line);
        ran.assert_status(1).assert_prints(&[hint]);
        assert!(!ran.all_output().contains("-- -t"), "{ran:?}");
    }
}

//! Paths with characters that have a meaning in job files, in every study and subcommand that takes paths.
//!
//! Invariant: a directory whose other files have the names that a path would have if it were cut, expanded, split,
//! trimmed or parsed as text is byte for byte unchanged.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fiord_testing::need;

use crate::common::study::is_empty;
use crate::common::{Dir, Ran, finish, helper, start};

/// Stands for the path of the test's directory in the paths of a test.
const HERE: &[u8] = b"HERE";

/// Names and paths of directories, below the test's.
const DANGEROUS: [&[u8]; 24] = [
    b"a;b",
    b"a#b",
    b"a\nfilename=HERE/victim;",
    b"a\n[b]\nrw=write\nfilename=HERE/victim#",
    b"a\nunlink=1",
    b"x$ncpus",
    b"x${HOME}y",
    b"x${F}",
    b"$jobname.$jobnum",
    b"a:b",
    b":",
    b"a\\:b",
    b"a\\",
    b" a",
    b"a ",
    b"a\t",
    b"\"a\"",
    b"'a'",
    b"[a]",
    b"-a",
    b"-",
    b"a,b=c%d*e?",
    b"\xff\xfe",
    b"a\x01\x1b[2J\r",
];

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_os_string()
}

/// The name below the directory, with the directory's own path where it says `HERE`.
fn below(dir: &Dir, name: &[u8]) -> PathBuf {
    let here = dir.path().as_os_str().as_bytes();
    let at = name.windows(HERE.len()).position(|part| part == HERE);
    let name = match at {
        Some(at) => [&name[..at], here, &name[at + HERE.len()..]].concat(),
        None => name.to_vec(),
    };
    // Not `join`: the name is never absolute.
    PathBuf::from(os(&[here, b"/", &name].concat()))
}

/// Names that a path could be mistaken for.
fn mistaken(name: &[u8]) -> Vec<Vec<u8>> {
    let lossy = String::from_utf8_lossy(name);
    let mut names: Vec<Vec<u8>> = (1..name.len()).map(|length| name[..length].to_vec()).collect();
    names.extend((1..name.len()).map(|start| name[start..].to_vec()));
    names.extend(name.split(|byte| b":;#\n,= ".contains(byte)).map(<[u8]>::to_vec));
    names.push(lossy.trim().as_bytes().to_vec());
    names.push(lossy.replace('\\', "").into_bytes());
    names.push(lossy.replace(['"', '\''], "").into_bytes());
    for cpus in 1..=64 {
        names.push(lossy.replace("$ncpus", &cpus.to_string()).into_bytes());
    }
    names.push(lossy.replace("${HOME}", "home").replace("${F}", "other").into_bytes());
    names.push(lossy.replace("$jobname", "a").replace("$jobnum", "0").into_bytes());
    names.push(lossy.into_owned().into_bytes());
    names.extend([b"victim".to_vec(), b"data".to_vec(), b"x".to_vec(), b"b".to_vec()]);
    names.retain(|other| {
        !other.is_empty() && other != name && other != b"." && other != b".." && !other.contains(&b'/')
    });
    names
}

/// The directory with this dangerous name, among the files that must not change.
fn among_neighbours(dir: &Dir, name: &[u8]) -> PathBuf {
    let path = below(dir, name);
    fs::create_dir_all(&path).unwrap();
    for neighbour in mistaken(name) {
        let neighbour = dir.path().join(os(&neighbour));
        if !neighbour.exists() {
            fs::write(&neighbour, neighbour.as_os_str().as_bytes()).unwrap();
        }
    }
    path
}

fn run(dir: &Dir, subcommand: &str, path: &Path, rest: &str) -> Ran {
    let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
    command.args(crate::common::words(subcommand)).args(rest.split_whitespace()).arg("--").arg(path);
    command.current_dir(dir.path()).env("HOME", "home").env("F", "other");
    command.env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("paths-state"));
    finish(start(command))
}

#[test]
fn studies_write_only_to_scratch_files_in_a_directory_of_any_name() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        for study in ["quick --time 70ms", "matrix --time 10ms --bs 4k --rw randrw"] {
            let ran = run(&dir, study, &path, "--size 8M --json");
            ran.assert_success();
            assert_eq!(ran.json()["complete"], true, "{ran:?}");
            assert!(dir.contents() == before, "{study} {path:?}");
        }
        assert!(is_empty(&path));
    }
}

#[test]
fn profiles_write_only_to_scratch_files_in_a_directory_of_any_name() {
    for name in [DANGEROUS[0], DANGEROUS[2], DANGEROUS[5], DANGEROUS[9], DANGEROUS[22]] {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        for profile in ["etcd", "rocksdb", "oltp"] {
            let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
            command.args(["check", "--time", "300ms", "--size", "8M", "--json", "--no-history", profile]);
            command.arg("--").arg(&path).current_dir(dir.path());
            let ran = finish(start(command));
            assert_eq!(ran.json()["complete"], true, "{ran:?}");
            assert!(dir.contents() == before, "{profile} {path:?}");
        }
    }
}

#[test]
fn a_sweep_without_files_works_in_a_directory_of_any_name() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
        command.args([
            "sweep",
            "--trust=off",
            "--rw=write",
            "--size=8M",
            "--over",
            "bs=64k,1m",
            "--time",
            "20ms",
            "--json",
        ]);
        let ran = finish(start({
            command.current_dir(&path);
            command
        }));
        ran.assert_success();
        assert_eq!(ran.json()["complete"], true, "{ran:?}");
        assert!(dir.contents() == before, "{path:?}");
    }
}

#[test]
fn files_of_any_name_are_only_read() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name).join("data");
        fs::File::create(&path).unwrap().set_len(8 << 20).unwrap();
        let before = dir.contents();
        for subcommand in ["quick --time 20ms", "matrix --time 10ms --bs 4k --rw randrw,read"] {
            let ran = run(&dir, subcommand, &path, "--json --no-history");
            ran.assert_success();
            assert_eq!(ran.json()["target"]["writable"], false);
        }
        run(&dir, "devices", &path, "--json").assert_success();
        let text = run(&dir, "devices", &path, "");
        text.assert_success();
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!text.stdout.contains(control), "{text:?}");
        assert!(dir.contents() == before, "{path:?}");
    }
}

/// The files named on the command line of a run are those of the same sweep.
#[test]
fn a_sweep_names_the_files_that_a_run_names() {
    for name in DANGEROUS.into_iter().filter(|name| !name.contains(&b'/')) {
        if name.windows(HERE.len()).any(|part| part == HERE) {
            continue;
        }
        let written = |line: &[&str]| {
            let dir = Dir::new();
            for neighbour in mistaken(name) {
                fs::write(dir.path().join(os(&neighbour)), &neighbour).unwrap();
            }
            let before = dir.contents();
            let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
            command.args(line).args(["--rw=write", "--size=64k", "--loops=1"]).arg(os(&[
                b"--filename=",
                name,
            ]
            .concat()));
            let ran = finish(start({
                command.current_dir(dir.path()).env("F", "other");
                command
            }));
            let changed = |(path, bytes): (PathBuf, Vec<u8>)| {
                let name = path.strip_prefix(dir.path()).unwrap().to_path_buf();
                (!before.contains(&(path, bytes))).then_some(name)
            };
            (ran.status, dir.contents().into_iter().filter_map(changed).collect::<Vec<_>>())
        };
        let by_run = written(&["--name=a", "--no-history", "--output=/dev/null"]);
        assert_eq!(written(&["sweep", "--trust=off", "--over", "bs=4k,8k", "--name=a"]), by_run, "{name:?}");
    }
}

#[test]
fn a_dry_run_prints_a_job_file_that_reads_back_or_a_reason() {
    for name in DANGEROUS {
        let dir = Dir::new();
        let path = among_neighbours(&dir, name);
        let before = dir.contents();
        let ran = run(&dir, "quick", &path, "--size 8M --dry-run");
        match ran.status {
            Some(0) => {
                let lines: Vec<&str> =
                    ran.stdout.lines().filter(|line| line.starts_with("filename=")).collect();
                assert_eq!(lines.len(), 8, "{ran:?}");
                // Bytes that are not UTF-8 are in the job file unchanged, and the program has read it back.
                let expected = path.to_string_lossy().replace(':', "\\:");
                assert!(lines.iter().all(|line| line["filename=".len()..].starts_with(&expected)), "{ran:?}");
            }
            _ => {
                ran.assert_status(1).assert_prints(&["cannot be written in a job file: "]);
                assert_eq!(ran.stdout, "");
            }
        }
        assert!(dir.contents() == before);
    }
}

/// Names used in every place for a path or free text, with both programs.
const NAMES: [&[u8]; 6] = [b"caf\xe9", b"\xc3", b"a\nb c\xfe", b"a\\:b\xe9", b"x:y\xff", b"\xf0\x9f;#$x"];

/// The files after a run of a program, without the contents of reports and logs.
fn made_by(program: &str, arguments: &[OsString], files: &[(OsString, Vec<u8>)]) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Dir::new();
    for (name, bytes) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let mut command = crate::common::with_own_history(program);
    command.args(arguments).env("V", os(NAMES[0])).current_dir(dir.path());
    command.env("XDG_STATE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("paths-state"));
    let ran = finish(start(command));
    assert_eq!(ran.status, Some(0), "{program} {arguments:?}: {ran:?}");
    let what = |(path, bytes): (PathBuf, Vec<u8>)| {
        let name = path.strip_prefix(dir.path()).unwrap().to_path_buf();
        // fio 3.33 creates this in the current directory.
        let is_state = name.to_string_lossy().contains("-verify.state");
        let is_report = [&b".log"[..], b"out"].iter().any(|end| name.as_os_str().as_bytes().ends_with(end));
        (!is_state).then_some((name, if is_report { Vec::new() } else { bytes }))
    };
    let mut made: Vec<_> = dir.contents().into_iter().filter_map(what).collect();
    made.sort();
    made
}

/// The arguments of a run, and the files that exist before it.
type Given = (Vec<OsString>, Vec<(OsString, Vec<u8>)>);

/// Command lines with this name in every place for one.
fn command_lines_with(name: &[u8]) -> Vec<Given> {
    const GLOBAL: [&[u8]; 3] = [b"--rw=write", b"--size=64k", b"--zero_buffers"];
    let line = |words: &[&[u8]]| [&GLOBAL[..], words].concat().into_iter().map(os).collect::<Vec<_>>();
    let with = |option: &[u8], end: &[u8]| {
        line(&[b"--output=out", b"--name=a", &[option, b"=", name, end].concat()])
    };
    let below = |file: &[u8]| os(&[name, b"/", file].concat());
    let mut lines: Vec<Given> = vec![
        (with(b"--filename", b""), vec![]),
        (with(b"--filename_format", b".$jobnum"), vec![]),
        (with(b"--description", b""), vec![]),
        (with(b"--write_bw_log", b""), vec![]),
        (line(&[b"--output=out", b"--name=a", &[b"--exec_prerun=printf %s '", name, b"'"].concat()]), vec![]),
        (line(&[&[b"--output=", name, b"out"].concat(), b"--name=a"]), vec![]),
        (line(&[b"--output=out", &[b"--name=", name].concat()]), vec![]),
    ];
    // fio passes the name of the file for a command's output to a shell.
    if !name.iter().any(|byte| b"\n\\;$ ".contains(byte)) {
        lines.push((line(&[b"--output=out", &[b"--name=", name].concat(), b"--exec_prerun=true"]), vec![]));
    }
    if !name.contains(&b':') {
        lines.push((with(b"--directory", b""), vec![(below(b"f"), vec![])]));
        lines.push((with(b"--opendir", b""), vec![(below(b"f"), vec![b'x'; 64 << 10])]));
    }
    lines
}

/// The same for job files, in which lines end and comments begin.
fn job_files_with(name: &[u8]) -> Vec<Given> {
    if name.iter().any(|byte| b"\n;#".contains(byte)) {
        return Vec::new();
    }
    const JOB: &[u8] = b"]\nrw=write\nsize=64k\nzero_buffers\nfilename= ";
    let options = [b":f \ndescription=", name, b"\nwrite_iops_log=", name, b"\ninclude i", name].concat();
    let text = [b"# \xff\n[", name, JOB, name, &options, b"\n[b", JOB, b"${V}\n"].concat();
    let included = (os(&[b"i", name].concat()), b"numjobs=2\n".to_vec());
    let (plain, named) = (os(b"j.fio"), os(&[b"j", name].concat()));
    vec![
        (vec![plain.clone(), os(b"--output=out")], vec![(plain, text), included]),
        (vec![named.clone(), os(b"--output=out")], vec![(named, [b"[a", JOB, b"x\n"].concat())]),
    ]
}

#[test]
fn names_of_any_bytes_are_those_of_fio() {
    need!(helper("fio", &["--version"]));
    let mut differences = Vec::new();
    let given = NAMES.iter().flat_map(|name| [command_lines_with(name), job_files_with(name)].concat());
    for (arguments, files) in given {
        let ours = made_by(env!("CARGO_BIN_EXE_fiord"), &arguments, &files);
        let theirs = made_by("fio", &arguments, &files);
        if ours != theirs {
            let names = |made: &[(PathBuf, Vec<u8>)]| {
                made.iter().map(|(name, bytes)| format!("{name:?} {}", bytes.len())).collect::<Vec<_>>()
            };
            differences.push(format!("{arguments:?}: fiord {:?}, fio {:?}", names(&ours), names(&theirs)));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_command_line_that_showcmd_prints_has_the_bytes_of_the_job_file() {
    need!(helper("fio", &["--version"]));
    let dir = Dir::new();
    fs::write(dir.path().join("j.fio"), b"[caf\xe9]\nfilename=\xff:b\ndescription=\xfe \xc3\n").unwrap();
    let printed = |program: &str| {
        let mut command = crate::common::with_own_history(program);
        command.args(["--showcmd", "j.fio"]).current_dir(dir.path()).output().unwrap().stdout
    };
    assert_eq!(printed(env!("CARGO_BIN_EXE_fiord")), printed("fio"));
}

// divergence: bytes that are not UTF-8
#[test]
fn bytes_that_are_not_a_value_are_refused_with_their_place() {
    let dir = Dir::new();
    let lossy = String::from_utf8_lossy(b"a\xff").into_owned();
    dir.write(&lossy, "precious");
    fs::write(dir.path().join("j.fio"), b"[\xe9]\nfilename=a\xff\nrw=write\nbs=4\xff\n").unwrap();
    for (arguments, place) in [
        (vec![os(b"--name=\xe9"), os(b"--filename=a\xff"), os(b"--bs=4\xff")], "command line:1:29"),
        (
            vec![os(b"sweep"), os(b"--over=rw=write"), os(b"--name=\xe9"), os(b"--bs=4\xff")],
            "command line:1:15",
        ),
        (vec![os(b"j.fio")], "j.fio:4:4"),
    ] {
        let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
        command.args(&arguments).current_dir(dir.path());
        let ran = finish(start(command));
        ran.assert_status(1).assert_prints(&[place, "bs:", r#""4\xff" is not UTF-8"#]);
        assert_eq!(dir.text(&lossy), "precious");
    }
}

/// The sweep's own option takes any path, and so does the job that it runs.
#[test]
fn a_sweep_takes_paths_of_any_bytes() {
    let dir = Dir::new();
    let lossy = String::from_utf8_lossy(b"a\xff").into_owned();
    dir.write(&lossy, "precious");
    let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
    command.args([
        "sweep",
        "--trust=off",
        "--over",
        "bs=4k,8k",
        "--size=64k",
        "--loops=1",
        "--rw=write",
        "--plot",
    ]);
    command.arg(os(b"a\xff")).arg(os(b"--filename=f\xff"));
    finish(start({
        command.current_dir(dir.path());
        command
    }))
    .assert_success();
    assert_eq!(dir.text(&lossy), "precious");
    assert!(fs::read(dir.path().join(os(b"a\xff"))).unwrap().starts_with(b"<svg "));
    assert_eq!(fs::read(dir.path().join(os(b"f\xff"))).unwrap().len(), 64 << 10);
}

/// The history has a run's paths and names as in its report.
#[test]
fn the_history_keeps_names_of_any_bytes() {
    let (dir, state) = (Dir::new(), Dir::new());
    let fiord = |arguments: &[OsString]| {
        let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
        command.args(arguments).current_dir(dir.path()).env("XDG_STATE_HOME", state.path());
        let ran = finish(start(command));
        ran.assert_success();
        ran
    };
    let line = [b"--name=caf\xe9".as_slice(), b"--rw=write", b"--size=4k", b"--filename=f\xff"];
    let ran = fiord(&line.map(os));
    assert!(ran.stdout.contains(r"caf\xe9: (g=0): rw=write"), "{ran:?}");
    let shown = fiord(&[os(b"show"), os(b"1")]);
    assert!(shown.stdout.contains(r"caf\xe9: (groupid=0, jobs=1): err= 0"), "{shown:?}");
}

/// The history does not confuse paths that look alike.
#[test]
fn the_history_distinguishes_paths() {
    let dir = Dir::new();
    let state = Dir::new();
    let names: [&[u8]; 5] = [b"a\xff", b"a\\xff", "a\u{fffd}".as_bytes(), b"a\n", b"a\\n"];
    let fiord = |words: &[&str], name: &[u8]| {
        let mut command = crate::common::with_own_history(env!("CARGO_BIN_EXE_fiord"));
        command.args(words).arg(dir.path().join(os(name))).env("XDG_STATE_HOME", state.path());
        command.current_dir(dir.path());
        let ran = finish(start(command));
        ran.assert_success();
        ran
    };
    for name in names {
        fs::create_dir(dir.path().join(os(name))).unwrap();
        fiord(&["quick", "--trust=off", "--size", "8M", "--time", "70ms"], name);
    }
    for (number, name) in names.into_iter().enumerate() {
        let listed = fiord(&["history", "--json", "--target"], name).json();
        let runs: Vec<_> = listed["runs"].as_array().unwrap().iter().collect();
        assert_eq!(runs.len(), 1, "{name:?}: {runs:?}");
        // The runs of a study have its number as their parent.
        let ids = |index: usize| {
            fiord(&["history", "--json", "--target"], names[index]).json()["runs"][0]["id"].as_u64()
        };
        assert!(number == 0 || ids(number) > ids(number - 1));
        // The command can be pasted into a shell.
        let command = runs[0]["command"].as_str().unwrap();
        let echo = helper("bash", &["-c", &format!("printf %s {}", command.split_once(" 70ms ").unwrap().1)]);
        let expected = dir.path().join(os(name));
        let bytes = echo.unwrap();
        assert_eq!(
            bytes.trim(),
            String::from_utf8_lossy(expected.as_os_str().as_bytes()).trim(),
            "{command}"
        );
    }
}

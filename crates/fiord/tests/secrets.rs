//! Secrets are nowhere but in what the user typed: not in reports, the history, its exports, pages, metrics or errors.
//!
//! Invariant: the secret options are those of the table; every file and every output is searched, byte by byte.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use fiord_options::Scope;
use fiord_options::table::engine_specs;

use crate::common::{Dir, Ran, finish, fiord, start};

/// What must not be found.
const SECRET: &str = "hunter2-recognisable";

/// No server is there.
const NOWHERE: &str = "127.0.0.1:1";

/// Jobs with a secret each, as options of a command line; none reaches a server.
fn jobs() -> Vec<String> {
    let of_option = |spec: &'static fiord_options::Spec| {
        let Scope::Engine(engines) = spec.scope else { panic!("{}", spec.name) };
        format!("--ioengine={} --{}={SECRET}", engines[0].word(), spec.name)
    };
    let mut jobs: Vec<String> = engine_specs().filter(|spec| spec.secret).map(of_option).collect();
    assert!(jobs.len() >= 6, "{jobs:?}");
    jobs.extend([
        format!("--ioengine=nbd --uri=nbd://me:{SECRET}@{NOWHERE}/x"),
        format!("--ioengine=nbd --uri=nbdx://me:{SECRET}@{NOWHERE}/x"),
        format!("--ioengine=nfs --nfs_url=nfs://me:{SECRET}@127.0.0.1/x?nfsport=1&mountport=1"),
        format!(
            "--ioengine=libiscsi --filename=iscsi\\://me%{SECRET}@{}/iqn.x/0",
            NOWHERE.replace(':', "\\:")
        ),
        format!("--ioengine=null --metrics=otlp:http://me:{SECRET}@{NOWHERE}/v1?api-key={SECRET}"),
        format!("--ioengine=null --exec_prerun=true${{IFS}}http://me:{SECRET}@h"),
    ]);
    jobs
}

/// Everything that shows what was recorded.
const SHOWN: &[&str] = &[
    "history",
    "history --json",
    "history --csv",
    "history --markdown",
    "history --export=csv -o export.csv --force",
    "history --export=line -o export.line --force",
    "history --export=parquet -o export.parquet --force",
    "show last",
    "show last --json",
    "show last --output-format=json+,terse,normal",
    "explain last",
    "explain last --json",
    "report last -o page.html --force",
];

struct Place(Dir);

impl Place {
    fn run(&self, line: &str) -> Ran {
        let mut command: Command = fiord(self.0.path(), line);
        command.env("XDG_STATE_HOME", self.0.join("state"));
        let ran = finish(start(command));
        assert!(!ran.all_output().contains(SECRET), "{line}: {ran:?}");
        ran
    }

    /// Checks every file but those that the user wrote.
    fn assert_clean(&self, what: &str) {
        for (path, bytes) in self.0.contents() {
            let is_typed = path.extension().is_some_and(|end| end == "fio" || end == "given");
            let has = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
            assert!(is_typed || !has, "{what}: {}", path.display());
        }
    }
}

// divergence: secret options in JSON and `--showcmd`
#[test]
fn no_output_and_no_file_has_a_secret() {
    let place = Place(Dir::new());
    for job in jobs() {
        let line = format!("--name=a --size=4k --filename=/x --http_host={NOWHERE} --trust=on {job}");
        let line =
            if job.contains("null") { line.replace(&format!(" --http_host={NOWHERE}"), "") } else { line };
        let line =
            if job.contains("http_") { line } else { line.replace(&format!(" --http_host={NOWHERE}"), "") };
        place.run(&format!("{line} --output-format=normal,json+,terse"));
        place.run(&format!("{line} --showcmd"));
        place.run(&format!("{line} --debug=parse --parse-only"));
        SHOWN.iter().for_each(|shown| drop(place.run(shown)));
        place.assert_clean(&line);
    }
    let listed = place.run("history --json").stdout;
    assert!(listed.contains("***"), "{listed}");
}

#[test]
fn studies_and_reports_of_others_have_no_secret_either() {
    let place = Place(Dir::new());
    let job = format!(
        "[a]\nioengine=http\nhttp_host={NOWHERE}\nfilename=/x\nsize=4k\nhttp_pass={SECRET}\nnumber_ios=1\n"
    );
    place.0.write("job.fio", job);
    for line in [
        "job.fio --output-format=json --output=r.json",
        "sweep job.fio --over bs=1k,2k --dry-run",
        "sweep job.fio --over bs=1k,2k --json",
        "sweep job.fio --over bs=1k,2k",
        "profile job.fio -o profile.html -- vary bs=1k,2k",
        "capacity --p99=1s job.fio --dry-run",
    ] {
        place.run(line);
    }
    place.run(&format!(
        "sweep --rw=read --ioengine=http --filename=/x --http_host={NOWHERE} --over http_pass=b,{SECRET}"
    ));
    SHOWN.iter().for_each(|shown| drop(place.run(shown)));
    // fio's own reports have them.
    let of_fio = place.0.text("r.json").replace("\"***\"", &format!("\"{SECRET}\""));
    assert!(of_fio.contains(SECRET), "{of_fio}");
    place.0.write("fio.given", of_fio);
    for line in [
        "explain fio.given",
        "explain fio.given --json",
        "compare fio.given fio.given",
        "report fio.given -o of-fio.html",
    ] {
        place.run(line);
    }
    place.assert_clean("studies");
}

#[test]
fn the_history_is_its_owners_alone() {
    let place = Place(Dir::new());
    let mode = |name: &str| fs::metadata(place.0.join(name)).unwrap().permissions().mode() & 0o777;
    place.run("--name=a --ioengine=null --size=4k").assert_success();
    // One that an earlier version made.
    fs::set_permissions(place.0.join("state/fiord"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["history.db", "history.db-wal", "history.db-shm"] {
        let path = place.0.join("state/fiord").join(name);
        assert!(!path.exists() || mode(&format!("state/fiord/{name}")) == 0o600, "{name}");
        if path.exists() {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
    }
    place.run("--name=a --ioengine=null --size=4k").assert_success();
    assert_eq!(mode("state/fiord"), 0o700);
    for entry in fs::read_dir(place.0.join("state/fiord")).unwrap() {
        let name = entry.unwrap().file_name();
        let name = name.to_str().unwrap();
        assert!(!name.starts_with("history") || mode(&format!("state/fiord/{name}")) == 0o600, "{name}");
    }
}

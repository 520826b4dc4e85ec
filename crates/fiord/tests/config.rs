//! The config file sets what options and variables leave open, and nothing that is measured.
//!
//! Invariant: without the file, under fio's name and for help, all is as it was.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::common::{Dir, Ran, finish, fiord, start};

const JOB: &str = "--name=job --ioengine=null --rw=randread --bs=4k --size=1m";

/// A directory with a config file, without XDG_STATE_HOME.
struct Home(Dir);

impl Home {
    fn with(text: impl AsRef<[u8]>) -> Home {
        let home = Home(Dir::new());
        fs::create_dir_all(home.0.join("config/fiord")).unwrap();
        home.0.write("config/fiord/config.toml", text);
        home
    }

    fn in_home(&self, mut command: Command) -> Ran {
        command.env_remove("XDG_STATE_HOME").env("HOME", self.0.path());
        command.env("XDG_CONFIG_HOME", self.0.join("config"));
        finish(start(command))
    }

    fn run(&self, line: &str) -> Ran {
        self.in_home(fiord(self.0.path(), line))
    }

    fn has(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
}

#[test]
fn options_are_stronger_than_variables_and_these_than_the_file() {
    let home = Home::with("");
    home.0.write("config/fiord/config.toml", format!("history = {:?}", home.0.join("data")));
    home.run(JOB).assert_success();
    assert!(home.has("data/fiord/history.db") && !home.has(".local"));
    assert_eq!(home.run("history --csv").assert_success().stdout.lines().count(), 2);
    let mut command = fiord(home.0.path(), JOB);
    command.env("XDG_STATE_HOME", home.0.join("state")).env("XDG_CONFIG_HOME", home.0.join("config"));
    finish(start(command)).assert_success();
    assert!(home.has("state/fiord/history.db"));
    home.run(&format!("{JOB} --no-history")).assert_success();
    assert_eq!(home.run("history --csv").stdout.lines().count(), 2);
    home.run(&format!("{JOB} --output=data/fiord/history.db")).assert_status(2).assert_prints(&["history"]);

    let off = Home::with("history = \"off\"\ntrust = \"off\"");
    off.0.write("d", vec![1; 16 << 20]);
    off.run(JOB).assert_success();
    off.run("matrix d --trust=off --bs 4k --rw read --time 2s").assert_success();
    assert!(!off.has(".local"));
    off.run(&format!("{JOB} --tag=wanted")).assert_success();
    assert_eq!(off.run("history --csv").stdout.lines().count(), 2);
    off.run("matrix d --trust=off --bs 4k --rw read --time 2s --tag=too").assert_success();
    assert_eq!(off.run("history --csv").stdout.lines().count(), 3);
}

#[test]
fn trust_is_that_of_the_file_unless_it_is_given_and_reports_are_else_the_same() {
    const NOTED: &str =
        "--output-format=json --name=job --filename=d --rw=read --bs=4k --size=1m --ioengine=sync --direct=0";
    let strict = Home::with("trust = \"strict\"\ncolour = false");
    let off = Home::with("trust = \"off\"");
    let findings = |home: &Home, line: &str| {
        home.0.write("d", vec![1; 1 << 20]);
        let json = home.run(line).json();
        json["findings"].as_array().map_or(0, Vec::len)
    };
    assert_eq!(findings(&off, NOTED), 0);
    assert!(findings(&off, &format!("--trust=on {NOTED}")) > 0);
    assert!(findings(&strict, NOTED) > 0);
    assert_eq!(
        strict.run("matrix --help").assert_success().stdout,
        Home::with("").run("matrix --help").stdout.replace("[default: on]", "[default: strict]")
    );
}

#[test]
fn a_void_finding_is_the_status_of_runs_here_and_on_hosts_if_the_file_says_strict() {
    const IN_MEMORY: &str = "--name=a --rw=write --size=1m";
    let (strict, on) = (Home::with("trust = \"strict\""), Home::with(""));
    let file = format!("/dev/shm/fiord-config-{}", std::process::id());
    for place in ["", "--hosts=a --via={agent}"] {
        let line = format!("{IN_MEMORY} --filename={file} {place}");
        on.run(&line).assert_success();
        strict.run(&line).assert_status(3);
        strict.run(&format!("--trust=on {line}")).assert_success();
    }
    fs::remove_file(&file).unwrap();
}

#[test]
fn a_wrong_file_is_an_error_with_its_place_but_not_for_help_or_fio() {
    let home = Home::with("trust = \"strict\"\ncolor = true\n");
    let ran = home.run(JOB);
    ran.assert_status(1)
        .assert_prints(&["config/fiord/config.toml:2:1: error: ", "did you mean \"colour\"?"]);
    assert_eq!(ran.stdout, "");
    home.run("history").assert_status(1).assert_prints(&["config.toml:2:1"]);
    home.run("--version").assert_success();
    home.run("help history").assert_success();
    let link = home.0.join("fio");
    symlink(env!("CARGO_BIN_EXE_fiord"), &link).unwrap();
    let mut fio = Command::new(link);
    fio.args(JOB.split_whitespace()).current_dir(home.0.path());
    home.in_home(fio).assert_success();

    let bytes = Home::with([0x61, 0xff]);
    bytes.run(JOB).assert_status(1).assert_prints(&["not UTF-8 at byte 1"]);
    fs::remove_file(bytes.0.join("config/fiord/config.toml")).unwrap();
    bytes.run(JOB).assert_success();
    fs::create_dir(bytes.0.join("config/fiord/config.toml")).unwrap();
    bytes.run(JOB).assert_status(1).assert_prints(&["no regular file; move it away"]);
}

#[test]
fn hosts_are_named_by_the_lists_of_the_file() {
    let home = Home::with("hosts.two = [\"a\", \"b[1-2]\", \"^b2\"]\nhosts.default = \"c\"");
    let run = "--via={agent} --name=job --ioengine=null --rw=read --size=1m --output-format=json";
    let json = home.run(&format!("--hosts=@two {run}")).json();
    let hosts = json["fleet"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.iter().map(|host| host["host"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "b1"]);
    let shown = home.run("hosts --via={agent} --json").assert_success().json();
    assert_eq!(shown["hosts"][0]["host"], "c");
    home.run(&format!("--hosts=@three {run}"))
        .assert_status(1)
        .assert_prints(&["@three", "no such list, but default, two"]);
    assert!(Home::with("").run(&format!("--hosts=@two {run}")).all_output().contains("has no list of hosts"));
}

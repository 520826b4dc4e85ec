//! What outputs must not be written to: what the command reads and tests, fiord's own records, files of others, devices.
//!
//! Invariant: every option that names an output is in `OUTPUTS` or `JOB_OUTPUTS`, and each is tried on everything there
//! is to destroy, by its name, by a symbolic link and by a hard link; bytes are compared before and after.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use fiord_testing::need;

use crate::common::{Dir, LoopDevice, Mount, Ran, finish, fiord, start};

/// A job on a file of its own, of which an included file sets a part.
const JOB: &str = "[a]\ninclude part.fio\nfilename=target\nrw=randread\nioengine=psync\n";
const PART: &str = "bs=4k\nsize=8m\nnumber_ios=8\n";

/// What a study of the job needs to be short.
const STUDY: &str = "--time=100ms --repeat=1";

/// Command lines that write to `OUT`, and what each reads and tests.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("report r.json --output=OUT", &["r.json"]),
    ("report r.json r_bw.1.log -o OUT", &["r.json", "r_bw.1.log"]),
    ("report last --output=OUT", &[]),
    ("history --export=csv --output=OUT", &[]),
    ("history --export=parquet --output=OUT", &[]),
    ("history --export=line --output=OUT", &[]),
    ("profile job.fio STUDY --output=OUT", &["job.fio", "part.fio", "target"]),
    ("sweep job.fio STUDY --over bs=4k,8k --plot=OUT", &["job.fio", "part.fio", "target"]),
    ("capacity --p50=30s job.fio STUDY --plot=OUT", &["job.fio", "part.fio", "target"]),
    ("capacity --p50=30s target STUDY --plot=OUT", &["target"]),
    ("job.fio --output=OUT", &["job.fio", "part.fio", "target"]),
    ("job.fio --showcmd --output=OUT", &["job.fio", "part.fio", "target"]),
    ("job.fio --metrics=file:OUT", &["job.fio", "part.fio", "target"]),
    ("--name=a --read_iolog=trace --replay_redirect=target --output=OUT", &["trace", "target"]),
    ("crash-test run data --size=1m --syncs=1 --journal=OUT", &[]),
];

/// The same of jobs: what they write, create or remove.
const JOB_OUTPUTS: &[(&str, &[&str])] = &[
    ("job.fio --name=w --filename=OUT --rw=write --size=4k", &["job.fio", "part.fio"]),
    ("job.fio --name=w --filename=OUT --rw=read --size=9m --allow_mounted_write=1", &["job.fio", "part.fio"]),
    ("job.fio --name=w --filename=OUT --rw=read --size=1 --bs=1 --unlink=1", &["job.fio", "part.fio"]),
    ("job.fio --write_iolog=OUT", &[]),
    ("job.fio --name=w --filename=b --size=4k --write_iolog=OUT", &["job.fio", "part.fio", "target"]),
    ("job.fio --name=w --filename=b --size=4k --mem=mmap:OUT", &["job.fio", "part.fio", "target"]),
    ("job.fio --trigger-file=OUT --trigger-timeout=9", &["job.fio", "part.fio", "target"]),
];

/// fiord's own records: those that are there, and one that may be there later.
const RECORDS: &[&str] =
    &["state/fiord/history.db", "state/fiord/history.db-wal", "state/fiord/history.db-journal"];

struct Place(Dir);

impl Place {
    /// A directory with something of each kind, and a history of one run.
    fn new() -> Place {
        let dir = Dir::new();
        dir.write("job.fio", JOB);
        dir.write("part.fio", PART);
        dir.write("target", vec![7; 8 << 20]);
        dir.write(
            "trace",
            "fio version 2 iolog\ntarget add\ntarget open\ntarget read 0 4096\ntarget close\n",
        );
        fs::create_dir(dir.join("data")).unwrap();
        let place = Place(dir);
        place.run("job.fio --write_bw_log=r --output=r.json --output-format=json").assert_success();
        place
    }

    fn run(&self, line: &str) -> Ran {
        let mut command: Command = fiord(self.0.path(), line);
        command.env("XDG_STATE_HOME", self.0.join("state"));
        finish(start(command))
    }

    fn lines(&self, output: &str, line: &str) -> String {
        line.replace("STUDY", STUDY).replace("OUT", output)
    }

    /// Runs a line on a file that it must leave alone, by each of the file's names.
    fn refuses(&self, line: &str, victim: &str) {
        let (path, existed) = (self.0.join(victim), self.0.join(victim).exists());
        let runs = self.run("history --csv").stdout;
        let before = existed.then(|| self.0.read(victim));
        for name in [victim, "soft", "hard"] {
            match name {
                "soft" => symlink(&path, self.0.join(name)).unwrap(),
                "hard" if existed => fs::hard_link(&path, self.0.join(name)).unwrap(),
                "hard" => continue,
                _ => {}
            }
            let line = self.lines(name, line);
            let ran = self.run(&line);
            let after = path.exists().then(|| self.0.read(victim));
            assert!(after == before, "{line} changed {victim}: {ran:?}");
            assert_eq!(ran.status, Some(2), "{line} on {victim}: {ran:?}");
            assert!(ran.stderr.contains("name another file"), "{line} on {victim}: {ran:?}");
            if name != victim {
                fs::remove_file(self.0.join(name)).unwrap();
            }
        }
        assert_eq!(self.run("history --csv").stdout, runs, "{line}");
    }
}

// divergence: an output (`--output`, a log, `write_iolog`) or a target
#[test]
fn no_output_overwrites_what_its_command_reads_or_tests() {
    let place = Place::new();
    for (line, victims) in OUTPUTS.iter().chain(JOB_OUTPUTS) {
        victims.iter().for_each(|victim| place.refuses(line, victim));
    }
}

#[test]
fn no_output_and_no_job_overwrites_the_history() {
    let place = Place::new();
    for (line, _) in OUTPUTS.iter().chain(JOB_OUTPUTS) {
        RECORDS.iter().for_each(|record| place.refuses(line, record));
    }
}

#[test]
fn two_outputs_do_not_share_a_file() {
    let place = Place::new();
    for line in [
        "job.fio --output=out --metrics=file:out",
        "job.fio --output=a_bw.1.log --write_bw_log=a",
        "job.fio --output=agg-read_bw.log --bandwidth-log",
        "job.fio --metrics=file:iolog --name=w --filename=b --size=4k --write_iolog=iolog",
    ] {
        let ran = place.run(line);
        ran.assert_status(2).assert_prints(&["name another file"]);
    }
    assert!(!place.0.join("out").exists());
}

#[test]
fn only_what_fiord_wrote_is_replaced_without_being_told() {
    let place = Place::new();
    let own = OUTPUTS.iter().filter(|(line, _)| !is_of_fio(line) && !line.starts_with("crash-test"));
    for (line, _) in own {
        place.0.write("thesis", "never to be replaced\n");
        let line = place.lines("thesis", line);
        let ran = place.run(&line);
        assert_eq!(ran.status, Some(2), "{line}: {ran:?}");
        assert_eq!(place.0.text("thesis"), "never to be replaced\n", "{line}");
        let has_force = !line.contains("--metrics");
        assert!(ran.stderr.contains(if has_force { "--force" } else { "remove this one first" }), "{ran:?}");
        if has_force {
            let forced = place.run(&format!("{line} --force"));
            assert!(matches!(forced.status, Some(0 | 6)), "{line}: {forced:?}");
        } else {
            place.0.write("thesis", "");
            place.run(&line).assert_success();
        }
        assert!(place.0.read("thesis").len() > 100, "{line}");
        let again = place.run(&line);
        assert!(matches!(again.status, Some(0 | 6)), "{line}: {again:?}");
    }
    // Reports are written as fio writes them.
    place.0.write("thesis", "of an earlier run\n");
    place.run("job.fio --output=thesis").assert_success();
    assert!(place.0.text("thesis").contains("IOPS="));
}

/// Whether the output is one that fio has as well.
fn is_of_fio(line: &str) -> bool {
    line.contains("--output=OUT") && !["report", "history", "profile"].iter().any(|own| line.starts_with(own))
}

#[test]
fn a_journal_of_a_crash_test_replaces_only_journals() {
    let place = Place::new();
    let _other = need!(Mount::tmpfs(&place.0, "size=4m"));
    place.0.write("tmpfs/thesis", "never to be replaced\n");
    let line = "crash-test run data --size=1m --per-sync=4 --syncs=1 --journal=tmpfs/";
    place.run(&format!("{line}thesis")).assert_status(2).assert_prints(&["remove this one first"]);
    assert_eq!(place.0.text("tmpfs/thesis"), "never to be replaced\n");
    for _ in 0..2 {
        place.run(&format!("{line}journal")).assert_success();
        fs::remove_dir_all(place.0.join("data")).unwrap();
        fs::create_dir(place.0.join("data")).unwrap();
    }
}

/// A refusal has one exit status, whatever the option.
#[test]
fn outputs_onto_devices_are_refused() {
    let place = Place::new();
    let device = need!(LoopDevice::new(&place.0, 1 << 20));
    let own = "--name=w --filename=b --size=4k";
    let more =
        [format!("{own} --rw=write --exec_prerun=true --write_iolog=OUT"), format!("{own} --mem=mmap:OUT")];
    for line in OUTPUTS.iter().map(|(line, _)| (*line).to_string()).chain(more) {
        let line = place.lines(&device.path, &line);
        let ran = place.run(&line);
        assert_eq!(ran.status, Some(2), "{line}: {ran:?}");
    }
    assert!(fs::read(&device.path).unwrap().iter().all(|byte| *byte == 0));
}

/// No one asked for what a link leads to that has a name which fiord makes up.
// divergence: logs, states of verification and the output of commands
#[test]
fn names_that_fiord_makes_up_are_not_followed_through_links() {
    let own = "--name=w --filename=b --size=4k --rw=write --bs=4k";
    for (options, made_up) in [
        ("--write_bw_log=w", "w_bw.1.log"),
        ("--write_lat_log=w", "w_clat.1.log"),
        ("--exec_postrun=true", "w.postrun.txt"),
        ("--exec_prerun=true", "w.prerun.txt"),
        ("--verify=crc32c --verify_state_save=1", "local-w-0-verify.state"),
        ("--ioengine=exec --program=/bin/true --std_redirect=1", "w.stdout"),
    ] {
        let place = Place::new();
        place.0.write("elsewhere", "precious");
        symlink("elsewhere", place.0.join(made_up)).unwrap();
        let ran = place.run(&format!("{own} {options}"));
        assert_eq!(place.0.text("elsewhere"), "precious", "{options}: {ran:?}");
        ran.assert_status(2).assert_prints(&[made_up, "is a symbolic link", "remove the link"]);
        // What is discarded on purpose destroys nothing.
        fs::remove_file(place.0.join(made_up)).unwrap();
        symlink("/dev/null", place.0.join(made_up)).unwrap();
        place.run(&format!("{own} {options}")).assert_success();
    }
    let place = Place::new();
    place.0.write("elsewhere", "precious");
    symlink("elsewhere", place.0.join("agg-read_bw.log")).unwrap();
    let ran = place.run("job.fio --bandwidth-log");
    assert!(ran.status != Some(0) && place.0.text("elsewhere") == "precious", "{ran:?}");
}

/// A name with slashes names no directory.
// divergence: a job name with `/`, and `exec_prerun`, `exec_postrun`
#[test]
fn the_output_of_commands_stays_in_the_current_directory() {
    let dir = Dir::new();
    let inside = dir.join("in");
    fs::create_dir(&inside).unwrap();
    let jobs =
        ["--exec_prerun=true --exec_postrun=true", "--ioengine=exec --program=/bin/true --std_redirect=1"];
    for options in jobs {
        let job = format!("--name=../esc --filename=b --size=4k --rw=write {options}");
        finish(start(fiord(&inside, &job))).assert_success();
    }
    for name in ["prerun.txt", "postrun.txt", "stdout", "stderr"] {
        assert!(inside.join(format!(".._esc.{name}")).exists(), "{name}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "{:?}", names(dir.path()));
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.to_string_lossy().into_owned()).collect()
}

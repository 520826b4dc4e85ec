//! The live view on a terminal of tmux, which shows what a user sees.
//!
//! Invariant: however the view ends, the terminal is as it was found.

use std::process::Command;

use fiord_testing::need;

use crate::common::{Dir, fiord, helper, start, until};
use crate::watch;

const FIORD: &str = env!("CARGO_BIN_EXE_fiord");

/// Runs until the file `stop` exists.
const JOB: &str = "--no-history --trigger-file=stop --name=job --ioengine=null --rw=randread --bs=4k --size=1g --time_based \
                   --runtime=300 --rate_iops=2000";

/// A shell on a terminal of its own, in a directory.
struct Terminal<'d> {
    dir: &'d Dir,
}

impl Terminal<'_> {
    fn open(dir: &Dir) -> Terminal<'_> {
        let terminal = Terminal { dir };
        terminal.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh"]);
        terminal.line("stty -a > found; PS1='$ '; clear");
        until("the shell is there", || dir.join("found").exists());
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = crate::common::with_own_history("tmux");
        command.arg("-S").arg(self.dir.join("tmux")).args(words).current_dir(self.dir.path());
        let ran = command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").output().unwrap();
        assert!(ran.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap()
    }

    fn keys(&self, keys: &str) {
        self.tmux(&["send-keys", keys]);
    }

    fn line(&self, line: &str) {
        self.tmux(&["send-keys", line, "Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The screen with what has scrolled out of it.
    fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-200"])
    }

    fn until_shows(&self, part: &str) -> String {
        let mut screen = String::new();
        until(&format!("the screen shows {part:?}"), || {
            screen = self.screen();
            screen.contains(part)
        });
        screen
    }

    /// Runs fiord, and prints its exit status when it ends.
    fn fiord(&self, line: &str) {
        self.line(&format!("{FIORD} {line}; echo exit=$?"));
    }

    /// Asserts that keys are shown and lines are edited as before.
    fn assert_restored(&self) {
        let _ = std::fs::remove_file(self.dir.join("now"));
        self.line("stty -a > now.part; mv now.part now");
        until("the shell answers", || self.dir.join("now").exists());
        assert_eq!(self.dir.text("now"), self.dir.text("found"));
        self.until_shows("mv now.part now");
        let cursor = self.tmux(&["display-message", "-p", "#{cursor_flag}#{alternate_on}#{wrap_flag}"]);
        assert_eq!(cursor.trim(), "101", "the cursor is visible, the screen the scrolled one, lines wrap");
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.dir.join("tmux")).arg("kill-server").output();
    }
}

#[test]
fn q_returns_to_the_progress_line_and_l_to_the_view() {
    need!(helper("tmux", &["-V"]));
    let dir = Dir::new();
    let terminal = Terminal::open(&dir);
    terminal.fiord(&format!("--live {JOB}"));
    terminal.until_shows("LATENCY, 1 s PER COLUMN");
    // The job is paced, so that its row and that of its direction are known.
    let screen = terminal.until_shows("CPU x");
    for part in ["fiord job", "LAST 1 s", "P99.9", "JOB", "running", "q or l: back"] {
        assert!(screen.contains(part), "{part} is not in\n{screen}");
    }
    terminal.until_shows("\nread ");
    terminal.keys("q");
    terminal.until_shows("Jobs: 1 (f=");
    terminal.keys("l");
    terminal.until_shows("LATENCY, 1 s PER COLUMN");
    dir.write("stop", "");
    terminal.until_shows("exit=0");
    let all = terminal.all();
    assert!(all.contains("Run status group 0") && !all.contains("LATENCY"), "{all}");
    terminal.assert_restored();
}

#[test]
fn ctrl_c_reports_as_without_the_view() {
    need!(helper("tmux", &["-V"]));
    let dir = Dir::new();
    let terminal = Terminal::open(&dir);
    terminal.fiord(&format!("--live {JOB}"));
    terminal.until_shows("CPU x");
    terminal.keys("C-c");
    terminal.until_shows("exit=130");
    let all = terminal.all();
    assert!(all.contains("Run status group 0"), "{all}");
    terminal.assert_restored();
}

#[test]
fn the_terminal_is_restored_after_signals() {
    need!(helper("tmux", &["-V"]));
    for (signal, status) in [("TERM", 143), ("ABRT", 134), ("QUIT", 131)] {
        let dir = Dir::new();
        let terminal = Terminal::open(&dir);
        terminal
            .line(&format!("ulimit -c 0; (sh -c 'echo $$ > pid; exec {FIORD} --live {JOB}'; echo exit=$?)"));
        terminal.until_shows("CPU x");
        crate::common::signal(dir.text("pid").trim().parse().unwrap(), signal);
        terminal.until_shows(&format!("exit={status}"));
        terminal.assert_restored();
    }
}

#[test]
fn the_view_follows_the_size_of_the_terminal() {
    need!(helper("tmux", &["-V"]));
    let dir = Dir::new();
    let terminal = Terminal::open(&dir);
    terminal.fiord(&format!("--live {JOB}"));
    terminal.until_shows("CPU x");
    for (columns, rows) in [(120_usize, 40_usize), (60, 12), (80, 24)] {
        let size = [columns.to_string(), rows.to_string()];
        terminal.tmux(&["resize-window", "-x", &size[0], "-y", &size[1]]);
        until("the keys are in the last line, and as wide as it", || {
            let screen = terminal.screen();
            let lines: Vec<&str> = screen.lines().collect();
            let at_the_end = lines.len() == rows && lines[rows - 1].starts_with("q or l: back");
            at_the_end && lines[0].starts_with(" fiord job") && lines[0].trim_end().len() + 1 == columns
        });
    }
    terminal.keys("C-c");
    terminal.until_shows("exit=130");
    terminal.assert_restored();
}

#[test]
fn a_study_goes_through_its_runs_in_the_view_and_shows_each_row() {
    need!(helper("tmux", &["-V"]));
    let dir = Dir::new();
    let terminal = Terminal::open(&dir);
    terminal.fiord("sweep --live --no-history --repeat=1 --ioengine=null --rw=read --size=1g --time_based --runtime=4 --rate_iops=2000 --over bs=4k,8k");
    terminal.until_shows("[1/2] bs=4k");
    terminal.until_shows("[2/2] bs=8k");
    // 0, or 6 if other programs keep the machine too busy for the figures to stand.
    until("the study has ended", || ["exit=0", "exit=6"].iter().any(|end| terminal.screen().contains(end)));
    let all = terminal.all();
    for row in ["[1/2] bs=4k  ", "[2/2] bs=8k  "] {
        assert!(all.contains(row), "{row} is not in\n{all}");
    }
    assert!(all.contains(" IOPS "), "{all}");
    terminal.assert_restored();
}

#[test]
fn a_terminal_that_only_writes_lines_has_no_view() {
    need!(helper("tmux", &["-V"]));
    let dir = Dir::new();
    let terminal = Terminal::open(&dir);
    terminal.line("export TERM=dumb");
    terminal.fiord(&format!("--live {JOB}"));
    let screen = terminal.until_shows("exit=1");
    assert!(screen.contains("only writes lines (TERM=dumb)"), "{screen}");
    terminal.assert_restored();
}

#[test]
fn without_a_terminal_the_view_is_refused() {
    let dir = Dir::new();
    for line in ["--live --name=job --ioengine=null --rw=read --size=4k", "quick --live --size=16m"] {
        let ran = dir.run(line);
        assert_eq!(
            ran.assert_status(1).assert_prints(&["--live", "not a terminal", "leave --live out"]).stdout,
            ""
        );
    }
    assert_eq!(dir.contents(), []);
}

#[test]
fn watching_shows_the_last_second_and_prints_everything_at_the_end() {
    need!(helper("tmux", &["-V"]));
    let (dir, _memory, device) = need!(watch::device());
    let terminal = Terminal::open(&dir);
    for (key, status) in [("C-c", 130), ("q", 0)] {
        let job = start(fiord(dir.path(), &watch::reader(&device, 4)));
        terminal.fiord(&format!("watch {} --for 1h", device.path));
        let who = format!("fiord  {} ", job.0.id());
        let screen = terminal.until_shows(&who);
        let title = format!(" fiord watch {}: the last second", device.path);
        for part in [&title, "QUEUE P50", "\nWHO", "\nSO FAR\n", " left", "q or Ctrl-C: end"] {
            assert!(screen.contains(part), "{part} is not in\n{screen}");
        }
        // Small terminals have shorter lines, not more of them.
        terminal.tmux(&["resize-window", "-x", "40", "-y", "9"]);
        let has_keys_in_line = |last: usize| {
            until("the keys are in the last line", || {
                let screen = terminal.screen();
                let lines: Vec<&str> = screen.lines().collect();
                let has_keys = lines.last().is_some_and(|line| line.starts_with("q or Ctrl-C: end"));
                lines.len() == last && lines[1].starts_with("DEVICE") && has_keys
            });
        };
        has_keys_in_line(9);
        terminal.tmux(&["resize-window", "-x", "80", "-y", "24"]);
        has_keys_in_line(24);
        terminal.keys(key);
        terminal.until_shows(&format!("exit={status}"));
        let all = terminal.all();
        assert!(all.contains("SEQ %") && all.contains(&who) && !all.contains("SO FAR"), "{all}");
        drop(job);
        terminal.assert_restored();
        terminal.line("clear; tmux -S tmux clear-history; echo cleared");
        terminal.until_shows("cleared\n");
    }
}

#[test]
fn watching_into_a_file_has_no_view() {
    need!(helper("tmux", &["-V"]));
    let (dir, _memory, device) = need!(watch::device());
    let terminal = Terminal::open(&dir);
    terminal.fiord(&format!("watch {} --for 1h --json >out.json", device.path));
    let screen = terminal.until_shows("watching 1 device, ");
    assert!(!screen.contains("SO FAR"), "{screen}");
    terminal.keys("C-c");
    terminal.until_shows("exit=130");
    assert!(dir.text("out.json").contains("\"verdict\""));
    terminal.assert_restored();
}

#[test]
fn hosts_are_shown_by_the_same_line_and_view() {
    need!(helper("tmux", &["-V"]));
    let dir = Dir::new();
    let terminal = Terminal::open(&dir);
    let job = "--no-history --name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=300 --rate_iops=2000";
    terminal.fiord(&format!("{job} '--via={{agent}}' --hosts=db1,db2"));
    terminal.until_shows("2 hosts: 2 running [");
    terminal.until_shows("IOPS][eta 04m:");
    terminal.keys("l");
    let screen = terminal.until_shows("HOST, SLOWEST FIRST");
    assert!(screen.contains("fiord job on 2 hosts"), "{screen}");
    terminal.until_shows("\ndb2 ");
    terminal.until_shows("\nread ");
    terminal.keys("q");
    terminal.until_shows("2 hosts: 2 running [");
    terminal.keys("C-c");
    terminal.until_shows("exit=130");
    let all = terminal.all();
    assert!(all.contains("All clients") && !all.contains("LATENCY, 1 s"), "{all}");
    terminal.assert_restored();
}

//! The log of `fiord check postgres` against the real PostgreSQL on the same file system.
//!
//! Invariant: both report their own figures: PostgreSQL the time of its syncs in `pg_stat_wal`, fiord its JSON.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use fiord_testing::agreement::{Figures, assert_agree};
use fiord_testing::need;

use crate::common::{Dir, helper, root};

/// Where Debian has the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Seconds of each side of one comparison.
const SECONDS: u32 = 4;
/// A transaction that commits one row, and so syncs the log once.
const TRANSACTION: &str = "insert into rows values (repeat('x', 200));\n";

/// A server, ended on drop.
struct Postgres<'d> {
    dir: &'d Dir,
    programs: PathBuf,
}

impl<'d> Postgres<'d> {
    fn start(dir: &'d Dir) -> Result<Postgres<'d>, String> {
        root()?;
        let versions = fs::read_dir(VERSIONS).map_err(|why| format!("{VERSIONS}: {why}"))?;
        let programs = versions.flatten().map(|version| version.path().join("bin")).max();
        let programs = programs.filter(|place| place.join("postgres").exists());
        let programs = programs.ok_or_else(|| format!("{VERSIONS}: no server is installed"))?;
        let server = Postgres { dir, programs };
        helper("chown", &["postgres", &dir.join("").display().to_string()])?;
        let place = dir.join("database").display().to_string();
        server.run("initdb", &["--auth=trust", "--no-sync", "--pgdata", &place])?;
        let options = format!(
            "-c listen_addresses= -c unix_socket_directories={} -c track_wal_io_timing=on",
            dir.path().display()
        );
        let log = dir.join("log").display().to_string();
        server.run("pg_ctl", &["start", "-w", "-D", &place, "-l", &log, "-o", &options])?;
        server.ask("create table rows (text text)")?;
        Ok(server)
    }

    /// One of its programs, as the user that it insists on.
    fn run(&self, program: &str, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.arg(self.programs.join(program)).args(args).current_dir(self.dir.path());
        // A server that stays must not hold the pipes of this test.
        let output = self.dir.join(&format!("output-of-{program}"));
        let file = fs::File::create(&output).map_err(|why| why.to_string())?;
        command.stderr(file.try_clone().map_err(|why| why.to_string())?).stdout(file);
        let status = command.status().map_err(|why| format!("setpriv: {why}"))?;
        let text = fs::read_to_string(&output).map_err(|why| why.to_string())?;
        if status.success() { Ok(text) } else { Err(format!("{program}: {}", text.trim())) }
    }

    fn ask(&self, question: &str) -> Result<String, String> {
        let socket = self.dir.path().display().to_string();
        self.run("psql", &["-h", &socket, "-qAt", "-F", " ", "-c", question, "postgres"])
    }

    /// Syncs of the log and their mean time in seconds, of one client that commits.
    fn syncs(&self) -> (f64, f64) {
        self.ask("select pg_stat_reset_shared('wal')").unwrap();
        self.dir.write("transaction", TRANSACTION);
        let (socket, seconds) = (self.dir.path().display().to_string(), SECONDS.to_string());
        let load = ["-h", &socket, "-n", "-c", "1", "-T", &seconds, "-f", "transaction", "postgres"];
        self.run("pgbench", &load).unwrap();
        let answer = self.ask("select wal_sync, wal_sync_time from pg_stat_wal").unwrap();
        let figures: Vec<f64> = answer.split_whitespace().map(|figure| figure.parse().unwrap()).collect();
        (figures[0], figures[1] / figures[0] / 1e3)
    }
}

impl Drop for Postgres<'_> {
    fn drop(&mut self) {
        let place = self.dir.join("database").display().to_string();
        let _ = self.run("pg_ctl", &["stop", "-m", "immediate", "-D", &place]);
    }
}

/// The mean time of a sync of the check's log, in seconds.
fn fiord_mean(dir: &Dir) -> f64 {
    dir.write("check.fio", dir.run("check postgres --show-job").stdout);
    let line = format!("check.fio --section=wal-alone --runtime={SECONDS} --size=256m --output-format=json");
    let document = dir.run(&line).json();
    document["jobs"][0]["sync"]["lat_ns"]["mean"].as_f64().unwrap() / 1e9
}

#[test]
fn the_syncs_of_its_log_take_as_long_as_those_of_the_check() {
    let dir = Dir::new();
    let server = need!(Postgres::start(&dir));
    need!(assert_agree(|| {
        let fiord = fiord_mean(&dir);
        let (count, theirs) = server.syncs();
        let text = format!(
            "PostgreSQL {:.3} ms on average of {count} syncs, fiord {:.3} ms",
            theirs * 1e3,
            fiord * 1e3
        );
        Figures { theirs, fiord, theirs_least: 0.0, text }
    }));
}

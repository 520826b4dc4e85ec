//! The redo log of `fiord check mysql` against the real MariaDB on the same file system.
//!
//! Invariant: both report their own figures: MariaDB how many rows it committed one by one, fiord how many synced writes it did.

use std::fs::File;
use std::process::{Command, Stdio};

use fiord_testing::agreement::{Figures, assert_agree};
use fiord_testing::need;

use crate::common::{Dir, Running, helper, root, until};

/// Seconds of each side of one comparison.
const SECONDS: u32 = 3;

/// A server, killed on drop.
struct MariaDb {
    _running: Running,
    socket: String,
}

impl MariaDb {
    fn start(dir: &Dir) -> Result<MariaDb, String> {
        root()?;
        helper("mariadbd", &["--version"])?;
        let of = |name: &str| dir.join(name).display().to_string();
        helper("chown", &["mysql", &of("")])?;
        let place = format!("--datadir={}", of("database"));
        let made =
            ["--no-defaults", "--user=mysql", "--auth-root-authentication-method=normal", place.as_str()];
        helper("mariadb-install-db", &made)?;
        let socket = of("socket");
        let log = File::create(of("log")).map_err(|why| why.to_string())?;
        let mut command = Command::new("mariadbd");
        command.args(["--no-defaults", "--user=mysql", "--skip-networking", place.as_str()]);
        command.arg(format!("--socket={socket}")).arg(format!("--pid-file={}", of("pid")));
        // No page is written while it commits.
        command.args(["--innodb-flush-log-at-trx-commit=1", "--innodb-max-dirty-pages-pct-lwm=0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let running = Running(command.spawn().map_err(|why| why.to_string())?);
        let server = MariaDb { _running: running, socket };
        until("MariaDB is up", || server.ask("select 1").is_ok());
        server.ask("create table test.rows_committed (text text)")?;
        Ok(server)
    }

    fn ask(&self, statements: &str) -> Result<String, String> {
        helper("mariadb", &["--no-defaults", "--delimiter=//", "-N", "-S", &self.socket, "-e", statements])
    }

    /// Rows that one client commits in a second.
    fn commits_per_s(&self) -> f64 {
        let statements = format!(
            "truncate test.rows_committed//\n\
             begin not atomic\n\
             declare ends datetime(6) default now(6) + interval {SECONDS} second;\n\
             while sysdate(6) < ends do insert into test.rows_committed values (repeat('x', 200)); end while;\n\
             end//\nselect count(*) from test.rows_committed"
        );
        self.ask(&statements).unwrap().parse::<f64>().unwrap() / f64::from(SECONDS)
    }
}

/// Synced writes of the check's redo log in a second.
fn fiord_per_s(dir: &Dir) -> f64 {
    dir.write("check.fio", dir.run("check mysql --show-job").stdout);
    let line = format!("check.fio --section=redo-log --runtime={SECONDS} --size=96m --output-format=json");
    let document = dir.run(&line).json();
    document["jobs"][0]["write"]["iops"].as_f64().unwrap()
}

#[test]
fn it_commits_as_often_as_the_redo_log_of_the_check() {
    let dir = Dir::new();
    let server = need!(MariaDb::start(&dir));
    need!(assert_agree(|| {
        let (fiord, theirs) = (fiord_per_s(&dir), server.commits_per_s());
        let text = format!("MariaDB {theirs:.0} commits per second, fiord {fiord:.0} synced writes");
        Figures { theirs, fiord, theirs_least: 0.0, text }
    }));
}

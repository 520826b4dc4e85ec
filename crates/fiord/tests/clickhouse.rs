//! The scans of `fiord check clickhouse` against the real ClickHouse on the same file system.
//!
//! Invariant: both report their own figures: ClickHouse the time of its query, the kernel what it read for it, fiord its JSON.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use fiord_testing::agreement::{Figures, assert_agree};
use fiord_testing::need;

use crate::common::{Dir, Running, bytes_from_devices, helper, until};

/// Its settings: two ports of loopback, and all of its files in one directory.
const CONFIGURATION: &str = "<yandex><logger><level>warning</level><log>DIR/log</log><errorlog>DIR/errors</errorlog></logger>
<http_port>HTTP</http_port><tcp_port>TCP</tcp_port><listen_host>127.0.0.1</listen_host><mark_cache_size>67108864</mark_cache_size>
<path>DIR/data/</path><tmp_path>DIR/data/tmp/</tmp_path><user_files_path>DIR/data/files/</user_files_path>
<format_schema_path>DIR/data/schemas/</format_schema_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database></yandex>";

/// One user without limits, who may come from this machine alone.
const USERS: &str = "<yandex><profiles><default></default></profiles><users><default><password></password><networks>
<ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users><quotas><default></default></quotas>
</yandex>";

/// Rows of eight random bytes, which do not compress: 128 MiB in a column.
const ROWS: u64 = 16 << 20;

/// A server, killed on drop.
struct ClickHouse {
    running: Running,
    port: String,
}

impl ClickHouse {
    fn start(dir: &Dir) -> Result<ClickHouse, String> {
        helper("clickhouse-client", &["--version"])?;
        let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let (port, http) = (free(), free());
        let place = dir.path().display().to_string();
        let text = CONFIGURATION.replace("DIR", &place).replace("HTTP", &http).replace("TCP", &port);
        let config = dir.write("config.xml", text);
        dir.write("users.xml", USERS);
        let mut command = Command::new("clickhouse-server");
        command.arg(format!("--config-file={}", config.display())).current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(command.spawn().map_err(|why| format!("clickhouse-server: {why}"))?);
        let server = ClickHouse { running, port };
        until("ClickHouse is up", || server.ask(&["-q", "select 1"]).is_ok());
        server
            .ask(&["-q", "create table t (d Date default today(), x UInt64) engine=MergeTree(d, x, 8192)"])?;
        let rows = format!(
            "insert into t (x) select rand64() from (select number from system.numbers limit {ROWS})"
        );
        server.ask(&["-q", &rows])?;
        server.ask(&["-q", "optimize table t"])?;
        Ok(server)
    }

    /// The answer, and after it what `--time` prints.
    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut command = Command::new("clickhouse-client");
        command.args(["--host", "127.0.0.1", "--port", &self.port]).args(words).stdin(Stdio::null());
        let output = command.output().map_err(|why| format!("clickhouse-client: {why}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
        match output.status.success() {
            true => Ok(text(&output.stdout) + "\n" + &text(&output.stderr)),
            false => Err(format!("clickhouse-client {words:?}: {}", text(&output.stderr))),
        }
    }

    /// Bytes per second of a scan of the column by four threads, past the page cache.
    fn scan(&self) -> f64 {
        let before = bytes_from_devices(&self.running);
        let options = ["--time", "--max_threads=4", "--min_bytes_to_use_direct_io=1"];
        let answer = self.ask(&[&options[..], &["-q", "select max(x) from t"]].concat()).unwrap();
        let seconds: f64 = answer.lines().last().unwrap().parse().unwrap();
        (bytes_from_devices(&self.running) - before) as f64 / seconds
    }
}

/// Bytes per second that the four scanning threads of the check read together.
fn fiord_scan(dir: &Dir) -> f64 {
    dir.write("check.fio", dir.run("check clickhouse --show-job").stdout);
    let sections = "--section=fill-the-parts --section=scans-alone";
    let line = format!("check.fio {sections} --runtime=2 --size=256m --output-format=json");
    let document = dir.run(&line).json();
    let jobs = document["jobs"].as_array().unwrap().iter();
    jobs.map(|job| job["read"]["bw_bytes"].as_f64().unwrap()).sum()
}

/// `FIORD_IDLE=1 cargo test -p fiord --test it clickhouse` on a machine with nothing else to do: beside other work, two of three
/// such comparisons agree.
#[test]
fn it_scans_a_column_as_fast_as_the_threads_of_the_check() {
    need!(fiord_testing::idle_machine());
    let dir = Dir::new();
    let server = need!(ClickHouse::start(&dir));
    if server.scan() == 0.0 {
        fiord_testing::skip!("the kernel counts nothing that ClickHouse reads: the file system is in memory");
    }
    need!(assert_agree(|| {
        let (fiord, theirs) = (fiord_scan(&dir), server.scan());
        let mib = |bytes: f64| bytes / f64::from(1 << 20);
        let text = format!("ClickHouse {:.0} MiB/s of its scan, fiord {:.0} MiB/s", mib(theirs), mib(fiord));
        Figures { theirs, fiord, theirs_least: 0.0, text }
    }));
}

//! Hosts that are servers: `fiord --server`, reached by `--client` as fio's are, or by `--via=server`.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Output};

use fiord_fleet_tests::{Fleet, fates, kill, reads, report, runs_a_job, text};
use fiord_servers::{eventually, free_port, needs};
use serde_json::Value;

const JOB: &str = "[global]\nioengine=null\nsize=64m\nrw=randread\n[job]\n";

/// Ends a case, which then counts as skipped, where the kernel cannot keep clients to what they may do.
macro_rules! needs_fences {
    () => {
        needs!("sh" of "dash");
        fiord_testing::need!(fences());
    };
}

fn fences() -> Result<(), String> {
    let fleet = Fleet::new(&[])?;
    let fenced = fleet.local("agent --no-exec").output().map_err(|error| error.to_string())?;
    let said = text(&fenced.stderr);
    if said.contains("Landlock") { Err(said) } else { Ok(()) }
}

/// A server in the directory of a fleet, with its secret.
struct Served {
    fleet: Fleet,
    server: Child,
    /// The address, as it says it.
    address: String,
}

impl Served {
    /// At a free port of an address of loopback.
    fn start(options: &str) -> Served {
        let fleet = Fleet::new(&["none"]).unwrap();
        assert!(fleet.local("agent --new-secret=secret").status().unwrap().success());
        fleet.directory.write("k.fio", JOB).unwrap();
        fs::create_dir(fleet.directory.join("data")).unwrap();
        Served::at(fleet, &format!("--server=127.0.0.1,0 {options}"))
    }

    fn at(fleet: Fleet, options: &str) -> Served {
        let log = fs::File::create(fleet.directory.join("log")).unwrap();
        let mut command = fleet.local(options);
        command.env("FIORD_SECRET_FILE", "secret").stdout(log.try_clone().unwrap()).stderr(log);
        let mut server = command.spawn().unwrap();
        let address = || {
            let log = fleet.directory.read("log");
            log.lines().find_map(|line| line.strip_prefix("fiord: server listening on ")).map(str::to_string)
        };
        let is_up = eventually(|| address().is_some());
        if !is_up {
            let _ = server.kill();
        }
        let address = address().unwrap_or_else(|| panic!("{}", fleet.directory.read("log")));
        Served { fleet, server, address }
    }

    /// fiord as a client, with the same secret and a report in JSON.
    fn client(&self, words: &str) -> Command {
        let mut command = self.fleet.local(&words.replace("SERVER", &self.address));
        command.args(["--no-history", "--output-format=json"]).env("FIORD_SECRET_FILE", "secret");
        command
    }

    fn run(&self, words: &str) -> Output {
        self.client(words).output().unwrap()
    }

    /// What a run that fails says.
    fn refusal(&self, words: &str) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(1), "{words}: {}", text(&output.stderr));
        text(&output.stderr)
    }

    fn log_has(&self, text: &str) -> bool {
        eventually(|| self.fleet.directory.read("log").contains(text))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

// divergence: `--client=H` with `--name` and no job file
#[test]
fn two_servers_and_a_client_print_what_fios_would() {
    needs_fences!();
    let one = Served::start("");
    let beside = Fleet::new(&["none"]).unwrap();
    fs::copy(one.fleet.directory.join("secret"), beside.directory.join("secret")).unwrap();
    let other = Served::at(beside, "--server=127.0.0.2,0");
    let words =
        format!("--client=ip:SERVER k.fio --client={} --name=b --ioengine=null --size=1m", other.address);
    let output = one.run(&words);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let report = report(&output).unwrap();
    assert_eq!(fates(&report), ["complete"; 2]);
    let entries = report["client_stats"].as_array().unwrap();
    let of = |key: &str| entries.iter().map(|entry| entry[key].to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(of("jobname"), r#""job" "b" "All clients""#);
    assert_eq!(of("hostname"), r#""127.0.0.1" "127.0.0.2" "127.0.0.2""#);
    let ports =
        [&one.address, &other.address, &other.address].map(|address| address.rsplit_once(',').unwrap().1);
    assert_eq!(of("port"), ports.join(" "));
    let [each, all] = reads(&report);
    assert!(each == all && each == 16384 + 256, "{each} {all}");
    let first = &report["global options"][0];
    assert_eq!((&first["hostname"], &first["ioengine"]), (&"127.0.0.1".into(), &"null".into()));
    let text_of = one.client(&words).arg("--output-format=normal").output().unwrap();
    let lines = text(&text_of.stdout);
    let begins = format!("hostname={}, be=", hostname());
    assert!(lines.starts_with(&begins) && lines.contains("\n<127.0.0.1> \njob: (groupid=0"), "{lines}");
    assert!(one.log_has("has ended") && other.log_has("has ended"));
}

#[test]
fn a_list_of_servers_and_a_study_on_them() {
    needs_fences!();
    let served = Served::start("");
    served.fleet.directory.write("list", &format!("{}\n", served.address)).unwrap();
    let output = served.run("--client=list k.fio");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let (host, port) = served.address.split_once(',').unwrap();
    let mut hosts = served.fleet.local(&format!("hosts {host}:{port} --via=server --json"));
    let listed: Value = report(&hosts.env("FIORD_SECRET_FILE", "secret").output().unwrap()).unwrap();
    let first = &listed["hosts"][0];
    assert!(first["host"] == host && first["cause"].is_null(), "{listed}");
    let words =
        format!("sweep k.fio --over iodepth=1,2 --time 1s --hosts={host}:{port} --via=server --no-history");
    let mut study = served.fleet.local(&words);
    let output = study.env("FIORD_SECRET_FILE", "secret").output().unwrap();
    // What such short runs beside other tests decide is not the subject here.
    assert!(matches!(output.status.code(), Some(0 | 6)), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("127.0.0.1"), "{}", text(&output.stdout));
}

// divergence: `--server` without a secret
#[test]
fn who_does_not_know_the_secret_runs_nothing() {
    needs_fences!();
    let served = Served::start("");
    assert!(served.fleet.local("agent --new-secret=other").status().unwrap().success());
    let with = |secret: &str| {
        let output =
            served.client("--client=SERVER k.fio").env("FIORD_SECRET_FILE", secret).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    assert!(with("other").contains("another secret"));
    assert!(with("").contains("wants a secret"));
    let other = served.fleet.directory.join("other");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(with("other").contains("mode 0600"));
    assert!(served.log_has("does not know the secret"));
    assert!(!served.fleet.directory.read("log").contains("begins"));
    let mut server = served.fleet.local("--server=127.0.0.1,0");
    for secret in ["other", "missing", ""] {
        let refused = server.env("FIORD_SECRET_FILE", secret).output().unwrap();
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(1), 0), "{secret}");
        assert!(text(&refused.stderr).contains("secret"), "{}", text(&refused.stderr));
    }
}

#[test]
fn a_server_without_a_secret_is_one_that_was_asked_for() {
    needs_fences!();
    let served = Served::start("--no-secret");
    assert!(served.refusal("--client=SERVER k.fio").contains("asks for no secret"));
    let output = served.client("--client=SERVER k.fio").env("FIORD_SECRET_FILE", "").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let findings = &report(&output).unwrap()["findings"];
    assert!(
        findings.as_array().unwrap().iter().any(|finding| finding["code"] == "open-server"),
        "{findings}"
    );
    let refused = served.fleet.local("--server=127.0.0.1,0 --no-secret --allow-exec").output().unwrap();
    assert!(refused.status.code() == Some(1) && text(&refused.stderr).contains("--allow-exec"));
}

#[test]
fn a_socket_is_its_owners() {
    needs_fences!();
    let fleet = Fleet::new(&["none"]).unwrap();
    fleet.directory.write("k.fio", JOB).unwrap();
    let served = Served::at(fleet, "--server=sock:s");
    let mode = served.fleet.directory.join("s").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let output = served.run("--client=sock:./s k.fio");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let entry = &report(&output).unwrap()["client_stats"][0];
    assert_eq!((&entry["hostname"], &entry["port"]), (&"./s".into(), &8765.into()));
    let taken = served.fleet.local("--server=sock:s").output().unwrap();
    assert!(
        taken.status.code() == Some(1) && text(&taken.stderr).contains("in use"),
        "{}",
        text(&taken.stderr)
    );
}

// divergence: jobs that run commands (`exec_prerun`, `ioengine=exec`) on a server
#[test]
fn clients_stay_below_the_root_and_run_no_commands() {
    needs_fences!();
    let served = Served::start("--root=data");
    let write =
        |name: &str, lines: &str| served.fleet.directory.write(name, &format!("[w]\n{lines}\n")).unwrap();
    write("in.fio", "rw=write\nsize=64k\nfilename=inside");
    let output = served.run("--client=SERVER in.fio");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(served.fleet.directory.join("data/inside").metadata().unwrap().len(), 65536);
    let outside = served.fleet.directory.join("outside");
    std::os::unix::fs::symlink(&outside, served.fleet.directory.join("data/link")).unwrap();
    for name in [outside.to_str().unwrap(), "../outside", "link"] {
        write("out.fio", &format!("rw=write\nsize=64k\nfilename={name}"));
        let said = served.refusal("--client=SERVER out.fio");
        assert!(said.contains("EACCES") && said.contains("alone"), "{name}: {said}");
    }
    fs::write(&outside, vec![1; 65536]).unwrap();
    write("read.fio", &format!("rw=read\nfilename={}", outside.display()));
    assert!(served.refusal("--client=SERVER read.fio").contains("EACCES"));
    for lines in ["ioengine=null\nsize=1m\nexec_prerun=touch evil", "ioengine=exec\nprogram=/bin/true"] {
        write("exec.fio", lines);
        assert!(served.refusal("--client=SERVER exec.fio").contains("run no commands"), "{lines}");
    }
    fs::copy(served.fleet.directory.join("k.fio"), served.fleet.directory.join("data/own.fio")).unwrap();
    let output = served.run("--client=SERVER --remote-config=own.fio");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(reads(&report(&output).unwrap())[0], 16384);
    assert!(served.refusal("--client=SERVER --remote-config=../k.fio").contains("--remote-config: ../k.fio"));
}

#[test]
fn a_readonly_server_writes_nothing_and_another_runs_commands_where_it_may() {
    needs_fences!();
    let served = Served::start("--readonly");
    served.fleet.directory.write("w.fio", "[w]\nrw=write\nsize=64k\nfilename=new\n").unwrap();
    assert!(served.refusal("--client=SERVER w.fio").contains("write"));
    // A job that only reads would lay its file out.
    served.fleet.directory.write("r.fio", "[r]\nrw=read\nsize=64k\nfilename=new\n").unwrap();
    served.refusal("--client=SERVER r.fio");
    assert!(!served.fleet.directory.join("new").exists());
    let served = Served::start("--allow-exec");
    let job = "[e]\nioengine=null\nsize=1m\nexec_prerun=echo ran >ran\n";
    served.fleet.directory.write("e.fio", job).unwrap();
    let output = served.run("--client=SERVER e.fio");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(served.fleet.directory.read("ran"), "ran\n");
}

/// A job that takes seconds to write what it will verify, and what reads that back.
const WRITES: &str = "[w]\nfilename=written\nrw=randwrite\nsize=8m\nioengine=psync\nrate_iops=400\n\
                      verify=crc32c\ndo_verify=0\n";
const VERIFIES: &str = "[w]\nfilename=written\nrw=randwrite\nsize=8m\nioengine=psync\nverify=crc32c\n\
                        verify_only\nverify_state_load=1\n";

// divergence: states of `verify` of a `--client`
// divergence: triggers of a `--client`
#[test]
fn a_trigger_stops_hosts_whose_states_come_back_before_commands_run() {
    needs_fences!();
    let served = Served::start("--allow-exec");
    let directory = &served.fleet.directory;
    directory.write("w.fio", WRITES).unwrap();
    directory.write("v.fio", VERIFIES).unwrap();
    let mut client = served.client("--client=SERVER w.fio --trigger-file=fire");
    let remote = "cp 127.0.0.1-w-0-verify.state seen; exit 3";
    client.args([&format!("--trigger-remote={remote}"), "--trigger=ls seen"]);
    let client = client.spawn().unwrap();
    assert!(eventually(|| directory.join("written").metadata().is_ok_and(|file| file.len() > 0)));
    directory.write("fire", "").unwrap();
    let output = client.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("seen\n") && said.contains("exit status: 3"), "both were run, here last: {said}");
    let report = report(&output).unwrap();
    let of = |report: &Value, kind: &str| report["client_stats"][0][kind]["total_ios"].as_u64().unwrap();
    let written = of(&report, "write");
    assert!((1..2048).contains(&written), "{written}");
    assert!(!directory.join("local-w-0-verify.state").exists() && !directory.join("fire").exists());
    let verify = || served.run("--client=SERVER v.fio");
    let verified = verify();
    assert_eq!((verified.status.code(), text(&verified.stderr)), (Some(0), String::new()));
    assert_eq!(of(&fiord_fleet_tests::report(&verified).unwrap(), "read"), written);
    fs::remove_file(directory.join("127.0.0.1-w-0-verify.state")).unwrap();
    let without = verify();
    assert_eq!(without.status.code(), Some(1));
    assert!(text(&without.stderr).contains("start this one in the directory"), "{}", text(&without.stderr));
}

#[test]
fn a_server_runs_no_command_of_a_trigger_unless_it_may() {
    needs_fences!();
    let served = Served::start("");
    served.fleet.directory.write("w.fio", WRITES).unwrap();
    let refused = served.refusal("--client=SERVER w.fio --trigger-timeout=1 --trigger-remote=reboot");
    assert!(refused.contains("--trigger-remote=reboot") && refused.contains("run no commands"), "{refused}");
    assert!(served.refusal("--client=SERVER w.fio --aux-path=missing").contains("it is no directory"));
    assert!(!served.fleet.directory.join("written").exists(), "nothing was run");
}

#[test]
fn files_below_a_directory_have_the_address_before_them() {
    needs_fences!();
    let served = Served::start("");
    served.fleet.directory.write("d.fio", "[w]\nrw=write\nsize=16k\ndirectory=data\n").unwrap();
    assert_eq!(served.run("--client=SERVER d.fio").status.code(), Some(0));
    assert!(served.fleet.directory.join("data/127.0.0.1.w.0.0").exists());
}

#[test]
fn who_leaves_leaves_no_load_behind() {
    needs_fences!();
    let mut served = Served::start("");
    let long = JOB.to_string() + "time_based\nruntime=600\n";
    served.fleet.directory.write("long.fio", &long).unwrap();
    let is_at_work =
        |served: &Served| eventually(|| children(served.server.id()).into_iter().any(runs_a_job));
    let mut client = served.client("--client=SERVER long.fio").spawn().unwrap();
    assert!(is_at_work(&served));
    kill("-KILL", client.id());
    let _ = client.wait();
    assert!(served.log_has("has ended") && eventually(|| served.fleet.spooled() == 1));
    let client = served.client("--client=SERVER long.fio").spawn().unwrap();
    assert!(is_at_work(&served));
    kill("-TERM", served.server.id());
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!(served.server.wait().unwrap().code(), Some(143));
    assert!(eventually(|| served.fleet.spooled() == 2));
}

#[test]
fn many_that_say_nothing_keep_nobody_out_for_long() {
    needs_fences!();
    let served = Served::start("");
    let address = served.address.replace(',', ":");
    let silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(&address).unwrap()).collect();
    assert!(served.log_has("others have not proven who they are"));
    let is_served = || served.run("--client=SERVER k.fio").status.code() == Some(0);
    assert!(eventually(is_served));
    drop(silent);
}

// divergence: `--client` of one's own or of the other program
#[test]
fn fio_at_the_other_end_is_named() {
    needs!("fio" of "fio");
    needs_fences!();
    let served = Served::start("");
    let mut fio = Command::new("fio");
    served.fleet.placed(&mut fio);
    let output = fio.arg(format!("--client=ip:{}", served.address)).arg("k.fio").output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    assert!(served.log_has("fio is there (version 97"), "{}", served.fleet.directory.read("log"));
    let port = free_port().unwrap();
    let mut fio = Command::new("fio");
    served.fleet.placed(&mut fio);
    let mut server = fio.arg(format!("--server=127.0.0.1,{port}")).spawn().unwrap();
    assert!(eventually(|| fiord_servers::listens(port)));
    let said = served.refusal(&format!("--client=ip:127.0.0.1,{port} k.fio"));
    let _ = server.kill();
    let _ = server.wait();
    assert!(said.contains("fio is there (version 97"), "{said}");
}

#[test]
fn a_server_goes_into_the_background_with_its_number_in_a_file() {
    needs_fences!();
    let fleet = Fleet::new(&["none"]).unwrap();
    fleet.directory.write("k.fio", JOB).unwrap();
    let words = "--server=sock:s --daemonize=pid";
    let begun = fleet.local(words).status().unwrap();
    assert_eq!(begun.code(), Some(0));
    let id: u32 = fleet.directory.read("pid").trim().parse().unwrap();
    let output = fleet.local("--client=sock:s k.fio --no-history --output-format=json").output().unwrap();
    kill("-TERM", id);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let gone = || !fs::exists(format!("/proc/{id}/exe")).unwrap_or(true) || is_dead(id);
    assert!(eventually(gone));
    // One whose number is nowhere is not left running.
    let full = fleet.local("--server=sock:f --daemonize=/dev/full").output().unwrap();
    assert!(full.status.code() == Some(1) && text(&full.stderr).contains("ENOSPC"), "{}", text(&full.stderr));
    assert!(!fiord_servers::listens_on(&fleet.directory.join("f")));
    let jobs_of_its_own = "--server=sock:t k.fio";
    for words in [
        "--daemonize=pid",
        "--root=.",
        "--client=a --hosts=b k.fio",
        "--remote-config=k.fio",
        jobs_of_its_own,
    ] {
        let output = fleet.local(words).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words}");
        assert!(["give ", "leave out"].iter().any(|remedy| text(&output.stderr).contains(remedy)), "{words}");
    }
}

#[test]
fn what_is_not_tls_is_refused_and_the_server_goes_on() {
    needs_fences!();
    let served = Served::start("");
    let mut stream = TcpStream::connect(served.address.replace(',', ":")).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(served.log_has("not fiord"), "{}", served.fleet.directory.read("log"));
    assert_eq!(served.run("--client=SERVER k.fio").status.code(), Some(0));
}

/// The processes that a process has started.
fn children(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    tasks
        .flat_map(|task| {
            of_task(task).split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn hostname() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_string()
}

fn is_dead(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/stat")).map_or(true, |line| line.contains(") Z "))
}

// divergence: a `--client` that cannot be reached, beside others
#[test]
fn a_server_that_is_missing_keeps_the_others_from_starting_unless_it_may() {
    needs_fences!();
    let served = Served::start("");
    let gone = free_port().unwrap();
    let words = format!("--client=SERVER k.fio --client=127.0.0.1,{gone} k.fio");
    let said = served.refusal(&words);
    assert!(said.contains("ECONNREFUSED"), "{said}");
    let output = served.run(&format!("{words} --allow-missing=1"));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(fates(&report(&output).unwrap()), ["complete", "missing"]);
}

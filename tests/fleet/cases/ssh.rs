//! Hosts that are reached by ssh: Debian's server on addresses of loopback, in a network of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fiord_fleet_tests::{Fleet, executable, fates, kill, report, text};
use fiord_servers::{Directory, Server, needs};

const JOB: &str = "--name=job --ioengine=null --rw=randread --size=64m";

/// A server that allows one session a connection, and prints before each command what a start-up file would.
struct Sshd {
    server: Server,
}

const SCRIPT: &str = "set -e
ip link set lo up
mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f sshd_config
";

impl Sshd {
    fn start(noise: &str) -> Sshd {
        let directory = Directory::new().unwrap();
        for key in ["host", "user", "other"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", key])
                .current_dir(directory.path())
                .status();
            assert!(made.unwrap().success());
        }
        let at = directory.path().display().to_string();
        directory.write("allowed", &directory.read("user.pub")).unwrap();
        let forced = format!("#!/bin/sh\n{noise}\nexec sh -c \"$SSH_ORIGINAL_COMMAND\"\n");
        executable(&directory, "forced", &forced);
        fs::create_dir(directory.join("home")).unwrap();
        let configuration = format!(
            "ListenAddress 127.0.1.1\nListenAddress 127.0.1.2\nListenAddress 127.0.1.3\nHostKey {at}/host\n\
             AuthorizedKeysFile {at}/allowed\nStrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n\
             MaxSessions 1\nForceCommand {at}/forced\nSetEnv HOME={at}/home XDG_STATE_HOME={at}/state\n"
        );
        directory.write("sshd_config", &configuration).unwrap();
        let client = format!(
            "Host *\n User root\n IdentitiesOnly yes\n UserKnownHostsFile /dev/null\n StrictHostKeyChecking no\n \
             LogLevel ERROR\n IdentityFile {at}/user\n"
        );
        directory.write("config", &client).unwrap();
        fs::create_dir(directory.join("bin")).unwrap();
        executable(&directory, "bin/ssh", &format!("#!/bin/sh\nexec /usr/bin/ssh -F {at}/config \"$@\"\n"));
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", SCRIPT]);
        let is_up = |directory: &Directory| directory.read("server.log").matches("listening on").count() == 3;
        Sshd { server: Server::start(directory, &command, is_up).unwrap() }
    }

    fn path(&self) -> &Path {
        self.server.directory.path()
    }

    /// A run of fiord in the server's network.
    fn command(&self, fleet: &Fleet, words: &str) -> Command {
        self.fiord(fleet, &format!("--no-history --output-format=json {words}"))
    }

    /// fiord in the server's network.
    fn fiord(&self, fleet: &Fleet, words: &str) -> Command {
        let namespace = format!("--net=/proc/{}/ns/net", self.server.id());
        let mut command = Command::new("nsenter");
        command.arg(namespace).arg(fleet.fiord()).args(words.split_whitespace());
        let path = format!("{}:{}", self.path().join("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path);
        fleet.placed(&mut command);
        command
    }

    fn run(&self, fleet: &Fleet, words: &str) -> Output {
        self.command(fleet, words).output().unwrap()
    }

    /// Files in the home directory.
    fn left(&self) -> Vec<String> {
        let found = Command::new("find").arg(self.path().join("home")).args(["-type", "f"]).output().unwrap();
        text(&found.stdout).lines().map(str::to_string).collect()
    }
}

#[test]
fn a_program_is_sent_in_one_session_after_noise_and_leaves_no_file() {
    needs!("sshd" of "openssh-server", "ssh" of "openssh-client", "ip" of "iproute2");
    let (sshd, fleet) = (Sshd::start("echo Welcome to this host"), Fleet::new(&[]).unwrap());
    let output = sshd.run(&fleet, &format!("{JOB} --hosts=127.0.1.[1-3] --push=always"));
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fates(&report(&output).unwrap()), ["complete"; 3]);
    assert_eq!(sshd.left(), [""; 0]);
}

#[test]
fn a_copy_that_was_kept_is_removed_by_clean() {
    needs!("sshd" of "openssh-server", "ssh" of "openssh-client", "ip" of "iproute2");
    let (sshd, fleet) = (Sshd::start(""), Fleet::new(&[]).unwrap());
    let kept = sshd.run(&fleet, &format!("{JOB} --hosts=127.0.1.1 --push=always --keep-agent"));
    assert_eq!((kept.status.code(), text(&kept.stderr)), (Some(0), String::new()));
    let left = sshd.left();
    assert!(left.len() == 1 && left[0].contains("/home/.cache/fiord/agent-"), "{left:?}");
    let output = sshd.fiord(&fleet, "hosts 127.0.1.1 --clean").output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let said = text(&output.stdout);
    assert!(said.starts_with(&format!("127.0.1.1: removed {} (", left[0])), "{said}");
    assert_eq!(sshd.left(), [""; 0]);
}

#[test]
fn sudo_starts_the_agent_and_is_what_fails_where_it_may_not() {
    needs!("sshd" of "openssh-server", "ssh" of "openssh-client", "ip" of "iproute2", "sudo" of "sudo");
    let (sshd, fleet) = (Sshd::start(""), Fleet::new(&[]).unwrap());
    let by = fleet.directory.join("by");
    let job = format!("[job]\nioengine=null\nsize=1m\nexec_prerun=echo $SUDO_COMMAND >{}\n", by.display());
    fleet.directory.write("j.fio", &job).unwrap();
    for push in ["auto", "always"] {
        let output = sshd.run(&fleet, &format!("j.fio --hosts=127.0.1.1 --sudo --push={push}"));
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{push}");
        assert!(fleet.directory.read("by").contains(" agent"), "{push}: {}", fleet.directory.read("by"));
        fs::remove_file(&by).unwrap();
    }
    assert_eq!(sshd.left(), [""; 0]);
    let refuses = "mkdir -p bin; printf '#!/bin/sh\\necho sudo: a password is required >&2; exit 1\\n' >bin/sudo; \
                   chmod 755 bin/sudo; PATH=$PWD/bin:$PATH";
    let refusing = Sshd::start(&format!("cd {}; {refuses}", fleet.directory.path().display()));
    let output = refusing.run(&fleet, "j.fio --hosts=127.0.1.1 --sudo");
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("a password is required"), "{said}");
}

#[test]
fn a_host_that_cannot_be_reached_is_named_with_its_cause() {
    needs!("sshd" of "openssh-server", "ssh" of "openssh-client", "ip" of "iproute2");
    let (sshd, fleet) = (Sshd::start(""), Fleet::new(&[]).unwrap());
    let output = sshd.run(&fleet, &format!("{JOB} --hosts=127.0.1.1,127.0.1.9"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("127.0.1.9: missing: ssh: connect to host 127.0.1.9 port 22: Connection refused"),
        "{said}"
    );
    let other = sshd.server.directory.read("other.pub");
    sshd.server.directory.write("allowed", &other).unwrap();
    let output = sshd.run(&fleet, &format!("{JOB} --hosts=127.0.1.1"));
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("Permission denied"), "{said}");
}

#[test]
fn a_killed_session_is_lost_and_its_load_ends() {
    needs!("sshd" of "openssh-server", "ssh" of "openssh-client", "ip" of "iproute2");
    let (sshd, fleet) = (Sshd::start(""), Fleet::new(&["127.0.1.1"]).unwrap());
    let long = "--name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600";
    let words = format!("{long} --hosts={}", fleet.directory.join("hosts").display());
    let child = sshd.command(&fleet, &words).spawn().unwrap();
    assert!(fleet.are_at_work(1));
    let session = parent_of(fleet.agents()[0]);
    kill("-KILL", session);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("127.0.1.1: lost"), "{said}");
    assert!(fleet.all_leave());
}

fn parent_of(id: u32) -> u32 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

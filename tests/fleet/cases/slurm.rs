//! Hosts that are nodes of Slurm: its controller and four of its daemons, in a network of their own.

use std::process::{Child, Command};

use fiord_fleet_tests::{Fleet, fates, kill, reads, report, text};
use fiord_servers::{Directory, Server, needs};

/// An allocation of four nodes, which are this machine. Munge takes no address of loopback.
const SCRIPT: &str = "set -e
hostname ctl
mount --bind names /etc/hosts
ip link set lo up
ip link add v0 type veth peer name v1
ip addr add 10.77.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
head -c 1024 /dev/urandom >key
chmod 400 key
munged --foreground --force --socket=$PWD/munge --key-file=$PWD/key --pid-file=$PWD/munge.pid \
    --log-file=$PWD/munge.log --seed-file=$PWD/seed &
slurmctld -D -c &
for n in 1 2 3 4; do slurmd -D -N n$n & done
until [ \"$(sinfo -h -o %t%D 2>/dev/null)\" = idle4 ]; do sleep 0.1; done
salloc -N4 --no-shell
touch ready
wait
";

const CONFIGURATION: &str = "ClusterName=t
SlurmctldHost=ctl(10.77.0.1)
AuthType=auth/munge
AuthInfo=socket=DIR/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool.%n
SlurmdPidFile=DIR/%n.pid
SlurmctldPidFile=DIR/ctl.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
KillWait=1
NodeName=n[1-4] NodeHostname=ctl NodeAddr=10.77.0.1 Port=[7001-7004] CPUs=1 RealMemory=100
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
";

const JOB: &str = "--via=slurm --name=job --ioengine=null --rw=randread --size=64m";

struct Slurm(Server);

impl Slurm {
    fn start() -> Slurm {
        let directory = Directory::new().unwrap();
        let at = directory.path().display().to_string();
        directory.write("slurm.conf", &CONFIGURATION.replace("DIR", &at)).unwrap();
        directory.write("cgroup.conf", "CgroupPlugin=cgroup/v1\n").unwrap();
        directory.write("names", "127.0.0.1 localhost\n10.77.0.1 ctl\n").unwrap();
        for name in ["state", "spool.n1", "spool.n2", "spool.n3", "spool.n4"] {
            std::fs::create_dir(directory.join(name)).unwrap();
        }
        let mut command = Command::new("unshare");
        command.args(["--net", "--uts", "--mount", "sh", "-c", SCRIPT]);
        command.env("SLURM_CONF", directory.join("slurm.conf"));
        let is_up = |directory: &Directory| directory.join("ready").exists();
        Slurm(Server::start(directory, &command, is_up).unwrap())
    }

    /// A program in the allocation.
    fn command(&self, fleet: &Fleet, program: &std::path::Path, words: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.0.id())).args(["--net", "--uts", "--mount", "env", "-C"]);
        command.arg(self.0.directory.path()).arg(program).args(words.split_whitespace());
        fleet.placed(&mut command);
        command.env("SLURM_CONF", self.0.directory.join("slurm.conf"));
        command.env("SLURM_JOB_ID", "1").env("SLURM_JOB_NODELIST", "n[1-4]");
        command
    }

    /// fiord, once its agents run jobs.
    fn started(&self, fleet: &Fleet) -> Child {
        let words = format!(
            "--no-history --output-format=json {JOB} --time_based --runtime=600 --hosts={}",
            fleet.directory.join("hosts").display()
        );
        let child = self.command(fleet, &fleet.fiord(), &words).spawn().unwrap();
        assert!(fleet.are_at_work(4));
        child
    }
}

#[test]
fn nodes_of_an_allocation_run_together_and_no_load_outlives_its_controller_or_its_job() {
    needs!("srun" of "slurm-wlm", "slurmctld" of "slurm-wlm", "slurmd" of "slurm-wlm", "munged" of "munge",
        "ip" of "iproute2");
    let (slurm, fleet) = (Slurm::start(), Fleet::new(&["n1", "n2", "n3", "n4"]).unwrap());

    let words = format!("--no-history --output-format=json {JOB} --time_based --runtime=1");
    let output = slurm.command(&fleet, &fleet.fiord(), &words).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fates(&report(&output).unwrap()), ["complete"; 4]);

    let child = slurm.started(&fleet);
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let stopped = report(&output).unwrap();
    assert!(fates(&stopped) == ["stopped"; 4] && reads(&stopped)[0] > 0, "{stopped}");
    assert!(fleet.all_leave());

    let mut child = slurm.started(&fleet);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fleet.all_leave());
    assert_eq!(fleet.spooled(), 4);

    let child = slurm.started(&fleet);
    let cancelled = slurm.command(&fleet, std::path::Path::new("scancel"), "1").status().unwrap();
    assert!(cancelled.success());
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(["failed", "lost"].iter().any(|fate| said.contains(&format!(": {fate}: "))), "{said}");
    assert!(fleet.all_leave());
}

#[test]
fn without_an_allocation_nothing_is_run() {
    needs!("sh" of "dash");
    let fleet = Fleet::new(&["a"]).unwrap();
    for words in [JOB, "quick --via=slurm", "hosts --via=slurm"] {
        let mut command = fleet.local(words);
        let output = command.env_remove("SLURM_JOB_NODELIST").current_dir("/").output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains("SLURM_JOB_NODELIST"), "{words}: {said}");
    }
}

//! Hosts that are pods of a cluster, as far as one machine can be one: etcd, the API server, the controller manager and kubectl
//! are real. `SCRIPT` stands in for a scheduler, a kubelet and a storage driver: a pod's main process runs in a process
//! namespace of its own, without image, cgroup or volume, and `kubectl exec` alone is answered by `KUBECTL`, which enters
//! that. `cargo x kube` builds what is needed, and runs this.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output};

use fiord_fleet_tests::{Fleet, fates, kill, reads, report, text};
use fiord_servers::{Directory, Server, eventually, needs};

const PODS: &str = "--via=kube --pods=3 --volume-size=1Gi --storage-class=fast";
const LONG: &str = "--name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600";

const SCRIPT: &str = r#"set -e
ip link set lo up
# The API server has to have an address that is not loopback's.
ip addr add 10.77.0.1/32 dev lo
mkdir run
openssl genrsa -out sa.key 2048
echo 'secret,admin,1,system:masters
weak,guest,2' >tokens
export KUBECONFIG=$PWD/kubeconfig
kubectl config set-cluster c --server=https://127.0.0.1:6443 --insecure-skip-tls-verify
for user in admin:secret guest:weak; do
    kubectl config set-credentials ${user%:*} --token=${user#*:}
    kubectl config set-context ${user%:*} --cluster=c --user=${user%:*}
done
kubectl config use-context admin
etcd --data-dir=etcd --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
    --listen-peer-urls=http://127.0.0.1:2380 --unsafe-no-fsync &
BIN/kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=127.0.0.1 \
    --advertise-address=10.77.0.1 --secure-port=6443 --cert-dir=certs \
    --service-account-issuer=https://c --service-account-key-file=sa.key --service-account-signing-key-file=sa.key \
    --service-cluster-ip-range=10.0.0.0/24 --endpoint-reconciler-type=none --token-auth-file=tokens \
    --authorization-mode=RBAC --disable-admission-plugins=ServiceAccount &
until kubectl get --raw /readyz; do sleep 0.1; done
BIN/kube-controller-manager --kubeconfig=$KUBECONFIG --leader-elect=false --bind-address=127.0.0.1 \
    --controllers=job-controller,ephemeral-volume-controller,persistentvolumeclaim-protection-controller \
    --controllers=garbage-collector-controller,resourcequota-controller &
until kubectl get namespace default; do sleep 0.1; done

status() {
    kubectl patch pod "$1" --subresource=status -p "{\"status\":{\"phase\":\"$2\",\"containerStatuses\":[{\"name\":\"fiord\",
        \"image\":\"i\",\"imageID\":\"i\",\"ready\":true,\"restartCount\":0,\"state\":$3}]}}"
}
begin() {
    # The claim of a generic ephemeral volume is there first.
    kubectl get pvc "$1-data" || return 0
    kubectl patch pvc "$1-data" --subresource=status -p '{"status":{"phase":"Bound"}}'
    echo "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"$1\"},\"target\":{\"kind\":\"Node\",\"name\":\"n1\"}}" |
        kubectl create --raw "/api/v1/namespaces/default/pods/$1/binding" -f -
    unshare --pid --fork --mount-proc --kill-child FIORD agent --hold &
    until pid=$(cat /proc/$!/task/$!/children) && [ -n "$pid" ]; do sleep 0.05; done
    echo $pid >"run/$1"
    status "$1" Running '{"running":{}}'
}
set +e
touch ready
while sleep 0.1; do
    kubectl get pods -o 'jsonpath={range .items[*]}{.metadata.name} {.status.phase} {.metadata.deletionTimestamp}{"\n"}{end}' >pods
    while read -r pod phase leaving; do
        if [ -n "$leaving" ]; then
            kubectl delete pod "$pod" --force --grace-period=0
        elif [ "$phase" = Pending ] && [ ! -e full ]; then
            begin "$pod"
        elif [ "$phase" = Running ] && ! kill -0 $(cat "run/$pod"); then
            status "$pod" Failed '{"terminated":{"exitCode":137,"reason":"Error"}}'
        fi
    done <pods
    for main in run/*; do
        grep -q "^${main#run/} " pods || { kill -TERM $(cat "$main"); rm "$main"; }
    done
done
"#;

const KUBECTL: &str = r#"#!/bin/sh
case " $* " in *' exec '*)
    while [ "$1" != --stdin ]; do shift; done
    pod=$2
    shift 4
    exec nsenter "--target=$(cat "CLUSTER/run/$pod")" --pid --mount FIORD "$@" ;;
esac
exec /usr/bin/kubectl "$@"
"#;

struct Cluster {
    server: Server,
    fleet: Fleet,
}

impl Cluster {
    fn start(programs: &str) -> Cluster {
        let (fleet, directory) = (Fleet::new(&[]).unwrap(), Directory::new().unwrap());
        // `fiord hosts` would take it for a job file.
        std::fs::remove_file(fleet.directory.join("hosts")).unwrap();
        let (fiord, at) = (fleet.fiord().display().to_string(), directory.path().display().to_string());
        let placed =
            |text: &str| text.replace("CLUSTER", &at).replace("FIORD", &fiord).replace("BIN", programs);
        fleet.directory.write("kubectl", &placed(KUBECTL)).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(fleet.directory.join("kubectl"), executable).unwrap();
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", &placed(SCRIPT)]);
        let is_up = |directory: &Directory| directory.join("ready").exists();
        Cluster { server: Server::start(directory, &command, is_up).unwrap(), fleet }
    }

    fn program(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.server.id())).arg(program).args(words);
        self.fleet.placed(&mut command);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.fleet.directory.path().display()));
        command.env("KUBECONFIG", self.server.directory.join("kubeconfig"));
        command
    }

    fn fiord(&self, words: &str) -> Command {
        let words: Vec<&str> = words.split_whitespace().collect();
        self.program(&self.fleet.fiord().display().to_string(), &words)
    }

    fn kubectl(&self, words: &str) -> String {
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = self.program("/usr/bin/kubectl", &words).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    }

    fn refused(&self, words: &str, part: &str) {
        let output = self.fiord(words).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(part), "{words}: {said}");
        assert!(self.is_empty(), "{words}: {:?} {}", self.fleet.agents(), self.kubectl("get jobs,pods,pvc"));
    }

    /// A run that has begun on all pods.
    fn started(&self) -> Child {
        let child = self.fiord(&format!("--no-history --output-format=json {PODS} {LONG}")).spawn().unwrap();
        assert!(self.fleet.are_at_work(3), "{}", self.server.directory.read("pods"));
        child
    }

    /// Whether no Job, pod and claim is left, nor any process of one.
    fn is_empty(&self) -> bool {
        self.fleet.all_leave() && eventually(|| self.kubectl("get jobs,pods,pvc --output=name").is_empty())
    }
}

fn sorted(output: &Output) -> Vec<String> {
    let mut fates = fates(&report(output).unwrap());
    fates.sort();
    fates
}

#[test]
fn a_cluster_gives_pods_for_a_run_and_has_none_afterwards() {
    needs!("kubectl" of "kubectl", "etcd" of "etcd-server", "nsenter" of "util-linux", "openssl" of "openssl",
        "ip" of "iproute2");
    let Some(programs) = std::env::var_os("FIORD_KUBE").map(PathBuf::from) else {
        fiord_testing::skip!("FIORD_KUBE names no directory of an API server; `cargo x kube` runs it");
    };
    let cluster = Cluster::start(&programs.display().to_string());

    // Every field is one that the API server knows.
    for kind in ["", "--block-volume --spread=zone --nodes=disk=nvme"] {
        let manifest = cluster.fiord(&format!("hosts {PODS} {kind} --print-manifest")).output().unwrap();
        cluster.server.directory.write("manifest", &text(&manifest.stdout)).unwrap();
        let path = cluster.server.directory.join("manifest").display().to_string();
        let dry =
            cluster.kubectl(&format!("create --dry-run=server --validate=strict --output=name -f {path}"));
        assert_eq!(dry, "job.batch/fiord\n");
    }

    let words = "--name=job --ioengine=null --rw=randread --size=64m";
    let output =
        cluster.fiord(&format!("--no-history --output-format=json {PODS} {words}")).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    assert_eq!(fates(&report(&output).unwrap()), ["complete"; 3]);
    assert!(cluster.is_empty());

    let child = cluster.started();
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let stopped = report(&output).unwrap();
    assert!(fates(&stopped) == ["stopped"; 3] && reads(&stopped)[0] > 0, "{stopped}");
    assert!(cluster.is_empty());

    // As a node that is drained does it.
    let child = cluster.started();
    let pod = cluster.kubectl("get pods --output=name").lines().next().unwrap().to_string();
    cluster.kubectl(&format!("delete {pod} --wait=false"));
    assert!(eventually(|| cluster.fleet.agents().len() == 4), "two pods, each with its main process");
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(sorted(&output), ["lost", "stopped", "stopped"], "{}", text(&output.stderr));
    assert!(cluster.is_empty());

    // Nobody is left to remove them: they end by themselves, a minute after their agents.
    let mut child = cluster.started();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(cluster.fleet.all_leave() || cluster.fleet.all_leave());
    assert!(!cluster.kubectl("get jobs --output=name").is_empty());
}

#[test]
fn what_a_cluster_refuses_is_said_at_once() {
    needs!("kubectl" of "kubectl", "etcd" of "etcd-server", "nsenter" of "util-linux", "openssl" of "openssl",
        "ip" of "iproute2");
    let Some(programs) = std::env::var_os("FIORD_KUBE").map(PathBuf::from) else {
        fiord_testing::skip!("FIORD_KUBE names no directory of an API server; `cargo x kube` runs it");
    };
    let cluster = Cluster::start(&programs.display().to_string());
    cluster.refused(&format!("hosts {PODS} --context=guest"), "take another --namespace");
    cluster.refused(&format!("hosts {PODS} --context=nowhere"), "name a cluster of");
    cluster.refused(&format!("hosts {PODS} --namespace=nowhere"), "nowhere");

    cluster.kubectl("create quota q --hard=pods=2");
    assert!(eventually(|| cluster.kubectl("get quota q --output=jsonpath={.status.hard.pods}") == "2"));
    cluster.refused(&format!("hosts {PODS}"), "exceeded quota: q");
    cluster.kubectl("delete quota q");
    cluster.kubectl("label namespace default pod-security.kubernetes.io/enforce=restricted");
    cluster.refused(&format!("hosts {PODS}"), "take a --namespace that lets such pods run");
    cluster.kubectl("label namespace default pod-security.kubernetes.io/enforce-");

    // No scheduler takes them: Ctrl-C.
    cluster.server.directory.write("full", "").unwrap();
    let child = cluster.fiord(&format!("hosts {PODS}")).spawn().unwrap();
    assert!(eventually(|| cluster.kubectl("get pods --output=name").lines().count() == 3));
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(cluster.is_empty());
}

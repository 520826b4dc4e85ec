//! Hosts that are pods, by a script in place of `kubectl` and a cluster: it answers from files, and runs what is to be executed
//! in a pod as a process of this machine. `cluster.rs` has the real programs.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command};

use fiord_fleet_tests::{Fleet, fates, kill, reads, report, text};
use fiord_servers::{eventually, needs};
use serde_json::{Value, json};

const PODS: &str = "--via=kube --pods=3 --volume-size=1Gi";
const JOB: &str = "--name=job --ioengine=null --rw=randread --size=64m";
const LONG: &str = "--name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=600";

/// Answers from `objects` and `events`, with JOB for the name of what was created; one that is missing is answered with none.
const KUBECTL: &str = r#"#!/bin/sh
cd DIR
case " $* " in
*' exec '*)
    while [ "$1" != -- ]; do shift; done
    shift 2
    exec DIR/fiord "$@" ;;
*' create '*)
    [ ! -e refused ] || { cat refused >&2; exit 1; }
    cat >manifest ;;
*' delete '*) echo "$*" >>deleted ;;
*' get '*)
    case "$*" in *events*) file=events ;; *) file=objects ;; esac
    touch "asked-$file"
    job=$(sed 's/.*"metadata":{"name":"\([^"]*\)".*/\1/' manifest)
    [ -e "$file" ] || { echo '{"items":[]}'; exit; }
    sed "s/JOB/$job/g" "$file" ;;
esac
"#;

/// A machine with that kubectl.
struct Kube(Fleet);

impl Kube {
    fn new() -> Kube {
        let fleet = Fleet::new(&[]).unwrap();
        // `fiord hosts` would take it for a job file.
        std::fs::remove_file(fleet.directory.join("hosts")).unwrap();
        let at = fleet.directory.path().display().to_string();
        fleet.directory.write("kubectl", &KUBECTL.replace("DIR", &at)).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(fleet.directory.join("kubectl"), executable).unwrap();
        Kube(fleet)
    }

    /// The cluster has pods with this status.
    fn has_pods(&self, status: &Value) {
        let pod = |index: u32| {
            let annotations = json!({ "batch.kubernetes.io/job-completion-index": index.to_string() });
            let metadata = json!({ "name": format!("JOB-{index}-x"), "annotations": annotations });
            json!({ "kind": "Pod", "metadata": metadata, "spec": { "nodeName": "n" }, "status": status })
        };
        self.answers("objects", &[0, 1, 2].map(pod));
    }

    fn answers(&self, file: &str, items: &[Value]) {
        self.0.directory.write("next", &json!({ "items": items }).to_string()).unwrap();
        std::fs::rename(self.0.directory.join("next"), self.0.directory.join(file)).unwrap();
    }

    fn have_all_begun(&self) {
        self.has_pods(&json!({ "phase": "Running", "containerStatuses": [{ "state": { "running": {} } }] }));
    }

    fn command(&self, words: &str) -> Command {
        let mut command = self.0.local(words);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.0.directory.path().display()));
        command
    }

    fn run(&self, words: &str) -> (Option<i32>, String, String) {
        let output = self.command(words).output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn start(&self, words: &str) -> Child {
        self.command(words).spawn().unwrap()
    }

    fn has(&self, file: &str) -> bool {
        self.0.directory.join(file).exists()
    }

    /// Whether what was created, and nothing else, was removed.
    fn has_removed_all(&self) -> bool {
        let manifest: Value = serde_json::from_str(&self.0.directory.read("manifest")).unwrap();
        let removed = format!("delete job/{} ", manifest["metadata"]["name"].as_str().unwrap());
        let deleted = self.0.directory.read("deleted");
        self.0.all_leave() && deleted.lines().count() == 1 && deleted.contains(&removed)
    }
}

#[test]
fn pods_are_made_for_a_run_and_are_hosts_and_go_with_it() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    kube.have_all_begun();
    let words = format!("--no-history --output-format=json {PODS} --context=lab --group-by=role {JOB}");
    let output = kube.command(&words).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let report = report(&output).unwrap();
    assert_eq!(fates(&report), ["complete"; 3]);
    let [each, all] = reads(&report);
    assert!(each == all && each == 3 * 16384, "{each} {all}");
    assert_eq!(report["fleet"]["hosts"][2]["role"], "n", "{report}");
    let manifest: Value = serde_json::from_str(&kube.0.directory.read("manifest")).unwrap();
    assert_eq!(manifest["spec"]["parallelism"], 3);
    assert!(kube.has_removed_all() && kube.0.directory.read("deleted").contains("--context=lab"));
}

#[test]
fn studies_and_the_list_of_hosts_have_pods_of_their_own_and_they_can_be_kept() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    kube.have_all_begun();
    let (status, out, said) = kube.run(&format!("hosts {PODS}"));
    assert_eq!((status, said), (Some(0), String::new()));
    assert_eq!(out.matches("-x ").count(), 3, "{out}");
    assert!(kube.has_removed_all());
    kube.0.directory.write("j.fio", "[job]\nioengine=null\nrw=randread\nsize=16m\n").unwrap();
    let sweep =
        format!("sweep j.fio --over iodepth=1,2 --repeat=1 --undecided=pass --no-history --keep-pods {PODS}");
    let (status, out, said) = kube.run(&sweep);
    assert_eq!(status, Some(0), "{out}{said}");
    assert!(
        out.contains("3 hosts") && said.contains("is left: remove it by kubectl delete job/fiord-"),
        "{out}{said}"
    );
    assert_eq!(kube.0.directory.read("deleted").lines().count(), 1, "of the list of hosts");
}

#[test]
fn what_keeps_pods_from_running_is_said_at_once() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    let message = "0/3 nodes are available: 3 Insufficient cpu.";
    kube.has_pods(&json!({ "phase": "Pending" }));
    let object = json!({ "kind": "Pod", "name": "JOB-0-x" });
    let event = json!({ "type": "Warning", "reason": "FailedScheduling", "message": message, "involvedObject": object });
    kube.answers("events", &[event]);
    let child = kube.start(&format!("--no-history {PODS} {JOB}"));
    assert!(eventually(|| kube.has("asked-events")));
    std::fs::remove_file(kube.0.directory.join("asked-events")).unwrap();
    assert!(eventually(|| kube.has("asked-events")), "it waits");
    kube.have_all_begun();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.contains("FailedScheduling: 0/3 nodes are") && said.contains("fewer --pods"), "{said}");
    assert!(kube.has_removed_all());

    std::fs::remove_file(kube.0.directory.join("deleted")).unwrap();
    let waiting = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } });
    kube.has_pods(&json!({ "phase": "Pending", "containerStatuses": [{ "state": waiting }] }));
    let (status, out, said) = kube.run(&format!("quick {PODS} /data"));
    assert_eq!((status, out), (Some(1), String::new()));
    assert!(said.contains("and 2 more: ImagePullBackOff: no such image: give one that"), "{said}");
    assert!(kube.has_removed_all());
}

#[test]
fn ctrl_c_removes_the_pods_before_they_run_and_while_they_do() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    let child = kube.start(&format!("--no-history {PODS} {LONG}"));
    assert!(eventually(|| kube.has("asked-events")));
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(kube.has_removed_all() && text(&output.stderr).contains("interrupted"));

    std::fs::remove_file(kube.0.directory.join("deleted")).unwrap();
    kube.have_all_begun();
    let child = kube.start(&format!("--no-history --output-format=json {PODS} {LONG}"));
    assert!(kube.0.are_at_work(3));
    kill("-INT", child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let stopped = report(&output).unwrap();
    assert!(fates(&stopped) == ["stopped"; 3] && reads(&stopped)[0] > 0, "{stopped}");
    assert!(kube.has_removed_all());
}

#[test]
fn a_pod_that_is_killed_is_lost_and_the_others_go_on() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    kube.have_all_begun();
    let words = "--name=job --ioengine=null --rw=randread --size=1g --time_based --runtime=5";
    let child = kube.start(&format!("--no-history --output-format=json {PODS} {words}"));
    assert!(kube.0.are_at_work(3));
    kill("-KILL", kube.0.agents()[0]);
    let output = child.wait_with_output().unwrap();
    let report = report(&output).unwrap();
    let mut fates = fates(&report);
    fates.sort();
    assert_eq!(
        (output.status.code(), &fates[..]),
        (Some(1), &["complete", "complete", "lost"].map(String::from)[..])
    );
    assert!(kube.has_removed_all());
}

#[test]
fn what_is_wrong_with_kubectl_or_the_options_is_said_with_what_to_do() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    let output = kube.command(&format!("{PODS} {JOB}")).env("PATH", "/nonexistent").output().unwrap();
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("kubectl: ") && said.contains("install it"),
        "{said}"
    );
    kube.0.directory.write("refused", "error: current-context is not set\n").unwrap();
    let (status, _, said) = kube.run(&format!("hosts {PODS}"));
    assert!(status == Some(1) && said.contains("current-context is not set: name a cluster of"), "{said}");
    assert!(!kube.has("deleted"), "nothing was made");
    for (words, part) in [
        (format!("--via=kube {JOB}"), "give --pods=N"),
        ("hosts --via=kube".to_string(), "give --pods=N"),
        (format!("--pods=3 {JOB}"), "--via=kube"),
        (format!("{PODS} --hosts=a {JOB}"), "leave out one"),
        (format!("--via=kube --pods=3 {JOB}"), "--volume-size"),
        (format!("{PODS} --spread=rack {JOB}"), "--spread=rack"),
    ] {
        let (status, out, said) = kube.run(&words);
        assert!(
            status == Some(1) && out.is_empty() && said.contains(part),
            "{words}: {status:?} {out}{said}"
        );
    }
    for words in [format!("{PODS} {JOB} --print-manifest"), format!("quick /data {PODS} --print-manifest")] {
        let (status, out, said) = kube.run(&words);
        let manifest: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((status, said.as_str(), &manifest["kind"]), (Some(0), "", &json!("Job")), "{words}");
    }
    assert!(!kube.has("manifest"));
}

#[test]
fn the_main_process_of_a_pod_ends_when_it_is_told_to() {
    needs!("sh" of "dash");
    let kube = Kube::new();
    let child = kube.start("agent --hold");
    let handles = || std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let is_ready = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught & (1 << 14) != 0)
    };
    assert!(eventually(|| is_ready(&handles())));
    kill("-TERM", child.id());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

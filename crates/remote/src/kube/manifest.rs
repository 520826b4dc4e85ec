//! The Job that makes pods, as JSON.
//!
//! Invariant: what the user says is a value in it, and checked before.

use fiord_fleet::hosts::HOSTS_MAX;
use serde_json::{Map, Value, json};

use super::settings::Settings;

/// The label that tells the pods and claims of a run from those of others.
pub(super) const INSTANCE: &str = "app.kubernetes.io/instance";

/// Where the volume is in a pod: a directory, in which fiord runs.
const DIRECTORY: &str = "/data";

/// Where it is as a device.
const DEVICE: &str = "/dev/data";

/// After this many seconds the cluster ends the pods, whatever they do: a day.
const DEADLINE_S: u32 = 86_400;

/// For how many seconds what has ended stays, if nobody removes it.
const STAYS_S: u32 = 600;

/// The Job of this name.
///
/// # Errors
/// What is wrong with the options, and what to do.
pub(super) fn job(name: &str, settings: &Settings) -> Result<Value, String> {
    check_count(settings.pods)?;
    let labels = json!({ "app.kubernetes.io/name": "fiord", INSTANCE: name });
    let mut pod = pod(settings)?;
    pod["topologySpreadConstraints"] = spread(settings, &labels)?;
    pod["volumes"] = json!([volume(settings, &labels)?]);
    let container = &mut pod["containers"][0];
    if settings.is_block {
        container["volumeDevices"] = json!([{ "name": "data", "devicePath": DEVICE }]);
    } else {
        container["volumeMounts"] = json!([{ "name": "data", "mountPath": DIRECTORY }]);
        container["workingDir"] = json!(DIRECTORY);
    }
    let annotations = json!({ "kubectl.kubernetes.io/default-container": "fiord" });
    Ok(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "completionMode": "Indexed",
            "completions": settings.pods,
            "parallelism": settings.pods,
            // A pod that is lost is not made anew, and does not end the others.
            "backoffLimitPerIndex": 0,
            "activeDeadlineSeconds": DEADLINE_S,
            "ttlSecondsAfterFinished": STAYS_S,
            "template": { "metadata": { "labels": labels, "annotations": annotations }, "spec": pod },
        },
    }))
}

/// What all pods have. No limit of CPU: whoever has used its quota is stopped in the middle of an I/O. As text, which is
/// less code than making these values takes.
const POD: &str = r#"{
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 5,
    "automountServiceAccountToken": false,
    "containers": [{
        "name": "fiord",
        "image": "",
        "command": ["fiord", "agent", "--hold"],
        "resources": { "requests": { "cpu": "1", "memory": "512Mi" }, "limits": { "memory": "512Mi" } },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "seccompProfile": { "type": "RuntimeDefault" }
        }
    }]
}"#;

/// A pod without its volume.
fn pod(settings: &Settings) -> Result<Value, String> {
    let image = settings.image.clone().unwrap_or_else(|| format!("fiord:{}", env!("CARGO_PKG_VERSION")));
    let mut pod: Value = serde_json::from_str(POD).map_err(|why| why.to_string())?;
    pod["containers"][0]["image"] = Value::from(image);
    if let Some(nodes) = &settings.nodes {
        pod["nodeSelector"] = Value::Object(selector(nodes)?);
    }
    Ok(pod)
}

fn selector(nodes: &str) -> Result<Map<String, Value>, String> {
    let label = |text: &str| match text.split_once('=') {
        Some((label, value)) if !label.is_empty() => Ok((label.to_string(), Value::from(value))),
        _ => Err(format!(
            "--nodes={nodes}: \"{text}\" is not LABEL=VALUE: see `kubectl get nodes --show-labels`"
        )),
    };
    nodes.split(',').map(label).collect()
}

/// Where it is asked for they are spread evenly or not started, and elsewhere as far as the nodes allow.
fn spread(settings: &Settings, labels: &Value) -> Result<Value, String> {
    let key = match settings.spread.as_deref() {
        None | Some("node") => "kubernetes.io/hostname",
        Some("zone") => "topology.kubernetes.io/zone",
        Some(other) => {
            return Err(format!("--spread={other}: it is neither node nor zone: write one of them"));
        }
    };
    let otherwise = if settings.spread.is_some() { "DoNotSchedule" } else { "ScheduleAnyway" };
    Ok(json!([{
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": otherwise,
        // Nodes that take no such pods do not count.
        "nodeTaintsPolicy": "Honor",
        "labelSelector": { "matchLabels": labels },
    }]))
}

/// The volume, which goes with its pod.
fn volume(settings: &Settings, labels: &Value) -> Result<Value, String> {
    let missing =
        "--via=kube: the volumes have no size: give --volume-size, as in 20Gi (--size is that of a job)";
    let size = settings.volume_size.as_deref().ok_or(missing)?;
    if !is_quantity(size) {
        return Err(format!(
            "--volume-size={size}: it is no size of Kubernetes: write it as in 20Gi or 500M"
        ));
    }
    let mut spec = json!({
        "accessModes": ["ReadWriteOnce"],
        "volumeMode": if settings.is_block { "Block" } else { "Filesystem" },
        "resources": { "requests": { "storage": size } },
    });
    if let Some(class) = &settings.storage_class {
        spec["storageClassName"] = Value::from(class.as_str());
    }
    let template = json!({ "metadata": { "labels": labels }, "spec": spec });
    Ok(json!({ "name": "data", "ephemeral": { "volumeClaimTemplate": template } }))
}

/// How many pods can be asked for.
fn check_count(pods: u32) -> Result<(), String> {
    match pods as usize {
        0 => {
            Err("--via=kube: no pods are asked for: give --pods=N, or name those that run by --hosts"
                .to_string())
        }
        count if count > HOSTS_MAX => {
            Err(format!("--pods={pods}: there can be {HOSTS_MAX} hosts: ask for fewer"))
        }
        _ => Ok(()),
    }
}

/// A whole number of bytes, or of their multiples.
fn is_quantity(text: &str) -> bool {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = &text[digits.len()..];
    let is_number = digits.parse::<u64>().is_ok_and(|number| number > 0);
    is_number && ["", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"].contains(&unit)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use fiord_testing::skip;

    use super::*;

    fn file_system() -> Settings {
        let text = |text: &str| Some(text.to_string());
        Settings { pods: 3, storage_class: text("fast"), volume_size: text("20Gi"), ..Settings::default() }
    }

    fn block() -> Settings {
        let text = |text: &str| Some(text.to_string());
        Settings {
            pods: 1,
            volume_size: text("500M"),
            is_block: true,
            nodes: text("disk=nvme,pool=a"),
            spread: text("zone"),
            image: text("registry.example/fiord:\"}],x"),
            ..Settings::default()
        }
    }

    #[test]
    fn manifests_are_those_of_the_files() {
        let known = [include_str!("golden/file-system.json"), include_str!("golden/block.json")];
        for (settings, known) in [file_system(), block()].iter().zip(known) {
            let version = concat!("fiord:", env!("CARGO_PKG_VERSION"), "\"");
            let made = settings.manifest().unwrap().replace(version, "fiord:VERSION\"");
            assert_eq!(made, known, "{made}");
        }
    }

    /// Whether all that is in `ours` is in `theirs`.
    fn is_within(ours: &Value, theirs: &Value) -> bool {
        match (ours, theirs) {
            (Value::Object(ours), _) => ours.iter().all(|(name, value)| is_within(value, &theirs[name])),
            (Value::Array(ours), Value::Array(theirs)) => {
                ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|(one, other)| is_within(one, other))
            }
            _ => ours == theirs,
        }
    }

    #[test]
    fn kubectl_knows_every_field_of_the_manifests() {
        for settings in [file_system(), block()] {
            let with = |image: &str| Settings { image: Some(image.to_string()), ..settings.clone() };
            let mut command = Command::new("kubectl");
            // Reads it by the types of the API, without a cluster, and leaves out what these do not have.
            command.args(["set", "image", "--local", "--filename=-", "--output=json", "fiord=other"]);
            command.env("KUBECONFIG", "/dev/null").stdin(Stdio::piped()).stdout(Stdio::piped());
            let Ok(mut child) = command.spawn() else { skip!("no kubectl") };
            let manifest = with("one").manifest().unwrap();
            child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
            let known: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
            assert!(is_within(&job("fiord", &with("other")).unwrap(), &known), "{known:#}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_option() {
        let wrong = |change: &dyn Fn(&mut Settings), part: &str| {
            let mut settings = file_system();
            change(&mut settings);
            let why = settings.manifest().unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        wrong(&|settings| settings.pods = 0, "--pods=N");
        wrong(&|settings| settings.pods = u32::MAX, "ask for fewer");
        wrong(&|settings| settings.volume_size = None, "--volume-size");
        for size in ["20 Gi", "Gi", "0", "-1Gi", "20GB", "1.5Gi", "20Gi\""] {
            wrong(&|settings| settings.volume_size = Some(size.to_string()), "--volume-size");
        }
        wrong(&|settings| settings.spread = Some("rack".to_string()), "--spread=rack");
        wrong(&|settings| settings.nodes = Some("disk".to_string()), "--nodes=disk");
    }
}

//! What kubectl says of the pods of a run: which run, and what keeps the others from it.
//!
//! Invariant: whatever a cluster answers, it is read or passed over; its texts are shown on one line, cut off.

use fiord_stats::OrderBy;
use serde_json::Value;

/// The annotation that has the number of a pod.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The most of a message that is shown, in characters.
const MESSAGE_MAX: usize = 300;

/// What keeps pods from running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// What it is, on how many, and what to do.
    pub text: String,
    /// Whether waiting does not change it.
    pub is_final: bool,
}

/// Reasons that do not go by themselves.
const FINAL: [&str; 9] = [
    "ContainerCannotRun",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
    "StartError",
];

/// Events that are no warnings, and say what a claim waits for.
const OF_CLAIMS: [&str; 1] = ["ExternalProvisioning"];

/// The pods of a run.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Those that run, by their number, with the nodes that they are on.
    pub running: Vec<(String, String)>,
    /// What keeps the others from it, once each.
    pub troubles: Vec<Trouble>,
}

impl State {
    /// What is in these answers, both in JSON, about the Job of this name.
    ///
    /// # Errors
    /// The first is no list of objects.
    pub(super) fn of(job: &str, objects: &[u8], events: &[u8]) -> Result<State, String> {
        let objects: Value = serde_json::from_slice(objects)
            .map_err(|why| format!("kubectl: its answer cannot be read: {why}: see `kubectl version`"))?;
        let events: Value = serde_json::from_slice(events).unwrap_or_default();
        let mut found = Found::default();
        let mut running = Vec::new();
        for pod in items(&objects).iter().filter(|object| object["kind"] == "Pod") {
            if is_running(pod) {
                let index = text(&pod["metadata"]["annotations"][INDEX]).parse::<u64>().unwrap_or(u64::MAX);
                running.push((index, name(pod).to_string(), text(&pod["spec"]["nodeName"]).to_string()));
            } else {
                found.look_at_pod(pod);
            }
        }
        for event in items(&events) {
            found.look_at_event(event, job);
        }
        running.order_by(Ord::cmp);
        let running = running.into_iter().map(|(_, pod, node)| (pod, node)).collect();
        Ok(State { running, troubles: found.troubles() })
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

fn containers(pod: &Value) -> &[Value] {
    pod["status"]["containerStatuses"].as_array().map_or(&[], Vec::as_slice)
}

fn is_running(pod: &Value) -> bool {
    let is_up = |container: &Value| container["state"]["running"].is_object();
    let is_leaving = pod["metadata"]["deletionTimestamp"].is_string();
    pod["status"]["phase"] == "Running" && !is_leaving && containers(pod).iter().all(is_up)
}

/// One thing that is wrong, and all that have it.
struct Entry {
    kind: String,
    reason: String,
    message: String,
    names: Vec<String>,
    is_final: bool,
}

#[derive(Default)]
struct Found(Vec<Entry>);

impl Found {
    fn add(&mut self, kind: &str, name: &str, reason: &str, message: &str, has_ended: bool) {
        // Messages about different pods differ by their names alone.
        let message = if kind == "Job" { one_line(message) } else { one_line(&message.replace(name, "it")) };
        let is_same =
            |one: &&mut Entry| (&*one.kind, &*one.reason, &*one.message) == (kind, reason, &*message);
        if let Some(entry) = self.0.iter_mut().find(is_same) {
            if !entry.names.iter().any(|known| known == name) {
                entry.names.push(name.to_string());
            }
            return;
        }
        let is_refused =
            reason == "FailedCreate" && (message.contains("forbidden") || message.contains("quota"));
        let has_no_class = reason == "ProvisioningFailed" && message.contains("not found");
        self.0.push(Entry {
            kind: kind.to_string(),
            reason: reason.to_string(),
            message,
            names: vec![name.to_string()],
            is_final: has_ended || is_refused || has_no_class || FINAL.contains(&reason),
        });
    }

    fn look_at_pod(&mut self, pod: &Value) {
        let status = &pod["status"];
        if ["Failed", "Succeeded"].contains(&text(&status["phase"])) {
            let ended = containers(pod).iter().map(|container| &container["state"]["terminated"]);
            let ended = ended.into_iter().find(|ended| ended.is_object()).unwrap_or(&Value::Null);
            let of = |member: &str| Some(text(&status[member])).filter(|text| !text.is_empty());
            let reason = of("reason").unwrap_or_else(|| text(&ended["reason"]));
            let message = of("message").unwrap_or_else(|| text(&ended["message"]));
            let code =
                ended["exitCode"].as_i64().map(|code| format!(" (exit status {code})")).unwrap_or_default();
            return self.add("Pod", name(pod), reason, &format!("has ended{code} {message}"), true);
        }
        for container in containers(pod) {
            let waiting = &container["state"]["waiting"];
            if !["", "ContainerCreating", "PodInitializing"].contains(&text(&waiting["reason"])) {
                self.add("Pod", name(pod), text(&waiting["reason"]), text(&waiting["message"]), false);
            }
        }
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let is_unscheduled = |one: &&Value| one["type"] == "PodScheduled" && one["status"] == "False";
        for condition in conditions.iter().filter(is_unscheduled) {
            // By the word of the scheduler's event, so that it is said once.
            self.add("Pod", name(pod), "FailedScheduling", text(&condition["message"]), false);
        }
    }

    /// Events of the Job, its pods and their claims, whose names begin with its name.
    fn look_at_event(&mut self, event: &Value, job: &str) {
        let (object, reason) = (&event["involvedObject"], text(&event["reason"]));
        let is_own = text(&object["name"])
            .strip_prefix(job)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        if is_own && (event["type"] == "Warning" || OF_CLAIMS.contains(&reason)) {
            self.add(text(&object["kind"]), text(&object["name"]), reason, text(&event["message"]), false);
        }
    }

    fn troubles(self) -> Vec<Trouble> {
        let of = |Entry { kind, reason, message, names, is_final }: Entry| {
            let kind = if kind == "PersistentVolumeClaim" { "claim" } else { &kind.to_lowercase() };
            let who = match &names[..] {
                [one] => format!("{kind} {one}"),
                [first, others @ ..] => format!("{kind} {first} and {} more", others.len()),
                [] => kind.to_string(),
            };
            let message = message.trim_end_matches('.');
            Trouble { text: format!("{who}: {reason}: {message}: {}", remedy(&reason, message)), is_final }
        };
        self.0.into_iter().map(of).collect()
    }
}

fn one_line(message: &str) -> String {
    let words: Vec<&str> = message.split_whitespace().collect();
    let mut letters = words.join(" ").chars().collect::<Vec<char>>();
    if letters.len() > MESSAGE_MAX {
        letters.truncate(MESSAGE_MAX);
        letters.push('\u{2026}');
    }
    letters.into_iter().filter(|letter| !letter.is_control()).collect()
}

/// What to do about it.
fn remedy(reason: &str, message: &str) -> &'static str {
    let of_volume =
        "name a class of `kubectl get storageclass` by --storage-class, or a --volume-size that it has";
    match reason {
        "FailedScheduling" if message.contains("olume") => of_volume,
        "FailedScheduling" => "ask for fewer --pods, or other --nodes, or another --spread",
        "ProvisioningFailed" | "FailedBinding" | "ExternalProvisioning" => of_volume,
        "FailedCreate" if message.contains("quota") => {
            "ask for fewer --pods or a smaller --volume-size, or take another --namespace"
        }
        "FailedCreate" => "take a --namespace that lets such pods run",
        _ if reason.contains("Image") || message.contains("image") => {
            "give one that the nodes can pull by --image"
        }
        "CrashLoopBackOff"
        | "CreateContainerError"
        | "RunContainerError"
        | "StartError"
        | "ContainerCannotRun"
        | "Error"
        | "Completed" => "give an image that has this version of fiord in its path by --image",
        "Evicted" | "OOMKilled" | "Preempted" => "take other --nodes",
        _ => "see `kubectl describe`, with --keep-pods",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn list(items: &[Value]) -> Vec<u8> {
        json!({ "kind": "List", "items": items }).to_string().into_bytes()
    }

    fn pod(index: u32, status: &Value) -> Value {
        let metadata =
            json!({ "name": format!("j-{index}-abc"), "annotations": { INDEX: index.to_string() } });
        json!({ "kind": "Pod", "metadata": metadata, "spec": { "nodeName": format!("n{index}") }, "status": status })
    }

    fn event(kind: &str, name: &str, reason: &str, message: &str) -> Value {
        let object = json!({ "kind": kind, "name": name });
        json!({ "type": "Warning", "reason": reason, "message": message, "involvedObject": object })
    }

    fn texts(objects: &[Value], events: &[Value]) -> Vec<(String, bool)> {
        let state = State::of("j", &list(objects), &list(events)).unwrap();
        state.troubles.into_iter().map(|trouble| (trouble.text, trouble.is_final)).collect()
    }

    #[test]
    fn pods_that_run_are_in_the_order_of_their_numbers() {
        let up = json!({ "phase": "Running", "containerStatuses": [{ "state": { "running": {} } }] });
        let mut leaving = pod(1, &up);
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let claim = json!({ "kind": "PersistentVolumeClaim", "metadata": { "name": "j-0-abc-data" } });
        let objects = [pod(10, &up), pod(2, &up), leaving, pod(3, &json!({ "phase": "Pending" })), claim];
        let state = State::of("j", &list(&objects), b"forbidden").unwrap();
        let known = |index: u32| (format!("j-{index}-abc"), format!("n{index}"));
        assert_eq!((state.running, state.troubles), (vec![known(2), known(10)], Vec::new()));
        assert!(State::of("j", b"<html>", b"").is_err());
    }

    #[test]
    fn what_many_pods_wait_for_is_said_once_with_what_to_do() {
        let message = "0/3 nodes are available: 3 Insufficient cpu.";
        let condition = json!([{ "type": "PodScheduled", "status": "False", "message": message }]);
        let pods = [0, 1, 2].map(|index| pod(index, &json!({ "phase": "Pending", "conditions": condition })));
        let events = [
            event("Pod", "j-0-abc", "FailedScheduling", message),
            event("Pod", "jj-0-abc", "FailedScheduling", "of another"),
            event(
                "PersistentVolumeClaim",
                "j-0-abc-data",
                "ProvisioningFailed",
                "storageclass \"x\" not found",
            ),
        ];
        let said = texts(&pods, &events);
        assert!(said[0].0.starts_with("pod j-0-abc and 2 more: FailedScheduling: 0/3 nodes"), "{said:?}");
        assert!(said[0].0.ends_with("--spread") && !said[0].1);
        assert!(said[1].0.starts_with("claim j-0-abc-data: ProvisioningFailed") && said[1].1, "{said:?}");
        assert!(said[1].0.contains("--storage-class"));
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn what_waiting_does_not_change_is_final() {
        let waiting = |reason: &str| {
            let state = json!({ "waiting": { "reason": reason, "message": "m\n\u{1b}[2J".to_string() + &"x".repeat(999) } });
            pod(0, &json!({ "phase": "Pending", "containerStatuses": [{ "state": state }] }))
        };
        assert_eq!(texts(&[waiting("ContainerCreating")], &[]), []);
        assert!(!texts(&[waiting("ErrImagePull")], &[])[0].1);
        let said = &texts(&[waiting("ImagePullBackOff")], &[])[0];
        assert!(
            said.1 && said.0.ends_with("--image") && said.0.len() < 500 && !said.0.contains('\u{1b}'),
            "{said:?}"
        );
        let ended = json!({ "terminated": { "reason": "Error", "exitCode": 2 } });
        let ended = pod(0, &json!({ "phase": "Failed", "containerStatuses": [{ "state": ended }] }));
        let said = &texts(&[ended], &[])[0];
        assert!(said.1 && said.0.contains("has ended (exit status 2)"), "{said:?}");
        let quota = event("Job", "j", "FailedCreate", "pods \"j-0\" is forbidden: exceeded quota: q");
        let said = &texts(&[], &[quota])[0];
        assert!(said.1 && said.0.contains("fewer --pods"), "{said:?}");
    }
}

//! Hosts that are pods of Kubernetes, made for one run by the user's `kubectl`, and reached by its `exec`.
//!
//! Invariant: one Job holds all that is made, volumes included, and goes with `Pods` unless it is to be kept; where that cannot
//! be done, the pods end by themselves and the cluster removes them. What is sent is data and no text of the user's is a word
//! of a template; no word of a command is read by a shell.

mod manifest;
mod settings;
mod state;

use std::ffi::OsString;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fiord_fleet::Host;
use fiord_stats::Capped;
use fiord_sys::errno::error_text;
use fiord_sys::poll::{self, Until};
use fiord_sys::{clock, process, signal};

pub use self::settings::Settings;
use self::state::State;

/// What `--via` says for it.
pub const VIA: &str = "kube";

/// How long all pods together may take to run: volumes are made and images pulled meanwhile.
pub(crate) const PODS_WAIT: Duration = Duration::from_secs(300);

/// How often the cluster is asked.
const TICK: Duration = Duration::from_secs(1);

/// How often a command is looked at, and whether it is to be ended.
const LOOK: Duration = Duration::from_millis(100);

/// How many times one after another the cluster may not answer.
const FAILURES_MAX: u32 = 3;

impl Settings {
    /// Whether anything was asked for.
    pub fn is_given(&self) -> bool {
        *self != Settings::default()
    }

    /// The Job that makes the pods, as `kubectl create` takes it.
    ///
    /// # Errors
    /// What is wrong with the options, and what to do.
    pub fn manifest(&self) -> Result<String, String> {
        Ok(format!("{:#}\n", manifest::job("fiord", self)?))
    }

    /// kubectl with the cluster and the namespace.
    fn kubectl(&self) -> Vec<OsString> {
        let given = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| OsString::from(format!("--{name}={value}")))
        };
        let options = [given("context", &self.context), given("namespace", &self.namespace)];
        [OsString::from("kubectl")].into_iter().chain(options.into_iter().flatten()).collect()
    }

    /// The words that start the agent in a pod.
    pub(crate) fn command(&self, host: &Host) -> Vec<OsString> {
        let agent = host.agent.clone().map_or_else(|| OsString::from("fiord"), Into::into);
        let mut words = self.kubectl();
        // Not `attach`: the kubelet writes what goes through that to a file.
        words.extend(["exec", "--quiet", "--stdin", &host.address, "--"].map(OsString::from));
        words.extend([agent, OsString::from("agent")]);
        words
    }

    /// What kubectl answers. `ends_early`: a request to stop ends it.
    fn ask(&self, words: &[&str], input: &str, ends_early: bool) -> Result<Vec<u8>, String> {
        let mut all = self.kubectl();
        all.extend(words.iter().map(OsString::from));
        all.push("--request-timeout=10s".into());
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C does not keep it from what it is doing.
        command.process_group(0);
        let mut child = process::in_ordinary_state(&mut command).spawn().map_err(|error| {
            let remedy =
                if error.kind() == ErrorKind::NotFound { ": install it, or add it to PATH" } else { "" };
            format!("kubectl: {}{remedy}", error_text(&error))
        })?;
        let answer = answer(&mut child, input, ends_early).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })?;
        let mut said = String::new();
        let _ = child.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
        let status = child.wait().map_err(|error| format!("kubectl: {}", error_text(&error)))?;
        if status.success() { Ok(answer) } else { Err(what_it_said(&said)) }
    }
}

/// What a command prints, until it has closed its output.
fn answer(child: &mut Child, input: &str, ends_early: bool) -> Result<Vec<u8>, String> {
    // One that does not read it says why.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let (mut answer, mut bytes) = (Vec::new(), [0; 16 << 10]);
    let Some(mut stdout) = child.stdout.take() else { return Ok(answer) };
    loop {
        if signal::is_stop_urgent() || (ends_early && signal::stop_requested().is_some()) {
            return Err(INTERRUPTED.to_string());
        }
        // A signal is looked at next.
        if !poll::wait(stdout.as_fd(), Until::Readable, Some(LOOK)).unwrap_or(false) {
            continue;
        }
        match stdout.read(&mut bytes) {
            Ok(0) => return Ok(answer),
            Ok(count) => answer.extend(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("kubectl: {}", error_text(&error))),
        }
    }
}

/// What is said of a run that was stopped before its pods ran.
const INTERRUPTED: &str = "interrupted while the pods were started";

/// Why kubectl could not do it, and what to do.
fn what_it_said(errors: &str) -> String {
    let lines = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let said = lines().rfind(|line| !line.starts_with("Warning:")).unwrap_or("it says nothing");
    let remedy = if said.contains("orbidden") {
        "ask for that right, or take another --namespace"
    } else if [
        "context",
        "connection to the server",
        "Unable to connect",
        "dial tcp",
        "no configuration",
        "no such host",
    ]
    .iter()
    .any(|part| said.contains(part))
    {
        "name a cluster of `kubectl config get-contexts` by --context"
    } else if said.contains("namespaces ") {
        "take one of `kubectl get namespaces` by --namespace"
    } else if said.contains("ogged in") || said.contains("nauthorized") {
        "log in to the cluster"
    } else {
        "see what `kubectl get pods` says"
    };
    format!("kubectl: {}: {remedy}", said.trim_end_matches(['.', '?']))
}

/// Pods that were made for a run. Dropping it removes them.
#[derive(Debug)]
pub struct Pods {
    settings: Settings,
    /// The Job.
    name: String,
    /// The pods that run, by their number, with the nodes that they are on.
    running: Vec<(String, String)>,
    say: fn(&str),
}

impl Pods {
    /// Makes the pods of these settings, and waits until all run. `say` is told meanwhile what keeps them from it, once each,
    /// and what is left at the end.
    ///
    /// # Errors
    /// What is wrong with the settings, kubectl or the cluster, and what to do; or a signal has asked to stop. Nothing is left.
    pub fn start(settings: &Settings, say: fn(&str)) -> Result<Pods, String> {
        let _ = signal::record_stop_requests();
        // Short, as it is part of each host's name. One that there is already is refused.
        let number = clock::realtime_ms().wrapping_mul(31).wrapping_add(u64::from(std::process::id()));
        let name = format!("fiord-{:07x}", number & 0xfff_ffff);
        let manifest = manifest::job(&name, settings)?.to_string();
        // The server leaves out fields that it is too old for.
        settings.ask(&["create", "--validate=ignore", "--filename=-"], &manifest, false)?;
        let mut pods = Pods { settings: settings.clone(), name, running: Vec::new(), say };
        pods.wait()?;
        Ok(pods)
    }

    /// Each pod as a host, whose role is its node.
    pub fn hosts(&self) -> Vec<Host> {
        let host = |(number, (pod, node)): (usize, &(String, String))| Host {
            number: u32::capped(number),
            role: Some(node.clone()),
            ..Host::of(pod)
        };
        self.running.iter().enumerate().map(host).collect()
    }

    fn wait(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let wanted = self.settings.pods as usize;
        let (mut failures, mut said) = (0, Vec::new());
        loop {
            let state = match self.look() {
                Ok(state) => {
                    failures = 0;
                    state
                }
                // A server may be busy for a moment.
                Err(why) if failures == FAILURES_MAX || signal::stop_requested().is_some() => {
                    return Err(why);
                }
                Err(_) => {
                    failures += 1;
                    State::default()
                }
            };
            if state.running.len() >= wanted {
                self.running = state.running;
                return Ok(());
            }
            let mut last = None;
            for trouble in state.troubles {
                if trouble.is_final {
                    return Err(trouble.text);
                }
                if !said.contains(&trouble.text) {
                    (self.say)(&format!("fiord: {}\n", trouble.text));
                    said.push(trouble.text.clone());
                }
                last = Some(trouble.text);
            }
            if begun.elapsed() >= PODS_WAIT {
                let count = state.running.len();
                let why = last.unwrap_or_else(|| "see `kubectl describe pods`, with --keep-pods".to_string());
                return Err(format!("{count} of {wanted} pods run after {} s: {why}", PODS_WAIT.as_secs()));
            }
            let until = Instant::now() + TICK;
            while Instant::now() < until {
                if signal::stop_requested().is_some() {
                    return Err(INTERRUPTED.to_string());
                }
                clock::sleep_until_ns(clock::monotonic_ns() + u64::capped(LOOK.as_nanos()));
            }
        }
    }

    /// What there is of them now.
    fn look(&self) -> Result<State, String> {
        let selector = format!("--selector={}={}", manifest::INSTANCE, self.name);
        let objects = self.settings.ask(&["get", "pods,pvc", &selector, "--output=json"], "", true)?;
        // Who may not read them can still run.
        let events = self.settings.ask(&["get", "events", "--output=json"], "", true).unwrap_or_default();
        State::of(&self.name, &objects, &events)
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        let job = format!("job/{}", self.name);
        if self.settings.keeps {
            return (self.say)(&format!("fiord: {job} is left: remove it by kubectl delete {job}\n"));
        }
        let words = ["delete", &job, "--wait=false", "--ignore-not-found"];
        if let Err(why) = self.settings.ask(&words, "", false) {
            (self.say)(&format!("fiord: {job} could not be removed: {why}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_one_word_and_kubectl_is_the_users() {
        let settings = Settings { context: Some("lab x".to_string()), ..Settings::default() };
        let words = settings.command(&Host::of("p-0;reboot"));
        let expected = [
            "kubectl",
            "--context=lab x",
            "exec",
            "--quiet",
            "--stdin",
            "p-0;reboot",
            "--",
            "fiord",
            "agent",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn what_kubectl_cannot_do_is_said_with_what_to_do() {
        let refused = "E1130 memcache.go:265] couldn't get current server API group list\nThe connection to the server \
                       localhost:8080 was refused - did you specify the right host or port?\n";
        for (said, remedy) in [
            (refused, "--context"),
            ("error: context \"x\" does not exist\n", "--context"),
            ("Error from server (Forbidden): jobs.batch is forbidden\n", "--namespace"),
            ("Error from server (NotFound): namespaces \"x\" not found\n", "--namespace"),
            ("error: You must be logged in to the server (Unauthorized)\n", "log in"),
        ] {
            assert!(what_it_said(said).contains(remedy), "{}", what_it_said(said));
        }
    }
}

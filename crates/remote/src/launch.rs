//! How agents are started: a command that gives a stream of bytes, ssh, Slurm, kubectl, or a server.
//!
//! Invariant: no shell reads a host's name or a path here; what a command is made of are words.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use fiord_fleet::Host;
use fiord_sys::errno::error_text;
use fiord_sys::process;
use fiord_wire::agent::digest;

use crate::hello::SELF;
pub use crate::push::Push;
use crate::server::ServerAddress;
use crate::{kube, slurm, ssh};

/// How agents are started.
#[derive(Clone, Debug, PartialEq)]
pub enum Launcher {
    /// By the user's ssh.
    Ssh(ssh::Settings),
    /// By Slurm's srun, in an allocation.
    Slurm(ssh::Settings),
    /// By kubectl, in a pod.
    Kube(kube::Settings),
    /// By a server that listens there: this program connects to it.
    Server,
    /// By a command, of these words: `{host}`, `{user}`, `{port}` and `{agent}` are replaced.
    Command(Vec<String>),
}

/// What `--via` says for a server.
pub const SERVER: &str = "server";

/// An agent's process, or what leads to it.
#[derive(Debug)]
pub(crate) struct Started {
    pub child: Child,
    /// Its standard input and output.
    pub stream: UnixStream,
    /// Its standard error.
    pub errors: UnixStream,
}

impl Launcher {
    /// What `--via` says, with the settings of those that have some.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(via: &str, ssh: ssh::Settings, kube: &kube::Settings) -> Result<Launcher, String> {
        match via {
            "ssh" => Ok(Launcher::Ssh(ssh)),
            slurm::VIA if slurm::is_allocated() => Ok(Launcher::Slurm(ssh)),
            slurm::VIA => Err("slurm works in an allocation: run it by salloc or sbatch".to_string()),
            SERVER => Ok(Launcher::Server),
            kube::VIA => Ok(Launcher::Kube(kube.clone())),
            command if command.contains("{agent}") => Ok(Launcher::Command(words(command)?)),
            other => Err(format!(
                "\"{other}\" is neither ssh, slurm, kube, server, nor a command with {{agent}} in it, such as 'docker exec -i {{host}} {{agent}}'"
            )),
        }
    }

    /// Whether `--via` sends the program to hosts that do not have it.
    pub fn sends_program(via: &str) -> bool {
        matches!(via, "ssh" | slurm::VIA)
    }

    /// The program and its arguments for this host.
    fn command(&self, host: &Host) -> Vec<OsString> {
        let agent = host.agent.clone().unwrap_or_else(own_path);
        match self {
            Launcher::Ssh(settings) => ssh::command(settings, host),
            Launcher::Slurm(settings) => slurm::command(settings, host),
            Launcher::Kube(settings) => settings.command(host),
            Launcher::Server => {
                let address = ServerAddress::of_host(&host.address, host.port);
                vec![own_path().into(), "agent".into(), format!("--connect={address}").into()]
            }
            Launcher::Command(words) => {
                let replaced = |word: &String| match word.as_str() {
                    "{agent}" => vec![agent.clone().into_os_string(), OsString::from("agent")],
                    _ => vec![OsString::from(
                        word.replace("{host}", &host.address)
                            .replace("{user}", host.user.as_deref().unwrap_or_default())
                            .replace("{port}", &host.port.map(|port| port.to_string()).unwrap_or_default())
                            .replace("{agent}", &format!("{} agent", agent.display())),
                    )],
                };
                words.iter().flat_map(replaced).collect()
            }
        }
    }

    /// Starts the agent of this host.
    ///
    /// # Errors
    /// What cannot be started, and why.
    pub(crate) fn start(&self, host: &Host) -> Result<Started, String> {
        let words = self.command(host);
        let Some((program, arguments)) = words.split_first() else {
            return Err("--via is empty".to_string());
        };
        let started = || {
            let (stream, there) = UnixStream::pair()?;
            let (errors, there_errors) = UnixStream::pair()?;
            stream.set_nonblocking(true)?;
            errors.set_nonblocking(true)?;
            let there_too = OwnedFd::from(there.try_clone()?);
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::from(OwnedFd::from(there))).stdout(Stdio::from(there_too));
            // A group of its own: Ctrl-C is the controller's, which tells the agents.
            command.stderr(Stdio::from(OwnedFd::from(there_errors))).process_group(0);
            let child = process::in_ordinary_state(&mut command).spawn()?;
            Ok(Started { child, stream, errors })
        };
        started()
            .map_err(|error: std::io::Error| format!("{}: {}", program.to_string_lossy(), error_text(&error)))
    }
}

/// The program that runs, for hosts that do not have it.
#[derive(Debug, Default)]
pub struct Program {
    /// Its bytes; empty if it is not to be sent.
    pub bytes: Vec<u8>,
    digest: String,
    push: Push,
}

/// Reads the program that runs. One that needs libraries is only sent where that is asked for: it may not start there.
///
/// # Errors
/// It cannot be read.
pub fn program(push: Push) -> Result<Program, String> {
    let bytes = std::fs::read(SELF).map_err(|error| format!("{SELF}: {}", error_text(&error)))?;
    let digest = digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    match push {
        Push::Auto if needs_libraries(&bytes) => Ok(Program { bytes: Vec::new(), digest, push: Push::Never }),
        _ => Ok(Program { bytes, digest, push }),
    }
}

/// Whether an ELF file of 64 bits names an interpreter, which loads its libraries; `true` of what is none.
fn needs_libraries(bytes: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
    let kinds = || {
        let (start, length, count) = (usize::try_from(number(32)?).ok()?, half(54)?, half(56)?);
        let kind = |entry: usize| {
            let at = start.checked_add(entry.checked_mul(length)?)?;
            Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
        };
        (0..count).map(kind).collect::<Option<Vec<u32>>>()
    };
    !bytes.starts_with(b"\x7fELF\x02\x01") || kinds().is_none_or(|kinds| kinds.contains(&PT_INTERP))
}

impl Program {
    /// How ssh finds or sends it.
    pub fn settings(&self, keeps_agent: bool, by_sudo: bool, connect_s: u64) -> ssh::Settings {
        ssh::Settings {
            push: self.push,
            keeps_agent,
            by_sudo,
            connect_s,
            digest: self.digest.clone(),
            length: self.bytes.len(),
            own_path: own_path().to_string_lossy().into_owned(),
        }
    }
}

/// The program that runs, where it is found by others.
pub(crate) fn own_path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("fiord"))
}

/// The words of a command: separated by blanks, which single and double quotes keep.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in text.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (_, None) if letter.is_ascii_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match quote {
        Some(open) => Err(format!("a {open} is missing in \"{text}\"")),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_libraries_is_recognised() {
        assert!(needs_libraries(b"#!/bin/sh\n"));
        let mut elf = vec![0; 64 + 2 * 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (elf[32], elf[54], elf[56], elf[64]) = (64, 56, 2, 1);
        assert!(!needs_libraries(&elf));
        elf[64 + 56] = 3;
        assert!(needs_libraries(&elf));
        elf[32] = 0xff;
        assert!(needs_libraries(&elf), "cut off");
    }

    #[test]
    fn a_server_is_connected_to_by_this_program() {
        let launcher = Launcher::of(SERVER, ssh::Settings::default(), &kube::Settings::default()).unwrap();
        let host = Host { port: Some(4444), ..Host::of("::1") };
        let command = launcher.command(&host);
        assert_eq!((&command[1], &command[2]), (&"agent".into(), &"--connect=::1,4444".into()));
        assert!(!Launcher::sends_program(SERVER));
    }

    #[test]
    fn a_command_is_words_and_no_shell_reads_them() {
        assert_eq!(words("a 'b c'  \"d 'e\"'f'").unwrap(), ["a", "b c", "d 'ef"]);
        assert!(words("a 'b").is_err());
        let of = |via| Launcher::of(via, ssh::Settings::default(), &kube::Settings::default());
        let launcher = of("docker exec -i {host} {agent}").unwrap();
        let mut host = Host::of("c1;rm -rf /");
        host.agent = Some(PathBuf::from("/opt/f x"));
        let command = launcher.command(&host);
        assert_eq!(command, ["docker", "exec", "-i", "c1;rm -rf /", "/opt/f x", "agent"]);
        assert!(of("telnet").is_err());
    }
}

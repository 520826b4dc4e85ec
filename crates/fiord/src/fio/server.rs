//! `--server`: serves clients until it is told to stop.
//!
//! Invariant: standard output has the address, and a line for each client; nothing is run for a client before the server
//! listens with its secret and its policy.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use fiord_options::program::ProgramOptions;
use fiord_options::value::Text;
use fiord_options::{Given, Problem, ProblemKind, Setting};
use fiord_remote::SELF;
use fiord_remote::server::{Log, Policy, Secret, Server, ServerAddress, VARIABLE};
use fiord_report::path::{shown, visible_lines};
use fiord_sys::errno::error_text;
use fiord_sys::process;

use crate::output::{Output, say};
use crate::status;

/// What a server prints when it listens, before its address.
const LISTENS: &str = "fiord: server listening on ";

/// Options that are of servers alone, given without `--server`.
pub(super) fn without_server(options: &ProgramOptions, given: &Given<'_>) -> Vec<Problem> {
    let of_servers = [
        ProgramOptions::daemonize,
        ProgramOptions::root,
        ProgramOptions::allow_exec,
        ProgramOptions::allow_device,
        ProgramOptions::no_secret,
    ];
    let misplaced =
        of_servers.into_iter().filter(|_| options.server.is_none()).filter_map(|spec| given.get(spec));
    let problem = |setting: &Setting| {
        let remedy = "give --server as well, or leave it out";
        Problem::error(ProblemKind::Misplaced, setting.place.clone(), setting.spec, "is of servers", remedy)
    };
    misplaced.map(problem).collect()
}

/// Serves clients; the exit status.
pub(super) fn run(options: &ProgramOptions, given: &[Setting]) -> ExitCode {
    let ran = match &options.daemonize {
        Some(file) => in_background(Path::new(&file.0), given),
        None => serve(options),
    };
    match ran {
        Ok(code) => code,
        Err(why) => {
            say(&format!("fiord: --server: {why}\n"));
            ExitCode::from(status::FAILED)
        }
    }
}

/// Starts the same server in a process of its own session, and ends once that one listens, or has not begun to.
fn in_background(pid_file: &Path, given: &[Setting]) -> Result<ExitCode, String> {
    let named = |why: String| format!("--daemonize={}: {why}", shown(pid_file));
    let failed = |error: std::io::Error| named(error_text(&error));
    let mut file = Output::file(pid_file).map_err(|refused| named(refused.reason()))?;
    let others = given.iter().filter(|setting| setting.spec != ProgramOptions::daemonize);
    let mut command = Command::new(SELF);
    command.arg0("fiord").args(others.map(Setting::as_argument));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process::in_own_session(&mut command).spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
    }
    if !line.starts_with(LISTENS) {
        let ended = child.wait_with_output().map_err(failed)?;
        say(&String::from_utf8_lossy(&ended.stderr));
        return Ok(ExitCode::from(status::FAILED));
    }
    file.write(&format!("{}\n", child.id()));
    let written = file.finish().map(|()| ExitCode::SUCCESS);
    written.map_err(|error| {
        // Nobody would know which process to end.
        let _ = child.kill().and_then(|()| child.wait());
        failed(error)
    })
}

fn serve(options: &ProgramOptions) -> Result<ExitCode, String> {
    let typed = options.server.as_ref().and_then(|server| server.0.as_ref());
    let address = ServerAddress::read(&typed.map(shown).unwrap_or_default())?;
    let is_open = options.no_secret.0 || address.is_local();
    let secret = if is_open { None } else { Some(secret()?) };
    let policy = policy(options)?;
    let server = Server::listen(&address, secret, policy)?;
    let mut stdout = Output::stdout();
    stdout.write(&format!("{LISTENS}{}\n", address.with_port(server.port())));
    let stdout = Mutex::new(stdout);
    let log = move |line: &str| {
        let line = visible_lines(line);
        stdout.lock().unwrap_or_else(PoisonError::into_inner).write(&format!("fiord: {line}\n"));
    };
    let signal = server.run(&(Arc::new(log) as Log));
    Ok(ExitCode::from(status::of_signal(signal)))
}

fn secret() -> Result<Secret, String> {
    Secret::find()?.ok_or_else(|| {
        format!(
            "there is no secret that clients could know: make one with `fiord agent --new-secret=/etc/fiord/secret` and copy \
             it to them (or name its file in {VARIABLE}); or listen at sock:PATH, or say --no-secret where everyone who \
             reaches the port may run jobs"
        )
    })
}

/// What clients may do. Without a secret they write to no device; commands have to be allowed in any case.
fn policy(options: &ProgramOptions) -> Result<Policy, String> {
    let patterns = |text: &Text| shown(&text.0).split(',').map(str::to_string).collect();
    let root = options.root.as_ref().map(|root| std::path::absolute(PathBuf::from(&root.0)));
    if options.no_secret.0 && options.allow_exec.0 {
        return Err(
            "--allow-exec without a secret would let anyone run commands here: leave one of them out"
                .to_string(),
        );
    }
    Ok(Policy {
        root: root.transpose().map_err(|error| format!("--root: {}", error_text(&error)))?,
        readonly: options.readonly.0,
        no_exec: !options.allow_exec.0,
        devices: options.allow_device.as_ref().map(patterns).unwrap_or_default(),
        for_anyone: options.no_secret.0,
    })
}

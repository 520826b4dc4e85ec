//! `--server`: serves clients until it is told to stop.
//!
//! Invariant: standard output has the address, and a line for each client; nothing is run for a client before the server
//! listens with its secret and its policy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use fiord_options::program::ProgramOptions;
use fiord_options::value::Text;
use fiord_options::{Given, Problem, ProblemKind};
use fiord_remote::server::{Policy, Secret, Server, ServerAddress, VARIABLE};
use fiord_report::path::{shown, visible_lines};
use fiord_sys::errno::error_text;
use fiord_sys::process;

use crate::output::{Output, say};
use crate::status;

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
    let problem = |setting: &fiord_options::Setting| {
        let remedy = "give --server as well, or leave it out";
        Problem::error(ProblemKind::Misplaced, setting.place.clone(), setting.spec, "is of servers", remedy)
    };
    misplaced.map(problem).collect()
}

/// Serves clients; the exit status.
pub(super) fn run(options: &ProgramOptions) -> ExitCode {
    match serve(options) {
        Ok(code) => code,
        Err(why) => {
            say(&format!("fiord: --server: {why}\n"));
            ExitCode::from(status::FAILED)
        }
    }
}

fn serve(options: &ProgramOptions) -> Result<ExitCode, String> {
    let typed = options.server.as_ref().and_then(|server| server.0.as_ref());
    let address = ServerAddress::read(&typed.map(shown).unwrap_or_default())?;
    let is_open = options.no_secret.0 || address.is_local();
    let secret = if is_open { None } else { Some(secret()?) };
    let policy = policy(options)?;
    let server = Server::listen(&address, secret, policy)?;
    let mut stdout = Output::stdout();
    stdout.write(&format!("fiord: server listening on {}\n", address.with_port(server.port())));
    if let Some(path) = &options.daemonize {
        let named = |why: String| format!("--daemonize={}: {why}", shown(&path.0));
        let mut file = Output::file(Path::new(&path.0)).map_err(|refused| named(refused.reason()))?;
        if let Some(child) = process::fork_to_background().map_err(|error| named(error_text(&error)))? {
            file.write(&format!("{child}\n"));
            let written = file.finish().map(|()| ExitCode::SUCCESS);
            return written.map_err(|error| named(format!("{} (process {child} runs)", error_text(&error))));
        }
    }
    let stdout = Mutex::new(stdout);
    let log = move |line: &str| {
        let line = visible_lines(line);
        stdout.lock().unwrap_or_else(PoisonError::into_inner).write(&format!("fiord: {line}\n"));
    };
    let signal = server.run(&(Arc::new(log) as fiord_remote::server::Log));
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
        readonly_devices: options.no_secret.0,
    })
}

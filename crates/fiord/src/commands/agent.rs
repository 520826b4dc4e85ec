//! `fiord agent`: the other end of `--hosts`.
//!
//! Invariant: standard output is the stream to the controller; nothing else is printed there.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use fiord_remote::hold;
use fiord_remote::server::{self, Policy, Secret, ServerAddress};
use fiord_sys::errno::error_text;
use fiord_wire::{StudyCommand, Told};

use crate::arguments::{CommandError, Invocation};
use crate::status;
use crate::study::{OnAgent, OnHosts, Sources};
use crate::subcommand::Subcommands;

/// Runs what a controller (fiord with --hosts) sends on standard input, and
/// answers on standard output. It is started by the controller, and ends with
/// it. See docs/hosts.md.
#[derive(clap::Parser)]
#[command(name = "fiord agent", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Remove this program's own file first: it was copied for one run
    #[arg(long)]
    remove: bool,

    /// Connect standard input, a socket, to the server at ADDRESS (HOST,PORT or
    /// sock:PATH), as --client does, and run nothing here
    #[arg(long, value_name = "ADDRESS", exclusive = true)]
    connect: Option<String>,

    /// Wait, as the main process of a pod, until no agent has run beside it for a
    /// minute
    #[arg(long, exclusive = true)]
    hold: bool,

    /// Make a secret for servers and their clients in the new FILE
    #[arg(long, value_name = "FILE", exclusive = true)]
    new_secret: Option<PathBuf>,

    /// Use files below DIR alone
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Write nothing
    #[arg(long)]
    readonly: bool,

    /// Run no commands
    #[arg(long)]
    no_exec: bool,

    /// Use devices with these paths alone (* and ? stand for letters)
    #[arg(long, value_name = "PATTERN")]
    allow_device: Vec<String>,

    /// Nobody knows who the controller is: write to no device that --allow-device
    /// does not name, and say so in the report
    #[arg(long)]
    for_anyone: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord job.fio --hosts=c1,c2 --via='docker exec -i {host} {agent}'
  fiord --name=a --size=1g --hosts=a,b --via={agent}   two agents, on this machine
  fiord agent --new-secret=/etc/fiord/secret           for fiord --server
";

impl Invocation for Options {
    fn run(self, subcommands: &Subcommands) -> Result<ExitCode, CommandError> {
        if let Some(path) = &self.new_secret {
            Secret::create(path)?;
        } else if self.hold {
            hold::hold()?;
        } else if let Some(address) = &self.connect {
            server::relay_to(&ServerAddress::read(address)?)?;
        } else {
            let remove = self.remove;
            let policy = Policy {
                root: self
                    .root
                    .map(std::path::absolute)
                    .transpose()
                    .map_err(|error| format!("--root: {}", error_text(&error)))?,
                readonly: self.readonly,
                no_exec: self.no_exec,
                devices: self.allow_device,
                for_anyone: self.for_anyone,
            };
            fiord_remote::agent::run(remove, policy, &|study, agent| carry_out(study, agent, subcommands))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Carries out a study as a controller's command line says it.
fn carry_out(command: &StudyCommand, agent: &OnAgent, subcommands: &Subcommands) -> Result<(), Told> {
    let mut words = command.words.iter().map(|word| OsString::from_vec(word.clone()));
    let name = words.next().unwrap_or_default();
    let arguments: Vec<OsString> = words.collect();
    let sources = Sources::sent(command);
    match name.to_str() {
        Some("capacity") => of::<super::capacity::Options>(&arguments, agent, sources, subcommands),
        Some("check") => of::<super::check::Options>(&arguments, agent, sources, subcommands),
        Some("matrix") => of::<super::matrix::Options>(&arguments, agent, sources, subcommands),
        Some("quick") => of::<super::quick::Options>(&arguments, agent, sources, subcommands),
        Some("sweep") => of::<super::sweep::Options>(&arguments, agent, sources, subcommands),
        _ => Err(Told { text: format!("{name:?} is no study that runs on hosts"), is_unsafe: false }),
    }
}

fn of<S: OnHosts>(
    arguments: &[OsString],
    agent: &OnAgent,
    sources: Sources,
    subcommands: &Subcommands,
) -> Result<(), Told> {
    let wrong = |usage: clap::Error| Told { text: usage.to_string(), is_unsafe: false };
    let mut study = S::read(arguments).map_err(wrong)?;
    let options = study.options();
    (options.agent, options.sources) = (Some(Rc::clone(agent)), sources);
    let told = |error: CommandError| Told { text: error.why, is_unsafe: error.status == status::REFUSED };
    study.run(subcommands).map(drop).map_err(told)
}

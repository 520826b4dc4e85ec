//! How subcommands reach hosts.
//!
//! Invariant: nothing is started here.

use std::ffi::{OsStr, OsString};

use fiord_fleet::Host;
use fiord_host::Machine;
use fiord_options::{Origin, Place};
use fiord_remote::launch::{self, Launcher, Push};
use fiord_remote::{Job, slurm};
use fiord_session::run::environment;
use fiord_stats::Capped;
use fiord_wire::{ControllerSettings, Prepare};

use crate::config;

/// The options of how hosts are reached.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Reach {
    /// How hosts are reached: ssh, slurm, server, or a command with {host} and
    /// {agent}
    #[arg(long, default_value = "ssh", value_name = "HOW")]
    via: String,
    /// How long a host may take to answer, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    connect_timeout: u32,
    /// How many hosts are connected to at a time
    #[arg(long, default_value_t = 64, value_name = "N")]
    fan_out: u16,
    /// Whether fiord is copied to hosts: auto, never or always
    #[arg(long, default_value = "auto", value_name = "WHEN")]
    push: String,
    /// Be root there, by sudo without a password
    #[arg(long)]
    sudo: bool,
}

/// The hosts of this list, or of this file.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn hosts(list: &OsStr, machine: &Machine) -> Result<Vec<Host>, String> {
    let place = Place { source: Origin::CommandLine, line: 1, column: 1 };
    fiord_fleet::hosts::read(list, &place, &config::with_lists(environment::of(machine))).map_err(
        |problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n")
        },
    )
}

impl Reach {
    /// The hosts that are named, or the nodes of Slurm's allocation.
    ///
    /// # Errors
    /// None are named, and there is no allocation.
    pub(crate) fn list(&self, named: Option<OsString>) -> Result<OsString, String> {
        match named {
            Some(list) => Ok(list),
            None if self.has_nodes() => slurm::nodes(),
            None => config::default_hosts()
                .ok_or_else(|| "no hosts: name them, as in db[1-12], or a file".to_string()),
        }
    }

    /// Whether hosts need not be named: they are the nodes of Slurm's allocation.
    pub(crate) fn has_nodes(&self) -> bool {
        self.via == slurm::VIA
    }

    /// What is done on each of these hosts.
    ///
    /// # Errors
    /// What is wrong with the options.
    pub(crate) fn job(
        &self,
        hosts: &[Host],
        settings: ControllerSettings,
        prepare: impl Fn(&Host) -> Prepare,
    ) -> Result<Job, String> {
        let push = Push::from_word(&self.push)
            .ok_or_else(|| format!("--push={}: it is auto, never or always", self.push))?;
        let sends = hosts.iter().any(|host| Launcher::sends_program(host.via.as_ref().unwrap_or(&self.via)));
        let program = if sends { launch::program(push)? } else { launch::Program::default() };
        let ssh = program.settings(false, self.sudo, u64::from(self.connect_timeout));
        let of = |host: &Host| {
            let launcher = Launcher::of(host.via.as_ref().unwrap_or(&self.via), ssh.clone())
                .map_err(|why| format!("--via: {why}"))?;
            let count = u32::capped(hosts.len());
            let prepare =
                Prepare { name: host.name.clone(), number: host.number, hosts: count, ..prepare(host) };
            Ok((host.clone(), launcher, prepare))
        };
        Ok(Job {
            hosts: hosts.iter().map(of).collect::<Result<_, String>>()?,
            settings: ControllerSettings {
                connect_ns: i64::from(self.connect_timeout) * 1_000_000_000,
                ..settings
            },
            fan_out: usize::from(self.fan_out),
            program: program.bytes,
        })
    }
}

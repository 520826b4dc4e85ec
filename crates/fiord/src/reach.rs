//! How subcommands reach hosts.
//!
//! Invariant: no agent is started here; pods that are made for a command are removed with its hosts.

use std::ffi::{OsStr, OsString};

use fiord_fleet::Host;
use fiord_host::Machine;
use fiord_options::{Origin, Place};
use fiord_remote::kube::{self, Pods};
use fiord_remote::launch::{self, Launcher, Push};
use fiord_remote::{Job, slurm};
use fiord_session::run::environment;
use fiord_stats::Capped;
use fiord_wire::{ControllerSettings, Prepare};

use crate::arguments::CommandError;
use crate::config;
use crate::pods::{self, PodOptions};

/// The options of how hosts are reached.
#[derive(clap::Args, Debug)]
#[group(skip)]
pub(crate) struct Reach {
    /// How hosts are reached: ssh, slurm, kube, server, or a command with {host}
    /// and {agent}
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
    #[command(flatten)]
    pub pods: PodOptions,
}

/// Hosts, and what has to be there as long as they are used.
pub(crate) struct Reached {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// They are removed with this.
    _pods: Option<Pods>,
}

/// The hosts of this list, or of this file.
fn listed(list: &OsStr, machine: &Machine) -> Result<Vec<Host>, String> {
    let place = Place { source: Origin::CommandLine, line: 1, column: 1 };
    fiord_fleet::hosts::read(list, &place, &config::with_lists(environment::of(machine))).map_err(
        |problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n")
        },
    )
}

impl Reach {
    /// The hosts that are named, or the nodes of Slurm's allocation, or pods that are made for this.
    ///
    /// # Errors
    /// None are named, and there is no allocation and are no pods.
    pub(crate) fn hosts(&self, named: Option<OsString>, machine: &Machine) -> Result<Reached, CommandError> {
        let pods = self.pods.settings();
        if let Some(why) = pods::misplaced(&pods, &self.via, named.is_some()) {
            return Err(why.to_string().into());
        }
        let list = match named {
            Some(list) => list,
            None if self.via == kube::VIA => {
                let pods =
                    pods::start(&pods).map_err(|why| CommandError { why, status: pods::status_without() })?;
                return Ok(Reached { hosts: pods.hosts(), _pods: Some(pods) });
            }
            None if self.has_nodes() => slurm::nodes()?,
            None => config::default_hosts()
                .ok_or_else(|| "no hosts: name them, as in db[1-12], or a file".to_string())?,
        };
        Ok(Reached { hosts: listed(&list, machine)?, _pods: None })
    }

    /// Whether hosts need not be named: they are the nodes of Slurm's allocation, or pods.
    pub(crate) fn has_nodes(&self) -> bool {
        [slurm::VIA, kube::VIA].contains(&&*self.via) || self.pods.settings().is_given()
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
        let pods = self.pods.settings();
        let of = |host: &Host| {
            let launcher = Launcher::of(host.via.as_ref().unwrap_or(&self.via), ssh.clone(), &pods)
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
            trigger: None,
            states: Vec::new(),
        })
    }
}

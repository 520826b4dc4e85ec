//! `fiord hosts`: what is known of hosts before anything is run on them.
//!
//! Invariant: nothing is run and nothing is opened there but the agent itself.

use std::process::ExitCode;

use fiord_fleet::{Fate, Host};
use fiord_remote::Finished;
use fiord_report::table::{Cell, Column, Table};
use fiord_session::run::environment;
use fiord_wire::controller::Remote;
use fiord_wire::{ControllerSettings, Prepare};

use crate::arguments::{self, CommandError, Invocation};
use crate::layout::WIDTH;
use crate::reach::{self, Reach};
use crate::status;
use crate::subcommand::Subcommands;

/// Reaches hosts as a run with --hosts does, and shows what they are: whether
/// fiord answers there, how long that takes, how well their clocks are known,
/// processors and kernel. Nothing is run.
#[derive(clap::Parser)]
#[command(name = "fiord hosts", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Names, ranges (db[1-12],^db7), user@host:port, or a file;
    /// by --via=slurm the nodes of the allocation
    #[arg(value_name = "LIST", verbatim_doc_comment)]
    hosts: Option<std::ffi::OsString>,
    #[command(flatten)]
    reach: Reach,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord hosts db[1-12]
  fiord hosts hosts.txt --json
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let machine = environment::machine()?;
        let hosts = reach::hosts(&self.reach.list(self.hosts)?, &machine)?;
        let settings = ControllerSettings { only_facts: true, ..ControllerSettings::default() };
        let job = self.reach.job(&hosts, settings, |_| Prepare::default())?;
        let finished = fiord_remote::run(job, &mut |_, _| {});
        let table = table(&hosts, &finished);
        let is_complete = fiord_remote::controller::are_all_complete(&finished.controller);
        let page = match self.json {
            true => fiord_report::json::Writer::document(|json| table.write_json(json, "hosts")),
            false => table.text(WIDTH),
        };
        arguments::print_text(&page)?;
        Ok(ExitCode::from(match finished.signal {
            Some(number) => status::of_signal(number),
            None if is_complete => status::SUCCESS,
            None => status::FAILED,
        }))
    }
}

fn table(hosts: &[Host], finished: &Finished) -> Table {
    let mut table = Table::new([
        Column::new("host", "HOST"),
        Column::new("fiord", "FIORD"),
        Column::new("cpus", "CPUS"),
        Column::new("cpu", "CPU"),
        Column::new("kernel", "KERNEL"),
        Column::new("round_trip_us", "RTT(us)"),
        Column::new("clock_error_us", "CLOCK(us)"),
        Column::new("cause", "PROBLEM"),
    ]);
    for (host, remote) in hosts.iter().zip(finished.controller.remotes()) {
        table.rows.push(row(host, remote));
    }
    table
}

fn row(host: &Host, remote: &Remote) -> Vec<Cell> {
    let facts = remote.facts();
    let clock = remote.clock();
    let us = |ns: Option<u64>| ns.map_or(Cell::None, |ns| Cell::Number(ns as f64 / 1000.0, 1));
    vec![
        Cell::Text(host.name.clone()),
        Cell::text(remote.hello().map(|hello| hello.fiord.clone())),
        facts.map_or(Cell::None, |facts| Cell::Number(f64::from(facts.cpus), 0)),
        Cell::text(facts.map(|facts| facts.cpu.clone())),
        Cell::text(facts.map(|facts| facts.kernel.clone())),
        us(clock.map(|clock| clock.round_trip_ns)),
        us(clock.map(|clock| clock.error_ns)),
        Cell::text(remote.fate().and_then(Fate::cause).map(str::to_string)),
    ]
}

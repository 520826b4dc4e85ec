//! `fiord hosts`: what is known of hosts before anything is run on them.
//!
//! Invariant: nothing is run and nothing is opened there but the agent itself; `--clean` removes what agents left.

mod answers;
mod collect;

use std::process::ExitCode;

use fiord_fleet::{Fate, Host};
use fiord_remote::Finished;
use fiord_remote::leftovers::Task;
use fiord_report::json::Writer;
use fiord_report::path::visible_lines;
use fiord_report::table::{Cell, Column, Table};
use fiord_session::run::environment;
use fiord_wire::controller::Remote;
use fiord_wire::{Cleaned, ControllerSettings, Prepare};

use self::answers::{Answer, ask};
use crate::arguments::{self, CommandError, Invocation};
use crate::layout::WIDTH;
use crate::reach::Reach;
use crate::status;
use crate::subcommand::Subcommands;

/// Reaches hosts as a run with --hosts does, and shows what they are: whether
/// fiord answers there, how long that takes, how well their clocks are known,
/// processors and kernel. Nothing is run.
#[derive(clap::Parser)]
#[command(name = "fiord hosts", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Names, ranges (db[1-12],^db7), user@host:port, or a file;
    /// by --via=slurm the nodes of the allocation, by --via=kube new pods
    #[arg(value_name = "LIST", verbatim_doc_comment)]
    hosts: Option<std::ffi::OsString>,
    #[command(flatten)]
    reach: Reach,
    /// Remove what agents left there: copies of fiord, and reports of runs whose
    /// controller was lost. Nothing where an agent works
    #[arg(long, verbatim_doc_comment)]
    clean: bool,
    /// List reports of runs whose controller was lost; with =RUN, print those of
    /// this run. They stay there until --clean
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, conflicts_with = "clean", verbatim_doc_comment)]
    #[expect(clippy::option_option, reason = "an option whose value may be left out")]
    collect: Option<Option<String>>,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord hosts db[1-12]
  fiord hosts hosts.txt --json
  fiord hosts db[1-12] --collect
  fiord hosts db[1-12] --clean
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        if let Some(manifest) = self.reach.pods.manifest()? {
            return arguments::print(manifest);
        }
        let machine = environment::machine()?;
        let reached = self.reach.hosts(self.hosts, &machine)?;
        let hosts = reached.hosts.clone();
        if self.clean {
            return clean(&hosts, &self.reach, self.json);
        }
        if let Some(run) = self.collect {
            return collect::collect(hosts, &self.reach, run, self.json);
        }
        let settings = ControllerSettings { only_facts: true, ..ControllerSettings::default() };
        let job = self.reach.job(&hosts, settings, |_| Prepare::default())?;
        let finished = fiord_remote::run(job, &mut ());
        let table = table(&hosts, &finished);
        let is_complete = fiord_remote::controller::are_all_complete(&finished.controller);
        let page = match self.json {
            true => Writer::document(|json| table.write_json(json, "hosts")),
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

/// What was removed of each host.
type Removed<'h> = (&'h Host, Answer<Cleaned>);

/// Removes what agents left on these hosts.
fn clean(hosts: &[Host], reach: &Reach, is_json: bool) -> Result<ExitCode, CommandError> {
    let (answers, interrupted) = ask(hosts, reach, &Task::Clean)?;
    let all: Vec<Removed<'_>> = hosts.iter().zip(answers).collect();
    let page = match is_json {
        true => {
            Writer::document(|json| json.list("hosts", |json| all.iter().for_each(|one| item(json, one))))
        }
        false => visible_lines(&all.iter().flat_map(lines).collect::<String>()),
    };
    arguments::print_text(&page)?;
    let is_clean = |(_, cleaned): &Removed<'_>| {
        cleaned.as_ref().is_ok_and(|cleaned| cleaned.kept.is_empty() && cleaned.running.is_empty())
    };
    let status = if all.iter().all(is_clean) { status::SUCCESS } else { status::FAILED };
    Ok(ExitCode::from(interrupted.unwrap_or(status)))
}

fn item(json: &mut Writer, (host, cleaned): &Removed<'_>) {
    json.item(|json| {
        json.string("host", &host.name);
        let known = cleaned.as_ref().ok().cloned().unwrap_or_default();
        json.list("removed", |json| {
            for (path, bytes) in &known.removed {
                json.item(|json| {
                    json.string("path", path);
                    json.integer("bytes", bytes);
                });
            }
        });
        json.list("kept", |json| {
            for (path, cause) in &known.kept {
                json.item(|json| {
                    json.string("path", path);
                    json.string("cause", cause);
                });
            }
        });
        json.numbers("running", known.running.iter().map(|id| f64::from(*id)));
        Cell::text(cleaned.as_ref().err().cloned()).write(json, "cause");
    });
}

fn lines((host, cleaned): &Removed<'_>) -> Vec<String> {
    let said: Vec<String> = match cleaned {
        Err(why) => vec![format!("not cleaned: {why}")],
        Ok(Cleaned { running, .. }) if !running.is_empty() => {
            let ids: Vec<String> = running.iter().map(u32::to_string).collect();
            vec![format!("nothing removed: agents work there (processes {}): wait for them", ids.join(", "))]
        }
        Ok(Cleaned { removed, kept, .. }) if removed.is_empty() && kept.is_empty() => {
            vec!["nothing to remove".to_string()]
        }
        Ok(Cleaned { removed, kept, .. }) => {
            let removed = removed.iter().map(|(path, bytes)| format!("removed {path} ({bytes} bytes)"));
            removed.chain(kept.iter().map(|(path, why)| format!("kept {path}: {why}"))).collect()
        }
    };
    said.into_iter().map(|line| format!("{}: {line}\n", host.name)).collect()
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

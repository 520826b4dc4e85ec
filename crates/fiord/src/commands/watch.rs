//! `fiord watch`: what the disks of this machine do now, who makes them, and what stands out.
//!
//! Invariant: adds no I/O without `--probe`. Ctrl-C ends watching, and what was seen until then is printed.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fiord_host::System;
use fiord_report::json::Writer;
use fiord_report::path::shown;
use fiord_report::table::Cell;
use fiord_sys::errno::error_text;
use fiord_sys::signal;
use fiord_sys::sysfs::BlockDevice;
use fiord_watch::{Conclusion, Observation, conclusion, tables};

use super::parse;
use crate::arguments::{self, CommandError, Invocation};
use crate::layout::{self, folded, width};
use crate::status;
use crate::status_line::StatusLine;
use crate::subcommand::Subcommands;
use crate::watch::{self, Chosen};

/// Watches the disks of this machine, or those below a target, and says what they
/// do, for whom, how long requests wait in the queue and at the device, and what
/// stands out. Adds no I/O but for --probe. As root every request counts, by
/// tracepoints; without, the kernel's counters alone. docs/watch.md explains it.
#[derive(clap::Parser)]
#[command(name = "fiord watch", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// Device, file or directory: watch what it is stored on
    target: Option<PathBuf>,
    /// Tell requests of these and their children apart
    #[arg(long = "pid", value_name = "PIDS", value_delimiter = ',', group = "chosen")]
    processes: Vec<i32>,
    /// The same for a control group (/system.slice/db)
    #[arg(long, value_name = "PATH", group = "chosen")]
    cgroup: Option<PathBuf>,
    /// The same for a container
    #[arg(long, value_name = "ID", group = "chosen")]
    container: Option<String>,
    /// Also read each device gently, 4 times a second
    #[arg(long, value_name = "RATE", num_args = 0..=1, require_equals = true,
        default_missing_value = "4", value_parser = clap::value_parser!(u32).range(1..=100))]
    probe: Option<u32>,
    /// How long to watch; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = parse::positive_duration)]
    time: Duration,
    /// Print JSON (described in docs/json.md)
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  fiord watch                          all disks, for ten seconds
  fiord watch /var/lib/postgresql      the disks below a database
  fiord watch --pid 4711 --for 1m      is it me, or a neighbor?
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let chosen = self.chosen()?;
        let devices = devices(self.target.as_deref())?;
        // Ctrl-C ends watching; a second one ends fiord.
        let _ = signal::record_stop_requests();
        let mut line = fiord_sys::tty::stderr_is_terminal().then(StatusLine::default);
        let settings = watch::Settings { time: self.time, chosen, probe_per_s: self.probe };
        let mut observation = watch::observe(&devices, &settings, |passed| {
            if let Some(line) = &mut line {
                let left = layout::duration(self.time.saturating_sub(passed));
                line.draw(&format!("watching {} devices, {left} left", devices.len()));
            }
        });
        if let Some(line) = &mut line {
            line.clear();
        }
        if self.target.is_none() {
            observation.keep_used();
        }
        let found = conclusion::conclusions(&observation);
        arguments::print(if self.json { json(&observation, &found) } else { text(&observation, &found) })?;
        Ok(ExitCode::from(signal::stop_requested().map_or(status::SUCCESS, status::of_signal)))
    }
}

impl Options {
    fn chosen(&self) -> Result<Option<Chosen>, String> {
        let processes = (!self.processes.is_empty()).then(|| Chosen::processes(&self.processes));
        let group = || self.cgroup.as_deref().map(Chosen::group);
        let container = || self.container.as_deref().map(Chosen::container);
        processes.or_else(group).or_else(container).transpose()
    }
}

/// The whole disks below a target, or all of them that have a size.
fn devices(target: Option<&Path>) -> Result<Vec<BlockDevice>, String> {
    let system = System::read();
    let Some(target) = target else {
        let all = system.sysfs.disks().map_err(|error| {
            format!(
                "cannot read the list of disks, /sys/class/block: {}\n  mount sysfs at /sys",
                error_text(&error)
            )
        })?;
        return Ok(all
            .into_iter()
            .filter(|device| device.size_bytes().is_ok_and(|bytes| bytes > 0))
            .collect());
    };
    let devices = watch::whole_disks(target, &system).map_err(|error| no_target(target, &error))?;
    match devices.is_empty() {
        true => Err(format!(
            "{}: no block device is below it\n  name a file on a disk, or a device",
            shown(target)
        )),
        false => Ok(devices),
    }
}

fn no_target(target: &Path, error: &io::Error) -> String {
    format!("{}: {}\n  name a file, directory or device that exists", shown(target), error_text(error))
}

fn text(observation: &Observation, found: &[Conclusion]) -> String {
    let width = width();
    let named = usize::from(observation.devices.len() == 1);
    let mut sections = vec![
        tables::devices(observation).select(&tables::DEVICES_SHOWN).text(width),
        tables::parties(observation).select(&tables::PARTIES_SHOWN[named..]).text(width),
        tables::issuers(observation).select(&tables::ISSUERS_SHOWN[named..]).text(width),
        tables::dirtiers(observation).text(width),
    ];
    sections.retain(|section| !section.is_empty());
    let mut sentences = vec![conclusion::verdict(observation, found)];
    sentences.extend(found.iter().skip(1).map(|also| format!("{} {}", also.sentence, also.remedy)));
    if observation.lost > 0 {
        sentences.push(format!("{} events were lost: the kernel had no room for them.", observation.lost));
    }
    sentences.extend(observation.lacking.iter().cloned());
    sections.extend(sentences.iter().map(|sentence| folded(sentence, width, 0)));
    sections.join("\n")
}

fn json(observation: &Observation, found: &[Conclusion]) -> String {
    Writer::document(|json| {
        json.integer("elapsed_ns", observation.elapsed_ns);
        json.integer("lost_events", observation.lost);
        json.integer("own_cpu_ns", observation.own_ns);
        tables::devices(observation).write_json(json, "devices");
        Cell::text(observation.chosen.clone()).write(json, "chosen");
        tables::parties(observation).write_json(json, "parties");
        tables::issuers(observation).write_json(json, "issuers");
        tables::dirtiers(observation).write_json(json, "writing_processes");
        json.list("conclusions", |json| {
            for one in found {
                json.item(|json| {
                    json.string("code", one.code);
                    json.string("sentence", &one.sentence);
                    json.string("remedy", one.remedy);
                });
            }
        });
        json.string("verdict", &conclusion::verdict(observation, found));
        json.strings("lacking", &observation.lacking);
    })
}

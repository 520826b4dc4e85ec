//! `fiord watch`: what the disks of this machine do now, who makes them, and what stands out.
//!
//! Invariant: adds no I/O without `--probe`. Ctrl-C ends watching, and what was seen until then is printed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use fiord_host::System;
use fiord_metrics::watched;
use fiord_report::json::Writer;
use fiord_report::path::shown;
use fiord_report::table::Cell;
use fiord_sys::errno::error_text;
use fiord_sys::signal;
use fiord_sys::sysfs::BlockDevice;
use fiord_watch::{Conclusion, Observation, conclusion, tables};

use super::parse;
use crate::arguments::{self, CommandError, Invocation};
use crate::layout::{self, width};
use crate::metrics::{EXPORT_EVERY, MetricsExporter};
use crate::status;
use crate::status_line::StatusLine;
use crate::subcommand::Subcommands;
use crate::watch::{self, Chosen, View, Watch};

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
    /// Export figures meanwhile (docs/metrics.md)
    #[arg(long, value_name = "DESTINATION")]
    metrics: Vec<OsString>,
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
        let host = fiord_sys::system::names().host;
        let metrics = MetricsExporter::start(self.metrics.iter().map(AsRef::as_ref), &host)?;
        // Ctrl-C ends watching; a second one ends fiord.
        let _ = signal::record_stop_requests();
        let settings = watch::Settings { time: self.time, chosen, probe_per_s: self.probe };
        let mut shows = Shows::begin(&self, devices.len(), metrics);
        let mut observation = watch::observe(&devices, &settings, |watch| shows.look(watch));
        let unsent = shows.end(&observation);
        if self.target.is_none() {
            observation.keep_used();
        }
        let found = conclusion::conclusions(&observation);
        arguments::print(if self.json { json(&observation, &found) } else { text(&observation, &found) })?;
        let ended = signal::stop_requested().map(status::of_signal);
        match unsent.is_empty() {
            true => Ok(ExitCode::from(ended.unwrap_or(status::SUCCESS))),
            false => Err(CommandError { why: unsent.join("\n"), status: ended.unwrap_or(status::FAILED) }),
        }
    }
}

/// Who sees what is watched while it is.
struct Shows {
    view: Option<View>,
    line: Option<StatusLine>,
    metrics: Option<MetricsExporter>,
    devices: usize,
    time: Duration,
    /// When the view and metrics have the next figures.
    due: Duration,
}

impl Shows {
    fn begin(options: &Options, devices: usize, metrics: Option<MetricsExporter>) -> Shows {
        let view = View::open(options.target.as_deref().map(shown));
        let has_line = view.is_none() && fiord_sys::tty::stderr_is_terminal();
        let line = has_line.then(StatusLine::default);
        Shows { view, line, metrics, devices, time: options.time, due: Duration::ZERO }
    }

    /// Returns whether to go on watching.
    fn look(&mut self, watch: &Watch<'_>) -> bool {
        if let Some(line) = &mut self.line {
            let left = layout::duration(self.time.saturating_sub(watch.elapsed()));
            let devices = if self.devices == 1 { "device" } else { "devices" };
            line.draw(&format!("watching {} {devices}, {left} left", self.devices));
        }
        let is_due = watch.elapsed() >= self.due;
        if is_due && (self.view.is_some() || self.metrics.is_some()) {
            self.due = watch.elapsed() + EXPORT_EVERY;
            let so_far = watch.so_far();
            self.export(&so_far);
            if let Some(view) = &mut self.view {
                view.saw(so_far);
            }
        }
        self.view.as_mut().is_none_or(|view| view.look(watch, self.time, is_due))
    }

    fn export(&mut self, observation: &Observation) {
        if let Some(metrics) = &mut self.metrics {
            metrics.publish(watched(observation));
        }
    }

    /// Leaves the terminal as it was, and exports all that was observed; returns why not, for each destination that did not get
    /// it.
    fn end(mut self, observation: &Observation) -> Vec<String> {
        self.view = None;
        self.export(observation);
        if let Some(line) = &mut self.line {
            line.clear();
        }
        self.metrics.map(MetricsExporter::finish).unwrap_or_default()
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
        true => Err(watch::without_disk(target, &system)),
        false => Ok(devices),
    }
}

fn no_target(target: &Path, error: &io::Error) -> String {
    format!("{}: {}\n  name a file, directory or device that exists", shown(target), error_text(error))
}

fn text(observation: &Observation, found: &[Conclusion]) -> String {
    let width = width();
    let mut sections = watch::tables(observation, &tables::DEVICES_SHOWN, width);
    sections.extend(watch::sentences(observation, found, width));
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

//! `fiord devices`: the disks of this machine, or those below a target, with the facts that matter for a benchmark.
//!
//! Invariant: text, CSV, Markdown, JSON and the page `docs/devices.md` share one table of columns (`device_table.rs`);
//! no device is opened and no privilege is needed; root is told more of mapped devices.

use fiord_stats::Capped;
use fiord_sys::errno::error_text;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_host::{FileSystemFacts, Layer, LayerKind, StorageStack, System, TargetKind};
use fiord_report::path;
use fiord_report::table::{self, Cell, Column, Table};
use fiord_session::device_table::{self, DEVICE, device_table};

use crate::arguments::{self, CommandError, Form, Forms, Invocation};
use crate::layout::width;
use crate::subcommand::Subcommands;

/// Shows the disks of this machine, or those below a target, with the facts that
/// matter for a benchmark. Reads /sys and the mount table; opens no device and
/// needs no privilege. docs/devices.md explains each column.
#[derive(clap::Parser)]
#[command(name = "fiord devices", verbatim_doc_comment, after_help = EXAMPLES)]
pub(super) struct Options {
    /// File, directory or device: show what it is stored on, down to the disks
    target: Option<PathBuf>,
    #[command(flatten)]
    forms: Forms,
}

const EXAMPLES: &str = "\
Examples:
  fiord devices                   all disks
  fiord devices /var/lib/etcd     what this directory is stored on
";

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let system = System::read();
        let found = match &self.target {
            Some(target) => Found::below(target, &system)?,
            None => Found::all(&system)?,
        };
        arguments::print(match self.forms.chosen() {
            Form::Json => found.json(),
            Form::Csv => found.devices.csv(),
            Form::Markdown => found.sections(&Style::Markdown),
            Form::Text => return arguments::print_text(&found.sections(&Style::Text(width()))),
        })
    }
}

/// The tables to show.
struct Found {
    /// From the target down; no rows without a target.
    chain: Table,
    devices: Table,
    file_systems: Table,
}

enum Style {
    /// The width in columns.
    Text(usize),
    Markdown,
}

impl Style {
    fn table(&self, table: &Table) -> String {
        match self {
            Style::Text(width) => table.text(*width),
            Style::Markdown => table.markdown(),
        }
    }

    fn heading(&self, text: &str) -> String {
        match self {
            Style::Text(_) => format!("{text}\n"),
            Style::Markdown => format!("### {text}\n\n"),
        }
    }
}

impl Found {
    fn all(system: &System) -> Result<Found, String> {
        let devices = system.devices().map_err(|error| {
            format!(
                "cannot read the list of disks, /sys/class/block: {}\n  \
                 mount sysfs at /sys, or name a TARGET",
                error_text(&error)
            )
        })?;
        let file_systems = devices.iter().flat_map(|facts| &facts.file_systems);
        Ok(Found {
            chain: Table::new(CHAIN),
            devices: device_table(devices.iter()),
            file_systems: file_system_table(file_systems),
        })
    }

    fn below(target: &Path, system: &System) -> Result<Found, String> {
        let chain = StorageStack::of(&meant(target), system).map_err(|error| no_target(target, &error))?;
        Ok(Found {
            chain: chain_table(&chain),
            devices: device_table(chain.devices().into_iter()),
            file_systems: file_system_table(chain.file_systems().into_iter()),
        })
    }

    fn json(&self) -> String {
        let tables =
            [("chain", &self.chain), ("devices", &self.devices), ("file_systems", &self.file_systems)];
        table::json(&tables)
    }

    /// For text: the chain, then the devices. A single disk is explained; several are compared.
    fn sections(&self, style: &Style) -> String {
        let devices = match self.disk() {
            Some(row) => vec![style.heading(&headline(row)) + &style.table(&explained(row))],
            None => self.compared().iter().map(|table| style.table(table)).collect(),
        };
        let file_systems = vec![style.table(&self.file_systems)];
        let mut sections = if self.chain.rows.is_empty() {
            [devices, file_systems].concat()
        } else {
            [vec![style.table(&indented(&self.chain))], file_systems, devices].concat()
        };
        sections.retain(|section| !section.is_empty());
        if sections.is_empty() {
            sections.push("no device that has a size\n".to_owned());
        }
        sections.join("\n")
    }

    /// The disk of a chain that has only one, not counting its partition.
    fn disk(&self) -> Option<&Vec<Cell>> {
        let is_part = |row: &&Vec<Cell>| cell(row, "type") == Some(&Cell::Text("part".to_owned()));
        let mut disks = self.devices.rows.iter().filter(|row| !is_part(row));
        let first = disks.next().filter(|_| !self.chain.rows.is_empty());
        first.filter(|_| disks.next().is_none())
    }

    /// The devices of a chain with every column; those of the whole machine with the columns needed to choose a disk.
    fn compared(&self) -> Vec<Table> {
        let all: &[&[&str]] = &[device_table::OVERVIEW, device_table::QUEUE, device_table::REST];
        let shown = if self.chain.rows.is_empty() { &all[..2] } else { all };
        shown.iter().map(|keys| self.devices.select(keys)).collect()
    }
}

/// The path a target refers to: also a disk's bare name, as in `lsblk`, unless a file of that name exists.
fn meant(target: &Path) -> PathBuf {
    let device = Path::new("/dev").join(target);
    let is_name = target.components().count() == 1 && !target.exists() && device.exists();
    if is_name { device } else { target.to_owned() }
}

fn no_target(target: &Path, error: &io::Error) -> String {
    let (why, remedy) = match error.kind() {
        io::ErrorKind::NotFound => (
            "it does not exist".to_owned(),
            "name an existing path; for a file yet to be created, its directory",
        ),
        io::ErrorKind::PermissionDenied => {
            (error_text(error), "name a path this user can access, or the device itself")
        }
        _ => (error_text(error), "name a file, a directory or a block device"),
    };
    format!(
        "cannot examine {}: {why}\n  {remedy}\n  `fiord devices` without a TARGET lists every disk",
        path::shown(target)
    )
}

/// The columns of the chain.
const CHAIN: [Column; 5] = [
    Column::new("depth", "DEPTH"),
    Column::new("name", "CHAIN"),
    Column::new("type", "TYPE"),
    Column::new("size_bytes", "SIZE"),
    Column::new("available_bytes", "FREE"),
];

/// The columns of file systems.
const FILE_SYSTEM: [Column; 6] = [
    Column::new("mount_point", "MOUNTED AT"),
    Column::new("type", "TYPE"),
    Column::new("source", "SOURCE"),
    Column::new("size_bytes", "SIZE"),
    Column::new("available_bytes", "FREE"),
    Column::new("options", "OPTIONS"),
];

fn file_system_table<'f>(systems: impl Iterator<Item = &'f FileSystemFacts>) -> Table {
    let path = |path: &Option<PathBuf>| Cell::text(path.as_ref().map(path::text));
    let mut table = Table::new(FILE_SYSTEM);
    for facts in systems {
        table.rows.push(vec![
            path(&facts.mount_point),
            Cell::Text(facts.type_name.clone()),
            path(&facts.source),
            Cell::Bytes(facts.total_bytes),
            Cell::Bytes(facts.available_bytes),
            Cell::text(facts.options.clone()),
        ]);
    }
    table
}

fn chain_table(chain: &StorageStack) -> Table {
    let mut table = Table::new(CHAIN);
    table.rows = chain.layers.iter().map(chain_row).collect();
    table
}

fn chain_row(layer: &Layer) -> Vec<Cell> {
    let (name, kind, size, free) = match &layer.kind {
        LayerKind::Path { path, kind, size_bytes, .. } => {
            (path::text(path), kind_name(*kind).to_owned(), *size_bytes, None)
        }
        LayerKind::FileSystem(facts) => {
            let point = facts.mount_point.as_deref().unwrap_or(Path::new("?"));
            let sizes = (Some(facts.total_bytes), Some(facts.available_bytes));
            (path::text(point), facts.type_name.clone(), sizes.0, sizes.1)
        }
        LayerKind::Device(facts) => {
            let device = &facts.device;
            (device.name.clone(), device.kind.clone(), Some(device.size_bytes), None)
        }
        LayerKind::Memory => ("memory".to_owned(), "memory".to_owned(), None, None),
        LayerKind::Server(name) => (name.clone(), "server".to_owned(), None, None),
    };
    let depth = Cell::Count(layer.depth as u64);
    vec![depth, Cell::Text(name), Cell::Text(kind), Cell::bytes(size), Cell::bytes(free)]
}

fn kind_name(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Regular => "file",
        TargetKind::Block => "block device",
        TargetKind::Char => "character device",
        TargetKind::Directory => "directory",
        TargetKind::Pipe => "pipe",
        TargetKind::Other => "other",
        TargetKind::Absent => "out of sight",
    }
}

/// The chain for text output: depth as indentation.
fn indented(chain: &Table) -> Table {
    let mut shown = chain.select(&["name", "type", "size_bytes", "available_bytes"]);
    for (row, layer) in shown.rows.iter_mut().zip(&chain.rows) {
        if let (Cell::Count(depth), Cell::Text(name)) = (&layer[0], &row[0]) {
            row[0] = Cell::Text(format!("{}{name}", "  ".repeat(usize::capped(*depth))));
        }
    }
    shown
}

fn cell<'r>(row: &'r [Cell], key: &str) -> Option<&'r Cell> {
    DEVICE.iter().zip(row).find(|(fact, _)| fact.column.key == key).map(|(_, cell)| cell)
}

/// `vda: disk, virtio, 256GiB`.
fn headline(row: &[Cell]) -> String {
    let shown = |key: &str| cell(row, key).filter(|cell| **cell != Cell::None).map(Cell::shown);
    let words: Vec<String> = device_table::HEADLINE.iter().filter_map(|key| shown(key)).collect();
    format!("{}: {}", shown("name").unwrap_or_default(), words.join(", "))
}

/// A device's facts, one per row, each with its meaning; unknown ones are left out.
fn explained(row: &[Cell]) -> Table {
    let mut table = Table::new([
        Column::new("fact", "FACT"),
        Column::new("value", "VALUE"),
        Column::new("meaning", "WHAT IT MEANS FOR A BENCHMARK"),
    ]);
    for (fact, cell) in DEVICE.iter().zip(row) {
        if !fact.is_in_headline() && *cell != Cell::None {
            let words = [fact.name(), cell.shown(), fact.meaning.to_owned()];
            table.rows.push(words.map(Cell::Text).to_vec());
        }
    }
    table
}

#[cfg(test)]
mod tests;

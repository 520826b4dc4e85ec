//! `fiord devices`: the disks of this machine, or those below a target, by what decides what a benchmark's figures mean.
//!
//! Invariant: one table of columns (`columns.rs`) serves text, CSV, Markdown, JSON and the page `docs/devices.md`;
//! no device is opened and no privilege is needed.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fiord_host::{Chain, DeviceFacts, FileSystemFacts, Link, Stage, System, TargetKind};
use fiord_report::path;
use fiord_report::table::{self, Cell, Column, Table};

use crate::subcommand::{self, Form, Forms, width};

mod columns;

use columns::DEVICE;

/// Shows the disks of this machine, or those below a target, by what decides
/// what a benchmark's figures mean. Reads /sys and the mount table: no device is
/// opened, and no privilege is needed. docs/devices.md explains each column.
#[derive(clap::Parser)]
#[command(name = "fiord devices", verbatim_doc_comment)]
struct Options {
    /// A file, directory or device: show what it lies on, down to the disks
    target: Option<PathBuf>,
    #[command(flatten)]
    forms: Forms,
}

/// Prints the devices.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    subcommand::run(arguments, |options: Options| {
        let system = System::read();
        let found = match &options.target {
            Some(target) => Found::below(target, &system)?,
            None => Found::all(&system)?,
        };
        Ok(match options.forms.chosen() {
            Form::Json => found.json(),
            Form::Csv => found.devices.csv(),
            Form::Markdown => found.sections(&Style::Markdown),
            Form::Text => found.sections(&Style::Text(width())),
        })
    })
}

/// What there is to show.
struct Found {
    /// From the target down; without a target no rows.
    chain: Table,
    devices: Table,
    file_systems: Table,
}

enum Style {
    /// At most so many characters wide.
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
                "devices: cannot read the list of disks, /sys/class/block: {error}\n  \
                 mount sysfs at /sys, or name a TARGET"
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
        let chain = Chain::of(&meant(target), system).map_err(|error| no_target(target, &error))?;
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

    /// For people: what is on the way, then the devices. A single one is explained; several stand below each other.
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

    /// The disk of a chain that has but one, its partition not counted.
    fn disk(&self) -> Option<&Vec<Cell>> {
        let is_part = |row: &&Vec<Cell>| cell(row, "type") == Some(&Cell::Text("part".to_owned()));
        let mut disks = self.devices.rows.iter().filter(|row| !is_part(row));
        let first = disks.next().filter(|_| !self.chain.rows.is_empty());
        first.filter(|_| disks.next().is_none())
    }

    /// The devices of a chain with every column; of the whole machine only the columns to choose a disk by.
    fn compared(&self) -> Vec<Table> {
        let all: &[&[&str]] = &[columns::OVERVIEW, columns::QUEUE, columns::REST];
        let shown = if self.chain.rows.is_empty() { &all[..2] } else { all };
        shown.iter().map(|keys| self.devices.select(keys)).collect()
    }
}

/// The path meant by a target: a disk's bare name, as `lsblk` takes it, where there is no file of that name.
fn meant(target: &Path) -> PathBuf {
    let device = Path::new("/dev").join(target);
    let is_name = target.components().count() == 1 && !target.exists() && device.exists();
    if is_name { device } else { target.to_owned() }
}

fn no_target(target: &Path, error: &io::Error) -> String {
    let (why, remedy) = match error.kind() {
        io::ErrorKind::NotFound => {
            ("it does not exist".to_owned(), "name what is there; of a file yet to be made, its directory")
        }
        io::ErrorKind::PermissionDenied => {
            (error.to_string(), "name a path this user may look at, or the device itself")
        }
        _ => (error.to_string(), "name a file, a directory or a block device"),
    };
    format!(
        "devices: cannot look at {}: {why}\n  {remedy}\n  `fiord devices` without a TARGET lists every disk",
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

/// A row for each device, in all columns.
pub(crate) fn device_table<'f>(devices: impl Iterator<Item = &'f DeviceFacts>) -> Table {
    let mut table = Table::new(DEVICE.iter().map(|fact| fact.column));
    table.rows = devices.map(|facts| DEVICE.iter().map(|fact| (fact.cell)(facts)).collect()).collect();
    table
}

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

fn chain_table(chain: &Chain) -> Table {
    let mut table = Table::new(CHAIN);
    table.rows = chain.links.iter().map(chain_row).collect();
    table
}

fn chain_row(link: &Link) -> Vec<Cell> {
    let (name, kind, size, free) = match &link.stage {
        Stage::Path { path, kind, size_bytes } => {
            (path::text(path), kind_name(*kind).to_owned(), *size_bytes, None)
        }
        Stage::FileSystem(facts) => {
            let point = facts.mount_point.as_deref().unwrap_or(Path::new("?"));
            let sizes = (Some(facts.total_bytes), Some(facts.available_bytes));
            (path::text(point), facts.type_name.clone(), sizes.0, sizes.1)
        }
        Stage::Device(facts) => (facts.name.clone(), facts.kind.clone(), Some(facts.size_bytes), None),
        Stage::Memory => ("memory".to_owned(), "memory".to_owned(), None, None),
        Stage::Server(name) => (name.clone(), "server".to_owned(), None, None),
    };
    let depth = Cell::Count(link.depth as u64);
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

/// The chain for people: depth as indentation.
fn indented(chain: &Table) -> Table {
    let mut shown = chain.select(&["name", "type", "size_bytes", "available_bytes"]);
    for (row, link) in shown.rows.iter_mut().zip(&chain.rows) {
        if let (Cell::Count(depth), Cell::Text(name)) = (&link[0], &row[0]) {
            row[0] = Cell::Text(format!("{}{name}", "  ".repeat(*depth as usize)));
        }
    }
    shown
}

fn cell<'r>(row: &'r [Cell], key: &str) -> Option<&'r Cell> {
    DEVICE.iter().zip(row).find(|(fact, _)| fact.column.key == key).map(|(_, cell)| cell)
}

/// `vda: disk, virtio, 256GiB`.
fn headline(row: &[Cell]) -> String {
    let told = |key: &str| cell(row, key).filter(|cell| **cell != Cell::None).map(Cell::shown);
    let words: Vec<String> = columns::HEADLINE.iter().filter_map(|key| told(key)).collect();
    format!("{}: {}", told("name").unwrap_or_default(), words.join(", "))
}

/// A device's facts below each other, each with what it means; what is unknown here is left out.
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

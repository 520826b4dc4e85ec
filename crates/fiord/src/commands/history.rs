//! `fiord history`: lists recorded runs, and deletes them, once or by a policy.
//!
//! Invariant: text and Markdown show one brief table, CSV, JSON and exports one full table.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use fiord_report::columns as columns_of_text;
use fiord_report::json::Writer;
use fiord_report::path::{shown, visible_lines};
use fiord_report::table::{self, Cell, Column, Table, wrapped};
use fiord_report::time;
use fiord_stats::{Capped, Gather};
use fiord_store::{Filter, History, HistoryEntry, Retention, RunKind, RunSelector, StoreError, Stored};
use fiord_sys::clock;

use super::parse;
use crate::arguments::{self, CommandError, Form, Forms, Invocation};
use crate::keep;
use crate::layout::width;
use crate::output::remark;
use crate::status;
use crate::subcommand::Subcommands;

mod columns;
mod export;
mod import;
mod policy;

use export::Export;
use import::Import;
use policy::Keep;

/// Lists recorded runs, newest first. Every run is recorded unless --no-history is given; fiord show prints one again
#[derive(Parser)]
#[command(name = "fiord history", args_conflicts_with_subcommands = true, disable_help_subcommand = true, after_help = EXAMPLES)]
pub(super) struct Options {
    #[command(subcommand)]
    action: Option<HistoryCommand>,
    #[command(flatten)]
    list: List,
}

const EXAMPLES: &str = "\
Examples:
  fiord history --limit=5
  fiord history --target=/mnt
  fiord history --export=parquet -o runs.parquet
  fiord history --keep=90d --dry-run
  fiord history rm 3 4
  fiord history import fio.json --host=db3
";

#[derive(Args)]
struct List {
    /// List at most this many runs [default: 50; with --export, all]
    #[arg(long, value_name = "COUNT", value_parser = count)]
    limit: Option<u32>,
    /// List runs on this file or device, or below this directory
    #[arg(long, value_name = "PATH")]
    target: Option<PathBuf>,
    /// Keep the runs of this time (30d), or this many of the newest (1000), and
    /// delete others, now and after each run; all: delete none by itself
    #[arg(long, value_name = "AGE|COUNT", value_parser = policy::read, verbatim_doc_comment,
        conflicts_with_all = ["limit", "target", "export", "csv", "markdown"])]
    keep: Option<Keep>,
    /// List what --keep would delete, and delete nothing
    #[arg(long, requires = "keep")]
    dry_run: bool,
    #[command(flatten)]
    forms: Forms,
    #[command(flatten)]
    export: Export,
}

/// How many runs are listed by default.
const LISTED: u32 = 50;

#[derive(Subcommand)]
enum HistoryCommand {
    /// Delete runs; a study is deleted together with its runs
    Rm(Rm),
    /// Add runs and studies of other machines, and those of fio
    Import(Import),
}

#[derive(Args)]
#[command(override_usage = "fiord history rm <ID>...\n       fiord history rm --all | --older-than <AGE>")]
struct Rm {
    /// The runs: their numbers, last, or last~2 for the second before the last
    #[arg(value_name = "ID", required_unless_present_any = ["all", "older_than"])]
    ids: Vec<RunSelector>,
    /// Delete all runs
    #[arg(long, conflicts_with_all = ["ids", "older_than"])]
    all: bool,
    /// Delete runs that began at least this long ago: 30d, 12h
    #[arg(long, value_name = "AGE", conflicts_with = "ids", value_parser = age_ms)]
    older_than: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Invocation for Options {
    fn run(self, _: &Subcommands) -> Result<ExitCode, CommandError> {
        let path = keep::place()?;
        let history = History::open_existing(&path)?;
        if history.is_none()
            && self.list.keep.is_none()
            && !matches!(self.action, Some(HistoryCommand::Import(_)))
        {
            remark(&format!("fiord history: no run has been recorded yet in {}\n", shown(&path)));
        }
        if let Some(Keep(policy)) = self.list.keep {
            return arguments::print(retain(history, policy, &self.list)?);
        }
        match (self.action, self.list.export.export) {
            (None, Some(format)) => {
                let entries = listed(history.as_ref(), &self.list, self.list.limit)?;
                self.list.export.write(format, history.as_ref(), entries)
            }
            (None, None) => arguments::print(list(history.as_ref(), &self.list)?),
            (Some(HistoryCommand::Rm(rm)), _) => arguments::print(forget(history, &rm)?),
            (Some(HistoryCommand::Import(import)), _) => import.run(),
        }
    }
}

fn list(history: Option<&History>, options: &List) -> Result<String, StoreError> {
    let entries = listed(history, options, options.limit.or(Some(LISTED)))?;
    if history.is_some() && entries.is_empty() {
        let on = options.target.as_ref().map_or_else(String::new, |target| format!(" on {}", shown(target)));
        remark(&format!("fiord history: no run{on} is recorded\n"));
    }
    let policy = history.map(History::retention).transpose()?.flatten();
    Ok(match options.forms.chosen() {
        Form::Json => listed_json(policy, &entries),
        Form::Csv => columns::table(&entries).csv(),
        Form::Markdown => visible_lines(&brief(&entries).markdown()),
        Form::Text => {
            let kept = policy.map(|_| format!("\n{}\n", policy::words(policy))).unwrap_or_default();
            visible_lines(&(text(&entries) + &kept))
        }
    })
}

fn listed_json(policy: Option<Retention>, entries: &[HistoryEntry]) -> String {
    Writer::document(|json| {
        write_policy(json, policy);
        columns::table(entries).write_json(json, "runs");
    })
}

fn write_policy(json: &mut Writer, policy: Option<Retention>) {
    match policy {
        Some(policy) => json.string("keep", &policy.to_string()),
        None => json.null("keep"),
    }
}

/// Makes this the policy of the history, or lists what it would delete.
fn retain(
    history: Option<History>,
    policy: Option<Retention>,
    options: &List,
) -> Result<String, CommandError> {
    let is_json = options.forms.chosen() == Form::Json;
    let now_ms = clock::realtime_ms();
    if options.dry_run {
        let mut entries = Vec::new();
        if let (Some(history), Some(policy)) = (history, policy) {
            let expired: BTreeSet<i64> = history.expired(policy, now_ms)?.into_iter().gather();
            entries = history.list(&Filter::default())?;
            entries.retain(|entry| expired.contains(&entry.id));
        }
        return Ok(match is_json {
            true => listed_json(policy, &entries),
            false => visible_lines(&(text(&entries) + &counted(entries.len() as u64, "would be deleted"))),
        });
    }
    let mut history =
        history.map_or_else(|| History::open(&keep::place()?).map_err(CommandError::from), Ok)?;
    let deleted = history.retain(policy, now_ms)?;
    Ok(match is_json {
        true => Writer::document(|json| {
            write_policy(json, policy);
            json.integer("forgotten", deleted);
        }),
        false => format!("{} {}", policy::words(policy), counted(deleted, "deleted")),
    })
}

/// `1 run deleted`, as a line.
fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 run {what}\n"),
        count => format!("{count} runs {what}\n"),
    }
}

/// The runs requested. A target is looked up by its real path, and by the path as given, which may be a
/// link by now.
fn listed(
    history: Option<&History>,
    options: &List,
    limit: Option<u32>,
) -> Result<Vec<HistoryEntry>, StoreError> {
    let Some(history) = history else { return Ok(Vec::new()) };
    let Some(path) = &options.target else {
        return history.list(&Filter { limit, ..Filter::default() });
    };
    let given = keep::name_of(&keep::absolute(path));
    let names: BTreeSet<String> =
        [keep::target(path), given].iter().map(|name| name.trim_end_matches('/').to_string()).gather();
    let mut found = BTreeMap::new();
    for name in names {
        let filter = Filter { target: Some(name), limit, ..Filter::default() };
        found.extend(history.list(&filter)?.into_iter().map(|entry| (Reverse(entry.id), entry)));
    }
    Ok(found.into_values().take(limit.map_or(usize::MAX, |limit| limit as usize)).collect())
}

fn forget(history: Option<History>, options: &Rm) -> Result<String, CommandError> {
    let forgotten = match history {
        Some(history) => forget_from(history, options)?,
        None if options.ids.is_empty() => 0,
        None => return Err("no run has been recorded yet".to_string().into()),
    };
    Ok(match options.json {
        true => Writer::document(|json| json.integer("forgotten", forgotten)),
        false => counted(forgotten, "deleted"),
    })
}

fn forget_from(mut history: History, options: &Rm) -> Result<u64, CommandError> {
    if options.ids.is_empty() {
        // Without an age: all.
        let before_ms =
            options.older_than.map_or(u64::MAX, |age_ms| clock::realtime_ms().saturating_sub(age_ms));
        return Ok(history.remove_before(before_ms)?);
    }
    let mut ids = Vec::new();
    for which in &options.ids {
        ids.push(history.resolve(*which)?.ok_or_else(|| no_such_run(*which))?);
    }
    ids.sort_unstable();
    ids.dedup();
    match history.remove(&ids)?.first() {
        Some(absent) => Err(no_such_run(RunSelector::Id(*absent)).into()),
        None => Ok(ids.len() as u64),
    }
}

/// A recorded run or study, and the history that it is in.
///
/// # Errors
/// There is none, or the history cannot be read.
pub(crate) fn load(which: RunSelector) -> Result<(History, Stored), CommandError> {
    let history = History::open_existing(&keep::place()?)?.ok_or_else(|| no_such_run(which))?;
    let stored = history.load(which)?.ok_or_else(|| no_such_run(which))?;
    Ok((history, stored))
}

/// The runs of a study.
///
/// # Errors
/// The history cannot be read.
pub(crate) fn runs_of(study: &Stored, history: &History) -> Result<Vec<HistoryEntry>, StoreError> {
    history.list(&Filter { parent: Some(study.entry.id), ..Filter::default() })
}

fn no_such_run(which: RunSelector) -> String {
    format!("there is no run {which}; `fiord history` lists all runs")
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number of runs; write 10, 50"))
}

fn age_ms(text: &str) -> Result<u64, String> {
    parse::duration(text).map(|age| u64::capped(age.as_millis()))
}

/// Runs as a table that fits the terminal.
pub(crate) fn text(entries: &[HistoryEntry]) -> String {
    let mut table = brief(entries);
    fit(&mut table, width());
    let table = table.text(width());
    let others = entries.iter().any(|HistoryEntry { headline, .. }| headline.latency_of.is_some());
    let note =
        "P99 of runs that sync each write is that of write and sync; of studies, that of their main figure.";
    if others { format!("{table}\n{}\n", wrapped(note, width()).join("\n")) } else { table }
}

/// Shortens titles and targets so that each run has one line: the whole is in the other forms, and in `fiord show`.
fn fit(table: &mut Table, width: usize) {
    const TITLE: usize = 2;
    const TARGET: usize = 3;
    let longest = |column: usize| {
        let cells = table.rows.iter().map(|row| columns_of(&row[column]));
        cells.chain([table.columns[column].title.len()]).max().unwrap_or(0)
    };
    let gaps = 2 * (table.columns.len() - 1);
    let others: usize =
        (0..table.columns.len()).filter(|column| ![TITLE, TARGET].contains(column)).map(longest).sum();
    let room = width.saturating_sub(others + gaps).max(2 * SHORTEST);
    let target = longest(TARGET).min((room / 2).max(room.saturating_sub(longest(TITLE)))).max(SHORTEST);
    let title = room - target;
    for row in &mut table.rows {
        if let Cell::Text(text) = &mut row[TITLE] {
            *text = columns_of_text::shortened(text, title);
        }
        if let Cell::Text(text) = &mut row[TARGET] {
            *text = columns_of_text::shortened_at_start(text, target);
        }
    }
}

/// Columns that a title or a target has at least.
const SHORTEST: usize = 8;

fn columns_of(cell: &Cell) -> usize {
    columns_of_text::width(&cell.shown())
}

/// Runs as a JSON document.
pub(crate) fn json(entries: &[HistoryEntry]) -> String {
    table::json(&[("runs", &columns::table(entries))])
}

/// How a run ended, in a word; of an imported one only whether its figures count.
pub(crate) fn status_of(entry: &HistoryEntry) -> String {
    match entry.facts.kind {
        RunKind::Import if !entry.headline.is_void => "imported".to_string(),
        RunKind::Import => status::words(Some(status::SUCCESS), true),
        _ => status::words(entry.facts.exit_status, entry.headline.is_void),
    }
}

/// The columns that distinguish runs, for 80 columns of text.
fn brief(entries: &[HistoryEntry]) -> Table {
    let titles = ["ID", "WHEN", "TITLE", "TARGET", "IOPS", "BYTES/S", "P99", "STATUS"];
    let keys = ["id", "started", "title", "target", "ios_per_s", "bytes_per_s", "latency_p99_ns", "status"];
    let mut table = Table::new(keys.into_iter().zip(titles).map(|(key, title)| Column::new(key, title)));
    let now_ms = clock::realtime_ms();
    for entry in entries {
        let HistoryEntry { id, facts, headline } = entry;
        let target = match facts.targets.as_slice() {
            [] => Cell::None,
            [only] => Cell::Text(only.clone()),
            [first, rest @ ..] => Cell::Text(format!("{first} and {} more", rest.len())),
        };
        table.rows.push(vec![
            Cell::Count(id.unsigned_abs()),
            Cell::Text(time::short(facts.started_ms, facts.utc_offset_s, now_ms)),
            Cell::Text(match &facts.tag {
                Some(tag) => format!("[{tag}] {}", facts.title),
                None => facts.title.clone(),
            }),
            target,
            headline.ios_per_s.map_or(Cell::None, |ios_per_s| Cell::Number(ios_per_s, 0)),
            headline.bytes_per_s.map_or(Cell::None, |bytes_per_s| Cell::Bytes(u64::capped(bytes_per_s))),
            headline.latency_p99_ns.map_or(Cell::None, Cell::Latency),
            Cell::Text(status_of(entry)),
        ]);
    }
    table
}

//! `fiord history`: lists the runs that were kept, and forgets them.
//!
//! Invariant: one list of columns serves text, CSV, Markdown and JSON; the text leaves out what has no room.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use fiord_report::json::Writer;
use fiord_report::path::shown;
use fiord_report::table::{self, Cell, Column, Table, wrapped};
use fiord_report::time;
use fiord_store::{Entry, Filter, History, StoreError, Which};
use fiord_sys::clock;

use crate::output::remark;
use crate::subcommand::{self, Form, Forms, width};
use crate::{amount, keep, status};

/// Lists the runs that were kept, newest first. Every run is, unless --no-history is given; fiord show prints one again.
#[derive(Parser)]
#[command(name = "fiord history", args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Args)]
struct List {
    /// List this many at most
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    limit: u32,
    /// List the runs on this file or device, or below this directory
    #[arg(long, value_name = "PATH")]
    target: Option<PathBuf>,
    #[command(flatten)]
    forms: Forms,
}

#[derive(Subcommand)]
enum Action {
    /// Forget runs; a study is forgotten with all its runs
    Rm(Rm),
}

#[derive(Args)]
#[command(override_usage = "fiord history rm <ID>...\n       fiord history rm --all | --older-than <AGE>")]
struct Rm {
    /// The runs: their numbers, last, or last~2 for two before
    #[arg(value_name = "ID", required_unless_present_any = ["all", "older_than"])]
    ids: Vec<Which>,
    /// Forget all
    #[arg(long, conflicts_with_all = ["ids", "older_than"])]
    all: bool,
    /// Forget what began this long ago or longer: 30d, 12h
    #[arg(long, value_name = "AGE", conflicts_with = "ids", value_parser = age_ms)]
    older_than: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists or forgets.
pub(crate) fn run(arguments: &[OsString]) -> ExitCode {
    subcommand::run(arguments, |options: Options| {
        let path = keep::place().map_err(|why| format!("history: {why}"))?;
        let history = History::open_existing(&path).map_err(|error| format!("history: {error}"))?;
        if history.is_none() {
            remark(&format!("fiord history: no run has been kept yet in {}\n", shown(&path)));
        }
        match options.action {
            None => list(history.as_ref(), &options.list),
            Some(Action::Rm(rm)) => forget(history, &rm),
        }
    })
}

fn list(history: Option<&History>, options: &List) -> Result<String, String> {
    let entries = match history {
        Some(history) => listed(history, options).map_err(|error| format!("history: {error}"))?,
        None => Vec::new(),
    };
    Ok(match options.forms.chosen() {
        Form::Json => json(&entries),
        Form::Csv => full(&entries).csv(),
        Form::Markdown => brief(&entries).markdown(),
        Form::Text => text(&entries),
    })
}

/// The runs asked for. A target goes by its real path; runs of earlier fiords by the path they were given.
fn listed(history: &History, options: &List) -> Result<Vec<Entry>, StoreError> {
    let limit = Some(options.limit);
    let Some(path) = &options.target else {
        return history.list(&Filter { limit, ..Filter::default() });
    };
    let given = keep::name_of(&keep::absolute(path));
    let names: BTreeSet<String> =
        [keep::target(path), given].iter().map(|name| name.trim_end_matches('/').to_string()).collect();
    let mut found = BTreeMap::new();
    for name in names {
        let filter = Filter { target: Some(name), limit, ..Filter::default() };
        found.extend(history.list(&filter)?.into_iter().map(|entry| (Reverse(entry.id), entry)));
    }
    Ok(found.into_values().take(options.limit as usize).collect())
}

fn forget(history: Option<History>, options: &Rm) -> Result<String, String> {
    let forgotten = match history {
        Some(history) => forget_from(history, options)?,
        None if options.ids.is_empty() => 0,
        None => return Err("history: no run has been kept yet".to_string()),
    };
    Ok(match (options.json, forgotten) {
        (true, _) => Writer::document(|json| json.integer("forgotten", forgotten)),
        (false, 1) => "1 run forgotten\n".to_string(),
        (false, count) => format!("{count} runs forgotten\n"),
    })
}

fn forget_from(mut history: History, options: &Rm) -> Result<u64, String> {
    let told = |error: fiord_store::StoreError| format!("history: {error}");
    if options.ids.is_empty() {
        // Without an age, those are meant that are to come before the end of time.
        let before_ms =
            options.older_than.map_or(u64::MAX, |age_ms| clock::realtime_ms().saturating_sub(age_ms));
        return history.remove_before(before_ms).map_err(told);
    }
    let mut ids = Vec::new();
    for which in &options.ids {
        ids.push(history.resolve(*which).map_err(told)?.ok_or_else(|| no_such_run(*which))?);
    }
    ids.sort_unstable();
    ids.dedup();
    match history.remove(&ids).map_err(told)?.first() {
        Some(absent) => Err(no_such_run(Which::Id(*absent))),
        None => Ok(ids.len() as u64),
    }
}

/// What to say when a run is asked for that is not there.
pub(crate) fn no_such_run(which: Which) -> String {
    format!("history: there is no run {which}; fiord history lists those there are")
}

fn age_ms(text: &str) -> Result<u64, String> {
    amount::time(text).map(|age| age.as_millis() as u64)
}

/// Runs as people read them, in as many columns as the terminal has.
pub(crate) fn text(entries: &[Entry]) -> String {
    let table = brief(entries).text(width());
    let others = entries.iter().any(|Entry { headline, .. }| headline.latency_of.is_some());
    let note = "P99 of runs that sync each write is that of the syncs; of a study, that of what it is about.";
    if others { format!("{table}\n{}\n", wrapped(note, width()).join("\n")) } else { table }
}

/// Runs as programs read them.
pub(crate) fn json(entries: &[Entry]) -> String {
    table::json(&[("runs", &full(entries))])
}

/// What tells runs apart, in 80 columns.
fn brief(entries: &[Entry]) -> Table {
    let titles = ["ID", "WHEN", "TITLE", "TARGET", "IOPS", "BYTES/S", "P99", "ENDED"];
    let keys = ["id", "started", "title", "target", "ios_per_s", "bytes_per_s", "latency_p99_ns", "ended"];
    let mut table = Table::new(keys.into_iter().zip(titles).map(|(key, title)| Column::new(key, title)));
    let now_ms = clock::realtime_ms();
    for entry in entries {
        let Entry { id, facts, headline } = entry;
        let target = match facts.targets.as_slice() {
            [] => Cell::None,
            [only] => Cell::Text(only.clone()),
            [first, rest @ ..] => Cell::Text(format!("{first} and {} more", rest.len())),
        };
        table.rows.push(vec![
            Cell::Count(id.unsigned_abs()),
            Cell::Text(time::short(facts.started_ms, facts.utc_offset_s, now_ms)),
            Cell::Text(facts.title.clone()),
            target,
            headline.ios_per_s.map_or(Cell::None, |ios_per_s| Cell::Number(ios_per_s, 0)),
            headline.bytes_per_s.map_or(Cell::None, |bytes_per_s| Cell::Bytes(bytes_per_s as u64)),
            headline.latency_p99_ns.map_or(Cell::None, Cell::Latency),
            Cell::Text(status::words(facts.exit_status)),
        ]);
    }
    table
}

/// All there is to tell of runs without their reports.
fn full(entries: &[Entry]) -> Table {
    let keys = [
        "id",
        "study",
        "kind",
        "title",
        "command",
        "targets",
        "host",
        "fiord_version",
        "started",
        "started_ms",
        "elapsed_ms",
        "exit_status",
        "ios_per_s",
        "bytes_per_s",
        "latency_p99_ns",
        "latency_of",
    ];
    let mut table = Table::new(keys.into_iter().map(|key| Column::new(key, key)));
    for entry in entries {
        let Entry { id, facts, headline } = entry;
        table.rows.push(vec![
            Cell::Count(id.unsigned_abs()),
            Cell::count(facts.parent.map(i64::unsigned_abs)),
            Cell::Text(facts.kind.name().to_string()),
            Cell::Text(facts.title.clone()),
            Cell::Text(facts.command.clone()),
            Cell::List(facts.targets.clone()),
            Cell::Text(facts.host.clone()),
            Cell::Text(facts.fiord_version.clone()),
            Cell::Text(time::iso(facts.started_ms, facts.utc_offset_s)),
            Cell::Count(facts.started_ms),
            Cell::Count(facts.elapsed_ms),
            Cell::count(facts.exit_status.map(u64::from)),
            headline.ios_per_s.map_or(Cell::None, |ios_per_s| Cell::Number(ios_per_s, 0)),
            headline.bytes_per_s.map_or(Cell::None, |bytes_per_s| Cell::Number(bytes_per_s, 0)),
            headline.latency_p99_ns.map_or(Cell::None, Cell::Latency),
            Cell::text(headline.latency_of.as_deref()),
        ]);
    }
    table
}

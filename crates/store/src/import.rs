//! Runs of other machines: documents with reports, and other histories, whose runs are copied.
//!
//! Invariant: everything is imported or nothing; what is in the history already is not imported again; the other history is
//! only read.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, params, params_from_iter};

use crate::encoding::decode;
use crate::error::{Cause, StoreError};
use crate::history::{BUSY_TIMEOUT, History, insert};
use crate::record::Draft;
use crate::schema;

/// What is imported.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// A run with the document that it is read back from.
    Document(Box<Draft<'a>>),
    /// All runs and studies of another history.
    History(&'a Path),
}

/// What was imported of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The numbers of the runs and studies, parts of studies not counted.
    pub ids: Vec<i64>,
    /// Runs and studies that the history has already.
    pub known: u64,
}

/// All columns of a run but its number and its parent.
const COLUMNS: [&str; 17] = [
    "kind",
    "title",
    "command",
    "host",
    "started_ms",
    "exit_status",
    "heading",
    "tag",
    "kernel",
    "fiord_version",
    "utc_offset_s",
    "elapsed_ms",
    "ios_per_s",
    "bytes_per_s",
    "latency_p99_ns",
    "latency_of",
    "is_void",
];

/// The tables with what belongs to a run, and their columns but its number.
const BELONGING: [(&str, &str); 4] = [
    ("report", "headings, body"),
    ("summary", "json, text"),
    ("target", "path"),
    ("written", "device, boot_id, from_sectors, to_sectors"),
];

/// Places among [`COLUMNS`]: those up to the time tell which study it is.
const STARTED: usize = 4;
const EXIT_STATUS: usize = 5;

/// A run of another history: its number there, and its columns.
type OtherRun = (i64, Vec<Value>);

impl History {
    /// Imports these, in one transaction.
    ///
    /// # Errors
    /// Another history cannot be read, or this one not be written; then nothing is imported.
    pub fn import(&mut self, sources: &[Source<'_>]) -> Result<Vec<Imported>, StoreError> {
        let mut others = Vec::new();
        for source in sources {
            others.push(match source {
                Source::Document(_) => None,
                // Checked before others have to wait for this transaction.
                Source::History(path) => {
                    Some(open_other(path).and_then(checked).map_err(|cause| StoreError::new(path, cause))?)
                }
            });
        }
        self.write(|transaction| {
            let mut known = by_time(transaction)?;
            let mut all = Vec::new();
            for (source, other) in sources.iter().zip(&others) {
                all.push(match (source, other) {
                    (Source::Document(draft), _) => document(transaction, draft)?,
                    (Source::History(_), Some(other)) => copy_all(transaction, other, &mut known)?,
                    (Source::History(_), None) => Imported::default(),
                });
            }
            Ok(all)
        })
    }
}

/// The numbers of the runs by the time at which they began.
type ByTime = HashMap<i64, Vec<i64>>;

fn by_time(transaction: &Transaction<'_>) -> Result<ByTime, Cause> {
    let mut known = ByTime::new();
    let mut statement = transaction.prepare("SELECT started_ms, id FROM run WHERE parent IS NULL")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        known.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(known)
}

fn document(transaction: &Transaction<'_>, draft: &Draft<'_>) -> Result<Imported, Cause> {
    // The time is not looked at: of a report without a date it is that of its file.
    let mut is_same = transaction.prepare(
        "SELECT 1 FROM run JOIN summary ON summary.run = run.id
         WHERE kind = ?1 AND title = ?2 AND ios_per_s IS ?3 AND bytes_per_s IS ?4 AND json = ?5",
    )?;
    let summary = draft.summary.as_ref();
    let headline = summary.map(|summary| summary.headline.clone()).unwrap_or_default();
    let json = summary.map(|summary| &summary.json);
    let (kind, title) = (draft.facts.kind.name(), &draft.facts.title);
    if is_same.exists(params![kind, title, headline.ios_per_s, headline.bytes_per_s, json])? {
        return Ok(Imported { ids: Vec::new(), known: 1 });
    }
    Ok(Imported { ids: vec![insert(transaction, draft, None)?], known: 0 })
}

/// Opens another history for reading.
fn open_other(path: &Path) -> Result<Connection, Cause> {
    let log = {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        log
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let unreadable = |failure: rusqlite::Error| match failure.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => Cause::Unimportable(format!(
            "{failure}; copy it together with the file that is called the same with -wal at the end, to a directory that can \
             be written, and import the copy"
        )),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            Cause::Unimportable(format!("{failure}; copy it again"))
        }
        _ => failure.into(),
    };
    let open = || -> rusqlite::Result<Connection> {
        let connection = match Path::new(&log).exists() {
            true => Connection::open_with_flags(path, flags)?,
            // Nobody writes it. Without a log SQLite would make files beside it.
            false => Connection::open_with_flags(immutable(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
        };
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // All is read at one moment.
        connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        Ok(connection)
    };
    let connection = open().map_err(unreadable)?;
    match schema::exists(&connection) {
        Ok(true) => Ok(connection),
        Ok(false) | Err(Cause::Foreign) => Err(Cause::Unimportable(
            "it is a database, but not a history of fiord; name a history.db, or a file with a report"
                .to_owned(),
        )),
        Err(Cause::OtherSchema { found, known }) => Err(Cause::Unimportable(format!(
            "another version of fiord made it (schema {found}, this one reads {known}); import it with that fiord"
        ))),
        Err(Cause::Database(error)) => Err(unreadable(error)),
        Err(other) => Err(other),
    }
}

/// The path as an address of SQLite's.
fn immutable(path: &Path) -> OsString {
    let mut address = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => address.push(*byte),
            other => address.extend(format!("%{other:02x}").bytes()),
        }
    }
    address.extend(b"?immutable=1");
    OsString::from_vec(address)
}

/// Whether every report of it can be read here.
fn checked(other: Connection) -> Result<Connection, Cause> {
    let mut statement = other.prepare("SELECT run, body FROM report ORDER BY run")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (run, body) = (row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?);
        decode(&body).map_err(|cause| {
            Cause::Unimportable(match cause {
                Cause::OtherReport { found, known } => format!(
                    "another version of fiord recorded its run {run} (format {found}, this one reads {known}); import it \
                     with that fiord"
                ),
                _ => format!("the report of its run {run} is damaged; delete that run there, and import again"),
            })
        })?;
    }
    drop(rows);
    drop(statement);
    Ok(other)
}

/// Its runs and studies, or the parts of one, oldest first.
fn runs(other: &Connection, parent: Option<i64>) -> Result<Vec<OtherRun>, Cause> {
    let columns = COLUMNS.join(", ");
    let mut statement =
        other.prepare(&format!("SELECT id, {columns} FROM run WHERE parent IS ?1 ORDER BY id"))?;
    let rows = statement.query_map([parent], |row| {
        let values = (1..=COLUMNS.len()).map(|index| row.get(index)).collect::<rusqlite::Result<_>>()?;
        Ok((row.get(0)?, values))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn copy_all(
    transaction: &Transaction<'_>,
    other: &Connection,
    known: &mut ByTime,
) -> Result<Imported, Cause> {
    let mut imported = Imported::default();
    for run in runs(other, None)? {
        let started_ms = if let Value::Integer(time) = run.1[STARTED] { time } else { 0 };
        let ids = known.entry(started_ms).or_default();
        if is_known(transaction, other, &run, ids)? {
            imported.known += 1;
            continue;
        }
        forget_unfinished(transaction, &run)?;
        let id = copy(transaction, other, &run, None)?;
        ids.push(id);
        imported.ids.push(id);
        for part in runs(other, Some(run.0))? {
            copy(transaction, other, &part, Some(id))?;
        }
    }
    Ok(imported)
}

/// Whether one of these runs has the same columns and the same report.
fn is_known(
    transaction: &Transaction<'_>,
    other: &Connection,
    (run, columns): &OtherRun,
    ids: &[i64],
) -> Result<bool, Cause> {
    let body = "SELECT max(body) FROM report WHERE run = ?1";
    let same = COLUMNS.iter().zip(2..).map(|(column, index)| format!("{column} IS ?{index}"));
    let same = same.collect::<Vec<_>>().join(" AND ");
    let mut has_columns = transaction.prepare(&format!("SELECT 1 FROM run WHERE id = ?1 AND {same}"))?;
    let mut own_body = transaction.prepare(body)?;
    let mut other_body = other.prepare(body)?;
    for id in ids {
        let values = std::iter::once(Value::Integer(*id)).chain(columns.iter().cloned());
        if has_columns.exists(params_from_iter(values))?
            && own_body.query_row([id], |row| row.get::<_, Value>(0))?
                == other_body.query_row([run], |row| row.get::<_, Value>(0))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes the same study as it was imported before it ended.
fn forget_unfinished(transaction: &Transaction<'_>, (_, columns): &OtherRun) -> Result<(), Cause> {
    if columns[EXIT_STATUS] == Value::Null {
        return Ok(());
    }
    let same =
        COLUMNS.iter().take(STARTED + 1).zip(1..).map(|(column, index)| format!("{column} IS ?{index}"));
    let same = same.collect::<Vec<_>>().join(" AND ");
    let delete = format!("DELETE FROM run WHERE parent IS NULL AND exit_status IS NULL AND {same}");
    transaction.execute(&delete, params_from_iter(&columns[..=STARTED]))?;
    Ok(())
}

/// Copies a run with all that belongs to it, and returns its number here.
fn copy(
    transaction: &Transaction<'_>,
    other: &Connection,
    (run, columns): &OtherRun,
    parent: Option<i64>,
) -> Result<i64, Cause> {
    let places = (1..=COLUMNS.len() + 1).map(|index| format!("?{index}")).collect::<Vec<_>>().join(", ");
    let insert = format!("INSERT INTO run (parent, {}) VALUES ({places})", COLUMNS.join(", "));
    let parent = parent.map_or(Value::Null, Value::Integer);
    transaction.execute(&insert, params_from_iter(std::iter::once(&parent).chain(columns)))?;
    let id = transaction.last_insert_rowid();
    for (table, columns) in BELONGING {
        // It may have begun without it.
        if !other.table_exists(None, table)? {
            continue;
        }
        let mut found = other.prepare(&format!("SELECT {columns} FROM {table} WHERE run = ?1"))?;
        let count = found.column_count();
        let places = (2..=count + 1).map(|index| format!(", ?{index}")).collect::<String>();
        let insert = format!("INSERT INTO {table} (run, {columns}) VALUES (?1{places})");
        let mut rows = found.query([run])?;
        while let Some(row) = rows.next()? {
            let mut values = vec![Value::Integer(id)];
            for index in 0..count {
                values.push(row.get(index)?);
            }
            transaction.execute(&insert, params_from_iter(values))?;
        }
    }
    Ok(id)
}

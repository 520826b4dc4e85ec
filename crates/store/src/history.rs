//! The history: records runs, lists them and reads them back.
//!
//! Invariant: one run is one transaction. A run is in the write-ahead log when `keep` returns, so that a killed process
//! loses nothing; a power failure may lose the newest runs, but nothing else.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fiord_report::Written;
use fiord_stats::Capped;
use rusqlite::config::DbConfig;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, params,
};

use crate::encoding::{decode, encode};
use crate::error::{Cause, StoreError};
use crate::headline::Headline;
use crate::record::{
    Conclusion, Draft, Filter, HistoryEntry, KeptRun, Printed, RunFacts, RunKind, RunSelector, Stored,
    StudyIdentity,
};
use crate::retention::{self, AT_ONCE, Retention};
use crate::schema;

/// How long to wait for another fiord that is writing.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Length of the write-ahead log from which a writer moves it to the database, which waits for the disk. Opening the
/// history reads the whole log.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// How many pages a run frees at most, for which others wait that store a run.
const PAGES_AT_ONCE: u32 = 256;

/// An open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
}

impl History {
    /// Opens the history at `path` for recording, and creates it if it does not exist.
    ///
    /// # Errors
    /// It cannot be created or written, is damaged, or is not this fiord's.
    pub fn open(path: &Path) -> Result<History, StoreError> {
        let directory = path.parent().unwrap_or(path);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| StoreError::new(path, Cause::Directory(error)))?;
        keep_private(directory, 0o700);
        connect(path).map_err(|cause| StoreError::new(path, cause))
    }

    /// Opens the history at `path` if it exists.
    ///
    /// # Errors
    /// It cannot be read, is damaged, or is not this fiord's.
    pub fn open_existing(path: &Path) -> Result<Option<History>, StoreError> {
        match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => connect(path).map(Some).map_err(|cause| StoreError::new(path, cause)),
        }
    }

    /// Records a run, and returns its number.
    ///
    /// # Errors
    /// It cannot be written; the history is unchanged.
    pub fn keep<'d>(&mut self, draft: &Draft<'d>) -> Result<i64, StoreError> {
        let encoded = |printed: Printed<'d>| {
            let (headings, headline) = (printed.headings, Headline::of(printed.report));
            let body = encode(printed.report).map_err(|cause| self.error(cause))?;
            let written = Written::all_of(printed.report).collect();
            Ok(EncodedReport { headings, headline, body, written })
        };
        let measured = draft.printed.map(encoded).transpose()?;
        let id = self.write(|transaction| insert(transaction, draft, measured.as_ref()))?;
        if draft.facts.parent.is_none() {
            self.delete_expired(id, draft.facts.started_ms.saturating_add(draft.facts.elapsed_ms));
        }
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
            self.empty_log();
        }
        Ok(id)
    }

    /// Adds targets to a study that was recorded when it began.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_targets(&mut self, study: i64, targets: &[String]) -> Result<(), StoreError> {
        self.write(|transaction| insert_targets(transaction, study, targets))
    }

    /// Adds what a study is about; words and runs have an order of their own.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn identify(
        &mut self,
        study: i64,
        StudyIdentity { devices, kept }: &StudyIdentity,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut add = transaction
                .prepare("INSERT OR IGNORE INTO device (study, target, word) VALUES (?1, ?2, ?3)")?;
            for (target, words) in devices.iter().enumerate() {
                words
                    .iter()
                    .try_for_each(|word| add.execute(params![study, i64::capped(target), word]).map(drop))?;
            }
            let mut add = transaction
                .prepare("INSERT INTO kept (study, target, block_bytes, run) VALUES (?1, ?2, ?3, ?4)")?;
            for KeptRun { target, block_bytes, run } in kept {
                add.execute(params![study, i64::capped(*target), i64::capped(*block_bytes), run])?;
            }
            Ok(())
        })
    }

    /// What a study is about; nothing if that was not recorded.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn identity(&self, study: i64) -> Result<StudyIdentity, StoreError> {
        let identity = || -> rusqlite::Result<StudyIdentity> {
            let mut statement = self
                .connection
                .prepare("SELECT target, word FROM device WHERE study = ?1 ORDER BY target, word")?;
            let mut devices: Vec<Vec<String>> = Vec::new();
            let mut rows = statement.query([study])?;
            while let Some(row) = rows.next()? {
                let target = usize::from(row.get::<_, u16>(0)?);
                devices.resize(devices.len().max(target + 1), Vec::new());
                devices[target].push(row.get(1)?);
            }
            let mut statement = self.connection.prepare(
                "SELECT target, block_bytes, run FROM kept WHERE study = ?1 ORDER BY target, block_bytes",
            )?;
            let of = |row: &Row<'_>| {
                let target = usize::from(row.get::<_, u16>(0)?);
                Ok(KeptRun { target, block_bytes: unsigned(row.get(1)?), run: row.get(2)? })
            };
            let kept = statement.query_map([study], of)?.collect::<Result<_, _>>()?;
            Ok(StudyIdentity { devices, kept })
        };
        identity().map_err(|error| self.error(error))
    }

    /// What was written to devices during the runs after this one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn written_after(&self, run: i64) -> Result<Vec<Written>, StoreError> {
        let written = || -> rusqlite::Result<Vec<Written>> {
            let mut statement = self.connection.prepare(
                "SELECT boot_id, device, from_sectors, to_sectors FROM written WHERE run > ?1 ORDER BY run",
            )?;
            let of = |row: &Row<'_>| {
                let (from_sectors, to_sectors) = (unsigned(row.get(2)?), unsigned(row.get(3)?));
                Ok(Written { boot_id: row.get(0)?, device: row.get(1)?, from_sectors, to_sectors })
            };
            statement.query_map([run], of)?.collect()
        };
        written().map_err(|error| self.error(error))
    }

    /// Records that a study goes on, so that it has no exit status until it ends again; its last result is kept until then.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn reopen(&mut self, study: i64) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute("UPDATE run SET exit_status = NULL WHERE id = ?1", [study])?;
            Ok(())
        })
    }

    /// Records the outcome of a study that was recorded when it began.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn conclude(
        &mut self,
        study: i64,
        elapsed_ms: u64,
        exit_status: u8,
        summary: &Conclusion,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            let Headline { ios_per_s, bytes_per_s, latency_p99_ns, latency_of, is_void } = &summary.headline;
            transaction.execute(
                "UPDATE run SET elapsed_ms = ?2, exit_status = ?3, ios_per_s = ?4, bytes_per_s = ?5,
                    latency_p99_ns = ?6, latency_of = ?7, is_void = ?8 WHERE id = ?1",
                params![
                    study,
                    i64::capped(elapsed_ms),
                    exit_status,
                    ios_per_s,
                    bytes_per_s,
                    latency_p99_ns.map(i64::capped),
                    latency_of,
                    is_void,
                ],
            )?;
            insert_summary(transaction, study, summary)
        })
    }

    /// The runs of `filter`, newest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn list(&self, filter: &Filter) -> Result<Vec<HistoryEntry>, StoreError> {
        let list = || -> rusqlite::Result<Vec<HistoryEntry>> {
            let mut statement = self.connection.prepare(LIST)?;
            let limit = filter.limit.map_or(-1, i64::from);
            statement.query_map(params![filter.parent, filter.target, limit], entry)?.collect()
        };
        list().map_err(|error| self.error(error))
    }

    /// The number of the selected run; `None` if there is no such run.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn resolve(&self, which: RunSelector) -> Result<Option<i64>, StoreError> {
        let found = match which {
            RunSelector::Id(id) => {
                self.connection.query_row("SELECT id FROM run WHERE id = ?1", [id], |row| row.get(0))
            }
            RunSelector::Last(before) => self.connection.query_row(
                "SELECT id FROM run WHERE parent IS NULL ORDER BY id DESC LIMIT 1 OFFSET ?1",
                [before],
                |row| row.get(0),
            ),
        };
        found.optional().map_err(|error| self.error(error))
    }

    /// The number of the newest run with this tag; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn tagged(&self, tag: &str) -> Result<Option<i64>, StoreError> {
        let newest = "SELECT id FROM run WHERE tag = ?1 ORDER BY id DESC LIMIT 1";
        let found = self.connection.query_row(newest, [tag], |row| row.get(0));
        found.optional().map_err(|error| self.error(error))
    }

    /// The selected run; `None` if there is no such run.
    ///
    /// # Errors
    /// It cannot be read, or another version of fiord recorded it.
    pub fn load(&self, which: RunSelector) -> Result<Option<Stored>, StoreError> {
        match self.resolve(which)? {
            Some(id) => self.find(id).map_err(|cause| self.error(cause)),
            None => Ok(None),
        }
    }

    /// Deletes these runs and all parts of those that are studies, or none of them; returns the numbers not found.
    ///
    /// # Errors
    /// It cannot be written; then all are still there.
    pub fn remove(&mut self, ids: &[i64]) -> Result<Vec<i64>, StoreError> {
        let absent = self.write(|transaction| {
            let mut is_there = transaction.prepare("SELECT 1 FROM run WHERE id = ?1")?;
            let mut absent = Vec::new();
            for id in ids {
                if !is_there.exists([id])? {
                    absent.push(*id);
                }
            }
            for id in ids.iter().filter(|_| absent.is_empty()) {
                transaction.execute("DELETE FROM run WHERE id = ?1", [id])?;
            }
            Ok(absent)
        })?;
        self.shrink();
        Ok(absent)
    }

    /// Deletes the runs that began before this time (in milliseconds since the epoch); returns how many, parts of
    /// studies not counted.
    ///
    /// # Errors
    /// It cannot be written; then none is deleted.
    pub fn remove_before(&mut self, time_ms: u64) -> Result<u64, StoreError> {
        let time_ms = i64::try_from(time_ms).unwrap_or(i64::MAX);
        let removed = self.write(|transaction| {
            Ok(transaction.execute("DELETE FROM run WHERE parent IS NULL AND started_ms < ?1", [time_ms])?)
        })?;
        self.shrink();
        Ok(removed as u64)
    }

    /// Its policy; `None` if all runs are kept.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn retention(&self) -> Result<Option<Retention>, StoreError> {
        retention::policy(&self.connection).map_err(|cause| self.error(cause))
    }

    /// The runs and studies that this policy would delete now, oldest first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn expired(&self, policy: Retention, now_ms: u64) -> Result<Vec<i64>, StoreError> {
        retention::expired(&self.connection, policy, now_ms, None, None).map_err(|cause| self.error(cause))
    }

    /// Makes this its policy, and deletes what it does not keep; returns how many, parts of studies not counted.
    ///
    /// # Errors
    /// It cannot be written; then some may be left, which later runs delete.
    pub fn retain(&mut self, policy: Option<Retention>, now_ms: u64) -> Result<u64, StoreError> {
        self.write(|transaction| retention::set(transaction, policy))?;
        let mut deleted = 0;
        loop {
            let more = self.write(|transaction| retention::delete(transaction, now_ms, None))?;
            deleted += more as u64;
            if more < AT_ONCE {
                break;
            }
        }
        self.shrink();
        Ok(deleted)
    }

    /// Deletes by the policy after a run was stored. It waits for no other fiord, and its errors are none of the run: a later
    /// one does what was left.
    fn delete_expired(&mut self, stored: i64, now_ms: u64) {
        let Ok(Some(_)) = self.retention() else { return };
        if self.connection.busy_timeout(Duration::ZERO).is_ok() {
            let deleted = self.write(|transaction| retention::delete(transaction, now_ms, Some(stored)));
            if deleted.is_ok_and(|count| count > 0) && self.is_mostly_free() {
                self.free_pages(PAGES_AT_ONCE);
            }
        }
        let _ = self.connection.busy_timeout(BUSY_TIMEOUT);
    }

    /// Whether so much of it is unused that later runs do not soon need it.
    fn is_mostly_free(&self) -> bool {
        let count = |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        matches!((count("freelist_count"), count("page_count")), (Ok(free), Ok(all)) if free > all / 4)
    }

    pub(crate) fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Cause>,
    ) -> Result<T, StoreError> {
        let connection = &mut self.connection;
        let write = || {
            // SQLite waits for a lock taken at the start; one taken later would fail at once.
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        let written = write();
        written.map_err(|cause| StoreError { path: self.path.clone(), cause })
    }

    /// Returns the space of deleted runs to the file system.
    fn shrink(&self) {
        self.free_pages(0);
        self.empty_log();
    }

    /// Frees at most so many unused pages; 0: all. If another fiord is busy, later runs use them.
    fn free_pages(&self, count_max: u32) {
        let free = || -> rusqlite::Result<()> {
            let mut statement =
                self.connection.prepare(&format!("PRAGMA incremental_vacuum({count_max})"))?;
            let mut pages = statement.query([])?;
            // Each row frees one more page; pages whose rows are not fetched are not freed.
            while pages.next()?.is_some() {}
            Ok(())
        };
        let _ = free();
    }

    /// Moves the write-ahead log to the database. If another fiord is busy, the next one does it.
    fn empty_log(&self) {
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    fn find(&self, id: i64) -> Result<Option<Stored>, Cause> {
        let Some(entry) = self.connection.query_row(BY_ID, [id], entry).optional()? else { return Ok(None) };
        let kept = self.connection.query_row(
            "SELECT headings, body FROM report WHERE run = ?1",
            [entry.id],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?)),
        );
        let printed = match kept.optional()? {
            Some((headings, body)) => Some((headings, decode(&body)?)),
            None => None,
        };
        let heading =
            self.connection
                .query_row("SELECT heading FROM run WHERE id = ?1", [entry.id], |row| row.get(0))?;
        let summary =
            self.connection.query_row("SELECT json, text FROM summary WHERE run = ?1", [entry.id], |row| {
                Ok(Conclusion { json: row.get(0)?, text: row.get(1)?, headline: entry.headline.clone() })
            });
        let summary = summary.optional()?;
        Ok(Some(Stored { entry, heading, printed, summary }))
    }

    fn error(&self, cause: impl Into<Cause>) -> StoreError {
        StoreError::new(&self.path, cause)
    }
}

#[allow(clippy::disallowed_methods, reason = "the history is fiord's own, and never a target")]
fn connect(path: &Path) -> Result<History, Cause> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // SQLite gives its log the permissions of the database. What cannot be made or changed, it reports.
    let _ = File::options().write(true).create_new(true).mode(0o600).open(path);
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_os_string();
        file.push(suffix);
        keep_private(Path::new(&file), 0o600);
    }
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    schema::create(&mut connection)?;
    use_log(&connection)?;
    Ok(History { connection, path: path.to_owned() })
}

/// Takes permissions away from others than the owner: a command line is recorded as it was typed.
fn keep_private(path: &Path, mode: u32) {
    let found = fs::metadata(path).map(|found| found.permissions().mode());
    if found.is_ok_and(|found| found & 0o077 != 0) {
        // What belongs to another user stays as it is.
        let _ = fs::set_permissions(path, Permissions::from_mode(mode));
    }
}

/// Turns the write-ahead log on. If that fails (a file system without shared memory), or another fiord is doing so,
/// the rollback journal protects the history as well, with more waiting for the disk.
fn use_log(connection: &Connection) -> Result<(), Cause> {
    let mode = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
    let logged = match mode {
        Ok(mode) => mode == "wal",
        Err(error)
            if matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::ReadOnly)) =>
        {
            false
        }
        Err(error) => return Err(error.into()),
    };
    if logged {
        // The log is synchronised before the database is, so that a power failure loses the newest runs at most;
        // waiting for each run would wait for everything it has written to the same file system.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        // A log that has been moved is only restarted by the connection that moved it, and each run has its own: see
        // `keep`.
        connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    }
    Ok(())
}

/// A run's report, encoded before the transaction starts so that others wait less.
pub(crate) struct EncodedReport<'a> {
    headings: &'a str,
    headline: Headline,
    body: Vec<u8>,
    written: Vec<Written>,
}

pub(crate) fn insert(
    transaction: &Transaction<'_>,
    draft: &Draft<'_>,
    measured: Option<&EncodedReport<'_>>,
) -> Result<i64, Cause> {
    let concluded = draft.summary.as_ref().map(|summary| &summary.headline);
    let headline = measured.map(|measured| &measured.headline).or(concluded).cloned().unwrap_or_default();
    let facts = &draft.facts;
    transaction.execute(
        "INSERT INTO run (parent, kind, title, command, host, fiord_version, started_ms, utc_offset_s, elapsed_ms,
            exit_status, ios_per_s, bytes_per_s, latency_p99_ns, latency_of, heading, tag, kernel, is_void)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)",
        params![
            facts.parent,
            facts.kind.name(),
            facts.title,
            facts.command,
            facts.host,
            facts.fiord_version,
            i64::capped(facts.started_ms),
            facts.utc_offset_s,
            i64::capped(facts.elapsed_ms),
            facts.exit_status,
            headline.ios_per_s,
            headline.bytes_per_s,
            headline.latency_p99_ns.map(i64::capped),
            headline.latency_of,
            draft.heading,
            facts.tag,
            facts.kernel,
            headline.is_void,
        ],
    )?;
    let id = transaction.last_insert_rowid();
    insert_targets(transaction, id, &facts.targets)?;
    if let Some(measured) = measured {
        transaction.execute(
            "INSERT INTO report (run, headings, body) VALUES (?1, ?2, ?3)",
            params![id, measured.headings, measured.body],
        )?;
        insert_written(transaction, id, &measured.written)?;
    }
    if let Some(summary) = &draft.summary {
        insert_summary(transaction, id, summary)?;
    }
    Ok(id)
}

fn insert_targets(transaction: &Transaction<'_>, id: i64, targets: &[String]) -> Result<(), Cause> {
    let mut add = transaction.prepare("INSERT OR IGNORE INTO target (run, path) VALUES (?1, ?2)")?;
    for path in targets {
        add.execute(params![id, path])?;
    }
    Ok(())
}

fn insert_written(transaction: &Transaction<'_>, id: i64, written: &[Written]) -> Result<(), Cause> {
    let mut add = transaction.prepare(
        "INSERT OR IGNORE INTO written (run, boot_id, device, from_sectors, to_sectors)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for Written { boot_id, device, from_sectors, to_sectors } in written {
        add.execute(params![id, boot_id, device, i64::capped(*from_sectors), i64::capped(*to_sectors)])?;
    }
    Ok(())
}

fn insert_summary(transaction: &Transaction<'_>, study: i64, summary: &Conclusion) -> Result<(), Cause> {
    transaction.execute(
        "INSERT OR REPLACE INTO summary (run, json, text) VALUES (?1, ?2, ?3)",
        params![study, summary.json, summary.text],
    )?;
    Ok(())
}

/// Selects the columns of [`entry`] from the rows that meet a condition.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, parent, kind, title, command, host, fiord_version, started_ms, utc_offset_s, elapsed_ms,
                exit_status, ios_per_s, bytes_per_s, latency_p99_ns, latency_of, is_void, tag, kernel,
                (SELECT group_concat(path, char(0)) FROM target WHERE run = run.id) AS targets FROM run ",
            $rest
        )
    };
}

const BY_ID: &str = select!("WHERE id = ?1");
const LIST: &str = select!(
    "WHERE parent IS ?1 AND (?2 IS NULL OR EXISTS (
        SELECT 1 FROM target WHERE run = run.id AND (path = ?2 OR substr(path, 1, length(?2) + 1) = ?2 || '/')
    )) ORDER BY id DESC LIMIT ?3"
);

/// A count of the database, where it is not negative.
fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn entry(row: &Row<'_>) -> rusqlite::Result<HistoryEntry> {
    let headline = Headline {
        ios_per_s: row.get("ios_per_s")?,
        bytes_per_s: row.get("bytes_per_s")?,
        latency_p99_ns: row.get::<_, Option<i64>>("latency_p99_ns")?.map(unsigned),
        latency_of: row.get("latency_of")?,
        is_void: row.get("is_void")?,
    };
    let targets: Option<String> = row.get("targets")?;
    let facts = RunFacts {
        kind: RunKind::from_name(row.get("kind")?),
        parent: row.get("parent")?,
        title: row.get("title")?,
        command: row.get("command")?,
        targets: targets.iter().flat_map(|paths| paths.split('\0')).map(str::to_owned).collect(),
        host: row.get("host")?,
        fiord_version: row.get("fiord_version")?,
        started_ms: unsigned(row.get("started_ms")?),
        utc_offset_s: row.get("utc_offset_s")?,
        elapsed_ms: unsigned(row.get("elapsed_ms")?),
        exit_status: row.get("exit_status")?,
        tag: row.get("tag")?,
        kernel: row.get("kernel")?,
    };
    Ok(HistoryEntry { id: row.get("id")?, facts, headline })
}

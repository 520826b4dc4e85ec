//! The tables of the history.
//!
//! Invariant: a database with other tables is neither read nor changed.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Cause;

/// Marks a database as a history of fiord: "frd1" as a number.
const APPLICATION_ID: i64 = 0x6672_6431;

/// The number of the tables below. Tables that are changed have another number; one that is only added is made in a history that
/// began without it.
const SCHEMA: i64 = 1;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        parent INTEGER REFERENCES run (id) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        heading TEXT,
        command TEXT NOT NULL,
        tag TEXT,
        host TEXT NOT NULL,
        kernel TEXT,
        fiord_version TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        utc_offset_s INTEGER NOT NULL,
        elapsed_ms INTEGER NOT NULL,
        exit_status INTEGER,
        ios_per_s REAL,
        bytes_per_s REAL,
        latency_p99_ns INTEGER,
        latency_of TEXT,
        is_void INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS run_by_parent ON run (parent);
    CREATE TABLE IF NOT EXISTS target (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        path TEXT NOT NULL,
        PRIMARY KEY (run, path)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS report (
        run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        headings TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS summary (
        run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        json TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
    CREATE TABLE IF NOT EXISTS written (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        device TEXT NOT NULL,
        boot_id TEXT,
        from_sectors INTEGER NOT NULL,
        to_sectors INTEGER NOT NULL,
        PRIMARY KEY (run, device)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS device (
        study INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        target INTEGER NOT NULL,
        word TEXT NOT NULL,
        PRIMARY KEY (study, target, word)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS kept (
        study INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        target INTEGER NOT NULL,
        block_bytes INTEGER NOT NULL,
        run INTEGER NOT NULL,
        PRIMARY KEY (study, target, block_bytes)
    ) STRICT, WITHOUT ROWID;
";

/// Creates the tables that do not exist.
pub(crate) fn create(connection: &mut Connection) -> Result<(), Cause> {
    // One transaction, so that all numbers are read at one moment.
    if exists(&*connection.transaction()?)? {
        return Ok(connection.execute_batch(TABLES)?);
    }
    // Lets freed pages be returned; possible only for a database without tables, and outside a transaction.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another fiord may have created them meanwhile.
    if !exists(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA)?;
    }
    Ok(transaction.commit()?)
}

/// Whether it has tables of this number; if not, the database is empty.
pub(crate) fn exists(connection: &Connection) -> Result<bool, Cause> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if number("schema_version")? == 0 => Ok(false),
        (APPLICATION_ID, SCHEMA) => Ok(true),
        (APPLICATION_ID, found) => Err(Cause::OtherSchema { found, known: SCHEMA }),
        _ => Err(Cause::Foreign),
    }
}

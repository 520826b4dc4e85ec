//! The tables, and migrations from older ones.
//!
//! Invariant: a step that has been released never changes; a change is a new step at the end, with a test that starts
//! from a database of the previous schema.

use rusqlite::{Connection, TransactionBehavior};

use crate::error::Cause;

/// Marks a database as a history of fiord: "frd1" as a number.
const APPLICATION_ID: i64 = 0x6672_6431;

/// Step N migrates schema N to schema N + 1; the first creates the tables.
const STEPS: &[&str] = &[
    "
    CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        parent INTEGER REFERENCES run (id) ON DELETE CASCADE,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        command TEXT NOT NULL,
        host TEXT NOT NULL,
        fiord_version TEXT NOT NULL,
        started_ms INTEGER NOT NULL,
        utc_offset_s INTEGER NOT NULL,
        elapsed_ms INTEGER NOT NULL,
        exit_status INTEGER,
        ios_per_s REAL,
        bytes_per_s REAL,
        latency_p99_ns INTEGER
    ) STRICT;
    CREATE INDEX run_by_parent ON run (parent);
    CREATE TABLE target (
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        path TEXT NOT NULL,
        PRIMARY KEY (run, path)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE report (
        run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        headings TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE summary (
        run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        json TEXT NOT NULL,
        text TEXT NOT NULL
    ) STRICT;
",
    "
    ALTER TABLE run ADD COLUMN heading TEXT;
    ALTER TABLE run ADD COLUMN latency_of TEXT;
",
    "
    ALTER TABLE run ADD COLUMN tag TEXT;
    ALTER TABLE run ADD COLUMN kernel TEXT;
",
    "
    ALTER TABLE run ADD COLUMN is_void INTEGER;
",
];

/// Migrates the tables to the current schema.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), Cause> {
    migrate_by(connection, STEPS)
}

fn migrate_by(connection: &mut Connection, steps: &[&str]) -> Result<(), Cause> {
    // One transaction, so that both numbers are read at one moment.
    let next = next_step(&*connection.transaction()?, steps)?;
    if next == steps.len() {
        return Ok(());
    }
    if next == 0 {
        // Lets freed pages be returned; possible only for a database without tables, and outside a transaction.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Another fiord may be migrating too; the second one finds the work done.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let next = next_step(&transaction, steps)?;
    for step in &steps[next..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", steps.len() as i64)?;
    Ok(transaction.commit()?)
}

/// The first step not yet done.
fn next_step(connection: &Connection, steps: &[&str]) -> Result<usize, Cause> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let known = steps.len() as i64;
    match (number("application_id")?, number("user_version")?) {
        (0, 0) if number("schema_version")? == 0 => Ok(0),
        (APPLICATION_ID, found) if found > known => Err(Cause::NewerSchema { found, known }),
        (APPLICATION_ID, found) => usize::try_from(found).map_err(|_| Cause::Foreign),
        _ => Err(Cause::Foreign),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &[&str] = &["CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (7)"];
    const NOW: &[&str] = &[THEN[0], "ALTER TABLE a ADD COLUMN y TEXT NOT NULL DEFAULT 'none'"];

    fn memory() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    #[test]
    fn a_database_of_the_previous_schema_keeps_its_rows() {
        let mut connection = memory();
        migrate_by(&mut connection, THEN).unwrap();
        migrate_by(&mut connection, NOW).unwrap();
        migrate_by(&mut connection, NOW).unwrap();
        let row = connection.query_row("SELECT x, y FROM a", [], |row| Ok((row.get(0)?, row.get(1)?)));
        assert_eq!(row, Ok((7, "none".to_owned())));
    }

    #[test]
    fn runs_of_the_first_schema_have_no_heading_and_a_latency_of_all_their_ios() {
        let mut connection = memory();
        migrate_by(&mut connection, &STEPS[..1]).unwrap();
        let kept = "INSERT INTO run (kind, title, command, host, fiord_version, started_ms, utc_offset_s, elapsed_ms,
            latency_p99_ns) VALUES ('fio', 'old', 'fiord', 'vole', '0', 1, 0, 2, 77)";
        connection.execute_batch(kept).unwrap();
        migrate(&mut connection).unwrap();
        let row = connection.query_row("SELECT heading, latency_of, latency_p99_ns FROM run", [], |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?))
        });
        assert_eq!(row, Ok((None, None, 77)));
    }

    #[test]
    fn runs_of_the_second_schema_have_no_tag_and_no_kernel() {
        let mut connection = memory();
        migrate_by(&mut connection, &STEPS[..2]).unwrap();
        let kept = "INSERT INTO run (kind, title, command, host, fiord_version, started_ms, utc_offset_s, elapsed_ms)
            VALUES ('fio', 'old', 'fiord', 'vole', '0', 1, 0, 2)";
        connection.execute_batch(kept).unwrap();
        migrate(&mut connection).unwrap();
        let row = connection.query_row("SELECT tag, kernel, title FROM run", [], |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?))
        });
        assert_eq!(row, Ok((None, None, "old".to_owned())));
    }

    #[test]
    fn a_failed_step_leaves_the_previous_schema() {
        let mut connection = memory();
        migrate_by(&mut connection, THEN).unwrap();
        let broken = [THEN[0], "CREATE TABLE b (x INTEGER); CREATE TABLE a (x INTEGER)"];
        assert!(matches!(migrate_by(&mut connection, &broken), Err(Cause::Database(_))));
        assert_eq!(next_step(&connection, NOW).unwrap(), 1);
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0));
        assert_eq!(tables, Ok(1));
    }

    #[test]
    fn later_and_foreign_databases_are_refused_untouched() {
        let mut later = memory();
        migrate_by(&mut later, NOW).unwrap();
        assert!(matches!(migrate_by(&mut later, THEN), Err(Cause::NewerSchema { found: 2, known: 1 })));
        let mut foreign = memory();
        foreign.execute_batch("CREATE TABLE theirs (x INTEGER)").unwrap();
        assert!(matches!(migrate(&mut foreign), Err(Cause::Foreign)));
    }
}

//! Which runs a history keeps, and which it deletes by itself.
//!
//! Invariant: a policy deletes neither a part of a study that stays, nor the newest run of a tag, nor a study that goes on.

use std::fmt;

use fiord_stats::Capped;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Cause;

/// Which runs are kept; others are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Those that began within this time.
    Age {
        /// In milliseconds.
        ms: u64,
    },
    /// This many of the newest.
    Runs(u64),
}

/// How many runs are deleted in one transaction, for which others wait that store a run.
pub(crate) const AT_ONCE: usize = 64;

/// For how long a study without an end may have recorded nothing, before it counts as abandoned.
const IDLE_MS: u64 = 7 * 86_400_000;

/// Made by the first policy, and removed with the last. A fiord that knows no policies does not look at it.
const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS retention (
        only INTEGER PRIMARY KEY CHECK (only = 1),
        age_ms INTEGER,
        runs INTEGER
    ) STRICT;
";

const EXPIRED: &str = "
    SELECT id FROM run
    WHERE parent IS NULL AND id IS NOT ?1
        AND (started_ms < ?2 OR id <= (SELECT id FROM run WHERE parent IS NULL ORDER BY id DESC LIMIT 1 OFFSET ?3))
        AND id NOT IN (SELECT max(id) FROM run WHERE tag IS NOT NULL GROUP BY tag)
        AND (exit_status IS NOT NULL OR kind = 'import' OR ?4 > max(
            started_ms,
            coalesce((SELECT max(part.started_ms + part.elapsed_ms) FROM run AS part WHERE part.parent = run.id), 0)
        ))
    ORDER BY id LIMIT ?5";

/// The policy of a history.
pub(crate) fn policy(connection: &Connection) -> Result<Option<Retention>, Cause> {
    let has_table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'retention'";
    if !connection.prepare(has_table)?.exists([])? {
        return Ok(None);
    }
    let found = connection.query_row("SELECT age_ms, runs FROM retention", [], |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
    });
    Ok(match found.optional()? {
        Some((Some(ms), _)) => Some(Retention::Age { ms: ms.unsigned_abs() }),
        Some((None, Some(count))) => Some(Retention::Runs(count.unsigned_abs())),
        _ => None,
    })
}

/// Makes this the policy; without one all runs are kept.
pub(crate) fn set(connection: &Connection, policy: Option<Retention>) -> Result<(), Cause> {
    let (age_ms, runs) = match policy {
        None => return Ok(connection.execute_batch("DROP TABLE IF EXISTS retention")?),
        Some(Retention::Age { ms }) => (Some(i64::capped(ms)), None),
        Some(Retention::Runs(count)) => (None, Some(i64::capped(count))),
    };
    connection.execute_batch(TABLE)?;
    connection.execute("INSERT OR REPLACE INTO retention VALUES (1, ?1, ?2)", params![age_ms, runs])?;
    Ok(())
}

/// The runs and studies that a policy deletes at this time, but for `spared`: the oldest, at most so many.
pub(crate) fn expired(
    connection: &Connection,
    policy: Retention,
    now_ms: u64,
    spared: Option<i64>,
    limit: Option<usize>,
) -> Result<Vec<i64>, Cause> {
    let (before_ms, runs) = match policy {
        Retention::Age { ms } => (Some(i64::capped(now_ms.saturating_sub(ms))), i64::MAX),
        Retention::Runs(count) => (None, i64::capped(count)),
    };
    let limit = limit.map_or(-1, i64::capped);
    let idle_since_ms = i64::capped(now_ms.saturating_sub(IDLE_MS));
    let mut statement = connection.prepare(EXPIRED)?;
    let found =
        statement.query_map(params![spared, before_ms, runs, idle_since_ms, limit], |row| row.get(0))?;
    Ok(found.collect::<rusqlite::Result<_>>()?)
}

/// Deletes some of those that the policy of the history deletes; returns how many.
pub(crate) fn delete(connection: &Connection, now_ms: u64, spared: Option<i64>) -> Result<usize, Cause> {
    let Some(policy) = policy(connection)? else { return Ok(0) };
    let ids = expired(connection, policy, now_ms, spared, Some(AT_ONCE))?;
    let mut statement = connection.prepare("DELETE FROM run WHERE id = ?1")?;
    for id in &ids {
        statement.execute([id])?;
    }
    Ok(ids.len())
}

/// As `--keep` takes it.
impl fmt::Display for Retention {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] =
            [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        match self {
            Retention::Runs(count) => write!(out, "{count}"),
            Retention::Age { ms } => {
                let (factor, unit) =
                    UNITS.into_iter().find(|(factor, _)| ms % factor == 0).unwrap_or((1, "ms"));
                write!(out, "{}{unit}", ms / factor)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_shown_in_its_largest_unit() {
        for (ms, shown) in [(2_592_000_000, "30d"), (5_400_000, "90m"), (1, "1ms"), (7_200_000, "2h")] {
            assert_eq!(Retention::Age { ms }.to_string(), shown);
        }
        assert_eq!(Retention::Runs(1000).to_string(), "1000");
    }
}

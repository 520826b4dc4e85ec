//! When and how something recorded was run, for its page.
//!
//! Invariant: what is not known is left out.

use std::time::Duration;

use fiord_report::time;
use fiord_store::Stored;

use super::super::history;
use crate::layout::duration;

/// Each fact with its name.
pub(super) fn facts(stored: &Stored) -> Vec<(String, String)> {
    let facts = &stored.entry.facts;
    let program = Some(&facts.fiord_version).filter(|version| !version.is_empty());
    let program = program.map(|version| format!("fiord {version}"));
    let lines = [
        ("Machine", facts.host.clone()),
        ("Started", time::date(facts.started_ms, facts.utc_offset_s)),
        ("Took", duration(Duration::from_millis(facts.elapsed_ms))),
        ("Program", program.unwrap_or_default()),
        ("Ended", history::status_of(&stored.entry)),
        ("Targets", facts.targets.join(", ")),
    ];
    lines
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (name.to_string(), text))
        .collect()
}

//! When and how something recorded was run, for its page.
//!
//! Invariant: what is not known is left out.

use std::time::Duration;

use fiord_report::time;
use fiord_store::Stored;

use crate::layout::duration;
use crate::status;

/// Each fact with its name.
pub(super) fn facts(stored: &Stored) -> Vec<(String, String)> {
    let facts = &stored.entry.facts;
    let lines = [
        ("Machine", facts.host.clone()),
        ("Started", time::date(facts.started_ms, facts.utc_offset_s)),
        ("Took", duration(Duration::from_millis(facts.elapsed_ms))),
        ("Program", format!("fiord {}", facts.fiord_version)),
        ("Ended", status::words(facts.exit_status, stored.entry.headline.is_void).to_string()),
        ("Targets", facts.targets.join(", ")),
    ];
    lines
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(name, text)| (name.to_string(), text))
        .collect()
}

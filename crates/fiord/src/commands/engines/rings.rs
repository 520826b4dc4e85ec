//! What the kernel supports of io_uring, as rows of tables.

use fiord_engine::{RingFeature, RingSupport};
use fiord_report::table::Cell;
use fiord_sys::errno::Errno;
use fiord_sys::uring::{FlagSupport, SetupFlag};

use super::Rows;

/// The features and the operations; none without io_uring, for which the row of the engine has the reason.
pub(super) fn rows() -> (Rows, Rows) {
    fiord_engine::ring_support().as_ref().map(rows_of).unwrap_or_default()
}

pub(super) fn rows_of(support: &RingSupport) -> (Rows, Rows) {
    (ring_rows(support), operation_rows(support))
}

fn ring_rows(support: &RingSupport) -> Rows {
    let setup_flags = support.setup_flags.iter().map(|(flag, state)| flag_row(*flag, *state));
    let features = support.features.iter().map(|(feature, answer)| feature_row(*feature, *answer));
    setup_flags.chain(features).collect()
}

fn flag_row(flag: SetupFlag, state: FlagSupport) -> Vec<Cell> {
    let (state, errno) = match state {
        FlagSupport::InUse => ("used", None),
        FlagSupport::NotNeeded => ("unneeded", None),
        FlagSupport::Unsupported(errno) => ("refused", Some(errno)),
    };
    ring_row(flag.name(), state, errno, flag.since(), "every ring")
}

fn feature_row(feature: RingFeature, answer: Result<(), Errno>) -> Vec<Cell> {
    let state = if answer.is_ok() { "taken" } else { "refused" };
    ring_row(feature.name(), state, answer.err(), feature.since(), feature.serves())
}

fn ring_row(name: &str, state: &str, errno: Option<Errno>, since: &str, serves: &str) -> Vec<Cell> {
    let text = |text: &str| Cell::Text(text.to_string());
    vec![text(name), text(state), Cell::text(errno.map(Errno::name)), text(since), text(serves)]
}

fn operation_rows(support: &RingSupport) -> Rows {
    let row = |(name, known): &(&str, bool)| vec![Cell::Text((*name).to_string()), Cell::Flag(*known)];
    support.operations.iter().map(row).collect()
}

//! What all jobs together did over time: the object `windows` of a run.
//!
//! Invariant: no key is one of fio's, which scripts look for by the line. A direction in which nothing was done in any window is absent; the others have a value for each window.

use fiord_stats::Window;
use fiord_stats::job::DIRECTIONS;

use super::Writer;

/// Writes the members of the object.
pub(super) fn write(json: &mut Writer, windows: &[Window]) {
    let length_ns: u64 = windows.iter().map(|window| window.length_ns).sum();
    json.float("window_s", length_ns as f64 / 1e9 / windows.len().max(1) as f64);
    for (direction, name) in DIRECTIONS.iter().enumerate() {
        if windows.iter().all(|window| window.ios[direction] == 0) {
            continue;
        }
        let per_s =
            |count: u64, window: &Window| (count as f64 * 1e9 / window.length_ns.max(1) as f64).round();
        let ios = windows.iter().map(|window| per_s(window.ios[direction], window));
        let bytes = windows.iter().map(|window| per_s(window.bytes[direction], window));
        json.numbers(&format!("{name}_ios_per_s"), ios);
        json.numbers(&format!("{name}_bytes_per_s"), bytes);
    }
}

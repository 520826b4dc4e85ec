//! Whether memory was short, and whether the kernel slowed down those who write to the page cache.
//!
//! Invariant: a job is not said to be slowed down if none of the run writes to the page cache.

use fiord_host::HostReading;
use fiord_plan::{Direction, Plan};
use fiord_report::table::{Cell, shown_bytes};
use fiord_report::{Code, Finding, Subject};

use super::measured::Measurements;
use crate::subject::percent;

/// Waiting for memory for less than this share of the time is no shortage, in percent.
const WAITED_MIN: f64 = 10.0;

/// Shorter runs are not judged.
const RUN_MIN_NS: u64 = 500_000_000;

/// Of a run.
pub(super) fn of(plan: &Plan, measured: &Measurements<'_>) -> Vec<Finding> {
    short(measured).into_iter().chain(slowed(plan, measured)).collect()
}

fn short(measured: &Measurements<'_>) -> Option<Finding> {
    let (start, end) = measured.ends()?;
    let elapsed_ns = end.taken_ns.saturating_sub(start.taken_ns);
    // Of its own control group, where there is one.
    let waited_us = |of: &HostReading| of.group_pressure.memory_us.or(of.pressure.memory_us);
    let waited_us = waited_us(end)?.saturating_sub(waited_us(start)?);
    let share = percent(waited_us as f64 * 1e3, elapsed_ns as f64).min(100.0);
    (elapsed_ns >= RUN_MIN_NS && share >= WAITED_MIN).then(|| {
        let sentence =
            format!("tasks waited for memory for {share:.0} % of the time: the page cache was reclaimed");
        let remedy = "direct=1, stop what needs the memory, or raise the limit of the control group";
        let finding = Finding::new(Code::MemoryPressure, Subject::Machine, sentence, remedy);
        finding.based_on([("waited_percent", Cell::Number(share, 1))])
    })
}

fn slowed(plan: &Plan, measured: &Measurements<'_>) -> Option<Finding> {
    let writes = |(job, known): (&fiord_plan::Job, &super::measured::JobEvidence<'_>)| {
        !job.files.direct && known.stats.directions[Direction::Write.index()].bytes > 0
    };
    if !measured.working(plan).any(writes) {
        return None;
    }
    let is_over = |reading: &HostReading| {
        reading.dirty.is_some_and(|dirty| dirty.unwritten_bytes > dirty.slowed_from_bytes)
    };
    let (over_s, all_s) = measured.seconds_when(|_, later| is_over(later));
    let most = measured.host.iter().filter_map(|reading| Some(reading.dirty?.unwritten_bytes)).max()?;
    (over_s > 0.0).then(|| {
        let sentence = format!(
            "the kernel slowed down writers for {over_s:.0} of {all_s:.0} s: up to {} were in the page cache and not yet on \
             a disk",
            shown_bytes(most)
        );
        let remedy = "direct=1, or leave out the part before with ramp_time: it ran at the speed of memory";
        Finding::new(Code::WritersSlowed, Subject::Machine, sentence, remedy).based_on([
            ("slowed_s", Cell::Number(over_s, 0)),
            ("judged_s", Cell::Number(all_s, 0)),
            ("unwritten_bytes_max", Cell::Bytes(most)),
        ])
    })
}

#[cfg(test)]
mod tests {
    use fiord_host::{DirtyReading, Pressure};

    use crate::evidence::testing::{job, moved, nothing};
    use crate::testing::plan;

    use super::*;

    #[test]
    fn waiting_for_memory_is_found_from_a_tenth_of_the_time_on() {
        let found = |waited_us: Option<u64>, elapsed_ns: u64| {
            let of = |memory_us| Pressure { memory_us, ..Pressure::default() };
            let start = HostReading { pressure: of(Some(5)), ..HostReading::default() };
            let end = HostReading { taken_ns: elapsed_ns, pressure: of(waited_us), ..HostReading::default() };
            short(&Measurements { host: &[start, end], ..nothing() }).map(|finding| finding.code)
        };
        assert_eq!(found(Some(1_000_005), 10_000_000_000), Some(Code::MemoryPressure));
        assert_eq!(found(Some(900_005), 10_000_000_000), None);
        assert_eq!(found(Some(400_005), 400_000_000), None, "too short");
        assert_eq!(found(None, 10_000_000_000), None, "the kernel does not count it");
    }

    #[test]
    fn buffered_writers_are_slowed_down_beyond_the_limit() {
        let found = |option: (&'static str, &str), direction: usize, unwritten_bytes: u64| {
            let common = [("ioengine", "psync"), ("filename", "/data/f"), ("rw", "rw"), option];
            let plan = plan(&[("a", &common)]);
            let stats = moved(direction, 1 << 20);
            let host = [(0, 0), (1, 0), (2, unwritten_bytes)].map(|(at_s, unwritten_bytes)| HostReading {
                taken_ns: at_s * 1_000_000_000,
                dirty: Some(DirtyReading { unwritten_bytes, slowed_from_bytes: 100 }),
                ..HostReading::default()
            });
            let measured = Measurements { jobs: &[job(&stats)], host: &host, ..nothing() };
            slowed(&plan, &measured).map(|finding| finding.sentence)
        };
        let sentence = found(("direct", "0"), 1, 101).unwrap();
        assert!(
            sentence.starts_with("the kernel slowed down writers for 1 of 2 s: up to 101B"),
            "{sentence}"
        );
        assert_eq!(found(("direct", "0"), 1, 100), None);
        assert_eq!(found(("direct", "1"), 1, 101), None, "past the page cache");
        assert_eq!(found(("direct", "0"), 0, 101), None, "it only read");
    }
}

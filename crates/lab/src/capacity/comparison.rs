//! Which of several targets carries more.
//!
//! Invariant: one carries more than another only if all of its runs met the bound at a rate at which none of the other's
//! did; otherwise the runs do not say.

use fiord_report::table::{Cell, Column, Table};

use super::found::Found;
use crate::verdict::Verdict;

/// What the comparison says, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub sentence: String,
    /// The index of the target that carries more than all others, if the runs say so.
    pub most: Option<usize>,
    pub verdict: Option<Verdict>,
}

/// A row for each target; `is_over`: whether all searches are, so that rates are results.
pub(super) fn table(all: &[Found<'_>], is_over: bool) -> Table {
    let mut table = Table::new([
        Column::new("target", "TARGET"),
        Column::new("capacity_iops", "CAPACITY"),
        Column::new("capacity_iops_min", "FROM"),
        Column::new("capacity_iops_max", "TO"),
        Column::new("response_ns", "RESPONSE"),
        Column::new("unpaced_iops", "NO RATE"),
        Column::new("limit", "LIMIT"),
        Column::new("runs", "RUNS"),
    ]);
    for found in all {
        let [capacity, min, max] = match is_over {
            true => found.rates(),
            false => [Cell::None, Cell::None, Cell::None],
        };
        let met = found.search.medians().into_iter().find(|(rate, _)| Some(*rate) == found.search.met());
        let response_ns = met.filter(|_| is_over).and_then(|(_, trial)| trial.response_ns);
        table.rows.push(vec![
            Cell::text(found.target.clone()),
            capacity,
            min,
            max,
            response_ns.map_or(Cell::None, Cell::Latency),
            Cell::Count(found.fastest()),
            Cell::text(found.limit().filter(|_| is_over)),
            Cell::Count(found.search.trials.len() as u64),
        ]);
    }
    table
}

/// Compares targets whose searches are over.
pub(super) fn of(all: &[Found<'_>], percentile: &str, limit: &str) -> Comparison {
    let mut ranked: Vec<usize> = (0..all.len()).filter(|index| all[*index].search.met().is_some()).collect();
    ranked.sort_by_key(|index| std::cmp::Reverse(all[*index].search.met()));
    let none = |index: &usize| !ranked.contains(index);
    let failing: Vec<&str> = (0..all.len()).filter(none).map(|index| all[index].name.as_str()).collect();
    let failed = match failing.as_slice() {
        [] => String::new(),
        names => format!(" No rate keeps {percentile} within {limit} on {}.", names.join(" and ")),
    };
    let Some((best, others)) = ranked.split_first() else {
        return Comparison {
            sentence: failed.trim_start().to_string(),
            most: None,
            verdict: Some(Verdict::Fail),
        };
    };
    let (sure, _) = all[*best].search.interval();
    // A search that ended without a failure has no upper end.
    let overlaps = |other: &&usize| all[**other].search.interval().1.is_none_or(|failed| failed > sure);
    let close: Vec<&usize> = others.iter().filter(overlaps).collect();
    let range = |index: usize| match all[index].search.interval() {
        (from, Some(to)) => format!("{} {from} to {to}", all[index].name),
        (from, None) => format!("{} {from} or more", all[index].name),
    };
    if !close.is_empty() {
        let ranges: Vec<String> = std::iter::once(best).chain(close).map(|index| range(*index)).collect();
        let sentence = format!(
            "{}, which carries more, because their repeated runs overlap: {}.{failed}",
            Verdict::Undecided.word(),
            ranges.join(", ")
        );
        return Comparison { sentence, most: None, verdict: Some(Verdict::Undecided) };
    }
    let ranges: Vec<String> = ranked.iter().map(|index| range(*index)).collect();
    let sentence = match others {
        [] => format!("{} alone carries any rate.{failed}", all[*best].name),
        _ => format!(
            "{} carries most: its repeated runs do not overlap with those of the others ({}).{failed}",
            all[*best].name,
            ranges.join(", ")
        ),
    };
    Comparison { sentence, most: Some(*best), verdict: None }
}

#[cfg(test)]
mod tests {
    use fiord_report::RunReport;

    use super::*;
    use crate::capacity::search::{Search, Trial};

    /// A target whose runs at these rates met the bound, or did not.
    fn found<'r>(name: &str, report: &'r RunReport, runs: &[(u64, bool)]) -> Found<'r> {
        let mut search = Search::from(10_000.0);
        let trial = |(rate, meets): &(u64, bool)| Trial {
            rate: *rate,
            response_ns: Some(5),
            lost: 0,
            meets: *meets,
            report,
        };
        search.trials = runs.iter().map(trial).collect();
        Found { target: None, name: name.to_string(), subject: name.to_string(), unpaced: report, search }
    }

    /// The runs of a target: their rates, and whether they met the bound.
    type Runs<'a> = &'a [(u64, bool)];

    fn compared(all: &[Runs<'_>]) -> (Option<usize>, Option<Verdict>, String) {
        let report = RunReport::default();
        let all: Vec<Found<'_>> =
            all.iter().zip(["/a", "/b", "/c"]).map(|(runs, name)| found(name, &report, runs)).collect();
        let Comparison { sentence, most, verdict } = of(&all, "p99", "10ms");
        (most, verdict, sentence)
    }

    #[test]
    fn the_one_whose_runs_lie_above_those_of_all_others_carries_most() {
        let slow: &[(u64, bool)] = &[(400, true), (500, false)];
        let fast: &[(u64, bool)] = &[(500, true), (600, false)];
        let (most, verdict, sentence) = compared(&[slow, fast]);
        assert_eq!((most, verdict), (Some(1), None));
        assert_eq!(
            sentence,
            "/b carries most: its repeated runs do not overlap with those of the others (/b 500 to 600, /a 400 to 500)."
        );
    }

    #[test]
    fn overlapping_runs_do_not_say_which_carries_more() {
        let one: &[(u64, bool)] = &[(400, true), (480, true), (480, false), (480, true), (500, false)];
        let other: &[(u64, bool)] = &[(420, true), (450, false)];
        let (most, verdict, sentence) = compared(&[one, other]);
        assert_eq!((most, verdict), (None, Some(Verdict::Undecided)));
        assert_eq!(
            sentence,
            "CANNOT TELL, which carries more, because their repeated runs overlap: /a 400 to 500, /b 420 to 450."
        );
        // One without an upper end may carry any rate.
        assert_eq!(compared(&[&[(900, true), (950, false)], &[(400, true)]]).1, Some(Verdict::Undecided));
    }

    #[test]
    fn one_that_carries_no_rate_is_named() {
        let (none, some): (Runs<'_>, Runs<'_>) = (&[(10, false)], &[(10, true), (11, false)]);
        let (most, verdict, sentence) = compared(&[none, some]);
        assert_eq!((most, verdict), (Some(1), None));
        assert_eq!(sentence, "/b alone carries any rate. No rate keeps p99 within 10ms on /a.");
        let (most, verdict, sentence) = compared(&[none, none]);
        assert_eq!((most, verdict), (None, Some(Verdict::Fail)));
        assert_eq!(sentence, "No rate keeps p99 within 10ms on /a and /b.");
    }
}

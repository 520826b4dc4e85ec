//! Which of several targets carries more.
//!
//! Invariant: one carries more than another only if all of its runs met the bound at a rate at which none of the other's
//! did; otherwise the runs do not say.

use fiord_report::table::{Cell, Column, Table};
use fiord_stats::OrderBy;

use super::found::Found;
use crate::disks;
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
        Column::new("withheld", "WITHHELD"),
        Column::new("disks", "DISKS"),
    ]);
    for found in all {
        let [capacity, min, max] = match is_over {
            true => found.rates(),
            false => [Cell::None, Cell::None, Cell::None],
        };
        let met =
            found.search.medians().into_iter().find(|(rate, _)| Some(*rate) == found.search.sustained());
        let is_told = is_over && found.void.is_none();
        let response_ns = met.filter(|_| is_told).and_then(|(_, trial)| trial.response_ns);
        table.rows.push(vec![
            Cell::text(found.target.clone()),
            capacity,
            min,
            max,
            response_ns.map_or(Cell::None, Cell::Latency),
            Cell::Count(found.fastest()),
            Cell::text(found.limit().filter(|_| is_told)),
            Cell::Count(found.search.trials.len() as u64),
            Cell::text(found.void.map(|finding| finding.code.name())),
            Cell::List(disks::below([found.unpaced]).into_iter().map(str::to_string).collect()),
        ]);
    }
    table
}

/// The columns of the table that fit on a terminal, and matter.
pub(super) fn shown(table: &Table, all: &[Found<'_>]) -> Table {
    let is_any_withheld = all.iter().any(|found| found.void.is_some());
    let is_shown = |key: &&str| *key != "disks" && (*key != "withheld" || is_any_withheld);
    let keys: Vec<&str> = table.columns.iter().map(|column| column.key).filter(is_shown).collect();
    table.select(&keys)
}

/// Compares targets whose searches are over. Of one whose figures are void nothing is said but why.
pub(super) fn of(all: &[Found<'_>], percentile: &str, limit: &str) -> Comparison {
    let sound: Vec<&Found<'_>> = all.iter().filter(|found| found.withheld().is_none()).collect();
    let withheld = all.iter().filter_map(withheld);
    let mut sentences: Vec<String> = withheld.collect();
    let is_whole = sentences.is_empty();
    let (mut most, mut verdict) = (None, Some(Verdict::Undecided));
    match sound.as_slice() {
        [] => {}
        [only] => sentences.push(only.sentence(percentile, limit)),
        several => {
            let compared = compared(several, percentile, limit);
            if is_whole {
                (most, verdict) = (compared.most, compared.verdict);
            }
            let of = if is_whole { "" } else { "Of the other targets: " };
            sentences.push(format!("{of}{}", compared.sentence));
        }
    }
    let disks = all.iter().map(|found| (found.name.as_str(), disks::below([found.unpaced])));
    sentences.extend(disks::shared(disks));
    Comparison { sentence: sentences.join(" "), most, verdict }
}

fn withheld(found: &Found<'_>) -> Option<String> {
    let why = found.withheld()?;
    Some(format!("{} what {} carries, because {why}.", Verdict::Undecided.word(), found.name))
}

/// Compares targets whose figures are sound.
fn compared(all: &[&Found<'_>], percentile: &str, limit: &str) -> Comparison {
    let mut ranked: Vec<usize> =
        (0..all.len()).filter(|index| all[*index].search.sustained().is_some()).collect();
    ranked.order_by_key(|index| std::cmp::Reverse(all[*index].search.sustained()));
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
            "{} which carries more, because their repeated runs overlap: {}.{failed}",
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
    use fiord_report::{Code, Finding, RunReport, Subject};

    use super::*;
    use crate::capacity::search::{Search, Trial};

    /// A target whose runs at these rates met the bound, or did not; each is run three times.
    fn found<'r>(name: &str, report: &'r RunReport, runs: &[(u64, bool)]) -> Found<'r> {
        let mut search = Search::from(10_000.0);
        let trial = |(rate, meets): &(u64, bool)| Trial {
            rate: *rate,
            response_ns: Some(5),
            lost: 0,
            meets: *meets,
            report,
        };
        search.trials = runs.iter().flat_map(|run| [run; 3]).map(trial).collect();
        let (name, subject) = (name.to_string(), name.to_string());
        Found { target: None, name, subject, unpaced: report, search, void: None }
    }

    /// A report of a run on files whose devices have these names and names below them.
    fn on_devices(devices: &[(&str, &[&str])]) -> RunReport {
        let mut report =
            RunReport { devices: vec![Default::default(); devices.len()], ..RunReport::default() };
        for (used, (name, below)) in report.devices.iter_mut().zip(devices) {
            used.device.name = (*name).to_string();
            used.below = below.iter().map(|name| (*name).to_string()).collect();
        }
        report
    }

    #[test]
    fn of_a_target_whose_figures_are_void_nothing_is_said_but_why() {
        let report = RunReport::default();
        let subject = Subject::Device("sda".to_string());
        let shared = Finding::new(Code::DiskShared, subject, "other programs transferred 2GiB", "");
        let mut all = [
            found("/a", &report, &[(900, true), (950, false)]),
            found("/b", &report, &[(500, true), (600, false)]),
            found("/c", &report, &[(400, true), (450, false)]),
        ];
        all[0].void = Some(&shared);
        let why = "because other programs transferred 2GiB (disk-shared, device sda).";
        let compared = of(&all, "p99", "10ms");
        assert_eq!(
            compared.sentence,
            format!(
                "CANNOT TELL what /a carries, {why} Of the other targets: /b carries most: its repeated runs do not \
                 overlap with those of the others (/b 500 to 600, /c 400 to 450)."
            )
        );
        assert_eq!((compared.most, compared.verdict), (None, Some(Verdict::Undecided)));
        let of_two = of(&all[..2], "p99", "10ms");
        assert!(
            of_two.sentence.starts_with(&format!("CANNOT TELL what /a carries, {why} /b sustains 500 ")),
            "{}",
            of_two.sentence
        );
        assert_eq!(of_two.verdict, Some(Verdict::Undecided));
        assert_eq!(of(&all[..1], "p99", "10ms").sentence, format!("CANNOT TELL what /a carries, {why}"));
        let of_each = table(&all, true);
        let told = of_each.select(&["capacity_iops", "capacity_iops_min", "response_ns", "withheld"]).rows;
        assert_eq!(told[0], [Cell::None, Cell::None, Cell::None, Cell::Text("disk-shared".to_string())]);
        assert_eq!(told[1], [Cell::Count(500), Cell::Count(500), Cell::Latency(5), Cell::None]);
        assert_eq!((all[0].line().knee, all[0].limit()), (None, None));
    }

    #[test]
    fn targets_on_the_same_disk_are_named() {
        let runs: Runs<'_> = &[(400, true), (500, false)];
        let of_disk = |report: &RunReport, other: &RunReport| {
            let all = [found("/a", report, runs), found("/b", other, runs)];
            of(&all, "p99", "10ms")
                .sentence
                .split_once(": /a 400 to 500, /b 400 to 500.")
                .unwrap()
                .1
                .to_string()
        };
        let (one, two) = (on_devices(&[("sda1", &["sda"]), ("sda", &[])]), on_devices(&[("sda", &[])]));
        assert_eq!(
            of_disk(&one, &two),
            " /a and /b are on the same disk (sda): a difference between them is not one between disks."
        );
        let raid: &[(&str, &[&str])] = &[("md0", &["sdb", "sdc"]), ("sdb", &[]), ("sdc", &[])];
        assert!(of_disk(&on_devices(raid), &on_devices(raid)).contains("on the same disks (sdb, sdc): "));
        assert_eq!(of_disk(&one, &on_devices(raid)), "");
        assert_eq!(of_disk(&RunReport::default(), &RunReport::default()), "", "nothing is known of them");
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
            "CANNOT TELL which carries more, because their repeated runs overlap: /a 400 to 500, /b 420 to 450."
        );
        // One without an upper end may carry any rate.
        assert_eq!(compared(&[&[(900, true), (950, false)], &[(400, true)]]).1, Some(Verdict::Undecided));
    }

    /// Its runs disagree down to the last: nothing is said of it, and of the other what it carries.
    #[test]
    fn one_whose_runs_disagree_is_neither_failing_nor_compared() {
        let unclear: Runs<'_> = &[(900, true), (900, false), (700, false)];
        let (most, verdict, sentence) = compared(&[unclear, &[(500, true), (600, false)]]);
        assert_eq!((most, verdict), (None, Some(Verdict::Undecided)));
        assert!(
            sentence.starts_with("CANNOT TELL what /a carries, because its runs disagree: "),
            "{sentence}"
        );
        assert!(sentence.contains(" /b sustains 500 "), "{sentence}");
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

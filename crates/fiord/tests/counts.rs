//! What is declared in one place is found in every place: reports and their readers, the history, metrics, exports, conditions,
//! explanations and the documentation.

use fiord_compare::{Condition, Decision, NamedRun, Side, gate};
use fiord_import::{JobFigures, Report};
use fiord_report::table::Cell;
use fiord_report::{Format, JobReport, RunReport, TerseVersion};
use fiord_stats::{Count, Counts};

/// A run of a job that recorded each count, each with another number.
fn run() -> RunReport {
    let mut job = JobReport { name: "db: main".to_string(), ..JobReport::default() };
    job.stats.directions[1].ios = 7;
    job.stats.directions[1].runtime_ms = 1000;
    for (count, number) in Count::ALL.iter().zip(100..) {
        let of_writes = &mut job.stats.directions[1].counts;
        let counts = if count.is_of_directions() { of_writes } else { &mut job.stats.counts };
        counts.add(count, number);
    }
    RunReport { version: "fio-3.42".to_string(), jobs: vec![job], ..RunReport::default() }
}

/// The counts of a job of a report, and those of its writes.
fn read_back(report: &Report) -> Vec<(&'static str, u64)> {
    let JobFigures { counts, directions, .. } = &report.jobs[0];
    let of = |counts: &Counts| counts.iter().map(|(count, number)| (count.key, number)).collect::<Vec<_>>();
    let mut all = of(counts);
    all.extend(directions.iter().flat_map(|of_direction| of(&of_direction.counts)));
    all.sort_unstable();
    all
}

#[test]
fn a_count_that_is_declared_is_found_wherever_figures_are() {
    let run = run();
    let mut expected: Vec<_> = Count::ALL.iter().map(|count| count.key).zip(100..).collect();
    expected.sort_unstable();
    for format in [Format::Json, Format::JsonPlus, Format::Normal] {
        let text = fiord_report::render(&run, &[format], TerseVersion::V3);
        let report = fiord_import::best(fiord_import::read(&text).unwrap()).unwrap();
        assert_eq!(read_back(&report), expected, "{format:?}\n{text}");
    }
    assert_eq!(fiord_store::decode(&fiord_store::encode(&run).unwrap()).unwrap(), run);

    let metrics = fiord_metrics::prometheus_text(&fiord_metrics::families(&run));
    let columns = fiord_export::direction_columns();
    let cells = fiord_export::direction_cells(Some(&run));
    let runs = vec![NamedRun::of_run("", &run).unwrap()];
    let side = Side { name: "run".to_string(), runs, ..Side::default() };
    let described = include_str!("../../../docs/json.md");
    for (count, number) in Count::ALL.iter().zip(100_u64..) {
        let key = count.key;
        let sample = metrics.lines().find(|line| line.starts_with(&format!("{}{{", count.metric)));
        assert!(sample.is_some_and(|sample| sample.ends_with(&format!(" {number}"))), "{key}: {metrics}");

        let (prefix, subject) = if count.is_of_directions() { ("write_", "write") } else { ("", "job") };
        let column = columns.iter().position(|(column, _)| column.key == format!("{prefix}{key}"));
        assert_eq!(cells[column.unwrap()], Cell::Count(number), "{key}");

        for (limit, decision) in [(number - 1, Decision::Holds), (number, Decision::Clear)] {
            let condition: Condition = format!("{subject}.{key} > {limit}").parse().unwrap();
            let outcomes = gate::outcomes(side.clone(), &[condition]);
            assert_eq!(outcomes[0].decision, decision, "{key}: {}", outcomes[0].why);
        }

        assert_eq!(fiord_explain::lookup::line(key).unwrap().meaning, count.meaning);
        assert!(described.contains(&format!("{key}` | integer, absent | {}", count.meaning)), "{key}");
    }
}

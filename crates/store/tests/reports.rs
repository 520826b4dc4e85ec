//! What is kept of a report, and what it costs.
//!
//! Invariant: every format renders the same bytes from what was kept as from what was measured.

#![allow(clippy::unwrap_used, reason = "tests panic when something is wrong")]

#[path = "../../report/tests/fixture/mod.rs"]
mod fixture;

use fiord_report::{Format, RunReport, TerseVersion, Unified, render};
use fiord_stats::Histogram;
use fiord_store::{Trouble, decode, encode, form};
use proptest::prelude::*;

/// The report in every format there is.
fn rendered(report: &RunReport) -> Vec<String> {
    let terse = [2, 3, 4, 5].map(|number| TerseVersion::from_number(number).unwrap());
    let terse = terse.map(|version| render(report, &[Format::Terse], version));
    let others = [Format::Normal, Format::Json, Format::JsonPlus];
    let others = others.map(|format| render(report, &[format], TerseVersion::V3));
    terse.into_iter().chain(others).collect()
}

fn assert_comes_back(report: &RunReport) {
    let back = decode(&encode(report)).unwrap();
    assert_eq!(rendered(&back), rendered(report));
    assert_eq!(&back, report);
}

#[test]
fn a_report_that_uses_everything_comes_back() {
    let mut report = fixture::run();
    assert_comes_back(&report);
    for unified in [Unified::Mixed, Unified::Both] {
        report.jobs.iter_mut().for_each(|job| job.show.unified = unified);
        assert_comes_back(&report);
    }
    let first = report.jobs[0].clone();
    report.jobs[0].merge(&first);
    assert_comes_back(&report);
    assert_comes_back(&RunReport::default());
}

#[test]
fn what_form_1_kept_still_reads() {
    let kept = include_bytes!("form-1.bin");
    let report = decode(kept).unwrap();
    let job = &report.jobs[0];
    assert_eq!(job.stats.directions[1].completion.running.max, 501_500);
    assert_eq!(job.stats.directions[1].completion.percentiles(&[50.0]), [250_880]);
    assert_eq!(job.options[1], ("group_reporting".to_owned(), String::new()));
    assert_eq!(report.jobs[1].error_text, "operation trim, file /dev/sdz, offset 4096: Input/output error");
    assert_eq!(report.disks[0].members[1].figures.util_percent, 45.5);
    // Form 2 adds one field to a job.
    assert!(report.jobs.iter().all(|job| !job.unstarted));
    assert_eq!(encode(&report).len(), kept.len() + report.jobs.len());
}

#[test]
fn a_later_form_is_refused_by_its_number() {
    let mut bytes = encode(&fixture::run());
    bytes[0] = 99;
    assert!(matches!(decode(&bytes), Err(Trouble::NewerReport { found: 99, known: 2 })));
}

#[test]
fn jobs_of_a_large_run_take_few_bytes() {
    let mut report = fixture::run();
    let job = report.jobs.swap_remove(0);
    report.jobs = vec![job; 1000];
    let bins = |histogram: &Histogram| histogram.occupied().count();
    let latencies = |direction: &fiord_stats::DirectionStats| {
        bins(&direction.submission.histogram)
            + bins(&direction.completion.histogram)
            + bins(&direction.total.histogram)
    };
    let stats = &report.jobs[0].stats;
    let occupied =
        stats.directions.iter().map(latencies).sum::<usize>() + bins(&stats.sync.latency.histogram);
    let bytes_per_job = encode(&report).len() / 1000;
    assert!(bytes_per_job < 600 + 4 * occupied, "{bytes_per_job} bytes with {occupied} bins");
}

proptest! {
    #[test]
    fn damaged_reports_are_refused(
        place in any::<prop::sample::Index>(),
        change in 1..=u8::MAX,
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&fixture::run());
        let place = place.index(bytes.len());
        bytes[place] ^= change;
        prop_assert!(decode(&bytes).is_err());
        // What goes with its sum was never written by a fiord; it is refused or read, and no worse.
        let (told, sum) = bytes.split_last_chunk_mut::<8>().unwrap();
        *sum = form::sum(told);
        let _ = decode(&bytes);
        bytes.truncate(length.index(bytes.len()));
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn latencies_come_back(values in prop::collection::vec(any::<u64>(), 0..50), samples in prop::collection::vec(any::<u32>(), 0..9)) {
        let mut report = fixture::run();
        let direction = &mut report.jobs[0].stats.directions[2];
        for value in values {
            direction.completion.record(value);
            direction.total.record(value / 2);
        }
        samples.iter().for_each(|sample| direction.bandwidth.record(u64::from(*sample)));
        assert_comes_back(&report);
    }
}

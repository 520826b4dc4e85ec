//! The figures of several runs of the same jobs.
//!
//! Invariant: a figure has the values of all runs, in their order.

use fiord_report::{RepeatedFigure, RunReport};
use fiord_stats::steady::steady_from;
use fiord_stats::{Capped, job::DIRECTIONS};

/// Adds the figures of another run to those of the runs before it: of each job in each direction.
pub fn add_run(figures: &mut Vec<RepeatedFigure>, report: &RunReport) {
    for job in &report.jobs {
        for (direction, stats) in
            DIRECTIONS.iter().zip(&job.stats.directions).filter(|(_, stats)| stats.ios > 0)
        {
            let subject = format!("{}, {direction}", job.name);
            let seconds = stats.runtime_ms.max(1) as f64 / 1000.0;
            let synced = if *direction == "write" { job.stats.synced_writes(job.member_count) } else { None };
            let latency = synced.as_ref().unwrap_or(&stats.completion);
            let p99_ns = latency.percentiles(&[99.0]).first().copied();
            let of_run = [
                ("iops", "IOPS", Some(stats.ios as f64 / seconds)),
                ("mib_per_s", "MiB/s", Some(stats.bytes as f64 / f64::from(1 << 20) / seconds)),
                ("mean_ns", "MEAN", Some(latency.running.mean())),
                ("p99_ns", "P99", p99_ns.map(|ns| ns as f64)),
            ];
            for (figure, title, value) in of_run {
                let Some(value) = value.filter(|value| *value > 0.0) else { continue };
                match figures.iter_mut().find(|known| known.subject == subject && known.figure == figure) {
                    Some(known) => known.runs.push(value),
                    None => figures.push(RepeatedFigure {
                        subject: subject.clone(),
                        figure: figure.to_string(),
                        title: title.to_string(),
                        runs: vec![value],
                        left_out: 0,
                    }),
                }
            }
        }
    }
    leave_out_unsteady(figures);
}

/// What is steady is decided by the throughput of each subject, and holds for all of its figures.
fn leave_out_unsteady(figures: &mut [RepeatedFigure]) {
    let throughput = figures.iter().filter(|one| one.figure == "mib_per_s");
    let from: Vec<(String, usize, u32)> = throughput
        .map(|one| (one.subject.clone(), one.runs.len(), u32::capped(steady_from(&one.runs).unwrap_or(0))))
        .collect();
    for one in figures {
        let known = from.iter().find(|(subject, runs, _)| *subject == one.subject && *runs == one.runs.len());
        one.left_out = known.map_or(0, |(.., left_out)| *left_out);
    }
}

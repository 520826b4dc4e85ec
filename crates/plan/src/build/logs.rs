//! Which log files a worker writes.
//!
//! Invariant: names are `PREFIX_KIND.N.log`, N counted from 1 over all workers of the run.

use std::path::PathBuf;

use fiord_options::value::{LogWindowValue, OptionalText};

use super::source::Source;
use crate::job::{ClockSource, Measure, Process};
use crate::logs::{LogFile, LogKind, Logs, PriorityColumn, WindowValue};

/// The kernel's number of the real-time I/O class, and of the one a priority without class means.
const REAL_TIME: u8 = 1;
const BEST_EFFORT: u8 = 2;

/// The logs of the worker of this name and number, if it writes any.
pub(crate) fn logs(
    source: &Source<'_>,
    name: &str,
    number: u32,
    measure: &Measure,
    process: &Process,
) -> Option<Logs> {
    let options = source.options;
    let files = files(source, name, number, measure);
    if files.is_empty() {
        return None;
    }
    let window_ms = u64::from(options.log_avg_msec);
    Some(Logs {
        files,
        window_ms: (window_ms > 0).then_some(window_ms),
        bandwidth_window_ms: window_ms.min(measure.bandwidth_interval_ms),
        iops_window_ms: window_ms.min(measure.iops_interval_ms),
        histogram_window_ms: u64::from(options.log_hist_msec),
        coarseness: options.log_hist_coarseness,
        value: match options.log_window_value {
            LogWindowValue::Average => WindowValue::Average,
            LogWindowValue::Maximum => WindowValue::Maximum,
            LogWindowValue::Both => WindowValue::Both,
        },
        with_offset: options.log_offset,
        priority: priority(options.log_prio, process),
        entries_ahead: options.log_entries,
        clock_id: options.log_alternate_epoch.then_some(options.log_alternate_epoch_clock_id),
    })
}

/// The log files of the worker of this name and number.
pub(crate) fn files(source: &Source<'_>, name: &str, number: u32, measure: &Measure) -> Vec<LogFile> {
    let options = source.options;
    let clocked = measure.clock != ClockSource::None;
    let mut files = Vec::new();
    let mut add = |prefix: &Option<OptionalText>, kind: LogKind, recorded: bool| {
        let Some(OptionalText(prefix)) = prefix else { return };
        // A job's name may hold what would name a directory.
        let prefix = prefix.clone().unwrap_or_else(|| name.replace('/', "_"));
        let file = match options.per_job_logs {
            true => format!("{prefix}_{}.{}.log", kind.word(), number + 1),
            false => format!("{prefix}_{}.log", kind.word()),
        };
        files.push(LogFile { kind, path: PathBuf::from(file), recorded, appends: !options.per_job_logs });
    };
    let latencies = [
        (LogKind::Submission, measure.submission),
        (LogKind::Completion, measure.completion),
        (LogKind::Total, measure.total),
    ];
    for (kind, recorded) in latencies.into_iter().filter(|(_, recorded)| *recorded) {
        add(&options.write_lat_log, kind, recorded);
    }
    let histograms = measure.completion && options.log_hist_msec > 0;
    add(&options.write_hist_log, LogKind::Histogram, histograms);
    add(&options.write_bw_log, LogKind::Bandwidth, clocked && measure.bandwidth);
    add(&options.write_iops_log, LogKind::Iops, clocked);
    files
}

fn priority(packed: bool, process: &Process) -> PriorityColumn {
    let level = process.io_priority.unwrap_or(0);
    let given = process.io_class.is_some() || process.io_priority.is_some();
    let class = process.io_class.unwrap_or(if given { BEST_EFFORT } else { 0 });
    match packed {
        true => PriorityColumn::Packed(u16::from(class) << 13 | u16::from(level)),
        false => PriorityColumn::Flag(class == REAL_TIME),
    }
}

#[cfg(test)]
mod tests {
    use fiord_options::expand::{Environment, Machine};
    use fiord_options::{cli, job};

    use super::*;
    use crate::build::measure;

    /// The logs of worker number 2 with these options.
    fn planned(options: &str) -> Option<Logs> {
        // A bare option is one of job files.
        let file = |_: &str| Ok(b"[a/b]\nsize=1m\nwrite_bw_log\n".to_vec());
        let no_variable = |_: &str| None;
        let machine = Machine { cpus: 1, memory_mib: 1, page_bytes: 4096 };
        let environment = Environment { files: &file, variables: &no_variable, machine };
        let words = match options {
            "a job file" => "job.fio".to_string(),
            options => format!("--name=a/b --size=1m {options}"),
        };
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        let section = cli::read(&words, &environment).unwrap().sections.remove(0);
        let (options, given, _) = job::resolve(&section);
        let source = Source { section: &section, options: &options, given: &given };
        let class = options.prioclass.map(|_| REAL_TIME);
        let process = Process { io_class: class, io_priority: Some(4), ..Process::default() };
        logs(&source, "a/b", 2, &measure::measure(&source), &process)
    }

    /// Names of the files, those that stay empty in brackets.
    fn names(options: &str) -> String {
        let name = |file: &LogFile| match file.recorded {
            true => file.path.display().to_string(),
            false => format!("[{}]", file.path.display()),
        };
        planned(options)
            .map_or(String::new(), |logs| logs.files.iter().map(name).collect::<Vec<String>>().join(" "))
    }

    #[test]
    fn files_are_named_by_prefix_kind_and_worker() {
        assert_eq!(names(""), "");
        assert_eq!(names("--write_bw_log=d/l --write_iops_log=m"), "d/l_bw.3.log m_iops.3.log");
        assert_eq!(names("--write_lat_log=l --per_job_logs=0"), "l_slat.log l_clat.log l_lat.log");
        assert_eq!(names("a job file"), "a_b_bw.3.log", "the job's name where there is no prefix");
    }

    #[test]
    fn what_is_not_measured_is_not_logged() {
        assert_eq!(names("--write_lat_log=l --disable_clat=1"), "l_slat.3.log l_lat.3.log");
        assert_eq!(names("--write_hist_log=h"), "[h_clat_hist.3.log]");
        assert_eq!(names("--write_hist_log=h --log_hist_msec=9 --disable_clat=1"), "[h_clat_hist.3.log]");
        let all = "--write_bw_log=l --write_iops_log=l --write_lat_log=l";
        assert_eq!(names(&format!("{all} --gtod_reduce=1")), "[l_bw.3.log] [l_iops.3.log]");
    }

    #[test]
    fn windows_of_rates_are_as_given_unless_their_samples_are_given_shorter() {
        // The bw and iops windows; that of latencies is always as given. Line counts of fio 3.33 agree but for the
        // last, where the manual has the minimum.
        for (options, expected) in [
            ("--log_avg_msec=250", (250, 250)),
            ("--log_avg_msec=1000", (1000, 1000)),
            ("--log_avg_msec=2000", (2000, 2000)),
            ("--log_avg_msec=1000 --bwavgtime=200", (200, 1000)),
            ("--log_avg_msec=1000 --bwavgtime=500 --iopsavgtime=500", (500, 500)),
            ("--log_avg_msec=200 --bwavgtime=1000", (200, 200)),
        ] {
            let logs = planned(&format!("--write_bw_log=l --write_iops_log=l {options}")).unwrap();
            assert_eq!((logs.bandwidth_window_ms, logs.iops_window_ms), expected, "{options}");
        }
        assert_eq!(planned("--write_bw_log=l").unwrap().window_ms, None);
    }

    #[test]
    fn priorities_are_flagged_or_packed() {
        let column = |options: &str| planned(&format!("--write_bw_log=l {options}")).unwrap().priority;
        assert_eq!(column(""), PriorityColumn::Flag(false));
        assert_eq!(column("--prioclass=1"), PriorityColumn::Flag(true));
        assert_eq!(column("--prioclass=1 --log_prio=1"), PriorityColumn::Packed(0x2004));
        assert_eq!(column("--log_prio=1"), PriorityColumn::Packed(0x4004));
    }
}

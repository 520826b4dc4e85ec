//! Which log files a worker writes.
//!
//! Invariant: names are `PREFIX_KIND.N.log`, N counted from 1 over all workers of the run.

use std::ffi::OsStr;
use std::path::PathBuf;

use fiord_options::job::JobOptions;
use fiord_options::value::{LogWindowValue, OptionalText};
use fiord_options::{Problem, Section, job};

use super::section::ResolvedSection;
use super::{names, pace, process, stream};
use crate::access::Direction;
use crate::facts::{Facts, RunSettings};
use crate::files::as_file_name;
use crate::job::{ClockSource, Measure};
use crate::logs::{LogFile, LogKind, Logs, WindowValue};

/// The CPUs that compress and write a section's logs; empty is all.
pub(crate) fn cpus(section: &ResolvedSection<'_>, facts: &Facts, problems: &mut Vec<Problem>) -> Vec<u32> {
    let wanted =
        section.options.measure.log_compression_cpus.as_ref().map_or_else(Vec::new, |set| set.0.clone());
    process::online(section, job::Measure::log_compression_cpus, wanted, facts, problems)
}

/// The logs of the worker of this name and number, if it writes any; `cpus` write them.
pub(crate) fn logs(
    section: &ResolvedSection<'_>,
    name: &OsStr,
    number: u32,
    measure: &Measure,
    priority: u16,
    cpus: Vec<u32>,
    run: &RunSettings,
) -> Option<Logs> {
    let options = section.options;
    let files = files(section, name, number, measure);
    if files.is_empty() {
        return None;
    }
    let window_ms = u64::from(options.measure.log_avg_msec);
    Some(Logs {
        files,
        are_sent: run.sends_logs,
        window_ms: (window_ms > 0).then_some(window_ms),
        bandwidth_window_ms: window_ms.min(measure.bandwidth_interval_ms),
        iops_window_ms: window_ms.min(measure.iops_interval_ms),
        histogram_window_ms: u64::from(options.measure.log_hist_msec),
        coarseness: options.measure.log_hist_coarseness,
        value: match options.measure.log_window_value {
            LogWindowValue::Average => WindowValue::Average,
            LogWindowValue::Maximum => WindowValue::Maximum,
            LogWindowValue::Both => WindowValue::Both,
        },
        with_offset: options.measure.log_offset,
        priority,
        shows_priority: options.measure.log_prio,
        with_issue_time: options.measure.log_issue_time,
        held_chunk_bytes: options.measure.log_compression.map(u64::from),
        cpus,
        entries_ahead: options.measure.log_entries,
        clock_id: options.measure.log_alternate_epoch.then_some(options.measure.log_alternate_epoch_clock_id),
    })
}

/// The path of a log of a section's worker, by its clone and its number in the run; `None` if the section requests none of
/// this kind.
pub fn log_path(
    section: &Section,
    options: &JobOptions,
    (clone, number): (u32, u32),
    kind: LogKind,
) -> Option<PathBuf> {
    path_of(options, names::worker_name(section, options, clone), number, kind)
}

/// The path of a log of the worker of this name and number.
fn path_of(options: &JobOptions, name: &OsStr, number: u32, kind: LogKind) -> Option<PathBuf> {
    let prefix = match kind {
        LogKind::Bandwidth => &options.measure.write_bw_log,
        LogKind::Iops => &options.measure.write_iops_log,
        LogKind::Histogram | LogKind::ResponseHistogram => &options.measure.write_hist_log,
        LogKind::Submission | LogKind::Completion | LogKind::Total | LogKind::Response => {
            &options.measure.write_lat_log
        }
    };
    let OptionalText(prefix) = prefix.as_ref()?;
    let mut file = prefix.clone().unwrap_or_else(|| as_file_name(name));
    let ending = if is_compressed(options, kind) { "log.fz" } else { "log" };
    file.push(match options.measure.per_job_logs {
        true => format!("_{}.{}.{ending}", kind.word(), u64::from(number) + 1),
        false => format!("_{}.{ending}", kind.word()),
    });
    Some(PathBuf::from(file))
}

fn is_compressed(options: &JobOptions, kind: LogKind) -> bool {
    // The compressed form has no place for the bins of a histogram.
    options.measure.log_store_compressed && !kind.is_histogram()
}

/// The log files of the worker of this name and number.
pub(crate) fn files(
    section: &ResolvedSection<'_>,
    name: &OsStr,
    number: u32,
    measure: &Measure,
) -> Vec<LogFile> {
    let options = section.options;
    let clocked = measure.clock != ClockSource::None;
    let mut files = Vec::new();
    let mut add = |kind: LogKind, recorded: bool| {
        let Some(path) = path_of(options, name, number, kind) else { return };
        let is_compressed = is_compressed(options, kind);
        files.push(LogFile { kind, path, recorded, appends: !options.measure.per_job_logs, is_compressed });
    };
    let responds = measure.total && has_rate(section);
    // As in fio, a call on a name has one latency, and moves nothing.
    let calls_names = section.engine().is_some_and(|engine| engine.name_call().is_some());
    let latencies = [
        (LogKind::Submission, measure.submission),
        (LogKind::Completion, measure.completion),
        (LogKind::Total, measure.total || (calls_names && !options.measure.disable_lat && clocked)),
        (LogKind::Response, responds),
    ];
    for (kind, _) in latencies.into_iter().filter(|(_, is_written)| *is_written) {
        add(kind, kind != LogKind::Total || measure.total);
    }
    let has_windows = options.measure.log_hist_msec > 0;
    add(LogKind::Histogram, measure.completion && has_windows);
    if responds {
        add(LogKind::ResponseHistogram, has_windows);
    }
    add(LogKind::Bandwidth, clocked && measure.bandwidth && !calls_names);
    add(LogKind::Iops, clocked && !calls_names);
    files
}

/// Whether a direction in which the section does I/O has a rate, so that its I/Os have intended starts.
fn has_rate(section: &ResolvedSection<'_>) -> bool {
    let pattern = stream::pattern(section.options.access.rw.kind);
    Direction::ALL
        .into_iter()
        .any(|direction| pattern.includes(direction) && pace::has_rate(section.options, direction))
}

#[cfg(test)]
mod tests {
    use fiord_options::environment::{Environment, KeywordValues};
    use fiord_options::{cli, resolve_job};

    use super::*;
    use crate::build::measure;
    use crate::testing::ENGINES;

    /// The logs of worker number 2 with these options.
    fn planned(options: &str) -> Option<Logs> {
        // A bare option is one of job files.
        let file = |_: &OsStr| Ok(b"[a/b]\nsize=1m\nwrite_bw_log\n".to_vec());
        let no_variable = |_: &OsStr| None;
        let keywords = KeywordValues { cpus: 1, memory_mib: 1, page_bytes: 4096 };
        let engines = ENGINES.names();
        let environment = Environment { files: &file, variables: &no_variable, keywords, engines: &engines };
        let words = match options {
            "a job file" => "job.fio".to_string(),
            options => format!("--name=a/b --size=1m {options}"),
        };
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        let parsed = cli::read(&words, &environment).unwrap().sections.remove(0);
        let (options, given, _) = resolve_job(&parsed, &ENGINES.names());
        let section = ResolvedSection { parsed: &parsed, options: &options, given: &given, engines: ENGINES };
        logs(
            &section,
            OsStr::new("a/b"),
            2,
            &measure::measure(&section),
            0x2004,
            vec![1],
            &RunSettings::default(),
        )
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
        let compressed = "--write_bw_log=l --write_hist_log=l --log_hist_msec=9 --log_store_compressed=1";
        assert_eq!(names(compressed), "l_clat_hist.3.log l_bw.3.log.fz");
        assert_eq!(names("a job file"), "a_b_bw.3.log", "the job's name where there is no prefix");
    }

    #[test]
    fn logs_stay_in_memory_in_chunks_of_log_compression() {
        let held = |options: &str| planned(&format!("--write_bw_log=l {options}")).unwrap().held_chunk_bytes;
        assert_eq!((held(""), held("--log_compression=64k")), (None, Some(64 << 10)));
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
    fn latencies_of_a_job_with_a_rate_have_a_log_from_the_intended_start_as_well() {
        let log = "--rw=randread --write_lat_log=l";
        let all = "l_slat.3.log l_clat.3.log l_lat.3.log l_resp.3.log";
        for rate in ["--rate=1m", "--rate_iops=9", "--rate_iops=9 --rate_arrivals=open", "--rate_iops=9,0"] {
            assert_eq!(names(&format!("{log} {rate}")), all, "{rate}");
        }
        let none = "l_slat.3.log l_clat.3.log l_lat.3.log";
        for rate in ["--rate_iops=0", "--rate_iops=,9", "--rate_min=1m", "--thinktime=9"] {
            assert_eq!(names(&format!("{log} {rate}")), none, "{rate}");
        }
        assert_eq!(names("--rw=randrw --write_lat_log=l --rate_iops=,9"), all);
        assert_eq!(names(&format!("{log} --rate=1m --disable_lat=1")), "l_slat.3.log l_clat.3.log");
        let histograms = "--rw=write --write_hist_log=h --rate=1m";
        assert_eq!(
            names(&format!("{histograms} --log_hist_msec=9 --log_store_compressed=1")),
            "h_clat_hist.3.log h_resp_hist.3.log"
        );
        assert_eq!(names(histograms), "[h_clat_hist.3.log] [h_resp_hist.3.log]");
    }

    // divergence: windows of bandwidth and I/Os per second
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
}

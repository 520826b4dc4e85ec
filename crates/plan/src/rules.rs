//! Rules between options of one job: one function each, that says what is wrong or odd, or nothing.
//!
//! Invariant: a rule looks at one section alone and changes nothing; `all` runs every rule there is.

use fiord_options::Problem;
use fiord_options::value::Size;

use crate::build::source::Source;
use crate::build::stream::pattern;

/// A rule.
type Rule = fn(&Source<'_>) -> Option<Problem>;

/// Every rule.
const RULES: &[Rule] = &[
    numjobs_is_at_least_one,
    filename_is_given_once,
    time_based_needs_runtime,
    rate_excludes_rate_iops,
    rate_min_is_below_rate,
    rate_iops_min_is_below_rate_iops,
    rate_iops_counts_smallest_blocks,
    size_holds_a_block,
    spin_is_part_of_thinktime,
    thinktime_options_need_thinktime,
    batch_complete_range_is_ordered,
    queue_depth_needs_a_queue,
    mmap_is_never_direct,
    unaligned_blocks_are_not_direct,
    append_excludes_overwrite,
    huge_pages_are_larger_than_pages,
    log_options_need_a_log,
    histogram_logs_need_a_window,
    log_clock_exists,
];

/// What every rule says of a section.
pub(crate) fn all(source: &Source<'_>) -> Vec<Problem> {
    RULES.iter().filter_map(|rule| rule(source)).collect()
}

fn directions<T>(values: &fiord_options::value::PerDirection<T>, number: impl Fn(&T) -> u64) -> [u64; 3] {
    [&values.read, &values.write, &values.trim].map(|value| value.as_ref().map_or(0, &number))
}

fn numjobs_is_at_least_one(source: &Source<'_>) -> Option<Problem> {
    (source.options.numjobs == 0)
        .then(|| source.error("numjobs", "no worker is left to do the job", "allowed: 1 or more"))
}

/// fio adds up names, also those of `[global]`; most who write it that way expect the last one to count.
fn filename_is_given_once(source: &Source<'_>) -> Option<Problem> {
    let names: Vec<&str> =
        source.given.all("filename").filter_map(|setting| setting.value.as_deref()).collect();
    (names.len() > 1).then(|| {
        let message = format!("given {} times; all of them are used: {}", names.len(), names.join(", "));
        source.warning("filename", message, "")
    })
}

/// fio warns, and the job ends when its size is done.
fn time_based_needs_runtime(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    (options.time_based.0 && options.runtime.us == 0).then(|| {
        source.fios_warning(
            "time_based",
            "time_based has no effect without runtime",
            "for example runtime=60",
        )
    })
}

fn rate_excludes_rate_iops(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    let bytes = directions(&options.rate, |rate| rate.0);
    let ios = directions(&options.rate_iops, |rate| u64::from(*rate));
    (bytes.iter().zip(ios).any(|(bytes, ios)| *bytes > 0 && ios > 0)).then(|| {
        let message = "rate and rate_iops are mutually exclusive";
        source.error("rate_iops", message, "give one of them")
    })
}

fn rate_min_is_below_rate(source: &Source<'_>) -> Option<Problem> {
    let rate = directions(&source.options.rate, |rate| rate.0);
    let least = directions(&source.options.rate_min, |rate| rate.0);
    let above = rate.iter().zip(least).any(|(rate, least)| *rate > 0 && least > *rate);
    above.then(|| {
        source.error("rate_min", "the minimum rate exceeds the rate", "lower rate_min or raise rate")
    })
}

fn rate_iops_min_is_below_rate_iops(source: &Source<'_>) -> Option<Problem> {
    let rate = directions(&source.options.rate_iops, |rate| u64::from(*rate));
    let least = directions(&source.options.rate_iops_min, |rate| u64::from(*rate));
    let above = rate.iter().zip(least).any(|(rate, least)| *rate > 0 && least > *rate);
    above.then(|| {
        let message = "the minimum rate exceeds the rate";
        source.error("rate_iops_min", message, "lower rate_iops_min or raise rate_iops")
    })
}

/// fio turns `rate_iops` into bytes by the smallest block, so that larger ones come more rarely than it says.
fn rate_iops_counts_smallest_blocks(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    let sizes = crate::build::blocks::block_sizes(options);
    let limited = directions(&options.rate_iops, |rate| u64::from(*rate));
    let linear = options.rate_process == fiord_options::value::RateProcess::Linear;
    let direction = (0..3).find(|d| linear && limited[*d] > 0 && sizes[*d].min() < sizes[*d].max())?;
    let (ios, bytes) = (limited[direction], sizes[direction].min());
    let message = format!(
        "of blocks of several sizes {ios} of the smallest a second are allowed: {} bytes",
        ios * bytes
    );
    Some(source.warning(
        "rate_iops",
        message,
        "rate_process=poisson counts I/Os of any size; rate= counts bytes",
    ))
}

fn size_holds_a_block(source: &Source<'_>) -> Option<Problem> {
    let Some(Size::Bytes(size)) = source.options.size else { return None };
    let sizes = crate::build::blocks::block_sizes(source.options);
    let used = pattern(source.options.rw.kind);
    let occurs = |direction: &crate::Direction| used.includes(*direction);
    let smallest =
        crate::Direction::ALL.iter().filter(|one| occurs(one)).map(|one| sizes[one.index()].min()).min()?;
    (size > 0 && size < smallest).then(|| {
        let message = format!("{size} bytes are less than the shortest block of {smallest} bytes");
        source.error("size", message, "use a larger size= or a smaller bs=")
    })
}

fn spin_is_part_of_thinktime(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    (options.thinktime.us > 0 && options.thinktime_spin.us > options.thinktime.us).then(|| {
        let message = "spinning longer than the think time itself; the whole think time is spun";
        source.warning("thinktime_spin", message, "")
    })
}

fn thinktime_options_need_thinktime(source: &Source<'_>) -> Option<Problem> {
    if source.options.thinktime.us > 0 {
        return None;
    }
    let companions =
        ["thinktime_spin", "thinktime_blocks", "thinktime_blocks_type", "thinktime_iotime", "thinkcycles"];
    let given = companions.into_iter().find(|name| source.is_given(name))?;
    Some(source.warning(
        given,
        format!("{given} has no effect without thinktime"),
        "for example thinktime=1ms",
    ))
}

fn batch_complete_range_is_ordered(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    let most = options.iodepth_batch_complete_max.filter(|most| *most > 0)?;
    (options.iodepth_batch_complete_min > most).then(|| {
        let least = options.iodepth_batch_complete_min;
        let message =
            format!("at most {most} completions are taken at once and {least} waited for; {least} are taken");
        source.warning("iodepth_batch_complete_max", message, "")
    })
}

/// The write-up of many a benchmark has this trap in it: `iodepth=32` without an engine.
fn queue_depth_needs_a_queue(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    let queued = ["libaio", "io_uring"].contains(&options.ioengine.0);
    (options.iodepth > 1 && !queued && options.ioengine.0 != "null").then(|| {
        let message = format!("the engine {} is synchronous: the queue depth stays at 1", options.ioengine.0);
        source.warning("iodepth", message, "ioengine=io_uring or libaio keeps several I/Os in flight")
    })
}

fn mmap_is_never_direct(source: &Source<'_>) -> Option<Problem> {
    let direct = crate::build::targets::is_direct(source);
    (direct && source.options.ioengine.0 == "mmap")
        .then(|| source.warning("direct", "a mapping goes through the page cache, whatever direct= says", ""))
}

fn unaligned_blocks_are_not_direct(source: &Source<'_>) -> Option<Problem> {
    let direct = crate::build::targets::is_direct(source);
    let null = source.options.ioengine.0 == "null";
    (direct && source.options.bs_unaligned.0 && !null).then(|| {
        source.error(
            "bs_unaligned",
            "direct I/O needs block sizes that are multiples of the device's block",
            "",
        )
    })
}

fn append_excludes_overwrite(source: &Source<'_>) -> Option<Problem> {
    let options = source.options;
    (options.file_append && options.overwrite).then(|| {
        source.warning(
            "overwrite",
            "what is appended is not there to be overwritten; it is laid out first",
            "",
        )
    })
}

fn huge_pages_are_larger_than_pages(source: &Source<'_>) -> Option<Problem> {
    let bytes = source.options.hugepage_size.0;
    (!bytes.is_power_of_two() || bytes < 4096).then(|| {
        let message = format!("{bytes} bytes are not the size of a huge page");
        source.error("hugepage-size", message, "a power of two, usually 2m or 1g")
    })
}

fn log_options_need_a_log(source: &Source<'_>) -> Option<Problem> {
    let logs = ["write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"];
    if logs.into_iter().any(|log| source.is_given(log)) {
        return None;
    }
    let options = ["log_avg_msec", "log_hist_msec", "log_window_value", "log_offset", "log_prio"];
    let given = options.into_iter().find(|name| source.is_given(name))?;
    let message = format!("{given} has no effect without a log");
    Some(source.warning(given, message, "for example write_lat_log=run"))
}

fn histogram_logs_need_a_window(source: &Source<'_>) -> Option<Problem> {
    (source.is_given("write_hist_log") && source.options.log_hist_msec == 0).then(|| {
        let message = "the log of histograms stays empty without log_hist_msec";
        source.warning("write_hist_log", message, "for example log_hist_msec=1000")
    })
}

fn log_clock_exists(source: &Source<'_>) -> Option<Problem> {
    let id = source.options.log_alternate_epoch_clock_id;
    // Those of the kernel that count time; 10 was given up.
    (id > 11 || id == 10).then(|| {
        let message = format!("{id} is no clock of the kernel");
        source.error("log_alternate_epoch_clock_id", message, "allowed: 0 to 9, 11")
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use fiord_options::expand::{Environment, Machine};
    use fiord_options::{Severity, cli, job};

    use super::*;

    /// What one rule says of a job of these options.
    fn verdict(rule: Rule, options: &str) -> Option<Severity> {
        let no_file = |_: &str| Err(io::Error::from(io::ErrorKind::NotFound));
        let no_variable = |_: &str| None;
        let machine = Machine { cpus: 1, memory_mib: 1, page_bytes: 4096 };
        let environment = Environment { files: &no_file, variables: &no_variable, machine };
        let words = format!("--name=a --size=1m {options}");
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        let section = cli::read(&words, &environment).unwrap().sections.remove(0);
        let (options, given, _) = job::resolve(&section);
        let source = Source { section: &section, options: &options, given: &given };
        rule(&source).map(|problem| problem.severity)
    }

    #[test]
    fn each_rule_speaks_when_broken_and_is_silent_otherwise() {
        use Severity::{Error, FiosWarning, Warning};
        let cases: &[(Rule, &str, Severity, &str)] = &[
            (numjobs_is_at_least_one, "--numjobs=0", Error, "--numjobs=1"),
            (filename_is_given_once, "--filename=x --filename=y", Warning, "--filename=x:y"),
            (time_based_needs_runtime, "--time_based", FiosWarning, "--time_based --runtime=1"),
            (rate_excludes_rate_iops, "--rate=1m --rate_iops=5", Error, "--rate=1m,0 --rate_iops=0,5"),
            (rate_min_is_below_rate, "--rate=1m --rate_min=2m", Error, "--rate=2m --rate_min=1m"),
            (rate_min_is_below_rate, "--rate=1m,2m --rate_min=2m,1m", Error, "--rate_min=1m"),
            (rate_iops_min_is_below_rate_iops, "--rate_iops=1 --rate_iops_min=2", Error, "--rate_iops_min=2"),
            (
                rate_iops_counts_smallest_blocks,
                "--rate_iops=9 --bsrange=4k-8k",
                Warning,
                "--rate_iops=0,9 --bsrange=4k-8k,4k-4k",
            ),
            (size_holds_a_block, "--size=1k", Error, "--size=1k --bs=1k"),
            (size_holds_a_block, "--size=4k --bs=8k,1k", Error, "--size=4k --bs=8k,1k --rw=write"),
            (spin_is_part_of_thinktime, "--thinktime=1 --thinktime_spin=2", Warning, "--thinktime_spin=2"),
            (thinktime_options_need_thinktime, "--thinkcycles=9", Warning, "--thinktime=1 --thinkcycles=9"),
            (
                batch_complete_range_is_ordered,
                "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=2",
                Warning,
                "--iodepth_batch_complete_min=2 --iodepth_batch_complete_max=4",
            ),
            (queue_depth_needs_a_queue, "--iodepth=32", Warning, "--iodepth=32 --ioengine=libaio"),
            (mmap_is_never_direct, "--ioengine=mmap --direct=1", Warning, "--ioengine=mmap"),
            (unaligned_blocks_are_not_direct, "--direct=1 --bs_unaligned", Error, "--bs_unaligned"),
            (append_excludes_overwrite, "--file_append=1 --overwrite=1", Warning, "--overwrite=1"),
            (huge_pages_are_larger_than_pages, "--hugepage-size=3m", Error, "--hugepage-size=1g"),
            (log_options_need_a_log, "--log_offset=1", Warning, "--log_offset=1 --write_bw_log=l"),
            (
                histogram_logs_need_a_window,
                "--write_hist_log=l",
                Warning,
                "--write_hist_log=l --log_hist_msec=9",
            ),
            (
                log_clock_exists,
                "--log_alternate_epoch_clock_id=12",
                Error,
                "--log_alternate_epoch_clock_id=7",
            ),
        ];
        for (rule, broken, severity, kept) in cases {
            assert_eq!(verdict(*rule, broken), Some(*severity), "{broken}");
            assert_eq!(verdict(*rule, kept), None, "{kept}");
        }
        let tested = |rule: &Rule| cases.iter().any(|case| std::ptr::fn_addr_eq(case.0, *rule));
        assert!(RULES.iter().all(tested), "a rule is without a case");
    }
}

//! Rules between options of one job: one function each, which returns what is wrong or odd, if anything.
//!
//! Invariant: a rule looks at one section alone and changes nothing; `all` runs every rule.

use fiord_options::job;
use fiord_options::shown::shown;
use fiord_options::value::{EngineName, LogWindowValue, Size};
use fiord_options::{Problem, ProblemKind, Spec};

use super::blocks::block_sizes;
use super::section::ResolvedSection;
use super::stream::pattern;
use super::targets::is_direct;
use super::{buffers, pace, priority, queue, sprandom, steady, target_limits, zoned, zones};
use crate::engine::EngineDescriptor;

/// A rule.
type Rule = fn(&ResolvedSection<'_>) -> Option<Problem>;

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
    pace::open_arrivals_need_a_rate,
    batch_complete_range_is_ordered,
    queue_depth_needs_a_queue,
    mapping_is_never_direct,
    target_limits::atomic_needs_an_engine_with_flags,
    unaligned_blocks_are_not_direct,
    append_excludes_overwrite,
    huge_pages_are_larger_than_pages,
    log_options_need_a_log,
    histogram_logs_need_a_window,
    log_clock_exists,
    log_issue_time_needs_offsets_of_latencies,
    compressed_logs_have_one_value,
    start_clock_exists,
    zoned::zones_are_verified_by_reading_them,
    zoned::a_zone_has_room_for_its_capacity,
    zones::zonesize_goes_with_zonemode,
    sprandom::sprandom_is_one_random_write,
    sprandom::sprandom_has_its_generator,
    sprandom::sprandom_knows_the_spare_flash,
    sprandom::sprandom_options_need_sprandom,
    profile_acts_on_the_command_line,
    strided_zones_hold_a_block,
    zones::zoneskip_is_bytes_or_zones,
    zones::zone_options_need_zonemode,
    zones::stride_needs_a_sequence,
    zones::distribution_needs_random_io,
    replay_excludes_recording,
    steady::steady_window_holds_measurements,
    pace::latency_target_needs_a_clock,
    steady::steadystate_needs_a_duration,
    steady::steady_latency_is_measured,
    buffers::working_set_has_one_file,
    buffers::dedupe_options_need_duplicates,
    priority::percentage_excludes_bssplit,
    queue::offload_needs_descriptors,
];

/// What every rule says of a section.
pub(crate) fn all(section: &ResolvedSection<'_>) -> Vec<Problem> {
    RULES.iter().filter_map(|rule| rule(section)).collect()
}

fn directions<T>(values: &fiord_options::value::PerDirection<T>, number: impl Fn(&T) -> u64) -> [u64; 3] {
    [&values.read, &values.write, &values.trim].map(|value| value.as_ref().map_or(0, &number))
}

fn numjobs_is_at_least_one(section: &ResolvedSection<'_>) -> Option<Problem> {
    (section.options.general.numjobs == 0).then(|| {
        section.error(
            ProblemKind::InvalidValue,
            job::General::numjobs,
            "a job needs at least one worker",
            "allowed: 1 or more",
        )
    })
}

/// fio adds up names, also those of `[global]`; most who write it that way expect the last one to count.
fn filename_is_given_once(section: &ResolvedSection<'_>) -> Option<Problem> {
    let names: Vec<String> = section
        .given
        .all(job::Files::filename)
        .filter_map(|setting| setting.value.as_ref().map(shown))
        .collect();
    (names.len() > 1).then(|| {
        let message = format!("given {} times; all of them are used: {}", names.len(), names.join(", "));
        section.warning(ProblemKind::ReadDifferently, job::Files::filename, message, "")
    })
}

/// fio warns, and the job ends when its size is done.
fn time_based_needs_runtime(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.time.time_based.0 && options.time.runtime.us == 0).then(|| {
        section.fios_warning(
            ProblemKind::NoEffect,
            job::Time::time_based,
            "time_based has no effect without runtime",
            "for example runtime=60",
        )
    })
}

/// fio warns, too.
fn replay_excludes_recording(section: &ResolvedSection<'_>) -> Option<Problem> {
    let replay = &section.options.replay;
    (replay.read_iolog.is_some() && replay.write_iolog.is_some()).then(|| {
        let message = "read_iolog overrides write_iolog: what is replayed is not recorded again";
        section.fios_warning(ProblemKind::Conflict, job::Replay::write_iolog, message, "")
    })
}

/// fio takes it in a job file, and does not act on it either.
fn profile_acts_on_the_command_line(section: &ResolvedSection<'_>) -> Option<Problem> {
    section.options.general.profile.as_ref().map(|profile| {
        let name = shown(&profile.0);
        let message =
            format!("profile={name} has no effect in a job: its jobs are those of the command line");
        section.warning(
            ProblemKind::NoEffect,
            job::General::profile,
            message,
            format!("on the command line, before any --name: --profile={name}"),
        )
    })
}

fn rate_excludes_rate_iops(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let bytes = directions(&options.pace.rate, |rate| rate.0);
    let ios = directions(&options.pace.rate_iops, |rate| u64::from(*rate));
    (bytes.iter().zip(ios).any(|(bytes, ios)| *bytes > 0 && ios > 0)).then(|| {
        let message = "rate and rate_iops are mutually exclusive";
        section.error(ProblemKind::Conflict, job::Pace::rate_iops, message, "give one of them")
    })
}

fn rate_min_is_below_rate(section: &ResolvedSection<'_>) -> Option<Problem> {
    let rate = directions(&section.options.pace.rate, |rate| rate.0);
    let least = directions(&section.options.pace.rate_min, |rate| rate.0);
    let above = rate.iter().zip(least).any(|(rate, least)| *rate > 0 && least > *rate);
    above.then(|| {
        section.error(
            ProblemKind::Conflict,
            job::Pace::rate_min,
            "the minimum rate exceeds the rate",
            "lower rate_min or raise rate",
        )
    })
}

fn rate_iops_min_is_below_rate_iops(section: &ResolvedSection<'_>) -> Option<Problem> {
    let rate = directions(&section.options.pace.rate_iops, |rate| u64::from(*rate));
    let least = directions(&section.options.pace.rate_iops_min, |rate| u64::from(*rate));
    let above = rate.iter().zip(least).any(|(rate, least)| *rate > 0 && least > *rate);
    above.then(|| {
        let message = "the minimum rate exceeds the rate";
        section.error(
            ProblemKind::Conflict,
            job::Pace::rate_iops_min,
            message,
            "lower rate_iops_min or raise rate_iops",
        )
    })
}

/// fio turns `rate_iops` into bytes by the smallest block, so that larger ones come more rarely than it says.
fn rate_iops_counts_smallest_blocks(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let sizes = block_sizes(options);
    let limited = directions(&options.pace.rate_iops, |rate| u64::from(*rate));
    let linear = options.pace.rate_process == fiord_options::value::RateProcess::Linear;
    let direction = (0..3).find(|d| linear && limited[*d] > 0 && sizes[*d].min() < sizes[*d].max())?;
    let (ios, bytes) = (limited[direction], sizes[direction].min());
    let message = format!(
        "with several block sizes, the limit is {ios} of the smallest blocks per second: {} bytes",
        ios * bytes
    );
    Some(section.warning(
        ProblemKind::ReadDifferently,
        job::Pace::rate_iops,
        message,
        "rate_process=poisson counts I/Os of any size; rate= counts bytes",
    ))
}

fn size_holds_a_block(section: &ResolvedSection<'_>) -> Option<Problem> {
    let Some(Size::Bytes(size)) = section.options.amount.size else { return None };
    let sizes = block_sizes(section.options);
    let used = pattern(section.options.access.rw.kind);
    let occurs = |direction: &crate::Direction| used.includes(*direction);
    let smallest =
        crate::Direction::ALL.iter().filter(|one| occurs(one)).map(|one| sizes[one.index()].min()).min()?;
    (size > 0 && size < smallest).then(|| {
        let message = format!("{size} is less than the smallest block size, {smallest} bytes");
        section.error(
            ProblemKind::Conflict,
            job::Amount::size,
            message,
            "use a larger size= or a smaller bs=",
        )
    })
}

fn spin_is_part_of_thinktime(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.pace.thinktime.us > 0 && options.pace.thinktime_spin.us > options.pace.thinktime.us).then(|| {
        let message = "spinning longer than the think time itself; the whole think time is spun";
        section.warning(ProblemKind::Adjusted, job::Pace::thinktime_spin, message, "")
    })
}

fn thinktime_options_need_thinktime(section: &ResolvedSection<'_>) -> Option<Problem> {
    if section.options.pace.thinktime.us > 0 {
        return None;
    }
    let companions = [
        job::Pace::thinktime_spin,
        job::Pace::thinktime_blocks,
        job::Pace::thinktime_blocks_type,
        job::Pace::thinktime_iotime,
        job::Pace::thinkcycles,
    ];
    let given = companions.into_iter().find(|option| section.is_given(option))?;
    Some(section.warning(
        ProblemKind::NoEffect,
        given,
        format!("{} has no effect without thinktime", given.name),
        "for example thinktime=1ms",
    ))
}

fn batch_complete_range_is_ordered(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let most = options.queue.iodepth_batch_complete_max.filter(|most| *most > 0)?;
    (options.queue.iodepth_batch_complete_min > most).then(|| {
        let least = options.queue.iodepth_batch_complete_min;
        let message =
            format!("at most {most} completions are taken at once and {least} waited for; {least} are taken");
        section.warning(ProblemKind::Adjusted, job::Queue::iodepth_batch_complete_max, message, "")
    })
}

/// The write-up of many a benchmark has this trap in it: `iodepth=32` without an engine.
fn queue_depth_needs_a_queue(section: &ResolvedSection<'_>) -> Option<Problem> {
    let engine = section.engine()?;
    (section.options.queue.iodepth > 1 && !engine.can_queue()).then(|| {
        let message = format!("the engine {} is synchronous: the queue depth stays at 1", engine.name);
        // The newest first.
        let queued = section.engines.0.iter().rev().filter(|engine| engine.queueing.is_queued());
        let queued: Vec<EngineName> = queued.map(|engine| engine.name).collect();
        let remedy = format!("ioengine={} keeps several I/Os in flight", EngineName::join(&queued, " or "));
        section.warning(ProblemKind::NoEffect, job::Queue::iodepth, message, remedy)
    })
}

fn mapping_is_never_direct(section: &ResolvedSection<'_>) -> Option<Problem> {
    let maps = section.engine().is_some_and(EngineDescriptor::maps_files);
    (is_direct(section) && maps).then(|| {
        section.warning(
            ProblemKind::NoEffect,
            job::Access::direct,
            "a mapping goes through the page cache; direct= has no effect on it",
            "",
        )
    })
}

fn unaligned_blocks_are_not_direct(section: &ResolvedSection<'_>) -> Option<Problem> {
    let direct = is_direct(section);
    let touches_files = section.engine().is_none_or(EngineDescriptor::touches_files);
    (direct && section.options.blocks.bs_unaligned.0 && touches_files).then(|| {
        section.error(
            ProblemKind::Conflict,
            job::Blocks::bs_unaligned,
            "direct I/O needs block sizes that are multiples of the device's block",
            "",
        )
    })
}

fn append_excludes_overwrite(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    (options.files.file_append && options.files.overwrite).then(|| {
        section.warning(
            ProblemKind::Conflict,
            job::Files::overwrite,
            "data that is appended cannot be overwritten; it is laid out first",
            "",
        )
    })
}

fn huge_pages_are_larger_than_pages(section: &ResolvedSection<'_>) -> Option<Problem> {
    let bytes = section.options.buffers.hugepage_size.0;
    (!bytes.is_power_of_two() || bytes < 4096).then(|| {
        let message = format!("{bytes} bytes are not the size of a huge page");
        section.error(
            ProblemKind::InvalidValue,
            job::Buffers::hugepage_size,
            message,
            "a power of two, usually 2m or 1g",
        )
    })
}

fn log_options_need_a_log(section: &ResolvedSection<'_>) -> Option<Problem> {
    let logs = [
        job::Measure::write_bw_log,
        job::Measure::write_lat_log,
        job::Measure::write_iops_log,
        job::Measure::write_hist_log,
    ];
    if logs.into_iter().any(|log| section.is_given(log)) {
        return None;
    }
    let options = [
        job::Measure::log_avg_msec,
        job::Measure::log_hist_msec,
        job::Measure::log_window_value,
        job::Measure::log_offset,
        job::Measure::log_prio,
        job::Measure::log_store_compressed,
    ];
    let given = options.into_iter().find(|option| section.is_given(option))?;
    let message = format!("{} has no effect without a log", given.name);
    Some(section.warning(ProblemKind::NoEffect, given, message, "for example write_lat_log=run"))
}

fn histogram_logs_need_a_window(section: &ResolvedSection<'_>) -> Option<Problem> {
    (section.is_given(job::Measure::write_hist_log) && section.options.measure.log_hist_msec == 0).then(
        || {
            let message = "the log of histograms stays empty without log_hist_msec";
            section.warning(
                ProblemKind::NoEffect,
                job::Measure::write_hist_log,
                message,
                "for example log_hist_msec=1000",
            )
        },
    )
}

fn log_clock_exists(section: &ResolvedSection<'_>) -> Option<Problem> {
    let id = section.options.measure.log_alternate_epoch_clock_id;
    clock_exists(section, job::Measure::log_alternate_epoch_clock_id, id)
}

fn log_issue_time_needs_offsets_of_latencies(section: &ResolvedSection<'_>) -> Option<Problem> {
    let measure = &section.options.measure;
    let complete = measure.write_lat_log.is_some() && measure.log_offset;
    (measure.log_issue_time && !complete).then(|| {
        let message = "log_issue_time needs write_lat_log and log_offset, as in fio";
        let remedy = "add write_lat_log=run and log_offset=1, or remove it";
        section.error(ProblemKind::Conflict, job::Measure::log_issue_time, message, remedy)
    })
}

fn compressed_logs_have_one_value(section: &ResolvedSection<'_>) -> Option<Problem> {
    let measure = &section.options.measure;
    let more = match (measure.log_issue_time, measure.log_window_value) {
        (true, _) => "times of issue",
        (false, LogWindowValue::Both) => "a second value",
        (false, LogWindowValue::Average | LogWindowValue::Maximum) => return None,
    };
    measure.log_store_compressed.then(|| {
        let message = format!("the form of compressed logs has no place for {more}");
        section.error(ProblemKind::Conflict, job::Measure::log_store_compressed, message, "remove it")
    })
}

fn start_clock_exists(section: &ResolvedSection<'_>) -> Option<Problem> {
    clock_exists(section, job::Time::job_start_clock_id, section.options.time.job_start_clock_id)
}

fn clock_exists(section: &ResolvedSection<'_>, option: &'static Spec, id: u32) -> Option<Problem> {
    // The kernel's clocks; 10 was abandoned.
    (id > 11 || id == 10).then(|| {
        let message = format!("the kernel has no clock {id}");
        section.error(ProblemKind::InvalidValue, option, message, "allowed: 0 to 9, 11")
    })
}

fn strided_zones_hold_a_block(section: &ResolvedSection<'_>) -> Option<Problem> {
    let options = section.options;
    let strided = zones::strided(options, pattern(options.access.rw.kind), &block_sizes(options))?;
    let given_bytes = zones::zone_bytes(options);
    (given_bytes < strided.zone_bytes).then(|| {
        let is_range = options.files.zonerange.0 > 0;
        let option = if is_range { job::Files::zonerange } else { job::Files::zonesize };
        let message =
            format!("zones of {given_bytes} bytes are smaller than a block of {}", strided.zone_bytes);
        section.error(ProblemKind::Extent, option, message, "")
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::io;

    use fiord_options::ProblemLevel::{self, Error, FiosWarning, Warning};
    use fiord_options::environment::{Environment, KeywordValues};
    use fiord_options::{cli, resolve_job};

    use super::*;
    use crate::testing::ENGINES;

    /// The result of one rule for a job with these options.
    fn verdict(rule: Rule, options: &str) -> Option<(ProblemLevel, ProblemKind)> {
        let no_file = |_: &OsStr| Err(io::Error::from(io::ErrorKind::NotFound));
        let no_variable = |_: &OsStr| None;
        let keywords = KeywordValues { cpus: 1, memory_mib: 1, page_bytes: 4096 };
        let engines = ENGINES.names();
        let environment =
            Environment { files: &no_file, variables: &no_variable, keywords, engines: &engines };
        let words = format!("--name=a --size=1m {options}");
        let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
        let parsed = cli::read(&words, &environment).unwrap().sections.remove(0);
        let (options, given, _) = resolve_job(&parsed, &ENGINES.names());
        let section = ResolvedSection { parsed: &parsed, options: &options, given: &given, engines: ENGINES };
        rule(&section).map(|problem| (problem.level, problem.kind))
    }

    /// A rule, options that break it, how severe the problem is, of what kind, and options that keep the rule.
    const CASES: &[(Rule, &str, ProblemLevel, ProblemKind, &str)] = &[
        (
            profile_acts_on_the_command_line,
            "--profile=tiobench",
            Warning,
            ProblemKind::NoEffect,
            "--description=tiobench",
        ),
        (
            sprandom::sprandom_is_one_random_write,
            "--sprandom=1 --rw=randrw",
            Error,
            ProblemKind::Conflict,
            "--sprandom=1 --rw=randwrite",
        ),
        (
            sprandom::sprandom_has_its_generator,
            "--sprandom=1 --rw=randwrite --random_generator=tausworthe",
            Error,
            ProblemKind::Conflict,
            "--sprandom=1 --rw=randwrite --random_generator=lfsr",
        ),
        (
            sprandom::sprandom_knows_the_spare_flash,
            "--sprandom=1 --rw=randwrite --spr_op=-1",
            Error,
            ProblemKind::InvalidValue,
            "--sprandom=1 --rw=randwrite --spr_op=0.07",
        ),
        (
            sprandom::sprandom_options_need_sprandom,
            "--spr_cs=1m",
            Warning,
            ProblemKind::NoEffect,
            "--sprandom=1 --rw=randwrite --spr_cs=1m",
        ),
        (numjobs_is_at_least_one, "--numjobs=0", Error, ProblemKind::InvalidValue, "--numjobs=1"),
        (
            filename_is_given_once,
            "--filename=x --filename=y",
            Warning,
            ProblemKind::ReadDifferently,
            "--filename=x:y",
        ),
        (
            time_based_needs_runtime,
            "--time_based",
            FiosWarning,
            ProblemKind::NoEffect,
            "--time_based --runtime=1",
        ),
        (
            rate_excludes_rate_iops,
            "--rate=1m --rate_iops=5",
            Error,
            ProblemKind::Conflict,
            "--rate=1m,0 --rate_iops=0,5",
        ),
        (
            rate_min_is_below_rate,
            "--rate=1m --rate_min=2m",
            Error,
            ProblemKind::Conflict,
            "--rate=2m --rate_min=1m",
        ),
        (
            rate_min_is_below_rate,
            "--rate=1m,2m --rate_min=2m,1m",
            Error,
            ProblemKind::Conflict,
            "--rate_min=1m",
        ),
        (
            rate_iops_min_is_below_rate_iops,
            "--rate_iops=1 --rate_iops_min=2",
            Error,
            ProblemKind::Conflict,
            "--rate_iops_min=2",
        ),
        (
            rate_iops_counts_smallest_blocks,
            "--rate_iops=9 --bsrange=4k-8k",
            Warning,
            ProblemKind::ReadDifferently,
            "--rate_iops=0,9 --bsrange=4k-8k,4k-4k",
        ),
        (size_holds_a_block, "--size=1k", Error, ProblemKind::Conflict, "--size=1k --bs=1k"),
        (
            size_holds_a_block,
            "--size=4k --bs=8k,1k",
            Error,
            ProblemKind::Conflict,
            "--size=4k --bs=8k,1k --rw=write",
        ),
        (
            spin_is_part_of_thinktime,
            "--thinktime=1 --thinktime_spin=2",
            Warning,
            ProblemKind::Adjusted,
            "--thinktime_spin=2",
        ),
        (
            thinktime_options_need_thinktime,
            "--thinkcycles=9",
            Warning,
            ProblemKind::NoEffect,
            "--thinktime=1 --thinkcycles=9",
        ),
        (
            pace::open_arrivals_need_a_rate,
            "--rate_arrivals=open",
            Warning,
            ProblemKind::NoEffect,
            "--rate_arrivals=open --rate_iops=9",
        ),
        (
            batch_complete_range_is_ordered,
            "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=2",
            Warning,
            ProblemKind::Adjusted,
            "--iodepth_batch_complete_min=2 --iodepth_batch_complete_max=4",
        ),
        (
            queue_depth_needs_a_queue,
            "--iodepth=32",
            Warning,
            ProblemKind::NoEffect,
            "--iodepth=32 --ioengine=libaio",
        ),
        (
            target_limits::atomic_needs_an_engine_with_flags,
            "--atomic=1 --ioengine=psync",
            Error,
            ProblemKind::Conflict,
            "--atomic=1 --ioengine=libaio",
        ),
        (
            mapping_is_never_direct,
            "--ioengine=mmap --direct=1",
            Warning,
            ProblemKind::NoEffect,
            "--ioengine=mmap",
        ),
        (
            unaligned_blocks_are_not_direct,
            "--direct=1 --bs_unaligned",
            Error,
            ProblemKind::Conflict,
            "--bs_unaligned",
        ),
        (
            append_excludes_overwrite,
            "--file_append=1 --overwrite=1",
            Warning,
            ProblemKind::Conflict,
            "--overwrite=1",
        ),
        (
            huge_pages_are_larger_than_pages,
            "--hugepage-size=3m",
            Error,
            ProblemKind::InvalidValue,
            "--hugepage-size=1g",
        ),
        (
            log_options_need_a_log,
            "--log_offset=1",
            Warning,
            ProblemKind::NoEffect,
            "--log_offset=1 --write_bw_log=l",
        ),
        (
            histogram_logs_need_a_window,
            "--write_hist_log=l",
            Warning,
            ProblemKind::NoEffect,
            "--write_hist_log=l --log_hist_msec=9",
        ),
        (
            start_clock_exists,
            "--job_start_clock_id=12",
            Error,
            ProblemKind::InvalidValue,
            "--job_start_clock_id=1",
        ),
        (
            log_issue_time_needs_offsets_of_latencies,
            "--write_lat_log=l --log_issue_time=1",
            Error,
            ProblemKind::Conflict,
            "--write_lat_log=l --log_offset=1 --log_issue_time=1",
        ),
        (
            compressed_logs_have_one_value,
            "--write_lat_log=l --log_store_compressed=1 --log_window_value=both",
            Error,
            ProblemKind::Conflict,
            "--write_lat_log=l --log_store_compressed=1 --log_window_value=max",
        ),
        (
            log_clock_exists,
            "--log_alternate_epoch_clock_id=12",
            Error,
            ProblemKind::InvalidValue,
            "--log_alternate_epoch_clock_id=7",
        ),
        (
            zoned::zones_are_verified_by_reading_them,
            "--zonemode=zbd --zonesize=1m --rw=write --verify=md5 --verify_only",
            Error,
            ProblemKind::Conflict,
            "--zonemode=zbd --zonesize=1m --rw=read --verify=md5 --verify_only",
        ),
        (
            zoned::zones_are_verified_by_reading_them,
            "--zonemode=zbd --zonesize=1m --rw=write --verify=md5 --trim_percentage=5",
            Error,
            ProblemKind::Conflict,
            "--zonemode=zbd --zonesize=1m --rw=trimwrite --verify=md5",
        ),
        (
            zoned::zones_are_verified_by_reading_them,
            "--zonemode=zbd --zonesize=1m --rw=read --bsrange=4k-8k --verify=md5",
            Error,
            ProblemKind::Conflict,
            "--zonemode=zbd --zonesize=1m --rw=write --bsrange=4k-8k --verify=md5",
        ),
        (
            zoned::a_zone_has_room_for_its_capacity,
            "--zonemode=zbd --zonesize=1m --zonecapacity=2m",
            Error,
            ProblemKind::InvalidValue,
            "--zonemode=zbd --zonesize=1m --zonecapacity=512k",
        ),
        (
            zones::zonesize_goes_with_zonemode,
            "--zonesize=8k",
            Error,
            ProblemKind::Conflict,
            "--zonemode=strided --zonesize=8k",
        ),
        (
            zones::zonesize_goes_with_zonemode,
            "--zonemode=strided",
            Error,
            ProblemKind::Conflict,
            "--zonemode=none",
        ),
        (
            strided_zones_hold_a_block,
            "--zonemode=strided --zonesize=8k --zonerange=2k",
            Error,
            ProblemKind::Extent,
            "--zonemode=strided --zonesize=2k --zonerange=4k",
        ),
        (
            zones::zoneskip_is_bytes_or_zones,
            "--zoneskip=10%",
            Error,
            ProblemKind::InvalidValue,
            "--zoneskip=2z",
        ),
        (
            zones::zone_options_need_zonemode,
            "--zoneskip=4k",
            Warning,
            ProblemKind::NoEffect,
            "--zonemode=strided --zoneskip=4k",
        ),
        (
            zones::stride_needs_a_sequence,
            "--random_sequence_stride=1",
            Warning,
            ProblemKind::NoEffect,
            "--random_sequence_stride=1 --random_distribution=sequence:1,0",
        ),
        (
            zones::distribution_needs_random_io,
            "--random_distribution=zipf",
            Warning,
            ProblemKind::NoEffect,
            "--random_distribution=zipf --rw=randread",
        ),
        (
            replay_excludes_recording,
            "--read_iolog=a --write_iolog=b",
            FiosWarning,
            ProblemKind::Conflict,
            "--read_iolog=a",
        ),
        (
            steady::steady_window_holds_measurements,
            "--ss_dur=3 --ss_interval=2",
            Error,
            ProblemKind::Conflict,
            "--ss_dur=3 --ss_interval=500ms",
        ),
        (
            steady::steadystate_needs_a_duration,
            "--ss=bw:5% --ss_dur=500ms",
            Warning,
            ProblemKind::NoEffect,
            "--ss=bw:5% --ss_dur=1",
        ),
        (
            pace::latency_target_needs_a_clock,
            "--latency_target=9 --gtod_reduce=1",
            Error,
            ProblemKind::Conflict,
            "--latency_target=9",
        ),
        (
            steady::steady_latency_is_measured,
            "--ss=lat:5% --ss_dur=1 --disable_lat=1",
            Error,
            ProblemKind::Conflict,
            "--ss=lat:5% --ss_dur=1",
        ),
        (
            buffers::working_set_has_one_file,
            "--dedupe_percentage=5 --dedupe_mode=working_set --nrfiles=2",
            Error,
            ProblemKind::Conflict,
            "--dedupe_percentage=5 --dedupe_mode=working_set",
        ),
        (
            buffers::dedupe_options_need_duplicates,
            "--dedupe_percentage=5 --dedupe_global=1",
            Warning,
            ProblemKind::NoEffect,
            "--dedupe_percentage=5 --dedupe_mode=working_set --dedupe_global=1",
        ),
        (
            queue::offload_needs_descriptors,
            "--ioengine=nbd --io_submit_mode=offload",
            Error,
            ProblemKind::Conflict,
            "--ioengine=psync --io_submit_mode=offload",
        ),
        (
            priority::percentage_excludes_bssplit,
            "--ioengine=libaio --cmdprio_percentage=5 --cmdprio_bssplit=4k/5",
            Error,
            ProblemKind::Conflict,
            "--ioengine=libaio --cmdprio_percentage=0 --cmdprio_bssplit=4k/5",
        ),
    ];

    #[test]
    fn each_rule_speaks_when_broken_and_is_silent_otherwise() {
        for (rule, broken, level, kind, kept) in CASES {
            assert_eq!(verdict(*rule, broken), Some((*level, *kind)), "{broken}");
            assert_eq!(verdict(*rule, kept), None, "{kept}");
        }
        let tested = |rule: &Rule| CASES.iter().any(|case| std::ptr::fn_addr_eq(case.0, *rule));
        assert!(RULES.iter().all(tested), "a rule is without a case");
    }
}

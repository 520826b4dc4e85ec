//! A case for each rule: options that break it, and a near neighbour that keeps it.
//!
//! Invariant: a rule without a case fails the test.

use std::ffi::OsStr;
use std::io;

use fiord_options::ProblemLevel::{self, Error, FiosWarning, Warning};
use fiord_options::environment::{Environment, KeywordValues};
use fiord_options::{ProblemKind, cli, resolve_job};

use super::*;
use crate::testing::ENGINES;

/// The result of one rule for a job with these options.
fn verdict(rule: Rule, options: &str) -> Option<(ProblemLevel, ProblemKind)> {
    of_section(options, |section| rule(section).map(|problem| (problem.level, problem.kind)))
}

/// What is found of a section with these options.
fn of_section<T>(options: &str, find: impl FnOnce(&ResolvedSection<'_>) -> T) -> T {
    let no_file = |_: &OsStr| Err(io::Error::from(io::ErrorKind::NotFound));
    let no_variable = |_: &OsStr| None;
    let keywords = KeywordValues { cpus: 1, memory_mib: 1, page_bytes: 4096 };
    let engines = ENGINES.names();
    let environment = Environment { files: &no_file, variables: &no_variable, keywords, engines: &engines };
    let words = format!("--name=a --size=1m {options}");
    let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
    let parsed = cli::read(&words, &environment).unwrap().sections.remove(0);
    let (options, given, _) = resolve_job(&parsed, &ENGINES.names());
    let section = ResolvedSection { parsed: &parsed, options: &options, given: &given, engines: ENGINES };
    find(&section)
}

/// A rule, options that break it, how severe the problem is, of what kind, and options that keep the rule.
const CASES: &[(Rule, &str, ProblemLevel, ProblemKind, &str)] = &[
    (
        job::profile_acts_on_the_command_line,
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
        sprandom::sprandom_is_one_random_write,
        "--sprandom=1 --rw=randwrite --norandommap=0",
        Error,
        ProblemKind::Conflict,
        "--sprandom=1 --rw=randwrite --norandommap=1",
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
        engines::options_of_commands_need_commands,
        "--ioengine=io_uring --writefua=1",
        Warning,
        ProblemKind::NoEffect,
        "--ioengine=io_uring --hipri",
    ),
    (
        engines::several_ranges_are_trimmed_alone,
        "--rw=trim --num_range=2",
        Error,
        ProblemKind::Conflict,
        "--rw=trim --num_range=1",
    ),
    (
        placement::placements_need_commands,
        "--ioengine=io_uring --fdp=1",
        Error,
        ProblemKind::Conflict,
        "--ioengine=io_uring --fdp=0 --dataplacement=none",
    ),
    (
        placement::placements_are_of_write_commands,
        "--ioengine=io_uring --dataplacement=fdp --write_mode=zeroes",
        Error,
        ProblemKind::Conflict,
        "--ioengine=io_uring --dataplacement=fdp --write_mode=write",
    ),
    (
        placement::one_interface_places,
        "--fdp=1 --dataplacement=streams",
        Error,
        ProblemKind::Conflict,
        "--fdp=1 --dataplacement=fdp",
    ),
    (
        placement::streams_are_numbered,
        "--dataplacement=streams",
        Error,
        ProblemKind::Conflict,
        "--dataplacement=streams --plids=1-3",
    ),
    (
        placement::a_scheme_has_its_file,
        "--fdp=1 --plid_select=scheme",
        Error,
        ProblemKind::Conflict,
        "--fdp=1 --plid_select=scheme --dp_scheme=f",
    ),
    (
        placement::options_of_placements_need_them,
        "--fdp=1 --plids=1 --plid_select=scheme --dp_scheme=f",
        Warning,
        ProblemKind::NoEffect,
        "--fdp=1 --plids=1 --plid_select=random",
    ),
    (job::numjobs_is_at_least_one, "--numjobs=0", Error, ProblemKind::InvalidValue, "--numjobs=1"),
    (
        files::filename_is_given_once,
        "--filename=x --filename=y",
        Warning,
        ProblemKind::ReadDifferently,
        "--filename=x:y",
    ),
    (
        job::time_based_needs_runtime,
        "--time_based",
        FiosWarning,
        ProblemKind::NoEffect,
        "--time_based --runtime=1",
    ),
    (
        verification::verify_only_follows_a_whole_run,
        "--rw=write --verify=md5 --verify_only --time_based --runtime=1",
        Error,
        ProblemKind::Conflict,
        "--rw=write --verify=md5 --verify_only --runtime=1",
    ),
    (
        rates::rate_excludes_rate_iops,
        "--rate=1m --rate_iops=5",
        Error,
        ProblemKind::Conflict,
        "--rate=1m,0 --rate_iops=0,5",
    ),
    (
        rates::rate_min_is_below_rate,
        "--rate=1m --rate_min=2m",
        Error,
        ProblemKind::Conflict,
        "--rate=2m --rate_min=1m",
    ),
    (
        rates::rate_min_is_below_rate,
        "--rate=1m,2m --rate_min=2m,1m",
        Error,
        ProblemKind::Conflict,
        "--rate_min=1m",
    ),
    (
        rates::rate_iops_min_is_below_rate_iops,
        "--rate_iops=1 --rate_iops_min=2",
        Error,
        ProblemKind::Conflict,
        "--rate_iops_min=2",
    ),
    (
        sizes::size_holds_a_block,
        "--size=4k --bs=8k,1k",
        Error,
        ProblemKind::Conflict,
        "--size=4k --bs=8k,1k --rw=write",
    ),
    (
        rates::spin_is_part_of_thinktime,
        "--thinktime=1 --thinktime_spin=2",
        Warning,
        ProblemKind::Adjusted,
        "--thinktime_spin=2",
    ),
    (
        engines::batch_complete_range_is_ordered,
        "--iodepth_batch_complete_min=4 --iodepth_batch_complete_max=2",
        Warning,
        ProblemKind::Adjusted,
        "--iodepth_batch_complete_min=2 --iodepth_batch_complete_max=4",
    ),
    (
        engines::queue_depth_needs_a_queue,
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
        engines::mapping_is_never_direct,
        "--ioengine=mmap --direct=1",
        Warning,
        ProblemKind::NoEffect,
        "--ioengine=mmap",
    ),
    (
        engines::unaligned_blocks_are_not_direct,
        "--direct=1 --bs_unaligned",
        FiosWarning,
        ProblemKind::Conflict,
        "--bs_unaligned",
    ),
    (
        files::append_excludes_overwrite,
        "--file_append=1 --overwrite=1",
        Warning,
        ProblemKind::Conflict,
        "--overwrite=1",
    ),
    (
        buffers::huge_pages_are_larger_than_pages,
        "--hugepage-size=3m",
        Error,
        ProblemKind::InvalidValue,
        "--hugepage-size=1g",
    ),
    (
        logs::histogram_logs_need_a_window,
        "--write_hist_log=l",
        Warning,
        ProblemKind::NoEffect,
        "--write_hist_log=l --log_hist_msec=9",
    ),
    (
        job::start_clock_exists,
        "--job_start_clock_id=12",
        Error,
        ProblemKind::InvalidValue,
        "--job_start_clock_id=1",
    ),
    (
        logs::log_issue_time_needs_offsets_of_latencies,
        "--write_lat_log=l --log_issue_time=1",
        Error,
        ProblemKind::Conflict,
        "--write_lat_log=l --log_offset=1 --log_issue_time=1",
    ),
    (
        logs::compressed_logs_have_one_value,
        "--write_lat_log=l --log_store_compressed=1 --log_window_value=both",
        Error,
        ProblemKind::Conflict,
        "--write_lat_log=l --log_store_compressed=1 --log_window_value=max",
    ),
    (
        job::log_clock_exists,
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
    // divergence: `write_mode=zone_append` with
    (
        engines::appends_go_to_zones,
        "--ioengine=io_uring --write_mode=zone_append --rw=write",
        Error,
        ProblemKind::Conflict,
        "--ioengine=io_uring --write_mode=zone_append --rw=write --zonemode=zbd --zonesize=1m",
    ),
    (
        engines::appends_go_to_zones,
        "--ioengine=io_uring --write_mode=zone_append --rw=write --zonemode=zbd --zonesize=1m --verify=md5",
        Error,
        ProblemKind::Conflict,
        "--ioengine=io_uring --write_mode=write --rw=write --zonemode=zbd --zonesize=1m --verify=md5",
    ),
    (
        engines::appends_go_to_zones,
        "--ioengine=io_uring --write_mode=zone_append --rw=write --zonemode=zbd --zonesize=1m --read_iolog=trace",
        Error,
        ProblemKind::Conflict,
        "--ioengine=io_uring --write_mode=write --rw=write --zonemode=zbd --zonesize=1m --read_iolog=trace",
    ),
    (
        zoned::early_resets_have_one_number_each,
        "--zonemode=zbd --zonesize=1m --zone_reset_threshold=.4:.6",
        Error,
        ProblemKind::InvalidValue,
        "--zonemode=zbd --zonesize=1m --zone_reset_threshold=.4",
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
        sizes::strided_zones_hold_a_block,
        "--zonemode=strided --zonesize=8k --zonerange=2k",
        Error,
        ProblemKind::Extent,
        "--zonemode=strided --zonesize=2k --zonerange=4k",
    ),
    (zones::zoneskip_is_bytes_or_zones, "--zoneskip=10%", Error, ProblemKind::InvalidValue, "--zoneskip=2z"),
    (
        zones::stride_needs_a_sequence,
        "--random_sequence_stride=1",
        Warning,
        ProblemKind::NoEffect,
        "--random_sequence_stride=1 --random_distribution=sequence:1,0",
    ),
    (
        files::replay_excludes_recording,
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
        buffers::copies_have_one_engine,
        "--mem=cudamalloc --ioengine=psync --io_submit_mode=offload",
        Error,
        ProblemKind::Conflict,
        "--mem=cudamalloc --ioengine=psync",
    ),
    (
        connection::connections_have_no_offsets,
        "--ioengine=net --port=8765 --hostname=a --rw=randwrite",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --port=8765 --hostname=a --rw=write",
    ),
    (
        connection::connections_are_not_synced,
        "--ioengine=net --port=8765 --hostname=a --rw=write --fsync=1",
        Error,
        ProblemKind::Conflict,
        "--ioengine=psync --fsync=1 --rw=write",
    ),
    (
        connection::connections_of_one_direction_are_not_mixed,
        "--ioengine=net --protocol=udp --port=1 --hostname=224.0.0.9 --rw=rw --pingpong",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --port=8765 --listen --rw=rw --pingpong",
    ),
    (
        connection::connections_of_one_direction_are_not_mixed,
        "--ioengine=rdma --port=8765 --hostname=a --rw=rw",
        Error,
        ProblemKind::Conflict,
        "--ioengine=rdma --port=8765 --hostname=a --rw=write",
    ),
    // divergence: `rw=trim` or `fsync` with `rdma`
    (
        connection::connections_are_not_synced,
        "--ioengine=rdma --port=8765 --hostname=a --rw=write --fsync=1",
        Error,
        ProblemKind::Conflict,
        "--ioengine=rdma --port=8765 --hostname=a --rw=write",
    ),
    (
        connection::connections_have_no_offsets,
        "--ioengine=rdma --port=8765 --hostname=a --rw=trim",
        Error,
        ProblemKind::Conflict,
        "--ioengine=rdma --port=8765 --hostname=a --rw=write",
    ),
    (
        connection::connections_have_no_offsets,
        "--ioengine=rdma --port=8765 --rw=randread",
        Error,
        ProblemKind::Conflict,
        "--ioengine=rdma --port=8765 --rw=read",
    ),
    (
        connection::mixed_connections_can_stall,
        "--ioengine=net --port=8765 --listen --rw=rw",
        Warning,
        ProblemKind::Conflict,
        "--ioengine=net --port=8765 --listen --rw=rw --pingpong",
    ),
    (
        connection::senders_do_not_verify,
        "--ioengine=net --port=8765 --hostname=a --rw=write --verify=crc32c",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --port=8765 --hostname=a --rw=write --verify=crc32c --do_verify=0",
    ),
    (
        connection::a_connection_has_one_name,
        "--ioengine=net --port=8765 --listen --nrfiles=2",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --port=8765 --listen --numjobs=2",
    ),
    (
        connection::a_connection_has_its_port,
        "--ioengine=net --listen",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --protocol=unix --filename=/tmp/s",
    ),
    (
        connection::only_one_end_has_a_hostname,
        "--ioengine=net --port=8765 --hostname=a --listen",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --protocol=udp --port=1 --hostname=224.0.0.9",
    ),
    (
        connection::only_streams_listen,
        "--ioengine=net --protocol=udp --port=1 --listen",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --port=8765 --listen",
    ),
    (
        connection::ports_of_clones_exist,
        "--ioengine=net --listen --port=65535 --numjobs=2",
        Error,
        ProblemKind::Conflict,
        "--ioengine=net --listen --port=65535",
    ),
    (
        connection::ports_of_clones_exist,
        "--ioengine=rdma --rw=read --port=65535 --numjobs=2",
        Error,
        ProblemKind::Conflict,
        "--ioengine=rdma --rw=read --port=65534 --numjobs=2",
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

/// Options that have an effect beside others only, what is beside them where they have none, and where they have one.
const CONDITIONAL: &[(&[&str], &str, &str)] = &[
    (
        &["thinktime_spin=9", "thinktime_blocks=2", "thinktime_blocks_type=issue", "thinktime_iotime=9"],
        "",
        "--thinktime=1ms",
    ),
    (&["thinkcycles=9"], "--thinktime=0", "--thinktime=1ms"),
    (&["rate_process=poisson", "rate_arrivals=open"], "--rate_min=1", "--rate_iops=9"),
    (&["rate_ignore_thinktime=1"], "--rate=1m", "--rate=1m --thinktime=1ms"),
    (&["rate_cycle=500"], "--rate=1m", "--rate_iops_min=1"),
    (&["latency_window=1s", "latency_percentile=90", "latency_run=1"], "", "--latency_target=1ms"),
    (
        &["steadystate=bw:5%", "steadystate_ramp_time=2", "steadystate_check_interval=2"],
        "--ss_dur=500ms",
        "--ss_dur=10",
    ),
    (
        &[
            "log_avg_msec=9",
            "log_window_value=max",
            "log_offset=1",
            "log_prio=1",
            "log_compression=64k",
            "log_compression_cpus=0",
            "log_store_compressed=1",
            "log_alternate_epoch=1",
        ],
        "--disable_lat=1",
        "--write_bw_log=l",
    ),
    (&["log_hist_msec=9", "log_hist_coarseness=2"], "--write_lat_log=l", "--write_hist_log=l"),
    (&["log_alternate_epoch_clock_id=1"], "--write_lat_log=l", "--log_alternate_epoch=1"),
    (&["error_dump=1"], "", "--continue_on_error=io"),
    (
        &[
            "verify_policy=fsynced",
            "verify_offset=64",
            "verify_interval=512",
            "verify_fatal=1",
            "verify_dump=1",
            "verify_async=2",
            "verify_backlog=9",
            "verify_state_load=1",
            "verify_header_format=3.33",
            "verify_only=1",
        ],
        "--rw=write --verify=0",
        "--rw=write --verify_pattern=0xaa",
    ),
    (&["verify_async_cpus=0"], "--verify=md5", "--verify=md5 --verify_async=2"),
    (&["verify_backlog_batch=9"], "--verify=md5", "--verify=md5 --verify_backlog=9"),
    (&["verify_pattern_interval=512"], "--verify=md5", "--verify_pattern=0xaa"),
    (&["verify=md5"], "--rw=randtrim", "--rw=trimwrite"),
    (&["trim_percentage=10"], "--rw=write", "--rw=write --verify=md5"),
    (&["trim_percentage=10"], "--rw=write --verify=md5 --do_verify=0", "--rw=randrw --verify=md5"),
    (&["trim_percentage=10"], "--rw=read --verify=md5", "--rw=trimwrite --verify=md5"),
    (&["trim_backlog=9"], "--verify=md5", "--trim_percentage=9"),
    (&["trim_backlog_batch=9"], "--trim_percentage=9", "--trim_backlog=9"),
    (&["io_size=9m"], "--time_based --runtime=9", "--runtime=9"),
    (&["loops=2"], "--time_based --runtime=9", "--time_based --runtime=9 --number_ios=9"),
    (&["zonerange=8k"], "--zonemode=zbd --zonesize=4k", "--zonemode=strided --zonesize=4k"),
    (&["zoneskip=8k"], "", "--zonemode=zbd --zonesize=4k"),
    (
        &[
            "zonecapacity=4k",
            "read_beyond_wp=1",
            "max_open_zones=2",
            "job_max_open_zones=2",
            "ignore_zone_limits=1",
            "recover_zbd_write_error=1",
            "write_zone_remainder=1",
        ],
        "--zonemode=strided --zonesize=8k",
        "--zonemode=zbd --zonesize=8k",
    ),
    (
        &[
            "random_distribution=zipf",
            "norandommap",
            "softrandommap=1",
            "random_generator=lfsr",
            "percentage_random=50",
        ],
        "--rw=rw",
        "--rw=randread",
    ),
    (&["rwmixread=70", "rwmixwrite=70"], "--rw=randread", "--rw=randrw"),
    (&["fsync=1", "fdatasync=1", "sync_file_range=write:8"], "--rw=randread", "--rw=rw"),
    (&["spr_op=0.2", "spr_num_regions=9", "spr_cs=1m"], "--rw=randwrite", "--rw=randwrite --sprandom=1"),
    (&["offset_align=64k"], "--offset=1m", "--offset=10%"),
    (&["buffer_compress_chunk=4k"], "", "--buffer_compress_percentage=50"),
    (&["hugepage-size=1g"], "--iomem=mmap", "--iomem=mmaphuge"),
    (&["flow_id=2", "flow_sleep=9"], "", "--flow=2"),
    (&["exit_what=all"], "--stonewall", "--exitall"),
    (&["cgroup_weight=500", "cgroup_nodelete=1"], "", "--cgroup=g"),
    (&["cpus_allowed_policy=split"], "--numjobs=2", "--cpus_allowed=0"),
    (
        &[
            "read_iolog_chunked=1",
            "merge_blktrace_file=m",
            "replay_no_stall=1",
            "replay_time_scale=50",
            "replay_redirect=f",
            "replay_align=4k",
            "replay_scale=2",
            "replay_skip=read",
        ],
        "--write_iolog=t",
        "--read_iolog=t",
    ),
    (
        &["merge_blktrace_scalars=50", "merge_blktrace_iters=2"],
        "--read_iolog=t",
        "--read_iolog=t --merge_blktrace_file=m",
    ),
];

#[test]
fn an_option_whose_condition_is_not_met_is_said_and_silent_otherwise() {
    let mut tested = Vec::new();
    for (options, without, with) in CONDITIONAL {
        for option in *options {
            let name = option.split('=').next().unwrap();
            let said = |beside: &str| {
                let of_option = |problem: &fiord_options::Problem| {
                    problem.option.is_some_and(|spec| spec.name == name) && problem.level == Warning
                };
                let judged = of_section(&format!("{beside} --{option}"), conditions::judge);
                judged.into_iter().filter_map(|(_, problem)| problem).filter(of_option).count()
            };
            assert_eq!((said(without), said(with)), (1, 0), "{option}, {without:?} and {with:?}");
            tested.push(name);
        }
    }
    for option in conditions::CONDITIONS.iter().flat_map(|condition| condition.options) {
        assert!(tested.contains(&option.name), "{} is without a case", option.name);
    }
}

#[test]
fn an_option_that_asks_for_nothing_needs_nothing() {
    for nothing in ["verify_fatal=0", "norandommap=0", "rwmixread=50", "rate_process=linear", "loops=1"] {
        let time_based = "--time_based --runtime=9";
        let judged = of_section(&format!("{time_based} --{nothing}"), conditions::judge);
        assert!(judged.iter().all(|(_, problem)| problem.is_none()), "{nothing}: {judged:?}");
    }
}

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
    rule(&section).map(|problem| (problem.level, problem.kind))
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
        rates::rate_iops_counts_smallest_blocks,
        "--rate_iops=9 --bsrange=4k-8k",
        Warning,
        ProblemKind::ReadDifferently,
        "--rate_iops=0,9 --bsrange=4k-8k,4k-4k",
    ),
    (sizes::size_holds_a_block, "--size=1k", Error, ProblemKind::Conflict, "--size=1k --bs=1k"),
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
        rates::thinktime_options_need_thinktime,
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
        Error,
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
        logs::log_options_need_a_log,
        "--log_offset=1",
        Warning,
        ProblemKind::NoEffect,
        "--log_offset=1 --write_bw_log=l",
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

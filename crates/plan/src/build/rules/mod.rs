//! Rules between options of one job: one function each, which returns what is wrong or odd, if anything. Those that need
//! more than the options themselves are in the file that resolves these.
//!
//! Invariant: a rule looks at one section alone and changes nothing; `all` runs every rule.

pub(super) mod conditions;
mod engines;
mod files;
mod job;
mod logs;
mod placement;
mod rates;
mod sizes;
#[cfg(test)]
mod tests;

use fiord_options::Problem;

use super::section::ResolvedSection;
use super::{
    buffers, connection, pace, priority, queue, sprandom, steady, target_limits, verification, zoned, zones,
};

/// A rule.
type Rule = fn(&ResolvedSection<'_>) -> Option<Problem>;

/// Every rule.
const RULES: &[Rule] = &[
    job::numjobs_is_at_least_one,
    files::filename_is_given_once,
    job::time_based_needs_runtime,
    rates::rate_excludes_rate_iops,
    rates::rate_min_is_below_rate,
    rates::rate_iops_min_is_below_rate_iops,
    sizes::size_holds_a_block,
    rates::spin_is_part_of_thinktime,
    engines::batch_complete_range_is_ordered,
    engines::queue_depth_needs_a_queue,
    engines::mapping_is_never_direct,
    engines::options_of_commands_need_commands,
    engines::several_ranges_are_trimmed_alone,
    engines::appends_go_to_zones,
    placement::placements_need_commands,
    placement::placements_are_of_write_commands,
    placement::one_interface_places,
    placement::streams_are_numbered,
    placement::a_scheme_has_its_file,
    placement::options_of_placements_need_them,
    target_limits::atomic_needs_an_engine_with_flags,
    engines::unaligned_blocks_are_not_direct,
    files::append_excludes_overwrite,
    buffers::huge_pages_are_larger_than_pages,
    logs::histogram_logs_need_a_window,
    job::log_clock_exists,
    logs::log_issue_time_needs_offsets_of_latencies,
    logs::compressed_logs_have_one_value,
    job::start_clock_exists,
    verification::verify_only_follows_a_whole_run,
    zoned::zones_are_verified_by_reading_them,
    zoned::a_zone_has_room_for_its_capacity,
    zoned::early_resets_have_one_number_each,
    zones::zonesize_goes_with_zonemode,
    sprandom::sprandom_is_one_random_write,
    sprandom::sprandom_has_its_generator,
    sprandom::sprandom_knows_the_spare_flash,
    job::profile_acts_on_the_command_line,
    sizes::strided_zones_hold_a_block,
    zones::zoneskip_is_bytes_or_zones,
    zones::stride_needs_a_sequence,
    files::replay_excludes_recording,
    steady::steady_window_holds_measurements,
    pace::latency_target_needs_a_clock,
    steady::steady_latency_is_measured,
    buffers::working_set_has_one_file,
    buffers::dedupe_options_need_duplicates,
    priority::percentage_excludes_bssplit,
    queue::offload_needs_descriptors,
    buffers::copies_have_one_engine,
    connection::connections_have_no_offsets,
    connection::connections_are_not_synced,
    connection::connections_of_one_direction_are_not_mixed,
    connection::mixed_connections_can_stall,
    connection::senders_do_not_verify,
    connection::a_connection_has_one_name,
    connection::a_connection_has_its_port,
    connection::only_one_end_has_a_hostname,
    connection::only_streams_listen,
    connection::ports_of_clones_exist,
];

/// What every rule says of a section.
pub(crate) fn all(section: &ResolvedSection<'_>) -> Vec<Problem> {
    RULES.iter().filter_map(|rule| rule(section)).collect()
}

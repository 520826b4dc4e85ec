//! `zonemode=zbd`: the job's settings, and whether its targets suit them.
//!
//! Invariant: a target without zones is given a length for emulated ones, and a zoned device keeps its own.

use fiord_options::shown::shown;
use fiord_options::value::{FloatList, RwKind, Size, ZoneMode};
use fiord_options::{Problem, ProblemKind, Spec, job};
use fiord_stats::Capped;

use super::blocks::block_sizes;
use super::section::ResolvedSection;
use crate::access::{Access, BlockSizes, Direction, Pattern};
use crate::facts::Facts;
use crate::files::{FilePlan, Files};
use crate::zoned::{ZoneSkip, ZonedAccess};

/// fio's smallest emulated zone.
const ZONE_BYTES_MIN: u64 = 512;

/// The job's settings.
pub(crate) fn zoned(section: &ResolvedSection<'_>) -> Option<ZonedAccess> {
    let options = section.options;
    let zone_bytes = options.files.zonesize.0;
    let first =
        |list: &Option<FloatList>| list.as_ref().and_then(|list| list.0.first().copied()).unwrap_or(0.0);
    let reset_frequency = first(&options.files.zone_reset_frequency);
    (options.files.zonemode == ZoneMode::Zbd).then(|| ZonedAccess {
        zone_bytes,
        capacity_bytes: options.files.zonecapacity.0,
        skip: match options.files.zoneskip {
            Size::Zones(zones) => ZoneSkip::Zones(zones),
            Size::Bytes(bytes) if zone_bytes > 0 && bytes.is_multiple_of(zone_bytes) => {
                ZoneSkip::Zones(bytes / zone_bytes)
            }
            Size::Bytes(bytes) => ZoneSkip::Bytes(bytes),
            // A rule refuses it.
            Size::Percent(_) => ZoneSkip::NONE,
        },
        open_max: Some(options.files.max_open_zones).filter(|zones| *zones > 0),
        job_open_max: Some(options.files.job_max_open_zones).filter(|zones| *zones > 0),
        ignores_device_limit: options.files.ignore_zone_limits,
        reads_beyond_pointer: options.files.read_beyond_wp,
        reset_threshold: first(&options.files.zone_reset_threshold),
        reset_every: (reset_frequency > 0.0).then(|| u64::capped(1.0 / reset_frequency)),
        recovers: options.files.recover_zbd_write_error,
        appends: appends(section),
        writes_remainder: options.files.write_zone_remainder,
    })
}

/// Whether the job's writes are appended to zones.
pub(crate) fn appends(section: &ResolvedSection<'_>) -> bool {
    let is_able = section.engine().is_some_and(|engine| engine.appends_to_zones);
    is_able && section.options.io_uring_cmd.write_mode.append()
}

/// A rule: what a job wrote in zones follows from where their write pointers were when it began, which a later run does
/// not know.
pub(super) fn zones_are_verified_by_reading_them(section: &ResolvedSection<'_>) -> Option<Problem> {
    let (options, verification) = (section.options, &section.options.verify);
    if options.files.zonemode != ZoneMode::Zbd || !section.is_given(job::Verification::verify) {
        return None;
    }
    let reads_only = matches!(options.access.rw.kind, RwKind::Read | RwKind::RandRead);
    let of_one_size = || matches!(block_sizes(options)[Direction::Read.index()], BlockSizes::Fixed(_));
    let unknown = "where a job wrote in zones follows from their write pointers when it began";
    let (option, why, remedy) = match verification {
        given if given.verify_only.0 && !reads_only => (
            job::Verification::verify_only,
            unknown,
            "rw=read with the same verify reads what is in the zones",
        ),
        given if given.verify_state_load => (
            job::Verification::verify_state_load,
            unknown,
            "without it, rw=read verifies all that is in the zones",
        ),
        given if given.trim_percentage > 0 => (
            job::Verification::trim_percentage,
            "a block cannot be trimmed alone in a zone, which is reset as a whole",
            "rw=trimwrite with verify, which trims whole zones",
        ),
        _ if reads_only && !of_one_size() => (
            job::Blocks::bs,
            "where blocks of different lengths begin in zones is known only to the job that writes them",
            "one block size, or verify in the job that writes",
        ),
        _ => return None,
    };
    Some(section.error(ProblemKind::Conflict, option, format!("zonemode=zbd: {why}"), remedy))
}

/// A rule; fio's limits.
pub(super) fn a_zone_has_room_for_its_capacity(section: &ResolvedSection<'_>) -> Option<Problem> {
    let files = &section.options.files;
    let (zone_bytes, capacity_bytes) = (files.zonesize.0, files.zonecapacity.0);
    if files.zonemode != ZoneMode::Zbd || zone_bytes == 0 {
        return None;
    }
    let (option, message, remedy) = match (zone_bytes < ZONE_BYTES_MIN, capacity_bytes > zone_bytes) {
        (true, _) => {
            (job::Files::zonesize, format!("zones of {zone_bytes} bytes are too small"), "at least 512")
        }
        (_, true) => (
            job::Files::zonecapacity,
            format!("{capacity_bytes} bytes do not fit into zones of {zone_bytes}"),
            "a capacity of at most zonesize",
        ),
        _ => return None,
    };
    Some(section.error(ProblemKind::InvalidValue, option, message, remedy))
}

/// A rule, as in fio.
pub(super) fn early_resets_have_one_number_each(section: &ResolvedSection<'_>) -> Option<Problem> {
    let files = &section.options.files;
    let lists = [
        (job::Files::zone_reset_threshold, &files.zone_reset_threshold),
        (job::Files::zone_reset_frequency, &files.zone_reset_frequency),
    ];
    let (option, count) = lists.into_iter().find_map(|(option, list)| {
        let count = list.as_ref().map_or(0, |list| list.0.len());
        (count > 1).then_some((option, count))
    })?;
    let message = format!("{} is one number, and these are {count}", option.name);
    Some(section.error(ProblemKind::InvalidValue, option, message, "leave out all but one"))
}

/// Problems of the job's targets.
pub(crate) fn unsuited(
    section: &ResolvedSection<'_>,
    access: &Access,
    files: &Files,
    facts: &Facts,
) -> Vec<Problem> {
    let Some(zoned) = &access.zoned else { return Vec::new() };
    files.list.iter().filter_map(|file| unsuited_target(section, access, zoned, files, file, facts)).collect()
}

fn unsuited_target(
    section: &ResolvedSection<'_>,
    access: &Access,
    zoned: &ZonedAccess,
    files: &Files,
    file: &FilePlan,
    facts: &Facts,
) -> Option<Problem> {
    let path = shown(&file.path);
    let device_bytes = facts.path(&file.path).zone_bytes;
    let (option, message, remedy) = match (device_bytes, zoned.zone_bytes) {
        (None, 0) => (
            job::Files::zonesize,
            format!("{path} is not zoned, and zonesize does not give the length of the zones to emulate"),
            "for example zonesize=1m",
        ),
        // As in fio 3.41; 3.33 refuses jobs that only read as well.
        (None, _)
            if access.pattern.modifies() && zoned.job_open_max.is_some() && zoned.open_max.is_none() =>
        {
            (
                job::Files::job_max_open_zones,
                "job_max_open_zones cannot be used without a global open zones limit".to_string(),
                "add max_open_zones=N",
            )
        }
        (Some(own), given) if given != 0 && given != own => (
            job::Files::zonesize,
            format!("the zones of {path} have {own} bytes, not {given}"),
            "leave out zonesize",
        ),
        (Some(_), _) if access.pattern.includes(Direction::Write) && !files.direct => (
            job::Access::direct,
            format!("{path} is a zoned device, and the page cache writes in any order"),
            "add direct=1",
        ),
        (own, given) if trims_parts_of_zones(access, own.unwrap_or(given)) => (
            job::Blocks::bs,
            format!(
                "{path}: the block size of trims is not the zone size, {} bytes, and a zone is reset as a whole",
                own.unwrap_or(given)
            ),
            "bs of that size; bs=READ,WRITE,TRIM sets that of trims alone",
        ),
        (own, given) => {
            let zone_bytes = own.unwrap_or(given);
            let capacity_bytes = match own {
                None if zoned.capacity_bytes > 0 => zoned.capacity_bytes,
                _ => zone_bytes,
            };
            unsuited_amount(access, zoned, file, [zone_bytes, capacity_bytes])?
        }
    };
    Some(section.error(ProblemKind::Target, option, message, remedy).of_path(&file.path))
}

/// What of the job's amounts does not suit zones of this length and capacity.
fn unsuited_amount(
    access: &Access,
    zoned: &ZonedAccess,
    file: &FilePlan,
    [zone_bytes, capacity_bytes]: [u64; 2],
) -> Option<(&'static Spec, String, &'static str)> {
    let path = shown(&file.path);
    // Only writes end at the capacity.
    let longest = |direction: Direction, most_bytes: u64| {
        let sizes = &access.block_sizes[direction.index()];
        access.pattern.includes(direction) && sizes.max() > most_bytes
    };
    let (option, message, remedy) = match zoned.skip {
        _ if longest(Direction::Write, capacity_bytes) => (
            job::Blocks::bs,
            format!(
                "a block that is written is longer than what a zone of {path} holds, {capacity_bytes} bytes"
            ),
            "a smaller bs",
        ),
        _ if longest(Direction::Read, zone_bytes) => (
            job::Blocks::bs,
            format!("a block that is read is longer than a zone of {path}, {zone_bytes} bytes"),
            "a smaller bs",
        ),
        ZoneSkip::Bytes(bytes) if !bytes.is_multiple_of(zone_bytes) => (
            job::Files::zoneskip,
            format!("{bytes} bytes are not whole zones of {path}, which have {zone_bytes}"),
            "a multiple of that, or a number of zones such as 1z",
        ),
        _ if used_bytes(access, file, zone_bytes) == 0 => (
            job::Amount::size,
            format!(
                "the {} bytes used of {path} do not contain a whole zone of {zone_bytes}",
                file.length_bytes
            ),
            "a larger size, or offset=0",
        ),
        _ => return None,
    };
    Some((option, message, remedy))
}

/// The bytes of a file that a job uses in zones of this length: whole zones, but that sequential reads begin where they are
/// told to.
pub(crate) fn used_bytes(access: &Access, file: &FilePlan, zone_bytes: u64) -> u64 {
    // Of no known length: another check says so.
    if zone_bytes == 0 {
        return file.length_bytes;
    }
    let reads_on = access.pattern == Pattern::Only(Direction::Read) && !access.random;
    let start = if reads_on { file.offset_bytes } else { file.offset_bytes.next_multiple_of(zone_bytes) };
    let end = file.offset_bytes.saturating_add(file.length_bytes) / zone_bytes * zone_bytes;
    end.saturating_sub(start)
}

/// The bytes of a file that a pass transfers. As in fio, a sequential job that writes makes up for the zones that it skips.
pub(crate) fn pass_bytes(access: &Access, zoned: &ZonedAccess, file: &FilePlan, zone_bytes: u64) -> u64 {
    let skips = zoned.skip.zones(zone_bytes) > 0;
    match used_bytes(access, file, zone_bytes) {
        1.. if skips && !access.random && access.pattern.includes(Direction::Write) => file.length_bytes,
        used_bytes => used_bytes,
    }
}

fn trims_parts_of_zones(access: &Access, zone_bytes: u64) -> bool {
    let sizes = &access.block_sizes[Direction::Trim.index()];
    access.pattern.includes(Direction::Trim) && *sizes != BlockSizes::Fixed(zone_bytes)
}
